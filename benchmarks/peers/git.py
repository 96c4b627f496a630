"""git at its leanest for messages: one blob a message, a tree of that blob alone, a commit.

A message is written by five plumbing processes; histories are built by `fast-import`. Reading takes two processes
whatever the length. git checks the hash of a loose object when it is read; of a packed one only the zlib checksum,
and all hashes in `git fsck`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO

from benchmarks.compact import PACKAGE, dumps, loads
from benchmarks.messages import characters
from benchmarks.model import Proof, Turn, Unavailable, Work, write_ids

if shutil.which("git") is None:
    raise ImportError("git is not installed", name="git")

BRANCH = "refs/heads/main"
IDENTITY = "benchmark <benchmark@example.org>"
FIRST_SECOND = 1_700_000_000
REPOSITORY = "repository.git"
AGGRESSIVE_SECONDS = 300.0
ENVIRONMENT = {
    "PATH": os.environ.get("PATH", os.defpath),
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    **{f"GIT_{who}_NAME": "benchmark" for who in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{who}_EMAIL": "benchmark@example.org" for who in ("AUTHOR", "COMMITTER")},
}


def git(
    folder: Path, *arguments: str, given: bytes = b"", limit_seconds: float | None = None
) -> bytes:
    """Run git in a repository and return its output.

    Raises:
        Unavailable: it failed, or took longer than it may.
    """
    try:
        run = subprocess.run(
            ["git", *arguments],
            cwd=folder,
            input=given,
            capture_output=True,
            env=ENVIRONMENT,
            check=False,
            timeout=limit_seconds,
        )
    except subprocess.TimeoutExpired:
        told = f"git {' '.join(arguments)} took more than {limit_seconds:.0f} s"
        raise Unavailable(told) from None
    if run.returncode:
        words = run.stderr.decode(errors="replace").strip().splitlines()
        raise Unavailable(f"git {arguments[0]} failed: {words[-1] if words else 'no word'}")
    return run.stdout


def create(folder: Path) -> None:
    """Make a bare repository without the files of a template, and with no housekeeping of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "--bare", "--template=", "--initial-branch=main", ".")
    for name, value in (("gc.auto", "0"), ("maintenance.auto", "false"), ("core.fsync", "none")):
        git(folder, "config", name, value)


def fast_import(folder: Path, turns: Iterable[Turn]) -> None:
    """Put messages into an empty repository as one pack, and write down the ids of their blobs beside it.

    Raises:
        Unavailable: git failed.
    """
    marks = folder.with_name("marks.txt")
    run = subprocess.Popen(
        ["git", "fast-import", "--quiet", f"--export-marks={marks.absolute()}"],
        cwd=folder,
        env=ENVIRONMENT,
        stdin=subprocess.PIPE,
    )
    assert run.stdin is not None
    with run.stdin as stream:
        for number, turn in enumerate(turns, 1):
            _import(stream, number, turn)
    if run.wait():
        raise Unavailable("git fast-import failed")
    named = (line.split() for line in marks.read_text("ascii").splitlines())
    blobs = [(int(mark[1:]), oid) for mark, oid in named if int(mark[1:]) % 2]
    write_ids(folder.parent, [oid for _, oid in sorted(blobs)])
    marks.unlink()


def _import(stream: IO[bytes], number: int, turn: Turn) -> None:
    """Write one message as fast-import reads it: blobs have odd marks, commits even ones."""
    data = dumps(turn)
    blob, commit = 2 * number - 1, 2 * number
    parent = f"from :{commit - 2}\n" if number > 1 else ""
    stream.write(
        b"blob\nmark :%d\ndata %d\n%b\n" % (blob, len(data), data)
        + (
            f"commit {BRANCH}\nmark :{commit}\ncommitter {IDENTITY} {FIRST_SECOND + number} +0000\n"
            f"data {len(turn['role'])}\n{turn['role']}\n{parent}M 100644 :{blob} m\n\n"
        ).encode()
    )


