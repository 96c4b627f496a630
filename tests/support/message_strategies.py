"""Hypothesis strategies for contexts, likely and unlikely ones."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from trace_store.objects.message import KINDS, ROLES, Message
from trace_store.objects.parts import Image, Opaque, Part, Reasoning, Text, ToolCall, ToolResult

# Lone surrogates and pairs of them, controls, separators, blanks, and what JSON escapes.
characters = st.one_of(
    st.characters(codec="utf-8"),
    st.sampled_from('\ud83d\ude00\udc00\x00\x1b \n\t\u2028"\\\ufeff'),
)
texts = st.text(characters, max_size=12)
words = st.sampled_from(["", " ", "\n", "Plan the release.", "ok ", "é", "\ud83d\ude00"])
said = st.one_of(words, texts)
models = st.sampled_from(["", "claude-opus-4-6", "claude-opus-4-6-20260115", "gpt-5"])
# Few ids, so that calls and results meet, repeat and miss each other.
ids = st.sampled_from(["a", "b", "c", "", "call:1", "x" * 60, "é"])
names = st.sampled_from(["Bash", "mcp__files__read", "read file", "", "n" * 200])
arguments = st.one_of(
    st.sampled_from(["{}", "", '{"a": 1}', "[1]", "not json", '{"a": NaN}', '{"a": "\\ud83d"}']),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2).map(json.dumps),
)
images = st.one_of(
    st.builds(
        Image,
        st.sampled_from(["image/png", "image/tiff", ""]),
        st.one_of(st.none(), st.binary(max_size=6)),
    ),
    st.sampled_from(
        [
            Image(url="https://example.org/a.png"),
            Image(url="data:image/png;base64,AAAA"),
            Image(url="data:image/png;base64,?"),
            Image(url="file:///a"),
        ]
    ),
)
# A block of a type we do not know goes out verbatim, so these are known ones, in right and wrong places.
ANTHROPIC_BLOCKS: list[dict[str, Any]] = [
    {"type": "redacted_thinking", "data": "Eos"},
    {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "d"}},
    {"type": "tool_reference", "tool_name": "Bash"},
    {"type": "tool_use", "id": "a", "name": "Bash", "input": {}},
    {"type": "tool_result", "tool_use_id": "a"},
    {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}},
    {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []},
    {"type": "text", "text": " ", "cache_control": {"type": "ephemeral"}},
]
OPENAI_BLOCKS: list[dict[str, Any]] = [
    {"type": "refusal", "refusal": "no"},
    {"type": "file", "file": {"file_id": "f"}},
    {"type": "text", "text": "not a part of its own"},
]
opaques = st.one_of(
    st.builds(
        Opaque,
        st.sampled_from(["anthropic", "gemini"]),
        st.sampled_from([json.dumps(block).encode() for block in ANTHROPIC_BLOCKS]),
    ),
    st.sampled_from([Opaque("openai", json.dumps(block).encode()) for block in OPENAI_BLOCKS]),
    st.builds(Opaque, st.sampled_from(["anthropic", "openai", ""]), st.binary(max_size=6)),
)
reasonings = st.builds(Reasoning, said, st.sampled_from([None, "", "Eos", "sig"]))
calls = st.builds(ToolCall, ids, names, arguments, st.sampled_from(["json", "json", "text"]))
inner = st.lists(st.one_of(said.map(Text), images, opaques), max_size=3)
results = st.builds(ToolResult, ids, inner, st.booleans())
parts: st.SearchStrategy[Part] = st.one_of(
    said.map(Text), calls, results, calls, results, images, reasonings, opaques
)
messages: st.SearchStrategy[Message] = st.builds(
    Message,
    st.sampled_from(ROLES),
    st.lists(parts, max_size=4),
    kind=st.sampled_from(["", *KINDS]),
    name=st.sampled_from(["", "ada", "Ada L."]),
    model=models,
    id=st.sampled_from(["", "msg_1"]),
)
contexts = st.lists(messages, max_size=8)
TOOLS: list[dict[str, Any]] = [
    {"name": "Bash", "description": "Run.", "parameters": {"type": "object", "properties": {}}},
    {"name": "read file", "parameters": {"properties": {"path": {"type": "string"}}}},
    {"name": "plain"},
    {"name": "odd", "parameters": "none", "description": 1},
    {"name": 1},
    {},
    {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}},
    {"type": "custom", "custom": {"name": "patch", "description": "Apply."}},
    {"name": "own", "input_schema": {"type": "object"}, "cache_control": {"type": "ephemeral"}},
    {"type": "web_search_20250305", "name": "web_search"},
    {"type": "image_generation"},
    {"name": "odd \ud83d", "description": "\udc00"},
]
tools = st.lists(st.sampled_from(TOOLS), max_size=4, unique_by=str)
