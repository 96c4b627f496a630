"""Which messages a commit names: those that it creates, brings or changes."""

from __future__ import annotations

from trace_store.objects import operations as ops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from trace_store.context.folding import Address
    from trace_store.objects.commit import Commit, Operation


def named(oid: bytes, commit: Commit) -> Iterator[tuple[Address, Operation]]:
    """Yield the messages that a commit creates, brings or changes, with the operation that does it."""
    created = 0
    for operation in commit.operations:
        fields = operation.fields
        targets = [fields["target"]] if operation.name == ops.EDIT else fields.get("targets", ())
        for target, number in targets:
            yield (bytes(target) or oid, number), operation
        for _ in range(ops.message_count(operation)):
            yield (oid, created), operation
            created += 1
