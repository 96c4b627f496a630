"""Take a bundle in: its objects, then its refs.

Rule: nothing is visible before all of it has been found to be sound. Refs are made, and branches go forward; nothing
is ever moved back, over, or away. A branch that both sides moved has two tips afterwards, as it has when git merges
the two; with a prefix it goes beside the one that is here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from trace_store.bundles.create import BundleReport, Progress
from trace_store.bundles.format import BundledRef, BundleHeader, Read
from trace_store.bundles.source import opened_bundle
from trace_store.bundles.verify import check_prerequisites, examine, go_through, report
from trace_store.contracts import RefEdit, Transaction
from trace_store.errors import FormatError, NotFoundError, RefChangedError
from trace_store.graph import is_ancestor
from trace_store.maintenance.seal import seal
from trace_store.maintenance.second_copies import keep_copies
from trace_store.objects.commit import parents_of
from trace_store.odb.database import ObjectDatabase
from trace_store.odb.ingest import PackReceiver
from trace_store.odb.memory import MemoryObjects
from trace_store.odb.tombstones import oid_of
from trace_store.odb.verify import PackedObject
from trace_store.oid import ObjectId
from trace_store.refs.database import RefDatabase
from trace_store.refs.names import BRANCHES, check_ref_name
from trace_store.store.handle import Store

CREATED = "created"
FORWARDED = "forwarded"
UNCHANGED = "unchanged"
BEHIND = "behind"
DIVERGED = "diverged"
KEPT = "kept"

MAXIMUM_ATTEMPTS = 5
"""How often the refs are looked at anew when others move them meanwhile."""
AUTHOR = "bundle"
_MESSAGE = "bundle import"


@dataclass(frozen=True, slots=True)
class RefOutcome:
    """What became of one ref of a bundle.

    Attributes:
        name: the ref here.
        source: its name in the bundle.
        outcome: `created`; `forwarded`, a branch that goes on from what was here; `unchanged`; `behind`, a branch
            whose values here go on from the bundle's; `diverged`, a branch that has the bundle's as a further tip;
            `kept`, anything else that stands elsewhere here, and stays there.
        before: its own value before, or None.
        theirs: its values in the bundle.
    """

    name: str
    source: str
    outcome: str
    before: ObjectId | None
    theirs: tuple[ObjectId, ...]


@dataclass(frozen=True, slots=True)
class ImportedBundle:
    """What an import did.

    Attributes:
        bundle: what is in the bundle.
        refs: what became of each ref.
        packs: the names of the packs that are new here; without what was purged here.
        head: the full name of the branch that HEAD was attached to, or "".
    """

    bundle: BundleReport
    refs: tuple[RefOutcome, ...]
    packs: tuple[str, ...]
    head: str


def import_bundle(
    store: Store,
    source: str | Read,
    *,
    prefix: str = "",
    author: str = AUTHOR,
    progress: Progress | None = None,
) -> ImportedBundle:
    """Take a bundle into a store and return what became of it; taking it again adds nothing.

    Args:
        store: where to.
        source: the path of a file, or a function that reads a stream.
        prefix: put before the names of refs, behind their namespace: `theirs` makes `refs/heads/main`
            `refs/heads/theirs/main`.
        author: for the reflogs.
        progress: told how far it is.

    Raises:
        UnreadableInputError: there is no such file, or it cannot be read.
        CorruptBundleError: it is no bundle, or something is wrong with it.
        UnsupportedFormatError: a newer version wrote it.
        ObjectNotFoundError: what it builds upon is not here; `.missing` holds the ids.
        InvalidRefNameError: a name with the prefix is no ref name.
        RefChangedError: others keep moving the refs.
        StorageError: the disk refuses.
    """
    with opened_bundle(source) as reader:
        header = reader.header
        names = {ref.name: _renamed(ref.name, prefix) for ref in header.refs}
        check_prerequisites(store, header)
        receiver = _receiver(store)
        if isinstance(store.objects, ObjectDatabase):
            store.objects.relied_on.update(header.prerequisites)
        try:
            go_through(reader, receiver.take, store=store, progress=progress)
            if header.tombstones and isinstance(store.objects, ObjectDatabase):
                # What is here stays: nobody else's word takes it away.
                lacking = [f for f in header.tombstones if not _is_here(store, f[0])]
                store.objects.tombstones.take(lacking)
            packs = receiver.keep()
            if isinstance(store.objects, ObjectDatabase):
                keep_copies(store, list(packs))
        finally:
            receiver.abandon()
        bundle = report(reader)
    fresh = store.refs.head().unborn
    outcomes = _move(store, header.refs, names, author)
    head = _attach(store, header, outcomes, author) if fresh and not prefix else ""
    return ImportedBundle(bundle, tuple(outcomes), tuple(packs), head)


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is to be done with one ref.

    Attributes:
        outcome: what the report says.
        edit: the move of this working copy's own value, or None.
        further: values that become tips beside it.
    """

    outcome: RefOutcome
    edit: RefEdit | None = None
    further: tuple[ObjectId, ...] = ()


