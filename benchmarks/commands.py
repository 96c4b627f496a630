"""Benchmarks of whole commands of Trace and git, each a process that is timed from its start to its exit.

Rule: every sample begins from the same state. Restoring that state is not measured.
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

# Runs a command, and prints its exit code and its peak memory. The peak of a process includes the memory of the process
# that forked it, so a small process has to fork it.
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
    """The commands of a sample.

    Attributes:
        start: the branch that is checked out.
        steps: the arguments of each command, after the program's name.
        before: commands that are run first and not measured.
        stops: whether the first step is expected to stop at a conflict.
    """

    start: str
    steps: tuple[Step, ...]
    before: tuple[Step, ...] = ()
    stops: bool = False


class Commands:
    """Runs commands in sequence; a sample is their total time, or the highest peak memory of one of them."""

    def __init__(
        self,
        ground: Ground,
        place: Place,
        task: Task,
        *,
        memory: bool,
        fresh: bool,
        conflict_code: int,
    ) -> None:
        self.reached = ground.size
        self.note = ""
        self._ground = ground
        self._place = place
        self._fresh = fresh
        self._measure = self._peak_memory if memory else self._seconds
        self._combine = max if memory else sum
        self._before = task.before
        self._steps = [
            (step, 0 if number or not task.stops else conflict_code)
            for number, step in enumerate(task.steps)
        ]
        self.work: Work | None = None
        if not fresh:
            self.sample()  # fills the file cache with the files of the program

    def sample(self) -> float:
        self._place.restore()
        if self._fresh:
            self._place.remove_caches()
        for step in self._before:
            self._seconds(step, 0)
        result = self._combine([self._measure(step, code) for step, code in self._steps])
        if self.work is None:
            self.work = self._place.work()
        return result

    def close(self) -> None:
        self._ground.discard(self._place.folder)

    def _seconds(self, step: Step, code: int) -> float:
        began = time.perf_counter()
        run = self._process([self._place.program, *step], subprocess.DEVNULL)
        seconds = time.perf_counter() - began
        _check(step, run.returncode, code, run.stderr)
        return seconds

    def _peak_memory(self, step: Step, code: int) -> float:
        if not hasattr(os, "wait4"):
            raise Unavailable("this system does not report the peak memory of a process")
        launcher = [sys.executable, "-I", "-S", "-c", _LAUNCHER, self._place.program, *step]
        run = self._process(launcher, subprocess.PIPE)
        exit_code, peak = run.stdout.split()
        _check(step, int(exit_code), code, run.stderr)
        return float(peak)

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


def _check(step: Step, code: int, expected: int, stderr: bytes) -> None:
    if code != expected:
        last = stderr.decode(errors="replace").strip().splitlines()[-1:] or ["no error output"]
        raise Unavailable(f"{step[0]} ended with {code}: {last[0][:200]}")


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
        memory: measure peak memory, not time.
        fresh: run them in a copy without caches, like a fresh clone; only a few samples.
        tenth: use a history of a tenth of the size.
    """

    def begin(ground: Ground, peer: str) -> Commands:
        here = installation(ground.work)
        ground = ground.at(ground.size // 10) if tenth else ground
        place = TracePlace(ground.copy(peer).folder, here, task.start)
        return Commands(ground, place, task, memory=memory, fresh=fresh, conflict_code=3)

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
    """Return a contestant that runs commands of git.

    Further arguments are as in `trace`. With `sparse`, no files are checked out.
    """

    def begin(ground: Ground, peer: str) -> Commands:
        ground = ground.at(ground.size // 10) if tenth else ground
        place = GitPlace(ground.copy(peer).folder, task.start, sparse=sparse)
        return Commands(ground, place, task, memory=memory, fresh=fresh, conflict_code=1)

    return Contestant(name, "git-parted", begin, FEW_ROUNDS if fresh else 0)
