"""Merge commits: each joins two tips, and is prepared before anything is written.

The plan is a pure function of tips, strategy and resolutions. A merge without conflicts adds no message of its own. If
an attempt loses the race for the ref, resolutions stay valid for the retry as long as their stakes are the same.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.base.frozen import replace, value
from trace_store.base.oid import ObjectId
from trace_store.merge.conflicts import resolve_open
from trace_store.merge.inputs import APPEND, INTERLEAVE, MergePlan
from trace_store.merge.meaning_warnings import changed_premises
from trace_store.merge.merge3 import three_way
from trace_store.merge.result import JOINER, MergeRequest, message_of, meta_of
from trace_store.objects import address
from trace_store.objects import operations as ops
from trace_store.objects.commit import SQUASHES, Commit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeVar

    from trace_store.merge.changes import Put
    from trace_store.merge.conflicts import Conflict, Resolution, Resolver
    from trace_store.merge.in_progress import Stop
    from trace_store.merge.inputs import ContextCache
    from trace_store.merge.meaning_warnings import MeaningWarning
    from trace_store.merge.result import Advise, MergeAdvice
    from trace_store.writer import Change

    T = TypeVar("T")


EVEN = (APPEND, INTERLEAVE)
"""Strategies that treat both sides alike."""


@value
class CachedAdvice:
    """A model's advice, kept in case the branch moves while the model answers.

    Attributes:
        ours: the tip that it is about.
        advised: the advice.
        objects: its content.
        facts: metadata for the merge commit about how the content was collected.
    """

    ours: ObjectId
    advised: MergeAdvice
    objects: tuple[tuple[ObjectId, bytes], ...]
    facts: Mapping[str, object]


class MergeCommits:
    """The merge commits of one command, each on top of the one before.

    Attributes:
        included: number of messages that were added.
        hidden: number of those that are hidden.
        changed: number of our messages that were changed.
        settled: resolved conflicts.
        change: the change that they belong to, with the texts that resolve conflicts.
        warnings: possible changes of meaning.
    """

    def __init__(
        self,
        cache: ContextCache,
        stop: Stop,
        change: Change,
    ) -> None:
        self.included = self.hidden = self.changed = 0
        self.settled: list[Conflict] = []
        self.warnings: list[MeaningWarning] = []
        self._store = cache.store
        self._cache = cache
        self._stop = stop
        self.change = change
        self._gathering = change.gathering
        self._resolver: Resolver | None = None
        self._advise: Advise | None = None
        self._advice: dict[ObjectId, CachedAdvice] = {}
        self._facts: Mapping[str, object] = {}  # metadata of earlier advice

    def ask(
        self,
        resolver: Resolver | None,
        advise: Advise | None,
        advice: dict[ObjectId, CachedAdvice],
    ) -> None:
        """Set who resolves conflicts; without this they stay open.

        Args:
            resolver: resolves single conflicts.
            advise: resolves a whole semantic merge.
            advice: earlier advice by tip; new advice is added.
        """
        self._resolver, self._advise, self._advice = resolver, advise, advice

    def join(
        self, ours: ObjectId, theirs: ObjectId, bases: Sequence[ObjectId]
    ) -> tuple[ObjectId | None, Sequence[Conflict]]:
        """Merge two tips; return the commit's id (None if nothing changes) and the open conflicts.

        Args:
            ours: the tip to merge into.
            theirs: the tip to merge.
            bases: their merge bases.

        Raises:
            InvalidInputError: a resolver returned an invalid resolution.
            ModelError, BudgetError, ConflictError: as `advise` raises them.
        """

        def made() -> MergePlan:
            return self._plan(ours, theirs, bases)

        def settled(plan: MergePlan) -> MergePlan:
            said = self._stop.resolutions
            return resolve_open(self._resolver, said, plan, made, lambda each: each.conflicts)

        plan, advised = settled(made()), None
        if self._advise is not None:
            plan, advised = self._ask_model(self._advise, ours, theirs, bases, plan)
            plan = settled(plan)  # conflicts that the advice causes
        self.settled += plan.settled
        if plan.conflicts:
            return None, plan.conflicts
        self.included += len(plan.included)
        if self._stop.inputs["squash"]:
            advice = advised is not None and advised.operations
            if not (plan.operations or plan.wordings or advice):
                return None, ()
            return self._create(bases, [ours], plan, advised, [(SQUASHES, str(theirs))]), ()
        return self._create(bases, [ours, theirs], plan, advised), ()

    def _ask_model(
        self,
        advise: Advise,
        ours: ObjectId,
        theirs: ObjectId,
        bases: Sequence[ObjectId],
        plan: MergePlan,
    ) -> tuple[MergePlan, MergeAdvice]:
        """Return the plan with a model's advice, and the advice; earlier advice is reused if ours only grew."""
        given = self._advice.pop(theirs, None)
        if given is not None:  # its resolutions are part of the plan already
            if not plan.conflicts and self._only_grew(given.ours, ours):
                for oid, data in given.objects:
                    self._gathering.add(oid, data)
                self._facts = {**self._facts, **given.facts}
                self._advice[theirs] = given
                return plan, given.advised
            for key in given.advised.resolutions:
                self._stop.resolutions.pop(key, None)
            plan = self._plan(ours, theirs, bases)
        advised = advise(self._request(ours, theirs, bases, plan))
        self._stop.resolutions.update(advised.resolutions)
        plan = self._plan(ours, theirs, bases)
        # The stakes of a conflict may depend on how others are resolved.
        stakes = {each.key: each.stakes for each in plan.settled}
        about = {
            key: replace(said, about=stakes.get(key, ""))
            for key, said in advised.resolutions.items()
        }
        self._stop.resolutions.update(about)
        gathering = self._gathering
        self._advice[theirs] = CachedAdvice(
            ours, replace(advised, resolutions=about), tuple(gathering.objects), gathering.facts
        )
        return plan, advised

    def _only_grew(self, earlier: ObjectId, now: ObjectId) -> bool:
        """Return True if only appends were committed since an earlier tip."""
        oid = now
        while oid != earlier:
            commit = self._cache.commit(oid)
            if len(commit.parents) != 1 or not ops.only_appends(commit):
                return False
            oid = commit.parents[0]
        return True

    def _request(
        self, ours: ObjectId, theirs: ObjectId, bases: Sequence[ObjectId], plan: MergePlan
    ) -> MergeRequest:
        def replan(resolutions: Mapping[str, Resolution], put: Put) -> MergePlan:
            return self._plan(ours, theirs, bases, resolutions, put)

        fold = self._cache.fold
        base = fold(bases[0] if bases else None)
        return MergeRequest(base, fold(ours), fold(theirs), plan, replan, self._gathering)

    def _plan(
        self,
        ours: ObjectId,
        theirs: ObjectId,
        bases: Sequence[ObjectId],
        resolutions: Mapping[str, Resolution] | None = None,
        put: Put | None = None,
    ) -> MergePlan:
        inputs = self._stop.inputs
        step = f"{self._stop.number}:" if len(inputs["theirs"]) > 1 else ""
        fold = self._cache.fold
        base = fold(bases[0] if bases else None)  # first, so that the others can share its entries
        return three_way(
            base,
            fold(ours),
            fold(theirs),
            strategy=inputs["strategy"],
            resolutions={**self._stop.resolutions, **(resolutions or {})},
            favour=inputs["favour"],
            step=step,
            time_of=self._cache.time,
            put=put or self._gathering.put,
            read=self._store.objects.read,
        )

    def _create(
        self,
        bases: Sequence[ObjectId],
        parents: Sequence[ObjectId],
        plan: MergePlan,
        advised: MergeAdvice | None = None,
        links: Sequence[tuple[str, str]] = (),
    ) -> ObjectId:
        """Create a merge commit, check it against its parents, and return its id."""
        inputs = self._stop.inputs
        operations = [*plan.operations, *(advised.operations if advised is not None else ())]
        is_joint = self._is_joint(plan, advised)
        message = inputs["message"] or message_of(inputs, self._stop.ref)
        commit = Commit(
            parents,
            JOINER if is_joint else self.change.author,
            max(self._cache.commit(each).time for each in parents)
            if is_joint
            else self._store.clock.now(),
            [*plan.wordings, *operations],
            message,
            {
                **meta_of(inputs, plan, advised.meta if advised else None),
                **self._gathering.facts,
                **self._facts,
            },
            links,
        )
        oid = self.change.add(commit)
        merged = self._cache.fold(parents[0]).copy()
        merged.apply(address.HERE, commit)
        came = set(plan.included)
        named = {
            each for operation in operations for each in ops.targets_of(operation, address.HERE)
        }
        self.changed += len({each for each in merged.units(named) if each.birth} - came)
        self.hidden += sum(not merged.entry(each).visible for each in came)
        base = self._cache.fold(bases[0] if bases else None)
        self.warnings += changed_premises(base, merged, came)
        self._cache.remember(oid, commit)
        return oid

    def _is_joint(self, plan: MergePlan, advised: MergeAdvice | None) -> bool:
        """Return True if the tips of a branch were joined without a decision, so that the commit has no author."""
        inputs = self._stop.inputs
        decided = plan.settled or advised is not None
        return inputs["joins"] and inputs["strategy"] in EVEN and not decided


MAXIMUM_ATTEMPTS = 100


def retry_until_written(attempt: Callable[[], T]) -> T:
    """Retry an attempt until its ref update wins the race; return its result.

    Raises:
        RefChangedError: every attempt lost the race, or the ref is gone.
        As the attempt.
    """
    for _ in range(MAXIMUM_ATTEMPTS - 1):
        try:
            return attempt()
        except errors.RefChangedError as error:
            if not lost_race(error):
                raise
    return attempt()


def lost_race(error: errors.RefChangedError) -> bool:
    """Return True if a ref update lost a race, so that a retry makes sense; not if the ref is gone."""
    return error.data.get("actual") is not None
