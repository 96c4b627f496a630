"""Writing packs and their indexes.

Rule: objects keep their order, except that objects with links follow those without, so that the objects they link to
have numbers. When a pack is full, the next one is started. A pack's name is the hash of its bytes, known at the end.
Frames are compressed in threads while the next ones are collected, and are written in order. Memory holds the content
that shares a dictionary, twice, and the ids.

Rule: objects are numbered before their frame is compressed, but recorded only when it is written. So a frame that does
not fit leaves no trace in the pack.

Rule: a file with a pack's name is complete, and so is its index, which is published first. An index can be rebuilt, but
readers look only at pieces of it, and a torn one would seem to lack objects.
"""

from __future__ import annotations

import os
from itertools import accumulate

from trace_store import errors
from trace_store.base.oid import Digester, check_size
from trace_store.disk.files import CREATE, create_file, write_all
from trace_store.disk.layout import INDEX_SUFFIX, MAXIMUM_OBJECT_BYTES, PACK_SUFFIX
from trace_store.disk.system_calls import processor_count
from trace_store.odb.compression import (
    MINIMUM_DICTIONARY_BYTES,
    BackgroundTasks,
    Dictionary,
    compress,
    lines_in_common,
)
from trace_store.odb.delta_links import MARK, SPARED_BYTES, shorten_links
from trace_store.odb.pack import (
    COUNTS,
    DICTIONARY,
    FRAME,
    HEADER,
    MAGIC,
    MAXIMUM_FRAME_OBJECTS,
    MAXIMUM_PACK_BYTES,
    MAXIMUM_PACK_FRAMES,
    MAXIMUM_PACK_OBJECTS,
    MAXIMUM_PACK_RAW_BYTES,
    NEEDS_DICTIONARY,
    SHORT_LINKS,
    TRAILER,
    VERSION,
    FramePlace,
    join,
)
from trace_store.odb.pack_index import encode_index, encode_rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from trace_store.disk.files import Disk
    from trace_store.disk.layout import Layout

    class Sink(Protocol):
        """The destination of one pack's bytes."""

        def write(self, data: bytes, /) -> object: ...
        def complete(self, name: str, index: bytes, /) -> object:
            """Finish the pack, given its name and index."""
            ...


DEFAULT_LEVEL = 3
DEFAULT_FRAME_BYTES = 256 * 1024
LINKED_FRAME_BYTES = 64 * 1024
"""Commits resemble each other so much that smaller frames cost nothing, and the newest are read often."""
MAXIMUM_WANTED_FRAME_BYTES = 8 * 1024 * 1024
SHARED_BYTES = 8 * 1024 * 1024
"""Size of the content that shares a dictionary, if any; this much is also held in memory."""
SHARING_LEVEL = 9
"""Below this level a dictionary helps little: the compressor remembers too few positions of it."""
MAXIMUM_THREADS = 4
"""A third of packing needs the interpreter lock; more threads would wait for it."""
HARDEST_LEVEL = 19
LINKED_LEVELS = 5
"""Added to the level for frames of commits: a tenth smaller, and they are only a tenth of all content."""
_MANY_BYTES = 1024 * 1024
"""With less content than this, starting threads takes longer than compressing."""
_LONGEST_SHORTENED_BYTES = 8 * 1024 * 1024
_MARK_WORTH = 24
_FEW_BYTES = 1024
"""Larger objects may have one mark per this many bytes, so that false marks hardly make them longer."""
_TAIL_BYTES = FRAME.size + TRAILER.size
_BLOB_HEADS = (b"\x92\xa4blob", b"\x93\xa4blob")


