"""Detection of a provider's shape in messages, requests and responses.

Invariant: pure; decided by keys, roles and types. Anything without these is not a chat.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trace_store.providers.foreign import familiar_message
from trace_store.providers.langchain import is_langchain
from trace_store.providers.lossless import FORMAT as TRACE_FORMAT

TRACE, LANGCHAIN, GEMINI = "trace-json", "langchain", "gemini-contents"
RESPONSES, ANTHROPIC, OPENAI = "openai-responses", "anthropic", "openai"
UNDECIDED = "chat"
"""A text-only message, which OpenAI and Anthropic write alike."""

SYSTEM_KEYS = ("system", "instructions", "systemInstruction", "system_instruction")
PROMPT_KEYS = ("messages", "contents", "input", "conversations", "history")
ANSWER_KEYS = ("choices", "candidates", "output")
REQUEST_KEYS = ("request", "body", "params")
RESPONSE_KEYS = ("response", "result")
MAXIMUM_WRAPPERS = 4
"""Levels of wrappers around a request or response, as in logs and batches."""
MAXIMUM_VALUES = 20

_CHAT_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
_CONTENT_ROLES = frozenset({"user", "model", "function", "system"})
_SPEAKS = ("content", "tool_calls", "function_call", "refusal")
_ANTHROPIC_BLOCKS = frozenset(
    {
        *("container_upload", "document", "redacted_thinking", "search_result"),
        *("server_tool_use", "thinking", "tool_result", "tool_use"),
    }
)
_OPENAI_BLOCKS = frozenset({"file", "image_url", "input_audio", "refusal"})
_RESPONSES_BLOCKS = frozenset({"input_file", "input_image", "input_text", "output_text", "refusal"})
_ITEMS = frozenset(
    {
        *("additional_tools", "compaction", "compaction_trigger", "item_reference"),
        *("mcp_approval_request", "mcp_approval_response", "mcp_list_tools"),
        *("program", "program_output", "reasoning"),
    }
)
_OPENAI_ROLES = frozenset({"system", "developer", "tool", "function"})
_OPENAI_KEYS = ("tool_calls", "function_call", "tool_call_id", "refusal", "audio")


def message_shape(form: Mapping[str, Any]) -> str:
    """Return the shape of a message, bare or in the field `message`.

    One of the names above, UNDECIDED, or "" if it is not a message.
    """
    return _bare_shape(form) or _bare_shape(held_message(form))


def held_message(form: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an object's `message`, or an empty map."""
    message = form.get("message")
    return message if isinstance(message, dict) else {}


def _bare_shape(form: Mapping[str, Any]) -> str:
    form = familiar_message(form) or form
    role, parts = form.get("role"), form.get("parts")
    if isinstance(parts, list):
        if not isinstance(role, str):
            return GEMINI if role is None and _are_parts(parts) else ""
        typed = [part for part in parts if isinstance(part, dict) and "type" in part]
        if role == "model" or (parts and not typed and role in _CONTENT_ROLES):
            return GEMINI
        return TRACE if typed or not parts else ""
    if is_langchain(form):
        return LANGCHAIN
    if is_item(form):
        return RESPONSES
    if not isinstance(role, str) or role not in _CHAT_ROLES:
        return ""
    if not any(key in form for key in _SPEAKS):
        return ""
    content = form.get("content")
    if content is not None and not isinstance(content, str | list):
        return ""
    types = _types(content)
    sources = any("source" in block for block in _dicts(content))
    if sources or not types.isdisjoint(_ANTHROPIC_BLOCKS):
        return ANTHROPIC
    if any(type_.endswith("_tool_result") for type_ in types):
        return ANTHROPIC
    if form.get("type") == "message" and isinstance(content, list):
        return ANTHROPIC  # a response is a message itself
    spoken = role in _OPENAI_ROLES or any(key in form for key in _OPENAI_KEYS)
    return OPENAI if spoken or not types.isdisjoint(_OPENAI_BLOCKS) else UNDECIDED


def is_item(form: Mapping[str, Any]) -> bool:
    """Return True if an object can only be an item of OpenAI's Responses."""
    type_ = form.get("type")
    if not isinstance(type_, str):
        return False
    if type_ == "message" and isinstance(form.get("role"), str):
        return "phase" in form or not _types(form.get("content")).isdisjoint(_RESPONSES_BLOCKS)
    return "role" not in form and (type_ in _ITEMS or type_.endswith(("_call", "_call_output")))


