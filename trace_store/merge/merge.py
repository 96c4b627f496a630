"""Merge: another line of history becomes part of HEAD's branch.

Rule: what is asked for and settled decides everything, so that a merge that stopped is computed anew; it is written in
one transaction, or not at all. The tips that git leaves of a branch are joined by a commit that follows from them
alone, so that everybody makes the same one.
"""

from __future__ import annotations

from itertools import permutations

from trace_store import errors, history
from trace_store import revision as revisions
from trace_store.contracts import RefEdit, Transaction
from trace_store.frozen import value
from trace_store.merge import in_progress
from trace_store.merge.conflicts import OURS
from trace_store.merge.inputs import DECISIONS, SEMANTIC, Reading
from trace_store.merge.merge_commits import EVEN, MergeCommits, until_written
from trace_store.merge.result import (
    FAST_FORWARD,
    JOINER,
    MERGED,
    NEVER,
    ONLY,
    SQUASHED,
    STOPPED,
    UP_TO_DATE,
    Merge,
    MergeOptions,
)
from trace_store.objects.content import Gathering
from trace_store.oid import ObjectId
from trace_store.refs.log_messages import DIVERGED_TIPS
from trace_store.refs.names import BRANCHES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from trace_store.contracts import RefReader
    from trace_store.merge.conflicts import Conflict, Resolver
    from trace_store.merge.merge_commits import GivenAdvice
    from trace_store.merge.result import Advise
    from trace_store.secrets.guard import Guard
    from trace_store.store.handle import Store

_FEW = 4
"""Of so many tips each order is tried; of more only that of their ages."""


def merge(
    store: Store,
    revision: str = "",
    options: MergeOptions = MergeOptions(),  # noqa: B008 - a value
    *,
    author: str,
    guard: Guard | None = None,
    resolver: Resolver | None = None,
    advise: Advise | None = None,
) -> Merge:
    """Bring another line of history into HEAD's branch: what is named, or the branch's other tips, or its upstream.

    Args:
        store: the repository.
        revision: what to merge; "" joins what git has left of a diverged branch; of another one it is the upstream,
            if any.
        options: how.
        author: who.
        guard: looks for secrets in texts that settle conflicts.
        resolver: asked about each conflict; None as an answer leaves it open. With open conflicts nothing is written
            but what is needed to go on: see `continue_merge` and `abort`.
        advise: asked about the whole of a merge by the strategy `semantic`, as `semantic.Advisor` is.

    Raises:
        StateError: something else is in progress, the branch cannot go forward and that was asked for, or nobody
            advises a semantic merge.
        ModelError, BudgetError, ConflictError: as who advises does.
        DetachedHeadError: HEAD is on no branch.
        RevisionNotFoundError: there is no such commit.
        InvalidInputError: there is no such option, or the histories share nothing and that was not allowed.
        RefChangedError: others move the branch again and again; each time the merge is made anew on top.
    """
    in_progress.refuse_while_stopped(store)
    options.check()
    if options.strategy == SEMANTIC and advise is None:
        raise errors.StateError(
            "a semantic merge asks a model, and none is given", code=errors.ErrorCode.NO_MODEL
        )
    ref = history.branches.branch_of_head(store)
    tips = store.refs.tips(ref)
    before = tips[0] if tips else None
    if not revision and len(tips) < 2:
        revision = (history.branches.upstream_of(store, ref) or "").removeprefix(revisions.HEADS)
    theirs = [revisions.resolve_commit(store, revision)] if revision else list(tips[1:])
    name = revision or " ".join([DIVERGED_TIPS, *(tip.short() for tip in theirs)])
    inputs = options.as_inputs(name, theirs, joins=not revision)
    stop = in_progress.Stop(in_progress.MERGE, ref, before, inputs, {}, [])
    return _Merging(store, stop, author, guard, resolver, advise).run()


