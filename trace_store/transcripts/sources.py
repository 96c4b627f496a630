"""Sources: raw records beside the commit that was made from them, without what its messages hold already.

Rule: what comes back is equal to what went in, byte for byte. A source is the raw records, one a line. Where a record
spells a content of the commit's own messages, NUL, the content's place, a letter for the spelling, and NUL stand for
it; the contents are numbered in the order of `objects.message.part_blobs`. For a newline within a record, as in a
document that is written for people, stand two NULs. JSON has no bare NUL, so nothing else looks like that. The letters:

    j   the content as a JSON string, spelled as JavaScript spells it
    a   the same in ASCII, spelled as Python spells it
    b   the content in base64, as a JSON string
    r   the content as it is
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from json.encoder import encode_basestring, encode_basestring_ascii

from trace_store import errors
from trace_store.objects.commit import Commit
from trace_store.objects.content import bytes_of, read_content, text_of
from trace_store.objects.message import part_blobs
from trace_store.objects.parts import Image, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.transcripts.records import Record

SOURCE_KEY = "source"
MINIMUM_BYTES = 40
"""Shorter spellings stay where they are; what stands for them would be hardly shorter."""

Read = Callable[[bytes], bytes]
Content = str | bytes

# How a content may be spelled whose usual spelling is the first: arguments are JSON in some formats, text in others.
_SPELLINGS = {"j": "ja", "b": "b", "r": "rja"}

_HEAD_BYTES = 48
_MAXIMUM_MISSES = 16

_HOLE = b"\x00"
_NEWLINE = b"\x00\x00"


def encode_source(records: Sequence[Record], parts: Sequence[Part]) -> bytes:
    """Return the source of a commit.

    Args:
        records: with the parts that each of them added.
        parts: all parts of the commit's messages, in the order in which they are stored.
    """
    numbers = content_numbers(parts)
    return b"\n".join(
        [without_contents(record, numbers).replace(b"\n", _NEWLINE) for record in records]
    )


def content_numbers(parts: Sequence[Part]) -> dict[int, int]:
    """Return for each part, by its identity, the number of its first content among those of all parts."""
    numbers: dict[int, int] = {}
    count = 0
    for part in parts:
        numbers[id(part)] = count
        count += 1 if type(part) is Text else _content_count(part)
    return numbers


def source_records(commit: Commit, read: Read) -> list[bytes]:
    """Return the raw records that a commit was made from; none when they were not kept.

    Raises:
        ObjectNotFoundError: the source, or a content that it names, is not here.
        CorruptObjectError: it is not a source of this commit.
    """
    oid = commit.meta.get(SOURCE_KEY)
    if not isinstance(oid, bytes):
        return []
    contents = content_ids(commit)
    lines = read_content(oid, read).split(b"\n")
    return [_with_contents(line, contents, read) for line in lines]


def records_left(commit: Commit, read: Read) -> list[bytes]:
    """Return what `source_records` does, and none when something of them was purged; other errors as there."""
    try:
        return source_records(commit, read)
    except errors.PurgedError:
        return []


def content_ids(commit: Commit) -> list[bytes]:
    """Return the ids of the contents of a commit's own messages, by their number."""
    contents: list[bytes] = []
    for operation in commit.operations:
        for message in operation.fields.get("messages", ()):
            contents += part_blobs(message["parts"])
    return contents


def spelled_content(oid: bytes, letter: str, read: Read) -> bytes:
    """Return a content in one of the spellings.

    Raises:
        ObjectNotFoundError: it is not here.
        ValueError: there is no such spelling, or it is no text where text is needed.
    """
    content = read_content(oid, read)
    return _spell(letter, content if letter in "br" else text_of(content))


def record_count(commit: Commit, read: Read) -> int:
    """Return how many raw records a commit's source has, none when it was purged; errors as in `source_records`."""
    oid = commit.meta.get(SOURCE_KEY)
    try:
        return read_content(oid, read).count(b"\n") + 1 if isinstance(oid, bytes) else 0
    except errors.PurgedError:
        return 0


def without_contents(record: Record, numbers: Mapping[int, int]) -> bytes:
    """Return a record's bytes, with what stands for them where they spell numbered contents.

    Args:
        record: with the parts that it added.
        numbers: of the contents, as `content_numbers` returns them.
    """
    raw = record.raw
    for part in record.parts:
        number = numbers.get(id(part))
        if number is None:
            continue
        told = part.content[0] if type(part) is ToolResult and len(part.content) == 1 else part
        if type(told) is Text:
            text = told.text
            if len(text) + 2 >= MINIMUM_BYTES:
                quick = _spelled_quickly(text)
                found = raw if quick is None else _replace(raw, quick, b"\x00%dj\x00" % number)
                raw = _without(raw, number, "j", text) if found is raw else found
            continue
        for letter, content in _contents(part):
            if len(content) + 2 >= MINIMUM_BYTES:
                raw = _without(raw, number, letter, content)
            number += 1
    return raw


