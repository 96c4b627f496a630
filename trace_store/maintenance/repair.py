"""Repair: what is damaged is made whole from second copies, and what cannot be is set aside and told.

In this order: packs, loose objects and journals; what refs lead to and is not here; refs and HEAD; what is derived.
Rule: nothing is deleted. What is recovered stands in a durable pack before a damaged file is taken out of use, and that
goes to `lost-found/`. So a repair may be interrupted anywhere and begun again, and a second one finds nothing to do.
Purged objects are not brought back.
"""

from __future__ import annotations

import os

from trace_store import errors, journal
from trace_store.files import read_file
from trace_store.layout import PACK_SUFFIX
from trace_store.maintenance.fsck import fsck
from trace_store.maintenance.fsck_journal import is_distrusted, rest_of, without_effect
from trace_store.maintenance.fsck_refs import check_derived
from trace_store.maintenance.lock import OperationLock
from trace_store.maintenance.lost_found import files_in, is_kept, keep_bytes, keep_file
from trace_store.maintenance.object_copies import Copies, confirmed_in_journal, objects_in, variants
from trace_store.maintenance.reachability import Marking
from trace_store.maintenance.repair_config import Opened
from trace_store.maintenance.repair_files import mend_derived, mend_files
from trace_store.maintenance.repair_refs import RefSalvage
from trace_store.maintenance.repair_report import Lost, Mended, SalvageReport
from trace_store.maintenance.seal import seal
from trace_store.odb.database import ObjectDatabase
from trace_store.odb.pack_writer import PackWriter
from trace_store.odb.packs import pack_names
from trace_store.odb.recovery import index_content
from trace_store.odb.tombstones import admit
from trace_store.oid import ObjectId, digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from trace_store.journal.frames import Frame
    from trace_store.store.handle import Store

    Progress = Callable[[str, int, int], None]

REPORT = "report"


def salvage(
    store: Store,
    *,
    source: Store | None = None,
    dry_run: bool = False,
    progress: Progress | None = None,
    opened: Opened | None = None,
) -> SalvageReport:
    """Repair a repository and return what was done.

    Args:
        store: what to repair.
        source: another repository with copies, such as a clone.
        dry_run: write nothing, and return what would be done.
        progress: told what is done, how many steps are, and of how many.
        opened: what was done to open it, for the report.

    Raises:
        InvalidInputError: the repository is in memory.
        LockedError: another process has been sealing or packing for a minute.
        StorageError: the disk refuses; nothing is lost, and repairing again goes on.
    """
    if not isinstance(store.objects, ObjectDatabase):
        raise errors.InvalidInputError("a repository in memory has no files to repair")
    work = _Salvage(store, store.objects, source, dry_run, progress)
    if opened is not None:
        work.mended += opened.mended
        work.kept += opened.kept
    if dry_run:
        work.contents()
        work.names()
        mend_derived(work)
    else:
        with OperationLock(store):
            work.contents()
        work.names()
        _seal(work)
        mend_derived(work)
    return work.report()


