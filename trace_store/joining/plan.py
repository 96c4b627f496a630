"""What goes into a merge and what comes out of it.

Rule: plain values.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.joining.conflicts import OURS, THEIRS
from trace_store.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.joining.conflicts import Conflict
    from trace_store.objects.address import Address
    from trace_store.objects.commit import Operation
    from trace_store.oid import ObjectId


APPEND = "append"
INTERLEAVE = "interleave"
DECISIONS = "decisions"
SEMANTIC = "semantic"
STRATEGIES = (APPEND, INTERLEAVE, OURS, THEIRS, DECISIONS, SEMANTIC)
DECISION = "decision"
"""The label of a message that records a decision."""


@value
class Plan:
    """What a merge does to our context.

    Attributes:
        operations: in order.
        conflicts: those that nobody settled; while there are any the operations leave ours as it is there.
        settled: those that somebody did.
        included: messages of theirs that come in.
    """

    operations: tuple[Operation, ...]
    conflicts: tuple[Conflict, ...]
    settled: tuple[Conflict, ...]
    included: tuple[Address, ...]


def no_put(content: bytes) -> ObjectId:
    """Refuse content, where no text settles anything."""
    raise errors.InvalidOperationError("no text can be stored here")
