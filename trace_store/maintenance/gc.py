"""gc and prune: quarantine of unreachable objects, deleted after a grace period.

Invariant: `gc` takes loose objects; `prune` also packed ones, whose packs are first rewritten without them. Objects
are moved under the journal lock, after reachability was checked again. An unreadable root, or one whose
target is missing, stops everything before any change.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Container, Mapping
from typing import Any, TypeAlias

from trace_store import errors
from trace_store.base.frozen import replace, value
from trace_store.base.oid import OID_BYTES, ObjectId, digest
from trace_store.commit_table.table import CommitTable
from trace_store.context.session_lists import publish_lists
from trace_store.contracts.ref_names import TRASH
from trace_store.disk.files import APPEND, Disk, files_below, read_file, replace_file, write_all
from trace_store.errors import StorageError
from trace_store.maintenance.consolidate import file_size, git_index, is_tracked
from trace_store.maintenance.lock import brief_lock
from trace_store.maintenance.lost_found import sweep
from trace_store.maintenance.reachability import ReachableSet, Roots, find_roots
from trace_store.maintenance.repack import RewriteReport, pack, packs_holding, write_packs_without
from trace_store.maintenance.seal import seal
from trace_store.maintenance.second_copies import forget_committed, forget_copies
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


MAGIC = b"TRACEAGE"
_RECORD = struct.Struct(f"<{OID_BYTES}sQ")


def load_ages(store: Store) -> dict[ObjectId, int]:
    """Return since when objects are unreachable, in milliseconds."""
    try:
        data = read_file(store.disk, store.layout.ages_file) or b""
    except StorageError:
        return {}
    body, checksum = data[:-OID_BYTES], data[-OID_BYTES:]
    records = body[len(MAGIC) :]
    if not body.startswith(MAGIC) or digest(body) != checksum or len(records) % _RECORD.size:
        return {}
    return {ObjectId(oid): time for oid, time in _RECORD.iter_unpack(records)}


def save_ages(store: Store, ages: Mapping[ObjectId, int]) -> None:
    """Save these times; a failed write is ignored."""
    if ages == load_ages(store):
        return
    body = MAGIC + b"".join(_RECORD.pack(oid, ages[oid]) for oid in sorted(ages))
    try:
        replace_file(
            store.disk,
            store.layout.ages_file,
            body + digest(body),
            durable=False,
            scratch=store.layout.tmp_dir,
        )
    except StorageError:
        return


DAY_MS = 24 * 60 * 60 * 1000
REFLOG_DAYS = 90, 30
"""Days to keep reflog entries: reachable, unreachable."""
_NANOSECONDS = 1_000_000


class ReachabilityScan:
    """One scan of all objects and roots.

    Attributes:
        roots: the roots.
        expired: expired reflog entries, if they may go.
        marking: reachable objects, and those kept by young ones.
        reachable: number of existing reachable objects.
        loose, packed: times since when objects are unreachable, in milliseconds.
        doomed: unreachable objects past the grace period.
    """

    def __init__(
        self,
        store: Store,
        *,
        grace_ms: int,
        reflog_days: tuple[int, int] | None,
        progress: Progress,
        within: Container[ObjectId] | None = None,
    ) -> None:
        """Scan everything without changes.

        Args:
            store: the repository.
            grace_ms: grace period in milliseconds.
            reflog_days: days to keep reachable and unreachable reflog entries; None keeps all.
            progress: receives step, steps done and total.
            within: the objects that may be past the grace period; None is all.

        Raises:
            StateError: a root is unreadable or its commit is missing.
            FormatError: an object is damaged, so its links are unknown.
        """
        self._store = store
        self._objects = store.objects
        self._now = store.clock.now()
        self._days = reflog_days
        self._limit = self._now - grace_ms
        self._progress = progress
        self._within = within
        self.marking = ReachableSet(store.objects.read)
        self.expired: set[ReflogEntry] = set()
        self.roots = self._mark()
        self.reachable = len(self.marking.reached) - len(self.marking.absent)
        self.loose = self._loose()
        self.packed = self._packed()
        self.doomed = self._doomed()

    def rescan(self) -> None:
        """Scan what is new, and keep what became reachable; errors as in the first scan."""
        self.roots = self._mark()
        self.doomed = {oid for oid in self.doomed if oid not in self.marking.reached}
        touched = {oid for oid in self.doomed & self.loose.keys() if not self._is_old(oid)}
        self.marking.add(touched)
        self.doomed -= self.marking.reached

    def ages(self) -> dict[ObjectId, int]:
        """Return since when the remaining packed objects are unreachable, in milliseconds."""
        return {oid: since for oid, since in self.packed.items() if oid not in self.doomed}

    def _mark(self) -> Roots:
        store, marking = self._store, self.marking
        with store.mutex:
            self._objects.packs.refresh()
            whole = sum(each or 0 for each in self._objects.packs.query(lambda i: i.objects))
        since, unreachable_since = (self._now - DAY_MS * days for days in self._days or REFLOG_DAYS)
        roots = find_roots(store, since=unreachable_since)
        for obstacle in roots.obstacles:
            raise _unknown_roots_error(obstacle.what, obstacle.detail)

        def step(done: int) -> None:
            self._progress("marking", min(done, whole), whole)

        marking.add(roots.named, step)
        entries = [entry for log in roots.logs.values() for entry in log]
        if self._days is not None:
            # The reflog of a trash ref shows how long it has been there.
            trash = {name for name, _ in store.refs.iterate(TRASH)}
            self.expired = {
                entry
                for name, log in roots.logs.items()
                for entry in (() if name in trash else log)
                if is_expired(
                    entry, marking.reached, since=since, unreachable_since=unreachable_since
                )
            }
        logged = [o for e in entries if e not in self.expired for o in (e.old, e.new)]
        marking.add([oid for oid in logged if oid is not None], step)
        for oid, referrer in marking.broken().items():
            raise _unknown_roots_error(f"commit {referrer}", f"its parent {oid} is missing")
        return roots

    def _loose(self) -> dict[ObjectId, int]:
        since: dict[ObjectId, int] = {}
        for oid in self._objects.loose.iterate():
            if oid not in self.marking.reached:
                since[oid] = self._changed(self._store.layout.loose_file(oid.hex()))
        return since

    def _packed(self) -> dict[ObjectId, int]:
        """Return since when packed objects are unreachable: the saved time, or the pack's."""
        known = load_ages(self._store)
        since: dict[ObjectId, int] = {}
        packs, reached = self._objects.packs, self.marking.reached
        for name in packs.names():
            packed = packs.get(name)
            if packed is None:
                continue
            written = self._changed(self._store.layout.pack_file(name))
            for oid in packed.index.in_order():
                if oid not in reached:
                    since[oid] = max(since.get(oid, 0), min(written, known.get(oid, written)))
        return since

    def _doomed(self) -> set[ObjectId]:
        """Return objects past the grace period that no younger object reaches."""
        unreachable = self.loose.keys() | self.packed.keys()
        old = {
            oid
            for oid in unreachable
            if max(self.loose.get(oid, 0), self.packed.get(oid, 0)) <= self._limit
            and (self._within is None or oid in self._within)
        }
        self.marking.add(unreachable - old)
        return old - self.marking.reached

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
            save_ages(store, scan.packed)
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
                save_ages(store, scan.packed)
            return replace(report, taken=len(scan.doomed), bytes_taken=self._bytes(scan.doomed))
        with brief_lock(store, "trace prune"):
            written = write_packs_without(
                store,
                names,
                scan.doomed,
                progress=lambda done, whole: self._progress("writing", done, whole),
            )
            taken, size = self._take(scan, written)
            save_ages(store, scan.ages())
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
        scan = ReachabilityScan(store, **options)
        if self._dry_run or not seal(store).transactions:
            return scan
        # Sealing may have made objects of the journal unreachable.
        return ReachabilityScan(store, **options)

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
