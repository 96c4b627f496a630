"""OpenAI Responses: rendering of each part."""

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
from trace_store.providers.openai_responses import messages_from_responses
from trace_store.providers.rendering import Rendered, render

PNG = Image("image/png", PNG_BYTES)
PNG_BLOCK = {
    "type": "input_image",
    "image_url": f"data:image/png;base64,{PNG_TEXT}",
    "detail": "auto",
}
GPT = "gpt-5"
Item = dict[str, Any]


def rendered(*messages: Message, tools: list[Item] | None = None, **options: Any) -> Rendered:
    return assert_valid_requests(messages, tools or [], **options)["openai-responses"]


def sent(*messages: Message, **options: Any) -> list[Item]:
    found: list[Item] = rendered(*messages, **options).request["input"]
    return found


def said(*texts: str, **more: Any) -> Item:
    content = [{"type": "output_text", "text": text, "annotations": []} for text in texts]
    return {"type": "message", "role": "assistant", "content": content, **more}


def message_item(role: str, *blocks: Item | str) -> Item:
    content = [{"type": "input_text", "text": b} if isinstance(b, str) else b for b in blocks]
    return {"type": "message", "role": role, "content": content}


def own(block: Item) -> Opaque:
    return Opaque("openai", json.dumps(block).encode())


def exchange(call: ToolCall, *content: Part, is_error: bool = False) -> list[Message]:
    return [
        Message("assistant", [call]),
        Message("tool", [ToolResult(call.id, content, is_error)]),
    ]


def test_a_first_system_text_is_the_instructions_and_others_stay_where_they_are() -> None:
    request = rendered(
        Message("system", "Be brief."),
        Message("developer", "Be kind."),
        Message("user", "Hello.", name="ada"),
        Message("assistant", "Hi."),
        Message("system", "Be long."),
    ).request
    assert request == {
        "instructions": "Be brief.",
        "input": [
            message_item("developer", "Be kind."),
            message_item("user", "Hello."),
            said("Hi."),
            message_item("system", "Be long."),
        ],
    }


@pytest.mark.parametrize(
    "first", [Message("developer", "Be brief."), Message("system", [Text("Be"), Text("brief.")])]
)
def test_only_one_text_of_the_system_is_instructions(first: Message) -> None:
    request = rendered(first, Message("user", "Hello.")).request
    assert "instructions" not in request
    assert request["input"][0]["role"] == first.role


def test_images_and_files_stand_where_they_were() -> None:
    file = {"type": "input_file", "file_id": "file_1"}
    chat_file = {"type": "file", "file": {"file_id": "file_2"}}
    url = Image(url="https://example.org/a.png")
    parts = [Text("one"), Text(""), PNG, url, own(file), own(chat_file)]
    assert sent(Message("user", parts)) == [
        message_item(
            "user",
            "one",
            PNG_BLOCK,
            {"type": "input_image", "image_url": "https://example.org/a.png", "detail": "auto"},
            file,
            {"type": "input_file", "file_id": "file_2"},
        )
    ]


def test_calls_and_outputs_are_of_one_kind() -> None:
    calls = [ToolCall("a", "Bash", '{"b": 1,  "a": 1.0}'), ToolCall("b", "patch", "*** x", "text")]
    messages = [
        Message("assistant", [Text("I look."), *calls]),
        Message("user", [Text("Go on."), ToolResult("b", "done"), ToolResult("a", [])]),
    ]
    assert sent(*messages) == [
        said("I look."),
        {
            "type": "function_call",
            "call_id": "a",
            "name": "Bash",
            "arguments": '{"b": 1,  "a": 1.0}',
        },
        {"type": "custom_tool_call", "call_id": "b", "name": "patch", "input": "*** x"},
        {"type": "function_call_output", "call_id": "a", "output": ""},
        {"type": "custom_tool_call_output", "call_id": "b", "output": "done"},
        message_item("user", "Go on."),
    ]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ([Text("no such file")], "[tool error]\nno such file"),
        ([], "[tool error]"),
        ([PNG], [{"type": "input_text", "text": "[tool error]"}, PNG_BLOCK]),
    ],
)
def test_the_error_flag_is_the_first_line(content: list[Part], expected: object) -> None:
    messages = exchange(ToolCall("a", "Bash", "{}"), *content, is_error=True)
    assert sent(*messages)[1]["output"] == expected


def test_images_of_results_stay_in_them() -> None:
    tiff = Image("image/tiff", b"II*\x00")
    found = rendered(*exchange(ToolCall("a", "Shot", "{}"), Text("here"), PNG, tiff))
    assert found.request["input"][1]["output"] == [
        {"type": "input_text", "text": "here"},
        PNG_BLOCK,
        {"type": "input_text", "text": "[image not shown: image/tiff, 4 bytes]"},
    ]
    assert [repair.code for repair in found.repairs] == ["image-left-out"]


