"""Several processes that append to one branch at once."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from benchmarks.ground import Ground
from benchmarks.job import Contestant, Job, Row, Sampler
from benchmarks.messages import FOLLOWING
from benchmarks.model import Unavailable, Work
from benchmarks.peers import load

PROCESSES = (1, 2, 4, 8)
MESSAGES_EACH = 100
TRACE, ADDRESSED = "Trace", "SQLite FULL, content-addressed"

Process = subprocess.Popen[str]


class _Writing:
    """Times appends of processes that begin together; a sample is for one message of any of them."""

    def __init__(self, ground: Ground, peer: str, mode: str, processes: int) -> None:
        built = ground.copy(peer)
        self.reached = built.messages
        self.note = built.note
        self.work: Work | None = None
        self._ground = ground
        self._built = built
        self._peer = peer
        self._mode = mode
        self._rounds = 0
        each = min(MESSAGES_EACH, FOLLOWING // processes)
        self._each = each
        self._writers = [
            self._start(ground.size + number * each, each) for number in range(processes)
        ]
        for writer in self._writers:
            self._wait(writer, "ready")
        self.sample()  # the first append of a process opens files that the others find open

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


def writing(name: str, peer: str, mode: str, processes: int) -> Contestant:
    """Return a contestant of several processes."""

    def start(ground: Ground, peer: str) -> Sampler:
        return _Writing(ground, peer, mode, processes)

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


JOBS = tuple(_job(processes) for processes in PROCESSES)
