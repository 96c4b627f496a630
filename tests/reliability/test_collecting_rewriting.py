"""Packs rewritten without some objects: these are gone, no other is ever absent."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.store.support.histories import append, errors, main_line, new_store, pack_paths, reopen
from tests.support.files import flip
from trace_store.base.oid import ObjectId, hash_object
from trace_store.errors import ObjectNotFoundError, StorageError
from trace_store.maintenance.repack import pack, packs_holding, rewrite_packs
from trace_store.maintenance.seal import seal
from trace_store.objects.codec import encode_blob
from trace_store.odb.database import ObjectDatabase
from trace_store.odb.pack_writer import PackWriter
from trace_store.store.store import Store
from trace_store.testing.disks import FailingDisk


def lone_blobs(store: Store, texts: list[bytes]) -> list[ObjectId]:
    """Add unreachable blobs to a pack with the other objects."""
    oids = [store.objects.write(encode_blob(text)) for text in texts]
    pack(store, level=3)
    return oids


def similar(number: int) -> bytes:
    """Texts with long lines in common, from which packs make dictionaries."""
    rng = random.Random(number % 3)
    lines = [rng.randbytes(60).hex() for _ in range(400)]
    return "\n".join([*lines, f"the end of number {number}"]).encode()


def decoded(folder: Path) -> bytes:
    """Return the decompressed content of a store's packs, including dictionaries."""
    store = reopen(folder)
    assert isinstance(store.objects, ObjectDatabase)
    found = b""
    for name in store.objects.packs.names():
        packed = store.objects.packs.get(name)
        assert packed is not None
        found += b"".join(
            data for oid in packed.index.in_order() for data in [store.objects.read(oid)]
        )
    store.close()
    return found


def test_what_is_dropped_is_gone_and_the_rest_is_whole(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    for number in range(20):
        append(store, f"message {number}")
    seal(store)
    oids = lone_blobs(store, [similar(number) for number in range(12)])
    drop = set(oids[::2])
    names = packs_holding(store, drop)
    assert len(names) == 1
    report = rewrite_packs(store, names, drop)
    assert (report.replaced, report.damaged) == (tuple(names), ())
    assert report.bytes_after < report.bytes_before
    assert packs_holding(store, drop) == []
    for oid in oids[::2]:
        with pytest.raises(ObjectNotFoundError):
            store.objects.read(oid)
    assert all(store.objects.read(oid) for oid in oids[1::2])
    assert len(main_line(store)) == 20
    store.close()
    assert not errors(reopen(tmp_path))
    for number in range(12):
        there = f"the end of number {number}".encode() in decoded(tmp_path)
        assert there == bool(number % 2)


def test_no_dictionary_keeps_a_line_that_only_dropped_objects_had(tmp_path: Path) -> None:
    """Dictionaries are made of lines; one of dropped objects would hold their bytes."""
    store = new_store(tmp_path)
    secret = b"a line of some length that only two of all objects have: 4f1c77"
    rng = random.Random(1)
    texts = [
        b"\n".join([secret] * 3 + [rng.randbytes(40).hex().encode() for _ in range(9000)])
        for _ in range(2)
    ]
    writer = PackWriter(
        store.disk, store.layout, level=10, frame_bytes=64 << 10, shared_bytes=8 << 20
    )
    rest = [rng.randbytes(30).hex().encode() * 1000 for _ in range(4)]
    for text in (*texts, *rest):
        data = encode_blob(text)
        writer.add(hash_object(data), data)
    writer.finish()
    drop = {hash_object(encode_blob(text)) for text in texts}
    rewrite_packs(store, packs_holding(store, drop), drop)
    assert isinstance(store.objects, ObjectDatabase)
    [name] = store.objects.packs.names()
    packed = store.objects.packs.get(name)
    assert packed is not None
    dictionary = None
    for place in packed.pack.places():
        if not place.objects:
            assert secret not in packed.pack.decode(place)
            dictionary = place
    assert packed.index.objects == 4
    assert dictionary is None


def test_a_pack_of_which_nothing_stays_goes(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    oids = lone_blobs(store, [b"one", b"two"])
    report = rewrite_packs(store, packs_holding(store, set(oids)), set(oids))
    assert (report.packs, report.objects) == ((), 0)
    assert not pack_paths(tmp_path)


def test_a_damaged_pack_is_left_as_it_is(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    oids = lone_blobs(store, [os.urandom(3000) for _ in range(4)])
    [path] = pack_paths(tmp_path)
    store.close()
    data = flip(path)
    store = reopen(tmp_path)
    report = rewrite_packs(store, packs_holding(store, {oids[0]}), {oids[0]})
    assert report.damaged == (path.stem,)
    assert not report.replaced
    assert path.read_bytes() == data


def test_interrupted_anywhere_nothing_is_lost_and_it_can_be_done_again(tmp_path: Path) -> None:
    at = 0
    while True:
        at += 1
        folder = tmp_path / str(at)
        store = new_store(folder)
        append(store, "kept")
        seal(store)
        oids = lone_blobs(store, [b"kept too", b"dropped"])
        store.close()
        disk = FailingDisk(at)
        store = reopen(folder, disk=disk, durability="durable")
        whole = False
        try:
            rewrite_packs(store, packs_holding(store, {oids[1]}), {oids[1]})
            whole = True
        except StorageError:
            pass
        store.close()
        store = reopen(folder)
        assert main_line(store) == ["kept"]
        assert store.objects.read(oids[0])
        rewrite_packs(store, packs_holding(store, {oids[1]}), {oids[1]})
        assert not store.objects.contains(oids[1])
        assert main_line(store) == ["kept"]
        assert store.objects.read(oids[0])
        assert len(pack_paths(folder)) == 1
        store.close()
        if whole:
            break
    assert at > 8
