"""Whole commands of Trace and git, as one types them: a process from before its start until it has ended.

Rule: every sample begins from the same state. Putting it back is not measured.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import NamedTuple

from benchmarks.ground import Ground
from benchmarks.installation import installation
from benchmarks.job import Contestant
from benchmarks.model import Unavailable, Work
from benchmarks.places import GitPlace, Place, TracePlace

FEW_ROUNDS = 2

# Starts a command and says with which code it ended and what it held at most. A process is charged with what the one
# that starts it holds at that moment, so that one has to be small.
_LAUNCHER = """
import os, sys
process = os.fork()
if not process:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.execvp(sys.argv[1], sys.argv[1:])
_, status, used = os.wait4(process, 0)
unit = 1 if sys.platform == "darwin" else 1024
print(os.waitstatus_to_exitcode(status), used.ru_maxrss * unit)
"""

Step = tuple[str, ...]


class Task(NamedTuple):
    """What is measured.

    Attributes:
        start: the branch that is checked out.
        steps: the words of each command after the program's name.
        before: commands that are run first and not measured.
        stops: whether the first step stops at a conflict.
    """

    start: str
    steps: tuple[Step, ...]
    before: tuple[Step, ...] = ()
    stops: bool = False


class Commands:
    """Runs commands one after another; a sample is the time of all, or the most that one of them held in memory."""

    def __init__(
        self, ground: Ground, place: Place, task: Task, *, memory: bool, fresh: bool, stopped: int
    ) -> None:
        self.reached = ground.size
        self.note = ""
        self._ground = ground
        self._place = place
        self._fresh = fresh
        self._measure = self._held if memory else self._seconds
        self._together = max if memory else sum
        self._before = task.before
        self._steps = [
            (step, 0 if number or not task.stops else stopped)
            for number, step in enumerate(task.steps)
        ]
        self.work: Work | None = None
        if not fresh:
            self.sample()  # brings the files of the program into memory

    def sample(self) -> float:
        self._place.put_back()
        if self._fresh:
            self._place.forget()
        for step in self._before:
            self._seconds(step, 0)
        found = self._together([self._measure(step, code) for step, code in self._steps])
        if self.work is None:
            self.work = self._place.work()
        return found

    def close(self) -> None:
        self._ground.discard(self._place.folder)

    def _seconds(self, step: Step, code: int) -> float:
        began = time.perf_counter()
        run = self._process([self._place.program, *step], subprocess.DEVNULL)
        seconds = time.perf_counter() - began
        _check(step, run.returncode, code, run.stderr)
        return seconds

    def _held(self, step: Step, code: int) -> float:
        if not hasattr(os, "wait4"):
            raise Unavailable("this system does not tell what a process held at most")
        launcher = [sys.executable, "-I", "-S", "-c", _LAUNCHER, self._place.program, *step]
        run = self._process(launcher, subprocess.PIPE)
        ended, held = run.stdout.split()
        _check(step, int(ended), code, run.stderr)
        return float(held)

    def _process(self, command: Sequence[str], output: int) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.PIPE,
            cwd=self._place.folder,
            env=self._place.environment,
            check=False,
        )


def _check(step: Step, found: int, wanted: int, told: bytes) -> None:
    if found != wanted:
        last = told.decode(errors="replace").strip().splitlines()[-1:] or ["no word"]
        raise Unavailable(f"{step[0]} ended with {found}: {last[0][:200]}")


def trace(
    name: str,
    task: Task,
    *,
    memory: bool = False,
    fresh: bool = False,
    tenth: bool = False,
) -> Contestant:
    """Return a contestant that runs commands of Trace.

    Args:
        name: as shown.
        task: the commands.
        memory: measure what they hold in memory, not how long they take.
        fresh: run them as the first in a fresh copy, in which nothing is kept beside the history; a few times only.
        tenth: in a history of a tenth of the size.
    """

    def begin(ground: Ground, peer: str) -> Commands:
        here = installation(ground.work)
        ground = ground.at(ground.size // 10) if tenth else ground
        place = TracePlace(ground.copy(peer).folder, here, task.start)
        return Commands(ground, place, task, memory=memory, fresh=fresh, stopped=3)

    return Contestant(name, "trace-parted", begin, FEW_ROUNDS if fresh else 0)


def git(
    name: str,
    task: Task,
    *,
    sparse: bool = False,
    memory: bool = False,
    fresh: bool = False,
    tenth: bool = False,
) -> Contestant:
    """Return a contestant that runs commands of git; `sparse`: with none of its files checked out. Else as `trace`."""

    def begin(ground: Ground, peer: str) -> Commands:
        ground = ground.at(ground.size // 10) if tenth else ground
        place = GitPlace(ground.copy(peer).folder, task.start, sparse=sparse)
        return Commands(ground, place, task, memory=memory, fresh=fresh, stopped=1)

    return Contestant(name, "git-parted", begin, FEW_ROUNDS if fresh else 0)
