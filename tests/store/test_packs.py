"""Packs and their indexes: round trips, limits, damage, rebuilding."""

from __future__ import annotations

import contextlib
import os
import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.store.support.histories import append, codes, main_line, new_store, pack_paths, reopen
from tests.support.examples import examples
from tests.support.files import flip
from trace_store.base.oid import digest, hash_object
from trace_store.disk.files import Disk
from trace_store.disk.layout import MAXIMUM_OBJECT_BYTES, Layout
from trace_store.errors import (
    CorruptObjectError,
    CorruptPackError,
    FormatError,
    ObjectNotFoundError,
)
from trace_store.maintenance.repack import pack
from trace_store.maintenance.seal import seal
from trace_store.objects.codec import encode_blob
from trace_store.odb import pack_writer
from trace_store.odb.compression import Dictionary, compress, decompress
from trace_store.odb.pack import (
    FRAME,
    HEADER,
    MAGIC,
    MAXIMUM_FRAME_BYTES,
    MAXIMUM_PACK_BYTES,
    TRAILER,
    VERSION,
    join,
    split,
    walk_objects,
)
from trace_store.odb.pack_index import BUCKET_OBJECTS, FEW_LOOK_UPS, HASH_BYTES
from trace_store.odb.pack_writer import PackWriter
from trace_store.odb.packs import Packs
from trace_store.store.store import Store
from trace_store.testing.disks import RecordingDisk

DISK = Disk()


def write_packs(folder: Path, objects: list[bytes], **options: int) -> list[str]:
    writer = PackWriter(DISK, Layout(str(folder)), **options)
    for data in objects:
        writer.add(hash_object(data), data)
    return writer.finish()


def packs_in(folder: Path) -> Packs:
    return Packs(DISK, Layout(str(folder)))


