"""Objects removed by gc, kept for a while in `quarantine/<time>/objects/…`.

Rule: files move in and out under the journal's lock, and get their new name durably before they lose the old one, so an
object is always in at least one place. Each batch has its own folder, laid out like a repository. A `.gitignore` in the
folder hides it from git.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator

from trace_store import errors
from trace_store.base.oid import ObjectId, hash_object
from trace_store.disk.files import (
    Disk,
    check_folders,
    create_file,
    make_durable_directory,
    read_file,
)
from trace_store.disk.layout import INDEX_SUFFIX, PACK_SUFFIX, Layout
from trace_store.objects.codec import is_canonical
from trace_store.odb.compression import Dictionary, decompress
from trace_store.odb.delta_links import expand_links
from trace_store.odb.index_scan import IndexContent
from trace_store.odb.loose import LooseObjects
from trace_store.odb.pack import (
    DICTIONARY,
    FLAGS,
    FRAME,
    HEADER,
    MAXIMUM_FRAME_BYTES,
    MAXIMUM_FRAME_OBJECTS,
    MAXIMUM_PACK_RAW_BYTES,
    NEEDS_DICTIONARY,
    SHORT_LINKS,
    FramePlace,
    PackWalk,
)
from trace_store.odb.packs import Packs, pack_names

Found = tuple[ObjectId, bytes]


IGNORED_NAME = ".gitignore"
IGNORED = b"*\n"


class QuarantineBatch:
    """The files quarantined at one time.

    Attributes:
        name: the folder's name, the time in milliseconds.
        layout: the paths of its files.
    """

    __slots__ = ("layout", "loose", "name", "packs")

    def __init__(self, disk: Disk, layout: Layout, name: str) -> None:
        self.name = name
        self.layout = Layout(os.path.join(layout.quarantine_dir, name))
        self.packs = Packs(disk, self.layout)
        self.loose = LooseObjects(disk, self.layout)

    @property
    def time(self) -> int:
        """When it was quarantined, in milliseconds."""
        return int(self.name)


class Quarantine:
    """All quarantined batches."""

    __slots__ = ("_disk", "_layout", "_takings")

    def __init__(self, disk: Disk, layout: Layout) -> None:
        self._disk = disk
        self._layout = layout
        self._takings: dict[str, QuarantineBatch] = {}

    def batches(self) -> list[QuarantineBatch]:
        """Return the current batches, oldest first."""
        folders, _ = self._disk.scan(self._layout.quarantine_dir)
        names = [name for name in folders if name.isascii() and name.isdecimal()]
        for name in self._takings.keys() - set(names):
            self._takings.pop(name).packs.close()
        for name in sorted(names, key=int):
            if name not in self._takings:
                taking = QuarantineBatch(self._disk, self._layout, name)
                try:
                    check_folders(self._disk, self._layout.root, taking.layout.pack_file(name))
                except errors.StorageError:
                    continue  # a symbolic link could lead outside of the repository
                self._takings[name] = taking
        return list(self._takings.values())

    def read(self, oid: bytes) -> bytes | None:
        """Return an object's bytes, hash-checked, or None if there is no sound copy."""
        for taking in self.batches():
            taking.packs.refresh()
            for place in (taking.packs.read, taking.loose.read):
                try:
                    data = place(oid)
                except (errors.FormatError, errors.StorageError):
                    continue
                if data is not None:
                    return data
        return None

    def take(self, time: int, packs: Iterable[str], loose: Iterable[ObjectId]) -> QuarantineBatch:
        """Move packs and loose objects into a new batch and return it.

        All objects that remain needed must be in other durable packs. Called under the journal's lock; `time` is in
        milliseconds.

        Raises:
            StorageError: a move failed; every file is in at least one of both places.
        """
        disk, folder = self._disk, self._layout.quarantine_dir
        ignored = os.path.join(folder, IGNORED_NAME)
        make_durable_directory(disk, folder)
        if read_file(disk, ignored) != IGNORED:
            disk.remove(ignored)
            create_file(disk, ignored, IGNORED, durable=False)
        while disk.stat(os.path.join(folder, str(time))) is not None:
            time += 1
        taking = QuarantineBatch(disk, self._layout, str(time))
        _move(disk, self._layout, taking.layout, packs, loose)
        self._takings[taking.name] = taking
        return taking

    def restore(self) -> None:
        """Restore everything durably; called under the journal's lock.

        A batch is closed under links, except for links to objects that stayed, so nothing needs to be traversed.
        """
        for taking in self.batches():
            packs = pack_names(self._disk, taking.layout)
            _move(self._disk, taking.layout, self._layout, packs, taking.loose.iterate())
            taking.packs.refresh()

    def close(self) -> None:
        """Close all files."""
        for taking in self._takings.values():
            taking.packs.close()
        self._takings.clear()


