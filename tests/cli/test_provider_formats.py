"""Provider formats: committed as received, compiled for another provider, and summarized."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.test_bad_input import refused
from tests.support.command_line import Run, Trace

RESPONSES: dict[str, Any] = {
    "model": "gpt-5",
    "instructions": "Be brief.",
    "input": [
        {"role": "user", "content": "Weather?"},
        {"type": "function_call", "call_id": "call_1", "name": "wx", "arguments": '{"q":"Oslo"}'},
        {"type": "function_call_output", "call_id": "call_1", "output": "4C"},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "4 C", "annotations": []}],
        },
    ],
}


def compiled(ok: Run, form: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(ok("compile", "-f", form).out)
    return found


@pytest.mark.parametrize("form", ["openai", "openai-responses", "anthropic", "gemini", "json"])
def test_what_is_compiled_for_a_provider_can_be_committed(ok: Run, form: str) -> None:
    ok("commit", "--json", stdin=json.dumps(RESPONSES).encode())
    request = ok("compile", "-f", form).out
    ok("commit", "--json", "--branch", "other", stdin=request)
    again = json.loads(ok("compile", "other", "-f", form).out)
    # Lossless JSON names the commit of each message.
    assert form == "json" or again == json.loads(request)
    texts = [
        line for line in ok("compile", "other").lines if line in ("Be brief.", "Weather?", "4 C")
    ]
    assert texts == ["Be brief.", "Weather?", "4 C"]


def test_contents_of_gemini_line_by_line(ok: Run) -> None:
    lines = [
        {"role": "user", "parts": [{"text": "And Rome?"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "wx", "args": {"q": "Rome"}}}]},
        {
            "role": "user",
            "parts": [{"functionResponse": {"name": "wx", "response": {"output": "20C"}}}],
        },
    ]
    ok("commit", "--jsonl", stdin="\n".join(map(json.dumps, lines)).encode())
    [_, call, result] = compiled(ok, "openai-responses")["input"]
    assert (call["call_id"], call["arguments"]) == (result["call_id"], '{"q":"Rome"}')
    assert result["output"] == "20C"


def test_a_damaged_item_is_named_and_nothing_is_committed(repository: Trace, ok: Run) -> None:
    ok("commit", "--user", "x")
    before = ok("rev-parse", "HEAD").text
    items = [RESPONSES["input"][0], {"type": "function_call", "name": "wx"}]
    for value, place in ((items, "message 2"), ({"input": items}, "message 2")):
        outcome = repository("commit", "--json", stdin=json.dumps(value).encode())
        refused(outcome, 2, place, "call_id must be text")
    assert ok("rev-parse", "HEAD").text == before


def test_what_every_message_needs_is_told_a_few_times(ok: Run) -> None:
    for number in range(6):
        id_ = f"call_{number}"
        call = {"id": id_, "type": "function", "function": {"name": "wx", "arguments": "{}"}}
        ok(
            *("commit", "--json"),
            stdin=json.dumps(
                [
                    {"role": "user", "content": "Well?"},
                    {"role": "assistant", "content": None, "tool_calls": [call]},
                    {"role": "tool", "tool_call_id": id_, "content": "4C"},
                    {"role": "tool", "tool_call_id": id_, "content": "again"},
                ]
            ).encode(),
        )
    notes = ok("compile", "-f", "gemini").err.splitlines()
    assert sum("has no signature" in note for note in notes) == 3
    assert notes[-1] == "note: 3 more call-unsigned (with --json, all of them)"
    # Every fault is reported.
    assert sum("a second result" in note for note in notes) == 6
    summary = json.loads(ok("compile", "-f", "gemini", "--json").out)
    codes = [repair["code"] for repair in summary["repairs"]]
    assert (codes.count("call-unsigned"), codes.count("duplicate-result")) == (6, 6)