def continue_merge(
    store: Store,
    *,
    author: str,
    message: str = "",
    guard: Guard | None = None,
    resolver: Resolver | None = None,
    skip: bool = False,
) -> Merge:
    """Go on with a merge that stopped, on what the branch is by now; with `skip` without the tip that it stopped at.

    Raises:
        StateError: no merge is in progress.
        RefChangedError: the branch is gone since, or has another name.
        As `merge`.
    """
    stop = in_progress.required_stop(store, in_progress.MERGE)
    if in_progress.is_written(store, stop):
        in_progress.clear_stop(store)
        tip = store.refs.read(stop.ref)
        return Merge(UP_TO_DATE, stop.ref, tip, tip, ())
    if stop.before is not None and store.refs.read(stop.ref) is None:
        raise errors.RefChangedError(
            f"there is no {stop.ref} any more: {stop.said} cannot go on",
            code=errors.ErrorCode.BRANCH_GONE,
            ref=stop.ref,
            expected=stop.before,
        )
    if message:
        stop.inputs["message"] = message
    if skip:
        stop.skipped.append(stop.number)
    return _Merging(store, stop, author, guard, resolver).run()


def look_at_merge(store: Store) -> Merge:
    """Return what the merge that is in progress comes to by now, and write nothing; raises as `continue_merge`."""
    stop = in_progress.required_stop(store, in_progress.MERGE)
    return _Merging(store, stop, JOINER, None, None).look()


@value
class _Course:
    """What merging some tips, one after the other, comes to.

    Attributes:
        commits: the commits that it takes.
        outcome: as in `Merge`.
        tip: where it ends; where it began when it stopped.
        conflicts: what it stopped at.
    """

    commits: MergeCommits
    outcome: str
    tip: ObjectId | None
    conflicts: tuple[Conflict, ...] = ()

    @property
    def is_clean(self) -> bool:
        """Whether it takes nobody's decision."""
        return not self.conflicts and not self.commits.settled


