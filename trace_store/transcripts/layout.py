"""Lay out a file: cut it into segments, with a place in a commit for each record that one holds.

Rule: a function of the file and of the places. A cut stands before a record, or in the midst of a long stretch without
any, so a file that grew has the same segments as far as they were complete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from trace_store.frozen import value
from trace_store.objects.content import Gathering
from trace_store.oid import ObjectId, digest
from trace_store.transcripts.segments import NUL, Segment, escape, record_place

MAXIMUM_RECORDS = 64
MAXIMUM_BYTES = 256 << 10
"""Past either, the next record begins a segment: so little is written anew when a file grows."""

MAXIMUM_STRETCH = 8 << 20
"""A longer stretch without records is cut within: so a file of anything is never held whole."""

Again = Callable[[int, int], tuple[bytes, bool]]
"""Given an offset and a size, returns as `Pages.again` does."""

Literal = Callable[[bytes], bytes]
"""Given bytes of the file that no commit holds, returns them as they may be stored."""

HASH_BYTES = 8
_SHORT = 8
"""So few bytes between records hold no secret."""


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
        kept: the record as it is kept, when that differs from what the file holds; then nobody looks what it holds now.
        hash: the `record_hash` of what the file held when it was read; empty where its page tells.
    """

    length: int
    commit: ObjectId
    number: int | None
    raw: bytes = b""
    kept: bytes | None = None
    hash: bytes = b""


@value
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
    again: Again,
    size: int,
    places: Mapping[int, Placed],
    gathering: Gathering,
    *,
    begins: int = 0,
    after: tuple[ObjectId, Segment] | None = None,
    literal: Literal | None = None,
) -> list[Laid]:
    """Return the segments of a file from one of its cuts on, and put their objects.

    What comes back is what the file holds now: a record that is no longer as it was read is laid out as bytes. There is
    a segment at least, unless there is one before and nothing behind it.

    Args:
        again: reads the file, and tells whether what it returns is known to be as it was when its records were read.
        size: of the file, in bytes.
        places: of records, by their offset.
        gathering: takes the objects.
        begins: where in the file to begin; a segment begins there.
        after: the segment before.
        literal: looks through what no commit holds; None: it is kept as it is.
    """
    laid: list[Laid] = []
    for begin, end, offsets in _cuts(begins, size, places):
        data, as_read = again(begin, end - begin)
        piece = _Piece(data, literal)
        at = 0
        for offset in offsets:
            placed = places[offset]
            start = offset - begin
            if at < start:
                piece.literal(at, start)
            at = start + placed.length
            if as_read or placed.kept is not None or _is_as_read(again, offset, placed):
                piece.record(start, at, placed)
            else:
                piece.changed = True
                piece.literal(start, at)
        piece.literal(at, len(data))
        whole = piece.whole()
        if not whole and after is not None:
            break  # the file has become shorter
        segment = Segment(
            start=0 if after is None else after[1].end,
            size=len(whole),
            hash=digest(whole).hex(),
            layout=gathering.put(b"".join(piece.layout)),
            commits=tuple(piece.items),
            previous=None if after is None else after[0],
        )
        after = (gathering.put_object(segment.encode()), segment)
        laid.append(Laid(*after, begin, piece.changed))
    return laid


def _is_as_read(again: Again, offset: int, placed: Placed) -> bool:
    data, as_read = again(offset, placed.length)
    return record_hash(data) == placed.hash if placed.hash else as_read


class _Piece:
    """A segment to be.

    Attributes:
        items: the commits that its layout names.
        layout: the layout.
        changed: as in `Laid`.
    """

    def __init__(self, data: bytes, literal: Literal | None) -> None:
        self._data = data
        self._literal = literal
        self._taken: list[
            bytes
        ] = []  # what comes of it, as far as that is not the file's own bytes
        self._at = 0
        self.items: dict[ObjectId, int] = {}
        self.layout: list[bytes] = []
        self.changed = False

    def record(self, start: int, end: int, placed: Placed) -> None:
        """Add a record that is held elsewhere, given where it stands."""
        if placed.kept is not None:
            self._replace(start, end, placed.kept)
        item = self.items.setdefault(placed.commit, len(self.items) + 1)
        number = placed.number
        self.layout.append(
            _standing(placed, item) if number is None else record_place(item, number)
        )

    def literal(self, start: int, end: int) -> None:
        """Add bytes that no commit holds, as they may be stored."""
        data = self._data[start:end]
        if not data:
            return
        if self._literal is not None and len(data) >= _SHORT:
            kept = self._literal(data)
            if kept is not data:
                self._replace(start, end, kept)
                data = kept
        self.layout.append(escape(data) if NUL in data else data)

    def whole(self) -> bytes:
        """Return what comes of it."""
        if not self._taken:
            return self._data
        return b"".join((*self._taken, self._data[self._at :]))

    def _replace(self, start: int, end: int, data: bytes) -> None:
        self._taken += [self._data[self._at : start], data]
        self._at = end


def _cuts(
    begins: int, size: int, places: Mapping[int, Placed]
) -> Iterator[tuple[int, int, list[int]]]:
    """Yield the pieces of a file: where each begins and ends, and the offsets of its records, none within another."""
    begin = at = begins
    offsets: list[int] = []
    for offset in [*sorted([offset for offset in places if offset < size]), size]:
        if offset < at:
            continue
        while at < offset - MAXIMUM_STRETCH:
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
    """Return what stands in a layout for a record of which only contents are in a commit."""
    pieces = placed.raw.split(NUL)
    for index in range(1, len(pieces), 2):
        pieces[index] = b"\x00%d.%s\x00" % (item, pieces[index])
    return b"".join(pieces)
