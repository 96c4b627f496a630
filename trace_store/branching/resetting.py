"""Steps back: `reset --hard` and `reset --soft`.

Rule: what a branch is moved away from is kept in the same transaction, and ORIG_HEAD names it. `--hard` keeps it in the
trash. `--soft` keeps it as staged: one ref a branch, `refs/staged/heads/main`, from which all that was after can be
committed again.
"""

from __future__ import annotations

from trace_store import revision as revisions
from trace_store.branching.switching import keep_and_move
from trace_store.branching.trash import goes_on, is_kept_by, keeping, keeping_others, steps_between
from trace_store.contracts import RefEdit, Transaction
from trace_store.refs.head import NAME
from trace_store.refs.names import staged_ref
from trace_store.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.contracts import RefReader
    from trace_store.oid import ObjectId
    from trace_store.store import Store

_COUNTED = 64
"""How many commits are looked at to tell how many are taken back."""


@value
class Reset:
    """What was moved.

    Attributes:
        ref: full name of the branch; None when HEAD is detached.
        before: where it stood; None when it had no commit.
        after: where it stands.
        kept: the ref that keeps what it stood for; None when it stood there before.
        count: how many commits along first parents were taken back; None when it is not on that line, or far away.
    """

    ref: str | None
    before: ObjectId | None
    after: ObjectId
    kept: str | None
    count: int | None


def reset_hard(store: Store, revision: str = "HEAD", *, author: str) -> Reset:
    """Move HEAD's branch, or a detached HEAD, to a commit; what it stood for goes to the trash.

    Raises:
        As `resolve_commit`.
    """
    return _reset(store, revision, author, soft=False)


def reset_soft(store: Store, revision: str = "HEAD", *, author: str) -> Reset:
    """Move HEAD's branch, or a detached HEAD, to a commit; what was after it is staged, to be committed again.

    Where something is staged already that continues what the branch stood for, that is kept: a second step back adds
    to the first.

    Raises:
        As `resolve_commit`.
    """
    return _reset(store, revision, author, soft=True)


def _reset(store: Store, revision: str, author: str, *, soft: bool) -> Reset:
    head = store.refs.head()
    after = revisions.resolve_commit(store, revision)
    message = f"reset: moving to {revision}"
    kept: str | None = None

    def keep(refs: RefReader, before: ObjectId | None) -> list[RefEdit]:
        nonlocal kept
        kept = None
        if before is None or before == after or is_kept_by(store, before, after):
            return []
        store.refs.set_original(before)  # before anything moves, as what it is to be found by
        name = head.ref or NAME
        edits = _staging(store, refs, name, before) if soft else [keeping(name, before)]
        kept = edits[0].name
        return [*edits, *keeping_others(refs, name)] if head.ref else edits

    def build(refs: RefReader) -> Transaction | None:
        assert head.ref is not None
        before = refs.read(head.ref)
        return Transaction((), [RefEdit(head.ref, after, before), *keep(refs, before)], message)

    if head.ref is not None:
        store.transact(build, author=author)
    elif head.oid != after:
        keep_and_move(store, head, after, message, author, lambda refs: keep(refs, head.oid))
    count = None if head.oid is None else steps_between(store, head.oid, after, _COUNTED)
    return Reset(head.ref, head.oid, after, kept, count)


def _staging(store: Store, refs: RefReader, ref: str, before: ObjectId) -> list[RefEdit]:
    """Return the edits that stage what a branch stood for, or leave what is staged already when it continues that."""
    name = staged_ref(ref)
    already = refs.read(name)
    if already is None:
        return [RefEdit(name, before, None)]
    if goes_on(store, already, before):
        return [RefEdit(name, already, already)]
    if revisions.commits_of(store).is_ancestor(already, before):
        return [RefEdit(name, before, already)]
    return [RefEdit(name, before, already), keeping(name, already)]
