"""Emitting and following across seals, removed journals, failures and processes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.store.support.histories import (
    MAIN,
    OTHER,
    append,
    codes,
    errors,
    journal_path,
    journals,
    main_line,
    move,
    new_store,
    pack_paths,
    reopen,
)
from trace_store.base.ident import FixedClock
from trace_store.base.oid import ObjectId
from trace_store.contracts import ANY, RefEdit, Transaction
from trace_store.disk.files import Disk
from trace_store.errors import ClosedError, InvalidInputError, StorageError
from trace_store.journal.file import MAXIMUM_PASSING_BYTES
from trace_store.journal.frames import EVENT, _frame, encode_void
from trace_store.journal.tail import KEPT_JOURNALS, MAXIMUM_EVENT_BYTES, JournalEvent
from trace_store.maintenance.seal import seal
from trace_store.objects.codec import encode
from trace_store.store.store import Store
from trace_store.testing.disks import FailingDisk

ROOT = Path(__file__).resolve().parents[2]

WRITER = """
import sys
from pathlib import Path
from tests.store.support.histories import append, reopen
folder, name, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
store = reopen(folder)
print("ready", flush=True)
sys.stdin.readline()
for number in range(count):
    store.emit("progress", {"writer": name, "number": number})
    append(store, f"{name}/{number}", durability="durable" if number % 5 == 0 else "fast")
"""

SEALER = """
import sys
from pathlib import Path
from tests.store.support.histories import reopen
from trace_store.maintenance.seal import seal
store = reopen(Path(sys.argv[1]))
print("ready", flush=True)
while True:
    seal(store)
"""

FOLLOWER = """
import json, sys
from pathlib import Path
from tests.store.support.histories import reopen
with reopen(Path(sys.argv[1])).follow() as events:
    print("ready", flush=True)
    for event in events:
        names = [None if oid is None else str(oid) for oid in (event.old, event.new)]
        print(json.dumps([event.kind, event.data, event.ref, *names]), flush=True)
        if event.kind == "end":
            break
