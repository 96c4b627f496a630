"""Bringing in the transcript of an agent, as it lies on the disk."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.ground import Ground
from benchmarks.job import Contestant, Job, Row, Sampler
from benchmarks.messages import REAL
from benchmarks.model import Unavailable, Work
from benchmarks.profiling import profiled
from benchmarks.session_file import write_session
from trace_store import Repo
from trace_store.importers.import_paths import import_paths
from trace_store.writer import Writer

TRACE = "Trace import"
AUTOMATIC = "Trace import, automatic checkpoints on"
WITHOUT = "Trace import, automatic checkpoints off"
LOADS = "json.loads of each line"
MEGABYTE = 1e6

Reading = Callable[[Ground, Sequence[Path]], float]


class _Reading:
    """Times the reading of files, in this process; a sample is for a megabyte."""

    def __init__(self, ground: Ground, read: Reading) -> None:
        self._files = session_files(ground)
        self._ground = ground
        self._read = read
        self.reached = ground.size
        self.note = ""
        self.work: Work | None = None
        self.sample()  # the first import of a process loads modules

    def sample(self) -> float:
        size = sum(path.stat().st_size for path in self._files)
        return self._read(self._ground, self._files) / size * MEGABYTE

    def profile(self, file: Path) -> None:
        profiled(file, self.sample)

    def close(self) -> None:
        pass


def reading(name: str, peer: str, read: Reading) -> Contestant:
    """Return a contestant that reads transcripts."""

    def start(ground: Ground, peer: str) -> Sampler:
        return _Reading(ground, read)

    return Contestant(name, peer, start)


def session_files(ground: Ground) -> list[Path]:
    """Return a file of the messages as a session of an agent, or the files of lines among real transcripts.

    Raises:
        Unavailable: there are none.
    """
    if ground.messages.name.startswith(REAL):
        given = [Path(path) for path in ground.real]
        found = [each for path in given for each in ([path] if path.is_file() else path.rglob("*"))]
        lines = sorted(path for path in found if path.suffix == ".jsonl")
        if not lines:
            raise Unavailable("no file of JSON lines is among the transcripts")
        return lines
    path = ground.work / "data" / f"session-{ground.messages.name}-{ground.size}.jsonl"
    if not path.exists():
        part = path.with_suffix(".part")
        write_session(part, ground.messages.held(), ground.seed)
        part.replace(path)
    return [path]


def import_all(ground: Ground, files: Sequence[Path]) -> float:
    """Import files into a new repository, durably, and return the seconds that it took."""
    folder = ground.scratch()
    try:
        with Repo.init(folder) as repo:
            began = time.perf_counter()
            import_paths(Writer(repo.store), [str(path) for path in files])
            return time.perf_counter() - began
    finally:
        ground.discard(folder)


def import_and_seal(ground: Ground, files: Sequence[Path]) -> float:
    """Do the same from making the repository to closing it, which writes a pack."""
    folder = ground.scratch()
    try:
        began = time.perf_counter()
        with Repo.init(folder) as repo:
            import_paths(Writer(repo.store), [str(path) for path in files])
        return time.perf_counter() - began
    finally:
        ground.discard(folder)


def import_with(setting: str) -> Reading:
    """Return what imports files as a caller does, with the setting of automatic checkpoints, in processor time."""

    def read(ground: Ground, files: Sequence[Path]) -> float:
        folder = ground.scratch()
        try:
            with Repo.init(folder) as repo:
                repo.store.config.set("automatic_checkpoints", setting)
                began = time.process_time()
                repo.transcripts.import_(*files)
                return time.process_time() - began
        finally:
            ground.discard(folder)

    return read


def loads(ground: Ground, files: Sequence[Path]) -> float:
    """Parse each line, and return the seconds that it took."""
    began = time.perf_counter()
    for path in files:
        with path.open("rb") as lines:
            for line in lines:
                _parse(line)
    return time.perf_counter() - began


def _parse(line: bytes) -> None:
    try:
        json.loads(line)
    except ValueError:  # a line with two values, or none
        return


JOBS = (
    Job(
        name="import",
        title="An agent's transcripts into a new repository, durably, for each megabyte; secrets are looked for",
        unit="s",
        sizes=(2_000,),
        rounds=15,
        contestants=(
            reading(TRACE, "trace", import_all),
            reading("Trace import, made, sealed and closed", "trace", import_and_seal),
            reading(LOADS, "python", loads),
        ),
        rows=(Row("import of a transcript", TRACE, LOADS, 3, 1.5, at_most=True),),
        variants=("repetitive", "varied", "real"),
    ),
    Job(
        name="automatic",
        title="The same with automatic checkpoints and without, for each megabyte, in processor time",
        unit="s",
        sizes=(20, 2_000),
        rounds=40,
        contestants=(
            reading(AUTOMATIC, "trace", import_with("on")),
            reading(WITHOUT, "trace", import_with("off")),
        ),
        rows=(Row("import with automatic checkpoints", AUTOMATIC, WITHOUT, 1.05, at_most=True),),
        variants=("repetitive", "varied", "real"),
    ),
)
