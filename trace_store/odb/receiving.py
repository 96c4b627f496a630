"""Packs from elsewhere: checked, written aside, and made visible all together.

Rule: nothing of a pack is believed. What is kept was read to its end, each object of it hashed and taken for what it
is; what was purged here is not taken, however it comes. A pack whose objects all are in packs here already is not kept,
since it would add nothing.
"""

from __future__ import annotations

from trace_store.odb.examining import Examination
from trace_store.odb.pack_files import PackFiles
from trace_store.odb.pack_stream import pack_of
from trace_store.odb.pack_writer import PackEncoder
from trace_store.odb.purged_content import admit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from trace_store.files import Disk
    from trace_store.layout import Layout
    from trace_store.odb.database import ObjectDatabase
    from trace_store.odb.examining import PackedObject
    from trace_store.odb.pack import Pack
    from trace_store.oid import ObjectId


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
