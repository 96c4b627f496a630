"""Texts of hidden values: strings in JSON and MessagePack, and values that are text themselves.

A string is a text if it has a word; ids, versions and times are none. Of a commit only what its first parent does not
have counts, and nothing if its values were stored with what looked like secrets.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from trace_store.base.oid import ObjectId
from trace_store.errors import NotFoundError
from trace_store.objects import operations as ops
from trace_store.objects.codec import BLOB, blob_content, kind_of
from trace_store.objects.commit import Commit, read_commit
from trace_store.objects.parts import Part, ToolCall, ToolResult
from trace_store.objects.sequences import is_sequence, read_sequence
from trace_store.search.segments import has_own_words
from trace_store.store.fact_index import SECRETS_FACT

MAXIMUM_BYTES = 1 << 20
"""Longer contents are not read."""
_WORD = re.compile(r"(?<!\w)[^\W\d_]{3,}(?!\w)")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_Read = Callable[[bytes], bytes]
_Values = Mapping[str, tuple[str, bytes]]


def hidden_texts(commit: Commit, read: _Read) -> Iterator[tuple[int, str, list[str]]]:
    """Yield the texts of the hidden values of a commit that are new there: number and name of the value, its texts.

    Raises:
        ObjectNotFoundError, CorruptObjectError: an object is missing or damaged.
    """
    values = ops.records_of(commit)
    if not values or SECRETS_FACT in ops.facts_of(commit, ops.META):
        return
    before = _before(commit, read)
    for number, name in enumerate(sorted(values)):
        content, old = values[name][1], before.get(name, ("", b""))[1]
        if content != old:
            known = {*_ids(old, read)} if old else set[bytes]()
            pieces = [_content(oid, read) for oid in _ids(content, read) if oid not in known]
            texts = dict.fromkeys(text for piece in pieces for text in texts_within(piece))
            if texts:
                yield number, name, [*texts]


def texts_within(data: bytes) -> Iterator[str]:
    """Yield the texts in JSON, in lines of JSON, or in MessagePack; text is one itself."""
    for found in _strings(_value_of(data)):
        if _WORD.search(found) or has_own_words(found):
            yield found


def texts_said(parts: Iterable[Part]) -> Iterator[str]:
    """Yield each text that parts of a message say."""
    for part in parts:
        if isinstance(part, ToolResult):
            yield from texts_said(part.content)
        elif isinstance(part, ToolCall):
            yield part.name
            yield part.arguments
            yield from texts_within(part.arguments.encode("utf-8", "replace"))
        else:
            text = getattr(part, "text", "")
            yield text
            yield from texts_within(text.encode("utf-8", "replace"))


def _before(commit: Commit, read: _Read) -> _Values:
    """Return the values before a commit, along first parents."""
    while commit.parents:
        try:
            commit = read_commit(commit.parents[0], read)
        except NotFoundError:
            break  # a shallow history
        if (found := ops.records_of(commit)) is not None:
            return found
    return {}


def _ids(oid: bytes, read: _Read) -> Iterable[bytes]:
    """Return the ids of the contents of a value."""
    if not is_sequence(read(oid)):
        return (oid,)
    return read_sequence(ObjectId(oid), lambda ids: map(read, ids)).items


def _content(oid: bytes, read: _Read) -> bytes:
    data = read(oid)
    return blob_content(data) if kind_of(data) == BLOB and len(data) <= MAXIMUM_BYTES else b""


def _value_of(data: bytes) -> object:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return _unpacked(0, data)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return [json.loads(line) for line in text.splitlines()]
    except (ValueError, RecursionError):
        return _unpacked(0, data) if _CONTROL.search(text) else text


def _unpacked(_: int, data: bytes) -> object:
    """Return a MessagePack value, also one in an extension; None if it is none."""
    import msgpack  # slow to import; most searches have no such values

    try:
        return msgpack.unpackb(
            data, ext_hook=_unpacked, strict_map_key=False, unicode_errors="replace"
        )
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException):
        return None


def _strings(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        found = waiting.pop()
        if isinstance(found, str):
            yield found
        elif isinstance(found, dict):
            waiting += reversed(found.values())
        elif isinstance(found, list | tuple):
            waiting += reversed(found)
