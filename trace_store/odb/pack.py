"""Packs: many objects in one immutable file, in the order they were written.

    offset  size  field
    0       4     "TRPK"
    4       1     version, 1
    5       3     zero
    8       4     how much content the writer put into a frame, in bytes
    12      4     over how much content its frames are chained, in bytes
    16      …     frames:  compressed size u32, raw size u32, number of frames before this one that are its
                           prefix u32, then one zstd frame
                  end:     twelve zero bytes
                  trailer: number of frames u32, number of objects u32, blake3-256 of everything above

A frame's raw content is the number of objects u32, the length u32 of each, and their bytes one after the other. All
integers are little endian. The file's name is the blake3-256 of all its bytes.

Rule: a pack can be read alone, and needs nothing else to be indexed. Whoever reads an object checks its hash.
"""

from __future__ import annotations

import struct

from trace_store.errors import CorruptObjectError, CorruptPackError, StorageError
from trace_store.layout import MAXIMUM_OBJECT_BYTES
from trace_store.odb.deflate import inflate
from trace_store.oid import Digester, hash_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Protocol

    from trace_store.oid import ObjectId

    class Files(Protocol):
        """What a pack is read through."""

        def read_at(self, fd: int, offset: int, size: int, /) -> bytes: ...
        def size(self, fd: int, /) -> int: ...
        def close(self, fd: int, /) -> None: ...


MAXIMUM_PACK_BYTES = 32 * 1024 * 1024
MAXIMUM_PACK_RAW_BYTES = 256 * 1024 * 1024
MAXIMUM_FRAME_BYTES = MAXIMUM_OBJECT_BYTES + 1024 * 1024
MAXIMUM_PREFIX_BYTES = 8 * 1024 * 1024
MAXIMUM_PREFIX_FRAMES = 256
MAXIMUM_PACK_FRAMES = 16 * 1024
MAXIMUM_FRAME_OBJECTS = 64 * 1024
MAXIMUM_PACK_OBJECTS = 256 * 1024
MAGIC = b"TRPK"
VERSION = 1
HASH_BYTES = 32

HEADER = struct.Struct("<4sB3xII")
FRAME = struct.Struct("<III")
COUNTS = struct.Struct("<II")
TRAILER = struct.Struct(f"<II{HASH_BYTES}s")
_LENGTH = struct.Struct("<I")
_COPY_BYTES = 1 << 20


class FramePlace:
    """Where a frame is: file offset of its zstd frame, compressed and raw size, number of prefix frames."""

    __slots__ = ("compressed", "offset", "prefixes", "raw")

    def __init__(self, offset: int, compressed: int, raw: int, prefixes: int) -> None:
        self.offset = offset
        self.compressed = compressed
        self.raw = raw
        self.prefixes = prefixes


class Pack:
    """An open pack."""

    __slots__ = ("_disk", "check", "fd", "frame_count", "name", "object_count", "path", "size")

    def __init__(self, disk: Files, path: str, name: str, fd: int) -> None:
        """Take over an open descriptor.

        Raises:
            CorruptPackError: the file does not begin and end like a pack; the descriptor is closed.
            StorageError: it cannot be read; the descriptor is closed.
        """
        self._disk = disk
        self.path = path
        self.name = name
        self.fd = fd
        self.size = disk.size(fd)
        try:
            self.frame_count, self.object_count, self.check = self._read_ends()
        except (CorruptPackError, StorageError):
            disk.close(fd)
            raise

    def close(self) -> None:
        """Close the descriptor."""
        self._disk.close(self.fd)

    def places(self) -> Iterator[FramePlace]:
        """Yield where the frames are, in order.

        Raises:
            CorruptPackError: a frame head makes no sense, or the frames are more than a pack may hold.
        """
        offset = HEADER.size
        count = total = 0
        end = self.size - TRAILER.size
        while True:
            if offset + FRAME.size > end:
                raise self._corrupt("its frames run past its end")
            head = self._disk.read_at(self.fd, offset, FRAME.size)
            compressed, raw, prefixes = FRAME.unpack(head)
            offset += FRAME.size
            if compressed == 0:
                if raw or prefixes or offset != end:
                    raise self._corrupt("its frames do not end where they should")
                return
            if offset + compressed > end or raw > MAXIMUM_FRAME_BYTES:
                raise self._corrupt("a frame is longer than it may be")
            count += 1
            total += raw
            if count > MAXIMUM_PACK_FRAMES or total > MAXIMUM_PACK_RAW_BYTES:
                raise self._corrupt("it holds more than a pack may")
            yield FramePlace(offset, compressed, raw, prefixes)
            offset += compressed

    def decode(self, place: FramePlace, prefix: bytes) -> bytes:
        """Return the raw content of a frame.

        Raises:
            CorruptObjectError: it is damaged.
        """
        if place.raw > MAXIMUM_FRAME_BYTES:
            raise CorruptObjectError(f"a frame declares {place.raw} bytes", path=self.path)
        data = self._disk.read_at(self.fd, place.offset, place.compressed)
        return inflate(data, place.raw, prefix=prefix)

    def digests(self) -> tuple[str, bool]:
        """Return the name that the file's bytes have, and whether the trailer is theirs; reads all of it."""
        whole, body = Digester(), Digester()
        offset = 0
        body_end = self.size - HASH_BYTES
        while offset < self.size:
            data = self._disk.read_at(self.fd, offset, _COPY_BYTES)
            if not data:
                break
            whole.update(data)
            if offset < body_end:
                body.update(data[: body_end - offset])
            offset += len(data)
        return whole.digest().hex(), offset == self.size and body.digest() == self.check

    def check_name(self) -> bool:
        """Tell whether trailer and name are those of the file's bytes; reads all of it."""
        return self.digests() == (self.name, True)

    def _read_ends(self) -> tuple[int, int, bytes]:
        if not HEADER.size + FRAME.size + TRAILER.size <= self.size <= MAXIMUM_PACK_BYTES:
            raise self._corrupt(f"it has {self.size} bytes")
        magic, version, _, _ = HEADER.unpack(self._disk.read_at(self.fd, 0, HEADER.size))
        if magic != MAGIC or version != VERSION:
            raise self._corrupt("it does not begin like one")
        trailer = self._disk.read_at(self.fd, self.size - TRAILER.size, TRAILER.size)
        frames, objects, check = TRAILER.unpack(trailer)
        return frames, objects, check

    def _corrupt(self, what: str) -> CorruptPackError:
        return CorruptPackError(f"pack {self.name[:12]} is damaged: {what}", path=self.path)