def container_shape(form: Mapping[str, Any], depth: int = 0) -> str:
    """Return the shape of a request, response or wrapper; "" without messages."""
    if message_shape(form):
        return ""
    return _prompt_shape(form) or _answer_shape(form) or _wrapped_shape(form, depth)


def shape_of(form: Mapping[str, Any]) -> str:
    """Return the shape of a message or a container of messages."""
    return message_shape(form) or container_shape(form)


def shape_of_all(
    forms: Sequence[Mapping[str, Any]],
    shape_function: Callable[[Mapping[str, Any]], str] = shape_of,
) -> str:
    """Return the most specific shape among several values.

    One of the first two, and half of all, must have a shape.
    """
    shapes = [shape_function(form) for form in forms[:MAXIMUM_VALUES]]
    known = [shape for shape in shapes if shape]
    if not any(shapes[:2]) or 2 * len(known) < len(shapes):
        return ""
    for name in (TRACE, LANGCHAIN, GEMINI, RESPONSES, ANTHROPIC, OPENAI):
        if name in known:
            return name if name != LANGCHAIN or _are_langchain(forms) else ""
    return UNDECIDED


def _prompt_shape(form: Mapping[str, Any]) -> str:
    if form.get("format") == TRACE_FORMAT and isinstance(form.get("messages"), list):
        return TRACE
    for key in PROMPT_KEYS:
        shape = shape_of_messages(form.get(key))
        if shape == UNDECIDED:
            return _decide(form, key)
        if shape:
            return shape
    return ""


def _decide(form: Mapping[str, Any], key: str) -> str:
    """Decide the format of text-only messages by their neighbouring fields."""
    if key == "input":
        return RESPONSES if "model" in form or "instructions" in form else ""
    model = form.get("model")
    claude = isinstance(model, str) and "claude" in model
    return ANTHROPIC if claude or "system" in form or "anthropic_version" in form else OPENAI


def shape_of_messages(messages: Any) -> str:
    """Return the shape of a list of messages."""
    if not isinstance(messages, list) or not messages:
        return ""
    forms = [form for form in messages[:MAXIMUM_VALUES] if isinstance(form, dict)]
    return shape_of_all(forms, message_shape)


def _answer_shape(form: Mapping[str, Any]) -> str:
    choices, candidates, output = (form.get(key) for key in ANSWER_KEYS)
    if any(_bare_shape(held_message(choice)) for choice in _dicts(choices)[:1]):
        return OPENAI
    if any(candidate_content(candidate) is not None for candidate in _dicts(candidates)[:1]):
        return GEMINI
    items = _dicts(output)
    return RESPONSES if any(map(is_item, items)) else ""


def _wrapped_shape(form: Mapping[str, Any], depth: int) -> str:
    if depth == MAXIMUM_WRAPPERS:
        return ""
    for key in (*REQUEST_KEYS, *RESPONSE_KEYS):
        inner = form.get(key)
        if not isinstance(inner, dict):
            continue
        shape = container_shape(inner, depth + 1)
        if not shape and key in RESPONSE_KEYS and message_shape(inner):
            shape = ANTHROPIC
        if shape:
            return shape
    return ""


def candidate_content(candidate: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the content of an element of `candidates`."""
    content = candidate.get("content")
    return content if isinstance(content, dict) and _bare_shape(content) == GEMINI else None


def _are_langchain(forms: Sequence[Mapping[str, Any]]) -> bool:
    """Return True if there is a mark of LangChain.

    Others have messages of type "system" too.
    """
    held = [*forms, *(message for form in forms for message in _dicts(form.get("messages")))]
    return any(map(_has_langchain_mark, held))


def _has_langchain_mark(form: Mapping[str, Any]) -> bool:
    inner = form.get("data")
    if isinstance(inner, dict) and "additional_kwargs" in inner:
        return True
    path = form.get("id")
    name = path[-1] if "lc" in form and isinstance(path, list) and path else form.get("type")
    return name in ("human", "ai") or (
        isinstance(name, str) and name.endswith(("Message", "MessageChunk"))
    )


def _are_parts(parts: Sequence[Any]) -> bool:
    keys = ("text", "inlineData", "inline_data", "functionCall", "function_call")
    return bool(parts) and all(
        isinstance(part, dict) and "type" not in part and any(key in part for key in keys)
        for part in parts
    )


def _types(content: Any) -> frozenset[str]:
    types = (block.get("type") for block in _dicts(content))
    return frozenset(type_ for type_ in types if isinstance(type_, str))


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
