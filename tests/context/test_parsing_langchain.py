"""Messages of LangChain: three kinds of dumps, and each call counted once."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trace_store.errors import InvalidMessageError
from trace_store.objects.message import Message
from trace_store.objects.parts import Image, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.providers.documents import parse_messages
from trace_store.providers.langchain import is_langchain, message_from_langchain

Form = dict[str, Any]
CALL = {"name": "read", "args": {"p": "a"}, "id": "t1", "type": "tool_call"}
CALL_PART = ToolCall("t1", "read", '{"p":"a"}')
USAGE = {"input_tokens": 10, "output_tokens": 4, "total_tokens": 14}


def read(type_: str, **data: Any) -> Message:
    return message_from_langchain({"type": type_, "data": {"type": type_, **data}}, "m")


def said(*blocks: Any, **data: Any) -> list[Part]:
    return list(read("ai", content=list(blocks), **data).parts)


@pytest.mark.parametrize(
    ("type_", "class_", "role"),
    [
        ("human", "HumanMessage", "user"),
        ("ai", "AIMessage", "assistant"),
        ("system", "SystemMessage", "system"),
        ("ai", "AIMessageChunk", "assistant"),
    ],
)
def test_three_kinds_of_dumps_say_the_same(type_: str, class_: str, role: str) -> None:
    data = {"content": "hi", "name": "ada", "id": "run-1", "additional_kwargs": {}}
    path = ["langchain", "schema", "messages", class_]
    expected = Message(role, "hi", name="ada", id="run-1")
    for form in (
        {"type": type_, "data": {**data, "type": type_}},
        {"lc": 1, "type": "constructor", "id": path, "kwargs": data},
        {"type": class_ if "Chunk" in class_ else type_, **data},
    ):
        assert is_langchain(form)
        assert message_from_langchain(form, "m") == expected
        assert parse_messages(json.dumps([form])) == [expected]


def test_tool_messages() -> None:
    found = read("tool", content="data", tool_call_id="t1", artifact={"rows": [1]}, status="error")
    assert found == Message("tool", [ToolResult("t1", "data", is_error=True)])
    blocks = [
        {"type": "text", "text": "a"},
        {"type": "image", "base64": "AAAA", "mime_type": "x/y"},
    ]
    found = read("tool", content=blocks, tool_call_id="t1", status="success")
    content = [Text("a"), Image("x/y", b"\x00\x00\x00")]
    assert found == Message("tool", [ToolResult("t1", content)])
    assert read("function", content="data", name="read") == Message(
        "tool", [ToolResult("read", "data")]
    )


def test_roles() -> None:
    developer = {"__openai_role__": "developer"}
    assert read("system", content="x", additional_kwargs=developer).role == "developer"
    assert read("chat", content="x", role="developer").role == "developer"
    assert read("chat", content="x", role="human").role == "user"


@pytest.mark.parametrize(
    "content",
    [
        [{"type": "tool_use", "id": "t1", "name": "read", "input": {"p": "a"}}],
        [{"type": "tool_call", "id": "t1", "name": "read", "args": {"p": "a"}}],
        [{"type": "function_call", "call_id": "t1", "name": "read", "arguments": '{"p":"a"}'}],
        [{"type": "non_standard", "value": {**CALL, "type": "tool_use", "input": {"p": "a"}}}],
        # tool_calls has the complete calls that were streamed in pieces.
        [{"type": "tool_use", "id": "t1", "name": "read", "input": {}, "partial_json": "{"}],
        [{"type": "input_json_delta", "partial_json": "{"}],
        "",
    ],
)
def test_a_call_is_counted_once(content: Any) -> None:
    found = read("ai", content=content, tool_calls=[CALL], usage_metadata=USAGE)
    assert found == Message("assistant", [CALL_PART])
    third = {
        "id": "t1",
        "type": "function",
        "function": {"name": "read", "arguments": '{"p": "a"}'},
    }
    found = read("ai", content="", tool_calls=[CALL], additional_kwargs={"tool_calls": [third]})
    assert found == Message("assistant", [ToolCall("t1", "read", '{"p": "a"}')])


def test_calls_stand_where_the_content_has_them() -> None:
    first = {"type": "tool_use", "id": "t1", "name": "read", "input": {"p": "a"}}
    other = {"name": "wx", "args": {}, "id": "t2"}
    torn = {"name": "wx", "args": '{"cut', "id": "t3", "error": "no JSON"}
    found = said(first, "So.", tool_calls=[other, CALL], invalid_tool_calls=[torn])
    assert found == [
        CALL_PART,
        Text("So."),
        ToolCall("t2", "wx", "{}"),
        ToolCall("t3", "wx", '{"cut'),
    ]


def test_several_calls_without_an_id_are_several() -> None:
    calls: list[Form] = [
        {"name": "a", "args": {}, "id": None},
        {"name": "b", "args": {}, "id": None},
    ]
    found = said("So.", tool_calls=calls)
    assert found[1:] == [ToolCall("", "a", "{}"), ToolCall("", "b", "{}")]


def test_the_older_function_call() -> None:
    legacy = {"function_call": {"name": "wx", "arguments": "{}"}}
    assert read("ai", content="", additional_kwargs=legacy).parts == (ToolCall("wx", "wx", "{}"),)
    assert read("ai", content="", additional_kwargs=legacy, tool_calls=[CALL]).parts == (CALL_PART,)


def test_reasoning_in_every_form() -> None:
    item = {"summary": [{"type": "summary_text", "text": "s"}], "encrypted_content": "gA"}
    assert said(
        {"type": "thinking", "thinking": "t", "signature": "Eos"},
        {"type": "reasoning", "reasoning": "r", "extras": {"signature": "CiQB"}},
        {"type": "reasoning", "reasoning": "r"},
        {"type": "reasoning", "id": "rs_1", **item},
    ) == [Reasoning("t", "Eos"), Reasoning("r", "CiQB"), Reasoning("r"), Reasoning("s", "gA")]
    deepseek = {"reasoning_content": "Hm."}
    older = {"reasoning": {"id": "rs_1", **item}, "refusal": "No."}
    assert said("So.", additional_kwargs=deepseek) == [Reasoning("Hm."), Text("So.")]
    refusal = Opaque("openai", b'{"type":"refusal","refusal":"No."}')
    assert said("So.", additional_kwargs=older) == [Reasoning("s", "gA"), Text("So."), refusal]


def test_signatures_of_geminis_calls() -> None:
    block = {"type": "tool_call", "id": "t1", "name": "read", "args": {"p": "a"}}
    assert said({**block, "extras": {"signature": "CiQB"}}, tool_calls=[CALL]) == [
        Reasoning("", "CiQB"),
        CALL_PART,
    ]
    kept = {"__gemini_function_call_thought_signatures__": {"t1": "CiQC"}}
    assert said("So.", tool_calls=[CALL], additional_kwargs=kept) == [
        Text("So."),
        Reasoning("", "CiQC"),
        CALL_PART,
    ]


def test_blocks_of_providers_and_of_langchains_own() -> None:
    file = {"type": "file", "mime_type": "application/pdf", "base64": "AAAA"}
    redacted = {"type": "redacted_thinking", "data": "x"}
    image = {"type": "image", "source": {"type": "url", "url": "https://example.org"}}
    stored = {"type": "image", "file_id": "f"}
    own = [json.dumps(block, separators=(",", ":")).encode() for block in (file, redacted, stored)]
    assert said(
        "a",
        {"type": "text", "text": "b"},
        {"type": "image", "url": "https://example.org"},
        {"type": "image", "source_type": "base64", "data": "AAAA", "mime_type": "image/png"},
        {"type": "image_url", "image_url": {"url": "https://example.org"}},
        image,
        stored,
        file,
        redacted,
    ) == [
        Text("a"),
        Text("b"),
        Image(url="https://example.org"),
        Image("image/png", b"\x00\x00\x00"),
        Image(url="https://example.org"),
        Image(url="https://example.org"),
        Opaque("langchain", own[2]),
        Opaque("langchain", own[0]),
        Opaque("anthropic", own[1]),
    ]


def test_the_model_is_told_by_the_metadata() -> None:
    for metadata in ({"model_name": "gpt-5"}, {"model": "gpt-5"}):
        assert read("ai", content="x", response_metadata=metadata).model == "gpt-5"
    assert read("ai", content="x", response_metadata={"model": 1}).model == ""


def test_constructors_are_read_and_never_called() -> None:
    path = ["subprocess", "HumanMessage"]
    form = {"lc": 1, "type": "constructor", "id": path, "kwargs": {"content": "x"}}
    assert message_from_langchain(form, "m") == Message("user", "x")
    with pytest.raises(InvalidMessageError, match="unknown type of message 'run'"):
        message_from_langchain({**form, "id": ["os", "run"]}, "m")


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ("text", "m: a message must be an object"),
        ({"type": "remove", "data": {"id": "x"}}, "m: it removes a message and is not one itself"),
        ({"type": "telegram", "data": {}}, "m: unknown type of message 'telegram'"),
        ({"type": "ai", "data": []}, "m: data must be an object"),
        ({"type": "ai", "data": {"content": 1}}, "m: content must be a list"),
        ({"type": "ai", "data": {"content": [1]}}, "m: content[0]: a block must be an object"),
        ({"type": "ai", "data": {"content": "", "tool_calls": {}}}, "m: tool_calls must be a list"),
        ({"type": "tool", "data": {"content": ""}}, "m: tool_call_id must be text"),
        ({"type": "chat", "data": {"content": "", "role": "bot"}}, "m: unknown role 'bot'"),
    ],
)
def test_what_is_no_message_is_refused(form: Any, message: str) -> None:
    with pytest.raises(InvalidMessageError) as refused:
        message_from_langchain(form, "m")
    assert message in str(refused.value)


def test_what_is_not_langchains() -> None:
    for form in ({"role": "system", "type": "system", "content": "x"}, {"type": "message"}):
        assert not is_langchain(form)
