"""Packs out of a stream: one after the other, each taken as a whole.

Rule: a pack says itself where it ends, so nothing stands between two of them. What is read is bounded before it is
kept, and a pack is returned only when its trailer is that of its bytes.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.odb.pack import (
    FRAME,
    HASH_BYTES,
    HEADER,
    MAGIC,
    MAXIMUM_PACK_BYTES,
    MAXIMUM_PACK_FRAMES,
    TRAILER,
    VERSION,
    Pack,
)
from trace_store.oid import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class MemoryFile:
    """Bytes at hand, read as a file; its only descriptor is 0."""

    __slots__ = ("_data",)

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read_at(self, fd: int, offset: int, size: int) -> bytes:
        """Return up to `size` bytes from an offset."""
        return self._data[offset : offset + size]

    def size(self, fd: int) -> int:
        """Return how many bytes there are."""
        return len(self._data)

    def close(self, fd: int) -> None:
        """Do nothing."""


def pack_of(data: bytes, where: str) -> Pack:
    """Return the pack with these bytes; its name is their hash.

    Raises:
        CorruptPackError: they do not begin and end like a pack.
    """
    return Pack(MemoryFile(data), where, digest(data).hex(), 0)


def read_packs(read: Callable[[int], bytes], where: str) -> Iterator[bytes]:
    """Yield the bytes of each pack until the stream ends; none is there in an empty one.

    Args:
        read: returns up to so many bytes, and none at the end.
        where: what the stream is called in errors.

    Raises:
        CorruptPackError: something else than a whole pack follows.
    """
    number = 0
    while True:
        number += 1
        head = read_exactly(read, HEADER.size)
        if not head:
            return
        yield read_pack(read, head, f"pack {number} of {where}")


def read_pack(read: Callable[[int], bytes], head: bytes, where: str) -> bytes:
    """Return the bytes of a pack whose header was read already.

    Raises:
        CorruptPackError: it is no pack, is cut, or is larger than a pack may be.
    """
    if len(head) < HEADER.size or HEADER.unpack(head)[:2] != (MAGIC, VERSION):
        raise errors.CorruptPackError(f"{where} does not begin like a pack", path=where)
    pieces = [head]
    room = MAXIMUM_PACK_BYTES - HEADER.size
    frames = 0
    while True:
        frame = read_exactly(read, FRAME.size)
        compressed = FRAME.unpack(frame)[0] if len(frame) == FRAME.size else 0
        size = compressed or TRAILER.size
        room -= FRAME.size + size
        frames += 1
        if room < 0 or frames > MAXIMUM_PACK_FRAMES + 1:
            raise errors.CorruptPackError(f"{where} is larger than a pack may be", path=where)
        body = read_exactly(read, size)
        pieces += (frame, body)
        if len(frame) < FRAME.size or len(body) < size:
            raise errors.CorruptPackError(f"{where} ends before it is complete", path=where)
        if not compressed:
            break
    data = b"".join(pieces)
    if digest(data[:-HASH_BYTES]) != data[-HASH_BYTES:]:
        raise errors.CorruptPackError(f"{where} has another hash than its trailer says", path=where)
    return data


def read_exactly(read: Callable[[int], bytes], size: int) -> bytes:
    """Return `size` bytes, or fewer when the stream ends."""
    data = read(size)
    if len(data) == size or not data:
        return data
    pieces = [data]
    left = size - len(data)
    while left:
        data = read(left)
        if not data:
            break
        pieces.append(data)
        left -= len(data)
    return b"".join(pieces)
