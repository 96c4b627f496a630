"""Merge: another line of history becomes part of HEAD's branch.

Rule: the plan is a pure function of tips, strategy and settlements; it is written in one transaction, or not at all.
What was merged without a conflict adds no message to the context. The tips that git leaves of a branch are joined by a
commit that follows from them alone, so that two people make the same one.
"""

from __future__ import annotations

from trace_store import branching, errors
from trace_store import revision as revisions
from trace_store.contracts import RefEdit, Transaction
from trace_store.joining import stops
from trace_store.joining.advising.matter import Matter
from trace_store.joining.conflicts import OURS, Settlement, settle_open
from trace_store.joining.copies import shown_again, without
from trace_store.joining.outcome import (
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
    message_of,
    meta_of,
)
from trace_store.joining.plan import APPEND, DECISIONS, INTERLEAVE, SEMANTIC, Plan
from trace_store.joining.three_way.combining import three_way
from trace_store.joining.three_way.sides import Reading
from trace_store.joining.three_way.squashing import squashed
from trace_store.objects import operations as ops
from trace_store.objects.commit import Commit
from trace_store.objects.content import Gathering
from trace_store.objects.origins import SQUASHES
from trace_store.oid import ObjectId, hash_object
from trace_store.refs.log_messages import DIVERGED_TIPS
from trace_store.refs.names import BRANCHES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeAlias

    from trace_store.context.folding import Fold
    from trace_store.contracts import RefReader
    from trace_store.joining.advising.matter import Advise, Advised
    from trace_store.joining.conflicts import Conflict
    from trace_store.joining.three_way.properties import Put
    from trace_store.objects.commit import Operation
    from trace_store.secrets import Guard
    from trace_store.store import Store

    Address = tuple[bytes, int]
    Resolver: TypeAlias = Callable[[Conflict], Settlement | None]

