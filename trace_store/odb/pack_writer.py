"""Writing packs: objects in, pack and index files out.

Rule: objects are kept in the order in which they are added, but those with links stand behind the others of their
frame, so that what they name has a number. When one pack is full the next is begun. The name of a pack is the hash of
its bytes, so it is known when all of them are written. Frames are compressed on threads while the next are collected,
and written in their order. Memory holds what shares a dictionary, twice, and the ids.

Rule: objects are numbered before their frame is compressed, and noted only when it is written; so a frame for which
there is no room has left no trace in the pack.

Rule: a file under a pack's name is complete, and so is its index, which goes first: it can be made again, but whoever
opens it looks at pieces of it only, and would take one that a power cut left in part for one that lacks objects.
"""

from __future__ import annotations

import os
from itertools import accumulate

from trace_store import errors
from trace_store.files import CREATE, create_file, write_all
from trace_store.layout import INDEX_SUFFIX, MAXIMUM_OBJECT_BYTES, PACK_SUFFIX
from trace_store.odb.background import Background, processors
from trace_store.odb.checks import check_size
from trace_store.odb.compression import (
    MINIMUM_DICTIONARY_BYTES,
    Dictionary,
    deflate,
    lines_in_common,
)
from trace_store.odb.delta_links import MARK, SPARED_BYTES, shorten
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
from trace_store.odb.pack_index import encode_index
from trace_store.oid import Digester

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from trace_store.files import Disk
    from trace_store.layout import Layout

    class Sink(Protocol):
        """Where the bytes of one pack go."""

        def write(self, data: bytes, /) -> object: ...
        def complete(self, name: str, index: bytes, /) -> object:
            """Take note that the pack is written, with the index that belongs to it."""
            ...


DEFAULT_LEVEL = 3
DEFAULT_FRAME_BYTES = 256 * 1024
LINKED_FRAME_BYTES = 64 * 1024
"""Of commits so many resemble each other that smaller frames cost nothing, and the newest are read often."""
MAXIMUM_WANTED_FRAME_BYTES = 8 * 1024 * 1024
SHARED_BYTES = 8 * 1024 * 1024
"""Over how much content frames share a dictionary, where they do; also how much of it is held in memory."""
SHARING_LEVEL = 9
"""Below it a dictionary is of little use: the compressor keeps too few places of it in mind."""
MAXIMUM_THREADS = 4
"""A third of packing is the interpreter's, of which there is one; more threads would wait for it."""
HARDEST_LEVEL = 19
LINKED_LEVELS = 5
"""So much harder frames of commits are compressed: it takes a tenth off them, and they are a tenth of all content."""
_MANY_BYTES = 1024 * 1024
"""With less content than this a thread would hardly have begun when the work is done."""
_LONGEST_SHORTENED_BYTES = 8 * 1024 * 1024
_MARK_WORTH = 24
_FEW_BYTES = 1024
"""Larger objects have a mark in so many bytes at most, so that those that are none make it little longer."""
_TAIL_BYTES = FRAME.size + TRAILER.size
_BLOB_HEADS = (b"\x92\xa4blob", b"\x93\xa4blob")


