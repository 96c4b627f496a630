"""Upstreams of branches.

    refs/heads/idea refs/heads/main
    …

Rule: the file is local, like git's configuration, and only read here. Unreadable lines are skipped.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.files import Disk, read_file
from trace_store.ref_names import is_ref_name
from trace_store.refs.names import BRANCHES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def read_upstreams(disk: Disk, path: str) -> dict[str, str]:
    """Return each branch's upstream, both as full names."""
    data = read_file(disk, path) or b""
    pairs = (line.split(" ") for line in data.decode("ascii", "replace").splitlines())
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2 and all(map(is_ref_name, pair))}


def upstream_in(known: Mapping[str, str], ref: str | None) -> str:
    """Return the upstream of a branch (full name), or of a detached HEAD if None.

    Raises:
        DetachedHeadError: HEAD is detached.
        RevisionNotFoundError: the branch has no upstream.
    """
    if ref is None:
        raise errors.DetachedHeadError("HEAD is detached, so it has no upstream")
    if ref not in known:
        short = ref.removeprefix(BRANCHES)
        raise errors.RevisionNotFoundError(
            f"{short} has no upstream", code=errors.ErrorCode.NO_UPSTREAM, ref=ref
        )
    return known[ref]
