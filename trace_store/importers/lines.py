"""Lines of a file that may be huge, torn, binary, or changing while it is read.

Rule: bytes in, bytes out, split at newlines and at nothing else; never more than one chunk and one line in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

CHUNK_BYTES = 1 << 20
MAXIMUM_LINE_BYTES = 64 << 20

ReadAt = Callable[[int, int], bytes]
"""Given an offset and a size in bytes, return the bytes there; fewer only at the end."""


class Line(NamedTuple):
    """One line without its newline.

    Attributes:
        number: counted from 1.
        offset: where it begins in the file.
        data: its bytes; None when it is longer than the bound, and then it was passed over unread.
        length: its bytes in the file, without the newline.
        ended: whether a newline ends it; only the last line of a file may lack one.
        whole: whether it is a whole file, which holds one document.
    """

    number: int
    offset: int
    data: bytes | None
    length: int
    ended: bool
    whole: bool = False


def read_lines(
    read_at: ReadAt,
    end: int,
    *,
    offset: int = 0,
    number: int = 1,
    limit: int = MAXIMUM_LINE_BYTES,
    chunk_bytes: int = CHUNK_BYTES,
) -> Iterator[Line]:
    """Yield the lines between two offsets; a file that shrinks meanwhile just ends early.

    Args:
        read_at: how to read.
        end: where to stop, the size of the file when the reading began: what is written later is for next time.
        offset: where to begin, the start of a line or the place behind what was read of one.
        number: the number of the line there.
        limit: the longest line that is kept, in bytes.
        chunk_bytes: how much to read at once.
    """
    start = offset
    pieces: list[bytes] = []
    held = 0
    position = offset
    while position < end:
        chunk = read_at(position, min(chunk_bytes, end - position))
        if not chunk:
            break
        begin = 0
        while (newline := chunk.find(b"\n", begin)) >= 0:
            length = position + newline - start
            data = None
            if length <= limit:
                data = chunk[begin:newline]
                if pieces:
                    pieces.append(data)
                    data = b"".join(pieces)
            yield Line(number, start, data, length, True)
            number += 1
            begin = newline + 1
            start = position + begin
            if held:
                pieces, held = [], 0
        rest = chunk[begin:]
        held += len(rest)
        if held <= limit:
            pieces.append(rest)
        else:
            pieces = []
        position += len(chunk)
    if position > start:
        data = b"".join(pieces) if held <= limit else None
        yield Line(number, start, data, position - start, False)