class PackEncoder:
    """Puts objects into one pack after the other, each into a sink of its own.

    Attributes:
        names: of the packs that are complete, in order.
        object_count: how many objects were added.
    """

    def __init__(
        self,
        begin: Callable[[], Sink],
        *,
        level: int = DEFAULT_LEVEL,
        frame_bytes: int = DEFAULT_FRAME_BYTES,
        shared_bytes: int = 0,
        maximum_bytes: int = MAXIMUM_PACK_BYTES,
        threads: int | None = None,
    ) -> None:
        """Write nothing yet.

        Args:
            begin: returns the sink of the next pack.
            level: how hard to compress, 1 to 19.
            frame_bytes: how much content to put into a frame.
            shared_bytes: over how much content frames share a dictionary; 0 for none.
            maximum_bytes: how large a pack becomes at most.
            threads: how many compress frames that share a dictionary; None for as many as there are processors, four
                at most. What is written is the same.
        """
        self._begin = begin
        self._level = level
        self._linked_level = (
            level if level < SHARING_LEVEL else min(level + LINKED_LEVELS, HARDEST_LEVEL)
        )
        self._frame_bytes = min(frame_bytes, MAXIMUM_WANTED_FRAME_BYTES)
        self._linked_frame_bytes = min(self._frame_bytes, LINKED_FRAME_BYTES)
        self._shared_bytes = shared_bytes
        self._maximum_bytes = maximum_bytes
        self._seen: set[bytes] = set()
        self._plain = Frame(links=False)
        self._linked = Frame(links=True)
        self._waiting: list[Frame] = []
        self._waiting_bytes = 0
        self._planned: list[Planned] = []
        self._compressed = Background((), 0)
        self._threads = min(processors(), MAXIMUM_THREADS) if threads is None else threads
        self._pack: OpenPack | None = None
        self.names: list[str] = []

    @property
    def object_count(self) -> int:
        """How many objects were added."""
        return len(self._seen)

    def add(self, oid: bytes, data: bytes) -> bool:
        """Add an object; False when it was added before.

        Raises:
            InvalidInputError: it is too large.
        """
        check_size(data, MAXIMUM_OBJECT_BYTES)
        if oid in self._seen:
            return False
        self._seen.add(oid)
        links = 0 if data[: len(_BLOB_HEADS[0])] in _BLOB_HEADS else data.count(MARK)
        if links and (
            len(data) > _LONGEST_SHORTENED_BYTES or links * _MARK_WORTH > len(data) + _FEW_BYTES
        ):
            self._close(self._linked)  # it is stored as it is, and stands behind what it may name
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
        """Complete what is open and return the names of all packs, in order; none when nothing was added."""
        self._close(self._linked)
        self._write()
        self._settle()
        self._complete()
        return self.names

    def _close(self, frame: Frame) -> None:
        """Let a frame wait for being written; before one with links what these may lead to."""
        for closed in (self._plain, self._linked) if frame.links else (self._plain,):
            if closed.objects:
                self._waiting.append(closed)
                self._waiting_bytes += closed.size
        self._plain = Frame(links=False)
        if frame.links:
            self._linked = Frame(links=True)
        if self._waiting_bytes >= self._shared_bytes:
            self._write()

    def _write(self) -> None:
        """Have the waiting frames compressed, and write those that have been compressed meanwhile."""
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        content = self._in_common(waiting)
        self._settle()
        self._compress(waiting, content)

    def _in_common(self, waiting: list[Frame]) -> bytes:
        """Return what the frames have in common, if they are many; nothing when it is too little for a dictionary."""
        plain = [frame for frame in waiting if not frame.links]
        if not self._shared_bytes or len(plain) < 2:
            return b""
        contents = [b"".join([data for _, data in frame.objects]) for frame in plain]
        content = lines_in_common(contents)
        return content if len(content) >= MINIMUM_DICTIONARY_BYTES else b""

    def _compress(self, frames: list[Frame], content: bytes) -> None:
        """Begin to compress frames for the pack that is open, and before them what they have in common."""
        if not frames:
            return
        pack = self._pack
        if pack is None:
            pack = self._pack = OpenPack(
                self._begin(), self._level, self._frame_bytes, self._shared_bytes
            )
        dictionary = None
        planned: list[Planned] = []
        tasks: list[Callable[[], bytes]] = []
        if content:
            dictionary = Dictionary(content)
            planned.append(Planned(None, [], len(content), DICTIONARY))
            tasks.append(lambda: deflate(content, level=self._level))
        for frame in frames:
            forms = pack.forms(frame)
            shared = None if frame.links else dictionary
            sort = SHORT_LINKS if frame.links else 0
            if shared is not None:
                sort |= NEEDS_DICTIONARY
            offsets = list(accumulate(map(len, forms), initial=4 * len(forms)))
            planned.append(Planned(frame, offsets, offsets.pop(), sort))
            level = self._linked_level if frame.links else self._level
            tasks.append(_deflating(forms, level, shared))
        many = sum(each.raw for each in planned) >= _MANY_BYTES
        self._planned = planned
        self._compressed = Background(tasks, self._threads if many else 1)

    def _settle(self) -> None:
        """Write what is being compressed; what the pack has no room for goes to the next one, and is planned anew."""
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
                    self._compress(rest, self._in_common(rest))
                    break
                pack.write_frame(each, body)

    def _fits(self, pack: OpenPack, planned: Planned, body: bytes) -> bool:
        """Tell whether a frame fits the pack; the first one with objects does in any case."""
        return not pack.object_count or (
            pack.has_room(planned)
            and pack.size + FRAME.size + len(body) + _TAIL_BYTES <= self._maximum_bytes
        )

    def _complete(self) -> None:
        if self._pack is not None:
            name, index = self._pack.finish()
            self._pack.sink.complete(name, index)
            self._pack = None
            self.names.append(name)


