"""A user's git repository into which messages go with every commit, as Trace keeps them or as a file that grows.

The folder `before` is the repository after the last commit, `after` a copy in which git has collected garbage.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from benchmarks.compact import PACKAGE, dumps
from benchmarks.model import Turn
from benchmarks.peers.git import git
from benchmarks.peers.trace import BENCHMARK_ENVIRONMENT, Trace, as_message
from trace_store import Repo

MESSAGES_A_COMMIT = 40
BEFORE, AFTER = "before", "after"


class TrackedLines:
    """A file of JSON lines that every commit finds longer."""

    packages: tuple[str, ...] = ("git", PACKAGE)

    @property
    def store(self) -> str:
        """The store's folder."""
        return "tracked-lines"

    def build(self, folder: Path, turns: Iterable[Turn]) -> None:
        """Commit 40 messages at a time."""
        user = folder / BEFORE
        user.mkdir()
        git(user, "init", "-q", "--template=", "--initial-branch=main", ".")
        git(user, "config", "gc.auto", "0")
        for number, _ in enumerate(self.steps(user, turns), 1):
            git(user, "add", "--all")
            git(user, "commit", "-q", "-m", f"work {number}")
        shutil.copytree(user / ".git", folder / AFTER / ".git")
        git(folder / AFTER, "gc", "-q")

    def steps(self, user: Path, turns: Iterable[Turn]) -> Iterator[None]:
        """Write messages; each time this yields, the files are ready to be committed."""
        with (user / "messages.jsonl").open("ab") as file:
            for some in _parts(turns):
                file.writelines(dumps(turn) + b"\n" for turn in some)
                file.flush()
                yield


class TrackedTrace(TrackedLines):
    """A `.trace` folder, sealed before every commit."""

    packages = ("git",)

    @property
    def store(self) -> str:
        """The store's folder names the source that wrote it."""
        return f"tracked-{Trace().store}"

    def steps(self, user: Path, turns: Iterable[Turn]) -> Iterator[None]:
        """Append messages, one a commit of Trace, and seal."""
        with Repo.init(user, durability="fast", environment=BENCHMARK_ENVIRONMENT) as repo:
            for some in _parts(turns):
                for turn in some:
                    repo.commit([as_message(turn)])
                repo.seal()
                yield


def _parts(turns: Iterable[Turn]) -> Iterator[list[Turn]]:
    left = iter(turns)
    while some := list(islice(left, MESSAGES_A_COMMIT)):
        yield some
