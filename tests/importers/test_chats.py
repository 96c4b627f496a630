"""Chats in every provider's format: imports from all files equal `parse_messages`."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from tests.importers.support.checks import (
    JSON,
    assert_grows,
    assert_skips_named,
    damaged,
    lines_of,
    report_of,
)
from tests.importers.support.sound import (
    HEADS,
    branches_of,
    commits_of,
    import_damaged,
    imported,
    messages,
)
from trace_store.context.compiler import ContextCompiler
from trace_store.errors import UnreadableInputError
from trace_store.importers.import_paths import import_paths
from trace_store.importers.registry import format_of
from trace_store.importers.sniff import HEAD_BYTES
from trace_store.objects.parts import Image, Opaque, Text, ToolCall
from trace_store.providers.documents import parse_messages
from trace_store.store.store import Store
from trace_store.writer import Writer

ARGUMENTS = '{ "city" : "Oslo" }'
SYSTEM = {"role": "system", "content": "Be brief, and be kind, whatever people may say to you."}
ASKS = {"role": "user", "content": "What is the weather in Oslo, and what was it yesterday?"}
CALLS = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": f"call_{n}", "type": "function", "function": {"name": "wx", "arguments": ARGUMENTS}}
        for n in (1, 2)
    ],
}
GIVES = {"role": "tool", "tool_call_id": "call_1", "content": "4 °C"}
GIVES_TOO = {"role": "tool", "tool_call_id": "call_2", "content": "5 °C"}
ANSWERS = {"role": "assistant", "content": "It is colder than yesterday.", "name": "ada"}
CHAT: list[dict[str, Any]] = [SYSTEM, ASKS, CALLS, GIVES, GIVES_TOO, ANSWERS]
TOOL = {"type": "function", "function": {"name": "wx", "parameters": {"type": "object"}}}
PIXEL = "iVBORw0KGgo="

ANTHROPIC: dict[str, Any] = {
    "model": "claude-opus-4-6",
    "max_tokens": 100,
    "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
    "tools": [{"name": "wx", "input_schema": {"type": "object"}}],
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is the weather here?"},
                {
                    "type": "image",
                    "source": {"type": "base64", "media_type": "image/png", "data": PIXEL},
                },
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "A map, I see.", "signature": "Eos"},
                {"type": "tool_use", "id": "toolu_1", "name": "wx", "input": {"city": "Oslo"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": "timeout"},
                {"type": "text", "text": "Try again."},
            ],
        },
    ],
}
ITEMS: list[dict[str, Any]] = [
    {"role": "user", "content": "What is the weather?"},
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"},
    {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "wx", "arguments": ARGUMENTS},
    {"type": "function_call_output", "call_id": "c1", "output": "4 °C"},
    {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "4 °C.", "annotations": []}],
    },
    {
        "type": "message",
        "id": "msg_2",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "Cold."}],
    },
]
RESPONSES = {"model": "gpt-5", "instructions": "Be brief.", "input": ITEMS}
CONTENTS: list[dict[str, Any]] = [
    {"role": "user", "parts": [{"text": "What is the weather?"}]},
    {
        "role": "model",
        "parts": [
            {"functionCall": {"name": "wx", "args": {"city": "Oslo"}}, "thoughtSignature": "CiQB"},
            {"functionCall": {"name": "wx", "args": {"city": "Bergen"}}},
        ],
    },
    {
        "role": "user",
        "parts": [
            {"functionResponse": {"name": "wx", "response": {"output": "4 °C"}}},
            {"functionResponse": {"name": "wx", "response": {"error": "no such place"}}},
        ],
    },
    {"role": "model", "parts": [{"text": "4 °C."}]},
]
GEMINI = {"systemInstruction": {"parts": [{"text": "Be brief."}]}, "contents": CONTENTS}
HUMAN = {"type": "human", "data": {"content": "What is the weather?"}}
LANGCHAIN = [HUMAN, {"type": "ai", "data": {"content": "Cold.", "tool_calls": []}}]
TRACE = {
    "format": "trace/1",
    "messages": [{"role": "user", "kind": "dialogue", "parts": [{"type": "text", "text": "Hi."}]}],
    "tools": [],
}

SHAPES: dict[str, tuple[str, Any]] = {
    "a list": ("openai", CHAT),
    "messages": ("openai", {"messages": CHAT, "tools": [TOOL]}),
    "a request": ("openai", {"model": "gpt-5", "messages": CHAT}),
    "text alone": ("openai", [ASKS, ANSWERS]),
    "anthropic": ("anthropic", ANTHROPIC),
    "a list for anthropic": ("anthropic", ANTHROPIC["messages"]),
    "text alone for claude": ("anthropic", {"model": "claude-x", "messages": [ASKS]}),
    "responses": ("openai-responses", RESPONSES),
    "a list of items": ("openai-responses", ITEMS),
    "an output": (
        "openai-responses",
        {"object": "response", "model": "gpt-5", "output": [*ITEMS[1:3], ITEMS[4]]},
    ),
    "gemini": ("gemini-contents", GEMINI),
    "a list of contents": ("gemini-contents", CONTENTS),
    "a candidate": (
        "gemini-contents",
        {"modelVersion": "gemini-3-pro", "candidates": [{"content": CONTENTS[3]}]},
    ),
    "langchain": ("langchain", LANGCHAIN),
    "langchain in messages": ("langchain", {"messages": LANGCHAIN}),
    "a choice": (
        "openai",
        {
            "id": "chatcmpl-1",
            "model": "gpt-5",
            "choices": [{"index": 0, "message": ANSWERS, "finish_reason": "stop"}],
        },
    ),
    "anthropic's answer": (
        "anthropic",
        {"id": "msg_1", "type": "message", "model": "claude-x", **ANTHROPIC["messages"][1]},
    ),
    "trace": ("trace-json", TRACE),
}
WRITTEN: dict[str, Callable[[Any], str]] = {
    "minified": lambda value: json.dumps(value, separators=(",", ":")),
    "as Python writes": json.dumps,
    "for people": lambda value: json.dumps(value, indent=2, ensure_ascii=False) + "\n",
    "on one line": lambda value: json.dumps(value, ensure_ascii=False) + "\n",
    "with a mark": lambda value: "\ufeff" + json.dumps(value, indent=1),
}


def usages(store: Store, branch: str) -> list[Any]:
    return [
        operation.fields
        for commit in commits_of(store, branch)
        for operation in commit.operations
        if operation.name == "usage"
    ]


@pytest.mark.parametrize("written", WRITTEN)
@pytest.mark.parametrize("shape", SHAPES)
def test_an_import_says_what_a_commit_of_it_says(tmp_path: Path, shape: str, written: str) -> None:
    format, value = SHAPES[shape]
    text = WRITTEN[written](value)
    store, report = imported(tmp_path, "chat.json", text.encode())
    assert report.format == format
    assert branches_of(store) == {f"{format}/chat"}
    assert messages(store, f"{format}/chat") == parse_messages(text)


@pytest.mark.parametrize("shape", ["a list", "a list of items", "a list of contents", "langchain"])
def test_a_message_a_line(tmp_path: Path, shape: str) -> None:
    format, value = SHAPES[shape]
    data = lines_of(value)
    store, report = imported(tmp_path, "chat.jsonl", data)
    assert report.format == format
    assert report.record_count == len(value)
    expected = parse_messages(json.dumps(value))
    if shape == "a list of items":
        # What items without a message are called is known only when all are at hand.
        assert [m.parts for m in messages(store, f"{format}/chat")] == [m.parts for m in expected]
    else:
        assert messages(store, f"{format}/chat") == expected


def test_elements_on_lines_of_their_own(tmp_path: Path) -> None:
    text = "[\n" + ",\n".join(json.dumps(form) for form in CHAT) + "\n]\n"
    store, _ = imported(tmp_path, "chat.json", text.encode())
    assert messages(store, "openai/chat") == parse_messages(json.dumps(CHAT))


def test_arguments_are_kept_as_the_model_wrote_them(tmp_path: Path) -> None:
    store, _ = imported(tmp_path, "chat.json", CHAT)
    calls = [part for m in messages(store, "openai/chat") for part in m.parts]
    assert [c.arguments for c in calls if isinstance(c, ToolCall)] == [ARGUMENTS, ARGUMENTS]


def test_tools_are_in_force_from_the_first_message_on(tmp_path: Path) -> None:
    store, _ = imported(tmp_path, "chat.json", {"messages": CHAT, "tools": [TOOL]})
    first, *others = commits_of(store, "openai/chat")
    assert [operation.name for operation in first.operations] == ["tools", "add"]
    assert not any(o.name == "tools" for commit in others for o in commit.operations)
    assert ContextCompiler(store).compile(HEADS + "openai/chat").tools == (TOOL,)


RESPONSE = {
    "id": "chatcmpl-1",
    "created": 1700000000,
    "model": "gpt-5-2025",
    "choices": [
        {"index": 0, "message": CALLS, "finish_reason": "tool_calls"},
        {"index": 1, "message": ANSWERS, "finish_reason": "stop"},
    ],
    "usage": {"prompt_tokens": 90, "completion_tokens": 7, "total_tokens": 97},
}
REQUEST = {"model": "gpt-5", "messages": CHAT[:2], "tools": [TOOL]}
PAIRS = {
    "side by side": {"request": REQUEST, "response": RESPONSE},
    "in one": {**REQUEST, "response": RESPONSE},
    "of a batch": {"custom_id": "a", "body": REQUEST, "response": {"body": RESPONSE}},
}


@pytest.mark.parametrize("pair", PAIRS)
def test_a_request_and_its_response(tmp_path: Path, pair: str) -> None:
    store, _ = imported(tmp_path, "pair.json", PAIRS[pair])
    said = messages(store, "openai/pair")
    assert [message.role for message in said] == ["system", "user", "assistant"]
    assert (said[2].id, said[2].model) == ("chatcmpl-1", "gpt-5-2025")
    (usage,) = usages(store, "openai/pair")
    assert (usage["input_total"], usage["output_total"]) == (90, 7)
    last = commits_of(store, "openai/pair")[-1]
    assert (last.author, last.time) == ("openai/gpt-5-2025", 1700000000000)


def test_usage_of_each_provider(tmp_path: Path) -> None:
    answers = {
        "anthropic": {
            **ANTHROPIC["messages"][1],
            "type": "message",
            "id": "msg_1",
            "model": "claude-x",
            "usage": {"input_tokens": 5, "cache_read_input_tokens": 4, "output_tokens": 3},
        },
        "openai-responses": {
            "object": "response",
            "model": "gpt-5",
            "created_at": 1700000000,
            "output": ITEMS[1:3],
            "usage": {"input_tokens": 9, "output_tokens": 3, "total_tokens": 12},
        },
        "gemini-contents": {
            "modelVersion": "gemini-3-pro",
            "candidates": [{"content": CONTENTS[3]}],
            "usageMetadata": {
                "promptTokenCount": 9,
                "candidatesTokenCount": 3,
                "totalTokenCount": 12,
            },
        },
    }
    for format, answer in answers.items():
        store, _ = imported(tmp_path, f"{format}.json", {"request": {}, "response": answer})
        (usage,) = usages(store, f"{format}/{format}")
        assert (usage["input_total"], usage["output_total"]) == (9, 3), format


def examples(count: int) -> list[dict[str, Any]]:
    return [
        {
            "messages": [
                SYSTEM,
                {"role": "user", "content": f"Question {n}?"},
                {"role": "assistant", "content": f"Answer {n}."},
            ]
        }
        for n in range(1, count + 1)
    ]


@pytest.mark.parametrize("as_list", [False, True])
def test_each_example_to_learn_from_is_a_conversation(tmp_path: Path, as_list: bool) -> None:
    held = examples(3)
    data = json.dumps(held).encode() if as_list else lines_of(held)
    store, report = imported(tmp_path, "examples.jsonl", data)
    assert branches_of(store) == {
        "openai/examples",
        "openai/examples/conversations/2",
        "openai/examples/conversations/3",
    }
    for number, name in enumerate(sorted(branches_of(store)), 1):
        assert [m.text for m in messages(store, name)][1:] == [
            f"Question {number}?",
            f"Answer {number}.",
        ]
    assert report.record_count == 9


def test_lists_of_messages_on_lines(tmp_path: Path) -> None:
    data = lines_of([held["messages"] for held in examples(2)])
    store, _ = imported(tmp_path, "lists.jsonl", data)
    assert branches_of(store) == {"openai/lists", "openai/lists/conversations/2"}


def log() -> list[dict[str, Any]]:
    """A log in which each request repeats the conversation; the third starts over."""
    later = [SYSTEM, {"role": "user", "content": "Something else."}]
    return [
        {"model": "gpt-5", "messages": CHAT[:2], "response": answer(CHAT[2])},
        {"model": "gpt-5", "messages": CHAT[:5], "response": answer(CHAT[5])},
        {"model": "gpt-5", "messages": later, "response": answer(ANSWERS)},
        {"model": "gpt-5", "messages": [*CHAT, ASKS], "response": answer(ANSWERS)},
    ]


def answer(message: dict[str, Any]) -> dict[str, Any]:
    return {"choices": [{"index": 0, "message": message}], "usage": RESPONSE["usage"]}


def test_a_log_says_everything_again(tmp_path: Path) -> None:
    store, report = imported(tmp_path, "log.jsonl", lines_of(log()))
    assert branches_of(store) == {"openai/log", "openai/log/conversations/2"}
    assert messages(store, "openai/log") == parse_messages(json.dumps([*CHAT, ASKS, ANSWERS]))
    assert len(usages(store, "openai/log")) == 3
    assert [m.text for m in messages(store, "openai/log/conversations/2")] == [
        SYSTEM["content"],
        "Something else.",
        ANSWERS["content"],
    ]
    outcomes = [what for (_, what), count in report.records.items() for _ in range(count)]
    assert outcomes.count("source") == 3 + 6, "what was said before is kept, and not said twice"


@pytest.mark.parametrize(
    "records",
    [CHAT, examples(4), log(), CONTENTS + CONTENTS, ITEMS + ITEMS],
    ids=["messages", "examples", "log", "contents", "items"],
)
def test_a_file_grows_by_lines(tmp_path: Path, records: list[Any]) -> None:
    format = "openai-responses" if records[1].get("type") == "reasoning" else None
    assert_grows(tmp_path, lines_of(records), "grown.jsonl", format)


def test_each_record_is_read_as_what_it_is(tmp_path: Path) -> None:
    mixed = [SYSTEM, *ANTHROPIC["messages"], *ITEMS[1:4], *LANGCHAIN, CONTENTS[0], ANSWERS]
    store, report = imported(tmp_path, "mixed.jsonl", lines_of(mixed))
    assert report.format == "langchain"
    said = messages(store, "langchain/mixed")
    expected = parse_messages(json.dumps(mixed))
    assert [message.parts for message in said] == [message.parts for message in expected]
    assert {what for _, what in report.records} == {"message"}


def test_what_is_damaged_is_kept_and_the_rest_is_read(tmp_path: Path) -> None:
    broken: list[Any] = [
        {"role": "user", "content": "Read me.", "name": 5},
        {"role": "user", "content": [{"type": "text"}]},
        {"role": "assistant", "content": None, "tool_calls": "none"},
        {"role": "keeper", "content": "of the gate"},
        "text alone",
    ]
    store, report = imported(tmp_path, "chat.json", [ASKS, *broken, ANSWERS])
    said = messages(store, "openai/chat")
    assert [message.role for message in said] == [
        "user",
        "user",
        "user",
        "assistant",
        "user",
        "assistant",
    ]
    assert said[1].parts == (Text("Read me."),)
    assert isinstance(said[2].parts[0], Opaque)
    assert [type(part) for part in said[4].parts] == [Opaque]
    assert (report.unread, report.hidden) == (3, 3)
    assert dict(report.records)["unreadable", "not-a-record"] == 1


def test_a_document_that_was_cut(tmp_path: Path) -> None:
    for value in (CHAT, {"messages": CHAT}):
        data = json.dumps(value, indent=1).encode()
        for cut in range(400, len(data), 177):
            store, report = imported(tmp_path, "chat.json", data[:cut])
            assert messages(store, "openai/chat")
            assert [skip.reason for skip in report.skips] == ["cut-short"]


def test_what_is_longer_than_what_is_looked_at(tmp_path: Path) -> None:
    long = {"role": "system", "content": "Be patient. " * (HEAD_BYTES // 10)}
    store, _ = imported(tmp_path, "a.json", [SYSTEM, long, ASKS])
    assert len(messages(store, "openai/a")) == 3
    held = {"messages": [SYSTEM, long, ASKS]}
    store, _ = imported(tmp_path, "b.jsonl", lines_of([held, held]))
    assert branches_of(store) == {"openai/b", "openai/b/conversations/2"}
    whole = {"messages": [SYSTEM, {**ASKS, "content": [picture(HEAD_BYTES)]}, ASKS]}
    store, _ = imported(tmp_path, "c.json", whole)
    assert isinstance(messages(store, "openai/c")[1].parts[0], Image)


def test_a_first_message_that_is_longer_than_what_is_looked_at(tmp_path: Path) -> None:
    long = {"role": "user", "content": [picture(HEAD_BYTES)]}
    source = {"type": "base64", "media_type": "image/png", "data": "A" * 4 * HEAD_BYTES}
    shown = {"role": "user", "content": [{"type": "image", "source": source}]}
    parts = [{"inlineData": {"mimeType": "image/png", "data": "A" * 4 * HEAD_BYTES}}]
    for format, value in {
        "openai": [long, ANSWERS],
        "anthropic": {"model": "claude-x", "max_tokens": 9, "messages": [shown, ANSWERS]},
        "gemini-contents": {"contents": [{"role": "user", "parts": parts}, CONTENTS[3]]},
    }.items():
        store, report = imported(tmp_path, "x.json", value)
        assert report.format == format
        said = messages(store, f"{format}/x")
        assert isinstance(said[0].parts[0], Image)
        assert len(said) == 2


def picture(size: int) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 4 * size}}


def test_standard_input(tmp_path: Path) -> None:
    store = Store.memory()
    (report,) = import_paths(Writer(store), ["-"], stdin=io.BytesIO(lines_of(CHAT))).files
    assert (report.format, report.session) == ("openai", "stdin")


def test_a_session_has_the_name_that_the_file_gives_it(tmp_path: Path) -> None:
    store, _ = imported(tmp_path, "x.json", {"conversation_id": "talk-7", "messages": CHAT})
    assert branches_of(store) == {"openai/talk-7"}


def test_messages_in_a_stream_of_events(tmp_path: Path) -> None:
    events = [
        {"type": "system", "subtype": "init", "session_id": "s"},
        {"type": "assistant", "message": {"model": "claude-x", **ANTHROPIC["messages"][1]}},
        {"type": "user", "message": ANTHROPIC["messages"][2]},
        {"type": "result", "is_error": False},
    ]
    store, report = imported(tmp_path, "x.jsonl", lines_of(events))
    said = messages(store, "anthropic/x")
    assert [(message.role, message.model) for message in said] == [
        ("assistant", "claude-x"),
        ("user", ""),
    ]
    assert dict(report.records) == {
        ("system", "source"): 1,
        ("assistant", "message"): 1,
        ("user", "message"): 1,
        ("result", "source"): 1,
    }


NO_CHATS: list[Any] = [
    {"name": "app", "version": "1.0.0", "scripts": {"test": "run"}, "dependencies": {}},
    {"messages": {"en": "Hello", "de": "Hallo"}},
    {"messages": ["one", "two"]},
    {"messages": []},
    {"messages": [{"id": 1, "text": "Hello", "user": "ada"}]},
    [{"filePath": "a.js", "messages": [{"ruleId": "semi", "severity": 2, "message": "Missing"}]}],
    {"input": "a.ts", "output": [{"file": "a.js", "format": "es"}], "model": "m"},
    {"model": "text-embedding-3-small", "input": ["one", "two"]},
    [{"role": "admin", "name": "ada"}, {"role": "user", "name": "bob"}],
    {"role": "user", "permissions": ["read"]},
    {"contents": [{"name": "a.txt", "type": "file"}]},
    {"choices": [{"text": "yes"}, {"text": "no"}]},
    {"candidates": [{"name": "Ada", "votes": 3}]},
    [{"type": "system", "content": "up"}, {"type": "tool", "content": "down"}],
    {"parts": [{"text": "x"}], "role": "gear"},
    {"type": "message", "channel": "general", "text": "hi"},
    [[1, 2], [3, 4]],
    [],
    {},
    {"steps": [{"run": "make"}], "agent": "ubuntu"},
    {"chapters": [{"title": "One"}], "title": "A book"},
    {"files": [{"path": "a"}]},
    {"history": [{"date": "2026-01-01", "close": 3}]},
    {"trajectory": [{"x": 1, "y": 2}]},
]


@pytest.mark.parametrize("value", NO_CHATS, ids=lambda value: json.dumps(value)[:40])
def test_what_is_no_chat_is_left(tmp_path: Path, value: Any) -> None:
    for text in (json.dumps(value), json.dumps(value, indent=2), json.dumps(value) + "\n"):
        assert format_of(text.encode()) is None
    (tmp_path / "value.json").write_text(json.dumps(value))
    store = Store.memory()
    (report,) = import_paths(Writer(store), [str(tmp_path)]).files
    assert report.skipped == "unknown-format"
    with pytest.raises(UnreadableInputError) as caught:
        import_paths(Writer(store), [str(tmp_path / "value.json")])
    data: dict[str, Any] = caught.value.data
    assert "openai" in data["tried"]
    assert data["looks"] in caught.value.message


@given(JSON)
def test_no_json_is_looked_at_in_vain(value: Any) -> None:
    format_of(json.dumps(value).encode())
    format_of(lines_of([value, value]))


@given(st.binary(max_size=60))
def test_no_bytes_are_looked_at_in_vain(data: bytes) -> None:
    format_of(data)
    format_of(b"{" + data)
    format_of(b'[{"role":"user","content":"' + data)


EVERYTHING: list[Any] = [
    *CHAT,
    *ANTHROPIC["messages"],
    *ITEMS,
    *CONTENTS,
    *LANGCHAIN,
    ANTHROPIC,
    RESPONSES,
    GEMINI,
    TRACE,
    *PAIRS.values(),
    *log(),
]


@given(damaged(EVERYTHING), st.sampled_from(["openai", "trace-json"]))
def test_whatever_lines_hold(
    tmp_path_factory: pytest.TempPathFactory, records: list[Any], format: str
) -> None:
    folder = tmp_path_factory.mktemp("lines")
    path = folder / "x.jsonl"
    path.write_bytes(lines_of(records))
    store = Store.memory()
    assert_skips_named(report_of(store, path, format))


@given(damaged(EVERYTHING))
def test_whatever_a_document_holds(
    tmp_path_factory: pytest.TempPathFactory, records: list[Any]
) -> None:
    for value in (records, records[0]):
        import_damaged(tmp_path_factory.mktemp("document"), value, "openai")
