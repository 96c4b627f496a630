"""Branches and their upstreams.

Deleting or force-moving a branch keeps its old tip in the trash, in the same transaction. Setting an upstream moves no
ref, so `undo` does not revert it.
"""

from __future__ import annotations

from trace_store import errors, refs
from trace_store import revision as revisions
from trace_store.commit_table.commits import Commits
from trace_store.contracts import RefEdit, Transaction
from trace_store.files import replace_file
from trace_store.frozen import value
from trace_store.history.trash import keep_in_trash, keep_other_tips
from trace_store.ident import count_of, is_count
from trace_store.oid import ObjectId
from trace_store.ref_names import (
    BRANCHES,
    CHECKPOINTS,
    TAGS,
    TRAJECTORIES,
    branch_ref,
    check_text,
    is_ref_name,
)
from trace_store.refs.head import upstream_in
from trace_store.revision import commits_of, upstreams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from trace_store.contracts import RefReader
    from trace_store.store.handle import Store


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
    """

    ref: str
    tips: tuple[ObjectId, ...]
    is_current: bool
    tracking: Tracking | None
    kept: str | None = None
    renamed_from: str | None = None

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


@value
class DeletedRef:
    """A deleted ref: its full name, the commit it pointed to, and the refs in the trash that keep its tips."""

    ref: str
    oid: ObjectId
    kept: tuple[str, ...]


def list_branches(
    store: Store,
    patterns: Sequence[str] = (),
    *,
    contains: ObjectId | None = None,
    merged: ObjectId | None = None,
    unmerged: ObjectId | None = None,
) -> list[Branch]:
    """Return the branches, sorted by name.

    Args:
        store: the repository's store.
        patterns: shell patterns such as `feature/*` for short names; none selects all branches.
        contains: only branches that contain this commit.
        merged: only branches merged into this commit.
        unmerged: only branches not merged into this commit.

    Raises:
        ObjectNotFoundError, CorruptObjectError: the history is incomplete or damaged.
    """
    for pattern in patterns:
        check_text(pattern)
    current = store.refs.head_target()
    known = revisions.upstreams(store)
    commits = commits_of(store)
    found = [
        Branch(ref, tips, ref == current, _tracking(store, tips[0], known.get(ref), commits))
        for ref, tips in store.refs.iterate_tips(BRANCHES)
        if not patterns or matches_any(ref.removeprefix(BRANCHES), patterns)
    ]
    is_ancestor = commits.is_ancestor
    return [
        each
        for each in found
        if (contains is None or any(is_ancestor(contains, tip) for tip in each.tips))
        and (merged is None or all(is_ancestor(tip, merged) for tip in each.tips))
        and (unmerged is None or not all(is_ancestor(tip, unmerged) for tip in each.tips))
    ]


def read_branch(
    store: Store, ref: str, *, kept: str | None = None, renamed_from: str | None = None
) -> Branch:
    """Return a branch, given its full name; HEAD's branch may be unborn. The rest is as in `Branch`.

    Raises:
        RefNotFoundError: there is no such branch.
    """
    tips = store.refs.tips(ref)
    is_current = ref == store.refs.head_target()
    if not (tips or is_current):
        raise errors.RefNotFoundError(f"no branch {short(ref)!r}", ref=ref)
    compared = tracking(store, ref, tips[0] if tips else None)
    return Branch(ref, tips, is_current, compared, kept, renamed_from)


def _tracking(
    store: Store, oid: ObjectId, upstream: str | None, commits: Commits | None
) -> Tracking | None:
    if upstream is None:
        return None
    other = store.refs.read(upstream)
    counts = (None, None) if other is None else ahead_behind(store, oid, other, commits)
    return Tracking(upstream, other, *counts)


def branch_of_head(store: Store) -> str:
    """Return the full name of HEAD's branch, which may have no commit yet.

    Raises:
        DetachedHeadError: HEAD is detached.
    """
    ref = store.refs.head_target()
    if isinstance(ref, ObjectId):
        raise errors.DetachedHeadError("HEAD is detached, and this command moves a branch")
    return ref


def find_branch(store: Store, name: str) -> str:
    """Resolve a name, a session's id or `HEAD` to the full name of a branch.

    Raises:
        RefNotFoundError: there is no such branch.
        DetachedHeadError: the name is `HEAD`, which is detached.
        AmbiguousRevisionError: the prefix matches several sessions.
    """
    check_text(name)
    if name in ("HEAD", "@"):
        ref = store.refs.head().ref
        if ref is None:
            raise errors.DetachedHeadError("HEAD is detached: it is on no branch")
        return ref
    if name == "-":
        name = refs.reflog.previous_branch(store.refs)
    elif name.startswith("@{-") and name.endswith("}") and is_count(name[3:-1]):
        name = refs.reflog.previous_branch(store.refs, count_of(name[3:-1]), name)
    for full in (BRANCHES + name, "refs/" + name, name):
        if full.startswith(BRANCHES) and is_ref_name(full) and store.refs.read(full) is not None:
            return full
    # Sessions are branches, so their names are valid; those of other revisions, such as `main~1`, need not be.
    can_be_session = is_ref_name(BRANCHES + name)
    found = revisions.branch_of(store, name) if can_be_session else None
    if found is None or not found.startswith(BRANCHES):
        raise errors.RefNotFoundError(f"no branch {name[:120]!r}", ref=name)
    return found


def create_branch(
    store: Store, name: str, start: str = "HEAD", *, author: str, force: bool = False
) -> tuple[str, ObjectId, str | None]:
    """Create a branch.

    Args:
        store: the repository's store.
        name: its short name.
        start: the revision that it points to.
        author: for the reflogs.
        force: move an existing branch of this name; its old tip goes to the trash.

    Returns:
        Its full name, its commit, and the ref in the trash that keeps the old tip, or None.

    Raises:
        AlreadyExistsError: the branch exists, and `force` is not given.
        StateError: HEAD is on the branch that would be moved.
        As `resolve_commit` and `branch_ref`.
    """
    ref = branch_ref(name)
    oid = revisions.resolve_commit(store, start)
    kept: str | None = None

    def build(refs: RefReader) -> Transaction | None:
        nonlocal kept
        kept = None
        before = refs.read(ref)
        if before is not None and not force:
            raise name_taken(ref)
        if before is not None and store.refs.head_target() == ref:
            raise errors.StateError(f"HEAD is on {short(ref)}; use reset to move that branch")
        edits = [RefEdit(ref, oid, before)]
        if before is not None and before != oid:
            edits += [keep_in_trash(ref, before), *keep_other_tips(refs, ref)]
            kept = edits[1].name
        return Transaction((), edits, f"branch: created from {start}")

    store.transact(build, author=author)
    return ref, oid, kept


def name_taken(ref: str) -> errors.AlreadyExistsError:
    """Return the error for a branch that already exists."""
    return errors.AlreadyExistsError(
        f"branch {short(ref)} already exists",
        code=errors.ErrorCode.BRANCH_EXISTS,
        ref=ref,
    )


def names_before_and_after(store: Store, old: str, new: str) -> tuple[str, str]:
    """Return a branch's old and new full name; raises as `rename_branch`."""
    head = store.refs.head()
    ref = head.ref if head.unborn and head.ref == BRANCHES + old else find_branch(store, old)
    assert ref is not None
    return ref, branch_ref(new)


