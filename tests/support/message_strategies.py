"""Hypothesis strategies for contexts, likely and unlikely ones."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from tests.support.pictures import PNG
from trace_store.objects.message import KINDS, ROLES, Message
from trace_store.objects.parts import Image, Opaque, Part, Reasoning, Text, ToolCall, ToolResult

# Lone and paired surrogates, control characters, separators, blanks, JSON escapes.
characters = st.one_of(
    st.characters(codec="utf-8"),
    st.sampled_from('\ud83d\ude00\udc00\x00\x1b \n\t\u2028"\\\ufeff'),
)
texts = st.text(characters, max_size=12)
words = st.sampled_from(["", " ", "\n", "Plan the release.", "ok ", "é", "\ud83d\ude00"])
said = st.one_of(words, texts)
models = st.sampled_from(
    [
        *("", "claude-opus-4-6", "claude-opus-4-6-20260115", "gpt-5", "gpt-5-2025-08-07"),
        *("gemini-3-pro", "models/gemini-3-pro", "gemini-2.5-pro"),
    ]
)
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
            Image(url="data:image/gif;base64,AAAA"),
            Image(url="https://example.org/a?b=c.png"),
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
    {"type": "input_file", "file_id": "f"},
    {"type": "input_image", "file_id": "f", "detail": "auto"},
    {"type": "message", "phase": "commentary"},
    {"type": "message", "role": "user", "content": "not a part of its own"},
    {"type": "function_call", "call_id": "a", "namespace": "files"},
    {"type": "function_call", "call_id": "a", "name": "Bash", "arguments": "{}"},
    {"type": "reasoning", "id": "rs_1", "summary": []},
    {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search"}},
    {
        "type": "local_shell_call",
        "id": "lsh_1",
        "call_id": "a",
        "status": "completed",
        "action": {"type": "exec", "command": ["ls"], "env": {}},
    },
    {"type": "local_shell_call_output", "id": "a", "output": "{}"},
    {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAA"},
]
GEMINI_PARTS: list[dict[str, Any]] = [
    {"executableCode": {"language": "PYTHON", "code": "1"}},
    {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
    {"inlineData": {"mimeType": "audio/wav", "data": "AAAA"}},
    {"fileData": {"mimeType": "application/pdf", "fileUri": "https://example.org/a.pdf"}},
    {"functionCall": {"id": "a", "name": "Bash", "args": {}}},
    {"functionResponse": {"id": "a", "name": "Bash", "response": {}}},
    {"text": "not a part of its own"},
]
opaques = st.one_of(
    st.builds(
        Opaque,
        st.sampled_from(["anthropic", "gemini"]),
        st.sampled_from([json.dumps(block).encode() for block in ANTHROPIC_BLOCKS]),
    ),
    st.sampled_from([Opaque("openai", json.dumps(block).encode()) for block in OPENAI_BLOCKS]),
    st.sampled_from([Opaque("gemini", json.dumps(part).encode()) for part in GEMINI_PARTS]),
    st.builds(Opaque, st.sampled_from(["anthropic", "openai", ""]), st.binary(max_size=6)),
)
reasonings = st.builds(
    Reasoning, said, st.sampled_from([None, "", "Eos", "sic=", "sig=", "sig==", "?"])
)
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
    {"type": "custom", "name": "flat", "format": {"type": "text"}},
    {"type": "function", "name": "1st", "parameters": {"type": "object"}, "strict": True},
    {
        "functionDeclarations": [
            {
                "name": "g",
                "parameters": {"type": "OBJECT", "properties": {"q": {"type": "STRING"}}},
            },
            {"name": "h", "parametersJsonSchema": {"type": "object"}},
        ]
    },
    {"googleSearch": {}},
    {"name": "odd \ud83d", "description": "\udc00"},
]
tools = st.lists(st.sampled_from(TOOLS), max_size=4, unique_by=str)

# Contexts as agents make them: calls are answered, and nothing in them must be repaired for the form they are for.
MODELS = {
    "anthropic": "claude-opus-4-6",
    "gemini": "gemini-3-pro",
    "openai": "gpt-5",
    "openai-responses": "gpt-5",
}
OWN_BLOCKS: dict[str, list[Opaque]] = {
    "anthropic": [Opaque("anthropic", b'{"type": "redacted_thinking", "data": "Eos"}')],
    "gemini": [
        Opaque("gemini", b'{"executableCode": {"language": "PYTHON", "code": "1"}}'),
        Opaque("gemini", b'{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1"}}'),
    ],
    "openai": [Opaque("openai", b'{"type":"refusal", "refusal":"no"}')],
    "openai-responses": [
        Opaque("openai", b'{"type":"refusal", "refusal":"no"}'),
        Opaque(
            "openai",
            b'{"type": "web_search_call", "id": "ws_1", "status": "completed",'
            b' "action": {"type": "search", "query": "q"}}',
        ),
    ],
}
plain_texts = st.one_of(
    st.sampled_from(["", "Plan the release.", "[tool error]", "é\n\u2028 x"]),
    st.text(st.characters(codec="utf-8"), min_size=1, max_size=12).filter(str.strip),
)
sound_images = st.sampled_from(
    [
        Image("image/png", PNG),
        Image(url="https://example.org/a.png"),
        Image(url="data:image/png;base64,AAAA"),
    ]
)
sound_arguments = st.one_of(
    st.sampled_from(["{}", '{"a":1}', '{"a": 1.50}', ""]),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2).map(json.dumps),
)
# Made once: Hypothesis checks a new strategy at its first draw.
signed = st.sampled_from(["Eosx", "gAAA"])
spoken = plain_texts.filter(bool).map(Text)
few_spoken = st.lists(spoken, max_size=1)
fronts = st.lists(plain_texts.filter(bool), max_size=2)
plain_parts = plain_texts.map(Text)
sound_parts = st.one_of(plain_parts, sound_images)
asked_parts = st.lists(sound_parts, min_size=1, max_size=3)
# Chat completions move images out of results, and that is a repair.
result_parts = {
    form: st.lists(plain_parts if form == "openai" else sound_parts, max_size=3) for form in MODELS
}


@st.composite
def sound_contexts(draw: st.DrawFn, form: str) -> list[Message]:
    """A context that a provider takes as it stands: front, then people, models and tools in turn."""
    found = [
        Message(draw(st.sampled_from(["system", "developer"])), [Text(text)])
        for text in draw(fronts)
    ]
    number = 0
    for _ in range(draw(st.integers(1, 4))):
        asked = draw(asked_parts)
        found.append(Message("user", asked, name=draw(st.sampled_from(["", "ada"]))))
        for _ in range(draw(st.integers(0, 3))):
            said, number = draw(_answers(form, number))
            found += said
    return found


@st.composite
def _framed(draw: st.DrawFn) -> list[Part]:
    """A text and the phase it is of, as Responses tells it."""
    phase = draw(st.sampled_from(["commentary", "final_answer"]))
    return [Opaque("openai", f'{{"type":"message","phase":"{phase}"}}'.encode()), draw(spoken)]


def _pieces(form: str) -> st.SearchStrategy[list[list[Part]]]:
    """What a model says, in the blocks of its provider."""
    thoughts = st.builds(Reasoning, plain_texts, signed)
    pieces = st.one_of(
        spoken.map(lambda part: [part]),
        thoughts.map(lambda part: [part]),
        st.sampled_from([[own] for own in OWN_BLOCKS[form]]),
        *([_framed()] if form == "openai-responses" else []),
    )
    return st.lists(pieces, max_size=3)


PIECES = {form: _pieces(form) for form in MODELS}


@st.composite
def _answers(draw: st.DrawFn, form: str, number: int) -> tuple[list[Message], int]:
    """What a model says at a time, in one message or two, and the results of its calls."""
    parts: list[Part] = [part for each in draw(PIECES[form]) for part in each]
    calls: list[Part] = []
    for _ in range(draw(st.integers(0, 2))):
        number += 1
        text = draw(st.booleans())
        arguments = draw(plain_texts if text else sound_arguments)
        name = draw(st.sampled_from(["Bash", "read"]))
        calls.append(ToolCall(f"call_{number}", name, arguments, "text" if text else "json"))
        calls += draw(few_spoken)
    if not calls or draw(st.booleans()):
        parts.append(draw(spoken))
    where = draw(st.integers(0, 2)) if len(calls) > 1 else 0
    model, id_ = MODELS[form], draw(st.sampled_from(["", "msg_1"]))
    kind = draw(st.sampled_from(["", "output"]))
    said = [
        Message("assistant", [*parts, *calls[: len(calls) - where]], model=model, id=id_, kind=kind)
    ]
    if where:
        said.append(Message("assistant", calls[len(calls) - where :], model=model))
    answers = [
        ToolResult(call.id, draw(result_parts[form]), is_error)
        for call in calls
        if isinstance(call, ToolCall)
        for is_error in [draw(st.booleans()) and form != "anthropic"]
    ]
    answers = draw(st.permutations(answers))
    if draw(st.booleans()):
        said += [Message("tool", [answer]) for answer in answers]
    elif answers:
        more = draw(few_spoken)
        said.append(Message("user", [*more, *answers]))
    return said, number


likely_contexts = st.one_of(contexts, *(sound_contexts(form) for form in MODELS))
