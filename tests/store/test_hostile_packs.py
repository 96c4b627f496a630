"""Packs that try to exhaust a reader, are numerous, incomplete, or on a failing disk."""

from __future__ import annotations

import errno
import os
import struct
from pathlib import Path

import pytest

from tests.store.support.histories import append, main_line, new_store, pack_paths, put, reopen
from tests.store.test_packs import packs_in, texts, write_packs, write_raw
from tests.support.files import flip
from trace_store.base.oid import digest, hash_object
from trace_store.contracts import Transaction
from trace_store.disk.files import READ, Disk
from trace_store.disk.layout import MAXIMUM_OBJECT_BYTES, Layout
from trace_store.errors import CorruptObjectError, CorruptPackError, StorageError
from trace_store.maintenance.repack import pack
from trace_store.maintenance.seal import seal
from trace_store.objects.codec import encode_blob
from trace_store.odb.compression import Dictionary, compress
from trace_store.odb.delta_links import MARK
from trace_store.odb.pack import (
    DICTIONARY,
    FRAME,
    HEADER,
    MAGIC,
    MAXIMUM_DESCRIPTORS,
    MAXIMUM_DICTIONARY_BYTES,
    MAXIMUM_FRAME_OBJECTS,
    NEEDS_DICTIONARY,
    SHORT_LINKS,
    VERSION,
    join,
    walk_objects,
)
from trace_store.odb.pack_writer import PackWriter
from trace_store.odb.packs import Packs
from trace_store.store.store import Store

HEAD = HEADER.pack(MAGIC, VERSION, 1, 1, 0)
END = FRAME.pack(0, 0, 0, 0)


