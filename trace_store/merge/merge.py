"""Merges of another line of history into HEAD's branch.

Inputs and resolutions determine the result, so a stopped merge is computed again when it continues. It is written in
one transaction. Joining diverged tips depends on the tips alone, so that every clone creates the same commit.
"""

from __future__ import annotations

from itertools import permutations

from trace_store import errors, history, refs
from trace_store.base.frozen import replace, value
from trace_store.base.oid import ObjectId
from trace_store.contracts import RefEdit
from trace_store.contracts.ref_names import BRANCHES
from trace_store.merge import in_progress
from trace_store.merge.conflicts import OURS, resolver_of
from trace_store.merge.inputs import DECISIONS, SEMANTIC, ContextCache
from trace_store.merge.merge_commits import EVEN, MergeCommits, retry_until_written
from trace_store.merge.result import (
    FAST_FORWARD,
    MERGED,
    NEVER,
    ONLY,
    SQUASHED,
    STOPPED,
    UP_TO_DATE,
    Merge,
    MergeOptions,
)
from trace_store.store import revision as revisions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from trace_store.merge.conflicts import Answer, Conflict
    from trace_store.merge.merge_commits import CachedAdvice
    from trace_store.merge.result import Advise
    from trace_store.writer import Change, Writer

_FEW = 4
"""For up to this many tips every order is tried; for more, only the order by age."""


def merge(
    writer: Writer,
    revision: str = "",
    options: MergeOptions = MergeOptions(),  # noqa: B008 - a value
    *,
    resolver: Answer | None = None,
    advise: Advise | None = None,
) -> Merge:
    """Merge a revision, or else the branch's other tips or its upstream, into a branch.

    Args:
        writer: the branch.
        revision: what to merge; "" is the other tips of a diverged branch, or else the upstream.
        options: the strategy and other options.
        resolver: returns the resolution of a conflict, or None to leave it open. With open conflicts the merge stops
            and writes only its state: see `continue_merge` and `abort`.
        advise: resolves a whole merge for the strategy `semantic`, as `semantic.Advisor`.

    Raises:
        StateError: another operation is in progress, a fast-forward was required but is not possible, or a semantic
            merge has no model.
        ModelError, BudgetError, ConflictError: as `advise` raises them.
        DetachedHeadError: HEAD is detached.
        RevisionNotFoundError: there is no such commit.
        InvalidInputError: an option is not valid, or the histories are unrelated.
        RefChangedError: the branch kept moving; every retry lost the race.
    """
    store, change = writer.store, writer.begin("merge")
    options.check()
    if options.strategy == SEMANTIC and advise is None:
        raise errors.StateError("a semantic merge needs a model", code=errors.ErrorCode.NO_MODEL)
    ref = history.branches.branch_of_head(store)
    tips = store.refs.tips(ref)
    before = tips[0] if tips else None
    if not revision and len(tips) < 2:
        revision = (history.branch_state.upstream_of(store, ref) or "").removeprefix(BRANCHES)
    theirs = [revisions.resolve_commit(store, revision)] if revision else list(tips[1:])
    name = revision or " ".join([refs.reflog.DIVERGED_TIPS, *(tip.short() for tip in theirs)])
    inputs = options.as_inputs(name, theirs, joins=not revision)
    stop = in_progress.Stop(in_progress.MERGE, ref, before, inputs, {}, [])
    return _MergeRun(change, stop, resolver, advise).run()


def continue_merge(
    writer: Writer,
    *,
    message: str = "",
    resolver: Answer | None = None,
    skip: bool = False,
) -> Merge:
    """Continue a stopped merge on the branch's current tip; `skip` leaves out the tip that it stopped at.

    Raises:
        StateError: no merge is in progress.
        RefChangedError: the branch was deleted or renamed.
        As `merge`.
    """
    store = writer.store
    stop = in_progress.required_stop(store, in_progress.MERGE)
    if in_progress.is_written(store, stop):
        in_progress.clear_stop(store)
        tip = store.refs.read(stop.ref)
        return Merge(UP_TO_DATE, stop.ref, tip, tip, ())
    in_progress.check_branch(store, stop)
    if message:
        stop.inputs["message"] = message
    if skip:
        stop.skipped.append(stop.number)
    return _MergeRun(writer.begin(), stop, resolver).run()


def look_at_merge(writer: Writer) -> Merge:
    """Return the current result of the merge in progress without writing it; raises as `continue_merge`."""
    stop = in_progress.required_stop(writer.store, in_progress.MERGE)
    return _MergeRun(writer.begin(), stop).compute_result()


@value
class _Outcome:
    """The result of merging tips one after the other.

    Attributes:
        commits: the merge commits.
        outcome: as in `Merge`.
        tip: the last commit; the original tip if the merge stopped.
        conflicts: the open conflicts.
        start: the tip that the others were merged into, if that is not the branch's own.
    """

    commits: MergeCommits
    outcome: str
    tip: ObjectId | None
    conflicts: tuple[Conflict, ...] = ()
    start: ObjectId | None = None

    @property
    def is_clean(self) -> bool:
        """Whether no conflict needed a resolution."""
        return not self.conflicts and not self.commits.settled


