"""Changes of one side, by message, and the operations that make them.

Rule: plain values and pure functions.

Rule: pure functions of orders. As few messages count as moved as explain the new order.
"""

from __future__ import annotations

from trace_store.context.entries import REPLACED
from trace_store.history.diff import longest_rise
from trace_store.merge.conflicts import stored_text
from trace_store.objects import operations as ops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from typing import Any, TypeAlias

    from trace_store.context.entries import Entry
    from trace_store.objects.address import Address
    from trace_store.objects.commit import Operation
    from trace_store.oid import ObjectId

    Parts: TypeAlias = Sequence[Mapping[str, Any]]
    Put: TypeAlias = Callable[[bytes], ObjectId]
    Shown: TypeAlias = tuple[str, bool]
    """How a message is hidden ("" when it is not), and whether a ghost stays."""
    Step = tuple[list[Address], Address | None]
    """Messages, and after which they come; None puts them first."""


MAXIMUM_TARGETS = 10_000
"""Messages that one operation names."""


class Change:
    """What becomes of one message; None leaves a property as it is.

    Attributes:
        parts: its new wording.
        shown: how it is hidden, and whether a ghost stays; it holds for its unit, as the priority does.
        priority, keep: as annotated.
        labels, unlabels: labels that come and go.
    """

    __slots__ = ("keep", "labels", "parts", "priority", "shown", "unlabels")

    def __init__(self) -> None:
        self.parts: Parts | None = None
        self.shown: Shown | None = None
        self.priority: str | None = None
        self.keep: tuple[bytes, ...] | None = None
        self.labels: tuple[str, ...] = ()
        self.unlabels: tuple[str, ...] = ()

    @property
    def marks(self) -> tuple[Any, ...]:
        """What an `annotate` says of it; alike for messages that one operation can name together."""
        return (self.priority, self.keep, self.labels, self.unlabels)


class Changes(dict["Address", Change]):
    """Changes by message; what is not there yet begins as none."""

    def __missing__(self, address: Address) -> Change:
        made = self[address] = Change()
        return made

    def operations(self) -> list[Operation]:
        """Return the operations that make the changes, as few as there can be."""
        made = [ops.edit(a, each.parts) for a, each in self.items() if each.parts is not None]
        shown: dict[Shown, list[Address]] = {}
        marks: dict[tuple[Any, ...], list[Address]] = {}
        for address, change in self.items():
            if change.shown is not None:
                shown.setdefault(change.shown, []).append(address)
            if change.marks != (None, None, (), ()):
                marks.setdefault(change.marks, []).append(address)
        for (hidden, ghost), addresses in shown.items():
            for some in chunks(addresses):
                if not hidden:
                    made.append(ops.restore(some))
                elif hidden == REPLACED:
                    made.append(ops.replace(some, []))
                else:
                    made.append(ops.remove(some, ghost=ghost))
        for (priority, keep, labels, unlabels), addresses in marks.items():
            made += [
                ops.annotate(some, priority=priority, keep=keep, labels=labels, unlabels=unlabels)
                for some in chunks(addresses)
            ]
        return made


def chunks(addresses: Sequence[Address]) -> Iterable[Sequence[Address]]:
    """Yield addresses as many at a time as one operation names."""
    for start in range(0, len(addresses), MAXIMUM_TARGETS):
        yield addresses[start : start + MAXIMUM_TARGETS]


def shown_of(entry: Entry) -> Shown:
    """Return whether a message is hidden, and how."""
    return entry.hidden, entry.ghost


def both_parts(ours: Parts, theirs: Parts) -> list[Any]:
    """Return what both wordings of a message say, in stored form; a call has one result, which says both."""
    made = list(ours)
    held = {
        (part["type"], part.get("id")): at
        for at, part in enumerate(ours)
        if part["type"] in ("tool_call", "tool_result")
    }
    for part in theirs:
        at = held.get((part["type"], part.get("id")))
        if at is None:
            made += [] if part in made else [part]
        elif part["type"] == "tool_result":
            said = made[at]["parts"]
            more = [each for each in part["parts"] if each not in said]
            made[at] = {**made[at], "parts": [*said, *more]}
    return made


def reworded_parts(parts: Parts, text: str, put: Put) -> list[Any]:
    """Return stored parts with another text in place of their texts, or of what their one tool result says."""
    new = stored_text(text, put)
    if not any(part["type"] == "text" for part in parts):
        results = [part for part in parts if part["type"] == "tool_result"]
        if len(results) == 1:
            said = {**results[0], "parts": [new]}
            return [said if part is results[0] else part for part in parts]
    kept = [part for part in parts if part["type"] != "text"]
    place = next((at for at, part in enumerate(parts) if part["type"] == "text"), None)
    at = sum(part["type"] == "reasoning" for part in kept) if place is None else place
    return [*kept[:at], new, *kept[at:]]


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
