"""Recovery of objects from a damaged pack.

Rule: only data that matches a hash is trusted. An intact index gives positions, order and ids even if the pack has lost
its header or trailer. Without an index, frames are searched for, and their objects are identified by hash. After a gap,
object numbers are unknown, so objects that link by number are lost.
"""

from __future__ import annotations

import struct

from trace_store import errors
from trace_store.objects.codec import is_canonical
from trace_store.odb.compression import Dictionary, decompress
from trace_store.odb.delta_links import expand_links
from trace_store.odb.index_scan import IndexContent
from trace_store.odb.pack import (
    DICTIONARY,
    FLAGS,
    FRAME,
    HEADER,
    MAXIMUM_FRAME_BYTES,
    MAXIMUM_FRAME_OBJECTS,
    MAXIMUM_PACK_RAW_BYTES,
    NEEDS_DICTIONARY,
    SHORT_LINKS,
    FramePlace,
    PackWalk,
)
from trace_store.oid import ObjectId, hash_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    Found = tuple[ObjectId, bytes]

_ZSTD_MAGIC = struct.pack("<I", 0xFD2FB528)


def recover_objects(data: bytes, index: bytes | None) -> Iterator[tuple[ObjectId, bytes]]:
    """Yield (id, bytes) of the objects that can be recovered from a pack.

    An object may come twice.

    Args:
        data: the remaining bytes of the pack.
        index: the bytes of its index, if any.
    """
    content = index_content(index)
    if content is None:
        yield from _by_search(data)
        return
    yield from _by_index(data, content)
    known = {oid for oid, _, _ in content.rows}
    yield from (item for item in _by_search(data) if item[0] in known)


def index_content(index: bytes | None) -> IndexContent | None:
    """Return the parsed index, or None if it is missing or damaged."""
    try:
        return None if index is None else IndexContent(index)
    except errors.FormatError:
        return None


class _Bytes:
    """The bytes of a pack, with the interface for decoding frames."""

    __slots__ = ("_data", "_left")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._left = MAXIMUM_PACK_RAW_BYTES

    def decode(self, place: FramePlace, dictionary: Dictionary | None = None) -> bytes:
        """Return the content of a frame.

        Raises:
            CorruptObjectError: it is damaged, or all frames together are too large.
        """
        self._left -= place.raw
        if self._left < 0 or place.raw > MAXIMUM_FRAME_BYTES:
            raise errors.CorruptObjectError("the pack declares too much content")
        data = self._data[place.offset : place.offset + place.compressed]
        return decompress(data, place.raw, dictionary=dictionary)


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
            if place.flags == DICTIONARY:
                dictionary = None
                dictionary = Dictionary(pack.decode(place))
                continue
            raw = pack.decode(place, dictionary if place.flags & NEEDS_DICTIONARY else None)
        except errors.CorruptObjectError:
            continue
        objects = frames.get(number, [])
        ends = [offset for _, offset in objects[1:]] + [len(raw)]
        for (ordinal, start), end in zip(objects, ends, strict=True):
            piece = raw[start:end]
            try:
                if place.flags & SHORT_LINKS:
                    piece = expand_links(piece, ordinal, ids.__getitem__)
            except errors.CorruptObjectError:
                continue
            if hash_object(piece) == ids[ordinal]:
                yield ids[ordinal], piece


def _by_search(data: bytes) -> Iterator[Found]:
    """Yield the valid objects of all frames that a search finds."""
    walk = PackWalk(_Bytes(data))
    for place in _search(data):
        if place is None:
            walk = PackWalk(
                _Bytes(data)
            )  # links are distances, so those that do not cross the gap are right
            continue
        try:
            objects = walk.objects(place)
        except errors.FormatError:
            continue
        yield from ((oid, content) for oid, _, content in objects if _is_object(content))


def _is_object(data: bytes) -> bool:
    try:
        return is_canonical(data)
    except errors.TraceError:
        return False


def _search(data: bytes) -> Iterator[FramePlace | None]:
    """Yield the positions of frames; None marks a possible gap."""
    at = HEADER.size
    while at + FRAME.size < len(data):
        place = _place_at(data, at)
        if place is not None:
            yield place
            at = place.offset + place.compressed
            continue
        if not data[at : at + FRAME.size].strip(b"\0"):
            return  # the end of a pack
        magic = data.find(_ZSTD_MAGIC, at + FRAME.size + 1)
        if magic < 0:
            return
        yield None
        at = magic - FRAME.size


def _place_at(data: bytes, at: int) -> FramePlace | None:
    compressed, raw, held, flags = FRAME.unpack_from(data, at)
    start = at + FRAME.size
    sound = (
        0 < compressed <= len(data) - start
        and raw <= MAXIMUM_FRAME_BYTES
        and held <= MAXIMUM_FRAME_OBJECTS
        and flags in FLAGS
        and data.startswith(_ZSTD_MAGIC, start)
    )
    return FramePlace(start, compressed, raw, held, flags) if sound else None
