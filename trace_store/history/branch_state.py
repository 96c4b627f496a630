"""The state of branches: their tips, their upstreams, and how far both are apart.

A file of this working copy holds the upstreams. Setting one moves no ref, so `undo` does not revert it.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.base.frozen import replace, value
from trace_store.contracts.ref_names import BRANCHES, short_name
from trace_store.disk.files import replace_file
from trace_store.refs.head import upstream_in
from trace_store.store.revision import commits_of, upstreams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trace_store.base.oid import ObjectId
    from trace_store.commit_table.commits import Commits
    from trace_store.contracts.protocols import RefReader
    from trace_store.store.store import Store


@value
class Tracking:
    """The state of a branch relative to its upstream.

    Attributes:
        upstream: full name of the upstream.
        oid: the upstream's commit; None if it is gone.
        ahead: number of commits that only the branch has; None if either has no commit.
        behind: number of commits that only the upstream has; None if either has no commit.
    """

    upstream: str
    oid: ObjectId | None
    ahead: int | None
    behind: int | None


@value
class Branch:
    """One branch.

    Attributes:
        ref: its full name.
        tips: its commits, this working copy's own tip first; more than one if it has diverged, none if it is unborn.
        is_current: whether HEAD is on it.
        tracking: its state relative to its upstream; None without one.
        kept: the ref in the trash with its old tip, if it was just force-moved.
        renamed_from: its old full name, if it was just renamed.
        changed: whether the verb that returned it changed something.
    """

    JSON = "name commit=tip upstream=tracking.upstream ahead=tracking.ahead behind=tracking.behind"

    ref: str
    tips: tuple[ObjectId, ...]
    is_current: bool
    tracking: Tracking | None
    kept: str | None = None
    renamed_from: str | None = None
    changed: bool = False

    @property
    def tip(self) -> ObjectId | None:
        """The commit that it points to; None if it is unborn."""
        return self.tips[0] if self.tips else None

    @property
    def name(self) -> str:
        """Its short name."""
        return self.ref.removeprefix(BRANCHES)

    @property
    def oid(self) -> ObjectId:
        """The commit that it points to.

        Raises:
            UnbornBranchError: it has no commit.
        """
        if not self.tips:
            raise errors.UnbornBranchError(f"branch {self.name} has no commit yet", ref=self.ref)
        return self.tips[0]


def read_branch(
    store: Store,
    ref: str,
    *,
    kept: str | None = None,
    renamed_from: str | None = None,
    changed: bool = False,
) -> Branch:
    """Return a branch, given its full name; HEAD's branch may be unborn. The rest is as in `Branch`.

    Raises:
        RefNotFoundError: there is no such branch.
    """
    tips, current = store.refs.tips(ref), store.refs.head_target()
    if not tips and ref != current:
        raise errors.RefNotFoundError(f"no branch {short_name(ref)!r}", ref=ref)
    branch = branch_at(store, ref, tips, current, upstream_of(store, ref))
    return replace(branch, kept=kept, renamed_from=renamed_from, changed=changed)


def branch_at(
    store: Store,
    ref: str,
    tips: Sequence[ObjectId],
    current: str | ObjectId,
    upstream: str | None,
    commits: Commits | None = None,
) -> Branch:
    """Return a branch, given its full name, its tips, what HEAD names, and the full name of its upstream."""
    oid = tips[0] if tips else None
    compared = None if upstream is None else tracking(store, oid, upstream, commits)
    return Branch(ref, tuple(tips), ref == current, compared)


def upstream_of(store: Store, ref: str) -> str | None:
    """Return the full name of a branch's upstream, or None."""
    return upstreams(store).get(ref)


def required_upstream(store: Store) -> str:
    """Return the upstream of HEAD's branch, as a user types it.

    Raises:
        DetachedHeadError: HEAD is detached.
        RevisionNotFoundError: the branch has no upstream.
    """
    return upstream_in(upstreams(store), store.refs.head().ref).removeprefix(BRANCHES)


def set_upstream(store: Store, ref: str, upstream: str | None) -> None:
    """Set the upstream of a branch, both given by full names; None unsets it."""
    _update_upstreams(store, {ref: upstream})


def rename_upstreams(store: Store, old: str, new: str) -> None:
    """Rename a branch in the upstreams file, including where it is an upstream."""
    known = upstreams(store)
    changes: dict[str, str | None] = {
        ref: new for ref, upstream in known.items() if upstream == old
    }
    if old in known:
        changes[new] = changes.pop(old, known[old])
        changes[old] = None
    if changes:
        _update_upstreams(store, changes)


def move_upstream(store: Store, old: str, new: str) -> None:
    """Move the upstream setting from one ref to another, such as a deleted branch's ref in the trash."""
    upstream = upstream_of(store, old)
    if upstream is not None:
        _update_upstreams(store, {old: None, new: upstream})


def tracking(
    store: Store, oid: ObjectId | None, upstream: str, commits: Commits | None = None
) -> Tracking:
    """Return the state of a branch at `oid` relative to its upstream, given by its full name.

    Raises:
        ObjectNotFoundError, CorruptObjectError: the history is incomplete or damaged.
    """
    other = store.refs.read(upstream)
    if oid is None or other is None:
        return Tracking(upstream, other, None, None)
    if oid == other:
        return Tracking(upstream, other, 0, 0)
    commits = commits or commits_of(store)
    ahead = sum(1 for _ in commits.topological([oid], [other]))
    behind = sum(1 for _ in commits.topological([other], [oid]))
    return Tracking(upstream, other, ahead, behind)


def _update_upstreams(store: Store, changes: Mapping[str, str | None]) -> None:
    """Rewrite the upstreams file, if that changes it."""

    def write(_: RefReader) -> None:
        # Under the journal's lock, so that no other process writes the file meanwhile.
        known = upstreams(store)
        after = {ref: to for ref, to in {**known, **changes}.items() if to is not None}
        if after != known:
            lines = [f"{ref} {after[ref]}\n" for ref in sorted(after)]
            path, scratch = store.layout.upstreams_file, store.layout.tmp_dir
            store.disk.make_directory(store.layout.local_dir)
            replace_file(store.disk, path, "".join(lines).encode("ascii"), scratch=scratch)

    store.transact(write)