_EVEN = (APPEND, INTERLEAVE)  # strategies that name no side


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
        RefChangedError: the branch moved meanwhile.
    """
    stops.refuse_while_stopped(store)
    options.check()
    if options.strategy == SEMANTIC and advise is None:
        raise errors.StateError(
            "a semantic merge asks a model, and none is given", code=errors.ErrorCode.NO_MODEL
        )
    ref = branch_of_head(store)
    tips = store.refs.tips(ref)
    before = tips[0] if tips else None
    if not revision and len(tips) < 2:
        revision = (branching.upstream_of(store, ref) or "").removeprefix(revisions.HEADS)
    theirs = [revisions.resolve_commit(store, revision)] if revision else list(tips[1:])
    name = revision or " ".join([DIVERGED_TIPS, *(tip.short() for tip in theirs)])
    inputs = options.as_inputs(name, theirs, joins=not revision)
    stop = stops.Stop(stops.MERGE, ref, before, inputs, {}, [])
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
    stop = stops.required_stop(store, stops.MERGE)
    if stop.before is not None and store.refs.read(stop.ref) is None:
        raise errors.RefChangedError(
            f"there is no {stop.ref} any more: {stop.said} cannot go on",
            hint="`trace branch NAME ORIG_HEAD` or `trace undo` brings it back; --abort gives the merge up",
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
    stop = stops.required_stop(store, stops.MERGE)
    return _Merging(store, stop, JOINER, None, None).look()


def branch_of_head(store: Store) -> str:
    """Return the full name of HEAD's branch.

    Raises:
        DetachedHeadError: it is on none.
    """
    ref = store.refs.head_target()
    if isinstance(ref, ObjectId):
        raise errors.DetachedHeadError("HEAD is on no branch, and this moves one")
    return ref


class _Merging:
    """A merge from its inputs to the transaction."""

    def __init__(
        self,
        store: Store,
        stop: stops.Stop,
        author: str,
        guard: Guard | None,
        resolver: Resolver | None,
        advise: Advise | None = None,
    ) -> None:
        self._store = store
        self._stop = stop
        self._author = author
        self._resolver = resolver
        self._advise = advise
        self._reading = Reading(store)
        self._gathering = Gathering() if guard is None else guard.gathering()
        self._theirs = [ObjectId.parse(each) for each in stop.inputs["theirs"]]
        self._new: list[tuple[ObjectId, bytes]] = []
        self._folds: dict[ObjectId, Fold] = {}
        self._included = self._hidden = 0
        self._again: list[ObjectId] = []
        self._settled: list[Conflict] = []

    def run(self) -> Merge:
        """Merge, or stop and write down what is needed to go on."""
        found = self.look()
        if found.outcome == STOPPED:
            stops.write_stop(self._store, self._stop)
            return found
        if found.after is not None and found.after != found.before:
            self._write(found.before, found.after, found.outcome)
        stops.clear_stop(self._store)
        return found

    def look(self) -> Merge:
        """Return what the merge comes to, and write nothing."""
        stop = self._stop
        ours = self._store.refs.read(stop.ref)
        outcome, tip = UP_TO_DATE, ours
        for stop.number, theirs in enumerate(self._theirs):
            if stop.number in stop.skipped:
                continue
            step, conflicts = self._step(tip, theirs)
            if conflicts:
                return self._result(STOPPED, ours, ours, conflicts)
            if step is not None:
                outcome, tip = step
        return self._result(outcome, ours, tip)

    def _result(
        self,
        outcome: str,
        ours: ObjectId | None,
        tip: ObjectId | None,
        conflicts: Sequence[Conflict] = (),
    ) -> Merge:
        return Merge(
            outcome,
            self._stop.ref,
            ours,
            tip,
            tuple(self._theirs),
            self._included,
            self._hidden,
            tuple(self._again),
            self._stop.numbered(conflicts),
            self._stop.by_hand(self._settled),
        )

    def _step(
        self, ours: ObjectId | None, theirs: ObjectId
    ) -> tuple[tuple[str, ObjectId] | None, Sequence[Conflict]]:
        """Merge one tip: return the outcome and the new tip (None: nothing to do), and the open conflicts."""
        inputs = self._stop.inputs
        if ours is None:
            return (FAST_FORWARD, theirs), ()
        bases = self._reading.bases(ours, theirs)
        if bases == [theirs]:
            return None, ()
        whole = inputs["strategy"] not in (OURS, DECISIONS) and not inputs["squash"]
        if bases == [ours] and whole and inputs["fast_forward"] != NEVER:
            return (FAST_FORWARD, theirs), ()
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
        if inputs["joins"] and self._key(theirs) < self._key(ours):
            plans = [self._plan(theirs, ours, bases), self._plan(ours, theirs, bases)]
            if any(not plan.conflicts and self._is_clean(plan) for plan in plans):
                ours, theirs = theirs, ours  # the same order, and the same conflicts, for everybody
        return self._join(ours, theirs, bases)

    def _is_clean(self, plan: Plan) -> bool:
        """Tell whether tips of a branch join without anybody's decision; else ours is what HEAD is on."""
        inputs = self._stop.inputs
        return inputs["joins"] and inputs["strategy"] in _EVEN and not plan.settled

    def _join(
        self, ours: ObjectId, theirs: ObjectId, bases: Sequence[ObjectId]
    ) -> tuple[tuple[str, ObjectId] | None, Sequence[Conflict]]:
        plan, advised = self._plan(ours, theirs, bases), None
        if self._advise is not None:
            advised = self._advise(self._matter(ours, theirs, bases, plan))
            self._stop.settlements.update(advised.settlements)
            plan = self._plan(ours, theirs, bases)
        plan = settle_open(
            self._resolver,
            self._stop.settlements,
            plan,
            lambda: self._plan(ours, theirs, bases),
            lambda made: made.conflicts,
        )
        self._settled += plan.settled
        if plan.conflicts:
            return None, plan.conflicts
        self._included += len(plan.included)
        operations = [*plan.operations, *(advised.operations if advised is not None else ())]
        twice: list[Address] = []
        if plan.included:
            fold = self._reading.fold
            twice, again = shown_again(self._store, ours, theirs, operations, fold)
            self._again += again
        if self._stop.inputs["squash"]:
            self._included -= len(twice)
            operations, _ = squashed(operations, without(self._folds[theirs], twice))
            if not operations:
                return None, ()
            links = [(SQUASHES, str(theirs))]
            return (SQUASHED, self._made([ours], operations, links, plan, advised)), ()
        operations += [ops.remove(twice)] if twice else []
        return (MERGED, self._made([ours, theirs], operations, (), plan, advised)), ()

    def _matter(
        self, ours: ObjectId, theirs: ObjectId, bases: Sequence[ObjectId], plan: Plan
    ) -> Matter:
        def replan(settlements: Mapping[str, Settlement], put: Put) -> Plan:
            return self._plan(ours, theirs, bases, settlements, put)

        fold = self._reading.fold
        folds = [fold(base) for base in bases]
        return Matter(folds, fold(ours), fold(theirs), plan, replan, self._gathering)

    def _plan(
        self,
        ours: ObjectId,
        theirs: ObjectId,
        bases: Sequence[ObjectId],
        settlements: Mapping[str, Settlement] | None = None,
        put: Put | None = None,
    ) -> Plan:
        inputs = self._stop.inputs
        refs = [self._stop.ref, revisions.ref_of(self._store, inputs["name"]) or self._stop.ref]
        near = inputs["strategy"] in (*_EVEN, OURS)
        folds, mine, yours = self._reading.sides(ours, theirs, bases, refs if near else ())
        self._folds = {ours: mine.fold, theirs: yours.fold}
        step = f"{self._stop.number}:" if len(self._theirs) > 1 else ""
        said = {**self._stop.settlements, **(settlements or {})}
        plan = three_way(
            folds,
            mine,
            yours,
            strategy=inputs["strategy"],
            settlements={key[len(step) :]: said[key] for key in said if key.startswith(step)},
            favour=inputs["favour"],
            time_of=self._reading.time,
            put=put or self._gathering.put,
            elder=self._reading.elder(bases),
        )
        return plan.at(step)

    def _made(
        self,
        parents: Sequence[ObjectId],
        operations: Sequence[Operation],
        links: Sequence[tuple[str, str]],
        plan: Plan,
        advised: Advised | None = None,
    ) -> ObjectId:
        """Return the id of the commit, which is checked against the contexts of its parents, and kept to be written."""
        inputs = self._stop.inputs
        clean = self._is_clean(plan) and advised is None
        message = inputs["message"] or message_of(inputs, self._stop.ref)
        commit = Commit(
            parents,
            JOINER if clean else self._author,
            max(self._key(each)[0] for each in parents) if clean else self._store.clock.now(),
            operations,
            self._gathering.text(message),
            {**meta_of(inputs, plan, advised.meta if advised else None), **self._gathering.facts},
            links,
        )
        others = [self._folds[each] for each in parents]
        merged = others[0].copy()
        merged.apply(ops.HERE, commit, others)
        came = set(plan.included)
        self._hidden += sum(e.address in came for e in merged.entries if not e.visible)
        data = commit.encode()
        oid = hash_object(data)
        self._new.append((oid, data))
        self._reading.remember(oid, commit)
        return oid

    def _key(self, oid: ObjectId) -> tuple[int, bytes]:
        return self._reading.commit(oid).time, oid

    def _write(self, ours: ObjectId | None, tip: ObjectId, outcome: str) -> None:
        stop, new = self._stop, [*self._gathering.objects, *self._new]
        said = f"merge {stop.inputs['name']}"
        if outcome == FAST_FORWARD:
            said += ": fast-forward"

        def build(refs: RefReader) -> Transaction:
            return Transaction(new, [RefEdit(stop.ref, tip, ours)], said)

        if ours is not None:
            self._store.refs.set_original(ours)
        self._store.transact(build, author=self._author)


__all__ = [
    "Merge",
    "MergeOptions",
    "branch_of_head",
    "continue_merge",
    "look_at_merge",
    "merge",
]
