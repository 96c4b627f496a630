r"""Rules: one kind of secret each, and how to recognise it.

Patterns are RE2's. They match bytes as if these were Latin-1, so that invalid UTF-8 is searched as well. A token
follows anything but a letter, a digit or a backslash. Escapes of JSON and programs (`\n`) do not belong to it, so a
secret within an escaped string can be replaced in place.
"""

from __future__ import annotations

from trace_store.base.frozen import value
from trace_store.secrets import checks
from trace_store.secrets.checks import Check

BEFORE = r"(?:\A|[^A-Za-z0-9\\]|\\+[nrtbf]|\[[0-9;]{0,12}m|=3D)"
"""What may precede a token: also the colour of a terminal, and the sign in quoted mail."""

GAP = r"""[\w .-]{0,30}(?:\\*["'`])?\]?\s{0,4}(?:=|:){1,2}>?\s{0,4}(?:\\*["'`])?"""
"""What separates a name from its value, in programs, JSON, YAML, INI and shells."""


@value
class Rule:
    """A rule for one kind of secret.

    Attributes:
        name: the kind, as in placeholders.
        pattern: the pattern; its first group, if any, is the secret.
        words: a text without any of these has no such secret; case matters unless `loose`.
        check: returns whether a match may be a secret; None accepts all.
        trigger: a pattern that must match before `pattern` is tried; "" uses the words.
        loose: whether the case of words is ignored.
        unless: a pattern right before a false positive; "" for none.
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
    """Return the rule for a token with its issuer's prefix.

    Args:
        name: as in `Rule`.
        prefix: the literal prefix.
        body: the pattern of the rest.
        check: as in `Rule`, for the whole token.
        end: a zero-width pattern that must follow.
    """
    return Rule(name, f"{BEFORE}({_literal(prefix)}{body}){end}", (prefix,), check)


def near(name: str, words: str, body: str, check: Check = _SOME, end: str = r"\b") -> Rule:
    """Return the rule for a value that only the name before it identifies.

    Args:
        name: as in `Rule`.
        words: lower-case words, separated by blanks; one of them is in the name.
        body: the pattern of the value.
        check: as in `Rule`.
        end: as in `token`.
    """
    several = tuple(words.split())
    names = "|".join(_literal(word) for word in several)
    return Rule(name, f"(?i:{names}){GAP}({body}){end}", several, check, loose=True)


def _literal(text: str) -> str:
    return "".join(c if c.isalnum() or c in "_-:/ ~" else f"\\{c}" for c in text)
