r"""What a rule is: one kind of secret, and how it is told from other text.

Rule: patterns are RE2's, and are matched against bytes as if these were Latin-1, so that nothing of a text is passed
over. A token is found behind anything but a letter, a digit or a backslash; the escapes of JSON and of programs (`\n`)
are no part of it. So what stands in a string that is spelled in JSON, or in SQL, can be replaced where it stands.
"""

from __future__ import annotations

from trace_store.frozen import value
from trace_store.secrets import checks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.secrets.checks import Check

BEFORE = r"(?:\A|[^A-Za-z0-9\\]|\\+[nrtbf])"
"""What stands before a token."""

GAP = r"""[\w .-]{0,30}(?:\\*["'`])?\]?\s{0,4}(?:=|:){1,2}>?\s{0,4}(?:\\*["'`])?"""
"""What stands between a name and its value, in programs, JSON, YAML, INI and shells."""


@value
class Rule:
    """One kind of secret.

    Attributes:
        name: of the kind, as it stands in placeholders.
        pattern: what it looks like; the first group, if there is one, is the secret.
        words: text without one of these holds no such secret; how they are spelled counts unless `loose`.
        check: tells of what was found whether it may be one; None: always.
        trigger: a pattern to be met before `pattern` is tried; empty: one of the words.
        loose: whether capital and small letters of the words are the same.
        unless: a pattern of what stands right before something that is none; empty: there is no such.
    """

    name: str
    pattern: str
    words: tuple[str, ...]
    check: Check | None = None
    trigger: str = ""
    loose: bool = False
    unless: str = ""


_SOME = checks.at_least(2)


def token(name: str, prefix: str, body: str, check: Check = _SOME, end: str = r"\b") -> Rule:
    """Return the rule of a token that begins with its issuer's prefix.

    Args:
        name: as in `Rule`.
        prefix: the beginning, letter for letter.
        body: the pattern of the rest.
        check: as in `Rule`, of the whole token.
        end: what has to come behind, of no width.
    """
    return Rule(name, f"{BEFORE}({_literal(prefix)}{body}){end}", (prefix,), check)


def near(name: str, words: str, body: str, check: Check = _SOME, end: str = r"\b") -> Rule:
    """Return the rule of a value that nothing but the name before it tells from others.

    Args:
        name: as in `Rule`.
        words: of which one stands in the name, in small letters, with blanks between them.
        body: the pattern of the value.
        check: as in `Rule`.
        end: as in `token`.
    """
    several = tuple(words.split())
    names = "|".join(_literal(word) for word in several)
    return Rule(name, f"(?i:{names}){GAP}({body}){end}", several, check, loose=True)


def _literal(text: str) -> str:
    return "".join(c if c.isalnum() or c in "_-:/ ~" else f"\\{c}" for c in text)
