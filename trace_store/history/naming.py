"""Which messages a commit names: those that it adds or changes."""

from __future__ import annotations

from trace_store.objects import operations as ops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from trace_store.context.folding import Address
    from trace_store.objects.commit import Commit, Operation


def named(oid: bytes, commit: Commit) -> Iterator[tuple[Address, Operation]]:
    """Yield the messages that a commit adds or changes, with the operation that does it."""
    number = 0
    for operation in commit.operations:
        for target in ops.targets_of(operation, oid):
            yield target, operation
        if operation.name in ops.ADDS_MESSAGES:
            for stored in operation.fields["messages"]:
                yield ops.address_of(stored, oid, number), operation
                number += 1
