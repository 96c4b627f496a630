"""LangChain's dumps: each call once, with the model's own text of its arguments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from tests.importers.support.checks import assert_grows, damaged, lines_of
from tests.importers.support.sound import HEADS, branches_of, import_damaged, imported, messages
from tests.importers.support.states import commits, tip_of
from trace_store.objects.parts import Opaque, Text, ToolCall, ToolResult

ORIGINAL = '{"p":  "a.txt"}'
HUMAN: dict[str, Any] = {"type": "human", "data": {"content": "Read a.txt, please."}}
AI: dict[str, Any] = {
    "type": "ai",
    "data": {
        "content": [
            {"type": "text", "text": "I read it."},
            {"type": "tool_use", "id": "t1", "name": "read", "input": {"p": "a.txt"}},
        ],
        "additional_kwargs": {
            "tool_calls": [
                {
                    "id": "t1",
                    "type": "function",
                    "function": {"name": "read", "arguments": ORIGINAL},
                }
            ]
        },
        "response_metadata": {"model_name": "gpt-5"},
        "id": "run-1",
        "tool_calls": [{"name": "read", "args": {"p": "a.txt"}, "id": "t1", "type": "tool_call"}],
        "invalid_tool_calls": [],
        "usage_metadata": {
            "input_tokens": 10,
            "output_tokens": 4,
            "total_tokens": 14,
            "input_token_details": {"cache_read": 6},
        },
    },
}
TOOL: dict[str, Any] = {
    "type": "tool",
    "data": {
        "content": "no such file",
        "tool_call_id": "t1",
        "artifact": {"rows": [1]},
        "status": "error",
    },
}
REMOVE: dict[str, Any] = {"type": "remove", "data": {"id": "run-1", "content": ""}}
TALK = [HUMAN, AI, TOOL]


def constructor(form: dict[str, Any], name: str) -> dict[str, Any]:
    """A message as `dumpd` writes it."""
    path = ["langchain", "schema", "messages", name]
    return {"lc": 1, "type": "constructor", "id": path, "kwargs": form["data"]}


DUMPED = [
    constructor(HUMAN, "HumanMessage"),
    constructor(AI, "AIMessageChunk"),
    constructor(TOOL, "ToolMessage"),
]
FLAT = [{"type": form["type"], **form["data"]} for form in TALK]


@pytest.mark.parametrize("talk", [TALK, DUMPED, FLAT], ids=["dicts", "dumpd", "flat"])
@pytest.mark.parametrize("held", ["list", "state", "lines"])
def test_a_talk(tmp_path: Path, talk: list[Any], held: str) -> None:
    data = (
        lines_of(talk)
        if held == "lines"
        else json.dumps(talk if held == "list" else {"messages": talk}).encode()
    )
    store, report = imported(tmp_path, "talk.json", data)
    assert (report.format, branches_of(store)) == ("langchain", {"langchain/talk"})
    said = messages(store, "langchain/talk")
    assert [message.role for message in said] == ["user", "assistant", "tool"]
    assert said[1].parts == (Text("I read it."), ToolCall("t1", "read", ORIGINAL))
    assert (said[1].model, said[1].id) == ("gpt-5", "run-1")
    assert said[2].parts == (ToolResult("t1", "no such file", True),)
    tip = tip_of(store, HEADS + "langchain/talk")
    made = commits(store, tip)
    assert [commit.author for commit in made] == ["langchain/user", "langchain/gpt-5", "langchain"]
    (usage,) = [o.fields for commit in made for o in commit.operations if o.name == "usage"]
    assert (usage["input_total"], usage["cache_read"], usage["output_total"]) == (10, 6, 4)


def test_blocks_of_its_own(tmp_path: Path) -> None:
    blocks = [
        {"type": "reasoning", "reasoning": "Hm."},
        {"type": "non_standard", "value": {"type": "text", "text": "Odd."}},
        {"type": "server_tool_call", "id": "s1", "name": "web_search", "args": {}},
        {"type": "tool_call", "id": "t2", "name": "read", "args": {"p": "b"}},
    ]
    talk = [HUMAN, {"type": "ai", "data": {"content": blocks, "tool_calls": []}}]
    store, _ = imported(tmp_path, "talk.json", talk)
    parts = messages(store, "langchain/talk")[1].parts
    assert [part.type for part in parts] == ["reasoning", "text", "opaque", "tool_call"]
    assert isinstance(parts[2], Opaque)
    assert parts[2].provider == "langchain"


def test_what_takes_a_message_out_says_nothing(tmp_path: Path) -> None:
    store, report = imported(tmp_path, "talk.json", [*TALK, REMOVE])
    assert len(messages(store, "langchain/talk")) == 3
    assert dict(report.records)["remove", "source"] == 1


def test_a_dump_of_something_else_is_no_talk(tmp_path: Path) -> None:
    prompt = {"lc": 1, "type": "constructor", "id": ["langchain", "prompts", "PromptTemplate"]}
    store, report = imported(tmp_path, "x.json", [{**prompt, "kwargs": {}}, *DUMPED])
    assert len(messages(store, "langchain/x")) == 3
    assert dict(report.records)["PromptTemplate", "source"] == 1


def test_a_talk_goes_on(tmp_path: Path) -> None:
    assert_grows(tmp_path, lines_of([*TALK, HUMAN, *TALK]), "talk.jsonl")


@given(damaged([*TALK, *DUMPED, *FLAT, REMOVE]))
def test_whatever_a_talk_holds(
    tmp_path_factory: pytest.TempPathFactory, records: list[Any]
) -> None:
    import_damaged(tmp_path_factory.mktemp("talk"), records, "langchain")
