"""Adoption of ref changes made by git or another tool, for `Maintenance.adopt`.

Invariant: no value is lost. The previous value of a ref is kept under `refs/trash/recovered/` if its commit exists
and the new value does not contain it; with `keep_mine`, the other way round. Objects that the other tool removed
are rewritten if this process can still read them, else reported.
"""

from __future__ import annotations

from trace_store.base.frozen import value
from trace_store.base.oid import ObjectId
from trace_store.contracts import ANY, RefEdit, Transaction
from trace_store.contracts.protocols import RefReader
from trace_store.odb.packs import Packs
from trace_store.odb.reachable import reachable
from trace_store.store.recovery import Pasts, rescued
from trace_store.store.store import Store
from trace_store.writer import Writer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.refs.rewind_guard import Change


@value
class AdoptReport:
    """Result of an adoption.

    Attributes:
        changed: (name, old value, new value) of each ref that another tool moved.
        kept: (name, value) of each ref that keeps the other value.
        gone: (name, value) of each ref whose old value is missing and could not be kept.
    """

    JSON = "changed:ref,before,now kept:ref,commit gone:ref,commit"

    changed: tuple[Change, ...] = ()
    kept: tuple[tuple[str, ObjectId], ...] = ()
    gone: tuple[tuple[str, ObjectId], ...] = ()


def changed_refs(store: Store) -> list[Change]:
    """Return the refs that another tool moved, in name order."""
    refs = store.refs
    changes = {name: (name, before, now) for name, before, now in refs.moved_by_git()}
    for name, had in list(refs.known.items()):
        now = refs.read(name)
        with store.mutex:
            if now != had and not refs.rewind_guard.explains(name, had, now):
                changes[name] = (name, had, now)
    return [changes[name] for name in sorted(changes)]


def removed_objects(store: Store, commit: ObjectId) -> list[tuple[ObjectId, bytes]] | None:
    """Return the objects reachable from a commit that are no longer on disk.

    None if unreadable.

    A process with open packs can read what git has removed, until it looks for other packs.
    """
    on_disk = _OnDisk(store)
    absent: list[ObjectId] = []
    objects = list(
        reachable(
            store.objects.read,
            [commit],
            hidden=on_disk,
            absent=lambda oid, _: absent.append(oid),
        )
    )
    return None if absent else objects


class _OnDisk:
    """Ids of the objects on disk now, independent of open packs."""

    __slots__ = ("_packs", "_store")

    def __init__(self, store: Store) -> None:
        self._store = store
        self._packs = Packs(store.disk, store.layout)

    def __contains__(self, oid: object) -> bool:
        assert isinstance(oid, bytes)
        objects = self._store.objects
        loose = objects.loose.contains(oid)
        with self._store.mutex:
            return loose or self._packs.contains(oid) or self._store.journal.contains(oid)


def keep_values(
    writer: Writer,
    moved: Change,
    objects: list[tuple[ObjectId, bytes]],
    *,
    keep_mine: bool,
) -> list[RefEdit]:
    """Keep the value that a ref would lose; return the edits."""
    store = writer.store
    name, before, now = moved
    edits: list[RefEdit] = []

    def build(view: RefReader) -> Transaction:
        refs = store.refs
        edits.clear()
        if keep_mine and before != now:
            edits.append(RefEdit(name, before, ANY))
        value, other = (now, before) if keep_mine else (before, now)
        is_contained = value == other or (
            value is not None and other is not None and refs.lineage.is_ancestor(value, other)
        )
        if value is not None and not is_contained and store.objects.contains(value):
            edits.extend(
                RefEdit(m.name, m.new, m.old)
                for m in rescued(refs, Pasts(refs.lineage), name, value)
            )
        return Transaction(objects if edits else [], list(edits), "adopt")

    store.transact(build, author=writer.author)  # the objects were stored before
    return edits
