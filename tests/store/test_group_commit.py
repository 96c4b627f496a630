"""Concurrent syncs: acknowledged writes survive power cuts, failed ones do nothing.

A disk that models the kernel stands between: what was not synced is lost with power, a write that fails behind a
file's back is lost at once, and each descriptor that is open then learns of it in its next sync, once.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.store.support.histories import (
    append,
    errors,
    journal_path,
    journals,
    main_line,
    new_store,
    reopen,
)
from tests.support.examples import examples
from trace_store.disk.files import CREATE, READ, Disk
from trace_store.disk.system_calls import SYNC_REPORTS_FAILED_WRITES
from trace_store.errors import LockedError, StorageError
from trace_store.maintenance.seal import seal
from trace_store.objects.codec import COMMIT, kind_of
from trace_store.objects.commit import Commit
from trace_store.store.store import Store

pytestmark = pytest.mark.skipif(
    not SYNC_REPORTS_FAILED_WRITES, reason="writers sync one after another on this system"
)

APPEND, SEAL = "append", "seal"
WRITERS = 4
EIO = 5


class Killed(BaseException):
    """A process is killed here."""


class Kernel:
    """Shared by all processes: durable bytes, and descriptors with a pending error."""

    def __init__(self) -> None:
        self.images: dict[int, bytearray] = {}
        self.dirty: dict[int, list[tuple[int, int]]] = {}
        self.open: dict[int, int] = {}
        self.errors: set[int] = set()

    def begin(self, inode: int) -> None:
        """Forget the file, now gone, that had the same number before."""
        self.images.pop(inode, None)
        self.dirty.pop(inode, None)

    def write(self, inode: int, start: int, size: int) -> None:
        self.dirty.setdefault(inode, []).append((start, start + size))

    def lose(self, inode: int) -> None:
        """Lose all bytes that are not yet durable."""
        self.dirty[inode] = []
        self.errors.update(fd for fd, other in self.open.items() if other == inode)

    def flush(self, fd: int, ranges: list[tuple[int, int]]) -> None:
        inode = self.open[fd]
        image = self.images.setdefault(inode, bytearray())
        for start, end in ranges:
            image.extend(bytes(max(0, end - len(image))))
            image[start:end] = os.pread(fd, end - start, start)
        self.dirty[inode] = [each for each in self.dirty.get(inode, []) if each not in ranges]

    def cut_power(self, folder: Path) -> None:
        for path in (folder / ".trace").glob("journal/*"):
            path.chmod(0o644)
            path.write_bytes(self.images.get(path.stat().st_ino, b""))


class Cached(Disk):
    """The disk as one process sees it."""

    def __init__(self, kernel: Kernel, folder: Path, run: Callable[[list[Act]], None]) -> None:
        self.kernel = kernel
        self.folder = folder
        self.run = run
        self.doing: Act | None = None
        self.before_lock: Act | None = None
        self.held: set[int] = set()
        self.refuse_new = False

    def open(self, path: str, mode: str = READ) -> int | None:
        if mode == CREATE and self.refuse_new:
            raise StorageError("no space", path=path, errno=28)
        fd = super().open(path, mode)
        if fd is not None:
            inode = self.kernel.open[fd] = os.fstat(fd).st_ino
            if mode == CREATE:
                self.kernel.begin(inode)
        return fd

    def close(self, fd: int) -> None:
        self.kernel.open.pop(fd, None)
        self.kernel.errors.discard(fd)
        self.held.discard(fd)
        super().close(fd)

    def write(self, fd: int, data: bytes, at: int | None = None) -> int:
        start = os.fstat(fd).st_size if at is None else at
        taken = super().write(fd, data, at)
        self.kernel.write(os.fstat(fd).st_ino, start, taken)
        return taken

    def sync(self, fd: int) -> None:
        inode = self.kernel.open[fd]
        ranges = list(self.kernel.dirty.get(inode, []))
        act = self.doing
        if act is not None and not self.held:  # others wait while a lock is held
            self.doing = None
            self.run(act.during)
        if act is not None:
            self.doing = None
            if act.end == "killed":
                raise Killed
            if act.end == "removed":
                shutil.rmtree(self.folder / ".trace" / "journal")
            if act.end == "write fails":
                self.kernel.lose(inode)
            if act.end == "flush fails":
                self.kernel.errors.add(fd)  # only this descriptor sees the error
        if fd in self.kernel.errors:
            self.kernel.errors.discard(fd)
            self.before_lock = act
            raise StorageError("sync", errno=EIO)
        self.kernel.flush(fd, [each for each in ranges if each in self.kernel.dirty[inode]])

    def lock(self, fd: int, *, blocking: bool = True) -> bool:
        act, self.before_lock = self.before_lock, None
        if act is not None and not self.held:
            self.run(act.after)
        taken = super().lock(fd, blocking=blocking)
        if taken:
            self.held.add(fd)
        return taken

    def unlock(self, fd: int) -> None:
        self.held.discard(fd)
        super().unlock(fd)


class Act(NamedTuple):
    """A writer's action, and others' actions during its first sync or after a failure."""

    writer: int
    kind: str
    end: str
    during: list[Act]
    after: list[Act]


FAILURES = ("write fails", "flush fails", "killed")


def acts(depth: int, ends: Sequence[str]) -> st.SearchStrategy[Act]:
    """Acts during and after which others take place, so many levels deep; nearly half of them end in one of `ends`."""
    inner = st.lists(acts(depth - 1, ends), max_size=2) if depth else st.just([])
    return st.builds(
        Act,
        writer=st.integers(0, WRITERS - 1),
        kind=st.sampled_from([APPEND] * 5 + [SEAL]),
        end=st.sampled_from(["", "", "", *ends]),
        during=inner,
        after=inner,
    )


class World:
    """Several writers, and the outcome of each of their messages."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kernel = Kernel()
        self.stores: dict[int, tuple[Store, Cached]] = {}
        self.busy: set[int] = set()
        self.acknowledged: list[str] = []
        self.refused: list[str] = []
        self.count = 0
        new_store(folder).close()

    def do(self, acts: list[Act]) -> None:
        for act in acts:
            if act.writer not in self.busy:
                self.busy.add(act.writer)
                self.one(act)
                self.busy.discard(act.writer)

    def one(self, act: Act) -> None:
        if act.writer not in self.stores:
            disk = Cached(self.kernel, self.folder, self.do)
            self.stores[act.writer] = reopen(self.folder, disk=disk, durability="durable"), disk
        store, disk = self.stores[act.writer]
        text = f"{self.count} of {act.writer}"
        self.count += 1
        disk.doing = act
        try:
            if act.kind == SEAL:
                seal(store, wait=False)
            else:
                append(store, text, durability="durable")
                self.acknowledged.append(text)
        except LockedError:
            pass
        except StorageError:
            if act.kind != SEAL:
                self.refused.append(text)
        except Killed:
            del self.stores[act.writer]
            held = {file.fd for file in (*store.journal.files, *store.journal.lost)}
            for fd in held & set(self.kernel.open):
                disk.close(fd)
        finally:
            disk.doing = disk.before_lock = None

    def check(self, *, recovered: bool = False) -> None:
        with reopen(self.folder) as reader:
            seen = main_line(reader)
            kept = messages(reader) if recovered else set(seen)
            assert errors(reader) == []
        assert len(seen) == len(set(seen)), "a message is there twice"
        assert set(self.acknowledged) <= kept, "an acknowledged message is gone"
        assert not set(self.refused) & set(seen), "a message that failed has effect"


