"""Records of transcripts, and sources: the raw records of a commit.

Invariant: records are restored byte for byte. A source is the raw records, one a line, without what the commit's
messages already hold. Where a record contains the content of one of the commit's own messages, the source has a
reference instead: NUL, the content number and the letter of the encoding, such as `3j`, and NUL. Contents are numbered
in the order of `objects.message.part_blobs`. A newline inside a record, as in a pretty-printed document, becomes two
NULs. JSON never has a raw NUL, so this is unambiguous. Encodings:

    j   JSON string as JavaScript writes it
    a   JSON string in ASCII as Python writes it
    b   base64 as a JSON string
    r   raw bytes
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from json.encoder import encode_basestring, encode_basestring_ascii

from trace_store import errors
from trace_store.base.frozen import mutable
from trace_store.objects.commit import Commit
from trace_store.objects.content import bytes_of, read_content, text_of
from trace_store.objects.message import part_blobs
from trace_store.objects.parts import Image, Opaque, Part, Reasoning, Text, ToolCall, ToolResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SOURCE_KEY = "source"
MINIMUM_BYTES = 40
"""Shorter encodings stay in the record: the reference would hardly be shorter."""

Read = Callable[[bytes], bytes]
Content = str | bytes

# The encodings to try, in order, by a content's usual encoding. A tool call's arguments, for example, are raw JSON in
# some formats and a JSON string in others.
_ENCODINGS = {"j": "ja", "b": "b", "r": "rja"}

_HEAD_BYTES = 48
_MAXIMUM_MISSES = 16

_MARK = b"\x00"
_NEWLINE = b"\x00\x00"


@mutable
class Record:
    """One JSON object of a file.

    Attributes:
        line: line number.
        offset, length: byte range in the file.
        raw: its bytes as stored.
        data: the object.
        parts: the message parts that it added, set while a plan is built.
        filtered: True if `raw` differs from the file, because secrets were redacted.
    """

    line: int
    offset: int
    length: int
    raw: bytes
    data: dict[str, Any]
    parts: tuple[Part, ...] = ()
    filtered: bool = False


def encode_source(records: Sequence[Record], parts: Sequence[Part]) -> bytes:
    """Return the source of a commit.

    Args:
        records: records with the parts that each added.
        parts: all parts of the commit's messages, in storage order.
    """
    numbers = content_numbers(parts)
    return b"\n".join(
        [compact_record(record, numbers).replace(b"\n", _NEWLINE) for record in records]
    )


def content_numbers(parts: Sequence[Part]) -> dict[int, int]:
    """Return the first content number of each part, by the part's `id()`."""
    numbers: dict[int, int] = {}
    count = 0
    for part in parts:
        numbers[id(part)] = count
        count += 1 if type(part) is Text else _content_count(part)
    return numbers


def source_records(commit: Commit, read: Read, words: Sequence[bytes] = ()) -> list[bytes]:
    """Return the raw records of a commit; empty if they were not stored.

    Args:
        commit: the commit.
        read: returns an object's bytes by id.
        words: return only records with one of these outside the content of messages; others are not restored.

    Raises:
        ObjectNotFoundError: the source or one of its contents is missing.
        CorruptObjectError: the source does not match the commit.
    """
    oid = commit.meta.get(SOURCE_KEY)
    if not isinstance(oid, bytes):
        return []
    lines = read_content(oid, read).split(b"\n")
    if words:
        lines = [line for line in lines if any(word in line for word in words)]
    contents = content_ids(commit) if lines else ()
    return [_expand_record(line, contents, read) for line in lines]


def records_unless_purged(commit: Commit, read: Read, words: Sequence[bytes] = ()) -> list[bytes]:
    """Return the raw records of a commit, or [] if any of their content was purged; arguments as `source_records`."""
    try:
        return source_records(commit, read, words)
    except errors.PurgedError:
        return []


def content_ids(commit: Commit) -> list[bytes]:
    """Return the content ids of a commit's messages, by content number."""
    contents: list[bytes] = []
    for operation in commit.operations:
        for message in operation.fields.get("messages", ()):
            contents += part_blobs(message["parts"])
    return contents


def encode_content(oid: bytes, encoding: str, read: Read) -> bytes:
    """Return a content in one of the encodings.

    Raises:
        ObjectNotFoundError: the content is missing.
        ValueError: unknown encoding, or a binary content where text is needed.
    """
    content = read_content(oid, read)
    return _encode(encoding, content if encoding in "br" else text_of(content))


def record_count(commit: Commit, read: Read) -> int:
    """Return the number of raw records of a commit, 0 if purged.

    Errors as in `source_records`.
    """
    oid = commit.meta.get(SOURCE_KEY)
    try:
        return read_content(oid, read).count(b"\n") + 1 if isinstance(oid, bytes) else 0
    except errors.PurgedError:
        return 0


def compact_record(record: Record, numbers: Mapping[int, int]) -> bytes:
    """Return a record with its contents replaced by references.

    Args:
        record: the record with the parts that it added.
        numbers: content numbers from `content_numbers`.
    """
    raw = record.raw
    for part in record.parts:
        number = numbers.get(id(part))
        if number is None:
            continue
        content_part = (
            part.content[0] if type(part) is ToolResult and len(part.content) == 1 else part
        )
        if type(content_part) is Text:
            text = content_part.text
            if len(text) + 2 >= MINIMUM_BYTES:
                javascript = _encode_as_javascript(text)
                replaced = (
                    raw
                    if javascript is None
                    else _replace(raw, javascript, b"\x00%dj\x00" % number)
                )
                raw = _replace_content(raw, number, "j", text) if replaced is raw else replaced
            continue
        for encoding, content in _contents(part):
            if len(content) + 2 >= MINIMUM_BYTES:
                raw = _replace_content(raw, number, encoding, content)
            number += 1
    return raw


