"""What gc and fsck hold in memory for each object: a byte, the tables of the indexes, and no id.

Caches have bounds that a small repository does not reach, so they are made small here.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.subjects import upkeep
from trace_store.base.oid import ObjectId, hash_object
from trace_store.contracts import ANY, RefEdit, Transaction
from trace_store.maintenance.fsck import fsck
from trace_store.objects.codec import encode_blob
from trace_store.objects.commit import Commit
from trace_store.odb import index_scan, pack_index, packs
from trace_store.odb.pack_writer import PackWriter
from trace_store.store.store import Store

PACK_COMMITS = 500
FEW, MANY = 4, 20
"""How many packs."""
LIMIT = 40
"""Bytes an object. A set of ids takes more than a hundred."""


def repository(folder: Path, count: int) -> Path:
    """Create a repository with this many packs, each of which links to the one before."""
    store = Store.init(str(folder), durability="fast")
    tip: ObjectId | None = None
    for number in range(count):
        writer = PackWriter(store.disk, store.layout)
        for commit in range(PACK_COMMITS):
            blob = encode_blob(f"{number} {commit}".encode())
            meta = {"content": hash_object(blob)}
            data = Commit([tip] if tip else [], "ada", 1, [], meta=meta).encode()
            tip = hash_object(data)
            writer.add(hash_object(blob), blob)
            writer.add(tip, data)
        writer.finish()
    edit = RefEdit("refs/heads/main", tip, ANY)
    store.transact(lambda refs: Transaction([], [edit], "begin"), author="ada")
    store.close()
    return folder / ".trace"


@pytest.fixture(autouse=True)
def small_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packs, "CACHE_BYTES", 1 << 16)
    monkeypatch.setattr(packs, "PASSING_BYTES", 1 << 16)
    monkeypatch.setattr(pack_index, "LOADED_BYTES", 1 << 16)
    monkeypatch.setattr(index_scan, "MAXIMUM_PACK_OBJECTS", 2 * PACK_COMMITS)


def peak(folder: Path, run: Callable[[Store], object]) -> int:
    """Return how many bytes a call holds at most."""
    with Store.open(str(folder), durability="fast") as store:
        tracemalloc.start()
        try:
            run(store)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()


def sound(store: Store) -> None:
    assert fsck(store) == []


def nothing_to_remove(store: Store) -> None:
    report = upkeep(store).prune(grace_days=0)
    assert (report.taken, report.young) == (0, 0)


@pytest.mark.parametrize("run", [sound, nothing_to_remove])
def test_memory_of_an_object(tmp_path: Path, run: Callable[[Store], object]) -> None:
    few, many = (repository(tmp_path / str(count), count) for count in (FEW, MANY))
    peak(few, run)  # what is imported late stays
    (few / "local/reachable").unlink(missing_ok=True)
    added = peak(many, run) - peak(few, run)
    assert added / (2 * PACK_COMMITS * (MANY - FEW)) < LIMIT
