"""Packs read from a stream: verified, written to `tmp/`, and published together.

Rule: a pack is self-delimiting, so packs follow each other without separators. Sizes are checked before data is kept,
and a pack is accepted only if its trailer matches its bytes.

Rule: nothing in a pack is trusted. Every object is hashed and checked. Purged objects are rejected. A pack whose
objects are all already packed here is not kept.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.base.frozen import value
from trace_store.base.oid import digest
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
from trace_store.odb.tombstones import drop_purged
from trace_store.odb.verify import PackVerifier

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from trace_store.base.oid import ObjectId
    from trace_store.disk.files import Disk
    from trace_store.disk.layout import Layout
    from trace_store.odb.database import ObjectDatabase
    from trace_store.odb.verify import PackedObject


class MemoryFile:
    """Bytes in memory with the interface of a file; the only descriptor is 0."""

    __slots__ = ("_data",)

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read_at(self, fd: int, offset: int, size: int) -> bytes:
        """Return up to `size` bytes at an offset."""
        return self._data[offset : offset + size]

    def size(self, fd: int) -> int:
        """Return the number of bytes."""
        return len(self._data)

    def close(self, fd: int) -> None:
        """Do nothing."""


def pack_of(data: bytes, where: str) -> Pack:
    """Return a pack over bytes in memory; its name is their hash.

    Raises:
        CorruptPackError: header or trailer is invalid.
    """
    return Pack(MemoryFile(data), where, digest(data).hex(), 0)


def read_packs(read: Callable[[int], bytes], where: str) -> Iterator[bytes]:
    """Yield the bytes of each pack until the stream ends.

    Args:
        read: returns up to the given number of bytes, b"" at the end.
        where: the stream's name in errors.

    Raises:
        CorruptPackError: something other than a whole pack follows.
    """
    number = 0
    while True:
        number += 1
        head = read_up_to(read, HEADER.size)
        if not head:
            return
        yield read_pack(read, head, f"pack {number} of {where}")


def read_pack(read: Callable[[int], bytes], head: bytes, where: str) -> bytes:
    """Return the bytes of a pack whose header has been read.

    Raises:
        CorruptPackError: it is not a pack, is truncated, or too large.
    """
    if len(head) < HEADER.size or HEADER.unpack(head)[:2] != (MAGIC, VERSION):
        raise errors.CorruptPackError(f"{where} is not a pack", path=where)
    pieces = [head]
    room = MAXIMUM_PACK_BYTES - HEADER.size
    frames = 0
    while True:
        frame = read_up_to(read, FRAME.size)
        compressed = FRAME.unpack(frame)[0] if len(frame) == FRAME.size else 0
        size = compressed or TRAILER.size
        room -= FRAME.size + size
        frames += 1
        if room < 0 or frames > MAXIMUM_PACK_FRAMES + 1:
            raise errors.CorruptPackError(f"{where} is too large", path=where)
        body = read_up_to(read, size)
        pieces += (frame, body)
        if len(frame) < FRAME.size or len(body) < size:
            raise errors.CorruptPackError(f"{where} is truncated", path=where)
        if not compressed:
            break
    data = b"".join(pieces)
    if digest(data[:-HASH_BYTES]) != data[-HASH_BYTES:]:
        raise errors.CorruptPackError(f"{where} does not match the hash in its trailer", path=where)
    return data


def read_up_to(read: Callable[[int], bytes], size: int) -> bytes:
    """Return `size` bytes, or fewer at the end of the stream."""
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


@value
class ReceivedPack:
    """The result of receiving a pack.

    Attributes:
        name: the pack's name.
        object_count: how many objects it has.
        known: whether all of them are already packed here.
    """

    name: str
    object_count: int
    known: bool


class PackReceiver:
    """Receives packs for a repository; `publish` makes them durable and visible."""

    def __init__(
        self, disk: Disk, layout: Layout, database: ObjectDatabase, *, leave_out: bool = False
    ) -> None:
        """Create a receiver.

        Args:
            disk: the disk.
            layout: the repository's paths.
            database: the repository's objects.
            leave_out: whether to rewrite a pack without its purged objects instead of rejecting it.
        """
        self._leave_out = leave_out
        self._disk = disk
        self._layout = layout
        self._database = database
        database.refresh()
        database.required.clear()
        self._aside: set[str] = set()
        self._files = PackFiles(disk, layout.tmp_dir, layout.pack_base)

    def add(
        self, data: bytes, where: str, each: Callable[[PackedObject], None] | None = None
    ) -> ReceivedPack:
        """Verify a pack and write it to `tmp/`.

        Args:
            data: its bytes.
            where: its name in errors.
            each: called with every object, in order.

        Raises:
            CorruptPackError: the pack is invalid.
            PurgedError: it has an object that was purged here, unless `leave_out`.
            StorageError: it cannot be written.
        """
        pack = pack_of(data, where)
        look = PackVerifier(pack)
        count = 0
        known: set[ObjectId] | None = set()
        purged, texts = self._database.purged, self._database.purged_texts
        has_purged = False
        for packed in look.objects():
            count += 1
            if (purged or texts) and self._is_purged(packed):
                has_purged = True
            elif known is not None and self._database.is_packed(packed.oid):
                known.add(packed.oid)
            else:
                known = None
            if each is not None:
                each(packed)
        if known is not None:
            self._database.required |= known  # objects of later packs may link to them
        elif pack.name not in self._aside:
            if has_purged:
                self._write_without(self._database.purged, pack)
                self._aside.add(pack.name)
            else:
                self._write(pack.name, data, look.index())
        return ReceivedPack(pack.name, count, known is not None)

    def publish(self) -> list[str]:
        """Add the received packs to the repository; return the names of new packs."""
        if self._aside:
            self._disk.make_directory(self._layout.objects_dir)
            self._disk.make_directory(self._layout.pack_dir)
            # The process that created the folders may have died before syncing their names.
            self._disk.sync_directory(self._layout.objects_dir)
            self._disk.sync_directory(self._layout.root)
        names = self._files.publish()
        self._aside.clear()
        self._database.refresh()
        return names

    def discard(self) -> None:
        """Remove the received packs that were not published."""
        self._files.discard()
        self._aside.clear()

    def _is_purged(self, packed: PackedObject) -> bool:
        """Return True if an object is purged; a purged text in it creates a tombstone."""
        objects = {packed.oid: packed.data}
        if not self._leave_out:
            self._database.check_not_purged(objects)
            return False
        return not drop_purged(self._database, objects)

    def _write_without(self, purged: frozenset[bytes], pack: Pack) -> None:
        """Rewrite a pack without some objects."""
        self._disk.make_directory(self._layout.tmp_dir)
        encoder = PackEncoder(self._files.begin)
        for packed in PackVerifier(pack).objects():
            if packed.oid not in purged:
                encoder.add(packed.oid, packed.data)
        encoder.finish()

    def _write(self, name: str, data: bytes, index: bytes) -> None:
        self._disk.make_directory(self._layout.tmp_dir)
        file = self._files.begin()
        file.write(data)
        file.complete(name, index)
        self._aside.add(name)
