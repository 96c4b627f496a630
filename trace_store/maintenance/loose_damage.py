"""Damaged loose files: what each is worth, given what leads to its object.

Rule: what is stored in `fast` is promised to nobody until something leads to it, and a loss of power may cut off its
file. So a file that is cut off is no damage to a history when nothing leads to its object, or another copy of that is
sound. Any other damage is.
"""

from __future__ import annotations

from trace_store import errors, maintenance
from trace_store.files import read_file
from trace_store.layout import MAXIMUM_OBJECT_BYTES
from trace_store.maintenance.fsck_objects import ERROR, WARNING, Finding
from trace_store.maintenance.reachability import UNREADABLE, find_roots
from trace_store.objects.validate import is_beginning
from trace_store.odb import compression
from trace_store.odb.loose import DEFLATED, HEAD_BYTES, RAW

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trace_store.maintenance.fsck_objects import ObjectChecks
    from trace_store.oid import ObjectId
    from trace_store.store.handle import Store

_SECTOR = 512
_ZEROS = 16
"""So many zeros at the end of a file, or all of it, are no content that happens to end so."""


def damaged_loose(
    store: Store, objects: ObjectChecks, damaged: Mapping[ObjectId, str]
) -> Iterator[Finding]:
    """Yield what to say of damaged loose files.

    Args:
        store: where they are.
        objects: all other objects, which were checked by now.
        damaged: the ids of theirs, and why each cannot be read.
    """
    wanted = _wanted(store, objects)
    for oid, why in damaged.items():
        content = _content(store, oid)
        detail = maintenance.repair_files.with_explanation(f"loose file: {why}", content)
        if content is None or not _is_cut_off(content):
            yield Finding("object-damaged", ERROR, str(oid), detail)
        elif oid in objects.present:
            detail += "; another copy is sound"
            yield Finding("spare-object-cut-off", WARNING, str(oid), detail)
        elif wanted is None or oid in wanted:
            yield Finding("object-damaged", ERROR, str(oid), detail)
        else:
            detail += "; nothing leads to it: it may have been stored without a sync before the power went"
            yield Finding("unreachable-object-cut-off", WARNING, str(oid), detail)


def _wanted(store: Store, objects: ObjectChecks) -> set[bytes] | None:
    """Return all that anything leads to; None when that cannot be told."""
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


def _is_cut_off(data: bytes) -> bool:
    """Tell whether the bytes of a damaged file are such as a loss of power leaves of one that was not synced.

    That is its beginning, or zeros in place of its end or of a whole sector. Other bytes are other damage.
    """
    if not data[-_ZEROS:].strip(b"\0"):
        return True
    sectors = (data[at : at + _SECTOR] for at in range(0, len(data) - _SECTOR + 1, _SECTOR))
    if not all(sector.strip(b"\0") for sector in sectors):
        return True
    if data[:1] == bytes((DEFLATED,)):
        return len(data) < HEAD_BYTES or compression.is_beginning(data[HEAD_BYTES:])
    return data[:1] == bytes((RAW,)) and is_beginning(data[1:])
