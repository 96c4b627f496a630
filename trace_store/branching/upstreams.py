"""Upstreams: set, unset and followed; and how far a branch and its upstream are apart.

Rule: setting one is no move of a ref, and is not undone.
"""

from __future__ import annotations

from trace_store.commit_table import Commits
from trace_store.files import replace_file
from trace_store.refs.names import BRANCHES
from trace_store.refs.upstreams import upstream_in
from trace_store.revision import commits_of, upstreams
from trace_store.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.contracts import RefReader
    from trace_store.oid import ObjectId
    from trace_store.store import Store


@value
class Tracking:
    """How a branch stands to its upstream.

    Attributes:
        upstream: full name of the upstream.
        oid: where that stands; None when it is gone.
        ahead: commits that the branch has and the upstream has not; None when either has none.
        behind: the other way about.
    """

    upstream: str
    oid: ObjectId | None
    ahead: int | None
    behind: int | None


def upstream_of(store: Store, ref: str) -> str | None:
    """Return the full name of a branch's upstream, or None."""
    return upstreams(store).get(ref)


def required_upstream(store: Store) -> str:
    """Return the upstream of HEAD's branch, a branch as one types it.

    Raises:
        DetachedHeadError: HEAD is on no branch.
        RevisionNotFoundError: its branch has no upstream.
    """
    return upstream_in(upstreams(store), store.refs.head().ref).removeprefix(BRANCHES)


def set_upstream(store: Store, ref: str, upstream: str) -> None:
    """Compare a branch with another ref from now on, both given by their full names."""
    _change(store, {ref: upstream})


def unset_upstream(store: Store, ref: str) -> bool:
    """Compare a branch with nothing any more; tell whether it had an upstream."""
    return _change(store, {ref: None})


def rename_upstreams(store: Store, old: str, new: str) -> None:
    """Let what was said about a branch hold for its new name, as upstream too."""
    known = upstreams(store)
    changes: dict[str, str | None] = {
        ref: new for ref, upstream in known.items() if upstream == old
    }
    if old in known:
        changes[new] = changes.pop(old, known[old])
        changes[old] = None
    if changes:
        _change(store, changes)


def move_upstream(store: Store, old: str, new: str) -> None:
    """Let the upstream of one ref be that of another: of a branch, or of the name that keeps it in the trash."""
    upstream = upstream_of(store, old)
    if upstream is not None:
        _change(store, {old: None, new: upstream})


def tracking(store: Store, ref: str, oid: ObjectId | None) -> Tracking | None:
    """Return how a branch, which stands at `oid`, stands to its upstream; None when it has none.

    Raises:
        ObjectNotFoundError, CorruptObjectError: a history is not whole.
    """
    upstream = upstream_of(store, ref)
    if upstream is None:
        return None
    other = store.refs.read(upstream)
    if oid is None or other is None:
        return Tracking(upstream, other, None, None)
    return Tracking(upstream, other, *ahead_behind(store, oid, other))


def ahead_behind(
    store: Store, one: ObjectId, other: ObjectId, commits: Commits | None = None
) -> tuple[int, int]:
    """Return how many commits the history of one commit has and that of the other has not, and the other way about.

    Raises:
        ObjectNotFoundError, CorruptObjectError: a history is not whole.
    """
    if one == other:
        return 0, 0
    commits = commits or commits_of(store)
    ahead = sum(1 for _ in commits.topological([one], [other]))
    return ahead, sum(1 for _ in commits.topological([other], [one]))


def _change(store: Store, changes: dict[str, str | None]) -> bool:
    """Write the file anew with other lines for some branches; tell whether it says something else then."""
    changed = False

    def write(_: RefReader) -> None:
        # Under the lock of the journal, so that nobody else writes it meanwhile.
        nonlocal changed
        known = upstreams(store)
        after = {**known, **changes}
        lines = [f"{ref} {after[ref]}\n" for ref in sorted(after) if after[ref] is not None]
        changed = {r: u for r, u in after.items() if u is not None} != known
        if changed:
            path, scratch = store.layout.upstreams_file, store.layout.tmp_dir
            store.disk.make_directory(store.layout.local_dir)
            replace_file(store.disk, path, "".join(lines).encode("ascii"), scratch=scratch)

    store.transact(write)
    return changed
