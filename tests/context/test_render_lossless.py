"""Lossless JSON round-trips; the text format; rendering through `Repo`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings

from tests.support.examples import examples
from tests.support.message_strategies import contexts, tools
from tests.support.pictures import PNG as PNG_BYTES
from trace_store.base.oid import hash_object
from trace_store.errors import InvalidInputError, InvalidMessageError
from trace_store.objects.address import Address
from trace_store.objects.message import Message
from trace_store.objects.parts import Image, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.providers import FORMATS
from trace_store.providers.documents import parse_messages
from trace_store.providers.lossless import parse
from trace_store.providers.rendering import (
    RENDERERS,
    Options,
    Renderable,
    Renderer,
    Repairs,
    render,
)
from trace_store.providers.wire import to_bytes


@settings(max_examples=examples(1000), deadline=None)
@given(contexts, tools)
def test_c39_lossless_json_gives_back_every_field(
    messages: list[Message], schemas: list[dict[str, Any]]
) -> None:
    """C39: no renderer for programs may lose a field."""
    data = to_bytes(render("json", messages, schemas).request)
    document = json.loads(data)
    assert parse(document) == messages
    assert document["tools"] == schemas
    assert to_bytes(render("json", parse(document), document["tools"]).request) == data
    if messages:
        assert parse_messages(data.decode()) == messages


def test_the_document() -> None:
    parts: list[Part] = [
        Text("a\ud83d"),
        Text("\ud83d\ude00"),
        Image("image/png", b"\x00"),
        Image(url="https://example.org"),
        ToolCall("c", "Bash", "{}"),
        ToolCall("d", "patch", "***", "text"),
        ToolResult("c", "out", is_error=True),
        Reasoning("Hm.", "Eos"),
        Reasoning("Hm."),
        Opaque("anthropic", b"\xff"),
    ]
    request = render("json", [Message("assistant", parts, model="m", id="i", name="n")]).request
    assert request == {
        "format": "trace/1",
        "messages": [
            {
                "role": "assistant",
                "kind": "tool_io",
                "name": "n",
                "model": "m",
                "id": "i",
                "parts": [
                    {"type": "text", "text": "a\ud83d"},
                    {"type": "text", "text_base64": "7aC97biA"},
                    {"type": "image", "media_type": "image/png", "data": "AA=="},
                    {"type": "image", "url": "https://example.org"},
                    {"type": "tool_call", "id": "c", "name": "Bash", "arguments": "{}"},
                    {
                        "type": "tool_call",
                        "id": "d",
                        "name": "patch",
                        "arguments": "***",
                        "format": "text",
                    },
                    {
                        "type": "tool_result",
                        "call_id": "c",
                        "content": [{"type": "text", "text": "out"}],
                        "is_error": True,
                    },
                    {"type": "reasoning", "text": "Hm.", "signature": "Eos"},
                    {"type": "reasoning", "text": "Hm."},
                    {"type": "opaque", "provider": "anthropic", "data": "/w=="},
                ],
            }
        ],
        "tools": [],
    }
    assert b'"a\\ud83d"' in to_bytes(request)
    hidden = render("json", parse(request), reasoning=False).request["messages"][0]["parts"]
    assert "reasoning" not in {part["type"] for part in hidden}


class Compiled(Message):
    """A message with the fields that a compiled context adds."""

    __slots__ = ("address", "ghost", "labels", "priority")

    def __init__(self, message: Message, **more: Any) -> None:
        super().__init__(message.role, message.parts, name=message.name, model=message.model)
        for name, value in more.items():
            setattr(self, name, value)


ADDRESS = Address.of(hash_object(b"a commit"), 3)


def compiled(message: Message, priority: str = "normal", ghost: bool = False) -> Compiled:
    labels = frozenset({"decision", "api"}) if priority != "normal" else frozenset()
    return Compiled(message, address=ADDRESS, labels=labels, priority=priority, ghost=ghost)


def test_what_a_compile_adds_is_shown_and_ignored_on_the_way_back() -> None:
    message = compiled(Message("user", "hi"), "pinned", True)
    request = render("json", [message]).request
    [form] = request["messages"]
    assert form["address"] == ADDRESS.hex
    assert (form["priority"], form["labels"], form["ghost"]) == (
        "pinned",
        ["api", "decision"],
        True,
    )
    assert parse(request) == [Message("user", "hi")]


DAMAGE: list[tuple[Callable[[Any], object], str]] = [
    (lambda d: d.update(format="trace/2"), "format: expected 'trace/1', found 'trace/2'"),
    (lambda d: d.pop("messages"), "messages: expected a list, found nothing"),
    (lambda d: d["messages"].append(1), "messages[1]: expected an object, found a number"),
    (lambda d: d["messages"][0].pop("parts"), "messages[0].parts: expected a list"),
    (lambda d: d["messages"][0].pop("role"), "messages[0].role: expected text, found nothing"),
    (lambda d: d["messages"][0].update(role="bot"), "messages[0]: unknown role 'bot'"),
    (lambda d: d["messages"][0].update(kind="X"), "messages[0]: unknown kind 'X'"),
    (lambda d: d["messages"][0].update(name=[]), "messages[0].name: expected text, found a list"),
    (lambda d: d["messages"][0]["parts"][0].update(type="video"), "unknown type of part 'video'"),
    (lambda d: d["messages"][0]["parts"][0].pop("text"), "messages[0].parts[0].text: expected"),
    (lambda d: d["messages"][0]["parts"][1].update(data="?"), "parts[1].data: expected base64"),
    (lambda d: d["messages"][0]["parts"][1].update(data=1), "expected base64, found a number"),
    (lambda d: d["messages"][0]["parts"][2].update(is_error=1), "expected true or false"),
    (lambda d: d["messages"][0]["parts"][2].update(content="x"), "content: expected a list"),
    (lambda d: d["messages"][0]["parts"][0].update(text_base64="/w=="), "expected UTF-8 bytes"),
    (lambda d: nest(d["messages"][0]["parts"][2], 40), "nested too deeply"),
]


def nest(part: dict[str, Any], levels: int) -> None:
    for _ in range(levels):
        inner: dict[str, Any] = {"type": "tool_result", "call_id": "", "content": []}
        part["content"] = [inner]
        part = inner


@pytest.mark.parametrize(("damage", "expected"), DAMAGE, ids=[text for _, text in DAMAGE])
def test_a_damaged_document_is_refused_with_the_place(
    damage: Callable[[Any], object], expected: str
) -> None:
    messages = [Message("user", [Text("a"), Image("image/png", b"x"), ToolResult("c", "out")])]
    document = json.loads(to_bytes(render("json", messages).request))
    damage(document)
    with pytest.raises(InvalidInputError) as refused:
        parse(document)
    assert expected in str(refused.value)
    assert str(refused.value).startswith(str(refused.value.where))


def test_an_unknown_role_is_an_invalid_message() -> None:
    form = {"format": "trace/1", "messages": [{"role": "bot", "parts": []}]}
    with pytest.raises(InvalidMessageError):
        parse(form)


@pytest.mark.parametrize("document", [None, [], 1, "x"])
def test_what_is_no_document_is_refused(document: object) -> None:
    with pytest.raises(InvalidInputError, match=r"^document: expected an object"):
        parse(document)


TRANSCRIPT = """\
[1] system
Be brief.