class CountingDisk(Disk):
    """Counts open descriptors, and fails above `limit`."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.fds: set[int] = set()
        self.most = 0

    def open(self, path: str, mode: str = READ) -> int | None:
        if len(self.fds) >= self.limit:
            raise StorageError("Too many open files", path=path, errno=errno.EMFILE)
        fd = super().open(path, mode)
        if fd is not None:
            self.fds.add(fd)
            self.most = max(self.most, len(self.fds))
        return fd

    def close(self, fd: int) -> None:
        super().close(fd)
        self.fds.discard(fd)


class BadSectors(Disk):
    """Fails to read certain files beyond their first bytes."""

    def __init__(self) -> None:
        self.bad: set[int] = set()

    def read_at(self, fd: int, offset: int, size: int) -> bytes:
        if offset > 16 and os.fstat(fd).st_ino in self.bad:
            raise StorageError("Input/output error", errno=errno.EIO)
        return super().read_at(fd, offset, size)


def many_packs(folder: Path, count: int) -> list[bytes]:
    objects = [b"object %d" % number for number in range(count)]
    for data in objects:
        write_packs(folder, [data])
    return objects


def frame_of(objects: list[bytes], sort: int = 0, dictionary: bytes = b"") -> bytes:
    """Return a frame with these objects in their stored form."""
    raw = join(objects)
    body = compress(raw, level=3, dictionary=Dictionary(dictionary) if dictionary else None)
    return FRAME.pack(len(body), len(raw), len(objects), sort) + body


def dictionary_of(content: bytes) -> bytes:
    body = compress(content, level=3)
    return FRAME.pack(len(body), len(content), 0, DICTIONARY) + body


class TestBombs:
    def test_a_pack_holds_no_more_than_it_may(self, tmp_path: Path) -> None:
        """Sixty small frames that declare 420 MiB are rejected before they are decompressed."""
        content = bytes(7 << 20)
        body = HEAD + dictionary_of(content)
        body += 59 * frame_of([content], NEEDS_DICTIONARY, content)
        write_raw(tmp_path, body + END, 60, 59)
        packs = packs_in(tmp_path)
        (name,) = packs.names()
        assert name in packs.damaged
        packed = packs.get(name)
        assert packed is not None
        with pytest.raises(CorruptPackError, match="too much content"):
            list(packed.pack.places())

    def test_a_dictionary_is_no_larger_than_it_may_be(self, tmp_path: Path) -> None:
        content = bytes(MAXIMUM_DICTIONARY_BYTES + 1)
        write_raw(tmp_path / "large", HEAD + dictionary_of(content) + END, 1, 0)
        write_raw(tmp_path / "small", HEAD + dictionary_of(b"seven b") + END, 1, 0)
        held = dictionary_of(bytes(20))
        held = held[:8] + struct.pack("<I", 1) + held[12:]
        write_raw(tmp_path / "full", HEAD + held + END, 1, 1)
        for folder in ("large", "small", "full"):
            packs = packs_in(tmp_path / folder)
            assert list(packs.iterate()) == []
            assert set(packs.damaged) == set(packs.names()), folder

    def test_a_link_leads_to_what_stands_before(self, tmp_path: Path) -> None:
        first = encode_blob(b"first")
        short = [MARK + bytes([back, 0, 0]) + b"rest" for back in (1, 2, 3)]
        cut = [b"cut" + MARK, MARK + b"\1", MARK + b"\0\0"]
        huge = [MARK + b"\xff\xff\xff"]
        body = HEAD + frame_of([first]) + frame_of([*short, *cut, *huge], SHORT_LINKS)
        write_raw(tmp_path, body + END, 2, 8)
        one = MARK + hash_object(first) + b"rest"
        two = MARK + hash_object(first) + b"rest"
        assert one == two
        packs = packs_in(tmp_path)
        assert packs.read(hash_object(first)) == first
        assert packs.read(hash_object(one)) == one
        assert set(packs.iterate()) == {hash_object(first), hash_object(one)}
        assert set(packs.damaged) == set(packs.names())

    def test_short_links_are_no_bomb(self, tmp_path: Path) -> None:
        """Five bytes expand to thirty-four, so the size is checked first."""
        first = encode_blob(b"first")
        within = MARK + b"\1\0\0"
        count = MAXIMUM_OBJECT_BYTES // 34
        for number, sound in ((count, True), (count + 1, False), (3 << 20, False)):
            body = HEAD + frame_of([first]) + frame_of([within * number], SHORT_LINKS)
            folder = tmp_path / str(number)
            write_raw(folder, body + END, 2, 2)
            packs = packs_in(folder)
            assert len(list(packs.iterate())) == 1 + sound
            assert bool(packs.damaged) is not sound

    def test_empty_objects_are_counted(self, tmp_path: Path) -> None:
        """A frame of zeros would be four million empty objects."""
        count = MAXIMUM_FRAME_OBJECTS + 1
        write_raw(tmp_path, HEAD + frame_of([b""] * count) + END, 1, count)
        packs = packs_in(tmp_path)
        assert list(packs.iterate()) == []
        assert set(packs.damaged) == set(packs.names())

    def test_objects_and_frames_of_a_pack_are_counted(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("trace_store.odb.pack.MAXIMUM_PACK_OBJECTS", 200)
        monkeypatch.setattr("trace_store.odb.pack.MAXIMUM_PACK_FRAMES", 100)
        write_raw(tmp_path / "a", HEAD + 21 * frame_of([b""] * 10) + END, 21, 0)
        count = 101
        write_raw(tmp_path / "b", HEAD + count * frame_of([b""]) + END, count, 0)
        for folder, message in (
            (tmp_path / "a", "too many objects"),
            (tmp_path / "b", "too much content"),
        ):
            packs = packs_in(folder)
            (packed,) = [packs.get(name) for name in packs.names()]
            assert packed is not None
            with pytest.raises(CorruptPackError, match=message):
                for _ in walk_objects(packed.pack):
                    pass

    def test_a_writer_keeps_the_bounds(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("trace_store.odb.pack_writer.MAXIMUM_FRAME_OBJECTS", 3)
        module = "trace_store.odb.pack_writer."
        monkeypatch.setattr(module + "MAXIMUM_PACK_OBJECTS", 12)
        objects = [b"%d" % number for number in range(30)]
        assert len(write_packs(tmp_path / "a", objects)) == 3
        monkeypatch.setattr(module + "MAXIMUM_PACK_FRAMES", 2)
        assert len(write_packs(tmp_path / "b", objects)) == 5
        for folder in (tmp_path / "a", tmp_path / "b"):
            packs = packs_in(folder)
            assert [packs.read(hash_object(data)) for data in objects] == objects


class TestDescriptors:
    def test_many_packs_need_few(self, tmp_path: Path) -> None:
        objects = many_packs(tmp_path, MAXIMUM_DESCRIPTORS + 10)
        disk = CountingDisk(1000)
        packs = Packs(disk, Layout(str(tmp_path)))
        assert [packs.read(hash_object(data)) for data in objects] == objects
        assert set(packs.iterate()) == {hash_object(data) for data in objects}
        assert disk.most <= MAXIMUM_DESCRIPTORS
        packs.close()
        assert disk.fds == set()

    def test_fewer_than_usual_are_enough(self, tmp_path: Path) -> None:
        objects = many_packs(tmp_path, 20)
        disk = CountingDisk(6)
        packs = Packs(disk, Layout(str(tmp_path)))
        assert [packs.read(hash_object(data)) for data in objects] == objects
        assert packs.damaged == {}
        assert len(disk.fds) < 6, "others have some, too"

    def test_a_lack_of_descriptors_is_no_damage(self, tmp_path: Path) -> None:
        objects = many_packs(tmp_path, 5)
        disk = CountingDisk(0)
        packs = Packs(disk, Layout(str(tmp_path)))
        with pytest.raises(StorageError) as caught:
            packs.read(hash_object(objects[0]))
        assert caught.value.errno == errno.EMFILE
        assert packs.damaged == {}
        disk.limit = 10
        assert [packs.read(hash_object(data)) for data in objects] == objects

    def test_a_pack_folded_while_it_had_no_descriptor(self, tmp_path: Path) -> None:
        """Another process replaces packs whose files this one closed; all objects are still found."""
        store = new_store(tmp_path)
        for data in texts(3):
            write_packs(tmp_path / ".trace", [data])
        assert len(pack_paths(tmp_path)) == 3
        right = {oid: store.objects.read(oid) for oid in store.objects.iterate()}
        for way in ("read", "contains", "iterate"):
            store.objects.write(encode_blob(way.encode()))
            with reopen(tmp_path) as reader:
                assert reader.objects.contains(next(iter(right)))
                reader.objects.packs._files._close_oldest(0)
                pack(reopen(tmp_path))
                if way == "read":
                    assert all(reader.objects.read(oid) == data for oid, data in right.items())
                elif way == "contains":
                    assert all(reader.objects.contains(oid) for oid in right)
                else:
                    assert set(right) <= set(reader.objects.packs.iterate())


class TestOtherWriters:
    def test_a_pack_is_tried_again_when_its_file_has_grown(self, tmp_path: Path) -> None:
        objects = texts(30)
        (name,) = write_packs(tmp_path / "a", objects, frame_bytes=3000)
        data = Path(Layout(str(tmp_path / "a")).pack_file(name)).read_bytes()
        store = new_store(tmp_path / "b")
        append(store, "one")
        path = Path(store.layout.pack_file(name))
        for length in (0, 10, len(data) // 2):
            path.write_bytes(data[:length])
            with pytest.raises(CorruptPackError):
                store.objects.read(hash_object(objects[-1]))
        path.write_bytes(data)
        assert [store.objects.read(hash_object(o)) for o in objects] == objects
        assert store.objects.packs.damaged == {}

    def test_a_sound_copy_written_since_is_found(self, tmp_path: Path) -> None:
        store = new_store(tmp_path)
        blob = encode_blob(os.urandom(2000))
        oid = put(store, blob)
        seal(store)
        store.close()
        (path,) = pack_paths(tmp_path)
        with reopen(tmp_path) as reader:
            assert reader.objects.contains(oid)
            flip(path, 100)
            with pytest.raises(CorruptObjectError):
                reader.objects.read(oid)
            writer = PackWriter(reader.disk, reader.layout)
            writer.add(oid, blob)
            writer.finish()
            assert reader.objects.read(oid) == blob


class TestFailingDisk:
    def test_a_pack_the_disk_refuses_hides_nothing_and_stops_no_seal(self, tmp_path: Path) -> None:
        disk = BadSectors()
        store = new_store(tmp_path, disk=disk)
        append(store, "one")
        blob = encode_blob(b"q" * 2000)
        oid = put(store, blob)
        seal(store)
        store.objects.write(blob)
        append(store, "two")
        (bad,) = pack_paths(tmp_path)
        disk.bad.add(bad.stat().st_ino)
        assert store.objects.read(oid) == blob
        seal(store)
        assert bad in pack_paths(tmp_path)
        append(store, "three")
        seal(store)
        assert bad in pack_paths(tmp_path)
        assert bad.stem in pack(store).kept
        disk.bad.clear()
        with reopen(tmp_path) as again:
            assert main_line(again) == ["one", "two", "three"]

    def test_a_disk_that_works_again_is_believed(self, tmp_path: Path) -> None:
        objects = texts(20)
        (name,) = write_packs(tmp_path, objects)
        disk = BadSectors()
        disk.bad.add(os.stat(Layout(str(tmp_path)).pack_file(name)).st_ino)
        packs = Packs(disk, Layout(str(tmp_path)))
        assert packs.read(hash_object(objects[0])) is None
        assert name in packs.damaged
        disk.bad.clear()
        assert packs.refresh()
        assert [packs.read(hash_object(data)) for data in objects] == objects
        assert packs.damaged == {}


def test_an_index_that_names_a_place_outside_of_its_pack_is_made_again(tmp_path: Path) -> None:
    """Every high bit of a frame's entry, except the number of objects, which readers do not need."""
    data = b"content " * 30
    (name,) = write_packs(tmp_path, [data])
    path = Path(Layout(str(tmp_path)).pack_index_file(name))
    sound = path.read_bytes()
    assert digest(sound[:-32]) == sound[-32:]
    entry = len(sound) - 56
    for place in (*range(entry, entry + 12), *range(entry + 16, entry + 24)):
        changed = bytearray(sound)
        changed[place] ^= 0x80
        path.write_bytes(changed)
        packs = packs_in(tmp_path)
        assert packs.read(hash_object(data)) == data, place
        packs.close()
        assert path.read_bytes() == sound


def test_a_durable_transaction_does_not_rely_on_a_loose_file(tmp_path: Path) -> None:
    """A `fast` writer did not sync it; a pack is always synced."""
    blob = encode_blob(os.urandom(5000))
    oid = hash_object(blob)
    with new_store(tmp_path) as fast:
        fast.objects.write(blob)
    with Store.open(str(tmp_path / ".trace")) as store:
        store.transact(lambda refs: Transaction([(oid, blob)], [], ""))
        assert store.journal.contains(oid)
        seal(store)
    for number in range(2):  # the first seal after this removes the journal
        append(reopen(tmp_path), f"{number}")
        seal(reopen(tmp_path))
    with Store.open(str(tmp_path / ".trace")) as store:
        store.transact(lambda refs: Transaction([(oid, blob)], [], ""))
        assert not store.journal.contains(oid), "it is in a pack"
