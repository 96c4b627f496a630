"""Going to another branch, or to a commit without one.

Rule: HEAD is a file of this working copy, so it is compared and set under the journal's lock. Where a commit would be
left that nothing else leads to, it is kept in the trash first. The reflog of HEAD says `switch: moving from A to B`,
which is how `-` and `@{-1}` know where it was.
"""

from __future__ import annotations

from trace_store import errors, refs
from trace_store import revision as revisions
from trace_store.contracts import RefEdit, Transaction
from trace_store.frozen import replace, value
from trace_store.history.branches import find_branch, name_taken, short
from trace_store.history.reflog import newest_first
from trace_store.history.trash import keeping, keeping_others
from trace_store.oid import is_full_id
from trace_store.refs.head import NAME, Head
from trace_store.refs.log_messages import read_switch, switch_message
from trace_store.refs.names import STAGED, TRASH, branch_ref
from trace_store.revision import commits_among, tips_of_refs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from trace_store.contracts import RefReader
    from trace_store.oid import ObjectId
    from trace_store.store.handle import Store


@value
class Switched:
    """Where HEAD went.

    Attributes:
        before: where it was.
        after: where it is.
        created: whether the branch was made.
        reset: whether it was there, and was given another commit or the same again.
        kept: the ref in the trash that keeps a commit which nothing else leads to; None when there was none.
        replaced: the ref in the trash that keeps what the branch stood for, where it was given another commit.
    """

    before: Head
    after: Head
    created: bool = False
    reset: bool = False
    kept: str | None = None
    replaced: str | None = None


def switch(store: Store, name: str, *, author: str) -> Switched:
    """Go to a branch: by its name, the id of its session, or `-` for the one before.

    Raises:
        RefNotFoundError: there is no such branch.
        RevisionNotFoundError: `-` is given, and HEAD has not left a branch.
        AmbiguousRevisionError: several sessions have ids that begin so.
    """
    if name == "-":
        name = refs.reflog_query.branch_left(store.refs)
        if is_full_id(name):  # it was detached
            return detach(store, name, author=author)
    return _go(store, find_branch(store, name), author=author)


def begin_branch(
    store: Store, name: str, start: str | None = None, *, author: str, force: bool = False
) -> Switched:
    """Make a branch and go to it.

    Args:
        store: where.
        name: its short name.
        start: the revision that it begins at; None is HEAD, and on a branch without a commit another such.
        author: for the reflogs.
        force: take a name that there is; what it stood for goes to the trash.

    Raises:
        AlreadyExistsError: there is a branch of this name, and `force` is not given.
        As `resolve_commit`, and `branch_ref`.
    """
    ref = branch_ref(name)
    head = store.refs.head()
    if start is None and head.unborn:
        if store.refs.read(ref) is not None:
            raise name_taken(ref)
        return _go(store, ref, author=author, created=True)
    oid = revisions.resolve_commit(store, "HEAD" if start is None else start)
    message = _message(head, short(ref))
    if head.ref == ref:
        message = f"branch: reset to {start or 'HEAD'}"  # HEAD stays on it, so that it is no move from A to B

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
            edits += [keeping(ref, before), *keeping_others(refs, ref)]
        kept = edits[1].name if edits[1:] else None
        return Transaction((), edits, message)

    store.transact(build, author=author)
    done = _go(store, ref, author=author, created=not was_there)
    return replace(done, reset=was_there, replaced=kept)


def begin_empty(store: Store, name: str, *, author: str) -> Switched:
    """Go to a branch that has no commit, and begins with the next.

    Raises:
        AlreadyExistsError: there is a branch of this name.
        As `branch_ref`.
    """
    ref = branch_ref(name)
    if store.refs.read(ref) is not None:
        raise name_taken(ref)
    return _go(store, ref, author=author, created=True)


def detach(store: Store, revision: str = "HEAD", *, author: str) -> Switched:
    """Look at a commit without a branch; raises as `resolve_commit`."""
    return _go(store, revisions.resolve_commit(store, revision), author=author)


def keep_and_move(
    store: Store,
    before: Head,
    target: str | ObjectId,
    message: str,
    author: str,
    keep: Callable[[RefReader], list[RefEdit]] | None = None,
) -> None:
    """Set HEAD, if it is still where it was, after making the edits that keep what it leaves.

    The reflogs say of both that they were at one time, so that they are known as one command.

    Raises:
        RefChangedError: HEAD is elsewhere.
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


def _go(store: Store, target: str | ObjectId, *, author: str, created: bool = False) -> Switched:
    before = store.refs.head()
    to = short(target) if isinstance(target, str) else str(target)
    message = _message(before, to)
    if before.ref == target or (before.ref is None and before.oid == target):
        return Switched(before, store.refs.head(), created)
    keep = _what_is_left(store, before)
    made = None if keep is None else lambda _: [keep]
    keep_and_move(store, before, target, message, author, made)
    kept = None if keep is None else keep.name
    return Switched(before, store.refs.head(), created, kept=kept)


def _message(before: Head, to: str) -> str:
    return switch_message(short(before.ref) if before.ref else str(before.oid), to)


def _what_is_left(store: Store, before: Head) -> RefEdit | None:
    """Return the edit that keeps the commit of a detached HEAD, if it was moved on since it was detached."""
    if before.ref is not None or before.oid is None:
        return None
    for entry in newest_first(store, NAME):
        if read_switch(entry.message) is not None:
            if entry.new == before.oid:
                return None
            break
    if store.refs.naming([before.oid]).get(before.oid) or _is_led_to(store, before.oid):
        return None
    return keeping(NAME, before.oid)


def _is_led_to(store: Store, oid: ObjectId) -> bool:
    """Tell whether a commit lies in the past of a branch, of a tag or of another ref that does not only keep it."""
    commits = revisions.commits_of(store)
    try:
        tips = commits_among(store, tips_of_refs(store, (TRASH, STAGED)), commits)
        return not any(True for _ in commits.topological([oid], tips, limit=1))
    except (errors.NotFoundError, errors.FormatError):
        return False  # what is not whole keeps nothing for sure