def rename_branch(
    store: Store, old: str, new: str, *, author: str, force: bool = False
) -> tuple[str, str]:
    """Rename a branch, and update HEAD and upstreams; return the old and the new full name.

    Raises:
        RefNotFoundError: there is no such branch.
        AlreadyExistsError: the new name is taken, and `force` is not given. With `force` its old tip goes to the trash.
        StateError: HEAD is on the branch of the new name.
        InvalidRefNameError: the new name is not valid.
    """
    ref, target = names_before_and_after(store, old, new)
    if ref == target:
        return ref, target
    message = refs.reflog.rename_message(ref, target)

    def create_target(refs: RefReader) -> Transaction | None:
        oid, existing = refs.read(ref), refs.read(target)
        if existing is not None and not force:
            raise name_taken(target)
        if existing is not None and store.refs.head_target() == target:
            raise errors.StateError(f"HEAD is on {short(target)}; use reset to move that branch")
        edits = [RefEdit(target, oid, existing)]
        if existing is not None and existing != oid:
            edits += [keep_in_trash(target, existing), *keep_other_tips(refs, target)]
        return Transaction((), edits, message) if oid is not None else None

    def remove_source(refs: RefReader) -> Transaction | None:
        oid = refs.read(ref)
        if oid is None:
            return None
        return Transaction((), [RefEdit(ref, None, oid), *keep_other_tips(refs, ref)], message)

    def move_head(_: RefReader) -> None:
        if store.refs.head_target() == ref:
            store.refs.set_head(target, message=message, author=author)

    # In this order HEAD names an existing branch even after a crash in between.
    store.transact(create_target, author=author)
    store.transact(move_head)
    store.transact(remove_source, author=author)
    rename_upstreams(store, ref, target)
    return ref, target


