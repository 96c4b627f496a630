"""LangChain's messages, as in chat stores.

Reading: messages from `messages_to_dict`, `dumpd` and `model_dump`.

Invariant: fields are only read. A dump names constructors, but none is called here.

- A call counts once, although it may be in the content, in `tool_calls` and in `additional_kwargs`. Its
  position is that in the content; its arguments are the model's own text if `additional_kwargs` has it.
- Blocks are in a provider's form or in LangChain's own. A LangChain block without a part type in Trace is kept
  verbatim as an opaque part of provider "langchain".
- Data that the model does not see (`artifact`, `response_metadata`, `usage_metadata`) is ignored, except for the
  model's name.

Writing: messages as `messages_to_dict` writes them.

Invariant: nothing is repaired, since a chat store is not a request: LangChain adapts it to a provider.

- A call is in the content, at its position, in `tool_calls`, and in the form of OpenAI's models in
  `additional_kwargs`. Only the last has the arguments as the model wrote them.
- Blocks are LangChain's own; another provider's block is the `value` of a `non_standard` block.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from trace_store.objects.message import ROLES, Message
from trace_store.objects.parts import Image, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.providers.chat import block_part
from trace_store.providers.fields import (
    decoded,
    details,
    dump,
    entries,
    mapping,
    message,
    opaque,
    optional,
    parts_of,
    parts_of_each,
    required,
    wrong,
)
from trace_store.providers.openai_chat import function_call, tool_calls
from trace_store.providers.openai_responses import call_part, reasoning_parts
from trace_store.providers.rendering import Renderable
from trace_store.providers.wire import INNER_DEPTH, parse_object

Wire: TypeAlias = dict[str, Any]
PROVIDER = "langchain"
DEVELOPER = {"__openai_role__": "developer"}
_TYPES = {
    "system": "system",
    "developer": "system",
    "user": "human",
    "assistant": "ai",
    "tool": "tool",
}
_ROLES_OF_TYPES = {
    "ai": "assistant",
    "chat": "",
    "function": "tool",
    "human": "user",
    "system": "system",
    "tool": "tool",
}
_OWN_BLOCKS = frozenset(
    {"audio", "file", "server_tool_call", "server_tool_result", "text-plain", "video"}
)
_CALL_BLOCKS = frozenset({"invalid_tool_call", "tool_call", "tool_call_chunk", "tool_use"})
_RESPONSES_CALLS = frozenset({"custom_tool_call", "function_call"})
# Fragments of a call that is complete elsewhere.
_FRAGMENTS = frozenset({"input_json_delta", "server_tool_call_chunk"})
_SIGNATURES = "__gemini_function_call_thought_signatures__"


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


def is_langchain(form: Mapping[str, Any]) -> bool:
    """Return True if an object is a LangChain message."""
    if "lc" in form and isinstance(form.get("kwargs"), dict):
        return True
    type_ = _type_name(form.get("type"))
    if type_ not in _ROLES_OF_TYPES or ("role" in form and type_ != "chat"):
        return False
    return isinstance(form.get("data"), dict) or "content" in form


def message_from_langchain(form: Mapping[str, Any], where: str) -> Message:
    """Return a message of LangChain's.

    Raises:
        InvalidMessageError: it has another form, or removes messages (type "remove"); `.where` is `where`.
    """
    type_, fields = _opened(form, where)
    extra = fields.get("additional_kwargs")
    extra = extra if isinstance(extra, dict) else {}
    metadata = fields.get("response_metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    id_, name = details(fields, where, "id", "name").values()
    if type_ == "ai":
        parts = list(_said(fields, extra, where))
        model = next((m for k in ("model_name", "model") if (m := metadata.get(k))), "")
        model = model if isinstance(model, str) else ""
        return message("assistant", parts, where, id=id_, model=model, name=name)
    content = list(_read_content(fields.get("content"), {}, where))
    if type_ == "tool":
        call_id = required(fields, "tool_call_id", where)
        result = ToolResult(call_id, content, fields.get("status") == "error")
        return message("tool", [result], where, id=id_)
    if type_ == "function":
        return message("tool", [ToolResult(name, content)], where, id=id_)
    role = _ROLES_OF_TYPES[type_] or required(fields, "role", where)
    if role == "system" and extra.get("__openai_role__") == "developer":
        role = "developer"
    if role not in ROLES:
        role = _ROLES_OF_TYPES.get(role, role)
    return message(role, content, where, id=id_, name=name)


def _opened(form: Mapping[str, Any], where: str) -> tuple[str, Mapping[str, Any]]:
    """Return the type of a message and its unwrapped fields."""
    form = mapping(form, where, "a message")
    type_: object = form.get("type")
    fields: Mapping[str, Any] = form
    if "lc" in form:
        path = form.get("id")
        type_ = path[-1] if isinstance(path, list) and path else None
        fields = mapping(form.get("kwargs"), where, "kwargs")
    elif "data" in form:
        fields = mapping(form["data"], where, "data")
    found = _type_name(type_)
    if found == "remove":
        raise wrong(where, "it removes a message and is not one itself")
    if found not in _ROLES_OF_TYPES:
        raise wrong(where, f"unknown type of message {str(type_)[:40]!r}")
    return found, fields


def _type_name(type_: object) -> str:
    """Return the message type of a LangChain class or type: AIMessageChunk is ai."""
    if not isinstance(type_, str):
        return ""
    return type_.removesuffix("Chunk").removesuffix("Message").lower()


def _said(fields: Mapping[str, Any], extra: Mapping[str, Any], where: str) -> Iterator[Part]:
    """Yield the model's parts: thoughts, content, and calls outside the content."""
    thought = extra.get("reasoning_content")
    if isinstance(thought, str) and thought:
        yield Reasoning(thought)
    if isinstance(extra.get("reasoning"), dict):
        yield from reasoning_parts(extra["reasoning"], where)
    calls = _read_calls(fields, extra, where)
    signatures = extra.get(_SIGNATURES)
    signatures = signatures if isinstance(signatures, dict) else {}
    found = [*_read_content(fields.get("content"), calls, where), *calls.values()]
    found += (
        []
        if calls or fields.get("tool_calls")
        else function_call(extra.get("function_call"), where)
    )
    for part in found:
        if isinstance(part, ToolCall) and isinstance(signatures.get(part.id), str):
            yield Reasoning("", signatures[part.id])
        yield part
    if isinstance(extra.get("refusal"), str) and extra["refusal"]:
        yield opaque("openai", {"type": "refusal", "refusal": extra["refusal"]})


