"""Repair of refs, HEAD and damaged journals.

Rule: a ref is never left pointing at less than it did without the report saying what it was. A branch goes on to what a
damaged journal holds for it only where that continues it and is whole; anything else gets a ref of its own under
`refs/lost-found/`, or is listed.

Rule: this reads alone. Which commits a branch had is known from its reflog where its tip cannot be read any more.
"""

from __future__ import annotations

import os

from trace_store import errors
from trace_store.contracts import ANY, RefEdit, Transaction
from trace_store.files import create_file
from trace_store.frozen import value
from trace_store.graph import ancestors
from trace_store.oid import HEX_CHARACTERS, ObjectId
from trace_store.ref_names import is_ref_name
from trace_store.refs.database import RefDatabase
from trace_store.refs.names import BRANCHES
from trace_store.refs.resolution import lineage_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from trace_store.journal.frames import Frame
    from trace_store.maintenance.reachability import Marking
    from trace_store.store.handle import Store

    class Work(Protocol):
        """The repair that this is a part of."""

        store: Store
        dry_run: bool
        behind: list[Frame]
        told_before: set[Frame]

        def has(self, oid: ObjectId) -> bool: ...
        def is_whole(self, oid: ObjectId) -> bool: ...
        def marked(self, starts: list[ObjectId]) -> Marking: ...
        def keep(self, path: str, *, remove: bool = True) -> None: ...
        def did(self, kind: str, what: str, detail: str) -> None: ...


FOUND = "refs/lost-found/"
AUTHOR = "trace fsck --repair"


