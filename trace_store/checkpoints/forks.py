"""Forks: branches with a recorded fork point, and the choice between two of them.

The fork point of a branch NAME is the checkpoint `forks/NAME`, which also names the branch that was forked. The losing
branch of a choice becomes the checkpoint `archived/NAME`, and its conclusion a message on the winner.
"""

from __future__ import annotations

from trace_store import checkpoints, errors, history
from trace_store.base import check
from trace_store.base.frozen import value
from trace_store.base.ident import check_author, count_of, is_count
from trace_store.base.oid import ObjectId
from trace_store.checkpoints.hard import (
    ARCHIVED,
    BRANCH,
    TRIGGER,
    branch_meta,
    find_checkpoint,
    new_tag,
)
from trace_store.checkpoints.work_state import work_state
from trace_store.context.wording import DECISION, excerpt
from trace_store.contracts import RefEdit
from trace_store.contracts.ref_names import BRANCHES, FORKS, branch_ref
from trace_store.history.trash_refs import keep_in_trash, keep_other_tips
from trace_store.objects import operations as ops
from trace_store.objects.commit import PICKED, Commit, Operation, read_commit
from trace_store.objects.message import Message, store_message
from trace_store.store import revision as revisions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.checkpoints.comparison import ForkComparison
    from trace_store.contracts.protocols import RefReader
    from trace_store.store.store import Store
    from trace_store.writer import Change, Writer

FORK, ARCHIVE = "fork", "archive"
_CONCLUSION_CHARACTERS = 1_000
_MAXIMUM_ARCHIVED = 1_000


@value
class Fork:
    """A fork.

    Attributes:
        ref: full name of the branch.
        parent: full name of the branch that was forked, or "" if it was a commit.
        point: the commit where they diverge.
        checkpoint: the ref that records the fork point.
    """

    JSON = "parent? fork_point=point"

    ref: str
    parent: str
    point: ObjectId
    checkpoint: str

    @property
    def name(self) -> str:
        """The branch's short name."""
        return self.ref.removeprefix(BRANCHES)


@value
class Choice:
    """The result of choosing one of two branches.

    Attributes:
        winner: full name of the branch that is kept.
        loser: full name of the other branch.
        commit: the commit on the winner that records the conclusion.
        archived: the checkpoint that keeps the loser's tip.
        archived_tip: that tip.
        is_moved: whether the loser was the parent of the winner and moved to the winner's tip; else it was deleted.
        conclusion: the conclusion of the loser.
    """

    JSON = "archived_commit=archived_tip"

    winner: str
    loser: str
    commit: ObjectId
    archived: str
    archived_tip: ObjectId
    is_moved: bool
    conclusion: str


