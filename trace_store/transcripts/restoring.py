"""Give a file back from its segments, each checked by its hash.

Rule: reads, never writes; yields no byte of a segment that is not as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from trace_store import errors
from trace_store.objects.commit import read_commit
from trace_store.objects.content import read_content
from trace_store.oid import ObjectId, digest
from trace_store.transcripts.segments import Segment, split_layout
from trace_store.transcripts.sources import content_ids, source_records, spelled_content

Read = Callable[[bytes], bytes]
Held = dict[ObjectId, tuple[list[bytes], list[bytes]]]
"""The raw records and the ids of the contents that commits hold."""


def segments_of(tip: bytes, read: Read) -> list[Segment]:
    """Return the segments of a file, first to last.

    Raises:
        ObjectNotFoundError: a segment is not here.
        CorruptObjectError: one is damaged, or they do not follow each other.
    """
    found: list[Segment] = []
    oid: ObjectId | None = ObjectId(tip)
    while oid is not None:
        segment = Segment.decode(read(oid))
        if found and segment.start >= found[-1].start:
            raise errors.CorruptObjectError(
                f"segment {oid.short()} does not come before its follower"
            )
        found.append(segment)
        oid = segment.previous
    return found[::-1]


def restore(tip: bytes, read: Read) -> Iterator[bytes]:
    """Yield a file's bytes, segment by segment.

    Raises:
        ObjectNotFoundError: something that the file was kept with is not here.
        CorruptObjectError: what comes together is not what the file held.
    """
    held: Held = {}
    for segment in segments_of(tip, read):
        yield restore_segment(segment, read, held)
        # A commit may hold records of many segments; what it holds is put together once.
        held = {oid: found for oid, found in held.items() if oid in segment.commits}


def restore_segment(segment: Segment, read: Read, held: Held | None = None) -> bytes:
    """Return the bytes of a segment; errors as in `restore`.

    Args:
        segment: the segment.
        read: reads objects.
        held: what commits hold, as far as it was looked up; it is added to.
    """
    pieces: list[bytes] = []
    held = {} if held is None else held
    for piece in split_layout(read_content(segment.layout, read)):
        if isinstance(piece, bytes):
            pieces.append(piece)
            continue
        item, number, letter = piece
        try:
            oid = segment.commits[item - 1]
            if oid not in held:
                commit = read_commit(oid, read)
                held[oid] = (source_records(commit, read), content_ids(commit))
            records, contents = held[oid]
            if letter:
                pieces.append(spelled_content(contents[number], letter, read))
            else:
                pieces.append(records[number])
        except (IndexError, ValueError) as error:
            raise errors.CorruptObjectError(f"a damaged layout of a transcript: {error}") from error
    data = b"".join(pieces)
    if digest(data).hex() != segment.hash:
        raise errors.CorruptObjectError("a piece of a transcript is not what the file held")
    return data


def file_size(tip: bytes, read: Read) -> int:
    """Return how many bytes a file has; errors as in `segments_of`, of its last segment alone."""
    return Segment.decode(read(tip)).end
