"""Any context, however broken, gives requests that providers take."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.support.message_strategies import likely_contexts as contexts
from tests.support.message_strategies import tools
from tests.support.valid_requests import CHECKS, assert_valid_requests
from trace_store.errors import RenderError
from trace_store.objects.message import Message
from trace_store.objects.parts import Text, ToolCall, ToolResult
from trace_store.providers.rendering import FAULTS, MESSAGE_LISTS, render
from trace_store.providers.wire import to_bytes

options = st.fixed_dictionaries(
    {
        "model": st.sampled_from(
            [None, "claude-opus-4-6", "gpt-5", "gemini-3-pro", "gemini-2.5-pro"]
        ),
        "reasoning": st.booleans(),
        "cache": st.sampled_from(["none", "stable"]),
    }
)


@settings(max_examples=examples(1000, daily=75), deadline=None)
@given(contexts, tools, options)
def test_every_context_gives_valid_requests(
    messages: list[Message], schemas: list[dict[str, Any]], chosen: dict[str, Any]
) -> None:
    assert_valid_requests(messages, schemas, **chosen)


@settings(max_examples=examples(300), deadline=None)
@given(contexts)
def test_strict_refuses_exactly_what_is_a_fault(messages: list[Message]) -> None:
    for name in CHECKS:
        faults = [r for r in render(name, messages).repairs if r.code in FAULTS]
        if not faults:
            render(name, messages, strict=True)
            continue
        with pytest.raises(RenderError) as refused:
            render(name, messages, strict=True)
        assert refused.value.at == faults[0].at


@settings(max_examples=examples(300), deadline=None)
@given(contexts)
def test_pairs_stay_together_and_nothing_sound_is_lost(messages: list[Message]) -> None:
    """All providers show the same calls, and each call has the result of its own id."""
    rendered = assert_valid_requests(messages)
    gemini = [
        part["functionCall"]["id"]
        for content in rendered["gemini"].request["contents"]
        for part in content["parts"]
        if "functionCall" in part
    ]
    responses = [
        item["call_id"]
        for item in rendered["openai-responses"].request["input"]
        if item["type"] in ("function_call", "custom_tool_call")
    ]
    openai = [
        call["id"]
        for message in rendered["openai"].request["messages"]
        for call in message.get("tool_calls", [])
    ]
    anthropic = [
        block["id"]
        for message in rendered["anthropic"].request["messages"]
        for block in message["content"]
        if block["type"] == "tool_use"
    ]
    assert len(openai) == len(anthropic) == len(gemini) == len(responses)
    calls = sum(isinstance(p, ToolCall) for m in messages for p in m.parts)
    results = sum(isinstance(p, ToolResult) for m in messages for p in m.parts)
    for each in rendered.values():
        codes = [repair.code for repair in each.repairs]
        dropped_calls = codes.count("orphan-call") + codes.count("misplaced-call")
        dropped_results = codes.count("orphan-result") + codes.count("duplicate-result")
        assert calls - dropped_calls == len(openai) == results - dropped_results


def as_sent(name: str, messages: list[Message]) -> list[bytes]:
    """The bytes of a request: all but its messages, and then each message."""
    request = dict(render(name, messages).request)
    listed = next(request.pop(key) for key in MESSAGE_LISTS if key in request)
    return [to_bytes(request), *map(to_bytes, listed)]


@settings(max_examples=examples(200), deadline=None)
@given(contexts, st.integers(min_value=1, max_value=4))
def test_a_growing_context_keeps_its_prefix(messages: list[Message], more: int) -> None:
    """Once a user has spoken after the answers, later messages change nothing before."""
    settled = [*messages, Message("user", "Go on.")]
    # A later result may answer a call that waits, and a model's name settles whose thinking is shown.
    grown = [*settled, *(Message("user", [Text(f"more {n}")]) for n in range(more))]
    for name in CHECKS:
        before, after = as_sent(name, settled), as_sent(name, grown)
        # Anthropic's last message grows; elsewhere a user's message is one by itself.
        keep = len(before) - 1 if name == "anthropic" else len(before)
        assert before[:keep] == after[:keep]
