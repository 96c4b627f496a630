"""The strategy `theirs`: the context becomes theirs, whatever ours did.

Rule: a pure function. What only ours has is hidden, and can be restored.
"""

from __future__ import annotations

from trace_store.context.folding import REMOVED
from trace_store.joining.three_way import placing
from trace_store.joining.three_way.properties import Change, difference, operations_of
from trace_store.objects import operations as ops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.context.folding import Fold
    from trace_store.joining.three_way.line import Line


def take_theirs(line: Line, ours: Fold, theirs: Fold) -> None:
    """Lead a line, which begins with ours, to what theirs is."""
    mine = {entry.address: entry for entry in ours.entries}
    wanted = [entry.address for entry in theirs.entries]
    line.include([address for address in wanted if address not in mine], line.last)
    changes: dict[tuple[bytes, int], Change] = {}
    for entry in theirs.entries:
        change = difference(mine[entry.address], entry) if entry.address in mine else None
        if change is not None:
            changes[entry.address] = change
    kept = set(wanted)
    for entry in ours.entries:
        if entry.address not in kept and entry.visible:
            changes.setdefault(entry.address, Change()).shown = (REMOVED, False)
    if theirs.tools != ours.tools:
        line.operations.append(ops.tools(list(theirs.tools)))  # type: ignore[arg-type]
    line.operations += operations_of(list(changes.items()))
    going = placing.moved([address for address in line.order if address in kept], wanted)
    for targets, after in placing.steps(wanted, going, set(line.order)):
        line.place(targets, after)
