"""Protocols that keep implementations out of higher floors.

Rule: no implementation is imported here. Every implementation passes its test suite in `trace_store.testing`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from trace_store.base.oid import ObjectId
from trace_store.disk.files import Disk


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
