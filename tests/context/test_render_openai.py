"""OpenAI chat: rendering of each part."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.pictures import PNG as PNG_BYTES
from tests.support.pictures import PNG_TEXT
from tests.support.valid_requests import assert_valid_requests
from trace_store.objects.message import Message
from trace_store.objects.parts import Image, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.providers.rendering import Rendered, render

PNG = Image("image/png", PNG_BYTES)
PNG_URL = f"data:image/png;base64,{PNG_TEXT}"


def rendered(*messages: Message, tools: list[dict[str, Any]] | None = None) -> Rendered:
    return assert_valid_requests(messages, tools or [])["openai"]


def sent(*messages: Message) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = rendered(*messages).request["messages"]
    return found


def exchange(call: ToolCall, *content: Part, is_error: bool = False) -> list[Message]:
    result = ToolResult(call.id, content, is_error)
    return [Message("assistant", [call]), Message("tool", [result])]


def test_roles_and_plain_text() -> None:
    assert sent(
        Message("system", "Be brief."),
        Message("user", "Hello.", name="ada"),
        Message("assistant", "Hi."),
        Message("developer", "Be long."),
    ) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello.", "name": "ada"},
        {"role": "assistant", "content": "Hi."},
        {"role": "developer", "content": "Be long."},
    ]


def test_several_texts_stay_several_and_images_are_data_urls() -> None:
    parts = [Text("one"), Text(""), PNG, Image(url="https://example.org/a.png"), Text("two")]
    [message] = sent(Message("user", parts))
    assert message["content"] == [
        {"type": "text", "text": "one"},
        {"type": "image_url", "image_url": {"url": PNG_URL}},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        {"type": "text", "text": "two"},
    ]


def test_arguments_go_out_as_the_model_wrote_them() -> None:
    for arguments in ('{"b": 1,  "a": 1.0}', '{"cut', "", '"\\ud83d"'):
        call = ToolCall("call_1", "Bash", arguments)
        message = sent(*exchange(call, Text("out")))[0]
        assert message == {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "call_1",
                    "type": "function",
                    "function": {"name": "Bash", "arguments": arguments},
                }
            ],
        }


def test_free_text_arguments_are_a_custom_call() -> None:
    call = ToolCall("call_1", "apply_patch", "*** Begin", "text")
    [made] = sent(*exchange(call, Text("ok")))[0]["tool_calls"]
    custom = {"name": "apply_patch", "input": "*** Begin"}
    assert made == {"id": "call_1", "type": "custom", "custom": custom}


def test_reasoning_is_never_sent() -> None:
    messages = [
        Message("user", "Why?"),
        Message("assistant", [Reasoning("Hm.", "Eos")]),
        Message("assistant", [Reasoning("Hm."), Text("So.")]),
    ]
    assert sent(*messages)[1:] == [{"role": "assistant", "content": "So."}]
    assert not rendered(*messages).repairs


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ([Text("no such file")], "[tool error]\nno such file"),
        ([], "[tool error]"),
        (
            [Text("a"), Text("b")],
            [{"type": "text", "text": "[tool error]\na"}, {"type": "text", "text": "b"}],
        ),
    ],
)
def test_the_error_flag_is_the_first_line(content: list[Part], expected: object) -> None:
    messages = exchange(ToolCall("a", "Bash", "{}"), *content, is_error=True)
    assert sent(*messages)[1] == {"role": "tool", "tool_call_id": "a", "content": expected}


def test_images_of_results_follow_the_tool_messages() -> None:
    calls = Message("assistant", [ToolCall("a", "Shot", "{}"), ToolCall("b", "Bash", "{}")])
    results = Message(
        "user", [ToolResult("a", [Text("here"), PNG]), ToolResult("b", "ok"), Text("Look.")]
    )
    found = rendered(calls, results)
    assert found.request["messages"][1:] == [
        {
            "role": "tool",
            "tool_call_id": "a",
            "content": [
                {"type": "text", "text": "here"},
                {"type": "text", "text": "[image shown below]"},
            ],
        },
        {"role": "tool", "tool_call_id": "b", "content": "ok"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "[image of tool call a]"},
                {"type": "image_url", "image_url": {"url": PNG_URL}},
            ],
        },
        {"role": "user", "content": "Look."},
    ]
    assert [repair.code for repair in found.repairs] == ["image-moved"]


def test_images_that_cannot_stand_become_notes_and_none_in_the_models_mouth() -> None:
    tiff = Image("image/tiff", b"II*\x00")
    found = rendered(
        Message("user", [tiff, Image(), Image(url="file:///a.png")]),
        Message("system", [PNG]),
        Message("assistant", [Text("See."), PNG]),
    )
    assert [part["text"] for part in found.request["messages"][0]["content"]] == [
        "[image not shown: image/tiff, 4 bytes]",
        "[image not shown: empty]",
        "[image not shown: file:///a.png]",
    ]
    assert found.request["messages"][1]["content"] == "[image not shown: image/png, 67 bytes]"
    assert found.request["messages"][2]["content"] == "See."
    codes = [repair.code for repair in found.repairs]
    assert codes.count("image-left-out") == 5
    assert codes.count("invalid-image") == 1  # the one without data


def test_opaque_parts_go_to_their_own_provider_only() -> None:
    audio = {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}}
    refusal = {"type": "refusal", "refusal": "I will not."}
    source = {"type": "url", "url": "https://example.org/a.pdf"}
    document = Opaque("anthropic", json.dumps({"type": "document", "source": source}).encode())
    found = rendered(
        Message("user", [Opaque("openai", json.dumps(audio).encode()), document]),
        Message("assistant", [Opaque("openai", json.dumps(refusal).encode()), document]),
        Message("user", [Opaque("openai", b"\xff")]),
    )
    assert [message["content"] for message in found.request["messages"]] == [
        [
            audio,
            {"type": "text", "text": "[document not shown: in the form of anthropic]"},
        ],
        [refusal],
        "[content not shown: in the form of openai]",
    ]
    codes = [repair.code for repair in found.repairs]
    assert codes == ["opaque-left-out"] * 3


def test_ids_and_names_that_openai_refuses_are_changed_the_same_everywhere() -> None:
    call = ToolCall("x" * 41, "read file", "{}")
    found = rendered(*exchange(call, Text("out")), tools=[{"name": "read file"}])
    [made] = found.request["messages"][0]["tool_calls"]
    assert made["id"] == found.request["messages"][1]["tool_call_id"] != call.id
    assert made["function"]["name"] == found.request["tools"][0]["function"]["name"]
    assert made["function"]["name"].startswith("read_file_")
    assert sorted(r.code for r in found.repairs) == [
        "call-id-changed",
        "name-changed",
        "name-changed",
    ]


def test_lone_surrogates_are_replaced() -> None:
    found = rendered(Message("user", "a\ud83db"))
    assert found.request["messages"][0]["content"] == "a\ufffdb"
    assert [repair.code for repair in found.repairs] == ["surrogate-replaced"]


def test_tools_in_every_form() -> None:
    schema = {"type": "object", "properties": {"q": {"type": "string"}}}
    tools: list[dict[str, Any]] = [
        {"name": "neutral", "description": "d", "parameters": schema},
        {"name": "theirs", "input_schema": schema, "defer_loading": True},
        {"type": "function", "function": {"name": "own", "parameters": schema, "strict": True}},
        {"type": "function", "name": "flat", "parameters": schema},
        {"type": "custom", "custom": {"name": "patch"}},
        {"type": "web_search_20250305", "name": "web_search"},
    ]
    found = rendered(Message("user", "hi"), tools=tools)
    assert found.request["tools"] == [
        {
            "type": "function",
            "function": {"name": "neutral", "description": "d", "parameters": schema},
        },
        {"type": "function", "function": {"name": "theirs", "parameters": schema}},
        {"type": "function", "function": {"name": "own", "strict": True, "parameters": schema}},
        {"type": "function", "function": {"name": "flat", "parameters": schema}},
        {"type": "custom", "custom": {"name": "patch"}},
    ]
    assert [repair.detail for repair in found.repairs] == [
        "tool 'web_search' is not supported here; left out"
    ]


def test_options_that_mean_nothing_change_nothing() -> None:
    messages = [Message("user", "hi")]
    plain = render("openai", messages)
    assert render("openai", messages, cache="stable", reasoning=False, model="gpt-5") == plain
