"""Messages of OpenAI chat completions and of Anthropic, and of the many programs that imitate them.

Rule: one message in, one `Message` out. A block that has no part of its own in Trace is kept verbatim as an
opaque part of the provider that makes blocks of its type. What only a response or a cache knows ("usage",
"stop_reason", "annotations", "citations", "cache_control") is passed over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trace_store.objects.message import ROLES, Message
from trace_store.objects.parts import Image, Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.providers.fields import (
    UNREAD,
    closest,
    decoded,
    details,
    dump,
    image_of_url,
    message,
    opaque,
    optional,
    parts_of,
    parts_of_each,
    required,
    wrong,
)
from trace_store.providers.foreign import familiar_block, familiar_message

TEXT_BLOCKS = frozenset({"input_text", "output_text", "text"})
_IMAGE_BLOCKS = frozenset({"image", "image_url", "input_image"})
_MAKERS = {
    **dict.fromkeys(
        (
            *("browser_state", "compaction", "container_upload", "document", "fallback", "image"),
            *("mcp_tool_result", "mcp_tool_use", "redacted_thinking", "search_result"),
            *("server_tool_use", "tool_reference"),
        ),
        "anthropic",
    ),
    **dict.fromkeys(
        ("file", "image_url", "input_audio", "input_file", "input_image", "refusal"), "openai"
    ),
}
"""Which provider makes the blocks of a type that have no part of their own."""
_READ_BLOCKS = ("text", "thinking", "tool_result", "tool_use")


def message_from_chat(form: Mapping[str, Any], where: str) -> Message:
    """Return a message of OpenAI's or Anthropic's shape.

    "tool_calls", "tool_call_id", "refusal", "reasoning_content" and the older "function_call" are understood
    as OpenAI and its imitators write them; "thinking_blocks" hold the same thoughts with their signatures.

    Raises:
        InvalidMessageError: it is not of that shape; `.where` is `where`.
    """
    form = familiar_message(form) or form
    role = form.get("role")
    if not isinstance(role, str):
        raise wrong(where, "a message needs a role")
    if role not in ROLES and role != "function":
        raise wrong(where, f"unknown role {role[:40]!r}{closest(role, ROLES)}")
    content = form.get("content")
    # A whole response of Anthropic's: it may hold blocks that are newer than this version.
    maker = "anthropic" if form.get("type") == "message" and "stop_reason" in form else UNREAD

    def blocks_of(content: object, where: str) -> list[Part]:
        return content_parts(content, where, maker)

    parts: list[Part] = []
    thought = form.get("reasoning_content") or form.get("reasoning")
    blocks = form.get("thinking_blocks")
    if isinstance(blocks, list) and blocks:
        parts += blocks_of(blocks, f"{where}: thinking_blocks")
    elif isinstance(thought, str) and thought:
        parts.append(Reasoning(thought))
    parts += parts_of(blocks_of, content, f"{where}: content")
    audio = form.get("audio")
    if content is None and isinstance(audio, dict) and isinstance(audio.get("transcript"), str):
        parts.append(Text(audio["transcript"]))
    refusal = form.get("refusal")
    if isinstance(refusal, str) and refusal:
        parts.append(opaque("openai", {"type": "refusal", "refusal": refusal}))
    parts += parts_of(tool_calls, form.get("tool_calls"), where)
    parts += parts_of(function_call, form.get("function_call"), where)
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
    return message(role, parts, where, **details(form, where, "kind", "name", "model", "id"))


def content_parts(content: object, where: str, provider: str = UNREAD) -> list[Part]:
    """Return the parts of a content: text, a list of blocks, or nothing.

    Args:
        content: what a message has as its content.
        where: its place, for errors.
        provider: the maker of blocks of unknown types; with UNREAD they are errors.

    Raises:
        InvalidMessageError: a block is damaged or of an unknown type; `.where` names it.
    """
    if content is None:
        return []
    if isinstance(content, str):
        return [Text(content)]
    if not isinstance(content, list):
        raise wrong(where, "must be text or a list of blocks")
    return parts_of_each(lambda block, place: (block_part(block, place, provider),), content, where)


def block_part(block: object, where: str, provider: str = UNREAD) -> Part:
    """Return the part that one block becomes; `provider` as in `content_parts`."""
    if isinstance(block, str):
        return Text(block)
    if isinstance(block, Part):
        return block
    if not isinstance(block, dict):
        raise wrong(where, "a block must be an object with a type")
    block = familiar_block(block) or block
    type_ = block.get("type")
    if not isinstance(type_, str):
        raise wrong(where, "a block must be an object with a type")
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
    if image is not None:
        return image
    maker = "anthropic" if type_.endswith("_tool_result") else _MAKERS.get(type_, provider)
    if maker == UNREAD:
        known = (*_READ_BLOCKS, *_MAKERS)
        raise wrong(where, f"unknown type of block {type_[:40]!r}{closest(type_, known)}")
    return opaque(maker, block)


def tool_calls(calls: object, where: str) -> list[Part]:
    """Return the calls of OpenAI's "tool_calls"; other programs write a function's fields in the call itself."""
    if calls is None:
        return []
    if not isinstance(calls, list):
        raise wrong(where, "tool_calls must be a list")
    return parts_of_each(_tool_call, calls, f"{where}: tool_calls")


def _tool_call(call: Any, where: str) -> Iterator[ToolCall]:
    if not isinstance(call, dict):
        raise wrong(where, "a call must be an object")
    custom = call.get("custom")
    function = custom if isinstance(custom, dict) else call.get("function")
    if function is None and "name" in call:
        function = call
    if not isinstance(function, dict):
        raise wrong(where, "a call needs a function")
    names = ("input",) if function is custom else ("arguments", "args", "input")
    arguments = next((function[name] for name in names if name in function), "")
    yield ToolCall(
        required(call, "id", where),
        required(function, "name", where),
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