[2] user ada instruction · pinned · api · decision · {address}
Two lines,
and a \ufffd.

[3] assistant (claude-opus-4-6)
(reasoning)
  Hm.

  So.
Let me see.
→ call a Bash
  {{"q": 1}}

[4] tool
← error of a
  no such
    file
  (image image/png, 67 bytes)
(opaque gemini, 2 bytes)
(image https://example.org/a.png)
"""


def test_the_transcript() -> None:
    asked = Message("user", "Two lines,\nand a \ud83d.", name="ada")
    asked.kind = "instruction"
    instruction = compiled(asked, "pinned")
    instruction.kind = "instruction"
    messages: list[Renderable] = [
        Message("system", "Be brief.\n"),
        instruction,
        Message(
            "assistant",
            [Reasoning("Hm.\n\nSo."), Text("Let me see."), ToolCall("a", "Bash", '{"q": 1}')],
            model="claude-opus-4-6",
        ),
        Message(
            "tool",
            [
                ToolResult("a", [Text("no such\n  file\n"), Image("image/png", PNG_BYTES)], True),
                Opaque("gemini", b"{}"),
                Image(url="https://example.org/a.png"),
            ],
        ),
    ]
    assert render("text", messages).request == TRANSCRIPT.format(address=ADDRESS)
    assert "Hm." not in render("text", messages, reasoning=False).request
    assert render("text", []).request == ""
    assert to_bytes(render("text", messages).request) == render("text", messages).request.encode()


def test_what_is_broken_is_shown_as_it_is_to_people() -> None:
    messages = [Message("assistant", [ToolCall("a", "Bash", "")])]
    rendered = render("text", messages, strict=True)
    assert rendered.request == "[1] assistant\n→ call a Bash\n"
    assert not rendered.repairs


def test_the_table_names_every_renderer() -> None:
    names = ["anthropic", "gemini", "json", "openai", "openai-responses", "text"]
    assert sorted(RENDERERS) == names == list(FORMATS)
    for name, renderer in RENDERERS.items():
        rendered = render(name, [Message("user", "hi")])
        assert (rendered.renderer, rendered.version) == (name, renderer.version)


def test_a_renderer_of_the_callers() -> None:
    def shout(messages: Any, tools: Any, options: Options, repairs: Repairs) -> list[str]:
        repairs.add("loud", 0, "in capitals")
        return [message.text.upper() for message in messages]

    rendered = render(Renderer("shout", 7, shout), [Message("user", "hi")])
    assert (rendered.request, rendered.renderer, rendered.version) == (["HI"], "shout", 7)
    assert [repair.where for repair in rendered.repairs] == ["message 1"]


def test_unknown_names_are_refused() -> None:
    with pytest.raises(
        InvalidInputError, match="unknown renderer 'xml': one of anthropic, gemini, json"
    ):
        render("xml", [])
    with pytest.raises(InvalidInputError, match="unknown cache mode 'all'"):
        render("anthropic", [], cache="all")


def test_bytes_are_compact_utf_8_and_refuse_what_json_has_not() -> None:
    assert to_bytes({"b": 1, "a": "é\n"}) == '{"b":1,"a":"é\\n"}'.encode()
    with pytest.raises(ValueError, match="JSON"):
        to_bytes({"a": float("nan")})
