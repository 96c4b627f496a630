"""Messages typed as JSON: every shape, and where the bad ones are."""

from __future__ import annotations

import json
from typing import Any

import pytest
from anthropic.types import Message as AnthropicMessage
from google.genai.types import Content, GenerateContentResponse
from openai.types.chat import ChatCompletion, ChatCompletionMessage
from openai.types.responses import Response, ResponseFunctionToolCall, ResponseReasoningItem

from trace_store.errors import InvalidInputError, InvalidMessageError, UnreadableInputError
from trace_store.objects.message import Message
from trace_store.objects.parts import Image, Opaque, Reasoning, Text, ToolCall, ToolResult
from trace_store.providers.documents import parse_messages, read_messages
from trace_store.providers.rendering import RENDERERS, render
from trace_store.providers.wire import to_bytes

CHAT: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "name": "ada", "content": [{"type": "text", "text": "Weather?"}]},
    {
        "role": "assistant",
        "content": None,
        "reasoning_content": "Hm.",
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "wx", "arguments": '{"q": 1}'}},
            {"id": "b", "type": "custom", "custom": {"name": "patch", "input": "***"}},
        ],
    },
    {"role": "tool", "tool_call_id": "a", "content": "4C"},
]
CHAT_MESSAGES = [
    Message("system", "Be brief."),
    Message("user", "Weather?", name="ada"),
    Message(
        "assistant",
        [
            Reasoning("Hm."),
            ToolCall("a", "wx", '{"q": 1}'),
            ToolCall("b", "patch", "***", "text"),
        ],
    ),
    Message("tool", [ToolResult("a", "4C")]),
]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(CHAT),
        json.dumps(CHAT, indent=2),
        json.dumps({"messages": CHAT, "model": "gpt-5"}),
        "\n".join(json.dumps(each) for each in CHAT),
        "\r\n".join(json.dumps(each) for each in CHAT) + "\r\n\r\n",
        f"\ufeff{json.dumps(CHAT)}",
        json.dumps(CHAT[:2]) + "\n" + json.dumps({"messages": CHAT[2:]}) + "\n",
    ],
    ids=["list", "indented", "object", "lines", "windows lines", "byte order mark", "mixed"],
)
def test_every_framing_gives_the_same_messages(text: str) -> None:
    assert parse_messages(text) == CHAT_MESSAGES


def test_one_message() -> None:
    assert parse_messages('{"role": "user", "content": "hi"}') == [Message("user", "hi")]


def test_line_separators_inside_a_text_end_no_line() -> None:
    lines = '{"role":"user","content":"a\u2028b"}\n{"role":"user","content":"c\x85d"}'
    assert [message.text for message in parse_messages(lines)] == ["a\u2028b", "c\x85d"]


def test_anthropic_blocks() -> None:
    document = {"type": "document", "source": {"type": "text", "data": "é"}}
    request = {
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {
                "role": "user",
                "content": [
                    {
                        "type": "image",
                        "source": {"type": "base64", "media_type": "image/png", "data": "AA=="},
                    },
                    {"type": "image", "source": {"type": "url", "url": "https://example.org"}},
                    {"type": "image", "source": {"type": "file", "file_id": "f"}},
                    {**document, "cache_control": {"type": "ephemeral"}},
                ],
            },
            {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": "claude-opus-4-6",
                "stop_reason": "tool_use",
                "usage": {"input_tokens": 1},
                "content": [
                    {"type": "thinking", "thinking": "Hm.", "signature": "Eos"},
                    {"type": "tool_use", "id": "t", "name": "wx", "input": {"b": 1, "a": "é"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "t",
                        "is_error": True,
                        "content": [{"type": "text", "text": "no"}],
                    },
                    {"type": "tool_result", "tool_use_id": "u"},
                ],
            },
        ],
    }
    assert parse_messages(json.dumps(request)) == [
        Message("system", "Be brief."),
        Message(
            "user",
            [
                Image("image/png", b"\x00"),
                Image(url="https://example.org"),
                Opaque("anthropic", b'{"type":"image","source":{"type":"file","file_id":"f"}}'),
                Opaque(
                    "anthropic",
                    '{"type":"document","source":{"type":"text","data":"é"}}'.encode(),
                ),
            ],
        ),
        Message(
            "assistant",
            [Reasoning("Hm.", "Eos"), ToolCall("t", "wx", '{"b":1,"a":"é"}')],
            model="claude-opus-4-6",
            id="msg_1",
        ),
        Message("user", [ToolResult("t", "no", is_error=True), ToolResult("u", [])]),
    ]


