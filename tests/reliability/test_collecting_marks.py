"""What gc and prune find reachable if an object has several copies, and if packs are damaged or replaced."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reliability.support.collecting import commit_of, forget_logs
from tests.store.support.histories import (
    append,
    errors,
    main_line,
    move,
    new_store,
    pack_paths,
    reopen,
)
from tests.support.files import flip
from tests.support.subjects import upkeep
from trace_store.base.oid import ObjectId
from trace_store.maintenance import lock
from trace_store.maintenance.reachability_memory import load_known
from trace_store.maintenance.repack import pack
from trace_store.maintenance.seal import seal
from trace_store.odb.pack_writer import PackWriter
from trace_store.odb.packs import FrameObjects, Packs
from trace_store.store.store import Store


def store_with(folder: Path, count: int) -> Store:
    store = new_store(folder)
    for number in range(count):
        append(store, f"message {number}")
    seal(store)
    return store


def write_again(store: Store, *, twice: bool = False) -> None:
    """Write a pack with copies of all objects, or with each of them two times."""
    writer = PackWriter(store.disk, store.layout)
    for oid in list(store.objects.packs.iterate()):
        data = store.objects.read(oid)
        writer.add(oid, data)
        if twice:
            writer._seen.discard(oid)
            writer.add(oid, data)
    writer.finish()


@pytest.mark.parametrize("twice", [False, True])
def test_each_copy_of_a_reachable_object_stays(tmp_path: Path, twice: bool) -> None:
    store = store_with(tmp_path, 20)
    write_again(store, twice=twice)
    assert len(pack_paths(tmp_path)) == 2
    store = reopen(tmp_path)
    report = upkeep(store).prune(grace_days=0)
    assert report.taken == 0
    assert not load_known(store).left
    assert report.reachable == 40 or twice
    assert len(main_line(reopen(tmp_path))) == 20


def test_an_unreachable_object_goes_with_all_copies(tmp_path: Path) -> None:
    store = store_with(tmp_path, 20)
    lost = append(store, "lost", "refs/heads/other")
    seal(store)
    write_again(store)
    move(store, "refs/heads/other", None)
    seal(store)
    for path in Path(store.layout.logs_dir).rglob("*.log"):
        path.unlink()
    store = reopen(tmp_path)
    assert upkeep(store).prune(grace_days=0).taken == 2
    assert not reopen(tmp_path).objects.packs.contains(lost)
    assert len(main_line(reopen(tmp_path))) == 20


def test_a_damaged_copy_is_read_from_another_pack(tmp_path: Path) -> None:
    store = store_with(tmp_path, 20)
    first = pack_paths(tmp_path)[0]
    write_again(store)
    first.chmod(0o644)
    flip(first, 100)
    store = reopen(tmp_path)
    assert upkeep(store).gc(grace_days=0).reachable == 40
    assert len(main_line(reopen(tmp_path))) == 20


def test_an_unreadable_object_is_not_counted_as_an_unreachable_one(tmp_path: Path) -> None:
    """An index that is built from a damaged pack has zeros instead of its id."""
    store = store_with(tmp_path, 20)
    (first,) = pack_paths(tmp_path)
    write_again(store)
    first.chmod(0o644)
    flip(first, 100)
    first.with_suffix(".idx").unlink()
    store = reopen(tmp_path)
    found = upkeep(store).prune(grace_days=0, dry_run=True)
    assert (found.reachable, found.taken) == (40, 0)
    assert upkeep(store).gc(grace_days=0).sealed == 0
    assert not load_known(store).left


def test_a_scan_starts_again_when_another_process_replaces_its_packs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = store_with(tmp_path, 20)
    unlinked = store.objects.write(b"\x92\xa4blob\xc4\x01x")
    read_frame = Packs.read_frame
    is_replaced = False

    def replacing(self: Packs, name: str, number: int) -> FrameObjects:
        nonlocal is_replaced
        if not is_replaced:
            is_replaced = True
            pack(reopen(tmp_path), level=1, leave={unlinked})
            self.refresh()
        return read_frame(self, name, number)

    monkeypatch.setattr(Packs, "read_frame", replacing)
    report = upkeep(store).gc(grace_days=0)
    assert is_replaced
    assert (report.reachable, report.taken) == (40, 1)
    assert len(main_line(reopen(tmp_path))) == 20


def test_a_scan_that_removes_looks_at_packs_that_replaced_others_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = store_with(tmp_path, 20)
    store.objects.write(b"\x92\xa4blob\xc4\x01x")
    brief_lock = lock.brief_lock

    def late(store: Store, what: str) -> object:
        pack(reopen(tmp_path), level=1)
        store.objects.packs.refresh()
        return brief_lock(store, what)

    monkeypatch.setattr("trace_store.maintenance.gc.brief_lock", late)
    assert upkeep(store).gc(grace_days=0).reachable == 40
    assert len(main_line(reopen(tmp_path))) == 20


def test_a_frame_is_not_read_for_each_of_its_objects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pack of objects that were loose has them in the order of their ids, so links lead in both directions."""
    store = new_store(tmp_path)
    count = 400
    parents: list[ObjectId] = []
    for number in range(count):
        made = commit_of(str(number).encode(), parents, "tester")
        for _, data in made:
            store.objects.write(data)
        parents = [made[-1][0]]
    move(store, "refs/heads/main", parents[0])
    pack(store)
    read_frame, read = Packs.read_frame, 0

    def counted(self: Packs, name: str, number: int) -> FrameObjects:
        nonlocal read
        frame = read_frame(self, name, number)
        read += len(frame.objects)
        return frame

    monkeypatch.setattr(Packs, "read_frame", counted)
    assert upkeep(reopen(tmp_path)).gc(grace_days=0).reachable == 2 * count
    assert 0 < read <= 10 * 2 * count


def test_what_a_packed_object_that_stays_links_to_stays(tmp_path: Path) -> None:
    """gc takes only loose objects, and a ref may name the packed commit later."""
    store = store_with(tmp_path, 1)
    first = commit_of(b"first", [], "tester")
    for _, data in first:
        store.objects.write(data)
    second = commit_of(b"second", [first[-1][0]], "tester")
    writer = PackWriter(store.disk, store.layout)
    for oid, data in second:
        writer.add(oid, data)
    writer.finish()
    store = reopen(tmp_path)
    report = upkeep(store).gc(grace_days=0)
    assert (report.taken, report.sealed) == (0, 2)
    upkeep(store).gc(grace_days=0)
    move(store, "refs/heads/main", second[-1][0])
    store = reopen(tmp_path)
    assert all(store.objects.contains(oid) for oid, _ in first + second)
    assert not errors(store)


def test_a_damaged_index_of_a_known_pack_is_built_again(tmp_path: Path) -> None:
    store = store_with(tmp_path, 20)
    for number in range(20):
        append(store, f"lost {number}", "refs/heads/other", parent=None)
    move(store, "refs/heads/other", None)
    seal(store)
    forget_logs(store)
    upkeep(store).gc()
    assert load_known(store).packs
    for path in pack_paths(tmp_path):
        path.with_suffix(".idx").chmod(0o644)
        flip(path.with_suffix(".idx"))
    report = upkeep(reopen(tmp_path)).prune(grace_days=0)
    assert (report.reachable, report.taken) == (40, 40)
    assert len(main_line(reopen(tmp_path))) == 20
