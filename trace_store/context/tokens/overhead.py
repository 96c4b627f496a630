"""Token counts of messages, including framing.

Text is counted. Framing follows OpenAI's published rule for chat messages. What only the provider can count is
estimated and reported separately. All numbers but those of media are tokens of the tokenizer's encoding, so a model's
factor (see `models`) applies to their sum.

    message        3, and 1 for its role; with a name 1 and the name          (OpenAI cookbook)
    tool call      12 plus name and arguments: in recorded usage of 1,546 calls of gpt-5 models the excess
                   over the text was 3 to 33 per item
    tool result    4, as a message of its own; a message of results alone costs nothing itself
    whole request  3, for the start of the reply                              (OpenAI cookbook)
    media          an image by its pixels, a document by its pages, a recording by its length, by the rule of the
                   model's provider: see `providers.media_tokens`
    reasoning      its text; with only a signature, an estimate from its length, since a signature contains
                   the encrypted text as base64
    opaque         its bytes as text, base64 in it by its content; an estimate
"""

from __future__ import annotations

import os
import struct
import zlib

from trace_store import errors
from trace_store.base.frozen import value
from trace_store.base.oid import digest, hash_object
from trace_store.context.tokens.tokenizer import Tokenizer, estimate_from_bytes
from trace_store.disk.files import APPEND, CREATE, Disk, read_file, replace_file
from trace_store.objects.codec import encode_blob
from trace_store.objects.content import bytes_of, read_content
from trace_store.objects.message import Message, purged_part
from trace_store.objects.parts import (
    Data,
    Image,
    Opaque,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from trace_store.providers.media_tokens import CLAUDE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeAlias

    from trace_store.providers.media_tokens import MediaRule

    Read: TypeAlias = Callable[[bytes], bytes]


_FIELDS = struct.Struct(">32sII")
_CHECKED_BYTES = _FIELDS.size - 4
_MAXIMUM_COUNT = (1 << 32) - 1
_ATTEMPTS = 100


class TokenMemo:
    """Token counts in one encoding, read from the file on first use.

    Several processes may append to a file; each batch is one write. Later additions of others are not noticed.
    """

    def __init__(
        self,
        encoding: str,
        disk: Disk | None = None,
        path: str = "",
        *,
        read_back: bool = True,
    ) -> None:
        """Create a cache.

        Args:
            encoding: the encoding of the counts.
            disk: None keeps the counts only in memory.
            path: the file.
            read_back: False appends without reading the file, for a few new counts: the file grows with the store, but
                the cost of one message must not.
        """
        self.encoding = encoding
        self._disk = disk
        self._path = path
        # A seed other than 0, so that a run of zeros is invalid, and different for each encoding.
        self._seed = zlib.crc32(b"token counts: " + encoding.encode())
        self._counts: dict[bytes, int] | None = None if read_back else {}
        self._pending: dict[bytes, int] = {}
        self._damaged = False

    def __repr__(self) -> str:
        return f"TokenMemo({self.encoding!r}, path={self._path!r})"

    def __len__(self) -> int:
        return len(self._load_counts())

    def get(self, oid: bytes) -> int | None:
        """Return the count of the content with this id, or None."""
        return self._load_counts().get(oid)

    def put(self, oid: bytes, count: int) -> None:
        """Add a count; `flush` saves it."""
        known = self._load_counts()
        if oid not in known and 0 <= count <= _MAXIMUM_COUNT:
            known[bytes(oid)] = count
            self._pending[bytes(oid)] = count

    def flush(self) -> int:
        """Append new counts to the file with one write; return their number.

        Disk errors are ignored: the counts stay in memory until the next flush.
        """
        if self._disk is None or not self._pending:
            return 0
        try:
            if not self._append(self._disk):
                return 0
        except errors.StorageError:
            return 0
        written = len(self._pending)
        self._pending.clear()
        return written

    def _load_counts(self) -> dict[bytes, int]:
        if self._counts is None:
            self._counts = self._read()
        return self._counts

    def _read(self) -> dict[bytes, int]:
        counts: dict[bytes, int] = {}
        try:
            data = read_file(self._disk, self._path) if self._disk is not None else None
        except errors.StorageError:
            # A link, a directory or too large: neither read it nor append to it.
            self._damaged = True
            return counts
        if not data:
            return counts
        seed, size, checked = self._seed, _FIELDS.size, _CHECKED_BYTES
        whole = len(data) - len(data) % size
        self._damaged = whole != len(data)
        start = 0
        for oid, count, crc in _FIELDS.iter_unpack(memoryview(data)[:whole]):
            if zlib.crc32(data[start : start + checked], seed) != crc:
                self._damaged = True
                break
            counts[oid] = count
            start += size
        return counts

    def _records(self, counts: dict[bytes, int]) -> bytes:
        records = bytearray()
        for oid, count in counts.items():
            checked = _FIELDS.pack(oid, count, 0)[:_CHECKED_BYTES]
            records += checked + zlib.crc32(checked, self._seed).to_bytes(4)
        return bytes(records)

    def _append(self, disk: Disk) -> bool:
        """Append new counts, or rewrite a damaged file; return True if all were written."""
        for _ in range(_ATTEMPTS):
            try:
                fd = self._open(disk)
            except errors.StorageError:
                self._rewrite(disk)  # replaces a link
                return True
            try:
                # Without the lock, an incomplete batch of another process would look like damage.
                disk.lock(fd)
                if disk.identity(fd) != disk.identity(self._path):
                    continue  # another process has replaced it
                if self._damaged:
                    self._read()
                if self._damaged or disk.size(fd) % _FIELDS.size:
                    self._rewrite(disk)
                    return True
                data = self._records(self._pending)
                # A short write leaves a torn record, which the next flush repairs.
                self._damaged = disk.write(fd, data) != len(data)
                return not self._damaged
            finally:
                disk.close(fd)  # which releases the lock
        raise errors.StorageError("the file of token counts keeps changing", path=self._path)

    def _rewrite(self, disk: Disk) -> None:
        # Read again, since another process may have added counts.
        counts = {**self._read(), **self._load_counts()}
        replace_file(disk, self._path, self._records(counts), durable=False)
        self._damaged = False

    def _open(self, disk: Disk) -> int:
        disk.make_directory(os.path.dirname(self._path))  # refuses a link
        fd = disk.open(self._path, APPEND)
        if fd is None:
            fd = disk.open(self._path, CREATE)
        if fd is None:  # another process has created it
            fd = disk.open(self._path, APPEND)
        if fd is None:
            raise errors.StorageError("the file of token counts keeps changing", path=self._path)
        return fd


MESSAGE_TOKENS = 4
NAME_TOKENS = 1
CALL_TOKENS = 12
RESULT_TOKENS = 4
_COUNTED_AS_TEXT = (Text.type, Data.type, ToolCall.type, Reasoning.type)


@value
class MessageTokens:
    """The tokens of a message, split by how they were counted.

    Attributes:
        text: counted text; exact if the tokenizer is the model's own.
        framing: framing, by rule.
        guessed: estimates for signatures and opaque parts.
        media: images, documents and recordings, in tokens of the model.
    """

    text: int = 0
    framing: int = 0
    guessed: int = 0
    media: int = 0

    @property
    def total(self) -> int:
        """The sum."""
        return self.text + self.framing + self.guessed + self.media

    def __add__(self, other: MessageTokens) -> MessageTokens:
        return MessageTokens(
            self.text + other.text,
            self.framing + other.framing,
            self.guessed + other.guessed,
            self.media + other.media,
        )


def count_message(
    tokenizer: Tokenizer, message: Message, media: MediaRule = CLAUDE
) -> MessageTokens:
    """Return the tokens of a message with its content."""
    tokens = _count_framing(
        tokenizer, message.name, [isinstance(part, ToolResult) for part in message.parts]
    )
    for part in message.parts:
        tokens += _count_part(tokenizer, part, media)
    return tokens


def count_stored_message(
    tokenizer: Tokenizer,
    stored: Mapping[str, Any],
    read: Read,
    memo: TokenMemo,
    purged: frozenset[bytes] = frozenset(),
    media: MediaRule = CLAUDE,
) -> MessageTokens:
    """Return the tokens of a stored message, which equal those of the loaded one.

    Content with a cached count is not read. New counts are added to the cache; the caller flushes it.

    Args:
        tokenizer: the tokenizer, of the cache's encoding.
        stored: the result of `objects.message.store_message`.
        read: returns an object's bytes by id.
        memo: cached counts by content id.
        purged: ids of purged content, whose placeholder is counted.
        media: the rule for media.

    Raises:
        ObjectNotFoundError: content is missing.
        CorruptObjectError: content is damaged.
    """
    counter = _StoredCounter(tokenizer, read, memo, purged, media)
    parts = stored["parts"]
    for part in parts:
        counter.count_part(part)
    return counter.sums(
        _count_framing(
            tokenizer, stored.get("name", ""), [part["type"] == ToolResult.type for part in parts]
        )
    )


def content_text(content: bytes) -> str:
    """Return content as text for counting; invalid bytes become U+FFFD."""
    try:
        return content.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return content.decode("utf-8", "replace")


def _count_framing(tokenizer: Tokenizer, name: str, is_result: list[bool]) -> MessageTokens:
    """Return the tokens of a message without its parts, given which of them are tool results."""
    named = NAME_TOKENS + tokenizer.count(name) if name else 0
    results_alone = bool(is_result) and all(is_result)
    return MessageTokens(framing=named + (0 if results_alone else MESSAGE_TOKENS))


def _count_part(tokenizer: Tokenizer, part: Part, media: MediaRule) -> MessageTokens:
    if isinstance(part, Text):
        return MessageTokens(text=tokenizer.count(part.text))
    if isinstance(part, ToolCall):
        text = tokenizer.count(part.name) + tokenizer.count(part.arguments)
        return MessageTokens(text=text, framing=CALL_TOKENS)
    if isinstance(part, ToolResult):
        tokens = MessageTokens(framing=RESULT_TOKENS)
        for inner in part.content:
            tokens += _count_part(tokenizer, inner, media)
        return tokens
    if isinstance(part, Reasoning):
        text = tokenizer.count(part.text)
        signature = (part.signature or "").encode("utf-8", "surrogatepass")
        return MessageTokens(text=text, guessed=0 if text else _estimate_signature(len(signature)))
    if isinstance(part, Image):
        return MessageTokens(media=media.image_tokens(part.data))
    if isinstance(part, Opaque):
        rest, by_rule = media.without_base64(content_text(part.data))
        return MessageTokens(guessed=tokenizer.count(rest), media=by_rule)
    return MessageTokens()


def _estimate_signature(size: int) -> int:
    """Return the tokens of `size` characters of base64 of encrypted text."""
    return estimate_from_bytes(size * 3 // 4)


class _StoredCounter:
    """Counts stored parts, using the cache."""

    __slots__ = (
        *("_media", "_memo", "_purged", "_read", "_tokenizer"),
        *("framing", "guessed", "media", "text"),
    )

    def __init__(
        self,
        tokenizer: Tokenizer,
        read: Read,
        memo: TokenMemo,
        purged: frozenset[bytes],
        media: MediaRule,
    ) -> None:
        self._tokenizer = tokenizer
        self._read = read
        self._memo = memo
        self._purged = purged
        self._media = media
        self.text = self.framing = self.guessed = self.media = 0

    def sums(self, more: MessageTokens) -> MessageTokens:
        """Return the tokens of all counted parts, and `more`."""
        own = MessageTokens(self.text, self.framing, self.guessed, self.media)
        return own + more

    def count_part(self, part: Mapping[str, Any]) -> None:
        """Add the tokens of a part."""
        type_ = part["type"]
        if self._purged and not self._purged.isdisjoint((part.get("blob"), part.get("url"))):
            self._count_purged(part)
        elif type_ == Image.type:
            self._count_image(part)
        elif type_ == ToolResult.type:
            self.framing += RESULT_TOKENS
            for inner in part["parts"]:
                self.count_part(inner)
        elif type_ not in _COUNTED_AS_TEXT:
            # Opaque parts, and parts of later versions: only their bytes are known.
            if "blob" in part:
                self._count_opaque(part["blob"])
        else:
            self._count_text(type_, part)

    def _count_text(self, type_: str, part: Mapping[str, Any]) -> None:
        text = self._count_content(part["blob"]) if "blob" in part else 0
        self.text += text
        if type_ == ToolCall.type:
            self.text += self._count_name(part["name"])
            self.framing += CALL_TOKENS
        elif type_ == Reasoning.type and not text:
            signature = part.get("signature")
            if signature is not None and signature not in self._purged:
                size = len(read_content(signature, self._read))
                self.guessed += _estimate_signature(size)

    def _count_image(self, part: Mapping[str, Any]) -> None:
        if "blob" not in part:
            self.media += self._media.image_tokens()
        else:
            kind = self._kind("image")
            self.media += self._cached_count(kind, part["blob"], self._media.image_tokens)

    def _kind(self, what: str) -> str:
        """Return the name of a cached count; that of Claude's rule, which most models share, has no rule."""
        rule = self._media.name
        return what if rule == CLAUDE.name else f"{what} {rule}"

    def _count_opaque(self, oid: bytes) -> None:
        split = self._media.without_base64
        self.guessed += self._cached_count(
            "opaque", oid, lambda data: self._tokenizer.count(split(content_text(data))[0])
        )
        self.media += self._cached_count(
            self._kind("opaque media"), oid, lambda data: split(content_text(data))[1]
        )

    def _cached_count(self, kind: str, oid: bytes, count_data: Callable[[bytes], int]) -> int:
        """Return a count for content that is not text; its cache key differs from that of the same content as text."""
        key = digest(kind.encode() + oid)
        count = self._memo.get(key)
        if count is None:
            count = count_data(read_content(oid, self._read))
            self._memo.put(key, count)
        return count

    def _count_purged(self, part: Mapping[str, Any]) -> None:
        try:
            self._read(part["blob"] if part.get("blob") in self._purged else part["url"])
        except errors.PurgedError as error:
            shown = _count_part(self._tokenizer, purged_part(part, error), self._media)
            self.text += shown.text
            self.framing += shown.framing
            self.guessed += shown.guessed
            self.media += shown.media

    def _count_name(self, name: str) -> int:
        """Return the tokens of a tool's name, cached under the id that it would have as content.

        Otherwise the tokenizer would be loaded just for names when all content is cached.
        """
        oid = hash_object(encode_blob(bytes_of(name)))
        count = self._memo.get(oid)
        if count is None:
            count = self._tokenizer.count(name)
            self._memo.put(oid, count)
        return count

    def _count_content(self, oid: bytes) -> int:
        count = self._memo.get(oid)
        if count is None:
            count = self._tokenizer.count(content_text(read_content(oid, self._read)))
            self._memo.put(oid, count)
        return count
