"""Walks over the commit graph.

Rule: pure functions over `parents(oid)`. They do not recurse, so a history can have any depth.
"""

from __future__ import annotations

from trace_store.base.oid import ObjectId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from typing import Any, TypeAlias

    ParentsOf: TypeAlias = Callable[[ObjectId], Sequence[ObjectId]]


def ancestors(starts: Iterable[ObjectId], parents: ParentsOf) -> Iterator[ObjectId]:
    """Yield the starts and all their ancestors, each once, nearest first."""
    level = list(dict.fromkeys(starts))
    seen = set(level)
    while level:
        next_level: list[ObjectId] = []
        for oid in level:
            yield oid
            for parent in parents(oid):
                if parent not in seen:
                    seen.add(parent)
                    next_level.append(parent)
        level = next_level


def is_ancestor(candidate: ObjectId, descendant: ObjectId, parents: ParentsOf) -> bool:
    """Return True if `candidate` equals `descendant` or is its ancestor."""
    return any(oid == candidate for oid in ancestors([descendant], parents))


def maximal(values: Iterable[ObjectId], parents: ParentsOf) -> list[ObjectId]:
    """Return the values that are not ancestors of another one, in order."""
    remaining = list(dict.fromkeys(values))
    for value in list(remaining):
        if len(remaining) < 2:
            break
        if value not in remaining:
            continue
        others = set(remaining) - {value}
        for oid in ancestors([value], parents):
            if oid in others:
                others.discard(oid)
                remaining.remove(oid)
                if not others:
                    break
    return remaining


def simplify(
    commits: Sequence[tuple[ObjectId, Sequence[ObjectId]]], kept: Collection[ObjectId]
) -> dict[ObjectId, list[ObjectId]]:
    """Map each kept commit to its nearest kept ancestors, its new parents.

    Args:
        commits: commits with their parents, children before parents.
        kept: the commits to keep.
    """
    result: dict[ObjectId, list[ObjectId]] = {}
    nearest: dict[ObjectId, list[ObjectId]] = {}
    for oid, parents in reversed(commits):
        above = list(dict.fromkeys(each for p in parents for each in nearest.get(p, ())))
        nearest[oid] = above
        if oid in kept:
            result[oid], nearest[oid] = above, [oid]

    return result


def merge_bases(one: ObjectId, other: ObjectId, parents: ParentsOf) -> list[ObjectId]:
    """Return the best common ancestors: those that are not ancestors of another one."""
    if one == other:
        return [one]
    past = set(ancestors([one], parents))
    common: list[ObjectId] = []
    seen = {other}
    stack = [other]
    while stack:
        oid = stack.pop()
        if oid in past:
            common.append(oid)  # its ancestors are common too, but never better
            continue
        for parent in parents(oid):
            if parent not in seen:
                seen.add(parent)
                stack.append(parent)
    return sorted(maximal(common, parents))


def near_merge_base(
    one: ObjectId, other: ObjectId, parents: ParentsOf, limit: int
) -> ObjectId | None:
    """Return the only merge base if both lines reach it without merges, within `limit` commits each; else None."""
    lines: tuple[dict[ObjectId, None], dict[ObjectId, None]] = ({}, {})
    at: list[ObjectId | None] = [one, other]
    for _ in range(limit):
        for side, oid in enumerate(at):
            if oid is None:
                continue
            if oid in lines[1 - side]:
                return oid
            lines[side][oid] = None
            above = parents(oid)
            at[side] = above[0] if len(above) == 1 else None
    return None


class TopologicalQueue:
    """Queue of commits whose children have all been yielded.

    Without times it is a stack, so that branches are not interleaved. With times the latest commit comes first.
    """

    __slots__ = ("_count", "_pop", "_push", "_time_of", "_waiting")

    def __init__(self, time_of: Callable[[Any], int] | None = None) -> None:
        self._time_of = time_of
        self._waiting: list[Any] = []
        self._count = 0
        if time_of is not None:
            import heapq  # most commands do not need it

            self._push, self._pop = heapq.heappush, heapq.heappop

    def __len__(self) -> int:
        return len(self._waiting)

    def push(self, entry: Any) -> None:
        """Add an entry. With times, entries of the same time come out in the order they were added."""
        if self._time_of is None:
            self._waiting.append(entry)
        else:
            self._count += 1
            self._push(self._waiting, (-self._time_of(entry), self._count, entry))

    def pop(self) -> Any:
        """Remove and return the next entry."""
        return self._waiting.pop() if self._time_of is None else self._pop(self._waiting)[-1]


def topological(
    starts: Iterable[ObjectId],
    parents: ParentsOf,
    *,
    hidden: Iterable[ObjectId] = (),
    time_of: Callable[[ObjectId], int] | None = None,
) -> Iterator[ObjectId]:
    """Yield commits reachable from `starts` but not from `hidden`, children first.

    Branches are not interleaved: after a merge, its last parent's branch comes first. With `time_of`, the latest commit
    comes first instead.
    """
    excluded = set(ancestors(hidden, parents))
    tips = [oid for oid in dict.fromkeys(starts) if oid not in excluded]

    def visible_parents(oid: ObjectId) -> list[ObjectId]:
        return [p for p in dict.fromkeys(parents(oid)) if p not in excluded]

    children: dict[ObjectId, int] = dict.fromkeys(tips, 0)
    for oid in ancestors(tips, visible_parents):
        for parent in visible_parents(oid):
            children[parent] = children.get(parent, 0) + 1
    ready = TopologicalQueue(time_of)
    for oid in reversed(tips):
        if children[oid] == 0:
            ready.push(oid)
    while ready:
        oid = ready.pop()
        yield oid
        for parent in visible_parents(oid):
            children[parent] -= 1
            if children[parent] == 0:
                ready.push(parent)
