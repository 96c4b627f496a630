"""The separate checker rejects a broken example of each rule, and takes sound requests."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support import gemini_checker, request_checker, responses_checker
from tests.support.request_checker import check_anthropic, check_openai_chat
from tests.support.request_types import validate_anthropic, validate_openai

Request = dict[str, Any]


def call(id: str, name: str = "Bash") -> Request:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": "{}"}}


def openai_request() -> Request:
    return {
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "List them."}]},
            {"role": "assistant", "content": None, "tool_calls": [call("a"), call("b")]},
            {"role": "tool", "tool_call_id": "b", "content": ""},
            {"role": "tool", "tool_call_id": "a", "content": "two"},
            {"role": "assistant", "content": "Two."},
        ],
        "tools": [{"type": "function", "function": {"name": "Bash"}}],
    }


def text(words: str = "words") -> Request:
    return {"type": "text", "text": words}


def use(id: str, input: Any = None, name: str = "Bash") -> Request:
    return {
        "type": "tool_use",
        "id": id,
        "name": name,
        "input": {} if input is None else input,
    }


def result(id: str, **more: Any) -> Request:
    return {"type": "tool_result", "tool_use_id": id, **more}


def anthropic_request() -> Request:
    thinking = {"type": "thinking", "thinking": "", "signature": "Eos"}
    return {
        "system": [text("Be brief.")],
        "messages": [
            {"role": "user", "content": [text("List them.")]},
            {"role": "assistant", "content": [thinking, use("a"), use("b")]},
            {
                "role": "user",
                "content": [result("b"), result("a", content="no", is_error=True), text("Go on.")],
            },
            {"role": "assistant", "content": [text("Two.")]},
        ],
        "tools": [{"name": "Bash", "input_schema": {"type": "object"}}],
    }


Change = Callable[[list[Request], Request], object]
OPENAI_FAULTS: dict[str, tuple[str, Change]] = {
    "no messages": ("at least one message", lambda m, r: m.clear()),
    "unknown role": ("unknown role", lambda m, r: m[1].update(role="bot")),
    "orphan result": ("answers no call", lambda m, r: m.pop(2)),
    "orphan call": ("not answered before", lambda m, r: m.pop(3)),
    "open call at the end": ("at the end", lambda m, r: m.__delitem__(slice(3, 6))),
    "something between": (
        "not answered before",
        lambda m, r: m.insert(4, {"role": "user", "content": "hurry"}),
    ),
    "second result": ("answers no call", lambda m, r: m.insert(4, copy.deepcopy(m[3]))),
    "result of another id": ("answers no call", lambda m, r: m[3].update(tool_call_id="c")),
    "an id twice": ("used twice", lambda m, r: m[2]["tool_calls"].append(call("a"))),
    "user calls": ("only the assistant", lambda m, r: m[1].update(tool_calls=[call("z")])),
    "no content": ("has no content", lambda m, r: m[5].update(content=None)),
    "empty content": ("empty content", lambda m, r: m[5].update(content="")),
    "empty list": ("at least one part", lambda m, r: m[1].update(content=[])),
    "empty text": ("text is empty", lambda m, r: m[1]["content"][0].update(text="")),
    "no calls in the list": ("tool_calls is empty", lambda m, r: m[5].update(tool_calls=[])),
    "arguments as object": (
        "must be text",
        lambda m, r: m[2]["tool_calls"][0]["function"].update(arguments={}),
    ),
    "type of call": ("unknown type", lambda m, r: m[2]["tool_calls"][0].update(type="x")),
    "long id": (
        "1 to 40 characters",
        lambda m, r: (
            m[2]["tool_calls"][0].update(id="x" * 41),
            m[4].update(tool_call_id="x" * 41),
        ),
    ),
    "name of call": (
        "a name is",
        lambda m, r: m[2]["tool_calls"][0]["function"].update(name="read file"),
    ),
    "name of tool": ("a name is", lambda m, r: r["tools"][0]["function"].update(name="é")),
    "empty tools": ("an empty list", lambda m, r: r.update(tools=[])),
    "image in a tool message": (
        "takes no 'image_url'",
        lambda m, r: m[4].update(
            content=[{"type": "image_url", "image_url": {"url": "https://a"}}]
        ),
    ),
    "image of unknown type": (
        "not an image",
        lambda m, r: m[1]["content"].append(
            {"type": "image_url", "image_url": {"url": "data:image/tiff;base64,AA"}}
        ),
    ),
    "surrogate": ("lone surrogates", lambda m, r: m[5].update(content="\ud83d")),
    "not a number": ("not JSON", lambda m, r: r.update(top=float("nan"))),
}
ANTHROPIC_FAULTS: dict[str, tuple[str, Change]] = {
    "no messages": ("at least one message", lambda m, r: m.clear()),
    "unknown role": ("unknown role", lambda m, r: m[3].update(role="system")),
    "assistant first": ("first message", lambda m, r: m.pop(0)),
    "same role twice": ("twice in a row", lambda m, r: m.insert(1, copy.deepcopy(m[0]))),
    "empty content": ("at least one block", lambda m, r: m[3].update(content=[])),
    "content as text": ("at least one block", lambda m, r: m[3].update(content="Two.")),
    "orphan call": ("is not answered", lambda m, r: m[2]["content"].pop(0)),
    "orphan result": ("does not call", lambda m, r: m[1]["content"].pop(1)),
    "open call at the end": ("at the end", lambda m, r: m.__delitem__(slice(2, 4))),
    "text before results": (
        "follows other content",
        lambda m, r: m[2]["content"].insert(0, m[2]["content"].pop()),
    ),
    "second result": ("answered twice", lambda m, r: m[2]["content"].insert(0, result("a"))),
    "an id twice": (
        "used twice",
        lambda m, r: m.extend(
            [
                {"role": "user", "content": [text()]},
                {"role": "assistant", "content": [use("a")]},
                {"role": "user", "content": [result("a")]},
            ]
        ),
    ),
    "form of an id": ("letters, digits", lambda m, r: m[1]["content"][1].update(id="call:1")),
    "input is no object": ("must be an object", lambda m, r: m[1]["content"][1].update(input=[1])),
    "name of call": ("a name is", lambda m, r: m[1]["content"][1].update(name="")),
    "name of tool": ("a name is", lambda m, r: r["tools"][0].update(name="read file")),
    "schema of tool": ("is no object", lambda m, r: r["tools"][0].update(input_schema={})),
    "empty tools": ("an empty list", lambda m, r: r.update(tools=[])),
    "blank text": ("text is blank", lambda m, r: m[3].update(content=[text("\n")])),
    "blank system": ("text is blank", lambda m, r: r["system"].append(text(""))),
    "thinking at the end": (
        "last block is thinking",
        lambda m, r: m[3]["content"].append(m[1]["content"][0]),
    ),
    "thinking of the user": (
        "takes no 'thinking'",
        lambda m, r: m[0]["content"].append(m[1]["content"][0]),
    ),
    "unsigned thinking": ("its signature", lambda m, r: m[1]["content"][0].update(signature="")),
    "white space at the end": ("white space", lambda m, r: m[3].update(content=[text("Two. ")])),
    "image of the assistant": (
        "takes no 'image'",
        lambda m, r: m[3]["content"].insert(0, {"type": "image", "source": {}}),
    ),
    "image of unknown type": (
        "not an image",
        lambda m, r: m[0]["content"].append(
            {"type": "image", "source": {"type": "base64", "media_type": "image/tiff", "data": ""}}
        ),
    ),
    "empty failed result": (
        "must say something",
        lambda m, r: m[2]["content"][1].update(content=" "),
    ),
    "failed result with an image": (
        "takes text only",
        lambda m, r: m[2]["content"][1].update(content=[{"type": "image", "source": {}}]),
    ),
    "thinking in a result": (
        "takes no 'thinking'",
        lambda m, r: m[2]["content"][0].update(content=[{"type": "thinking"}]),
    ),
    "server call without answer": (
        "is not answered",
        lambda m, r: m[1]["content"].insert(0, {"type": "server_tool_use", "id": "s"}),
    ),
    "server answer without call": (
        "answers no call",
        lambda m, r: m[3]["content"].insert(
            0, {"type": "web_search_tool_result", "tool_use_id": "s"}
        ),
    ),
    "five breakpoints": (
        "at most 4",
        lambda m, r: [
            block.update(cache_control={"type": "ephemeral"})
            for message in m
            for block in message["content"]
        ],
    ),
    "breakpoint on thinking": (
        "takes no breakpoint",
        lambda m, r: m[1]["content"][0].update(cache_control={"type": "ephemeral"}),
    ),
    "surrogate": ("lone surrogates", lambda m, r: m[3].update(content=[text("\udc00")])),
}


def test_sound_requests_pass() -> None:
    assert check_openai_chat(openai_request()) == []
    assert check_anthropic(anthropic_request()) == []
    validate_openai(openai_request())
    validate_anthropic(anthropic_request())


def assert_rejected(
    fault: tuple[str, Change], request: Request, key: str, check: Callable[[Request], list[str]]
) -> None:
    """Assert that a checker names what is wrong in a request after a change."""
    message, change = fault
    change(request[key], request)
    found = check(request)
    assert any(message in each for each in found), found


@pytest.mark.parametrize("fault", OPENAI_FAULTS)
def test_a_broken_openai_request_is_rejected(fault: str) -> None:
    assert_rejected(OPENAI_FAULTS[fault], openai_request(), "messages", check_openai_chat)


@pytest.mark.parametrize("fault", ANTHROPIC_FAULTS)
def test_a_broken_anthropic_request_is_rejected(fault: str) -> None:
    assert_rejected(ANTHROPIC_FAULTS[fault], anthropic_request(), "messages", check_anthropic)


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m[0].update(speaker="ada"),
        lambda m: m[0].update(content=[{"type": "text", "text": "x", "colour": "red"}]),
        lambda m: m[0].update(content=[{"type": "text"}]),
        lambda m: m[0].update(content=[{"type": "text", "text": 1}]),
        lambda m: m[0].update(role="bot"),
        lambda m: m[0].update(content=1),
    ],
)
def test_the_official_types_look_into_everything(change: Callable[[Any], object]) -> None:
    for request, validate in (
        (openai_request(), validate_openai),
        (anthropic_request(), validate_anthropic),
    ):
        change(request["messages"])
        with pytest.raises(ValueError, match=r"."):
            validate(request)


@pytest.mark.parametrize(
    ("checker", "others"),
    [
        (request_checker, {"json"}),
        (responses_checker, {"tests.support.request_checker"}),
        (gemini_checker, {"base64", "tests.support.request_checker"}),
    ],
)
def test_the_checkers_import_nothing_of_trace(checker: Any, others: set[str]) -> None:
    tree = ast.parse(Path(checker.__file__).read_text(encoding="utf-8"))
    imported = {
        name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module]
        )
    }
    assert imported == {"__future__", "collections.abc", "re", "typing", *others}
