"""The n-th call that changes the disk fails, for every n: what was acknowledged is there, and work goes on."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from itertools import count

import pytest

from tests.reliability.support.recordings import (
    Recording,
    Workload,
    holding_of,
    judge,
    prepared,
    record,
)
from tests.reliability.support.workloads import appends, batch, packs, received, refs, settings
from trace_store.errors import StorageError, TraceError
from trace_store.testing import FailingDisk, Image, PowerCutDisk
from trace_store.testing.power_cuts import image_of, kill

FULL = bool(os.environ.get("TRACE_TEST_FULL"))
CODES = (
    errno.EIO,
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EROFS,
    errno.EACCES,
    errno.EMFILE,
)
STRIDE = 1 if FULL else 5


class FaultyDisk(FailingDisk, PowerCutDisk):
    """Fails once, and watches that nobody syncs again what could not be synced."""

    def __init__(self, image: Image, at: int, number: int, *, partly: bool) -> None:
        def fail(call: str) -> None:
            raise StorageError(f"{os.strerror(number)} in {call}", errno=number)

        FailingDisk.__init__(self, at, fail, partly=partly)
        PowerCutDisk.__init__(self, image)
        self.refused: set[int] = set()

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


@pytest.mark.parametrize("partly", [False, True], ids=["nothing written", "half written"])
@pytest.mark.parametrize(
    "workload",
    [appends, batch, refs, settings, received, packs],
    ids=lambda workload: workload.__name__,
)
def test_a_call_that_fails_loses_nothing(workload: Workload, partly: bool) -> None:
    image = prepared()
    clean = record(workload, image).steps
    runs = 0
    for at in count(1, STRIDE):
        number = CODES[runs % len(CODES)]
        disk = FaultyDisk(image, at, number, partly=partly)
        recording = Recording(image, disk=disk)
        with suppress(TraceError):  # anything else is no documented error
            workload(recording)
        if disk.count < at:
            break
        runs += 1
        kill(disk)
        done = recording.steps
        steps = [*done, *clean[len(done) : len(done) + 1]]
        found = holding_of(image_of(disk), goes_on=True)
        faults = list(judge(found, steps, len(done) - 1, killed=True))
        assert not faults, f"{faults[0]} [call {at}: {os.strerror(number)}]"
    assert runs > 1
