"""Processes that append: several to one branch at once, and one that has just started."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from benchmarks.ground import Ground
from benchmarks.job import Contestant, Job, Row, Sampler
from benchmarks.messages import FOLLOWING
from benchmarks.model import Unavailable, Work
from benchmarks.peers import load

PROCESSES = (1, 2, 4, 8)
MESSAGES_EACH = 100
FIRST = 500
TRACE, ADDRESSED = "Trace", "SQLite FULL, content-addressed"
NORMAL = "SQLite NORMAL, content-addressed"
T = TypeVar("T")

Process = subprocess.Popen[str]


class _Writing:
    """Times appends of processes that begin together; a sample is for one message of any of them."""

    def __init__(
        self, ground: Ground, peer: str, mode: str, processes: int, each: int = MESSAGES_EACH
    ) -> None:
        built = ground.copy(peer)
        self.reached = built.messages
        self.note = built.note
        self.work: Work | None = None
        self._ground = ground
        self._built = built
        self._peer = peer
        self._mode = mode
        self._rounds = 0
        each = min(each, FOLLOWING // processes)
        self._each = each
        self._writers = [
            self._start(ground.size + number * each, each) for number in range(processes)
        ]
        for writer in self._writers:
            self._wait(writer, "ready")

    def sample(self) -> float:
        return self._round("")

    def profile(self, file: Path) -> None:
        self._round(str(file))

    def _round(self, profile: str) -> float:
        """Let all of them append their messages; the first writes a profile to that file if one is named."""
        began = time.perf_counter()
        for number, writer in enumerate(self._writers):
            assert writer.stdin is not None
            writer.stdin.write("\n" if number else f"{profile}\n")
            writer.stdin.flush()
        for writer in self._writers:
            self._wait(writer, "done")
        self._rounds += 1
        return (time.perf_counter() - began) / (self._each * len(self._writers))

    def close(self) -> None:
        for writer in self._writers:
            writer.communicate()
        wanted = self.reached + self._rounds * self._each * len(self._writers)
        last = load(self._peer).writer(self._built.folder, self._mode)
        held = last.count()
        last.close()
        self._ground.discard(self._built.folder)
        if held != wanted:
            raise AssertionError(f"{held} messages where {wanted} were stored")

    def _start(self, start: int, count: int) -> Process:
        path = self._ground.messages.path
        asked = [self._peer, self._mode, str(self._built.folder), str(path), str(start), str(count)]
        return subprocess.Popen(
            [sys.executable, "-m", "benchmarks.worker", "write", *asked],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def _wait(self, writer: Process, word: str) -> None:
        assert writer.stdout is not None
        if writer.stdout.readline().strip() != word:
            raise Unavailable(f"a writer ended with {writer.wait()}")


class _FirstAppends:
    """Times the first appends of a process, on a new copy of a store for each sample; a sample is for one message."""

    def __init__(self, ground: Ground, peer: str, mode: str) -> None:
        self.reached = ground.size
        self.note = ""
        self.work: Work | None = None
        self._asked = ground, peer, mode
        self.sample()  # the first process compiles the modules

    def sample(self) -> float:
        return self._run(_Writing.sample)

    def profile(self, file: Path) -> None:
        self._run(lambda process: process.profile(file))

    def close(self) -> None:
        pass

    def _run(self, measure: Callable[[_Writing], T]) -> T:
        process = _Writing(*self._asked, processes=1, each=FIRST)
        try:
            return measure(process)
        finally:
            process.close()


def writing(name: str, peer: str, mode: str, processes: int) -> Contestant:
    """Return a contestant of several processes."""

    def start(ground: Ground, peer: str) -> Sampler:
        writers = _Writing(ground, peer, mode, processes)
        writers.sample()  # the first append of a process opens files that the others find open
        return writers

    return Contestant(name, peer, start)


def first_appends(name: str, peer: str, mode: str) -> Contestant:
    """Return a contestant of new processes."""

    def start(ground: Ground, peer: str) -> Sampler:
        return _FirstAppends(ground, peer, mode)

    return Contestant(name, peer, start)


def _job(processes: int) -> Job:
    return Job(
        name=f"writers-{processes}",
        title=f"Durable appends to one branch, {processes} at once, by the wall clock, for each message",
        unit="s",
        sizes=(10_000,),
        rounds=15,
        contestants=(
            writing(TRACE, "trace", "durable", processes),
            writing(ADDRESSED, "sqlite-addressed", "FULL", processes),
        ),
        rows=(Row(f"durable appends, {processes} at once", TRACE, ADDRESSED, 1.5, 2),),
    )


JOBS = (
    *(_job(processes) for processes in PROCESSES),
    Job(
        name="append-first",
        title=f"The first {FIRST} messages of a process, not durable, one a transaction, for each message",
        unit="s",
        sizes=(10_000,),
        rounds=7,
        contestants=(
            first_appends(TRACE, "trace", "fast"),
            first_appends(NORMAL, "sqlite-addressed", "NORMAL"),
        ),
        rows=(Row(f"the first {FIRST} appends of a process", TRACE, NORMAL, 0.95),),
    ),
)
