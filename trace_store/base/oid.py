"""Object ids (BLAKE3-256 hashes of object bytes), and checks of ids, sizes and hashes.

Rule: only this module hashes. BLAKE3 is specified at https://github.com/BLAKE3-team/BLAKE3-specs; the 32-byte default
output is used everywhere.
"""

from __future__ import annotations

from trace_store import errors

OID_BYTES = 32
HEX_CHARACTERS = 64
MINIMUM_PREFIX = 4
MAXIMUM_CANDIDATES = 16
"""Maximum number of ids that a prefix look-up returns."""
_HEX = frozenset("0123456789abcdef")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from blake3 import blake3
else:

    def blake3(*arguments, **options):
        """Import blake3 on first use: many commands hash nothing."""
        global blake3
        from blake3 import blake3

        return blake3(*arguments, **options)


class ObjectId(bytes):
    """A 32-byte object id; `str()` gives its 64 hex digits."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> ObjectId:
        """Parse 64 lower-case hex digits.

        Raises:
            InvalidInputError: the text is anything else.
        """
        if not is_full_id(text):
            raise errors.InvalidInputError(f"not an object id: {text[:80]!r}", text=text)
        return cls(bytes.fromhex(text))

    @staticmethod
    def is_prefix(text: str) -> bool:
        """Return True for the beginning of an id: 4 to 64 lower-case hex digits."""
        return is_prefix(text)

    def __str__(self) -> str:
        return self.hex()

    def __repr__(self) -> str:
        return f"ObjectId({self.hex()!r})"

    def short(self, length: int = 12) -> str:
        """Return the first `length` hex digits."""
        return self.hex()[:length]


def checked_id(value: object) -> ObjectId:
    """Return a decoded value as an object id.

    Raises:
        TypeError: it is not 32 bytes.
    """
    if not isinstance(value, bytes) or len(value) != OID_BYTES:
        raise TypeError("not an object id")
    return ObjectId(value)


def hash_object(data: bytes) -> ObjectId:
    """Return the id of an object's canonical bytes."""
    return ObjectId(blake3(data).digest())


def digest(data: bytes | memoryview) -> bytes:
    """Return the 32-byte hash of bytes that are not an object."""
    return blake3(data).digest()


def joined_digests(pieces: Iterable[bytes]) -> bytes:
    """Return the concatenated 32-byte hashes of many pieces."""
    # For short pieces, resetting a hasher takes two thirds of the time of creating one.
    hasher = blake3()
    reset, update, digest_of = hasher.reset, hasher.update, hasher.digest
    digests: list[bytes] = []
    for piece in pieces:
        reset()
        update(piece)
        digests.append(digest_of())
    return b"".join(digests)


def keyed_digest(key: bytes, data: bytes) -> bytes:
    """Return the 32-byte keyed hash of `data`; `key` has 32 bytes."""
    return blake3(data, key=key).digest()


def derived_key(key: bytes, purpose: str) -> bytes:
    """Derive an independent 32-byte key for one purpose."""
    return blake3(key, derive_key_context=purpose).digest()


def sha256_hex(data: bytes) -> str:
    """Return the hex SHA-256 of bytes, for folder names of other programs."""
    import hashlib  # rarely needed

    return hashlib.sha256(data).hexdigest()


class Digester:
    """An incremental hash."""

    __slots__ = ("_hash",)

    def __init__(self) -> None:
        self._hash = blake3()

    def update(self, data: bytes) -> None:
        """Add the next piece."""
        self._hash.update(data)

    def digest(self) -> bytes:
        """Return the 32-byte hash of all pieces so far."""
        return self._hash.digest()


def is_full_id(text: str) -> bool:
    """Return True if the text is a full object id: 64 lower-case hex digits."""
    return len(text) == HEX_CHARACTERS and _HEX.issuperset(text)


def is_prefix(text: str) -> bool:
    """Return True for an object id prefix: 4 to 64 lower-case hex digits."""
    return MINIMUM_PREFIX <= len(text) <= HEX_CHARACTERS and _HEX.issuperset(text)


def sha256_base64(data: bytes) -> str:
    """Return the base64 SHA-256 of a script, for a content security policy."""
    import base64  # only exports need these
    import hashlib

    return base64.b64encode(hashlib.sha256(data).digest()).decode()


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
