"""Events: the cost of an emit, and the delay until a follower sees it."""

from __future__ import annotations

import subprocess
import sys
import time

from benchmarks.ground import Ground
from benchmarks.job import Contestant, Job, Row, Sampler
from benchmarks.model import Unavailable, Work
from benchmarks.samplers import appending
from trace_store import Repo

BURST = 20
IDLE_SECONDS = 0.1
"""Long enough for a follower to reach its longest polling interval."""
EMIT, APPEND = "Trace, emit", "Trace, append without a sync"


class _Store:
    """A copy of a store, open for emits of about a hundred bytes."""

    def __init__(self, ground: Ground, peer: str) -> None:
        built = ground.copy(peer)
        self.reached = built.messages
        self.note = built.note
        self.work: Work | None = None
        self._ground = ground
        self._folder = built.folder
        self._repo = Repo.open(built.folder, durability="fast")
        self._count = 0
        self._emit()  # the first emit opens files

    def _emit(self) -> None:
        self._count += 1
        data = {"step": self._count, "share": self._count / 1000, "text": "a line of progress " * 3}
        self._repo.store.emit("progress", data)

    def close(self) -> None:
        self._repo.close()
        self._ground.discard(self._folder)


class _Emitting(_Store):
    """Times emits."""

    def sample(self) -> float:
        began = time.perf_counter()
        for _ in range(BURST):
            self._emit()
        return (time.perf_counter() - began) / BURST


class _Delay(_Store):
    """Times the delay from an emit until a follower in another process has the event."""

    def __init__(self, ground: Ground, peer: str, pause: float) -> None:
        super().__init__(ground, peer)
        self._pause = pause
        self._follower = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.worker", "follow", "trace", str(self._folder)],
            stdout=subprocess.PIPE,
            text=True,
        )
        if self._told() != "ready":
            raise Unavailable(f"the follower ended with {self._follower.wait()}")

    def sample(self) -> float:
        time.sleep(self._pause)
        began = time.monotonic_ns()
        self._emit()
        return (int(self._told()) - began) / 1e9

    def close(self) -> None:
        self._follower.terminate()
        self._follower.communicate()
        super().close()

    def _told(self) -> str:
        assert self._follower.stdout is not None
        return self._follower.stdout.readline().strip()


def _emitting(ground: Ground, peer: str) -> Sampler:
    return _Emitting(ground, peer)


def _delay(name: str, pause: float) -> Contestant:
    def start(ground: Ground, peer: str) -> Sampler:
        return _Delay(ground, peer, pause)

    return Contestant(name, "trace", start)


JOBS = (
    Job(
        name="emit",
        title=f"One event, {BURST} one after another, beside one message, none of them synced",
        unit="s",
        sizes=(10_000,),
        rounds=300,
        contestants=(
            Contestant(EMIT, "trace", _emitting),
            appending(APPEND, "trace", "fast", burst=BURST),
            appending("floor: bytes", "floor", "write", burst=BURST),
        ),
        rows=(Row("emit", EMIT, APPEND, 1),),
    ),
    Job(
        name="follow",
        title="From an emit until a follower in another process has the event",
        unit="s",
        sizes=(10_000,),
        rounds=200,
        contestants=(
            _delay("Trace, after an idle period", IDLE_SECONDS),
            _delay("Trace, right after another event", 0.0),
        ),
    ),
)
