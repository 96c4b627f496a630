"""The namespaces of refs, and the check of a name that a caller gives."""

from __future__ import annotations

from trace_store import errors
from trace_store.ref_names import Spellings, is_ref_name, named_by_users, problem_of

BRANCHES = "refs/heads/"
TAGS = "refs/tags/"
CHECKPOINTS = "refs/checkpoints/"
FILES = "refs/transcripts/"
"""Of kept files: `refs/transcripts/<format>/<session>/<id>`."""
TRASH = "refs/trash/"
RECOVERED = TRASH + "recovered/"
"""What refs would have lost when a journal was removed under the processes that held it."""
STAGED = "refs/staged/"
"""Of what `reset --soft` took back, one ref a branch: `refs/staged/heads/<branch>`."""
ORIGINAL = "ORIG_HEAD"
"""What a revision calls where HEAD stood before the last command that took it elsewhere."""
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_NO_BRANCHES = frozenset(("HEAD", "@", "-", ORIGINAL))


def check_text(name: object) -> None:
    """Accept what may be a name at all.

    Raises:
        InvalidRefNameError: it is no text.
    """
    if not isinstance(name, str):
        raise errors.InvalidRefNameError(f"a name is a text, not {type(name).__name__}", name=name)


def check_ref_name(name: str) -> str:
    """Return a full ref name unchanged when it is allowed.

    Raises:
        InvalidRefNameError: it is not; the message says why.
    """
    if not is_ref_name(name):
        problem = problem_of(name)
        raise errors.InvalidRefNameError(f"not a ref name: {name[:200]!r} {problem}", name=name)
    return name


def staged_ref(ref: str) -> str:
    """Return the name of the ref that keeps what is staged for a branch, given its full name, or for `HEAD`."""
    return STAGED + ref.removeprefix("refs/")


def full_name(ref: str) -> str:
    """Return the full name of a ref that is given by this, or by the short name of a branch.

    Raises:
        InvalidRefNameError: it is not a valid name.
    """
    check_text(ref)
    return check_ref_name(ref) if ref.startswith("refs/") else branch_ref(ref)


def branch_ref(name: str) -> str:
    """Return the full name of a branch, which need not be there.

    Raises:
        InvalidRefNameError: it breaks the rules for names.
        RefNotFoundError: it is the full name of something that is no branch.
    """
    check_text(name)
    if name in _NO_BRANCHES:
        raise errors.InvalidRefNameError(f"{name} is no name for a branch", ref=name)
    full = name if name.startswith("refs/") else BRANCHES + name
    check_ref_name(full)
    if not full.startswith(BRANCHES):
        raise errors.RefNotFoundError(f"not a branch: {name}", ref=full)
    return full


def refuse_twins(created: Sequence[str], names: Iterable[str]) -> None:
    """Accept new refs, none of which differs by case only from one that is there, even if that goes at once.

    Args:
        created: their full names.
        names: the full names of the refs that are there.

    Raises:
        InvalidRefNameError: one does.
    """
    spellings = Spellings(names)
    for name in filter(named_by_users, created):
        twin = spellings.twin(name)
        if twin:
            raise errors.InvalidRefNameError(
                f"{name} differs from {twin} by case only, and would be the same file on macOS and Windows",
                name=name,
                other=twin,
            )
        spellings.add(name)
