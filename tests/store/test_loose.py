"""Loose objects: one file each, read with limits."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.store.support.histories import codes, new_store, reopen
from trace_store.base.oid import hash_object
from trace_store.disk.layout import MAXIMUM_OBJECT_BYTES
from trace_store.errors import CorruptObjectError, InvalidInputError, StorageError
from trace_store.objects.codec import encode_blob
from trace_store.odb.compression import compress
from trace_store.testing.disks import FailingDisk

SMALL = encode_blob(b"small")
LARGE = encode_blob(b"line of text\n" * 5000)


def loose_path(folder: Path, data: bytes) -> Path:
    name = str(hash_object(data))
    return folder / ".trace" / "objects" / name[:2] / name[2:]


@pytest.mark.parametrize("data", [SMALL, LARGE])
def test_a_file_per_object(tmp_path: Path, data: bytes) -> None:
    store = new_store(tmp_path)
    store.objects.write(data)
    path = loose_path(tmp_path, data)
    assert path.read_bytes()[0] in (0xB0, 0xB1)
    assert path.stat().st_size <= len(data) + 1
    assert os.listdir(tmp_path / ".trace" / "tmp") == []


@pytest.mark.parametrize("data", [SMALL, LARGE])
def test_damage_is_noticed_and_healed_by_writing_again(tmp_path: Path, data: bytes) -> None:
    store = new_store(tmp_path)
    oid = store.objects.write(data)
    path = loose_path(tmp_path, data)
    sound = path.read_bytes()
    cut_off = [b"", b"\x00", sound[:-1], sound[:1], sound[: len(sound) // 2], bytes(len(sound))]
    changed = [
        sound + b"x",
        bytes([sound[0] ^ 1]) + sound[1:],
        sound[:9] + bytes([sound[9] ^ 1]) + sound[10:],
    ]
    for damaged in (*cut_off, *changed):
        path.write_bytes(damaged)
        with pytest.raises(CorruptObjectError):
            reopen(tmp_path).objects.read(oid)
        # A power cut changes no bytes, so changed bytes may mean lost data.
        code = "unreachable-object-cut-off" if damaged in cut_off else "object-damaged"
        assert codes(reopen(tmp_path)) == {code}
        store.objects.write(data)
        assert reopen(tmp_path).objects.read(oid) == data


def test_a_decompression_bomb_is_refused(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    bomb = compress(bytes(1 << 26), level=3)
    oid = store.objects.write(SMALL)
    for declared in (10, 1 << 26, 0xFFFFFFFF):
        loose_path(tmp_path, SMALL).write_bytes(b"\xb1" + declared.to_bytes(4, "little") + bomb)
        with pytest.raises(CorruptObjectError):
            store.objects.read(oid)


def test_too_large_an_object_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError):
        new_store(tmp_path).objects.write(bytes(MAXIMUM_OBJECT_BYTES + 1))


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    oid = store.objects.write(SMALL)
    with loose_path(tmp_path, SMALL).open("r+b") as file:
        file.truncate(1 << 40)
    with pytest.raises(StorageError):
        store.objects.read(oid)


def test_links_and_pipes_are_not_followed(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    oid = store.objects.write(SMALL)
    path = loose_path(tmp_path, SMALL)
    outside = tmp_path / "outside"
    path.rename(outside)
    path.symlink_to(outside)
    with pytest.raises(StorageError):
        store.objects.read(oid)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(StorageError):
        store.objects.read(oid)


def test_stray_files_are_reported_and_hide_nothing(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    oid = store.objects.write(SMALL)
    objects = tmp_path / ".trace" / "objects"
    (objects / "readme").write_text("x")
    (objects / "zz").mkdir()
    (objects / str(oid)[:2] / "short").write_text("x")
    assert list(store.objects.iterate()) == [oid]
    assert codes(store) == {"object-stray-file"}


def test_an_interrupted_write_leaves_no_object(tmp_path: Path) -> None:
    new_store(tmp_path).close()
    for at in range(1, 20):
        disk = FailingDisk(at, partly=True)
        store = reopen(tmp_path, disk=disk, durability="durable")
        data = encode_blob(str(at).encode() * 1000)
        try:
            store.objects.write(data)
        except StorageError:
            again = reopen(tmp_path)
            assert not again.objects.contains(hash_object(data)) or again.objects.read(
                hash_object(data)
            )
            assert codes(again) == set()
        if disk.count < at:
            return
    raise AssertionError("the write never came to its end")