def _without(raw: bytes, number: int, letter: str, content: Content) -> bytes:
    """Return a record's bytes with what stands for a content in the first of its spellings that is there."""
    for other in _SPELLINGS[letter]:
        hole = b"\x00%d%c\x00" % (number, ord(other))
        quick = _spelled_quickly(content) if other == "j" else None
        if quick is not None:
            found = _replace(raw, quick, hole)
            if found is not raw:
                return found
        spelled = _spelled(content, other)
        if spelled is not None and spelled != quick:
            found = _replace(raw, spelled, hole)
            if found is not raw:
                return found
    return raw


def _spelled_quickly(content: Content) -> bytes | None:
    """Return a content as JavaScript spells it, unless it holds control characters that are rare; None where it may.

    Those stand in no JSON as they are: where what is returned is found in a record, it is how the content is spelled.
    But a record in which something stands for a content holds NULs.
    """
    try:
        data = content.encode() if isinstance(content, str) else str(content, "utf-8").encode()
    except UnicodeError:
        return None
    if _HOLE in data:
        return None
    # As JavaScript escapes what is common in texts; the backslash first. Where there is none, a look is quick.
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


def _replace(raw: bytes, spelled: bytes, hole: bytes) -> bytes:
    """Return `raw.replace(spelled, hole)`, and the very same object when nothing is found.

    It is looked for by its beginning, and compared where that is: a record often holds a long content twice, and
    `replace` searches for a long one several times as long.
    """
    head = spelled[:_HEAD_BYTES]
    at = raw.find(head)
    if at < 0:
        return raw
    if raw.startswith(spelled, at):
        end = at + len(spelled)
        if raw.find(head, end) < 0:
            return b"%b%b%b" % (raw[:at], hole, raw[end:])
    pieces: list[bytes] = []
    done = misses = 0
    while at >= 0:
        if raw.startswith(spelled, at):
            pieces.append(raw[done:at])
            done = at + len(spelled)
            at = raw.find(head, done)
        elif misses == _MAXIMUM_MISSES:
            # What begins alike again and again is compared in vain each time.
            return raw.replace(spelled, hole) if spelled in raw else raw
        else:
            misses += 1
            at = raw.find(head, at + 1)
    if not pieces:
        return raw
    pieces.append(raw[done:])
    return hole.join(pieces)


def _with_contents(line: bytes, contents: Sequence[bytes], read: Read) -> bytes:
    pieces = line.split(_HOLE)
    try:
        if not len(pieces) % 2:
            raise ValueError("a NUL without its fellow")
        for index in range(1, len(pieces), 2):
            if not pieces[index]:
                pieces[index] = b"\n"
                continue
            number, letter = int(pieces[index][:-1]), chr(pieces[index][-1])
            pieces[index] = spelled_content(contents[number], letter, read)
    except (ValueError, IndexError) as error:
        raise errors.CorruptObjectError(f"not a source of this commit: {error}") from error
    return b"".join(pieces)


def _contents(part: Part) -> Sequence[tuple[str, Content]]:
    """Return the contents of a part, each with its usual spelling, in the order of `part_blobs`."""
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
    """Return how many contents a part has."""
    if isinstance(part, ToolResult):
        return sum(map(_content_count, part.content))
    return 2 if isinstance(part, Reasoning) and part.signature is not None else 1


def _spelled(content: Content, letter: str) -> bytes | None:
    """Return a content in a spelling; None when that is for text, and the content is none."""
    if isinstance(content, bytes) and letter in "ja":
        try:
            content = text_of(content)
        except UnicodeDecodeError:
            return None
    return _spell(letter, content)


def _spell(letter: str, content: Content) -> bytes:
    if isinstance(content, str):
        if letter == "j":
            # JavaScript escapes a lone surrogate, and so does this error handler, in the same spelling.
            return encode_basestring(content).encode("utf-8", "backslashreplace")
        return encode_basestring_ascii(content).encode("ascii")
    if letter == "b":
        return b'"' + base64.b64encode(content) + b'"'
    if letter == "r":
        return content
    raise ValueError(f"unknown spelling {letter!r}")
