r"""A text without what hides its letters, and where each of them stood.

JSON may spell any letter as `\u0041`, and `/` as `\/`. Where a text does so, it is looked at without: a prefix that is
spelled like that is found all the same, and what is found is replaced in the text as it is spelled.
"""

from __future__ import annotations

import re
from bisect import bisect_right

_ESCAPE = re.compile(rb"\\+(?:u00([2-7][0-9a-fA-F])|/)")
ESCAPED = r"\\(?:u00[2-7][0-9a-fA-F]|/)"
"""What stands in a text that has to be looked at without it."""


class View:
    """A text as it is looked at.

    Attributes:
        data: the text.
    """

    __slots__ = ("_froms", "_places", "data")

    def __init__(self, data: bytes) -> None:
        pieces: list[bytes] = []
        self._places: list[int] = [0]  # where a piece begins in `data`
        self._froms: list[tuple[int, bool]] = [(0, True)]  # there, and whether it is as it is there
        at = size = 0
        for found in _ESCAPE.finditer(data):
            pieces.append(data[at : found.start()])
            size += found.start() - at
            self._places.append(size)
            self._froms.append((found.start(), False))
            pieces.append(bytes((int(found[1], 16),)) if found[1] else b"/")
            size += 1
            at = found.end()
            self._places.append(size)
            self._froms.append((at, True))
        self.data = b"".join([*pieces, data[at:]])

    def place(self, at: int) -> int:
        """Return where in the text as it was spelled a place is."""
        number = bisect_right(self._places, at) - 1
        begin, plain = self._froms[number]
        return begin + (at - self._places[number] if plain else 0)
