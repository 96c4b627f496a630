"""Packs from a stream: checked, written to `tmp/`, published together.

Rule: a pack says itself where it ends, so nothing stands between two of them. What is read is bounded before it is
kept, and a pack is returned only when its trailer is that of its bytes.

Rule: nothing of a pack is believed. What is kept was read to its end, each object of it hashed and taken for what it
is; what was purged here is not taken, however it comes. A pack whose objects all are in packs here already is not kept,
since it would add nothing.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.odb.pack import (
    FRAME,
    HASH_BYTES,
    HEADER,
    MAGIC,
    MAXIMUM_PACK_BYTES,
    MAXIMUM_PACK_FRAMES,
    TRAILER,
    VERSION,
    Pack,
)
from trace_store.odb.pack_writer import PackEncoder, PackFiles
from trace_store.odb.tombstones import admit
from trace_store.odb.verify import Examination
from trace_store.oid import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from trace_store.files import Disk
    from trace_store.layout import Layout
    from trace_store.odb.database import ObjectDatabase
    from trace_store.odb.verify import PackedObject
    from trace_store.oid import ObjectId


class MemoryFile:
    """Bytes at hand, read as a file; its only descriptor is 0."""

    __slots__ = ("_data",)

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read_at(self, fd: int, offset: int, size: int) -> bytes:
        """Return up to `size` bytes from an offset."""
        return self._data[offset : offset + size]

    def size(self, fd: int) -> int:
        """Return how many bytes there are."""
        return len(self._data)

    def close(self, fd: int) -> None:
        """Do nothing."""


def pack_of(data: bytes, where: str) -> Pack:
    """Return the pack with these bytes; its name is their hash.

    Raises:
        CorruptPackError: they do not begin and end like a pack.
    """
    return Pack(MemoryFile(data), where, digest(data).hex(), 0)


def read_packs(read: Callable[[int], bytes], where: str) -> Iterator[bytes]:
    """Yield the bytes of each pack until the stream ends; none is there in an empty one.

    Args:
        read: returns up to so many bytes, and none at the end.
        where: what the stream is called in errors.

    Raises:
        CorruptPackError: something else than a whole pack follows.
    """
    number = 0
    while True:
        number += 1
        head = read_exactly(read, HEADER.size)
        if not head:
            return
        yield read_pack(read, head, f"pack {number} of {where}")


def read_pack(read: Callable[[int], bytes], head: bytes, where: str) -> bytes:
    """Return the bytes of a pack whose header was read already.

    Raises:
        CorruptPackError: it is no pack, is cut, or is larger than a pack may be.
    """
    if len(head) < HEADER.size or HEADER.unpack(head)[:2] != (MAGIC, VERSION):
        raise errors.CorruptPackError(f"{where} does not begin like a pack", path=where)
    pieces = [head]
    room = MAXIMUM_PACK_BYTES - HEADER.size
    frames = 0
    while True:
        frame = read_exactly(read, FRAME.size)
        compressed = FRAME.unpack(frame)[0] if len(frame) == FRAME.size else 0
        size = compressed or TRAILER.size
        room -= FRAME.size + size
        frames += 1
        if room < 0 or frames > MAXIMUM_PACK_FRAMES + 1:
            raise errors.CorruptPackError(f"{where} is larger than a pack may be", path=where)
        body = read_exactly(read, size)
        pieces += (frame, body)
        if len(frame) < FRAME.size or len(body) < size:
            raise errors.CorruptPackError(f"{where} ends before it is complete", path=where)
        if not compressed:
            break
    data = b"".join(pieces)
    if digest(data[:-HASH_BYTES]) != data[-HASH_BYTES:]:
        raise errors.CorruptPackError(f"{where} has another hash than its trailer says", path=where)
    return data


def read_exactly(read: Callable[[int], bytes], size: int) -> bytes:
    """Return `size` bytes, or fewer when the stream ends."""
    data = read(size)
    if len(data) == size or not data:
        return data
    pieces = [data]
    left = size - len(data)
    while left:
        data = read(left)
        if not data:
            break
        pieces.append(data)
        left -= len(data)
    return b"".join(pieces)


class ReceivedPack:
    """What was received.

    Attributes:
        name: the pack's name.
        object_count: how many objects it holds.
        known: whether all of them are in packs here already.
    """

    __slots__ = ("known", "name", "object_count")

    def __init__(self, name: str, object_count: int, known: bool) -> None:
        self.name = name
        self.object_count = object_count
        self.known = known


class PackReceiver:
    """Takes packs for a repository; `keep` makes them durable and visible."""

    def __init__(
        self, disk: Disk, layout: Layout, database: ObjectDatabase, *, leave_out: bool = False
    ) -> None:
        """Take nothing yet.

        Args:
            disk: where the repository is.
            layout: likewise.
            database: its objects.
            leave_out: whether a pack with purged objects is written anew without them, rather than refused.
        """
        self._leave_out = leave_out
        self._disk = disk
        self._layout = layout
        self._database = database
        database.refresh()
        database.relied_on.clear()
        self._aside: set[str] = set()
        self._files = PackFiles(disk, layout.tmp_dir, layout.pack_base)

    def take(
        self, data: bytes, where: str, each: Callable[[PackedObject], None] | None = None
    ) -> ReceivedPack:
        """Check a pack and write it aside.

        Args:
            data: all of its bytes.
            where: what it is called in errors.
            each: shown every object, in order.

        Raises:
            CorruptPackError: something is wrong with it.
            PurgedError: an object in it was purged here, and is not to be left out.
            StorageError: the disk refuses.
        """
        pack = pack_of(data, where)
        look = Examination(pack)
        count = 0
        known: set[ObjectId] | None = set()
        purged, texts = self._database.purged, self._database.purged_texts
        has_purged = False
        for found in look.objects():
            count += 1
            if (purged or texts) and self._is_purged(found):
                has_purged = True
            elif known is not None and self._database.is_packed(found.oid):
                known.add(found.oid)
            else:
                known = None
            if each is not None:
                each(found)
        if known is not None:
            self._database.relied_on |= known  # what comes with it may lead to them
        elif pack.name not in self._aside:
            if has_purged:
                self._write_without(self._database.purged, pack)
                self._aside.add(pack.name)
            else:
                self._write(pack.name, data, look.index())
        return ReceivedPack(pack.name, count, known is not None)

    def keep(self) -> list[str]:
        """Make what was taken part of the repository, and return the names of the packs that are new here."""
        if self._aside:
            self._disk.make_directory(self._layout.objects_dir)
            self._disk.make_directory(self._layout.pack_dir)
            # Whoever made one of them may have been killed before its name was durable.
            self._disk.sync_directory(self._layout.objects_dir)
            self._disk.sync_directory(self._layout.root)
        names = self._files.publish()
        self._aside.clear()
        self._database.refresh()
        return names

    def abandon(self) -> None:
        """Remove what was taken and not kept."""
        self._files.abandon()
        self._aside.clear()

    def _is_purged(self, found: PackedObject) -> bool:
        """Return True if an object was purged here, or holds a purged text and has a tombstone from now on."""
        objects = {found.oid: found.data}
        if not self._leave_out:
            self._database.refuse_purged(objects)
            return False
        return not admit(self._database, objects)

    def _write_without(self, purged: frozenset[bytes], pack: Pack) -> None:
        """Write what a pack holds but for some objects."""
        self._disk.make_directory(self._layout.tmp_dir)
        encoder = PackEncoder(self._files.begin)
        for found in Examination(pack).objects():
            if found.oid not in purged:
                encoder.add(found.oid, found.data)
        encoder.finish()

    def _write(self, name: str, data: bytes, index: bytes) -> None:
        self._disk.make_directory(self._layout.tmp_dir)
        file = self._files.begin()
        file.write(data)
        file.complete(name, index)
        self._aside.add(name)
