"""Trace's checkpoint saver for LangGraph beside LangGraph's own for SQLite: `python -m benchmarks.checkpoints`.

    python -m benchmarks.checkpoints --turns 1000
    python -m benchmarks.checkpoints --turns 100 --begin 9900

A thread gets a checkpoint for each turn of two messages, and the write of one task after it. The list of messages
grows, and SQLite stores it whole each time, so a long thread begins with one checkpoint of `--begin` turns. Both sync
as they do by default. Each is measured in a process of its own, the two by turns; the new process opens the store and
gets the latest checkpoint, its packages being imported already. Times are medians; the first put of a process also
loads what checks for secrets, so the first put of other threads is measured, too.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.sqlite import SqliteSaver

from trace_store import Repo
from trace_store.integrations.langgraph import TraceSaver

THREAD = {"configurable": {"thread_id": "thread-1", "checkpoint_ns": ""}}
LAST = 100
"""How many of the last writes count."""
READS = 10
SAVERS = ("sqlite", "trace")
ROWS = (
    *("first put", "put", "put_writes", "put of a new thread", "get", "get of the first"),
    *("list of 10", "new process"),
    *("MB", "MB after close"),
)


def opened(name: str, folder: Path) -> tuple[Any, Callable[[], None]]:
    """Open a saver; return it and a function that closes it."""
    if name == "sqlite":
        context = SqliteSaver.from_conn_string(str(folder / "checkpoints.db"))
        return context.__enter__(), lambda: context.__exit__(None, None, None)
    repo = Repo.open(folder, create=True, directory=None)
    return TraceSaver(repo), repo.close


def turn(number: int) -> list[Any]:
    """Return the two messages of a turn."""
    return [
        HumanMessage(f"question {number} " + f"{number * 7919} ".ljust(200, "q"), id=f"q{number}"),
        AIMessage(f"answer {number} " + f"{number * 104729} ".ljust(600, "a"), id=f"a{number}"),
    ]


def measure(name: str, folder: Path, turns: int, begin: int) -> dict[str, float]:
    """Store a thread, read it, and return the times in milliseconds and the sizes in megabytes."""
    saver, close = opened(name, folder)
    times: dict[str, list[float]] = {row: [] for row in ROWS}
    config: Any = THREAD
    first: Any = None
    found: Any = None
    step = 0
    last: Any = {}, {}, {}
    messages = [each for number in range(begin) for each in turn(number)]
    for step in range(turns + (1 if begin else 0)):
        if not begin or step:
            messages = messages + turn(begin + step)
        version = f"{step + 1:032}.0"
        values = {"messages": messages, "plan": {"step": 1}}
        versions = {"messages": version, "plan": f"{1:032}.0"}
        checkpoint = {
            "v": 4,
            "id": f"{step:032}",
            "ts": "2026-11-28T00:00:00+00:00",
            "versions_seen": {},
            "channel_values": values,
            "channel_versions": versions,
            "updated_channels": None,
        }
        new = versions if not step else {"messages": version}
        metadata = {"source": "loop", "step": step, "parents": {}}
        with timed(times["put" if step else "first put"]):
            config = saver.put(config, checkpoint, metadata, new)
        with timed(times["put_writes"]):
            saver.put_writes(config, [("messages", messages[-1:])], f"task-{step}")
        first = first or config
        last = checkpoint, metadata, versions
    for _ in range(READS):
        with timed(times["get"]):
            found = saver.get_tuple(THREAD)
    assert found.checkpoint["channel_values"]["messages"] == messages
    assert found.pending_writes == [(f"task-{step}", "messages", messages[-1:])]
    with timed(times["get of the first"]):
        saver.get_tuple(first)
    with timed(times["list of 10"]):
        assert len(list(saver.list(THREAD, limit=10))) == min(10, step + 1)
    sizes = {"MB": size_of(folder)}
    for number in range(READS):
        other: Any = {"configurable": {"thread_id": f"other-{number}", "checkpoint_ns": ""}}
        channels = {"messages": turn(number), "plan": {"step": 1}}
        with timed(times["put of a new thread"]):
            saver.put(other, {**last[0], "channel_values": channels}, *last[1:])
    close()
    sizes["MB after close"] = size_of(folder)
    return {row: statistics.median(each[-LAST:]) for row, each in times.items() if each} | sizes


def reopen(name: str, folder: Path) -> float:
    """Return how many milliseconds a new process needs to open a store and get the latest checkpoint."""
    times: list[float] = []
    with timed(times):
        saver, close = opened(name, folder)
        found = saver.get_tuple(THREAD)
    assert found is not None
    close()
    return times[0]


class timed:  # noqa: N801 - it is called like a function
    """Add the time of a block, in milliseconds, to a list."""

    def __init__(self, times: list[float]) -> None:
        self._times = times

    def __enter__(self) -> None:
        self._start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self._times.append((time.perf_counter() - self._start) * 1000)


def size_of(folder: Path) -> float:
    """Return the size of a folder in megabytes."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def processes(arguments: argparse.Namespace, work: Path) -> Iterator[tuple[str, dict[str, float]]]:
    """Measure each saver in processes of its own."""
    for name in SAVERS:
        folder = work / name
        folder.mkdir()
        options = [name, str(folder), str(arguments.turns), str(arguments.begin)]
        found = json.loads(run(["--worker", *options]))
        again = [float(run(["--reopen", *options])) for _ in range(5)]
        yield name, {**found, "new process": statistics.median(again)}


def run(options: list[str]) -> str:
    """Run this module in a new process, and return what it prints."""
    command = [sys.executable, "-m", "benchmarks.checkpoints", *options]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main(given: list[str]) -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.checkpoints", description=__doc__)
    parser.add_argument("--turns", type=int, default=1000)
    parser.add_argument("--begin", type=int, default=0, help="turns of the first checkpoint")
    parser.add_argument("--work", type=Path, help="folder for the stores (default: a new one)")
    parser.add_argument("--worker", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument("--reopen", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args(given)
    if job := arguments.worker or arguments.reopen:
        name, folder, turns, begin = job[0], Path(job[1]), int(job[2]), int(job[3])
        is_worker = arguments.worker is not None
        found: Any = measure(name, folder, turns, begin) if is_worker else reopen(name, folder)
        print(json.dumps(found))
        return
    with tempfile.TemporaryDirectory(dir=arguments.work) as work:
        results = dict(processes(arguments, Path(work)))
    print(f"{arguments.begin} + {arguments.turns} turns; {os.cpu_count()} processors")
    print(f"{'':20}" + "".join(f"{name:>12}" for name in SAVERS) + f"{'ratio':>8}")
    for row in ROWS:
        one, other = (results[name][row] for name in SAVERS)
        print(f"{row:20}{one:12.2f}{other:12.2f}{other / one if one else 0:8.2f}")


if __name__ == "__main__":
    main(sys.argv[1:])
