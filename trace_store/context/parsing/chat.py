"""Messages of OpenAI chat completions and of Anthropic, and of the many programs that imitate them.

Rule: one message in, one `Message` out. A block that has no part of its own in Trace is kept verbatim as an
opaque part. What only a response or a cache knows ("usage", "stop_reason", "annotations", "citations",
"cache_control") is passed over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trace_store.context.parsing.fields import (
    decoded,
    dump,
    image_of_url,
    message,
    opaque,
    optional,
    required,
    wrong,
)
from trace_store.objects.message import Message
from trace_store.objects.parts import Image, Part, Reasoning, Text, ToolCall, ToolResult

TEXT_BLOCKS = frozenset({"input_text", "output_text", "text"})
_IMAGE_BLOCKS = frozenset({"image", "image_url", "input_image"})
_OPENAI_BLOCKS = frozenset(
    {"file", "image_url", "input_audio", "input_file", "input_image", "refusal"}
)


def message_from_chat(form: Mapping[str, Any], where: str) -> Message:
    """Return a message of OpenAI's or Anthropic's shape.

    "tool_calls", "tool_call_id", "refusal", "reasoning_content" and the older "function_call" are understood
    as OpenAI and its imitators write them; "thinking_blocks" hold the same thoughts with their signatures.

    Raises:
        InvalidMessageError: it is not of that shape; `.where` is `where`.
    """
    role = form.get("role")
    if not isinstance(role, str):
        raise wrong(where, "a message needs a role")
    content = form.get("content")
    parts: list[Part] = []
    thought = form.get("reasoning_content") or form.get("reasoning")
    blocks = form.get("thinking_blocks")
    if isinstance(blocks, list) and blocks:
        parts += content_parts(blocks, f"{where}: thinking_blocks")
    elif isinstance(thought, str) and thought:
        parts.append(Reasoning(thought))
    parts += content_parts(content, f"{where}: content")
    audio = form.get("audio")
    if content is None and isinstance(audio, dict) and isinstance(audio.get("transcript"), str):
        parts.append(Text(audio["transcript"]))
    refusal = form.get("refusal")
    if isinstance(refusal, str) and refusal:
        parts.append(opaque("openai", {"type": "refusal", "refusal": refusal}))
    parts += tool_calls(form.get("tool_calls"), where)
    parts += function_call(form.get("function_call"), where)
    if content is None and not parts:
        raise wrong(where, "a message needs content")
    if role == "function":
        # The older form pairs a call and its result by the function's name alone.
        return message("tool", [ToolResult(required(form, "name", where), parts)], where)
    if role == "tool":
        call_id = form.get("tool_call_id")
        if isinstance(call_id, str):
            parts = [ToolResult(call_id, parts)]
        elif not any(isinstance(part, ToolResult) for part in parts):
            raise wrong(where, "a tool message needs a tool_call_id")
    fields = {name: optional(form, name, where) for name in ("kind", "name", "model", "id")}
    return message(role, parts, where, **fields)


def content_parts(content: object, where: str, provider: str = "anthropic") -> list[Part]:
    """Return the parts of a content: text, a list of blocks, or nothing.

    A block of a type that is not known here is the provider's.
    """
    if content is None:
        return []
    if isinstance(content, str):
        return [Text(content)]
    if not isinstance(content, list):
        raise wrong(where, "must be text or a list of blocks")
    return [block_part(block, f"{where}[{index}]", provider) for index, block in enumerate(content)]


def block_part(block: object, where: str, provider: str = "anthropic") -> Part:
    """Return the part that one block becomes; `provider` as in `content_parts`."""
    if isinstance(block, str):
        return Text(block)
    if not isinstance(block, dict) or not isinstance(block.get("type"), str):
        raise wrong(where, "a block must be an object with a type")
    type_ = block["type"]
    if type_ in TEXT_BLOCKS:
        return Text(required(block, "text", where))
    if type_ == "thinking":
        signature = optional(block, "signature", where)
        return Reasoning(required(block, "thinking", where), signature or None)
    if type_ == "tool_use":
        arguments = dump(block.get("input", {}))
        return ToolCall(required(block, "id", where), required(block, "name", where), arguments)
    if type_ == "tool_result":
        return ToolResult(
            required(block, "tool_use_id", where),
            content_parts(block.get("content"), f"{where}.content"),
            block.get("is_error") is True,
        )
    image = _image(block, where) if type_ in _IMAGE_BLOCKS else None
    return image or opaque("openai" if type_ in _OPENAI_BLOCKS else provider, block)


def tool_calls(calls: object, where: str) -> Iterator[ToolCall]:
    """Yield the calls of OpenAI's "tool_calls"."""
    if calls is None:
        return
    if not isinstance(calls, list):
        raise wrong(where, "tool_calls must be a list")
    for index, call in enumerate(calls):
        place = f"{where}: tool_calls[{index}]"
        if not isinstance(call, dict):
            raise wrong(place, "a call must be an object")
        custom = call.get("custom")
        function = custom if isinstance(custom, dict) else call.get("function")
        if not isinstance(function, dict):
            raise wrong(place, "a call needs a function")
        field = "input" if function is custom else "arguments"
        arguments = function.get(field, "")
        yield ToolCall(
            required(call, "id", place),
            required(function, "name", place),
            arguments if isinstance(arguments, str) else dump(arguments),
            "text" if function is custom else "json",
        )


def function_call(call: object, where: str) -> Iterator[ToolCall]:
    """Yield the call of OpenAI's older "function_call", which has no id: its name stands for one."""
    if isinstance(call, dict):
        name = required(call, "name", f"{where}: function_call")
        arguments = call.get("arguments", "")
        yield ToolCall(name, name, arguments if isinstance(arguments, str) else dump(arguments))


def _image(block: Mapping[str, Any], where: str) -> Image | None:
    """Return the image of a block, or None when it is at the provider (a file id)."""
    link = block.get("image_url")
    if isinstance(link, dict):
        link = link.get("url")
    if isinstance(link, str):
        return image_of_url(link, where)
    if block["type"] == "input_image":
        return None
    source = block.get("source")
    if not isinstance(source, dict):
        raise wrong(where, "an image needs a source")
    if source.get("type") == "base64":
        media_type, data = required(source, "media_type", where), required(source, "data", where)
        if data.startswith("data:"):
            return image_of_url(data, where)
        return Image(media_type, decoded(data, where))
    return Image(url=required(source, "url", where)) if source.get("type") == "url" else None
