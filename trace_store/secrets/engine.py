"""Scanner for secrets in text.

Its time is linear in the length of the text, since every pattern that scans all of it uses RE2. A first pass names the
rules that may match, usually none; a rule's pattern is compiled on first use. A finding has the rule, the position and
an id, but never the value.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache
from typing import Any

from trace_store.base.frozen import value
from trace_store.secrets.checks import looks_random
from trace_store.secrets.first_pass import (
    ESCAPES,
    FirstPass,
    re2_options,
    standard_pass,
    trigger_of,
    triggers_pass,
)
from trace_store.secrets.placeholders import (
    KEY_BYTES,
    PLACEHOLDER_START,
    finding_id,
    is_within,
    placeholder,
)
from trace_store.secrets.rules import RULES
from trace_store.secrets.rules.rule import Rule

BASE64_CHARACTERS = 128
"""A base64 run of at least this length is data, not a token."""
TOKEN_SURROUNDINGS = 16
"""A token next to fewer base64 characters is separate: `/` and `-` may belong to a path or word."""
LINE_CHARACTERS = 320
"""How far to look for the line above or below a line of base64."""
_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-"
_LINE = rb"([A-Za-z0-9+/_-]{32,})"
_LINE_END = rb"""["' +,]{0,4}(?:[\r\n]|\\+[rn]){1,4}[ \t"']{0,32}"""
_ABOVE = re.compile(rb"(?<![A-Za-z0-9+/_-])" + _LINE + _LINE_END + rb"\Z")
_BELOW = re.compile(_LINE_END + _LINE)

_ESCAPE = re.compile(
    rb"\\+(?:(?:u00|x)([2-7][0-9a-fA-F])|/)|%(2[267fF]|3[aAdD]|40|[57][bBdD])|&#x([2-7][0-9a-fA-F]);|&#([0-9]{2,3});"
    rb"|&(quot|amp|apos|lt|gt);"
)
_NAMED = {b"quot": b'"', b"amp": b"&", b"apos": b"'", b"lt": b"<", b"gt": b">"}
_NEAR = 80
"""The distance at which `unless` patterns look for a name before a secret."""
KNOWN_RULE = "known-value"
"""The kind of a known secret."""


@value
class SecretFinding:
    """A secret in a text.

    Attributes:
        rule: its kind.
        start, end: its position, in characters of a text or bytes of data.
        id: the id by which it can be allowed; it is the same for the same secret.
    """

    rule: str
    start: int
    end: int
    id: str


class Scanner:
    """Finds and redacts secrets."""

    def __init__(
        self,
        own: Sequence[Rule] = (),
        known: Iterable[str] = (),
        allowed: Collection[str] = frozenset(),
        key: bytes | Callable[[], bytes] = bytes(KEY_BYTES),
        cache: str = "",
    ) -> None:
        """Create a scanner.

        Args:
            own: the user's own rules, in addition to Trace's.
            known: known secrets, which are found whatever they look like.
            allowed: ids of false positives.
            key: the 32-byte key of the ids, or a function that returns it, called at the first finding.
            cache: a folder for compiled rules, which make a new process faster; "" for none.

        Raises:
            InvalidInputError: the trigger of a rule is not a valid pattern.
        """
        self.rules: tuple[Rule, ...] = (*own, *RULES)
        """The rules, most specific first."""
        self._known = [each for secret in known for each in _spellings(secret)]
        self._escapes = len(own) + ESCAPES
        self._allowed = frozenset(allowed)
        self._key = key
        self.meets = _joined(standard_pass(cache), own, self._known)
        """Returns a true value if some bytes need a closer look."""

    def __repr__(self) -> str:
        return f"Scanner({len(self.rules)} rules)"

    def find_bytes(self, data: bytes, hits: Sequence[int] | None = None) -> list[SecretFinding]:
        """Return the secrets in bytes, which need not be UTF-8; `hits` is the result of `meets`, if known."""
        hits = hits or self.meets(data)
        if not hits:
            return []
        found = self._findings(data, hits, lambda at: at)
        if self._escapes in hits:
            # A value may look like an escape, so the text is searched as it is, too.
            view = UnescapedText(data)
            found += self._findings(view.data, self.meets(view.data) or (), view.place)
        return _without_overlaps(found)

    def _findings(
        self, data: bytes, hits: Sequence[int], place: Callable[[int], int]
    ) -> list[SecretFinding]:
        """Return the secrets in a text, at their places in the original."""
        found: list[SecretFinding] = []
        for order, start, end in _merge_overlaps(self._candidates(data, sorted(hits))):
            start, end = _whole_characters(data, start, end)
            if is_within(data, start, min(start + len(PLACEHOLDER_START), end)):
                continue
            id_ = finding_id(self._key_bytes(), data[start:end])
            if id_ in self._allowed:
                continue
            name = self.rules[order].name if order < len(self.rules) else KNOWN_RULE
            found.append(SecretFinding(name, place(start), place(end), id_))
        return found

    def _key_bytes(self) -> bytes:
        if not isinstance(self._key, bytes):
            self._key = self._key()
        return self._key

    def _candidates(self, data: bytes, hits: Sequence[int]) -> list[tuple[int, int, int]]:
        """Return (number of the rule, start, end) of possible secrets."""
        found: list[tuple[int, int, int]] = []
        rules = self.rules
        for hit in hits:
            if hit >= len(rules):
                if hit != self._escapes:
                    found += _find_all(data, self._known[hit - self._escapes - 1], len(rules))
                continue
            check = rules[hit].check
            pattern = compiled(rules[hit].pattern)
            group = min(pattern.groups, 1)
            for match in pattern.finditer(data):
                start, end = match.span(group)
                secret = data[start:end]
                if start == end or (check is not None and not check(secret)):
                    continue
                if _is_in_base64(data, start, end):
                    continue
                unless = rules[hit].unless
                if unless and compiled(unless).search(data[max(0, start - _NEAR) : start]):
                    continue
                found.append((hit, start, end))
        return found


def replaced(data: bytes, found: Sequence[SecretFinding]) -> bytes:
    """Return data with placeholders for its findings."""
    pieces: list[bytes] = []
    at = 0
    for each in found:
        pieces += (data[at : each.start], placeholder(each.rule, each.id))
        at = each.end
    return b"".join([*pieces, data[at:]])


@cache
def compiled(pattern: str) -> Any:
    """Compile an RE2 pattern, which matches faster the more often it was used.

    Raises:
        re2.error: it is not valid.
    """
    import re2  # slow to load; few texts need it

    return re2.compile(pattern.encode(), re2_options())


def _joined(standard: FirstPass, own: Sequence[Rule], known: Sequence[bytes]) -> FirstPass:
    """Return a first pass that also names the user's own rules, before Trace's, and known secrets, behind `ESCAPED`.

    These are never written to a file, so RE2 searches for them.
    """
    if not own and not known:
        return standard
    triggers = [trigger_of(rule).encode() for rule in own]
    more = triggers_pass([*triggers, *map(_escaped, known)])

    def meets(data: bytes) -> list[int] | None:
        hits = [len(own) + number for number in standard(data) or ()]
        for number in more(data) or ():
            hits.append(number if number < len(own) else number + ESCAPES + 1)
        return hits

    return meets


def _is_in_base64(data: bytes, start: int, end: int) -> bool:
    """Return True if a span is a piece of base64 data, where tokens occur by chance.

    Such data are signatures of reasoning, encrypted content, images and files. A token that fills the whole run does
    not count as a piece.
    """
    if data[start:end].strip(_BASE64):
        return False
    left, right = _run_before(data, start), _run_after(data, end)
    if data[left - 1 : left] == b"\\":
        left = min(left + 1, start)  # part of an escape sequence
    beside = start - left + right - end
    if not beside:
        return False
    if right - left >= BASE64_CHARACTERS and beside >= TOKEN_SURROUNDINGS:
        return True
    if looks_random(data[left:start], 1 / 4) or looks_random(data[end:right], 1 / 4):
        return True
    # Base64 in lines: an adjacent line has the same length.
    above = _ABOVE.search(data[max(0, left - LINE_CHARACTERS) : left])
    below = _BELOW.match(data[right : right + LINE_CHARACTERS])
    return any(line and len(line[1]) == right - left for line in (above, below))


def _run_before(data: bytes, at: int) -> int:
    """Return the start of the base64 run that ends here, up to a limited distance."""
    window = data[max(0, at - BASE64_CHARACTERS) : at]
    return at - len(window) + len(window.rstrip(_BASE64))


def _run_after(data: bytes, at: int) -> int:
    window = data[at : at + BASE64_CHARACTERS]
    return at + len(window) - len(window.lstrip(_BASE64))


def _escaped(data: bytes) -> bytes:
    import re2

    escaped: str = re2.escape(data.decode("latin-1"))
    return escaped.encode("latin-1")


def _spellings(secret: str) -> list[bytes]:
    """Return the value as it is, and escaped in JSON once and twice."""
    found = [secret.encode("utf-8", "surrogatepass")]
    if not (secret.isascii() and secret.isalnum()):
        for ascii_only in (False, True):
            once = json.dumps(secret, ensure_ascii=ascii_only)[1:-1]
            twice = json.dumps(once, ensure_ascii=ascii_only)[1:-1]
            found += [spelled.encode("utf-8", "surrogatepass") for spelled in (once, twice)]
    return list(dict.fromkeys(found))


def _find_all(data: bytes, secret: bytes, order: int) -> list[tuple[int, int, int]]:
    found: list[tuple[int, int, int]] = []
    at = data.find(secret)
    while at >= 0:
        found.append((order, at, at + len(secret)))
        at = data.find(secret, at + len(secret))
    return found


def _merge_overlaps(candidates: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Merge overlapping candidates; the most specific rule names the result."""
    found: list[tuple[int, int, int]] = []
    for order, start, end in sorted(candidates, key=lambda each: (each[1], -each[2])):
        if found and start < found[-1][2]:
            last = found[-1]
            found[-1] = (min(order, last[0]), last[1], max(end, last[2]))
        else:
            found.append((order, start, end))
    return found


def _without_overlaps(found: list[SecretFinding]) -> list[SecretFinding]:
    """Return findings in order; of those that overlap the longest, over all of their places."""
    kept: list[SecretFinding] = []
    for each in sorted(found, key=lambda each: (each.start, -each.end)):
        if kept and each.start < kept[-1].end:
            last = kept.pop()
            longest = max(last, each, key=lambda one: one.end - one.start)
            end = max(last.end, each.end)
            kept.append(SecretFinding(longest.rule, last.start, end, longest.id))
        else:
            kept.append(each)
    return kept


def _whole_characters(data: bytes, start: int, end: int) -> tuple[int, int]:
    """Extend a span so that it splits no UTF-8 character."""
    while start > 0 and data[start] & 0xC0 == 0x80:
        start -= 1
    while end < len(data) and data[end] & 0xC0 == 0x80:
        end += 1
    return start, end


def _unescaped(found: re.Match[bytes]) -> bytes:
    """Return the character of an escape: of JSON, programs, URLs or HTML."""
    if name := found[5]:
        return _NAMED[name]
    code = found[1] or found[2] or found[3]
    number = int(code, 16) if code else int(found[4] or b"47")
    return bytes((number,)) if 0x20 <= number < 0x7F else b" "


class UnescapedText:
    """Unescaped text.

    Attributes:
        data: the text.
    """

    __slots__ = ("_origins", "_starts", "data")

    def __init__(self, data: bytes) -> None:
        pieces: list[bytes] = []
        self._starts: list[int] = [0]  # start of each piece in `data`
        self._origins: list[tuple[int, bool]] = [
            (0, True)
        ]  # its start in the original, and whether it is unchanged
        at = size = 0
        for found in _ESCAPE.finditer(data):
            pieces.append(data[at : found.start()])
            size += found.start() - at
            self._starts.append(size)
            self._origins.append((found.start(), False))
            pieces.append(_unescaped(found))
            size += 1
            at = found.end()
            self._starts.append(size)
            self._origins.append((at, True))
        self.data = b"".join([*pieces, data[at:]])

    def place(self, at: int) -> int:
        """Return the position in the original text."""
        number = bisect_right(self._starts, at) - 1
        begin, plain = self._origins[number]
        return begin + (at - self._starts[number] if plain else 0)
