"""Operations that name messages by other addresses.

Rule: pure. What an `include` names stays, since it is in another context.
"""

from __future__ import annotations

from trace_store.objects import operations as ops
from trace_store.objects.commit import Operation
from trace_store.oid import ObjectId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Address = tuple[bytes, int]


def rewritten(operation: Operation, place: Any) -> Operation:
    """Return an operation with other addresses; what an `include` names stays, since it is in another context."""
    fields = dict(operation.fields)
    for name in ("target", "after"):
        if fields.get(name) is not None:
            fields[name] = list(place((bytes(fields[name][0]), fields[name][1])))
    if operation.name != ops.INCLUDE:
        for name in ("targets", "sources"):
            if name in fields:
                fields[name] = [list(place((bytes(c), n))) for c, n in fields[name]]
    if isinstance(fields.get("about"), bytes):
        fields["about"] = ObjectId(place((fields["about"], 0))[0])
    return Operation(operation.name, fields)


def with_address(operations: Sequence[Operation], old: Address, new: Address) -> list[Operation]:
    """Return operations that name a message by another address."""
    return [rewritten(each, lambda given: new if given == old else given) for each in operations]