class PackEncoder:
    """Encodes objects into packs, each into a sink of its own.

    Attributes:
        names: the names of the complete packs, in order.
        object_count: how many objects were added.
    """

    def __init__(
        self,
        begin: Callable[[], Sink],
        *,
        level: int = DEFAULT_LEVEL,
        frame_bytes: int = DEFAULT_FRAME_BYTES,
        shared_bytes: int = 0,
    ) -> None:
        """Create an encoder.

        Args:
            begin: returns the sink of the next pack.
            level: the compression level, 1 to 19.
            frame_bytes: target size of a frame's content.
            shared_bytes: size of the content that shares a dictionary; 0 for none.
        """
        self._begin = begin
        self._level = level
        self._linked_level = (
            level if level < SHARING_LEVEL else min(level + LINKED_LEVELS, HARDEST_LEVEL)
        )
        self._frame_bytes = min(frame_bytes, MAXIMUM_WANTED_FRAME_BYTES)
        self._linked_frame_bytes = min(self._frame_bytes, LINKED_FRAME_BYTES)
        self._shared_bytes = shared_bytes
        self._seen: set[bytes] = set()
        """The objects that are not in a complete pack yet."""
        self._count = 0
        self._plain = PackFrame(links=False)
        self._linked = PackFrame(links=True)
        self._waiting: list[PackFrame] = []
        self._waiting_bytes = 0
        self._planned: list[PlannedFrame] = []
        self._compressed = BackgroundTasks((), 0)
        self._pack: OpenPack | None = None
        self.names: list[str] = []

    @property
    def object_count(self) -> int:
        """The number of objects added."""
        return self._count

    def add(self, oid: bytes, data: bytes) -> bool:
        """Add an object; False if it was added before to a pack that is not complete.

        Raises:
            InvalidInputError: it is too large.
        """
        check_size(data, MAXIMUM_OBJECT_BYTES)
        if oid in self._seen:
            return False
        self._seen.add(oid)
        self._count += 1
        links = 0 if data[: len(_BLOB_HEADS[0])] in _BLOB_HEADS else data.count(MARK)
        if links and (
            len(data) > _LONGEST_SHORTENED_BYTES or links * _MARK_WORTH > len(data) + _FEW_BYTES
        ):
            self._close(
                self._linked
            )  # it is stored with full links, after the objects that it may name
            links = 0
        frame = self._linked if links else self._plain
        size = len(data) - links * SPARED_BYTES
        wanted = self._linked_frame_bytes if links else self._frame_bytes
        if frame.objects and (
            frame.size + size > wanted or len(frame.objects) >= MAXIMUM_FRAME_OBJECTS
        ):
            self._close(frame)
            frame = self._linked if links else self._plain
        frame.objects.append((oid, data))
        frame.size += size
        return True

    def finish(self) -> list[str]:
        """Complete the last pack and return the names of all packs, in order."""
        self._close(self._linked)
        self._write()
        self._settle()
        self._complete()
        return self.names

    def _close(self, frame: PackFrame) -> None:
        """Queue a frame for writing.

        A frame with links comes after the objects it may link to.
        """
        for closed in (self._plain, self._linked) if frame.links else (self._plain,):
            if closed.objects:
                self._waiting.append(closed)
                self._waiting_bytes += closed.size
        self._plain = PackFrame(links=False)
        if frame.links:
            self._linked = PackFrame(links=True)
        if self._waiting_bytes >= self._shared_bytes:
            self._write()

    def _write(self) -> None:
        """Write the compressed frames, and start compressing the queue."""
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        content = self._shared_content(waiting)
        self._settle()
        self._compress(waiting, content)

    def _shared_content(self, waiting: list[PackFrame]) -> bytes:
        """Return the frames' dictionary content.

        The result is b"" if there are few frames or it is too short.
        """
        plain = [frame for frame in waiting if not frame.links]
        if not self._shared_bytes or len(plain) < 2:
            return b""
        contents = [b"".join([data for _, data in frame.objects]) for frame in plain]
        content = lines_in_common(contents)
        return content if len(content) >= MINIMUM_DICTIONARY_BYTES else b""

    def _compress(self, frames: list[PackFrame], content: bytes) -> None:
        """Start compressing frames for the open pack, preceded by their dictionary."""
        if not frames:
            return
        pack = self._pack
        if pack is None:
            pack = self._pack = OpenPack(
                self._begin(), self._level, self._frame_bytes, self._shared_bytes
            )
        dictionary = None
        planned: list[PlannedFrame] = []
        tasks: list[Callable[[], bytes]] = []
        if content:
            dictionary = Dictionary(content)
            planned.append(PlannedFrame(None, [], len(content), DICTIONARY))
            tasks.append(lambda: compress(content, level=self._level))
        for frame in frames:
            forms = pack.forms(frame)
            shared = None if frame.links else dictionary
            flags = SHORT_LINKS if frame.links else 0
            if shared is not None:
                flags |= NEEDS_DICTIONARY
            offsets = list(accumulate(map(len, forms), initial=4 * len(forms)))
            planned.append(PlannedFrame(frame, offsets, offsets.pop(), flags))
            level = self._linked_level if frame.links else self._level
            tasks.append(_compression_task(forms, level, shared))
        many = sum(each.raw for each in planned) >= _MANY_BYTES
        self._planned = planned
        threads = min(processor_count(), MAXIMUM_THREADS) if many else 1
        self._compressed = BackgroundTasks(tasks, threads)

    def _settle(self) -> None:
        """Write the compressed frames.

        Those that do not fit are compressed again for the next pack.
        """
        while self._planned:
            planned, self._planned = self._planned, []
            pack = self._pack
            assert pack is not None
            for at, (each, body) in enumerate(
                zip(planned, self._compressed.results(), strict=True)
            ):
                if not self._fits(pack, each, body):
                    self._complete()
                    rest = [other.frame for other in planned[at:] if other.frame is not None]
                    self._compress(rest, self._shared_content(rest))
                    break
                pack.write_frame(each, body)

    def _fits(self, pack: OpenPack, planned: PlannedFrame, body: bytes) -> bool:
        """Return True if a frame fits into the pack.

        The first one with objects always does.
        """
        return not pack.object_count or (
            pack.has_room(planned)
            and pack.size + FRAME.size + len(body) + _TAIL_BYTES <= MAXIMUM_PACK_BYTES
        )

    def _complete(self) -> None:
        if self._pack is not None:
            name, index = self._pack.finish()
            self._seen.difference_update(self._pack.ids)
            self._pack.sink.complete(name, index)
            self._pack = None
            self.names.append(name)


