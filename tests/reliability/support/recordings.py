"""Workloads on an in-memory disk, and their acknowledged actions.

A recording is a log of what the kernel was told, and after each step what the repository holds.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from tests.reliability.support.holdings import (
    FOLDER,
    PLAIN,
    ROOT,
    START,
    Holding,
    Look,
    holding_of,
)
from trace_store.base.ident import FixedClock
from trace_store.base.oid import ObjectId
from trace_store.errors import StorageError
from trace_store.store.store import Store
from trace_store.testing.power_cuts import (
    SYNC_FAILED,
    DiskEvent,
    DiskImage,
    PowerCutDisk,
    image_of,
    kill,
)


@dataclass(frozen=True)
class Step:
    """What was acknowledged.

    Attributes:
        name: says which step it is.
        place: how much of the log was there by then.
        holding: what the repository held.
        durable: whether it is to survive a power cut.
        gradual: whether refs may be found anywhere on their way from the step before.
        drops: whether objects may go in it.
        settles: whether what others had written before, unsynced, is durable with it.
        erases: whether the secret is in no file from then on.
        refused: it was refused, so until it was its effect may be there or not.
        promised: the objects that are acknowledged by then.
    """

    name: str
    place: int
    holding: Holding
    durable: bool = True
    gradual: bool = False
    drops: bool = False
    settles: bool = True
    erases: bool = False
    refused: bool = False
    promised: frozenset[ObjectId] = frozenset()


class Killed(BaseException):
    """The process is killed here."""


class MortalDisk(PowerCutDisk):
    """A disk that lets its user be killed at the n-th thing that is done, counted from 0; -1 is never.

    Attributes:
        dies_at: the n.
        takes_half: whether the next write is cut short, and says so.
        fails_sync: whether the next sync of a file fails.
    """

    def __init__(self, image: DiskImage, *, without: str = "", dies_at: int = -1) -> None:
        super().__init__(image, without=without)
        self.dies_at = dies_at
        self.takes_half = False
        self.fails_sync = False

    def write(self, fd: int, data: bytes, at: int | None = None) -> int:
        if self.takes_half:
            self.takes_half = False
            return super().write(fd, data[: len(data) // 2], at)
        return super().write(fd, data, at)

    def sync(self, fd: int) -> None:
        if self.fails_sync:
            self.fails_sync = False
            self._note(DiskEvent(SYNC_FAILED, self.descriptors[fd][0].number))
            raise StorageError("the disk fails", errno=errno.EIO)
        super().sync(fd)

    def _note(self, event: DiskEvent) -> None:
        if len(self.log) == self.dies_at:
            raise Killed
        super()._note(event)


class Recording:
    """A disk and the acknowledged actions on it.

    Attributes:
        disk: the disk.
        before: its initial content.
        steps: the acknowledged states; the first is the initial one.
        judged_from: the length of the log at the first power cut to check.
        look: what else to check.
    """

    def __init__(
        self,
        image: DiskImage,
        look: Look = PLAIN,
        *,
        without: str = "",
        dies_at: int = -1,
        disk: PowerCutDisk | None = None,
        blind: bool = False,
    ) -> None:
        """Begin.

        Args:
            image: the initial content.
            look: what else to check.
            without: the site whose syncs are skipped.
            dies_at: the number of the last event, from 0; -1 for never.
            disk: another one, which has the image.
            blind: whether nobody looks what the repository holds, since only the log matters.
        """
        self.disk = disk or MortalDisk(image, without=without, dies_at=dies_at)
        self.judged_from = 0
        self.look = look
        self._unsure: frozenset[ObjectId] = frozenset()
        self.before = image_of(self.disk)
        self.begin = len(self.disk.log)
        self.clock = FixedClock(START)
        self._blind = blind
        held = Holding(None) if blind else holding_of(self.before, look)
        self.steps = [Step("start", self.begin, held, promised=held.objects)]

    def open(self, *, durability: str = "durable") -> Store:
        """Open the repository once more."""
        return Store.open(ROOT, clock=self.clock, disk=self.disk, durability=durability)

    def done(
        self,
        name: str,
        *,
        durable: bool = True,
        gradual: bool = False,
        drops: bool = False,
        settles: bool = True,
        erases: bool = False,
        refused: bool = False,
    ) -> None:
        """Note that a step was acknowledged."""
        if self._blind:
            return
        found = holding_of(image_of(self.disk), self.look)
        place = len(self.disk.log)
        promised = found.objects - self._unsure
        self.steps.append(
            Step(name, place, found, durable, gradual, drops, settles, erases, refused, promised)
        )

    def killed(self) -> None:
        """Record a killed process: unacknowledged changes may or may not be there."""
        if isinstance(self.disk, MortalDisk):
            self.disk.dies_at = -1
        kill(self.disk)
        self.judged_from = len(self.disk.log)
        if self._blind:
            return
        known = [step for step in self.steps if step.durable][-1].promised
        self._unsure = holding_of(image_of(self.disk)).objects - known
        self.done("killed", durable=False, gradual=True)

    def promise(self, oid: ObjectId) -> None:
        """Record an acknowledged object."""
        self._unsure -= {oid}

    def log(self) -> list[DiskEvent]:
        """Return all events."""
        return self.disk.log[self.begin :]

    def mortal(self) -> MortalDisk:
        """Return the disk, to let it fail."""
        assert isinstance(self.disk, MortalDisk)
        return self.disk


@dataclass(frozen=True)
class Workload:
    """Something that is done, and where.

    Attributes:
        run: does it.
        start: returns the disk on which it begins.
        look: what else is looked for.
    """

    run: Callable[[Recording], None]
    start: Callable[[], DiskImage]
    look: Look = PLAIN

    @property
    def name(self) -> str:
        """What it is called."""
        return self.run.__name__

    def record(self, *, without: str = "", blind: bool = False) -> Recording:
        """Run it and return the recording."""
        recording = Recording(self.start(), self.look, without=without, blind=blind)
        self.run(recording)
        return recording


@dataclass(frozen=True)
class Meeting:
    """A process is killed in one workload, and another continues.

    Attributes:
        first: where it is killed.
        second: the workload of the other.
    """

    first: Workload
    second: Workload

    @property
    def name(self) -> str:
        """What it is called."""
        return f"{self.first.name}, killed, then {self.second.name}"

    def record(self, at: int, *, without: str = "", blind: bool = False) -> Recording | None:
        """Record the second after a kill at event `at`; None if the first had finished."""
        recording = Recording(
            self.first.start(), self.second.look, without=without, dies_at=at, blind=blind
        )
        try:
            self.first.run(recording)
        except Killed:
            recording.killed()
            self.second.run(recording)
            return recording
        return None


@cache
def empty_folder() -> DiskImage:
    """Return a disk with a folder."""
    disk = PowerCutDisk()
    disk.make_directory(FOLDER)
    return image_of(disk)


@cache
def fresh() -> DiskImage:
    """Return a disk with an empty repository as git hands it on: without empty directories."""
    disk = PowerCutDisk(empty_folder())
    Store.init(FOLDER, disk=disk, clock=FixedClock(START)).close()
    for name in ("objects/pack", "objects", "refs"):
        disk.remove_directory(f"{ROOT}/{name}")
    return image_of(disk)
