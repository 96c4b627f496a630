"""What several layers agree on: transactions, their durability, names of refs, and protocols."""

from __future__ import annotations

from trace_store.base.oid import ObjectId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

DURABLE = "durable"
BATCH = "batch"
FAST = "fast"
DURABILITIES = (DURABLE, BATCH, FAST)
"""What an acknowledged transaction survives: power loss; power loss after `sync`; the end of the process."""


class AnyValue:
    """The type of ANY."""

    __slots__ = ()

    def __reduce__(self) -> str:
        return "ANY"  # the same object, also in another process

    def __repr__(self) -> str:
        return "ANY"


ANY = AnyValue()
"""The expected value of a RefEdit that accepts any current value."""


class RefEdit:
    """A ref update from an expected value to a new one.

    Expected None means absent, ANY anything; new None deletes the ref.
    """

    __slots__ = ("expected", "name", "new")

    def __init__(
        self, name: str, new: ObjectId | None, expected: ObjectId | AnyValue | None
    ) -> None:
        self.name = name
        self.new = new
        self.expected = expected

    def __repr__(self) -> str:
        return f"RefEdit({self.name!r}, new={self.new!r}, expected={self.expected!r})"


class Transaction:
    """Objects and the ref updates that make them reachable, written atomically."""

    __slots__ = ("edits", "message", "objects")

    def __init__(
        self,
        objects: Sequence[tuple[ObjectId, bytes]] = (),
        edits: Sequence[RefEdit] = (),
        message: str = "",
    ) -> None:
        self.objects = objects
        self.edits = edits
        self.message = message