def delete_branches(store: Store, names: Sequence[str], *, author: str) -> list[DeletedRef]:
    """Move branches to the trash, all or none; return what was deleted.

    Raises:
        RefNotFoundError: there is no such branch.
        StateError: HEAD is on one of them.
    """
    wanted = list(dict.fromkeys(find_branch(store, name) for name in names))
    found = delete_refs(store, wanted, author=author, what="branch")
    for each in found:
        move_upstream(store, each.ref, each.kept[0])  # so that an undo restores it
    return found


def delete_refs(store: Store, wanted: Sequence[str], *, author: str, what: str) -> list[DeletedRef]:
    """Move refs, given by full names, to the trash in one transaction; raises as `delete_branches`."""
    found: list[DeletedRef] = []

    def build(refs: RefReader) -> Transaction:
        found.clear()
        edits: list[RefEdit] = []
        for ref in wanted:
            tips = refs.tips(ref)
            if not tips:
                raise errors.RefNotFoundError(f"no {what} {short(ref)!r}", ref=ref)
            if store.refs.head_target() == ref:
                raise errors.StateError(f"HEAD is on {short(ref)}; switch to another branch first")
            kept = [keep_in_trash(ref, tip) for tip in tips]
            edits += [RefEdit(ref, None, tips[0]), *kept]
            found.append(DeletedRef(ref, tips[0], tuple(edit.name for edit in kept)))
        names = " ".join(map(short, wanted))
        return Transaction((), edits, f"{what}: deleted {names}")

    store.transact(build, author=author)
    return found


def matches_any(name: str, patterns: Sequence[str]) -> bool:
    """Return True if a name matches one of some shell patterns, such as `feature/*`."""
    from fnmatch import fnmatchcase  # rarely needed, and slow to import

    return any(fnmatchcase(name, pattern) for pattern in patterns)


def short(ref: str) -> str:
    """Return a ref's short name, without `refs/heads/`, `refs/tags/` and the like."""
    spaces = (BRANCHES, TAGS, CHECKPOINTS, TRAJECTORIES)
    return next((ref.removeprefix(space) for space in spaces if ref.startswith(space)), ref)


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


def set_upstream(store: Store, ref: str, upstream: str) -> None:
    """Set the upstream of a branch, both given by full names."""
    _update_upstreams(store, {ref: upstream})


def unset_upstream(store: Store, ref: str) -> bool:
    """Remove the upstream of a branch; return True if it had one."""
    return _update_upstreams(store, {ref: None})


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


def tracking(store: Store, ref: str, oid: ObjectId | None) -> Tracking | None:
    """Return the state of a branch at `oid` relative to its upstream; None without an upstream.

    Raises:
        ObjectNotFoundError, CorruptObjectError: the history is incomplete or damaged.
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
    """Return how many commits only `one` can reach, and how many only `other`.

    Raises:
        ObjectNotFoundError, CorruptObjectError: the history is incomplete or damaged.
    """
    if one == other:
        return 0, 0
    commits = commits or commits_of(store)
    ahead = sum(1 for _ in commits.topological([one], [other]))
    return ahead, sum(1 for _ in commits.topological([other], [one]))


def _update_upstreams(store: Store, changes: dict[str, str | None]) -> bool:
    """Rewrite the upstreams file; return True if it changed."""
    changed = False

    def write(_: RefReader) -> None:
        # Under the journal's lock, so that no other process writes the file meanwhile.
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
