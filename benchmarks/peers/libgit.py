"""pygit2, which is libgit2: the same repository as git's, in one process."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from pathlib import Path

import pygit2
from pygit2.enums import FileMode, Option, SortMode

from benchmarks.compact import PACKAGE, dumps, loads
from benchmarks.messages import characters
from benchmarks.model import Proof, Turn, Work
from benchmarks.peers.git import BRANCH, REPOSITORY, Git

SIGNATURE = ("benchmark", "benchmark@example.org")


class Pygit2:
    """The repository that git built."""

    store = Git.store
    packages = ("pygit2", PACKAGE)

    def build(self, folder: Path, turns: Iterable[Turn]) -> None:
        """Let git build it."""
        Git().build(folder, turns)

    def writer(self, folder: Path, mode: str) -> Pygit2Writer:
        """Open for appending; `mode` is "fsync" or "none"."""
        pygit2.option(Option.ENABLE_FSYNC_GITDIR, mode == "fsync")
        return Pygit2Writer(_open(folder))

    def compile(self, folder: Path) -> Proof:
        """Return all messages as dictionaries."""
        repository = _open(folder)
        order = SortMode.TOPOLOGICAL | SortMode.REVERSE
        found = [
            loads(_blob(repository, commit.tree["m"].id))
            for commit in repository.walk(repository.references[BRANCH].target, order)
        ]
        return lambda: Work(len(found), characters(found))

    def log(self, folder: Path, limit: int = 0) -> Proof:
        """Return id, author and time of the newest commits, or of all."""
        repository = _open(folder)
        history = repository.walk(repository.references[BRANCH].target, SortMode.NONE)
        found = [
            (str(commit.id), commit.author.name, commit.commit_time)
            for commit in islice(history, limit or None)
        ]
        return lambda: Work(len(found), len(found))

    def read(self, folder: Path, ids: str) -> Proof:
        """Return the messages with the ids in a file, a line each."""
        repository = _open(folder)
        found = [_blob(repository, pygit2.Oid(hex=oid)) for oid in Path(ids).read_text().split()]
        return lambda: Work(len(found), characters(map(loads, found)))


class Pygit2Writer:
    """Appends a blob, a tree and a commit, and moves the branch."""

    def __init__(self, repository: pygit2.Repository) -> None:
        self._repository = repository

    def prepare(self, turn: Turn) -> Turn:
        return turn

    def append(self, messages: list[Turn]) -> None:
        repository = self._repository
        who = pygit2.Signature(*SIGNATURE)
        for each in messages:
            tree = repository.TreeBuilder()
            tree.insert("m", repository.create_blob(dumps(each)), FileMode.BLOB)
            parent = repository.references[BRANCH].target
            repository.create_commit(BRANCH, who, who, each["role"], tree.write(), [parent])

    def count(self) -> int:
        tip = self._repository.references[BRANCH].target
        return sum(1 for _ in self._repository.walk(tip, SortMode.NONE))

    def close(self) -> None:
        self._repository.free()


def _open(folder: Path) -> pygit2.Repository:
    return pygit2.Repository(str(folder / REPOSITORY))


def _blob(repository: pygit2.Repository, oid: pygit2.Oid) -> bytes:
    data: bytes = repository[oid].data
    return data