def test_openai_blocks() -> None:
    audio = {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}}
    content = [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
        {"type": "image_url", "image_url": {"url": "https://example.org"}},
        audio,
    ]
    lines = [
        {"role": "user", "content": content},
        {"role": "assistant", "content": None, "refusal": "No."},
    ]
    found = parse_messages(json.dumps(lines))
    assert found == [
        Message(
            "user",
            [
                Image("image/png", b"\x00"),
                Image(url="https://example.org"),
                Opaque("openai", json.dumps(audio, separators=(",", ":")).encode()),
            ],
        ),
        Message("assistant", [Opaque("openai", b'{"type":"refusal","refusal":"No."}')]),
    ]


@pytest.mark.parametrize("renderer", [name for name in RENDERERS if name != "text"])
def test_what_is_rendered_can_be_read_again(renderer: str) -> None:
    request = to_bytes(render(renderer, CHAT_MESSAGES[:2]).request).decode()
    names = {"anthropic": "", "gemini": "", "openai-responses": ""}
    expected = [
        Message("system", "Be brief."),
        Message("user", "Weather?", name=names.get(renderer, "ada")),
    ]
    assert parse_messages(request) == expected


def test_the_older_functions_of_openai() -> None:
    lines = [
        {"role": "assistant", "content": None, "function_call": {"name": "wx", "arguments": "{}"}},
        {"role": "function", "name": "wx", "content": "4C"},
    ]
    assert parse_messages(json.dumps(lines)) == [
        Message("assistant", [ToolCall("wx", "wx", "{}")]),
        Message("tool", [ToolResult("wx", "4C")]),
    ]


def test_what_compatible_servers_and_audio_models_add() -> None:
    lines = [
        {"role": "assistant", "content": "So.", "reasoning": "Hm.", "reasoning_details": [{}]},
        {"role": "assistant", "content": None, "audio": {"id": "audio_1", "transcript": "Hello."}},
    ]
    assert parse_messages(json.dumps(lines)) == [
        Message("assistant", [Reasoning("Hm."), Text("So.")]),
        Message("assistant", "Hello."),
    ]