def _read_calls(fields: Mapping[str, Any], extra: Mapping[str, Any], where: str) -> dict[str, Part]:
    """Return the calls by id, in order, with the model's own text if available."""
    calls: dict[str, Part] = {}
    for name in ("tool_calls", "invalid_tool_calls"):
        found = parts_of_each(_read_call, entries(fields.get(name), where, name), where)
        for index, call in enumerate(found):
            calls[getattr(call, "id", "") or f"\0{name}{index}"] = call
    # A third copy, and the only one with the text as the model wrote it.
    original = extra.get("tool_calls")
    for call in tool_calls(original, where) if isinstance(original, list) else ():
        if isinstance(call, ToolCall):
            calls[call.id] = call
    return calls


def _read_call(form: Any, where: str) -> Iterator[ToolCall]:
    yield _call(mapping(form, where, "a call"), where)


def _call(form: Mapping[str, Any], where: str) -> ToolCall:
    arguments = form.get("args", form.get("input", {}))
    return ToolCall(
        optional(form, "id", where),
        optional(form, "name", where),
        arguments if isinstance(arguments, str) else dump(arguments),
    )


def _read_content(content: object, calls: dict[str, Part], where: str) -> Iterator[Part]:
    """Yield the parts of a content; remove calls in it from `calls`."""
    if content is None or content == "":
        return
    if isinstance(content, str):
        yield Text(content)
        return

    def blocks(content: Any, where: str) -> list[Part]:
        forms = entries(content, where, "content")
        place = f"{where}: content"
        return parts_of_each(lambda block, at: _read_block(block, calls, at), forms, place)

    yield from parts_of(blocks, content, where)


def _read_block(block: Any, calls: dict[str, Part], where: str) -> Iterator[Part]:
    type_ = block.get("type") if isinstance(block, dict) else None
    type_ = type_ if isinstance(type_, str) else None
    extras = block.get("extras") if isinstance(block, dict) else None
    extras = extras if isinstance(extras, dict) else {}
    if type_ == "non_standard":
        if not isinstance(block.get("value"), dict):
            raise wrong(where, "a non_standard block needs a value")
        yield from _read_block(block["value"], calls, where)
    elif type_ in _CALL_BLOCKS:
        signature = extras.get("signature")
        if isinstance(signature, str) and signature:
            yield Reasoning("", signature)
        if type_ == "tool_use":
            required(block, "id", where)
            required(block, "name", where)
        call = _call(block, where)
        yield calls.pop(call.id, call)
    elif type_ in _RESPONSES_CALLS:
        call = call_part(block, type_, where)
        calls.pop(call.id, None)
        yield call
    elif type_ == "reasoning":
        yield from _reasoning(block, extras, where)
    elif type_ in _OWN_BLOCKS or (
        type_ == "media" and not str(block.get("mime_type")).startswith("image/")
    ):
        yield opaque(PROVIDER, block)
    elif type_ in ("image", "media") and "source" not in block:
        yield _image(block, where) or opaque(PROVIDER, block)
    elif type_ not in _FRAGMENTS:
        yield block_part(block, where, PROVIDER)


def _reasoning(block: Mapping[str, Any], extras: Mapping[str, Any], where: str) -> Iterator[Part]:
    """Yield the parts of a reasoning block in OpenAI's or LangChain's form."""
    if isinstance(block.get("summary"), list) or "encrypted_content" in block:
        yield from reasoning_parts(block, where)
        return
    signature = extras.get("signature") or extras.get("encrypted_content") or block.get("signature")
    yield Reasoning(
        optional(block, "reasoning", where), signature if isinstance(signature, str) else None
    )


def _image(block: Mapping[str, Any], where: str) -> Image | None:
    """Return an image in LangChain's form, or None for a file id at the provider."""
    data = block.get("base64", block.get("data"))
    if isinstance(data, str):
        return Image(optional(block, "mime_type", where), decoded(data, where))
    url = block.get("url") or block.get("file_uri")
    return Image(url=url) if isinstance(url, str) else None