class PackWriter(PackEncoder):
    """Writes packs of a repository; `finish` makes them durable and visible."""

    def __init__(
        self,
        disk: Disk,
        layout: Layout,
        *,
        level: int = DEFAULT_LEVEL,
        frame_bytes: int = DEFAULT_FRAME_BYTES,
        shared_bytes: int = 0,
    ) -> None:
        self._disk = disk
        self._layout = layout
        self._files = PackFiles(disk, layout.tmp_dir, layout.pack_base)
        super().__init__(
            self._file, level=level, frame_bytes=frame_bytes, shared_bytes=shared_bytes
        )

    def finish(self) -> list[str]:
        """Complete the last pack and return the names of all packs, in order."""
        if super().finish():
            self._disk.make_directory(self._layout.pack_dir)
            self._files.publish()
            self._disk.sync_directory(self._layout.objects_dir)
        return self.names

    def discard(self) -> None:
        """Remove unfinished files."""
        self._files.discard()

    def _file(self) -> PackFile:
        self._disk.make_directory(self._layout.tmp_dir)
        return self._files.begin()


def _compression_task(
    forms: list[bytes], level: int, dictionary: Dictionary | None
) -> Callable[[], bytes]:
    """Return a function that compresses objects into one frame.

    Not a `partial`, because functools is slow to import.
    """
    return lambda: compress(join(forms), level=level, dictionary=dictionary)


class PackFrame:
    """The objects of a frame to be written."""

    __slots__ = ("links", "objects", "size")

    def __init__(self, links: bool) -> None:
        self.links = links
        self.objects: list[tuple[bytes, bytes]] = []
        self.size = 0


class PlannedFrame:
    """A frame that is being compressed; a dictionary if it has no objects.

    Attributes:
        frame: its objects.
        offsets: their offsets in its raw content.
        raw: the size of the raw content.
        flags: as in the pack.
    """

    __slots__ = ("flags", "frame", "offsets", "raw")

    def __init__(self, frame: PackFrame | None, offsets: list[int], raw: int, flags: int) -> None:
        self.frame = frame
        self.offsets = offsets
        self.raw = raw
        self.flags = flags