def _move(
    store: Store, refs: Sequence[BundledRef], names: dict[str, str], author: str
) -> list[RefOutcome]:
    """Make and move the refs, all together, and return what became of them."""
    attempts = 0
    while True:
        attempts += 1
        plans = [_plan(store, ref, names[ref.name]) for ref in refs]
        edits = [plan.edit for plan in plans if plan.edit is not None]
        transaction = Transaction((), edits, _MESSAGE) if edits else None
        try:
            store.transact(lambda _, made=transaction: made, author=author)  # type: ignore[misc]
            break
        except RefChangedError:
            if attempts == MAXIMUM_ATTEMPTS:
                raise
    further = [(plan.outcome.name, tip) for plan in plans for tip in plan.further]
    if further:
        assert isinstance(store.refs, RefDatabase)
        store.refs.overview.forget()
        for name, tip in further:
            store.refs.files.add(name, tip)
        seal(
            store, fully=True
        )  # which takes note of the new tips, so that nobody says that git brought them
    return [plan.outcome for plan in plans]


def _plan(store: Store, ref: BundledRef, name: str) -> _Plan:
    ours = store.refs.tips(name)
    before = ours[0] if ours else None

    def outcome(word: str) -> RefOutcome:
        return RefOutcome(name, ref.name, word, before, ref.tips)

    several = isinstance(store.refs, RefDatabase)
    if before is None:
        edit = RefEdit(name, ref.tips[0], None)
        return _Plan(outcome(CREATED), edit, ref.tips[1:] if several else ())
    if set(ref.tips) <= set(ours):
        return _Plan(outcome(UNCHANGED))
    if not name.startswith(BRANCHES):
        return _Plan(outcome(KEPT))
    own, further = before, list[ObjectId]()
    for tip in ref.tips:
        if any(_leads_to(store, tip, there) for there in (*ours, own, *further)):
            continue
        if _leads_to(store, own, tip):
            own = tip
        else:
            further.append(tip)
    goes_on = RefEdit(name, own, before) if own != before else None
    if further and several:
        return _Plan(outcome(DIVERGED), goes_on, tuple(further))
    if goes_on is not None:
        return _Plan(outcome(FORWARDED), goes_on)
    return _Plan(outcome(KEPT if further else BEHIND))


def _leads_to(store: Store, older: ObjectId, newer: ObjectId) -> bool:
    """Tell whether a commit lies in another's past, or is it; what is not here has no past."""

    def parents(oid: ObjectId) -> Sequence[ObjectId]:
        try:
            return parents_of(store.objects.read(oid))
        except (NotFoundError, FormatError):
            return ()

    return is_ancestor(older, newer, parents)


def _attach(store: Store, header: BundleHeader, outcomes: Sequence[RefOutcome], author: str) -> str:
    """Attach a HEAD without a commit to the bundle's, or to its first branch; return the branch, or ""."""
    created = [each.name for each in outcomes if each.name.startswith(BRANCHES)]
    target = header.head if header.head in created else ""
    if not target and store.refs.head().unborn and created:
        target = created[0]
    if target and store.refs.head_target() != target:
        store.refs.set_head(target, message=_MESSAGE, author=author)
    return target


def _is_here(store: Store, tombstone: str) -> bool:
    oid = oid_of(tombstone)
    return oid is not None and store.objects.contains(oid)


def _renamed(name: str, prefix: str) -> str:
    if not prefix:
        return name
    space, kind, rest = name.split("/", 2)
    return check_ref_name(f"{space}/{kind}/{prefix.strip('/')}/{rest}")


class _MemoryReceiver:
    """Takes packs for a repository in memory."""

    def __init__(self, objects: MemoryObjects) -> None:
        self._objects = objects
        self._taken: list[bytes] = []

    def take(self, data: bytes, where: str, each: Callable[[PackedObject], None]) -> None:
        """Check a pack and keep it aside."""
        examine(data, where, each)
        self._taken.append(data)

    def keep(self) -> list[str]:
        """Put the objects of what was taken into the repository; it has no packs."""
        for data in self._taken:
            examine(data, "", self._write)
        return []

    def _write(self, found: PackedObject) -> None:
        self._objects.write(found.data)

    def abandon(self) -> None:
        """Forget what was taken."""
        self._taken.clear()


def _receiver(store: Store) -> PackReceiver | _MemoryReceiver:
    if isinstance(store.objects, ObjectDatabase):
        return PackReceiver(store.disk, store.layout, store.objects, leave_out=True)
    return _MemoryReceiver(store.objects)
