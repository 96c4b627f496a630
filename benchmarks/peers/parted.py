"""Histories that parted: branches that leave one point, in Trace and in git.

    main    all messages, one a commit
    side    parts FEW commits before the end of main and goes on with as many messages of its own
    long    the same with MANY
    edited  main, and a new wording of the last message that main and side share: what the last one of main says
    other   side, and another wording of that message: what the one before says

The last MANY messages of main, and those of the branches, are notes by a user: two answers to one question, or a call
that waits for its result, would be conflicts to Trace.

In git a message is a file of its own, in folders of a hundred, as a program would lay them out that wants its branches
to merge: with all of them in one file git stops at every merge, since both sides wrote at its end. A commit then writes
one blob and three small trees.
"""

from __future__ import annotations

import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, NamedTuple

from benchmarks.compact import PACKAGE, dumps
from benchmarks.messages import marked
from benchmarks.model import Turn, Unavailable
from benchmarks.peers.git import ENVIRONMENT, FIRST_SECOND, IDENTITY, git
from benchmarks.peers.trace import BENCHMARK_ENVIRONMENT, Trace, as_message
from trace_store import Repo
from trace_store.maintenance.repack import pack

FEW, MANY = 10, 100
FOLDER = "user"
REWORDED = (("edited", "main"), ("other", "side"))
LOOKS = (
    *(("compile", "--table", name) for name in ("main", "side", "long")),
    ("log",),
    ("status",),
)
"""What was looked at in Trace before anything is measured, so that all that it keeps beside the history is there."""


def parted(size: int, wanted: int) -> int:
    """Return how many commits before the end of `size` a branch leaves that is to leave `wanted` before it."""
    return min(wanted, size // 2)


def _with_notes(turns: Iterable[Turn]) -> Iterator[Turn]:
    """Yield messages; the last ones become notes."""
    held: deque[Turn] = deque()
    for turn in turns:
        held.append(turn)
        if len(held) > MANY:
            yield held.popleft()
    yield from map(_note, held)


def _note(turn: Turn) -> Turn:
    first = turn["content"][0]
    told = first[
        {"text": "text", "tool_call": "arguments", "tool_result": "content"}[first["type"]]
    ]
    return {"id": turn["id"], "role": "user", "content": [{"type": "text", "text": told}]}


class PartedTrace:
    """A sealed and packed repository with branches, and with filled caches."""

    packages: tuple[str, ...] = ()

    @property
    def store(self) -> str:
        """The store's folder names the source that wrote it."""
        return f"parted-{Trace().store}"

    def build(self, folder: Path, turns: Iterable[Turn]) -> None:
        """Append without syncs, make the branches, then seal and pack."""
        last: deque[tuple[bytes, Turn]] = deque(maxlen=MANY + 1)
        size = 0
        with Repo.init(folder, durability="fast", environment=BENCHMARK_ENVIRONMENT) as repo:
            for turn in _with_notes(turns):
                size += 1
                last.append((repo.commit([as_message(turn)]).oid, turn))
            shared = last[-parted(size, FEW) - 1][0]
            for name, wanted in (("long", MANY), ("side", FEW)):
                count = parted(size, wanted)
                self._begin(repo, name, last[-count - 1][0])
                for _, turn in list(last)[-count:]:
                    repo.commit([as_message(marked(turn, name))])
            for (name, start), (_, turn) in zip(REWORDED, reversed(last), strict=False):
                self._begin(repo, name, start)
                repo.edit((shared, 0), as_message(turn).parts)
            repo.branches.switch("main")
            pack(repo.store)
        for words in LOOKS:
            _look(folder, words)

    def _begin(self, repo: Repo, name: str, start: str | bytes) -> None:
        start = start if isinstance(start, str) else start.hex()
        repo.branches.switch(name, create=True, start=start)


def _look(folder: Path, words: tuple[str, ...]) -> None:
    """Run a command of Trace as this process finds it."""
    run = subprocess.run(
        [sys.executable, "-m", "trace_cli", *words],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        check=False,
    )
    if run.returncode:
        raise Unavailable(f"trace {words[0]} failed: {run.stderr.decode()[-200:]}")


class PartedGit:
    """A repository of one message a commit and a file, with branches, packed by `git gc`; nothing is checked out."""

    packages: tuple[str, ...] = ("git", PACKAGE)
    store = "parted-git"

    def build(self, folder: Path, turns: Iterable[Turn]) -> None:
        """Import all messages and the branches, and collect garbage, which also writes the commit graph.

        Raises:
            Unavailable: git failed.
        """
        user = folder / FOLDER
        user.mkdir()
        git(user, "init", "-q", "--template=", "--initial-branch=main", ".")
        for name in ("gc.auto", "maintenance.auto"):
            git(user, "config", name, "0")
        run = subprocess.Popen(
            ["git", "fast-import", "--quiet"], cwd=user, env=ENVIRONMENT, stdin=subprocess.PIPE
        )
        assert run.stdin is not None
        with run.stdin as stream:
            _import(_Stream(stream), turns)
        if run.wait():
            raise Unavailable("git fast-import failed")
        git(user, "gc", "-q")


class _Kept(NamedTuple):
    """A message of main: its commit's mark, its number and its text."""

    mark: int
    number: int
    turn: Turn


class _Stream:
    """What `git fast-import` reads."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._mark = 0

    def commit(self, branch: str, parent: int, path: str, turn: Turn) -> int:
        """Write a commit of one file and return its mark."""
        self._mark += 1
        data = dumps(turn)
        before = f"from :{parent}\n" if parent else ""
        head = (
            f"commit refs/heads/{branch}\nmark :{self._mark}\n"
            f"committer {IDENTITY} {FIRST_SECOND + self._mark} +0000\n"
            f"data {len(turn['role'])}\n{turn['role']}\n{before}M 100644 inline {path}\n"
        )
        self._stream.write(head.encode() + b"data %d\n%b\n" % (len(data), data))
        return self._mark


def _import(stream: _Stream, turns: Iterable[Turn]) -> None:
    last: deque[_Kept] = deque(maxlen=MANY + 1)
    size = mark = 0
    for size, turn in enumerate(_with_notes(turns), 1):
        mark = stream.commit("main", mark, _path(size), turn)
        last.append(_Kept(mark, size, turn))
    shared = last[-parted(size, FEW) - 1]
    tips = {"main": mark}
    for name, wanted in (("long", MANY), ("side", FEW)):
        count = parted(size, wanted)
        mark = last[-count - 1].mark
        for each in list(last)[-count:]:
            mark = stream.commit(name, mark, _path(each.number, name), marked(each.turn, name))
        tips[name] = mark
    for (name, start), each in zip(REWORDED, reversed(last), strict=False):
        stream.commit(name, tips[start], _path(shared.number), each.turn)


def _path(number: int, mark: str = "") -> str:
    return f"{number // 10_000:02}/{number // 100 % 100:02}/{number % 100:02}{mark}.json"
