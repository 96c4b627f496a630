"""Walks over the rows of the commit table."""

from __future__ import annotations

from heapq import heappop, heappush

from trace_store.commit_table.graph import TopologicalQueue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trace_store.commit_table.table import CommitRows

_ONE = 1
_OTHER = 2
_BOTH = 3
_STALE = 4


def ancestor(rows: CommitRows, number: int, generations: int) -> tuple[int, int]:
    """Return the n-th first-parent ancestor's row, and the steps left at the root."""
    while generations:
        straight = number - rows.run(number)
        if straight:
            step = min(straight, generations)
            number -= step
            generations -= step
            continue
        parents = rows.parents(number)
        if not parents:
            break
        number = parents[0]
        generations -= 1
    return number, generations


def is_ancestor(rows: CommitRows, candidate: int, descendant: int) -> bool:
    """Return True if the rows are equal or the first is an ancestor."""
    heap = [-descendant]
    seen = {descendant}
    while heap:
        number = -heappop(heap)
        if number < candidate:
            return False
        low = rows.run(number)
        if low <= candidate:
            return True
        for parent in rows.parents(low):
            if parent not in seen and parent >= candidate:
                seen.add(parent)
                heappush(heap, -parent)
    return False


def merge_bases(rows: CommitRows, one: int, other: int) -> list[int]:
    """Return the best common ancestors of two rows, newest first."""
    if one == other:
        return [one]
    marks = {one: _ONE, other: _OTHER}
    heap = [-one, -other]
    heap.sort()
    fresh = 2  # how many heap entries may still lead to a better one
    bases: list[int] = []
    while fresh:
        number = -heappop(heap)
        mark = marks.pop(number)
        if not mark & _STALE:
            fresh -= 1
        if mark == _BOTH:
            bases.append(number)
            mark |= _STALE
        low = max(rows.run(number), -heap[0] if heap else 0)
        for parent in [low] if low < number else rows.parents(number):
            before = marks.get(parent)
            if before is None:
                marks[parent] = mark
                heappush(heap, -parent)
                fresh += not mark & _STALE
            else:
                marks[parent] = before | mark
                if mark & _STALE and not before & _STALE:
                    fresh -= 1
    return bases


class Spans:
    """A history as spans (high, low) of rows, each the only parent of the one above.

    The order is that of `graph.topological`: children before parents, branches not interleaved.
    """

    def __init__(
        self,
        rows: CommitRows,
        starts: Sequence[int],
        hidden: Sequence[int] = (),
        *,
        first_parent: bool = False,
        by_time: bool = False,
    ) -> None:
        """Prepare a walk.

        Args:
            rows: the table.
            starts: where to start.
            hidden: rows to exclude, with their history.
            first_parent: whether to follow first parents only.
            by_time: whether to interleave branches, the latest first.
        """
        self._rows = rows
        self._time_of = (lambda number: rows.row(number)[5]) if by_time else None
        self._starts = list(dict.fromkeys(starts))
        self._first_parent = first_parent
        self._marks: dict[int, int] = {}
        self._children: dict[int, int] = {}
        self._heap: list[int] = []
        for number in self._starts:
            self._mark(number, _ONE)
        for number in hidden:
            self._mark(number, _OTHER)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        ready = TopologicalQueue(self._time_of)
        for number in reversed(self._starts):
            self._explore(number)
            if self._is_shown(number) and not self._children.get(number):
                ready.push(number)
        while ready:
            high = number = ready.pop()
            if not ready:
                number = self._straight(number)
            yield high, number
            self._explore(number - 1)
            for parent in self._parents(number):
                self._explore(parent)
                if not self._is_shown(parent):
                    continue
                self._children[parent] -= 1
                if not self._children[parent]:
                    del self._children[parent]
                    ready.push(parent)
            self._marks.pop(number, None)

    def between(self, first: int, end: int | None) -> Iterator[tuple[int, int]]:
        """Yield the spans between positions `first` and `end` (exclusive)."""
        position = 0
        for high, low in self:
            skipped = max(first - position, 0)
            position += high - low + 1
            beyond = 0 if end is None else max(position - end, 0)
            if high - skipped >= low + beyond:
                yield high - skipped, low + beyond
            if end is not None and position >= end:
                return

    def _straight(self, number: int) -> int:
        """Return the end of the linear run from a row that meets no other reached row."""
        heap = self._heap
        if not heap or -heap[0] != number:
            return number  # its parents were visited already
        heappop(heap)
        low = max(self._rows.run(number), 1 - heap[0] if heap else 0)
        self._marks[low] = self._marks.pop(number)
        heappush(heap, -low)
        return low

    def _is_shown(self, number: int) -> bool:
        return self._marks.get(number) == _ONE

    def _parents(self, number: int) -> list[int]:
        parents = self._rows.parents(number)
        return parents[:1] if self._first_parent else list(dict.fromkeys(parents))

    def _mark(self, number: int, mark: int) -> None:
        before = self._marks.get(number)
        if before is None:
            heappush(self._heap, -number)
            self._marks[number] = mark
        else:
            self._marks[number] = before | mark

    def _explore(self, down_to: int) -> None:
        """Visit all reachable rows above `down_to`, so that its marks are final."""
        heap = self._heap
        while heap and -heap[0] > down_to:
            number = -heappop(heap)
            mark = self._marks[number]
            shown = mark == _ONE
            for parent in self._parents(number):
                self._mark(parent, mark)
                if shown:
                    self._children[parent] = self._children.get(parent, 0) + 1
