"""The commits that a merge makes: each joins two tips, and nothing is written yet.

Rule: a plan is a pure function of the tips, the strategy and the settlements. What was merged without a conflict adds
no message to the context.

Rule: an attempt that failed so has written nothing. What was settled in it stays settled, while it is about the same.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.frozen import replace, value
from trace_store.merge.conflicts import settle_open
from trace_store.merge.inputs import APPEND, INTERLEAVE, Plan
from trace_store.merge.merge3 import three_way
from trace_store.merge.result import JOINER, Matter, message_of, meta_of
from trace_store.objects import address
from trace_store.objects import operations as ops
from trace_store.objects.commit import SQUASHES, Commit
from trace_store.oid import ObjectId, hash_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeVar

    from trace_store.merge.changes import Put
    from trace_store.merge.conflicts import Conflict, Resolver, Settlement
    from trace_store.merge.in_progress import Stop
    from trace_store.merge.inputs import Reading
    from trace_store.merge.result import Advise, Advised
    from trace_store.objects.commit import Operation
    from trace_store.objects.content import Gathering

    T = TypeVar("T")


EVEN = (APPEND, INTERLEAVE)
"""Strategies that name no side."""


@value
class GivenAdvice:
    """What was advised of a merge, while a model was thinking about ours as it was.

    Attributes:
        ours: the tip that it thought about.
        advised: what it said.
        gathering: the content of that.
    """

    ours: ObjectId
    advised: Advised
    gathering: Gathering


class MergeCommits:
    """The merge commits of one command, which go on each other.

    Attributes:
        included: how many messages of theirs came in.
        hidden: how many of these came in hidden.
        changed: how many messages of ours were changed.
        settled: conflicts that were settled.
    """

    def __init__(
        self,
        reading: Reading,
        stop: Stop,
        author: str,
        gathering: Gathering,
    ) -> None:
        self.included = self.hidden = self.changed = 0
        self.settled: list[Conflict] = []
        self._store = reading.store
        self._reading = reading
        self._stop = stop
        self._author = author
        self._gathering = gathering
        self._resolver: Resolver | None = None
        self._advise: Advise | None = None
        self._advice: dict[ObjectId, GivenAdvice] = {}
        self._new: list[tuple[ObjectId, bytes]] = []
        self._facts: Mapping[str, object] = {}  # of content that was gathered before

    def ask(
        self,
        resolver: Resolver | None,
        advise: Advise | None,
        advice: dict[ObjectId, GivenAdvice],
    ) -> None:
        """Ask somebody about conflicts; without that they stay open.

        Args:
            resolver: asked about each.
            advise: asked about the whole of a semantic merge.
            advice: what was advised before, by the tip that it is about; what is advised is added.
        """
        self._resolver, self._advise, self._advice = resolver, advise, advice

    @property
    def objects(self) -> list[tuple[ObjectId, bytes]]:
        """What is to be written: the commits, and what texts that settled conflicts say."""
        return [*self._gathering.objects, *self._new]

    def join(
        self, ours: ObjectId, theirs: ObjectId, bases: Sequence[ObjectId]
    ) -> tuple[ObjectId | None, Sequence[Conflict]]:
        """Merge two tips: return the commit's id (None: there is nothing to say), and the conflicts left open.

        Args:
            ours: the tip that goes on.
            theirs: the one that comes in.
            bases: their merge bases.

        Raises:
            InvalidInputError: as `check_settlement`, of what a resolver says.
            ModelError, BudgetError, ConflictError: as who advises does.
        """

        def made() -> Plan:
            return self._plan(ours, theirs, bases)

        def settled(plan: Plan) -> Plan:
            said = self._stop.settlements
            return settle_open(self._resolver, said, plan, made, lambda each: each.conflicts)

        plan, advised = settled(made()), None
        if self._advise is not None:
            plan, advised = self._advised(self._advise, ours, theirs, bases, plan)
            plan = settled(plan)  # what the advice opens
        self.settled += plan.settled
        if plan.conflicts:
            return None, plan.conflicts
        self.included += len(plan.included)
        operations = [*plan.operations, *(advised.operations if advised is not None else ())]
        if self._stop.inputs["squash"]:
            if not operations:
                return None, ()
            links = [(SQUASHES, str(theirs))]
            return self._made([ours], operations, plan, advised, links), ()
        return self._made([ours, theirs], operations, plan, advised), ()

    def _advised(
        self,
        advise: Advise,
        ours: ObjectId,
        theirs: ObjectId,
        bases: Sequence[ObjectId],
        plan: Plan,
    ) -> tuple[Plan, Advised]:
        """Return the plan as is advised, and the advice; what was given before holds where ours has only grown."""
        given = self._advice.pop(theirs, None)
        if given is not None:  # what it settles is settled by now
            if not plan.conflicts and self._has_grown(given.ours, ours):
                for oid, data in given.gathering.objects:
                    self._gathering.add(oid, data)
                self._facts = {**self._facts, **given.gathering.facts}
                self._advice[theirs] = given
                return plan, given.advised
            for key in given.advised.settlements:
                self._stop.settlements.pop(key, None)
            plan = self._plan(ours, theirs, bases)
        advised = advise(self._matter(ours, theirs, bases, plan))
        self._stop.settlements.update(advised.settlements)
        plan = self._plan(ours, theirs, bases)
        # What is at stake in a conflict may depend on how others are settled.
        stakes = {each.key: each.stakes for each in plan.settled}
        about = {
            key: replace(said, about=stakes.get(key, ""))
            for key, said in advised.settlements.items()
        }
        self._stop.settlements.update(about)
        self._advice[theirs] = GivenAdvice(
            ours, replace(advised, settlements=about), self._gathering
        )
        return plan, advised

    def _has_grown(self, earlier: ObjectId, now: ObjectId) -> bool:
        """Tell whether a tip goes on an earlier one with messages, and nothing else."""
        oid = now
        while oid != earlier:
            commit = self._reading.commit(oid)
            if len(commit.parents) != 1 or not ops.only_appends(commit):
                return False
            oid = commit.parents[0]
        return True

    def _matter(
        self, ours: ObjectId, theirs: ObjectId, bases: Sequence[ObjectId], plan: Plan
    ) -> Matter:
        def replan(settlements: Mapping[str, Settlement], put: Put) -> Plan:
            return self._plan(ours, theirs, bases, settlements, put)

        fold = self._reading.fold
        base = fold(bases[0] if bases else None)
        return Matter(base, fold(ours), fold(theirs), plan, replan, self._gathering)

    def _plan(
        self,
        ours: ObjectId,
        theirs: ObjectId,
        bases: Sequence[ObjectId],
        settlements: Mapping[str, Settlement] | None = None,
        put: Put | None = None,
    ) -> Plan:
        inputs = self._stop.inputs
        step = f"{self._stop.number}:" if len(inputs["theirs"]) > 1 else ""
        fold = self._reading.fold
        base = fold(bases[0] if bases else None)  # first, so that the others share its entries
        return three_way(
            base,
            fold(ours),
            fold(theirs),
            strategy=inputs["strategy"],
            settlements={**self._stop.settlements, **(settlements or {})},
            favour=inputs["favour"],
            step=step,
            time_of=self._reading.time,
            put=put or self._gathering.put,
            read=self._store.objects.read,
        )

    def _made(
        self,
        parents: Sequence[ObjectId],
        operations: Sequence[Operation],
        plan: Plan,
        advised: Advised | None = None,
        links: Sequence[tuple[str, str]] = (),
    ) -> ObjectId:
        """Return the id of the commit, which is checked against the contexts of its parents, and kept to be written."""
        inputs = self._stop.inputs
        nobodys = self._is_nobodys(plan, advised)
        message = inputs["message"] or message_of(inputs, self._stop.ref)
        commit = Commit(
            parents,
            JOINER if nobodys else self._author,
            max(self._reading.commit(each).time for each in parents)
            if nobodys
            else self._store.clock.now(),
            operations,
            self._gathering.text(message),
            {
                **meta_of(inputs, plan, advised.meta if advised else None),
                **self._gathering.facts,
                **self._facts,
            },
            links,
        )
        merged = self._reading.fold(parents[0]).copy()
        merged.apply(address.HERE, commit)
        came = set(plan.included)
        named = {
            each for operation in operations for each in ops.targets_of(operation, address.HERE)
        }
        self.changed += len({each for each in merged.units(named) if each.birth} - came)
        self.hidden += sum(not merged.entry(each).visible for each in came)
        data = commit.encode()
        oid = hash_object(data)
        self._new.append((oid, data))
        self._reading.remember(oid, commit)
        return oid

    def _is_nobodys(self, plan: Plan, advised: Advised | None) -> bool:
        """Tell whether it joins the tips of a branch without anybody's decision."""
        inputs = self._stop.inputs
        decided = plan.settled or advised is not None
        return inputs["joins"] and inputs["strategy"] in EVEN and not decided


MAXIMUM_ATTEMPTS = 100


def until_written(attempt: Callable[[], T]) -> T:
    """Return what an attempt returns; it is made again, on what the branch is by then, where somebody was quicker.

    Raises:
        RefChangedError: others move the branch again and again, or it is gone.
        As the attempt.
    """
    for _ in range(MAXIMUM_ATTEMPTS - 1):
        try:
            return attempt()
        except errors.RefChangedError as error:
            if not is_outpaced(error):
                raise
    return attempt()


def is_outpaced(error: errors.RefChangedError) -> bool:
    """Tell whether a ref stands elsewhere by now, rather than being gone, or being one that does not count any more."""
    return error.data.get("actual") is not None
