"""Copies of stores in which commands run, and which can be restored.

Rule: what a command leaves behind is gone before the next: commits, objects, logs and caches. What putting back wrote
is on the disk by then, so that no flush of the next command waits for it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from benchmarks.installation import Installation
from benchmarks.model import Work
from benchmarks.peers.git import ENVIRONMENT, git
from benchmarks.peers.parted import FOLDER
from benchmarks.peers.trace import BENCHMARK_ENVIRONMENT
from trace_store import Repo

KEPT_BESIDE = ("index", "cache", "local/published*")
"""Caches of Trace, which are rebuilt if missing."""


class Place(Protocol):
    """A copy of a store in which commands are run.

    Attributes:
        folder: where.
        program: what its commands begin with.
        environment: the variables that its processes are given.
    """

    folder: Path
    program: str
    environment: dict[str, str]

    def restore(self) -> None:
        """Undo whatever commands did."""
        ...

    def remove_caches(self) -> None:
        """Remove the caches, which are missing in a fresh clone."""
        ...

    def work(self) -> Work:
        """Tell how many messages HEAD holds, and how many commits lead to it."""
        ...


class TracePlace:
    """A repository of Trace, with HEAD at a branch."""

    def __init__(self, folder: Path, here: Installation, start: str) -> None:
        self.folder = folder
        self.program = here.trace
        self.environment = here.environment
        with Repo.open(folder, create=False, environment=BENCHMARK_ENVIRONMENT) as repo:
            repo.branches.switch(start)
        self._saved = Saved(folder / ".trace", folder.with_name("saved"))

    def restore(self) -> None:
        self._saved.restore()

    def remove_caches(self) -> None:
        for pattern in KEPT_BESIDE:
            for path in (self.folder / ".trace").glob(pattern):
                _remove(path)

    def work(self) -> Work:
        with Repo.open(self.folder, create=False, environment=BENCHMARK_ENVIRONMENT) as repo:
            return Work(len(repo.compile()), sum(1 for _ in repo.log()))


class GitPlace:
    """A repository of git, with a branch checked out: all of its files, or by a sparse checkout none."""

    def __init__(self, folder: Path, start: str, *, sparse: bool) -> None:
        self.folder = folder / FOLDER
        self.program = "git"
        self.environment = {**ENVIRONMENT, "HOME": str(folder)}
        git(self.folder, "config", "core.fsync", "all")
        git(self.folder, "symbolic-ref", "HEAD", f"refs/heads/{start}")
        if sparse:
            git(self.folder, "sparse-checkout", "set", "--cone", "--sparse-index")
        git(self.folder, "reset", "-q", "--hard")
        self._start = start
        self._refs = git(self.folder, "for-each-ref", "--format=%(refname) %(objectname)")
        self._packed = set(self._objects().iterdir())

    def restore(self) -> None:
        git(self.folder, "symbolic-ref", "HEAD", f"refs/heads/{self._start}")
        given = b"".join(b"update %b\n" % line for line in self._refs.splitlines())
        git(self.folder, "update-ref", "--stdin", stdin=given)
        git(self.folder, "reset", "-q", "--hard")
        for path in set(self._objects().iterdir()) - self._packed:
            _remove(path)
        os.sync()

    def remove_caches(self) -> None:
        for path in (self._objects() / "info").glob("commit-graph*"):
            _remove(path)

    def work(self) -> Work:
        files = git(self.folder, "ls-tree", "-r", "--name-only", "HEAD").splitlines()
        return Work(len(files), int(git(self.folder, "rev-list", "--count", "HEAD")))

    def _objects(self) -> Path:
        return self.folder / ".git" / "objects"


class Saved:
    """A snapshot of a folder.

    Files below `objects` never change, so they are linked; the others are copied.
    """

    def __init__(self, folder: Path, saved: Path) -> None:
        self._folder = folder
        self._saved = saved
        for path in _files(folder):
            (saved / path).parent.mkdir(parents=True, exist_ok=True)
            if path.parts[0] == "objects":
                os.link(folder / path, saved / path)
            else:
                shutil.copy2(folder / path, saved / path)

    def restore(self) -> None:
        """Remove the files that came, and write those again that changed or went."""
        wanted = set(_files(self._saved))
        for path in set(_files(self._folder)) - wanted:
            (self._folder / path).unlink()
        for path in wanted:
            here, there = self._folder / path, self._saved / path
            if not here.exists() or _state(here) != _state(there):
                here.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(there, here)
        os.sync()


def _files(folder: Path) -> Iterator[Path]:
    for root, _, names in os.walk(folder):
        for name in names:
            yield Path(root, name).relative_to(folder)


def _state(path: Path) -> tuple[int, int]:
    told = path.stat()
    return told.st_size, told.st_mtime_ns


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
