"""The object database of a repository on disk.

Rule: look-up order is journals, packs, loose files. If an object is not found, all three are listed again, then
`quarantine/` is searched, and last the owner is asked to bring missing objects back. A damaged or unreadable copy never
hides a sound one. Every read checks the hash. Purged objects are not read even if their bytes come back.
"""

from __future__ import annotations

from itertools import chain, islice, takewhile

from trace_store import errors, odb
from trace_store.base.oid import (
    MAXIMUM_CANDIDATES,
    ObjectId,
    check_hash,
    check_prefix,
    digest,
    joined_digests,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from trace_store.disk.files import Disk
    from trace_store.disk.layout import Layout
    from trace_store.journal.journal import Journal


UNCHECKED = -1
"""Value of `checked_generation` that equals no journal generation, so the next transaction checks its links."""
BATCH_OBJECTS = 512
BATCH_BYTES = 4 * 1024 * 1024
"""How much `read_many` reads ahead."""
RECENT_BYTES = 8 * 1024 * 1024
"""How many bytes of recently read objects `read_many` keeps."""


class ObjectDatabase:
    """Objects in journals, packs and loose files."""

    __slots__ = (
        *("_disk", "_durable", "_journal", "_layout", "_loose", "_mutex", "_packs", "_purged"),
        *("_quarantine", "_synced_packs", "_tombstones", "checked_generation", "last_resort"),
        *("recent", "required", "searched", "stand_in"),
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
        self._synced_packs: frozenset[str] = frozenset()
        """Names of packs whose directory entries this process has synced."""
        self.checked_generation = 1
        """The journal generation in which a transaction last checked that the objects it links to exist.

        In any other generation, the next transaction checks. The first generation is 1, so a new database needs no
        check.
        """
        self.recent: dict[bytes, bytes] = {}
        """Objects that a writer has just stored and reads once more; it empties this."""
        self.required: set[ObjectId] = set()
        """Further objects that must exist for the next transaction, such as the prerequisites of a bundle."""
        self.last_resort: Callable[[], bool] | None = None
        """Called when an object is missing; brings back what refs need, and returns True if something came."""
        self.searched = b""
        """The state of git in which `last_resort` brought nothing."""
        self.stand_in: Callable[[bytes], bytes] | None = None
        """Returns what a missing object reads as, for a look at what there is; None raises an error."""

    @property
    def purged(self) -> frozenset[bytes]:
        """The ids of purged objects, as of the last `refresh`."""
        return self.refresh_tombstones() if self._purged is None else self._purged

    @property
    def tombstones(self) -> odb.tombstones.Tombstones:
        """The tombstones of purged objects."""
        if self._tombstones is None:
            self._tombstones = odb.tombstones.Tombstones(self._disk, self._layout)
            self._purged = self._tombstones.oids
        return self._tombstones

    @property
    def purged_texts(self) -> Sequence[odb.tombstones.Fingerprint]:
        """The fingerprints of purged texts, as of the last `refresh`."""
        if self._purged is None:
            self.refresh_tombstones()
        return () if self._tombstones is None else self._tombstones.texts

    @property
    def packs(self) -> odb.packs.Packs:
        """The packs, opened when an object is first looked up outside the journals."""
        if self._packs is None:
            self._packs = odb.packs.Packs(self._disk, self._layout)
            self._require_recheck()
        return self._packs

    @property
    def loose(self) -> odb.loose.LooseObjects:
        """The loose objects."""
        if self._loose is None:
            self._loose = odb.loose.LooseObjects(self._disk, self._layout, durable=self._durable)
            self._require_recheck()
        return self._loose

    @property
    def quarantine(self) -> odb.quarantine.Quarantine:
        """Objects removed by gc, which can be restored for a while."""
        if self._quarantine is None:
            self._quarantine = odb.quarantine.Quarantine(self._disk, self._layout)
        return self._quarantine

    def close(self) -> None:
        """Close all pack files."""
        if self._packs is not None:
            self._packs.close()
        if self._quarantine is not None:
            self._quarantine.close()

    def read(self, oid: bytes) -> bytes:
        """Return an object's canonical bytes, hash-checked.

        Raises:
            ObjectNotFoundError: the object is missing.
            PurgedError: it was purged (an ObjectNotFoundError too).
            CorruptObjectError: every copy is damaged.
            CorruptPackError: it was not found, and a pack that may hold it is unreadable.
            StorageError: the only copy cannot be read.
        """
        with self._mutex:
            self._check_id(oid)
            data = self.recent.get(oid)
            if data is not None:
                return data
            data, failure = self._find(oid)
            if data is None:
                self._journal.refresh()
                self.packs.refresh()
                self.refresh_tombstones()
                self._check_id(oid)
                data, retry_failure = self._find(oid)
                failure = retry_failure or failure
            if data is None and self.packs.repair_indexes():
                data, retry_failure = self._find(oid)
                failure = retry_failure or failure
            if data is None:
                data = self.quarantine.read(oid)
                if data is not None:
                    # The next transaction checks its links, and restores the quarantine if it links to this object.
                    self.checked_generation = UNCHECKED
            if data is None and failure is None and self.last_resort and self.last_resort():
                data, failure = self._find(oid)
            if data is not None:
                return data
            if self.stand_in is not None and failure is None:
                return self.stand_in(oid)
            if failure is not None:
                raise failure
            for error in self.packs.damaged.values():
                raise errors.CorruptPackError(
                    f"object {oid.hex()} not found, and {error}"
                ) from error
        raise errors.ObjectNotFoundError(f"no object {oid.hex()}", oid=ObjectId(oid))

    def read_many(self, oids: Iterable[bytes]) -> Iterator[tuple[ObjectId, bytes]]:
        """Yield (id, bytes) in the given order, hash-checked; raises as `read`.

        Neighbours in a pack are read together, so an order close to the order of writing is fastest. Needs a few MiB
        more than `read`.
        """
        batches = self._read_batches(oids)
        return (
            (ObjectId(oid), data) for batch in batches for oid, data in zip(*batch, strict=True)
        )

    def read_data(self, oids: Iterable[bytes]) -> Iterator[bytes]:
        """Like `read_many`, but yield the bytes only."""
        return chain.from_iterable(data for _, data in self._read_batches(oids))

    def contains(self, oid: bytes) -> bool:
        """Return True if the object exists, without reading it.

        Purged and quarantined objects do not count, although `read` finds the latter.
        """
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
        """Return True if a pack has a sound copy, and make the pack's name durable.

        Raises:
            StorageError: out of file descriptors, or a sync failed.
        """
        with self._mutex:
            try:
                is_packed = self.packs.read(oid) is not None
            except errors.FormatError:
                return False
            if is_packed and self._durable:
                self._sync_pack_names()
            return is_packed

    def _sync_pack_names(self) -> None:
        """Sync the directories of the packs, so that all pack names are durable.

        The process that wrote a pack may have died before it synced them.
        """
        names = self.packs.names()
        if not self._synced_packs.issuperset(names):
            for folder in (self._layout.pack_dir, self._layout.objects_dir, self._layout.root):
                self._disk.sync_directory(folder)
            self._synced_packs = frozenset(names)

    def refresh(self) -> None:
        """List journals, packs and tombstones again."""
        with self._mutex:
            self._journal.refresh()
            self.packs.refresh()
            self.refresh_tombstones()

    def reappeared(self) -> list[ObjectId]:
        """Return the sorted ids of purged objects that exist again.

        This happens, for example, after a git merge.
        """
        with self._mutex:
            return sorted(ObjectId(oid) for oid in self.purged if self._has(oid))

    def purged_key(self) -> str:
        """Return a short cache key of the set of purged objects; "" if it is empty."""
        return self.tombstones.key() if self.purged else ""

    def check_not_purged(self, objects: Mapping[ObjectId, bytes]) -> None:
        """Check that no object to be written is purged or contains a purged text.

        Raises:
            PurgedError: an object is purged, or it is new and contains a purged text.
        """
        for oid in objects if self.purged else ():
            self._check_id(oid)
        if self.purged_texts:
            for oid, text in odb.tombstones.find_new_purged_texts(self, objects).items():
                raise odb.tombstones.purged_text_error(oid, text)

    def write(self, data: bytes) -> ObjectId:
        """Store canonical object bytes as a loose object and return their id.

        Raises:
            InvalidInputError: the object is too large.
            PurgedError: it was purged.
        """
        with self._mutex:
            self.refresh_tombstones()
            if self.purged or self.purged_texts:
                self.check_not_purged({ObjectId(digest(data)): data})
            return self.loose.write(data)

    def resolve_prefix(self, prefix: str, *, refresh: bool = True) -> list[ObjectId]:
        """Return the ids that start with these hex digits, sorted, at most 16.

        Args:
            prefix: the digits.
            refresh: whether to look for what other processes wrote meanwhile.

        Raises:
            InvalidInputError: not 4 to 64 lower-case hex digits.
        """
        check_prefix(prefix)
        with self._mutex:
            if refresh:
                self.refresh()
            unsealed = self._journal.with_prefix(bytes.fromhex(prefix[: len(prefix) // 2 * 2]))
            matches = {ObjectId(oid) for oid in unsealed if oid.hex().startswith(prefix)}
            matches.update(self.packs.resolve_prefix(prefix))
            matches.update(self.loose.resolve_prefix(prefix))
            matches.update(ObjectId(o) for o in self.purged if o.hex().startswith(prefix))
        return sorted(matches)[:MAXIMUM_CANDIDATES]

    def iterate(self) -> Iterator[ObjectId]:
        """Yield the id of every object once, except purged ones."""
        with self._mutex:
            self.refresh()
            listed = list(dict.fromkeys(ObjectId(oid) for oid in self._journal.oids()))
            listed += self.packs.iterate()
            listed += self.loose.iterate()
            purged = self.purged
        unique = dict.fromkeys(listed)
        yield from [oid for oid in unique if oid not in purged] if purged else unique

    def _require_recheck(self) -> None:
        """Make the next transaction check its links, unless the journals were listed before."""
        if not self._journal.generation:
            self.checked_generation = UNCHECKED

    def _has(self, oid: bytes) -> bool:
        return self._journal.contains(oid) or self.packs.contains(oid) or self.loose.contains(oid)

    def refresh_tombstones(self) -> frozenset[bytes]:
        """Refresh the tombstones and return the ids of all purged objects."""
        if self._tombstones is not None:
            self._tombstones.refresh()
            self._purged = self._tombstones.oids
        elif self._disk.exists(self._layout.tombstones_dir):
            self._purged = self.tombstones.oids
        else:
            self._purged = frozenset()
        return self._purged

    def _check_id(self, oid: bytes) -> None:
        if oid in self.purged:
            tombstone = self.tombstones.find(oid) or odb.tombstones.Tombstone(ObjectId(oid))
            raise tombstone.error()

    def _read_quickly(self, oids: list[bytes]) -> list[bytes | None]:
        """Return the bytes of the first objects: at least one, about `BATCH_BYTES`.

        An entry is None if the object needs `read`, which is slower.
        """
        known: dict[bytes, bytes | None] = {}
        count, held = self._journal.read_many(oids, BATCH_BYTES)
        if joined_digests(held.values()) == b"".join(held):
            known.update(held)
        else:
            known.update((oid, data) for oid, data in held.items() if digest(data) == oid)
        packed = [oid for oid in oids[:count] if oid not in known]
        known.update(zip(packed, self.packs.read_quickly(packed, BATCH_BYTES), strict=False))
        known.update(dict.fromkeys(self.purged & known.keys()))
        return [known[oid] for oid in takewhile(known.__contains__, oids[:count])]

    def _read_batches(self, oids: Iterable[bytes]) -> Iterator[tuple[list[bytes], list[bytes]]]:
        """Yield batches of ids and bytes in the given order.

        An object is not read again while it is among the last few MiB read; agents often read a file twice.
        """
        remaining = iter(oids)
        recent: dict[bytes, bytes | None] = {}
        held = 0
        while batch := list(islice(remaining, BATCH_OBJECTS)):
            while batch:
                wanted = [oid for oid in dict.fromkeys(batch) if oid not in recent]
                contents: list[bytes | None] = []
                if wanted:
                    with self._mutex:
                        contents = self._read_quickly(wanted)
                recent.update(zip(wanted, contents, strict=False))
                known = list(map(recent.get, batch))
                if None in known:  # the batch ends before an object that needs `read`
                    del known[known.index(None) :]
                done = [data for data in known if data is not None] or [self.read(batch[0])]
                yield batch[: len(done)], done
                del batch[: len(done)]
                held += sum(map(len, filter(None, contents)))
                if held > RECENT_BYTES:
                    recent, held = {}, 0

    def _find(self, oid: bytes) -> tuple[bytes | None, errors.TraceError | None]:
        """Return a sound copy, or the last error."""
        failure: errors.TraceError | None = None
        for read in (self._read_journal, self._read_packs, self._read_loose):
            try:
                data = read(oid)
                if data is not None:
                    return data, None
            except (errors.CorruptObjectError, errors.StorageError) as error:
                failure = error
        return None, failure

    def _read_packs(self, oid: bytes) -> bytes | None:
        return self.packs.read(oid)

    def _read_loose(self, oid: bytes) -> bytes | None:
        return self.loose.read(oid)

    def _read_journal(self, oid: bytes) -> bytes | None:
        data = self._journal.read(oid)
        return None if data is None else check_hash(oid, data, "a journal")
