"""Find secrets in text.

Rule: time is linear in the text, whatever it holds: RE2 matches everything that looks at all of it. One pass over a
text tells which rules may have something to say, and almost always there is none; the pattern of a rule is compiled
when it is first tried. What is found is told by rule, place and id; its value is kept nowhere.
"""

from __future__ import annotations

import re

import re2

from trace_store.frozen import value
from trace_store.objects.content import bytes_of, text_of
from trace_store.secrets.checks import looks_random
from trace_store.secrets.known import KNOWN_RULE, spellings
from trace_store.secrets.normalised_text import ESCAPED, View
from trace_store.secrets.placeholders import KEY_BYTES, finding_id, is_within, placeholder
from trace_store.secrets.rules import RULES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence
    from typing import Any

    from trace_store.secrets.rules.rule import Rule

MAXIMUM_MEMORY = 64 << 20
"""Bytes that RE2 may take for what it remembers of all triggers."""

BASE64_CHARACTERS = 128
"""A run of base64 that is as long holds data, no token."""
TOKEN_SURROUNDINGS = 16
"""A token with less beside it stands by itself: `/` and `-` may also end a path or a word."""
LINE_CHARACTERS = 320
"""So far the line beside a line of base64 is looked for."""
_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-"
_LINE = rb"([A-Za-z0-9+/_-]{32,})"
_LINE_END = rb"""["' +,]{0,4}(?:[\r\n]|\\+[rn]){1,4}[ \t"']{0,32}"""
_ABOVE = re.compile(rb"(?<![A-Za-z0-9+/_-])" + _LINE + _LINE_END + rb"\Z")
_BELOW = re.compile(_LINE_END + _LINE)

_NEAR = 80
"""How far before a secret its name begins."""


@value
class SecretFinding:
    """A secret in a text.

    Attributes:
        rule: its kind.
        start, end: where it stands: in characters of a text, in bytes of bytes.
        id: by which it may be allowed; the same wherever it stands.
    """

    rule: str
    start: int
    end: int
    id: str


class Scanner:
    """Finds secrets, and puts placeholders in their place."""

    def __init__(
        self,
        rules: Sequence[Rule] | None = None,
        known: Iterable[str] = (),
        allowed: Collection[str] = frozenset(),
        key: bytes | Callable[[], bytes] = bytes(KEY_BYTES),
    ) -> None:
        """Make a scanner.

        Args:
            rules: what to look for, the most telling first; None is all that there are.
            known: secrets themselves, to be found whatever they look like.
            allowed: ids of findings that are none.
            key: of the ids, 32 bytes; or what returns it, asked when something is found first.

        Raises:
            InvalidInputError: the pattern of a rule's trigger is none.
        """
        self._rules = RULES if rules is None else tuple(rules)
        self._known = [spelled for each in known for spelled in spellings(each)]
        self._allowed = frozenset(allowed)
        self._key = key
        self._compiled: dict[int, Any] = {}
        self._unlesses: dict[int, Any] = {}
        self._triggers = re2.Set.SearchSet(_options())
        for rule in self._rules:
            self._triggers.Add(trigger_of(rule).encode())
        for spelled in self._known:
            self._triggers.Add(_escaped(spelled))
        self._escapes = self._triggers.Add(ESCAPED.encode())
        self._triggers.Compile()
        self.meets = self._triggers.Match
        """Given bytes, return something that is true when they have to be looked at closely."""

    def __repr__(self) -> str:
        return f"Scanner({len(self._rules)} rules)"

    @property
    def rules(self) -> Sequence[Rule]:
        """What it looks for, the most telling first."""
        return self._rules

    def find(self, text: str) -> list[SecretFinding]:
        """Return the secrets in a text, in its order, none within another."""
        data = bytes_of(text)
        found = self.find_bytes(data)
        if len(data) == len(text):
            return found
        told: list[SecretFinding] = []
        at = characters = 0
        for each in found:
            start = characters + len(text_of(data[at : each.start]))
            end = start + len(text_of(data[each.start : each.end]))
            told.append(SecretFinding(each.rule, start, end, each.id))
            at, characters = each.end, end
        return told

    def filter(self, text: str) -> str:
        """Return a text with placeholders for the secrets in it; the very same object when there are none."""
        data = bytes_of(text)
        found = self.find_bytes(data)
        return text_of(replaced(data, found)) if found else text

    def find_bytes(self, data: bytes, hits: Sequence[int] | None = None) -> list[SecretFinding]:
        """Return the secrets in bytes, which may be no text at all; `hits` is what `meets` has said of them."""
        hits = hits or self.meets(data)
        if not hits:
            return []
        place = None
        if self._escapes in hits:
            view = View(data)
            data, place = view.data, view.place
            hits = self.meets(data) or ()
        taken = _together(self._candidates(data, sorted(hits)))
        found: list[SecretFinding] = []
        for order, start, end in taken:
            start, end = _whole(data, start, end)
            if is_within(data, start, end):
                continue
            id_ = finding_id(self._key_bytes(), data[start:end])
            if id_ in self._allowed:
                continue
            name = self._rules[order].name if order < len(self._rules) else KNOWN_RULE
            if place is not None:
                start, end = place(start), place(end)
            found.append(SecretFinding(name, start, end, id_))
        return found

    def _unless(self, number: int) -> Any:
        pattern = self._unlesses.get(number)
        if pattern is None:
            pattern = self._unlesses[number] = compiled(self._rules[number].unless)
        return pattern

    def _key_bytes(self) -> bytes:
        if not isinstance(self._key, bytes):
            self._key = self._key()
        return self._key

    def _candidates(self, data: bytes, hits: Sequence[int]) -> list[tuple[int, int, int]]:
        """Return what may be a secret: the number of its rule, and where it stands."""
        found: list[tuple[int, int, int]] = []
        rules = self._rules
        for hit in hits:
            if hit >= len(rules):
                if hit != self._escapes:
                    found += _places(data, self._known[hit - len(rules)], len(rules))
                continue
            check = rules[hit].check
            pattern = self._compiled.get(hit)
            if pattern is None:
                pattern = self._compiled[hit] = compiled(rules[hit].pattern)
            group = min(pattern.groups, 1)
            for match in pattern.finditer(data):
                start, end = match.span(group)
                secret = data[start:end]
                if start == end or (check is not None and not check(secret)):
                    continue
                if _is_in_base64(data, start, end):
                    continue
                if rules[hit].unless and self._unless(hit).search(
                    data[max(0, start - _NEAR) : start]
                ):
                    continue
                found.append((hit, start, end))
        return found


