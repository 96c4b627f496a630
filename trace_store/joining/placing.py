"""Places of messages: which of them moved, and what brings one order to another.

Rule: pure functions of orders. As few messages count as moved as explain the new order.
"""

from __future__ import annotations

from trace_store.comparing.aligning import longest_rise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from trace_store.objects.address import Address

    Step = tuple[list[Address], Address | None]
    """Messages, and after which they come; None puts them first."""


def moved(before: Sequence[Address], after: Sequence[Address]) -> set[Address]:
    """Return the messages that stand elsewhere than before, among those that both orders hold: as few as explain it."""
    kept = set(before) & set(after)
    old = [each for each in before if each in kept]
    new = [each for each in after if each in kept]
    if old == new:
        return set()
    ranks = {each: rank for rank, each in enumerate(old)}
    staying = longest_rise([ranks[each] for each in new])
    return {each for at, each in enumerate(new) if at not in staying}


def neighbour(order: Sequence[Address], of: Address, among: Collection[Address]) -> Address | None:
    """Return the nearest message in front of `of` that is one of `among`; None when there is none."""
    for at in range(order.index(of) - 1, -1, -1):
        if order[at] in among:
            return order[at]
    return None


def steps(
    order: Sequence[Address], going: Collection[Address], among: Collection[Address]
) -> list[tuple[list[Address], Address | None]]:
    """Return how to place messages as they stand in an order: (messages, after which), from front to back.

    Args:
        order: the order that they are to have.
        going: the messages to place.
        among: messages that there are; others of the order are passed over.
    """
    made: list[Step] = []
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
