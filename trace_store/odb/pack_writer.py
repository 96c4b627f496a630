"""Writing packs.

Rule: a pack is written aside, synced, and only then given its name, which is the hash of its bytes. Objects keep the
order in which they are added. When one pack is full the next is begun.
"""

from __future__ import annotations

import os

from trace_store.errors import StorageError
from trace_store.files import CREATE, write_all
from trace_store.layout import MAXIMUM_OBJECT_BYTES
from trace_store.odb.checks import check_size
from trace_store.odb.deflate import deflate
from trace_store.odb.pack import (
    COUNTS,
    FRAME,
    HEADER,
    MAGIC,
    MAXIMUM_FRAME_OBJECTS,
    MAXIMUM_PACK_BYTES,
    MAXIMUM_PACK_FRAMES,
    MAXIMUM_PACK_OBJECTS,
    MAXIMUM_PACK_RAW_BYTES,
    MAXIMUM_PREFIX_BYTES,
    MAXIMUM_PREFIX_FRAMES,
    TRAILER,
    VERSION,
    FramePlace,
    join,
)
from trace_store.odb.pack_index import encode_index
from trace_store.oid import Digester

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.files import Disk
    from trace_store.layout import Layout

TEMPORARY_PREFIX = "pack-"
DEFAULT_LEVEL = 3
DEFAULT_FRAME_BYTES = 256 * 1024
DEFAULT_GROUP_BYTES = 1024 * 1024
_TAIL_BYTES = FRAME.size + TRAILER.size


class PackWriter:
    """Collects objects into one pack after the other; `finish` makes them durable and visible."""

    def __init__(
        self,
        disk: Disk,
        layout: Layout,
        *,
        level: int = DEFAULT_LEVEL,
        frame_bytes: int = DEFAULT_FRAME_BYTES,
        group_bytes: int = DEFAULT_GROUP_BYTES,
        durable: bool = True,
        maximum_bytes: int = MAXIMUM_PACK_BYTES,
    ) -> None:
        self._disk = disk
        self._layout = layout
        self._level = level
        self._frame_bytes = frame_bytes
        self._group_bytes = min(group_bytes, MAXIMUM_PREFIX_BYTES)
        self._durable = durable
        self._maximum_bytes = maximum_bytes
        self._names: list[str] = []
        self._seen: set[bytes] = set()
        self._waiting: list[tuple[bytes, bytes]] = []
        self._waiting_bytes = 0
        self._file: _OpenPack | None = None

    def add(self, oid: bytes, data: bytes) -> bool:
        """Add an object; False when it was added before.

        Raises:
            InvalidInputError: it is too large.
        """
        check_size(data, MAXIMUM_OBJECT_BYTES)
        if oid in self._seen:
            return False
        self._seen.add(oid)
        if self._waiting and (
            self._waiting_bytes + len(data) > self._frame_bytes
            or len(self._waiting) >= MAXIMUM_FRAME_OBJECTS
        ):
            self._write_frame()
        self._waiting.append((oid, data))
        self._waiting_bytes += len(data)
        return True

    def finish(self) -> list[str]:
        """Complete what is open and return the names of all packs, in order; none when nothing was added."""
        if self._waiting:
            self._write_frame()
        if self._file is not None:
            self._complete(self._file)
        if self._names:
            self._disk.make_directory(self._layout.pack_dir)
            if self._durable:
                self._disk.sync_directory(self._layout.pack_dir)
                self._disk.sync_directory(self._layout.objects_dir)
        return self._names

    def abandon(self) -> None:
        """Remove what is not complete."""
        if self._file is not None:
            self._disk.close(self._file.fd)
            self._disk.remove(self._file.path)
            self._file = None

    def _write_frame(self) -> None:
        raw = join([data for _, data in self._waiting])
        file = self._file
        if file is not None and not file.has_room(len(raw), len(self._waiting)):
            self._complete(file)
            file = None
        if file is None:
            file = self._file = _OpenPack(
                self._disk, self._layout, self._frame_bytes, self._group_bytes
            )
        prefix = file.prefix(self._group_bytes, len(raw))
        body = deflate(raw, level=self._level, prefix=b"".join(prefix))
        if file.places and file.size + FRAME.size + len(body) + _TAIL_BYTES > self._maximum_bytes:
            self._complete(file)
            self._write_frame()
            return
        file.write_frame(raw, body, len(prefix), self._waiting)
        self._waiting, self._waiting_bytes = [], 0

    def _complete(self, file: _OpenPack) -> None:
        self._file = None
        name = file.complete(self._durable)
        self._disk.make_directory(self._layout.pack_dir)
        index = encode_index(file.rows, file.places, file.size, file.check)
        path = self._layout.pack_index_file(name)
        # The index goes first and is not synced: it can always be made again from the pack.
        temporary = file.path + ".idx"
        fd = self._disk.open(temporary, CREATE)
        if fd is not None:
            try:
                write_all(self._disk, fd, index)
            finally:
                self._disk.close(fd)
            self._disk.rename(temporary, path)
        self._disk.rename(file.path, self._layout.pack_file(name))
        self._names.append(name)


