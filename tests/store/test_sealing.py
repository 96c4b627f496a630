"""Sealing: order of writes, resumption after interruptions, and files on disk."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.store.support.histories import (
    MAIN,
    OTHER,
    append,
    errors,
    journal_path,
    journals,
    line,
    main_line,
    move,
    new_store,
    pack_paths,
    reopen,
)
from tests.support.files import flip
from trace_store.base.oid import ObjectId, hash_object
from trace_store.disk.files import Disk
from trace_store.errors import ConcurrencyError, LockedError, StorageError
from trace_store.journal.frames import Frame, Move, encode_transaction
from trace_store.maintenance import seal as sealing
from trace_store.maintenance.seal import seal
from trace_store.objects.codec import encode_blob
from trace_store.store.store import Store
from trace_store.testing.disks import FailingDisk

TAG = "refs/tags/v1"
Lines = tuple[list[str], list[str]]
Prepare = Callable[[Path], Lines]


def tip_files(folder: Path, ref: str = MAIN) -> list[str]:
    path = folder / ".trace" / ref
    return sorted(os.listdir(path)) if path.exists() else []


def make(folder: Path) -> Lines:
    store = new_store(folder)
    for number in range(3):
        append(store, f"sealed {number}")
    append(store, "gone", "refs/heads/gone")
    seal(store)
    for number in range(3):
        append(store, f"unsealed {number}")
    tip = append(store, "other", OTHER)
    move(store, TAG, tip)
    move(store, "refs/heads/gone", None)
    expected = (main_line(store), line(store, store.refs.read(OTHER)))
    store.close()
    return expected


@pytest.fixture(scope="module")
def prepare(tmp_path_factory: pytest.TempPathFactory) -> Prepare:
    """Put a store with sealed and unsealed work into a folder, and return the messages of two branches."""
    made = tmp_path_factory.mktemp("prepared")
    expected = make(made)

    def copied(folder: Path) -> Lines:
        shutil.copytree(made, folder, dirs_exist_ok=True)
        return expected

    return copied


def check(folder: Path, expected: Lines) -> None:
    """Open, look, go on, seal, and look again."""
    with reopen(folder) as store:
        assert main_line(store) == expected[0]
        assert line(store, store.refs.read(OTHER)) == expected[1]
        assert store.refs.read(TAG) is not None
        assert store.refs.read("refs/heads/gone") is None
        assert store.refs.diverged() == []
        assert errors(store) == []
        append(store, "goes on")
        seal(store)
        assert main_line(store) == [*expected[0], "goes on"]
        assert store.unsealed().transactions == 0
        assert len(tip_files(folder)) == 1
        log = [entry.message for entry in store.refs.reflog(MAIN)]
        assert len(log) == len(set(log)) == len(expected[0]) + 1
    with reopen(folder) as store:
        assert main_line(store) == [*expected[0], "goes on"]
        assert errors(store) == []


def test_a_seal_makes_everything_visible_to_git(tmp_path: Path, prepare: Prepare) -> None:
    expected = prepare(tmp_path)
    with reopen(tmp_path) as store:
        report = seal(store)
        assert report.transactions == 6
        assert report.objects == 8
        assert set(report.refs) == {MAIN, OTHER, TAG, "refs/heads/gone"}
        assert seal(store) == sealing.SealReport()
    for name in ("journal", "local", "logs", "HEAD", "tmp"):
        subprocess.run(["rm", "-rf", str(tmp_path / ".trace" / name)], check=True)
    with reopen(tmp_path) as store:
        assert main_line(store) == expected[0]
        assert tip_files(tmp_path) == [str(store.refs.read(MAIN))]
        assert not (tmp_path / ".trace" / "refs" / "heads" / "gone").exists()
        assert errors(store) == []


@pytest.mark.parametrize("partly", [False, True])
def test_the_disk_fails_at_every_step_of_a_seal(
    tmp_path: Path, partly: bool, prepare: Prepare
) -> None:
    """Each of the steps of a seal may be repeated."""
    for at in range(1, 400, 3 if partly else 1):
        folder = tmp_path / str(at)
        folder.mkdir()
        expected = prepare(folder)
        disk = FailingDisk(at, partly=partly)
        with reopen(folder, disk=disk) as store:
            try:
                seal(store)
            except StorageError:
                pass
            else:
                assert disk.count < at or at > 20, "an error went unnoticed"
        check(folder, expected)
        if disk.count < at:
            assert at > 20
            return
    raise AssertionError("the seal never came to its end")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_process_is_killed_at_every_step_of_a_seal(tmp_path: Path, prepare: Prepare) -> None:
    """kill -9 in the middle of a seal: the store opens, is clean, and continues."""
    for at in range(1, 400):
        folder = tmp_path / str(at)
        folder.mkdir()
        expected = prepare(folder)
        child = os.fork()
        if child == 0:
            disk = FailingDisk(at, lambda call: os._exit(137), partly=at % 2 == 0)
            seal(reopen(folder, disk=disk))
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        check(folder, expected)
        if status == 0:
            assert at > 20
            return
    raise AssertionError("the seal never came to its end")


class OrderedDisk(Disk):
    """Records the operations on each file."""

    def __init__(self) -> None:
        self.log: list[tuple[str, str]] = []
        self._paths: dict[int, str] = {}

    def open(self, path: str, mode: str = "read") -> int | None:
        fd = super().open(path, mode)
        if fd is not None:
            self._paths[fd] = path
            if mode == "create":
                self.log.append(("create", path))
        return fd

    def sync(self, fd: int) -> None:
        self.log.append(("sync", self._paths[fd]))
        super().sync(fd)

    def sync_directory(self, path: str) -> None:
        self.log.append(("sync", path))
        super().sync_directory(path)

    def rename(self, source: str, target: str) -> None:
        self.log.append(("rename", target))
        super().rename(source, target)

    def remove(self, path: str) -> bool:
        done = super().remove(path)
        if done:
            self.log.append(("remove", path))
        return done


def test_the_order_of_a_seal(tmp_path: Path, prepare: Prepare) -> None:
    """Ref files change only after the pack is durable; journals go only at the next seal."""
    prepare(tmp_path)
    disk = OrderedDisk()
    with reopen(tmp_path, disk=disk) as store:
        seal(store)
    root = str(tmp_path / ".trace") + "/"
    log = [(what, path.removeprefix(root)) for what, path in disk.log]

    def first(wanted: Callable[[str, str], bool]) -> int:
        return next(i for i, entry in enumerate(log) if wanted(*entry))

    pack_named = first(lambda what, path: what == "rename" and path.endswith(".pack"))
    pack_synced = first(lambda what, path: what == "sync" and path == "objects/pack")
    content_synced = first(lambda what, path: what == "sync" and path.startswith("tmp/pack-"))
    ref_made = first(lambda what, path: what == "create" and path.startswith("refs/heads/main/"))
    ref_synced = first(lambda what, path: what == "sync" and path == "refs/heads/main")
    ref_gone = first(lambda what, path: what == "remove" and path.startswith("refs/heads/main/"))
    published = first(lambda what, path: what == "rename" and path == "local/published")
    journal_gone = first(lambda what, path: what == "remove" and path == "journal/1")
    steps = [
        content_synced,
        pack_named,
        pack_synced,
        ref_made,
        ref_synced,
        ref_gone,
        published,
        journal_gone,
    ]
    assert steps == sorted(steps)
    assert ("remove", "journal/2") not in log
    assert journals(tmp_path) == [2, 3]


def test_a_journal_goes_at_the_next_seal(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    append(store, "one")
    seal(store)
    assert journals(tmp_path) == [1, 2]
    append(store, "two")
    seal(store)
    assert journals(tmp_path) == [2, 3]


def test_objects_of_frames_without_effect_are_kept(tmp_path: Path) -> None:
    """All objects of a journal go into the pack, also those of frames without effect."""
    store = new_store(tmp_path)
    append(store, "one")
    blob = encode_blob(b"of no effect")
    moves = [Move(MAIN, hash_object(b"never"), hash_object(blob))]
    frame = Frame.of_transaction(moves, "", 1, "", "")
    with journal_path(tmp_path).open("ab") as file:
        file.write(encode_transaction(frame, {hash_object(blob): blob}))
    assert main_line(store) == ["one"]
    seal(store)
    append(store, "two")
    seal(store)
    again = reopen(tmp_path)
    assert again.objects.read(hash_object(blob)) == blob
    assert main_line(again) == ["one", "two"]


def test_writers_are_not_held_up_by_a_seal(tmp_path: Path) -> None:
    """After the rotation a writer appends to the next journal, at any later step of the seal."""
    new_store(tmp_path).close()
    writer = reopen(tmp_path)
    append(writer, "before")

    class Meddling(Disk):
        count = 0

        def rename(self, source: str, target: str) -> None:
            self.append()
            super().rename(source, target)

        def sync_directory(self, path: str) -> None:
            if not path.endswith("journal"):  # there the sealer holds the lock
                self.append()
            super().sync_directory(path)

        def append(self) -> None:
            self.count += 1
            append(writer, f"meanwhile {self.count}")
            assert len(main_line(reopen(tmp_path))) == self.count + 1

    disk = Meddling()
    seal(reopen(tmp_path, disk=disk))
    assert disk.count > 4
    expected = ["before", *(f"meanwhile {n + 1}" for n in range(disk.count))]
    assert main_line(writer) == expected
    seal(writer)
    assert main_line(reopen(tmp_path)) == expected
    assert errors(writer) == []
    assert writer.refs.diverged() == []


def test_a_reset_during_a_seal_is_not_seen_as_divergence(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    first = append(store, "one")
    seal(store)
    append(store, "two")
    writer = reopen(tmp_path)

    class Meddling(Disk):
        seen: set[tuple[ObjectId, ...]] = set()  # noqa: RUF012
        done = False

        def sync_directory(self, path: str) -> None:
            if path.endswith("objects/pack") and not self.done:
                self.done = True
                move(writer, MAIN, first)
                append(writer, "instead")
            super().sync_directory(path)
            for handle in (writer, reopen(tmp_path)):
                self.seen.add(handle.refs.tips(MAIN))

    disk = Meddling()
    seal(reopen(tmp_path, disk=disk))
    assert disk.done
    assert all(len(tips) == 1 for tips in disk.seen)
    assert main_line(reopen(tmp_path)) == ["one", "instead"]
    seal(writer)
    assert main_line(reopen(tmp_path)) == ["one", "instead"]
    assert len(tip_files(tmp_path)) == 1


class TestFolding:
    def test_small_packs_are_folded(self, tmp_path: Path) -> None:
        """Few files are added between two commits of the user, however often is sealed."""
        store = new_store(tmp_path)
        for number in range(32):
            append(store, f"{number} " + "x" * 200)
            seal(store)
        assert len(pack_paths(tmp_path)) <= 6
        assert len(main_line(reopen(tmp_path))) == 32
        assert errors(store) == []

    def test_what_git_tracks_is_left_alone(self, tmp_path: Path) -> None:
        store = new_store(tmp_path)
        for number in range(8):
            append(store, str(number))
            seal(store)
        tracked = {path.name for path in pack_paths(tmp_path)}
        (tmp_path / ".git").mkdir()
        (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        names = b"".join(name[10:].encode() for name in tracked)  # as where names share a beginning
        (tmp_path / ".git" / "index").write_bytes(b"DIRC" + names)
        for number in range(8):
            append(store, f"later {number}")
            seal(store)
        names_now = {path.name for path in pack_paths(tmp_path)}
        assert tracked <= names_now
        assert len(names_now - tracked) <= 4
        assert errors(store) == []

    def test_a_reader_finds_what_was_folded_under_it(self, tmp_path: Path) -> None:
        store = new_store(tmp_path)
        append(store, "0")
        seal(store)
        reader = reopen(tmp_path)
        assert main_line(reader) == ["0"]
        for number in range(1, 9):
            append(store, str(number))
            seal(store)
        assert main_line(reader) == [str(n) for n in range(9)]
        for oid in store.objects.iterate():
            assert reader.objects.read(oid)

    def test_a_damaged_pack_is_not_folded_away(self, tmp_path: Path) -> None:
        store = new_store(tmp_path)
        append(store, "0")
        seal(store)
        (damaged,) = pack_paths(tmp_path)
        flip(damaged, 40)
        again = reopen(tmp_path)
        append(again, "unrelated", OTHER)
        seal(again)
        assert damaged in pack_paths(tmp_path)
        assert line(again, again.refs.read(OTHER)) == ["unrelated"]


class MeddledDisk(FailingDisk):
    """Lets something happen at the n-th call, or as soon after as no lock of a journal is held."""

    def __init__(self, at: int, meddle: Callable[[], None]) -> None:
        super().__init__(at, self.note)
        self.meddle = meddle
        self.due = False
        self.held: set[int] = set()

    def note(self, call: str) -> None:
        self.due = True

    def _count(self, call: str) -> None:
        super()._count(call)
        if self.due and not self.held:
            self.due = False
            self.meddle()

    def stat(self, path: str) -> os.stat_result | None:
        if "/refs/" in path:
            self._count("stat")
        return super().stat(path)

    def lock(self, fd: int, *, blocking: bool = True) -> bool:
        taken = super().lock(fd, blocking=blocking)
        if taken and os.fstat(fd).st_size:  # no journal is empty, and the file of the other lock is
            self.held.add(fd)
        return taken

    def unlock(self, fd: int) -> None:
        self.held.discard(fd)
        super().unlock(fd)

    def close(self, fd: int) -> None:
        self.held.discard(fd)
        super().close(fd)


def test_a_seal_in_the_midst_of_another(tmp_path: Path, prepare: Prepare) -> None:
    """The lock file is deleted: the first seal does not undo the second."""
    met = set()
    for at in range(1, 400):
        folder = tmp_path / str(at)
        folder.mkdir()
        main, other = prepare(folder)
        writer = reopen(folder)

        def meddle(folder: Path = folder, writer: Store = writer) -> None:
            (folder / ".trace" / "locks" / "maintenance").unlink(missing_ok=True)
            append(writer, "meanwhile")
            seal(writer)
            append(writer, "later")
            seal(writer)

        disk = MeddledDisk(at, meddle)
        try:
            seal(reopen(folder, disk=disk))
            met.add("sealed")
        except (ConcurrencyError, StorageError):  # the latter where a ref's directory has gone
            met.add("refused")
        writer.close()
        if disk.count < at:
            assert at > 20
            assert met == {"sealed", "refused"}
            return
        with reopen(folder) as store:
            assert main_line(store) == [*main, "meanwhile", "later"]
            seal(store)
            assert main_line(store) == [*main, "meanwhile", "later"]
            assert line(store, store.refs.read(OTHER)) == other
            assert store.refs.diverged() == []
            assert errors(store) == []
    raise AssertionError("the seal never came to its end")


def test_what_git_adds_during_a_seal_stays(tmp_path: Path, prepare: Prepare) -> None:
    """It takes no lock, and may do so at any step."""
    for at in range(1, 400):
        folder = tmp_path / str(at)
        folder.mkdir()
        main, _ = prepare(folder)
        with reopen(folder) as store:
            tip = append(store, "of another clone", "refs/heads/theirs")
            seal(store)

        def merge(folder: Path = folder, tip: ObjectId = tip) -> None:
            (folder / ".trace" / MAIN / str(tip)).touch()

        with reopen(folder) as store:
            append(store, "ours")
        disk = MeddledDisk(at, merge)
        seal(reopen(folder, disk=disk))
        if disk.count < at:
            assert at > 20
            return
        with reopen(folder) as store:
            assert tip in store.refs.tips(MAIN)
            assert main_line(store) == [*main, "ours"]
    raise AssertionError("the seal never came to its end")


HOLDER = """
import sys, time
from filelock import FileLock
with FileLock(sys.argv[1]):
    print("held", flush=True)
    time.sleep(60)
