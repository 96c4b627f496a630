"""gc and prune: quarantine of unreachable objects, deleted after a grace period.

Invariant: `gc` takes loose objects; `prune` also packed ones, whose packs are first rewritten without them. Objects
are taken by rename, under the journal lock, after reachability was checked again. An unreadable root, or one whose
target is missing, stops everything before any change.
"""

from __future__ import annotations

from trace_store import commit_table, errors
from trace_store.frozen import replace, value
from trace_store.maintenance.consolidate import file_size, git_index, is_tracked
from trace_store.maintenance.expiry import empty_quarantine, expire_logs, size_of
from trace_store.maintenance.lock import brief_lock
from trace_store.maintenance.pack_rewrite import RewriteReport, packs_holding, write_packs_without
from trace_store.maintenance.repack import pack
from trace_store.maintenance.seal import seal
from trace_store.maintenance.second_copies import forget_committed, forget_copies
from trace_store.maintenance.tmp_files import sweep
from trace_store.maintenance.unreachable import DAY_MS, REFLOG_DAYS, ReachabilityScan, save_ages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.maintenance.unreachable import Progress
    from trace_store.oid import ObjectId
    from trace_store.store.handle import Store

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


def gc(
    store: Store,
    *,
    grace_days: float = GRACE_DAYS,
    reflog_days: int | None = None,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> GcReport:
    """Seal, repack, quarantine unreachable loose objects and expire old data.

    Packed objects stay, and so do packs in the user's git index.

    Args:
        store: the repository.
        grace_days: how long objects must have been unreachable, and then stay in quarantine.
        reflog_days: age at which reflog entries expire; None is 90, or 30 for unreachable commits.
        dry_run: only report what would be done.
        progress: receives step, steps done and total.

    Raises:
        StateError: a root is unreadable or its commit is missing; nothing is changed.
        FormatError: an object is damaged, so reachability is unknown; nothing is changed.
        LockedError: another process has held the maintenance lock for a minute.
        StorageError: the disk refuses; nothing is lost, and gc can be repeated.
    """
    days = REFLOG_DAYS if reflog_days is None else (reflog_days, reflog_days)
    return _Collector(store, grace_days, dry_run, progress).gc(days)


def prune(
    store: Store,
    *,
    grace_days: float = GRACE_DAYS,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> GcReport:
    """Quarantine unreachable objects, packed or not.

    Arguments, result and errors as `gc`.

    Their packs are rewritten, even if they are in the user's git index.
    """
    return _Collector(store, grace_days, dry_run, progress).prune()


class _Collector:
    """One run of gc or prune."""

    def __init__(
        self, store: Store, grace_days: float, dry_run: bool, progress: Progress | None
    ) -> None:
        self._store = store
        self._objects = store.objects
        self._grace_ms = round(grace_days * DAY_MS)
        self._dry_run = dry_run
        self._progress = progress or _no_progress

    def gc(self, reflog_days: tuple[int, int]) -> GcReport:
        store = self._store
        scan = self._scan(reflog_days)
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
        scan = ReachabilityScan(
            store, grace_ms=grace, reflog_days=reflog_days, progress=self._progress
        )
        if self._dry_run or not seal(store).transactions:
            return scan
        # Sealing may have made objects of the journal unreachable.
        return ReachabilityScan(
            store, grace_ms=grace, reflog_days=reflog_days, progress=self._progress
        )

    def _report(self, scan: ReachabilityScan) -> GcReport:
        unreachable = scan.loose.keys() | scan.packed.keys()
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
        table = commit_table.table.CommitTable(
            store.disk, path, store.config.store_id, store.objects
        )
        table.forget(removed)
        taking = quarantine.take(store.clock.now(), packs, sorted(loose))
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
