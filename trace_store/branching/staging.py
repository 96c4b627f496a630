"""Committing again what `reset --soft` took back: all of it as one commit.

Rule: the one commit does what the several did, in their order, so that the context is the same, and messages keep
their addresses.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.branching.switching import keep_and_move
from trace_store.branching.trash import keeping
from trace_store.contracts import RefEdit, Transaction
from trace_store.ident import check_author
from trace_store.objects import operations as ops
from trace_store.objects.carrying import carried_operations
from trace_store.objects.commit import Commit, Operation, read_commit
from trace_store.oid import ObjectId, hash_object
from trace_store.refs.head import NAME
from trace_store.refs.names import staged_ref
from trace_store.revision import commits_of
from trace_store.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from trace_store.contracts import RefReader
    from trace_store.objects.address import Address
    from trace_store.store import Store


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
                hint=f"`trace branch NAME {ref.removeprefix('refs/')}` makes a branch of it",
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
        raise errors.StateError(
            "nothing is staged", hint="`trace reset REVISION` stages what was after it"
        )
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
