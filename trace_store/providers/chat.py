"""Messages with role and content: chat completions, Anthropic, and others.

Invariant: one message in, one `Message` out. Each block is read by its own type, because a message may mix OpenAI's
and Anthropic's. A block for which Trace has no part becomes an opaque part of the provider that defines its type.
Fields of responses or caches ("usage", "stop_reason", "annotations", "citations", "cache_control") are not read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trace_store.objects.message import ROLES, Message
from trace_store.objects.parts import Image, Part, Reasoning, Text, ToolResult
from trace_store.providers.anthropic import (
    KEPT_BLOCKS,
    READ_BLOCKS,
    anthropic_part,
    is_kept_block,
    is_response,
    source_image,
)
from trace_store.providers.anthropic import PROVIDER as ANTHROPIC
from trace_store.providers.fields import (
    UNREAD,
    closest,
    details,
    image_of_url,
    message,
    opaque,
    parts_of,
    parts_of_each,
    required,
    wrong,
)
from trace_store.providers.foreign import familiar_block, familiar_message
from trace_store.providers.openai_chat import KEPT_BLOCKS as OPENAI_BLOCKS
from trace_store.providers.openai_chat import PROVIDER as OPENAI
from trace_store.providers.openai_chat import function_call, image_link, tool_calls

TEXT_BLOCKS = frozenset({"input_text", "output_text", "text"})
_IMAGE_BLOCKS = frozenset({"image", "image_url", "input_image"})


def message_from_chat(form: Mapping[str, Any], where: str) -> Message:
    """Return a message in OpenAI's or Anthropic's form.

    "tool_calls", "tool_call_id", "refusal", "reasoning_content" and the older "function_call" are read
    as OpenAI and compatible servers write them. "thinking_blocks" take precedence over "reasoning_content", because
    they have signatures.

    Raises:
        InvalidMessageError: it has another form; `.where` is `where`.
    """
    form = familiar_message(form) or form
    role = form.get("role")
    if not isinstance(role, str):
        raise wrong(where, "a message needs a role")
    if role not in ROLES and role != "function":
        raise wrong(where, f"unknown role {role[:40]!r}{closest(role, ROLES)}")
    content = form.get("content")
    provider = ANTHROPIC if is_response(form) else UNREAD

    def blocks_of(content: object, where: str) -> list[Part]:
        return content_parts(content, where, provider)

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
        parts.append(opaque(OPENAI, {"type": "refusal", "refusal": refusal}))
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
        content: the content of a message.
        where: its place, for errors.
        provider: whose blocks those of unknown types are; UNREAD makes them errors.

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
    """Return the part of a block; `provider` as in `content_parts`."""
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
    part = anthropic_part(block, where, content_parts)
    if part is not None:
        return part
    image = _image(block, where) if type_ in _IMAGE_BLOCKS else None
    if image is not None:
        return image
    if is_kept_block(type_):
        provider = ANTHROPIC
    elif type_ in OPENAI_BLOCKS:
        provider = OPENAI
    if provider == UNREAD:
        known = (*READ_BLOCKS, *KEPT_BLOCKS, *OPENAI_BLOCKS)
        raise wrong(where, f"unknown type of block {type_[:40]!r}{closest(type_, known)}")
    return opaque(provider, block)


def _image(block: Mapping[str, Any], where: str) -> Image | None:
    """Return the image of a block, or None for a file id at the provider."""
    link = image_link(block)
    if link is not None:
        return image_of_url(link, where)
    return None if block["type"] == "input_image" else source_image(block, where)
