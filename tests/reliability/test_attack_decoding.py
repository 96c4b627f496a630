"""Bytes made to exhaust or deceive a decoder: refused soon, in little memory, by the documented error."""

from __future__ import annotations

import json
import resource
import struct
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from zlib import crc32

import msgpack
import pytest

from tests.cli.test_bad_input import refused, state
from tests.fuzzing.support.containers import UNFOLDED, held, pack
from tests.support.command_line import Trace
from tests.support.subjects import bundles
from trace_store.base.oid import digest, hash_object
from trace_store.bundles.format import MAXIMUM_HEADER_BYTES
from trace_store.disk.layout import MAXIMUM_OBJECT_BYTES
from trace_store.errors import (
    CorruptBundleError,
    CorruptIndexError,
    CorruptObjectError,
    CorruptPackError,
    FormatError,
    InvalidMessageError,
    StorageError,
    UnreadableInputError,
)
from trace_store.journal.frames import SEED, scan
from trace_store.objects.codec import MAXIMUM_ELEMENTS, decode, encode_blob
from trace_store.objects.commit import Commit
from trace_store.objects.operations import tools
from trace_store.odb.compression import Dictionary, compress, decompress
from trace_store.odb.index_scan import IndexContent
from trace_store.odb.ingest import pack_of
from trace_store.odb.loose import COMPRESSED
from trace_store.odb.pack import COUNTS, FRAME, HEADER, MAGIC, VERSION
from trace_store.odb.pack_index import HEADER as INDEX_HEADER
from trace_store.odb.verify import PackVerifier, check_object
from trace_store.providers.documents import parse_messages
from trace_store.store.store import Store

SECONDS = 10
MEGABYTES = 96
"""More than any of these needs; the test itself uses most of it."""


