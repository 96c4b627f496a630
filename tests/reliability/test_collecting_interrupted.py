"""gc and prune, stopped or failing at any point, beside an import and beside a reader."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from tests.reliability.support import collecting as support
from tests.store.support.histories import (
    append,
    errors,
    line,
    main_line,
    move,
    new_store,
    reopen,
)
from tests.support.subjects import upkeep
from trace_store.base.oid import ObjectId
from trace_store.errors import StorageError
from trace_store.importers.import_paths import import_paths
from trace_store.maintenance.seal import seal
from trace_store.objects.codec import encode_blob
from trace_store.store.store import Store
from trace_store.testing.disks import FailingDisk
from trace_store.writer import Writer

KILL_STEP, FAIL_STEP, TAKE_STEP = (1, 1, 1) if support.LONG else (31, 37, 11)
"""At each of how many calls they are stopped."""
KEPT = ["kept", "kept as well", "not sealed"]


def prepared(folder: Path) -> tuple[ObjectId, ObjectId]:
    """Create a store with unreachable objects of every kind, and return them."""
    store = new_store(folder)
    append(store, "kept")
    lone = append(store, "lone", "refs/heads/lone", parent=None)
    seal(store)
    move(store, "refs/heads/lone", None)
    loose = store.objects.write(encode_blob(b"loose"))
    append(store, "kept as well")
    seal(store)
    support.forget_logs(store)
    append(store, "not sealed")
    store.close()
    return lone, loose


def collect(store: Store) -> None:
    """Run gc and prune completely, including the deletion from quarantine."""
    upkeep(store).gc(grace_days=0, reflog_days=0)
    upkeep(store).prune(grace_days=0)
    upkeep(store).gc(grace_days=0, reflog_days=0)


def check(folder: Path, lone: ObjectId, loose: ObjectId) -> None:
    """All that is reachable is there, and collecting once more gets to its end."""
    store = reopen(folder)
    assert main_line(store) == KEPT
    assert not errors(store)
    collect(store)
    assert main_line(store) == KEPT
    assert not errors(store)
    assert not store.objects.contains(lone)
    assert not store.objects.contains(loose)
    append(store, "goes on")
    store.close()


def changes(folder: Path) -> int:
    """Return how many calls change the disk when all is collected; in a run at another moment it may be one less."""
    prepared(folder)
    disk = FailingDisk()
    store = reopen(folder, disk=disk)
    collect(store)
    store.close()
    return disk.count - 1


def test_killed_at_any_call_nothing_is_lost(tmp_path: Path) -> None:
    for at in range(1, changes(tmp_path / "count") + 1, KILL_STEP):
        folder = tmp_path / str(at)
        lone, loose = prepared(folder)
        child = os.fork()
        if child == 0:
            store = reopen(folder, disk=FailingDisk(at, lambda call: os._exit(9)))
            collect(store)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 9
        check(folder, lone, loose)


def test_refused_by_the_disk_at_any_call_nothing_is_lost(tmp_path: Path) -> None:
    for at in range(3, changes(tmp_path / "count") + 1, FAIL_STEP):
        folder = tmp_path / str(at)
        lone, loose = prepared(folder)
        store = reopen(folder, disk=FailingDisk(at))
        try:
            collect(store)
        except StorageError:
            assert main_line(store) == KEPT
        store.close()
        check(folder, lone, loose)


def test_what_is_only_taken_is_lost_at_no_call(tmp_path: Path) -> None:
    """Until it goes for good, whatever happens to pruning, everything can be read by its id."""
    at = 0
    ended = False
    while not ended:
        at += TAKE_STEP
        folder = tmp_path / str(at)
        lone, loose = prepared(folder)
        store = reopen(folder, disk=FailingDisk(at))
        try:
            upkeep(store).prune(grace_days=0)
            ended = True
        except StorageError:
            pass
        store.close()
        store = reopen(folder)
        assert line(store, lone) == ["lone"]
        assert store.objects.read(loose)
        store.close()


def a_session(path: Path, turns: int) -> None:
    """Write a chat with some turns."""
    chat = [
        {"role": "user" if n % 2 == 0 else "assistant", "content": f"turn {n} " * 20}
        for n in range(turns)
    ]
    path.write_text(json.dumps({"messages": chat}))


@pytest.mark.parametrize("collecting", ["gc", "prune"])
def test_gc_during_an_import_takes_nothing_of_it(tmp_path: Path, collecting: str) -> None:
    """At calls of the import's disk another process collects with no grace at all."""
    a_session(tmp_path / "chat.json", 60)
    folder = tmp_path / "store"
    at = 1
    while True:
        new_store(folder / str(at)).close()
        other = reopen(folder / str(at))

        def collects(other: Store = other) -> None:
            getattr(upkeep(other), collecting)(grace_days=0)

        disk = support.MeetingDisk(at, collects)
        store = reopen(folder / str(at), disk=disk)
        report = import_paths(Writer(store), [str(tmp_path / "chat.json")])
        assert report.files
        store.close()
        other.close()
        assert not support.dangling(folder / str(at))
        assert not errors(reopen(folder / str(at)))
        if disk.count < at:
            break
        at += 41


def test_a_viewer_reads_all_the_while(tmp_path: Path) -> None:
    """A process with cached listings reads its branch while packs are replaced."""
    store = new_store(tmp_path)
    for number in range(30):
        append(store, f"number {number}")
        support.put(store, "refs/heads/lone", support.large(number))
    seal(store)
    move(store, "refs/heads/lone", None)
    seal(store)
    seen: list[int] = []
    ended: list[int] = []
    done = threading.Event()

    def view() -> None:
        viewer = reopen(tmp_path)
        try:
            while not done.is_set():
                seen.append(len(main_line(viewer)))
            ended.append(len(seen))
        finally:
            viewer.close()

    thread = threading.Thread(target=view)
    thread.start()
    for number in range(3):
        support.forget_logs(store)
        collect(store)
        support.put(store, "refs/heads/lone", support.large(100 + number))
        move(store, "refs/heads/lone", None)
        seal(store)
    done.set()
    thread.join()
    assert ended == [len(seen)]
    assert set(seen) == {30}
