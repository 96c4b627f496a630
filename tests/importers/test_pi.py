"""Sessions of pi: trees of entries, compactions, commands of the user."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from tests.cli.conftest import ok, repository, trace
from tests.importers.support.checks import assert_grows, damaged, import_hostile, lines_of
from tests.importers.support.sound import branches_of, commits_of, imported, messages
from tests.support.command_line import Run, Trace
from tests.support.examples import examples
from trace_store.base.environment import Environment
from trace_store.disk.files import Disk
from trace_store.importers.formats.pi import FORMAT
from trace_store.objects.message import Message
from trace_store.objects.parts import Image, Opaque, Reasoning, Text, ToolCall, ToolResult

__all__ = ["ok", "repository", "trace"]
Entry = dict[str, Any]
HEADER = {
    "type": "session",
    "version": 3,
    "id": "pi-1",
    "timestamp": "2026-01-01T00:00:00.000Z",
    "cwd": "/work",
}
PNG = "iVBORw0KGgo="


def entry(id_: str, parent: str | None, type_: str = "message", **more: Any) -> Entry:
    return {
        "type": type_,
        "id": id_,
        "parentId": parent,
        "timestamp": "2026-01-01T00:00:01.000Z",
        **more,
    }


def user(id_: str, parent: str | None, text: str) -> Entry:
    return entry(id_, parent, message={"role": "user", "content": [{"type": "text", "text": text}]})


def answer(id_: str, parent: str | None, *content: Any, **more: Any) -> Entry:
    blocks = [{"type": "text", "text": each} if isinstance(each, str) else each for each in content]
    message = {"role": "assistant", "content": blocks, "api": "anthropic-messages", "model": "opus"}
    return entry(
        id_, parent, message={**message, "provider": "anthropic", "stopReason": "stop", **more}
    )


def call(id_: str) -> Entry:
    return {"type": "toolCall", "id": id_, "name": "bash", "arguments": {"command": id_}}


def result(id_: str, parent: str, call_id: str, *content: Any) -> Entry:
    blocks = [{"type": "text", "text": each} if isinstance(each, str) else each for each in content]
    said = {"role": "toolResult", "toolCallId": call_id, "toolName": "bash", "content": blocks}
    return entry(id_, parent, message={**said, "isError": False})


def texts(found: list[Message]) -> list[str]:
    def text_of(part: object) -> str:
        if isinstance(part, Text):
            return part.text
        if isinstance(part, ToolCall):
            return f"call {part.id}"
        return f"result {part.call_id}" if isinstance(part, ToolResult) else ""

    return [text_of(part) for message in found for part in message.parts]


def test_a_session_with_a_compaction_and_a_branch(tmp_path: Path) -> None:
    rows = [
        HEADER,
        user("a1", None, "old"),
        answer("a2", "a1", call("t1")),
        result("a3", "a2", "t1", "listing"),
        user("a4", "a3", "kept"),
        entry("a5", "a4", "thinking_level_change", thinkingLevel="high"),
        entry(
            "a6", "a5", "compaction", summary="the summary", firstKeptEntryId="a4", tokensBefore=9
        ),
        answer("a7", "a6", "abandoned"),
        answer("a8", "a6", "new"),
    ]
    store, report = imported(tmp_path, "s.jsonl", lines_of(rows))
    assert (report.format, report.record_count) == ("pi", 9)
    assert texts(messages(store, "pi/pi-1")) == ["the summary", "kept", "new"]
    assert branches_of(store) == {"pi/pi-1", "pi/pi-1/rewinds/a7"}
    assert texts(messages(store, "pi/pi-1/rewinds/a7"))[-1] == "abandoned"
    assert_grows(tmp_path, lines_of(rows), "grows.jsonl")


def test_what_a_model_is_shown_of_each_entry(tmp_path: Path) -> None:
    ran = {"role": "bashExecution", "command": "git status", "output": "clean", "exitCode": 1}
    thought = {"type": "thinking", "thinking": "hm", "thinkingSignature": "sig"}
    usage = {
        "input": 3,
        "output": 5,
        "cacheRead": 7,
        "cacheWrite": 11,
        "totalTokens": 26,
        "cost": {},
    }
    rows = [
        HEADER,
        entry("c1", None, "custom_message", customType="x", content="injected", display=True),
        entry("c2", "c1", message=ran),
        entry("c3", "c2", message={**ran, "command": "secret", "excludeFromContext": True}),
        answer("c4", "c3", thought, call("t1"), call("t2"), usage=usage),
        result("c5", "c4", "t1", "one", {"type": "image", "data": PNG, "mimeType": "image/png"}),
        result("c6", "c5", "t2", "two"),
        answer("c7", "c6", "cut", stopReason="aborted"),
        entry("c8", "c7", "branch_summary", fromId="c7", summary="what was tried"),
        entry("c9", "c8", "custom", customType="state", data={"count": 1}),
    ]
    store, report = imported(tmp_path, "s.jsonl", lines_of(rows))
    injected, shown, said, results, branch = messages(store, "pi/pi-1")
    assert (injected.kind, branch.kind) == ("instruction", "instruction")
    assert texts([shown]) == ["Ran `git status`\n```\nclean\n```\n\nCommand exited with code 1"]
    assert said.parts[0] == Reasoning("hm", "sig")
    assert [part.call_id for part in results.parts if isinstance(part, ToolResult)] == ["t1", "t2"]
    pieces = [
        inner for part in results.parts if isinstance(part, ToolResult) for inner in part.content
    ]
    assert any(isinstance(piece, Image) for piece in pieces)
    usages = [c for c in commits_of(store, "pi/pi-1") for o in c.operations if o.name == "usage"]
    assert len(usages) == 1
    assert report.records["custom", "source"] == 1


def test_signatures_by_the_api_that_made_them(tmp_path: Path) -> None:
    item = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "sealed"}
    thought = {"type": "thinking", "thinking": "hm", "thinkingSignature": json.dumps(item)}
    rows = [
        HEADER,
        answer("a1", None, thought, "x", api="openai-responses"),
        answer(
            "a2",
            "a1",
            {**thought, "thinkingSignature": "reasoning_content"},
            api="openai-completions",
        ),
        answer("a3", "a2", {**thought, "redacted": True}),
    ]
    store, _ = imported(tmp_path, "s.jsonl", lines_of(rows))
    first, second, third = messages(store, "pi/pi-1")
    assert first.parts[0] == Reasoning("", "sealed")
    assert list(second.parts) == [Reasoning("hm")]
    assert isinstance(third.parts[0], Opaque)
    assert b"redacted_thinking" in third.parts[0].data


def test_entries_of_the_first_version_follow_each_other(tmp_path: Path) -> None:
    rows = [
        {"type": "session", "id": "v1", "timestamp": "2025-11-01T00:00:00.000Z", "cwd": "/work"},
        *(
            {key: value for key, value in each.items() if key not in ("id", "parentId")}
            for each in (user("1", None, "one"), answer("2", "1", "two"), user("3", "2", "three"))
        ),
        {
            "type": "compaction",
            "timestamp": "2025-11-01T00:00:00.000Z",
            "summary": "S",
            "firstKeptEntryIndex": 3,
            "tokensBefore": 1,
        },
    ]
    store, _ = imported(tmp_path, "s.jsonl", lines_of(rows))
    assert texts(messages(store, "pi/v1")) == ["S", "three"]


def test_an_unknown_role_is_told_and_the_command_fails(
    ok: Run, trace: Trace, tmp_path: Path
) -> None:
    rows = [
        HEADER,
        user("a", None, "hi"),
        entry("b", "a", message={"role": "wizard", "content": "x"}),
    ]
    (tmp_path / "s.jsonl").write_bytes(lines_of(rows))
    run = trace("import", "s.jsonl")
    assert run.code == 2
    assert "wizard" in run.err


def tree(seed: int) -> list[Entry]:
    """Return a session whose user goes back, compacts and comes back to branches."""
    chosen = random.Random(seed)
    rows: list[Entry] = []
    parent: str | None = None
    open_calls: list[str] = []
    for number in range(chosen.randint(4, 30)):
        id_ = f"{number:08x}"
        if open_calls:
            rows.append(result(id_, str(parent), open_calls.pop(0), f"r{number}"))
            parent = id_
            continue
        if rows and chosen.random() < 0.25:
            parent = chosen.choice([*(each["id"] for each in rows if not _is_inside(each)), None])
        kind = chosen.random()
        if kind < 0.3:
            rows.append(user(id_, parent, f"u{number}"))
        elif kind < 0.5:
            rows.append(answer(id_, parent, f"a{number}"))
        elif kind < 0.65:
            open_calls = [f"call{number}-{each}" for each in range(chosen.randint(1, 3))]
            rows.append(answer(id_, parent, *map(call, open_calls)))
        elif kind < 0.8 or parent is None:
            rows.append(entry(id_, parent, "label", targetId=id_, label="x"))
        else:
            path = path_of(rows, parent)
            # What an earlier compaction left out does not come back.
            shown = path[_start(path) :]
            kept = chosen.choice(
                [*(each["id"] for each in shown if not _is_inside(each)), "missing"]
            )
            rows.append(
                entry(id_, parent, "compaction", summary=f"s{number}", firstKeptEntryId=kept)
            )
        parent = id_
    return rows


def _is_inside(each: Entry) -> bool:
    """Tell whether an entry is between a call and the last result, where no program returns to."""
    message = each.get("message", {})
    calls = any(block["type"] == "toolCall" for block in message.get("content", ()))
    return calls or message.get("role") == "toolResult"


def path_of(rows: list[Entry], last: str | None) -> list[Entry]:
    by_id = {each["id"]: each for each in rows}
    path = []
    while last is not None:
        path.append(by_id[last])
        last = by_id[last]["parentId"]
    return path[::-1]


def _start(path: list[Entry]) -> int:
    """Return where the part of a path that a model is shown starts."""
    at = max((n for n, each in enumerate(path) if each["type"] == "compaction"), default=None)
    if at is None:
        return 0
    kept = path[at]["firstKeptEntryId"]
    return next((n for n, each in enumerate(path[:at]) if each["id"] == kept), at + 1)


def expected(rows: list[Entry]) -> list[str]:
    """The context at the last entry, counted from the tree alone."""
    path = path_of(rows, rows[-1]["id"])
    compactions = [at for at, each in enumerate(path) if each["type"] == "compaction"]
    shown = path
    first: list[str] = []
    if compactions:
        at = compactions[-1]
        kept = path[at]["firstKeptEntryId"]
        start = next((n for n, each in enumerate(path[:at]) if each["id"] == kept), at)
        shown = path[start:at] + path[at + 1 :]
        first = [path[at]["summary"]]
    return first + [
        text for each in shown if each["type"] == "message" for text in _shown(each["message"])
    ]


def _shown(message: dict[str, Any]) -> list[str]:
    if message["role"] == "toolResult":
        return [f"result {message['toolCallId']}"]
    return [
        block["text"] if block["type"] == "text" else f"call {block['id']}"
        for block in message["content"]
    ]


@pytest.mark.parametrize("seed", range(100))
def test_the_context_is_the_path_to_the_last_entry(seed: int, tmp_path: Path) -> None:
    rows = tree(seed)
    if not any(each["type"] == "message" for each in rows):
        rows.append(user("end", rows[-1]["id"], "end"))
    store, report = imported(tmp_path, "s.jsonl", lines_of([HEADER, *rows]))
    found = texts(messages(store, "pi/pi-1"))
    wanted = expected(rows)
    assert found == wanted
    spoken = sum(each["type"] in ("message", "compaction") for each in rows)
    assert sum(n for (_, what), n in report.records.items() if what == "message") == spoken


@settings(max_examples=examples(30), suppress_health_check=list(HealthCheck))
@given(rows=damaged([HEADER, *tree(3), *tree(5)]))
def test_nothing_in_a_file_does_harm(
    rows: list[Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    import_hostile(tmp_path_factory.mktemp("pi"), rows, "pi")


def test_detection(tmp_path: Path) -> None:
    assert FORMAT.sniff(lines_of([HEADER]))
    assert FORMAT.sniff(lines_of([result("a", "b", "t", "x")]))
    assert not FORMAT.sniff(
        lines_of([{"type": "session", "id": "x"}, {"role": "user", "content": "hi"}])
    )
    folder = tmp_path / ".pi" / "agent" / "sessions" / "--work--"
    folder.mkdir(parents=True)
    (folder / "s.jsonl").write_bytes(lines_of([HEADER]))
    environment = Environment(home=str(tmp_path))
    assert FORMAT.finds(environment, "/work", Disk()) == [str(folder / "s.jsonl")]
    assert FORMAT.finds(environment, "/elsewhere", Disk()) == []
