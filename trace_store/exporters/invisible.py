"""Characters that nobody would see, or that would change how others are read.

Rule: what a reader sees is what is there. Escape sequences, characters that reorder a line, invisible ones and lone
surrogates are shown by their code; what joins letters or picks one of their shapes stays where it does so.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator

_CODED = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls, but for tab and line feed
    r"\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e"
    r"\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164"
    r"\ud800-\udfff\ufeff\uffa0\ufff9-\ufffb\ufffe\uffff"
    r"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e00ff"
)
_JOINERS = r"\u200c\u200d"
_SHAPES = r"\ufe00-\ufe0f\U000e0100-\U000e01ef"
_LETTER = rf"[^\x00-\x7f{_JOINERS}{_SHAPES}]"
_UNSEEN = re.compile(
    rf"[{_CODED}]"
    # Joiners between two letters, or parts of a picture, are how those are written.
    rf"|(?!(?:(?<={_LETTER})|(?<=[{_SHAPES}]))[{_JOINERS}]{_LETTER})[{_JOINERS}]"
    # One selector of a shape behind what has shapes; the digits of keycaps have them too.
    rf"|(?<!{_LETTER})(?<![0-9#*])[{_SHAPES}]"
)
_MAYBE_UNSEEN = re.compile(rf"[{_CODED}{_JOINERS}{_SHAPES}]")
"""All that an unseen one can begin with: most text has none of it, which one class tells in a sixth of the time."""
_UNSEEN_RUN = re.compile(rf"(?:{_UNSEEN.pattern})+")
_CONTROLS = (
    *("NUL", "SOH", "STX", "ETX", "EOT", "ENQ", "ACK", "BEL", "BS", "TAB", "LF", "VT", "FF", "CR"),
    *(
        "SO",
        "SI",
        "DLE",
        "DC1",
        "DC2",
        "DC3",
        "DC4",
        "NAK",
        "SYN",
        "ETB",
        "CAN",
        "EM",
        "SUB",
        "ESC",
    ),
    *("FS", "GS", "RS", "US"),
)


def as_lines(text: str) -> str:
    """Return text whose lines end in a line feed alone."""
    return text.replace("\r\n", "\n")


def runs(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the runs of a text in order, each with whether its characters are unseen ones."""
    end = 0
    for found in _UNSEEN_RUN.finditer(text):
        if found.start() > end:
            yield text[end : found.start()], False
        yield found[0], True
        end = found.end()
    if end < len(text):
        yield text[end:], False


def reveal(text: str, show: Callable[[str], str]) -> tuple[str, int]:
    """Return text in which each unseen character is what `show` makes of it, and how many there were."""
    if _MAYBE_UNSEEN.search(text) is None:
        return text, 0
    return _UNSEEN.subn(lambda found: show(found[0]), text)


def code_of(character: str) -> str:
    """Return what stands for an unseen character: `ESC` for a control, `U+202E` for others."""
    code = ord(character)
    if code < len(_CONTROLS):
        return _CONTROLS[code]
    return "DEL" if code == 0x7F else f"U+{code:04X}"


def name_of(character: str) -> str:
    """Return the name of an unseen character, such as `U+202E RIGHT-TO-LEFT OVERRIDE`."""
    name = unicodedata.name(character, "")
    if 0xD800 <= ord(character) <= 0xDFFF:
        name = "LONE SURROGATE"
    return f"U+{ord(character):04X} {name or 'CONTROL CHARACTER'}"
