"""Collecting: what nothing leads to goes into quarantine, and from there, when it has been long enough, for good.

Rule: `gc` takes loose objects, `prune` also what is in packs: these are written anew without it first. Taking is a
rename each, under the journal's lock, after everything that names objects was looked at again. A root that cannot be
read, or leads to what is not here, stops all of it before anything is changed.
"""

from __future__ import annotations

from trace_store import commit_table
from trace_store.frozen import replace, value
from trace_store.maintenance.consolidate import git_index, is_in
from trace_store.maintenance.expiry import empty_quarantine, expire_logs, size_of
from trace_store.maintenance.lock import brief_lock
from trace_store.maintenance.pack_rewrite import Rewritten, packs_holding, write_without
from trace_store.maintenance.repack import pack
from trace_store.maintenance.seal import seal
from trace_store.maintenance.second_copies import forget_committed, forget_copies
from trace_store.maintenance.tmp_files import sweep
from trace_store.maintenance.unreachable import DAY_MS, REFLOG_DAYS, Survey, save_ages
from trace_store.odb.database import ObjectDatabase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.maintenance.unreachable import Progress
    from trace_store.oid import ObjectId
    from trace_store.store.handle import Store

GRACE_DAYS = 14


@value
class Collected:
    """What collecting did, or would do.

    Attributes:
        reachable: how many objects something leads to.
        taken: how many were put into quarantine.
        bytes_taken: size of the files that were put there.
        young: how many nothing leads to, or only such as these, but not for long enough yet.
        sealed: how many stay, though nothing has led to them for long enough, because they are in packs.
        packs, replaced: how many packs were written, and how many went.
        tracked: how many of those that went are in the index of the user's git.
        damaged: names of packs that cannot be read to their end, and stay.
        entries: how many entries of reflogs expired.
        emptied, bytes_emptied: how many files in quarantine went for good, and their size.
        swept: how many temporary files went.
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
) -> Collected:
    """Seal, pack, remove loose objects that nothing leads to, and let go what is old; returns what was done.

    Packs that the user's git has in its index stay as they are, and so does everything that is in packs.

    Args:
        store: where.
        grace_days: for how long nothing must have led to what goes, and how long it then is in quarantine.
        reflog_days: after how many days entries of reflogs expire; None for 90, or 30 where no ref leads to
            what they name.
        dry_run: whether only to say what would be done.
        progress: told what is being done, how much of it is done, and of how much.

    Raises:
        StateError: a root cannot be read, or leads to a commit that is not here; nothing is changed.
        FormatError: an object is damaged, so that nobody knows what it leads to; nothing is changed.
        LockedError: another process has been sealing or packing for a minute.
        StorageError: the disk refuses; nothing is lost, and it can be done again.
    """
    if not store.local:
        return Collected()
    days = REFLOG_DAYS if reflog_days is None else (reflog_days, reflog_days)
    return _Collecting(store, grace_days, dry_run, progress).gc(days)


def prune(
    store: Store,
    *,
    grace_days: float = GRACE_DAYS,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Collected:
    """Put what nothing leads to into quarantine, packed or not; arguments, result and errors are those of `gc`.

    Packs that hold some of it are written anew, whether the user's git has them in its index or not.
    """
    if not store.local:
        return Collected()
    return _Collecting(store, grace_days, dry_run, progress).prune()


class _Collecting:
    """One run of either."""

    def __init__(
        self, store: Store, grace_days: float, dry_run: bool, progress: Progress | None
    ) -> None:
        assert isinstance(store.objects, ObjectDatabase)
        self._store = store
        self._objects = store.objects
        self._grace_ms = round(grace_days * DAY_MS)
        self._dry_run = dry_run
        self._tell = progress or _silently

    def gc(self, reflog_days: tuple[int, int]) -> Collected:
        store = self._store
        survey = self._survey(reflog_days)
        doomed = survey.doomed & survey.loose.keys()
        before = store.clock.now() - self._grace_ms
        if self._dry_run:
            due = [t for t in self._objects.quarantine.takings() if t.time <= before]
            return replace(
                self._report(survey),
                taken=len(doomed),
                bytes_taken=sum(_size(store, store.layout.loose_file(o.hex())) for o in doomed),
                bytes_emptied=sum(size_of(store.disk, taking) for taking in due),
            )
        with brief_lock(store, "trace gc"):
            entries = expire_logs(store, survey.roots, survey.expired.__contains__)
            taken, size = self._take(survey, Rewritten()) if doomed else (0, 0)
            emptied, bytes_emptied = empty_quarantine(store, before)
            forget_committed(store)
            swept = sweep(store)
            save_ages(store, survey.packed)
        packed = pack(
            store,
            progress=lambda done, whole: self._tell("packing", done, whole),
            leave=survey.loose.keys(),
            tracked=False,
        )
        return replace(
            self._report(survey),
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

    def prune(self) -> Collected:
        store = self._store
        survey = self._survey(None)
        names = packs_holding(store, survey.doomed)
        index = git_index(store.disk, store.layout.root) or b""
        report = replace(
            self._report(survey), sealed=0, tracked=sum(is_in(index, name) for name in names)
        )
        if self._dry_run or not survey.doomed:
            if not self._dry_run:
                save_ages(store, survey.packed)
            return replace(report, taken=len(survey.doomed))
        with brief_lock(store, "trace prune"):
            written = write_without(
                store,
                names,
                survey.doomed,
                progress=lambda done, whole: self._tell("writing", done, whole),
            )
            taken, size = self._take(survey, written)
            save_ages(store, survey.ages())
        return replace(
            report,
            taken=taken,
            bytes_taken=size,
            packs=len(written.packs),
            replaced=len(written.replaced),
            damaged=written.damaged,
        )

    def _survey(self, reflog_days: tuple[int, int] | None) -> Survey:
        """Look at everything, and, when nothing speaks against collecting, seal and look at it once more."""
        store, grace = self._store, self._grace_ms
        survey = Survey(store, grace_ms=grace, reflog_days=reflog_days, progress=self._tell)
        if self._dry_run or not seal(store).transactions:
            return survey
        # What no frame of a journal holds any more may be unreachable.
        return Survey(store, grace_ms=grace, reflog_days=reflog_days, progress=self._tell)

    def _report(self, survey: Survey) -> Collected:
        unreachable = survey.loose.keys() | survey.packed.keys()
        return Collected(
            reachable=survey.reachable,
            young=len(unreachable) - len(survey.doomed),
            sealed=len(survey.doomed & survey.packed.keys()),
            entries=len(survey.expired),
        )

    def _take(self, survey: Survey, written: Rewritten) -> tuple[int, int]:
        """Put what is doomed into quarantine; return how many objects, and the size of the files."""
        return self._store.alone(lambda: self._take_alone(survey, written))

    def _take_alone(self, survey: Survey, written: Rewritten) -> tuple[int, int]:
        """Do so while nobody writes. Of packs only those go that hold nothing that has been asked for meanwhile."""
        store, quarantine = self._store, self._objects.quarantine
        planned = survey.doomed
        survey.look_again()
        spared = planned - survey.doomed
        packs = [n for n in written.replaced if not (spared and self._holds(n, spared))]
        loose = survey.doomed & survey.loose.keys()
        if not packs and not loose:
            return 0, 0
        gone = loose.union(*(self._ids(name) & survey.doomed for name in packs))
        # Before they go: a commit with a row that is not here is taken for one of a journal that was lost.
        path = store.layout.commit_table_file
        table = commit_table.table.CommitTable(
            store.disk, path, store.config.store_id, store.objects
        )
        table.forget(gone)
        taking = quarantine.take(store.clock.now(), packs, sorted(loose))
        forget_copies(store, packs)
        with store.mutex:
            self._objects.packs.refresh()
        return len(gone), size_of(store.disk, taking)

    def _holds(self, name: str, oids: set[ObjectId]) -> bool:
        return not oids.isdisjoint(self._ids(name))

    def _ids(self, name: str) -> set[ObjectId]:
        packed = self._objects.packs.get(name)
        return set() if packed is None else set(packed.index.in_order())


def _size(store: Store, path: str) -> int:
    found = store.disk.stat(path)
    return 0 if found is None else found.st_size


def _silently(what: str, done: int, whole: int) -> None:
    """Say nothing of how far it is."""
