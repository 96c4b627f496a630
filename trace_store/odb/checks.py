"""Checks shared by all object stores."""

from __future__ import annotations

from trace_store import errors
from trace_store.oid import ObjectId, hash_object, is_prefix

MAXIMUM_CANDIDATES = 16
"""Maximum number of ids that a prefix look-up returns."""


def check_prefix(prefix: str) -> None:
    """Check that a prefix has 4 to 64 lower-case hex digits.

    Raises:
        InvalidInputError: it does not.
    """
    if not is_prefix(prefix):
        raise errors.InvalidInputError(f"not an object id prefix: {prefix[:80]!r}", text=prefix)


def check_size(data: bytes, limit: int) -> None:
    """Check the size of an object.

    Raises:
        InvalidInputError: it is too large.
    """
    if len(data) > limit:
        raise errors.InvalidInputError(
            f"the object has {len(data)} bytes, over the limit of {limit}"
        )


def check_hash(oid: bytes, data: bytes, where: str) -> bytes:
    """Return the data if it matches the id.

    Raises:
        CorruptObjectError: it does not.
    """
    if hash_object(data) != oid:
        raise errors.CorruptObjectError(
            f"object {oid.hex()} is damaged in {where}", oid=ObjectId(oid), path=where
        )
    return data
