"""Changes to messages, and the operations that make them."""

from __future__ import annotations

from trace_store.context.fold import REPLACED
from trace_store.merge.conflicts import stored_text
from trace_store.objects import operations as ops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any, TypeAlias

    from trace_store.base.oid import ObjectId
    from trace_store.context.fold import Entry
    from trace_store.objects.address import Address
    from trace_store.objects.commit import Operation

    Parts: TypeAlias = Sequence[Mapping[str, Any]]
    Put: TypeAlias = Callable[[bytes], ObjectId]
    Visibility: TypeAlias = tuple[str, bool]
    """How a message is hidden ("" if it is not), and whether it leaves a ghost."""


MAXIMUM_TARGETS = 10_000
"""Maximum number of targets of one operation."""


class MessageEdits:
    """The changes to one message; None leaves a property unchanged.

    Attributes:
        parts: its new content.
        visibility: how it is hidden, and whether it leaves a ghost; like the priority, this applies to its unit.
        priority, keep: as annotated.
        labels, unlabels: labels to add and to remove.
    """

    __slots__ = ("keep", "labels", "parts", "priority", "unlabels", "visibility")

    def __init__(self) -> None:
        self.parts: Parts | None = None
        self.visibility: Visibility | None = None
        self.priority: str | None = None
        self.keep: tuple[bytes, ...] | None = None
        self.labels: tuple[str, ...] = ()
        self.unlabels: tuple[str, ...] = ()

    @property
    def marks(self) -> tuple[Any, ...]:
        """The values for `annotate`; messages with equal marks can share one operation."""
        return (self.priority, self.keep, self.labels, self.unlabels)


class Changes(dict["Address", MessageEdits]):
    """Changes by message; a missing entry is created."""

    def __missing__(self, address: Address) -> MessageEdits:
        change = self[address] = MessageEdits()
        return change

    def operations(self) -> list[Operation]:
        """Return as few operations as possible that make the changes."""
        made = [ops.edit(a, each.parts) for a, each in self.items() if each.parts is not None]
        visibilities: dict[Visibility, list[Address]] = {}
        marks: dict[tuple[Any, ...], list[Address]] = {}
        for address, change in self.items():
            if change.visibility is not None:
                visibilities.setdefault(change.visibility, []).append(address)
            if change.marks != (None, None, (), ()):
                marks.setdefault(change.marks, []).append(address)
        for (hidden, ghost), addresses in visibilities.items():
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
    """Yield addresses in lists that fit into one operation."""
    for start in range(0, len(addresses), MAXIMUM_TARGETS):
        yield addresses[start : start + MAXIMUM_TARGETS]


def visibility_of(entry: Entry) -> Visibility:
    """Return how a message is hidden, and whether it leaves a ghost."""
    return entry.hidden, entry.ghost


def both_parts(ours: Parts, theirs: Parts) -> list[Any]:
    """Combine two versions of a message, in stored form; two results of one call become one."""
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
    """Return stored parts with a new text; if they have none, a single result gets it."""
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
