"""Everyday commands at any size: `python -m benchmarks.scale --messages 10000 --sessions 100`.

Session files in Claude Code's format are written, imported and committed to git. Then each command is run twice, where
they were imported and in a fresh clone. Each is a process: printed are its CPU time and its wall time in seconds, its
peak memory, and the store's size.

Beside them, in the same run: git with one file a session (its log, status, gc and fsck), `json.loads` over all lines,
and one SQLite table with a row for each message.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

from benchmarks.model import Turn
from benchmarks.session_file import START, write_session

WORDS = (
    *("harbour", "tower", "stage", "wall", "report", "stone", "crane", "quay", "light", "rope"),
    *("never", "decided", "because", "file", "test", "fails", "passes", "use", "instead", "value"),
    *("must", "keep", "path", "module", "reader", "writer", "index", "lock", "branch", "merge"),
)
MIB = 1024 * 1024
TURN = 4
"""Messages of a turn: a question, a call, its result, an answer."""


class Cost(NamedTuple):
    """The cost of one process.

    Attributes:
        cpu: seconds of processor time, of the process and those that it waited for.
        wall: seconds from its start to its exit.
        memory: peak resident size in bytes.
    """

    cpu: float
    wall: float
    memory: int


def turns(count: int, generator: random.Random) -> Iterator[Turn]:
    """Yield a number of messages: questions, calls, results and answers."""
    for number in range(count // TURN):
        call, name = f"call_{number}", f"src/{generator.choice(WORDS)}_{number % 40}.py"
        arguments = json.dumps({"file_path": name})
        yield _turn("user", number, {"type": "text", "text": _text(generator, 2)})
        yield _turn(
            "assistant",
            number,
            {"type": "tool_call", "id": call, "name": "Read", "arguments": arguments},
        )
        yield _turn(
            "user",
            number,
            {"type": "tool_result", "call_id": call, "content": _text(generator, 12)},
        )
        yield _turn("assistant", number, {"type": "text", "text": _text(generator, 4)})


def _turn(role: str, number: int, part: dict[str, str]) -> Turn:
    return {"id": f"msg_{number}", "role": role, "content": [part]}


def _text(generator: random.Random, sentences: int) -> str:
    lengths = (generator.randrange(6, 16) for _ in range(sentences))
    return " ".join(
        " ".join(generator.choices(WORDS, k=length)).capitalize() + "." for length in lengths
    )


def run(command: Sequence[str], folder: Path, expected: Sequence[int] = (0,)) -> Cost:
    """Run a command in a folder and return its cost; any other exit code than those expected ends the measurement."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    began = time.perf_counter()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=environment,
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        wall = time.perf_counter() - began
        if process.returncode not in expected:
            output.seek(0)
            text = output.read().decode(errors="replace")[-600:]
            raise SystemExit(f"{' '.join(command)} ended with {process.returncode}:\n{text}")
    unit = 1 if sys.platform == "darwin" else 1024
    return Cost(used.ru_utime + used.ru_stime, wall, used.ru_maxrss * unit)


def show(name: str, *costs: Cost) -> None:
    """Print a row: CPU and wall seconds of each run, and the highest peak memory in MiB."""
    times = "".join(f" {cost.cpu:9.2f} {cost.wall:8.2f}" for cost in costs)
    print(f"{name:30}{times:38}{max(cost.memory for cost in costs) // MIB:8,} MiB", flush=True)


def size(folder: Path) -> int:
    """Return the bytes of all files below a folder."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())


def write_sources(folder: Path, messages: int, sessions: int, seed: int) -> int:
    """Write the session files; return their bytes."""
    folder.mkdir()
    for number in range(sessions):
        generator = random.Random(f"{seed} {number}")
        path = folder / f"session-{number:05}.jsonl"
        start = START + timedelta(hours=number)  # people work on one after another
        messages_of_it = turns(messages // sessions, generator)
        write_session(path, messages_of_it, seed * 1_000_000 + number, start)
    return size(folder)


def trace(folder: Path, *words: str) -> Cost:
    """Run a command of Trace."""
    return run([sys.executable, "-m", "trace_cli", *words], folder)


def _output(folder: Path, *words: str) -> str:
    command = [sys.executable, "-m", "trace_cli", *words]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=True
    ).stdout.strip()


def git(folder: Path, *words: str) -> Cost:
    """Run a command of git, with an author that depends on no settings."""
    author = ("-c", "user.name=ada", "-c", "user.email=ada@example.com")
    return run(["git", *author, *words], folder)


_DECODE = """
import json, pathlib, sys
for path in pathlib.Path(sys.argv[1]).iterdir():
    for line in path.open("rb"):
        json.loads(line)