def split(raw: bytes) -> Iterator[tuple[int, int]]:
    """Yield (offset, length) of the objects in a frame's raw content.

    Raises:
        CorruptObjectError: the lengths do not add up to the content.
    """
    if len(raw) < _LENGTH.size:
        raise CorruptObjectError("a frame has no object count")
    (count,) = _LENGTH.unpack_from(raw)
    offset = _LENGTH.size * (count + 1)
    if offset > len(raw) or count > MAXIMUM_FRAME_OBJECTS:
        raise CorruptObjectError("a frame counts more objects than it has room for")
    lengths = struct.unpack_from(f"<{count}I", raw, _LENGTH.size)
    if offset + sum(lengths) != len(raw):
        raise CorruptObjectError("a frame's objects have another length than it")
    for length in lengths:
        yield offset, length
        offset += length


def join(objects: list[bytes]) -> bytes:
    """Return the raw content of a frame that holds these objects."""
    head = struct.pack(f"<{len(objects) + 1}I", len(objects), *map(len, objects))
    return head + b"".join(objects)


def walk(pack: Pack) -> Iterator[tuple[int, FramePlace, bytes | CorruptObjectError]]:
    """Yield (number, place, raw content or what is wrong with it) of every frame in order.

    Raises:
        CorruptPackError: the rest cannot be found, or there are more objects than a pack may hold.
        StorageError: the disk refuses.
    """
    group: list[bytes | None] = []
    held = objects = 0
    for number, place in enumerate(pack.places()):
        if place.prefixes == 0:
            group, held = [], 0
        raw: bytes | None = None
        try:
            raw = pack.decode(place, prefix_of(group, place.prefixes))
        except CorruptObjectError as error:
            yield number, place, error
        else:
            objects += int.from_bytes(raw[: _LENGTH.size], "little")
            if objects > MAXIMUM_PACK_OBJECTS:
                raise CorruptPackError(
                    f"pack {pack.name[:12]} is damaged: it holds more objects than it may",
                    path=pack.path,
                )
            yield number, place, raw
        group.append(raw)
        held += len(raw or b"")
        # What no frame may have as its prefix is not kept.
        while held > MAXIMUM_PREFIX_BYTES or len(group) > MAXIMUM_PREFIX_FRAMES:
            held -= len(group.pop(0) or b"")


def walk_objects(
    pack: Pack,
) -> Iterator[tuple[int, FramePlace, list[tuple[ObjectId, int, bytes]] | CorruptObjectError]]:
    """Yield (number, place, objects or what is wrong) of every frame in order.

    An object is (id, offset in the frame's content, bytes); the id is the hash of the bytes.

    Raises:
        CorruptPackError: the rest cannot be found, or there are more objects than a pack may hold.
        StorageError: the disk refuses.
    """
    for number, place, raw in walk(pack):
        if isinstance(raw, CorruptObjectError):
            yield number, place, raw
            continue
        try:
            places = list(split(raw))
        except CorruptObjectError as error:
            yield number, place, error
            continue
        cut = ((offset, raw[offset : offset + length]) for offset, length in places)
        yield number, place, [(hash_object(data), offset, data) for offset, data in cut]


def prefix_of(group: list[bytes | None], count: int) -> bytes:
    """Return the last `count` frames of a group, joined.

    Raises:
        CorruptObjectError: one is damaged, or they are too few, or too long.
    """
    if count == 0:
        return b""
    if count > MAXIMUM_PREFIX_FRAMES:
        raise CorruptObjectError(f"a frame is chained to {count} frames")
    pieces = [piece for piece in group[-count:] if piece is not None]
    if len(pieces) != count or sum(map(len, pieces)) > MAXIMUM_PREFIX_BYTES:
        raise CorruptObjectError("the frames before a frame are damaged")
    return b"".join(pieces)