"""

Process = subprocess.Popen[str]


def start(script: str, *arguments: object) -> Process:
    paths = os.pathsep.join([str(ROOT), str(ROOT / "cli")])
    process = subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": paths},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def moves(events: Iterable[JournalEvent]) -> list[tuple[str, ObjectId | None, ObjectId | None]]:
    return [(event.ref, event.old, event.new) for event in events if event.kind == "ref"]


def emitted(events: Iterable[JournalEvent]) -> list[tuple[str, Any]]:
    return [(event.kind, event.data) for event in events if event.kind != "ref"]


def now(store: Store) -> Callable[[], list[JournalEvent]]:
    """Start to follow, and return a function that returns the events until now."""
    follower = store.follow(timeout=60)

    def until_now() -> list[JournalEvent]:
        mark = {"mark": os.urandom(4)}
        found: list[JournalEvent] = []
        store.emit("mark", mark)
        for event in follower:
            if event.data == mark:
                return found
            found.append(event)
        raise AssertionError("the follower ended")

    return until_now


class TestWhatIsTold:
    def test_ref_moves_and_emits_in_the_order_in_which_they_were_written(
        self, tmp_path: Path
    ) -> None:
        store = new_store(tmp_path)
        append(store, "before")
        until_now = now(reopen(tmp_path))
        data = {"text": "é", "n": 2**40, "f": 0.5, "b": b"\0", "l": [None, True], "m": {"a": {}}}
        store.emit("progress", data, author="Ada")
        one = append(store, "one")
        move(store, OTHER, one)
        move(store, OTHER, None)
        store.emit("a.b-c_1", {})
        told = until_now()
        assert [event.kind for event in told] == ["progress", "ref", "ref", "ref", "a.b-c_1"]
        assert (told[0].data, told[0].author) == (data, "Ada")
        assert moves(told)[1:] == [(OTHER, None, one), (OTHER, one, None)]
        assert (told[1].ref, told[1].new) == (MAIN, one)
        assert (told[1].author, told[1].data) == ("tester", {"message": "append one"})

    def test_all_moves_of_a_transaction(self, tmp_path: Path) -> None:
        store = new_store(tmp_path)
        one = append(store, "one")
        until_now = now(store)
        edits = [RefEdit(f"refs/tags/{name}", one, ANY) for name in "ab"]
        store.transact(lambda refs: Transaction([], edits))
        assert moves(until_now()) == [("refs/tags/a", None, one), ("refs/tags/b", None, one)]

    def test_the_first_journal_is_followed_from_its_beginning(self, tmp_path: Path) -> None:
        new_store(tmp_path).close()
        follower = reopen(tmp_path).follow(timeout=0)
        one = append(reopen(tmp_path), "one")
        assert moves(follower) == [(MAIN, None, one)]

    def test_an_emit_in_the_middle_of_a_transaction(self, tmp_path: Path) -> None:
        store = new_store(tmp_path)
        one = append(store, "one")
        until_now = now(store)

        def build(refs: Any) -> Transaction:
            store.emit("progress", {"at": "build"})
            return Transaction([], [RefEdit(OTHER, one, ANY)])

        store.transact(build)
        told = until_now()
        assert emitted(told) == [("progress", {"at": "build"})]
        assert moves(told) == [(OTHER, None, one)]
        assert reopen(tmp_path).refs.read(OTHER) == one
        assert errors(store) == []

    def test_unknown_and_damaged_passing_frames_are_skipped(self, tmp_path: Path) -> None:
        store = new_store(tmp_path)
        append(store, "one")
        until_now = now(store)
        with journal_path(tmp_path).open("ab") as file:
            for kind, section in (
                *((EVENT + 1, {}), (EVENT, {}), (EVENT, {"kind": "x", "data": 1, "time": 1})),
                (EVENT, {"kind": "ref", "data": {}, "time": 1}),
                (EVENT, {"kind": "A\n", "data": {}, "time": 1}),
            ):
                file.write(_frame(kind, {}, [encode(section)]))
            file.write(_frame(EVENT, {}, [b"\xc1"]))
        two = append(store, "two")
        assert [event.new for event in until_now()] == [two]
        assert errors(store) == []

    @pytest.mark.parametrize("kind", ["", "Upper", "ref", "a b", "1", "é", "x" * 65, 5])
    def test_a_kind_is_a_lower_case_name(self, tmp_path: Path, kind: Any) -> None:
        with pytest.raises(InvalidInputError):
            new_store(tmp_path).emit(kind, {})

    @pytest.mark.parametrize(
        "data", [None, [], {1: 2}, {"a": {2: 3}}, {"a": object()}, {"a": 2**64}, {"a": "\ud800"}]
    )
    def test_data_is_a_map_that_msgpack_can_hold(self, tmp_path: Path, data: Any) -> None:
        store = new_store(tmp_path)
        with pytest.raises(InvalidInputError):
            store.emit("progress", data)

    def test_an_event_has_a_size_limit(self, tmp_path: Path) -> None:
        store = new_store(tmp_path)
        until_now = now(store)
        store.emit("big", {"text": "x" * (MAXIMUM_EVENT_BYTES - 200)})
        with pytest.raises(InvalidInputError, match=str(MAXIMUM_EVENT_BYTES)):
            store.emit("big", {"text": "x" * MAXIMUM_EVENT_BYTES})
        assert len(emitted(until_now())) == 1


class TestSince:
    def test_sealed_moves_are_told_too(self, tmp_path: Path) -> None:
        store = new_store(tmp_path, clock=FixedClock())
        commits = []
        for number in range(4):
            commits.append(append(store, str(number)))
            seal(store)
        store.emit("late", {})
        told = list(store.follow(since=0, timeout=0))
        assert [event.new for event in told if event.kind == "ref"] == commits
        assert emitted(told) == [("late", {})]
        later = list(store.follow(since=told[1].moment, timeout=0))
        assert later == told[2:]

    def test_none_is_from_now_on(self, tmp_path: Path) -> None:
        store = new_store(tmp_path)
        append(store, "one")
        assert list(store.follow(timeout=0)) == []

    @pytest.mark.parametrize("given", [{"since": "now"}, {"timeout": "1"}, {"since": True}])
    def test_a_wrong_type_is_named(self, tmp_path: Path, given: dict[str, Any]) -> None:
        with pytest.raises(InvalidInputError, match=next(iter(given))):
            new_store(tmp_path).follow(**given)


class TestEnding:
    def test_close_ends_a_follower_that_waits_in_another_thread(self, tmp_path: Path) -> None:
        store = new_store(tmp_path)
        follower = store.follow()
        thread = threading.Thread(target=lambda: list(follower))
        thread.start()
        follower.close()
        follower.close()
        thread.join(60)
        assert not thread.is_alive()
        assert list(follower) == []

    def test_closing_the_store_ends_it(self, tmp_path: Path) -> None:
        store = new_store(tmp_path)
        follower = store.follow()
        store.close()
        assert list(follower) == []
        with pytest.raises(ClosedError):
            store.emit("progress", {})
        with pytest.raises(ClosedError):
            store.follow()

    def test_what_was_left_open_is_closed(self, tmp_path: Path) -> None:
        store = new_store(tmp_path)
        append(store, "one")
        for _ in store.follow(since=0):
            break
        assert os.listdir(store.layout.followers_dir) == []


class TestSeals:
    def test_passing_frames_are_dropped_and_nothing_else(self, tmp_path: Path) -> None:
        store = new_store(tmp_path)
        for number in range(20):
            append(store, f"commit {number}")
            store.emit("progress", {"text": "never in a pack " * 10, "number": number})
        assert errors(store) == []
        assert seal(store).transactions == 20
        assert all(b"never in a pack" not in path.read_bytes() for path in pack_paths(tmp_path))
        append(store, "more")
        seal(store)
        assert all(
            b"never in a pack" not in path.read_bytes()
            for path in tmp_path.rglob("*")
            if path.is_file()
        )
        assert len(main_line(reopen(tmp_path))) == 21
        assert codes(store) == set()

    def test_events_alone_are_sealed_once_there_are_many(self, tmp_path: Path) -> None:
        store = new_store(tmp_path)
        store.emit("progress", {})
        assert journals(tmp_path) == [1]
        seal(store)
        assert journals(tmp_path) == [1]
        for _ in range(MAXIMUM_PASSING_BYTES // 60_000 + 1):
            store.emit("progress", {"text": "x" * 60_000})
        assert seal(store).transactions == 0
        append(store, "one")
        seal(store)
        assert sum(
            path.stat().st_size for path in map(journal_of(tmp_path), journals(tmp_path))
        ) < (MAXIMUM_PASSING_BYTES)
        assert main_line(reopen(tmp_path)) == ["one"]
        assert errors(store) == []

    def test_a_follower_that_is_slow_misses_nothing(self, tmp_path: Path) -> None:
        store = new_store(tmp_path)
        append(store, "first")
        until_now = now(reopen(tmp_path))
        commits = []
        for number in range(10):
            commits.append(append(store, str(number)))
            store.emit("progress", {"number": number})
            seal(store)
        told = until_now()
        assert [event.new for event in told if event.kind == "ref"] == commits
        assert emitted(told) == [("progress", {"number": n}) for n in range(10)]

    def test_one_that_is_very_slow_misses_no_move(self, tmp_path: Path) -> None:
        store = new_store(tmp_path)
        append(store, "first")
        until_now = now(reopen(tmp_path))
        commits = []
        for number in range(KEPT_JOURNALS + 10):
            commits.append(append(store, str(number)))
            store.emit("progress", {"number": number})
            seal(store)
        told = until_now()
        assert [event.new for event in told if event.kind == "ref"] == commits
        numbers = [event.data["number"] for event in told if event.kind == "progress"]
        assert numbers == sorted(set(numbers))
        assert numbers[-KEPT_JOURNALS:] == list(range(10, KEPT_JOURNALS + 10))

    def test_journals_are_kept_for_followers_and_no_longer(self, tmp_path: Path) -> None:
        store = new_store(tmp_path)
        follower = store.follow()
        for number in range(3):
            append(store, str(number))
            seal(store)
        assert len(journals(tmp_path)) == 4
        follower.close()
        append(store, "last")
        seal(store)
        assert len(journals(tmp_path)) == 2

    @pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
    def test_a_killed_follower_keeps_no_journals(self, tmp_path: Path) -> None:
        store = new_store(tmp_path)
        follower = start(FOLLOWER, tmp_path)
        follower.kill()
        follower.communicate()
        for number in range(3):
            append(store, str(number))
            seal(store)
        assert len(journals(tmp_path)) == 2
        assert os.listdir(store.layout.followers_dir) == []


def journal_of(folder: Path) -> Callable[[int], Path]:
    return lambda number: journal_path(folder, number)


class TestFailures:
    @pytest.mark.parametrize("partly", [False, True])
    def test_a_write_that_fails_has_no_effect(self, tmp_path: Path, partly: bool) -> None:
        append(new_store(tmp_path), "one")
        until_now = now(reopen(tmp_path))
        failing = reopen(tmp_path, disk=FailingDisk(1, partly=partly))
        with pytest.raises(StorageError):
            failing.emit("progress", {"text": "x" * 1000})
        assert codes(reopen(tmp_path)) <= {"journal-tail"}
        two = append(failing, "two")
        failing.emit("progress", {"number": 2})
        told = until_now()
        assert [event.new for event in told if event.kind == "ref"] == [two]
        assert emitted(told) == [("progress", {"number": 2})]
        assert main_line(reopen(tmp_path)) == ["one", "two"]
        assert seal(failing).transactions == 2
        assert codes(failing) <= {"journal-tail"}

    def test_a_crash_at_every_byte_leaves_the_journal_valid(self, tmp_path: Path) -> None:
        store = new_store(tmp_path)
        append(store, "one")
        path = journal_path(tmp_path)
        start_ = path.stat().st_size
        store.emit("progress", {"text": "x" * 20})
        whole = path.read_bytes()
        store.close()
        for length in range(start_, len(whole)):
            copy = tmp_path / "copy"
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(tmp_path / ".trace", copy / ".trace")
            journal_path(copy).write_bytes(whole[:length])
            again = reopen(copy)
            assert codes(again) <= {"journal-tail"}, length
            assert not list(again.follow(since=0, timeout=0))[1:]
            append(again, "two")
            assert main_line(reopen(copy)) == ["one", "two"]
            again.close()

    def test_a_void_frame_means_the_transaction_before_passing_frames(self, tmp_path: Path) -> None:
        store = new_store(tmp_path)
        append(store, "one")
        append(store, "two")
        store.emit("progress", {})
        with journal_path(tmp_path).open("ab") as file:
            file.write(encode_void())
        assert main_line(reopen(tmp_path)) == ["one"]

    def test_after_a_failed_sync_nothing_comes_twice(self, tmp_path: Path) -> None:
        class FailingOnce(Disk):
            fails = False

            def sync(self, fd: int) -> None:
                if self.fails:
                    self.fails = False
                    raise StorageError("sync", errno=5)
                super().sync(fd)

        disk = FailingOnce()
        store = new_store(tmp_path)
        append(store, "one")
        until_now = now(reopen(tmp_path))
        failing = reopen(tmp_path, disk=disk)
        two = append(failing, "two")
        failing.emit("progress", {"number": 1})
        three = append(failing, "three")
        told = until_now()
        disk.fails = True
        with pytest.raises(StorageError):
            append(failing, "refused", OTHER, durability="durable")
        four = append(failing, "four")
        failing.emit("progress", {"number": 2})
        told += until_now()
        on_main = [event.new for event in told if event.ref == MAIN]
        assert on_main == [two, three, four]
        assert emitted(told) == [("progress", {"number": n}) for n in (1, 2)]

    def test_a_removed_journal_is_found_again(self, tmp_path: Path) -> None:
        """A writer rewrites its transactions; followers do not get them again."""
        writer, other = new_store(tmp_path), reopen(tmp_path)
        one = append(writer, "one")
        follower = reopen(tmp_path).follow(timeout=60)
        two = append(writer, "two")
        assert next(follower).new == two
        shutil.rmtree(tmp_path / ".trace" / "journal")
        other.emit("lost", {})
        other.emit("progress", {"number": 1})
        three = append(writer, "three")
        writer.emit("end", {})
        told = []
        for event in follower:
            told.append(event)
            if event.kind == "end":
                break
        assert [event.new for event in told if event.kind == "ref"] in ([three], [one, three])
        assert main_line(reopen(tmp_path)) == ["one", "two", "three"]

    def test_a_repository_that_cannot_be_written_is_followed(self, tmp_path: Path) -> None:
        class ReadOnly(Disk):
            def make_directory(self, path: str) -> None:
                raise StorageError("read-only", errno=30)

        store = new_store(tmp_path)
        append(store, "one")
        follower = reopen(tmp_path, disk=ReadOnly()).follow(timeout=0)
        two = append(store, "two")
        assert [event.new for event in follower] == [two]


class TestMemory:
    def test_a_repository_in_memory_has_events_of_its_own(self) -> None:
        store = Store.memory()
        store.emit("early", {})
        first = append(store, "first")
        follower = store.follow(timeout=0)
        store.emit("progress", {"number": 1})
        one = append(store, "one")
        other = store.follow(since=0, timeout=0)
        told = list(follower)
        assert emitted(told) == [("progress", {"number": 1})]
        assert moves(told) == [(MAIN, first, one)]
        assert moves(other) == [(MAIN, None, first), (MAIN, first, one)]
        with pytest.raises(InvalidInputError):
            store.emit("ref", {})


def test_another_process_sees_an_emit_and_a_move(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    follower = start(FOLLOWER, tmp_path)
    store.emit("progress", {"number": 1})
    oid = append(store, "one")
    store.emit("end", {})
    out, _ = follower.communicate(timeout=120)
    assert [json.loads(line) for line in out.splitlines()] == [
        ["progress", {"number": 1}, "", None, None],
        ["ref", {"message": "append one"}, MAIN, None, str(oid)],
        ["end", {}, "", None, None],
    ]


def test_eight_writers_and_three_followers_across_seals(tmp_path: Path) -> None:
    """Followers get each move and each event of a writer exactly once and in order."""
    store = new_store(tmp_path)
    append(store, "first")
    count, names = 15, [f"w{number}" for number in range(8)]
    followers = [start(FOLLOWER, tmp_path) for _ in range(3)]
    sealer = start(SEALER, tmp_path)
    writers = [start(WRITER, tmp_path, name, count) for name in names]
    first = journals(tmp_path)[-1]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate(timeout=200)
        assert writer.returncode == 0
    assert sealer.poll() is None, "the sealer failed"
    sealer.terminate()
    sealer.communicate()
    assert journals(tmp_path)[-1] > first + 1
    store.emit("end", {})
    assert len(main_line(store)) == 8 * count + 1
    for follower in followers:
        out, _ = follower.communicate(timeout=120)
        told = [json.loads(line) for line in out.splitlines()]
        on_main = [(old, new) for kind, _, ref, old, new in told if ref == MAIN]
        assert len(on_main) == 8 * count
        assert [old for old, _ in on_main[1:]] == [new for _, new in on_main[:-1]]
        assert on_main[-1][1] == str(store.refs.read(MAIN))
        for name in names:
            own = [data["number"] for kind, data, *_ in told if data.get("writer") == name]
            assert own == list(range(count))
    assert errors(store) == []
