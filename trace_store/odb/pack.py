"""Packs: many objects in one immutable file, in the order they were written.

    offset  size  field
    0       4     "TRPK"
    4       1     version, 2
    5       1     how hard the writer compressed
    6       2     zero
    8       4     how much content the writer put into a frame, in bytes
    12      4     over how much content its frames share a dictionary, in bytes; 0 for none
    16      …     frames:  compressed size u32, raw size u32, number of objects u32, sort u8, three zero bytes, then
                           one zstd frame
                  end:     sixteen zero bytes
                  trailer: number of frames u32, number of objects u32, blake3-256 of everything above

The sort is a sum: 1 for a frame that needs the last dictionary before it, 2 for one whose objects have short links,
4 for a dictionary. A frame's raw content is the length u32 of each object, and their bytes one after the other; that
of a dictionary is the dictionary. All integers are little endian. The file's name is the blake3-256 of all its bytes.

Rule: a pack can be read alone, and needs nothing else to be indexed. Whoever reads an object checks its hash.
"""

from __future__ import annotations

import struct

from trace_store import errors
from trace_store.layout import MAXIMUM_OBJECT_BYTES
from trace_store.odb.compression import Dictionary, Inflation
from trace_store.oid import Digester

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Protocol

    class Files(Protocol):
        """What a pack is read through."""

        def read_at(self, fd: int, offset: int, size: int, /) -> bytes: ...
        def size(self, fd: int, /) -> int: ...
        def close(self, fd: int, /) -> None: ...


MAXIMUM_PACK_BYTES = 32 * 1024 * 1024
MAXIMUM_PACK_RAW_BYTES = 256 * 1024 * 1024
MAXIMUM_FRAME_BYTES = MAXIMUM_OBJECT_BYTES + 1024 * 1024
MAXIMUM_DICTIONARY_BYTES = 8 * 1024 * 1024
MAXIMUM_PACK_FRAMES = 16 * 1024
MAXIMUM_FRAME_OBJECTS = 64 * 1024
MAXIMUM_PACK_OBJECTS = 256 * 1024
MAGIC = b"TRPK"
VERSION = 2
HASH_BYTES = 32

NEEDS_DICTIONARY = 1
SHORT_LINKS = 2
DICTIONARY = 4
SORTS = (0, NEEDS_DICTIONARY, SHORT_LINKS, NEEDS_DICTIONARY | SHORT_LINKS, DICTIONARY)

HEADER = struct.Struct("<4sBB2xII")
FRAME = struct.Struct("<IIIB3x")
COUNTS = struct.Struct("<II")
TRAILER = struct.Struct(f"<II{HASH_BYTES}s")
_COPY_BYTES = 1 << 20


class FramePlace:
    """Where a frame is, and what is in it.

    Attributes:
        offset: of its zstd frame in the file.
        compressed, raw: its sizes.
        objects: how many it holds.
        sort: what it is, as the file says it.
    """

    __slots__ = ("compressed", "objects", "offset", "raw", "sort")

    def __init__(self, offset: int, compressed: int, raw: int, objects: int, sort: int) -> None:
        self.offset = offset
        self.compressed = compressed
        self.raw = raw
        self.objects = objects
        self.sort = sort

    def key(self) -> tuple[int, int, int, int, int]:
        """Return all of it, to compare."""
        return self.offset, self.compressed, self.raw, self.objects, self.sort


class Pack:
    """An open pack."""

    __slots__ = (
        "_disk",
        "check",
        "fd",
        "frame_count",
        "made",
        "name",
        "object_count",
        "path",
        "size",
    )

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
        except (errors.CorruptPackError, errors.StorageError):
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
        count = total = objects = 0
        end = self.size - TRAILER.size
        while True:
            if offset + FRAME.size > end:
                raise self._corrupt("its frames run past its end")
            head = self._disk.read_at(self.fd, offset, FRAME.size)
            if len(head) < FRAME.size:
                raise self._corrupt("it has become shorter")
            compressed, raw, held, sort = FRAME.unpack(head)
            offset += FRAME.size
            if compressed == 0:
                if any(head) or offset != end:
                    raise self._corrupt("its frames do not end where they should")
                return
            if offset + compressed > end or raw > MAXIMUM_FRAME_BYTES:
                raise self._corrupt("a frame is longer than it may be")
            if sort not in SORTS or head[13:] != b"\0\0\0":
                raise self._corrupt("a frame is of no known sort")
            if sort == DICTIONARY and (held or raw > MAXIMUM_DICTIONARY_BYTES):
                raise self._corrupt("a dictionary is none")
            count += 1
            total += raw
            objects += held
            if count > MAXIMUM_PACK_FRAMES or total > MAXIMUM_PACK_RAW_BYTES:
                raise self._corrupt("it holds more than a pack may")
            if held > MAXIMUM_FRAME_OBJECTS or objects > MAXIMUM_PACK_OBJECTS:
                raise self._corrupt("it holds more objects than it may")
            yield FramePlace(offset, compressed, raw, held, sort)
            offset += compressed

    def decode(self, place: FramePlace, dictionary: Dictionary | None = None) -> bytes:
        """Return the raw content of a frame.

        Raises:
            CorruptObjectError: it is damaged.
        """
        return self.inflation(place, dictionary).until(place.raw)

    def inflation(self, place: FramePlace, dictionary: Dictionary | None = None) -> Inflation:
        """Return a frame of which no more is decompressed than is asked for.

        Raises:
            CorruptObjectError: it is damaged.
        """
        if place.raw > MAXIMUM_FRAME_BYTES:
            raise errors.CorruptObjectError(f"a frame declares {place.raw} bytes", path=self.path)
        data = self._disk.read_at(self.fd, place.offset, place.compressed)
        return Inflation(data, place.raw, dictionary=dictionary)

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
        head = self._disk.read_at(self.fd, 0, HEADER.size)
        trailer = self._disk.read_at(self.fd, self.size - TRAILER.size, TRAILER.size)
        if len(head) < HEADER.size or len(trailer) < TRAILER.size:
            raise self._corrupt("it has become shorter")
        magic, version, level, frame_bytes, shared_bytes = HEADER.unpack(head)
        if magic != MAGIC:
            raise self._corrupt("it does not begin like one")
        if version != VERSION:
            raise self._corrupt(f"it is of version {version}, not {VERSION}")
        self.made = (level, frame_bytes, shared_bytes)
        frames, objects, check = TRAILER.unpack(trailer)
        return frames, objects, check

    def _corrupt(self, what: str) -> errors.CorruptPackError:
        return errors.CorruptPackError(f"pack {self.name[:12]} is damaged: {what}", path=self.path)


def split(raw: bytes, count: int) -> Iterator[tuple[int, int]]:
    """Yield (offset, length) of the objects in the raw content of a frame that holds so many.

    Raises:
        CorruptObjectError: the lengths do not add up to the content.
    """
    offset = 4 * count
    if offset > len(raw) or count > MAXIMUM_FRAME_OBJECTS:
        raise errors.CorruptObjectError("a frame counts more objects than it has room for")
    lengths = struct.unpack_from(f"<{count}I", raw)
    if offset + sum(lengths) != len(raw):
        raise errors.CorruptObjectError("a frame's objects have another length than it")
    for length in lengths:
        yield offset, length
        offset += length


def join(objects: Sequence[bytes]) -> bytes:
    """Return the raw content of a frame that holds these objects, in the form in which they are stored."""
    return struct.pack(f"<{len(objects)}I", *map(len, objects)) + b"".join(objects)
