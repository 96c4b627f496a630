"""Writing packs.

Rule: objects are kept in the order in which they are added, but those with links stand behind the others of their
frame, so that what they name has a number. When one pack is full the next is begun. The name of a pack is the hash of
its bytes, so it is known when all of them are written. Memory holds what shares a dictionary, and the ids.
"""

from __future__ import annotations

from trace_store.layout import MAXIMUM_OBJECT_BYTES
from trace_store.odb.checks import check_size
from trace_store.odb.deflate import MINIMUM_DICTIONARY_BYTES, Dictionary, deflate
from trace_store.odb.line_dictionary import lines_in_common
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
from trace_store.odb.pack_files import PackFile, PackFiles
from trace_store.odb.pack_index import encode_index
from trace_store.odb.short_links import MARK, SPARED_BYTES, shorten
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
_LONGEST_SHORTENED_BYTES = 8 * 1024 * 1024
_MARK_WORTH = 24
_FEW_BYTES = 1024
"""Larger objects have a mark in so many bytes at most, so that those that are none make it little longer."""
_TAIL_BYTES = FRAME.size + TRAILER.size
_BLOB_HEADS = (b"\x92\xa4blob", b"\x93\xa4blob")


class _Frame:
    """Objects that will stand in one frame."""

    __slots__ = ("links", "objects", "size")

    def __init__(self, links: bool) -> None:
        self.links = links
        self.objects: list[tuple[bytes, bytes]] = []
        self.size = 0


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
    ) -> None:
        """Write nothing yet.

        Args:
            begin: returns the sink of the next pack.
            level: how hard to compress, 1 to 19.
            frame_bytes: how much content to put into a frame.
            shared_bytes: over how much content frames share a dictionary; 0 for none.
            maximum_bytes: how large a pack becomes at most.
        """
        self._begin = begin
        self._level = level
        self._frame_bytes = min(frame_bytes, MAXIMUM_WANTED_FRAME_BYTES)
        self._shared_bytes = shared_bytes
        self._maximum_bytes = maximum_bytes
        self._seen: set[bytes] = set()
        self._plain = _Frame(links=False)
        self._linked = _Frame(links=True)
        self._waiting: list[_Frame] = []
        self._waiting_bytes = 0
        self._pack: _OpenPack | None = None
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
        wanted = min(self._frame_bytes, LINKED_FRAME_BYTES) if links else self._frame_bytes
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
        self._complete()
        return self.names

    def _close(self, frame: _Frame) -> None:
        """Let a frame wait for being written; before one with links what these may lead to."""
        for closed in (self._plain, self._linked) if frame.links else (self._plain,):
            if closed.objects:
                self._waiting.append(closed)
                self._waiting_bytes += closed.size
        self._plain = _Frame(links=False)
        if frame.links:
            self._linked = _Frame(links=True)
        if self._waiting_bytes >= self._shared_bytes:
            self._write()

    def _write(self) -> None:
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        while waiting:
            pack = self._pack
            if pack is None:
                pack = self._pack = _OpenPack(
                    self._begin(), self._level, self._frame_bytes, self._shared_bytes
                )
            dictionary = self._write_dictionary(pack, waiting)
            done = 0
            for frame in waiting:
                if not self._write_frame(pack, frame, None if frame.links else dictionary):
                    self._complete()
                    break
                done += 1
            del waiting[:done]

    def _write_dictionary(self, pack: _OpenPack, waiting: list[_Frame]) -> Dictionary | None:
        """Write what the frames have in common, if they are many; returns None when they share nothing."""
        plain = [frame for frame in waiting if not frame.links]
        if not self._shared_bytes or len(plain) < 2:
            return None
        contents = [b"".join([data for _, data in frame.objects]) for frame in plain]
        content = lines_in_common(contents)
        if len(content) < MINIMUM_DICTIONARY_BYTES or not pack.has_room(len(content), 0):
            return None
        body = deflate(content, level=self._level)
        if not self._fits(pack, body):
            return None
        pack.write_frame(content, body, DICTIONARY)
        return Dictionary(content)

    def _write_frame(self, pack: _OpenPack, frame: _Frame, dictionary: Dictionary | None) -> bool:
        """Write a frame; False when the pack has no room for it."""
        raw = join(pack.forms(frame))
        if not pack.has_room(len(raw), len(frame.objects)):
            return False
        body = deflate(raw, level=self._level, dictionary=dictionary)
        if not self._fits(pack, body):
            return False
        sort = SHORT_LINKS if frame.links else 0
        if dictionary is not None:
            sort |= NEEDS_DICTIONARY
        pack.write_frame(raw, body, sort)
        pack.take(frame)
        return True

    def _fits(self, pack: _OpenPack, body: bytes) -> bool:
        """Tell whether a frame fits the pack; the first one with objects does in any case."""
        return (
            not pack.object_count
            or pack.size + FRAME.size + len(body) + _TAIL_BYTES <= self._maximum_bytes
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


class _OpenPack:
    """A pack that is being written."""

    def __init__(self, sink: Sink, level: int, frame_bytes: int, shared_bytes: int) -> None:
        self.sink = sink
        self.size = 0
        self.raw_bytes = 0
        self.places: list[FramePlace] = []
        self._ids: list[bytes] = []
        self._rows: list[tuple[int, int]] = []
        self._offsets: list[int] = []
        self._targets: dict[bytes, int] = {}
        self._body = Digester()
        self._whole = Digester()
        self._write(HEADER.pack(MAGIC, VERSION, level, frame_bytes, shared_bytes))

    @property
    def object_count(self) -> int:
        """How many objects are in it."""
        return len(self._ids)

    def has_room(self, size: int, objects: int) -> bool:
        """Tell whether one more frame is within what a pack may hold."""
        return (
            self.raw_bytes + size <= MAXIMUM_PACK_RAW_BYTES
            and len(self._ids) + objects <= MAXIMUM_PACK_OBJECTS
            and len(self.places) < MAXIMUM_PACK_FRAMES
        )

    def forms(self, frame: _Frame) -> list[bytes]:
        """Return the objects of the next frame in the form in which they are stored.

        Links lead to objects of the same frame, or of one without links. So a damaged frame takes along what names its
        own objects, but not all that follows.
        """
        if not frame.links:
            forms = [data for _, data in frame.objects]
        else:
            forms = []
            near: dict[bytes, int] = {}
            for number, (oid, data) in enumerate(frame.objects, len(self._ids)):
                forms.append(shorten(data, number, near, self._targets))
                near[oid] = number
        self._offsets = []
        offset = 4 * len(forms)
        for form in forms:
            self._offsets.append(offset)
            offset += len(form)
        return forms

    def write_frame(self, raw: bytes, body: bytes, sort: int) -> None:
        """Write one frame."""
        objects = 0 if sort == DICTIONARY else len(self._offsets)
        self._write(FRAME.pack(len(body), len(raw), objects, sort))
        self.places.append(FramePlace(self.size, len(body), len(raw), objects, sort))
        self._write(body)
        self.raw_bytes += len(raw)

    def take(self, frame: _Frame) -> None:
        """Note what is in the frame that was written last."""
        last = len(self.places) - 1
        if not frame.links:
            self._targets.update(
                (oid, number) for number, (oid, _) in enumerate(frame.objects, len(self._ids))
            )
        self._ids += [oid for oid, _ in frame.objects]
        self._rows += [(last, offset) for offset in self._offsets]

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
