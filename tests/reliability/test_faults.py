"""Each disk call fails once: acknowledged data survives, and work continues."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

from tests.reliability.support.all_workloads import named
from tests.reliability.support.enumerations import judge
from tests.reliability.support.holdings import holding_of
from tests.reliability.support.locks import no_lock_on_the_real_disk
from tests.reliability.support.recordings import Killed, Recording, Workload
from tests.store.support.histories import append, errors, main_line, new_store, reopen
from trace_store.errors import StorageError, TraceError
from trace_store.maintenance.seal import seal
from trace_store.testing.disks import FailingDisk
from trace_store.testing.power_cuts import DiskImage, PowerCutDisk, image_of, kill

__all__ = ["no_lock_on_the_real_disk"]

FULL = bool(os.environ.get("TRACE_TEST_FULL"))
CODES = (
    errno.EIO,
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EROFS,
    errno.EACCES,
    errno.EMFILE,
)
READ_CODES = (errno.EIO, errno.EACCES, errno.EMFILE)
STRIDE = 1 if FULL else 5
READ_STRIDE = 1 if FULL else 7
NAMES = ("appends", "batch", "refs", "settings", "received", "packs")
UPKEEP = ("purges", "repairs", "adopts_mine")
NOTHING, HALF, SHORT = "nothing written", "half written", "a short write"
workloads = pytest.mark.parametrize("workload", list(map(named, NAMES)), ids=lambda each: each.name)
all_workloads = pytest.mark.parametrize(
    "workload", list(map(named, NAMES + UPKEEP)), ids=lambda each: each.name
)


class FaultyDisk(FailingDisk, PowerCutDisk):
    """Fails once, and checks that a failed sync is never retried."""

    def __init__(self, image: DiskImage, at: int, number: int, how: str = NOTHING) -> None:
        self.short = how == SHORT
        self.reason = os.strerror(number)

        def fail(call: str) -> None:
            if not (self.short and call == "write"):
                raise StorageError(f"{self.reason} in {call}", errno=number)

        FailingDisk.__init__(self, at, fail, partly=how == HALF)
        PowerCutDisk.__init__(self, image)
        self.refused: set[int] = set()

    def write(self, fd: int, data: bytes, at: int | None = None) -> int:
        if self.short and self.count + 1 == self._at:
            data = data[: len(data) // 2]
        return super().write(fd, data, at)

    def sync(self, fd: int) -> None:
        assert fd not in self.refused, "a sync is tried again after it failed"
        try:
            super().sync(fd)
        except StorageError:
            self.refused.add(fd)
            raise

    def close(self, fd: int) -> None:
        self.refused.discard(fd)
        super().close(fd)


class UnreadableDisk(PowerCutDisk):
    """Refuses the n-th call that reads: a file, its size or state, or the names in a directory."""

    def __init__(self, image: DiskImage, at: int, number: int) -> None:
        super().__init__(image)
        self.count = 0
        self.armed = False
        self._at = at
        self._number = number

    def open(self, path: str, mode: str = "read") -> int | None:
        if mode == "read":
            self._read()
        return super().open(path, mode)

    def read_at(self, fd: int, offset: int, size: int) -> bytes:
        self._read()
        return super().read_at(fd, offset, size)

    def stat(self, path: str) -> os.stat_result | None:
        self._read()
        return super().stat(path)

    def names(self, path: str) -> list[str]:
        self._read()
        return super().names(path)

    def scan(self, path: str) -> tuple[list[str], list[str]]:
        self._read()
        return super().scan(path)

    def _read(self) -> None:
        self.count += self.armed
        if self.armed and self.count == self._at:
            raise StorageError(os.strerror(self._number), errno=self._number)


def faults_of(recording: Recording, clean: Recording) -> list[str]:
    """Return the faults of a failed run's result, compared with a successful run."""
    kill(recording.disk)
    done = recording.steps
    steps = [*done, *clean.steps[len(done) : len(done) + 1]]
    found = holding_of(image_of(recording.disk), recording.look, goes_on=True)
    return list(judge(found, steps, len(done) - 1, killed=True))


@pytest.mark.parametrize("how", [NOTHING, HALF, SHORT])
@workloads
def test_a_call_that_fails_loses_nothing(workload: Workload, how: str) -> None:
    clean = workload.record()
    runs = 0
    for at in count(1, STRIDE):
        number = CODES[runs % len(CODES)]
        disk = FaultyDisk(workload.start(), at, number, how)
        recording = Recording(workload.start(), workload.look, disk=disk)
        with suppress(TraceError):  # other errors are not documented
            workload.run(recording)
        if disk.count < at:
            break
        runs += 1
        faults = faults_of(recording, clean)
        assert not faults, f"{faults[0]} [call {at}: {disk.reason}]"
    assert runs > 1


@all_workloads
def test_a_read_that_fails_loses_nothing(workload: Workload) -> None:
    """A file that cannot be read is not taken for one that is not there."""
    clean = workload.record()
    runs = 0
    for at in count(1, READ_STRIDE):
        number = READ_CODES[runs % len(READ_CODES)]
        disk = UnreadableDisk(workload.start(), at, number)
        recording = Recording(workload.start(), workload.look, disk=disk)
        disk.armed = True
        with suppress(TraceError):
            workload.run(recording)
        if disk.count < at:
            break
        runs += 1
        disk.armed = False
        faults = faults_of(recording, clean)
        assert not faults, f"{faults[0]} [read {at}: {os.strerror(number)}]"
    assert runs > 1


@all_workloads
def test_a_process_that_ends_at_a_call_loses_nothing(workload: Workload) -> None:
    clean = workload.record()
    for at in range(0, len(clean.log()), STRIDE):
        recording = Recording(workload.start(), workload.look, dies_at=at)
        with suppress(Killed):
            workload.run(recording)
        faults = faults_of(recording, clean)
        assert not faults, f"{faults[0]} [call {at}]"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="ends a process of its own")
def test_a_real_process_that_ends_at_a_call_loses_nothing(tmp_path: Path) -> None:
    for at in count(1, STRIDE):
        folder = tmp_path / str(at)
        told, tell = os.pipe()
        child = os.fork()
        if not child:
            os.close(told)
            end_at(folder, at, tell)
        os.close(tell)
        with os.fdopen(told, "rb") as said:
            promised = said.read().decode().split("\n")[:-1]
        _, status = os.waitpid(child, 0)
        if (folder / ".trace").exists():
            with reopen(folder, durability="durable") as store:
                assert not errors(store)
                assert main_line(store)[: len(promised)] == promised
                append(store, "it goes on")
        else:
            assert not promised
        if os.waitstatus_to_exitcode(status) == 0:
            assert promised == ["first", "second", "third"]
            return


def end_at(folder: Path, at: int, tell: int) -> None:
    """Write a history until the n-th write call, and return the acknowledged part."""
    try:
        store = new_store(folder, disk=FailingDisk(at, lambda call: os._exit(9)))
        for text in ("first", "second", "third"):
            append(store, text, durability="durable")
            os.write(tell, f"{text}\n".encode())
            seal(store)
        store.close()
    finally:
        os._exit(0)