class OpenPack:
    """A pack that is being written."""

    def __init__(self, sink: Sink, level: int, frame_bytes: int, shared_bytes: int) -> None:
        self.sink = sink
        self.size = 0
        self.raw_bytes = 0
        self.places: list[FramePlace] = []
        self.ids: list[bytes] = []
        self._rows = bytearray()
        self._numbered = 0
        self._targets: dict[bytes, int] = {}
        self._body = Digester()
        self._whole = Digester()
        self._write(HEADER.pack(MAGIC, VERSION, level, frame_bytes, shared_bytes))

    @property
    def object_count(self) -> int:
        """The number of its objects."""
        return len(self.ids)

    def has_room(self, planned: PlannedFrame) -> bool:
        """Return True if the pack's limits allow one more frame."""
        return (
            self.raw_bytes + planned.raw <= MAXIMUM_PACK_RAW_BYTES
            and len(self.ids) + len(planned.offsets) <= MAXIMUM_PACK_OBJECTS
            and len(self.places) < MAXIMUM_PACK_FRAMES
        )

    def forms(self, frame: PackFrame) -> list[bytes]:
        """Number the objects of the next frame and return their stored forms.

        Links lead to objects of the same frame or of a frame without links. So a damaged frame loses only objects that
        link to it, not everything that follows.
        """
        first = self._numbered
        self._numbered += len(frame.objects)
        if not frame.links:
            self._targets.update((oid, n) for n, (oid, _) in enumerate(frame.objects, first))
            return [data for _, data in frame.objects]
        forms = []
        near: dict[bytes, int] = {}
        for number, (oid, data) in enumerate(frame.objects, first):
            forms.append(shorten_links(data, number, near, self._targets))
            near[oid] = number
        return forms

    def write_frame(self, planned: PlannedFrame, body: bytes) -> None:
        """Write the next numbered frame, or a dictionary."""
        objects = [] if planned.frame is None else planned.frame.objects
        self._write(FRAME.pack(len(body), planned.raw, len(objects), planned.flags))
        self._rows += encode_rows(len(self.places), planned.offsets)
        self.ids += [oid for oid, _ in objects]
        self.places.append(
            FramePlace(self.size, len(body), planned.raw, len(objects), planned.flags)
        )
        self._write(body)
        self.raw_bytes += planned.raw

    def finish(self) -> tuple[str, bytes]:
        """Write end and trailer; return name and index."""
        self._write(FRAME.pack(0, 0, 0, 0))
        self._write(COUNTS.pack(len(self.places), len(self.ids)))
        check = self._body.digest()
        self._write(check)
        name = self._whole.digest().hex()
        ids = b"".join(self.ids)
        return name, encode_index(ids, bytes(self._rows), self.places, self.size, check)

    def _write(self, data: bytes) -> None:
        self.sink.write(data)
        self._body.update(data)
        self._whole.update(data)
        self.size += len(data)


TEMPORARY_PREFIX = "pack-"


class PackFile:
    """A pack file with a temporary name."""

    __slots__ = ("_disk", "_fd", "_path", "name")

    def __init__(self, disk: Disk, folder: str) -> None:
        """Create the file.

        Raises:
            StorageError: it cannot be created.
        """
        self._disk = disk
        self._path = os.path.join(folder, f"{TEMPORARY_PREFIX}{os.getpid()}-{os.urandom(6).hex()}")
        fd = disk.open(self._path, CREATE)
        if fd is None:
            raise errors.StorageError("the temporary file exists already", path=self._path)
        self._fd: int | None = fd
        self.name = ""

    def write(self, data: bytes) -> None:
        """Append bytes."""
        assert self._fd is not None
        write_all(self._disk, self._fd, data)

    def complete(self, name: str, index: bytes) -> None:
        """Sync and close the file, and write and sync its index."""
        fd, self._fd = self._fd, None
        if fd is not None:
            try:
                self._disk.sync(fd)
            finally:
                self._disk.close(fd)
        create_file(self._disk, self._path + INDEX_SUFFIX, index)
        self.name = name

    def publish(self, base: str) -> None:
        """Rename the file and its index to `base` plus their suffixes."""
        self._disk.rename(self._path + INDEX_SUFFIX, base + INDEX_SUFFIX)
        self._disk.rename(self._path, base + PACK_SUFFIX)

    def discard(self) -> None:
        """Remove the file if it is not published."""
        fd, self._fd = self._fd, None
        if fd is not None:
            self._disk.close(fd)
        self._disk.remove(self._path + INDEX_SUFFIX)
        self._disk.remove(self._path)


class PackFiles:
    """Several pack files that are published together."""

    __slots__ = ("_base_of", "_disk", "_files", "_folder")

    def __init__(self, disk: Disk, folder: str, base_of: Callable[[str], str]) -> None:
        """Create an empty set.

        Args:
            disk: the disk.
            folder: the folder for temporary files, on the same file system as their final place.
            base_of: returns a pack's final path without suffix, given its name.
        """
        self._disk = disk
        self._folder = folder
        self._base_of = base_of
        self._files: list[PackFile] = []

    def begin(self) -> PackFile:
        """Create the file of the next pack.

        Raises:
            StorageError: it cannot be created.
        """
        file = PackFile(self._disk, self._folder)
        self._files.append(file)
        return file

    def publish(self) -> list[str]:
        """Publish the complete files durably and return their names.

        Raises:
            StorageError: some file could not be published.
        """
        names: list[str] = []
        folders: dict[str, None] = {}
        while self._files:
            file = self._files[0]
            if file.name:
                base = self._base_of(file.name)
                file.publish(base)
                names.append(file.name)
                folders[os.path.dirname(base) or os.curdir] = None
            del self._files[0]
        for folder in folders:
            self._disk.sync_directory(folder)
        return names

    def discard(self) -> None:
        """Remove the files that are not published."""
        while self._files:
            self._files.pop().discard()
