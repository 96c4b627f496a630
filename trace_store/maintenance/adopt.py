"""Adopting what git, or another tool, has done to the refs: `trace adopt`.

Rule: no value is given up. What a ref had before is kept under `refs/trash/recovered/` when its commit is here and the
new value does not continue it; with `keep_mine` it is the other way about. What the other tool took along with the
ref is written anew where this process can still read it, and else is told of.
"""

from __future__ import annotations

from trace_store.contracts import ANY, RefEdit, Transaction
from trace_store.frozen import value
from trace_store.maintenance.seal import seal
from trace_store.odb.database import ObjectDatabase
from trace_store.odb.packs import Packs
from trace_store.odb.reachable import reachable
from trace_store.refs.database import RefDatabase
from trace_store.refs.rewind_guard import note_adopted
from trace_store.store.recovery import Pasts, rescued

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.contracts import RefReader
    from trace_store.oid import ObjectId
    from trace_store.refs.rewind_guard import Change
    from trace_store.store.handle import Store


@value
class AdoptReport:
    """What was done.

    Attributes:
        changed: (name, value before, value then) of each ref that something else had moved.
        kept: (name, value) of each ref that keeps what another had, or would have had.
        gone: (name, value) of each ref whose value before is not here, and was not kept.
    """

    changed: tuple[Change, ...] = ()
    kept: tuple[tuple[str, ObjectId], ...] = ()
    gone: tuple[tuple[str, ObjectId], ...] = ()


def adopt(store: Store, *, keep_mine: bool = False, author: str = "unknown") -> AdoptReport:
    """Go on from what is on the disk; every process that has the repository open may, too.

    Args:
        store: whose refs were moved.
        keep_mine: whether refs go back to what this working copy, or this process, had; what is on the disk is kept.
        author: for the reflogs.

    Raises:
        LockedError: another process has been sealing for a minute.
        StorageError: the disk refuses.
    """
    refs = store.refs
    if not isinstance(refs, RefDatabase):
        return AdoptReport()
    changed = _changed(store, refs)
    kept: list[tuple[str, ObjectId]] = []
    gone: list[tuple[str, ObjectId]] = []
    for name, before, now in changed:
        if before is None:
            continue
        objects = _taken_along(store, before)
        if objects is None:
            gone.append((name, before))
            continue
        refs.known.pop(name, None)
        edits = _edits(store, (name, before, now), objects, keep_mine=keep_mine, author=author)
        kept += [(e.name, e.new) for e in edits if e.name != name and e.new is not None]
    seal(store, fully=True)
    if not keep_mine:
        note_adopted(store.disk, store.layout, refs.iterate())
        refs.known.clear()  # this process, too, goes on from what it finds
    return AdoptReport(tuple(changed), tuple(kept), tuple(gone))


def _changed(store: Store, refs: RefDatabase) -> list[Change]:
    """Return what something else moved since this working copy wrote it, or this process saw it; sorted by name."""
    found = {name: (name, before, now) for name, before, now in refs.moved_by_git()}
    for name, had in list(refs.known.items()):
        now = refs.read(name)
        with store.mutex:
            if now != had and not refs.witness.explains(name, had, now):
                found[name] = (name, had, now)
    return [found[name] for name in sorted(found)]


def _taken_along(store: Store, commit: ObjectId) -> list[tuple[ObjectId, bytes]] | None:
    """Return what a commit leads to and the disk has no more; None when some of it cannot be read.

    A process that has packs open reads what git has removed, until it looks for others.
    """
    on_disk = _OnDisk(store)
    absent: list[ObjectId] = []
    found = list(
        reachable(
            store.objects.read,
            [commit],
            hidden=on_disk,
            absent=lambda oid, _: absent.append(oid),
        )
    )
    return None if absent else found


class _OnDisk:
    """The ids of what is on the disk now, whatever this process has open."""

    __slots__ = ("_packs", "_store")

    def __init__(self, store: Store) -> None:
        self._store = store
        self._packs = Packs(store.disk, store.layout)

    def __contains__(self, oid: object) -> bool:
        assert isinstance(oid, bytes)
        objects = self._store.objects
        loose = isinstance(objects, ObjectDatabase) and objects.loose.contains(oid)
        with self._store.mutex:
            return loose or self._packs.contains(oid) or self._store.journal.contains(oid)


def _edits(
    store: Store,
    change: Change,
    objects: list[tuple[ObjectId, bytes]],
    *,
    keep_mine: bool,
    author: str,
) -> list[RefEdit]:
    """Keep what a ref would lose, and return what was done to which ref."""
    name, before, now = change
    made: list[RefEdit] = []

    def build(view: RefReader) -> Transaction:
        refs = store.refs
        assert isinstance(refs, RefDatabase)
        made.clear()
        if keep_mine and before != now:
            made.append(RefEdit(name, before, ANY))
        value, other = (now, before) if keep_mine else (before, now)
        within = value == other or (
            value is not None and other is not None and refs.lineage.is_ancestor(value, other)
        )
        if value is not None and not within and store.objects.contains(value):
            made.extend(
                RefEdit(m.name, m.new, m.old)
                for m in rescued(refs, Pasts(refs.lineage), name, value)
            )
        return Transaction(objects if made else [], list(made), "adopt")

    store.transact(build, author=author)
    return made
