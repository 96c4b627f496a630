"""Requests and results of merges, picks and rebases.

Rule: plain values, and functions of them.

Rule: plain values.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.frozen import value
from trace_store.merge.conflicts import check_favour
from trace_store.merge.inputs import APPEND, STRATEGIES
from trace_store.refs.names import BRANCHES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeAlias

    from trace_store.context.fold import Fold
    from trace_store.merge.changes import Put
    from trace_store.merge.conflicts import Settlement
    from trace_store.merge.inputs import Plan
    from trace_store.objects.commit import Operation
    from trace_store.objects.content import Gathering

    Advise: TypeAlias = Callable[["Matter"], "Advised"]
    from collections.abc import Sequence

    from trace_store.merge.conflicts import Conflict
    from trace_store.merge.meaning_warnings import MeaningWarning
    from trace_store.merge.todo import Step
    from trace_store.oid import ObjectId


JOINER = "trace"
"""The author of a commit that joins the tips of a diverged branch without a conflict: it is nobody's in particular."""
ALLOWED, NEVER, ONLY = "allowed", "never", "only"
"""Whether a merge may, must not, or must be a mere step forward of the branch."""

UP_TO_DATE = "up-to-date"
FAST_FORWARD = "fast-forward"
MERGED = "merged"
SQUASHED = "squashed"
STOPPED = "stopped"


@value
class Merge:
    """What a merge came to.

    Attributes:
        outcome: "up-to-date", "fast-forward", "merged", "squashed", or "stopped" at conflicts, with nothing written.
        ref: full name of the branch.
        before: where it stood; None when it had no commit.
        after: where it stands; None when it still has no commit.
        theirs: the commits that were brought in.
        included: how many messages of theirs came in.
        hidden: how many of these came in hidden, as theirs had them, or as was settled.
        changed: how many messages of ours were changed: reworded, marked, moved, hidden or shown again.
        conflicts: those that nobody settled.
        settled: those that somebody did.
    """

    outcome: str
    ref: str
    before: ObjectId | None
    after: ObjectId | None
    theirs: tuple[ObjectId, ...]
    included: int = 0
    hidden: int = 0
    changed: int = 0
    conflicts: tuple[Conflict, ...] = ()
    settled: tuple[Conflict, ...] = ()


@value
class MergeOptions:
    """How to merge.

    Attributes:
        strategy: "append", "interleave", "ours", "theirs", "decisions" or "semantic".
        favour: "ours" or "theirs" settles every conflict that it can.
        fast_forward: "allowed", "never" or "only".
        squash: one commit without theirs as a parent.
        unrelated: whether histories that share nothing may be merged.
        message: what to say about the commit; "" names what was merged.
    """

    strategy: str = APPEND
    favour: str = ""
    fast_forward: str = ALLOWED
    squash: bool = False
    unrelated: bool = False
    message: str = ""

    def as_inputs(self, name: str, theirs: Sequence[ObjectId], *, joins: bool) -> dict[str, Any]:
        """Return what a merge has to know to go on: these, and what it merges; `joins` says that nobody named it."""
        return {
            "strategy": self.strategy,
            "favour": self.favour,
            "fast_forward": self.fast_forward,
            "squash": self.squash,
            "unrelated": self.unrelated,
            "message": self.message,
            "name": name,
            "joins": joins,
            "theirs": [str(oid) for oid in theirs],
        }

    def check(self) -> None:
        """Let nothing pass that means nothing.

        Raises:
            InvalidInputError: there is no such strategy, side to favour or way to go forward.
        """
        check_favour(self.favour)
        steps = (ALLOWED, NEVER, ONLY)
        for said, known in ((self.strategy, STRATEGIES), (self.fast_forward, steps)):
            if said not in known:
                raise errors.InvalidInputError(f"{str(said)[:40]!r} is none of {', '.join(known)}")


def message_of(inputs: Mapping[str, Any], ref: str) -> str:
    """Return what a merge says of itself when nobody says more, from its inputs and the branch."""
    if inputs["joins"]:
        return f"join the tips of {ref.removeprefix(BRANCHES)}"
    return f"{'squash' if inputs['squash'] else 'merge'} {inputs['name']}"


def meta_of(
    inputs: Mapping[str, Any], plan: Plan, advice: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return how a merge was made as a commit's metadata: by which strategy, and how each conflict was settled."""
    meta: dict[str, Any] = {"strategy": inputs["strategy"]}
    if inputs["favour"]:
        meta["favour"] = inputs["favour"]
    if plan.settled:
        meta["settled"] = [
            [each.kind, *(list(each.addresses[0]) if each.addresses else [])]
            for each in plan.settled
        ]
    if advice is not None:
        meta["advice"] = dict(advice)
    return {"merge": meta}


DONE = "done"


@value
class Rewrite:
    """What a pick or a rebase came to.

    Attributes:
        outcome: "up-to-date", "done", or "stopped", with nothing written.
        ref: full name of the branch.
        before: where it stood; None when it had no commit.
        after: where it stands.
        made: (commit, the one made of it) in the order of the steps.
        dropped: commits that were left out.
        there: commits of which all is there already.
        conflicts: what has to be settled before it goes on.
        step: the one that it stopped at; None when it did not.
        warnings: what may not mean what it meant before.
        settled: conflicts that were settled.
    """

    outcome: str
    ref: str
    before: ObjectId | None
    after: ObjectId | None
    made: tuple[tuple[ObjectId, ObjectId], ...] = ()
    dropped: tuple[ObjectId, ...] = ()
    there: tuple[ObjectId, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    step: Step | None = None
    warnings: tuple[MeaningWarning, ...] = ()
    settled: tuple[Conflict, ...] = ()


@value
class Matter:
    """A merge, as who advises it sees it.

    Attributes:
        base: the fold of the merge base.
        ours: the fold of our side.
        theirs: the fold of theirs.
        plan: what is done without advice; its conflicts are open.
        replan: returns the plan under settlements, by the keys of the conflicts; texts are stored by the second.
        gathering: takes content that is to be stored with the merge.
    """

    base: Fold
    ours: Fold
    theirs: Fold
    plan: Plan
    replan: Callable[[Mapping[str, Settlement], Put], Plan]
    gathering: Gathering


@value
class Advised:
    """What becomes of a merge.

    Attributes:
        settlements: of its conflicts, by their keys.
        operations: what the merge commit does besides the plan.
        meta: what it says of the advice.
    """

    settlements: Mapping[str, Settlement]
    operations: tuple[Operation, ...]
    meta: Mapping[str, Any]
