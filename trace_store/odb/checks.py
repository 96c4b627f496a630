"""Small checks that every place for objects makes."""

from __future__ import annotations

from trace_store import errors
from trace_store.oid import ObjectId, hash_object, is_prefix

MAXIMUM_CANDIDATES = 16
"""How many ids a prefix look-up returns before it stops."""


def check_prefix(prefix: str) -> None:
    """Accept 4 to 64 lower-case hex digits.

    Raises:
        InvalidInputError: the text is anything else.
    """
    if not is_prefix(prefix):
        raise errors.InvalidInputError(
            f"not the beginning of an object id: {prefix[:80]!r}", text=prefix
        )


def check_size(data: bytes, limit: int) -> None:
    """Accept an object that is not too large.

    Raises:
        InvalidInputError: it is.
    """
    if len(data) > limit:
        raise errors.InvalidInputError(f"an object has at most {limit} bytes, not {len(data)}")


def check_hash(oid: bytes, data: bytes, where: str) -> bytes:
    """Return the data when it is what the id names.

    Raises:
        CorruptObjectError: it is not.
    """
    if hash_object(data) != oid:
        raise errors.CorruptObjectError(
            f"object {oid.hex()} is damaged in {where}", oid=ObjectId(oid), path=where
        )
    return data
