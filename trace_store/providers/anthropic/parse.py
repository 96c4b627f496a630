"""Parser of blocks of Anthropic's messages.

Invariant: a block without a part type in Trace is kept verbatim, as an opaque part of provider "anthropic". The
message around the blocks is read by `providers.chat`, because many programs mix blocks of Anthropic and OpenAI.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from trace_store.objects.parts import Image, Part, Reasoning, ToolCall, ToolResult
from trace_store.providers.fields import decoded, dump, image_of_url, optional, required, wrong

READ_BLOCKS = ("text", "thinking", "tool_result", "tool_use")
KEPT_BLOCKS = frozenset(
    {
        *("browser_state", "compaction", "container_upload", "document", "fallback", "image"),
        *("mcp_tool_result", "mcp_tool_use", "redacted_thinking", "search_result"),
        *("server_tool_use", "tool_reference"),
    }
)
"""Types of blocks that are kept verbatim; `image` only if its bytes are at the provider."""


def is_response(form: Mapping[str, Any]) -> bool:
    """Return True for a whole response; it may have blocks that Trace does not know."""
    return form.get("type") == "message" and "stop_reason" in form


def is_kept_block(type_: str) -> bool:
    """Return True if blocks of this type are specific to Anthropic."""
    return type_ in KEPT_BLOCKS or type_.endswith("_tool_result")


def anthropic_part(
    block: Mapping[str, Any], where: str, content: Callable[[Any, str], list[Part]]
) -> Part | None:
    """Return the part of a thinking block, a call or a result; None for others.

    Args:
        block: the block.
        where: its place, for errors.
        content: reads the content of a result.

    Raises:
        InvalidMessageError: the block is damaged; `.where` names it.
    """
    type_ = block.get("type")
    if type_ == "thinking":
        signature = optional(block, "signature", where)
        return Reasoning(required(block, "thinking", where), signature or None)
    if type_ == "tool_use":
        arguments = dump(block.get("input", {}))
        return ToolCall(required(block, "id", where), required(block, "name", where), arguments)
    if type_ == "tool_result":
        return ToolResult(
            required(block, "tool_use_id", where),
            content(block.get("content"), f"{where}.content"),
            block.get("is_error") is True,
        )
    return None


def source_image(block: Mapping[str, Any], where: str) -> Image | None:
    """Return the image of a block, or None for a file id at the provider."""
    source = block.get("source")
    if not isinstance(source, dict):
        raise wrong(where, "an image needs a source")
    if source.get("type") == "base64":
        media_type, data = required(source, "media_type", where), required(source, "data", where)
        if data.startswith("data:"):
            return image_of_url(data, where)
        return Image(media_type, decoded(data, where))
    return Image(url=required(source, "url", where)) if source.get("type") == "url" else None