def test_reasoning_goes_back_to_its_model_right_before_what_it_led_to() -> None:
    thought = [Reasoning("First."), Reasoning("Then.", "gAAA"), ToolCall("a", "Bash", "{}")]
    messages = [
        Message("assistant", thought, model="openai/gpt-5-2025-08-07"),
        Message("tool", [ToolResult("a", "ok")]),
        Message("assistant", [Reasoning("", "gBBB"), Text("Done.")], model=GPT),
    ]
    summary = [{"type": "summary_text", "text": text} for text in ("First.", "Then.")]
    items = sent(*messages)
    assert items[0] == {"type": "reasoning", "summary": summary, "encrypted_content": "gAAA"}
    assert [item["type"] for item in items] == [
        *("reasoning", "function_call", "function_call_output", "reasoning", "message"),
    ]
    assert items[3] == {"type": "reasoning", "summary": [], "encrypted_content": "gBBB"}
    assert not rendered(*messages).repairs


@pytest.mark.parametrize(
    ("made_by", "parts", "options", "detail"),
    [
        ("gpt-4", [Reasoning("", "gAAA"), Text("So.")], {"model": GPT}, "reasoning of gpt-4"),
        ("", [Reasoning("", "gAAA"), Text("So.")], {"model": GPT}, "of an unknown model"),
        ("claude-opus-4-6", [Reasoning("Hm.", "Eos"), Text("So.")], {}, "of claude-opus-4-6"),
        # The form is OpenAI's, so a signature of Claude's is left out.
        (
            "claude-opus-4-6",
            [Reasoning("Hm.", "Eos"), Text("So.")],
            {"model": "claude-opus-4-6"},
            "of claude-opus-4-6",
        ),
        (GPT, [Reasoning("Hm."), Text("So.")], {}, "without a signature"),
        (GPT, [Text("So."), Reasoning("", "gAAA")], {}, "nothing follows"),
    ],
)
def test_reasoning_that_nobody_may_read_is_left_out_and_listed(
    made_by: str, parts: list[Part], options: dict[str, Any], detail: str
) -> None:
    found = rendered(Message("assistant", parts, model=made_by), **options)
    assert found.request["input"] == [said("So.")]
    assert [repair.code for repair in found.repairs] == ["reasoning-left-out"]
    assert detail in found.repairs[0].detail


def test_reasoning_can_be_hidden() -> None:
    message = Message("assistant", [Reasoning("", "gAAA"), Text("So.")], model=GPT)
    found = rendered(message, reasoning=False)
    assert (found.request["input"], found.repairs) == ([said("So.")], ())


def test_a_frame_gives_its_fields_to_the_item_behind_it() -> None:
    items = [
        said("I look.", phase="commentary"),
        {
            "type": "function_call",
            "call_id": "a",
            "name": "read",
            "arguments": "{}",
            "namespace": "files",
        },
        {"type": "function_call_output", "call_id": "a", "output": "ok"},
        said("Done.", phase="final_answer"),
    ]
    messages = messages_from_responses(items)
    assert sent(*messages) == items
    assert not rendered(*messages).repairs
    chat = render("openai", messages)
    assert [message["role"] for message in chat.request["messages"]] == [
        *("assistant", "tool", "assistant"),
    ]
    assert [repair.code for repair in chat.repairs] == ["opaque-left-out"] * 3


def test_a_frame_before_nothing_is_left_out_and_listed() -> None:
    phase = own({"type": "message", "phase": "commentary"})
    namespace = own({"type": "function_call", "call_id": "z", "namespace": "files"})
    found = rendered(
        Message("assistant", [phase, ToolCall("a", "Bash", "{}"), namespace, Text("So."), phase]),
        Message("tool", [ToolResult("a", "ok")]),
    )
    assert found.request["input"][:2] == [
        {"type": "function_call", "call_id": "a", "name": "Bash", "arguments": "{}"},
        said("So."),
    ]
    assert [repair.code for repair in found.repairs] == ["opaque-left-out"] * 3


def test_items_of_openais_own_tools_go_out_verbatim() -> None:
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {}}
    search["action"] = {"type": "search", "query": "q"}
    refusal = {"type": "refusal", "refusal": "I will not."}
    found = sent(Message("assistant", [own(search), Text("Found."), own(refusal)]))
    assert found == [search, {**said("Found."), "content": [*said("Found.")["content"], refusal]}]


