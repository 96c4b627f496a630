"""Files that hold objects: packs, their indexes, journals and bundles.

Their checksums would stop almost every change that a fuzzer makes, so the first byte of an input says whether they are
put right before it is read; of a pack also, that its frames are given as what they hold.
"""

from __future__ import annotations

import functools
import io
import struct
from zlib import crc32

from tests.support.subjects import bundles
from trace_store import errors
from trace_store.base.oid import digest, hash_object
from trace_store.bundles.format import END
from trace_store.disk.files import Disk
from trace_store.journal.file import JournalFile
from trace_store.journal.frames import FIRST_PASSING, HEADER_BYTES, SEED, Frame, scan
from trace_store.journal.view import RefsFold
from trace_store.objects.codec import encode_blob
from trace_store.odb.compression import Dictionary, compress
from trace_store.odb.index_scan import IndexContent
from trace_store.odb.ingest import pack_of, read_packs
from trace_store.odb.pack import (
    COUNTS,
    DICTIONARY,
    FRAME,
    HEADER,
    MAGIC,
    VERSION,
    join,
    walk_objects,
)
from trace_store.odb.pack_index import PackIndex, build_index
from trace_store.odb.verify import PackVerifier

RAW, MENDED, UNFOLDED = range(3)
_HELD = struct.Struct("<HHB")
"""Of a frame that is given unfolded: how long it is, how many objects it holds, its sort."""


def pack(data: bytes) -> None:
    """Bytes that are said to be a pack."""
    mode, data = (data[0] % 3 if data else 0), data[1:]
    if mode == MENDED:
        data = data[:-32] + digest(data[:-32])
    elif mode == UNFOLDED:
        data = _folded(data)
    found: list[bytes] = []
    try:
        look = PackVerifier(pack_of(data, "the pack"))
        for each in look.objects():
            assert hash_object(each.data) == each.oid
            found.append(each.oid)
        index = look.index()
    except errors.CorruptPackError:
        _damaged(data)
        return
    assert list(read_packs(io.BytesIO(data).read, "the stream")) == [data]
    assert {row[0] for row in IndexContent(index).rows} == set(found)
    assert build_index(pack_of(data, "the pack")) == (index, True)


def _damaged(data: bytes) -> None:
    """What cannot be taken whole is gone through as far as it goes, without another error."""
    try:
        for _ in read_packs(io.BytesIO(data).read, "the stream"):
            pass
    except errors.CorruptPackError:
        pass
    try:
        opened = pack_of(data, "the pack")
    except errors.CorruptPackError:
        return
    damage: list[str] = []
    for each in PackVerifier(opened, damage.append).objects():
        assert hash_object(each.data) == each.oid
    assert damage
    build_index(opened)
    try:
        for _ in walk_objects(opened):
            pass
    except errors.CorruptPackError:
        pass


def _folded(data: bytes) -> bytes:
    """Return a pack with frames built from the input bytes."""
    body, at, frames, objects = HEADER.pack(MAGIC, VERSION, 1, 1, 0), 0, 0, 0
    dictionary: Dictionary | None = None
    while at + _HELD.size <= len(data):
        size, held, sort = _HELD.unpack_from(data, at)
        raw = data[at + _HELD.size : at + _HELD.size + size]
        at += _HELD.size + size
        needed = dictionary if sort & 1 else None
        packed = compress(raw, level=1, dictionary=needed)
        body += FRAME.pack(len(packed), len(raw), held, sort) + packed
        if sort == DICTIONARY and len(raw) >= 8:
            dictionary = Dictionary(raw)
        frames, objects = frames + 1, objects + held
    body += FRAME.pack(0, 0, 0, 0) + COUNTS.pack(frames, objects)
    return body + digest(body)


@functools.cache
def small_pack() -> tuple[bytes, bytes]:
    """Return a pack of forty objects, and its index."""
    data = _folded(_frames(40))
    return data, build_index(pack_of(data, "the pack"))[0]


def _frames(count: int) -> bytes:
    objects = [encode_blob(b"object %d" % number) for number in range(count)]
    return b"".join(held(objects[first : first + 8], 0) for first in range(0, count, 8))


def held(objects: list[bytes], sort: int, raw: bytes = b"") -> bytes:
    """Return a frame that contains these objects, or other bytes."""
    raw = raw or join(objects)
    return _HELD.pack(len(raw), len(objects), sort) + raw


