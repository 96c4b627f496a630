"""Which objects may be written where texts were purged."""

from __future__ import annotations

from trace_store.objects.codec import is_content
from trace_store.odb.tombstones import Tombstone, holding, text_error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from trace_store.odb.database import ObjectDatabase
    from trace_store.odb.fingerprints import Fingerprint
    from trace_store.oid import ObjectId


def with_purged_text(
    database: ObjectDatabase, objects: Mapping[ObjectId, bytes]
) -> dict[ObjectId, Fingerprint]:
    """Return which of some objects bring a purged text in, and its fingerprint; what is here already does not."""
    hits = holding(objects, database.purged_texts)
    return {oid: text for oid, text in hits.items() if not database.contains(oid)}


def admit(database: ObjectDatabase, objects: Mapping[ObjectId, bytes]) -> dict[ObjectId, bytes]:
    """Return what may be written of objects that others name already: the rest is reported as purged.

    Content that holds a purged text gets a tombstone of its own, so its absence is explained.

    Raises:
        PurgedError: a commit or tag itself holds a purged text.
        StorageError: the disk refuses.
    """
    if database.purged_texts:
        hits = with_purged_text(database, objects)
        hits = {oid: text for oid, text in hits.items() if oid not in database.purged}
        for oid, text in hits.items():
            if not is_content(objects[oid]):
                raise text_error(oid, text)
        if hits:
            database.tombstones.add(
                Tombstone(oid, text.time, text.by, text.why) for oid, text in hits.items()
            )
            database.look_for_tombstones()
    purged = database.purged
    return {oid: data for oid, data in objects.items() if oid not in purged}
