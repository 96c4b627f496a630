"""Branches and their upstreams.

Rule: a branch that is deleted, or forced to another commit, leaves what it stood for in the trash, in the same
transaction.

Rule: setting one is no move of a ref, and is not undone.
"""

from __future__ import annotations

from trace_store import errors, refs
from trace_store import revision as revisions
from trace_store.commit_table.commits import Commits
from trace_store.contracts import RefEdit, Transaction
from trace_store.files import replace_file
from trace_store.frozen import value
from trace_store.history.trash import keeping, keeping_others
from trace_store.ident import count_of, is_count
from trace_store.oid import ObjectId
from trace_store.ref_names import is_ref_name
from trace_store.refs.log_messages import rename_message
from trace_store.refs.names import BRANCHES, branch_ref, check_text
from trace_store.refs.upstreams import upstream_in
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
        tips: where it stands, this working copy's own tip first; several when it is diverged.
        is_current: whether HEAD is on it.
        tracking: how it stands to its upstream; None when it has none.
    """

    ref: str
    tips: tuple[ObjectId, ...]
    is_current: bool
    tracking: Tracking | None

    @property
    def name(self) -> str:
        """Its short name."""
        return self.ref.removeprefix(BRANCHES)

    @property
    def oid(self) -> ObjectId:
        """The commit that it stands for."""
        return self.tips[0]


@value
class Deleted:
    """A ref that was deleted: its full name, what it stood for, and the refs in the trash that keep that."""

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
        store: where.
        patterns: such as `feature/*`; without any all, else those whose short name is like one.
        contains: a commit that has to be theirs.
        merged: a commit whose history has to hold all that they have.
        unmerged: one whose history must not.

    Raises:
        ObjectNotFoundError, CorruptObjectError: a history that is asked about is not whole.
    """
    for pattern in patterns:
        check_text(pattern)
    current = store.refs.head_target()
    known = revisions.upstreams(store)
    commits = commits_of(store)
    found = [
        Branch(ref, tips, ref == current, _tracking(store, tips[0], known.get(ref), commits))
        for ref, tips in store.refs.iterate_tips(BRANCHES)
        if not patterns or is_like(ref.removeprefix(BRANCHES), patterns)
    ]
    led_to = commits.is_ancestor
    return [
        each
        for each in found
        if (contains is None or any(led_to(contains, tip) for tip in each.tips))
        and (merged is None or all(led_to(tip, merged) for tip in each.tips))
        and (unmerged is None or not all(led_to(tip, unmerged) for tip in each.tips))
    ]


def look_at_branch(store: Store, ref: str) -> Branch:
    """Return a branch, given its full name.

    Raises:
        RefNotFoundError: there is no such branch.
    """
    tips = store.refs.tips(ref)
    if not tips:
        raise errors.RefNotFoundError(f"no branch {short(ref)!r}", ref=ref)
    return Branch(ref, tips, ref == store.refs.head_target(), tracking(store, ref, tips[0]))


def _tracking(
    store: Store, oid: ObjectId, upstream: str | None, commits: Commits | None
) -> Tracking | None:
    if upstream is None:
        return None
    other = store.refs.read(upstream)
    counts = (None, None) if other is None else ahead_behind(store, oid, other, commits)
    return Tracking(upstream, other, *counts)


def branch_of_head(store: Store) -> str:
    """Return the full name of HEAD's branch, which need not have a commit.

    Raises:
        DetachedHeadError: it is on none.
    """
    ref = store.refs.head_target()
    if isinstance(ref, ObjectId):
        raise errors.DetachedHeadError("HEAD is on no branch, and this moves one")
    return ref


def find_branch(store: Store, name: str) -> str:
    """Return the full name of the branch that a name means: also of a session's by its id, of HEAD's by `HEAD`.

    Raises:
        RefNotFoundError: there is none.
        DetachedHeadError: `HEAD` was given, and it is on none.
        AmbiguousRevisionError: several sessions have ids that begin so.
    """
    check_text(name)
    if name in ("HEAD", "@"):
        ref = store.refs.head().ref
        if ref is None:
            raise errors.DetachedHeadError("HEAD is detached: it is on no branch")
        return ref
    if name == "-":
        name = refs.reflog_query.branch_left(store.refs)
    elif name.startswith("@{-") and name.endswith("}") and is_count(name[3:-1]):
        name = refs.reflog_query.branch_left(store.refs, count_of(name[3:-1]), name)
    for full in (BRANCHES + name, "refs/" + name, name):
        if full.startswith(BRANCHES) and is_ref_name(full) and store.refs.read(full) is not None:
            return full
    named = is_ref_name(BRANCHES + name)  # else it is a revision, and no session is called so
    found = revisions.branch_of(store, name) if named else None
    if found is None or not found.startswith(BRANCHES):
        raise errors.RefNotFoundError(f"no branch {name[:120]!r}", ref=name)
    return found


