"""Invented transcripts in the shapes that Claude Code writes, and the real ones where a machine has them."""

from __future__ import annotations

import json
import os
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.examples import FULL
from trace_store.importers.registry import format_of
from trace_store.importers.sniff import HEAD_BYTES

SESSION = "5f0c2a54-1111-4222-8333-944455556666"
MODEL = "claude-opus-4-6"
REASON = "set TRACE_TEST_TRANSCRIPTS to a folder of transcripts to run this on real ones"


def real_files() -> list[Path]:
    """Every file of the folder of real transcripts, whatever its format; notes about them are none."""
    folder = os.environ.get("TRACE_TEST_TRANSCRIPTS")
    return [] if not folder else sorted(p for p in Path(folder).glob("*/**/*") if p.is_file())


def real_format(path: Path) -> str:
    """The name of a file's format, detected from its beginning; "" if unknown."""
    with path.open("rb") as file:
        format = format_of(file.read(HEAD_BYTES))
    return "" if format is None else format.NAME


def each_real_transcript(*names: str) -> list[Any]:
    """Parameters for a test of every real transcript of some formats; one that is skipped where there are none.

    Args:
        names: the formats; without any it is Claude Code's.
    """
    return _params([p for p in real_files() if real_format(p) in (names or ("claude-code",))])


def each_real_file() -> list[Any]:
    """Parameters for a test of every real transcript whose format is known."""
    return _params([path for path in real_files() if real_format(path)])


