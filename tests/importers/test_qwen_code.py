"""Chats of Qwen Code: Gemini contents in a tree of records, compressions."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from tests.importers.support.checks import assert_grows, damaged, import_hostile, lines_of
from tests.importers.support.sound import branches_of, commits_of, imported, messages
from tests.support.examples import examples
from trace_store.base.environment import Environment
from trace_store.disk.files import Disk
from trace_store.importers.formats.qwen_code import FORMAT
from trace_store.importers.registry import format_of
from trace_store.objects.parts import Text, ToolCall, ToolResult

Row = dict[str, Any]


def row(uuid: str, parent: str | None, type_: str, *parts: Row, **more: Any) -> Row:
    start = {"uuid": uuid, "parentUuid": parent, "sessionId": "q-1", "type": type_, "cwd": "/work"}
    stamp = {"timestamp": "2026-02-01T10:00:00.000Z", "version": "0.18.2"}
    role = "model" if type_ == "assistant" else "user"
    said = {"message": {"role": role, "parts": list(parts)}} if parts else {}
    return {**start, **stamp, **said, **more}


def text(words: str) -> Row:
    return {"text": words}


def compression(uuid: str, parent: str | None, *words: str) -> Row:
    history = [
        {"role": "user" if n % 2 == 0 else "model", "parts": [text(each)]}
        for n, each in enumerate(words)
    ]
    payload = {"info": {"originalTokenCount": 9}, "compressedHistory": history}
    return row(uuid, parent, "system", subtype="chat_compression", systemPayload=payload)


def spoken(tmp_path: Path, rows: list[Row]) -> list[str]:
    store, report = imported(tmp_path, "chat.jsonl", lines_of(rows))
    assert report.format == "qwen-code"
    found = messages(store, "qwen-code/q-1")
    return [part.text for each in found for part in each.parts if isinstance(part, Text)]


def test_a_chat(tmp_path: Path) -> None:
    call = {"functionCall": {"id": "c1", "name": "read_file", "args": {"path": "a.py"}}}
    answer = {"functionResponse": {"id": "c1", "name": "read_file", "response": {"output": "one"}}}
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 3, "totalTokenCount": 13}
    rows = [
        row("u1", None, "user", text("look")),
        row("a1", "u1", "assistant", text("I look."), call, model="qwen3", usageMetadata=usage),
        row("t1", "a1", "tool_result", answer, toolCallResult={"status": "success"}),
        row("s1", "t1", "system", subtype="ui_telemetry", systemPayload={}),
        row("a2", "s1", "assistant", text("old end")),
        row("a3", "s1", "assistant", text("Done.")),
    ]
    store, report = imported(tmp_path, "chat.jsonl", lines_of(rows))
    asked, said, result, done = messages(store, "qwen-code/q-1")
    assert [each.role for each in (asked, said, result, done)] == [
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    assert said.model == "qwen3"
    assert [part.id for part in said.parts if isinstance(part, ToolCall)] == ["c1"]
    assert [part.call_id for part in result.parts if isinstance(part, ToolResult)] == ["c1"]
    assert done.parts[0] == Text("Done.")
    assert branches_of(store) == {"qwen-code/q-1", "qwen-code/q-1/rewinds/a2"}
    reports = [
        o for c in commits_of(store, "qwen-code/q-1") for o in c.operations if o.name == "usage"
    ]
    assert len(reports) == 1
    assert report.records["system:ui_telemetry", "source"] == 1
    assert_grows(tmp_path, lines_of(rows), "grows.jsonl")


@pytest.mark.parametrize("seed", range(50))
def test_the_context_is_the_path_to_the_last_record(seed: int, tmp_path: Path) -> None:
    chosen = random.Random(seed)
    rows: list[Row] = [row("r0", None, "user", text("r0"))]
    shown = {"r0": ["r0"]}
    for number in range(1, chosen.randint(2, 15)):
        uuid = f"r{number}"
        parent = chosen.choice(rows)["uuid"] if chosen.random() < 0.3 else rows[-1]["uuid"]
        kind = chosen.random()
        if kind < 0.6:
            rows.append(row(uuid, parent, chosen.choice(["user", "assistant"]), text(uuid)))
            shown[uuid] = [*shown[parent], uuid]
        elif kind < 0.8:
            rows.append(row(uuid, parent, "system", subtype="slash_command"))
            shown[uuid] = shown[parent]
        else:
            rows.append(compression(uuid, parent, f"{uuid} summary", "Got it."))
            shown[uuid] = [f"{uuid} summary", "Got it."]
    assert spoken(tmp_path, rows) == shown[rows[-1]["uuid"]]


@settings(max_examples=examples(30), suppress_health_check=list(HealthCheck))
@given(
    rows=damaged(
        [
            row("u1", None, "user", text("x")),
            compression("c", "u1", "y"),
            row("a", "c", "assistant", text("z")),
        ]
    )
)
def test_nothing_in_a_file_does_harm(
    rows: list[Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    import_hostile(tmp_path_factory.mktemp("qwen"), rows, "qwen-code")


def test_detection(tmp_path: Path) -> None:
    head = lines_of(
        [row("s", None, "system", subtype="custom_title"), row("u", "s", "user", text("x"))]
    )
    assert format_of(head) is FORMAT
    claude = {
        "uuid": "u",
        "parentUuid": None,
        "sessionId": "s",
        "type": "user",
        "message": {"role": "user", "content": "x"},
    }
    assert not FORMAT.sniff(lines_of([claude]))
    folder = tmp_path / ".qwen" / "projects" / "-work" / "chats"
    folder.mkdir(parents=True)
    (folder / "q-1.jsonl").write_bytes(head)
    environment = Environment(home=str(tmp_path))
    assert FORMAT.finds(environment, "/work", Disk()) == [str(folder / "q-1.jsonl")]
    assert FORMAT.finds(environment, "/elsewhere", Disk()) == []
