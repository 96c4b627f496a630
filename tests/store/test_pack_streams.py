"""Packs from streams: whole or rejected, and published together or not at all."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.store.support.histories import append, errors, new_store, pack_paths
from tests.store.test_packs import texts
from tests.support.examples import examples
from trace_store.base.oid import digest, hash_object
from trace_store.errors import CorruptIndexError, CorruptPackError, StorageError
from trace_store.maintenance.repack import pack as fold_packs
from trace_store.maintenance.seal import seal
from trace_store.objects.codec import encode, encode_blob
from trace_store.odb import pack_writer
from trace_store.odb.index_scan import IndexContent
from trace_store.odb.ingest import PackReceiver, pack_of, read_packs, read_up_to
from trace_store.odb.pack import FRAME, HEADER, MAGIC, MAXIMUM_PACK_FRAMES, TRAILER, VERSION
from trace_store.odb.pack_index import build_index
from trace_store.odb.pack_writer import PackEncoder
from trace_store.odb.verify import PackVerifier
from trace_store.store.store import Store
from trace_store.testing.disks import FailingDisk


class Sink:
    def __init__(self) -> None:
        self.data = b""
        self.done: list[tuple[str, bytes]] = []

    def begin(self) -> Sink:
        return self

    def write(self, data: bytes) -> None:
        self.data += data

    def complete(self, name: str, index: bytes) -> None:
        self.done.append((name, index))


def packed(objects: list[bytes], **options: int) -> Sink:
    sink = Sink()
    encoder = PackEncoder(sink.begin, **options)
    for data in objects:
        encoder.add(hash_object(data), data)
    assert encoder.finish() == [name for name, _ in sink.done]
    return sink


def blobs(count: int) -> list[bytes]:
    return [encode_blob(text) for text in texts(count)]


def packs_of(data: bytes) -> list[bytes]:
    return list(read_packs(io.BytesIO(data).read, "the test"))


@settings(max_examples=examples(40))
@given(
    st.lists(st.binary(max_size=300), max_size=30, unique=True),
    st.integers(200, 2000),
    st.integers(50, 500),
)
def test_there_and_back(contents: list[bytes], maximum: int, frame: int) -> None:
    objects = [encode_blob(content) for content in contents]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pack_writer, "MAXIMUM_PACK_BYTES", maximum)
        sink = packed(objects, frame_bytes=frame)
    found = packs_of(sink.data)
    assert b"".join(found) == sink.data
    assert [digest(data).hex() for data in found] == [name for name, _ in sink.done]
    again: list[bytes] = []
    for data, (_, index) in zip(found, sink.done, strict=True):
        look = PackVerifier(pack_of(data, "the test"))
        again += [each.data for each in look.objects()]
        assert look.index() == index == build_index(pack_of(data, ""))[0]
        assert look.agrees_with(IndexContent(index))
    assert again == objects


def test_a_stream_that_is_cut_or_changed_anywhere() -> None:
    data = packed(blobs(5)).data
    assert packs_of(b"") == []
    assert packs_of(data + data) == [data, data]
    for length in range(1, len(data)):
        with pytest.raises(CorruptPackError):
            packs_of(data[:length])
    for place in range(len(data)):
        changed = bytearray(data)
        changed[place] ^= 1 << place % 8
        with pytest.raises(CorruptPackError):
            packs_of(bytes(changed))
    with pytest.raises(CorruptPackError, match="pack 2 of the test is not a pack"):
        packs_of(data + b"\n")


def test_a_pack_larger_than_one_may_be_is_not_read_to_its_end() -> None:
    head = HEADER.pack(MAGIC, VERSION, 1, 1, 0)
    read = 0

    def endless(size: int) -> bytes:
        nonlocal read
        read += size
        return (FRAME.pack(1 << 20, 1, 0, 0) * (size // FRAME.size + 1))[:size]

    stream = io.BytesIO(head)
    with pytest.raises(CorruptPackError, match="too large"):
        list(read_packs(lambda size: stream.read(size) or endless(size), "x"))
    assert read < 40 << 20
    many = head + (MAXIMUM_PACK_FRAMES + 1) * (FRAME.pack(1, 1, 0, 0) + b"x")
    with pytest.raises(CorruptPackError, match="too large"):
        packs_of(many + bytes(100))


def test_short_reads_are_put_together() -> None:
    data = packed(blobs(3)).data
    stream = io.BytesIO(data)
    assert list(read_packs(lambda size: stream.read(min(size, 7)), "x")) == [data]
    assert read_up_to(io.BytesIO(b"abc").read, 5) == b"abc"


class TestExamination:
    def damage(self, data: bytes) -> list[str]:
        told: list[str] = []
        for _ in PackVerifier(pack_of(data, "x"), told.append).objects():
            pass
        return told

    def test_all_that_is_wrong_is_told(self) -> None:
        objects = [encode_blob(b"x"), b"\xc0", encode_blob(b"y"), encode(["tag", {}])]
        told = self.damage(packed(objects, frame_bytes=20).data)
        assert len(told) == 2
        assert [hash_object(objects[n]).hex() in line for n, line in zip((1, 3), told, strict=True)]
        assert self.damage(packed(blobs(3)).data) == []

    def test_a_frame_that_is_damaged(self) -> None:
        data = bytearray(packed(blobs(40), frame_bytes=2000).data)
        data[200] ^= 1
        told = self.damage(bytes(data))
        assert "does not match the hash in its trailer" in told[0]
        assert told[1].startswith("frame 0: ")
        assert "as in its trailer" in told[-1]
        with pytest.raises(CorruptPackError):
            list(PackVerifier(pack_of(bytes(data), "x")).objects())

    def test_counts_of_the_trailer(self) -> None:
        data = packed(blobs(2)).data[: -TRAILER.size]
        for frames, objects in ((1, 3), (2, 2)):
            ends = data + TRAILER.pack(frames, objects, bytes(32))[:8]
            assert len(self.damage(ends + digest(ends))) == 1


class TestReceiving:
    def receive(self, store: Store, *datas: bytes) -> list[str]:
        receiver = PackReceiver(store.disk, store.layout, store.objects)
        try:
            for data in datas:
                receiver.add(data, "the test")
            return receiver.publish()
        finally:
            receiver.discard()

    def test_packs_appear_together(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(pack_writer, "MAXIMUM_PACK_BYTES", 4000)
        store = new_store(tmp_path)
        objects = blobs(40)
        sink = packed(objects, frame_bytes=1000)
        datas = packs_of(sink.data)
        assert len(datas) > 2
        broken = bytearray(datas[-1])
        broken[30] ^= 1
        with pytest.raises(CorruptPackError):
            self.receive(store, *datas[:-1], bytes(broken))
        assert pack_paths(tmp_path) == []
        assert os.listdir(store.layout.tmp_dir) == []
        assert self.receive(store, *datas) == [name for name, _ in sink.done]
        assert [store.objects.read(hash_object(data)) for data in objects] == objects
        assert errors(store) == []
        for name, index in sink.done:
            assert Path(store.layout.pack_index_file(name)).read_bytes() == index

    def test_what_is_here_is_not_stored_again(self, tmp_path: Path) -> None:
        store = new_store(tmp_path)
        append(store, "one")
        seal(store)
        data = packed(blobs(5)).data
        (name,) = self.receive(store, data, data)
        assert self.receive(store, data) == []
        fold_packs(store)
        assert name not in [path.stem for path in pack_paths(tmp_path)]
        before = pack_paths(tmp_path)
        assert self.receive(store, data) == []
        assert pack_paths(tmp_path) == before

    def test_a_damaged_copy_is_healed(self, tmp_path: Path) -> None:
        store = new_store(tmp_path)
        objects = blobs(5)
        data = packed(objects).data
        (name,) = self.receive(store, data)
        path = Path(store.layout.pack_file(name))
        damaged = bytearray(data)
        damaged[60] ^= 1
        path.write_bytes(damaged)
        with Store.open(store.layout.root) as again:
            assert self.receive(again, data) == [name]
            assert [again.objects.read(hash_object(each)) for each in objects] == objects
        assert path.read_bytes() == data

    def test_a_disk_that_refuses_leaves_nothing(self, tmp_path: Path) -> None:
        data = packed(blobs(5)).data
        at = 0
        while True:
            at += 1
            folder = tmp_path / str(at)
            folder.mkdir()
            new_store(folder).close()
            disk = FailingDisk(at)
            with Store.open(str(folder / ".trace"), disk=disk) as store:
                try:
                    self.receive(store, data)
                except StorageError:
                    pass
                else:
                    break
            with Store.open(str(folder / ".trace")) as store:
                assert errors(store) == []
                self.receive(store, data)
                assert len(pack_paths(folder)) == 1
        assert at > 5


class TestIndexContent:
    def test_any_bit(self) -> None:
        ((_, index),) = packed(blobs(3)).done
        assert len(IndexContent(index).rows) == 3
        for place in range(len(index)):
            changed = bytearray(index)
            changed[place] ^= 1 << place % 8
            with pytest.raises(CorruptIndexError):
                IndexContent(bytes(changed))
            body = bytes(changed[:-32])
            if place < 56 and place not in range(16, 56):
                with pytest.raises(CorruptIndexError):
                    IndexContent(body + digest(body))
        for length in range(len(index)):
            with pytest.raises(CorruptIndexError):
                IndexContent(index[:length])

    def test_order(self) -> None:
        ((_, index),) = packed(blobs(2)).done
        at = 56 + 8
        swapped = index[:at] + index[at + 32 : at + 64] + index[at : at + 32] + index[at + 64 : -32]
        with pytest.raises(CorruptIndexError, match="not sorted"):
            IndexContent(swapped + digest(swapped))
