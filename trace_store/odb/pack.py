"""Packs: many objects in one immutable file, in the order they were written.

    offset  size  field
    0       4     "TRPK"
    4       1     version, 2
    5       1     compression level
    6       2     zero
    8       4     target size of a frame's content in bytes
    12      4     size of the content that shares a dictionary in bytes; 0 for none
    16      …     frames:  compressed size u32, raw size u32, number of objects u32, flags u8, three zero bytes, then
                           one zstd frame
                  end:     sixteen zero bytes
                  trailer: number of frames u32, number of objects u32, blake3-256 of everything above

Flags: 1 the frame needs the last dictionary before it, 2 its objects have short links, 4 it is a dictionary. A frame's
raw content is the length u32 of each object, then their bytes; that of a dictionary is the dictionary. Integers are
little endian. The file's name is the blake3-256 of all its bytes.

Rule: a pack can be read and indexed alone. The reader of an object checks its hash. An id is the hash of an object and
links lead backwards only, so a sequential walk knows all ids when needed. A damaged frame also loses the objects that
link to its objects, and the frames that need it as a dictionary.
"""

from __future__ import annotations

import errno
import struct

from trace_store import errors
from trace_store.base.oid import OID_BYTES, Digester, ObjectId, hash_object, joined_digests
from trace_store.disk.layout import MAXIMUM_OBJECT_BYTES
from trace_store.odb.compression import Dictionary, PartialFrame
from trace_store.odb.delta_links import ABSENT, expand_links

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Protocol, TypeAlias

    from trace_store.disk.files import Disk

    class Files(Protocol):
        """The file operations that a pack needs."""

        def read_at(self, fd: int, offset: int, size: int, /) -> bytes: ...
        def size(self, fd: int, /) -> int: ...
        def close(self, fd: int, /) -> None: ...

    class Frames(Protocol):
        """The source of a walk."""

        def decode(self, place: FramePlace, dictionary: Dictionary | None = None, /) -> bytes: ...

    Objects: TypeAlias = list[tuple[ObjectId, int, bytes]]


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
FLAGS = (0, NEEDS_DICTIONARY, SHORT_LINKS, NEEDS_DICTIONARY | SHORT_LINKS, DICTIONARY)

HEADER = struct.Struct("<4sBB2xII")
FRAME = struct.Struct("<IIIB3x")
COUNTS = struct.Struct("<II")
TRAILER = struct.Struct(f"<II{HASH_BYTES}s")
_COPY_BYTES = 1 << 20


class FramePlace:
    """Position and properties of a frame.

    Attributes:
        offset: of its zstd frame in the file.
        compressed, raw: its sizes in bytes.
        objects: how many objects it has.
        flags: as in the file.
    """

    __slots__ = ("compressed", "flags", "objects", "offset", "raw")

    def __init__(self, offset: int, compressed: int, raw: int, objects: int, flags: int) -> None:
        self.offset = offset
        self.compressed = compressed
        self.raw = raw
        self.objects = objects
        self.flags = flags

    def key(self) -> tuple[int, int, int, int, int]:
        """Return all fields, for comparison."""
        return self.offset, self.compressed, self.raw, self.objects, self.flags