"""


def test_one_seal_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = new_store(tmp_path)
    append(store, "one")
    locks = tmp_path / ".trace" / "locks"
    locks.mkdir()
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(locks / "maintenance")],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert holder.stdout is not None
        holder.stdout.readline()
        monkeypatch.setattr("trace_store.maintenance.lock.WAIT_SECONDS", 0.05)
        with pytest.raises(LockedError) as caught:
            seal(store)
        assert str(caught.value.path).endswith("maintenance")
        append(store, "writers go on")
    finally:
        holder.kill()
        holder.communicate()
    seal(store)
    assert main_line(store) == ["one", "writers go on"]


def test_nothing_to_seal_writes_nothing(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    assert seal(store) == sealing.SealReport()
    assert seal(Store.memory()) == sealing.SealReport()
    assert not (tmp_path / ".trace" / "locks").exists()
    append(store, "one")
    seal(store)
    before = sorted(os.walk(tmp_path))
    assert seal(store) == sealing.SealReport()
    assert sorted(os.walk(tmp_path)) == before


def test_what_an_interrupted_seal_left_is_swept_after_a_day(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    append(store, "one")
    tmp = tmp_path / ".trace" / "tmp"
    old, young = tmp / "pack-1-aa", tmp / "pack-2-bb"
    for path in (old, young):
        path.write_bytes(b"left over")
    os.utime(old, (1, 1))
    seal(store)
    assert not old.exists()
    assert young.exists()
