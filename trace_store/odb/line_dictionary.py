"""The dictionary of a pack: the lines that its frames have in common.

A transcript repeats itself over long distances: a file that is read again, a listing, the log of a failing test. What
a frame repeats of another is found in the dictionary, so a frame can stay small and be read alone.

Rule: the same frames have the same dictionary, in every process. Lines stand in the order in which they first occur,
so that what stood together stands together.
"""

from __future__ import annotations

from zlib import crc32

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

MAXIMUM_DICTIONARY_BYTES = 1024 * 1024
"""It has to be read before the first object is, so it is small."""
MAXIMUM_LINES_SEEN = 1 << 20
"""Of how many lines it is remembered, in some ten bytes each and the room of a set, that they occurred."""


def lines_in_common(contents: Sequence[bytes], limit: int = MAXIMUM_DICTIONARY_BYTES) -> bytes:
    """Return the lines that occur in more than one of these contents, each once, `limit` bytes at most.

    A line also ends where one's end is written out, as JSON does it.
    """
    seen: set[int] = set()
    repeated: set[int] = set()
    for content in contents:
        marks = set(map(crc32, _lines(content)))
        repeated |= marks & seen
        if len(seen) < MAXIMUM_LINES_SEEN:
            seen |= marks
    del seen
    found: list[bytes] = []
    size = 0
    for content in contents:
        for line in _lines(content):
            mark = crc32(line)
            if mark in repeated:
                repeated.discard(mark)
                size += len(line)
                if size > limit:
                    return b"".join(found)
                found.append(line)
    return b"".join(found)


def _lines(content: bytes) -> list[bytes]:
    return content.replace(b"\n", b"\n\0").replace(b"\\n", b"\\n\0").split(b"\0")
