"""Since when nothing leads to an object, as far as this working copy has noticed.

Rule: local and derived. A pack says when it was written, which for an object that was packed again is later than what
is asked; so who finds an object unreachable notes the time, and forgets it when something leads to it again. An absent
or damaged file says nothing: objects count as younger then, and stay longer.

    offset  size  field
    0       8     TRACEAGE
    8       40 n  id, and milliseconds as u64, little-endian; by id
    …       32    blake3-256 of all before
"""

from __future__ import annotations

import struct

from trace_store.errors import StorageError
from trace_store.files import read_file, replace_file
from trace_store.oid import OID_BYTES, ObjectId, digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from trace_store.store import Store

MAGIC = b"TRACEAGE"
_RECORD = struct.Struct(f"<{OID_BYTES}sQ")


def load_ages(store: Store) -> dict[ObjectId, int]:
    """Return since when each object is known to be unreachable, in milliseconds."""
    try:
        data = read_file(store.disk, store.layout.ages_file) or b""
    except StorageError:
        return {}
    body, checksum = data[:-OID_BYTES], data[-OID_BYTES:]
    records = body[len(MAGIC) :]
    if not body.startswith(MAGIC) or digest(body) != checksum or len(records) % _RECORD.size:
        return {}
    return {ObjectId(oid): time for oid, time in _RECORD.iter_unpack(records)}


def save_ages(store: Store, ages: Mapping[ObjectId, int]) -> None:
    """Replace what is noted. That it cannot be written does not matter."""
    if ages == load_ages(store):
        return
    body = MAGIC + b"".join(_RECORD.pack(oid, ages[oid]) for oid in sorted(ages))
    try:
        replace_file(
            store.disk,
            store.layout.ages_file,
            body + digest(body),
            durable=False,
            scratch=store.layout.tmp_dir,
        )
    except StorageError:
        return
