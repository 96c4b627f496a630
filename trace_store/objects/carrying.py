"""Operations of one commit as another may hold them: what was born there is carried, and keeps its address.

Rule: pure functions of commits.
"""

from __future__ import annotations

from trace_store.objects import operations as ops
from trace_store.objects.address import absolute, read_address
from trace_store.objects.commit import Commit, Operation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def carried_operations(oid: bytes, commit: Commit) -> list[Operation]:
    """Return the operations of a commit with whole addresses, and its messages as carried ones."""
    made: list[Operation] = []
    number = 0
    for operation in commit.operations:
        fields: dict[str, Any] = dict(operation.fields)
        for name in ("targets", "sources"):
            if name in fields:
                fields[name] = [list(read_address(each, oid)) for each in fields[name]]
        for name in ("target", "after"):
            if name in fields:
                fields[name] = list(read_address(fields[name], oid))
        if operation.name == ops.USAGE and commit.parents:
            fields.setdefault("about", commit.parents[0])  # the commit before may be another
            fields = dict(sorted(fields.items()))
        if operation.name == ops.EDIT:
            fields["parts"] = absolute(fields["parts"], oid)
        if operation.name in ops.ADDS_MESSAGES:
            fields["messages"] = [
                _carried(stored, oid, number + n) for n, stored in enumerate(fields["messages"])
            ]
            number += len(fields["messages"])
        made.append(Operation(operation.name, fields))
    return made


def _carried(stored: ops.Stored, oid: bytes, number: int) -> dict[str, Any]:
    made = {
        **stored,
        ops.BORN: list(ops.address_of(stored, oid, number)),
        "parts": absolute(stored["parts"], oid),
    }
    if "edits" in made:
        made["edits"] = [absolute(parts, oid) for parts in made["edits"]]
    return dict(sorted(made.items()))