class _Salvage:
    """One repair.

    Attributes:
        store, database: what is repaired.
        copies: where objects are looked for.
        dry_run: whether nothing is written.
        mended, kept: what was done so far.
        found: ids of the objects that were recovered.
        behind: transactions that stand in journals behind damage.
        told_before: those of them that were set aside earlier.
        misplaced: journals that stand under another number than theirs.
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
        self.copies = Copies(store, source)
        self.dry_run = dry_run
        self.mended: list[Mended] = []
        self.kept: list[str] = []
        self.found: set[ObjectId] = set()
        self.behind: list[Frame] = []
        self.told_before: set[Frame] = set()
        self._progress = progress
        self._lost: dict[ObjectId, str] = {}

    # --- what is recovered ------------------------------------------------------------------------

    def contents(self) -> None:
        """Recover objects: from packs, loose files and journals, then whatever refs lead to."""
        names = pack_names(self.store.disk, self.store.layout)
        for at, name in enumerate(names):
            self.tell("reading packs", at, len(names))
            self._pack(name)
        self._loose()
        mend_files(self)
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
        whole = next((each for each in variants(data) if digest(each).hex() == name), data)
        recovered = dict(objects_in(whole, index))
        content = index_content(index)
        wanted = {oid for oid, _, _ in content.rows} if content is not None else set()
        for oid in sorted(wanted - recovered.keys()):
            copy = self.copies.find(oid)
            if copy is not None:
                recovered[oid] = copy
            else:
                self._lost.setdefault(oid, f"its bytes in pack {name[:12]} are damaged")
        self.write(recovered)
        if not self.dry_run:
            self.keep(path)
            self.keep(layout.pack_index_file(name))
            with self.store.mutex:
                self.database.packs.refresh()
        lost = len(wanted - recovered.keys())
        detail = f"{len(recovered)} objects were written to a new pack"
        self.did("pack", what, f"{detail}, {lost} were found nowhere" if lost else detail)

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
                self._lost.setdefault(oid, "its loose file is damaged")
                self.did("object", str(oid), "its loose file was set aside, and no copy was found")
            else:
                self.write({oid: copy})
                self.did("object", str(oid), "it was recovered from a second copy")
            self.keep(path)

    def _journals(self) -> None:
        """Recover what stands in journals behind damage, and in what a seal has set aside of such journals."""
        with self.store.mutex:
            self.store.journal.refresh()
            files = list(self.store.journal.files)
        known = [file for file in files if not is_distrusted(self.store, file)]
        rests = [(f"journal/{file.number}", rest_of(self.store, file), file.end) for file in known]
        aside = os.path.join(self.store.layout.lost_found_dir, "journal")
        rests += [("", _read(self.store, path) or b"", 0) for path in files_in(self.store, aside)]
        for name, rest, start in rests:
            behind = without_effect(rest, files)
            if not behind and journal.recovery.is_cut_off(rest, start):
                continue  # a write that did not come to its end, and was never acknowledged
            self.behind += behind
            self.told_before.update(() if name else behind)
            recovered = confirmed_in_journal(rest)
            fresh = {oid: data for oid, data in recovered if not self.has(oid)}
            self.write(fresh)
            if not fresh and (not name or is_kept(self.store, name, rest)):
                continue
            if name and not self.dry_run:
                self.kept.append(keep_bytes(self.store, name, rest))
            detail = f"{len(fresh)} objects of {len(behind)} whole and of damaged transactions"
            what = name or "lost-found/journal"
            self.did("journal", what, f"{detail} behind its valid end were recovered")

    def _missing(self) -> None:
        """Look for whatever refs lead to, or would but for damage, and is not here; and for what that leads to."""
        moved = [move.new for frame in self.behind for move in frame.moves if move.new is not None]
        while True:
            marking = self.marked([tip for _, tips in self.tips() for tip in tips] + moved)
            found: dict[ObjectId, bytes] = {}
            for oid in marking.absent:
                copy = None if oid in self.found else self.copies.find(oid)
                if copy is not None:
                    found[oid] = copy
            if not found:
                break
            self.write(found)
            for oid in sorted(found):
                self.did("object", str(oid), "it was missing, and recovered from a second copy")
        for oid in marking.absent:
            if oid not in self.found and oid not in moved:
                self._lost.setdefault(oid, "it is not here")

    # --- what the names become --------------------------------------------------------------------

    def names(self) -> None:
        """Restore refs and HEAD."""
        RefSalvage(self).run()

    def tips(self) -> list[tuple[str, tuple[ObjectId, ...]]]:
        """Return all refs, and their tips."""
        return list(self.store.refs.iterate_tips())

    # --- what the parts of a repair share ---------------------------------------------------------

    def has(self, oid: ObjectId) -> bool:
        """Tell whether a sound copy is in its place, or was recovered."""
        if oid in self.found:
            return True
        try:
            return bool(self.database.read(oid))
        except (errors.FormatError, errors.NotFoundError, errors.StorageError):
            return False

    def marked(self, starts: list[ObjectId]) -> Marking:
        """Return what some objects lead to; what is damaged counts as absent."""
        marking = Marking(self._read)
        marking.add(starts)
        for oid in self.database.purged:
            marking.absent.pop(ObjectId(oid), None)
        return marking

    def is_whole(self, oid: ObjectId) -> bool:
        """Tell whether all that an object leads to is here."""
        return not self.marked([oid]).absent

    def write(self, objects: dict[ObjectId, bytes]) -> None:
        """Make objects durable in a pack of their own."""
        fresh = admit(self.database, objects)
        self.found.update(fresh)
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
            writer.abandon()
        with self.store.mutex:
            self.database.packs.refresh()

    def keep(self, path: str, *, remove: bool = True) -> None:
        """Set a file aside."""
        if not self.dry_run:
            kept = keep_file(self.store, path, remove=remove)
            self.kept += [kept] if kept else []
            self.copies.forget()

    def did(self, kind: str, what: str, detail: str) -> None:
        """Note what was done."""
        self.mended.append(Mended(kind, what, detail))
        self.tell("repairing", len(self.mended), 0)

    def tell(self, what: str, done: int, whole: int) -> None:
        """Say how far it is."""
        if self._progress is not None:
            self._progress(what, done, whole)

    def _read(self, oid: bytes) -> bytes:
        try:
            return self.database.read(oid)
        except (errors.FormatError, errors.StorageError, errors.NotFoundError) as error:
            if oid in self.found:
                copy = self.copies.find(ObjectId(oid))
                if copy is not None:
                    return copy
            raise errors.ObjectNotFoundError(str(error), oid=oid) from error

    def report(self) -> SalvageReport:
        """Return what was done, and write it down where anything was."""
        remaining = tuple(fsck(self.store, also=[lambda: check_derived(self.store)]))
        told = SalvageReport(
            tuple(self.mended), self._told_lost(), tuple(self.kept), remaining, dry_run=self.dry_run
        )
        if self.dry_run or not (self.kept or self.lost_anything):
            return told
        stamp = f"{REPORT}-{self.store.clock.now()}"
        name = keep_bytes(self.store, f"{stamp}.txt", told.as_text())
        keep_bytes(self.store, f"{stamp}.json", told.as_json())
        return SalvageReport(told.mended, told.lost, told.kept, remaining, name)

    @property
    def lost_anything(self) -> bool:
        """Whether an object was found nowhere in this repair."""
        return bool(self._lost) and bool(self.mended)

    def _told_lost(self) -> tuple[Lost, ...]:
        lost = {oid: why for oid, why in self._lost.items() if not self.has(oid)}
        if not lost:
            return ()
        namers: dict[ObjectId, set[str]] = {}
        refs: dict[ObjectId, list[str]] = {}
        for name, tips in self.tips():
            marking = self.marked(list(tips))
            for oid in lost:
                if oid in marking.reached:
                    refs.setdefault(oid, []).append(name)
                namer = marking.absent.get(oid)
                if namer is not None:
                    namers.setdefault(oid, set()).add(str(namer))
        return tuple(
            Lost(str(oid), tuple(sorted(namers.get(oid, ()))), tuple(refs.get(oid, ())), lost[oid])
            for oid in sorted(lost)
        )


def _seal(work: _Salvage) -> None:
    """Take what journals hold into a pack: those with damage are done with then."""
    try:
        seal(work.store, fully=True)
    except errors.CorruptJournalError as error:
        work.did("journal", "journal", f"not sealed: {error}")


def _read(store: Store, path: str) -> bytes | None:
    try:
        return read_file(store.disk, path)
    except errors.StorageError:
        return None