def replaced(data: bytes, found: Sequence[SecretFinding]) -> bytes:
    """Return bytes with placeholders for what was found in them."""
    pieces: list[bytes] = []
    at = 0
    for each in found:
        pieces += (data[at : each.start], placeholder(each.rule, each.id))
        at = each.end
    return b"".join([*pieces, data[at:]])


def compiled(pattern: str) -> Any:
    """Return a pattern as RE2 has it.

    Raises:
        re2.error: it is none.
    """
    return re2.compile(pattern.encode(), _options())


def trigger_of(rule: Rule) -> str:
    """Return the pattern that a text has to meet for a rule to be tried."""
    if rule.trigger:
        return rule.trigger
    words = "|".join(map(re2.escape, rule.words))
    return f"(?i:{words})" if rule.loose else f"(?:{words})"


def _options() -> Any:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = MAXIMUM_MEMORY
    options.log_errors = False  # a pattern may be a secret
    return options


def _is_in_base64(data: bytes, start: int, end: int) -> bool:
    """Tell whether a span is a piece of base64, in which whatever a token may look like occurs by chance.

    Signatures of reasoning, encrypted content, images and files are such runs. A token that fills its run is none of
    them, wherever it stands.
    """
    if data[start:end].strip(_BASE64):
        return False
    left, right = _run_before(data, start), _run_after(data, end)
    if data[left - 1 : left] == b"\\":
        left = min(left + 1, start)  # the letter of an escape
    beside = start - left + right - end
    if not beside:
        return False
    if right - left >= BASE64_CHARACTERS and beside >= TOKEN_SURROUNDINGS:
        return True
    if looks_random(data[left:start], 1 / 4) or looks_random(data[end:right], 1 / 4):
        return True
    # Base64 in lines: the line beside is as long.
    above = _ABOVE.search(data[max(0, left - LINE_CHARACTERS) : left])
    below = _BELOW.match(data[right : right + LINE_CHARACTERS])
    return any(line and len(line[1]) == right - left for line in (above, below))


def _run_before(data: bytes, at: int) -> int:
    """Return where the run of base64 that ends here begins, as far as it matters."""
    window = data[max(0, at - BASE64_CHARACTERS) : at]
    return at - len(window) + len(window.rstrip(_BASE64))


def _run_after(data: bytes, at: int) -> int:
    window = data[at : at + BASE64_CHARACTERS]
    return at + len(window) - len(window.lstrip(_BASE64))


def _escaped(data: bytes) -> bytes:
    escaped: str = re2.escape(data.decode("latin-1"))
    return escaped.encode("latin-1")


def _places(data: bytes, secret: bytes, order: int) -> list[tuple[int, int, int]]:
    found: list[tuple[int, int, int]] = []
    at = data.find(secret)
    while at >= 0:
        found.append((order, at, at + len(secret)))
        at = data.find(secret, at + len(secret))
    return found


def _together(candidates: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Return what covers all candidates, in their order; where several overlap the most telling rule names it."""
    found: list[tuple[int, int, int]] = []
    for order, start, end in sorted(candidates, key=lambda each: (each[1], -each[2])):
        if found and start < found[-1][2]:
            last = found[-1]
            found[-1] = (min(order, last[0]), last[1], max(end, last[2]))
        else:
            found.append((order, start, end))
    return found


def _whole(data: bytes, start: int, end: int) -> tuple[int, int]:
    """Return a span that ends with no half of a character."""
    while start > 0 and data[start] & 0xC0 == 0x80:
        start -= 1
    while end < len(data) and data[end] & 0xC0 == 0x80:
        end += 1
    return start, end
