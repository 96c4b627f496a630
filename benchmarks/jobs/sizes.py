"""How small a store becomes, and how long that takes."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.ground import Ground, size_of
from benchmarks.job import Contestant, Job, Row, Sampler
from benchmarks.model import IDS, Unavailable, Work
from benchmarks.peers import load
from benchmarks.profiling import profiled
from benchmarks.samplers import Single

CARRIED = "Trace, what git carries"
INDEXED = "Trace, with the index of its pack"
AGGRESSIVE = "git gc --aggressive"
PACK = "Trace pack"
LOOSE_GC = "git gc, of loose objects"

_failed: dict[tuple[str, int, str], Unavailable] = {}
"""Stores that could not be built: several contestants look at one, and each try may take minutes."""


def sized(name: str, peer: str, measure: Callable[[Path], int]) -> Contestant:
    """Return a contestant whose value is a size of its store."""

    def start(ground: Ground, peer: str) -> Sampler:
        what = (ground.messages.name, ground.size, peer)
        try:
            if what in _failed:
                raise _failed[what]
            built = ground.store(peer)
        except Unavailable as reason:
            _failed[what] = reason
            raise
        return Single(built.messages, measure(built.folder))

    return Contestant(name, peer, start)


def tidied(name: str, peer: str, task: str) -> Contestant:
    """Return a contestant that tidies a fresh copy of its store for each sample."""

    def start(ground: Ground, peer: str) -> Sampler:
        return _Tidying(ground, peer, task)

    return Contestant(name, peer, start)


class _Tidying:
    """Times the housekeeping of a store as appends left it."""

    def __init__(self, ground: Ground, peer: str, task: str) -> None:
        self.reached = ground.store(peer).messages
        self.note = ""
        self.work: Work | None = None
        self._ground = ground
        self._peer = peer
        self._task = task

    def sample(self) -> float:
        built = self._ground.copy(self._peer)
        try:
            work = getattr(load(self._peer), self._task)
            began = time.perf_counter()
            work(built.folder)
            return time.perf_counter() - began
        finally:
            self._ground.discard(built.folder)

    def profile(self, file: Path) -> None:
        profiled(file, self.sample)

    def close(self) -> None:
        pass


def stored(folder: Path) -> int:
    """Return the bytes of all files of a store, without files of the benchmarks."""
    ids = folder / IDS
    return size_of(folder) - (ids.stat().st_size if ids.exists() else 0)


def carried(folder: Path) -> int:
    """Return the bytes of a Trace repository without ignored files."""
    root = folder / ".trace"
    tracked = [root / name for name in ("config", ".gitignore", ".gitattributes")]
    files = [*tracked, *(root / "objects").rglob("*"), *(root / "refs").rglob("*")]
    return sum(path.stat().st_size for path in files if path.is_file() and path.suffix != ".idx")


def indexed(folder: Path) -> int:
    """Return the bytes that git carries, and the indexes of packs, which git's own figure has in it."""
    packs = folder / ".trace" / "objects" / "pack"
    return carried(folder) + sum(path.stat().st_size for path in packs.glob("*.idx"))


def packed_only(folder: Path) -> int:
    """Return the bytes of a git repository's packs without their indexes."""
    return sum(path.stat().st_size for path in folder.rglob("*.pack"))


JOBS = (
    Job(
        name="size",
        title="Bytes on disk after housekeeping; git's are all files of a bare repository",
        unit="B",
        sizes=(10_000, 100_000),
        rounds=1,
        contestants=(
            sized(CARRIED, "trace", carried),
            sized(INDEXED, "trace", indexed),
            sized("Trace, every file", "trace", stored),
            sized(AGGRESSIVE, "git-aggressive", stored),
            sized("git gc --aggressive, packs alone", "git-aggressive", packed_only),
            sized("git gc", "git", stored),
            sized("JSON Lines, zstd -9 --long", "zstd", stored),
            sized("JSON Lines", "jsonl", stored),
            sized("SQLite, content-addressed", "sqlite-addressed", stored),
        ),
        rows=(
            Row("bytes after pack", CARRIED, AGGRESSIVE, 2.5, 4, variant="repetitive"),
            Row("bytes after pack", CARRIED, AGGRESSIVE, 1.7, 2.2, variant="varied"),
            Row("bytes after pack", CARRIED, AGGRESSIVE, 2, 3, variant="real"),
            Row("the same with Trace's index", INDEXED, AGGRESSIVE, 2.5, 4, variant="repetitive"),
            Row("the same with Trace's index", INDEXED, AGGRESSIVE, 1.7, 2.2, variant="varied"),
            Row("the same with Trace's index", INDEXED, AGGRESSIVE, 2, 3, variant="real"),
        ),
        variants=("repetitive", "varied", "real"),
    ),
    Job(
        name="pack",
        title="From a store as appends left it to one pack",
        unit="s",
        sizes=(10_000, 100_000),
        rounds=3,
        contestants=(
            tidied(PACK, "trace-unpacked", "pack"),
            tidied(LOOSE_GC, "git-loose", "collect"),
            tidied("git repack -adf, of one pack", "git", "repack"),
        ),
        rows=(Row("time of pack", PACK, LOOSE_GC, 2, 8),),
    ),
)
