"""The dictionary of a pack: the lines that its frames have in common.

A transcript repeats itself over long distances: a file that is read again, a listing, the log of a failing test. What
a frame repeats of another is found in the dictionary, so a frame can stay small and be read alone.

Rule: the same frames have the same dictionary, in every process. Lines stand in the order in which they first occur,
so that what stood together stands together.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

MAXIMUM_DICTIONARY_BYTES = 1024 * 1024
"""It has to be read before the first object is, so it is small."""
MAXIMUM_LINES_SEEN = 1 << 20
"""How many different lines are held, each in some hundred bytes besides its own, to tell which of them occur again."""


def lines_in_common(contents: Sequence[bytes], limit: int = MAXIMUM_DICTIONARY_BYTES) -> bytes:
    """Return the lines that occur in more than one of these contents, each once, `limit` bytes at most.

    A line also ends where one's end is written out, as JSON does it.
    """
    seen: dict[bytes, None] = {}
    repeated: set[bytes] = set()
    for content in contents:
        lines = dict.fromkeys(_lines(content))
        repeated |= lines.keys() & seen.keys()
        if len(seen) < MAXIMUM_LINES_SEEN:
            seen.update(lines)
    found: list[bytes] = []
    size = 0
    for line in seen:
        if line in repeated:
            size += len(line)
            if size > limit:
                break
            found.append(line)
    return b"".join(found)


def _lines(content: bytes) -> list[bytes]:
    return content.replace(b"\n", b"\n\0").replace(b"\\n", b"\\n\0").split(b"\0")
