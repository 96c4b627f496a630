"""Is this an object? What is taken from elsewhere passes here before it is stored.

Rule: kinds and fields that this version does not know are let through, as long as they are written in the one way.
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
    """Return the kind of an object whose bytes are readable, canonical and, for kinds with a shape, well formed.

    Raises:
        CorruptObjectError: they are not.
    """
    kind = kind_of(data)
    if not is_canonical(data):
        raise errors.CorruptObjectError(f"a {kind} that is not in canonical form")
    if kind == COMMIT:
        Commit.decode(data)
    elif kind == TAG:
        Tag.decode(data)
    elif kind == BLOB and not is_plain_blob(data):
        blob_content(data)
    return kind


def is_beginning(data: bytes) -> bool:
    """Tell whether bytes are the beginning of an object, of which the rest is lacking."""
    import msgpack

    unpacker = msgpack.Unpacker(max_buffer_size=len(data) + 1)
    unpacker.feed(data)
    try:
        unpacker.skip()
    except msgpack.OutOfData:
        return True
    except Exception:  # noqa: BLE001 - whatever it is, it is no object
        return False
    return False