def test_an_item_that_calls_or_answers_alone_is_left_out() -> None:
    call = {
        "type": "local_shell_call",
        "id": "lsh_1",
        "call_id": "s",
        "status": "completed",
        "action": {"type": "exec", "command": ["ls"], "env": {}},
    }
    answer = {"type": "local_shell_call_output", "id": "s", "output": "{}"}
    pair = [Message("assistant", [own(call)]), Message("user", [own(answer)])]
    assert sent(*pair) == [call, answer]
    for alone in (pair[:1], pair[1:], pair[::-1]):
        found = rendered(Message("user", "Go on."), *alone)
        assert found.request["input"] == [message_item("user", "Go on.")]
        assert {repair.code for repair in found.repairs} == {"opaque-left-out"}


def test_what_is_not_openais_is_a_note_where_people_speak_and_nothing_where_the_model_does() -> (
    None
):
    source = {"type": "url", "url": "https://example.org/a.pdf"}
    document = Opaque("anthropic", json.dumps({"type": "document", "source": source}).encode())
    audio = {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}}
    found = rendered(
        Message("user", [document, own(audio)]),
        Message("assistant", [Text("See."), document, PNG, own({"type": "message", "x": 1})]),
        Message("developer", [PNG]),
    )
    assert found.request["input"] == [
        message_item(
            "user",
            "[document not shown: in the form of anthropic]",
            "[input_audio not shown: in the form of openai]",
        ),
        said("See."),
        message_item("developer", "[image not shown: image/png, 67 bytes]"),
    ]


def test_ids_and_names_that_are_refused_are_changed_the_same_everywhere() -> None:
    call = ToolCall("x" * 65, "read file", "{}")
    found = rendered(*exchange(call, Text("out")), tools=[{"name": "read file"}])
    made, output = found.request["input"]
    assert made["call_id"] == output["call_id"] != call.id
    assert made["name"] == found.request["tools"][0]["name"]
    codes = sorted(repair.code for repair in found.repairs)
    assert codes == ["call-id-changed", "name-changed", "name-changed"]


def test_tools_in_every_form() -> None:
    schema = {"type": "object", "properties": {"q": {"type": "string"}}}
    grammar = {"syntax": "lark", "definition": "start: /a/"}
    tools: list[Item] = [
        {"name": "neutral", "description": "d", "parameters": schema},
        {"name": "theirs", "input_schema": schema},
        {"type": "function", "function": {"name": "chat", "parameters": schema, "strict": True}},
        {"type": "function", "name": "own", "parameters": schema, "defer_loading": True},
        {"name": "bare"},
        {"functionDeclarations": [{"name": "g", "parameters": {"type": "OBJECT"}}]},
        {
            "type": "custom",
            "custom": {"name": "patch", "format": {"type": "grammar", "grammar": grammar}},
        },
        {"type": "custom", "name": "flat", "description": "d", "format": {"type": "text"}},
        {"type": "web_search"},
        {"type": "web_search_20250305", "name": "web_search"},
        {"googleSearch": {}},
    ]
    found = rendered(Message("user", "hi"), tools=tools)

    def function(name: str, parameters: Item = schema, **more: Any) -> Item:
        form = {"type": "function", "name": name, "parameters": parameters, "strict": False}
        return {**form, **more}

    assert found.request["tools"] == [
        function("neutral", description="d"),
        function("theirs"),
        function("chat", strict=True),
        function("own", defer_loading=True),
        function("bare", {"type": "object", "properties": {}}),
        function("g", {"type": "object"}),
        {"type": "custom", "name": "patch", "format": {"type": "grammar", **grammar}},
        {"type": "custom", "name": "flat", "description": "d", "format": {"type": "text"}},
        {"type": "web_search"},
    ]
    assert [repair.detail for repair in found.repairs] == [
        "tool 'web_search' is not supported here; left out",
        "tool 'googleSearch' is not supported here; left out",
    ]


def test_strict_refuses_a_fault_and_names_it() -> None:
    messages = [Message("user", "Go on."), Message("assistant", [ToolCall("a", "Bash", "{}")])]
    with pytest.raises(RenderError, match="message 2: call 'a' has no result") as refused:
        render("openai-responses", messages, strict=True)
    assert (refused.value.at, refused.value.repair) == (1, "orphan-call")


def test_nothing_to_send_is_said() -> None:
    found = render("openai-responses", [Message("system", "Be brief.")])
    assert found.request == {"instructions": "Be brief.", "input": []}
    assert [repair.code for repair in found.repairs] == ["no-messages"]


def test_lone_surrogates_are_replaced_everywhere() -> None:
    found = rendered(
        Message("system", "\ud83d"),
        Message("user", "a\ud83db"),
        tools=[{"name": "x", "description": "\udc00"}],
    )
    assert found.request["instructions"] == "\ufffd"
    assert found.request["input"] == [message_item("user", "a\ufffdb")]
    assert found.request["tools"][0]["description"] == "\ufffd"
    assert [repair.code for repair in found.repairs] == ["surrogate-replaced"] * 3
