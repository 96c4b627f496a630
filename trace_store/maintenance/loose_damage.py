"""Damaged loose files, classified by what links to their objects.

An object stored with durability `fast` may be truncated by a power cut before anything links to it. A truncated
file is harmless if its object is unreachable or has another sound copy. Any other damage is an error.
"""

from __future__ import annotations

from trace_store import errors, maintenance
from trace_store.files import read_file
from trace_store.layout import MAXIMUM_OBJECT_BYTES
from trace_store.maintenance.fsck_objects import ERROR, WARNING, Finding
from trace_store.maintenance.reachability import UNREADABLE, find_roots
from trace_store.odb import compression
from trace_store.odb.loose import COMPRESSED, HEAD_BYTES, RAW
from trace_store.odb.verify import is_truncated

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trace_store.maintenance.fsck_objects import ObjectChecks
    from trace_store.oid import ObjectId
    from trace_store.store.handle import Store

_SECTOR = 512
_ZEROS = 16
"""This many zeros at the end of a file are not content."""


def damaged_loose(
    store: Store, objects: ObjectChecks, damaged: Mapping[ObjectId, str]
) -> Iterator[Finding]:
    """Yield the findings for damaged loose files.

    Args:
        store: the repository.
        objects: all other objects, already checked.
        damaged: damaged objects with the reason.
    """
    needed = _reachable(store, objects)
    for oid, why in damaged.items():
        content = _content(store, oid)
        detail = maintenance.repair_files.with_explanation(f"loose file: {why}", content)
        if content is None or not _is_truncated(content):
            yield Finding("object-damaged", ERROR, str(oid), detail)
        elif oid in objects.present:
            detail += "; another copy is sound"
            yield Finding("spare-object-cut-off", WARNING, str(oid), detail)
        elif needed is None or oid in needed:
            yield Finding("object-damaged", ERROR, str(oid), detail)
        else:
            detail += "; it is unreachable, and was probably not synced before a power cut"
            yield Finding("unreachable-object-cut-off", WARNING, str(oid), detail)


def _reachable(store: Store, objects: ObjectChecks) -> set[bytes] | None:
    """Return everything reachable, or None if that is unknown."""
    try:
        roots = find_roots(store)
    except errors.TraceError:
        return None
    if any(obstacle.reason == UNREADABLE for obstacle in roots.obstacles):
        return None
    named: set[bytes] = {*roots.named, *roots.logged()}
    return named | objects.reachable(named)


def _content(store: Store, oid: ObjectId) -> bytes | None:
    try:
        return read_file(store.disk, store.layout.loose_file(oid.hex()), limit=MAXIMUM_OBJECT_BYTES)
    except errors.StorageError:
        return None


def _is_truncated(data: bytes) -> bool:
    """Return True if the damage is what a power cut leaves of an unsynced file.

    That is a prefix of it, or zeros at its end or in a whole sector.
    """
    if not data[-_ZEROS:].strip(b"\0"):
        return True
    sectors = (data[at : at + _SECTOR] for at in range(0, len(data) - _SECTOR + 1, _SECTOR))
    if not all(sector.strip(b"\0") for sector in sectors):
        return True
    if data[:1] == bytes((COMPRESSED,)):
        return len(data) < HEAD_BYTES or compression.is_truncated(data[HEAD_BYTES:])
    return data[:1] == bytes((RAW,)) and is_truncated(data[1:])