def pack_index(data: bytes) -> None:
    """Bytes that are said to be the index of a certain pack."""
    packed, _ = small_pack()
    mended, data = data[:1] > b"\x7f", data[1:]
    if mended:
        data = data[:-32] + digest(data[:-32])
    opened = pack_of(packed, "the pack")
    refused = (errors.CorruptIndexError, errors.CorruptObjectError)
    try:
        content = IndexContent(data)
    except refused:
        content = None
    for wanted in (_look_up, PackIndex.load, PackIndex.entries, _listed):
        try:
            index = PackIndex(lambda at, size: data[at : at + size], len(data), opened)
            wanted(index)
        except refused:
            continue
    if content is not None:
        assert content.rows == sorted(content.rows)


def _look_up(index: PackIndex) -> None:
    for number in range(0, 40, 7):
        oid = hash_object(encode_blob(b"object %d" % number))
        found = index.find(oid)
        if found is not None:
            frame, _, _ = index.row(found)
            index.place(frame)
        index.with_prefix(oid.hex()[:5], 4)


def _listed(index: PackIndex) -> None:
    assert len(list(index.in_order())) <= index.objects
    index.verify()


class _Memory(Disk):
    """A disk on which one file lies."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read_at(self, fd: int, offset: int, size: int) -> bytes:
        return self._data[offset : offset + size]

    def size(self, fd: int) -> int:
        return len(self._data)


def journal(data: bytes) -> None:
    """Bytes that are said to be a journal; read frame by frame, and as a process reads it that holds it open."""
    mended, data = data[:1] > b"\x7f", data[1:]
    if mended:
        data = _with_checks(data)
    one_by_one = list(scan(lambda at, size: data[at : at + size], 0, len(data)))
    assert all(0 <= frame.start < frame.end <= len(data) for frame in one_by_one)
    for frame in one_by_one:
        assert all(at >= 0 and at + size <= frame.end for _, at, size in frame.objects)
    disk = _Memory(data)
    file = JournalFile(1, "journal", 0, (0, 0))
    read = [*file.scan(disk), *file.scan(disk)]
    lasting = [frame for frame in one_by_one if frame.kind < FIRST_PASSING]
    assert [_said(frame) for frame in read] == [_said(frame) for frame in lasting[: len(read)]]
    for each in (*file.objects, b"x" * 32):
        file.place(each)
    file.places()
    file.unknown_kinds()
    file.is_free_behind(disk)
    fold = RefsFold()
    fold.apply_all(read)
    file.cut(len(data) // 2)


def _said(frame: Frame) -> object:
    moves = [(move.name, move.old, move.new) for move in frame.moves]
    said = (frame.kind, frame.start, frame.end, frame.author, frame.time, frame.message)
    return (
        *said,
        frame.head,
        moves,
        frame.objects,
        frame.line,
        frame.closed_line,
        frame.failed,
        list(frame.closes),
    )


def _with_checks(data: bytes) -> bytes:
    """Return the bytes with the checksum of each frame as it should be, as far as frames follow one another."""
    found, at = bytearray(data), 0
    while at + HEADER_BYTES <= len(data):
        end = at + HEADER_BYTES + int.from_bytes(data[at : at + 4], "little")
        if end > len(data):
            break
        check = crc32(data[at + HEADER_BYTES : end], crc32(data[at : at + 8], SEED))
        found[at + 8 : at + HEADER_BYTES] = check.to_bytes(4, "little")
        at = end
    return bytes(found)


def bundle(data: bytes) -> None:
    """Bytes that are said to be a bundle; when they are mended, both hashes are right."""
    mended, data = data[:1] > b"\x7f", data[1:]
    if mended:
        data = _with_hashes(data)
    try:
        report = bundles().verify(io.BytesIO(data).read, alone=True)
    except (errors.CorruptBundleError, errors.UnsupportedFormatError):
        return
    assert report.size_bytes == len(data)


def _with_hashes(data: bytes) -> bytes:
    line = data.find(b"\n") + 1
    head = line + 4 + int.from_bytes(data[line : line + 4], "little")
    if head + 32 < len(data):
        data = data[:head] + digest(data[:head]) + data[head + 32 :]
    if len(data) > 40 and data[-40:-36] == END:
        data = data[:-32] + digest(data[:-32])
    return data
