"""Anthropic: rendering of each part, and rules that only this provider has."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.pictures import PNG as PNG_BYTES
from tests.support.pictures import PNG_TEXT
from tests.support.valid_requests import assert_valid_requests
from trace_store.errors import RenderError
from trace_store.objects.message import Message
from trace_store.objects.parts import Image, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.providers.rendering import Rendered, render

PNG = Image("image/png", PNG_BYTES)
PNG_BLOCK = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": PNG_TEXT},
}
OPUS = "claude-opus-4-6"


def rendered(*messages: Message, **options: Any) -> Rendered:
    return assert_valid_requests(messages, **options)["anthropic"]


def sent(*messages: Message, **options: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = rendered(*messages, **options).request["messages"]
    return found


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def user(words: str = "Go on.") -> Message:
    return Message("user", words)


def exchange(call: ToolCall, *content: Part, is_error: bool = False) -> list[Message]:
    result = ToolResult(call.id, content, is_error)
    return [user(), Message("assistant", [call]), Message("tool", [result])]


def opaque(block: dict[str, Any], provider: str = "anthropic") -> Opaque:
    return Opaque(provider, json.dumps(block).encode())


def codes(found: Rendered) -> list[str]:
    return [repair.code for repair in found.repairs]


def test_system_at_the_front_and_later() -> None:
    found = rendered(
        Message("system", "One."), Message("developer", "Two."), user(), Message("system", "Three.")
    )
    assert found.request["system"] == [text("One."), text("Two.")]
    assert found.request["messages"] == [
        {"role": "user", "content": [text("Go on."), text("<system>\nThree.\n</system>")]}
    ]
    assert codes(found) == ["system-as-user"]


def test_neighbours_of_one_role_are_one_message() -> None:
    found = rendered(
        user("a"), user("b"), Message("assistant", "c"), Message("assistant", "d"), user("e")
    )
    assert [m["role"] for m in found.request["messages"]] == ["user", "assistant", "user"]
    assert found.request["messages"][1]["content"] == [text("c"), text("d")]
    assert not found.repairs


def test_results_come_first_then_the_users_words() -> None:
    calls = [ToolCall("a", "Bash", '{"q": "Oslo"}'), ToolCall("b", "Bash", "")]
    found = sent(
        user(),
        Message("assistant", calls),
        Message("user", [Text("wait"), ToolResult("b", "two", is_error=True)]),
        Message("tool", [ToolResult("a", [Text("one"), PNG])]),
    )
    assert found[1]["content"] == [
        {"type": "tool_use", "id": "a", "name": "Bash", "input": {"q": "Oslo"}},
        {"type": "tool_use", "id": "b", "name": "Bash", "input": {}},
    ]
    assert found[2]["content"] == [
        {"type": "tool_result", "tool_use_id": "a", "content": [text("one"), PNG_BLOCK]},
        {"type": "tool_result", "tool_use_id": "b", "is_error": True, "content": "two"},
        text("wait"),
    ]


def test_an_assistant_that_speaks_first_is_introduced() -> None:
    messages = [Message("assistant", "Hello."), user()]
    found = rendered(*messages)
    assert found.request["messages"][0] == {
        "role": "user",
        "content": [text("[The conversation begins with the assistant.]")],
    }
    assert codes(found) == ["leading-assistant"]
    with pytest.raises(RenderError, match=r"^message 1: the first message is the assistant's"):
        render("anthropic", messages, strict=True)


def test_blank_text_is_left_out_and_neighbours_meet() -> None:
    found = rendered(user("a"), Message("assistant", " \n"), user("b"))
    assert found.request["messages"] == [{"role": "user", "content": [text("a"), text("b")]}]
    assert codes(found) == ["blank-text"]


def test_the_last_message_ends_without_white_space() -> None:
    found = rendered(user(), Message("assistant", "So \n"))
    assert found.request["messages"][1]["content"] == [text("So")]
    assert codes(found) == ["trailing-space"]
    assert sent(user(), Message("assistant", "So \n"), user())[1]["content"] == [text("So \n")]


THINKING = {"type": "thinking", "thinking": "Hm.", "signature": "Eos"}


def thought(model: str, *more: Part) -> Message:
    return Message("assistant", [Reasoning("Hm.", "Eos"), *(more or [Text("So.")])], model=model)


@pytest.mark.parametrize(
    ("made_by", "options", "kept"),
    [
        (OPUS, {}, True),
        (OPUS, {"model": OPUS}, True),
        (OPUS, {"model": f"{OPUS}-20260115"}, True),
        (OPUS, {"model": f"anthropic/{OPUS}"}, True),
        (OPUS, {"model": "claude-opus-4-5"}, False),
        (OPUS, {"reasoning": False}, False),
        ("", {}, True),
        ("", {"model": OPUS}, False),
        ("gpt-5", {}, False),
    ],
)
def test_thinking_goes_back_to_the_model_that_made_it(
    made_by: str, options: dict[str, Any], kept: bool
) -> None:
    found = rendered(user(), thought(made_by), **options)
    assert found.request["messages"][1]["content"] == [THINKING, text("So.")][not kept :]
    hidden = not kept and options.get("reasoning", True)
    assert codes(found) == ["reasoning-left-out"] * hidden


def test_the_claude_that_spoke_last_is_the_model() -> None:
    found = rendered(
        user(),
        thought("claude-opus-4-5"),
        user(),
        thought(OPUS),
        Message("assistant", "Interrupted.", model="<synthetic>"),
    )
    assert found.request["messages"][1]["content"] == [text("So.")]
    assert found.request["messages"][3]["content"][0] == THINKING


def test_thinking_without_a_signature_or_an_end_is_left_out() -> None:
    unsigned = Message("assistant", [Reasoning("Hm."), Text("So.")], model=OPUS)
    assert sent(user(), unsigned)[1]["content"] == [text("So.")]
    redacted = opaque({"type": "redacted_thinking", "data": "Eos"})
    cut = thought(OPUS, Text("So."), Reasoning("And?", "Eos"), redacted)
    found = rendered(user(), cut, user())
    assert found.request["messages"][1]["content"] == [THINKING, text("So.")]
    assert codes(found) == ["reasoning-left-out"] * 2
    only = Message("assistant", [Reasoning("Hm.", "Eos")], model=OPUS)
    assert len(sent(user(), only, user())) == 1


def test_opaque_blocks_go_out_verbatim_where_they_may_stand() -> None:
    document = {
        "type": "document",
        "source": {"type": "url", "url": "https://example.org/a.pdf"},
    }
    marked = {**document, "cache_control": {"type": "ephemeral"}}
    call = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "q"}}
    answer = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []}
    redacted = {"type": "redacted_thinking", "data": "Eos"}
    found = rendered(
        Message("user", [opaque(marked)]),
        Message(
            "assistant",
            [opaque(redacted), opaque(call), opaque(answer), opaque(document), Text("So.")],
            model=OPUS,
        ),
        Message("user", [opaque(call), opaque(document, "openai"), Opaque("anthropic", b"{")]),
    )
    assert found.request["messages"] == [
        {"role": "user", "content": [document]},
        {"role": "assistant", "content": [redacted, call, answer, text("So.")]},
        {
            "role": "user",
            "content": [
                text("[server_tool_use not shown: in the form of anthropic]"),
                text("[document not shown: in the form of openai]"),
                text("[content not shown: in the form of anthropic]"),
            ],
        },
    ]
    assert codes(found) == ["opaque-left-out"] * 4


def test_calls_of_the_providers_own_tools_do_not_stand_alone() -> None:
    call = opaque({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}})
    answer = opaque({"type": "web_search_tool_result", "tool_use_id": "t", "content": []})
    alone = Message("assistant", [call, answer, Text("So.")])
    assert sent(user(), alone, user())[1]["content"] == [text("So.")]
    early = opaque({"type": "web_search_tool_result", "tool_use_id": "s", "content": []})
    turned = Message("assistant", [early, call, Text("So.")])
    assert sent(user(), turned, user())[1]["content"] == [text("So.")]
    paused = sent(user(), Message("assistant", [Text("So."), call]))
    assert paused[1]["content"][1]["type"] == "server_tool_use"


def test_a_call_cannot_hide_in_an_opaque_block() -> None:
    hidden = opaque({"type": "tool_use", "id": "a", "name": "Bash", "input": {}})
    assert sent(user(), Message("assistant", [hidden, Text("So.")]))[1]["content"] == [text("So.")]


@pytest.mark.parametrize(
    ("arguments", "input", "wrapped"),
    [
        ('{"a": 1.0, "b": "\\ud83d"}', {"a": 1.0, "b": "\ufffd"}, False),
        ("", {}, False),
        ("[1]", {"input": "[1]"}, True),
        ('{"cut', {"input": '{"cut'}, True),
        ('{"a": NaN}', {"input": '{"a": NaN}'}, True),
        ('{"a": 1e999}', {"input": '{"a": 1e999}'}, True),
        ('{"a":' * 300 + "1" + "}" * 300, None, True),
        ('{"a":' * 99999, None, True),
    ],
)
def test_the_input_of_a_call_is_an_object(arguments: str, input: Any, wrapped: bool) -> None:
    found = rendered(*exchange(ToolCall("a", "Bash", arguments), Text("out")))
    [use] = found.request["messages"][1]["content"]
    assert use["input"] == ({"input": arguments} if input is None else input)
    assert ("arguments-wrapped" in codes(found)) is wrapped


def test_free_text_arguments_are_the_input_and_the_tool_says_so() -> None:
    tools = [{"type": "custom", "custom": {"name": "apply_patch", "description": "d"}}]
    messages = exchange(ToolCall("a", "apply_patch", "*** Begin", "text"), Text("ok"))
    request = rendered(*messages, tools=tools).request
    assert request["messages"][1]["content"][0]["input"] == {"input": "*** Begin"}
    assert request["tools"] == [
        {
            "name": "apply_patch",
            "description": "d",
            "input_schema": {
                "type": "object",
                "properties": {"input": {"type": "string"}},
                "required": ["input"],
            },
        }
    ]


def test_a_failed_result_is_text_and_something() -> None:
    empty = rendered(*exchange(ToolCall("a", "Bash", "{}"), is_error=True))
    [result] = empty.request["messages"][2]["content"]
    assert result["content"] == "[no output]"
    assert codes(empty) == ["error-without-text"]
    reference = opaque({"type": "tool_reference", "tool_name": "x"})
    call = ToolCall("a", "Bash", "{}")
    mixed = rendered(*exchange(call, Text("no"), PNG, reference, is_error=True))
    assert mixed.request["messages"][2]["content"] == [
        {"type": "tool_result", "tool_use_id": "a", "is_error": True, "content": "no"},
        PNG_BLOCK,
    ]
    assert codes(mixed) == ["image-moved", "opaque-left-out"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ([], None),
        ([Text("")], None),
        ([Text(" \n")], " \n"),
        ([Text(" "), Text("a")], "a"),
        ([Text("a"), Text("b")], [text("a"), text("b")]),
        ([Image("image/tiff", b"II")], "[image not shown: image/tiff, 2 bytes]"),
        ([opaque({"type": "tool_reference", "tool_name": "x"})], "verbatim"),
    ],
)
def test_the_content_of_results(content: list[Part], expected: object) -> None:
    [result] = sent(*exchange(ToolCall("a", "Bash", "{}"), *content))[2]["content"]
    if expected == "verbatim":
        expected = [{"type": "tool_reference", "tool_name": "x"}]
    assert result.get("content") == expected


def test_images() -> None:
    url = Image(url="https://example.org/a.png")
    data = Image(url=f"data:image/png;base64,{PNG_TEXT}")
    found = sent(Message("user", [PNG, url, data, Image("image/bmp", b"BM")]))
    assert found[0]["content"] == [
        PNG_BLOCK,
        {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
        PNG_BLOCK,
        text("[image not shown: image/bmp, 2 bytes]"),
    ]


def test_ids_and_names_are_words() -> None:
    found = rendered(*exchange(ToolCall("call:1", "read file", "{}"), Text("out")))
    use = found.request["messages"][1]["content"][0]
    result = found.request["messages"][2]["content"][0]
    assert use["id"] == result["tool_use_id"]
    assert use["id"].startswith("call_1_")
    assert use["name"].startswith("read_file_")
    assert codes(found) == ["call-id-changed", "name-changed"]
    # Different ids do not fall together.
    other = rendered(*exchange(ToolCall("call.1", "read file", "{}"), Text("out")))
    assert other.request["messages"][1]["content"][0]["id"] != use["id"]


def test_tools_in_every_form() -> None:
    schema = {"type": "object", "properties": {"q": {"type": "string"}}}
    server = {"type": "web_search_20250305", "name": "web_search", "max_uses": 3}
    tools: list[dict[str, Any]] = [
        {"name": "neutral", "description": "d", "parameters": schema},
        {"name": "bare"},
        {"name": "own", "input_schema": schema, "defer_loading": True, "type": "custom"},
        {"type": "function", "function": {"name": "theirs", "parameters": schema, "strict": True}},
        {**server, "cache_control": {"type": "ephemeral"}},
        {"type": "image_generation"},
    ]
    found = rendered(user(), tools=tools)
    assert found.request["tools"] == [
        {"name": "neutral", "description": "d", "input_schema": schema},
        {"name": "bare", "input_schema": {"type": "object"}},
        {"name": "own", "input_schema": schema, "defer_loading": True, "type": "custom"},
        {"name": "theirs", "strict": True, "input_schema": schema},
        server,
    ]
    assert codes(found) == ["tool-left-out"]
    assert "cache_control" in tools[4]


def marks(request: dict[str, Any]) -> list[str]:
    """Say where the breakpoints are."""
    found = [
        f"{key}[{index}]"
        for key in ("tools", "system")
        for index, block in enumerate(request.get(key, []))
        if "cache_control" in block
    ]
    blocks = [block for message in request["messages"] for block in message["content"]]
    return found + [str(i) for i, block in enumerate(blocks) if "cache_control" in block]


def test_cache_breakpoints_stand_at_the_head_and_reach_back_from_the_end() -> None:
    head = [Message("system", "a"), Message("system", "b")]
    tools = [{"name": "x"}, {"name": "y"}]
    turns = [message for n in range(50) for message in (user(f"u{n}"), Message("assistant", "a"))]
    long = rendered(*head, *turns, tools=tools, cache="stable").request
    assert marks(long) == ["system[1]", "61", "80", "99"]
    assert marks(rendered(*turns[:3], tools=tools, cache="stable").request) == [
        "tools[1]",
        "0",
        "2",
    ]
    assert marks(rendered(user(), cache="stable").request) == ["0"]
    assert marks(rendered(user()).request) == []


def test_cache_breakpoints_stay_off_thinking_and_what_will_change() -> None:
    messages = [user("a"), thought(OPUS), user("b"), thought(OPUS, ToolCall("x", "Bash", "{}"))]
    waiting = rendered(*messages, cache="stable").request
    assert marks(waiting) == ["0", "3"]
    partly = [user("a"), thought(OPUS, ToolCall("x", "B", "{}"), ToolCall("y", "B", "{}"))]
    answer = Message("tool", [ToolResult("x", "out")])
    assert marks(rendered(*partly, answer, cache="stable").request) == ["0"]
    done = rendered(*messages, Message("tool", [ToolResult("x", "out")]), cache="stable").request
    assert marks(done) == ["0", "6"]
    thinks = [user("a"), *[thought(OPUS) for _ in range(30)]]
    assert all(int(mark) % 2 == 0 for mark in marks(rendered(*thinks, cache="stable").request))


def unmarked(value: Any) -> Any:
    """Return a request without its cache marks."""
    if isinstance(value, list):
        return [unmarked(each) for each in value]
    if isinstance(value, dict):
        return {key: unmarked(each) for key, each in value.items() if key != "cache_control"}
    return value


def test_cache_breakpoints_change_nothing_else() -> None:
    messages = [Message("system", "a"), user("b"), thought(OPUS, ToolCall("x", "Bash", "{}"))]
    messages += [Message("tool", [ToolResult("x", "out")]), user("c")]
    tools = [{"name": "Bash"}]
    marked = rendered(*messages, tools=tools, cache="stable").request
    assert marks(marked)
    assert unmarked(marked) == rendered(*messages, tools=tools).request
