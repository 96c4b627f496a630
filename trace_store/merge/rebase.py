"""Rebase: reapply the commits of a branch on top of another."""

from __future__ import annotations

from trace_store import history
from trace_store import revision as revisions
from trace_store.merge import in_progress
from trace_store.merge.conflicts import OURS, REWORDING, Settlement, check_favour
from trace_store.merge.replay import Rewriting
from trace_store.merge.result import UP_TO_DATE, Rewrite
from trace_store.merge.todo import DROP, PICK, Step, checked, commits_since, take_along
from trace_store.oid import ObjectId
from trace_store.revision import commits_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trace_store.merge.conflicts import Resolver
    from trace_store.merge.llm_assist.review import Judge
    from trace_store.secrets.guard import Guard
    from trace_store.store.handle import Store


def to_rebase(
    store: Store, base: ObjectId | None, tip: ObjectId, start: ObjectId | None
) -> list[ObjectId]:
    """Return the commits to make anew, oldest first.

    Args:
        store: the repository.
        base: what is not made anew: everything in its past; None makes all of the line anew.
        tip: where the line ends.
        start: what the commits go on; None is nothing. What lies in its past is not made anew either.
    """
    every = commits_since(store, base, tip)
    if start is None or start == base:
        return every
    missing = set(commits_of(store).topological([tip], [start]))
    return [oid for oid in every if oid in missing]


def rebase(
    store: Store,
    upstream: str | None = "",
    *,
    author: str,
    onto: str = "",
    plan: Callable[[Sequence[Step]], Sequence[Step]] | None = None,
    drop_pinned: bool = False,
    favour: str = "",
    guard: Guard | None = None,
    resolver: Resolver | None = None,
    judge: Judge | None = None,
) -> Rewrite:
    """Make the commits of HEAD's branch since another anew, on top of that.

    A commit of which all is there already is left out.

    Args:
        store: the repository.
        upstream: what is not made anew: everything in its past; "" is the branch's upstream, and None makes all of the
            branch anew, from its root on.
        author: who.
        onto: what they go on; "" is upstream, or nothing.
        plan: given a step for each commit, oldest first, returns those to do; None does them all. What is committed on
            the branch meanwhile is made anew, too, after all else.
        drop_pinned: whether a pinned message may be dropped.
        favour: "ours" or "theirs" settles every conflict that it can; ours is what they go on.
        guard: looks for secrets in texts that settle conflicts.
        resolver: as in `merge`.
        judge: says, as `judging.Judge` does, what may no longer mean what it meant; nobody is asked without one.

    Raises:
        StateError: something else is in progress.
        DetachedHeadError, UnbornBranchError: HEAD is on no branch, or its branch has no commit.
        RevisionNotFoundError: there is no such commit, or nothing is named and the branch has no upstream.
        ConflictError: a pinned message would be dropped.
        InvalidInputError: the plan is not sound, or there is no such side to favour.
        RefChangedError: the branch was moved elsewhere meanwhile, or others go on with it again and again.
    """
    in_progress.refuse_while_stopped(store)
    check_favour(favour)
    ref = history.branches.branch_of_head(store)
    tip = revisions.resolve_commit(store, "HEAD")
    if upstream == "":
        upstream = history.branches.required_upstream(store)
    base = None if upstream is None else revisions.resolve_commit(store, upstream)
    start = revisions.resolve_commit(store, onto) if onto else base
    commits = to_rebase(store, base, tip, start)
    every = [Step(PICK, oid) for oid in commits]
    steps = every if plan is None else checked(plan(every), commits)
    ranks = {step.oid: rank for rank, step in enumerate(every)}
    order = [ranks.get(step.oid, -1) for step in steps if step.deed != DROP]
    inputs = {
        "steps": [step.as_json() for step in steps],
        "onto": "" if start is None else str(start),
        "name": f"{len(every)} commit{'' if len(every) == 1 else 's'} onto {onto or upstream or 'nothing'}",
        "drop_pinned": drop_pinned,
        "elsewhere": bool(onto),
        "reordered": order != sorted(order),
        "favour": favour,
    }
    stop = in_progress.Stop(in_progress.REBASE, ref, tip, inputs, {}, [])
    take_along(store, stop)  # a plan may take its time, while an agent goes on
    return Rewriting(store, stop, author, guard, resolver, judge).run()


def continue_rewriting(
    store: Store,
    kind: str,
    *,
    author: str,
    skip: bool = False,
    guard: Guard | None = None,
    resolver: Resolver | None = None,
    judge: Judge | None = None,
    drop_pinned: bool = False,
) -> Rewrite:
    """Go on with a pick or a rebase that stopped; with `skip` without the step that it stopped at.

    A step that stopped for other wordings goes on with those that were given; the others stay. What was committed on
    the branch while a rebase waited is made anew, too, after all else. With `drop_pinned` pinned messages may go.

    Raises:
        StateError: nothing of this kind is in progress.
        ConflictError: a pinned message would be dropped.
        RefChangedError: the branch went elsewhere since the rebase began.
    """
    stop = in_progress.required_stop(store, kind)
    if in_progress.is_written(store, stop):
        in_progress.clear_stop(store)
        tip = store.refs.read(stop.ref)
        return Rewrite(UP_TO_DATE, stop.ref, tip, tip)
    take_along(store, stop)
    if drop_pinned:
        stop.inputs["drop_pinned"] = True
    if skip:
        stop.skipped.append(stop.number)
    else:
        at = stop.number
        found, _ = Rewriting(store, stop, author, guard).look()
        for conflict in found.conflicts:
            if conflict.kind == REWORDING and stop.number == at:
                stop.settlements[conflict.key] = Settlement(OURS)
    return Rewriting(store, stop, author, guard, resolver, judge).run()


def look_at_rewriting(store: Store) -> Rewrite:
    """Return what the pick or rebase that is in progress comes to by now, and write nothing."""
    stop = in_progress.required_stop(store)
    take_along(store, stop)
    found, _ = Rewriting(store, stop, "").look()
    return found
