"""Content of any length: one blob, or above 8 MiB a list of blobs.

A `list` object is `["list", {"items": [id, …], "type": "chunks", "size": bytes}]`; other types (manifests) use
the same kind with their own fields.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.objects.codec import (
    BLOB,
    LIST,
    MAXIMUM_BLOB_BYTES,
    blob_content,
    decode,
    encode,
    encode_blob,
    kind_of,
)
from trace_store.oid import ObjectId, hash_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    Put = Callable[[bytes], ObjectId]
    Salt = Callable[[bytes], bytes]
    Read = Callable[[bytes], bytes]


class Gathering:
    """Collects the objects of a transaction, each once, and gives their ids."""

    __slots__ = ("_seen", "objects")

    def __init__(self) -> None:
        self.objects: list[tuple[ObjectId, bytes]] = []
        self._seen: set[bytes] = set()

    def text(self, text: str) -> str:
        """Return what is said about a commit as it may be stored in it."""
        return text

    @property
    def secrets(self) -> Mapping[str, int]:
        """How many secrets of each kind were found in what was put; none where nobody looks."""
        return {}

    @property
    def facts(self) -> Mapping[str, Any]:
        """What the commit's metadata have to say of how its contents were gathered."""
        return {}

    def put_object(self, data: bytes) -> ObjectId:
        """Add canonical object bytes and return their id."""
        return self.add(hash_object(data), data)

    def add(self, oid: ObjectId, data: bytes) -> ObjectId:
        """Add canonical object bytes whose id is known already, and return it."""
        if oid not in self._seen:
            self._seen.add(oid)
            self.objects.append((oid, data))
        return oid

    def putting(self, salt: Salt | None) -> Put:
        """Return `put`, or what does the same with private content, whose salts `salt` returns."""
        if salt is None:
            return self.put
        return lambda content: write_content(content, self.put_object, salt)

    def put(self, content: bytes) -> ObjectId:
        """Add content of any length and return the id of its blob or list."""
        if len(content) > MAXIMUM_BLOB_BYTES:
            return write_content(content, self.put_object)
        data = encode_blob(content)
        oid = hash_object(data)
        if oid not in self._seen:
            self._seen.add(oid)
            self.objects.append((oid, data))
        return oid


def write_content(content: bytes, put_object: Put, salt: Salt | None = None) -> ObjectId:
    """Put content as one blob, or in 8 MiB chunks under a list, and return the id to read it by.

    With `salt`, which returns 16 bytes for a content, nobody without its key can confirm a guess of the content.
    """

    def put(piece: bytes) -> ObjectId:
        return put_object(encode_blob(piece, None if salt is None else salt(piece)))

    if len(content) <= MAXIMUM_BLOB_BYTES:
        return put(content)
    chunks = [
        put(content[start : start + MAXIMUM_BLOB_BYTES])
        for start in range(0, len(content), MAXIMUM_BLOB_BYTES)
    ]
    return put_object(encode([LIST, {"items": chunks, "size": len(content), "type": "chunks"}]))


def read_content(oid: bytes, read: Read) -> bytes:
    """Return content written by `write_content`.

    Raises:
        ObjectNotFoundError: the blob, or a chunk of it, is not here.
        CorruptObjectError: the id names something that is not content.
    """
    data = read(oid)
    kind = kind_of(data)
    if kind == BLOB:
        return blob_content(data)
    if kind == LIST:
        fields = decode(data)[1]
        if isinstance(fields, dict) and fields.get("type") == "chunks":
            content = b"".join(blob_content(read(chunk)) for chunk in fields.get("items", ()))
            if len(content) == fields.get("size"):
                return content
    raise errors.CorruptObjectError(f"object {ObjectId(oid)} is not content", oid=ObjectId(oid))


def text_of(content: bytes) -> str:
    """Return content as text. Lone surrogates, which JSON transcripts hold, come back as they were."""
    return content.decode("utf-8", "surrogatepass")


def bytes_of(text: str) -> bytes:
    """Return text as content: UTF-8 in which lone surrogates pass.

    Raises:
        InvalidInputError: it is no text.
    """
    if not isinstance(text, str):
        raise errors.InvalidInputError(f"a text is needed, not {type(text).__name__}")
    return text.encode("utf-8", "surrogatepass")
