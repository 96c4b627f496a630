"""Sealing many objects at once: the same packs as by looking for, reading and checking each of them."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.store.support.histories import (
    append,
    journal_path,
    main_line,
    new_store,
    pack_paths,
    reopen,
)
from tests.support.examples import examples
from tests.support.files import flip
from trace_store.base.oid import hash_object
from trace_store.contracts import Transaction
from trace_store.errors import CorruptJournalError
from trace_store.maintenance import seal as sealing
from trace_store.maintenance.seal import seal
from trace_store.objects.codec import encode_blob
from trace_store.odb import index_scan
from trace_store.odb.database import ObjectDatabase
from trace_store.odb.index_scan import ids_among
from trace_store.odb.pack_writer import PackWriter
from trace_store.store.store import Store

BLOBS = st.builds(
    lambda number, size: encode_blob(bytes([number]) * size), st.integers(0, 9), st.integers(1, 80)
)


def database(store: Store) -> ObjectDatabase:
    assert isinstance(store.objects, ObjectDatabase)
    return store.objects


def write(store: Store, blobs: list[bytes]) -> None:
    """Write a frame with blobs, including existing ones and a duplicate."""
    objects = [(hash_object(blob), blob) for blob in blobs]
    store.transact(lambda refs: Transaction(objects, [], "write"), author="tester")


def sealed_one_by_one(store: Store) -> list[str]:
    """Return the names of the packs that a seal of all journals has to write."""
    writer = PackWriter(store.disk, store.layout, level=9, frame_bytes=sealing.FRAME_BYTES)
    for file in store.journal.files:
        for frame in file.frames:
            for oid, offset, size in frame.objects:
                if database(store).packs.read(oid) is None:
                    data = store.journal.read_from(file, offset, size)
                    assert hash_object(data) == oid
                    writer.add(oid, data)
    names = writer.finish()
    for name in names:
        Path(store.layout.pack_file(name)).unlink()
        Path(store.layout.pack_index_file(name)).unlink()
    database(store).packs.refresh()
    return names


@settings(max_examples=examples(25), deadline=None)
@given(
    st.lists(st.lists(BLOBS, min_size=1, max_size=20), max_size=3),
    st.lists(st.lists(BLOBS, min_size=1, max_size=20), min_size=1, max_size=5),
    st.sampled_from([1, 50, 300, sealing.READ_BYTES]),
    st.sampled_from([0, 16]),
)
def test_packs_are_what_each_object_makes(
    before: list[list[bytes]], after: list[list[bytes]], size: int, worth: int
) -> None:
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sealing, "READ_BYTES", size)
        patch.setattr(sealing, "choose_packs", lambda _, size: ([], size))
        patch.setattr(index_scan, "WALK_WORTH", worth)
        with new_store(Path(name)) as store:
            for blobs in before:
                write(store, blobs)
                seal(store)
            for blobs in after:
                write(store, blobs)
            expected = sealed_one_by_one(store)
            assert list(seal(store).packs) == expected
            for blob in (blob for blobs in before + after for blob in blobs):
                assert store.objects.read(hash_object(blob)) == blob


@settings(max_examples=examples(25), deadline=None)
@given(
    st.sets(st.integers(0, 400), min_size=1),
    st.sets(st.integers(0, 400)),
    st.booleans(),
    st.sampled_from([0, 1, 16]),
)
def test_ids_among_are_those_that_are_found(
    there: set[int], asked: set[int], held: bool, worth: int
) -> None:
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(index_scan, "WALK_WORTH", worth)
        with new_store(Path(name)) as store:
            write(store, [encode_blob(b"%d" % number) for number in there])
            (pack,) = seal(store).packs
            packed = database(store).packs.get(pack)
            assert packed is not None
            if held:
                packed.index.load()
            oids = frozenset(hash_object(encode_blob(b"%d" % number)) for number in asked)
            found = ids_among(packed.index, oids)
            assert found == {oid for oid in oids if packed.index.find(oid) is not None}
            assert len(found) == len(there & asked)


def test_a_damaged_index_is_made_again(tmp_path: Path) -> None:
    """Its pack is complete, so its objects are not written again."""
    blobs = [encode_blob(b"%d" % number) for number in range(100)]
    with new_store(tmp_path) as store:
        write(store, blobs)
        seal(store)
    (index,) = (path.with_suffix(".idx") for path in pack_paths(tmp_path))
    flip(index)
    with reopen(tmp_path) as store:
        write(store, blobs)
        assert seal(store).objects == 0
        assert all(database(store).packs.contains(hash_object(blob)) for blob in blobs)


def test_what_is_damaged_in_a_pack_is_written_again(tmp_path: Path) -> None:
    """The journal's copy may be the last sound one."""
    blobs = [encode_blob(b"%d" % number) for number in range(100)]
    with new_store(tmp_path) as store:
        write(store, blobs)
        seal(store)
    (pack,) = pack_paths(tmp_path)
    flip(pack)
    with reopen(tmp_path) as store:
        write(store, blobs)
        assert seal(store).objects == len(blobs)
        assert [store.objects.read(hash_object(blob)) for blob in blobs] == blobs


def test_one_damaged_object_among_many_is_named(tmp_path: Path) -> None:
    """Another copy serves in its place, where there is one; nothing is lost before."""
    store = new_store(tmp_path)
    for number in range(20):
        append(store, f"{number} " + "x" * 30)
    path = journal_path(tmp_path)
    data = bytearray(path.read_bytes())
    blob = encode_blob(b"7 " + b"x" * 30)
    at = data.index(blob)
    data[at + len(blob) - 1] ^= 1
    path.write_bytes(data)
    with pytest.raises(CorruptJournalError) as raised:
        seal(store)
    assert raised.value.oid == hash_object(blob)
    database(store).loose.write(blob)
    assert seal(store).objects == 40
    assert len(main_line(store)) == 20
