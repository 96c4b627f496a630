"""Where a job runs: the messages, the stores that were built of them, and room for copies.

Rule: a store is built once a size, in a process of its own, and is never written to again by a job; who writes
takes a copy. A build that comes to the limit keeps what it has, and says how many messages that is.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.messages import Messages
from benchmarks.model import IDS, Turn, Unavailable
from benchmarks.peers import load

SPACE_LIMIT_BYTES = 4_000_000_000


class Built(NamedTuple):
    """A store as it stands.

    Attributes:
        folder: where it is.
        messages: how many it holds.
        seconds: how long it took to build.
        stopped: why it holds fewer than were wanted; empty when it does not.
    """

    folder: Path
    messages: int
    seconds: float
    stopped: str

    @property
    def ids(self) -> Path:
        """The file of the ids of its messages' content, where the peer has ids."""
        return self.folder / IDS

    @property
    def note(self) -> str:
        """Say that it holds fewer messages than were wanted; else nothing."""
        if not self.stopped:
            return ""
        return f"its store came to {self.messages:,} messages: {self.stopped}"


class Ground:
    """One size and variant of the messages, and the stores of them.

    Attributes:
        work: the work folder.
        variant: the kind of transcripts.
        messages: what the stores hold, and what is appended to them.
        size: how many messages a store holds.
        seed: makes the messages, and whatever else is drawn.
        limit: seconds that a build, or a contestant's samples, may take.
    """

    def __init__(
        self,
        work: Path,
        variant: str,
        size: int,
        *,
        seed: int = 1,
        limit: float = 300.0,
        real: tuple[str, ...] = (),
    ) -> None:
        self.work = work
        self.variant = variant
        self.seed = seed
        self.limit = limit
        self.real = real
        self.messages = Messages(work / "data", variant, size, seed=seed, real=real)
        self.size = self.messages.size

    def at(self, size: int) -> Ground:
        """Return the ground of another size."""
        return Ground(
            self.work, self.variant, size, seed=self.seed, limit=self.limit, real=self.real
        )

    def store(self, name: str) -> Built:
        """Return the store of a peer, built when it is not there.

        Raises:
            Unavailable: the peer cannot run here, or its build failed.
        """
        peer = load(name)
        folder = self.work / "stores" / self.messages.name / str(self.size) / peer.store
        if not (folder / "built.json").exists():
            self._build(name, folder)
        told: dict[str, Any] = json.loads((folder / "built.json").read_text("utf-8"))
        return Built(folder / "store", told["messages"], told["seconds"], told["stopped"])

    def copy(self, name: str) -> Built:
        """Return a copy of a store that may be written to; `discard` removes it."""
        built = self.store(name)
        folder = self.scratch()
        shutil.copytree(built.folder, folder / "store", symlinks=True)
        return built._replace(folder=folder / "store")

    def scratch(self) -> Path:
        """Return a new, empty folder on the disk of the stores."""
        folder = self.work / "scratch" / f"{os.getpid()}-{time.perf_counter_ns()}"
        folder.mkdir(parents=True)
        return folder

    def discard(self, folder: Path) -> None:
        """Remove the result of `copy` or `scratch`."""
        inside = folder.relative_to(self.work / "scratch").parts[0]
        shutil.rmtree(self.work / "scratch" / inside, ignore_errors=True)

    def _build(self, name: str, folder: Path) -> None:
        part = folder.with_name(f"{folder.name}.{os.getpid()}.part")
        shutil.rmtree(part, ignore_errors=True)
        (part / "store").mkdir(parents=True)
        asked = [
            *("build", name, str(part), str(self.messages.path)),
            str(self.size),
            str(self.limit),
        ]
        try:
            run = subprocess.run(
                [sys.executable, "-m", "benchmarks.worker", *asked],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
                timeout=self.limit * 4 + 60,
            )
        except subprocess.TimeoutExpired:
            shutil.rmtree(part, ignore_errors=True)
            raise Unavailable(f"its build at {self.size} messages never ended") from None
        if run.returncode:
            shutil.rmtree(part, ignore_errors=True)
            last = run.stderr.strip().splitlines()[-1:] or ["no word"]
            raise Unavailable(f"its build at {self.size} messages failed: {last[0][:200]}")
        try:
            part.rename(folder)
        except OSError:  # another run built it meanwhile
            shutil.rmtree(part, ignore_errors=True)


def sweep(work: Path) -> None:
    """Remove the copies that a killed run left."""
    for folder in (work / "scratch").glob("*-*"):
        try:
            os.kill(int(folder.name.partition("-")[0]), 0)
        except ProcessLookupError:
            shutil.rmtree(folder, ignore_errors=True)
        except PermissionError:  # another user's run
            continue


class Limited:
    """Messages that end early once building took too long or too much room.

    Attributes:
        count: how many were given out.
        stopped: why they ended early; empty when they did not.
    """

    def __init__(self, turns: Iterator[Turn], folder: Path, seconds: float) -> None:
        self.count = 0
        self.stopped = ""
        self._turns = turns
        self._folder = folder
        self._seconds = seconds

    def __iter__(self) -> Iterator[Turn]:
        began = time.perf_counter()
        looked = began
        for turn in self._turns:
            now = time.perf_counter()
            if now - began > self._seconds:
                self.stopped = f"{self._seconds:.0f} s"
                return
            if now - looked > 1:
                looked = now
                if size_of(self._folder) > SPACE_LIMIT_BYTES:
                    self.stopped = f"{SPACE_LIMIT_BYTES / 1e9:.0f} GB on disk"
                    return
            self.count += 1
            yield turn


def size_of(folder: Path) -> int:
    """Return the bytes of all files below a folder."""
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(root, name)).st_size
            except FileNotFoundError:  # a journal that came and went
                continue
    return total
