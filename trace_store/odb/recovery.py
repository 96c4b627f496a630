"""What can still be read of a pack that is damaged.

Rule: nothing of the pack is believed but what a hash confirms. An index that is whole in itself says where the frames
are, in which order the objects stand and what they are called, though the pack beside it has no beginning or end any
more. Without one the frames are looked for, and what comes out of them is named by its hash; after a gap the numbers of
objects are not known, and those that name others by number are lost.
"""

from __future__ import annotations

import struct

from trace_store import errors
from trace_store.objects.codec import is_canonical
from trace_store.odb.compression import Dictionary, inflate
from trace_store.odb.delta_links import lengthen
from trace_store.odb.index_scan import IndexContent
from trace_store.odb.pack import (
    DICTIONARY,
    FRAME,
    HEADER,
    MAXIMUM_FRAME_BYTES,
    MAXIMUM_FRAME_OBJECTS,
    MAXIMUM_PACK_RAW_BYTES,
    NEEDS_DICTIONARY,
    SHORT_LINKS,
    SORTS,
    FramePlace,
)
from trace_store.odb.pack_walk import PackWalk
from trace_store.oid import ObjectId, hash_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    Found = tuple[ObjectId, bytes]

_ZSTD_MAGIC = struct.pack("<I", 0xFD2FB528)


def objects_of_wreck(data: bytes, index: bytes | None) -> Iterator[tuple[ObjectId, bytes]]:
    """Yield (id, bytes) of the objects that can be had from the bytes of a pack; one may come twice.

    Args:
        data: what is there of the pack.
        index: the bytes of its index, if there is one.
    """
    content = index_content(index)
    if content is None:
        yield from _by_search(data)
        return
    yield from _by_index(data, content)
    known = {oid for oid, _, _ in content.rows}
    yield from ((oid, found) for oid, found in _by_search(data) if oid in known)


def index_content(index: bytes | None) -> IndexContent | None:
    """Return what an index says; None when it is absent, or damaged."""
    try:
        return None if index is None else IndexContent(index)
    except errors.FormatError:
        return None


class _Bytes:
    """The bytes of a pack, as far as decoding its frames takes one."""

    __slots__ = ("_data", "_left")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._left = MAXIMUM_PACK_RAW_BYTES

    def decode(self, place: FramePlace, dictionary: Dictionary | None = None) -> bytes:
        """Return the content of a frame.

        Raises:
            CorruptObjectError: it is damaged, or all frames together are more than a pack may hold.
        """
        self._left -= place.raw
        if self._left < 0 or place.raw > MAXIMUM_FRAME_BYTES:
            raise errors.CorruptObjectError("a pack declares more than it may hold")
        data = self._data[place.offset : place.offset + place.compressed]
        return inflate(data, place.raw, dictionary=dictionary)


def _by_index(data: bytes, content: IndexContent) -> Iterator[Found]:
    rows = sorted(content.rows, key=lambda row: row[1:])
    ids = [oid for oid, _, _ in rows]
    frames: dict[int, list[tuple[int, int]]] = {}
    for ordinal, (_, frame, offset) in enumerate(rows):
        frames.setdefault(frame, []).append((ordinal, offset))
    pack = _Bytes(data)
    dictionary: Dictionary | None = None
    for number, place in enumerate(content.places):
        try:
            if place.sort == DICTIONARY:
                dictionary = None
                dictionary = Dictionary(pack.decode(place))
                continue
            raw = pack.decode(place, dictionary if place.sort & NEEDS_DICTIONARY else None)
        except errors.CorruptObjectError:
            continue
        here = frames.get(number, [])
        ends = [offset for _, offset in here[1:]] + [len(raw)]
        for (ordinal, start), end in zip(here, ends, strict=True):
            piece = raw[start:end]
            try:
                if place.sort & SHORT_LINKS:
                    piece = lengthen(piece, ordinal, ids.__getitem__)
            except errors.CorruptObjectError:
                continue
            if hash_object(piece) == ids[ordinal]:
                yield ids[ordinal], piece


def _by_search(data: bytes) -> Iterator[Found]:
    """Yield what comes out of the frames that are found; of bytes that have changed only what is an object still."""
    walk = PackWalk(_Bytes(data))
    for place in _search(data):
        if place is None:
            walk = PackWalk(
                _Bytes(data)
            )  # links are counted back, so those that stay behind the gap are right
            continue
        try:
            found = walk.objects(place)
        except errors.FormatError:
            continue
        yield from ((oid, content) for oid, _, content in found if _is_object(content))


def _is_object(data: bytes) -> bool:
    try:
        return is_canonical(data)
    except errors.TraceError:
        return False


def _search(data: bytes) -> Iterator[FramePlace | None]:
    """Yield the places of frames; None where some may be missing in between."""
    at = HEADER.size
    while at + FRAME.size < len(data):
        place = _place_at(data, at)
        if place is not None:
            yield place
            at = place.offset + place.compressed
            continue
        if not data[at : at + FRAME.size].strip(b"\0"):
            return  # so a pack ends
        magic = data.find(_ZSTD_MAGIC, at + FRAME.size + 1)
        if magic < 0:
            return
        yield None
        at = magic - FRAME.size


def _place_at(data: bytes, at: int) -> FramePlace | None:
    compressed, raw, held, sort = FRAME.unpack_from(data, at)
    start = at + FRAME.size
    sound = (
        0 < compressed <= len(data) - start
        and raw <= MAXIMUM_FRAME_BYTES
        and held <= MAXIMUM_FRAME_OBJECTS
        and sort in SORTS
        and data.startswith(_ZSTD_MAGIC, start)
    )
    return FramePlace(start, compressed, raw, held, sort) if sound else None
