"""The separate checker of Responses requests rejects a broken example of each rule, and takes sound ones."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.context.test_request_checker import Change, Request, assert_rejected
from tests.support.request_types import validate_openai_responses
from tests.support.responses_checker import check_openai_responses


def call(id: str) -> Request:
    return {"type": "function_call", "call_id": id, "name": "Bash", "arguments": "{}"}


def output(id: str, said: Any = "two") -> Request:
    return {"type": "function_call_output", "call_id": id, "output": said}


def request() -> Request:
    shot = {"type": "input_image", "image_url": "https://a/b.png", "detail": "auto"}
    said = [{"type": "output_text", "text": "Two.", "annotations": []}]
    return {
        "instructions": "Be brief.",
        "input": [
            {"type": "message", "role": "user", "content": [text("List them."), shot]},
            {"type": "reasoning", "summary": [], "encrypted_content": "gAAA"},
            call("a"),
            {"type": "custom_tool_call", "call_id": "b", "name": "patch", "input": "***"},
            {"type": "custom_tool_call_output", "call_id": "b", "output": ""},
            output("a", [text("two")]),
            {"type": "message", "role": "assistant", "content": said, "phase": "final_answer"},
            {"type": "message", "role": "developer", "content": [text("Be long.")]},
        ],
        "tools": [
            {
                "type": "function",
                "name": "Bash",
                "parameters": {"type": "object", "properties": {}},
                "strict": False,
            },
            {"type": "custom", "name": "patch"},
        ],
    }


def text(words: str = "words") -> Request:
    return {"type": "input_text", "text": words}


SHELL: Request = {
    "type": "local_shell_call",
    "id": "lsh_1",
    "call_id": "s",
    "status": "completed",
    "action": {"type": "exec", "command": ["ls"], "env": {}},
}
FAULTS: dict[str, tuple[str, Change]] = {
    "no items": ("at least one item", lambda i, r: i.clear()),
    "input as text": ("at least one item", lambda i, r: r.update(input="hello")),
    "empty instructions": ("instructions: empty", lambda i, r: r.update(instructions="")),
    "unknown role": ("unknown role", lambda i, r: i[0].update(role="tool")),
    "item without a type": ("has a type", lambda i, r: i[0].pop("type")),
    "user writes output": (
        "takes no 'output_text'",
        lambda i, r: i[0]["content"].append({"type": "output_text", "text": "x"}),
    ),
    "assistant writes input": (
        "takes no 'input_text'",
        lambda i, r: i[6]["content"].append(text()),
    ),
    "image of the system": (
        "takes no 'input_image'",
        lambda i, r: i[7]["content"].append(i[0]["content"][1]),
    ),
    "empty text": ("or empty", lambda i, r: i[0]["content"][0].update(text="")),
    "empty content": ("at least one block", lambda i, r: i[0].update(content=[])),
    "no content": ("at least one block", lambda i, r: i[0].pop("content")),
    "image of unknown type": (
        "not an image",
        lambda i, r: i[0]["content"][1].update(image_url="data:image/tiff;base64,AA"),
    ),
    "phase of the user": ("phase is", lambda i, r: i[0].update(phase="commentary")),
    "unknown phase": ("phase is", lambda i, r: i[6].update(phase="overture")),
    "id of a message": ("ties the item", lambda i, r: i[6].update(id="msg_1")),
    "id of a call": ("ties the item", lambda i, r: i[2].update(id="fc_1")),
    "unsigned reasoning": ("encrypted_content", lambda i, r: i[1].pop("encrypted_content")),
    "reasoning without summary": ("needs a summary", lambda i, r: i[1].pop("summary")),
    "reasoning before a user": (
        "right before what it led to",
        lambda i, r: i.insert(2, copy.deepcopy(i[0])),
    ),
    "reasoning before an output": (
        "right before what it led to",
        lambda i, r: i.insert(4, i.pop(1)),
    ),
    "reasoning at the end": ("right before what it led to", lambda i, r: i.append(i[1])),
    "orphan output": ("answers no call", lambda i, r: i.pop(2)),
    "orphan call": ("not answered before", lambda i, r: i.pop(5)),
    "open call at the end": ("at the end", lambda i, r: i.__delitem__(slice(5, 8))),
    "something between": (
        "not answered before",
        lambda i, r: i.insert(5, {"type": "message", "role": "user", "content": "hurry"}),
    ),
    "second output": ("answers no call", lambda i, r: i.insert(5, output("a"))),
    "output of another kind": ("answers a", lambda i, r: i[4].update(type="function_call_output")),
    "an id twice": ("used twice", lambda i, r: i.extend([call("a"), output("a")])),
    "long id": (
        "1 to 64 characters",
        lambda i, r: (i[2].update(call_id="x" * 65), i[5].update(call_id="x" * 65)),
    ),
    "arguments as object": ("must be text", lambda i, r: i[2].update(arguments={})),
    "input as object": ("must be text", lambda i, r: i[3].update(input={})),
    "name of call": ("a name is", lambda i, r: i[2].update(name="read file")),
    "output of the model's kind": (
        "takes no 'output_text'",
        lambda i, r: i[5].update(output=[{"type": "output_text", "text": "x"}]),
    ),
    "shell call without answer": ("is not answered", lambda i, r: i.insert(6, SHELL)),
    "shell answer without call": (
        "answers no call",
        lambda i, r: i.append({"type": "local_shell_call_output", "id": "s", "output": ""}),
    ),
    "name of tool": ("a name is", lambda i, r: r["tools"][0].update(name="é")),
    "tool without parameters": ("needs parameters", lambda i, r: r["tools"][0].pop("parameters")),
    "tool that does not say": ("strict", lambda i, r: r["tools"][0].pop("strict")),
    "empty tools": ("an empty list", lambda i, r: r.update(tools=[])),
    "surrogate": ("lone surrogates", lambda i, r: i[0]["content"][0].update(text="\ud83d")),
    "not a number": ("not JSON", lambda i, r: r.update(top_p=float("nan"))),
}


def test_a_sound_request_passes() -> None:
    assert check_openai_responses(request()) == []
    validate_openai_responses(request())
    answered = request()
    answered["input"] += [SHELL, {"type": "local_shell_call_output", "id": "s", "output": "{}"}]
    assert check_openai_responses(answered) == []
    validate_openai_responses(answered)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_broken_request_is_rejected(fault: str) -> None:
    assert_rejected(FAULTS[fault], request(), "input", check_openai_responses)


@pytest.mark.parametrize(
    "change",
    [
        lambda i, r: i[0].update(speaker="ada"),
        lambda i, r: i[0].update(content=[{"type": "input_text", "text": "x", "colour": "red"}]),
        lambda i, r: i[0].update(content=[{"type": "input_text"}]),
        lambda i, r: i[0].update(role="bot"),
        lambda i, r: i[2].update(arguments={}),
        lambda i, r: i.append({"type": "telegram"}),
        lambda i, r: r.update(directions="none"),
        lambda i, r: r["tools"].append({"type": "function", "name": "x"}),
    ],
)
def test_the_official_types_look_into_everything(change: Change) -> None:
    broken = request()
    change(broken["input"], broken)
    with pytest.raises(ValueError, match=r"."):
        validate_openai_responses(broken)
