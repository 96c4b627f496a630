"""The three-way merge of a commit that only changes messages, computed for these messages alone.

Rule: the result is that of a merge of the whole contexts, where all messages that the commit does not touch are as in
the base on one side, so that they stay as they are. If it adds or moves messages, or if there is a conflict, there is
no result, and the whole contexts have to be merged.
"""

from __future__ import annotations

from trace_store.context.fold import Fold
from trace_store.merge.merge3 import three_way
from trace_store.objects import operations as ops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from trace_store.base.oid import ObjectId
    from trace_store.merge.inputs import MergePlan
    from trace_store.objects.address import Address
    from trace_store.objects.commit import Commit

_CHANGES = frozenset((ops.EDIT, ops.ANNOTATE, ops.REMOVE, ops.RESTORE, *ops.LEAVES_CONTEXT))
_NEAR = 32


def merge_touched(
    oid: ObjectId, commit: Commit, base: Fold, ours: Fold, **options: Any
) -> MergePlan | None:
    """Return the plan that brings a commit's changes into ours.

    Args:
        oid: the id of the commit.
        commit: the commit.
        base: the context before it.
        ours: the context to change, which has all messages of the base.
        options: as in `three_way`.

    Returns:
        None if the commit adds or moves messages, or if there is a conflict.
    """
    if any(operation.name not in _CHANGES for operation in commit.operations):
        return None
    targets = {a: None for o in commit.operations for a in ops.targets_of(o, oid)}
    touched = list(targets)
    for each in touched:
        if each not in base or each not in ours:
            return None  # the commit is damaged, or ours joined it with a new message
        touched += [a for side in (base, ours) for a in side.unit(each) if a not in targets]
        targets.update(dict.fromkeys(touched))
    before, mine = _part(base, touched), _part(ours, touched)
    theirs = before.copy()
    theirs.apply(oid, commit)
    plan = three_way(before, mine, theirs, **options)
    return None if plan.conflicts or plan.settled or plan.included else plan


def _part(fold: Fold, addresses: list[Address]) -> Fold:
    """Return a fold of some messages, in the order of the context."""
    if len(addresses) > 1:
        at = fold.entries.index(fold.entry(addresses[0]))
        wanted = set(addresses)
        near = fold.entries[max(0, at - _NEAR) : at + _NEAR]
        found = [entry.address for entry in near if entry.address in wanted]
        addresses = found if len(found) == len(wanted) else fold.in_order(addresses)
    part = Fold.of(map(fold.entry, addresses))
    part.tools, part.tools_commit = fold.tools, fold.tools_commit
    return part
