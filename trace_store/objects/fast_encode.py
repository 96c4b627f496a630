"""A fast encoder for commits that append messages.

Most commits append a message or two, imported ones with a usage report: the same few maps with other ids and names.
Here, each map consists of constant bytes with the values in between, so no map is built, checked for key order, and
encoded.

Rule: the result equals `Commit.encode` of the same commit, byte for byte. The result is None if a commit is not
supported here; then use `Commit.encode`.
"""

from __future__ import annotations

from trace_store.objects.codec import (
    ARRAY16_LIMIT,
    MAXIMUM_ELEMENTS,
    SHORT_HEAD_LIMIT,
    SMALL_ARRAYS,
    array_head,
    check_readable,
    encode_integer,
    encode_ordered,
    encode_text,
    encoded_texts,
)
from trace_store.objects.content import bytes_of
from trace_store.objects.message import check_name, default_kind, store_parts
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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from trace_store.base.oid import ObjectId

    Put = Callable[[bytes], ObjectId]

_ID = b"\xc4\x20"
_KNOWN_MAPS = 64


def encode_message(
    role: str,
    parts: Sequence[Part],
    put: Put,
    kind: str = "",
    name: str = "",
    model: str = "",
    id: str = "",
) -> bytes | None:
    """Return the canonical bytes of a stored message with a known role and kind.

    Args:
        role: as in `message.Message`.
        parts: as in `message.Message`.
        put: stores content and returns its id; called in the order of `store_message`.
        kind: as in `message.Message`; default: derived from role and parts.
        name: as in `message.Message`.
        model: as in `message.Message`.
        id: as in `message.Message`.

    Raises:
        InvalidMessageError: an id or a name cannot be stored.
        InvalidInputError: as in `encode_text`.
    """
    if len(parts) == 1 and type(parts[0]) is Text:  # the usual case
        blob = put(parts[0].text.encode("utf-8", "surrogatepass"))
        stored = b"\x91\x82\xa4blob\xc4\x20%b\xa4type\xa4text" % blob
    else:
        several = _parts(parts, put)
        if several is None:
            return None
        stored = several
    count = 3
    head = b"\xa4kind" + encoded_texts[kind or default_kind(role, parts)]
    if id:
        count += 1
        head = b"\xa2id" + _encode_id(id, "id") + head
    if model:
        count += 1
        head += b"\xa5model" + encoded_texts[check_name(model, "model")]
    if name:
        count += 1
        head += b"\xa4name" + encoded_texts[check_name(name, "name")]
    return b"%c%b\xa5parts%b\xa4role%b" % (0x80 | count, head, stored, encoded_texts[role])


def encode_commit(
    parent: bytes | None,
    author: str,
    time: int,
    messages: Sequence[bytes],
    usage: Mapping[str, int | str] | None = None,
    meta: bytes = b"",
    message: str = "",
) -> bytes | None:
    """Return the canonical bytes of a commit with new messages, usage, or both.

    Args:
        parent: the parent commit; None for a root commit.
        author: as in `Commit`.
        time: as in `Commit`.
        messages: as returned by `encode_message`.
        usage: the fields of the usage operation, if any.
        meta: the canonical bytes of `Commit.meta`; b"" if empty.
        message: as in `Commit`.

    Raises:
        InvalidInputError: as in `encode_text`, or the commit is too large.
    """
    count = len(messages)
    if count >= ARRAY16_LIMIT or type(time) is not int or type(author) is not str:
        return None
    operations = b""
    if count:
        operations = b"\x92\xa3add\x81\xa8messages%b%b" % (
            SMALL_ARRAYS[count] if count < SHORT_HEAD_LIMIT else array_head(count),
            b"".join(messages),
        )
    if usage:
        reported = _usage(usage)
        if reported is None:
            return None
        operations += b"\x92\xa5usage" + reported
    fields = 0x84
    text = b""
    if message:
        fields += 1
        text = b"\xa7message" + encode_text(message)
    if meta:
        fields += 1
        text += b"\xa4meta" + meta
    data = b"\x92\xa6commit%c\xa6author%b%b\xa3ops%c%b\xa7parents%b\xa4time%b" % (
        fields,
        encoded_texts[author],
        text,
        0x90 + (count > 0) + bool(usage),
        operations,
        b"\x90" if parent is None else b"\x91\xc4\x20" + parent,
        encode_integer(time),
    )
    if len(data) > MAXIMUM_ELEMENTS:
        check_readable((), len(data))  # none of its lists is too long
    return data


