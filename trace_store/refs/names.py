"""Namespaces of refs, and checks of names that callers give."""

from __future__ import annotations

from trace_store import errors
from trace_store.ref_names import UsedNames, is_ref_name, named_by_users, problem_of

BRANCHES = "refs/heads/"
TAGS = "refs/tags/"
CHECKPOINTS = "refs/checkpoints/"
AUTOMATIC = CHECKPOINTS + "auto/"
"""Automatic checkpoints; `undo` skips them."""
FORKS = CHECKPOINTS + "forks/"
"""Fork points, one checkpoint for each forked branch."""
TRAJECTORIES = "refs/trajectories/"
FILES = "refs/transcripts/"
"""Archived source files: `refs/transcripts/<format>/<session>/<id>`."""
TRASH = "refs/trash/"
RECOVERED = TRASH + "recovered/"
"""Values that refs would have lost when a journal was removed under running processes."""
STAGED = "refs/staged/"
"""Commits undone by `reset --soft`, one ref per branch: `refs/staged/heads/<branch>`."""
ORIGINAL = "ORIG_HEAD"
"""The revision for HEAD before the last command that moved it."""
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_NO_BRANCHES = frozenset(("HEAD", "@", "-", ORIGINAL))


def check_text(name: object) -> None:
    """Check the type of a name.

    Raises:
        InvalidRefNameError: it is not text.
    """
    if not isinstance(name, str):
        raise errors.InvalidRefNameError(
            f"a name must be text, not {type(name).__name__}", name=name
        )


def check_ref_name(name: str) -> str:
    """Return a full ref name unchanged if it is valid.

    Raises:
        InvalidRefNameError: it is not; the message says why.
    """
    if not is_ref_name(name):
        problem = problem_of(name)
        raise errors.InvalidRefNameError(f"invalid ref name: {name[:200]!r} {problem}", name=name)
    return name


def staged_ref(ref: str) -> str:
    """Return the staging ref of a branch (full name) or of `HEAD`."""
    return STAGED + ref.removeprefix("refs/")


def full_name(ref: str) -> str:
    """Return the full name of a ref, given that or the short name of a branch.

    Raises:
        InvalidRefNameError: it is not a valid name.
    """
    check_text(ref)
    return check_ref_name(ref) if ref.startswith("refs/") else branch_ref(ref)


def branch_ref(name: str) -> str:
    """Return the full name of a branch, which need not exist.

    Raises:
        InvalidRefNameError: the name is invalid.
        RefNotFoundError: it is the full name of another kind of ref.
    """
    check_text(name)
    if name in _NO_BRANCHES:
        raise errors.InvalidRefNameError(f"{name} is not a valid branch name", ref=name)
    full = name if name.startswith("refs/") else BRANCHES + name
    check_ref_name(full)
    if not full.startswith(BRANCHES):
        raise errors.RefNotFoundError(f"not a branch: {name}", ref=full)
    return full


def check_case_conflicts(created: Sequence[str], names: Iterable[str]) -> None:
    """Check that no new ref differs from an existing one only by case.

    Args:
        created: full names of the new refs.
        names: full names of the existing refs.

    Raises:
        InvalidRefNameError: one does.
    """
    used = UsedNames(names)
    for name in filter(named_by_users, created):
        other = used.case_conflict(name)
        if other:
            raise errors.InvalidRefNameError(
                f"{name} differs from {other} only by case; they would be the same file on macOS and Windows",
                name=name,
                other=other,
            )
        used.add(name)
