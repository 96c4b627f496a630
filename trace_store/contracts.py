"""The small contracts between floors, so that nobody above names an implementation.

Rule: protocols and plain values only. An implementation must pass its suite in `trace_store.testing`.
"""

from __future__ import annotations

from trace_store.oid import ObjectId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Protocol

    from trace_store.files import Disk

    class ObjectReader(Protocol):
        """Objects by id."""

        def read(self, oid: bytes) -> bytes:
            """Return the object's canonical bytes, hash-checked.

            Raises:
                ObjectNotFoundError: no such object here.
                CorruptObjectError: it is here, but its bytes are damaged.
            """
            ...

        def contains(self, oid: bytes) -> bool:
            """Tell whether the object is here."""
            ...

    class ObjectWriter(Protocol):
        """Where objects are put. There is no delete."""

        def write(self, data: bytes) -> ObjectId:
            """Store canonical object bytes and return their id; writing again is harmless."""
            ...

    class Patience(Protocol):
        """Waits for a lock on behalf of somebody who wants to know for whom."""

        def lock(self, disk: Disk, fd: int, path: str) -> None:
            """Take the exclusive lock of an open file, however long that takes."""
            ...

        def tell(self, holder: object) -> None:
            """Say who holds the lock."""
            ...

    class RefReader(Protocol):
        """Names of objects."""

        def read(self, name: str) -> ObjectId | None:
            """Return this working copy's value of a full ref name, or None when it has none."""
            ...

        def tips(self, name: str) -> tuple[ObjectId, ...]:
            """Return all maximal values; more than one means that the ref is diverged."""
            ...

        def iterate(self, prefix: str = "refs/") -> Iterator[tuple[str, ObjectId]]:
            """Yield (name, value) of all refs under a prefix, sorted by name."""
            ...


DURABLE = "durable"
BATCH = "batch"
FAST = "fast"
DURABILITIES = (DURABLE, BATCH, FAST)
"""What an acknowledged transaction survives: loss of power; the same after a `sync`; the end of the process."""


class _Any:
    """The type of ANY."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "ANY"


ANY = _Any()
"""As the expected value of a RefEdit: whatever stands there."""


class RefEdit:
    """One ref's move: from an expected value (None: absent, ANY: whatever) to a new one (None: deleted)."""

    __slots__ = ("expected", "name", "new")

    def __init__(self, name: str, new: ObjectId | None, expected: ObjectId | _Any | None) -> None:
        self.name = name
        self.new = new
        self.expected = expected

    def __repr__(self) -> str:
        return f"RefEdit({self.name!r}, new={self.new!r}, expected={self.expected!r})"


class Transaction:
    """What becomes durable together: new objects, and the ref moves that make them reachable."""

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
