"""The order of messages in a merge, and the operations that add and move them.

`move` acts on whole units. But if its `after` is in the unit of a target, only the targets move: so messages can also
be put between a call and its results, where they were on the other side.
"""

from __future__ import annotations

from trace_store.history.diff import longest_increasing
from trace_store.objects import operations as ops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from trace_store.context.fold import Entry, Fold
    from trace_store.objects.address import Address
    from trace_store.objects.commit import Operation

    Move = tuple[Sequence[Address], Address | None]
    """Messages, and the message to put them after; None puts them first."""


class ContextOrder:
    """The order of our messages while a merge adds and moves some.

    Attributes:
        addresses: the messages in their current order.
        operations: the operations so far.
    """

    def __init__(self, ours: Fold, theirs: Fold) -> None:
        self._sides = ours, theirs
        self.addresses = [entry.address for entry in ours.entries]
        self.operations: list[Operation] = []
        self._present = {*self.addresses}

    def add(self, entries: Sequence[Entry], after: Address | None) -> None:
        """Add messages of theirs after another one; None puts them first."""
        new = [entry.address for entry in entries]
        is_end = after is None or after == self.addresses[-1]
        carried = [entry.to_carried() for entry in entries]
        self.operations.append(ops.add(carried, after=None if is_end else after))
        at = len(self.addresses) if after is None or is_end else self.addresses.index(after) + 1
        comes_first = after is None and bool(self.addresses)  # `add` cannot insert at the start
        self.addresses[at:at] = new
        self._present.update(new)
        if comes_first:
            self.move([(new, None)])

    def move(self, steps: Sequence[Move]) -> None:
        """Move messages; those of their units that theirs does not have stay behind the same message of the unit."""
        wanted = self.addresses
        for targets, after in steps:
            moved = [each for target in targets for each in self._with_own(target)]
            wanted = _moved(wanted, moved, after)
        for targets, after in steps:
            self._move(targets, after)
        self._arrange(wanted)

    def units(self, addresses: Iterable[Address]) -> set[Address]:
        """Return all messages of some units that are in the context by now."""
        return {each for address in addresses for each in self._unit(address)}

    def _unit(self, address: Address) -> list[Address]:
        if address not in self._present:
            return []
        unit = [address]
        for each in unit:
            for side in self._sides:
                linked = side.links.get(each, ())
                unit += [a for a in linked if a in self._present and a not in unit]
        return unit

    def _in_order(self, unit: Sequence[Address]) -> list[Address]:
        if len(unit) == 1:
            return list(unit)
        members = set(unit)
        return [each for each in self.addresses if each in members]

    def _with_own(self, target: Address) -> list[Address]:
        """Return a message and those of its unit that follow it and that only ours has."""
        found: dict[Address, list[Address]] = {}
        first: list[Address] = []
        _, theirs = self._sides
        current = first
        for each in self._in_order(self._unit(target)):
            if each in theirs:
                current = found[each] = [*first, each] if current is first else [each]
            else:
                current.append(each)
        return found[target]

    def _move(self, targets: Sequence[Address], after: Address | None) -> None:
        """Move messages as the fold does."""
        self.operations.append(ops.move(targets, after=after))
        moved: dict[Address, None] = {}
        for target in targets:
            if target not in moved:
                moved.update(dict.fromkeys(self._in_order(self._unit(target))))
        if after in moved:
            moved = dict.fromkeys(targets)
        self.addresses = _moved(self.addresses, list(moved), after)

    def _arrange(self, wanted: Sequence[Address]) -> None:
        """Move messages until the order is exactly the wanted one."""
        while self.addresses != wanted:
            differing = [
                at
                for at, (one, other) in enumerate(zip(self.addresses, wanted, strict=True))
                if one != other
            ]
            first, end = differing[0], differing[-1] + 1
            head, before = wanted[first], wanted[:first]
            linked = self.units(wanted[first:end])
            anchor = next((at for at in reversed(range(first)) if before[at] in linked), None)
            if anchor is not None:  # only the targets move, since one of them is in its unit
                self._move(wanted[anchor + 1 : end], after=wanted[anchor])
            elif self.addresses[first] in self._unit(head):
                unit = self._in_order(self._unit(head))
                self._move([each for each in unit if each != head], after=head)
            else:
                self._move([head], after=before[-1] if before else None)


def _moved(
    order: Sequence[Address], moved: Sequence[Address], after: Address | None
) -> list[Address]:
    """Return an order in which some messages follow another one."""
    going = set(moved)
    rest = [each for each in order if each not in going]
    at = 0 if after is None else rest.index(after) + 1
    return [*rest[:at], *moved, *rest[at:]]


def fewest_moved(before: Sequence[Address], after: Sequence[Address]) -> set[Address]:
    """Return the smallest set of common messages whose move explains the new order."""
    if before == after[: len(before)]:  # the other side only appended
        return set()
    kept = set(before) & set(after)
    old = [each for each in before if each in kept]
    new = [each for each in after if each in kept]
    if old == new:
        return set()
    ranks = {each: rank for rank, each in enumerate(old)}
    staying = longest_increasing([ranks[each] for each in new])
    return {each for at, each in enumerate(new) if at not in staying}


def neighbour(order: Sequence[Address], of: Address, among: Collection[Address]) -> Address | None:
    """Return the nearest message before `of` that is in `among`, or None."""
    for at in range(order.index(of) - 1, -1, -1):
        if order[at] in among:
            return order[at]
    return None


def moves_into(
    order: Sequence[Address], going: Collection[Address], among: Collection[Address]
) -> Sequence[Move]:
    """Return the moves that bring messages to their positions in an order, from front to back.

    Args:
        order: the wanted order.
        going: the messages to move.
        among: messages that are in the context; others in the order are ignored.
    """
    made: list[tuple[list[Address], Address | None]] = []
    last: Address | None = None
    open_run = False
    for each in order:
        if each in going:
            if open_run:
                made[-1][0].append(each)
            else:
                made.append(([each], last))
            last, open_run = each, True
        elif each in among:
            last, open_run = each, False
    return made
