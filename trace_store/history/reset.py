"""`reset --hard`, `reset --soft`, and committing what a soft reset staged.

Rule: what a branch is moved away from is kept in the same transaction, and ORIG_HEAD names it. `--hard` keeps it in the
trash. `--soft` keeps it as staged: one ref a branch, `refs/staged/heads/main`, from which all that was after can be
committed again.

Rule: the one commit does what the several did, in their order, so that the context is the same, and messages keep
their addresses.
"""

from __future__ import annotations

from trace_store import errors
from trace_store import revision as revisions
from trace_store.contracts import RefEdit, Transaction
from trace_store.frozen import value
from trace_store.history.switch import keep_and_move
from trace_store.history.trash import goes_on, is_kept_by, keeping, keeping_others, steps_between
from trace_store.ident import check_author
from trace_store.objects import operations as ops
from trace_store.objects.commit import Commit, Operation, read_commit
from trace_store.objects.operations import carried_operations
from trace_store.oid import ObjectId, hash_object
from trace_store.refs.head import NAME
from trace_store.refs.names import staged_ref
from trace_store.revision import commits_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from trace_store.contracts import RefReader
    from trace_store.objects.address import Address
    from trace_store.store.handle import Store


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


@value
class Staged:
    """What is ready to be committed again.

    Attributes:
        ref: the ref that keeps it.
        tip: the last of its commits.
        commits: their ids, oldest first.
    """

    ref: str
    tip: ObjectId
    commits: tuple[ObjectId, ...]


@value
class Recommitted:
    """What was committed again: the new commit, its branch (None: detached), its messages, and of what it is made."""

    oid: ObjectId
    ref: str | None
    addresses: tuple[Address, ...]
    staged: Staged

    @property
    def message_count(self) -> int:
        """How many messages it adds."""
        return len(self.addresses)


def staged_tip(store: Store) -> ObjectId | None:
    """Return the last commit that `reset --soft` left for HEAD's branch, or for a detached HEAD; None when none is.

    What is on the branch again, since that was moved forward, is not staged.
    """
    head = store.refs.head()
    tip = store.refs.read(staged_ref(head.ref or NAME))
    if tip is None or head.oid is None:
        return tip
    return None if commits_of(store).is_ancestor(tip, head.oid) else tip


def staged(store: Store) -> Staged | None:
    """Return what `reset --soft` left for HEAD's branch, or for a detached HEAD; None when there is nothing.

    Raises:
        StateError: the branch has moved since, so that it does not continue it any more.
    """
    head = store.refs.head()
    ref = staged_ref(head.ref or NAME)
    tip = staged_tip(store)
    if tip is None:
        return None
    found: list[ObjectId] = []
    oid = tip
    while oid != head.oid:
        found.append(oid)
        parents = read_commit(oid, store.objects.read).parents
        if not parents:
            if head.oid is None:
                break
            raise errors.StateError(
                "what was staged does not continue where HEAD is now",
                code=errors.ErrorCode.STAGED_ELSEWHERE,
                staged=ref.removeprefix("refs/"),
            )
        oid = parents[0]
    return Staged(ref, tip, tuple(reversed(found)))


def commit_staged(store: Store, *, author: str, message: str = "") -> Recommitted:
    """Commit what is staged as one commit, and return it; the commits that it is made of go to the trash.

    Args:
        store: where.
        author: who.
        message: what to say about it; what the staged commits say, when they say something, otherwise.

    Raises:
        StateError: nothing is staged, or the branch has moved since.
    """
    head = store.refs.head()
    check_author(author)
    ready = staged(store)
    if ready is None:
        raise errors.StateError("nothing is staged", code=errors.ErrorCode.NOTHING_STAGED)
    commits = [read_commit(oid, store.objects.read) for oid in ready.commits]
    made = squash(ready.commits, commits, author, store.clock.now(), message)
    data = made.encode()
    oid = hash_object(data)
    said = "commit: staged"

    def keep(refs: RefReader) -> list[RefEdit]:
        return [RefEdit(ready.ref, None, ready.tip), keeping(head.ref or NAME, ready.tip)]

    def build(refs: RefReader) -> Transaction:
        assert head.ref is not None
        return Transaction([(oid, data)], [RefEdit(head.ref, oid, head.oid), *keep(refs)], said)

    if head.ref is not None:
        store.transact(build, author=author)
    else:
        store.transact(lambda _: Transaction([(oid, data)]))
        keep_and_move(store, head, oid, said, author, keep)
    addresses = tuple(address for address, _ in ops.added_messages(made, oid))
    return Recommitted(oid, head.ref, addresses, ready)


def squash(
    oids: Sequence[ObjectId], commits: Sequence[Commit], author: str, time: int, message: str = ""
) -> Commit:
    """Return one commit that does what a line of commits does, oldest first, on the first one's parents."""
    parents = dict.fromkeys(commits[0].parents[:1])
    done: list[Operation] = []
    links: dict[tuple[str, ObjectId | str], None] = {}
    for oid, commit in zip(oids, commits, strict=True):
        done += carried_operations(oid, commit)
        parents.update(dict.fromkeys(commit.parents[1:]))
        links.update(dict.fromkeys(commit.links))
    said = message or "\n\n".join(each.message for each in commits if each.message)
    meta = commits[0].meta if len(commits) == 1 else None
    return Commit(list(parents), author, time, done, said, meta, list(links))