class Pack:
    """An open pack."""

    def __init__(self, disk: Files, path: str, name: str, fd: int) -> None:
        """Take ownership of an open descriptor.

        Raises:
            CorruptPackError: header or trailer is invalid; the descriptor is closed.
            StorageError: the file cannot be read; the descriptor is closed.
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
        """Yield the positions of the frames, in order.

        Raises:
            CorruptPackError: a frame header is invalid, or there are too many frames.
        """
        offset = HEADER.size
        count = total = objects = 0
        end = self.size - TRAILER.size
        while True:
            if offset + FRAME.size > end:
                raise self._corrupt("its frames are truncated")
            head = self._disk.read_at(self.fd, offset, FRAME.size)
            if len(head) < FRAME.size:
                raise self._corrupt("it was truncated")
            compressed, raw, held, flags = FRAME.unpack(head)
            offset += FRAME.size
            if compressed == 0:
                if any(head) or offset != end:
                    raise self._corrupt("its frames end at the wrong offset")
                return
            if offset + compressed > end or raw > MAXIMUM_FRAME_BYTES:
                raise self._corrupt("a frame is too large")
            if flags not in FLAGS or head[13:] != b"\0\0\0":
                raise self._corrupt("a frame has unknown flags")
            if flags == DICTIONARY and (held or raw > MAXIMUM_DICTIONARY_BYTES):
                raise self._corrupt("a dictionary is invalid")
            count += 1
            total += raw
            objects += held
            if count > MAXIMUM_PACK_FRAMES or total > MAXIMUM_PACK_RAW_BYTES:
                raise self._corrupt("it has too much content")
            if held > MAXIMUM_FRAME_OBJECTS or objects > MAXIMUM_PACK_OBJECTS:
                raise self._corrupt("it has too many objects")
            yield FramePlace(offset, compressed, raw, held, flags)
            offset += compressed

    def decode(self, place: FramePlace, dictionary: Dictionary | None = None) -> bytes:
        """Return the raw content of a frame.

        Raises:
            CorruptObjectError: it is damaged.
        """
        return self.open_frame(place, dictionary).until(place.raw)

    def open_frame(self, place: FramePlace, dictionary: Dictionary | None = None) -> PartialFrame:
        """Return a frame that is decompressed only as far as needed.

        Raises:
            CorruptObjectError: it is damaged.
        """
        if place.raw > MAXIMUM_FRAME_BYTES:
            raise errors.CorruptObjectError(f"a frame declares {place.raw} bytes", path=self.path)
        data = self._disk.read_at(self.fd, place.offset, place.compressed)
        return PartialFrame(data, place.raw, dictionary=dictionary)

    def digests(self) -> tuple[str, bool]:
        """Return the hash of the file's bytes (its name), and whether the trailer matches.

        Reads the whole file.
        """
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
        """Return True if name and trailer match the file's bytes; reads all of them."""
        return self.digests() == (self.name, True)

    def _read_ends(self) -> tuple[int, int, bytes]:
        if not HEADER.size + FRAME.size + TRAILER.size <= self.size <= MAXIMUM_PACK_BYTES:
            raise self._corrupt(f"it has {self.size} bytes")
        head = self._disk.read_at(self.fd, 0, HEADER.size)
        trailer = self._disk.read_at(self.fd, self.size - TRAILER.size, TRAILER.size)
        if len(head) < HEADER.size or len(trailer) < TRAILER.size:
            raise self._corrupt("it was truncated")
        magic, version, level, frame_bytes, shared_bytes = HEADER.unpack(head)
        if magic != MAGIC:
            raise self._corrupt("it is not a pack")
        if version != VERSION:
            raise self._corrupt(f"it has version {version}, not {VERSION}")
        self.made = (level, frame_bytes, shared_bytes)
        frames, objects, check = TRAILER.unpack(trailer)
        return frames, objects, check

    def _corrupt(self, what: str) -> errors.CorruptPackError:
        return errors.CorruptPackError(f"pack {self.name[:12]} is damaged: {what}", path=self.path)


def split(raw: bytes, count: int) -> Iterator[tuple[int, int]]:
    """Yield (offset, length) of the `count` objects in a frame's raw content.

    Raises:
        CorruptObjectError: the lengths do not add up.
    """
    offset = 4 * count
    if offset > len(raw) or count > MAXIMUM_FRAME_OBJECTS:
        raise errors.CorruptObjectError("a frame declares too many objects")
    lengths = struct.unpack_from(f"<{count}I", raw)
    if offset + sum(lengths) != len(raw):
        raise errors.CorruptObjectError("the objects' lengths do not add up to the frame's size")
    for length in lengths:
        yield offset, length
        offset += length


def join(objects: Sequence[bytes]) -> bytes:
    """Return the raw content of a frame with these objects."""
    return struct.pack(f"<{len(objects)}I", *map(len, objects)) + b"".join(objects)


def walk_objects(
    pack: Pack,
) -> Iterator[tuple[int, FramePlace, Objects | errors.CorruptObjectError]]:
    """Yield (number, place, objects or error) of every frame in order.

    A dictionary has no objects.

    An object is (id, offset in the frame's content, bytes). Unreadable objects are left out, but counted in the place.

    Raises:
        CorruptPackError: the remaining frames cannot be found, or there are too many.
        StorageError: the pack cannot be read.
    """
    walk = PackWalk(pack)
    for number, place in enumerate(pack.places()):
        try:
            yield number, place, walk.objects(place)
        except errors.CorruptObjectError as error:
            yield number, place, error


