"""Resets of HEAD's branch, hard and soft, and committing what a soft reset staged.

The old tip is kept in the same transaction, and ORIG_HEAD names it. A hard reset keeps it in the trash. A soft reset
stages it: one ref per branch, such as `refs/staged/heads/main`, from which the commits after the new tip can be
committed again. The new commit has the operations of all of them in order, so the context is the same and messages
keep their addresses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trace_store import errors
from trace_store.base.frozen import value
from trace_store.base.ident import check_author
from trace_store.base.oid import ObjectId
from trace_store.contracts import RefEdit
from trace_store.contracts.protocols import RefReader
from trace_store.contracts.ref_names import staged_ref
from trace_store.history.trash_refs import (
    goes_on,
    is_kept_by,
    keep_in_trash,
    keep_other_tips,
    steps_between,
)
from trace_store.objects import operations as ops
from trace_store.objects.address import Address
from trace_store.objects.commit import Commit, Operation, read_commit
from trace_store.objects.operations import carried_operations
from trace_store.refs.head import NAME
from trace_store.store import revision as revisions
from trace_store.store.revision import commits_of
from trace_store.store.store import Store
from trace_store.writer import Writer

_COUNTED = 64
"""A reset counts at most this many commits."""


@value
class Reset:
    """The result of a reset.

    Attributes:
        ref: full name of the branch; None if HEAD is detached.
        before: the old tip; None without one.
        after: the new tip.
        kept: the ref that keeps the old tip; None if the tip did not change.
        count: number of commits along first parents that were reset; None if unknown or too many.
    """

    JSON = "commit=after changed"

    ref: str | None
    before: ObjectId | None
    after: ObjectId
    kept: str | None
    count: int | None

    @property
    def changed(self) -> bool:
        """Whether the branch, or HEAD, moved."""
        return self.before != self.after


def reset_hard(writer: Writer, revision: str = "HEAD") -> Reset:
    """Move HEAD's branch, or a detached HEAD, to a commit; the old tip goes to the trash.

    Raises:
        As `resolve_commit`.
    """
    return _reset(writer, revision, soft=False)


def reset_soft(writer: Writer, revision: str = "HEAD") -> Reset:
    """Move HEAD's branch, or a detached HEAD, to a commit, and stage later commits.

    If staged commits already continue the old tip, they stay staged: a second soft reset adds to the first.

    Raises:
        As `resolve_commit`.
    """
    return _reset(writer, revision, soft=True)


def _reset(writer: Writer, revision: str, *, soft: bool) -> Reset:
    store, change = writer.store, writer.begin("reset")
    head = store.refs.head()
    after = revisions.resolve_commit(store, revision)
    message = f"reset: moving to {revision}"
    kept: str | None = None

    def keep(refs: RefReader, before: ObjectId | None) -> list[RefEdit]:
        nonlocal kept
        kept = None
        if before is None or before == after or is_kept_by(store, before, after):
            return []
        store.refs.set_original(
            before
        )  # before any ref moves, so that the old tip can always be found
        name = head.ref or NAME
        edits = _stage_edits(store, refs, name, before) if soft else [keep_in_trash(name, before)]
        kept = edits[0].name
        return [*edits, *keep_other_tips(refs, name)] if head.ref else edits

    def edits(refs: RefReader) -> list[RefEdit]:
        assert head.ref is not None
        before = refs.read(head.ref)
        return [RefEdit(head.ref, after, before), *keep(refs, before)]

    if head.ref is not None:
        change.write(edits, message)
    elif head.oid != after:
        change.move_head(head, after, message, lambda refs: keep(refs, head.oid))
    count = None if head.oid is None else steps_between(store, head.oid, after, _COUNTED)
    return Reset(head.ref, head.oid, after, kept, count)


def _stage_edits(store: Store, refs: RefReader, ref: str, before: ObjectId) -> list[RefEdit]:
    """Return the edits that stage a branch's old tip, or keep the staged commits if they continue it."""
    name = staged_ref(ref)
    already = refs.read(name)
    if already is None:
        return [RefEdit(name, before, None)]
    if goes_on(store, already, before):
        return [RefEdit(name, already, already)]
    if revisions.commits_of(store).is_ancestor(already, before):
        return [RefEdit(name, before, already)]
    return [RefEdit(name, before, already), keep_in_trash(name, already)]


