"""Content of any length: one blob, or above 8 MiB a list of blobs.

A `list` object is `["list", {"items": [id, …], "type": "chunks", "size": bytes}]`. Other types of lists (manifests)
have their own fields.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.base.oid import ObjectId, hash_object
from trace_store.objects.codec import (
    LIST,
    MAXIMUM_BLOB_BYTES,
    blob_content,
    chunks_of,
    decode,
    encode,
    encode_blob,
    is_blob,
    is_salted_blob,
    kind_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from typing import Any

    Put = Callable[[bytes], ObjectId]
    Salt = Callable[[bytes], bytes]
    Read = Callable[[bytes], bytes]


class RawContent(bytes):
    """Content that is no text, and so is stored byte for byte: a secret in it is reported, never replaced."""

    __slots__ = ()


class ObjectCollector:
    """Collects the objects of a transaction without duplicates."""

    __slots__ = ("_seen", "objects")

    def __init__(self) -> None:
        self.objects: list[tuple[ObjectId, bytes]] = []
        self._seen: set[bytes] = set()

    def text(self, text: str) -> str:
        """Return the text of a commit message as it may be stored."""
        return text

    def passes(self, names: Collection[str]) -> bool:
        """Return True if names, such as ids, may be stored as they are; else each has to pass `text`."""
        return True

    @property
    def secrets(self) -> Mapping[str, int]:
        """Number of secrets found, by kind; empty if content was not checked."""
        return {}

    @property
    def unchanged_secrets(self) -> Mapping[str, int]:
        """The secrets among them that are stored as they are, by kind."""
        return {}

    @property
    def facts(self) -> Mapping[str, Any]:
        """Metadata for the commit about how its content was collected."""
        return {}

    def mark(self) -> int:
        """Return the current position, for `roll_back`."""
        return len(self.objects)

    def roll_back(self, mark: int) -> None:
        """Drop all objects since a mark."""
        for oid, _ in self.objects[mark:]:
            self._seen.discard(oid)
        del self.objects[mark:]

    def put_object(self, data: bytes) -> ObjectId:
        """Add canonical object bytes and return their id."""
        return self.add(hash_object(data), data)

    def add(self, oid: ObjectId, data: bytes) -> ObjectId:
        """Add canonical object bytes with a known id, and return it."""
        if oid not in self._seen:
            self._seen.add(oid)
            self.objects.append((oid, data))
        return oid

    def content_writer(self, salt: Salt | None) -> Put:
        """Return `put`, or its equivalent for private content with the salts of `salt`."""
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
    """Store content as one blob or as a list of 8 MiB chunks; return its id.

    `salt` returns 16 bytes for a piece of content; without its key, the id cannot be used to guess the content.
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
        ObjectNotFoundError: the blob or a chunk is missing.
        CorruptObjectError: the id does not name content.
    """
    data = read(oid)
    if is_blob(data):
        return blob_content(data)
    if kind_of(data) == LIST:
        fields = decode(data)[1]
        if isinstance(fields, dict) and fields.get("type") == "chunks":
            content = b"".join(blob_content(read(chunk)) for chunk in fields.get("items", ()))
            if len(content) == fields.get("size"):
                return content
    raise errors.CorruptObjectError(f"object {ObjectId(oid)} is not content", oid=ObjectId(oid))


def is_private(oid: bytes, read: Read) -> bool:
    """Return True if content was stored with a salt."""
    data = read(oid)
    return is_salted_blob(read(chunks[0]) if (chunks := chunks_of(data)) else data)


def content_size(oid: bytes, read: Read) -> int:
    """Return the size of content in bytes; the chunks of long content are not read. Raises as `read_content`."""
    data = read(oid)
    fields = decode(data)[1] if kind_of(data) == LIST else None
    if isinstance(fields, dict) and isinstance(size := fields.get("size"), int):
        return size
    return len(read_content(oid, read))


def text_of(content: bytes) -> str:
    """Decode content to text, preserving lone surrogates, as in JSON transcripts."""
    return content.decode("utf-8", "surrogatepass")


def bytes_of(text: str) -> bytes:
    """Encode text as UTF-8, preserving lone surrogates.

    Raises:
        InvalidInputError: the value is not text.
    """
    if not isinstance(text, str):
        raise errors.InvalidInputError(f"text is needed, not {type(text).__name__}")
    return text.encode("utf-8", "surrogatepass")
