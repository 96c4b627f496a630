"""Objects in memory: the contract in its smallest form."""

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
    """Nothing is purged from memory."""

    def __init__(self) -> None:
        self._objects: dict[bytes, bytes] = {}

    def read(self, oid: bytes) -> bytes:
        """Return an object's canonical bytes.

        Raises:
            ObjectNotFoundError: it is not here.
        """
        try:
            return self._objects[oid]
        except KeyError:
            raise errors.ObjectNotFoundError(f"no object {oid.hex()}", oid=ObjectId(oid)) from None

    def read_many(self, oids: Iterable[bytes]) -> Iterator[tuple[ObjectId, bytes]]:
        """Yield (id, bytes) in the order asked for."""
        return ((ObjectId(oid), self.read(oid)) for oid in oids)

    def read_data(self, oids: Iterable[bytes]) -> Iterator[bytes]:
        """Yield bytes in the order asked for."""
        return map(self.read, oids)

    def contains(self, oid: bytes) -> bool:
        """Tell whether the object is here."""
        return oid in self._objects

    def write(self, data: bytes) -> ObjectId:
        """Store canonical object bytes and return their id."""
        check_size(data, MAXIMUM_OBJECT_BYTES)
        oid = hash_object(data)
        self._objects.setdefault(oid, bytes(data))
        return oid

    def purged_key(self) -> str:
        """Return nothing, since nothing was purged."""
        return ""

    def returned(self) -> list[ObjectId]:
        """Return nothing, since nothing was purged."""
        return []

    def resolve_prefix(self, prefix: str) -> list[ObjectId]:
        """Return the ids that begin with these hex digits, at most 16, sorted."""
        check_prefix(prefix)
        found = sorted(oid for oid in self._objects if oid.hex().startswith(prefix))
        return [ObjectId(oid) for oid in found[:MAXIMUM_CANDIDATES]]

    def iterate(self) -> Iterator[ObjectId]:
        """Yield the id of every object once, in the order they were written."""
        return (ObjectId(oid) for oid in list(self._objects))
