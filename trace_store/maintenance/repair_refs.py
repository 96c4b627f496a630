"""Repair of refs and HEAD, also from damaged journals.

Invariant: if a ref loses commits, the report has its old value. A branch is fast-forwarded to the value in a
damaged journal only if that descends from it and is complete; any other value gets a ref under `refs/lost-found/`,
or is listed. The reflog provides earlier values of a branch with an unreadable tip.
"""

from __future__ import annotations

import os

from trace_store import errors
from trace_store.contracts import ANY, RefEdit, Transaction
from trace_store.files import create_file
from trace_store.frozen import value
from trace_store.graph import ancestors
from trace_store.oid import ObjectId, is_full_id
from trace_store.ref_names import is_ref_name
from trace_store.refs.names import BRANCHES
from trace_store.refs.resolution import Lineage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.maintenance.repair_report import RepairContext
    from trace_store.store.handle import Store

LOST_FOUND = "refs/lost-found/"
AUTHOR = "trace fsck --repair"


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


@value
class Gap:
    """A branch with incomplete history.

    Attributes:
        ref: full name.
        tip: its tip.
        missing: the newest missing commit.
        whole: the newest reflog value with complete history, or None.
    """

    ref: str
    tip: ObjectId
    missing: ObjectId
    whole: ObjectId | None


def gaps(store: Store) -> list[Gap]:
    """Return the branches with missing commits, in name order; walks all histories."""
    branches: list[Gap] = []
    for name, tip in list(store.refs.iterate(BRANCHES)):
        missing = first_missing(store, tip)
        if missing is not None:
            branches.append(Gap(name, tip, missing, newest_whole(store, name)))
    return branches


def first_missing(store: Store, start: ObjectId) -> ObjectId | None:
    """Return the missing commit nearest to a start, or None."""
    past = ancestors([start], Lineage(store.objects).parents)
    return next((oid for oid in past if not store.objects.contains(oid)), None)


def newest_whole(store: Store, name: str) -> ObjectId | None:
    """Return the newest reflog value of a branch with complete history, or None."""
    values = [each for entry in store.refs.reflog(name) for each in (entry.new, entry.old) if each]
    return next((oid for oid in dict.fromkeys(values) if first_missing(store, oid) is None), None)
