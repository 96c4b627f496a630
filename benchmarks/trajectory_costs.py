"""Costs of commands in a project of many trajectories: `python -m benchmarks.trajectory_costs`, on Linux with strace.

Each trajectory has one decision, one commit of the code that it links, and is completed; the last one is active. The
commands run as whole processes of an installed Trace, and of the program trail with as many trajectories. Counted are
the calls that read and write files below the project's folder, those of git included; mapped files are not counted.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.jobs.decisions import TRACE, TRAIL, Program, trace_program, trail_program
from benchmarks.peers.decisions import REASON, STARTED, TRAIL_FOLDER, write_document
from benchmarks.peers.trace import BENCHMARK_ENVIRONMENT
from trace_store import Repo
from trace_store.base.ident import Clock

SIZES = (10, 1_000, 10_000)
COMMITS_OF_A_FILE = 10
"""Each commit adds a line to a file, and so many commits change the same one."""
ROUNDS = 7
LISTED = "20"
FIRST_SECOND = 1_700_000_000
HOUR = 3_600
"""Each trajectory starts an hour after the one before, and its commit is made half an hour later."""
_CALLS = "trace=read,pread64,readv,preadv,write,pwrite64,writev,pwritev"
_CALL = re.compile(r"\b(p?read|p?write)(?:64|v)?\(\d+<([^>]*)>.* = (\d+)")


class Cost(NamedTuple):
    """What one run of a command costs.

    Attributes:
        reads, read_bytes, writes, written_bytes: calls on files of the project, and their bytes.
        seconds: the least processor time of several runs, with that of child processes.
    """

    reads: int
    read_bytes: int
    writes: int
    written_bytes: int
    seconds: float


class Hours(Clock):
    """A clock that stands still until the next hour is set."""

    def __init__(self) -> None:
        self.hour = 0

    def now(self) -> int:
        """Return the time in milliseconds since the epoch."""
        return (FIRST_SECOND + HOUR * self.hour) * 1000


def code(folder: Path, count: int) -> list[str]:
    """Create a git repository with a number of commits and return their ids, oldest first."""
    git = ("git", "-C", str(folder))
    folder.mkdir(parents=True)
    subprocess.run([*git, "init", "-q", "-b", "main"], check=True)
    subprocess.run([*git, "fast-import", "--quiet"], input=b"".join(_stream(count)), check=True)
    subprocess.run([*git, "reset", "-q", "--hard", "main"], check=True)
    told = subprocess.run(
        [*git, "rev-list", "--reverse", "main"], stdout=subprocess.PIPE, text=True, check=True
    )
    return told.stdout.split()


def _stream(count: int) -> Iterator[bytes]:
    lines: dict[int, str] = {}
    half = HOUR // 2
    for number in range(count):
        file = number // COMMITS_OF_A_FILE
        lines[file] = lines.get(file, "") + f"value_{number} = {number}\n"
        text, second = lines[file].encode(), FIRST_SECOND + half + HOUR * number
        yield (
            f"commit refs/heads/main\ncommitter b <b@example.com> {second} +0000\n"
            f"data 4\nstep\nM 644 inline module_{file}.py\ndata {len(text)}\n"
        ).encode() + text


def build_trace(folder: Path, count: int) -> None:
    """Record a number of trajectories, seal and pack them."""
    commits, clock = code(folder, count), Hours()
    with Repo.init(
        folder, durability="fast", environment=BENCHMARK_ENVIRONMENT, clock=clock
    ) as repo:
        for number, commit in enumerate(commits):
            clock.hour = number
            id_ = repo.trajectories.start(f"Task {number}").id
            repo.trajectories.decide(
                f"Question {number}?", "this one", reasoning=REASON, trajectory=id_
            )
            repo.trajectories.code.link(commit, folder=str(folder), trajectory=id_)
            if number < count - 1:
                repo.trajectories.complete({"summary": "Done."}, trajectory=id_)
        repo.seal()
        repo.maintenance.pack()


def build_trail(folder: Path, count: int) -> None:
    """Write a number of trajectories of trail."""
    code(folder, count)
    done = {"status": "completed", "completedAt": STARTED, "retrospective": {"summary": "Done."}}
    for number in range(count):
        is_last = number == count - 1
        id_ = f"traj_{number:012}"
        place = TRAIL_FOLDER / ("active" if is_last else "completed/2023-11") / id_
        write_document(
            folder / place / "trajectory.json", id_, [number], **({} if is_last else done)
        )


def cost_of(program: Program, words: Sequence[str], folder: Path) -> Cost:
    """Run a command several times for its processor time, and once more to count its calls."""
    command, environment = program

    def run(*before: str) -> float:
        process = subprocess.Popen(
            [*before, *command, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd=folder,
            env=environment,
        )
        _, status, used = os.wait4(process.pid, 0)
        if status:
            assert process.stderr is not None
            raise SystemExit(f"{' '.join(words)}: {process.stderr.read().decode()[:500]}")
        return used.ru_utime + used.ru_stime

    run()  # brings the program, and the project, into memory
    seconds = min(run() for _ in range(ROUNDS))
    report = folder.with_suffix(".calls")
    run("strace", "-f", "-qq", "-y", "-s", "0", "-e", _CALLS, "-o", str(report))
    counts = {"read": [0, 0], "write": [0, 0]}
    for what, path, size in _CALL.findall(report.read_text("utf-8", "replace")):
        if path.startswith(f"{folder}{os.sep}"):
            count = counts[what.removeprefix("p")]
            count[0] += 1
            count[1] += int(size)
    report.unlink()
    (reads, read), (writes, written) = counts["read"], counts["write"]
    return Cost(reads, read, writes, written, seconds)


def room_of(folder: Path) -> tuple[int, int]:
    """Return the bytes of a folder's files, and the bytes that they take on the disk."""
    stats = [each.lstat() for each in folder.rglob("*") if each.is_file()]
    return sum(each.st_size for each in stats), sum(each.st_blocks * 512 for each in stats)


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", type=Path, default=Path(".benchmarks"))
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    options = parser.parse_args()
    work = options.work.absolute()
    decision = ("decision", "Which?|this one", "--reasoning", REASON)
    print(
        "| command | program | trajectories | reads | bytes read | writes | bytes written | CPU ms |"
    )
    print("|---|---|---|---|---|---|---|---|")
    room: list[str] = []
    for count in options.sizes:
        for name, program, build, store in (
            (TRACE, trace_program(work), build_trace, Path(".trace")),
            (TRAIL, trail_program(work), build_trail, TRAIL_FOLDER),
        ):
            folder = work / f"trajectories-{count}-{name.split()[0].lower()}"
            if not folder.exists():
                part = folder.with_name(f"{folder.name}.part")
                build(part, count)
                part.rename(folder)
            room.append(f"{name}, {count:,}: {room_of(folder / store)}")
            plain = program[0][:1], program[1]
            limit = "-n" if name == TRACE else "--limit"
            commands = [
                ("decision", program, decision),
                ("list", program, ("list",)),
                (f"list, the newest {LISTED}", program, ("list", limit, LISTED)),
            ]
            if name == TRACE:
                commands.append(
                    (
                        "why FILE:LINE",
                        plain,
                        ("why", f"module_{(count - 1) // COMMITS_OF_A_FILE}.py:5"),
                    )
                )
            for title, how, words in commands:
                cost = cost_of(how, words, folder)
                figures = f"{cost.reads:,} | {cost.read_bytes:,} | {cost.writes:,} | {cost.written_bytes:,}"
                print(
                    f"| {title} | {name} | {count:,} | {figures} | {cost.seconds * 1000:.0f} |",
                    flush=True,
                )
    print("\nBytes of the files, and on the disk:\n")
    print("\n".join(f"- {line}" for line in room))


if __name__ == "__main__":
    main()
