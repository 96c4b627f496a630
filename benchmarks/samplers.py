"""The ways of taking samples: one append after another, a fresh process each time, one number."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.ground import Ground
from benchmarks.job import Contestant, Sampler
from benchmarks.messages import FOLLOWING
from benchmarks.model import Turn, Unavailable, Work, Writer
from benchmarks.peers import load
from benchmarks.profiling import profiled

PROFILED_MESSAGES = 4000


class Appending:
    """Times transactions on a copy of a store, in this process; a sample is for one message.

    Each transaction holds `batch` messages, and a sample is of `burst` transactions without a pause.
    """

    def __init__(self, ground: Ground, peer: str, mode: str, batch: int, burst: int) -> None:
        built = ground.copy(peer)
        self.reached = built.messages
        self.note = built.note
        self.work: Work | None = None
        self._ground = ground
        self._folder = built.folder
        self._writer: Writer = load(peer).writer(built.folder, mode)
        self._batch = batch
        self._burst = burst
        self._turns = ground.messages.following(FOLLOWING)
        self._given = 0
        self.sample()  # the first append of a process opens files that the others find open

    def sample(self) -> float:
        taken = self._taken(self._burst)
        began = time.perf_counter()
        self._append_all(taken)
        return (time.perf_counter() - began) / (self._burst * self._batch)

    def profile(self, file: Path) -> None:
        profiled(file, self._append_all, self._taken(PROFILED_MESSAGES // self._batch))

    def close(self) -> None:
        held = self._writer.count()
        self._writer.close()
        self._ground.discard(self._folder)
        if held != self.reached + self._given:
            raise AssertionError(f"{held} messages where {self.reached + self._given} were stored")

    def _taken(self, count: int) -> list[list[Any]]:
        """Return the messages of so many transactions, as a program holds them before they are stored."""
        return [
            [self._writer.prepare(self._next()) for _ in range(self._batch)] for _ in range(count)
        ]

    def _append_all(self, taken: list[list[Any]]) -> None:
        for messages in taken:
            self._writer.append(messages)

    def _next(self) -> Turn:
        turn = self._turns[self._given % len(self._turns)]
        self._given += 1
        return turn


class Cold:
    """Runs a task of a peer in a fresh process for each sample.

    Attributes:
        told: all that the last process said.
    """

    def __init__(
        self,
        ground: Ground,
        peer: str,
        task: str,
        *,
        measure: Callable[[dict[str, Any]], float] = lambda told: float(told["seconds"]),
        **options: Any,
    ) -> None:
        built = ground.store(peer)
        self.reached = built.messages
        self.note = built.note
        self.work: Work | None = None
        self.told: dict[str, Any] = {}
        self._measure = measure
        self._asked = peer, task, str(built.folder)
        self._options = options
        self._limit = ground.limit
        self.sample()  # brings the files into memory, and lets a store write its caches

    def sample(self) -> float:
        self.told = self._run(self._options)
        self.work = Work(*self.told["work"]) if self.told["work"] else None
        return self._measure(self.told)

    def profile(self, file: Path) -> None:
        self._run({**self._options, "profile": str(file)})

    def close(self) -> None:
        pass

    def _run(self, options: dict[str, Any]) -> dict[str, Any]:
        command = [sys.executable, "-m", "benchmarks.worker", "run", *self._asked]
        try:
            run = subprocess.run(
                [*command, json.dumps(options)],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
                timeout=self._limit,
            )
        except subprocess.TimeoutExpired:
            raise Unavailable(f"one sample took more than {self._limit:.0f} s") from None
        if run.returncode:
            last = run.stderr.strip().splitlines()[-1:] or ["no word"]
            raise Unavailable(f"failed: {last[0][:200]}")
        told: dict[str, Any] = json.loads(run.stdout)
        return told


class Single:
    """One number, taken once: a size, or something that cannot be repeated on the same store."""

    def __init__(self, reached: int, value: float, work: Work | None = None) -> None:
        self.reached = reached
        self.note = ""
        self.work = work
        self._value = value

    def sample(self) -> float:
        return self._value

    def close(self) -> None:
        pass


def appending(
    name: str,
    peer: str,
    mode: str,
    *,
    batch: int = 1,
    burst: int = 1,
    size: int = 0,
    most: int = 0,
) -> Contestant:
    """Return a contestant that appends; `size` is that of its store, when it is not the job's."""

    def start(ground: Ground, peer: str) -> Sampler:
        return Appending(ground.at(size) if size else ground, peer, mode, batch, burst)

    return Contestant(name, peer, start, most)


def cold(name: str, peer: str, task: str, **options: Any) -> Contestant:
    """Return a contestant that runs a task of its peer in fresh processes."""

    def start(ground: Ground, peer: str) -> Sampler:
        return Cold(ground, peer, task, **options)

    return Contestant(name, peer, start)