class _OpenPack:
    """A pack that is being written."""

    def __init__(self, disk: Disk, layout: Layout, frame_bytes: int, group_bytes: int) -> None:
        self._disk = disk
        disk.make_directory(layout.tmp_dir)
        name = f"{TEMPORARY_PREFIX}{os.getpid()}-{os.urandom(6).hex()}"
        self.path = os.path.join(layout.tmp_dir, name)
        fd = disk.open(self.path, CREATE)
        if fd is None:
            raise StorageError("a temporary name is taken", path=self.path)
        self.fd = fd
        self.size = 0
        self.raw_bytes = 0
        self.check = b""
        self.places: list[FramePlace] = []
        self.rows: list[tuple[bytes, int, int, int]] = []
        self._group: list[bytes] = []
        self._body = Digester()
        self._whole = Digester()
        self._write(HEADER.pack(MAGIC, VERSION, frame_bytes, group_bytes))

    def has_room(self, size: int, objects: int) -> bool:
        """Tell whether one more frame is within what a pack may hold."""
        return (
            self.raw_bytes + size <= MAXIMUM_PACK_RAW_BYTES
            and len(self.rows) + objects <= MAXIMUM_PACK_OBJECTS
            and len(self.places) < MAXIMUM_PACK_FRAMES
        )

    def prefix(self, group_bytes: int, size: int) -> list[bytes]:
        """Return the frames that the next one, of `size` bytes, is chained to."""
        if (
            sum(map(len, self._group)) + size > group_bytes
            or len(self._group) >= MAXIMUM_PREFIX_FRAMES
        ):
            self._group = []
        return self._group

    def write_frame(
        self, raw: bytes, body: bytes, prefixes: int, objects: list[tuple[bytes, bytes]]
    ) -> None:
        """Write one frame and note what is in it."""
        self._write(FRAME.pack(len(body), len(raw), prefixes))
        place = FramePlace(self.size, len(body), len(raw), prefixes)
        self._write(body)
        offset = 4 * (len(objects) + 1)
        for oid, data in objects:
            self.rows.append((oid, len(self.places), offset, len(data)))
            offset += len(data)
        self.places.append(place)
        self.raw_bytes += len(raw)
        self._group = [*self._group, raw]

    def complete(self, durable: bool) -> str:
        """Write end and trailer, sync, close, and return the name."""
        self._write(FRAME.pack(0, 0, 0))
        self._write(COUNTS.pack(len(self.places), len(self.rows)))
        self.check = self._body.digest()
        self._write(self.check)
        try:
            if durable:
                self._disk.sync(self.fd)
        finally:
            self._disk.close(self.fd)
        return self._whole.digest().hex()

    def _write(self, data: bytes) -> None:
        write_all(self._disk, self.fd, data)
        self._body.update(data)
        self._whole.update(data)
        self.size += len(data)