@settings(max_examples=examples(100), deadline=None)
@given(script=st.lists(acts(2, FAILURES), min_size=1, max_size=7))
def test_failures_in_any_order(tmp_path_factory: pytest.TempPathFactory, script: list[Act]) -> None:
    world = World(tmp_path_factory.mktemp("world"))
    world.do(script)
    world.check()
    world.kernel.cut_power(world.folder)
    world.check()
    append(reopen(world.folder), "goes on")


@settings(max_examples=examples(60), deadline=None)
@given(script=st.lists(acts(2, ["removed"]), min_size=1, max_size=5))
def test_removals_in_any_order(tmp_path_factory: pytest.TempPathFactory, script: list[Act]) -> None:
    """Somebody removes the journals while writers are at work; a value that a ref would lose is kept."""
    world = World(tmp_path_factory.mktemp("world"))
    world.do(script)
    for store, _ in world.stores.values():
        store.sync()
    world.check(recovered=True)
    world.kernel.cut_power(world.folder)
    world.check(recovered=True)


def test_a_removed_journal_explains_what_its_writer_knew(tmp_path: Path) -> None:
    """Only that writer has it open; another has started and sealed a new one."""
    world = World(tmp_path)
    removed = Act(3, APPEND, "removed", [], [])
    world.do([plain(0), Act(0, APPEND, "removed", [removed], [])])
    world.do([Act(0, APPEND, "removed", [Act(1, SEAL, "removed", [], [])], []), plain(3)])
    world.check(recovered=True)


def test_a_disk_that_takes_no_successor_either(tmp_path: Path) -> None:
    """The frame is voided then; the next writer that has room for it begins the successor."""
    world = World(tmp_path)
    world.do([plain(0), plain(1)])
    _, disk = world.stores[0]
    disk.refuse_new = True
    world.do([Act(0, APPEND, "write fails", [], [])])
    assert world.refused == ["2 of 0"]
    world.check()
    assert journals(tmp_path) == [1]
    world.do([plain(1)])
    assert journals(tmp_path) == [1, 2]
    disk.refuse_new = False
    world.do([plain(0)])
    world.check()
    world.kernel.cut_power(tmp_path)
    world.check()


def test_a_failed_journal_is_recognized_by_who_opens_it_later(tmp_path: Path) -> None:
    """The first to sync may be the only one to learn of the failure, so it leaves a mark."""
    with new_store(tmp_path) as store:
        append(store, "one", durability="durable")
        journal_path(tmp_path).chmod(0o444)
    assert main_line(reopen(tmp_path)) == ["one"]
    append(reopen(tmp_path), "two", durability="durable")
    assert journals(tmp_path) == [1, 2]
    assert main_line(reopen(tmp_path)) == ["one", "two"]
    with reopen(tmp_path) as again:
        seal(again)
        assert errors(again) == []
        assert main_line(again) == ["one", "two"]


def test_a_sync_begins_without_the_lock(tmp_path: Path) -> None:
    """Others write during a flush; each sync covers all earlier writes."""

    class Watching(Disk):
        free = 0

        def sync(self, fd: int) -> None:
            other = self.open(str(tmp_path / ".trace" / "journal" / "1"), READ)
            if other is not None:
                self.free += self.lock(other, blocking=False)
                self.close(other)
            super().sync(fd)

    disk = Watching()
    with new_store(tmp_path, disk=disk) as store:
        append(store, "one", durability="durable")
        disk.free = 0
        append(store, "two", durability="durable")
        assert disk.free == 1


def messages(store: Store) -> set[str]:
    """Return the messages of all commits that are stored, of whatever ref."""
    objects = map(store.objects.read, store.objects.iterate())
    return {Commit.decode(data).message for data in objects if kind_of(data) == COMMIT}


def plain(writer: int) -> Act:
    return Act(writer, APPEND, "", [], [])
