"""The object database of a repository on disk.

Rule: an object is looked for in the journals, then in the packs, then among the loose files; what is not found is
looked for once more after all three were listed again, and last of all among what was taken out of them, in
`quarantine/`. A copy that is damaged, or that the disk refuses, hides no sound one, wherever and whenever that was
written. Every read checks the hash. What was purged is not read, even where its bytes came back.
"""

from __future__ import annotations

from itertools import chain, islice

from trace_store import errors, odb
from trace_store.odb.checks import MAXIMUM_CANDIDATES, check_hash, check_prefix
from trace_store.oid import ObjectId, digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from trace_store.files import Disk
    from trace_store.journal.journal import Journal
    from trace_store.layout import Layout
    from trace_store.odb.fingerprints import Fingerprint


OF_OLD = -1
"""A generation of journals before all others."""
BATCH_OBJECTS = 512
BATCH_BYTES = 4 * 1024 * 1024
"""How much `read_many` reads ahead."""
RECENT_BYTES = 8 * 1024 * 1024
"""How much of what it has read is at hand, should it be asked for again."""


class ObjectDatabase:
    """Objects in journals, packs and loose files."""

    __slots__ = (
        *("_disk", "_durable", "_journal", "_layout", "_loose", "_mutex", "_packs", "_purged"),
        *("_quarantine", "_settled", "_tombstones", "looked_at", "relied_on"),
    )

    def __init__(
        self,
        disk: Disk,
        layout: Layout,
        journal: Journal,
        mutex: AbstractContextManager[object],
        *,
        durable: bool = True,
    ) -> None:
        self._disk = disk
        self._layout = layout
        self._journal = journal
        self._mutex = mutex
        self._durable = durable
        self._packs: odb.packs.Packs | None = None
        self._loose: odb.loose.LooseObjects | None = None
        self._tombstones: odb.tombstones.Tombstones | None = None
        self._purged: frozenset[bytes] | None = None
        self._quarantine: odb.quarantine.Quarantine | None = None
        self._settled: frozenset[str] = frozenset()
        """Packs whose names this process has made durable."""
        self.looked_at = 1
        """What was seen to be here is here still while the journals have this generation; their first one is 1."""
        self.relied_on: set[ObjectId] = set()
        """What is needed by the next transaction though it does not name it."""

    @property
    def purged(self) -> frozenset[bytes]:
        """The ids of the objects that were purged, as far as this handle knows; `refresh` looks again."""
        return self.look_for_tombstones() if self._purged is None else self._purged

    @property
    def tombstones(self) -> odb.tombstones.Tombstones:
        """What stands for purged objects."""
        if self._tombstones is None:
            self._tombstones = odb.tombstones.Tombstones(self._disk, self._layout)
            self._purged = self._tombstones.oids
        return self._tombstones

    @property
    def purged_texts(self) -> Sequence[Fingerprint]:
        """The fingerprints of texts that were purged, as far as this handle knows."""
        if self._purged is None:
            self.look_for_tombstones()
        return () if self._tombstones is None else self._tombstones.texts

    @property
    def packs(self) -> odb.packs.Packs:
        """Those in packs, which a process that finds all it asks for in a journal does not come to."""
        if self._packs is None:
            self._packs = odb.packs.Packs(self._disk, self._layout)
            self._rely()
        return self._packs

    @property
    def loose(self) -> odb.loose.LooseObjects:
        """Those in files of their own."""
        if self._loose is None:
            self._loose = odb.loose.LooseObjects(self._disk, self._layout, durable=self._durable)
            self._rely()
        return self._loose

    @property
    def quarantine(self) -> odb.quarantine.Quarantine:
        """What was taken out of packs and loose files, and can be brought back for a while."""
        if self._quarantine is None:
            self._quarantine = odb.quarantine.Quarantine(self._disk, self._layout)
        return self._quarantine

    def close(self) -> None:
        """Close all files of packs."""
        if self._packs is not None:
            self._packs.close()
        if self._quarantine is not None:
            self._quarantine.close()

    def read(self, oid: bytes) -> bytes:
        """Return an object's canonical bytes, hash-checked.

        Raises:
            ObjectNotFoundError: it is not here.
            PurgedError: it was purged, which is one of those.
            CorruptObjectError: it is here, but every copy is damaged.
            CorruptPackError: it is not found, and a pack that may hold it cannot be read.
            StorageError: the disk refuses the only copy.
        """
        with self._mutex:
            self._check_not_purged(oid)
            data, failure = self._look(oid)
            if data is None:
                self._journal.refresh()
                self.packs.refresh()
                self.look_for_tombstones()
                self._check_not_purged(oid)
                data, again = self._look(oid)
                failure = again or failure
            if data is None and self.packs.repair_indexes():
                data, again = self._look(oid)
                failure = again or failure
            if data is None:
                data = self.quarantine.read(oid)
                if data is not None:
                    self.looked_at = OF_OLD  # whoever names it has to bring it back
            if data is not None:
                return data
            if failure is not None:
                raise failure
            for error in self.packs.damaged.values():
                raise errors.CorruptPackError(
                    f"object {oid.hex()} is not found, and {error}"
                ) from error
        raise errors.ObjectNotFoundError(f"no object {oid.hex()}", oid=ObjectId(oid))

    def read_many(self, oids: Iterable[bytes]) -> Iterator[tuple[ObjectId, bytes]]:
        """Yield (id, bytes) in the order asked for, hash-checked; raises as `read` does.

        Made for many: what stands together in packs is read together, so that an order near that of writing is the
        cheapest. At most some MiB are held beyond what `read` holds.
        """
        batches = self._read_batches(oids)
        return (
            (ObjectId(oid), data) for batch in batches for oid, data in zip(*batch, strict=True)
        )

    def read_data(self, oids: Iterable[bytes]) -> Iterator[bytes]:
        """Yield what `read_many` does, without the ids: for whoever knows in what order he asked."""
        return chain.from_iterable(data for _, data in self._read_batches(oids))

    def contains(self, oid: bytes) -> bool:
        """Tell whether it is here, unread; what was purged is not, nor what is in quarantine, which `read` finds."""
        with self._mutex:
            if oid in self.purged:
                return False
            if self._has(oid):
                return True
            self._journal.refresh()
            return (self.packs.refresh() and self.packs.contains(oid)) or self._journal.contains(
                oid
            )

    def is_packed(self, oid: bytes) -> bool:
        """Tell whether a pack has a sound copy; when it has, that is on stable storage.

        Raises:
            StorageError: the process has no descriptor left, or the disk refuses a sync.
        """
        with self._mutex:
            try:
                found = self.packs.read(oid) is not None
            except errors.FormatError:
                return False
            if found and self._durable:
                self._settle()
            return found

    def _settle(self) -> None:
        """Make the names of all packs durable: who published one may have been killed before it did."""
        names = self.packs.names()
        if not self._settled.issuperset(names):
            for folder in (self._layout.pack_dir, self._layout.objects_dir, self._layout.root):
                self._disk.sync_directory(folder)
            self._settled = frozenset(names)

    def refresh(self) -> None:
        """List journals, packs and tombstones again; what is not found is looked for anew in any case."""
        with self._mutex:
            self._journal.refresh()
            self.packs.refresh()
            self.look_for_tombstones()

    def returned(self) -> list[ObjectId]:
        """Return the purged objects whose bytes are here, as after git has merged a branch that had them; sorted."""
        with self._mutex:
            return sorted(ObjectId(oid) for oid in self.purged if self._has(oid))

    def purged_key(self) -> str:
        """Return a short name of what was purged, for caches of what is shown in its place; "" when nothing was."""
        return self.tombstones.key() if self.purged else ""

    def refuse_purged(self, objects: Mapping[ObjectId, bytes]) -> None:
        """Accept objects to be written, none of which was purged or holds a purged text, as far as this handle knows.

        Raises:
            PurgedError: one was, or does; what is here already may hold a text.
        """
        for oid in objects if self.purged else ():
            self._check_not_purged(oid)
        if self.purged_texts:
            for oid, text in odb.tombstones.with_purged_text(self, objects).items():
                raise odb.tombstones.text_error(oid, text)

    def write(self, data: bytes) -> ObjectId:
        """Store canonical object bytes as a loose object and return their id.

        Raises:
            InvalidInputError: they are too many.
            PurgedError: they were purged.
        """
        with self._mutex:
            self.look_for_tombstones()
            if self.purged or self.purged_texts:
                self.refuse_purged({ObjectId(digest(data)): data})
            return self.loose.write(data)

    def resolve_prefix(self, prefix: str) -> list[ObjectId]:
        """Return the ids that begin with these hex digits, at most 16, sorted.

        Raises:
            InvalidInputError: not 4 to 64 lower-case hex digits.
        """
        check_prefix(prefix)
        with self._mutex:
            self.refresh()
            begins = bytes.fromhex(prefix[: len(prefix) // 2 * 2])
            unsealed = [oid for oid in self._journal.oids() if oid.startswith(begins)]
            found = {ObjectId(oid) for oid in unsealed if oid.hex().startswith(prefix)}
            found.update(self.packs.resolve_prefix(prefix))
            found.update(self.loose.resolve_prefix(prefix))
            found.update(ObjectId(o) for o in self.purged if o.hex().startswith(prefix))
        return sorted(found)[:MAXIMUM_CANDIDATES]

    def iterate(self) -> Iterator[ObjectId]:
        """Yield the id of every object once, but of those that were purged: journals, then packs, then loose files."""
        with self._mutex:
            self.refresh()
            listed = list(dict.fromkeys(ObjectId(oid) for oid in self._journal.oids()))
            listed += self.packs.iterate()
            listed += self.loose.iterate()
            purged = self.purged
        found = dict.fromkeys(listed)
        yield from [oid for oid in found if oid not in purged] if purged else found

    def _rely(self) -> None:
        if not self._journal.generation:
            self.looked_at = OF_OLD  # before the journals were looked at

    def _has(self, oid: bytes) -> bool:
        return self._journal.contains(oid) or self.packs.contains(oid) or self.loose.contains(oid)

    def look_for_tombstones(self) -> frozenset[bytes]:
        """Look whether something was purged since the last look, and return the ids of all that was."""
        if self._tombstones is not None:
            self._tombstones.refresh()
            self._purged = self._tombstones.oids
        elif self._disk.exists(self._layout.tombstones_dir):
            self._purged = self.tombstones.oids
        else:
            self._purged = frozenset()
        return self._purged

    def _check_not_purged(self, oid: bytes) -> None:
        if oid in self.purged:
            found = self.tombstones.find(oid) or odb.tombstones.Tombstone(ObjectId(oid))
            raise found.error()

    def _read_quickly(self, oids: list[bytes]) -> list[bytes | None]:
        """Return the bytes of the first of these, at least one; None stands for what `read` has to look for."""
        self._journal.contains(b"")  # raises when the handle is closed
        found = self.packs.read_quickly(oids, BATCH_BYTES)
        if self.purged:
            there = zip(oids, found, strict=False)
            found = [None if oid in self.purged else data for oid, data in there]
        if not all(found):
            read = self._journal.read
            for at, data in enumerate(found):
                if data is None and oids[at] not in self.purged:
                    data = read(oids[at])
                    if data is not None and digest(data) == oids[at]:
                        found[at] = data
        return found

    def _read_batches(self, oids: Iterable[bytes]) -> Iterator[tuple[list[bytes], list[bytes]]]:
        """Yield ids and bytes of some objects after the other, in the order asked for.

        What is asked for twice within some MiB, as an agent reads a file again, is read once.
        """
        asked = iter(oids)
        recent: dict[bytes, bytes | None] = {}
        held = 0
        while batch := list(islice(asked, BATCH_OBJECTS)):
            while batch:
                wanted = [oid for oid in dict.fromkeys(batch) if oid not in recent]
                found: list[bytes | None] = []
                if wanted:
                    with self._mutex:
                        found = self._read_quickly(wanted)
                recent.update(zip(wanted, found, strict=False))
                there = list(map(recent.get, batch))
                if None in there:  # what cannot be read ends it, after what stands before it
                    del there[there.index(None) :]
                done = [data for data in there if data is not None] or [self.read(batch[0])]
                yield batch[: len(done)], done
                del batch[: len(done)]
                held += sum(map(len, filter(None, found)))
                if held > RECENT_BYTES:
                    recent, held = {}, 0

    def _look(self, oid: bytes) -> tuple[bytes | None, errors.TraceError | None]:
        """Return a sound copy, or what is wrong with the last of those there are."""
        failure: errors.TraceError | None = None
        for place in (self._in_journal, self._in_packs, self._in_files):
            try:
                data = place(oid)
                if data is not None:
                    return data, None
            except (errors.CorruptObjectError, errors.StorageError) as error:
                failure = error
        return None, failure

    def _in_packs(self, oid: bytes) -> bytes | None:
        return self.packs.read(oid)

    def _in_files(self, oid: bytes) -> bytes | None:
        return self.loose.read(oid)

    def _in_journal(self, oid: bytes) -> bytes | None:
        data = self._journal.read(oid)
        return None if data is None else check_hash(oid, data, "a journal")
