"""Loose objects: one file each, `objects/ab/cdef…`.

    offset  size  field
    0       1     0xB0: the object's bytes follow; 0xB1: size u32, then one zstd frame
    1       …     the body

Rule: a file gets its final name only when it is complete and (by default) durable.
"""

from __future__ import annotations

import os

from trace_store import errors
from trace_store.base.ident import SystemClock
from trace_store.base.oid import (
    HEX_CHARACTERS,
    MAXIMUM_CANDIDATES,
    ObjectId,
    check_hash,
    check_size,
    hash_object,
)
from trace_store.disk.files import WRITE, create_file, read_file
from trace_store.disk.layout import MAXIMUM_OBJECT_BYTES
from trace_store.odb.compression import compress, decompress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from trace_store.disk.files import Disk
    from trace_store.disk.layout import Layout

RAW = 0xB0
COMPRESSED = 0xB1
TEMPORARY_PREFIX = "object-"
FRESH_MS = 60 * 60 * 1000
HEAD_BYTES = 5
_MINIMUM_COMPRESSED_BYTES = 512
_LEVEL = 3
_HEX = frozenset("0123456789abcdef")


class LooseObjects:
    """The loose objects of one repository."""

    __slots__ = ("_disk", "_durable", "_layout")

    def __init__(self, disk: Disk, layout: Layout, *, durable: bool = True) -> None:
        self._disk = disk
        self._layout = layout
        self._durable = durable

    def read(self, oid: bytes) -> bytes | None:
        """Return an object's bytes, or None if it has no file.

        Raises:
            CorruptObjectError: the file is damaged.
        """
        path = self._layout.loose_file(oid.hex())
        data = read_file(self._disk, path, limit=MAXIMUM_OBJECT_BYTES + MAXIMUM_OBJECT_BYTES // 64)
        if data is None:
            return None
        return check_hash(oid, content_of(data), path)

    def contains(self, oid: bytes) -> bool:
        """Return True if the object has a file."""
        return self._disk.stat(self._layout.loose_file(oid.hex())) is not None

    def write(self, data: bytes) -> ObjectId:
        """Store an object and return its id.

        Raises:
            InvalidInputError: it is too large.
        """
        check_size(data, MAXIMUM_OBJECT_BYTES)
        oid = hash_object(data)
        path = self._layout.loose_file(oid.hex())
        if self._is_sound(oid) and not self._is_old(path):
            self._sync(path)
            return oid
        self._disk.make_directory(os.path.dirname(path))
        self._disk.make_directory(self._layout.tmp_dir)
        name = f"{TEMPORARY_PREFIX}{os.getpid()}-{os.urandom(6).hex()}"
        temporary = os.path.join(self._layout.tmp_dir, name)
        create_file(self._disk, temporary, _encode_file(data), durable=self._durable)
        self._disk.rename(temporary, path)
        self._sync_names(path)
        return oid

    def remove(self, oid: bytes) -> None:
        """Remove the file of an object that is in a durable pack."""
        path = self._layout.loose_file(oid.hex())
        self._disk.remove(path)
        self._disk.remove_directory(os.path.dirname(path))

    def iterate(self) -> Iterator[ObjectId]:
        """Yield the ids of all loose objects, sorted."""
        for folder in self._folders():
            for rest in self._disk.names(os.path.join(self._layout.objects_dir, folder)):
                if len(rest) == HEX_CHARACTERS - 2 and _HEX.issuperset(rest):
                    yield ObjectId.parse(folder + rest)

    def resolve_prefix(self, prefix: str) -> list[ObjectId]:
        """Return the ids that start with these hex digits, at most 16."""
        matches: list[ObjectId] = []
        for rest in self._disk.names(os.path.join(self._layout.objects_dir, prefix[:2])):
            name = prefix[:2] + rest
            if name.startswith(prefix) and len(name) == HEX_CHARACTERS and _HEX.issuperset(name):
                matches.append(ObjectId.parse(name))
                if len(matches) == MAXIMUM_CANDIDATES:
                    break
        return matches

    def stray_names(self) -> list[str]:
        """Return the paths below `objects/` that are not objects, relative to it."""
        folders, files = self._disk.scan(self._layout.objects_dir)
        stray = list(files)
        for folder in folders:
            if folder in ("pack", "info"):
                continue
            if folder not in self._folders():
                stray.append(folder)
                continue
            for rest in self._disk.names(os.path.join(self._layout.objects_dir, folder)):
                if len(rest) != HEX_CHARACTERS - 2 or not _HEX.issuperset(rest):
                    stray.append(f"{folder}/{rest}")
        return stray

    def _folders(self) -> list[str]:
        folders, _ = self._disk.scan(self._layout.objects_dir)
        return [name for name in folders if len(name) == 2 and _HEX.issuperset(name)]

    def _is_old(self, path: str) -> bool:
        """Return True if a file is old enough for gc to remove, so rewrite it."""
        stat = self._disk.stat(path)
        return stat is None or stat.st_mtime_ns // 1_000_000 < SystemClock().now() - FRESH_MS

    def _sync(self, path: str) -> None:
        """Sync a file of another process, which may have died before syncing it."""
        fd = self._disk.open(path, WRITE) if self._durable else None
        if fd is not None:
            try:
                self._disk.sync(fd)
            finally:
                self._disk.close(fd)
        self._sync_names(path)

    def _sync_names(self, path: str) -> None:
        """Sync the name of a file and of its folders."""
        if self._durable:
            for folder in (os.path.dirname(path), self._layout.objects_dir, self._layout.root):
                self._disk.sync_directory(folder)

    def _is_sound(self, oid: ObjectId) -> bool:
        try:
            return self.read(oid) is not None
        except errors.CorruptObjectError:
            return False  # writing it again repairs it


def _encode_file(data: bytes) -> bytes:
    if len(data) >= _MINIMUM_COMPRESSED_BYTES:
        body = compress(data, level=_LEVEL)
        if len(body) + HEAD_BYTES < len(data):
            return bytes((COMPRESSED,)) + len(data).to_bytes(4, "little") + body
    return bytes((RAW,)) + data


def content_of(data: bytes) -> bytes:
    """Return the object's bytes in a loose file, not hash-checked.

    Raises:
        CorruptObjectError: the file is not a complete loose object.
    """
    if data[:1] == bytes((RAW,)):
        return data[1:]
    if data[:1] == bytes((COMPRESSED,)) and len(data) >= HEAD_BYTES:
        size = int.from_bytes(data[1:HEAD_BYTES], "little")
        if size > MAXIMUM_OBJECT_BYTES:
            raise errors.CorruptObjectError(f"a loose object declares {size} bytes")
        return decompress(data[HEAD_BYTES:], size)
    raise errors.CorruptObjectError("the file is not a loose object")
