"""Trace itself, through the library."""

from __future__ import annotations

import array  # noqa: F401 - what Trace imports late is an import all the same
import base64
import functools
import hashlib
import json
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

# These, too.
import blake3  # noqa: F401
import msgpack  # noqa: F401
import orjson  # noqa: F401

import trace_store
import trace_store.commit_table.commits
import trace_store.commit_table.table
import trace_store.commit_table.walks
import trace_store.context.bulk_read
import trace_store.context.content
import trace_store.context.token_column
import trace_store.history.log
import trace_store.history.lookup
import trace_store.maintenance.lock_wait
import trace_store.maintenance.schedule
import trace_store.merge.stopped
import trace_store.odb.loose
import trace_store.refs.reflog
import trace_store.search.query
from benchmarks.model import Proof, Turn, Work, write_ids
from benchmarks.peers.floor import write_all
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
from trace_store.context.compiled import CompiledMessage
from trace_store.maintenance.fsck import fsck
from trace_store.maintenance.repack import pack
from trace_store.objects.content import read_content, text_of
from trace_store.objects.parts import Part
from trace_store.odb.compression import compress, decompress
from trace_store.odb.pack_writer import DEFAULT_FRAME_BYTES

decompress(compress(b"", level=1), 0)  # imports the compression library
BENCHMARK_ENVIRONMENT = Environment(author="benchmark", cache_dir=Environment.read().cache_dir)


class Trace:
    """A repository of one message a commit, sealed and packed."""

    packages = ()

    def __init__(self, frame_bytes: int = DEFAULT_FRAME_BYTES) -> None:
        self._frame_bytes = frame_bytes

    @property
    def store(self) -> str:
        """The store's folder names the source that wrote it: another may write other bytes."""
        frames = "" if self._frame_bytes == DEFAULT_FRAME_BYTES else f"-{self._frame_bytes}"
        return f"trace-{_source()}{frames}"

    def build(self, folder: Path, turns: Iterable[Turn]) -> None:
        """Append without syncs, then seal and pack."""
        with Repo.init(folder, durability="fast", environment=BENCHMARK_ENVIRONMENT) as repo:
            for turn in turns:
                repo.commit([as_message(turn)])
            pack(repo.store, frame_bytes=self._frame_bytes)
            ids = [_content_id(each) for each in repo.compile().messages]
        write_ids(folder, ids)

    def writer(self, folder: Path, mode: str) -> TraceWriter:
        """Open for appending; `mode` is Trace's durability."""
        return TraceWriter(folder, mode)

    def follow(self, folder: Path) -> Iterator[object]:
        """Return the events of a repository as they happen."""
        return Repo.open(folder).store.follow()

    def compile_lazy(self, folder: Path) -> Proof:
        """Return all messages, whose content is decoded when it is looked at."""
        messages = list(_open(folder).compile().messages)
        return lambda: Work(len(messages), sum(_characters(each.parts) for each in messages))

    def compile_full(self, folder: Path) -> Proof:
        """Return the parts of all messages, every hash checked."""
        found = [message.parts for message in _open(folder).compile().messages]
        return lambda: Work(len(found), sum(map(_characters, found)))

    def hold(self, folder: Path, data: str, count: int) -> Proof:
        """Return the parts of all messages from JSON lines, to measure their memory."""
        with open(data, "rb") as lines:
            found = [as_message(json.loads(line)).parts for line in islice(lines, count)]
        return lambda: Work(len(found), sum(map(_characters, found)))

    def tail(self, folder: Path) -> Proof:
        """Return length and token total, and the parts of the last 50 messages."""
        context = _open(folder).compile()
        total = len(context), context.text_token_count
        found = [message.parts for message in context.messages[-50:]]
        return lambda: Work(total[0], sum(map(_characters, found)))

    def pipe(self, folder: Path, sink: int) -> Proof:
        """Write the bytes of all objects that the context is made of, each hash checked."""
        for piece in _open(folder).compile().objects():
            write_all(sink, memoryview(piece))
        return lambda: None

    def pipe_provider(self, folder: Path, sink: int) -> Proof:
        """Write the context as a provider takes it."""
        request = _open(folder).compile().render("anthropic")
        write_all(sink, memoryview(request.to_bytes()))
        return lambda: None

    def log(self, folder: Path, limit: int = 0) -> Proof:
        """Return id, author and time of the newest commits, or of all."""
        found = [
            (entry.oid, entry.author, entry.time)
            for entry in _open(folder).log(limit=limit or None)
        ]
        return lambda: Work(len(found), len(found))

    def read(self, folder: Path, ids: str) -> Proof:
        """Return content by id."""
        objects = _open(folder).store.objects
        wanted = Path(ids).read_text("utf-8").split()
        found = [read_content(bytes.fromhex(each), objects.read) for each in wanted]
        return lambda: Work(len(found), sum(len(text_of(each)) for each in found))

    def search(self, folder: Path, words: str) -> Proof:
        """Return the newest 20 messages with each word, as snippets."""
        repo = _open(folder)
        found = [
            (hit.role, hit.snippet)
            for word in Path(words).read_text("utf-8").split()
            for hit in repo.search(word)
        ]
        return lambda: Work(len(found), 0)

    def verify(self, folder: Path) -> Proof:
        """Check every object and every link."""
        repo = _open(folder)
        wrong = fsck(repo.store)
        if wrong:
            raise ValueError(str(wrong[0]))
        return lambda: Work(len(repo.compile()), 0)