def test_a_response_of_chat_completions() -> None:
    response = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": "gpt-5",
        "choices": [{"index": 0, "message": CHAT[2], "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 1},
    }
    expected = Message("assistant", CHAT_MESSAGES[2].parts, model="gpt-5", id="chatcmpl-1")
    assert parse_messages(json.dumps(response)) == [expected]


def test_one_list_may_mix_every_shape() -> None:
    """Each message is parsed by itself; only items of Responses depend on neighbours."""
    mixed = [
        CHAT[1],
        {"type": "reasoning", "summary": [], "encrypted_content": "gAAA"},
        {"type": "function_call", "call_id": "a", "name": "wx", "arguments": "{}"},
        {"role": "model", "parts": [{"text": "4 C"}]},
        {"type": "human", "data": {"content": "And Rome?"}},
        {"role": "user", "kind": "artifact", "parts": [{"type": "text", "text": "Rome"}]},
        {"role": "user", "parts": [{"text": "Well?"}]},
    ]
    assert parse_messages(json.dumps(mixed)) == [
        CHAT_MESSAGES[1],
        Message("assistant", [Reasoning("", "gAAA"), ToolCall("a", "wx", "{}")]),
        Message("assistant", "4 C"),
        Message("user", "And Rome?"),
        Message("user", "Rome", kind="artifact"),
        Message("user", "Well?"),
    ]


def test_lone_surrogates_are_kept() -> None:
    [message] = parse_messages('{"role": "user", "content": "a\\ud83d"}')
    assert message.parts == (Text("a\ud83d"),)
    [other] = parse_messages('{"role":"user","content":[{"type":"document","text":"\\ud83d"}]}')
    assert other.parts == (Opaque("anthropic", b'{"type":"document","text":"\\ud83d"}'),)


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("", 1, 1, "the input is empty"),
        (" \n\n", 1, 1, "the input is empty"),
        ("[]", 1, 1, "the input has no message"),
        ("hello", 1, 1, "line 1, column 1: not JSON: expecting value"),
        ('{"role": "user",\n "content": }', 2, 13, "line 2, column 13: not JSON: expecting value"),
        (
            '{"role": "user", "content": "a"}\n\n{"role": "user", "content" "b"}\n',
            3,
            28,
            "line 3, column 28: not JSON: expecting ':' delimiter",
        ),
        ('{"role": "user", "content": "a"} x', 1, 34, "line 1, column 34: not JSON: extra data"),
        ('{"role": "user", "content": NaN}', 1, 1, "line 1: not JSON that can be kept: NaN"),
        ("[" * 300 + "]" * 300, 1, 1, "nested too deeply"),
        ("[" * 100_000, 1, 1, "nested too deeply"),
    ],
)
def test_what_is_not_json_names_line_and_column(
    text: str, line: int, column: int, message: str
) -> None:
    with pytest.raises(UnreadableInputError) as refused:
        parse_messages(text)
    assert message in str(refused.value)
    assert (refused.value.line, refused.value.column) == (line, column)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (1, "message 1: a message must be an object"),
        ([{"role": "user", "content": "a"}, "b"], "message 2: a message must be an object"),
        ({"content": "a"}, "message 1: a message needs a role"),
        ({"role": "usr", "content": "a"}, "message 1: unknown role 'usr'; did you mean 'user'?"),
        ({"role": "user"}, "message 1: a message needs content"),
        ({"role": "user", "content": 1}, "message 1: content: must be text or a list"),
        ({"role": "user", "content": [1]}, "message 1: content[0]: a block must be"),
        ({"role": "user", "content": "a", "name": 1}, "message 1: name must be text"),
        ({"role": "user", "content": [{"type": "text"}]}, "content[0]: text must be text"),
        ({"role": "user", "content": [{"type": "image"}]}, "an image needs a source"),
        (
            {"role": "user", "content": [{"type": "image_url", "image_url": "data:a;base64,?"}]},
            "the image is not base64",
        ),
        ({"role": "tool", "content": "4C"}, "message 1: a tool message needs a tool_call_id"),
        ({"role": "assistant", "tool_calls": {}}, "tool_calls must be a list"),
        ({"role": "assistant", "tool_calls": [{}]}, "tool_calls[0]: a call needs a function"),
        (
            {"role": "assistant", "tool_calls": [{"function": {"name": "x"}}]},
            "tool_calls[0]: id must be text",
        ),
        ({"messages": 1}, "messages must be a list"),
        ({"input": 1}, "input must be text or a list"),
        ({"output": {}}, "output must be a list"),
        (
            [
                {"role": "user", "content": "a"},
                *2 * [{"type": "reasoning"}],
                {"type": "reasoning", "summary": 1},
            ],
            "message 4: summary must be a list",
        ),
        ({"input": [{"role": "user", "content": "a"}, {"type": 1}]}, "message 2: an item needs"),
        ({"candidates": {}}, "candidates must be a list"),
        ({"candidates": [1]}, "candidates[0]: a candidate must be an object"),
        ({"candidates": [{}]}, "message 1: a content must be an object"),
        ({"choices": [{}]}, "choices[0]: a message must be an object"),
        ({"contents": [1]}, "message 1: a content must be an object"),
        ([{"role": "user", "content": "a"}, {"type": "telegram", "role": "x"}], "message 2: "),
        ({"role": "user", "parts": []}, None),
    ],
)
def test_what_is_no_message_is_refused_with_its_place(value: object, message: str | None) -> None:
    if message is None:
        assert parse_messages(json.dumps(value)) == [Message("user", [])]
        return
    with pytest.raises(InvalidMessageError) as refused:
        parse_messages(json.dumps(value))
    assert message in str(refused.value)


