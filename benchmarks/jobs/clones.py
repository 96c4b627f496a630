"""Commands in a fresh git clone of a team's sessions, compared with a bare start of Python and with git's log."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.ground import Ground
from benchmarks.job import Contestant, Job, Row, Sampler
from benchmarks.model import Unavailable, Work
from benchmarks.scale import git, run, write_sources

MESSAGES_OF_A_SESSION = 100
BARE, LOG = "Python, a bare start", "git log"
INDEX = ("trace", "log", "-n", "1")
"""The first command, which indexes the packs as `git clone` does its own."""


class _Clone:
    """Runs a command in a new copy of the clone for each sample, which is its processor time."""

    def __init__(self, ground: Ground, command: Sequence[str], before: Sequence[str]) -> None:
        self.reached = ground.size
        self.note = ""
        self.work: Work | None = None
        self._ground = ground
        self._clone = _built(ground)
        self._command = command
        self._before = before
        self.sample()  # compiles the modules

    def sample(self) -> float:
        folder = self._ground.scratch()
        try:
            place = folder / "clone"
            shutil.copytree(self._clone, place, symlinks=True)
            if self._before:
                _run(self._before, place)
            return _run(self._command, place)
        finally:
            self._ground.discard(folder)

    def close(self) -> None:
        pass


def _run(command: Sequence[str], place: Path) -> float:
    program, *words = command
    start = {"trace": [sys.executable, "-m", "trace_cli"], "python": [sys.executable]}
    try:
        return run([*start.get(program, [program]), *words], place).cpu
    except SystemExit as error:
        raise Unavailable(str(error)) from None


def _built(ground: Ground) -> Path:
    """Return a clone in which no command has run, made if it is missing."""
    folder = ground.work / "clones" / str(ground.size)
    clone = folder / "clone"
    if not clone.exists():
        shutil.rmtree(folder, ignore_errors=True)
        project = folder / "project"
        project.mkdir(parents=True)
        sessions = max(1, ground.size // MESSAGES_OF_A_SESSION)
        write_sources(folder / "sources", ground.size, sessions, ground.seed)
        git(project, "init", "-q")
        _run(("trace", "init", "-q"), project)
        _run(("trace", "import", "-q", str(folder / "sources")), project)
        git(project, "add", ".")
        git(project, "commit", "-q", "-m", "with the sessions")
        git(folder, "clone", "-q", "project", "clone")
    return clone


def cloned(name: str, *command: str, before: Sequence[str] = INDEX) -> Contestant:
    """Return a contestant that runs a command after another one."""

    def start(ground: Ground, peer: str) -> Sampler:
        return _Clone(ground, command, before)

    return Contestant(name, command[0], start)


OURS = (
    cloned("Trace status", "trace", "status"),
    cloned("Trace status, which indexes the packs", "trace", "status", before=()),
    cloned("Trace log", "trace", "log", "-n", "20"),
    cloned("Trace sessions", "trace", "sessions", "-n", "20"),
    cloned(
        "Trace sessions, after a commit",
        *("trace", "sessions", "-n", "20"),
        before=("trace", "commit", "-q", "--user", "And then?"),
    ),
    cloned("Trace edit", "trace", "edit", "-q", "HEAD~8.0", "Another wording."),
)

JOBS = (
    Job(
        name="clone",
        title="Processor time of a whole process in a fresh clone of sessions of 100 messages",
        unit="s",
        sizes=(10_000,),
        rounds=3,
        contestants=(
            *OURS,
            cloned(BARE, "python", "-c", "pass", before=()),
            cloned(LOG, "git", "log", "-n", "20", before=()),
        ),
        rows=tuple(
            Row(f"fresh clone: {each.name}", each.name, BARE, 0, at_most=True) for each in OURS
        ),
    ),
)
