"""The fold of a commit: of its line of first parents, oldest first.

Rule: this is the one interpreter of a history. Whatever is quicker is a kept result of it.
"""

from __future__ import annotations

from trace_store.context.folding import Fold

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from trace_store.objects.commit import Commit

    ReadCommit: TypeAlias = Callable[[bytes], Commit]


def fold(tip: bytes, read_commit: ReadCommit) -> Fold:
    """Return the fold of a commit.

    Raises:
        ObjectNotFoundError: a commit is not here.
        InvalidOperationError, UnsupportedFormatError, CorruptObjectError: as in `Fold.apply`.
    """
    line, _ = line_since(tip, read_commit, lambda oid: False)
    return go_on(Fold(), line)


def line_since(
    tip: bytes | None, read_commit: ReadCommit, is_known: Callable[[bytes], bool]
) -> tuple[list[tuple[bytes, Commit]], bytes | None]:
    """Return the commits of a line, oldest first, without the first one that is known and what lies before it.

    That one's id comes along; None when there is none.
    """
    line: list[tuple[bytes, Commit]] = []
    oid: bytes | None = tip
    while oid is not None and not is_known(oid):
        commit = read_commit(oid)
        line.append((oid, commit))
        oid = commit.parents[0] if commit.parents else None
    line.reverse()
    return line, oid


def go_on(state: Fold, line: list[tuple[bytes, Commit]]) -> Fold:
    """Apply commits, oldest first, and return the fold; it is changed."""
    for oid, commit in line:
        state.apply(oid, commit)
    return state
