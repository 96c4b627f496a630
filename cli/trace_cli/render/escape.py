"""Escaping of repository text for terminals.

Rule: text from a repository, a transcript or the network passes `safe` before it reaches a terminal, also in errors.
Escape sequences, bidirectional controls and invisible characters are shown by their codes.
"""

from __future__ import annotations

_RANGES = (
    (0x00AD, 0x00AD),  # soft hyphen
    (0x061C, 0x061C),  # Arabic letter mark
    (0x180E, 0x180E),  # Mongolian vowel separator
    (0x200B, 0x200F),  # zero width, direction marks
    (0x2028, 0x202E),  # line and paragraph separators, bidirectional embeddings and overrides
    (0x2060, 0x206F),  # invisible operators, bidirectional isolates
    (0xD800, 0xDFFF),  # lone surrogates, which no encoding can carry
    (0xFEFF, 0xFEFF),  # byte order mark
    (0xFFF9, 0xFFFB),  # interlinear annotation
    (0xE0000, 0xE007F),  # tags: invisible ASCII
)


OWN_STYLES = frozenset(("0", "1", "2", "31", "32", "33", "34", "36"))
"""The style codes of `tables.paint`."""


class _Table:
    """A translation table that computes its entries on demand."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[int, str] = {}

    def __getitem__(self, code: int) -> str:
        found = self._known.get(code)
        if found is None:
            found = self._known[code] = _shown(code)
        return found


def _shown(code: int) -> str:
    if code < 0x20:
        return chr(code) if code in (0x09, 0x0A) else f"\\x{code:02x}"
    if 0x7F <= code <= 0x9F:
        return f"\\x{code:02x}"
    if any(first <= code <= last for first, last in _RANGES):
        return f"<U+{code:04X}>"
    return chr(code)


_TABLE = _Table()


def safe(text: str) -> str:
    """Escape everything that is not printable, except newlines and tabs."""
    return text if text.isprintable() else text.translate(_TABLE)


def guarded(text: str) -> str:
    """Escape text like `safe`, but keep Trace's own colors.

    This is the last check before a terminal. Callers escape repository text; this catches raw output and mistakes.
    """
    if "\x1b" not in text:
        return safe(text)
    before, *others = text.split("\x1b[")
    pieces = [safe(before)]
    for each in others:
        style, end, rest = each.partition("m")
        if end and style in OWN_STYLES:
            pieces += "\x1b[", style, end, safe(rest)
        else:
            pieces.append(safe(f"\x1b[{each}"))
    return "".join(pieces)


def one_line(text: str, width: int = 0) -> str:
    """Collapse white space to one line of at most `width` characters (0: any)."""
    # A window is enough: white space rarely fills it, and the text may have megabytes.
    window = text[: 8 * width + 64] if width else text
    if window.isprintable() and "  " not in window and window.strip(" ") == window:
        line = window  # the common case; the space is the only printable white space
    else:
        line = safe(" ".join(window.split()))
    if width and (len(line) > width or len(window) < len(text)):
        return line[: width - 1].rstrip() + "…"
    return line


def bounded(content: bytes, limit: int = 0) -> str:
    """Return content as escaped text of at most `limit` characters (0: all)."""
    text = safe(content.decode("utf-8", "backslashreplace"))
    return text[:limit] + "…" if limit and len(text) > limit else text
