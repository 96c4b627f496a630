"""Protocols and plain values shared by several layers.

Rule: no implementation is imported here. Every implementation passes its test suite in `trace_store.testing`.
"""

from __future__ import annotations

from trace_store.oid import ObjectId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Protocol

    from trace_store.files import Disk

    class ObjectReader(Protocol):
        """Reads objects by id."""

        def read(self, oid: bytes) -> bytes:
            """Return the object's canonical bytes, hash-checked.

            Raises:
                ObjectNotFoundError: the object is missing.
                CorruptObjectError: its bytes are damaged.
            """
            ...

        def contains(self, oid: bytes) -> bool:
            """Return True if the object exists."""
            ...

    class LockWaiter(Protocol):
        """Waits for a file lock and reports who holds it."""

        def lock(self, disk: Disk, fd: int, path: str) -> None:
            """Take the exclusive lock of an open file, waiting as long as needed."""
            ...

        def tell(self, holder: object) -> None:
            """Report who holds the lock."""
            ...

    class RefReader(Protocol):
        """Reads refs."""

        def read(self, name: str) -> ObjectId | None:
            """Return this working copy's value of a full ref name, or None."""
            ...

        def tips(self, name: str) -> tuple[ObjectId, ...]:
            """Return all tips of a ref; more than one means that it has diverged."""
            ...

        def iterate(self, prefix: str = "refs/") -> Iterator[tuple[str, ObjectId]]:
            """Yield (name, value) of all refs under a prefix, sorted by name."""
            ...


DURABLE = "durable"
BATCH = "batch"
FAST = "fast"
DURABILITIES = (DURABLE, BATCH, FAST)
"""What an acknowledged transaction survives: power loss; power loss after `sync`; the end of the process."""


class _Any:
    """The type of ANY."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "ANY"


ANY = _Any()
"""The expected value of a RefEdit that accepts any current value."""


class RefEdit:
    """A ref update from an expected value to a new one.

    Expected None means absent, ANY anything; new None deletes the ref.
    """

    __slots__ = ("expected", "name", "new")

    def __init__(self, name: str, new: ObjectId | None, expected: ObjectId | _Any | None) -> None:
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
