"""Items of OpenAI's Responses become messages: grouping and content."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trace_store.errors import InvalidMessageError
from trace_store.objects.message import Message
from trace_store.objects.parts import Image, Opaque, Reasoning, Text, ToolCall, ToolResult
from trace_store.providers.documents import parse_messages
from trace_store.providers.fields import Placed
from trace_store.providers.openai_responses import messages_from_responses, place_responses

Item = dict[str, Any]
USER: Item = {"role": "user", "content": "Weather?"}
THOUGHT: Item = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": text} for text in ("First.", "Then.")],
    "encrypted_content": "gAAA+/==",
}
CALL: Item = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "wx",
    "arguments": '{"q":  "Oslo"}',
    "status": "completed",
}
OUTPUT: Item = {"type": "function_call_output", "call_id": "call_1", "output": "4C"}
SAID: Item = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "4 C", "annotations": [{"type": "url_citation"}]}],
}
THOUGHT_PARTS = (Reasoning("First."), Reasoning("Then.", "gAAA+/=="))
CALL_PART = ToolCall("call_1", "wx", '{"q":  "Oslo"}')


def opaque(item: Item) -> Opaque:
    return Opaque("openai", json.dumps(item, separators=(",", ":")).encode())


def test_what_the_model_did_at_a_time_is_one_message() -> None:
    items = [USER, THOUGHT, SAID, CALL, {**CALL, "call_id": "call_2"}, OUTPUT, SAID, SAID]
    other = ToolCall("call_2", "wx", CALL["arguments"])
    fields = {"model": "gpt-5", "id": "msg_1"}
    assert list(place_responses(items, model="gpt-5")) == [
        Placed(0, 1, Message("user", "Weather?")),
        Placed(
            1, 5, Message("assistant", [*THOUGHT_PARTS, Text("4 C"), CALL_PART, other], **fields)
        ),
        Placed(5, 6, Message("tool", [ToolResult("call_1", "4C")])),
        # Two messages right behind each other are two.
        Placed(6, 7, Message("assistant", "4 C", **fields)),
        Placed(7, 8, Message("assistant", "4 C", **fields)),
    ]


def test_a_message_without_text_has_the_id_of_its_first_item() -> None:
    [message] = messages_from_responses([CALL, THOUGHT])
    assert message == Message("assistant", [CALL_PART, *THOUGHT_PARTS], id="fc_1")


def test_items_can_be_read_one_at_a_time() -> None:
    alone = [messages_from_responses([item], "rollout") for item in (USER, THOUGHT, CALL, OUTPUT)]
    assert [[message.role for message in found] for found in alone] == [
        *(["user"], ["assistant"], ["assistant"], ["tool"]),
    ]
    assert alone[1][0].parts == THOUGHT_PARTS


@pytest.mark.parametrize(
    ("item", "parts"),
    [
        ({"summary": []}, [Reasoning("")]),
        ({"summary": [], "encrypted_content": "g"}, [Reasoning("", "g")]),
        ({"summary": [], "encrypted_content": None, "content": None}, [Reasoning("")]),
        (
            {"summary": [], "content": [{"type": "reasoning_text", "text": "raw"}]},
            [Reasoning("raw")],
        ),
    ],
)
def test_reasoning(item: Item, parts: list[Reasoning]) -> None:
    [message] = messages_from_responses([{"type": "reasoning", "id": "rs", **item}])
    assert list(message.parts) == parts


def test_user_content_and_outputs_hold_images_and_files() -> None:
    file = {"type": "input_file", "file_id": "f"}
    stored = {"type": "input_image", "file_id": "f", "detail": "auto"}
    blocks = [
        {"type": "input_text", "text": "see"},
        {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "high"},
        {"type": "input_image", "image_url": "https://example.org/a.png"},
        stored,
        {**file, "prompt_cache_breakpoint": {"mode": "explicit"}},
        {"type": "input_hologram", "data": "x"},
    ]
    parts = [
        Text("see"),
        Image("image/png", b"\x00\x00\x00"),
        Image(url="https://example.org/a.png"),
        opaque(stored),
        opaque(file),
        opaque({"type": "input_hologram", "data": "x"}),
    ]
    asked, answered = messages_from_responses(
        [{"role": "user", "content": blocks}, {**OUTPUT, "output": blocks}]
    )
    assert asked == Message("user", parts)
    assert answered == Message("tool", [ToolResult("call_1", parts)])


@pytest.mark.parametrize(
    ("output", "result"),
    [
        ("", ToolResult("call_1", "")),
        (None, ToolResult("call_1", [])),
        ([], ToolResult("call_1", [])),
        ({"content": "4C", "success": True}, ToolResult("call_1", "4C")),
        ({"content": "no", "success": False}, ToolResult("call_1", "no", is_error=True)),
    ],
)
def test_outputs_as_they_are_recorded(output: object, result: ToolResult) -> None:
    [message] = messages_from_responses([{**OUTPUT, "output": output}])
    assert message == Message("tool", [result])


def test_custom_calls_are_text() -> None:
    call = {"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": "*** x"}
    answer = {"type": "custom_tool_call_output", "call_id": "c", "output": "ok"}
    assert messages_from_responses([call, answer]) == [
        Message("assistant", [ToolCall("c", "patch", "*** x", "text")]),
        Message("tool", [ToolResult("c", "ok")]),
    ]


def test_what_must_be_sent_again_is_a_frame() -> None:
    said, call = {**SAID, "phase": "commentary"}, {**CALL, "namespace": "files", "caller": None}
    [message] = messages_from_responses([said, call])
    assert list(message.parts) == [
        opaque({"type": "message", "phase": "commentary"}),
        Text("4 C"),
        opaque({"type": "function_call", "call_id": "call_1", "namespace": "files"}),
        CALL_PART,
    ]


def test_other_items_are_kept_and_stand_on_the_side_they_came_from() -> None:
    search = {"type": "web_search_call", "id": "ws_1", "action": {"query": "é"}}
    shell = {"type": "local_shell_call", "call_id": "s", "action": {}}
    answer = {"type": "local_shell_call_output", "id": "s", "output": "{}"}
    unknown = {"type": "dream_call", "id": "d"}
    messages = messages_from_responses([search, shell, answer, unknown])
    kept = Opaque("openai", json.dumps(search, ensure_ascii=False, separators=(",", ":")).encode())
    assert messages == [
        Message("assistant", [kept, opaque(shell)], id="ws_1"),
        Message("user", [opaque(answer)], id="s"),
        Message("assistant", [opaque(unknown)], id="d"),
    ]


def test_messages_between_agents_are_the_users() -> None:
    item = {
        "type": "agent_message",
        "author": "/root/review",
        "recipient": "/root",
        "content": [{"type": "input_text", "text": "Done."}],
    }
    assert messages_from_responses([item]) == [Message("user", "Done.", name="/root/review")]


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ("text", "rollout[1]: an item must be an object"),
        ({}, "rollout[1]: an item needs a type"),
        ({"type": 1}, "rollout[1]: an item needs a type"),
        ({"role": "user"}, "rollout[1]: a message needs content"),
        ({"role": "bot", "content": "a"}, "rollout[1]: unknown role 'bot'"),
        ({"role": "user", "content": [1]}, "rollout[1]: content[0]: a block must be an object"),
        ({"type": "message", "content": "a"}, "rollout[1]: role must be text"),
        ({"type": "reasoning", "summary": "x"}, "rollout[1]: summary must be a list"),
        ({"type": "reasoning", "summary": ["x"]}, "rollout[1]: a summary must be an object"),
        ({"type": "reasoning", "encrypted_content": 1}, "encrypted_content must be text"),
        ({"type": "function_call", "name": "x"}, "rollout[1]: call_id must be text"),
        ({"type": "function_call", "call_id": "x"}, "rollout[1]: name must be text"),
        ({"type": "function_call_output", "output": ""}, "rollout[1]: call_id must be text"),
        ({**OUTPUT, "output": 1}, "rollout[1]: output: must be text or a list of blocks"),
    ],
)
def test_a_damaged_item_is_refused_with_its_place(item: object, message: str) -> None:
    with pytest.raises(InvalidMessageError) as refused:
        messages_from_responses([USER, item], "rollout")
    assert message in str(refused.value)
    assert str(refused.value.where).startswith("rollout[1]")


def test_requests_and_responses_are_told_by_content() -> None:
    items = [USER, THOUGHT, CALL, OUTPUT, SAID]
    messages = messages_from_responses(items)
    assert parse_messages(json.dumps(items[1:])) == messages[1:]
    lines = "\n".join(json.dumps(item) for item in items)
    assert [m.role for m in parse_messages(lines)] == [m.role for m in messages]
    request = {"model": "gpt-5", "instructions": "Be brief.", "input": items, "store": False}
    assert parse_messages(json.dumps(request)) == [Message("system", "Be brief."), *messages]
    assert parse_messages(json.dumps({"input": "Weather?"})) == messages[:1]
    response = {
        "id": "resp_1",
        "object": "response",
        "model": "gpt-5-2025-08-07",
        "instructions": "Be brief.",
        "output": [THOUGHT, CALL],
        "usage": {"input_tokens": 1},
    }
    assert parse_messages(json.dumps(response)) == messages_from_responses(
        [THOUGHT, CALL], model="gpt-5-2025-08-07"
    )
    [framed] = parse_messages(json.dumps({**SAID, "phase": "final_answer"}))
    assert framed.parts[0] == opaque({"type": "message", "phase": "final_answer"})