def create_branch(
    store: Store, name: str, start: str = "HEAD", *, author: str, force: bool = False
) -> tuple[str, ObjectId, str | None]:
    """Make a branch that stands for a commit, and return its full name, the commit, and what keeps the one before.

    Args:
        store: where.
        name: its short name.
        start: the revision that it begins at.
        author: for the reflogs.
        force: move a branch of this name that is there; what it stood for goes to the trash.

    Raises:
        AlreadyExistsError: there is a branch of this name, and `force` is not given.
        StateError: HEAD is on the branch that would be moved.
        As `resolve_commit`, and `branch_ref`.
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
            raise errors.StateError(f"HEAD is on {short(ref)}, so that only a reset moves it")
        edits = [RefEdit(ref, oid, before)]
        if before is not None and before != oid:
            edits += [keeping(ref, before), *keeping_others(refs, ref)]
            kept = edits[1].name
        return Transaction((), edits, f"branch: created from {start}")

    store.transact(build, author=author)
    return ref, oid, kept


def name_taken(ref: str) -> errors.AlreadyExistsError:
    """Return the error that there is a branch of a name."""
    return errors.AlreadyExistsError(
        f"there is a branch {short(ref)} already",
        code=errors.ErrorCode.BRANCH_EXISTS,
        ref=ref,
    )


def names_before_and_after(store: Store, old: str, new: str) -> tuple[str, str]:
    """Return the full names that a branch has and would have; raises as `rename_branch`, whatever there is by `new`."""
    head = store.refs.head()
    ref = head.ref if head.unborn and head.ref == BRANCHES + old else find_branch(store, old)
    assert ref is not None
    return ref, branch_ref(new)


def rename_branch(
    store: Store, old: str, new: str, *, author: str, force: bool = False
) -> tuple[str, str]:
    """Give a branch another name, HEAD and upstreams along with it; return the full names, the old one first.

    Raises:
        RefNotFoundError: there is no such branch.
        AlreadyExistsError: there is one of the new name, and `force` is not given; else that goes to the trash.
        StateError: HEAD is on the one of the new name.
        InvalidRefNameError: the new name breaks the rules for names.
    """
    ref, target = names_before_and_after(store, old, new)
    if ref == target:
        return ref, target
    message = rename_message(ref, target)

    def make(refs: RefReader) -> Transaction | None:
        oid, there = refs.read(ref), refs.read(target)
        if there is not None and not force:
            raise name_taken(target)
        if there is not None and store.refs.head_target() == target:
            raise errors.StateError(f"HEAD is on {short(target)}, so that only a reset moves it")
        edits = [RefEdit(target, oid, there)]
        if there is not None and there != oid:
            edits += [keeping(target, there), *keeping_others(refs, target)]
        return Transaction((), edits, message) if oid is not None else None

    def remove(refs: RefReader) -> Transaction | None:
        oid = refs.read(ref)
        if oid is None:
            return None
        return Transaction((), [RefEdit(ref, None, oid), *keeping_others(refs, ref)], message)

    def follow(_: RefReader) -> None:
        if store.refs.head_target() == ref:
            store.refs.set_head(target, message=message, author=author)

    # In this order HEAD is on a branch that is there, wherever it is cut short.
    store.transact(make, author=author)
    store.transact(follow)
    store.transact(remove, author=author)
    if store.local:
        rename_upstreams(store, ref, target)
    return ref, target


def delete_branches(store: Store, names: Sequence[str], *, author: str) -> list[Deleted]:
    """Delete branches into the trash, all or none, and return what each stood for.

    Raises:
        RefNotFoundError: there is no such branch.
        StateError: HEAD is on one of them.
    """
    wanted = list(dict.fromkeys(find_branch(store, name) for name in names))
    found = delete_refs(store, wanted, author=author, what="branch")
    if store.local:
        for each in found:
            move_upstream(store, each.ref, each.kept[0])  # an undo brings it back
    return found


def delete_refs(store: Store, wanted: Sequence[str], *, author: str, what: str) -> list[Deleted]:
    """Delete refs, given by their full names, into the trash, in one transaction; raises as `delete_branches`."""
    found: list[Deleted] = []

    def build(refs: RefReader) -> Transaction:
        found.clear()
        edits: list[RefEdit] = []
        for ref in wanted:
            tips = refs.tips(ref)
            if not tips:
                raise errors.RefNotFoundError(f"no {what} {short(ref)!r}", ref=ref)
            if store.refs.head_target() == ref:
                raise errors.StateError(f"HEAD is on {short(ref)}; go to another branch first")
            kept = [keeping(ref, tip) for tip in tips]
            edits += [RefEdit(ref, None, tips[0]), *kept]
            found.append(Deleted(ref, tips[0], tuple(edit.name for edit in kept)))
        names = " ".join(map(short, wanted))
        return Transaction((), edits, f"{what}: deleted {names}")

    store.transact(build, author=author)
    return found


def is_like(name: str, patterns: Sequence[str]) -> bool:
    """Tell whether a name is like one of some patterns, such as `feature/*`."""
    from fnmatch import fnmatchcase  # few give any, and it takes long to load

    return any(fnmatchcase(name, pattern) for pattern in patterns)


def short(ref: str) -> str:
    """Return a ref's name as people say it: without the namespace of branches or tags."""
    return ref.removeprefix(BRANCHES).removeprefix("refs/tags/")


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
