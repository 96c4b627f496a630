"""What a pick or a rebase came to.

Rule: plain values.
"""

from __future__ import annotations

from trace_store.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.joining.conflicts import Conflict
    from trace_store.joining.rewriting.todo import Step
    from trace_store.joining.safety import MeaningWarning
    from trace_store.oid import ObjectId

UP_TO_DATE, DONE, STOPPED = "up-to-date", "done", "stopped"


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