class PackWalk:
    """The state of a walk over a pack.

    Attributes:
        ids: the joined ids of the objects so far; zeros for unreadable ones.
        offsets: the offsets of the last frame's objects in its content; 0 if it is damaged.
    """

    __slots__ = ("_dictionary", "_pack", "ids", "offsets")

    def __init__(self, pack: Frames) -> None:
        self._pack = pack
        self._dictionary: Dictionary | None = None
        self.ids = bytearray()
        self.offsets: list[int] = []

    def objects(self, place: FramePlace) -> Objects:
        """Return the objects of the next frame.

        Raises:
            CorruptObjectError: the frame is damaged.
            StorageError: the pack cannot be read.
        """
        first = len(self.ids)
        self.ids += ABSENT * place.objects
        self.offsets = [0] * place.objects
        if place.flags == DICTIONARY:
            self._dictionary = None
            self._dictionary = Dictionary(self._pack.decode(place))
            return []
        if not place.flags & NEEDS_DICTIONARY:
            raw = self._pack.decode(place)
        elif self._dictionary is None:
            raise errors.CorruptObjectError("the frame's dictionary is damaged or missing")
        else:
            raw = self._pack.decode(place, self._dictionary)
        places = list(split(raw, place.objects))
        self.offsets = [offset for offset, _ in places]
        if place.flags & SHORT_LINKS:
            return self._expand(raw, places, first)
        contents = [raw[offset : offset + size] for offset, size in places]
        self.ids[first:] = ids = joined_digests(contents)
        oids = [ObjectId(ids[at : at + OID_BYTES]) for at in range(0, len(ids), OID_BYTES)]
        return list(zip(oids, self.offsets, contents, strict=True))

    def _expand(self, raw: bytes, places: list[tuple[int, int]], first: int) -> Objects:
        ids = self.ids

        def id_of(ordinal: int) -> bytes:
            at = ordinal * OID_BYTES
            return bytes(ids[at : at + OID_BYTES])

        objects: Objects = []
        for ordinal, (offset, size) in enumerate(places, first // OID_BYTES):
            try:
                data = expand_links(raw[offset : offset + size], ordinal, id_of)
            except errors.CorruptObjectError:
                continue
            oid = hash_object(data)
            at = ordinal * OID_BYTES
            ids[at : at + OID_BYTES] = oid
            objects.append((oid, offset, data))
        return objects


MAXIMUM_DESCRIPTORS = 64
"""Few enough for a limit of 256, and enough for every often-read pack and its index."""
NO_DESCRIPTORS = (errno.EMFILE, errno.ENFILE)
"""The process or the system is out of descriptors; the file itself may be fine."""


class OpenFiles:
    """Open files by handle; a handle is not a descriptor."""

    __slots__ = ("_disk", "_fds", "_files", "_limit", "_next")

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._limit = MAXIMUM_DESCRIPTORS
        self._next = 0
        self._files: dict[int, tuple[str, tuple[int, int] | None]] = {}
        self._fds: dict[int, int] = {}  # least recently used first

    def open(self, path: str) -> int | None:
        """Return a handle of a file, or None if it is absent.

        Raises:
            StorageError: it cannot be opened.
        """
        fd = self._descriptor(path)
        if fd is None:
            return None
        self._next += 1
        self._files[self._next] = (path, self._disk.identity(fd))
        self._fds[self._next] = fd
        return self._next

    def read_at(self, handle: int, offset: int, size: int) -> bytes:
        """Return up to `size` bytes at an offset; fewer only at the end of the file.

        Raises:
            StorageError: the read failed; errno ENOENT if the file was removed or replaced.
        """
        return self._disk.read_at(self._fd(handle), offset, size)

    def size(self, handle: int) -> int:
        """Return the length of a file in bytes."""
        return self._disk.size(self._fd(handle))

    def close(self, handle: int) -> None:
        """Close a handle."""
        self._files.pop(handle, None)
        fd = self._fds.pop(handle, None)
        if fd is not None:
            self._disk.close(fd)

    def _fd(self, handle: int) -> int:
        fd = self._fds.pop(handle, None)
        if fd is None:
            path, identity = self._files[handle]
            fd = self._descriptor(path)
            if fd is not None and self._disk.identity(fd) != identity:
                self._disk.close(fd)
                fd = None
            if fd is None:
                raise errors.StorageError(
                    f"the file was removed: {path}", path=path, errno=errno.ENOENT
                )
        self._fds[handle] = fd  # now the most recently used
        return fd

    def _descriptor(self, path: str) -> int | None:
        """Open a file, closing others if needed."""
        self._close_oldest(self._limit - 1)
        while True:
            try:
                return self._disk.open(path)
            except errors.StorageError as error:
                if error.errno not in NO_DESCRIPTORS or not self._fds:
                    raise
                # Give back half of the descriptors, for the rest of the process.
                self._limit = max(len(self._fds) // 2, 1)
                self._close_oldest(self._limit - 1)

    def _close_oldest(self, keep: int) -> None:
        while len(self._fds) > keep:
            self._disk.close(self._fds.pop(next(iter(self._fds))))
