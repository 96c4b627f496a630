"""Contents of Gemini become messages, in either spelling, with ids or without."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google.genai import types

from tests.support.gemini_contents import messages_from_gemini
from trace_store.errors import InvalidMessageError
from trace_store.objects.message import Message
from trace_store.objects.parts import Image, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.providers.documents import parse_messages
from trace_store.providers.gemini import GeminiCalls, message_from_gemini

Wire = dict[str, Any]
GEMINI = "gemini-3-pro"
CONTENTS: list[Wire] = [
    {"role": "user", "parts": [{"text": "Weather?"}]},
    {
        "role": "model",
        "parts": [
            {"text": "Hm.", "thought": True},
            {"functionCall": {"name": "wx", "args": {"q_1": "Oslo"}}, "thoughtSignature": "CiQB"},
            {"functionCall": {"name": "wx", "args": {"q_1": "Rome"}}},
        ],
    },
    {
        "role": "user",
        "parts": [
            {"functionResponse": {"name": "wx", "response": {"output": "4C"}}},
            {"functionResponse": {"name": "wx", "response": {"error": "unknown"}}},
        ],
    },
    {"role": "model", "parts": [{"text": "4 C", "thoughtSignature": "CiQC"}]},
]
MESSAGES = [
    Message("user", "Weather?"),
    Message(
        "assistant",
        [
            Reasoning("Hm."),
            Reasoning("", "CiQB"),
            ToolCall("call_1", "wx", '{"q_1":"Oslo"}'),
            ToolCall("call_2", "wx", '{"q_1":"Rome"}'),
        ],
        model=GEMINI,
    ),
    Message("tool", [ToolResult("call_1", "4C"), ToolResult("call_2", "unknown", is_error=True)]),
    Message("assistant", [Reasoning("", "CiQC"), Text("4 C")], model=GEMINI),
]


def opaque(part: Wire) -> Opaque:
    return Opaque("gemini", json.dumps(part, separators=(",", ":")).encode())


def parts_of(*parts: Wire | str, role: str = "user") -> list[Part]:
    return list(message_from_gemini({"role": role, "parts": list(parts)}, "content").parts)


def test_each_content_is_a_message() -> None:
    assert messages_from_gemini(CONTENTS, model=GEMINI) == MESSAGES


def test_the_python_package_writes_the_same_otherwise() -> None:
    for content, message in zip(CONTENTS, MESSAGES, strict=True):
        known = types.Content.model_validate_json(json.dumps(content))
        calls = GeminiCalls()
        plain = message_from_gemini(content, "c", model=GEMINI, calls=calls)
        for dumped in (known.model_dump(mode="json"), known.to_json_dict()):
            found = message_from_gemini(dumped, "c", model=GEMINI)
            assert found == plain
        assert plain.role == message.role


def test_snake_case_and_nulls() -> None:
    part = {
        "function_call": {"id": None, "name": "wx", "args": {"snake_case": None}},
        "thought_signature": "CiQB",
        "text": None,
        "inline_data": None,
    }
    assert parts_of(part, role="model") == [
        Reasoning("", "CiQB"),
        ToolCall("call_1", "wx", '{"snake_case":null}'),
    ]
    code = {"executable_code": {"language": "PYTHON", "code": "a_b"}, "thought": None}
    assert parts_of(code, role="model") == [
        opaque({"executableCode": {"language": "PYTHON", "code": "a_b"}})
    ]


def test_ids_are_kept_and_missing_ones_made() -> None:
    contents: list[Wire] = [
        {
            "role": "model",
            "parts": [
                {"functionCall": {"id": "x", "name": "a"}},
                {"functionCall": {"name": "b"}},
                {"functionCall": {"name": "a"}},
            ],
        },
        {
            "role": "function",
            "parts": [
                {"functionResponse": {"name": "a", "response": {"output": "third"}, "id": "new"}},
                {"functionResponse": {"name": "b", "response": {"output": "second"}}},
                {"functionResponse": {"name": "a", "response": {"output": "first"}, "id": "x"}},
                {"functionResponse": {"name": "c", "response": {"output": "nobody's"}}},
            ],
        },
        {"role": "model", "parts": [{"functionCall": {"name": "b"}}]},
    ]
    first, answers, last = messages_from_gemini(contents)
    assert [part.id for part in first.parts if isinstance(part, ToolCall)] == [
        *("x", "call_1", "call_2"),
    ]
    found = {p.call_id: p.content[0] for p in answers.parts if isinstance(p, ToolResult)}
    assert found == {
        "call_2": Text("third"),
        "call_1": Text("second"),
        "x": Text("first"),
        "call_3": Text("nobody's"),
    }
    assert last.parts == (ToolCall("call_4", "b", "{}"),)
    assert answers.role == "tool"


@pytest.mark.parametrize(
    ("response", "content"),
    [
        ({"output": ""}, [Text("")]),
        ({"output": None}, []),
        ({"output": ["a", "b"]}, [Text("a"), Text("b")]),
        ({"output": ["a"]}, [Text('["a"]')]),
        ({"output": [1, 2]}, [Text("[1,2]")]),
        ({"output": {"rows": []}}, [Text('{"rows":[]}')]),
        ({"output": {"$ref": "nothing"}}, [Text('{"$ref":"nothing"}')]),
        ({"result": "é"}, [Text('{"result":"é"}')]),
        ({"output": "a", "exit": 0}, [Text('{"output":"a","exit":0}')]),
        (None, []),
    ],
)
def test_what_tools_gave_out(response: object, content: list[Part]) -> None:
    [result] = parts_of({"functionResponse": {"name": "a", "id": "x", "response": response}})
    assert result == ToolResult("x", content)


def test_media_in_responses_stand_where_they_are_referred_to() -> None:
    png = {"inlineData": {"mimeType": "image/png", "data": "AAAA", "displayName": "shot"}}
    wav = {"inlineData": {"mimeType": "audio/wav", "data": "AAAA"}}
    fields = {
        "name": "a",
        "id": "x",
        "response": {"output": ["before", {"$ref": "shot"}, "after"]},
        "parts": [wav, png],
    }
    image = Image("image/png", b"\x00\x00\x00")
    [result] = parts_of({"functionResponse": fields})
    assert result == ToolResult("x", [Text("before"), image, Text("after"), opaque(wav)])
    [single] = parts_of(
        {"functionResponse": {**fields, "response": {"error": {"$ref": "shot"}}, "parts": [png]}}
    )
    assert single == ToolResult("x", [image], is_error=True)


def test_media() -> None:
    pdf = {"fileData": {"mimeType": "application/pdf", "fileUri": "https://example.org/a.pdf"}}
    upload = {"fileData": {"mimeType": "image/png", "fileUri": "https://example.org/files/1"}}
    tiff = {"inline_data": {"mime_type": "image/tiff", "data": "__-8"}}
    assert parts_of(
        "plain",
        tiff,
        {"fileData": {"mimeType": "image/png", "fileUri": "https://example.org/a.png"}},
        {"fileData": {"fileUri": "https://example.org/a.jpeg"}},
        upload,
        pdf,
        {"hologram": {"x": 1}},
    ) == [
        Text("plain"),
        Image("image/tiff", b"\xff\xff\xbc"),
        Image(url="https://example.org/a.png"),
        Image(url="https://example.org/a.jpeg"),
        # The address alone does not tell that this is an image, and no model would take it without.
        opaque(upload),
        opaque(pdf),
        opaque({"hologram": {"x": 1}}),
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("text", "c: a content must be an object"),
        ({"role": "assistant"}, "c: unknown role 'assistant': one of function, model"),
        ({"role": "user", "parts": "a"}, "c: parts must be a list"),
        ({"role": "user", "parts": [1]}, "c.parts[0]: a part must be an object"),
        ({"role": "user", "parts": [{"text": 1}]}, "c.parts[0]: text must be text"),
        ({"role": "model", "parts": [{"functionCall": 1}]}, "a function call must be an object"),
        ({"role": "model", "parts": [{"functionCall": {}}]}, "c.parts[0]: name must be text"),
        (
            {"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": "?"}}]},
            "c.parts[0]: the image is not base64",
        ),
        (
            {"role": "model", "parts": [{"text": "a", "thoughtSignature": 1}]},
            "thoughtSignature must be text",
        ),
    ],
)
def test_a_damaged_content_is_refused_with_its_place(content: Any, message: str) -> None:
    with pytest.raises(InvalidMessageError) as refused:
        message_from_gemini(content, "c")
    assert message in str(refused.value)


def test_requests_and_responses_are_told_by_content() -> None:
    unsaid = [Message(m.role, m.parts) for m in MESSAGES]
    system = Message("system", [Text("Be"), Text("brief.")])
    instruction = {"parts": [{"text": "Be"}, {"text": "brief."}]}
    assert parse_messages(json.dumps(CONTENTS)) == unsaid
    assert parse_messages("\n".join(map(json.dumps, CONTENTS))) == unsaid
    for request in (
        {"contents": CONTENTS, "systemInstruction": instruction},
        {"contents": CONTENTS, "system_instruction": instruction["parts"]},
        {"contents": CONTENTS, "config": {"system_instruction": instruction}},
    ):
        assert parse_messages(json.dumps(request)) == [system, *unsaid]
    brief = {"contents": CONTENTS[0], "systemInstruction": "Be brief."}
    assert parse_messages(json.dumps(brief)) == [Message("system", "Be brief."), unsaid[0]]
    response = {
        "candidates": [{"content": CONTENTS[3], "finishReason": "STOP"}],
        "modelVersion": GEMINI,
        "usageMetadata": {"promptTokenCount": 1},
    }
    assert parse_messages(json.dumps(response)) == MESSAGES[3:]
