"""OpenAI's chat messages: a request to go on from, without the parameters that are the caller's.

Rule: every call is answered at once, and a message speaks before it calls. Reasoning, images of tools, and that a tool
failed have no place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trace_store.exporters.contract import Exported, ExportSession, file_name
from trace_store.exporters.lossy.coerce import fit_image, only_text, sound
from trace_store.exporters.lossy.drafts import ASSISTANT, TOOL, USER, Draft, split_results
from trace_store.exporters.lossy.loss_count import losses_of
from trace_store.exporters.lossy.openai_parts import PROVIDER, REFUSAL, data_url, fit_own
from trace_store.exporters.lossy.requests import (
    bare,
    fit_request,
    kept_tools,
    last_model_of,
    said_before_calls,
    sound_schemas,
    with_a_text,
)
from trace_store.objects.message import ROLES
from trace_store.objects.parts import Image, Opaque, Part, Text, ToolCall, ToolResult
from trace_store.providers.openai_chat.render import USER_BLOCKS
from trace_store.providers.tools import OPENAI_NAME_LIMIT, openai_tools
from trace_store.providers.values import Repairs
from trace_store.providers.wire import marked, parse_object, to_bytes, word

NAME = "openai"
SUFFIX = ".json"

ID_LIMIT = 40

Wire = dict[str, Any]


def write(session: ExportSession) -> Exported:
    """Return the request; see `contract.Writer`."""
    drafts = fit_request(session, ROLES, _fit_part, _inside, _call_id)
    drafts = split_results(drafts)
    bare(drafts, names=True)
    for draft in drafts:
        draft.name = word(draft.name, OPENAI_NAME_LIMIT, "name") if draft.name else ""
        said_before_calls(draft)
    with_a_text(drafts)
    model = last_model_of(session, PROVIDER)
    request: Wire = {"model": model} if model else {}
    request["messages"] = [_message(draft) for draft in drafts]
    schemas = sound_schemas(openai_tools(session.tools, Repairs(())))
    if schemas:
        request["tools"] = schemas
    losses = losses_of(session, drafts, tools=kept_tools(session, schemas))
    return Exported(to_bytes(request) + b"\n", losses, file_name(session, SUFFIX))


def _fit_part(draft: Draft, part: Part) -> Part | None:
    if isinstance(part, Text):
        return Text(sound(part.text)) if part.text else None
    if isinstance(part, ToolCall):
        name = word(part.name, OPENAI_NAME_LIMIT, "tool")
        return ToolCall(part.id, name, sound(part.arguments), part.format)
    if isinstance(part, ToolResult):
        return ToolResult(part.call_id, part.content)
    if isinstance(part, Image):
        return fit_image(part) if draft.role == USER else None
    if isinstance(part, Opaque):
        types = {USER: USER_BLOCKS, ASSISTANT: frozenset({REFUSAL})}.get(draft.role, frozenset())
        return fit_own(part, types)
    return None


def _inside(part: Part) -> Part | None:
    return Text(sound(part.text)) if isinstance(part, Text) and part.text else None


def _call_id(id_: str) -> str:
    fits = 0 < len(id_) <= ID_LIMIT and all("!" <= character <= "~" for character in id_)
    return id_ if fits else marked(id_, ID_LIMIT, "call")


def _message(draft: Draft) -> Wire:
    if draft.role == TOOL:
        (result,) = draft.results
        content = _content(result.content)
        return {"role": TOOL, "tool_call_id": result.call_id, "content": content}
    said = [part for part in draft.parts if not isinstance(part, ToolCall)]
    message: Wire = {"role": draft.role, "content": _content(said) or None}
    if draft.name:
        message["name"] = draft.name
    if draft.calls:
        message["tool_calls"] = [_call(call) for call in draft.calls]
    return message


def _content(parts: Sequence[Part]) -> str | list[Wire]:
    text = only_text(parts)
    return [_block(part) for part in parts] if text is None else text


def _block(part: Part) -> Wire:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    if isinstance(part, Image):
        return {"type": "image_url", "image_url": {"url": data_url(part)}}
    return (parse_object(part.data) if isinstance(part, Opaque) else None) or {}


def _call(call: ToolCall) -> Wire:
    if call.format == "text":
        custom = {"name": call.name, "input": call.arguments}
        return {"id": call.id, "type": "custom", "custom": custom}
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}
