"""An object store in memory."""

from __future__ import annotations

from trace_store import errors
from trace_store.layout import MAXIMUM_OBJECT_BYTES
from trace_store.odb.checks import MAXIMUM_CANDIDATES, check_prefix, check_size
from trace_store.oid import ObjectId, hash_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class MemoryObjects:
    """Objects that last as long as the process."""

    __slots__ = ("_objects",)

    purged: frozenset[bytes] = frozenset()
    """Nothing is ever purged from memory."""

    def __init__(self) -> None:
        self._objects: dict[bytes, bytes] = {}

    def read(self, oid: bytes) -> bytes:
        """Return an object's canonical bytes.

        Raises:
            ObjectNotFoundError: the object is missing.
        """
        try:
            return self._objects[oid]
        except KeyError:
            raise errors.ObjectNotFoundError(f"no object {oid.hex()}", oid=ObjectId(oid)) from None

    def read_many(self, oids: Iterable[bytes]) -> Iterator[tuple[ObjectId, bytes]]:
        """Yield (id, bytes) in the given order."""
        return ((ObjectId(oid), self.read(oid)) for oid in oids)

    def read_data(self, oids: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the bytes in the given order."""
        return map(self.read, oids)

    def contains(self, oid: bytes) -> bool:
        """Return True if the object exists."""
        return oid in self._objects

    def write(self, data: bytes) -> ObjectId:
        """Store canonical object bytes and return their id."""
        check_size(data, MAXIMUM_OBJECT_BYTES)
        oid = hash_object(data)
        self._objects.setdefault(oid, bytes(data))
        return oid

    def purged_key(self) -> str:
        """Return "": nothing was purged."""
        return ""

    def reappeared(self) -> list[ObjectId]:
        """Return []: nothing was purged."""
        return []

    def resolve_prefix(self, prefix: str) -> list[ObjectId]:
        """Return the ids that start with these hex digits, sorted, at most 16."""
        check_prefix(prefix)
        matches = sorted(oid for oid in self._objects if oid.hex().startswith(prefix))
        return [ObjectId(oid) for oid in matches[:MAXIMUM_CANDIDATES]]

    def iterate(self) -> Iterator[ObjectId]:
        """Yield the id of every object in the order of writing."""
        return (ObjectId(oid) for oid in list(self._objects))
