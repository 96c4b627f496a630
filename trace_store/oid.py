"""Object ids: the blake3-256 of an object's bytes.

Rule: this is the only module that hashes. blake3 is specified at
https://github.com/BLAKE3-team/BLAKE3-specs; the 32-byte default output is used everywhere.
"""

from __future__ import annotations

from trace_store import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

OID_BYTES = 32
HEX_CHARACTERS = 64
MINIMUM_PREFIX = 4
_HEX = frozenset("0123456789abcdef")


TYPE_CHECKING = False
if TYPE_CHECKING:
    from blake3 import blake3
else:

    def blake3(*arguments, **options):
        """Import blake3, which takes its place here, when something is hashed first: many commands hash nothing."""
        global blake3
        from blake3 import blake3

        return blake3(*arguments, **options)


class ObjectId(bytes):
    """The 32-byte name of an object; `str()` gives its 64 hex characters."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> ObjectId:
        """Return the id written as 64 lower-case hex characters.

        Raises:
            InvalidInputError: the text is anything else.
        """
        if not is_full_id(text):
            raise errors.InvalidInputError(f"not an object id: {text[:80]!r}", text=text)
        return cls(bytes.fromhex(text))

    def __str__(self) -> str:
        return self.hex()

    def __repr__(self) -> str:
        return f"ObjectId({self.hex()!r})"

    def short(self, length: int = 12) -> str:
        """Return the first `length` hex characters, for people."""
        return self.hex()[:length]


def hash_object(data: bytes) -> ObjectId:
    """Return the id of an object's canonical bytes."""
    return ObjectId(blake3(data).digest())


def digest(data: bytes | memoryview) -> bytes:
    """Return the 32-byte hash of bytes that are not an object (a file, a prefix chain)."""
    return blake3(data).digest()


def joined_digests(pieces: Iterable[bytes]) -> bytes:
    """Return the 32-byte hashes of many pieces, one after the other."""
    # One hasher begun anew costs two thirds of one made for each piece, where these are short.
    hasher = blake3()
    reset, update, digest_of = hasher.reset, hasher.update, hasher.digest
    found: list[bytes] = []
    for piece in pieces:
        reset()
        update(piece)
        found.append(digest_of())
    return b"".join(found)


def keyed_digest(key: bytes, data: bytes) -> bytes:
    """Return the 32-byte keyed hash of `data`; `key` has 32 bytes."""
    return blake3(data, key=key).digest()


def derived_key(key: bytes, purpose: str) -> bytes:
    """Return a key of 32 bytes for one purpose, from which nothing is learned of the other."""
    return blake3(key, derive_key_context=purpose).digest()


def sha256_hex(data: bytes) -> str:
    """Return the SHA-256 of bytes in hex: by it other programs name folders. Nothing of ours has it for a name."""
    import hashlib  # which few need

    return hashlib.sha256(data).hexdigest()


class Digester:
    """A running hash, for bytes that come in pieces."""

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
    """Tell whether the text is an object id written out: 64 lower-case hex characters."""
    return len(text) == HEX_CHARACTERS and _HEX.issuperset(text)


def is_prefix(text: str) -> bool:
    """Tell whether the text may abbreviate an object id: 4 to 64 lower-case hex characters."""
    return MINIMUM_PREFIX <= len(text) <= HEX_CHARACTERS and _HEX.issuperset(text)


def sha256_base64(data: bytes) -> str:
    """Return the SHA-256 of bytes in base64, by which a content security policy names a script."""
    import base64  # these two are for exports alone
    import hashlib

    return base64.b64encode(hashlib.sha256(data).digest()).decode()
