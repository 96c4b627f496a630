"""A merge without its second parent: messages of theirs come in as copies.

Rule: a pure function of operations. A copy has the wording, the priority and the labels that the message has in theirs;
what is hidden there is not copied.
"""

from __future__ import annotations

from trace_store.objects import operations as ops
from trace_store.objects.commit import Operation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from typing import Any

    from trace_store.context.folding import Entry, Fold
    from trace_store.oid import ObjectId

    Address = tuple[bytes, int]


def copy_of(entry: Entry) -> dict[str, Any]:
    """Return a message in stored form, as it is worded now."""
    return {**entry.message, "parts": list(entry.parts)}


def marks_of(entry: Entry, address: Address) -> list[Operation]:
    """Return what gives a copy the priority, patterns and labels of the message."""
    if entry.priority == ops.NORMAL and not entry.labels and not entry.keep:
        return []
    return [
        ops.annotate(
            [address],
            priority=entry.priority,
            keep=[*entry.keep] or None,  # type: ignore[list-item]
            labels=sorted(entry.labels),
        )
    ]


def with_parents(
    operations: Sequence[Operation], first: Sequence[ObjectId], second: Sequence[ObjectId]
) -> tuple[list[ObjectId], list[Operation]]:
    """Return the parents of two commits that become one, and the second's operations as they name these.

    Args:
        operations: those of the second commit.
        first: parents of the first; none of a root, which gets none.
        second: parents of the second.
    """
    parents = list(first)
    made: list[Operation] = []
    for other in second[1:] if first else ():
        if other not in parents[1:]:
            parents.append(other)
    for operation in operations:
        if operation.name == ops.INCLUDE:
            number = parents.index(second[operation.fields["parent"]], 1)
            operation = Operation(operation.name, {**operation.fields, "parent": number})
        made.append(operation)
    return parents, made


def squashed(
    operations: Sequence[Operation], ours: Fold, theirs: Fold, parent: int = 1
) -> tuple[list[Operation], list[int]]:
    """Return a merge's operations with copies in the place of what they include, and its own messages' new numbers.

    Args:
        operations: those of a merge.
        ours: the context that it goes on from.
        theirs: the context of the other parent.
        parent: which that is; what is included from others stays as it is.
    """
    made = _Squashing(ours, theirs, parent)
    for operation in operations:
        if operation.name == ops.INCLUDE and operation.fields["parent"] == parent:
            made.copy(operation)
        else:
            made.take_over(operation)
    return made.operations, made.numbers


class _Squashing:
    """Operations that are being translated.

    Attributes:
        operations: what there is by now.
        numbers: the new numbers of the messages that the merge makes itself.
    """

    def __init__(self, ours: Fold, theirs: Fold, parent: int) -> None:
        self.operations: list[Operation] = []
        self.numbers: list[int] = []
        self._ours = ours
        self._theirs = theirs
        self._parent = parent
        self._created = 0
        self._copies: dict[Address, Address] = {}
        self._gone: set[Address] = set()

    def copy(self, include: Operation) -> None:
        """Make copies of what is shown of the messages that come in."""
        targets = [_address(each) for each in include.fields["targets"]]
        entries = [self._theirs.entry(target) for target in targets]
        shown = [entry for entry in entries if entry.visible and not entry.is_ghost]
        self._gone.update(set(targets) - {entry.address for entry in shown})
        if not shown:
            return
        for number, entry in enumerate(shown, self._created):
            self._copies[entry.address] = (ops.HERE, number)
        self.operations.append(ops.append([copy_of(entry) for entry in shown]))
        self._created += len(shown)
        after = include.fields.get("after")
        neighbour = None if after is None else self._behind(_address(after), ())
        if neighbour is not None:
            copies = [self._copies[entry.address] for entry in shown]
            self.operations.append(ops.move(copies, after=neighbour))
        for entry in shown:
            self.operations += marks_of(entry, self._copies[entry.address])

    def take_over(self, operation: Operation) -> None:
        """Let an operation name the copies; it goes where all that it names was left out, and it adds no message."""
        translated = self._translated(operation)
        self.operations += [] if translated is None else [translated]
        for _ in range(ops.message_count(operation)):
            self._copies[ops.HERE, len(self.numbers)] = (ops.HERE, self._created)  # behind copies
            self.numbers.append(self._created)
            self._created += 1

    def _translated(self, operation: Operation) -> Operation | None:
        fields = dict(operation.fields)
        if fields.get("target") is not None:
            address = self._standing(_address(fields["target"]))
            if address is None:
                return None
            fields["target"] = list(address)
        if fields.get("after") is not None:
            moved = {_address(each) for each in fields.get("targets", ())}
            address = self._behind(_address(fields["after"]), moved)
            if address is None:
                return None
            fields["after"] = list(address)
        for name in ("targets", "sources"):
            if name not in fields or operation.name == ops.INCLUDE:  # of a parent that stays
                continue
            kept = [self._standing(_address(each)) for each in fields[name]]
            named, fields[name] = fields[name], [list(each) for each in kept if each is not None]
            if name == "targets" and named and not fields[name] and not fields.get("messages"):
                return None
        return Operation(operation.name, fields)

    def _standing(self, address: Address) -> Address | None:
        return None if address in self._gone else self._copies.get(address, address)

    def _behind(self, address: Address, moved: Collection[Address]) -> Address | None:
        """Return what a message is to stand behind: of one that was left out, what stands before it in theirs."""
        if address not in self._gone:
            return self._copies.get(address, address)
        order = [entry.address for entry in self._theirs.entries]
        for each in reversed(order[: order.index(address)]):
            if each in self._copies:
                return self._copies[each]
            if each in self._ours and each not in moved and each not in self._gone:
                return each
        return None


def _address(stored: Sequence[Any]) -> Address:
    commit, number = stored
    return bytes(commit), number