def chosen_files(*, longest: bool = False) -> list[Path]:
    """Of each format a file of middle size and a long one, or the longest; all of them in the long form."""
    by_format: dict[str, list[Path]] = defaultdict(list)
    for path in sorted(real_files(), key=lambda path: path.stat().st_size):
        by_format[real_format(path)].append(path)
    by_format.pop("", None)
    some = {
        path
        for of in by_format.values()
        for path in (of if FULL else (of[len(of) // 2], of[-1 if longest else len(of) * 3 // 4]))
    }
    return sorted(some)


def each_chosen_file(*names: str, longest: bool = False) -> list[Any]:
    """Parameters for a test that takes long: the chosen real transcripts, of some formats or of all."""
    found = chosen_files(longest=longest)
    return _params([path for path in found if not names or real_format(path) in names])


def _params(found: list[Path]) -> list[Any]:
    if not found:
        return [pytest.param(None, marks=pytest.mark.skip(reason=REASON), id="none-here")]
    return [pytest.param(path, id=f"{path.parent.name}/{path.stem}") for path in found]


def records_in(data: bytes) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """Yield (raw, object) of every readable record, by means of the standard library alone."""
    decoder = json.JSONDecoder()
    for line in data.split(b"\n"):
        text = line.decode("utf-8", "surrogateescape")
        position = 0
        while (position := _skip(text, position)) < len(text):
            try:
                value, end = decoder.raw_decode(text, position)
            except (ValueError, RecursionError):
                break
            if isinstance(value, dict):
                yield text[position:end].encode("utf-8", "surrogateescape"), value
            position = end


Ids = tuple[set[str], set[str]]


def _claude_code(data: bytes) -> Ids:
    calls: set[str] = set()
    results: set[str] = set()
    for _, record in records_in(data):
        message = record.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        for block in content if isinstance(content, list) else ():
            if isinstance(block, dict) and block.get("type") == "tool_use":
                calls.add(block["id"])
            elif isinstance(block, dict) and block.get("type") == "tool_result":
                results.add(block["tool_use_id"])
    return calls, results


def _codex(data: bytes) -> Ids:
    calls: set[str] = set()
    results: set[str] = set()
    for _, record in records_in(data):
        item = record.get("payload")
        if record.get("type") == "response_item" and isinstance(item, dict) and "call_id" in item:
            ids = results if item["type"].endswith("_output") else calls
            ids.add(item["call_id"])
    return calls, results


def _copilot(data: bytes) -> Ids:
    calls: set[str] = set()
    results: set[str] = set()
    for _, record in records_in(data):
        inner = record["data"]
        calls |= {request["toolCallId"] for request in inner.get("toolRequests", ())}
        if record["type"] == "tool.execution_complete":
            results.add(inner["toolCallId"])
    return calls, results


def _entire(data: bytes) -> Ids:
    blocks = [
        block
        for _, record in records_in(data)
        for block in record["content"]
        if block.get("type") == "tool_use"
    ]
    return {b["id"] for b in blocks}, {b["id"] for b in blocks if "result" in b}


def _gemini(data: bytes) -> Ids:
    calls: set[str] = set()
    results: set[str] = set()
    try:
        records = json.loads(data)["messages"]
    except ValueError:
        records = [record for _, record in records_in(data)]
    for record in records:
        for call in record.get("toolCalls", ()):
            calls.add(call["id"])
            results |= {call["id"]} if call.get("result") else set()
    return calls, results


def _opencode(data: bytes) -> Ids:
    if data.lstrip().startswith(b"{"):
        parts = [part for message in json.loads(data)["messages"] for part in message["parts"]]
    else:
        base = sqlite3.connect(":memory:")
        base.executescript(data.decode())
        parts = [json.loads(text) for (text,) in base.execute("SELECT data FROM part")]
    tools = [part for part in parts if part["type"] == "tool"]
    done = [part for part in tools if part["state"]["status"] in ("completed", "error")]
    return {part["callID"] for part in tools}, {part["callID"] for part in done}


# The ids of calls and of results in a file, counted without regard to anything else. Formats have their row here.
COUNTS: dict[str, Callable[[bytes], Ids]] = {
    "claude-code": _claude_code,
    "codex": _codex,
    "copilot": _copilot,
    "droid": _claude_code,
    "entire": _entire,
    "gemini": _gemini,
    "opencode": _opencode,
}


def _skip(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t\r":
        position += 1
    return position


class Transcript:
    """Writes records, each linked to the previous one by default."""

    def __init__(self, session: str = SESSION, *, first: int = 0) -> None:
        self.session = session
        self.lines: list[str] = []
        self.last: str | None = None
        self._count = first

    def add(
        self,
        record: dict[str, Any],
        *,
        parent: str | bool | None = True,
        uuid: str = "",
        **more: Any,
    ) -> str:
        self._count += 1
        uuid = uuid or f"{self._count:08x}-0000-4000-8000-000000000000"
        full = {
            "parentUuid": self.last if parent is True else parent,
            "isSidechain": False,
            "cwd": "/w/app",
            "sessionId": self.session,
            "version": "2.1.29",
            **record,
            "uuid": uuid,
            "timestamp": f"2026-02-09T05:{self._count // 60:02d}:{self._count % 60:02d}.{self._count:03d}Z",
            **more,
        }
        self.lines.append(json.dumps(full, ensure_ascii=False, separators=(",", ":")))
        self.last = uuid
        return uuid

    def user(self, content: Any, **more: Any) -> str:
        return self.add({"type": "user", "message": {"role": "user", "content": content}}, **more)

    def assistant(
        self,
        message_id: str,
        *blocks: dict[str, Any],
        stop: str | None = None,
        output: int = 1,
        read: int = 100,
        **more: Any,
    ) -> str:
        message = {
            "id": message_id,
            "type": "message",
            "role": "assistant",
            "model": MODEL,
            "content": list(blocks),
            "stop_reason": stop,
            "usage": {
                "input_tokens": 3,
                "cache_creation_input_tokens": 20,
                "cache_read_input_tokens": read,
                "output_tokens": output,
            },
        }
        return self.add({"type": "assistant", "message": message}, **more)

    def result(self, call: str, content: Any, **more: Any) -> str:
        block = {"type": "tool_result", "tool_use_id": call, "content": content}
        return self.user([block], **more)

    def system(self, subtype: str, **more: Any) -> str:
        return self.add({"type": "system", "subtype": subtype}, **more)

    def bare(self, record: dict[str, Any]) -> None:
        self.lines.append(json.dumps(record, separators=(",", ":")))

    @property
    def data(self) -> bytes:
        return "".join(line + "\n" for line in self.lines).encode("utf-8", "backslashreplace")

    def write(self, folder: Path, name: str = "") -> str:
        path = folder / f"{name or self.session}.jsonl"
        path.write_bytes(self.data)
        return str(path)


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def thinking(value: str, signature: str = "c2ln" * 20) -> dict[str, Any]:
    return {"type": "thinking", "thinking": value, "signature": signature}


def call(call_id: str, name: str = "Read", **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def lively() -> Transcript:
    """A session with one example of each case that an import must distinguish."""
    t = Transcript()
    t.bare({"type": "summary", "summary": "an old title", "leafUuid": "elsewhere"})
    t.bare({"type": "file-history-snapshot", "messageId": "m", "snapshot": {"files": {}}})
    t.user("Fix the parser, please; it drops the last line of every file that has no newline.")
    t.assistant("msg_1", thinking("The reader probably splits on newlines and drops the rest."))
    t.assistant("msg_1", call("toolu_a", file_path="/w/app/parser.py"))
    first = t.last
    t.assistant("msg_1", call("toolu_b", "Grep", pattern="split"))
    second = t.last
    t.result("toolu_a", "1\tdef parse(data):\n2\t    return data.split('\\n')[:-1]", parent=first)
    t.system("note", content="between the results")
    t.result("toolu_b", [text("parser.py:2: return data.split")], parent=second)
    t.assistant("msg_2", call("toolu_c", "Edit", file_path="/w/app/parser.py", old="[:-1]", new=""))
    t.result("toolu_c", "ok, the file was changed: parser.py, one line, one replacement done")
    t.assistant("msg_2", call("toolu_d", "Bash", command="pytest -q"))
    t.result("toolu_d", "3 passed in 0.1 s, and nothing failed; the coverage is unchanged")
    t.assistant("msg_3", text("The last line is kept now."), stop="end_turn", output=40)
    end = t.last
    t.system("turn_duration", durationMs=1200)
    t.user("Now rename it to reader.py")
    t.assistant("msg_4", text("Renaming it to reader.py right away."), stop="end_turn", output=9)
    t.user("No: keep the name, but add a test for the empty file.", parent=end)
    t.assistant("msg_5", call("toolu_e", "Write", file_path="/w/app/test_parser.py", content="…"))
    t.result("toolu_e", "written")
    t.system(
        "microcompact_boundary", microcompactMetadata={"compactedToolIds": ["toolu_a", "toolu_d"]}
    )
    t.assistant("msg_6", text("A test for the empty file is there."), stop="end_turn", output=12)
    t.system("compact_boundary", parent=None, compactMetadata={"trigger": "auto", "preTokens": 90})
    t.user(
        "This session is being continued. The parser keeps the last line.", isCompactSummary=True
    )
    t.user("Thanks. Is anything left to do?")
    t.assistant("msg_7", text("Nothing is left."), stop="end_turn", output=5)
    t.bare({"type": "last-prompt", "leafUuid": t.last, "lastPrompt": "Thanks."})
    return t
