"""Places of messages: which of them moved, and what brings one order to another.

Rule: pure functions of orders. As few messages count as moved as explain the new order; where operations say which ones
were moved, those count.
"""

from __future__ import annotations

from trace_store.comparing.aligning import longest_rise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    Address = tuple[bytes, int]
    Step = tuple[list[Address], Address | None]
    """Messages, and after which they come; None puts them first."""


def moved(
    before: Sequence[Address], after: Sequence[Address], hinted: Collection[Address] = ()
) -> set[Address]:
    """Return the messages that stand elsewhere than before, among those that both orders hold.

    Args:
        before: an order.
        after: a later one.
        hinted: messages that are known to have been placed; when they explain all, no others moved.
    """
    kept = set(before) & set(after)
    old = [each for each in before if each in kept]
    new = [each for each in after if each in kept]
    if old == new:
        return set()
    candidates = set(hinted) & kept
    rest_old = [each for each in old if each not in candidates]
    rest_new = [each for each in new if each not in candidates]
    if rest_old != rest_new:
        ranks = {each: rank for rank, each in enumerate(rest_old)}
        staying = longest_rise([ranks[each] for each in rest_new])
        candidates |= {each for at, each in enumerate(rest_new) if at not in staying}
    return _really(old, new, candidates)


def moved_since(
    bases: Sequence[Sequence[Address]], order: Sequence[Address], placed: Collection[Address]
) -> set[Address]:
    """Return the messages that a side has elsewhere than every merge base has them.

    Args:
        bases: the orders of the bases.
        order: that of the side.
        placed: messages that the side's operations placed.
    """
    found = [moved(before, order, placed) for before in bases]
    return set.intersection(*found) if found else set()


def _really(
    old: Sequence[Address], new: Sequence[Address], candidates: set[Address]
) -> set[Address]:
    """Return the candidates that stand in another gap between the other messages, or in another order within a gap."""
    gaps_old, gaps_new = _gaps(old, candidates), _gaps(new, candidates)
    found = {each for each in candidates if gaps_old[each] != gaps_new[each]}
    same_old: dict[int, list[Address]] = {}
    same_new: dict[int, list[Address]] = {}
    for order, gaps, into in ((old, gaps_old, same_old), (new, gaps_new, same_new)):
        for each in order:
            if each in candidates and each not in found:
                into.setdefault(gaps[each], []).append(each)
    for gap, each_old in same_old.items():
        if each_old != same_new.get(gap):
            found.update(each_old)
    return found


def _gaps(order: Sequence[Address], candidates: set[Address]) -> dict[Address, int]:
    """Return for each candidate how many others stand before it."""
    found: dict[Address, int] = {}
    others = 0
    for each in order:
        if each in candidates:
            found[each] = others
        else:
            others += 1
    return found


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
