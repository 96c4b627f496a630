"""What a context holds, read plainly from its history: the small model that operations are held against.

Rule: values and pure functions of them. Nothing here knows how anything is merged, picked or taken back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trace_store.context.folding import Entry, Fold
from trace_store.objects import operations as ops

Address = tuple[bytes, int]
Parts = tuple[Any, ...]

AWAY = "result away from its call"


@dataclass(frozen=True)
class Seen:
    """One message, visible or hidden.

    Attributes:
        address: where it was made.
        role: who speaks.
        parts: its wording in stored form; `first` is the one that it was made with.
        shown: how it is hidden, and whether a ghost stays; ("", False) when it is not.
        priority, labels, keep: as annotated.
    """

    address: Address
    role: str
    parts: Parts
    first: Parts
    shown: tuple[str, bool]
    priority: str
    labels: frozenset[str]
    keep: tuple[bytes, ...]

    def __repr__(self) -> str:
        return f"{self.address[0].hex()[:8]}.{self.address[1]}"

    @property
    def is_visible(self) -> bool:
        hidden, ghost = self.shown
        return ghost if hidden else self.priority != ops.SKIP

    @property
    def is_ghost(self) -> bool:
        return self.shown[1]

    @property
    def is_pinned(self) -> bool:
        return self.is_visible and not self.is_ghost and self.priority == ops.PINNED

    @property
    def calls(self) -> list[str]:
        return [part["id"] for part in self.parts if part["type"] == "tool_call"]

    @property
    def results(self) -> list[str]:
        return [part["id"] for part in self.parts if part["type"] == "tool_result"]

    @property
    def says(self) -> str:
        """The wording as text that can be compared and sorted."""
        return " ".join([self.role, *sorted(map(repr, map(_sorted, self.parts)))])

    @property
    def state(self) -> tuple[Any, ...]:
        """What is to be known of it, its address and place apart."""
        return (self.says, self.shown, self.priority, self.labels, self.keep)

    def as_written(self) -> Seen:
        """Return it as it was when it was made."""
        return Seen(
            *(self.address, self.role, self.first, self.first, ("", False), ops.NORMAL),
            *(frozenset(), ()),
        )


@dataclass(frozen=True)
class Picture:
    """A context: all messages in their order, and the tools that are offered."""

    entries: tuple[Seen, ...]
    tools: tuple[bytes, ...]

    @property
    def by_address(self) -> Mapping[Address, Seen]:
        return {each.address: each for each in self.entries}

    @property
    def visible(self) -> list[Seen]:
        return [each for each in self.entries if each.is_visible]

    @property
    def shown(self) -> tuple[Any, ...]:
        """What a model is shown, without addresses."""
        return (*(each.state for each in self.visible), self.tools)

    @property
    def order(self) -> list[Address]:
        return [each.address for each in self.entries]


NOTHING = Picture((), ())


def picture(fold: Fold) -> Picture:
    """Return the picture of a fold."""
    return Picture(tuple(map(_seen, fold.entries)), tuple(fold.tools))


def faults(shown: Picture) -> set[tuple[str, str]]:
    """Return what is wrong with calls and results: (what, id of the call)."""
    return set(counted_faults(shown))


def counted_faults(shown: Picture) -> Counter[tuple[str, str]]:
    """Return how often each fault is there; a call id may come twice. A result belongs to the newest open call."""
    seen = [each for each in shown.visible if not each.is_ghost]
    open_: dict[str, list[int]] = {}
    answered: set[str] = set()
    found: Counter[tuple[str, str]] = Counter()
    for at, each in enumerate(seen):
        for name in each.results:
            if not open_.get(name):
                found["second result" if name in answered else "result without call", name] += 1
                continue
            call = open_[name].pop()
            answered.add(name)
            between = seen[call + 1 : at]
            if any(not other.results and not other.calls for other in between):
                found[AWAY, name] += 1
        for name in each.calls:
            open_.setdefault(name, []).append(at)
    for name, places in open_.items():
        if places:
            found["call without result", name] = len(places)
    return found


def broken(made: Picture, *before: Picture) -> set[tuple[str, str]]:
    """Return the faults of a context that none of those has that it was made of.

    A result that answers nothing on one line may find on another that its call is answered already.
    """
    had = set().union(*map(faults, before))
    loose = {name for what, name in had if what == "result without call"}
    return {
        (what, name)
        for what, name in faults(made) - had
        if what != "second result" or name not in loose
    }


def waits_for(shown: Picture) -> list[str]:
    """Return the ids of the calls that a context ends with, and that have no result yet."""
    waiting = {name for what, name in faults(shown) if what == "call without result"}
    seen = [each for each in shown.visible if not each.is_ghost]
    for each in reversed(seen):
        if waiting & set(each.calls):
            return [name for name in each.calls if name in waiting]
        if not each.results:
            break
    return []


def together(shown: Picture, some: Iterable[Address]) -> list[Address]:
    """Return messages with all that share a call with them, visible or hidden, in the order of the context."""
    chosen = set(some)
    while True:
        names = {
            name
            for each in shown.entries
            if each.address in chosen
            for name in (*each.calls, *each.results)
        }
        more = {
            each.address
            for each in shown.entries
            if each.address not in chosen and names & {*each.calls, *each.results}
        }
        if not more:
            return [address for address in shown.order if address in chosen]
        chosen |= more


def in_order(order: Sequence[Address], wanted: Sequence[Address]) -> bool:
    """Tell whether messages stand in an order as they stand in another, others between them apart."""
    names = set(wanted)
    return [each for each in order if each in names] == list(wanted)


def _seen(entry: Entry) -> Seen:
    return Seen(
        entry.address,
        str(entry.message["role"]),
        tuple(entry.parts),
        tuple(entry.message["parts"]),
        (entry.hidden, entry.ghost),
        entry.priority,
        entry.labels,
        tuple(entry.keep),
    )


def _sorted(part: Mapping[str, Any]) -> Any:
    return {key: _plain(part[key]) for key in sorted(part)}


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return _sorted(value) if isinstance(value, Mapping) else value


def each_pair(one: Picture, other: Picture) -> Iterator[tuple[Seen, Seen]]:
    """Yield the messages that both contexts hold."""
    theirs = other.by_address
    for mine in one.entries:
        if mine.address in theirs:
            yield mine, theirs[mine.address]