class PackWriter(PackEncoder):
    """Collects objects into packs of a repository; `finish` makes them durable and visible."""

    def __init__(
        self,
        disk: Disk,
        layout: Layout,
        *,
        level: int = DEFAULT_LEVEL,
        frame_bytes: int = DEFAULT_FRAME_BYTES,
        shared_bytes: int = 0,
        durable: bool = True,
        maximum_bytes: int = MAXIMUM_PACK_BYTES,
    ) -> None:
        self._disk = disk
        self._layout = layout
        self._durable = durable
        self._files = PackFiles(disk, layout.tmp_dir, layout.pack_base, durable=durable)
        super().__init__(
            self._file,
            level=level,
            frame_bytes=frame_bytes,
            shared_bytes=shared_bytes,
            maximum_bytes=maximum_bytes,
        )

    def finish(self) -> list[str]:
        """Complete what is open and return the names of all packs, in order; none when nothing was added."""
        if super().finish():
            self._disk.make_directory(self._layout.pack_dir)
            self._files.publish()
            if self._durable:
                self._disk.sync_directory(self._layout.objects_dir)
        return self.names

    def abandon(self) -> None:
        """Remove what has not been finished."""
        self._files.abandon()

    def _file(self) -> PackFile:
        self._disk.make_directory(self._layout.tmp_dir)
        return self._files.begin()


def _deflating(
    forms: list[bytes], level: int, dictionary: Dictionary | None
) -> Callable[[], bytes]:
    """Return the call that compresses objects as one frame; it is no `partial`, since functools takes long to load."""
    return lambda: deflate(join(forms), level=level, dictionary=dictionary)


class Frame:
    """Objects that will stand in one frame."""

    __slots__ = ("links", "objects", "size")

    def __init__(self, links: bool) -> None:
        self.links = links
        self.objects: list[tuple[bytes, bytes]] = []
        self.size = 0


class Planned:
    """A frame that is being compressed; without objects a dictionary.

    Attributes:
        frame: its objects.
        offsets: where they stand in its raw content.
        raw: how long that is.
        sort: what the pack says of it.
    """

    __slots__ = ("frame", "offsets", "raw", "sort")

    def __init__(self, frame: Frame | None, offsets: list[int], raw: int, sort: int) -> None:
        self.frame = frame
        self.offsets = offsets
        self.raw = raw
        self.sort = sort


class OpenPack:
    """A pack that is being written."""

    def __init__(self, sink: Sink, level: int, frame_bytes: int, shared_bytes: int) -> None:
        self.sink = sink
        self.size = 0
        self.raw_bytes = 0
        self.places: list[FramePlace] = []
        self._ids: list[bytes] = []
        self._rows: list[tuple[int, int]] = []
        self._numbered = 0
        self._targets: dict[bytes, int] = {}
        self._body = Digester()
        self._whole = Digester()
        self._write(HEADER.pack(MAGIC, VERSION, level, frame_bytes, shared_bytes))

    @property
    def object_count(self) -> int:
        """How many objects are in it."""
        return len(self._ids)

    def has_room(self, planned: Planned) -> bool:
        """Tell whether one more frame is within what a pack may hold."""
        return (
            self.raw_bytes + planned.raw <= MAXIMUM_PACK_RAW_BYTES
            and len(self._ids) + len(planned.offsets) <= MAXIMUM_PACK_OBJECTS
            and len(self.places) < MAXIMUM_PACK_FRAMES
        )

    def forms(self, frame: Frame) -> list[bytes]:
        """Number the objects of the next frame, and return them in the form in which they are stored.

        Links lead to objects of the same frame, or of one without links. So a damaged frame takes along what names its
        own objects, but not all that follows.
        """
        first = self._numbered
        self._numbered += len(frame.objects)
        if not frame.links:
            self._targets.update((oid, n) for n, (oid, _) in enumerate(frame.objects, first))
            return [data for _, data in frame.objects]
        forms = []
        near: dict[bytes, int] = {}
        for number, (oid, data) in enumerate(frame.objects, first):
            forms.append(shorten(data, number, near, self._targets))
            near[oid] = number
        return forms

    def write_frame(self, planned: Planned, body: bytes) -> None:
        """Write the next of the frames whose objects are numbered, or a dictionary between them."""
        objects = [] if planned.frame is None else planned.frame.objects
        self._write(FRAME.pack(len(body), planned.raw, len(objects), planned.sort))
        self._rows += [(len(self.places), offset) for offset in planned.offsets]
        self._ids += [oid for oid, _ in objects]
        self.places.append(
            FramePlace(self.size, len(body), planned.raw, len(objects), planned.sort)
        )
        self._write(body)
        self.raw_bytes += planned.raw

    def finish(self) -> tuple[str, bytes]:
        """Write end and trailer, and return name and index."""
        self._write(FRAME.pack(0, 0, 0, 0))
        self._write(COUNTS.pack(len(self.places), len(self._ids)))
        check = self._body.digest()
        self._write(check)
        name = self._whole.digest().hex()
        ids = b"".join(self._ids)
        return name, encode_index(ids, self._rows, self.places, self.size, check)

    def _write(self, data: bytes) -> None:
        self.sink.write(data)
        self._body.update(data)
        self._whole.update(data)
        self.size += len(data)


