"""Trace's session of the OpenAI Agents SDK beside the SDK's own for SQLite: `python -m benchmarks.agent_sessions`.

    python -m benchmarks.agent_sessions --items 1000
    python -m benchmarks.agent_sessions --items 100 --begin 9900

Each call appends the two items of a turn. With `--begin`, one call before it appends that many items. Both sync as they
do by default, and each is measured in a process of its own. The new process opens the session and gets all items, its
packages being imported already. Times are medians, of the last hundred calls for an append.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

from agents import SQLiteSession

from trace_store import Repo
from trace_store.integrations.openai_session import TraceSession

SESSIONS = ("sqlite", "trace")
LAST = 100
READS = 10


def opened(name: str, folder: Path) -> tuple[Any, Callable[[], None]]:
    """Open a session; return it and a function that closes it."""
    if name == "sqlite":
        sqlite = SQLiteSession("session-1", folder / "sessions.db")
        return sqlite, sqlite.close
    repo = Repo.open(folder, create=True, directory=None)
    return TraceSession("session-1", repo), repo.close


def turn(number: int) -> list[Any]:
    """Return the two items of a turn."""
    text = {"type": "output_text", "text": f"answer {number} ".ljust(600, "a"), "annotations": []}
    answer = {"id": f"msg_{number}", "type": "message", "role": "assistant", "status": "completed"}
    question = {"role": "user", "content": f"question {number} ".ljust(200, "q")}
    return [question, {**answer, "content": [text]}]


async def timed(call: Callable[[], Awaitable[Any]]) -> float:
    """Return how many milliseconds a call takes."""
    start = time.perf_counter()
    await call()
    return (time.perf_counter() - start) * 1000


async def measure(name: str, folder: Path, items: int, begin: int) -> dict[str, float]:
    """Fill a session and read it; return the times in milliseconds and the sizes in megabytes."""
    session, close = opened(name, folder)
    if begin:
        await session.add_items([each for number in range(begin // 2) for each in turn(number)])
    turns = [turn(number) for number in range(begin // 2, (begin + items) // 2)]
    adds = [await timed(partial(session.add_items, each)) for each in turns]
    gets = [await timed(session.get_items) for _ in range(READS)]
    latest = [await timed(partial(session.get_items, 10)) for _ in range(READS)]
    found = await session.get_items()
    assert len(found) == begin + items
    assert found[-2:] == turns[-1]
    pops = [await timed(session.pop_item)]
    close()
    rows = {"add_items": adds[-LAST:], "get_items": gets, "get_items(10)": latest, "pop_item": pops}
    return {row: statistics.median(each) for row, each in rows.items()} | {"MB": size_of(folder)}


async def reopen(name: str, folder: Path) -> float:
    """Return how many milliseconds a new process needs to open a session and get its items."""

    async def read() -> None:
        session, close = opened(name, folder)
        await session.get_items()
        close()

    return await timed(read)


def size_of(folder: Path) -> float:
    """Return the size of the files in a folder, in megabytes."""
    files = (Path(at) / name for at, _, names in os.walk(folder) for name in names)
    return sum(each.stat().st_size for each in files) / 1e6


def main() -> None:
    """Measure each session in a process of its own, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, prog="python -m benchmarks.agent_sessions"
    )
    parser.add_argument("--items", type=int, default=1000, help="items that are appended by twos")
    parser.add_argument("--begin", type=int, default=0, help="items that the session begins with")
    parser.add_argument("--work", type=Path, help="a folder on the disk to measure")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        what, name, folder = options.one
        if what == "new process":
            result: Any = {what: asyncio.run(reopen(name, Path(folder)))}
        else:
            result = asyncio.run(measure(name, Path(folder), options.items, options.begin))
        print(json.dumps(result))
        return
    columns: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory(dir=options.work) as work:
        for name in SESSIONS:
            folder = Path(work) / name
            folder.mkdir()
            columns[name] = {}
            for what in ("session", "new process"):
                command = [sys.executable, "-m", "benchmarks.agent_sessions"]
                command += ["--items", str(options.items), "--begin", str(options.begin)]
                done = subprocess.run(
                    [*command, "--one", what, name, str(folder)], check=True, stdout=subprocess.PIPE
                )
                columns[name] |= json.loads(done.stdout)
    print(f"{options.begin + options.items} items".ljust(16), *(f"{each:>10}" for each in SESSIONS))
    for row in columns["trace"]:
        print(row.ljust(16), *(f"{columns[each][row]:10.2f}" for each in SESSIONS))


if __name__ == "__main__":
    main()
