"""Import of bundles: objects first, then refs.

Invariant: nothing is visible before the whole bundle is verified. Refs are created and branches fast-forwarded; no
ref is moved back, overwritten or deleted. A branch or trajectory that diverged gets a second tip, as after a git merge
of the two. With a prefix, refs are created under it instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trace_store.base.oid import ObjectId
from trace_store.bundles.create import BundleReport
from trace_store.bundles.format import BundledRef, BundleHeader
from trace_store.contracts import RefEdit
from trace_store.contracts.ref_names import BRANCHES, check_ref_name, joins_by_merge, joins_by_time
from trace_store.errors import RefChangedError
from trace_store.maintenance.seal import seal
from trace_store.odb.tombstones import oid_of
from trace_store.refs.resolution import Lineage
from trace_store.store.store import Store
from trace_store.writer import Writer

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
        outcome: `created`; `forwarded`: a fast-forwarded branch or trajectory; `unchanged`; `behind`: the local one
            already contains the bundle's tips; `diverged`: it has the bundle's tip as a second one; `kept`: any other
            ref with a different local value, left alone.
        before: its own tip before the import, or None.
        theirs: its tips in the bundle.
    """

    JSON = "tips=theirs"

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

    JSON = "objects=bundle.object_count head?"

    bundle: BundleReport
    refs: tuple[RefOutcome, ...]
    packs: tuple[str, ...]
    head: str


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


def move_refs(
    writer: Writer, refs: Sequence[BundledRef], names: dict[str, str]
) -> list[RefOutcome]:
    """Create and update the refs in one transaction; return the results."""
    attempts, store, change = 0, writer.store, writer.begin()
    lineage = Lineage(store.objects)
    while True:
        attempts += 1
        plans = [_plan(store, ref, names[ref.name], lineage) for ref in refs]
        edits = [plan.edit for plan in plans if plan.edit is not None]
        try:
            change.write(lambda _, made=edits: made or None, _MESSAGE)  # type: ignore[misc]
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
    if not (joins_by_merge(name) or joins_by_time(name)):
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


def attach_head(writer: Writer, header: BundleHeader, outcomes: Sequence[RefOutcome]) -> str:
    """Attach an unborn HEAD to the bundle's branch; return its full name, or ""."""
    store = writer.store
    created = [each.name for each in outcomes if each.name.startswith(BRANCHES)]
    target = header.head if header.head in created else ""
    if not target and store.refs.head().unborn and created:
        target = created[0]
    if target and store.refs.head_target() != target:
        store.refs.set_head(target, message=_MESSAGE, author=writer.author)
    return target


def is_present(store: Store, tombstone: str) -> bool:
    """Return True if the object of a tombstone, named by its file, is here."""
    oid = oid_of(tombstone)
    return oid is not None and store.objects.contains(oid)


def prefix_name(name: str, prefix: str) -> str:
    """Return the name of a ref under a prefix, which comes after its namespace; raises InvalidRefNameError."""
    if not prefix:
        return name
    space, kind, rest = name.split("/", 2)
    return check_ref_name(f"{space}/{kind}/{prefix.strip('/')}/{rest}")