TEMPORARY_PREFIX = "pack-"


class PackFile:
    """A pack that is being written to a file without its final name."""

    __slots__ = ("_disk", "_durable", "_fd", "_path", "name")

    def __init__(self, disk: Disk, folder: str, *, durable: bool) -> None:
        """Create the file.

        Raises:
            StorageError: the disk refuses.
        """
        self._disk = disk
        self._durable = durable
        self._path = os.path.join(folder, f"{TEMPORARY_PREFIX}{os.getpid()}-{os.urandom(6).hex()}")
        fd = disk.open(self._path, CREATE)
        if fd is None:
            raise errors.StorageError("a temporary name is taken", path=self._path)
        self._fd: int | None = fd
        self.name = ""

    def write(self, data: bytes) -> None:
        """Append bytes."""
        assert self._fd is not None
        write_all(self._disk, self._fd, data)

    def complete(self, name: str, index: bytes) -> None:
        """Sync and close the file, and write its index beside it, synced too."""
        fd, self._fd = self._fd, None
        if fd is not None:
            try:
                if self._durable:
                    self._disk.sync(fd)
            finally:
                self._disk.close(fd)
        create_file(self._disk, self._path + INDEX_SUFFIX, index, durable=self._durable)
        self.name = name

    def publish(self, base: str) -> None:
        """Give the file and its index their final path, to which the suffixes are added."""
        self._disk.rename(self._path + INDEX_SUFFIX, base + INDEX_SUFFIX)
        self._disk.rename(self._path, base + PACK_SUFFIX)

    def abandon(self) -> None:
        """Remove what was written and has no name yet."""
        fd, self._fd = self._fd, None
        if fd is not None:
            self._disk.close(fd)
        self._disk.remove(self._path + INDEX_SUFFIX)
        self._disk.remove(self._path)


class PackFiles:
    """Packs that are written one after the other and appear together."""

    __slots__ = ("_base_of", "_disk", "_durable", "_files", "_folder")

    def __init__(
        self, disk: Disk, folder: str, base_of: Callable[[str], str], *, durable: bool = True
    ) -> None:
        """Write nothing yet.

        Args:
            disk: where.
            folder: for the files while they have no name; on the file system of their final place.
            base_of: given a pack's name, returns its final path without the suffix.
            durable: whether a file is synced before it gets its name.
        """
        self._disk = disk
        self._folder = folder
        self._base_of = base_of
        self._durable = durable
        self._files: list[PackFile] = []

    def begin(self) -> PackFile:
        """Return the file of the next pack.

        Raises:
            StorageError: the disk refuses.
        """
        file = PackFile(self._disk, self._folder, durable=self._durable)
        self._files.append(file)
        return file

    def publish(self) -> list[str]:
        """Give the complete ones their names, durably, and return these.

        Raises:
            StorageError: the disk refuses; some may have got their names.
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
        for folder in folders if self._durable else ():
            self._disk.sync_directory(folder)
        return names

    def abandon(self) -> None:
        """Remove those without a name."""
        while self._files:
            self._files.pop().abandon()
