"""Import of bundles: objects first, then refs.

Invariant: nothing is visible before the whole bundle is verified. Refs are created and branches fast-forwarded; no
ref is moved back, overwritten or deleted. A branch that diverged gets a second tip, as after a git merge of the
two. With a prefix, refs are created under it instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trace_store.bundles.create import BundleReport, Progress, report
from trace_store.bundles.format import BundledRef, BundleHeader, Read, open_bundle
from trace_store.bundles.verify import check_bundle, check_prerequisites
from trace_store.contracts import RefEdit, Transaction
from trace_store.errors import RefChangedError
from trace_store.maintenance.seal import seal
from trace_store.maintenance.second_copies import keep_copies
from trace_store.odb.ingest import PackReceiver
from trace_store.odb.tombstones import oid_of
from trace_store.oid import ObjectId
from trace_store.ref_names import BRANCHES, check_ref_name
from trace_store.refs.resolution import Lineage
from trace_store.store.handle import Store

CREATED = "created"
FORWARDED = "forwarded"
UNCHANGED = "unchanged"
BEHIND = "behind"
DIVERGED = "diverged"
KEPT = "kept"

MAXIMUM_ATTEMPTS = 5
"""How often to retry when another process moves the refs."""
AUTHOR = "bundle"
_MESSAGE = "bundle import"


@dataclass(frozen=True, slots=True)
class RefOutcome:
    """Result for one ref of a bundle.

    Attributes:
        name: the local ref.
        source: its name in the bundle.
        outcome: `created`; `forwarded`: a fast-forwarded branch; `unchanged`; `behind`: the local branch already
            contains the bundle's tips; `diverged`: the branch has the bundle's tip as a second one; `kept`: any
            other ref with a different local value, left alone.
        before: its own tip before the import, or None.
        theirs: its tips in the bundle.
    """

    name: str
    source: str
    outcome: str
    before: ObjectId | None
    theirs: tuple[ObjectId, ...]


@dataclass(frozen=True, slots=True)
class ImportedBundle:
    """Result of an import.

    Attributes:
        bundle: report of the bundle.
        refs: one result for each ref.
        packs: names of the new packs, without objects purged here.
        head: full name of the branch that HEAD was attached to, or "".
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
    """Import a bundle into a store; a repeated import is a no-op.

    Args:
        store: the target repository.
        source: a file path, or a function that reads a stream.
        prefix: inserted after the namespace of each ref: `theirs` imports `refs/heads/main` as
            `refs/heads/theirs/main`.
        author: author of the reflog entries.
        progress: receives the progress.

    Raises:
        UnreadableInputError: the file does not exist or cannot be read.
        CorruptBundleError: the input is not a bundle or is damaged.
        UnsupportedFormatError: a newer version wrote it.
        ObjectNotFoundError: a prerequisite is missing; `.missing` holds the ids.
        InvalidRefNameError: a prefixed name is not a valid ref name.
        RefChangedError: other processes keep moving the refs.
        StorageError: the disk refuses a write.
    """
    with open_bundle(source) as reader:
        header = reader.header
        names = {ref.name: _prefix_name(ref.name, prefix) for ref in header.refs}
        check_prerequisites(store, header)
        receiver = PackReceiver(store.disk, store.layout, store.objects, leave_out=True)
        store.objects.required.update(header.prerequisites)
        try:
            check_bundle(reader, receiver.add, store=store, progress=progress)
            if header.tombstones:
                # A foreign tombstone never removes a local object.
                lacking = [f for f in header.tombstones if not _is_present(store, f[0])]
                store.objects.tombstones.add_files(lacking)
            packs = receiver.publish()
            keep_copies(store, list(packs))
        finally:
            receiver.discard()
        bundle = report(reader)
    fresh = store.refs.head().unborn
    outcomes = _move(store, header.refs, names, author)
    head = _attach(store, header, outcomes, author) if fresh and not prefix else ""
    return ImportedBundle(bundle, tuple(outcomes), tuple(packs), head)


@dataclass(frozen=True, slots=True)
class _Plan:
    """Planned change of one ref.

    Attributes:
        outcome: the result to report.
        edit: the update of this working copy's own tip, or None.
        further: values to add as further tips.
    """

    outcome: RefOutcome
    edit: RefEdit | None = None
    further: tuple[ObjectId, ...] = ()


def _move(
    store: Store, refs: Sequence[BundledRef], names: dict[str, str], author: str
) -> list[RefOutcome]:
    """Create and update the refs in one transaction; return the results."""
    attempts = 0
    lineage = Lineage(store.objects)
    while True:
        attempts += 1
        plans = [_plan(store, ref, names[ref.name], lineage) for ref in refs]
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
        store.refs.summary.forget()
        for name, tip in further:
            store.refs.files.add(name, tip)
        seal(
            store, fully=True
        )  # records the new tips, so that they are not reported as changes by git
    return [plan.outcome for plan in plans]


def _plan(store: Store, ref: BundledRef, name: str, lineage: Lineage) -> _Plan:
    ours = store.refs.tips(name)
    before = ours[0] if ours else None

    def outcome(word: str) -> RefOutcome:
        return RefOutcome(name, ref.name, word, before, ref.tips)

    if before is None:
        edit = RefEdit(name, ref.tips[0], None)
        return _Plan(outcome(CREATED), edit, ref.tips[1:])
    if set(ref.tips) <= set(ours):
        return _Plan(outcome(UNCHANGED))
    if not name.startswith(BRANCHES):
        return _Plan(outcome(KEPT))
    own, further = before, list[ObjectId]()
    for tip in ref.tips:
        if any(lineage.is_ancestor(tip, other) for other in (*ours, own, *further)):
            continue
        if lineage.is_ancestor(own, tip):
            own = tip
        else:
            further.append(tip)
    fast_forward = RefEdit(name, own, before) if own != before else None
    if further:
        return _Plan(outcome(DIVERGED), fast_forward, tuple(further))
    if fast_forward is not None:
        return _Plan(outcome(FORWARDED), fast_forward)
    return _Plan(outcome(BEHIND))


def _attach(store: Store, header: BundleHeader, outcomes: Sequence[RefOutcome], author: str) -> str:
    """Attach an unborn HEAD to the bundle's branch; return its full name, or ""."""
    created = [each.name for each in outcomes if each.name.startswith(BRANCHES)]
    target = header.head if header.head in created else ""
    if not target and store.refs.head().unborn and created:
        target = created[0]
    if target and store.refs.head_target() != target:
        store.refs.set_head(target, message=_MESSAGE, author=author)
    return target


def _is_present(store: Store, tombstone: str) -> bool:
    oid = oid_of(tombstone)
    return oid is not None and store.objects.contains(oid)


def _prefix_name(name: str, prefix: str) -> str:
    if not prefix:
        return name
    space, kind, rest = name.split("/", 2)
    return check_ref_name(f"{space}/{kind}/{prefix.strip('/')}/{rest}")