@contextmanager
def bounded(megabytes: int = MEGABYTES) -> Iterator[None]:
    """Fail where something takes long, or much memory."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < megabytes << 20, f"{peak >> 20} MiB"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_utime - before < SECONDS


@pytest.fixture
def filled(repository: Trace) -> Trace:
    assert repository("commit", "--user", "before").code == 0
    return repository


def nested(levels: int) -> bytes:
    return b"\x92\xa1x" + b"\x91" * levels + b"\xc0"


OBJECTS = {
    "nothing": b"",
    "no object": b"\xc0",
    "a kind that is none": b"\x91\x01",
    "nested too deep": nested(65),
    "nested without end": nested(100_000),
    "maps nested": b"\x92\xa1x" + b"\x81\xa1a" * 5000 + b"\xc0",
    "an array of four thousand million": b"\x92\xa1x\xdd\xff\xff\xff\xff",
    "a map of as many": b"\x92\xa1x\xdf\xff\xff\xff\xff",
    "too many elements": b"\x92\xa1x\xdd"
    + (MAXIMUM_ELEMENTS + 1).to_bytes(4, "big")
    + b"\xc0" * 70_000,
    "a million empty maps": b"\x92\xa1x\xdd" + (1 << 20).to_bytes(4, "big") + b"\x80" * (1 << 20),
    "text longer than it is": b"\x92\xa1x\xdb\xff\xff\xff\xffabc",
    "bytes longer than they are": b"\x92\xa4blob\xc6\xff\xff\xff\xffabc",
    "a key twice": b"\x92\xa1x\x82\xa1a\x01\xa1a\x02",
    "keys out of order": b"\x92\xa1x\x82\xa1b\x01\xa1a\x02",
    "a key that is no text": b"\x92\xa1x\x81\x01\x02",
    "a key that is a list": b"\x92\xa1x\x81\x90\x02",
    "an integer in a longer form": b"\x92\xa1x\xcd\x00\x01",
    "a negative one": b"\x92\xa1x\xd0\xff",
    "a length in a longer form": b"\x92\xa4blob\xc5\x00\x04said",
    "text in a longer form": b"\x92\xd9\x01x\xc0",
    "an array in a longer form": b"\xdc\x00\x02\xa1x\xc0",
    "a float": b"\x92\xa1x\xcb" + bytes(8),
    "not a number": b"\x92\xa1x\xcb\x7f\xf8" + bytes(6),
    "an extension": b"\x92\xa1x\xc7\x04\x05abcd",
    "a time as an extension": b"\x92\xa1x\xd6\xff" + bytes(4),
    "a reserved byte": b"\x92\xa1x\xc1",
    "text that is no UTF-8": b"\x92\xa1x\xa2\xff\xfe",
    "a surrogate in text": b"\x92\xa1x\xa3\xed\xa0\x80",
    "something behind": b"\x92\xa1x\xc0\x00",
    "a second object": b"\x92\xa1x\xc0" * 2,
    "cut": b"\x92\xa1x",
    "a blob of a kind": b"\x92\xa4blob\xa4said",
    "a commit of nothing": msgpack.packb(["commit", {}]),
    "a commit with parents of other lengths": msgpack.packb(
        ["commit", {"author": "", "ops": [], "parents": [b"x" * 31], "time": 0}]
    ),
    "parts in parts in parts": msgpack.packb(
        ["commit", {"author": "", "ops": [["add", {"messages": [{"role": "u", "parts": 7}]}]]}]
    ),
}


@pytest.mark.parametrize("data", OBJECTS.values(), ids=OBJECTS)
def test_objects(tmp_path: Path, data: bytes) -> None:
    with bounded(), pytest.raises(CorruptObjectError):
        check_object(data)
    if data:
        with bounded():
            for read in (decode, Commit.decode):
                with suppress(CorruptObjectError):
                    read(data)


def frame_with(**changed: int) -> bytes:
    """Return a zstd frame with a hand-written header."""
    magic = b"\x28\xb5\x2f\xfd"
    head = changed.get("descriptor", 0x20)
    size = changed.get("size", 5)
    window = bytes([changed["window"]]) if "window" in changed else b""
    dictionary = changed["dictionary"].to_bytes(4, "little") if "dictionary" in changed else b""
    width = {0: 1, 0x40: 2, 0x80: 4, 0xC0: 8}[head & 0xC0]
    content = b"" if window and not head & 0xC0 else size.to_bytes(width, "little")
    block = (5 << 3 | 1).to_bytes(3, "little") + b"bytes"
    return magic + bytes([head]) + window + dictionary + content + block


GOOD = compress(b"bytes" * 100, level=3)
ZSTD: dict[str, tuple[bytes, int]] = {
    "nothing": (b"", 5),
    "no frame": (b"no frame at all", 5),
    "another size than asked for": (GOOD, 499),
    "a gigabyte in a few bytes": (compress(bytes(1 << 20), level=19)[:200], 1 << 30),
    "a size of eight bytes": (frame_with(descriptor=0xE0, size=1 << 62), 1 << 62),
    "no size": (frame_with(descriptor=0x00, window=0x50), 5),
    "a window of two terabytes": (frame_with(descriptor=0x80, window=0xF8, size=5), 5),
    "a dictionary that is not here": (frame_with(descriptor=0x23, dictionary=77), 5),
    "cut": (GOOD[:-1], 500),
    "cut in the middle": (GOOD[: len(GOOD) // 2], 500),
    "something behind": (GOOD + b"\0", 500),
    "a second frame": (GOOD + GOOD, 500),
    "a frame to skip behind": (GOOD + b"\x50\x2a\x4d\x18\x04\0\0\0skip", 500),
    "a frame to skip before": (b"\x50\x2a\x4d\x18\x04\0\0\0skip" + GOOD, 500),
    "a wrong checksum": (GOOD[:-1] + bytes([GOOD[-1] ^ 1]), 500),
    "a reserved bit": (GOOD[:4] + bytes([GOOD[4] | 8]) + GOOD[5:], 500),
}


@pytest.mark.parametrize("case", ZSTD.values(), ids=ZSTD)
def test_compressed_content(tmp_path: Path, case: tuple[bytes, int]) -> None:
    data, size = case
    with bounded(), pytest.raises(CorruptObjectError):
        decompress(data, size)
    with bounded(), pytest.raises(CorruptObjectError):
        decompress(data, size, dictionary=Dictionary(b"a dictionary"))
    blob = encode_blob(b"bytes")
    with Store.init(str(tmp_path)) as store:
        path = Path(store.layout.loose_file(hash_object(blob).hex()))
        path.parent.mkdir(parents=True)
        path.write_bytes(bytes([COMPRESSED]) + (size & 0xFFFFFFFF).to_bytes(4, "little") + data)
        before = state(tmp_path)
        with bounded(), pytest.raises(CorruptObjectError):
            store.objects.read(hash_object(blob))
        assert state(tmp_path) == before


def test_a_loose_file_of_zeros(tmp_path: Path) -> None:
    blob = encode_blob(b"x")
    with Store.init(str(tmp_path)) as store:
        path = Path(store.layout.loose_file(hash_object(blob).hex()))
        path.parent.mkdir(parents=True)
        with open(path, "wb") as file:
            file.truncate(1 << 40)  # a terabyte of nothing
        with bounded(), pytest.raises(StorageError, match="over the limit"):
            store.objects.read(hash_object(blob))
    assert MAXIMUM_OBJECT_BYTES < 1 << 26


PACK_HEAD = HEADER.pack(MAGIC, VERSION, 1, 1, 0)
BODY = compress(struct.pack("<I", 6) + encode_blob(b"x")[:6], level=1)
END = FRAME.pack(0, 0, 0, 0)
PACKS = {
    "nothing": b"",
    "a head alone": PACK_HEAD,
    "a frame longer than the file": PACK_HEAD + FRAME.pack(1 << 31, 10, 1, 0) + BODY,
    "a frame of four gigabytes": PACK_HEAD + FRAME.pack(len(BODY), 0xFFFFFFFF, 1, 0) + BODY + END,
    "objects without number": PACK_HEAD + FRAME.pack(len(BODY), 10, 0xFFFFFFFF, 0) + BODY + END,
    "another sort": PACK_HEAD + FRAME.pack(len(BODY), 10, 1, 99) + BODY + END,
    "bytes that should be zero": PACK_HEAD
    + FRAME.pack(len(BODY), 10, 1, 0)[:-1]
    + b"\1"
    + BODY
    + END,
    "no end": PACK_HEAD + FRAME.pack(len(BODY), 10, 1, 0) + BODY,
    "an end too soon": PACK_HEAD + END + FRAME.pack(len(BODY), 10, 1, 0) + BODY,
    "another version": HEADER.pack(MAGIC, 9, 1, 1, 0) + END,
    "another beginning": b"PACK" + PACK_HEAD[4:] + END,
}


@pytest.mark.parametrize("counts", [(1, 1), (0, 0), (0xFFFFFFFF, 0xFFFFFFFF)], ids=str)
@pytest.mark.parametrize("body", PACKS.values(), ids=PACKS)
def test_packs(body: bytes, counts: tuple[int, int]) -> None:
    data = body + COUNTS.pack(*counts)
    with bounded(), pytest.raises(CorruptPackError):
        list(PackVerifier(pack_of(data + digest(data), "x")).objects())


def test_packs_that_unfold_to_much(tmp_path: Path) -> None:
    for objects, sort in (([b""] * 3000, 0), ([b"\xd4\0\1\0\0" * 9], 2)):
        with bounded(400):
            pack(bytes([UNFOLDED]) + held(objects, sort)[: 1 << 20])


INDEXES = {
    "nothing": b"",
    "a head alone": INDEX_HEADER.pack(b"TRPI", 2, 0, 0, 0, 0, bytes(32)),
    "many objects": INDEX_HEADER.pack(b"TRPI", 2, 0, 0xFFFFFFFF, 1, 9, bytes(32)),
    "many frames": INDEX_HEADER.pack(b"TRPI", 2, 0, 1, 0xFFFFFFFF, 9, bytes(32)),
    "many buckets": INDEX_HEADER.pack(b"TRPI", 2, 255, 0, 0, 9, bytes(32)),
    "a pack of all bytes": INDEX_HEADER.pack(b"TRPI", 2, 0, 0, 0, (1 << 64) - 1, bytes(32)),
}


@pytest.mark.parametrize("data", INDEXES.values(), ids=INDEXES)
def test_indexes(data: bytes) -> None:
    for each in (data, data + digest(data)):
        with bounded(), pytest.raises(CorruptIndexError):
            IndexContent(each)


def journal_frame(payload: bytes, kind: int = 1, length: int | None = None) -> bytes:
    head = struct.pack("<IB3x", len(payload) if length is None else length, kind)
    return head + struct.pack("<I", crc32(payload, crc32(head, SEED))) + payload


JOURNALS = {
    "zeros": bytes(4096),
    "a length without end": journal_frame(b"", length=0xFFFFFFFF),
    "objects without number": journal_frame(b"\xff\xff\xff\xff"),
    "an object without end": journal_frame(
        struct.pack("<I32sI", 1, bytes(32), 0xFFFFFFFF) + b"\x80"
    ),
    "nested": journal_frame(bytes(4) + b"\x91" * 100_000),
    "a list in place of a map": journal_frame(bytes(4) + b"\x90"),
    "a map of four thousand million": journal_frame(bytes(4) + b"\xdf\xff\xff\xff\xff"),
    "numbers that are text": journal_frame(
        bytes(4) + msgpack.packb({"author": 1, "time": "x", "moves": []})
    ),
    "moves of other shapes": journal_frame(
        bytes(4) + msgpack.packb({"author": "", "time": 1, "moves": [[1, 2, 3], "x"]})
    ),
    "a time beyond all": journal_frame(
        bytes(4) + b"\x83\xa6author\xa0\xa5moves\x90\xa4time\xcb\x7f\xf0" + bytes(6)
    ),
    "a beginning that closes text": journal_frame(
        bytes(4) + msgpack.packb({"closes": [["x", "y"]], "line": b"x" * 16}), kind=3
    ),
}


@pytest.mark.parametrize("data", JOURNALS.values(), ids=JOURNALS)
def test_journals(filled: Trace, tmp_path: Path, data: bytes) -> None:
    with bounded():
        assert list(scan(lambda at, size: data[at : at + size], 0, len(data))) == []
    path = sorted((tmp_path / ".trace" / "journal").iterdir())[-1]
    whole = path.read_bytes().rstrip(b"\0")
    path.write_bytes(whole + data)
    for words in (("log",), ("status",), ("commit", "--user", "goes on"), ("log",)):
        assert filled(*words).code == 0
    assert "goes on" in filled("log").text
    assert "before" in filled("log").text


DEEP = 100_000
DOCUMENTS = {
    "nested lists": "[" * DEEP + "]" * DEEP,
    "nested maps": '{"a":' * DEEP + "1" + "}" * DEEP,
    "nested in a message": '{"role":"user","content":' + "[" * DEEP + "]" * DEEP + "}",
    "a number of many digits": '{"role": "user", "content": ' + "9" * 100_000 + "}",
    "an exponent": '{"role": "user", "content": 1e999999999}',
    "not a number": '{"role": "user", "content": NaN}',
    "endless": '{"role": "user", "content": Infinity}',
    "a key twice": '{"role": "robot", "role": "robot", "content": "x"}',
    "not closed": '{"role": "user", "content": "' + "x" * 1_000_000,
    "a zero byte": '{"role": "user", "content": "x"}\0',
    "two marks of order": "\ufeff\ufeff{}",
    "half an escape": '{"role": "user", "content": "\\u12"}',
}


@pytest.mark.parametrize("text", DOCUMENTS.values(), ids=DOCUMENTS)
def test_json(filled: Trace, tmp_path: Path, text: str) -> None:
    with bounded(), pytest.raises((UnreadableInputError, InvalidMessageError)):
        parse_messages(text)
    (tmp_path / "x.json").write_text(text)
    before = state(tmp_path)
    refused(filled("commit", "--json", "-F", "x.json"), 2)
    refused(filled("write-commit", "x.json"), 2)
    assert state(tmp_path) == before


BUNDLES: dict[str, bytes] = {
    "nothing": b"",
    "a header without end": b"trace bundle 1\n" + b"\xff\xff\xff\xff",
    "a header of zeros": b"trace bundle 1\n" + struct.pack("<I", MAXIMUM_HEADER_BYTES) + bytes(100),
    "many refs": b"trace bundle 1\n" + struct.pack("<I", 9) + b"\x81\xa4refs\xdd\xff\xff\xff\xff",
    "a version in many digits": b"trace bundle " + b"9" * 100_000 + b"\n",
    "a line without end": b"trace bundle " + b"1" * 100_000,
}


@pytest.mark.parametrize("data", BUNDLES.values(), ids=BUNDLES)
def test_bundles(filled: Trace, tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x.bundle").write_bytes(data)
    before = state(tmp_path)
    with bounded(), pytest.raises(FormatError) as caught:
        bundles().list(str(tmp_path / "x.bundle"))
    assert isinstance(caught.value, CorruptBundleError) or caught.value.code == "unsupported-format"
    for words in (("bundle", "list", "x.bundle"), ("bundle", "import", "x.bundle")):
        assert filled(*words).code in (12, 13)
    assert state(tmp_path) == before


SETTINGS = {
    "nested": "a = " + "[" * 20_000 + "]" * 20_000,
    "dots": ".".join("a" * 20_000) + " = 1",
    "digits": "budget = " + "9" * 10_000,
    "a megabyte": "#" * (1 << 20),
    "tables in tables": "\n".join(f"[{'.'.join('a' * n)}]" for n in range(1, 300)),
}


@pytest.mark.parametrize("text", SETTINGS.values(), ids=SETTINGS)
def test_settings(filled: Trace, tmp_path: Path, text: str) -> None:
    path = tmp_path / ".trace" / "config"
    path.write_text(path.read_text() + text + "\n")
    started = time.monotonic()
    outcome = filled("log")
    assert outcome.code in (0, 12, 14)
    assert "unexpected" not in outcome.err
    assert time.monotonic() - started < 3 * SECONDS


@pytest.mark.parametrize("many", ["folders", "files", "deep"])
def test_a_huge_folder_of_refs(filled: Trace, tmp_path: Path, many: str) -> None:
    root = tmp_path / ".trace" / "refs" / "heads"
    for number in range(3000 if many != "deep" else 1):
        if many == "folders":
            (root / f"b{number}").mkdir()
        elif many == "files":
            (root / f"f{number}").write_bytes(b"")
        else:
            (root / "/".join("d" * 900)).mkdir(parents=True)
    started = time.monotonic()
    for words in (("status",), ("log",), ("commit", "-q", "--user", "x"), ("for-each-ref",)):
        assert filled(*words).code == 0
    assert time.monotonic() - started < 3 * SECONDS


def test_numbers_that_json_would_round(filled: Trace) -> None:
    outcome = filled("usage", "record", json.dumps({"input_tokens": 1 << 80, "output_tokens": 1}))
    assert outcome.code in (0, 2)
    assert "unexpected" not in outcome.err


@pytest.mark.parametrize("schema", ["no JSON", "[" * DEEP, "9" * 10_000, ""], ids=len)
def test_schemas_of_tools(filled: Trace, tmp_path: Path, schema: str) -> None:
    """A commit may name any blob as the schema of a tool."""
    with Store.open(str(tmp_path / ".trace")) as store:
        blob = store.objects.write(encode_blob(schema.encode()))
        tip = store.refs.head().oid
        assert tip is not None
        oid = store.objects.write(Commit([tip], "x", 1, [tools([blob])]).encode())
    assert filled("update-ref", "refs/heads/main", str(oid)).code == 0
    for words in (
        ("compile",),
        ("tools",),
        ("compile", "-f", "openai"),
        ("export", "--format", "atif"),
    ):
        refused(filled(*words), 12)
    assert filled("log").code == 0