def _parts(parts: Sequence[Part], put: Put) -> bytes | None:
    count = len(parts)
    if count >= ARRAY16_LIMIT:
        return None
    pieces = [array_head(count)]
    for part in parts:
        if type(part) is Text:
            blob = put(part.text.encode("utf-8", "surrogatepass"))
            pieces.append(b"\x82\xa4blob\xc4\x20%b\xa4type\xa4text" % blob)
            continue
        encode = _PARTS.get(type(part))
        data = None if encode is None else encode(part, put)
        if data is None:
            return None
        pieces.append(data)
    return b"".join(pieces)


def _encode_id(value: str, field: str) -> bytes:
    """Return the canonical bytes of an id, which is not worth caching."""
    if type(value) is str and value.isascii() and len(value) < 32:
        return b"%c%b" % (0xA0 | len(value), value.encode())
    return encode_text(check_name(value, field))


def _call(part: ToolCall, put: Put) -> bytes:
    blob = b"\xa4blob" + _ID + put(bytes_of(part.arguments))
    if part.format == "json":
        head = b"\x84" + blob
    else:
        head = b"\x85%b\xa6format%b" % (blob, encoded_texts[check_name(part.format, "format")])
    return b"%b\xa2id%b\xa4name%b\xa4type\xa9tool_call" % (
        head,
        _encode_id(part.id, "id"),
        encoded_texts[check_name(part.name, "name")],
    )


def _result(part: ToolResult, put: Put) -> bytes | None:
    if ToolResult in map(type, part.content):
        return None
    name = _encode_id(part.call_id, "id")
    inner = _parts(part.content, put)
    if inner is None:
        return None
    head, count = b"", 3
    if part.call is not None:
        birth, number = part.call
        head = b"\xa4call\x92\xc4%c%b%b" % (len(birth), birth, encode_integer(number))
        count += 1
    if part.is_error:
        head += b"\xa5error\xc3"
        count += 1
    return b"%c%b\xa2id%b\xa5parts%b\xa4type\xabtool_result" % (*(0x80 | count, head, name, inner),)


def _reasoning(part: Reasoning, put: Put) -> bytes:
    blob = put(bytes_of(part.text))
    if part.signature is None:
        return b"\x82\xa4blob\xc4\x20%b\xa4type\xa9reasoning" % blob
    return b"\x83\xa4blob\xc4\x20%b\xa9signature\xc4\x20%b\xa4type\xa9reasoning" % (
        blob,
        put(bytes_of(part.signature)),
    )


def _rare(part: Part, put: Put) -> bytes:
    return encode_ordered(store_parts([part], put)[0])


_PARTS: dict[type, Callable[..., bytes | None]] = {
    ToolCall: _call,
    ToolResult: _result,
    Reasoning: _reasoning,
    Image: _rare,
    Opaque: _rare,
    Data: _rare,
}


class _Keys(dict[tuple[str, ...], tuple[bytes, ...] | None]):
    """Cached bytes before each value of a small map, by its keys.

    None if they are not sorted.
    """

    def __missing__(self, keys: tuple[str, ...]) -> tuple[bytes, ...] | None:
        if len(self) >= _KNOWN_MAPS:
            self.clear()
        self[keys] = encoded = self._encode_keys(keys)
        return encoded

    @staticmethod
    def _encode_keys(keys: tuple[str, ...]) -> tuple[bytes, ...] | None:
        if len(keys) >= SHORT_HEAD_LIMIT or any(type(key) is not str for key in keys):
            return None
        if list(keys) != sorted(keys):
            return None
        first, *others = [encode_text(key) for key in keys]
        return (bytes((0x80 | len(keys),)) + first, *others)


_known_keys = _Keys()


def _usage(usage: Mapping[str, int | str]) -> bytes | None:
    keys = _known_keys[tuple(usage)]
    if keys is None:
        return None
    pieces: list[bytes] = []
    for key, value in zip(keys, usage.values(), strict=True):
        if type(value) is int:
            pieces += (key, encode_integer(value))
        elif type(value) is str:
            pieces += (key, encoded_texts[value])
        else:
            return None
    return b"".join(pieces)
