"""Operations that name messages by other addresses.

Rule: pure. What an `include` names stays, since it is in another context.
"""

from __future__ import annotations

from trace_store.objects import operations as ops
from trace_store.objects.commit import Operation
from trace_store.oid import ObjectId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    Address = tuple[bytes, int]
    Place: TypeAlias = Callable[[Address], Address]
    Replaced: TypeAlias = Callable[[bytes], bytes]


def rewritten(operation: Operation, place: Place, commit: Replaced = ObjectId) -> Operation:
    """Return an operation with other addresses; what an `include` names stays, since it is in another context.

    Args:
        operation: what names messages, or a commit.
        place: says where a message is now.
        commit: says which commit stands for one that usage is about.
    """
    fields = dict(operation.fields)
    for name in ("target", "after"):
        if fields.get(name) is not None:
            fields[name] = list(place((bytes(fields[name][0]), fields[name][1])))
    if operation.name != ops.INCLUDE:
        for name in ("targets", "sources"):
            if name in fields:
                fields[name] = [list(place((bytes(c), n))) for c, n in fields[name]]
    if isinstance(fields.get("about"), bytes):
        fields["about"] = ObjectId(commit(fields["about"]))
    return Operation(operation.name, fields)


def put_into(
    operations: Sequence[Operation],
    tip: bytes,
    count: int,
    original: bytes,
    before: ObjectId | None,
) -> list[Operation]:
    """Return the operations of a commit as they are once it is squashed into the one before it.

    Args:
        operations: what the commit does.
        tip: the id of the commit before it, which goes, so that nothing may name it any more.
        count: how many messages that one creates.
        original: the commit that it was made from, and that usage about `tip` is about from now on.
        before: the parent that the commit had at first, and that its usage is about where it names no commit.
    """

    def place(address: Address) -> Address:
        if not address[0]:
            return (ops.HERE, address[1] + count)
        return (ops.HERE, address[1]) if address[0] == tip else address

    made: list[Operation] = []
    for each in operations:
        if each.name == ops.USAGE and "about" not in each.fields and before is not None:
            each = Operation(each.name, {**each.fields, "about": before})
        made.append(rewritten(each, place, lambda about: original if about == tip else about))
    return made


def with_address(operations: Sequence[Operation], old: Address, new: Address) -> list[Operation]:
    """Return operations that name a message by another address."""
    return [rewritten(each, lambda given: new if given == old else given) for each in operations]
