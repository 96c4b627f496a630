"""Trace itself, through the library."""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Iterable
from pathlib import Path

import backports.zstd  # noqa: F401  what Trace imports late is an import all the same

import trace_store
from benchmarks.model import Proof, Turn, Work
from trace_store import (
    Environment,
    Image,
    Message,
    Opaque,
    Reasoning,
    Repo,
    Text,
    ToolCall,
    ToolResult,
)
from trace_store.maintenance.packing import pack
from trace_store.objects.parts import Part

NOBODY = Environment(author="benchmark")


class Trace:
    """A repository of one message a commit, sealed and packed."""

    packages = ()

    @property
    def store(self) -> str:
        """The store's folder names the source that wrote it: another may write other bytes."""
        return f"trace-{_source()}"

    def build(self, folder: Path, turns: Iterable[Turn]) -> None:
        """Append without syncs, then seal and pack."""
        with Repo.init(folder, durability="fast", environment=NOBODY) as repo:
            for turn in turns:
                repo.commit([as_message(turn)])
            pack(repo.store)
            len(repo.compile())

    def writer(self, folder: Path, mode: str) -> TraceWriter:
        """Open for appending; `mode` is Trace's durability."""
        return TraceWriter(folder, mode)

    def compile_lazy(self, folder: Path) -> Proof:
        """Return all messages, whose content is decoded when it is looked at."""
        messages = list(_open(folder).compile().messages)
        return lambda: Work(len(messages), sum(_characters(each.parts) for each in messages))

    def compile_full(self, folder: Path) -> Proof:
        """Return the parts of all messages, every hash checked."""
        found = [message.parts for message in _open(folder).compile().messages]
        return lambda: Work(len(found), sum(map(_characters, found)))


class TraceWriter:
    """A repository that is open for appending."""

    def __init__(self, folder: Path, mode: str) -> None:
        self._repo = Repo.open(folder, durability=mode, environment=NOBODY)

    def prepare(self, turn: Turn) -> Message:
        return as_message(turn)

    def append(self, messages: list[Message]) -> None:
        self._repo.commit(messages)

    def count(self) -> int:
        return len(self._repo.compile())

    def close(self) -> None:
        self._repo.close()


def as_message(turn: Turn) -> Message:
    """Return a message as Trace takes it."""
    return Message(turn["role"], [_part(each) for each in turn["content"]], id=turn["id"])


def _part(form: dict[str, str]) -> Part:
    match form["type"]:
        case "text":
            return Text(form["text"])
        case "tool_call":
            return ToolCall(form["id"], form["name"], form["arguments"])
        case "tool_result":
            return ToolResult(form["call_id"], form["content"])
        case "reasoning":
            return Reasoning(form["text"], form["signature"])
        case "image":
            if ":" in form["data"]:  # which base64 has not
                return Image(form["media_type"], url=form["data"])
            return Image(form["media_type"], base64.b64decode(form["data"]))
        case _:
            return Opaque(form["provider"], base64.b64decode(form["data"]))


def _characters(found: Iterable[Part]) -> int:
    total = 0
    for part in found:
        if isinstance(part, ToolResult):
            total += _characters(part.content)
        elif isinstance(part, Text):
            total += len(part.text)
    return total


def _open(folder: Path) -> Repo:
    return Repo.open(folder, create=False, environment=NOBODY)


@functools.cache
def _source() -> str:
    """Return a short hash of the library's source."""
    root = Path(trace_store.__file__).parent
    told = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        told.update(path.read_bytes())
    return told.hexdigest()[:10]
