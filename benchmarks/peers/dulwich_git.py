"""dulwich, git in Python: the same repository as git's. It has no option to sync what it writes."""

from __future__ import annotations

import time
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

from dulwich.objects import Blob, Commit, ObjectID, Tree
from dulwich.refs import Ref
from dulwich.repo import Repo

from benchmarks.compact import PACKAGE, dumps, loads
from benchmarks.messages import characters
from benchmarks.model import Proof, Turn, Work
from benchmarks.peers.git import BRANCH, IDENTITY, REPOSITORY, Git

_BRANCH = Ref(BRANCH.encode())


class Dulwich:
    """The repository that git built."""

    store = Git.store
    packages = ("dulwich", PACKAGE)

    def build(self, folder: Path, turns: Iterable[Turn]) -> None:
        """Let git build it."""
        Git().build(folder, turns)

    def writer(self, folder: Path, mode: str) -> DulwichWriter:
        """Open for appending; `mode` is "none"."""
        return DulwichWriter(_open(folder))

    def compile(self, folder: Path) -> Proof:
        """Return all messages as dictionaries."""
        found = []
        with _open(folder) as repository:
            for commit in _history(repository):
                _, oid = repository[commit.tree][b"m"]
                found.append(loads(repository[oid].data))
        found.reverse()
        return lambda: Work(len(found), characters(found))

    def log(self, folder: Path, limit: int = 0) -> Proof:
        """Return id, author and time of the newest commits, or of all."""
        found = []
        with _open(folder) as repository:
            for commit in islice(_history(repository), limit or None):
                found.append((commit.id, commit.author, commit.commit_time))
        return lambda: Work(len(found), len(found))

    def read(self, folder: Path, ids: str) -> Proof:
        """Return the messages with the ids in a file, a line each."""
        wanted = Path(ids).read_bytes().split()
        with _open(folder) as repository:
            found = [repository[ObjectID(oid)].as_raw_string() for oid in wanted]
        return lambda: Work(len(found), characters(map(loads, found)))


class DulwichWriter:
    """Appends a blob, a tree and a commit, and moves the branch."""

    def __init__(self, repository: Repo) -> None:
        self._repository = repository

    def prepare(self, turn: Turn) -> Turn:
        return turn

    def append(self, messages: list[Turn]) -> None:
        objects, refs = self._repository.object_store, self._repository.refs
        for each in messages:
            parent = refs[_BRANCH]
            blob = Blob.from_string(dumps(each))
            tree = Tree()
            tree.add(b"m", 0o100644, blob.id)
            commit = Commit()
            commit.tree, commit.parents = tree.id, [parent]
            commit.author = commit.committer = IDENTITY.encode()
            commit.author_time = commit.commit_time = int(time.time())
            commit.author_timezone = commit.commit_timezone = 0
            commit.message = each["role"].encode()
            for made in (blob, tree, commit):
                objects.add_object(made)
            refs.set_if_equals(_BRANCH, parent, commit.id)

    def count(self) -> int:
        return sum(1 for _ in _history(self._repository))

    def close(self) -> None:
        self._repository.close()


def _open(folder: Path) -> Repo:
    return Repo(str(folder / REPOSITORY))


def _history(repository: Repo) -> Iterable[Commit]:
    """Yield commits, newest first, along first parents."""
    oid = repository.refs[_BRANCH]
    while True:
        commit = repository[oid]
        assert isinstance(commit, Commit)
        yield commit
        if not commit.parents:
            return
        oid = commit.parents[0]