"""
READ = (
    ("status",),
    ("log", "-n", "20"),
    ("sessions", "-n", "20"),
    ("search", "harbour", "tower"),
    ("compile", "--json"),
)


def everyday(folder: Path, heading: str) -> None:
    """Print the cost of each reading command, run twice, then of an edit and a merge."""
    print(f"\n{heading:30}{'CPU s':>10} {'wall':>8}{'again':>10} {'wall':>8}{'memory':>11}")
    for words in READ:
        show(f"trace {' '.join(words)}", trace(folder, *words), trace(folder, *words))
    edited = [(f"HEAD~{n}.0", f"another wording {n}") for n in (8, 12)]
    show("trace edit", *(trace(folder, "edit", "-q", *words) for words in edited))
    show("trace commit", *(trace(folder, "commit", "-q", "--user", f"more {n}") for n in (1, 2)))
    show("trace sessions, after it", trace(folder, "sessions", "-n", "20"))
    side = heading.replace(" ", "-")
    trace(folder, "switch", "-q", "-c", side)
    trace(folder, "commit", "-q", "--user", "on the side")
    trace(folder, "switch", "-q", "-")
    trace(folder, "commit", "-q", "--user", "on the line")
    show("trace merge", trace(folder, "merge", side))


def upkeep(folder: Path) -> None:
    """Print the cost of seal, pack, gc and fsck, each run twice."""
    for name in ("seal", "pack", "gc", "fsck"):
        show(f"trace {name}", trace(folder, name), trace(folder, name))
    print(f"{'.trace':30}{size(folder / '.trace') / MIB:10.1f} MiB")


def peers(folder: Path, sources: Path) -> None:
    """Print what git, json.loads and SQLite take for the same files."""
    print(f"\n{'beside it':30}{'CPU s':>10} {'wall':>8}")
    show("json.loads", run([sys.executable, "-c", _DECODE, str(sources)], folder))
    place = folder / "git"
    shutil.copytree(sources, place)
    git(place, "init", "-q")
    show("git add", git(place, "add", "."))
    show("git commit", git(place, "commit", "-q", "-m", "sessions"))
    show("git status", git(place, "status"), git(place, "status"))
    show("git log", git(place, "log", "-n", "20"), git(place, "log", "-n", "20"))
    show("git gc", git(place, "gc", "-q"), git(place, "gc", "-q"))
    show("git fsck", git(place, "fsck"), git(place, "fsck"))
    print(f"{'.git':30}{size(place / '.git') / MIB:10.1f} MiB")
    began, used = time.perf_counter(), _own_cpu()
    with sqlite3.connect(folder / "messages.sqlite3") as base:
        base.execute("CREATE TABLE messages (session TEXT, number INTEGER, record TEXT)")
        for path in sorted(sources.iterdir()):
            with path.open(encoding="utf-8") as lines:
                rows = ((path.stem, number, line) for number, line in enumerate(lines))
                base.executemany("INSERT INTO messages VALUES (?, ?, ?)", rows)
    base.close()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    show("SQLite, one row a message", Cost(_own_cpu() - used, time.perf_counter() - began, memory))
    print(f"{'SQLite':30}{(folder / 'messages.sqlite3').stat().st_size / MIB:10.1f} MiB")


def _own_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--sessions", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--work", type=Path, help="a folder to keep; the default is a temporary one"
    )
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        work = given.work or Path(temporary)
        os.environ.update(HOME=str(work / "home"), TRACE_AUTHOR="ada")
        project, sources = work / "project", work / "sources"
        (work / "home").mkdir(parents=True)
        project.mkdir()
        source_bytes = write_sources(sources, given.messages, given.sessions, given.seed)
        load = os.getloadavg()[0]
        print(f"{given.messages:,} messages, {given.sessions:,} sessions, load {load:.1f}")
        print(f"{'sources':30}{source_bytes / MIB:10.1f} MiB")
        git(project, "init", "-q")
        trace(project, "init", "-q")
        show("trace import", trace(project, "import", "-q", str(sources)))
        print(f"{'.trace':30}{size(project / '.trace') / MIB:10.1f} MiB")
        local = size(project / ".trace" / "local") if (project / ".trace" / "local").exists() else 0
        print(f"{'.trace/local':30}{local / MIB:10.1f} MiB")
        git(project, "add", ".")
        git(project, "commit", "-q", "-m", "with the sessions")
        show("git clone", git(work, "clone", "-q", "project", "clone"))
        everyday(project, "where it was imported")
        upkeep(project)
        worked_on = _output(project, "symbolic-ref", "HEAD").removeprefix("refs/heads/")
        show("trace switch, in a fresh clone", trace(work / "clone", "switch", "-q", worked_on))
        everyday(work / "clone", "in that clone")
        peers(work, sources)


if __name__ == "__main__":
    main()
