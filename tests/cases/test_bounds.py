"""Small input that would take much time or memory, or that never ends, is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.command_line import Run, Trace
from trace_cli.render.structure import to_json
from trace_store.base.oid import ObjectId, digest
from trace_store.bundles.format import BundleHeader
from trace_store.errors import CorruptBundleError, CorruptObjectError, InvalidInputError
from trace_store.journal import frames
from trace_store.objects import codec
from trace_store.odb.pack_writer import PackWriter
from trace_store.store.store import Store

ITEMS = {
    "nothing": b"\xc0",
    "arrays": b"\x90",
    "maps": b"\x80",
    "texts": b"\xa0",
    "numbers": b"\x01",
}


def array(count: int, item: bytes) -> bytes:
    return b"\xdd" + count.to_bytes(4, "big") + item * count


def bomb(item: bytes) -> bytes:
    """Return an object of 16 million elements in containers within their own bounds."""
    return b"\x92\xa4list" + array(250, array(65_536, item))


@pytest.mark.parametrize("item", ITEMS.values(), ids=ITEMS)
def test_an_object_of_millions_of_elements_is_refused_before_it_is_unpacked(
    item: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: object) -> None:
        raise AssertionError("it was unpacked")

    monkeypatch.setattr(codec, "unpack_unchecked", refuse)
    with pytest.raises(CorruptObjectError, match="elements"):
        codec.decode(bomb(item))
    with pytest.raises(CorruptBundleError, match="elements"):
        BundleHeader.decode(bomb(item)[6:])


def test_a_frame_of_a_journal_has_the_same_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    import msgpack

    monkeypatch.delattr(msgpack, "unpackb")
    with pytest.raises(ValueError, match="too many elements"):
        frames._unpack(bomb(b"\xc0"))


def test_elements_are_counted_not_bytes() -> None:
    text = b"\xdb" + (3 << 20).to_bytes(4, "big") + bytes(3 << 20)
    for data in (
        b"\x92\xa4list" + text,
        b"\x92\xa4list" + array(60_000, b"\xd9\x40" + b"a" * 64),
        b"\x92\xa4list" + array(60_000, b"\xcf" + bytes(8) + b""),
        codec.encode(["list", [{"a": [n], "b": b"x" * 300} for n in range(9_000)]]),
    ):
        assert not codec.has_too_many_elements(data)
        assert codec.decode(data)[0] == "list"


def test_what_is_written_is_readable_and_has_the_bound_too() -> None:
    value = ["list", [[0] * 60_000] * 18]
    with pytest.raises(InvalidInputError, match="1,048,576"):
        codec.check_readable(value, len(codec.encode(value)))
    value = ["list", [[0] * 60_000] * 17]
    codec.check_readable(value, len(codec.encode(value)))
    assert codec.decode(codec.encode(value)) == value


def test_a_pack_with_one_is_reported(ok: Run, repository: Trace, tmp_path: Path) -> None:
    data = bomb(b"\x90")
    with Store.open(str(tmp_path / ".trace")) as store:
        writer = PackWriter(store.disk, store.layout)
        writer.add(ObjectId(digest(data)), data)
        writer.finish()
    checked = repository("fsck")
    assert checked.code != 0
    assert "1,048,576 elements" in checked.text
    packed = next((tmp_path / ".trace" / "objects" / "pack").glob("*.pack"))
    assert packed.stat().st_size < 8192
    assert repository("cat-file", "-p", str(ObjectId(digest(data)))).code != 0


def test_printing_takes_room_in_proportion() -> None:
    value: list[object] = []
    for _ in range(60):
        value = [value]
    assert len(to_json([value] * 100)) < 100 * 61 * 2 * 40


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize(
    "words",
    [["purge", "--dry-run", "--match-file"], ["secrets", "test"], ["hash-object"], ["import"]],
)
def test_a_named_pipe_is_refused(ok: Run, repository: Trace, words: list[str]) -> None:
    os.mkfifo("pipe")
    refused = repository(*words, "pipe")
    assert refused.code == 2
    assert "pipe" in refused.err


@pytest.mark.skipif(not os.path.exists("/dev/fd"), reason="needs /dev/fd")
def test_a_pipe_of_the_shell_is_read(ok: Run) -> None:
    reader, writer = os.pipe()
    os.write(writer, b"some text")
    os.close(writer)
    try:
        assert len(ok("hash-object", f"/dev/fd/{reader}").text) == 65
    finally:
        os.close(reader)
