"""The namespaces of refs, and the check of a name that a caller gives."""

from __future__ import annotations

from trace_store import errors
from trace_store.ref_names import is_ref_name, problem_of

BRANCHES = "refs/heads/"
TAGS = "refs/tags/"
CHECKPOINTS = "refs/checkpoints/"
TRASH = "refs/trash/"
RECOVERED = TRASH + "recovered/"
"""What refs would have lost when a journal was removed under the processes that held it."""


def check_ref_name(name: str) -> str:
    """Return a full ref name unchanged when it is allowed.

    Raises:
        InvalidRefNameError: it is not; the message says why.
    """
    if not is_ref_name(name):
        problem = problem_of(name)
        raise errors.InvalidRefNameError(f"not a ref name: {name[:200]!r} {problem}", name=name)
    return name