def _move(
    disk: Disk,
    source: Layout,
    target: Layout,
    packs: Iterable[str],
    loose: Iterable[ObjectId],
) -> None:
    """Move packs with their indexes, and loose objects.

    All new names are durable before old ones go.
    """
    names = [
        (source.pack_base(name) + suffix, target.pack_base(name) + suffix)
        for name in packs
        for suffix in (INDEX_SUFFIX, PACK_SUFFIX)  # a pack without an index is still complete
    ]
    names += [(source.loose_file(o.hex()), target.loose_file(o.hex())) for o in loose]
    names = [(old, new) for old, new in names if disk.stat(old) is not None]
    for folder in sorted({os.path.dirname(new) for _, new in names}):
        make_durable_directory(disk, folder)
    for old, new in names:
        if not disk.link(old, new) and disk.stat(new) is None:
            disk.rename(old, new)  # the file system has no links
    for folder in sorted({os.path.dirname(new) for _, new in names}):
        disk.sync_directory(folder)
    for old, _ in names:
        disk.remove(old)


_ZSTD_MAGIC = struct.pack("<I", 0xFD2FB528)


def recover_objects(data: bytes, index: bytes | None) -> Iterator[tuple[ObjectId, bytes]]:
    """Yield (id, bytes) of the objects that can be recovered from a pack.

    An object may come twice.

    Args:
        data: the remaining bytes of the pack.
        index: the bytes of its index, if any.
    """
    content = index_content(index)
    if content is None:
        yield from _by_search(data)
        return
    yield from _by_index(data, content)
    known = {oid for oid, _, _ in content.rows}
    yield from (item for item in _by_search(data) if item[0] in known)


def index_content(index: bytes | None) -> IndexContent | None:
    """Return the parsed index, or None if it is missing or damaged."""
    try:
        return None if index is None else IndexContent(index)
    except errors.FormatError:
        return None


class _Bytes:
    """The bytes of a pack, with the interface for decoding frames."""

    __slots__ = ("_data", "_left")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._left = MAXIMUM_PACK_RAW_BYTES

    def decode(self, place: FramePlace, dictionary: Dictionary | None = None) -> bytes:
        """Return the content of a frame.

        Raises:
            CorruptObjectError: it is damaged, or all frames together are too large.
        """
        self._left -= place.raw
        if self._left < 0 or place.raw > MAXIMUM_FRAME_BYTES:
            raise errors.CorruptObjectError("the pack declares too much content")
        data = self._data[place.offset : place.offset + place.compressed]
        return decompress(data, place.raw, dictionary=dictionary)


def _by_index(data: bytes, content: IndexContent) -> Iterator[Found]:
    rows = sorted(content.rows, key=lambda row: row[1:])
    ids = [oid for oid, _, _ in rows]
    frames: dict[int, list[tuple[int, int]]] = {}
    for ordinal, (_, frame, offset) in enumerate(rows):
        frames.setdefault(frame, []).append((ordinal, offset))
    pack = _Bytes(data)
    dictionary: Dictionary | None = None
    for number, place in enumerate(content.places):
        try:
            if place.flags == DICTIONARY:
                dictionary = None
                dictionary = Dictionary(pack.decode(place))
                continue
            raw = pack.decode(place, dictionary if place.flags & NEEDS_DICTIONARY else None)
        except errors.CorruptObjectError:
            continue
        objects = frames.get(number, [])
        ends = [offset for _, offset in objects[1:]] + [len(raw)]
        for (ordinal, start), end in zip(objects, ends, strict=True):
            piece = raw[start:end]
            try:
                if place.flags & SHORT_LINKS:
                    piece = expand_links(piece, ordinal, ids.__getitem__)
            except errors.CorruptObjectError:
                continue
            if hash_object(piece) == ids[ordinal]:
                yield ids[ordinal], piece


def _by_search(data: bytes) -> Iterator[Found]:
    """Yield the valid objects of all frames that a search finds."""
    walk = PackWalk(_Bytes(data))
    for place in _search(data):
        if place is None:
            walk = PackWalk(
                _Bytes(data)
            )  # links are distances, so those that do not cross the gap are right
            continue
        try:
            objects = walk.objects(place)
        except errors.FormatError:
            continue
        yield from ((oid, content) for oid, _, content in objects if _is_object(content))


def _is_object(data: bytes) -> bool:
    try:
        return is_canonical(data)
    except errors.TraceError:
        return False


def _search(data: bytes) -> Iterator[FramePlace | None]:
    """Yield the positions of frames; None marks a possible gap."""
    at = HEADER.size
    while at + FRAME.size < len(data):
        place = _place_at(data, at)
        if place is not None:
            yield place
            at = place.offset + place.compressed
            continue
        if not data[at : at + FRAME.size].strip(b"\0"):
            return  # the end of a pack
        magic = data.find(_ZSTD_MAGIC, at + FRAME.size + 1)
        if magic < 0:
            return
        yield None
        at = magic - FRAME.size


def _place_at(data: bytes, at: int) -> FramePlace | None:
    compressed, raw, held, flags = FRAME.unpack_from(data, at)
    start = at + FRAME.size
    sound = (
        0 < compressed <= len(data) - start
        and raw <= MAXIMUM_FRAME_BYTES
        and held <= MAXIMUM_FRAME_OBJECTS
        and flags in FLAGS
        and data.startswith(_ZSTD_MAGIC, start)
    )
    return FramePlace(start, compressed, raw, held, flags) if sound else None
