"""Trace's session stores beside those of the frameworks: `python -m benchmarks.agent_sessions`.

    python -m benchmarks.agent_sessions --items 1000
    python -m benchmarks.agent_sessions openai --items 100 --begin 9900

| framework | beside |
|---|---|
| openai: a session of the OpenAI Agents SDK | the SDK's own for SQLite |
| claude: a session store of the Claude Agent SDK | the SDK's own in memory, and a file of JSON lines that is synced |
| pydantic-ai: a conversation store | pydantic-ai's own in memory |

Each call appends the two items of a turn. With `--begin`, one call before it appends that many items. Stores on a disk
sync as they do by default. Each is measured in a process of its own. The new process opens the store and gets all
items, its packages being imported already. Times are medians in milliseconds, of the last hundred calls for an append.
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
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from trace_store import Repo

LAST = 100
READS = 10
KEY = {"project_key": "project", "session_id": "session-1"}
Calls = Mapping[str, Callable[[], Awaitable[Any]]]


class Subject:
    """A store that is measured.

    Attributes:
        add: appends items.
        get: returns all items.
        more: other calls by name; what empties the store comes last.
        close: closes it.
    """

    def __init__(
        self,
        add: Callable[[list[Any]], Awaitable[Any]],
        get: Callable[[], Awaitable[Sequence[Any]]],
        close: Callable[[], object],
        more: Calls | None = None,
    ) -> None:
        self.add = add
        self.get = get
        self.close = close
        self.more = more or {}


def open_repo(folder: Path) -> Repo:
    """Open Trace's repository in a folder."""
    return Repo.open(folder, create=True, directory=None)


def openai_store(name: str, folder: Path) -> Subject:
    """Open a session of the OpenAI Agents SDK."""
    from agents import SQLiteSession

    from trace_store.integrations.openai_session import TraceSession

    session: Any
    if name == "sqlite":
        session = SQLiteSession("session-1", folder / "sessions.db")
        close = session.close
    else:
        repo = open_repo(folder)
        session, close = TraceSession("session-1", repo), repo.close
    more = {"get_items(10)": partial(session.get_items, 10), "pop_item": session.pop_item}
    return Subject(session.add_items, session.get_items, close, more)


def openai_turn(number: int) -> list[Any]:
    """Return the two items of a turn."""
    text = {"type": "output_text", "text": f"answer {number} ".ljust(600, "a"), "annotations": []}
    answer = {"id": f"msg_{number}", "type": "message", "role": "assistant", "status": "completed"}
    question = {"role": "user", "content": f"question {number} ".ljust(200, "q")}
    return [question, {**answer, "content": [text]}]


