"""Model keys, and keeping them out of output.

A Secret shows its text only through `reveal`.
"""

from __future__ import annotations

MASK = "[key]"
_TELLING = 4
"""This many characters at either end identify a key, because servers quote parts of keys."""
_ENDS = " \t\r\n\"'`,;:()[]{}<>"


class Secret:
    """A text that is never printed."""

    __slots__ = ("_text",)

    def __init__(self, text: str = "") -> None:
        self._text = text

    def __bool__(self) -> bool:
        return bool(self._text)

    def __repr__(self) -> str:
        return f"Secret({'…' if self._text else ''})"

    def reveal(self) -> str:
        """Return the text."""
        return self._text


def masked(text: str, secret: Secret) -> str:
    """Return a text with every word masked that contains a secret or an end of it."""
    known = secret.reveal()
    if not known:
        return text
    text = text.replace(known, MASK)
    ends = (known[: _TELLING + 2], known[-_TELLING:])
    words = {word for word in _words(text) if any(end in word for end in ends)}
    for word in sorted(words, key=len, reverse=True):
        text = text.replace(word, MASK)
    return text


def _words(text: str) -> list[str]:
    return text.translate(dict.fromkeys(map(ord, _ENDS), " ")).split(" ")
