"""Recording a decision of a trajectory: a whole process, alone and twenty at once."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.ground import Ground
from benchmarks.installation import installation
from benchmarks.job import Contestant, Job, Row, Sampler
from benchmarks.model import Unavailable, Work
from benchmarks.peers import load
from benchmarks.peers.decisions import REASON

PACKAGE = "agent-trajectories@0.6.1"
TRACE, TRAIL = "Trace", "trail 0.6.1"
TOGETHER = 20

Program = tuple[list[str], dict[str, str]]
"""What a command begins with, and the variables of its process."""


class Recording:
    """Times processes that each record a decision; a sample is the time until the last one ended.

    Attributes:
        note: how many decisions cannot be read afterwards, if any.
    """

    def __init__(self, ground: Ground, peer: str, program: Program, processes: int) -> None:
        built = ground.copy(peer)
        self.reached = built.messages
        self.note = built.note
        self.work: Work | None = None
        self._ground = ground
        self._folder = built.folder
        self._peer = load(peer)
        self._command, self._environment = program
        self._processes = processes
        self._asked = self._failed = 0
        self.sample()  # brings the files of the program into memory

    def sample(self) -> float:
        """Record as many decisions as there are processes."""
        words = [f"Question {self._asked}?|this one", "--reasoning", REASON]
        began = time.perf_counter()
        running = [self._start(words) for _ in range(self._processes)]
        codes = [each.wait() for each in running]
        seconds = time.perf_counter() - began
        self._asked += len(codes)
        self._failed += sum(map(bool, codes))
        lost = self.reached + self._asked - self._peer.count(self._folder)
        if lost:
            self.note = f"{lost} of {self._asked} decisions lost, {self._failed} with an error"
        return seconds

    def close(self) -> None:
        """Remove the copy."""
        self._ground.discard(self._folder)

    def _start(self, words: Sequence[str]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [*self._command, "decision", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self._folder,
            env=self._environment,
        )


def trace_program(work: Path) -> Program:
    """Return an installed Trace."""
    here = installation(work)
    return [here.trace, "trajectory"], here.environment


def trail_program(work: Path) -> Program:
    """Return trail, installed by npm into the work folder.

    Raises:
        Unavailable: there is no npm, or it could not install it.
    """
    npm, folder = shutil.which("npm"), work.absolute() / "trail-0.6.1"
    program = folder / "node_modules" / ".bin" / "trail"
    if not program.exists():
        if npm is None:
            raise Unavailable("npm is not installed")
        folder.mkdir(parents=True, exist_ok=True)
        run = subprocess.run(
            [npm, "install", "--no-audit", "--no-fund", "--prefix", str(folder), PACKAGE],
            capture_output=True,
            text=True,
            check=False,
        )
        if run.returncode:
            last = run.stderr.strip().splitlines()[-1:] or ["no word"]
            raise Unavailable(f"npm could not install {PACKAGE}: {last[0][:200]}")
    return [str(program)], {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(folder)}


def _contestants(processes: int) -> tuple[Contestant, ...]:
    def trace(ground: Ground, peer: str) -> Sampler:
        return Recording(ground, peer, trace_program(ground.work), processes)

    def trail(ground: Ground, peer: str) -> Sampler:
        return Recording(ground, peer, trail_program(ground.work), processes)

    return (
        Contestant(TRACE, "trace-decisions", trace),
        Contestant(TRAIL, "trail-decisions", trail),
    )


JOBS = (
    Job(
        name="decision",
        title="A whole process that records a decision in a trajectory of so many",
        unit="s",
        sizes=(10, 1_000, 10_000),
        rounds=15,
        contestants=_contestants(1),
        rows=(Row("recording a decision", TRACE, TRAIL, 3, 10, size=1_000),),
    ),
    Job(
        name=f"decisions-{TOGETHER}",
        title=f"{TOGETHER} processes at once that record a decision each, until the last one ended",
        unit="s",
        sizes=(100,),
        rounds=5,
        contestants=_contestants(TOGETHER),
        rows=(Row(f"{TOGETHER} decisions at once", TRACE, TRAIL, 2, 5),),
    ),
)
