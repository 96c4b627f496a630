"""The end of a context: what some commits of a line make, with all that is hidden in it, without what was before them.

Rule: what it holds is what the whole context holds behind its first message. What operations do to messages from before
is passed over; where their order cannot be told without these, nothing is said.
"""

from __future__ import annotations

from trace_store.context.folding import Fold
from trace_store.context.index_building import UnknownError
from trace_store.objects import operations as ops
from trace_store.objects.commit import Commit, Operation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from trace_store.context.recent import Recent

    Address = tuple[bytes, int]
    Step = tuple[bytes, Commit]

STEPS = 8
MOST_STEPS = 512
"""Commits before a tip that are looked at, before the whole context is."""


def end_of(tip: bytes, recent: Recent, is_enough: Callable[[Fold], bool]) -> Fold | None:
    """Return the end of a context, as much of it as is enough; None when only the whole context can tell.

    Raises:
        ObjectNotFoundError, CorruptObjectError: a commit is not here, or damaged.
    """
    commits: dict[bytes, Commit] = {}

    def once(oid: bytes) -> Commit:
        found = commits.get(oid)
        if found is None:
            found = commits[oid] = recent.read(oid)
        return found

    steps, whole = STEPS, False
    while steps <= MOST_STEPS and not whole:
        line, whole = line_before(tip, steps, once)
        if any(_is_to_the_front(each) for _, commit in line for each in commit.operations):
            return None  # what stands there now is not behind what was there before
        steps *= 4
        end = Fold()
        try:
            apply_at_end(end, line, recent, whole=whole)
        except UnknownError:
            continue  # further back it may be known what stands there
        if is_enough(end):
            return end
    return None


def _is_to_the_front(operation: Operation) -> bool:
    return operation.name == ops.MOVE and operation.fields.get("after") is None


def line_before(tip: bytes, steps: int, read: Callable[[bytes], Commit]) -> tuple[list[Step], bool]:
    """Return some commits of a line up to one, oldest first, and whether they are all there are.

    Raises:
        ObjectNotFoundError, CorruptObjectError: a commit is not here, or damaged.
    """
    found: list[Step] = []
    oid = tip
    while len(found) < steps:
        commit = read(oid)
        found.append((oid, commit))
        if not commit.parents:
            return found[::-1], True
        oid = commit.parents[0]
    return found[::-1], False


def apply_at_end(
    state: Fold,
    steps: Iterable[Step],
    recent: Recent,
    old: Collection[Address] = (),
    *,
    whole: bool,
) -> None:
    """Apply commits to a fold that holds the end of a context, and perhaps some messages from before it.

    Args:
        state: the fold.
        steps: the commits, oldest first.
        recent: looks up what they include.
        old: the messages from before, of which earlier wordings are not known.
        whole: whether the fold begins where the context begins; else what is moved there goes out of sight.

    Raises:
        UnknownError: only the whole context can tell.
        As `Fold.apply`.
    """
    for oid, commit in steps:
        brought: list[Fold | None] = [None] * len(commit.parents)
        if any(operation.name == ops.INCLUDE for operation in commit.operations):
            found = recent.included(commit, lambda address: address in state)
            brought = [Fold.of(found.values())] * len(commit.parents)
        state.apply(oid, commit, brought, _in_order(brought, old, whole=whole))


def _in_order(
    brought: Sequence[Fold | None], old: Collection[Address], *, whole: bool
) -> Callable[[Fold, Operation, bytes], Operation | None]:
    """Return what leaves of operations what they do to the end of a context, and to some messages before it."""

    def narrow(state: Fold, operation: Operation, oid: bytes) -> Operation | None:
        name, fields = operation.name, operation.fields
        named = targets_of(operation, oid)
        known = [each for each in named if each in state]
        after = fields.get("after")
        behind = None if after is None else (bytes(after[0]) or oid, after[1])
        if behind in old or (name == ops.REPLACE and any(each in old for each in named)):
            raise UnknownError  # what stands behind it is not in sight
        if name == ops.INCLUDE:
            if behind is not None and behind not in state:
                return None  # it stands further back
            other = brought[fields["parent"]]
            kept = [each for each in named if other is not None and each in other]
            return Operation(name, {**fields, "targets": kept})
        if name == ops.MOVE:
            in_sight = whole if behind is None else behind in state
            if (in_sight and len(known) < len(named)) or (known and not in_sight):
                raise UnknownError  # something comes into sight, or goes out of it
            return operation if in_sight else None
        if name == ops.REPLACE and known and len(known) < len(named):
            raise UnknownError
        if fields.get("version") is not None and any(each in old for each in known):
            raise UnknownError  # earlier wordings were not looked up
        if not named or len(known) == len(named):
            return operation
        return Operation(name, {**fields, "targets": known}) if known else None

    return narrow


def targets_of(operation: Operation, oid: bytes) -> list[Address]:
    """Return the addresses that an operation of a commit names."""
    fields = operation.fields
    named = [fields["target"]] if operation.name == ops.EDIT else fields.get("targets", ())
    return [(bytes(made) or oid, number) for made, number in named]
