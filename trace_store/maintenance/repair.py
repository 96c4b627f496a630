"""Repair: recovery of damaged data from other copies.

The order is: the configuration; packs, loose objects and journals; missing objects; refs and HEAD; derived data.

Invariant: nothing is deleted. Recovered data is in a durable pack before a damaged file moves to `lost-found/`. A
repair can be interrupted and repeated, and a second one finds nothing to do. Purged objects are not recovered.
"""

from __future__ import annotations

import os

from trace_store import errors, journal
from trace_store.files import files_below, read_file
from trace_store.layout import PACK_SUFFIX
from trace_store.maintenance.fsck import check_derived, fsck
from trace_store.maintenance.fsck_objects import is_distrusted, lost_transactions, trailing_data
from trace_store.maintenance.lock import operation_lock
from trace_store.maintenance.lost_found import is_kept, keep_bytes, keep_file
from trace_store.maintenance.object_copies import (
    ObjectCopies,
    confirmed_in_journal,
    line_end_variants,
    objects_in,
)
from trace_store.maintenance.reachability import ReachableSet
from trace_store.maintenance.repair_files import repair_config, repair_derived, repair_files
from trace_store.maintenance.repair_refs import RefRepair
from trace_store.maintenance.repair_report import LostObject, RepairReport, RepairStep
from trace_store.maintenance.seal import seal
from trace_store.odb.database import ObjectDatabase
from trace_store.odb.pack_writer import PackWriter
from trace_store.odb.packs import pack_names
from trace_store.odb.quarantine import index_content
from trace_store.odb.tombstones import drop_purged
from trace_store.oid import ObjectId, digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from trace_store.journal.frames import Frame
    from trace_store.store.handle import Store

    Progress = Callable[[str, int, int], None]

REPORT = "report"


def repair(
    store: Store,
    *,
    source: Store | None = None,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> RepairReport:
    """Repair a repository and return the report.

    Args:
        store: the repository.
        source: another repository with copies, such as a clone.
        dry_run: write nothing, and report what would be done.
        progress: receives step, steps done and total.

    Raises:
        LockedError: another process has held the maintenance lock for a minute.
        StorageError: the disk refuses; nothing is lost, and repair can be repeated.
    """
    work = _Repair(store, store.objects, source, dry_run, progress)
    mended, kept = repair_config(store, source=source, dry_run=dry_run)
    work.mended += mended
    work.kept += kept
    if dry_run:
        work.contents()
        work.names()
        repair_derived(work)
    else:
        with operation_lock(store):
            work.contents()
        work.names()
        _seal(work)
        repair_derived(work)
    return work.report()


class _Repair:
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
        database: ObjectDatabase,
        source: Store | None,
        dry_run: bool,
        progress: Progress | None,
    ) -> None:
        self.store = store
        self.database = database
        self.copies = ObjectCopies(store, source)
        self.dry_run = dry_run
        self.mended: list[RepairStep] = []
        self.kept: list[str] = []
        self.recovered: set[ObjectId] = set()
        self.behind: list[Frame] = []
        self.reported_before: set[Frame] = set()
        self._progress = progress
        self._lost: dict[ObjectId, str] = {}

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
        while True:
            reachable = self.reachable_from(
                [tip for _, tips in self.tips() for tip in tips] + moved
            )
            copies: dict[ObjectId, bytes] = {}
            for oid in reachable.absent:
                copy = None if oid in self.recovered else self.copies.find(oid)
                if copy is not None:
                    copies[oid] = copy
            if not copies:
                break
            self.write(copies)
            for oid in sorted(copies):
                self.record_step("object", str(oid), "missing; recovered from another copy")
        for oid in reachable.absent:
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
        writer = PackWriter(self.store.disk, self.store.layout)
        try:
            for oid, data in fresh.items():
                writer.add(oid, data)
            writer.finish()
        finally:
            writer.discard()
        with self.store.mutex:
            self.database.packs.refresh()

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
        remaining = tuple(fsck(self.store, also=[lambda: check_derived(self.store)]))
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
        namers: dict[ObjectId, set[str]] = {}
        refs: dict[ObjectId, list[str]] = {}
        for name, tips in self.tips():
            reachable = self.reachable_from(list(tips))
            for oid in lost:
                if oid in reachable.reached:
                    refs.setdefault(oid, []).append(name)
                namer = reachable.absent.get(oid)
                if namer is not None:
                    namers.setdefault(oid, set()).add(str(namer))
        return tuple(
            LostObject(
                str(oid), tuple(sorted(namers.get(oid, ()))), tuple(refs.get(oid, ())), lost[oid]
            )
            for oid in sorted(lost)
        )


def _seal(work: _Repair) -> None:
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