class _Merging:
    """A merge from its inputs to the transaction."""

    def __init__(
        self,
        store: Store,
        stop: in_progress.Stop,
        author: str,
        guard: Guard | None,
        resolver: Resolver | None,
        advise: Advise | None = None,
    ) -> None:
        self._store = store
        self._stop = stop
        self._author = author
        self._guard = guard
        self._resolver = resolver
        self._advise = advise
        self._reading = Reading(store)
        self._advice: dict[ObjectId, GivenAdvice] = {}
        self._theirs = [ObjectId.parse(each) for each in stop.inputs["theirs"]]

    def run(self) -> Merge:
        """Merge, or stop and write down what is needed to go on."""
        return until_written(self._attempt)

    def _attempt(self) -> Merge:
        ours = self._store.refs.read(self._stop.ref)
        course = self._course(ours)
        found = self._result(ours, course)
        if course.outcome == STOPPED:
            in_progress.write_stop(self._store, self._stop)
            return found
        if course.tip is not None and course.tip != ours:
            in_progress.note_tip(self._store, self._stop, course.tip)
            self._write(ours, course.tip, course)
        in_progress.clear_stop(self._store)
        return found

    def look(self) -> Merge:
        """Return what the merge comes to, and write nothing."""
        ours = self._store.refs.read(self._stop.ref)
        return self._result(ours, self._course(ours))

    def _result(self, ours: ObjectId | None, course: _Course) -> Merge:
        commits = course.commits
        return Merge(
            course.outcome,
            self._stop.ref,
            ours,
            course.tip,
            tuple(self._theirs),
            commits.included,
            commits.hidden,
            commits.changed,
            self._stop.numbered(course.conflicts),
            self._stop.by_hand(commits.settled),
        )

    def _course(self, ours: ObjectId | None) -> _Course:
        inputs = self._stop.inputs
        if ours is None or not inputs["joins"] or inputs["strategy"] not in EVEN:
            return self._one_by_one(ours, self._theirs)
        if self._stop.skipped or self._stop.file:  # somebody is deciding already
            return self._one_by_one(ours, self._theirs)
        # Whoever joins them comes to the same: the first order that takes nobody's decision.
        tips = sorted([ours, *self._theirs], key=self._age)
        stuck: set[tuple[ObjectId, ...]] = set()
        for order in permutations(tips) if len(tips) <= _FEW else [tuple(tips)]:
            if any(order[: len(start)] == start for start in stuck):
                continue
            course = self._one_by_one(order[0], order[1:], asks=False)
            if course.is_clean:
                return course
            if course.conflicts:
                stuck.add(order[: self._stop.number + 2])
        return self._one_by_one(ours, self._theirs)

    def _age(self, oid: ObjectId) -> tuple[int, bytes]:
        return self._reading.commit(oid).time, oid

    def _one_by_one(
        self, ours: ObjectId | None, theirs: Sequence[ObjectId], *, asks: bool = True
    ) -> _Course:
        """Merge tips into ours; `asks` tells whether anybody is asked about what they contradict each other in."""
        gathering = Gathering() if self._guard is None else self._guard.gathering()
        commits = MergeCommits(self._reading, self._stop, self._author, gathering)
        if asks:
            commits.ask(self._resolver, self._advise, self._advice)
        outcome, tip = UP_TO_DATE, ours
        for self._stop.number, other in enumerate(theirs):
            if self._stop.number in self._stop.skipped:
                continue
            bases = [] if tip is None else self._reading.bases(tip, other)
            step = self._step(tip, other, bases)
            if tip is None or step == FAST_FORWARD:
                outcome, tip = FAST_FORWARD, other
            elif step != UP_TO_DATE:
                made, conflicts = commits.join(tip, other, bases)
                if conflicts:
                    return _Course(commits, STOPPED, ours, tuple(conflicts))
                if made is not None:
                    outcome, tip = step, made
        return _Course(commits, outcome, tip)

    def _step(self, ours: ObjectId | None, theirs: ObjectId, bases: Sequence[ObjectId]) -> str:
        """Return what merging one tip is to come to.

        Raises:
            StateError: it cannot go forward, and that was asked for.
            InvalidInputError: the two share nothing, and that was not allowed.
        """
        inputs = self._stop.inputs
        if ours is None:
            return FAST_FORWARD
        if bases == [theirs]:
            return UP_TO_DATE
        whole = inputs["strategy"] not in (OURS, DECISIONS) and not inputs["squash"]
        if bases == [ours] and whole and inputs["fast_forward"] != NEVER:
            return FAST_FORWARD
        branch = self._stop.ref.removeprefix(BRANCHES)
        if inputs["fast_forward"] == ONLY:
            raise errors.StateError(
                f"{branch} has commits that {inputs['name']} has not",
                code=errors.ErrorCode.NOT_FAST_FORWARD,
                ref=self._stop.ref,
            )
        if not bases and not inputs["unrelated"]:
            name = "its other tip" if inputs["joins"] else inputs["name"]
            raise errors.InvalidInputError(
                f"{branch} and {name} share no commit",
                code=errors.ErrorCode.UNRELATED_HISTORIES,
            )
        return SQUASHED if inputs["squash"] else MERGED

    def _write(self, ours: ObjectId | None, tip: ObjectId, course: _Course) -> None:
        stop = self._stop
        said = f"merge {stop.inputs['name']}"
        if course.outcome == FAST_FORWARD:
            said += ": fast-forward"

        def build(refs: RefReader) -> Transaction:
            return Transaction(course.commits.objects, [RefEdit(stop.ref, tip, ours)], said)

        if ours is not None:
            self._store.refs.set_original(ours)
        self._store.transact(build, author=self._author)


__all__ = ["Merge", "MergeOptions", "continue_merge", "look_at_merge", "merge"]
