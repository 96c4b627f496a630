"""Options and results of merges, picks and rebases."""

from __future__ import annotations

from trace_store import errors
from trace_store.base.frozen import fields, value
from trace_store.contracts.ref_names import BRANCHES
from trace_store.merge.conflicts import check_favour
from trace_store.merge.inputs import APPEND, STRATEGIES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeAlias

    from trace_store.context.fold import Fold
    from trace_store.merge.changes import Put
    from trace_store.merge.conflicts import Resolution
    from trace_store.merge.inputs import MergePlan
    from trace_store.objects.commit import Operation
    from trace_store.objects.content import ObjectCollector

    Advise: TypeAlias = Callable[["MergeRequest"], "MergeAdvice"]
    from collections.abc import Sequence

    from trace_store.base.oid import ObjectId
    from trace_store.merge.conflicts import Conflict
    from trace_store.merge.meaning_warnings import MeaningWarning
    from trace_store.merge.todo import Step


JOINER = "trace"
"""The author of automatic commits that join diverged tips without a conflict."""
ALLOWED, NEVER, ONLY = "allowed", "never", "only"
"""Whether fast-forwards are allowed, forbidden or required."""

UP_TO_DATE = "up-to-date"
FAST_FORWARD = "fast-forward"
MERGED = "merged"
SQUASHED = "squashed"
STOPPED = "stopped"


@value
class Merge:
    """The result of a merge.

    Attributes:
        outcome: "up-to-date", "fast-forward", "merged", "squashed", or "stopped" at conflicts, with nothing written.
        ref: full name of the branch.
        before: the old tip; None if the branch had no commit.
        after: the new tip; None if the branch has no commit.
        theirs: the merged commits.
        included: number of messages that were added.
        hidden: number of those that are hidden.
        changed: number of our messages that were changed: edited, annotated, moved, hidden or restored.
        conflicts: the open ones.
        settled: the resolved ones.
        warnings: possible changes of meaning.
    """

    JSON = "commit=after merged=theirs"

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
    warnings: tuple[MeaningWarning, ...] = ()


@value
class MergeOptions:
    """Options of a merge.

    Attributes:
        strategy: "append", "interleave", "ours", "theirs", "decisions" or "semantic".
        favour: "ours" or "theirs" resolves every conflict that allows it.
        fast_forward: "allowed", "never" or "only".
        squash: create one commit without theirs as a parent.
        unrelated: allow merging unrelated histories.
        message: the commit message; "" generates one.
    """

    strategy: str = APPEND
    favour: str = ""
    fast_forward: str = ALLOWED
    squash: bool = False
    unrelated: bool = False
    message: str = ""

    def as_inputs(self, name: str, theirs: Sequence[ObjectId], *, joins: bool) -> dict[str, Any]:
        """Return the inputs of a merge as JSON.

        Args:
            name: the merged branch, as in the commit message.
            theirs: the merged commits.
            joins: True to join the branch's own tips.
        """
        plain = {each: getattr(self, each) for each in fields(self)}
        return plain | {"name": name, "joins": joins, "theirs": [str(oid) for oid in theirs]}

    def check(self) -> None:
        """Check the values.

        Raises:
            InvalidInputError: an unknown strategy, side or fast-forward mode.
        """
        check_favour(self.favour)
        modes = (ALLOWED, NEVER, ONLY)
        for given, allowed in ((self.strategy, STRATEGIES), (self.fast_forward, modes)):
            if given not in allowed:
                raise errors.InvalidInputError(
                    f"{str(given)[:40]!r} is not one of {', '.join(allowed)}"
                )


def message_of(inputs: Mapping[str, Any], ref: str) -> str:
    """Return the default commit message of a merge."""
    if inputs["joins"]:
        return f"join the tips of {ref.removeprefix(BRANCHES)}"
    return f"{'squash' if inputs['squash'] else 'merge'} {inputs['name']}"


def meta_of(
    inputs: Mapping[str, Any], plan: MergePlan, advice: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return the metadata of a merge commit: the strategy, and the conflicts that were resolved."""
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
    """The result of a pick or rebase.

    Attributes:
        outcome: "up-to-date", "done", or "stopped", with nothing written.
        ref: full name of the branch.
        before: the old tip; None if the branch had no commit.
        after: the new tip.
        made: (original commit, new commit) in the order of the steps.
        dropped: commits that were left out.
        there: commits that changed nothing, or whose changes the branch already has; they make no commit.
        conflicts: the open ones.
        step: the step that it stopped at, or None.
        warnings: possible changes of meaning.
        settled: resolved conflicts.
    """

    JSON = "commit=after made:from,commit stopped_at=step.oid"

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
class MergeRequest:
    """A merge for a model to resolve.

    Attributes:
        base: the fold of the merge base.
        ours: the fold of our side.
        theirs: the fold of their side.
        plan: the plan without advice, with open conflicts.
        replan: computes the plan again. Its arguments are the resolutions by conflict key, and a function that stores
            the text of a resolution and returns its id.
        content: collects content to store with the merge.
    """

    base: Fold
    ours: Fold
    theirs: Fold
    plan: MergePlan
    replan: Callable[[Mapping[str, Resolution], Put], MergePlan]
    content: ObjectCollector


@value
class MergeAdvice:
    """A model's resolution of a merge.

    Attributes:
        resolutions: resolutions by conflict key.
        operations: further operations of the merge commit.
        meta: metadata about the advice, for the merge commit.
    """

    resolutions: Mapping[str, Resolution]
    operations: tuple[Operation, ...]
    meta: Mapping[str, Any]
