"""A merge without its second parent: messages of theirs come in as copies.

Rule: a pure function of operations. A copy has the wording, the priority and the labels that the message has in theirs;
what is hidden there is not copied.
"""

from __future__ import annotations

from trace_store.objects import operations as ops
from trace_store.objects.commit import Operation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
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
    operations: Sequence[Operation], theirs: Fold, parent: int = 1
) -> tuple[list[Operation], list[int]]:
    """Return a merge's operations with copies in the place of what they include, and its own messages' new numbers.

    Args:
        operations: those of a merge.
        theirs: the context of the other parent.
        parent: which that is; what is included from others stays as it is.
    """
    created = 0
    numbers: list[int] = []
    copies: dict[Address, Address] = {}
    gone: set[Address] = set()
    made: list[Operation] = []
    for operation in operations:
        if operation.name != ops.INCLUDE or operation.fields["parent"] != parent:
            translated = _translated(operation, copies, gone)
            made += [] if translated is None else [translated]
            for _ in range(ops.message_count(operation)):
                copies[ops.HERE, len(numbers)] = (ops.HERE, created)  # copies may come before it
                numbers.append(created)
                created += 1
            continue
        targets = [(bytes(commit), number) for commit, number in operation.fields["targets"]]
        entries = [theirs.entry(target) for target in targets]
        shown = [entry for entry in entries if entry.visible and not entry.is_ghost]
        gone.update(set(targets) - {entry.address for entry in shown})
        if not shown:
            continue
        for number, entry in enumerate(shown, created):
            copies[entry.address] = (ops.HERE, number)
        made.append(ops.append([copy_of(entry) for entry in shown]))
        created += len(shown)
        after = operation.fields.get("after")
        if after is not None:
            neighbour = _standing((bytes(after[0]), after[1]), copies, gone)
            if neighbour is not None:
                made.append(ops.move([copies[e.address] for e in shown], after=neighbour))
        for entry in shown:
            made += marks_of(entry, copies[entry.address])
    return made, numbers


def _standing(
    address: Address, copies: Mapping[Address, Address], gone: set[Address]
) -> Address | None:
    return None if address in gone else copies.get(address, address)


def _translated(
    operation: Operation, copies: Mapping[Address, Address], gone: set[Address]
) -> Operation | None:
    """Return an operation that names the copies; None when all that it names was left out, and it adds no message."""
    fields = dict(operation.fields)
    for name in ("target", "after"):
        if fields.get(name) is not None:
            commit, number = fields[name]
            address = _standing((bytes(commit), number), copies, gone)
            if address is None:
                return None
            fields[name] = list(address)
    for name in ("targets", "sources"):
        if name not in fields or operation.name == ops.INCLUDE:  # of a parent that stays
            continue
        named = [(bytes(commit), number) for commit, number in fields[name]]
        kept = [_standing(address, copies, gone) for address in named]
        fields[name] = [list(address) for address in kept if address is not None]
        if name == "targets" and named and not fields[name] and not fields.get("messages"):
            return None
    return Operation(operation.name, fields)
