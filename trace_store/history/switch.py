"""Switching HEAD to another branch or commit.

HEAD is a file of this working copy, so it is compared and set under the journal's lock. A commit that would become
unreachable is kept in the trash first. HEAD's reflog says `switch: moving from A to B`, which resolves `-` and `@{-1}`.
"""

from __future__ import annotations

from trace_store import errors, refs
from trace_store import revision as revisions
from trace_store.contracts import RefEdit, Transaction
from trace_store.frozen import replace, value
from trace_store.history.branches import find_branch, name_taken, short
from trace_store.history.trash import keep_in_trash, keep_other_tips
from trace_store.oid import is_full_id
from trace_store.ref_names import STAGED, TRASH, branch_ref
from trace_store.refs.head import NAME, Head
from trace_store.refs.reflog import read_switch, switch_message
from trace_store.revision import commits_among, tips_of_refs
from trace_store.store.reflogs import newest_first

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from trace_store.contracts import RefReader
    from trace_store.oid import ObjectId
    from trace_store.store.handle import Store


@value
class SwitchResult:
    """The result of a switch.

    Attributes:
        before: the old HEAD.
        after: the new HEAD.
        created: whether the branch was created.
        reset: whether an existing branch was set to the start point.
        kept: the ref in the trash that keeps an otherwise unreachable commit, or None.
        replaced: the ref in the trash that keeps the branch's old tip, or None.
    """

    before: Head
    after: Head
    created: bool = False
    reset: bool = False
    kept: str | None = None
    replaced: str | None = None


def switch(store: Store, name: str, *, author: str) -> SwitchResult:
    """Switch to a branch, given by name, by the id of its session, or as `-` for the previous one.

    Raises:
        RefNotFoundError: there is no such branch.
        RevisionNotFoundError: `-` is given, and there is no previous branch.
        AmbiguousRevisionError: the prefix matches several sessions.
    """
    if name == "-":
        name = refs.reflog.previous_branch(store.refs)
        if is_full_id(name):  # HEAD was detached
            return detach(store, name, author=author)
    return _move_head(store, find_branch(store, name), author=author)


def begin_branch(
    store: Store, name: str, start: str | None = None, *, author: str, force: bool = False
) -> SwitchResult:
    """Create a branch and switch to it.

    Args:
        store: the repository's store.
        name: its short name.
        start: the start point; None is HEAD, which may have no commit yet.
        author: for the reflogs.
        force: reset an existing branch; its old tip goes to the trash.

    Raises:
        AlreadyExistsError: the branch exists, and `force` is not given.
        As `resolve_commit` and `branch_ref`.
    """
    ref = branch_ref(name)
    head = store.refs.head()
    if start is None and head.unborn:
        if store.refs.read(ref) is not None:
            raise name_taken(ref)
        return _move_head(store, ref, author=author, created=True)
    oid = revisions.resolve_commit(store, "HEAD" if start is None else start)
    message = _reflog_message(head, short(ref))
    if head.ref == ref:
        message = f"branch: reset to {start or 'HEAD'}"  # HEAD stays on the branch

    was_there = False
    kept: str | None = None

    def build(refs: RefReader) -> Transaction:
        nonlocal was_there, kept
        before = refs.read(ref)
        was_there = before is not None
        if before is not None and not force:
            raise name_taken(ref)
        edits = [RefEdit(ref, oid, before)]
        if before is not None and before != oid:
            edits += [keep_in_trash(ref, before), *keep_other_tips(refs, ref)]
        kept = edits[1].name if edits[1:] else None
        return Transaction((), edits, message)

    store.transact(build, author=author)
    done = _move_head(store, ref, author=author, created=not was_there)
    return replace(done, reset=was_there, replaced=kept)


def begin_empty(store: Store, name: str, *, author: str) -> SwitchResult:
    """Switch to a new branch without a commit.

    Raises:
        AlreadyExistsError: the branch exists.
        As `branch_ref`.
    """
    ref = branch_ref(name)
    if store.refs.read(ref) is not None:
        raise name_taken(ref)
    return _move_head(store, ref, author=author, created=True)


def detach(store: Store, revision: str = "HEAD", *, author: str) -> SwitchResult:
    """Detach HEAD at a commit; raises as `resolve_commit`."""
    return _move_head(store, revisions.resolve_commit(store, revision), author=author)


def keep_and_move(
    store: Store,
    before: Head,
    target: str | ObjectId,
    message: str,
    author: str,
    keep: Callable[[RefReader], list[RefEdit]] | None = None,
) -> None:
    """Set HEAD if it has not moved, after making the edits that keep the old commit.

    Both get the same time in the reflogs, which marks them as one command.

    Raises:
        RefChangedError: HEAD has moved.
    """
    time: int | None = None
    moved: list[str] = []
    if keep is not None:

        def build(refs: RefReader) -> Transaction:
            edits = keep(refs)
            moved[:] = [edit.name for edit in edits if refs.read(edit.name) != edit.new]
            return Transaction((), edits, message)

        store.transact(build, author=author)
        if moved:
            entry = next(newest_first(store, moved[0]), None)
            time = None if entry is None or entry.message != message else entry.time

    def move(_: RefReader) -> None:
        at = store.refs.head()
        if at.ref != before.ref or (at.ref is None and at.oid != before.oid):
            raise errors.RefChangedError("HEAD moved meanwhile", ref=NAME, expected=before.oid)
        store.refs.set_head(target, message=message, author=author, time=time)

    store.transact(move)


def _move_head(
    store: Store, target: str | ObjectId, *, author: str, created: bool = False
) -> SwitchResult:
    before = store.refs.head()
    to = short(target) if isinstance(target, str) else str(target)
    message = _reflog_message(before, to)
    if before.ref == target or (before.ref is None and before.oid == target):
        return SwitchResult(before, store.refs.head(), created)
    keep = _keep_edit(store, before)
    made = None if keep is None else lambda _: [keep]
    keep_and_move(store, before, target, message, author, made)
    kept = None if keep is None else keep.name
    return SwitchResult(before, store.refs.head(), created, kept=kept)


def _reflog_message(before: Head, to: str) -> str:
    return switch_message(short(before.ref) if before.ref else str(before.oid), to)


def _keep_edit(store: Store, before: Head) -> RefEdit | None:
    """Return the edit that keeps the commit of a detached HEAD, if it would become unreachable."""
    if before.ref is not None or before.oid is None:
        return None
    for entry in newest_first(store, NAME):
        if read_switch(entry.message) is not None:
            if entry.new == before.oid:
                return None
            break
    if store.refs.names_of([before.oid]).get(before.oid) or _is_reachable(store, before.oid):
        return None
    return keep_in_trash(NAME, before.oid)


def _is_reachable(store: Store, oid: ObjectId) -> bool:
    """Return True if a commit is reachable from a ref outside the trash and the staged refs."""
    commits = revisions.commits_of(store)
    try:
        tips = commits_among(store, tips_of_refs(store, (TRASH, STAGED)), commits)
        return not any(True for _ in commits.topological([oid], tips, limit=1))
    except (errors.NotFoundError, errors.FormatError):
        return False  # an incomplete history proves nothing
