"""Lay out a file: cut it into segments, with a place in a commit for each record that one holds.

Rule: a function of the file and of the places. A cut stands before a record, or in the midst of a long stretch without
any, so a file that grew has the same segments as far as they were complete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from trace_store.objects.content import Gathering, bytes_of, text_of
from trace_store.oid import ObjectId, digest
from trace_store.secrets import filter_text
from trace_store.transcripts.segments import NUL, Segment, escape, record_place

MAXIMUM_RECORDS = 64
MAXIMUM_BYTES = 256 << 10
"""Past either, the next record begins a segment: so little is written anew when a file grows."""

MAXIMUM_STRETCH = 8 << 20
"""A longer stretch without records is cut within: so a file of anything is never held whole."""

ReadAt = Callable[[int, int], bytes]

HASH_BYTES = 8


def record_hash(raw: bytes) -> bytes:
    """Return by what a record is known again when its file is laid out."""
    return digest(raw)[:HASH_BYTES]


class Placed(NamedTuple):
    """Where a record of a file is held.

    Attributes:
        length: how many bytes of the file it is.
        commit: the commit that holds it, or its contents.
        number: which record of the commit's source it is; None when only contents of it are there.
        raw: without a number, the record as it is kept, in which `NUL n L NUL` stands for contents of the commit.
        kept: the record as it is kept, when that differs from what the file holds.
        hash: the `record_hash` of what the file held when it was read; without one, nobody looks whether it still does.
    """

    length: int
    commit: ObjectId
    number: int | None
    raw: bytes = b""
    kept: bytes | None = None
    hash: bytes = b""


@dataclass(frozen=True, slots=True)
class Laid:
    """A segment that was laid out.

    Attributes:
        oid: its id; that of the last one names the file.
        segment: the segment.
        begins: where it begins in the file as it is there, in bytes.
        changed: whether the file no longer held a record that had been read from it.
    """

    oid: ObjectId
    segment: Segment
    begins: int
    changed: bool


def lay_out(
    read_at: ReadAt,
    size: int,
    places: Mapping[int, Placed],
    gathering: Gathering,
    *,
    begins: int = 0,
    after: tuple[ObjectId, Segment] | None = None,
) -> list[Laid]:
    """Return the segments of a file from one of its cuts on, and put their objects.

    What comes back is what the file holds now: a record that is no longer as it was read is laid out as bytes. There is
    a segment at least, unless there is one before and nothing behind it.

    Args:
        read_at: reads the file.
        size: of the file, in bytes.
        places: of records, by their offset.
        gathering: takes the objects.
        begins: where in the file to begin; a segment begins there.
        after: the segment before.
    """
    laid: list[Laid] = []
    for begin, end, offsets in _cuts(begins, size, places):
        piece = _Piece()
        at = begin
        for offset in offsets:
            piece.literal(read_at(at, offset - at))
            piece.record(read_at(offset, places[offset].length), places[offset])
            at = offset + places[offset].length
        piece.literal(read_at(at, end - at))
        data = b"".join(piece.whole)
        if not data and after is not None:
            break  # the file has become shorter
        segment = Segment(
            start=0 if after is None else after[1].end,
            size=len(data),
            hash=digest(data).hex(),
            layout=gathering.put(b"".join(piece.layout)),
            commits=tuple(piece.items),
            previous=None if after is None else after[0],
        )
        after = (gathering.put_object(segment.encode()), segment)
        laid.append(Laid(*after, begin, piece.changed))
    return laid


class _Piece:
    """A segment to be.

    Attributes:
        items: the commits that its layout names.
        layout: the layout.
        whole: what comes of it.
        changed: as in `Laid`.
    """

    def __init__(self) -> None:
        self.items: dict[ObjectId, int] = {}
        self.layout: list[bytes] = []
        self.whole: list[bytes] = []
        self.changed = False

    def record(self, there: bytes, placed: Placed) -> None:
        """Add a record that is held elsewhere, given what the file holds of it."""
        if placed.hash and record_hash(there) != placed.hash:
            self.changed = True
            self.literal(there)
            return
        self.whole.append(there if placed.kept is None else placed.kept)
        item = self.items.setdefault(placed.commit, len(self.items) + 1)
        self.layout.append(_standing(placed, item))

    def literal(self, data: bytes) -> None:
        """Add bytes that no commit holds; they pass the filter too."""
        try:
            text = text_of(data)
        except UnicodeDecodeError:
            pass
        else:
            filtered = filter_text(text)
            if filtered is not text:
                data = bytes_of(filtered)
        self.layout.append(escape(data))
        self.whole.append(data)


def _cuts(
    begins: int, size: int, places: Mapping[int, Placed]
) -> Iterator[tuple[int, int, list[int]]]:
    """Yield the pieces of a file: where each begins and ends, and the offsets of its records, none within another."""
    begin = at = begins
    offsets: list[int] = []
    for offset in [*sorted(offset for offset in places if offset < size), size]:
        if offset < at:
            continue
        while offset - at > MAXIMUM_STRETCH:
            at += MAXIMUM_STRETCH
            yield begin, at, offsets
            begin, offsets = at, []
        if offset == size:
            break
        if offsets and (len(offsets) == MAXIMUM_RECORDS or offset - begin >= MAXIMUM_BYTES):
            yield begin, offset, offsets
            begin, offsets = offset, []
        at = offset + places[offset].length
        offsets.append(offset)
    yield begin, size, offsets


def _standing(placed: Placed, item: int) -> bytes:
    if placed.number is not None:
        return record_place(item, placed.number)
    pieces = placed.raw.split(NUL)
    for index in range(1, len(pieces), 2):
        pieces[index] = b"\x00%d.%s\x00" % (item, pieces[index])
    return b"".join(pieces)
