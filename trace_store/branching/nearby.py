"""What a revert looks at of contexts: the end of HEAD's, back to where the messages that it takes back began.

Rule: what is said of those messages is what whole contexts say of them, or nothing is said.
"""

from __future__ import annotations

from trace_store import context
from trace_store.context.ends import (
    MOST_STEPS,
    STEPS,
    apply_at_end,
    line_before,
    targets_of,
)
from trace_store.context.folding import Fold
from trace_store.context.index_building import UnknownError
from trace_store.context.pairs import loose
from trace_store.objects import operations as ops
from trace_store.objects.commit import Commit
from trace_store.revision import created_by

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from typing import TypeAlias

    from trace_store.store import Store

    Address = tuple[bytes, int]
    Around: TypeAlias = Mapping[bytes, tuple[Fold, Fold]]

_OF_THE_WHOLE = (ops.MOVE, ops.REPLACE, ops.TOOLS)


def nearby(
    store: Store, tip: bytes, wanted: Collection[bytes], read: Callable[[bytes], Commit]
) -> tuple[Around, Fold] | None:
    """Return the contexts before and after each of some commits, and that of HEAD, as far as they matter to these.

    None when only whole contexts can tell.

    Args:
        store: where.
        tip: HEAD's commit.
        wanted: the commits that are to be taken back.
        read: gives a commit.

    Raises:
        ObjectNotFoundError, CorruptObjectError: a commit is not here, or damaged.
    """
    recent = context.Recent(read, lambda *two: context.new_commits(store, *two))
    named = {address for oid in wanted for address in _named(oid, read(oid))}
    if any(each.name in _OF_THE_WHOLE for oid in wanted for each in read(oid).operations):
        return None
    steps = STEPS
    while True:
        line, whole = line_before(tip, steps, read)
        around: dict[bytes, tuple[Fold, Fold]] = {}
        now = Fold()
        try:
            for oid, commit in line:
                before = now.copy() if oid in wanted else None
                apply_at_end(now, [(oid, commit)], recent, whole=whole)
                if before is not None:
                    around[oid] = before, now.copy()
        except UnknownError:
            return None
        if len(around) == len(wanted) and (whole or _is_enough(now, named)):
            return around, now
        if whole or steps >= MOST_STEPS:
            return None
        steps *= 4


def _is_enough(now: Fold, named: Collection[Address]) -> bool:
    """Tell whether a fold has all messages that are named, and the calls and results that they stand with."""
    if any(each not in now for each in named):
        return False
    seen = [each for each in now.visible() if not each.is_ghost]
    calls, results = loose(seen, of_end=True)
    return (calls | results).isdisjoint(named)


def _named(oid: bytes, commit: Commit) -> set[Address]:
    """Return the messages that a commit creates, brings or changes."""
    found = {(oid, number) for number in range(created_by(commit))}
    return found.union(*(targets_of(operation, oid) for operation in commit.operations))