class JsonLines:
    """The floor of a durable session: JSON lines that are appended to a file and synced."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.file = path.open("ab")

    async def append(self, items: list[Any]) -> None:
        """Append items."""
        self.file.write(b"".join(json.dumps(item).encode() + b"\n" for item in items))
        self.file.flush()
        os.fsync(self.file.fileno())

    async def load(self) -> list[Any]:
        """Return all items."""
        return [json.loads(line) for line in self._path.read_bytes().splitlines()]


def claude_store(name: str, folder: Path) -> Subject:
    """Open a session store of the Claude Agent SDK."""
    from claude_agent_sdk import InMemorySessionStore

    from trace_store.integrations.claude_agent import TraceSessionStore

    if name == "jsonl":
        lines = JsonLines(folder / "session.jsonl")
        return Subject(lines.append, lines.load, lines.file.close)
    store: Any
    if name == "memory":
        store, close = InMemorySessionStore(), lambda: None
    else:
        repo = open_repo(folder)
        store, close = TraceSessionStore(repo), repo.close
    more = {"list_sessions": partial(store.list_sessions, KEY["project_key"])}
    return Subject(partial(store.append, KEY), partial(store.load, KEY), close, more)


def claude_turn(number: int) -> list[Any]:
    """Return the two entries of a turn."""
    said = [("user", "question", "q", 200), ("assistant", "answer", "a", 600)]
    return [
        {
            "type": role,
            "uuid": f"{letter}-{number}",
            "timestamp": "2026-11-28T00:00:00Z",
            "message": {"role": role, "content": f"{word} {number} ".ljust(length, letter)},
        }
        for role, word, letter, length in said
    ]


def pydantic_store(name: str, folder: Path) -> Subject:
    """Open a conversation store of pydantic-ai."""
    from pydantic_ai.conversation import Conversation
    from pydantic_ai.conversation_store import InMemoryConversationStore

    from trace_store.integrations.pydantic_ai_store import TraceConversationStore

    store: Any
    if name == "memory":
        store, close = InMemoryConversationStore(), lambda: None
    else:
        repo = open_repo(folder)
        store, close = TraceConversationStore(repo), repo.close
    talk = Conversation(conversation_id="talk", messages=[])

    async def add(messages: list[Any]) -> None:
        talk.messages.extend(messages)
        await store.save(talk)

    async def get(limit: int | None = None) -> Sequence[Any]:
        return (await store.load("talk", limit=limit)).messages  # type: ignore[no-any-return]

    return Subject(add, get, close, {"load(10)": partial(get, 10)})


def pydantic_turn(number: int) -> list[Any]:
    """Return the two messages of a turn."""
    from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, UserPromptPart

    question, answer = f"question {number} ".ljust(200, "q"), f"answer {number} ".ljust(600, "a")
    return [ModelRequest([UserPromptPart(question)]), ModelResponse([TextPart(answer)])]


FRAMEWORKS: Mapping[str, tuple[tuple[str, ...], Callable[[str, Path], Subject], Any]] = {
    "openai": (("sqlite", "trace"), openai_store, openai_turn),
    "claude": (("memory", "jsonl", "trace"), claude_store, claude_turn),
    "pydantic-ai": (("memory", "trace"), pydantic_store, pydantic_turn),
}


async def timed(call: Callable[[], Awaitable[Any]]) -> float:
    """Return how many milliseconds a call takes."""
    start = time.perf_counter()
    await call()
    return (time.perf_counter() - start) * 1000


async def measure(
    framework: str, name: str, folder: Path, items: int, begin: int
) -> dict[str, float]:
    """Fill a store and read it; return the times in milliseconds and the size in megabytes."""
    _, opened, turn = FRAMEWORKS[framework]
    store = opened(name, folder)
    if begin:
        await store.add([each for number in range(begin // 2) for each in turn(number)])
    turns = [turn(number) for number in range(begin // 2, (begin + items) // 2)]
    adds = [await timed(partial(store.add, each)) for each in turns]
    rows = {"append": adds[-LAST:], "get": [await timed(store.get) for _ in range(READS)]}
    found = [*await store.get()]
    assert len(found) == begin + items
    if framework != "pydantic-ai":  # which gives messages a time
        assert found[-2:] == turns[-1]
    for row, call in store.more.items():
        rows[row] = [await timed(call) for _ in range(READS)]
    store.close()
    return {row: statistics.median(each) for row, each in rows.items()} | {"MB": size_of(folder)}


async def reopen(framework: str, name: str, folder: Path) -> float:
    """Return how many milliseconds a new process needs to open a store and get its items."""

    async def read() -> None:
        store = FRAMEWORKS[framework][1](name, folder)
        await store.get()
        store.close()

    FRAMEWORKS[framework][1]("trace", Path(tempfile.mkdtemp(dir=folder.parent))).close()  # imports
    return await timed(read)


def size_of(folder: Path) -> float:
    """Return the size of the files in a folder, in megabytes."""
    files = (Path(at) / name for at, _, names in os.walk(folder) for name in names)
    return sum(each.stat().st_size for each in files) / 1e6


def run_one(framework: str, what: str, name: str, folder: Path, sizes: Sequence[str]) -> Any:
    """Measure in a new process, and return what it prints."""
    command = [sys.executable, "-m", "benchmarks.agent_sessions", framework, *sizes]
    command += ["--one", what, name, str(folder)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def main() -> None:
    """Measure each store in a process of its own, and print a table for each framework."""
    parser = argparse.ArgumentParser(
        description=__doc__, prog="python -m benchmarks.agent_sessions"
    )
    parser.add_argument("frameworks", nargs="*", choices=[*FRAMEWORKS, []], default=[])
    parser.add_argument("--items", type=int, default=1000, help="items that are appended by twos")
    parser.add_argument("--begin", type=int, default=0, help="items that the session begins with")
    parser.add_argument("--work", type=Path, help="a folder on the disk to measure")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        (framework,), (what, name, folder) = options.frameworks, options.one
        if what == "new process":
            result: Any = {what: asyncio.run(reopen(framework, name, Path(folder)))}
        else:
            sizes = options.items, options.begin
            result = asyncio.run(measure(framework, name, Path(folder), *sizes))
        print(json.dumps(result))
        return
    given = ["--items", str(options.items), "--begin", str(options.begin)]
    for framework in options.frameworks or FRAMEWORKS:
        columns: dict[str, dict[str, float]] = {}
        names = FRAMEWORKS[framework][0]
        with tempfile.TemporaryDirectory(dir=options.work) as work:
            for name in names:
                folder = Path(work) / name
                folder.mkdir()
                columns[name] = run_one(framework, "store", name, folder, given)
                if name != "memory":
                    columns[name] |= run_one(framework, "new process", name, folder, given)
        print(f"{framework}: {options.begin + options.items} items")
        print(" " * 16, *(f"{name:>10}" for name in names))
        for row in columns["trace"]:
            cells = (columns[name].get(row) for name in names)
            print(row.ljust(16), *(f"{'-' if c is None else format(c, '.2f'):>10}" for c in cells))


if __name__ == "__main__":
    main()
