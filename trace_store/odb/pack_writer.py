"""Writing packs.

Rule: objects are kept in the order in which they are added, but those with links stand behind the others of their
frame, so that what they name has a number. When one pack is full the next is begun. The name of a pack is the hash of
its bytes, so it is known when all of them are written. Frames are compressed on threads while the next are collected,
and written in their order. Memory holds what shares a dictionary, twice, and the ids.
"""

from __future__ import annotations

from itertools import accumulate

from trace_store.layout import MAXIMUM_OBJECT_BYTES
from trace_store.odb.background import Background, processors
from trace_store.odb.checks import check_size
from trace_store.odb.deflate import MINIMUM_DICTIONARY_BYTES, Dictionary, deflate
from trace_store.odb.line_dictionary import lines_in_common
from trace_store.odb.open_pack import Frame, OpenPack, Planned
from trace_store.odb.pack import (
    DICTIONARY,
    FRAME,
    MAXIMUM_FRAME_OBJECTS,
    MAXIMUM_PACK_BYTES,
    NEEDS_DICTIONARY,
    SHORT_LINKS,
    TRAILER,
    join,
)
from trace_store.odb.pack_files import PackFile, PackFiles
from trace_store.odb.short_links import MARK, SPARED_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from trace_store.files import Disk
    from trace_store.layout import Layout
    from trace_store.odb.open_pack import Sink


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
