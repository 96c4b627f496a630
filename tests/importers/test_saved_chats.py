"""Histories of Gemini CLI's `/chat save`, pydantic-ai and Vercel's AI SDK: generated chats, counted independently."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from tests.cli.conftest import ok, repository, trace
from tests.importers.support.checks import lines_of
from tests.importers.support.sound import (
    commits_of,
    damaged_document,
    import_damaged,
    imported,
    messages,
)
from tests.support.command_line import Run, Trace
from tests.support.examples import examples
from trace_store.objects.message import Message
from trace_store.objects.parts import Image, Opaque, Reasoning, Text, ToolCall, ToolResult

__all__ = ["ok", "repository", "trace"]
Json = Any
Step = tuple[str, str]
"""What one step of a chat is, and a word of its text."""


def steps_of(seed: int) -> list[Step]:
    """Return the steps of a chat: prompts, answers, and calls with their results."""
    chosen = random.Random(seed)
    steps: list[Step] = []
    for number in range(chosen.randint(1, 8)):
        steps.append(("user", f"u{number}"))
        for count in range(chosen.randint(0, 3)):
            steps.append(("call", f"c{number}-{count}"))
        steps.append(("answer", f"a{number}"))
    return steps


def as_gemini(steps: list[Step], chosen: random.Random) -> Json:
    contents: list[Json] = []
    for kind, word in steps:
        if kind != "call":
            contents.append(
                {"role": "user" if kind == "user" else "model", "parts": [{"text": word}]}
            )
            continue
        call = {"functionCall": {"name": "look", "args": {"at": word}}}
        if chosen.random() < 0.5:
            call["functionCall"]["id"] = word
        parts = [call] if chosen.random() < 0.5 else [{"text": "I look."}, call]
        answer = {"functionResponse": {**call["functionCall"], "response": {"output": f"r {word}"}}}
        del answer["functionResponse"]["args"]
        contents += [{"role": "model", "parts": parts}, {"role": "user", "parts": [answer]}]
    return {"history": contents, "authType": chosen.choice(["oauth-personal", "gemini-api-key"])}


def as_pydantic_ai(steps: list[Step], chosen: random.Random) -> Json:
    found: list[Json] = []
    waiting: list[Json] = [{"part_kind": "system-prompt", "content": "Be brief."}] * chosen.randint(
        0, 1
    )
    for kind, word in steps:
        if kind == "user":
            waiting = [*waiting, {"part_kind": "user-prompt", "content": word}]
            continue
        found.append({"kind": "request", "instructions": None, "parts": waiting})
        waiting = []
        part: Json = {"part_kind": "text", "content": word}
        if kind == "call":
            given: Json = {"at": word}
            given = json.dumps(given) if chosen.random() < 0.5 else given
            part = {
                "part_kind": "tool-call",
                "tool_name": "look",
                "args": given,
                "tool_call_id": word,
            }
            back = {"part_kind": "tool-return", "tool_name": "look", "content": f"r {word}"}
            waiting = [{**back, "tool_call_id": word}]
        found.append({"kind": "response", "model_name": "gpt-4o", "parts": [part]})
    if waiting:
        found.append({"kind": "request", "parts": waiting})
    return {"messages": found} if chosen.random() < 0.2 else found


def as_ai_sdk(steps: list[Step], chosen: random.Random) -> Json:
    found: list[Json] = []
    parts: list[Json] = []
    for number, (kind, word) in enumerate(steps):
        if kind == "user":
            found.append(
                {"id": f"m{number}", "role": "user", "parts": [{"type": "text", "text": word}]}
            )
            parts = []
            continue
        if not parts:
            found.append({"id": f"m{number}", "role": "assistant", "parts": parts})
        parts.append({"type": "step-start"})
        if kind == "answer":
            parts.append({"type": "text", "text": word, "state": "done"})
            continue
        call = {"type": "tool-look", "toolCallId": word, "input": {"at": word}}
        if chosen.random() < 0.3:
            call = {**call, "type": "dynamic-tool", "toolName": "look"}
        parts.append({**call, "state": "output-available", "output": f"r {word}"})
    return {"id": "chat", "messages": found} if chosen.random() < 0.3 else found


WRITERS = {"gemini-contents": as_gemini, "pydantic-ai": as_pydantic_ai, "ai-sdk": as_ai_sdk}


def spoken(found: list[Message]) -> list[Step]:
    said: list[Step] = []
    for message in found:
        for part in message.parts:
            if isinstance(part, ToolCall):
                said.append(("call", json.loads(part.arguments)["at"]))
            elif isinstance(part, ToolResult):
                (inner,) = part.content
                assert isinstance(inner, Text)
                assert said[-1] == ("call", inner.text.removeprefix("r "))
            elif isinstance(part, Text) and message.role != "system" and part.text != "I look.":
                said.append(("user" if message.role == "user" else "answer", part.text))
    return said


@pytest.mark.parametrize("format", WRITERS)
@pytest.mark.parametrize("seed", range(100))
def test_all_steps_of_a_chat_are_there(format: str, seed: int, tmp_path: Path) -> None:
    steps = steps_of(seed)
    document = WRITERS[format](steps, random.Random(seed))
    store, report = imported(tmp_path, "saved.json", document)
    assert report.format == format
    (branch,) = report.branches
    found = messages(store, branch.ref.removeprefix("refs/heads/sessions/"))
    assert spoken(found) == steps
    kinds = Counter(kind for kind, _ in steps)
    results = [part for each in found for part in each.parts if isinstance(part, ToolResult)]
    assert len(results) == kinds["call"]
    assert all(
        message.role == "tool" for message in found if ToolResult in map(type, message.parts)
    )


@pytest.mark.parametrize("format", ["pydantic-ai", "ai-sdk"])
def test_a_document_on_one_line_and_messages_one_a_line(format: str, tmp_path: Path) -> None:
    document = WRITERS[format](steps_of(4), random.Random(9))
    listed = document["messages"] if isinstance(document, dict) else document
    for name, content in (
        ("line.json", json.dumps({"messages": listed}).encode() + b"\n"),
        ("lines.jsonl", lines_of(listed)),
    ):
        store, report = imported(tmp_path, name, content)
        assert report.format == format
        (branch,) = report.branches
        assert spoken(messages(store, branch.ref.removeprefix("refs/heads/sessions/"))) == steps_of(
            4
        )


def test_members_of_a_pydantic_ai_history(tmp_path: Path) -> None:
    usage = {"input_tokens": 10, "cache_read_tokens": 4, "output_tokens": 3, "details": {}}
    document = [
        {
            "kind": "request",
            "instructions": "Be brief.",
            "parts": [
                {
                    "part_kind": "user-prompt",
                    "content": [
                        "see",
                        {"kind": "binary", "data": "iVBORw0KGgo=", "media_type": "image/png"},
                        {"kind": "image-url", "url": "https://example.com/a.png"},
                        {"kind": "document-url", "url": "https://example.com/a.pdf"},
                    ],
                }
            ],
        },
        {
            "kind": "response",
            "model_name": "m",
            "usage": usage,
            "parts": [
                {"part_kind": "thinking", "content": "hm", "signature": "sig"},
                {"part_kind": "tool-call", "tool_name": "a", "args": None, "tool_call_id": "c1"},
                {"part_kind": "tool-call", "tool_name": "b", "args": {}, "tool_call_id": "c2"},
                {"part_kind": "brand-new", "content": 1},
            ],
        },
        {
            "kind": "request",
            "instructions": "Be long.",
            "parts": [
                {
                    "part_kind": "tool-return",
                    "tool_name": "a",
                    "content": {"x": 1},
                    "tool_call_id": "c1",
                },
                {
                    "part_kind": "retry-prompt",
                    "tool_name": "b",
                    "content": "bad",
                    "tool_call_id": "c2",
                },
            ],
        },
        {"kind": "summary", "parts": [{"part_kind": "text", "content": "x"}]},
    ]
    store, _ = imported(tmp_path, "h.json", document)
    asked, system, said, answered, unknown = sorted(
        messages(store, "pydantic-ai/h"),
        key=lambda each: (
            ["user", "system", "assistant", "tool"].index(each.role)
            if not isinstance(each.parts[0], Opaque)
            else 4
        ),
    )
    assert [type(part) for part in asked.parts] == [Text, Image, Image, Opaque]
    assert system.parts[0] == Text("Be long.")
    assert said.parts[0] == Reasoning("hm", "sig")
    assert [type(part) for part in said.parts[1:]] == [ToolCall, ToolCall, Opaque]
    assert [part.is_error for part in answered.parts if isinstance(part, ToolResult)] == [
        False,
        True,
    ]
    assert isinstance(unknown.parts[0], Opaque)
    reports = [
        o.fields
        for c in commits_of(store, "pydantic-ai/h")
        for o in c.operations
        if o.name == "usage"
    ]
    assert [each["input_total"] for each in reports] == [10]


def test_parts_of_the_ai_sdk(tmp_path: Path) -> None:
    old = {
        "state": "result",
        "toolCallId": "c1",
        "toolName": "w",
        "args": {"a": 1},
        "result": "sunny",
    }
    document = [
        {
            "id": "1",
            "role": "user",
            "parts": [
                {
                    "type": "file",
                    "mediaType": "image/png",
                    "url": "data:image/png;base64,iVBORw0KGgo=",
                },
                {
                    "type": "file",
                    "mediaType": "application/pdf",
                    "url": "https://example.com/a.pdf",
                },
            ],
        },
        {
            "id": "2",
            "role": "assistant",
            "parts": [{"type": "tool-invocation", "toolInvocation": old}],
        },
        {"role": "assistant", "content": "", "toolInvocations": [{**old, "toolCallId": "c2"}]},
        {
            "role": "assistant",
            "content": [
                {
                    "type": "reasoning",
                    "text": "hm",
                    "providerOptions": {"anthropic": {"signature": "sig"}},
                },
                {"type": "tool-call", "toolCallId": "c3", "toolName": "w", "input": {}},
            ],
        },
        {
            "role": "tool",
            "content": [
                {
                    "type": "tool-result",
                    "toolCallId": "c3",
                    "toolName": "w",
                    "output": {"type": "error-text", "value": "no"},
                }
            ],
        },
        {
            "id": "5",
            "role": "assistant",
            "parts": [
                {
                    "type": "tool-x",
                    "toolCallId": "c4",
                    "state": "output-error",
                    "input": {},
                    "errorText": "bad",
                },
                {"type": "data-chart", "data": {"x": 1}},
                {"type": "text", "text": "done", "state": "done"},
            ],
        },
    ]
    store, _ = imported(tmp_path, "chat.json", document)
    found = messages(store, "ai-sdk/chat")
    roles = [
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
        "assistant",
        "tool",
        "assistant",
        "tool",
        "assistant",
    ]
    assert [each.role for each in found] == roles
    assert [type(part) for part in found[0].parts] == [Image, Opaque]
    assert found[5].parts[0] == Reasoning("hm", "sig")
    failed = [
        part.is_error for each in found for part in each.parts if isinstance(part, ToolResult)
    ]
    assert failed == [False, False, True, True]
    assert [type(part) for part in found[-3].parts] == [ToolCall, Opaque]
    assert [type(part) for part in found[-1].parts] == [Text]


def test_what_only_a_user_is_shown_is_no_message_of_its_own(tmp_path: Path) -> None:
    source = {"type": "source-url", "sourceId": "s", "url": "https://example.com"}
    call = {"type": "tool-x", "toolCallId": "c1", "input": {}, "output": "one"}
    document = [
        {"id": "1", "role": "user", "parts": [{"type": "text", "text": "hi"}]},
        {"id": "2", "role": "assistant", "parts": [{"type": "step-start"}, call, source]},
        {"id": "3", "role": "assistant", "parts": [{"type": "data-chart", "data": {}}]},
    ]
    store, report = imported(tmp_path, "chat.json", document)
    asked, said, answered = messages(store, "ai-sdk/chat")
    assert [each.role for each in (asked, said, answered)] == ["user", "assistant", "tool"]
    assert [type(part) for part in said.parts] == [ToolCall, Opaque]
    assert (report.hidden, report.records["assistant", "source"]) == (0, 1)


@pytest.mark.parametrize("format", ["pydantic-ai", "ai-sdk"])
def test_an_unknown_speaker_is_told(format: str, ok: Run, trace: Trace, tmp_path: Path) -> None:
    document = WRITERS[format](steps_of(1), random.Random(3))
    listed = document["messages"] if isinstance(document, dict) else document
    other = (
        {"kind": "dream", "parts": [{"x": 1}]}
        if format == "pydantic-ai"
        else {"role": "wizard", "content": "x"}
    )
    (tmp_path / "h.json").write_text(json.dumps([*listed, other]))
    run = trace("import", "h.json")
    assert run.code == 2
    assert "could not be read" in run.err


@pytest.mark.parametrize("format", WRITERS)
@settings(max_examples=examples(30), suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_no_damage_does_harm(
    format: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    document = WRITERS[format](steps_of(5), random.Random(1))
    document = document if isinstance(document, dict) else {"messages": document}
    import_damaged(
        tmp_path_factory.mktemp("damaged"), data.draw(damaged_document(document)), format
    )
