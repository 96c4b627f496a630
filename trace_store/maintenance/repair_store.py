"""Repair: recovery of damaged data from other copies.

The order is: the configuration; packs, loose objects and journals; missing objects; refs and HEAD; derived data.

Invariant: nothing is deleted. Recovered data is in a durable pack before a damaged file moves to `lost-found/`. A
repair can be interrupted and repeated, and a second one finds nothing to do. Purged objects are not recovered.

Invariant: if a ref loses commits, the report has its old value. A branch is fast-forwarded to the value in a damaged
journal only if that descends from it and is complete; any other value gets a ref under `refs/lost-found/`, or is
listed. The reflog provides earlier values of a branch with an unreadable tip.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from trace_store import errors, journal
from trace_store.base.oid import ObjectId, digest, is_full_id
from trace_store.commit_table.graph import ancestors
from trace_store.contracts import ANY, RefEdit, Transaction
from trace_store.contracts.ref_names import BRANCHES, is_ref_name
from trace_store.disk.files import create_file, files_below, read_file
from trace_store.disk.layout import PACK_SUFFIX
from trace_store.journal.frames import Frame
from trace_store.maintenance.fsck import check_derived, fsck
from trace_store.maintenance.fsck_objects import is_distrusted, lost_transactions, trailing_data
from trace_store.maintenance.lock import operation_lock
from trace_store.maintenance.lost_found import is_kept, keep_bytes, keep_file
from trace_store.maintenance.missing_objects import find_copies, write_pack
from trace_store.maintenance.object_copies import (
    ObjectCopies,
    confirmed_in_journal,
    line_end_variants,
    objects_in,
)
from trace_store.maintenance.reachability import ReachableSet
from trace_store.maintenance.repair_files import repair_config, repair_derived, repair_files
from trace_store.maintenance.repair_report import (
    LostObject,
    RepairContext,
    RepairReport,
    RepairStep,
)
from trace_store.maintenance.seal import seal
from trace_store.odb.packs import pack_names
from trace_store.odb.quarantine import index_content
from trace_store.odb.tombstones import drop_purged
from trace_store.store.store import Store

Progress = Callable[[str, int, int], None]

REPORT = "report"
LOST_FOUND = "refs/lost-found/"
AUTHOR = "trace fsck --repair"


class StoreRepair:
    """One repair.

    Attributes:
        store, database: the repository.
        copies: finder of other copies.
        dry_run: write nothing.
        mended, kept: repairs and set-aside files so far.
        recovered: ids of recovered objects.
        behind: transactions in journals after damage.
        reported_before: those set aside by an earlier repair.
    """

    def __init__(
        self,
        store: Store,
        source: Store | None = None,
        *,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> None:
        """Prepare the repair of a repository.

        Args:
            store: the repository.
            source: another repository with copies, such as a clone.
            dry_run: write nothing, and report what would be done.
            progress: receives step, steps done and total.
        """
        self.store = store
        self.database = store.objects
        self.copies = ObjectCopies(store, source)
        self.dry_run = dry_run
        self._source = source
        self.mended: list[RepairStep] = []
        self.kept: list[str] = []
        self.recovered: set[ObjectId] = set()
        self.behind: list[Frame] = []
        self.reported_before: set[Frame] = set()
        self._progress = progress
        self._lost: dict[ObjectId, str] = {}

    def run(self) -> RepairReport:
        """Repair everything, and return the report.

        Raises:
            LockedError: another process has held the maintenance lock for a minute.
            StorageError: the disk refuses; nothing is lost, and the repair can be repeated.
        """
        mended, kept = repair_config(self.store, source=self._source, dry_run=self.dry_run)
        self.mended += mended
        self.kept += kept
        if self.dry_run:
            self.contents()
            self.names()
        else:
            with operation_lock(self.store):
                self.contents()
            self.names()
            _seal(self)
        repair_derived(self)
        return self.report()

    # --- contents
    # -----------------------------------------------------------------------------------

    def contents(self) -> None:
        """Recover objects from packs, loose files and journals, then missing ones."""
        names = pack_names(self.store.disk, self.store.layout)
        for at, name in enumerate(names):
            self.tell("reading packs", at, len(names))
            self._pack(name)
        self._loose()
        repair_files(self)
        self._journals()
        self._missing()
        if not self.dry_run:
            with self.store.mutex:
                self.database.packs.refresh()
                self.database.packs.repair_indexes()

    def _pack(self, name: str) -> None:
        layout = self.store.layout
        path, what = layout.pack_file(name), f"objects/pack/{name}{PACK_SUFFIX}"
        data = _read(self.store, path)
        if data is None or digest(data).hex() == name:
            return
        index = _read(self.store, layout.pack_index_file(name))
        whole = next((each for each in line_end_variants(data) if digest(each).hex() == name), data)
        recovered = dict(objects_in(whole, index))
        content = index_content(index)
        wanted = {oid for oid, _, _ in content.rows} if content is not None else set()
        for oid in sorted(wanted - recovered.keys()):
            copy = self.copies.find(oid)
            if copy is not None:
                recovered[oid] = copy
            else:
                self._lost.setdefault(oid, f"damaged in pack {name[:12]}")
        self.write(recovered)
        if not self.dry_run:
            self.set_aside(path)
            self.set_aside(layout.pack_index_file(name))
            with self.store.mutex:
                self.database.packs.refresh()
        lost = len(wanted - recovered.keys())
        detail = f"{len(recovered)} objects were written to a new pack"
        self.record_step("pack", what, f"{detail}, {lost} were not found" if lost else detail)

    def _loose(self) -> None:
        loose, layout = self.database.loose, self.store.layout
        for oid in list(loose.iterate()):
            try:
                loose.read(oid)
                continue
            except (errors.FormatError, errors.StorageError):
                copy = self.copies.find(oid)
            path = layout.loose_file(oid.hex())
            if copy is None:
                self._lost.setdefault(oid, "damaged loose file")
                self.record_step(
                    "object", str(oid), "its loose file was set aside; no copy was found"
                )
            else:
                self.write({oid: copy})
                self.record_step("object", str(oid), "recovered from another copy")
            self.set_aside(path)

    def _journals(self) -> None:
        """Recover data after damage in journals, and from journals that a seal set aside."""
        with self.store.mutex:
            self.store.journal.refresh()
            files = list(self.store.journal.files)
        known = [file for file in files if not is_distrusted(self.store, file)]
        rests = [
            (f"journal/{file.number}", trailing_data(self.store, file), file.end) for file in known
        ]
        set_aside = os.path.join(self.store.layout.lost_found_dir, "journal")
        rests += [
            ("", _read(self.store, path) or b"", 0)
            for path in sorted(files_below(self.store.disk, set_aside))
        ]
        for name, rest, start in rests:
            behind = lost_transactions(rest, files)
            if not behind and journal.recovery.is_cut_off(rest, start):
                continue  # an incomplete write that was never acknowledged
            self.behind += behind
            self.reported_before.update(() if name else behind)
            recovered = confirmed_in_journal(rest)
            fresh = {oid: data for oid, data in recovered if not self.has(oid)}
            self.write(fresh)
            if not fresh and (not name or is_kept(self.store, name, rest)):
                continue
            if name and not self.dry_run:
                self.kept.append(keep_bytes(self.store, name, rest))
            detail = f"{len(fresh)} objects of {len(behind)} complete and of damaged transactions"
            what = name or "lost-found/journal"
            self.record_step("journal", what, f"{detail} after its valid end were recovered")

    def _missing(self) -> None:
        """Recover missing objects that refs need, or would need but for damage."""
        moved = [move.new for frame in self.behind for move in frame.moves if move.new is not None]
        starts = [tip for _, tips in self.tips() for tip in tips] + moved
        absent = self.reachable_from(starts).absent
        copies = find_copies(absent.keys() - self.recovered, self.copies, self.has)
        self.write(copies)
        for oid in sorted(copies):
            self.record_step("object", str(oid), "missing; recovered from another copy")
        if copies:
            absent = self.reachable_from(starts).absent
        for oid in absent:
            if oid not in self.recovered and oid not in moved:
                self._lost.setdefault(oid, "missing")

    # --- refs
    # ---------------------------------------------------------------------------------------

    def names(self) -> None:
        """Repair refs and HEAD."""
        RefRepair(self).run()

    def tips(self) -> list[tuple[str, tuple[ObjectId, ...]]]:
        """Return all refs with their tips."""
        return list(self.store.refs.iterate_tips())

    # --- shared by the steps
    # ------------------------------------------------------------------------

    def has(self, oid: ObjectId) -> bool:
        """Return True if a sound copy exists or was recovered."""
        if oid in self.recovered:
            return True
        try:
            return bool(self.database.read(oid))
        except (errors.FormatError, errors.NotFoundError, errors.StorageError):
            return False

    def reachable_from(self, starts: list[ObjectId]) -> ReachableSet:
        """Return what is reachable; damaged objects count as missing."""
        reachable = ReachableSet(self._read)
        reachable.add(starts)
        for oid in self.database.purged:
            reachable.absent.pop(ObjectId(oid), None)
        return reachable

    def is_whole(self, oid: ObjectId) -> bool:
        """Return True if everything reachable from an object exists."""
        return not self.reachable_from([oid]).absent

    def write(self, objects: dict[ObjectId, bytes]) -> None:
        """Write objects to a durable pack of their own."""
        fresh = drop_purged(self.database, objects)
        self.recovered.update(fresh)
        for oid in fresh:
            self._lost.pop(oid, None)
        if self.dry_run or not fresh:
            return
        write_pack(self.store, fresh)

    def set_aside(self, path: str, *, remove: bool = True) -> None:
        """Move a file to `lost-found/`."""
        if not self.dry_run:
            kept = keep_file(self.store, path, remove=remove)
            self.kept += [kept] if kept else []
            self.copies.forget()

    def record_step(self, kind: str, what: str, detail: str) -> None:
        """Record a repair."""
        self.mended.append(RepairStep(kind, what, detail))
        self.tell("repairing", len(self.mended), 0)

    def tell(self, what: str, done: int, whole: int) -> None:
        """Report progress."""
        if self._progress is not None:
            self._progress(what, done, whole)

    def _read(self, oid: bytes) -> bytes:
        try:
            return self.database.read(oid)
        except (errors.FormatError, errors.StorageError, errors.NotFoundError) as error:
            if oid in self.recovered:
                copy = self.copies.find(ObjectId(oid))
                if copy is not None:
                    return copy
            raise errors.ObjectNotFoundError(str(error), oid=oid) from error

    def report(self) -> RepairReport:
        """Return the report; save it if anything was set aside or lost."""
        remaining = tuple(fsck(self.store, also=[check_derived]))
        report = RepairReport(
            tuple(self.mended),
            self._lost_objects(),
            tuple(self.kept),
            remaining,
            dry_run=self.dry_run,
        )
        if self.dry_run or not (self.kept or self.lost_anything):
            return report
        stamp = f"{REPORT}-{self.store.clock.now()}"
        name = keep_bytes(self.store, f"{stamp}.txt", report.as_text())
        keep_bytes(self.store, f"{stamp}.json", report.as_json())
        return RepairReport(report.mended, report.lost, report.kept, remaining, name)

    @property
    def lost_anything(self) -> bool:
        """True if this repair could not find an object."""
        return bool(self._lost) and bool(self.mended)

    def _lost_objects(self) -> tuple[LostObject, ...]:
        lost = {oid: why for oid, why in self._lost.items() if not self.has(oid)}
        if not lost:
            return ()
        referrers: dict[ObjectId, set[str]] = {}
        refs: dict[ObjectId, list[str]] = {}
        for name, tips in self.tips():
            reachable = self.reachable_from(list(tips))
            for oid in lost:
                if oid in reachable.reached:
                    refs.setdefault(oid, []).append(name)
                referrer = reachable.absent.get(oid)
                if referrer is not None:
                    referrers.setdefault(oid, set()).add(str(referrer))
        return tuple(
            LostObject(
                str(oid), tuple(sorted(referrers.get(oid, ()))), tuple(refs.get(oid, ())), lost[oid]
            )
            for oid in sorted(lost)
        )


def _seal(work: StoreRepair) -> None:
    """Seal, so that damaged journals are done with."""
    try:
        seal(work.store, fully=True)
    except errors.CorruptJournalError as error:
        work.record_step("journal", "journal", f"not sealed: {error}")


def _read(store: Store, path: str) -> bytes | None:
    try:
        return read_file(store.disk, path)
    except errors.StorageError:
        return None


class RefRepair:
    """Repairs refs and HEAD."""

    __slots__ = ("_refs", "_store", "_work")

    def __init__(self, work: RepairContext) -> None:
        self._work = work
        self._store = work.store
        self._refs = work.store.refs

    def run(self) -> None:
        """Repair HEAD, then ref files, then values."""
        self._head()  # transactions need HEAD
        self._strays()
        self._files()
        self._behind()
        self._incomplete()

    def _strays(self) -> None:
        """Empty tip files that have content, and set aside other stray files."""
        for stray in list(self._refs.files.strays()):
            path = os.path.join(self._store.layout.root, *stray.split("/"))
            name, _, file = stray.rpartition("/")
            self._work.set_aside(path)
            if is_full_id(file) and is_ref_name(name):
                if not self._work.dry_run:
                    create_file(self._store.disk, path)
                    self._store.disk.sync_directory(os.path.dirname(path))
                self._work.record_step("ref", name, f"its file {file[:12]} was emptied")
            else:
                self._work.record_step("file", stray, "not a tip of a ref; set aside")

    def _files(self) -> None:
        """Restore missing files of refs that this working copy published."""
        with self._store.mutex:
            journal = self._store.journal
            journal.refresh()
            published, moved = journal.published.tips.all(), journal.fold.refs
        for name, tips in sorted(published.items()):
            if name in moved or self._refs.files.read(name) or not all(map(self._work.has, tips)):
                continue
            if not self._work.dry_run:
                self._refs.files.write(name, tips, ())
            self._work.record_step("ref", name, f"missing file restored at {tips[0].short()}")

    def _behind(self) -> None:
        """Apply ref moves from transactions after damage in journals."""
        wanted: dict[str, list[ObjectId]] = {}
        fresh = {
            move.name
            for frame in self._work.behind
            if frame not in self._work.reported_before
            for move in frame.moves
        }
        for frame in self._work.behind:
            for move in frame.moves:
                if move.new is not None:
                    wanted.setdefault(move.name, []).insert(0, move.new)
        for name, values in sorted(wanted.items()):
            whole = next(filter(self._work.is_whole, values), None)
            if whole is None:
                at = ", ".join(value.short() for value in values)
                if name in fresh:
                    detail = f"it was moved to {at}, but none of these is complete"
                    self._work.record_step("ref", name, detail)
                continue
            current = self._refs.read(name)
            if current is not None and whole in self._work.reachable_from([current]).reached:
                continue  # it moved there and further
            reached = self._work.reachable_from([whole]).reached
            if current is None or (name.startswith(BRANCHES) and current in reached):
                self._move(name, whole)
                detail = f"moved to {whole.short()} from a damaged journal"
            else:
                other = self._free_name(name, whole)
                if self._refs.read(other) == whole:
                    continue
                self._move(other, whole)
                detail = f"its value {whole.short()} in a damaged journal is now {other}"
            self._work.record_step("ref", name, detail)

    def _incomplete(self) -> None:
        """Reset refs with missing commits to the newest complete value of their reflog."""
        for name, tips in list(self._refs.iterate_tips()):
            present = [tip for tip in tips if self._work.has(tip)]
            if present and not (name.startswith(BRANCHES) and all(map(self._has_gap, present))):
                continue
            log = self._refs.reflog(name)
            values = [value for entry in log for value in (entry.new, entry.old) if value]
            known = [value for value in dict.fromkeys(values) if value not in tips]
            back = next((value for value in known if self._work.is_whole(value)), None)
            was = ", ".join(map(str, tips))
            if back is None:
                continue  # no other value is known; a later check reports it
            self._move(name, back)
            for tip in present:
                self._move(self._free_name(name, tip), tip)
            what = "whose history is incomplete" if present else "which is missing"
            self._work.record_step("ref", name, f"was {was}, {what}; reset to {back}")

    def _has_gap(self, tip: ObjectId) -> bool:
        """Return True if an ancestor of a tip is missing everywhere."""
        past = ancestors([tip], self._refs.lineage.parents)
        return not all(map(self._work.has, past))

    def _head(self) -> None:
        """Reset HEAD to the default branch if it is unreadable or its commit is missing."""
        try:
            head = self._refs.head()
            lost = head.detached and head.oid is not None and not self._work.has(head.oid)
            what = f"it was detached at missing commit {head.oid}" if lost else ""
        except errors.FormatError as error:
            what = str(error)
        if what:
            self._work.set_aside(self._store.layout.head_file)
            self._work.record_step("head", "HEAD", f"{what}; it is on the default branch now")

    def _move(self, name: str, to: ObjectId) -> None:
        if not self._work.dry_run:
            edit = RefEdit(name, to, ANY)
            self._store.transact(lambda _: Transaction((), [edit], "repair"), author=AUTHOR)

    def _free_name(self, name: str, value: ObjectId) -> str:
        """Return an unused ref under `refs/lost-found/`, or one with this value."""
        plain = LOST_FOUND + name.removeprefix("refs/")
        for candidate in (plain, f"{plain}-{value.hex()[:12]}"):
            if is_ref_name(candidate) and self._refs.read(candidate) in (None, value):
                return candidate
        return f"{LOST_FOUND}{value.hex()}"