class Unpacked(Trace):
    """A repository as a killed process leaves it: sealed now and then, never packed."""

    @property
    def store(self) -> str:
        """As of `Trace`."""
        return f"unpacked-{super().store}"

    def build(self, folder: Path, turns: Iterable[Turn]) -> None:
        """Append without syncs, and leave everything in the journal."""
        repo = Repo.init(folder, durability="fast", environment=BENCHMARK_ENVIRONMENT)
        for turn in turns:
            repo.commit([as_message(turn)])
        write_ids(folder, [_content_id(each) for each in repo.compile().messages])
        repo.store.close()

    def pack(self, folder: Path) -> None:
        """Seal the rest and make one pack of all, as `trace pack` does."""
        with _open(folder) as repo:
            pack(repo.store, frame_bytes=self._frame_bytes)


class TraceWriter:
    """A repository that is open for appending."""

    def __init__(self, folder: Path, mode: str) -> None:
        durability, _, compiled = mode.partition(", ")
        self._repo = Repo.open(folder, durability=durability, environment=BENCHMARK_ENVIRONMENT)
        self.append = self._append_and_compile if compiled else self._append

    def prepare(self, turn: Turn) -> Message:
        return as_message(turn)

    def count(self) -> int:
        return len(self._repo.compile())

    def close(self) -> None:
        self._repo.close()

    def _append(self, messages: list[Message]) -> None:
        if len(messages) > 1:
            self._repo.commit(messages)
        else:
            [message] = messages
            self._repo.append(message.role, message.parts, id=message.id)

    def _append_and_compile(self, messages: list[Message]) -> None:
        self._append(messages)
        context = self._repo.compile()
        if not len(context) or context.messages[-1].parts != messages[-1].parts:
            raise ValueError("the last message is not the one that was appended")


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


def _content_id(message: CompiledMessage) -> str:
    """Return the id of a message's text, or of its tool result's content."""
    part = message.stored["parts"][0]
    while "parts" in part:
        part = part["parts"][0]
    return bytes(part["blob"]).hex()


def _characters(found: Iterable[Part]) -> int:
    total = 0
    for part in found:
        if isinstance(part, ToolResult):
            total += _characters(part.content)
        elif isinstance(part, Text):
            total += len(part.text)
    return total


def _open(folder: Path) -> Repo:
    return Repo.open(folder, create=False, environment=BENCHMARK_ENVIRONMENT)


@functools.cache
def _source() -> str:
    """Return a short hash of the library's source."""
    root = Path(trace_store.__file__).parent
    told = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        told.update(path.read_bytes())
    return told.hexdigest()[:10]
