r"""Text without JSON escapes, with a map to the original positions.

JSON may escape any letter as `\u0041`, and `/` as `\/`, which would hide a token's prefix. The scanner looks at the
unescaped text, and the secret is replaced in the original.
"""

from __future__ import annotations

import re
from bisect import bisect_right

_ESCAPE = re.compile(rb"\\+(?:u00([2-7][0-9a-fA-F])|/)")
ESCAPED = r"\\(?:u00[2-7][0-9a-fA-F]|/)"
"""The escapes that make unescaping necessary."""


class View:
    """Unescaped text.

    Attributes:
        data: the text.
    """

    __slots__ = ("_froms", "_places", "data")

    def __init__(self, data: bytes) -> None:
        pieces: list[bytes] = []
        self._places: list[int] = [0]  # start of each piece in `data`
        self._froms: list[tuple[int, bool]] = [
            (0, True)
        ]  # its start in the original, and whether it is unchanged
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
        """Return the position in the original text."""
        number = bisect_right(self._places, at) - 1
        begin, plain = self._froms[number]
        return begin + (at - self._places[number] if plain else 0)