class RefSalvage:
    """Restores refs and HEAD."""

    __slots__ = ("_refs", "_store", "_work")

    def __init__(self, work: Work) -> None:
        assert isinstance(work.store.refs, RefDatabase)
        self._work = work
        self._store = work.store
        self._refs = work.store.refs

    def run(self) -> None:
        """Restore them, files first."""
        self._head()  # no transaction is made without it
        self._strays()
        self._files()
        self._behind()
        self._incomplete()

    def _strays(self) -> None:
        """Make files of tips that have content empty again, and set aside what is no tip."""
        for stray in list(self._refs.files.strays()):
            path = os.path.join(self._store.layout.root, *stray.split("/"))
            name, _, file = stray.rpartition("/")
            self._work.keep(path)
            if len(file) == HEX_CHARACTERS and _is_hex(file) and is_ref_name(name):
                if not self._work.dry_run:
                    create_file(self._store.disk, path)
                    self._store.disk.sync_directory(os.path.dirname(path))
                self._work.did("ref", name, f"its file {file[:12]} is empty again")
            else:
                self._work.did("file", stray, "it is no tip of a ref, and was set aside")

    def _files(self) -> None:
        """Give refs that this working copy has published, and that nothing moved since, their files back."""
        with self._store.mutex:
            journal = self._store.journal
            journal.refresh()
            published, moved = journal.published.tips.all(), journal.fold.refs
        for name, tips in sorted(published.items()):
            if name in moved or self._refs.files.read(name) or not all(map(self._work.has, tips)):
                continue
            if not self._work.dry_run:
                self._refs.files.write(name, tips, ())
            self._work.did("ref", name, f"its file was gone; it is {tips[0].short()} again")

    def _behind(self) -> None:
        """Bring to bear what transactions say that stand in journals behind damage."""
        wanted: dict[str, list[ObjectId]] = {}
        fresh = {
            move.name
            for frame in self._work.behind
            if frame not in self._work.told_before
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
                    detail = f"it was moved to {at}, of which none is whole"
                    self._work.did("ref", name, detail)
                continue
            current = self._refs.read(name)
            if current is not None and whole in self._work.marked([current]).reached:
                continue  # it went there, and on
            reached = self._work.marked([whole]).reached
            if current is None or (name.startswith(BRANCHES) and current in reached):
                self._move(name, whole)
                detail = f"it goes on to {whole.short()}, which stood in a journal behind damage"
            else:
                other = self._free_name(name, whole)
                if self._refs.read(other) == whole:
                    continue
                self._move(other, whole)
                detail = f"{whole.short()}, to which a damaged journal moved it, is now {other}"
            self._work.did("ref", name, detail)

    def _incomplete(self) -> None:
        """Move refs with missing commits back to the newest value of their reflog that is whole."""
        for name, tips in list(self._refs.iterate_tips()):
            there = [tip for tip in tips if self._work.has(tip)]
            if there and not (name.startswith(BRANCHES) and all(map(self._has_gap, there))):
                continue
            log = self._refs.reflog(name)
            values = [value for entry in log for value in (entry.new, entry.old) if value]
            known = [value for value in dict.fromkeys(values) if value not in tips]
            back = next((value for value in known if self._work.is_whole(value)), None)
            was = ", ".join(map(str, tips))
            if back is None:
                continue  # no other is known: what remains wrong says so
            self._move(name, back)
            for tip in there:
                self._move(self._free_name(name, tip), tip)
            what = "whose history is not whole" if there else "which is not here"
            self._work.did("ref", name, f"it was {was}, {what}; it is {back} again")

    def _has_gap(self, tip: ObjectId) -> bool:
        """Return True if a commit that a tip leads to is missing, here and in every copy."""
        past = ancestors([tip], self._refs.lineage.parents)
        return not all(map(self._work.has, past))

    def _head(self) -> None:
        """Let HEAD stand for the default branch where it says nothing, or leads to nothing."""
        try:
            head = self._refs.head()
            lost = head.detached and head.oid is not None and not self._work.has(head.oid)
            what = f"it was detached at {head.oid}, which is not here" if lost else ""
        except errors.FormatError as error:
            what = str(error)
        if what:
            self._work.keep(self._store.layout.head_file)
            self._work.did("head", "HEAD", f"{what}; it stands for the default branch now")

    def _move(self, name: str, to: ObjectId) -> None:
        if not self._work.dry_run:
            edit = RefEdit(name, to, ANY)
            self._store.transact(lambda _: Transaction((), [edit], "repair"), author=AUTHOR)

    def _free_name(self, name: str, value: ObjectId) -> str:
        """Return a ref under `refs/lost-found/` that is free, or has this value."""
        plain = FOUND + name.removeprefix("refs/")
        for candidate in (plain, f"{plain}-{value.hex()[:12]}"):
            if is_ref_name(candidate) and self._refs.read(candidate) in (None, value):
                return candidate
        return f"{FOUND}{value.hex()}"


def _is_hex(text: str) -> bool:
    return all(character in "0123456789abcdef" for character in text)


@value
class Gap:
    """A branch with a history that is not whole.

    Attributes:
        ref: its full name.
        tip: its value.
        missing: the newest commit that is not here.
        whole: the newest value of its reflog whose history is whole; None when none is known.
    """

    ref: str
    tip: ObjectId
    missing: ObjectId
    whole: ObjectId | None


def gaps(store: Store) -> list[Gap]:
    """Return the branches that have lost commits, sorted by name; it walks through all histories."""
    found: list[Gap] = []
    for name, tip in list(store.refs.iterate(BRANCHES)):
        missing = first_missing(store, tip)
        if missing is not None:
            found.append(Gap(name, tip, missing, newest_whole(store, name)))
    return found


def first_missing(store: Store, start: ObjectId) -> ObjectId | None:
    """Return the commit nearest to a start that is not here, the start included; None when all are."""
    past = ancestors([start], lineage_of(store.objects).parents)
    return next((oid for oid in past if not store.objects.contains(oid)), None)


def newest_whole(store: Store, name: str) -> ObjectId | None:
    """Return the newest value in the reflog of a branch whose history has no missing commit."""
    values = [each for entry in store.refs.reflog(name) for each in (entry.new, entry.old) if each]
    found = dict.fromkeys(values)
    return next((oid for oid in found if first_missing(store, oid) is None), None)
