"""Sessions of Continue: messages with their context, thoughts, calls and outputs."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from tests.importers.support.sound import damaged_document, import_damaged, imported, messages
from tests.support.examples import examples
from trace_store.base.environment import Environment
from trace_store.disk.files import Disk
from trace_store.importers.formats.continue_dev import FORMAT
from trace_store.objects.parts import Image, Opaque, Reasoning, Text, ToolCall, ToolResult

Item = dict[str, Any]


def item(role: str, content: Any = "", *, context: list[Item] | None = None, **more: Any) -> Item:
    inside = {
        key: more.pop(key)
        for key in ("toolCalls", "toolCallId", "signature", "usage")
        if key in more
    }
    return {
        "message": {"role": role, "content": content, **inside},
        "contextItems": context or [],
        **more,
    }


def call(id_: str) -> Item:
    return {
        "id": id_,
        "type": "function",
        "function": {"name": "read_file", "arguments": '{"path":"a.py"}'},
    }


def state(id_: str, status: str, *outputs: str) -> Item:
    found = [{"content": each, "name": "out", "description": ""} for each in outputs]
    return {"toolCallId": id_, "toolCall": call(id_), "status": status, "output": found or None}


def session(*history: Item) -> Item:
    start = {"sessionId": "s-1", "title": "A chat", "workspaceDirectory": "file:///work"}
    return {**start, "history": list(history), "chatModelTitle": "sonnet"}


def test_a_session(tmp_path: Path) -> None:
    png = {"type": "imageUrl", "imageUrl": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    usage = {"promptTokens": 10, "completionTokens": 3}
    document = session(
        item("user", [{"type": "text", "text": "look"}, png], context=[{"content": "a.py: x = 1"}]),
        item("thinking", "hm", signature="sig"),
        item(
            "assistant",
            "I look.",
            toolCalls=[call("c1"), call("c2"), call("c3")],
            usage=usage,
            toolCallStates=[
                state("c1", "done", "one", "two"),
                state("c2", "canceled"),
                state("c3", "generated"),
            ],
        ),
        item("tool", "one\n\ntwo", toolCallId="c1"),
        item("assistant", "Done.", reasoning={"active": False, "text": "so"}),
        item("wizard", "x"),
    )
    store, report = imported(tmp_path, "s-1.json", document)
    assert (report.format, report.record_count) == ("continue", 6)
    asked, said, results, done, unknown = messages(store, "continue/s-1")
    assert [type(part) for part in asked.parts] == [Text, Text, Image]
    assert said.parts[0] == Reasoning("hm", "sig")
    assert [part.id for part in said.parts if isinstance(part, ToolCall)] == ["c1", "c2", "c3"]
    assert said.model == "sonnet"
    shown = [
        (part.call_id, part.is_error) for part in results.parts if isinstance(part, ToolResult)
    ]
    assert shown == [("c1", False), ("c2", True)]
    assert done.parts[0] == Reasoning("so")
    assert isinstance(unknown.parts[0], Opaque)
    assert report.hidden == 1


@pytest.mark.parametrize("seed", range(30))
def test_a_summary_replaces_what_it_covers(seed: int, tmp_path: Path) -> None:
    chosen = random.Random(seed)
    history: list[Item] = []
    wanted: list[str] = []
    for number in range(chosen.randint(1, 9)):
        role = "assistant" if number % 2 else "user"
        history.append(item(role, f"m{number}"))
        wanted.append(f"m{number}")
        if role == "assistant" and chosen.random() < 0.4:
            history[-1]["conversationSummary"] = f"s{number}"
            wanted = [f"s{number}"]
    store, _ = imported(tmp_path, "s-1.json", session(*history))
    found = messages(store, "continue/s-1")
    assert [part.text for each in found for part in each.parts if isinstance(part, Text)] == wanted


@settings(max_examples=examples(30), suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_no_damage_does_harm(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    document = session(
        item("user", "hi", context=[{"content": "x"}]),
        item("assistant", "y", toolCalls=[call("c1")], toolCallStates=[state("c1", "done", "z")]),
    )
    import_damaged(
        tmp_path_factory.mktemp("damaged"), data.draw(damaged_document(document)), "continue"
    )


def test_where_sessions_are(tmp_path: Path) -> None:
    folder = tmp_path / ".continue" / "sessions"
    folder.mkdir(parents=True)
    (folder / "s-1.json").write_text(
        '{"sessionId": "s-1", "workspaceDirectory": "/work", "history": []}'
    )
    (folder / "sessions.json").write_text("[]")
    environment = Environment(home=str(tmp_path))
    assert FORMAT.finds(environment, "/work", Disk()) == [str(folder / "s-1.json")]
