"""The fold of a commit: of its line of first parents, and of those lines whose messages came in.

Rule: this is the slow path that all others must equal. Each commit is read once, parents first; the state after it is
kept while somebody goes on from it or includes messages of it.
"""

from __future__ import annotations

from trace_store.context.folding import Fold
from trace_store.objects import operations as ops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container
    from typing import TypeAlias

    from trace_store.objects.commit import Commit

    ReadCommit: TypeAlias = Callable[[bytes], Commit]


def fold(tip: bytes, read_commit: ReadCommit, known: dict[bytes, Fold] | None = None) -> Fold:
    """Return the fold of a commit.

    Args:
        tip: the commit.
        read_commit: gives a commit; asked once for each.
        known: folds that are there already, by their commits; the answer is added. None of them must be changed.

    Raises:
        ObjectNotFoundError: a commit is not here.
        InvalidOperationError, UnsupportedFormatError, CorruptObjectError: as in `Fold.apply`.
    """
    known = {} if known is None else known
    if tip in known:
        return known[tip]
    commits = _parents_first(tip, read_commit, known)
    uses: dict[bytes, int] = {}
    for commit in commits.values():
        for parent in _needed(commit):
            uses[parent] = uses.get(parent, 0) + 1
    waiting: dict[bytes, Fold] = {}  # those that somebody goes on from, or includes messages of
    for oid, commit in commits.items():
        others = [waiting.get(parent, known.get(parent)) for parent in commit.parents]
        state = others[0] if others else None
        if state is None:
            state = Fold()
        elif uses[commit.parents[0]] > 1 or commit.parents[0] in known:
            state = state.copy()
        state.apply(oid, commit, others)
        for parent in _needed(commit):
            uses[parent] -= 1
            if not uses[parent]:
                waiting.pop(parent, None)
        waiting[oid] = state
    known[tip] = waiting[tip]
    return known[tip]


def _parents_first(
    tip: bytes, read_commit: ReadCommit, known: Container[bytes]
) -> dict[bytes, Commit]:
    """Return the commits that a fold is made of, each behind those that it needs; an explicit stack, as they nest."""
    found: dict[bytes, Commit] = {}
    read: dict[bytes, Commit] = {}
    stack = [tip]
    while stack:
        oid = stack[-1]
        if oid in found:
            stack.pop()
            continue
        commit = read.pop(oid) if oid in read else read_commit(oid)
        missing = [each for each in _needed(commit) if each not in found and each not in known]
        if missing:
            read[oid] = commit
            stack += reversed(missing)
        else:
            found[oid] = commit
    return found


def _needed(commit: Commit) -> list[bytes]:
    """Return the parent that a commit goes on from, and those that it includes messages of."""
    included = {
        commit.parents[operation.fields["parent"]]
        for operation in commit.operations
        if operation.name == ops.INCLUDE
        and isinstance(operation.fields.get("parent"), int)
        and 0 < operation.fields["parent"] < len(commit.parents)
    }
    return [*commit.parents[:1], *included]
