"""Reading many objects gives the same as reading each, in the given order."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.store.support.histories import MAIN, append, new_store, pack_paths, reopen
from tests.support.examples import examples
from trace_store.base.oid import ObjectId, hash_object
from trace_store.errors import ClosedError, FormatError, NotFoundError
from trace_store.maintenance.repack import pack
from trace_store.maintenance.seal import seal
from trace_store.objects.codec import encode_blob
from trace_store.objects.commit import Commit
from trace_store.odb import database
from trace_store.odb.packs import IndexedPack, Packs
from trace_store.store.store import Store


def mixed(folder: Path) -> Store:
    """Return a store with objects in two packs, the journal and loose files, some duplicated."""
    store = new_store(folder)
    for number in range(60):
        append(store, f"first {number} " + "lorem ipsum " * (number % 7))
    pack(store)
    for number in range(30):
        append(store, f"second {number}")
    seal(store)
    for number in range(20):
        append(store, f"third {number}")
    for number in range(10):
        store.objects.write(encode_blob(f"loose {number}".encode()))
    return store


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return mixed(tmp_path_factory.mktemp("mixed"))


@settings(max_examples=examples(60), deadline=None)
@given(st.data(), st.sampled_from([1, 100, 5000, 1 << 22]), st.integers(1, 200))
def test_many_are_what_each_is(store: Store, data: st.DataObject, size: int, count: int) -> None:
    listed = sorted(store.objects.iterate())
    asked = data.draw(st.lists(st.sampled_from(listed), max_size=300))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "BATCH_BYTES", size)
        patch.setattr(database, "BATCH_OBJECTS", count)
        read = list(store.objects.read_many(iter(asked)))
        bare = list(store.objects.read_data(iter(asked)))
    assert read == [(oid, store.objects.read(oid)) for oid in asked]
    assert bare == [found for _, found in read]
    assert all(hash_object(found) == oid for oid, found in read)
    assert {type(oid) for oid, _ in read} <= {ObjectId}


def test_what_is_absent_ends_it(store: Store) -> None:
    listed = list(store.objects.iterate())
    absent = hash_object(b"absent")
    found = store.objects.read_many([*listed[:5], absent, *listed[5:]])
    assert [next(found)[0] for _ in range(5)] == listed[:5]
    with pytest.raises(NotFoundError):
        next(found)


def test_a_closed_store_reads_none(tmp_path: Path) -> None:
    closed = mixed(tmp_path)
    oid = next(closed.objects.iterate())
    closed.close()
    with pytest.raises(ClosedError):
        next(closed.objects.read_many([oid]))


def test_damage_is_met_as_in_reading_one(tmp_path: Path) -> None:
    with mixed(tmp_path) as made:
        listed = list(made.objects.iterate())
    source = random.Random(5)
    for path in pack_paths(tmp_path):
        damaged = bytearray(path.read_bytes())
        damaged[source.randrange(len(damaged) // 4, len(damaged) // 2)] ^= 4
        path.write_bytes(bytes(damaged))
    one, many = reopen(tmp_path), reopen(tmp_path)
    failures = 0
    for oid in listed:
        try:
            expected = one.objects.read(oid)
        except FormatError as error:
            failures += 1
            with pytest.raises(type(error)):
                list(many.objects.read_many([oid]))
        else:
            assert list(many.objects.read_many([oid])) == [(oid, expected)]
    assert failures


def test_a_walk_back_reads_neighbours_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = new_store(tmp_path)
    for number in range(300):
        append(store, f"message {number}")
    pack(store)
    store = reopen(tmp_path)
    history: list[ObjectId] = []
    oid = store.refs.read(MAIN)
    one_by_one: list[bytes] = []
    extract = Packs._extract

    def noted(self: Packs, packed: IndexedPack, number: int) -> bytes:
        data = extract(self, packed, number)
        one_by_one.append(data)
        return data

    monkeypatch.setattr(Packs, "_extract", noted)
    while oid is not None:
        history.append(oid)
        data = store.objects.read(oid)
        assert hash_object(data) == oid
        oid = next(iter(Commit.decode(data).parents), None)
    assert len(history) == 300
    assert len(one_by_one) < 30
    one_by_one.clear()
    for oid in random.Random(1).sample(history, 20):  # others are not read ahead
        store.objects.read(oid)
    assert len(one_by_one) == 20