@value
class Staged:
    """Commits staged by a soft reset.

    Attributes:
        ref: the ref that keeps them.
        tip: the last commit.
        commits: their ids, oldest first.
    """

    ref: str
    tip: ObjectId
    commits: tuple[ObjectId, ...]


@value
class StagedCommit:
    """The result of committing staged commits.

    Attributes:
        oid: the id of the commit.
        ref: the branch that now points to it; None if HEAD is detached.
        addresses: of the messages that it adds.
        staged: the commits that it was made of.
        secrets: how many secrets of each kind were found in its message.
    """

    JSON = "commit=oid message_count -staged"

    oid: ObjectId
    ref: str | None
    addresses: tuple[Address, ...]
    staged: Staged
    secrets: Mapping[str, int]

    @property
    def message_count(self) -> int:
        """Number of messages that it adds."""
        return len(self.addresses)


def staged_tip(store: Store) -> ObjectId | None:
    """Return the last commit staged for HEAD's branch or a detached HEAD, or None.

    Commits that the branch contains again are not staged.
    """
    head = store.refs.head()
    tip = store.refs.read(staged_ref(head.ref or NAME))
    if tip is None or head.oid is None:
        return tip
    return None if commits_of(store).is_ancestor(tip, head.oid) else tip


def staged(store: Store) -> Staged | None:
    """Return the commits staged for HEAD's branch or a detached HEAD, or None.

    Raises:
        StateError: the branch has moved, so the staged commits do not continue it.
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
                "the staged commits do not continue from HEAD",
                code=errors.ErrorCode.STAGED_ELSEWHERE,
                staged=ref.removeprefix("refs/"),
            )
        oid = parents[0]
    return Staged(ref, tip, tuple(reversed(found)))


def commit_staged(writer: Writer, message: str = "") -> StagedCommit:
    """Commit everything staged as one commit and return it; the original commits go to the trash.

    Args:
        writer: the branch.
        message: the commit message; by default, the messages of the staged commits.

    Raises:
        StateError: nothing is staged, or the branch has moved.
        SecretFoundError: the message holds a secret, and the repository refuses secrets.
    """
    store, change = writer.store, writer.begin("reset")
    head = store.refs.head()
    check_author(change.author)
    ready = staged(store)
    if ready is None:
        raise errors.StateError("nothing is staged", code=errors.ErrorCode.NOTHING_STAGED)
    commits = [read_commit(oid, store.objects.read) for oid in ready.commits]
    made = squash(ready.commits, commits, change.author, store.clock.now(), message)
    oid = change.add(made)
    reason = "commit: staged"

    def keep(refs: RefReader) -> list[RefEdit]:
        return [RefEdit(ready.ref, None, ready.tip), keep_in_trash(head.ref or NAME, ready.tip)]

    def edits(refs: RefReader) -> list[RefEdit]:
        assert head.ref is not None
        return [RefEdit(head.ref, oid, head.oid), *keep(refs)]

    if head.ref is not None:
        change.write(edits, reason)
    else:
        change.move_head(head, oid, reason, keep)
    addresses = tuple(address for address, _ in ops.added_messages(made, oid))
    return StagedCommit(oid, head.ref, addresses, ready, change.secrets)


def squash(
    oids: Sequence[ObjectId], commits: Sequence[Commit], author: str, time: int, message: str = ""
) -> Commit:
    """Return one commit with the operations of several, oldest first, on the parents of the first."""
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