def _replace_content(raw: bytes, number: int, encoding: str, content: Content) -> bytes:
    """Replace a content by a reference, using the first encoding that occurs."""
    for candidate in _ENCODINGS[encoding]:
        reference = b"\x00%d%c\x00" % (number, ord(candidate))
        javascript = _encode_as_javascript(content) if candidate == "j" else None
        if javascript is not None:
            replaced = _replace(raw, javascript, reference)
            if replaced is not raw:
                return replaced
        encoded = _try_encode(content, candidate)
        if encoded is not None and encoded != javascript:
            replaced = _replace(raw, encoded, reference)
            if replaced is not raw:
                return replaced
    return raw


def _encode_as_javascript(content: Content) -> bytes | None:
    """Return a content as JavaScript writes it; None for a NUL or invalid text.

    Other control characters stay as they are. JSON never contains them raw, so a text with one matches nothing here,
    and the slower encoders are tried.
    """
    try:
        data = content.encode() if isinstance(content, str) else str(content, "utf-8").encode()
    except UnicodeError:
        return None
    if _MARK in data:
        return None
    # JavaScript's escapes of common characters, backslash first. Testing with `in` first is faster
    # than a `replace` that finds nothing.
    if b"\\" in data:
        data = data.replace(b"\\", b"\\\\")
    if b'"' in data:
        data = data.replace(b'"', b'\\"')
    if b"\n" in data:
        data = data.replace(b"\n", b"\\n")
    if b"\t" in data:
        data = data.replace(b"\t", b"\\t")
    if b"\r" in data:
        data = data.replace(b"\r", b"\\r")
    return b'"%b"' % data


def _replace(raw: bytes, encoded: bytes, reference: bytes) -> bytes:
    """Return `raw.replace(encoded, reference)`, or `raw` itself if nothing matches.

    Finding the head first is several times as fast as `replace` with a long content.
    """
    head = encoded[:_HEAD_BYTES]
    at = raw.find(head)
    if at < 0:
        return raw
    if raw.startswith(encoded, at):
        end = at + len(encoded)
        if raw.find(head, end) < 0:
            return b"%b%b%b" % (raw[:at], reference, raw[end:])
    pieces: list[bytes] = []
    done = misses = 0
    while at >= 0:
        if raw.startswith(encoded, at):
            pieces.append(raw[done:at])
            done = at + len(encoded)
            at = raw.find(head, done)
        elif misses == _MAXIMUM_MISSES:
            # Repetitive text matches the head over and over; plain `replace` is faster there.
            return raw.replace(encoded, reference) if encoded in raw else raw
        else:
            misses += 1
            at = raw.find(head, at + 1)
    if not pieces:
        return raw
    pieces.append(raw[done:])
    return reference.join(pieces)


def _expand_record(line: bytes, contents: Sequence[bytes], read: Read) -> bytes:
    pieces = line.split(_MARK)
    try:
        if not len(pieces) % 2:
            raise ValueError("unbalanced NUL")
        for index in range(1, len(pieces), 2):
            if not pieces[index]:
                pieces[index] = b"\n"
                continue
            number, encoding = int(pieces[index][:-1]), chr(pieces[index][-1])
            pieces[index] = encode_content(contents[number], encoding, read)
    except (ValueError, IndexError) as error:
        raise errors.CorruptObjectError(f"invalid source of a commit: {error}") from error
    return b"".join(pieces)


def _contents(part: Part) -> Sequence[tuple[str, Content]]:
    """Return a part's contents with their usual encodings, in `part_blobs` order."""
    if isinstance(part, Text):
        return (("j", part.text),)
    if isinstance(part, ToolCall):
        return (("r", bytes_of(part.arguments)),)
    if isinstance(part, ToolResult):
        return [each for inner in part.content for each in _contents(inner)]
    if isinstance(part, Reasoning):
        if part.signature is None:
            return (("j", part.text),)
        return (("j", part.text), ("j", part.signature))
    if isinstance(part, Image):
        return (("b", part.data or b"") if part.url is None else ("j", part.url),)
    if isinstance(part, Opaque):
        return (("r", part.data),)
    return ()


def _content_count(part: Part) -> int:
    """Return the number of contents of a part."""
    if isinstance(part, ToolResult):
        return sum(map(_content_count, part.content))
    return 2 if isinstance(part, Reasoning) and part.signature is not None else 1


def _try_encode(content: Content, encoding: str) -> bytes | None:
    """Return an encoded content; None for binary content in a text encoding."""
    if isinstance(content, bytes) and encoding in "ja":
        try:
            content = text_of(content)
        except UnicodeDecodeError:
            return None
    return _encode(encoding, content)


def _encode(encoding: str, content: Content) -> bytes:
    if isinstance(content, str):
        if encoding == "j":
            # This error handler escapes a lone surrogate just as JavaScript does.
            return encode_basestring(content).encode("utf-8", "backslashreplace")
        return encode_basestring_ascii(content).encode("ascii")
    if encoding == "b":
        return b'"' + base64.b64encode(content) + b'"'
    if encoding == "r":
        return content
    raise ValueError(f"unknown encoding {encoding!r}")