class Git:
    """A bare repository, imported and then packed by `git gc`."""

    store = "git"
    packages = ("git", PACKAGE)

    def build(self, folder: Path, turns: Iterable[Turn]) -> None:
        """Import all messages and collect garbage, which also writes the commit graph."""
        create(folder / REPOSITORY)
        fast_import(folder / REPOSITORY, turns)
        git(folder / REPOSITORY, "gc", "-q")

    def writer(self, folder: Path, mode: str) -> GitWriter:
        """Open for appending; git syncs "all" or "none", by `mode`."""
        git(folder / REPOSITORY, "config", "core.fsync", mode)
        return GitWriter(folder / REPOSITORY)

    def compile(self, folder: Path) -> Proof:
        """Return all messages as dictionaries."""
        folder = folder / REPOSITORY
        commits = git(folder, "rev-list", "--reverse", "--first-parent", BRANCH).split()
        found = [loads(data) for data in read(folder, [c + b":m" for c in commits])]
        return lambda: Work(len(found), characters(found))

    def log(self, folder: Path, limit: int = 0) -> Proof:
        """Return id, author and time of the newest commits, or of all."""
        chosen = [f"-n{limit}"] if limit else []
        printed = git(folder / REPOSITORY, "log", "--format=%H%x00%an%x00%at", *chosen, BRANCH)
        found = [line.split("\0") for line in printed.decode().splitlines()]
        return lambda: Work(len(found), len(found))

    def verify(self, folder: Path) -> Proof:
        """Check every object and every link."""
        git(folder / REPOSITORY, "fsck", "--full", "--no-dangling")
        return lambda: Work(count(folder / REPOSITORY), 0)

    def read(self, folder: Path, ids: str) -> Proof:
        """Return the messages with the ids in a file, a line each, in one process."""
        wanted = Path(ids).read_bytes().split()
        found = list(read(folder / REPOSITORY, wanted))
        return lambda: Work(len(found), characters(map(loads, found)))

    def repack(self, folder: Path) -> None:
        """Repack everything, and recompute deltas."""
        git(folder / REPOSITORY, "repack", "-adfq")


class Aggressive(Git):
    """A bare repository, imported and packed as small as git can."""

    store = "git-aggressive"

    def build(self, folder: Path, turns: Iterable[Turn]) -> None:
        """Import all messages and collect garbage, within a limit of time.

        Raises:
            Unavailable: it takes too long.
        """
        create(folder / REPOSITORY)
        fast_import(folder / REPOSITORY, turns)
        git(folder / REPOSITORY, "gc", "-q", "--aggressive", limit_seconds=AGGRESSIVE_SECONDS)


class Loose(Git):
    """A bare repository as single commits leave it: a file for each object."""

    store = "git-loose"

    def build(self, folder: Path, turns: Iterable[Turn]) -> None:
        """Import all messages as loose objects."""
        create(folder / REPOSITORY)
        git(folder / REPOSITORY, "config", "fastimport.unpackLimit", str(2**31 - 1))
        fast_import(folder / REPOSITORY, turns)

    def collect(self, folder: Path) -> None:
        """Collect garbage, as git does by itself from time to time."""
        git(folder / REPOSITORY, "gc", "-q")


class GitWriter:
    """Appends with plumbing, five processes a message."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def prepare(self, turn: Turn) -> Turn:
        return turn

    def append(self, messages: list[Turn]) -> None:
        for each in messages:
            parent = git(self._folder, "rev-parse", BRANCH).strip().decode()
            blob = git(self._folder, "hash-object", "-w", "--stdin", given=dumps(each)).strip()
            tree = git(self._folder, "mktree", given=b"100644 blob %b\tm\n" % blob).strip()
            made = ("commit-tree", tree.decode(), "-p", parent, "-m", each["role"])
            commit = git(self._folder, *made).strip().decode()
            git(self._folder, "update-ref", BRANCH, commit, parent)

    def count(self) -> int:
        return count(self._folder)

    def close(self) -> None:
        pass


def count(folder: Path) -> int:
    """Return how many messages the branch holds."""
    return int(git(folder, "rev-list", "--count", BRANCH))


def read(folder: Path, names: Sequence[bytes]) -> Iterator[bytes]:
    """Yield the content of objects, by one process that is asked for all at once."""
    with tempfile.TemporaryFile() as asked:
        asked.write(b"\n".join(names) + b"\n")
        asked.seek(0)
        run = subprocess.Popen(
            ["git", "cat-file", "--batch", "--buffer"],
            cwd=folder,
            env=ENVIRONMENT,
            stdin=asked,
            stdout=subprocess.PIPE,
        )
        assert run.stdout is not None
        with run.stdout as printed:
            for _ in names:
                size = int(printed.readline().split()[-1])
                yield printed.read(size)
                printed.read(1)
        run.wait()
