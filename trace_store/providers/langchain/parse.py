"""Parser of LangChain messages from `messages_to_dict`, `dumpd` and `model_dump`.

Invariant: fields are only read. A dump names constructors, but none is called here.

- A call counts once, although it may be in the content, in `tool_calls` and in `additional_kwargs`. Its
  position is that in the content; its arguments are the model's own text if `additional_kwargs` has it.
- Blocks are in a provider's form or in LangChain's own. A LangChain block without a part type in Trace is kept
  verbatim as an opaque part of provider "langchain".
- Data that the model does not see (`artifact`, `response_metadata`, `usage_metadata`) is ignored, except for the
  model's name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trace_store.objects.message import ROLES, Message
from trace_store.objects.parts import Image, Part, Reasoning, Text, ToolCall, ToolResult
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
from trace_store.providers.langchain import PROVIDER
from trace_store.providers.openai_chat.parse import function_call, tool_calls
from trace_store.providers.openai_responses.parse import call_part, reasoning_parts

_TYPES = {
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


def is_langchain(form: Mapping[str, Any]) -> bool:
    """Return True if an object is a LangChain message."""
    if "lc" in form and isinstance(form.get("kwargs"), dict):
        return True
    type_ = _type_name(form.get("type"))
    if type_ not in _TYPES or ("role" in form and type_ != "chat"):
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
    content = list(_content(fields.get("content"), {}, where))
    if type_ == "tool":
        call_id = required(fields, "tool_call_id", where)
        result = ToolResult(call_id, content, fields.get("status") == "error")
        return message("tool", [result], where, id=id_)
    if type_ == "function":
        return message("tool", [ToolResult(name, content)], where, id=id_)
    role = _TYPES[type_] or required(fields, "role", where)
    if role == "system" and extra.get("__openai_role__") == "developer":
        role = "developer"
    if role not in ROLES:
        role = _TYPES.get(role, role)
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
    if found not in _TYPES:
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
    calls = _calls(fields, extra, where)
    signatures = extra.get(_SIGNATURES)
    signatures = signatures if isinstance(signatures, dict) else {}
    found = [*_content(fields.get("content"), calls, where), *calls.values()]
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


def _calls(fields: Mapping[str, Any], extra: Mapping[str, Any], where: str) -> dict[str, Part]:
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


def _content(content: object, calls: dict[str, Part], where: str) -> Iterator[Part]:
    """Yield the parts of a content; remove calls in it from `calls`."""
    if content is None or content == "":
        return
    if isinstance(content, str):
        yield Text(content)
        return

    def blocks(content: Any, where: str) -> list[Part]:
        forms = entries(content, where, "content")
        place = f"{where}: content"
        return parts_of_each(lambda block, at: _block(block, calls, at), forms, place)

    yield from parts_of(blocks, content, where)


def _block(block: Any, calls: dict[str, Part], where: str) -> Iterator[Part]:
    type_ = block.get("type") if isinstance(block, dict) else None
    type_ = type_ if isinstance(type_, str) else None
    extras = block.get("extras") if isinstance(block, dict) else None
    extras = extras if isinstance(extras, dict) else {}
    if type_ == "non_standard" and isinstance(block.get("value"), dict):
        yield from _block(block["value"], calls, where)
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
