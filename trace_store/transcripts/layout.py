"""Layout of a source file: segments, and the records that commits already hold.

The file is read twice: once for its records, once for its layout. `Pages` holds a hash of each page of the first
read and the bytes of one page, never the whole file.

Invariant: the layout depends only on the file and the record places. A segment starts at a record, or inside a long
stretch without records, so the complete segments of a growing file never change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from trace_store.base.frozen import value
from trace_store.base.oid import ObjectId, digest
from trace_store.objects.content import ObjectCollector
from trace_store.transcripts.segments import NUL, Segment, escape, record_entry

MAXIMUM_RECORDS = 64
MAXIMUM_BYTES = 256 << 10
"""Limits after which the next record starts a new segment, so that growth rewrites little."""

MAXIMUM_STRETCH = 8 << 20
"""Longest stretch without records in one segment; it bounds memory for any file."""

Reread = Callable[[int, int], tuple[bytes, bool]]
"""Reads at an offset and size like `Pages.reread`."""

StoredBytes = Callable[[bytes], bytes]
"""Returns the bytes to store for file content that no commit holds."""

HASH_BYTES = 8
_SHORT = 8
"""A gap this short cannot hold a secret."""


def record_hash(raw: bytes) -> bytes:
    """Return the hash by which a record is recognised later."""
    return digest(raw)[:HASH_BYTES]


class RecordPlace(NamedTuple):
    """Where a record of a file is stored.

    Attributes:
        length: bytes of the file that it covers.
        commit: the commit that holds the record, or its contents.
        number: index of the record in the commit's source; None if the commit holds only its contents.
        raw: without a number, the stored record; contents of the commit are references, `NUL nL NUL` (see `segments`).
        kept: the stored record if it differs from the file's; the file is then not compared again.
        hash: `record_hash` of the bytes that were read; empty if the page hash covers them.
    """

    length: int
    commit: ObjectId
    number: int | None
    raw: bytes = b""
    kept: bytes | None = None
    hash: bytes = b""


@value
class LaidSegment:
    """A segment that was laid out.

    Attributes:
        oid: object id of the segment; the last one identifies the file.
        segment: the segment.
        begins: byte offset in the current file.
        changed: True if the file no longer held a record as it was read.
    """

    oid: ObjectId
    segment: Segment
    begins: int
    changed: bool


def lay_out(
    reread: Reread,
    size: int,
    places: Mapping[int, RecordPlace],
    gathering: ObjectCollector,
    *,
    begins: int = 0,
    after: tuple[ObjectId, Segment] | None = None,
    literal: StoredBytes | None = None,
) -> list[LaidSegment]:
    """Store and return the segments of a file, from `begins` on.

    The current content of the file is stored: a record that changed since it was read becomes plain bytes. Returns
    at least one segment unless `after` is given and the file holds nothing more.

    Args:
        reread: reads the file, and tells whether the bytes are known to be unchanged since the records were read.
        size: file size in bytes.
        places: record places by offset.
        gathering: collects the objects to store.
        begins: byte offset to start at; a segment starts there.
        after: the previous segment and its id; None at the start of the file.
        literal: filters bytes that no commit holds; None stores them as they are.
    """
    laid: list[LaidSegment] = []
    for begin, end, offsets in _cuts(begins, size, places):
        data, as_read = reread(begin, end - begin)
        builder = _SegmentBuilder(data, literal)
        at = 0
        for offset in offsets:
            placed = places[offset]
            start = offset - begin
            if at < start:
                builder.literal(at, start)
            at = start + placed.length
            if as_read or placed.kept is not None or _is_as_read(reread, offset, placed):
                builder.record(start, at, placed)
            else:
                builder.changed = True
                builder.literal(start, at)
        builder.literal(at, len(data))
        whole = builder.whole()
        if not whole and after is not None:
            break  # the file was truncated
        segment = Segment(
            start=0 if after is None else after[1].end,
            size=len(whole),
            hash=digest(whole).hex(),
            layout=gathering.put(b"".join(builder.layout)),
            commits=tuple(builder.items),
            previous=None if after is None else after[0],
        )
        after = (gathering.put_object(segment.encode()), segment)
        laid.append(LaidSegment(*after, begin, builder.changed))
    return laid


def _is_as_read(reread: Reread, offset: int, placed: RecordPlace) -> bool:
    data, as_read = reread(offset, placed.length)
    return record_hash(data) == placed.hash if placed.hash else as_read


class _SegmentBuilder:
    """A segment under construction.

    Attributes:
        items: numbers of the commits that the layout refers to.
        layout: pieces of the layout.
        changed: as in `LaidSegment`.
    """

    def __init__(self, data: bytes, literal: StoredBytes | None) -> None:
        self._data = data
        self._literal = literal
        # The output up to `_at`; empty while it equals the file's own bytes.
        self._output: list[bytes] = []
        self._at = 0
        self.items: dict[ObjectId, int] = {}
        self.layout: list[bytes] = []
        self.changed = False

    def record(self, start: int, end: int, placed: RecordPlace) -> None:
        """Add a record that a commit holds."""
        if placed.kept is not None:
            self._replace(start, end, placed.kept)
        item = self.items.setdefault(placed.commit, len(self.items) + 1)
        number = placed.number
        self.layout.append(
            _content_entry(placed, item) if number is None else record_entry(item, number)
        )

    def literal(self, start: int, end: int) -> None:
        """Add bytes that no commit holds, filtered."""
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
        """Return the bytes that the segment restores to."""
        if not self._output:
            return self._data
        return b"".join((*self._output, self._data[self._at :]))

    def _replace(self, start: int, end: int, data: bytes) -> None:
        self._output += [self._data[self._at : start], data]
        self._at = end


def _cuts(
    begins: int, size: int, places: Mapping[int, RecordPlace]
) -> Iterator[tuple[int, int, list[int]]]:
    """Yield start, end and record offsets of each segment.

    Overlapping records are skipped.
    """
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


def _content_entry(placed: RecordPlace, item: int) -> bytes:
    """Return the layout entry of a record of which a commit holds only the contents."""
    pieces = placed.raw.split(NUL)
    for index in range(1, len(pieces), 2):
        pieces[index] = b"\x00%d.%s\x00" % (item, pieces[index])
    return b"".join(pieces)


PAGE_BYTES = 1 << 20

ReadAt = Callable[[int, int], bytes]


class Pages:
    """Pages of a file that may change while it is read.

    Attributes:
        start, end: byte range that was read.
    """

    __slots__ = ("_digests", "_held", "_read_at", "end", "start")

    def __init__(self, read_at: ReadAt, start: int = 0) -> None:
        self._read_at = read_at
        self.start = self.end = start
        self._digests: list[bytes] = []
        self._held: tuple[int, bytes, bool] = (-1, b"", False)

    def read(self, offset: int, size: int) -> bytes:
        """Return bytes of the file; hash the pages of a sequential read."""
        data = self._read_at(offset, size)
        if offset == self.end and not (offset - self.start) % PAGE_BYTES:
            # No copy is made for a single page: a slice of all of `data` is `data` itself.
            for at in range(0, len(data), PAGE_BYTES):
                self._digests.append(digest(data[at : at + PAGE_BYTES]))
            self.end += len(data)
        return data

    def covers(self, offset: int, size: int) -> bool:
        """Return True if the byte range was read before."""
        return self.start <= offset and offset + size <= self.end

    def reread(self, offset: int, size: int) -> tuple[bytes, bool]:
        """Return the current bytes, and True if they are known to be unchanged."""
        number = (offset - self.start) // PAGE_BYTES
        at = offset - self.start - number * PAGE_BYTES
        if self.covers(offset, size) and at + size <= PAGE_BYTES:
            page, same = self._page(number)
            return page[at : at + size], same
        pieces: list[bytes] = []
        unchanged, stop = True, offset + size
        while offset < stop:
            piece, same = self._page_part(offset, stop)
            unchanged = unchanged and same
            if not piece:
                break
            pieces.append(piece)
            offset += len(piece)
        return b"".join(pieces), unchanged

    def _page_part(self, offset: int, stop: int) -> tuple[bytes, bool]:
        """Return bytes up to the end of a page, and True if they are unchanged."""
        if offset < self.start:
            return self._read_at(offset, min(stop, self.start) - offset), False
        if offset >= self.end:
            return self._read_at(offset, stop - offset), False
        number, at = divmod(offset - self.start, PAGE_BYTES)
        page, same = self._page(number)
        return page[at : at + stop - offset], same

    def _page(self, number: int) -> tuple[bytes, bool]:
        if self._held[0] != number:
            begin = self.start + number * PAGE_BYTES
            page = self._read_at(begin, min(PAGE_BYTES, self.end - begin))
            self._held = (number, page, digest(page) == self._digests[number])
        return self._held[1], self._held[2]
