"""Writers that meet gc and prune at every point: no ref ever leads to nothing.

Two processes are played by two handles: one goes on at each call of the other's disk. Then real processes race. Each
race is run once more without the writers' second look, where it finds what that is for.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.reliability.support import collecting as support
from tests.store.support.histories import append, main_line, move, new_store, reopen
from tests.support.subjects import upkeep
from trace_store import store as stores
from trace_store.base.oid import ObjectId
from trace_store.contracts import ANY, RefEdit, Transaction
from trace_store.errors import ConcurrencyError, StateError
from trace_store.maintenance.seal import seal
from trace_store.store.store import Store

ROOT = Path(__file__).parents[2]
SECONDS = 10.0 if support.LONG else 2.0
PRUNE_STEP, WRITE_STEP = (1, 1) if support.LONG else (73, 5)
"""At each of how many calls they meet; in the long form at every one."""
Writer = Callable[[Store, ObjectId], None]


def prepared(folder: Path) -> ObjectId:
    """Create a store with an unreachable packed commit that has a large text."""
    store = new_store(folder)
    append(store, "kept")
    lone = support.put(store, "refs/heads/lone", support.large(1))
    seal(store)
    move(store, "refs/heads/lone", None)
    seal(store)
    append(store, "kept as well")
    seal(store)
    support.forget_logs(store)
    store.close()
    return lone


def names_its_text(store: Store, lone: ObjectId) -> None:
    """Write a commit with the same text, which is in a pack."""
    support.put(store, "refs/heads/new", support.large(1), [])


def moves_to_it(store: Store, lone: ObjectId) -> None:
    """Move a ref to the commit itself."""
    edits = [RefEdit("refs/heads/new", lone, ANY)]
    store.transact(lambda refs: Transaction([], edits, "back"), author="tester")


def goes_on_from_it(store: Store, lone: ObjectId) -> None:
    """Write a commit that has it for a parent."""
    support.put(store, "refs/heads/new", b"a child", [lone])


WRITERS = [names_its_text, moves_to_it, goes_on_from_it]


def looked(store: Store, lone: ObjectId) -> Store:
    """Let a handle see that the commit is here, in a pack that it keeps open."""
    main_line(store)
    store.objects.read(lone)
    return store


def meet(folder: Path, at: int, writer: Writer, *, during: str) -> tuple[bool, list[str]]:
    """Let a writer and pruning meet at a call; return whether there was such a call, and which refs lead to nothing."""
    lone = prepared(folder)
    failed: list[ConcurrencyError] = []

    def write(store: Store) -> None:
        try:
            writer(store, lone)
        except ConcurrencyError as error:
            failed.append(error)  # reported, and nothing is written

    def collect(store: Store) -> None:
        upkeep(store).prune(grace_days=0)
        try:
            upkeep(store).gc(grace_days=0, reflog_days=0)
        except StateError:
            return  # a ref leads to nothing already

    other = looked(reopen(folder), lone)
    act = write if during == "prune" else collect
    disk = support.MeetingDisk(0, lambda: act(other))
    mine = looked(reopen(folder, disk=disk), lone)
    disk.count, disk._at = 0, at
    (collect if during == "prune" else write)(mine)
    reached = disk._other is None
    mine.close()
    other.close()
    found = support.dangling(folder)
    if not found and reached and not failed:
        assert "refs/heads/new" in dict(reopen(folder).refs.iterate())
    return reached, found


def all_meetings(tmp_path: Path, writer: Writer, during: str, step: int) -> list[str]:
    """Return the refs that led to nothing, over the calls of the one during which the other did its work."""
    found: list[str] = []
    at = 1
    while True:
        reached, dangling = meet(tmp_path / str(at), at, writer, during=during)
        found += dangling
        if not reached:
            return found
        at += step


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize(("during", "step"), [("prune", PRUNE_STEP), ("write", WRITE_STEP)])
def test_a_writer_and_pruning_meet_anywhere(
    tmp_path: Path, writer: Writer, during: str, step: int
) -> None:
    assert not all_meetings(tmp_path, writer, during, step)


def test_without_the_second_look_refs_lead_to_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores.transactions, "look_again", lambda *_: None)
    assert all_meetings(tmp_path, names_its_text, "prune", 60)


def race(folder: Path, seconds: float, trust: str) -> tuple[int, int, list[str]]:
    """Let four writers and one that prunes run at once; return (transactions, objects taken, refs to nothing)."""
    store = new_store(folder)
    append(store, "kept")
    store.close()
    module = ["-m", "tests.reliability.support.collecting"]
    roles = [("writer", f"w{number}") for number in range(4)] + [("collector", "c")]
    processes = [
        subprocess.Popen(
            [sys.executable, *module, role, str(folder), name, str(seconds), trust],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for role, name in roles
    ]
    said = [process.communicate(timeout=120 + 10 * seconds) for process in processes]
    assert [process.returncode for process in processes] == [0] * 5, said
    *written, taken = [int(out) for out, _ in said]
    return sum(written), taken, support.dangling(folder)


def test_no_ref_leads_to_nothing_after_writers_raced_with_pruning(tmp_path: Path) -> None:
    written, _, found = race(tmp_path, SECONDS, "guarded")
    assert written
    assert not found
    assert main_line(reopen(tmp_path)) == ["kept"]


@pytest.mark.skipif(not support.LONG, reason="it takes some minutes: `nox -s collecting`")
def test_races_without_the_second_look_end_with_refs_to_nothing(tmp_path: Path) -> None:
    races = (race(tmp_path / str(n), SECONDS, "unguarded") for n in range(10))
    assert any(found for _, _, found in races)
