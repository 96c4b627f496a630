"""Messages as LangChain's `messages_to_dict` writes them.

Invariant: nothing is repaired, since a chat store is not a request: LangChain adapts it to a provider.

- A call is in the content, at its position, in `tool_calls`, and in the form of OpenAI's models in
  `additional_kwargs`. Only the last has the arguments as the model wrote them.
- Blocks are LangChain's own; another provider's block is the `value` of a `non_standard` block.
"""

from __future__ import annotations

import base64

from trace_store.objects.parts import Image, Opaque, Reasoning, Text, ToolCall, ToolResult
from trace_store.providers.langchain import PROVIDER
from trace_store.providers.wire import INNER_DEPTH, parse_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, TypeAlias

    from trace_store.objects.parts import Part
    from trace_store.providers.values import Renderable

    Wire: TypeAlias = dict[str, Any]

DEVELOPER = {"__openai_role__": "developer"}
_TYPES = {
    "system": "system",
    "developer": "system",
    "user": "human",
    "assistant": "ai",
    "tool": "tool",
}


def langchain_message(message: Renderable, usage: Mapping[str, Any] | None = None) -> Wire:
    """Return a message in LangChain's form.

    Args:
        message: the message; a tool message has exactly one result.
        usage: usage report of the provider, as LangChain's `usage_metadata`.
    """
    type_ = _TYPES[message.role]
    # Readers detect a file by its start, and content may be long, so it comes last.
    data: Wire = {"type": type_, "additional_kwargs": {}, "response_metadata": {}}
    data |= {"name": message.name or None, "id": message.id or None}
    content = message.parts
    for part in message.parts if message.role == "tool" else ():
        if isinstance(part, ToolResult):
            status = "error" if part.is_error else "success"
            data |= {"tool_call_id": part.call_id, "status": status}
            content = part.content
    if message.role == "developer":
        data["additional_kwargs"] = DEVELOPER
    if message.role == "assistant":
        data |= _calls([part for part in message.parts if isinstance(part, ToolCall)])
        if message.model:
            data["response_metadata"] = {"model_name": message.model}
        if usage is not None:
            data["usage_metadata"] = usage
    data["content"] = _content(content)
    return {"type": type_, "data": data}


def block_form(part: Opaque) -> Wire | None:
    """Return the block of an opaque part; None without a JSON object of limited depth."""
    block = parse_object(part.data, INNER_DEPTH)
    if block is None or part.provider == PROVIDER:
        return block
    return {"type": "non_standard", "value": block}


def _calls(calls: Sequence[ToolCall]) -> Wire:
    """Return the calls of a message outside its content."""
    said: Wire = {"tool_calls": [], "invalid_tool_calls": []}
    for call in calls:
        arguments = _arguments(call)
        form = {"name": call.name, "args": arguments, "id": call.id}
        if isinstance(arguments, dict):
            said["tool_calls"].append({**form, "type": "tool_call"})
        else:
            said["invalid_tool_calls"].append({**form, "error": None, "type": "invalid_tool_call"})
    return said | ({"additional_kwargs": {"tool_calls": [*map(_original, calls)]}} if calls else {})


def _content(parts: Sequence[Part]) -> str | list[Wire]:
    if not parts:
        return ""
    if len(parts) == 1 and isinstance(parts[0], Text) and parts[0].text:
        return parts[0].text
    return [_block(part) for part in parts]


def _block(part: Part) -> Wire:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    if isinstance(part, Image):
        if part.url is not None:
            return {"type": "image", "url": part.url}
        data = base64.b64encode(part.data or b"").decode()
        return {"type": "image", "base64": data, "mime_type": part.media_type}
    if isinstance(part, Reasoning):
        signed = {"extras": {"signature": part.signature}} if part.signature else {}
        return {"type": "reasoning", "reasoning": part.text, **signed}
    if isinstance(part, ToolCall):
        arguments = _arguments(part)
        kind = "tool_call" if isinstance(arguments, dict) else "invalid_tool_call"
        return {"type": kind, "id": part.id, "name": part.name, "args": arguments}
    return (block_form(part) if isinstance(part, Opaque) else None) or {}


def _arguments(call: ToolCall) -> Wire | str:
    """Return the arguments as an object, or the text if they are not one."""
    value = parse_object(call.arguments, INNER_DEPTH) if call.format == "json" else None
    return call.arguments if value is None else value


def _original(call: ToolCall) -> Wire:
    """Return a call in the form of OpenAI's models."""
    if call.format == "text":
        custom = {"name": call.name, "input": call.arguments}
        return {"id": call.id, "type": "custom", "custom": custom}
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}
