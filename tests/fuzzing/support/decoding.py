"""Fuzz targets for objects: the decoder, the fast decoder, and record files."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import msgpack

from trace_store import errors
from trace_store.context.compile_index import (
    HEADER_BYTES,
    MESSAGE_BYTES,
    MESSAGES_MAGIC,
    SEED,
    TOKENS_BYTES,
    TOKENS_MAGIC,
    Header,
    MessageRecord,
    find_message,
    message_offsets,
    unpack_homes,
    unpack_tokens,
)
from trace_store.objects import codec, mini_msgpack
from trace_store.objects.commit import Commit, Tag, parents_of
from trace_store.odb.verify import check_object

Refused = errors.CorruptObjectError
_PATCH = struct.Struct("<HB")


def decoder(data: bytes) -> None:
    """Bytes that are said to be an object."""
    _as_msgpack(data)
    try:
        value = codec.decode(data)
        canonical = codec.is_canonical(data)
    except Refused:
        assert not codec.is_plain_blob(data)
        for read in (check_object, Commit.decode, Tag.decode, codec.is_canonical):
            _is_refused(read, data)
        return
    if canonical:
        assert codec.encode(value) == data
        _kinds(data)
    codec.links_within(value)
    for decode in (Commit.decode, Tag.decode):
        try:
            found: Any = decode(data)
        except Refused:
            continue
        again = found.encode()
        assert decode(again).encode() == again
        assert codec.is_canonical(again)


def _kinds(data: bytes) -> None:
    try:
        kind = check_object(data)
    except Refused:
        return
    assert kind == codec.kind_of(data)
    if kind == codec.COMMIT:
        assert parents_of(data) == list(Commit.decode(data).parents)
    if codec.is_plain_blob(data):
        content = codec.blob_content(data)
        assert codec.encode_blob(content) == data
        assert data.startswith(codec.plain_blob_head(len(data)))
        assert codec.links(data) == []


def _is_refused(read: Any, data: bytes) -> None:
    try:
        read(data)
    except Refused:
        return
    raise AssertionError(f"{read.__qualname__} takes what is no object")


def _as_msgpack(data: bytes) -> None:
    """What the small decoder says, msgpack says too."""
    mini_msgpack._Handled.bytes = 0
    try:
        value = mini_msgpack.unpack(data)
    except mini_msgpack.UnsureError:
        return
    theirs = msgpack.unpackb(data, raw=False, strict_map_key=True)
    assert repr(value) == repr(theirs)
    try:
        packed = mini_msgpack.pack(value)
    except mini_msgpack.UnsureError:
        return
    assert packed == msgpack.packb(theirs, use_bin_type=True)


def records(data: bytes) -> None:
    """The columns of a compile index: a byte that says whether checksums are right, a header, records."""
    mended, data = data[:1] > b"\x7f", data[1:]
    kinds: tuple[tuple[bytes, int, Any], ...] = (
        (MESSAGES_MAGIC, MESSAGE_BYTES, lambda row: [MessageRecord.unpack(row)]),
        (TOKENS_MAGIC, TOKENS_BYTES, unpack_tokens),
    )
    for magic, size, unpack in kinds:
        head, rest = data[:HEADER_BYTES], data[HEADER_BYTES:]
        rows = [rest[at : at + size] for at in range(0, len(rest), size)]
        if mended:
            head, *rows = map(_checked, (head, *rows))
        try:
            header = Header.unpack(head, magic, size)
            assert Header.unpack(header.pack(), magic, size) == header
        except errors.CorruptIndexError:
            pass
        for row in rows:
            try:
                for record in unpack(row):
                    record.pack()
            except errors.CorruptIndexError:
                continue
        if magic == MESSAGES_MAGIC:
            _block(b"".join(rows))


def _checked(row: bytes) -> bytes:
    return row[:-4] + zlib.crc32(row[:-4], SEED).to_bytes(4, "little") if len(row) > 3 else row


def _block(block: bytes) -> None:
    try:
        offsets = message_offsets(block) if block else ()
    except errors.CorruptIndexError:
        return
    for at in offsets:
        try:
            record = MessageRecord.unpack_from(block, at)
        except errors.CorruptIndexError:
            continue
        if record.is_message:
            assert find_message(block, record.address) is not None
    assert len(list(unpack_homes(block))) == len(block) // MESSAGE_BYTES