class _MergeRun:
    """A merge in progress, from its inputs to the transaction."""

    def __init__(
        self,
        change: Change,
        stop: in_progress.Stop,
        resolver: Answer | None = None,
        advise: Advise | None = None,
    ) -> None:
        store = change.writer.store
        self._change = change
        self._store = store
        self._stop = stop
        self._resolver = resolver_of(resolver)
        self._advise = advise
        self._cache = ContextCache(store)
        self._advice: dict[ObjectId, CachedAdvice] = {}
        self._theirs = [ObjectId.parse(each) for each in stop.inputs["theirs"]]

    def run(self) -> Merge:
        """Merge, or stop and save the state."""
        return retry_until_written(self._attempt)

    def _attempt(self) -> Merge:
        ours = self._store.refs.read(self._stop.ref)
        course = self._compute(ours)
        found = self._result(ours, course)
        if course.outcome == STOPPED:
            in_progress.write_stop(self._store, self._stop)
            return found
        if course.tip is not None and course.tip != ours:
            in_progress.save_tip(self._store, self._stop, course.tip)
            self._write(ours, course.tip, course)
        in_progress.clear_stop(self._store)
        return found

    def compute_result(self) -> Merge:
        """Return the result without writing it."""
        ours = self._store.refs.read(self._stop.ref)
        return self._result(ours, self._compute(ours))

    def _result(self, ours: ObjectId | None, course: _Outcome) -> Merge:
        commits = course.commits
        return Merge(
            course.outcome,
            self._stop.ref,
            ours,
            course.tip,
            tuple(self._theirs),
            *self._counts(ours, course),
            self._stop.numbered(course.conflicts),
            self._stop.by_hand(commits.settled),
            () if course.outcome == STOPPED else tuple(commits.warnings),
        )

    def _counts(self, ours: ObjectId | None, course: _Outcome) -> tuple[int, int, int]:
        """Return (included, hidden, changed), as in `Merge`, seen from the branch's own tip."""
        commits = course.commits
        if ours is None or course.tip is None or course.start in (None, ours):
            return commits.included, commits.hidden, commits.changed
        before, merged = self._cache.fold(ours), self._cache.fold(course.tip)
        came = [each for each in merged.entries if each.address not in before]
        stayed = [each for each in before.entries if each.address in merged]
        changed = sum(not merged.entry(each.address).same_state(each) for each in stayed)
        return len(came), sum(not each.visible for each in came), changed

    def _compute(self, ours: ObjectId | None) -> _Outcome:
        inputs = self._stop.inputs
        if ours is None or not inputs["joins"] or inputs["strategy"] not in EVEN:
            return self._merge_in_turn(ours, self._theirs)
        if self._stop.skipped or self._stop.file:  # already being resolved by hand
            return self._merge_in_turn(ours, self._theirs)
        # Every clone must get the same result: the first order without conflicts.
        tips = sorted([ours, *self._theirs], key=self._age)
        stuck: set[tuple[ObjectId, ...]] = set()
        for order in permutations(tips) if len(tips) <= _FEW else [tuple(tips)]:
            if any(order[: len(start)] == start for start in stuck):
                continue
            course = self._merge_in_turn(order[0], order[1:], asks=False)
            if course.is_clean:
                return replace(course, start=order[0])
            if course.conflicts:
                stuck.add(order[: self._stop.number + 2])
        return self._merge_in_turn(ours, self._theirs)

    def _age(self, oid: ObjectId) -> tuple[int, bytes]:
        return self._cache.commit(oid).time, oid

    def _merge_in_turn(
        self, ours: ObjectId | None, theirs: Sequence[ObjectId], *, asks: bool = True
    ) -> _Outcome:
        """Merge tips into ours; `asks` allows the resolver and the model to resolve conflicts."""
        commits = MergeCommits(self._cache, self._stop, self._change.again())
        if asks:
            commits.ask(self._resolver, self._advise, self._advice)
        outcome, tip = UP_TO_DATE, ours
        for self._stop.number, other in enumerate(theirs):
            if self._stop.number in self._stop.skipped:
                continue
            bases = [] if tip is None else self._cache.bases(tip, other)
            step = self._outcome_of(tip, other, bases)
            if tip is None or step == FAST_FORWARD:
                outcome, tip = FAST_FORWARD, other
            elif step != UP_TO_DATE:
                made, conflicts = commits.join(tip, other, bases)
                if conflicts:
                    return _Outcome(commits, STOPPED, ours, tuple(conflicts))
                if made is not None:
                    outcome, tip = step, made
        return _Outcome(commits, outcome, tip)

    def _outcome_of(
        self, ours: ObjectId | None, theirs: ObjectId, bases: Sequence[ObjectId]
    ) -> str:
        """Return the outcome of merging one tip.

        Raises:
            StateError: a fast-forward was required but is not possible.
            InvalidInputError: the histories are unrelated, which was not allowed.
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
                f"{branch} has commits that {inputs['name']} does not have",
                code=errors.ErrorCode.NOT_FAST_FORWARD,
                ref=self._stop.ref,
            )
        if not bases and not inputs["unrelated"]:
            name = "its other tip" if inputs["joins"] else inputs["name"]
            raise errors.InvalidInputError(
                f"{branch} and {name} have no common commit",
                code=errors.ErrorCode.UNRELATED_HISTORIES,
            )
        return SQUASHED if inputs["squash"] else MERGED

    def _write(self, ours: ObjectId | None, tip: ObjectId, course: _Outcome) -> None:
        stop = self._stop
        reason = f"merge {stop.inputs['name']}"
        if course.outcome == FAST_FORWARD:
            reason += ": fast-forward"
        if ours is not None:
            self._store.refs.set_original(ours)
        course.commits.change.write(lambda _: [RefEdit(stop.ref, tip, ours)], reason)


__all__ = ["Merge", "MergeOptions", "continue_merge", "look_at_merge", "merge"]
