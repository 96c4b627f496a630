"""The fast path for Codex items gives the same result as full parsing."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
from hypothesis import given

from trace_store.importers.formats.codex import message_of, parsed_message_of

TEXTS = st.text(max_size=6) | st.sampled_from(["call_1", "<user_instructions>x", '{"output":"', ""])
ODD: st.SearchStrategy[Any] = (
    st.none() | st.booleans() | st.integers() | st.just([]) | st.just({}) | TEXTS
)
BLOCKS = st.lists(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["input_text", "output_text", "text", "input_image"]) | ODD},
        optional={"text": TEXTS | ODD, "image_url": TEXTS},
    )
    | ODD,
    max_size=3,
)
FIELDS = {
    "id": TEXTS,
    "role": st.sampled_from(["user", "assistant", "developer", "system", "tool"]),
    "content": BLOCKS,
    "summary": BLOCKS,
    "encrypted_content": TEXTS,
    "call_id": TEXTS,
    "name": TEXTS,
    "arguments": TEXTS,
    "input": TEXTS,
    "output": TEXTS | st.sampled_from(['{"output":"no","metadata":{"exit_code":1}}']),
    "phase": TEXTS,
    "namespace": TEXTS,
    "status": TEXTS,
}
NEEDED = {
    "message": ("role", "content"),
    "reasoning": (),
    "function_call": ("call_id", "name", "arguments"),
    "custom_tool_call": ("call_id", "name", "input"),
    "function_call_output": ("call_id", "output"),
    "custom_tool_call_output": ("call_id", "output"),
    "web_search_call": (),
}


@st.composite
def items(draw: st.DrawFn) -> dict[str, Any]:
    """Items of each kind with required fields, extra, missing or random ones."""
    kind = draw(st.sampled_from(sorted(NEEDED)))
    item: dict[str, Any] = {"type": kind, **{name: draw(FIELDS[name]) for name in NEEDED[kind]}}
    for name in draw(st.lists(st.sampled_from(sorted(FIELDS)), max_size=2)):
        item[name] = draw(FIELDS[name] | ODD)
    for name in draw(st.lists(st.sampled_from(sorted(item)), max_size=1)):
        del item[name]
    return item


@given(items(), st.sampled_from(["", "gpt-5"]))
def test_a_plain_item_means_what_it_means_when_parsed(item: dict[str, Any], model: str) -> None:
    assert message_of(item, model) == parsed_message_of(item, model)
