"""Gemini: rendering of each part."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.gemini_contents import messages_from_gemini
from tests.support.pictures import GIF as GIF_BYTES
from tests.support.pictures import PNG as PNG_BYTES
from tests.support.pictures import PNG_TEXT
from tests.support.valid_requests import assert_valid_requests
from trace_store.errors import RenderError
from trace_store.objects.message import Message
from trace_store.objects.parts import Image, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.providers.rendering import Rendered, render
from trace_store.providers.validity import SKIPS_THE_CHECK

PNG = Image("image/png", PNG_BYTES)
PNG_PART = {"inlineData": {"mimeType": "image/png", "data": PNG_TEXT}}
GEMINI = "gemini-3-pro"
USER = Message("user", "Go on.")
Wire = dict[str, Any]


def rendered(*messages: Message, tools: list[Wire] | None = None, **options: Any) -> Rendered:
    return assert_valid_requests(messages, tools or [], **options)["gemini"]


def sent(*messages: Message, **options: Any) -> list[Wire]:
    found: list[Wire] = rendered(*messages, **options).request["contents"]
    return found


def user(*parts: Wire | str) -> Wire:
    return {"role": "user", "parts": [{"text": p} if isinstance(p, str) else p for p in parts]}


def model(*parts: Wire | str) -> Wire:
    return {**user(*parts), "role": "model"}


def own(part: Wire) -> Opaque:
    return Opaque("gemini", json.dumps(part).encode())


def call(id: str, args: Wire | None = None, name: str = "Bash", **more: Any) -> Wire:
    return {"functionCall": {"id": id, "name": name, "args": args or {}}, **more}


def response(id: str, said: Any, name: str = "Bash", **more: Any) -> Wire:
    fields = {"id": id, "name": name, "response": {"output": said}}
    return {"functionResponse": {**fields, **more}}


def exchange(call: ToolCall, *content: Part, is_error: bool = False) -> list[Message]:
    result = ToolResult(call.id, content, is_error)
    return [USER, Message("assistant", [call]), Message("tool", [result])]


def test_the_front_is_the_instruction_and_later_system_text_is_the_users() -> None:
    found = rendered(
        Message("system", "Be brief."),
        Message("developer", [Text("Be kind."), PNG]),
        Message("user", "Hello.", name="ada"),
        Message("assistant", "Hi."),
        Message("system", "Be long."),
    )
    assert found.request == {
        "systemInstruction": {
            "parts": [
                {"text": "Be brief."},
                {"text": "Be kind."},
                {"text": "[image not shown: image/png, 67 bytes]"},
            ]
        },
        "contents": [user("Hello."), model("Hi."), user("<system>\nBe long.\n</system>")],
    }
    assert [repair.code for repair in found.repairs] == ["image-left-out", "system-as-user"]


def test_a_model_that_speaks_first_and_one_that_speaks_twice() -> None:
    found = rendered(
        Message("assistant", "Hi."), Message("assistant", "Well?"), USER, Message("user", "Now.")
    )
    assert found.request["contents"] == [
        user("[The conversation begins with the assistant.]"),
        model("Hi.", "Well?"),
        user("Go on."),
        user("Now."),
    ]
    assert [repair.code for repair in found.repairs] == ["leading-assistant"]


def test_images_stand_where_they_were_also_the_models() -> None:
    parts = [Text("one"), Text(""), PNG, Image(url="https://example.org/a.JPG?x=1")]
    bare = Image(url="https://example.org/a")
    gif = Image("image/gif", GIF_BYTES)
    found = rendered(Message("user", [*parts, bare, gif]), Message("assistant", [PNG, gif]))
    assert found.request["contents"] == [
        user(
            "one",
            PNG_PART,
            {"fileData": {"mimeType": "image/jpeg", "fileUri": "https://example.org/a.JPG?x=1"}},
            {"fileData": {"fileUri": "https://example.org/a"}},
            "[image not shown: image/gif, 14 bytes]",
        ),
        model(PNG_PART),
    ]
    assert [repair.code for repair in found.repairs] == ["image-left-out"] * 2


def test_responses_are_a_content_of_their_own_in_the_order_of_the_calls() -> None:
    calls = [
        ToolCall("a", "Bash", '{"n": 1.0}'),
        ToolCall("b", "patch", "***", "text"),
        ToolCall("c", "Bash", "[1"),
    ]
    results = [ToolResult("b", [Text("x"), Text("y")]), ToolResult("a", []), ToolResult("c", "no")]
    failed = ToolResult("c", "no", is_error=True)
    messages = [
        USER,
        Message("assistant", [Text("I look."), *calls]),
        Message("user", [Text("Quick."), *results[:2], failed]),
    ]
    found = rendered(*messages, model=GEMINI)
    assert found.request["contents"] == [
        user("Go on."),
        model(
            "I look.",
            call("a", {"n": 1.0}, thoughtSignature=SKIPS_THE_CHECK),
            call("b", {"input": "***"}, "patch"),
            call("c", {"input": "[1"}),
        ),
        user(
            response("a", ""),
            response("b", ["x", "y"], "patch"),
            response("c", "", response={"error": "no"}),
        ),
        user("Quick."),
    ]
    assert [repair.code for repair in found.repairs] == ["arguments-wrapped", "call-unsigned"]


def test_media_of_results_are_parts_that_the_response_refers_to() -> None:
    audio = {"inlineData": {"mimeType": "audio/wav", "data": "AAAA"}}
    gif = Image("image/gif", GIF_BYTES)
    content = [Text("here"), PNG, own(audio), gif, Opaque("openai", b'{"type":"file"}')]
    messages = exchange(ToolCall("a", "Bash", "{}"), *content)
    found = rendered(*messages, model=GEMINI)
    [part] = found.request["contents"][2]["parts"]
    labelled = [
        {"inlineData": {**piece["inlineData"], "displayName": f"part-{n}"}}
        for n, piece in enumerate((PNG_PART, audio), 1)
    ]
    notes = ["[image not shown: image/gif, 14 bytes]", "[file not shown: in the form of openai]"]
    value = ["here", {"$ref": "part-1"}, {"$ref": "part-2"}, *notes]
    assert part == response("a", value, parts=labelled)
    codes = sorted(repair.code for repair in found.repairs)
    assert codes == ["call-unsigned", "image-left-out", "opaque-left-out"]
    again = messages_from_gemini(found.request["contents"])[2].parts[0]
    assert isinstance(again, ToolResult)
    compact = Opaque("gemini", json.dumps(audio, separators=(",", ":")).encode())
    assert again.content == (Text("here"), PNG, compact, *map(Text, notes))


def test_before_gemini_3_media_follow_the_responses_and_calls_are_not_signed() -> None:
    messages = exchange(ToolCall("a", "Bash", "{}"), Text("here"), PNG)
    found = rendered(*messages, model="gemini-2.5-pro")
    assert found.request["contents"][1:] == [
        model(call("a")),
        user(response("a", ["here", "[shown below]"])),
        user("[output of tool call a]", PNG_PART),
    ]
    assert [repair.code for repair in found.repairs] == ["image-moved"]


def test_thoughts_and_signatures_go_back_on_their_parts() -> None:
    contents = [
        user("Weather?"),
        model(
            {"text": "Hm.", "thought": True},
            call("a", {"q": "Oslo"}, thoughtSignature="CiQB"),
            call("b", {"q": "Rome"}),
        ),
        user(response("a", "4C"), response("b", "20C")),
        model(call("c", thoughtSignature="CiQC")),
        user(response("c", "ok")),
        model({"text": "Oh.", "thought": True, "thoughtSignature": "CiQD"}, "So.")
        | {"role": "model"},
        user("And?"),
        model({"text": "Well.", "thoughtSignature": "CiQE"}),
        user("Then?"),
        model("Done.", {"text": "", "thoughtSignature": "CiQF"}),
    ]
    messages = messages_from_gemini(contents, model=f"models/{GEMINI}")
    assert sent(*messages) == contents
    assert not rendered(*messages).repairs


@pytest.mark.parametrize(
    ("made_by", "thought", "detail"),
    [
        ("gemini-2.5-pro", Reasoning("Hm.", "CiQB"), "reasoning of gemini-2.5-pro"),
        ("", Reasoning("Hm.", "CiQB"), "of an unknown model"),
        ("claude-opus-4-6", Reasoning("Hm.", "CiQB"), "of claude-opus-4-6"),
        (GEMINI, Reasoning("Hm.", "?"), "whose signature is not Gemini's"),
        (GEMINI, Reasoning("Hm.", "CiQB="), "whose signature is not Gemini's"),
        (GEMINI, Reasoning("Hm.", "CiQBA"), "whose signature is not Gemini's"),
        (GEMINI, Reasoning("", "?"), "a signature that is not Gemini's"),
        (GEMINI, Reasoning(""), "reasoning without text"),
    ],
)
def test_reasoning_that_nobody_may_read_is_left_out_and_listed(
    made_by: str, thought: Reasoning, detail: str
) -> None:
    message = Message("assistant", [thought, Text("So.")], model=made_by)
    found = rendered(USER, message, model=GEMINI)
    assert found.request["contents"][1:] == [model("So.")]
    assert [repair.code for repair in found.repairs] == ["reasoning-left-out"]
    assert detail in found.repairs[0].detail


def test_a_signature_goes_with_what_it_signs() -> None:
    parts = [Reasoning("", "CiQB"), ToolCall("open", "Bash", "{}"), Text("So.")]
    found = rendered(USER, Message("assistant", parts, model=GEMINI))
    call, said = found.request["contents"][1]["parts"]
    assert (call["thoughtSignature"], said) == ("CiQB", {"text": "So."})
    assert [r.code for r in found.repairs] == ["orphan-call"]
    foreign = Opaque("openai", b'{"type":"refusal","refusal":"no"}')
    found = rendered(USER, Message("assistant", [Reasoning("", "CiQB"), foreign], model=GEMINI))
    assert found.request["contents"] == [user("Go on.")]
    assert [r.code for r in found.repairs] == ["opaque-left-out", "reasoning-left-out"]


def test_a_signed_thought_without_text_stays_one() -> None:
    parts = [Reasoning("", "CiQB"), Reasoning("Hm.", "CiQC"), Text("So.")]
    found = rendered(USER, Message("assistant", parts, model=GEMINI))
    assert found.request["contents"][1] == model(
        {"text": "", "thought": True, "thoughtSignature": "CiQB"},
        {"text": "Hm.", "thought": True, "thoughtSignature": "CiQC"},
        "So.",
    )


def test_only_the_first_call_of_a_content_stands_in_for_a_signature() -> None:
    first = [ToolCall("a", "Bash", "{}"), ToolCall("b", "Bash", "{}")]
    messages = [
        USER,
        Message("assistant", first, model="claude-opus-4-6"),
        Message("tool", [ToolResult("a", "1"), ToolResult("b", "2")]),
        Message("assistant", [ToolCall("c", "Bash", "{}")], model="claude-opus-4-6"),
        Message("tool", [ToolResult("c", "3")]),
    ]
    found = rendered(*messages)
    signed = [
        (part["functionCall"]["id"], part.get("thoughtSignature"))
        for content in found.request["contents"]
        for part in content["parts"]
        if "functionCall" in part
    ]
    assert signed == [("a", SKIPS_THE_CHECK), ("b", None), ("c", SKIPS_THE_CHECK)]
    assert [repair.code for repair in found.repairs] == ["call-unsigned"] * 2
    # No model wrote it, so it is not read back.
    assert messages_from_gemini(found.request["contents"])[1].parts == tuple(first)


def test_parts_of_geminis_own_go_out_verbatim_where_they_may_stand() -> None:
    code = {"executableCode": {"language": "PYTHON", "code": "1"}}
    audio = {"inlineData": {"mimeType": "audio/wav", "data": "AAAA"}}
    source = {"type": "url", "url": "https://example.org/a.pdf"}
    document = Opaque("anthropic", json.dumps({"type": "document", "source": source}).encode())
    found = rendered(
        Message("user", [own(audio), own(code), document]),
        Message("assistant", [own(code), document, own({"text": "no part of its own"})]),
        Message("user", [Opaque("gemini", b"\xff")]),
    )
    assert found.request["contents"] == [
        user(
            audio,
            "[executableCode not shown: in the form of gemini]",
            "[document not shown: in the form of anthropic]",
        ),
        model(code),
        user("[content not shown: in the form of gemini]"),
    ]
    assert [repair.code for repair in found.repairs] == ["opaque-left-out"] * 5


def test_ids_and_names_that_are_refused_are_changed_the_same_everywhere() -> None:
    made = ToolCall("é", "1st tool", "{}")
    found = rendered(*exchange(made, Text("out")), tools=[{"name": "1st tool"}, {"name": "2nd"}])
    [first] = found.request["contents"][1]["parts"]
    [second] = found.request["contents"][2]["parts"]
    names = [f["name"] for f in found.request["tools"][0]["functionDeclarations"]]
    assert first["functionCall"]["id"] == second["functionResponse"]["id"] != "é"
    assert first["functionCall"]["name"] == second["functionResponse"]["name"] == names[0]
    assert names[0].startswith("_1st_tool_")
    assert names[1].startswith("_2nd_")
    dotted = rendered(USER, tools=[{"name": "mcp.files:read-1"}])
    assert dotted.request["tools"][0]["functionDeclarations"] == [{"name": "mcp.files:read-1"}]
    codes = sorted(repair.code for repair in found.repairs)
    assert codes == ["call-id-changed", "call-unsigned", *["name-changed"] * 3]


def test_tools_in_every_form() -> None:
    schema = {"type": "object", "properties": {"q": {"$ref": "#/$defs/q"}}, "$defs": {"q": {}}}
    earlier = {
        "type": "OBJECT",
        "properties": {
            "q": {"type": "ARRAY", "nullable": True, "items": {"type": "STRING"}},
            "type": {"anyOf": [{"type": "NUMBER"}, {"type": "OBJECT"}]},
            "nullable": {"type": "BOOLEAN", "default": "STRING"},
        },
    }
    tools: list[Wire] = [
        {"name": "neutral", "description": "d", "parameters": schema},
        {"name": "theirs", "input_schema": schema},
        {"type": "function", "function": {"name": "chat", "parameters": schema, "strict": True}},
        {"type": "function", "name": "flat", "parameters": schema, "strict": True},
        {"name": "bare"},
        {"type": "custom", "custom": {"name": "patch"}},
        {"functionDeclarations": [{"name": "g", "parameters": earlier}], "codeExecution": {}},
        {"function_declarations": [{"name": "h", "parameters_json_schema": schema}]},
        {"googleSearch": {}},
        {"type": "web_search_20250305", "name": "web_search"},
        {"type": "web_search"},
    ]
    found = rendered(Message("user", "hi"), tools=tools)
    text = {
        "type": "object",
        "properties": {"input": {"type": "string"}},
        "required": ["input"],
    }
    plain = {
        "type": "object",
        "properties": {
            "q": {"type": ["array", "null"], "items": {"type": "string"}},
            "type": {"anyOf": [{"type": "number"}, {"type": "object"}]},
            "nullable": {"type": "boolean", "default": "STRING"},
        },
    }
    assert found.request["tools"] == [
        {
            "functionDeclarations": [
                {"name": "neutral", "description": "d", "parametersJsonSchema": schema},
                {"name": "theirs", "parametersJsonSchema": schema},
                {"name": "chat", "parametersJsonSchema": schema},
                {"name": "flat", "parametersJsonSchema": schema},
                {"name": "bare"},
                {"name": "patch", "parametersJsonSchema": text},
                {"name": "g", "parametersJsonSchema": plain},
                {"name": "h", "parametersJsonSchema": schema},
            ]
        },
        {"codeExecution": {}},
        {"googleSearch": {}},
    ]
    assert [repair.detail for repair in found.repairs] == [
        "tool 'web_search' is not supported here; left out",
        "tool 'web_search' is not supported here; left out",
    ]
    anthropic = render("anthropic", [Message("user", "hi")], tools[6:7]).request
    assert anthropic["tools"] == [{"name": "g", "input_schema": plain}]


def test_strict_refuses_a_fault_and_names_it() -> None:
    with pytest.raises(RenderError, match="message 1: the first message is the assistant's"):
        render("gemini", [Message("assistant", "Hi."), USER], strict=True)


def test_nothing_to_send_is_said() -> None:
    found = render("gemini", [Message("system", "Be brief.")])
    assert found.request == {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [],
    }
    assert [repair.code for repair in found.repairs] == ["no-messages"]


def test_lone_surrogates_are_replaced_everywhere() -> None:
    found = rendered(
        Message("system", "\ud83d"),
        Message("user", "a\ud83db"),
        tools=[{"name": "x", "description": "\udc00"}],
    )
    assert found.request["systemInstruction"]["parts"] == [{"text": "\ufffd"}]
    assert found.request["contents"] == [user("a\ufffdb")]
    assert [repair.code for repair in found.repairs] == ["surrogate-replaced"] * 3
