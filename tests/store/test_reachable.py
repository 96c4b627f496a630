"""Reachable objects, compared with a simple recursion."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.bundles.support.graphs import Growing, store_in
from tests.support.examples import examples
from trace_store.base.oid import ObjectId, hash_object
from trace_store.errors import CorruptObjectError, ObjectNotFoundError
from trace_store.maintenance.seal import seal
from trace_store.objects.codec import encode, encode_blob, links
from trace_store.objects.commit import Commit
from trace_store.odb.database import ObjectDatabase
from trace_store.odb.reachable import links_first_parents, reachable, reachable_ids
from trace_store.store.store import Store

ABSENT = ObjectId(bytes(range(32)))


def below(store: Store, oid: ObjectId, found: set[ObjectId]) -> set[ObjectId]:
    if oid not in found:
        found.add(oid)
        for name in links(store.objects.read(oid)):
            below(store, name, found)
    return found


@settings(max_examples=examples(40))
@given(st.integers(0, 2**32), st.integers(1, 15))
def test_the_walk_agrees_with_the_model(seed: int, steps: int) -> None:
    store = Store.memory()
    growing = Growing(store, seed).grow(steps)
    starts = growing.some(growing.objects, 4)
    hidden: set[ObjectId] = set()
    for oid in growing.some(growing.objects, 2):
        below(store, oid, hidden)
    expected: set[ObjectId] = set()
    for oid in starts:
        below(store, oid, expected)
    reads: list[bytes] = []

    def read(oid: bytes) -> bytes:
        reads.append(oid)
        return store.objects.read(oid)

    found = list(reachable(read, starts, hidden=hidden))
    assert {oid for oid, _ in found} == expected - hidden
    assert len(found) == len(expected - hidden)
    assert all(data == store.objects.read(oid) for oid, data in found)
    before = set(hidden)
    for oid, data in found:
        assert set(links(data)) <= before, "an object comes after all that it names"
        before.add(oid)
    assert len(reads) <= 2 * len(found)
    assert reachable_ids(store.objects.read, starts) == expected


def test_a_line_of_history_comes_oldest_first_at_any_depth() -> None:
    store = Store.memory()
    oids: list[ObjectId] = []
    for number in range(5000):
        blob = encode_blob(b"%d" % number)
        store.objects.write(blob)
        fields = {
            "author": "ada",
            "meta": {"content": hash_object(blob)},
            "ops": [],
            "parents": oids[-1:],
            "time": number,
        }
        oids.append(store.objects.write(encode(["commit", fields])))
    kinds = [data for _, data in reachable(store.objects.read, [oids[-1]])]
    assert [hash_object(data) for data in kinds[1::2]] == oids
    assert kinds[0::2] == [encode_blob(b"%d" % number) for number in range(5000)]


def test_parents_come_first_and_ids_once() -> None:
    one, two = (hash_object(encode_blob(name)) for name in (b"1", b"2"))
    commit = Commit([two], "ada", 1, [], meta={"a": one, "b": two}, links=[("x", one)])
    assert links_first_parents(commit.encode()) == [two, one]
    assert links_first_parents(encode_blob(one + two)) == []
    assert links_first_parents(encode(["commit"])) == []
    with pytest.raises(CorruptObjectError):
        links_first_parents(b"\xc0")


def test_what_is_not_here_is_named_with_who_names_it() -> None:
    store = Store.memory()
    oid = store.objects.write(encode(["list", {"items": [ABSENT]}]))
    with pytest.raises(ObjectNotFoundError, match=f"no object {ABSENT}, which {oid} links to"):
        list(reachable(store.objects.read, [oid]))
    with pytest.raises(ObjectNotFoundError, match=f"^no object {ABSENT}$"):
        list(reachable(store.objects.read, [ABSENT]))
    told: list[tuple[ObjectId, ObjectId | None]] = []
    walk = reachable(store.objects.read, [oid, ABSENT], absent=lambda *both: told.append(both))
    assert [each for each, _ in walk] == [oid]
    assert told == [(ABSENT, oid)]


def test_packed_objects_are_listed_as_they_stand(tmp_path: Path) -> None:
    """Reading a pack in another order would decode its frames again and again."""
    growing = Growing(store_in(tmp_path), 3).grow(20)
    written = list(dict.fromkeys(growing.store.journal.oids()))
    seal(growing.store)
    with Store.open(growing.store.layout.root) as store:
        assert isinstance(store.objects, ObjectDatabase)
        linked = {oid for oid in written if links(store.objects.read(oid))}
        plain = [oid for oid in written if oid not in linked]
        behind = [oid for oid in written if oid in linked]
        assert list(store.objects.packs.iterate()) == plain + behind
