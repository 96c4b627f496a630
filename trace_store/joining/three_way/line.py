"""The context that a merge leads to, as operations and the order that these make.

Rule: what is asked for is written down as an operation, and the order follows it, so that places can be named.
"""

from __future__ import annotations

from trace_store.joining.three_way.properties import chunks
from trace_store.objects import operations as ops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from trace_store.objects.commit import Operation

    Address = tuple[bytes, int]


class Line:
    """A context on its way from ours to the merged one.

    Attributes:
        operations: what was asked for so far.
        order: all messages, visible or hidden.
        included: those that came from theirs.
    """

    __slots__ = ("_created", "included", "operations", "order")

    def __init__(self, order: Iterable[Address]) -> None:
        self.operations: list[Operation] = []
        self.order = list(order)
        self.included: list[Address] = []
        self._created = 0

    def include(self, targets: Sequence[Address], after: Address | None) -> None:
        """Bring messages of theirs in behind another; None puts them first."""
        if not targets:
            return
        first = after is None and bool(self.order)
        ends = after is not None and after == self.order[-1]
        neighbour = None if first or ends else after
        for some in chunks(list(targets)):
            self.operations.append(ops.include(some, after=neighbour))
            neighbour = None if neighbour is None else some[-1]
        self.included += targets
        at = len(self.order) if first or after is None else self.order.index(after) + 1
        self.order[at:at] = targets
        if first:
            self.place(list(targets), None)

    def place(self, targets: list[Address], after: Address | None) -> None:
        """Place messages of the context behind another; None puts them first."""
        self.operations.append(ops.move(targets, after=after))
        going = set(targets)
        rest = [address for address in self.order if address not in going]
        at = 0 if after is None else rest.index(after) + 1
        self.order = [*rest[:at], *targets, *rest[at:]]

    def append(self, message: Mapping[str, Any]) -> None:
        """Add a stored message at the end."""
        self.operations.append(ops.append([message]))
        self.order.append((ops.HERE, self._created))
        self._created += 1

    @property
    def last(self) -> Address | None:
        """The last message; None when there is none."""
        return self.order[-1] if self.order else None
