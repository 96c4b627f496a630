"""LangChain's messages, as `messages_to_dict` writes them: what `messages_from_dict` and most stores of chats take.

Rule: a call stands in the content, where it was made, in `tool_calls`, and in the form that OpenAI's models give it,
which alone has the arguments as the model wrote them. Blocks are LangChain's own; a provider's are in `non_standard`.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from trace_store.context.usage import Usage, normalise_usage
from trace_store.errors import InvalidInputError
from trace_store.exporters.contract import Exported, ExportSession, file_name
from trace_store.exporters.lossy import coerce
from trace_store.exporters.lossy.calls import settle_calls
from trace_store.exporters.lossy.coerce import MAXIMUM_DEPTH, deeper_than, fit_image, whole
from trace_store.exporters.lossy.drafts import (
    ASSISTANT,
    TOOL,
    USER,
    Draft,
    apart,
    drafts_of,
    fit_parts,
    forget,
    split_results,
    with_roles,
)
from trace_store.exporters.lossy.loss_count import losses_of
from trace_store.objects.message import ROLES
from trace_store.objects.parts import Image, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.providers.langchain.parse import message_from_langchain
from trace_store.providers.wire import marked, parse_object, to_bytes

NAME = "langchain"
SUFFIX = ".json"

_TYPES = {
    "system": "system",
    "developer": "system",
    USER: "human",
    ASSISTANT: "ai",
    TOOL: "tool",
}

Wire = dict[str, Any]


def write(session: ExportSession) -> Exported:
    """Return the list of messages; see `contract.Writer`."""
    drafts = apart(drafts_of(session))
    with_roles(drafts, ROLES)
    drafts = fit_parts(drafts, _fit_part, _fit_plain)
    with_roles(drafts, ROLES)
    drafts = split_results(settle_calls(drafts, lambda id_: id_ or marked(id_, 16, "call")))
    coerce.fit_names(drafts)
    for draft in drafts:
        name = "" if draft.role == TOOL else draft.name
        forget([draft])
        draft.name, draft.time = name, 0
        if draft.role != ASSISTANT:
            draft.model, draft.usage = "", None
        if draft.usage is not None:
            draft.usage = normalise_usage(_usage(draft.usage))
    document = [_message(draft) for draft in drafts]
    losses = losses_of(session, drafts)
    return Exported(to_bytes(document) + b"\n", losses, file_name(session, SUFFIX))


def _fit_part(draft: Draft, part: Part) -> Part | None:
    if isinstance(part, ToolCall):
        return ToolCall(part.id, part.name, whole(part.arguments), part.format)
    if isinstance(part, Reasoning):
        return Reasoning(whole(part.text), whole(part.signature) if part.signature else None)
    if isinstance(part, ToolResult):
        return part
    return None if isinstance(part, Image) and draft.role == ASSISTANT else _fit_plain(part)


def _fit_plain(part: Part) -> Part | None:
    if isinstance(part, Text):
        return Text(whole(part.text))
    if isinstance(part, Image):
        return fit_image(part)
    return _fit_block(part) if isinstance(part, Opaque) else None


def _fit_block(part: Opaque) -> Opaque | None:
    """Return a block as a reader gets it; None when it would take it for another provider's, or for a part."""
    block = parse_object(part.data)
    if block is None or deeper_than(block, MAXIMUM_DEPTH):
        return None
    form = {"type": "human", "data": {"content": [_wrapped(part, block)]}}
    try:
        read = message_from_langchain(form, "").parts
    except InvalidInputError:
        return None
    same = len(read) == 1 and isinstance(read[0], Opaque) and read[0].provider == part.provider
    return read[0] if same and isinstance(read[0], Opaque) else None


def _wrapped(part: Opaque, block: Wire) -> Wire:
    return block if part.provider == NAME else {"type": "non_standard", "value": block}


def _message(draft: Draft) -> Wire:
    type_ = _TYPES[draft.role]
    # A reader tells by the beginning of a file what it is, so what may be long comes last.
    data: Wire = {"type": type_, "additional_kwargs": {}, "response_metadata": {}}
    data |= {"name": draft.name or None, "id": draft.id or None}
    if draft.role == TOOL:
        (result,) = draft.results
        status = "error" if result.is_error else "success"
        data |= {"tool_call_id": result.call_id, "status": status}
        data["content"] = _content(result.content)
        return {"type": type_, "data": data}
    if draft.role == "developer":
        data["additional_kwargs"] = {"__openai_role__": "developer"}
    if draft.role == ASSISTANT:
        data |= _said(draft)
    data["content"] = _content(draft.parts)
    return {"type": type_, "data": data}


def _said(draft: Draft) -> Wire:
    """Return what a message of a model has besides its content."""
    said: Wire = {"tool_calls": [], "invalid_tool_calls": []}
    for call in draft.calls:
        arguments = _arguments(call)
        form = {"name": call.name, "args": arguments, "id": call.id}
        if isinstance(arguments, dict):
            said["tool_calls"].append({**form, "type": "tool_call"})
        else:
            said["invalid_tool_calls"].append({**form, "error": None, "type": "invalid_tool_call"})
    if draft.calls:
        said["additional_kwargs"] = {"tool_calls": [_original(call) for call in draft.calls]}
    if draft.model:
        said["response_metadata"] = {"model_name": draft.model}
    if draft.usage is not None:
        said["usage_metadata"] = _usage(draft.usage)
    return said


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
    block = parse_object(part.data) if isinstance(part, Opaque) else None
    return _wrapped(part, block) if isinstance(part, Opaque) and block is not None else {}


def _arguments(call: ToolCall) -> Wire | str:
    """Return the arguments as an object, or as they are when they are none."""
    value = parse_object(call.arguments) if call.format == "json" else None
    return call.arguments if value is None or deeper_than(value, MAXIMUM_DEPTH) else value


def _original(call: ToolCall) -> Wire:
    """Return a call as OpenAI's models make it."""
    if call.format == "text":
        custom = {"name": call.name, "input": call.arguments}
        return {"id": call.id, "type": "custom", "custom": custom}
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def _usage(usage: Usage) -> Wire:
    return {
        "input_tokens": usage.input_total,
        "output_tokens": usage.output_total,
        "total_tokens": usage.input_total + usage.output_total,
        "input_token_details": {
            "cache_read": usage.cache_read,
            "cache_creation": usage.cache_write,
        },
        "output_token_details": {"reasoning": usage.reasoning},
    }