class Forks:
    """The forks of a repository, as `repo.forks`: branches that remember where they began."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._store = writer.store

    def create(self, name: str, *, start: str = "", ref: str = "HEAD") -> Fork:
        """Create a branch with a recorded fork point.

        Args:
            name: the branch's short name.
            start: the address of the last message in the fork, or a commit; "" is the tip of `ref`.
            ref: the branch that is forked.

        Raises:
            AlreadyExistsError: the branch exists.
            InvalidInputError: the message is in the middle of a commit that cannot be divided.
            MessageNotFoundError: there is no such message.
            As `resolve_commit` and `branch_ref`.
        """
        check.text(start=start, ref=ref)
        store, change = self._store, self._writer.begin()
        full = branch_ref(name)
        point = _start(change, start or ref)
        record = FORKS + full.removeprefix(BRANCHES)
        meta = {TRIGGER: FORK, **branch_meta(store, ref)}
        oid = change.add(new_tag(record, point, change.author, store.clock.now(), "", meta))

        def edits(refs: RefReader) -> list[RefEdit]:
            if refs.read(full) is not None:
                raise errors.AlreadyExistsError(f"branch {name} already exists", ref=full)
            before = refs.read(record)  # of an earlier branch of this name
            kept = [] if before is None else [keep_in_trash(record, before)]
            return [RefEdit(full, point, None), RefEdit(record, oid, before), *kept]

        change.write(edits, f"fork: {name}")
        return Fork(full, meta.get(BRANCH, ""), point, record)

    def of(self, ref: str) -> Fork | None:
        """Return a branch's fork record (by full name) or None; raises as `forks.fork_of`."""
        return fork_of(self._store, ref)

    def compare(self, left: str, right: str) -> ForkComparison:
        """Return two branches side by side; raises as `comparison.compare_forks`."""
        check.text(left=left, right=right)
        return checkpoints.comparison.compare_forks(self._writer.contexts, left, right)

    def merge(self, winner: str, loser: str, *, reason: str = "") -> Choice:
        """Keep one branch, and archive the other with its conclusion, in one transaction.

        The loser's tip becomes the checkpoint `archived/LOSER`. The winner gets a `decision` message with the
        conclusion of the loser. If the winner was forked from the loser, the loser's name moves to the winner; else the
        loser is deleted.

        Raises:
            StateError: HEAD is on the loser, which would be deleted; or a merge, pick, revert or rebase is in progress.
            InvalidInputError: it is the same branch.
            RefNotFoundError: there is no such branch.
            RefChangedError: another process moved a branch.
            SecretFoundError: the reason holds a secret, and the repository refuses secrets.
        """
        check.text(winner=winner, loser=loser, reason=reason)
        store = self._store
        kept, lost = (history.branches.find_branch(store, each) for each in (winner, loser))
        if kept == lost:
            raise errors.InvalidInputError("the winner and the loser are the same branch")
        change = self._writer.begin("fork", kept, lost)
        tip, lost_tip = (history.branch_state.read_branch(store, each).oid for each in (kept, lost))
        record = fork_of(store, kept)
        is_moved = record is not None and record.parent == lost
        if not is_moved and store.refs.head_target() == lost:
            short = kept.removeprefix(BRANCHES)
            raise errors.StateError(
                f"HEAD is on {lost.removeprefix(BRANCHES)}, which would be archived",
                code=errors.ErrorCode.WOULD_ARCHIVE_HEAD,
                name=short,
            )
        context = self._writer.contexts.compile(lost_tip)
        state = work_state(list(context.messages), context.token_count)
        conclusion = excerpt(state.outcome or state.latest_request, _CONCLUSION_CHARACTERS)
        text = _decision_text(kept, lost, reason, conclusion)
        made = Commit(
            [tip],
            check_author(change.author),
            store.clock.now(),
            [ops.add([store_message(Message("user", text, kind=DECISION), change.put)])],
            f"Keep {kept.removeprefix(BRANCHES)}, archive {lost.removeprefix(BRANCHES)}",
            None,
            [("archives", lost_tip)],
        )
        oid = change.add(made)
        archived = _free_archive(store, lost)
        meta = {BRANCH: lost, TRIGGER: ARCHIVE}
        now = store.clock.now()
        tag = change.add(new_tag(archived, lost_tip, change.author, now, conclusion, meta))

        def edits(refs: RefReader) -> list[RefEdit]:
            moves = [
                RefEdit(kept, oid, tip),
                RefEdit(lost, oid if is_moved else None, lost_tip),
                *keep_other_tips(refs, lost),
                RefEdit(archived, tag, None),
            ]
            known = FORKS + lost.removeprefix(BRANCHES)
            if not is_moved and (old := refs.read(known)) is not None:
                moves += [RefEdit(known, None, old), keep_in_trash(known, old)]
            return moves

        if store.refs.head_target() in (kept, lost):
            store.refs.set_original(lost_tip if store.refs.head_target() == lost else tip)
        change.write(edits, f"fork: kept {kept.removeprefix(BRANCHES)}")
        return Choice(kept, lost, oid, archived, lost_tip, is_moved, conclusion)


def fork_of(store: Store, ref: str) -> Fork | None:
    """Return the fork record of a branch (full name), or None.

    Raises:
        ObjectNotFoundError, CorruptObjectError: the record is missing or damaged.
    """
    record = FORKS + ref.removeprefix(BRANCHES)
    if store.refs.read(record) is None:
        return None
    found = find_checkpoint(store, record)
    return Fork(ref, found.branch, found.commit, record)


def _start(change: Change, text: str) -> ObjectId:
    """Return the commit where a fork starts; a new one is added to the change."""
    store = change.writer.store
    revision, dot, digits = text.rpartition(".")
    if not (dot and is_count(digits)) or revisions.ref_of(store, text) is not None:
        return revisions.resolve_commit(store, text)
    revisions.resolve_address(store, text)
    oid = revisions.resolve_commit(store, revision)
    commit = read_commit(oid, store.objects.read)
    wanted = count_of(digits) + 1
    if wanted == ops.added_by(commit):
        return oid
    operations: list[Operation] = []
    for operation in ops.carried_operations(oid, commit):
        count = ops.message_count(operation)
        if count > wanted:
            if operation.name != ops.ADD:
                raise errors.InvalidInputError(
                    f"{text[:100]} is in the middle of a replacement, which cannot be divided",
                    code=errors.ErrorCode.UNDIVIDABLE,
                    commit=oid.short(),
                )
            messages = operation.fields["messages"][:wanted]
            operation = Operation(ops.ADD, {**operation.fields, "messages": messages})
        operations.append(operation)
        wanted -= count
        if wanted <= 0:
            break
    links = [(PICKED, str(oid))]
    author, now = check_author(change.author), store.clock.now()
    return change.add(Commit(commit.parents[:1], author, now, operations, "", None, links))


def _free_archive(store: Store, ref: str) -> str:
    name = ARCHIVED + ref.removeprefix(BRANCHES)
    for number in range(1, _MAXIMUM_ARCHIVED):
        found = name if number == 1 else f"{name}-{number}"
        if store.refs.read(found) is None:
            return found
    raise errors.AlreadyExistsError(f"too many checkpoints named {name}", ref=name)


def _decision_text(winner: str, loser: str, reason: str, conclusion: str) -> str:
    kept, lost = (each.removeprefix(BRANCHES) for each in (winner, loser))
    lines = [f"Decision: kept {kept}, archived {lost}." + (f" {reason}" if reason else "")]
    if conclusion:
        lines.append(f"Conclusion of {lost}: {conclusion}")
    return "\n".join(lines)
