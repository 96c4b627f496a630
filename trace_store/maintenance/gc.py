"""gc and prune: quarantine of unreachable objects, deleted after a grace period.

Invariant: `gc` takes loose objects; `prune` also packed ones, whose packs are first rewritten without them. Objects
are moved under the journal lock, after reachability was checked again. An unreadable root, or one whose
target is missing, stops everything before any change.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, TypeAlias

from trace_store import errors
from trace_store.base.frozen import replace, value
from trace_store.base.oid import ObjectId
from trace_store.commit_table.table import CommitTable
from trace_store.context.session_lists import publish_lists
from trace_store.contracts.ref_names import TRASH
from trace_store.disk.files import APPEND, Disk, files_below, replace_file, write_all
from trace_store.maintenance.consolidate import file_size, git_index, is_tracked
from trace_store.maintenance.lock import brief_lock
from trace_store.maintenance.lost_found import sweep
from trace_store.maintenance.pack_marks import PackLostError, PackMarks
from trace_store.maintenance.reachability import KNOWN, LOCAL, ReachableSet, Roots, find_roots
from trace_store.maintenance.reachability_memory import (
    UNNOTICED,
    KnownObjects,
    KnownReachable,
    load_known,
    save_known,
)
from trace_store.maintenance.repack import (
    RewriteReport,
    known_after,
    pack,
    packs_holding,
    write_packs_without,
)
from trace_store.maintenance.seal import seal
from trace_store.maintenance.second_copies import forget_committed, forget_copies
from trace_store.odb.index_scan import ids_among
from trace_store.odb.packs import MAXIMUM_ATTEMPTS
from trace_store.odb.quarantine import QuarantineBatch
from trace_store.refs.reflog import ReflogEntry, encode_entry
from trace_store.store.store import Store

Progress: TypeAlias = Callable[[str, int, int], None]


_EXPIRED = "gone-"


def is_expired(
    entry: ReflogEntry, reached: Container[ObjectId], *, since: int, unreachable_since: int
) -> bool:
    """Return True if an entry has expired.

    Entries of unreachable commits expire earlier.
    """
    if entry.time < since:
        return True
    named = [oid for oid in (entry.old, entry.new) if oid is not None]
    return entry.time < unreachable_since and not all(oid in reached for oid in named)


def expire_logs(store: Store, roots: Roots, expired: Callable[[ReflogEntry], bool]) -> int:
    """Remove expired entries from the reflogs; return their number."""
    removed = 0
    for name, entries in roots.logs.items():
        removed_entries = [entry for entry in entries if expired(entry)]
        if removed_entries:
            removed += len(removed_entries)
            _rewrite(
                store, store.layout.log_file(name), frozenset(map(encode_entry, removed_entries))
            )
    return removed


def _rewrite(store: Store, path: str, removed: frozenset[bytes]) -> None:
    """Rewrite a reflog without some lines, keeping lines appended meanwhile."""
    disk = store.disk
    fd = disk.open(path)
    if fd is None:
        return
    try:
        size = disk.size(fd)
        lines = disk.read_at(fd, 0, size).splitlines(keepends=True)
        kept = b"".join(line for line in lines if line not in removed)
        replace_file(disk, path, kept, durable=False, scratch=store.layout.tmp_dir)
        added = disk.read_at(fd, size, disk.size(fd) - size)
        new = disk.open(path, APPEND) if added else None
        if new is not None:
            try:
                write_all(disk, new, added)
            finally:
                disk.close(new)
    finally:
        disk.close(fd)


def empty_quarantine(store: Store, before: int) -> tuple[int, int]:
    """Delete quarantine folders from before a time in milliseconds.

    Return number and size of the files.
    """
    quarantine, disk = store.objects.quarantine, store.disk
    folder = store.layout.quarantine_dir
    if any(taking.time <= before for taking in quarantine.batches()):

        def hide() -> None:
            for taking in quarantine.batches():
                if taking.time <= before:
                    disk.rename(taking.layout.root, os.path.join(folder, _EXPIRED + taking.name))

        store.alone(hide)  # a writer that relied on quarantined objects has to look again
        quarantine.batches()
    files = size = 0
    for name in disk.scan(folder)[0]:
        if name.startswith(_EXPIRED):
            count, freed = _remove_all(disk, os.path.join(folder, name))
            files, size = files + count, size + freed
    return files, size


def delete_batch(store: Store, batch: QuarantineBatch) -> tuple[int, int]:
    """Delete one quarantine folder; return number and size of its files."""
    store.alone(lambda: None)  # a writer that relied on quarantined objects has to look again
    deleted = _remove_all(store.disk, batch.layout.root)
    store.objects.quarantine.batches()
    return deleted


def size_of(disk: Disk, taking: QuarantineBatch) -> int:
    """Return the size of a quarantine folder in bytes."""
    stats = map(disk.stat, files_below(disk, taking.layout.root))
    return sum(each.st_size for each in stats if each is not None)


def _remove_all(disk: Disk, path: str) -> tuple[int, int]:
    """Delete a folder tree; return number and size of its files."""
    folders, names = disk.scan(path)
    files = size = 0
    for name in folders:
        count, freed = _remove_all(disk, os.path.join(path, name))
        files, size = files + count, size + freed
    for name in names:
        status = disk.stat(os.path.join(path, name))
        size += 0 if status is None else status.st_size
        files += disk.remove(os.path.join(path, name))
    disk.remove_directory(path)
    return files, size


DAY_MS = 24 * 60 * 60 * 1000
REFLOG_DAYS = 90, 30
"""Days to keep reflog entries: reachable, unreachable."""
_NANOSECONDS = 1_000_000
NONE: frozenset[ObjectId] = frozenset()


class ReachabilityScan:
    """One scan of all objects and roots that the last one does not answer for.

    Attributes:
        roots: the roots.
        expired: expired reflog entries, if they may go.
        marking: reachable objects, and those kept by young ones.
        reachable: number of existing reachable objects.
        loose, packed: times since when objects are unreachable, in milliseconds.
        doomed: unreachable objects past the grace period.
        known: what the next scan need not read again.
    """

    roots: Roots
    marking: ReachableSet

    def __init__(
        self,
        store: Store,
        *,
        grace_ms: int,
        reflog_days: tuple[int, int] | None,
        progress: Progress,
        known: KnownReachable,
        within: Container[ObjectId] | None = None,
    ) -> None:
        """Scan without changes.

        Args:
            store: the repository.
            grace_ms: grace period in milliseconds.
            reflog_days: days to keep reachable and unreachable reflog entries; None keeps all.
            progress: receives step, steps done and total.
            known: the result of an earlier scan.
            within: the objects that may be past the grace period; None is all.

        Raises:
            StateError: a root is unreadable or its commit is missing.
            FormatError: an object is damaged, so its links are unknown.
            StorageError: the disk refuses, or packs are replaced faster than they can be read.
        """
        self._store = store
        self._objects = store.objects
        self._now = store.clock.now()
        self._days = reflog_days
        self._limit = self._now - grace_ms
        self._progress = progress
        self._within = within
        self._unmarked: set[str] = set()
        self._scan_anyway(known)

    def _scan_anyway(self, known: KnownReachable) -> None:
        """Scan, and start again if a pack or its index is damaged, or was removed: nothing is locked meanwhile."""
        attempts = MAXIMUM_ATTEMPTS + len(self._objects.packs.names())
        for left in reversed(range(attempts)):
            try:
                self._scan(known)
                return
            except errors.CorruptIndexError:
                if not self._objects.packs.repair_indexes():
                    raise
            except errors.StorageError as error:
                if not left or (
                    not isinstance(error, PackLostError) and error.errno != errno.ENOENT
                ):
                    raise
                self._unmarked.add(str(error.data.get("pack", "")))

    def _scan(self, known: KnownReachable) -> None:
        store = self._store
        with store.mutex:
            self._objects.packs.refresh()
        self._names = self._objects.packs.names()
        self._loose_ids = frozenset(self._objects.loose.iterate())
        self._ages = known.left
        self.expired: set[ReflogEntry] = set()
        if not (known.packs and known.packs.issubset(self._names) and self._start(known)):
            self._start(KnownReachable())
        left = self._left()
        known = self._known(left)
        named = self.marking.count()
        self._mark_logged()
        logged = self.marking.count() - named
        self.reachable = known.count + len(known.outside) + logged - len(self.marking.absent)
        self.packed = {oid: since for oid, since in left.items() if oid not in self.marking}
        noticed = {oid: self.packed.get(oid, UNNOTICED) for oid in left}
        self.known = replace(known, left=noticed)
        self.loose = {
            oid: self._changed(store.layout.loose_file(oid.hex()))
            for oid in self._loose_ids
            if oid not in self.marking
        }
        self.doomed = self._doomed()

    def rescan(self) -> None:
        """Scan what is new, and keep what became reachable; errors as in the first scan."""
        planned = self.doomed
        try:
            self._rescan()
        except errors.StorageError as error:
            if not isinstance(error, PackLostError) and error.errno != errno.ENOENT:
                raise
            self._scan_anyway(self.known)
            self.doomed &= planned

    def _rescan(self) -> None:
        self.roots = self._find_roots()
        self.marking.add(self.roots.named)
        self._mark_logged()
        self.doomed = {oid for oid in self.doomed if oid not in self.marking}
        touched = {oid for oid in self.doomed & self.loose.keys() if not self._is_old(oid)}
        self.marking.add(touched)
        self.doomed = {oid for oid in self.doomed if oid not in self.marking}

    def _start(self, known: KnownReachable) -> bool:
        """Mark what the roots reach, except for what is known; False if that does not hold any more."""
        self._before, self._files = known, known.files
        marks = self._marks_of_new(known)
        if marks is None:
            return False
        self._marks = marks
        self.roots = self._find_roots()
        named, unread = self.roots.named, self.roots.unread
        lost = {oid for oid, file in known.roots.items() if oid not in named and file not in unread}
        self.marking = ReachableSet(
            self._objects.read,
            KnownObjects(self._objects.packs, known),
            frozenset({*known.roots, *named}),
            marks,
        )
        starts = [oid for oid in named if oid not in known.roots]
        self._seen = {
            oid
            for oid in known.unseen
            if oid in self._loose_ids
            or oid in known.left
            or any(mark != KNOWN for mark in marks.values(oid))
        }
        starts += self._seen
        with self._store.mutex:
            whole = sum(each or 0 for each in self._objects.packs.query(lambda i: i.objects))
        self._step = lambda done: self._progress("marking", min(done, whole), whole)
        self.marking.add(chain(starts, known.outside), self._step)
        return lost <= self.marking.linked

    def _marks_of_new(self, known: KnownReachable) -> PackMarks | None:
        """Return marks for packs that are not known, with copies of known objects, as git may bring them, as KNOWN.

        None if a known pack is gone or its index is damaged.
        """
        packs = self._objects.packs
        marks = PackMarks(packs, self._objects.purged)
        new = [name for name in self._names if name not in known.packs]
        opened = [packed for packed in map(packs.get, new) if packed is not None]
        if not all(packed.index.verify() for packed in opened):
            packs.repair_indexes()
        for name in sorted(new, key=self._age, reverse=True):  # links lead to older packs
            if name in self._unmarked:
                continue
            of_pack = marks.add(name)
            copies = known.among(packs, self._ids(name)) if known.packs else frozenset()
            if copies is None:
                return None
            for oid in copies:
                for number in marks.copies(name, oid):
                    of_pack[number] = KNOWN
        return marks

    def _age(self, name: str) -> int:
        return self._changed(self._store.layout.pack_file(name))

    def _find_roots(self) -> Roots:
        since = self._now - DAY_MS * (self._days or REFLOG_DAYS)[1]
        roots = find_roots(self._store, since=since, known_files=self._files)
        for obstacle in roots.obstacles:
            raise _unknown_roots_error(obstacle.what, obstacle.detail)
        self._files = roots.files
        return roots

    def _mark_logged(self) -> None:
        """Mark what the reflogs reach, except for expired entries."""
        store, marking, logs = self._store, self.marking, self.roots.logs
        entries = [entry for log in logs.values() for entry in log]
        if self._days is not None:
            # The reflog of a trash ref shows how long it has been there.
            trash = {name for name, _ in store.refs.iterate(TRASH)}
            since, unreachable_since = (self._now - DAY_MS * days for days in self._days)
            self.expired = {
                entry
                for name, log in logs.items()
                for entry in (() if name in trash else log)
                if is_expired(entry, marking, since=since, unreachable_since=unreachable_since)
            }
        logged = [o for e in entries if e not in self.expired for o in (e.old, e.new)]
        marking.add([oid for oid in logged if oid is not None], self._step)
        for oid, referrer in marking.broken().items():
            raise _unknown_roots_error(f"commit {referrer}", f"its parent {oid} is missing")

    def _left(self) -> dict[ObjectId, int]:
        """Return packed objects that no root but reflogs reaches, and their age: the saved time, or the pack's."""
        before = self._before
        known = frozenset(before.left)
        since: dict[ObjectId, int] = {}
        for name in self._names:
            packed = self._objects.packs.get(name)
            if packed is None or (name in before.packs and not known):
                continue
            written = self._age(name)
            ids: Iterable[bytes] = self._ids(name)
            if name in before.packs:
                ids = ids_among(packed.index, known)
            elif name in self._marks:
                ids = self._marks.ids_with(name, 0)
            for oid in map(ObjectId, ids):
                if oid not in self.marking:
                    time = min(written, self._ages.get(oid, written))
                    since[oid] = max(time, since.get(oid, 0))
        return {oid: UNNOTICED for oid in known if oid not in self.marking} | since

    def _known(self, left: Mapping[ObjectId, int]) -> KnownReachable:
        """Return what the next scan need not read; called before reflogs are followed, since their entries expire."""
        before, marking = self._before, self.marking
        outside = marking.reached - before.left.keys()
        for name in self._unmarked.intersection(self._names):
            outside.difference_update(self._ids(name))
        outside |= marking.absent.keys()  # of the left ones, too
        linked = marking.linked
        roots = {oid: file for oid, file in before.roots.items() if oid not in linked}
        roots |= {
            oid: where.removeprefix(LOCAL) if where.startswith(LOCAL) else ""
            for oid, where in self.roots.named.items()
            if oid not in linked and marking.has_new(oid)
        }
        return KnownReachable(
            roots=roots,
            files=self.roots.files,
            packs=frozenset(self._names) if self._are_sound() else frozenset(),
            left=left,
            outside=frozenset(outside),
            unseen=(before.unseen - self._seen) | self.roots.unseen,
            count=before.count + marking.count() - len(outside),
        )

    def _are_sound(self) -> bool:
        """Return True if the indexes of all new packs name all of their objects."""
        packed = [
            self._objects.packs.get(name) for name in self._names if name not in self._before.packs
        ]
        return all(each is not None and each.index.verify() for each in packed)

    def _ids(self, name: str) -> Iterator[ObjectId]:
        """Return the ids of the objects of a pack; none if it was removed meanwhile."""
        packed = self._objects.packs.get(name)
        return iter(()) if packed is None else packed.index.in_order()

    def _doomed(self) -> set[ObjectId]:
        """Return objects past the grace period that no younger object reaches."""
        unreachable = self.loose.keys() | self.packed.keys()
        old = {
            oid
            for oid in unreachable
            if max(self.loose.get(oid, 0), self.packed.get(oid, 0)) <= self._limit
            and (self._within is None or oid in self._within)
        }
        if old:
            self.marking.add(unreachable - old)
        doomed = {oid for oid in old if oid not in self.marking}
        if self._days is not None and not self.loose.keys().isdisjoint(doomed):
            # gc leaves packed objects, and a ref may name one later, so what they link to stays as well.
            staying = ReachableSet(self._objects.read, self.marking)
            staying.add(self.packed)
            doomed = {oid for oid in doomed if oid in self.packed or oid not in staying}
        return doomed

    def _is_old(self, oid: ObjectId) -> bool:
        return self._changed(self._store.layout.loose_file(oid.hex())) <= self._limit

    def _changed(self, path: str) -> int:
        """Return a file's mtime in milliseconds, at most now, in case a clock was wrong."""
        status = self._store.disk.stat(path)
        return self._now if status is None else min(self._now, status.st_mtime_ns // _NANOSECONDS)


def _unknown_roots_error(what: str, detail: str) -> errors.StateError:
    return errors.StateError(
        f"nothing was removed, because reachability is unknown: {what}: {detail}",
        code=errors.ErrorCode.UNKNOWN_ROOTS,
        what=what,
    )


GRACE_DAYS = 14


@value
class GcReport:
    """Result of gc or prune, or of a dry run.

    Attributes:
        reachable: number of reachable objects.
        taken: objects moved to quarantine.
        bytes_taken: size of the files moved; of a dry run of prune, of the objects before compression.
        young: unreachable objects within the grace period, or reachable from such.
        sealed: unreachable objects that stay because they are packed.
        packs, replaced: packs written and packs removed.
        tracked: removed packs that are in the user's git index.
        damaged: names of unreadable packs, which stay.
        entries: expired reflog entries.
        emptied, bytes_emptied: files deleted from quarantine, and their size.
        swept: temporary files removed.
    """

    reachable: int = 0
    taken: int = 0
    bytes_taken: int = 0
    young: int = 0
    sealed: int = 0
    packs: int = 0
    replaced: int = 0
    tracked: int = 0
    damaged: tuple[str, ...] = ()
    entries: int = 0
    emptied: int = 0
    bytes_emptied: int = 0
    swept: int = 0


class Collector:
    """One run of gc or prune.

    Attributes:
        batch: the quarantine folder with the removed objects, or None.
    """

    def __init__(
        self,
        store: Store,
        grace_days: float,
        dry_run: bool,
        progress: Progress | None,
        within: Container[ObjectId] | None = None,
    ) -> None:
        self.batch: QuarantineBatch | None = None
        self._within = within
        self._store = store
        self._objects = store.objects
        self._grace_ms = round(grace_days * DAY_MS)
        self._dry_run = dry_run
        self._progress = progress or _no_progress

    def gc(self, reflog_days: int | None) -> GcReport:
        """Quarantine loose objects, expire reflogs, and repack; `Maintenance.gc` describes it."""
        store = self._store
        scan = self._scan(REFLOG_DAYS if reflog_days is None else (reflog_days, reflog_days))
        doomed = scan.doomed & scan.loose.keys()
        before = store.clock.now() - self._grace_ms
        if self._dry_run:
            due = [t for t in self._objects.quarantine.batches() if t.time <= before]
            return replace(
                self._report(scan),
                taken=len(doomed),
                bytes_taken=sum(
                    file_size(store.disk, store.layout.loose_file(o.hex())) for o in doomed
                ),
                bytes_emptied=sum(size_of(store.disk, taking) for taking in due),
            )
        with brief_lock(store, "trace gc"):
            entries = expire_logs(store, scan.roots, scan.expired.__contains__)
            taken, size = self._take(scan, RewriteReport()) if doomed else (0, 0)
            emptied, bytes_emptied = empty_quarantine(store, before)
            forget_committed(store)
            swept = sweep(store)
            save_known(store, scan.known)
        with store.mutex:
            self._objects.packs.close()  # what the scan has read is not needed, and packing takes memory
        packed = pack(
            store,
            progress=lambda done, whole: self._progress("packing", done, whole),
            leave=scan.loose.keys(),
            tracked=False,
        )
        return replace(
            self._report(scan),
            taken=taken,
            bytes_taken=size,
            packs=len(packed.packs),
            replaced=packed.replaced,
            damaged=packed.kept,
            entries=entries,
            emptied=emptied,
            bytes_emptied=bytes_emptied,
            swept=swept,
        )

    def prune(self) -> GcReport:
        """Quarantine loose and packed objects; `Maintenance.prune` describes it."""
        store = self._store
        scan = self._scan(None)
        names = packs_holding(store, scan.doomed)
        index = git_index(store.disk, store.layout.root) or b""
        report = replace(
            self._report(scan), sealed=0, tracked=sum(is_tracked(index, name) for name in names)
        )
        if self._dry_run or not scan.doomed:
            if not self._dry_run:
                save_known(store, scan.known)
            return replace(report, taken=len(scan.doomed), bytes_taken=self._bytes(scan.doomed))
        with brief_lock(store, "trace prune"):
            written = write_packs_without(
                store,
                names,
                scan.doomed,
                progress=lambda done, whole: self._progress("writing", done, whole),
            )
            known = known_after(store, scan.known, names, written)
            taken, size = self._take(scan, written)
            left = {oid: since for oid, since in known.left.items() if oid not in scan.doomed}
            if written.damaged:
                known = KnownReachable()  # these packs keep what was to be removed
            save_known(store, replace(known, left=left))
        return replace(
            report,
            taken=taken,
            bytes_taken=size,
            packs=len(written.packs),
            replaced=len(written.replaced),
            damaged=written.damaged,
        )

    def _bytes(self, oids: set[ObjectId]) -> int:
        """Return the size of objects before compression, without unreadable ones."""
        total = 0
        for oid in oids:
            try:
                total += len(self._objects.read(oid))
            except (errors.NotFoundError, errors.FormatError):
                continue
        return total

    def _scan(self, reflog_days: tuple[int, int] | None) -> ReachabilityScan:
        """Find unreachable objects; if that succeeds, seal and search again."""
        store, grace = self._store, self._grace_ms
        options: dict[str, Any] = {"grace_ms": grace, "reflog_days": reflog_days}
        options |= {"progress": self._progress, "within": self._within}
        scan = ReachabilityScan(store, known=load_known(store), **options)
        if self._dry_run or not seal(store).transactions:
            return scan
        # Sealing may have made objects of the journal unreachable.
        return ReachabilityScan(store, known=scan.known, **options)

    def _report(self, scan: ReachabilityScan) -> GcReport:
        unreachable = scan.loose.keys() | scan.packed.keys()
        if not self._dry_run:
            publish_lists(self._store, tidy=True)
        return GcReport(
            reachable=scan.reachable,
            young=len(unreachable) - len(scan.doomed),
            sealed=len(scan.doomed & scan.packed.keys()),
            entries=len(scan.expired),
        )

    def _take(self, scan: ReachabilityScan, written: RewriteReport) -> tuple[int, int]:
        """Quarantine the doomed objects; return their number and the size of the files."""
        return self._store.alone(lambda: self._take_alone(scan, written))

    def _take_alone(self, scan: ReachabilityScan, written: RewriteReport) -> tuple[int, int]:
        """Do so while nobody writes; packs with objects in use since then stay."""
        store, quarantine = self._store, self._objects.quarantine
        planned = scan.doomed
        scan.rescan()
        spared = planned - scan.doomed
        packs = [n for n in written.replaced if not (spared and self._holds(n, spared))]
        loose = scan.doomed & scan.loose.keys()
        if not packs and not loose:
            return 0, 0
        removed = loose.union(*(self._ids(name) & scan.doomed for name in packs))
        # First the table: a row without a commit would look like a lost journal.
        path = store.layout.commit_table_file
        table = CommitTable(store.disk, path, store.config.store_id, store.objects)
        table.forget(removed)
        taking = self.batch = quarantine.take(store.clock.now(), packs, sorted(loose))
        forget_copies(store, packs)
        with store.mutex:
            self._objects.packs.refresh()
        return len(removed), size_of(store.disk, taking)

    def _holds(self, name: str, oids: set[ObjectId]) -> bool:
        return not oids.isdisjoint(self._ids(name))

    def _ids(self, name: str) -> set[ObjectId]:
        packed = self._objects.packs.get(name)
        return set() if packed is None else set(packed.index.in_order())


def _no_progress(what: str, done: int, whole: int) -> None:
    """Report no progress."""
