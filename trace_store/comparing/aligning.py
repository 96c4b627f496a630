"""Which message of one context is which of another.

Rule: an address is an identity, so messages are paired by it, however far apart they stand. Only what is left, which
stands under another address on the other side, is paired by what it says. Pure functions of records.
"""

from __future__ import annotations

from bisect import bisect_left

from trace_store.context.index_records import GHOST, MessageRecord

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    Said: TypeAlias = Callable[[MessageRecord], bytes]
    """Returns what a model sees of a message."""


class Pair:
    """A message on both sides.

    Attributes:
        before, after: its records.
        moved: whether it stands otherwise among the others.
    """

    __slots__ = ("after", "before", "moved")

    def __init__(self, before: MessageRecord, after: MessageRecord) -> None:
        self.before = before
        self.after = after
        self.moved = False


class Alignment:
    """Two runs of messages side by side.

    Attributes:
        pairs: what is on both sides, in the order of the first.
        removed, added: what is on one side alone, in order.
    """

    __slots__ = ("added", "pairs", "removed")

    def __init__(
        self, before: Sequence[MessageRecord], after: Sequence[MessageRecord], said: Said
    ) -> None:
        theirs = {record.address: record for record in after}
        pairs: list[Pair] = []
        self.removed: list[MessageRecord] = []
        for record in before:
            other = theirs.pop(record.address, None)
            if other is None:
                self.removed.append(record)
            else:
                pairs.append(Pair(record, other))
        self.added = list(theirs.values())
        if self.added and self.removed:
            pairs += self._copies(said)
            pairs.sort(key=lambda pair: pair.before.ordinal)
        self.pairs = pairs
        stay = longest_rise([pair.after.ordinal for pair in pairs])
        for index, pair in enumerate(pairs):
            pair.moved = index not in stay

    def _copies(self, said: Said) -> list[Pair]:
        """Take what says the same under another address out of what is on one side alone, and return it."""
        waiting: dict[bytes, list[MessageRecord]] = {}
        for record in reversed(self.added):
            waiting.setdefault(said(record), []).append(record)
        pairs: list[Pair] = []
        removed: list[MessageRecord] = []
        for record in self.removed:
            same = waiting.get(said(record))
            if same:
                pairs.append(Pair(record, same.pop()))
            else:
                removed.append(record)
        self.removed = removed
        left = [record for records in waiting.values() for record in records]
        self.added = sorted(left, key=lambda record: record.ordinal)
        return pairs


def same_message(one: MessageRecord, other: MessageRecord) -> bool:
    """Tell whether two records are of the same message in the same wording and state, as far as records say that."""
    return (
        (one.address, one.place_commit, one.place_number)
        == (other.address, other.place_commit, other.place_number)
        and one.flags & GHOST == other.flags & GHOST
        and one.priority == other.priority
    )


def longest_rise(values: Sequence[int]) -> set[int]:
    """Return the indexes of a longest run of values that rise, so that the fewest others have moved."""
    ends: list[int] = []  # the least value that a run of each length ends in
    last: list[int] = []  # and its index
    before: list[int] = [-1] * len(values)
    for index, number in enumerate(values):
        length = bisect_left(ends, number)
        if length == len(ends):
            ends.append(number)
            last.append(index)
        else:
            ends[length] = number
            last[length] = index
        before[index] = last[length - 1] if length else -1
    found: set[int] = set()
    index = last[-1] if last else -1
    while index >= 0:
        found.add(index)
        index = before[index]
    return found
