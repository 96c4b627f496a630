"""What goes into a merge and what comes out of it.

Rule: plain values.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.joining.conflicts import OURS, THEIRS
from trace_store.values import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from trace_store.context.folding import Fold
    from trace_store.joining.conflicts import Conflict
    from trace_store.objects.commit import Operation
    from trace_store.oid import ObjectId

    Address = tuple[bytes, int]
    Replacement = tuple[frozenset[Address], tuple[Address, ...]]

APPEND = "append"
INTERLEAVE = "interleave"
DECISIONS = "decisions"
SEMANTIC = "semantic"
STRATEGIES = (APPEND, INTERLEAVE, OURS, THEIRS, DECISIONS, SEMANTIC)
DECISION = "decision"
"""The label of a message that records a decision."""


class Side:
    """One side of a merge.

    Attributes:
        fold: its context.
        placed: messages that its operations since the base placed.
        replacements: what it put in the place of what since the base: (messages replaced, their replacement).
    """

    __slots__ = ("fold", "placed", "replacements")

    def __init__(
        self,
        fold: Fold,
        placed: Collection[Address] = (),
        replacements: Sequence[Replacement] = (),
    ) -> None:
        self.fold = fold
        self.placed = placed
        self.replacements = replacements


@value
class Plan:
    """What a merge does to our context.

    Attributes:
        operations: in order; they name parent 1 as theirs.
        conflicts: those that nobody settled; while there are any the operations leave ours as it is there.
        settled: those that somebody did.
        included: messages of theirs that come in.
    """

    operations: tuple[Operation, ...]
    conflicts: tuple[Conflict, ...]
    settled: tuple[Conflict, ...]
    included: tuple[Address, ...]

    def at(self, step: str) -> Plan:
        """Return it as one of several steps; "" is the only one."""
        if not step:
            return self
        open_, settled = (
            tuple(replace(each, step=step) for each in some)
            for some in (self.conflicts, self.settled)
        )
        return replace(self, conflicts=open_, settled=settled)


def no_put(content: bytes) -> ObjectId:
    """Refuse content, where no text settles anything."""
    raise errors.InvalidOperationError("no text can be stored here")
