"""Rebases of HEAD's branch."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from trace_store.base.oid import ObjectId
from trace_store.history.branch_state import required_upstream
from trace_store.history.branches import branch_of_head
from trace_store.llm.contract import Model
from trace_store.merge import in_progress
from trace_store.merge.conflicts import check_favour
from trace_store.merge.replay import Replay
from trace_store.merge.result import Rewrite
from trace_store.merge.todo import DROP, PICK, Step, Todo, add_new_commits, commits_since, complete
from trace_store.store import revision as revisions
from trace_store.store.revision import commits_of
from trace_store.store.store import Store
from trace_store.writer import Writer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.merge.conflicts import Answer


def to_rebase(
    store: Store, base: ObjectId | None, tip: ObjectId, start: ObjectId | None
) -> list[ObjectId]:
    """Return the commits to rebase, oldest first.

    Args:
        store: the repository's store.
        base: this commit and its ancestors are not rebased; None rebases everything.
        tip: the tip of the branch.
        start: the new base; None means no base. Its ancestors are not rebased either.
    """
    every = commits_since(store, base, tip)
    if start is None or start == base:
        return every
    missing = set(commits_of(store).topological([tip], [start]))
    return [oid for oid in every if oid in missing]


class RebaseRange:
    """The commits that a rebase of HEAD's branch reapplies.

    Attributes:
        name: the new base as the user names it; "" for none.
        tip: the tip of the branch.
        start: the new base, or None.
        commits: the commits, oldest first.
        steps: a step for each.
    """

    __slots__ = ("commits", "name", "start", "steps", "tip")

    def __init__(self, store: Store, upstream: str | None, onto: str) -> None:
        """Find the commits; arguments and errors as in `rebase`."""
        self.tip = revisions.resolve_commit(store, "HEAD")
        if upstream == "":
            upstream = required_upstream(store)
        base = None if upstream is None else revisions.resolve_commit(store, upstream)
        self.start = revisions.resolve_commit(store, onto) if onto else base
        self.name = onto or upstream or ""
        self.commits = to_rebase(store, base, self.tip, self.start)
        self.steps = Todo(store, (Step(PICK, oid) for oid in self.commits))


def rebase(
    writer: Writer,
    upstream: str | None = "",
    *,
    onto: str = "",
    plan: Callable[[Todo], Sequence[Step]] | None = None,
    drop_pinned: bool = False,
    favour: str = "",
    resolver: Answer | None = None,
    judge: Model | None = None,
) -> Rewrite:
    """Reapply the commits of HEAD's branch on top of another base.

    Commits that the new base already contains are left out.

    Args:
        writer: the branch.
        upstream: this revision and its ancestors are not rebased; "" is the branch's upstream, None rebases everything.
        onto: the new base; "" is `upstream`.
        plan: gets a step for each commit, oldest first, and returns the steps to do; None does all. Commits that are
            made meanwhile are rebased at the end.
        drop_pinned: allow dropping pinned messages.
        favour: "ours" or "theirs" resolves every conflict that allows it; ours is the new base.
        resolver: as in `merge`.
        judge: a model that reviews changes of meaning; None skips the review.

    Raises:
        StateError: another operation is in progress.
        DetachedHeadError, UnbornBranchError: HEAD is detached, or its branch has no commit.
        RevisionNotFoundError: there is no such commit, or the branch has no upstream.
        ConflictError: a pinned message would be dropped.
        InvalidInputError: the plan or the side to favour is not valid.
        RefChangedError: the branch was moved away meanwhile, or every retry lost the race.
    """
    store, change = writer.store, writer.begin("rebase")
    check_favour(favour)
    ref = branch_of_head(store)
    found = RebaseRange(store, upstream, onto)
    every, start = found.steps, found.start
    steps = every if plan is None else complete(plan(every), found.commits)
    ranks = {step.oid: rank for rank, step in enumerate(every)}
    order = [ranks.get(step.oid, -1) for step in steps if step.action != DROP]
    inputs = {
        "steps": [step.as_json() for step in steps],
        "onto": "" if start is None else str(start),
        "name": f"{len(every)} commit{'' if len(every) == 1 else 's'} onto {found.name or 'nothing'}",
        "drop_pinned": drop_pinned,
        "elsewhere": bool(onto),
        "reordered": order != sorted(order),
        "favour": favour,
    }
    stop = in_progress.Stop(in_progress.REBASE, ref, found.tip, inputs, {}, [])
    add_new_commits(store, stop)  # an agent may have committed while the plan was edited
    return Replay(change, stop, resolver, judge).run()
