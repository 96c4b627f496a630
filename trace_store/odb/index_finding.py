"""Many ids looked for in the index of a pack at once: for whoever is about to write them into another."""

from __future__ import annotations

from trace_store.odb.pack_index import FEW_LOOK_UPS, LOOK_UP_BYTES
from trace_store.oid import OID_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.odb.pack_index import PackIndex

WALK_WORTH = 16
"""A look-up takes about as long as going past so many ids."""


def ids_among(index: PackIndex, oids: frozenset[bytes]) -> frozenset[bytes]:
    """Return those of these ids that a pack has, by its index alone.

    Raises:
        CorruptIndexError: the index is damaged.
        StorageError: the disk refuses.
    """
    if not index.ids and len(oids) > max(index.size // LOOK_UP_BYTES, FEW_LOOK_UPS):
        index.hold()
    ids = index.ids
    if not ids or index.objects > WALK_WORTH * len(oids):
        return frozenset(oid for oid in oids if index.find(oid) is not None)
    return oids.intersection([ids[at : at + OID_BYTES] for at in range(0, len(ids), OID_BYTES)])
