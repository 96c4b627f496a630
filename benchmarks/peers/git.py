"""git with the least data per message: a blob, a tree with only that blob, and a commit.

A message is written by five plumbing processes; histories are built by `fast-import`. Reading takes two processes,
whatever the length. `git cat-file` checks the zlib checksum of an object, but not its hash; `git fsck` checks all
hashes.
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
    folder: Path, *arguments: str, stdin: bytes = b"", limit_seconds: float | None = None
) -> bytes:
    """Run git in a repository and return its output.

    Raises:
        Unavailable: git failed or exceeded the time limit.
    """
    try:
        run = subprocess.run(
            ["git", *arguments],
            cwd=folder,
            input=stdin,
            capture_output=True,
            env=ENVIRONMENT,
            check=False,
            timeout=limit_seconds,
        )
    except subprocess.TimeoutExpired:
        message = f"git {' '.join(arguments)} took more than {limit_seconds:.0f} s"
        raise Unavailable(message) from None
    if run.returncode:
        lines = run.stderr.decode(errors="replace").strip().splitlines()
        raise Unavailable(
            f"git {arguments[0]} failed: {lines[-1] if lines else 'no error message'}"
        )
    return run.stdout


def create(folder: Path) -> None:
    """Create a bare repository without template files, automatic gc or fsync."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "--bare", "--template=", "--initial-branch=main", ".")
    for name, value in (("gc.auto", "0"), ("maintenance.auto", "false"), ("core.fsync", "none")):
        git(folder, "config", name, value)


def fast_import(folder: Path, turns: Iterable[Turn]) -> None:
    """Import messages into an empty repository and list their blob ids in a file.

    git writes one pack, or loose objects if there are fewer than `fastimport.unpackLimit`.

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
    exported = (line.split() for line in marks.read_text("ascii").splitlines())
    blobs = [(int(mark[1:]), oid) for mark, oid in exported if int(mark[1:]) % 2]
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
        """Open for appending; `mode` is git's `core.fsync`: "all" or "none"."""
        git(folder / REPOSITORY, "config", "core.fsync", mode)
        return GitWriter(folder / REPOSITORY)

    def compile(self, folder: Path) -> Proof:
        """Read all messages as dictionaries."""
        folder = folder / REPOSITORY
        commits = git(folder, "rev-list", "--reverse", "--first-parent", BRANCH).split()
        found = [loads(data) for data in read(folder, [c + b":m" for c in commits])]
        return lambda: Work(len(found), characters(found))

    def log(self, folder: Path, limit: int = 0) -> Proof:
        """Read id, author and time of the newest `limit` commits; 0 reads all."""
        chosen = [f"-n{limit}"] if limit else []
        printed = git(folder / REPOSITORY, "log", "--format=%H%x00%an%x00%at", *chosen, BRANCH)
        found = [line.split("\0") for line in printed.decode().splitlines()]
        return lambda: Work(len(found), len(found))

    def verify(self, folder: Path) -> Proof:
        """Check every object and every link."""
        git(folder / REPOSITORY, "fsck", "--full", "--no-dangling")
        return lambda: Work(count(folder / REPOSITORY), 0)

    def read(self, folder: Path, ids: str) -> Proof:
        """Read the messages whose ids are listed in a file, in one process."""
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
        """Import all messages and collect garbage, within a time limit.

        Raises:
            Unavailable: it takes too long.
        """
        create(folder / REPOSITORY)
        fast_import(folder / REPOSITORY, turns)
        git(folder / REPOSITORY, "gc", "-q", "--aggressive", limit_seconds=AGGRESSIVE_SECONDS)


class Loose(Git):
    """A bare repository with loose objects only, as after individual commits."""

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
            blob = git(self._folder, "hash-object", "-w", "--stdin", stdin=dumps(each)).strip()
            tree = git(self._folder, "mktree", stdin=b"100644 blob %b\tm\n" % blob).strip()
            arguments = ("commit-tree", tree.decode(), "-p", parent, "-m", each["role"])
            commit = git(self._folder, *arguments).strip().decode()
            git(self._folder, "update-ref", BRANCH, commit, parent)

    def count(self) -> int:
        return count(self._folder)

    def close(self) -> None:
        pass


def count(folder: Path) -> int:
    """Return how many messages the branch holds."""
    return int(git(folder, "rev-list", "--count", BRANCH))


def read(folder: Path, names: Sequence[bytes]) -> Iterator[bytes]:
    """Yield the content of objects, all read by one `git cat-file` process."""
    with tempfile.TemporaryFile() as requests:
        requests.write(b"\n".join(names) + b"\n")
        requests.seek(0)
        run = subprocess.Popen(
            ["git", "cat-file", "--batch", "--buffer"],
            cwd=folder,
            env=ENVIRONMENT,
            stdin=requests,
            stdout=subprocess.PIPE,
        )
        assert run.stdout is not None
        with run.stdout as output:
            for _ in names:
                size = int(output.readline().split()[-1])
                yield output.read(size)
                output.read(1)
        run.wait()