def texts(count: int, size: int = 600) -> list[bytes]:
    source = random.Random(7)
    words = [str(source.random()).encode() for _ in range(400)]
    return [b" ".join(source.choices(words, k=size // 18)) + str(n).encode() for n in range(count)]


class TestRoundTrip:
    @settings(max_examples=examples(40), deadline=None)
    @given(
        st.lists(st.binary(max_size=400), max_size=60),
        st.sampled_from([1, 64, 700, 4096]),
        st.sampled_from([0, 900, 20_000]),
    )
    def test_what_is_packed_is_read(self, objects: list[bytes], frame: int, shared: int) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            names = write_packs(folder, objects, frame_bytes=frame, shared_bytes=shared)
            assert len(names) == (1 if objects else 0)
            for keep_index in (True, False):
                packs = packs_in(folder)
                for data in reversed(objects):
                    assert packs.read(hash_object(data)) == data
                assert set(packs.iterate()) == {hash_object(data) for data in objects}
                assert (
                    packs.read(hash_object(b"absent") if b"absent" not in objects else b"") is None
                )
                packs.close()
                if keep_index:
                    for path in folder.rglob("*.idx"):
                        path.unlink()

    @settings(max_examples=examples(60), deadline=None)
    @given(st.lists(st.binary(max_size=50), max_size=20))
    def test_frames_are_split_as_they_were_joined(self, objects: list[bytes]) -> None:
        raw = join(objects)
        assert [raw[at : at + size] for at, size in split(raw, len(objects))] == objects

    @settings(max_examples=examples(60), deadline=None)
    @given(st.binary(max_size=5000), st.binary(min_size=8, max_size=3000), st.integers(1, 12))
    def test_deflated_data_is_inflated(self, data: bytes, content: bytes, level: int) -> None:
        for dictionary in (None, Dictionary(content)):
            packed = compress(data, level=level, dictionary=dictionary)
            assert decompress(packed, len(data), dictionary=dictionary) == data

    def test_the_order_of_writing_is_kept(self, tmp_path: Path) -> None:
        objects = texts(300)
        write_packs(tmp_path, objects, frame_bytes=5000)
        packs = packs_in(tmp_path)
        (name,) = packs.names()
        packed = packs.get(name)
        assert packed is not None
        read = [found for _, _, found in walk_objects(packed.pack) if isinstance(found, list)]
        assert [data for found in read for _, _, data in found] == objects

    def test_frames_with_a_dictionary_are_smaller(self, tmp_path: Path) -> None:
        source = random.Random(7)
        lines = [source.randbytes(30).hex().encode() for _ in range(300)]
        objects = [b"\n".join(source.sample(lines, 20)) for _ in range(300)]
        sharing = write_packs(tmp_path / "a", objects, frame_bytes=8000, shared_bytes=1 << 20)
        alone = write_packs(tmp_path / "b", objects, frame_bytes=8000)
        sizes = [
            os.path.getsize(Layout(str(tmp_path / folder)).pack_file(names[0]))
            for folder, names in (("a", sharing), ("b", alone))
        ]
        assert sizes[0] < sizes[1] * 0.5

    def test_an_object_that_is_there_twice_is_written_once(self, tmp_path: Path) -> None:
        writer = PackWriter(DISK, Layout(str(tmp_path)))
        data = b"twice"
        assert writer.add(hash_object(data), data)
        assert not writer.add(hash_object(data), data)
        writer.finish()


class TestBounds:
    def test_a_full_pack_is_followed_by_the_next(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(pack_writer, "MAXIMUM_PACK_BYTES", 200_000)
        source = random.Random(3)
        objects = [source.randbytes(30_000) for _ in range(40)]
        names = write_packs(tmp_path, objects, frame_bytes=50_000)
        assert len(names) > 5
        for path in (tmp_path / "objects" / "pack").glob("*.pack"):
            assert path.stat().st_size <= 200_000
        packs = packs_in(tmp_path)
        assert all(packs.read(hash_object(data)) == data for data in objects)

    def test_the_bounds_that_are_promised(self) -> None:
        assert MAXIMUM_PACK_BYTES == 32 * 1024 * 1024
        assert MAXIMUM_OBJECT_BYTES < MAXIMUM_PACK_BYTES - 1024, "the largest object fits a pack"

    def test_a_pack_can_be_read_alone(self, tmp_path: Path) -> None:
        objects = texts(300)
        (name,) = write_packs(tmp_path / "a", objects, frame_bytes=4000)
        alone = Path(Layout(str(tmp_path / "b")).pack_file(name))
        alone.parent.mkdir(parents=True)
        alone.write_bytes(Path(Layout(str(tmp_path / "a")).pack_file(name)).read_bytes())
        packs = packs_in(tmp_path / "b")
        assert [packs.read(hash_object(data)) for data in objects] == objects

    def test_a_pack_is_named_by_its_bytes(self, tmp_path: Path) -> None:
        (name,) = write_packs(tmp_path, texts(5))
        data = Path(Layout(str(tmp_path)).pack_file(name)).read_bytes()
        assert digest(data).hex() == name
        assert digest(data[:-32]) == data[-32:]

    def test_a_decompression_bomb_is_refused(self, tmp_path: Path) -> None:
        bomb = compress(bytes(1 << 26), level=3)
        with pytest.raises(CorruptObjectError):
            decompress(bomb, 1000)
        for raw in (1000, MAXIMUM_FRAME_BYTES + 1, 1 << 26):
            body = HEADER.pack(MAGIC, VERSION, 1, 1, 0) + FRAME.pack(len(bomb), raw, 1, 0) + bomb
            write_raw(tmp_path, body + FRAME.pack(0, 0, 0, 0), 1, 1)
            packs = packs_in(tmp_path)
            packs.refresh()
            assert list(packs.iterate()) == []
            packs.close()

    def test_inflated_data_ends_where_its_frame_does(self) -> None:
        data = compress(b"content" * 100, level=3)
        for damaged in (data[:-1], data + b"x", data + data, b"", b"junk"):
            with pytest.raises(CorruptObjectError):
                decompress(damaged, 700)

    def test_a_frame_of_no_known_sort_is_damage(self, tmp_path: Path) -> None:
        body = compress(join([b"x" * 50]), level=3)
        for sort in (1, 3, 4, 5, 7, 8, 0xFF):
            content = HEADER.pack(MAGIC, VERSION, 1, 1, 0)
            content += FRAME.pack(len(body), 54, 1, sort) + body
            write_raw(tmp_path / str(sort), content + FRAME.pack(0, 0, 0, 0), 1, 1)
            packs = packs_in(tmp_path / str(sort))
            assert packs.read(hash_object(b"x" * 50)) is None
            assert len(packs.damaged) == 1


def write_raw(folder: Path, body: bytes, frames: int, objects: int) -> None:
    """Write a pack by hand, with a correct trailer and name."""
    body += TRAILER.pack(frames, objects, b"")[:8]
    data = body + digest(body)
    path = folder / "objects" / "pack" / f"{digest(data).hex()}.pack"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


class TestIndex:
    def test_it_is_made_again_when_it_is_missing_or_damaged(self, tmp_path: Path) -> None:
        objects = texts(200)
        (name,) = write_packs(tmp_path, objects)
        path = Path(Layout(str(tmp_path)).pack_index_file(name))
        sound = path.read_bytes()
        damages = [None, b"", b"junk", sound[:-1], sound + b"x", bytes(len(sound))]
        for damaged in damages:
            if damaged is None:
                path.unlink()
            else:
                path.write_bytes(damaged)
            packs = packs_in(tmp_path)
            assert all(packs.read(hash_object(data)) == data for data in objects)
            packs.close()
            assert path.read_bytes() == sound

    def test_any_changed_byte_is_survived(self, tmp_path: Path) -> None:
        objects = texts(30)
        store = new_store(tmp_path)
        writer = PackWriter(store.disk, store.layout)
        for data in objects:
            writer.add(hash_object(data), data)
        (name,) = writer.finish()
        path = Path(store.layout.pack_index_file(name))
        sound = path.read_bytes()
        for place in range(0, len(sound), 7):
            damaged = bytearray(sound)
            damaged[place] ^= 0x41
            path.write_bytes(damaged)
            with reopen(tmp_path) as again:
                for data in objects:
                    assert again.objects.read(hash_object(data)) == data, place

    def test_what_a_damaged_index_says_of_a_frame_is_forgotten(self, tmp_path: Path) -> None:
        """It says that the links of a frame are not short, but the ids are right."""
        with new_store(tmp_path) as store:
            oids = [append(store, text) for text in ("one", "two")]
            seal(store)
        (path,) = (path.with_suffix(".idx") for path in pack_paths(tmp_path))
        content = path.read_bytes()
        end = len(content) - HASH_BYTES
        assert content[end - 4 : end] != bytes(4)
        path.write_bytes(content[: end - 4] + bytes(4) + content[end:])
        with reopen(tmp_path) as store:
            assert all(hash_object(store.objects.read(oid)) == oid for oid in reversed(oids))

    def test_a_read_only_repository_keeps_the_index_in_memory(self, tmp_path: Path) -> None:
        objects = texts(20)
        (name,) = write_packs(tmp_path, objects)
        path = Path(Layout(str(tmp_path)).pack_index_file(name))
        path.unlink()

        class ReadOnly(Disk):
            def make_directory(self, path: str) -> None:
                from trace_store.errors import StorageError

                raise StorageError("read-only", errno=30)

        packs = Packs(ReadOnly(), Layout(str(tmp_path)))
        assert all(packs.read(hash_object(data)) == data for data in objects)
        assert not path.exists()

    def test_a_look_up_reads_the_same_at_any_size(self, tmp_path: Path) -> None:
        """Indexes are read in pieces until loading them completely is cheaper."""
        costs: list[int] = []
        for count in (50, 20_000):
            folder = tmp_path / str(count)
            objects = [str(n).encode() * 3 for n in range(count)]
            write_packs(folder, objects)
            disk = RecordingDisk()
            packs = Packs(disk, Layout(str(folder)))
            packs.refresh()
            disk.reset()
            worst = 0
            for data in objects[:: max(1, count // FEW_LOOK_UPS)][:FEW_LOOK_UPS]:
                disk.reset()
                assert packs.contains(hash_object(data))
                assert disk.calls <= 2 + 4 * BUCKET_OBJECTS
                worst = max(worst, disk.read_bytes)
            costs.append(worst)
        assert max(costs) < 3000, costs


class TestDamage:
    def test_every_byte_of_a_pack_counts(self, tmp_path: Path) -> None:
        """Reads raise or are correct; fsck reports the damage; nothing is changed."""
        store = new_store(tmp_path)
        for number in range(3):
            append(store, f"{number} " * 30)
        seal(store)
        store.close()
        (path,) = pack_paths(tmp_path)
        sound = path.read_bytes()
        with reopen(tmp_path) as again:
            right = {oid: again.objects.read(oid) for oid in again.objects.iterate()}
        for place in range(0, len(sound), 3):
            damaged = bytearray(sound)
            damaged[place] ^= 0x10
            path.write_bytes(damaged)
            with reopen(tmp_path) as again:
                for oid, data in right.items():
                    with contextlib.suppress(FormatError, ObjectNotFoundError):
                        assert again.objects.read(oid) == data
                assert "pack-damaged" in codes(again), place
            assert path.read_bytes() == damaged

    def test_a_pack_cut_short_at_any_length(self, tmp_path: Path) -> None:
        objects = texts(40)
        (name,) = write_packs(tmp_path, objects, frame_bytes=3000)
        path = Path(Layout(str(tmp_path)).pack_file(name))
        sound = path.read_bytes()
        readable = set()
        for length in range(0, len(sound), 11):
            path.write_bytes(sound[:length])
            packs = packs_in(tmp_path)
            found = [data for data in objects if packs.read(hash_object(data)) == data]
            assert found == objects[: len(found)]
            assert name in packs.damaged
            readable.add(len(found))
            packs.close()
        assert len(readable) > 5, "frames before the cut are still read"

    def test_a_redundant_copy_is_found(self, tmp_path: Path) -> None:
        store = new_store(tmp_path)
        append(store, "one " * 200)
        seal(store)
        oids = list(store.objects.iterate())
        copies = [store.objects.read(oid) for oid in oids]
        store.close()
        (path,) = pack_paths(tmp_path)
        flip(path, 60, 0xFF)
        with reopen(tmp_path) as again:
            with pytest.raises(CorruptObjectError):
                again.objects.read(oids[0])
            for data in copies:
                again.objects.write(data)
            assert [again.objects.read(oid) for oid in oids] == copies
            assert main_line(again) == ["one " * 10]

    def test_a_damaged_pack_hides_no_other(self, tmp_path: Path) -> None:
        store = new_store(tmp_path)
        append(store, "one")
        seal(store)
        (tmp_path / ".trace/objects/pack" / ("ab" * 32 + ".pack")).write_bytes(b"not a pack")
        with reopen(tmp_path) as again:
            assert main_line(again) == ["one"]
            with pytest.raises(CorruptPackError):
                again.objects.read(hash_object(b"absent"))
            assert codes(again) == {"pack-damaged"}


class TestPacking:
    def test_everything_becomes_one_pack(self, tmp_path: Path) -> None:
        store = new_store(tmp_path)
        for number in range(4):
            append(store, f"{number} " * 9000)
            seal(store)
        loose = [store.objects.write(encode_blob(data)) for data in texts(5)]
        oids = set(store.objects.iterate())
        report = pack(store)
        assert (report.loose, report.kept) == (5, ())
        assert report.objects == len(oids)
        assert len(pack_paths(tmp_path)) == 1
        with reopen(tmp_path) as again:
            assert set(again.objects.iterate()) == oids
            assert all(again.objects.read(oid) for oid in loose)
            assert codes(again) == set()
        assert pack(store).packs == ()

    def test_a_damaged_pack_is_kept_as_it_is(self, tmp_path: Path) -> None:
        store = new_store(tmp_path)
        append(store, "one " * 9000)
        seal(store)
        (path,) = pack_paths(tmp_path)
        damaged = flip(path, 50, 0xFF)
        store.objects.write(texts(1)[0])
        report = pack(reopen(tmp_path))
        assert report.kept == (path.stem,)
        assert path.read_bytes() == damaged

    def test_nothing_to_pack_in_memory(self) -> None:
        assert pack(Store.memory()).packs == ()
