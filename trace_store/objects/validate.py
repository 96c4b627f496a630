"""Validation of objects from other repositories.

Rule: unknown kinds and fields are accepted if their encoding is canonical.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.objects.codec import (
    BLOB,
    COMMIT,
    TAG,
    blob_content,
    is_canonical,
    is_plain_blob,
    kind_of,
)
from trace_store.objects.commit import Commit, Tag


def check_object(data: bytes) -> str:
    """Return an object's kind if it is valid and canonical.

    Raises:
        CorruptObjectError: it is not.
    """
    kind = kind_of(data)
    if not is_canonical(data):
        raise errors.CorruptObjectError(f"the {kind} is not in canonical form")
    if kind == COMMIT:
        Commit.decode(data)
    elif kind == TAG:
        Tag.decode(data)
    elif kind == BLOB and not is_plain_blob(data):
        blob_content(data)
    return kind


def is_truncated(data: bytes) -> bool:
    """Return True if the bytes are the start of a truncated object."""
    import msgpack

    unpacker = msgpack.Unpacker(max_buffer_size=len(data) + 1)
    unpacker.feed(data)
    try:
        unpacker.skip()
    except msgpack.OutOfData:
        return True
    except Exception:  # noqa: BLE001 - any error means that it is not an object
        return False
    return False