def test_a_damaged_lossless_document_names_the_place() -> None:
    with pytest.raises(InvalidInputError, match=r"^messages\[0\].parts: expected a list"):
        parse_messages('{"format": "trace/1", "messages": [{"role": "user"}]}')
    with pytest.raises(InvalidInputError, match=r"^message 1.parts\[0\].text: expected text"):
        parse_messages('{"role": "user", "parts": [{"type": "text"}]}')


def test_messages_and_objects_of_the_providers_packages() -> None:
    chat = ChatCompletionMessage.model_validate(CHAT[2])
    items = [
        {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "gAAA"},
        {"type": "function_call", "call_id": "c", "name": "wx", "arguments": "{}"},
    ]
    output = [
        ResponseReasoningItem.model_validate(items[0]),
        ResponseFunctionToolCall.model_validate(items[1]),
    ]
    block = {"type": "thinking", "thinking": "Hm.", "signature": "Eos"}
    claude = AnthropicMessage.model_construct(
        id="msg_1", role="assistant", model="claude-opus-4-6", content=[block], type="message"
    )
    content = Content.model_validate_json(
        '{"role":"model","parts":[{"text":"So.","thoughtSignature":"CiQB"}]}'
    )
    own = Message("user", "Go on.")
    assert read_messages([own, chat, *output, claude, content, CHAT[3]]) == [
        own,
        CHAT_MESSAGES[2],
        Message("assistant", [Reasoning("", "gAAA"), ToolCall("c", "wx", "{}")], id="rs"),
        Message("assistant", [Reasoning("Hm.", "Eos")], model="claude-opus-4-6", id="msg_1"),
        Message("assistant", [Reasoning("", "CiQB"), Text("So.")]),
        CHAT_MESSAGES[3],
    ]


def test_whole_responses_of_the_providers_packages() -> None:
    chat = ChatCompletion.model_construct(
        id="chatcmpl-1", model="gpt-5", choices=[{"index": 0, "message": CHAT[2]}]
    )
    output = [
        {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "gAAA"},
        {"type": "function_call", "call_id": "c", "name": "wx", "arguments": "{}"},
    ]
    response = Response.model_construct(id="resp_1", model="gpt-5-2025-08-07", output=output)
    gemini = GenerateContentResponse.model_validate(
        {
            "candidates": [{"content": {"role": "model", "parts": [{"text": "Rain."}]}}],
            "modelVersion": "gemini-3-pro",
        }
    )
    said = [Reasoning("", "gAAA"), ToolCall("c", "wx", "{}")]
    assert read_messages([chat, response, CHAT[3], gemini]) == [
        Message("assistant", CHAT_MESSAGES[2].parts, model="gpt-5", id="chatcmpl-1"),
        Message("assistant", said, model="gpt-5-2025-08-07", id="rs"),
        CHAT_MESSAGES[3],
        Message("assistant", "Rain.", model="gemini-3-pro"),
    ]


@pytest.mark.parametrize("value", [1, "text", None, [CHAT[0]], Message, ChatCompletionMessage])
def test_what_is_no_message_at_all(value: Any) -> None:
    with pytest.raises(InvalidMessageError, match=r"^message 2: \w+ is not a message$"):
        read_messages([CHAT[0], value])
