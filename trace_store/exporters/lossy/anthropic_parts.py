"""Parts as Anthropic's blocks, for the forms that hold its messages.

Rule: what is fit can be written as a block; `block` writes it, and a reader gets the same part back.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from typing import Any

from trace_store.context.usage import Usage, normalise_usage
from trace_store.exporters.lossy.coerce import (
    Spell,
    block_of,
    fit_image,
    fit_object,
    object_of,
    only_text,
    whole,
)
from trace_store.exporters.lossy.drafts import ASSISTANT, Draft
from trace_store.objects.parts import Image, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.providers.anthropic.render import (
    ASSISTANT_ONLY,
    IN_RESULTS_ONLY,
    NOWHERE,
    RESULT_BLOCKS,
    THINKING,
    USER_ONLY,
    is_server_result,
)
from trace_store.providers.signatures import maker
from trace_store.providers.tools import ANTHROPIC_NAME_LIMIT
from trace_store.providers.wire import parse_object, word

PROVIDER = "anthropic"
# Blocks of these types are parts of their own.
_PARTS = NOWHERE | {"image", "text", "thinking"}

Wire = dict[str, Any]


class AnthropicParts:
    """Says what parts are in messages of Anthropic's.

    Args:
        spell: how a reader spells the arguments of a call.
        keep: how a reader keeps a block that has no part of its own.
    """

    __slots__ = ("_keep", "_spell")

    def __init__(self, spell: Spell, keep: Callable[[Wire], Opaque]) -> None:
        self._spell = spell
        self._keep = keep

    def fit(self, draft: Draft, part: Part) -> Part | None:
        """Return a part as it is in a message, or None."""
        if isinstance(part, Reasoning):
            signed = part.signature and maker(draft.model) == PROVIDER and draft.model
            return Reasoning(whole(part.text), part.signature) if signed else None
        if isinstance(part, ToolCall):
            name = word(part.name, ANTHROPIC_NAME_LIMIT, "tool")
            made = fit_object(part, self._spell)
            return ToolCall(part.id, name, made.arguments)
        if isinstance(part, ToolResult):
            return part
        if isinstance(part, Opaque):
            return self._own(part, draft)
        if isinstance(part, Image) and draft.role == ASSISTANT:
            return None
        return self._plain(part)

    def inside(self, part: Part) -> Part | None:
        """Return a part as it is in a result, or None."""
        if isinstance(part, Opaque):
            found = block_of(part, PROVIDER)
            fits = found is not None and block_type(found) in RESULT_BLOCKS - _PARTS
            return self._keep(found) if fits and found is not None else None
        return self._plain(part)

    def _plain(self, part: Part) -> Part | None:
        if isinstance(part, Text):
            return Text(whole(part.text)) if part.text else None
        return fit_image(part) if isinstance(part, Image) else None

    def _own(self, part: Opaque, draft: Draft) -> Opaque | None:
        found = block_of(part, PROVIDER)
        type_ = "" if found is None else block_type(found)
        if found is None or not type_ or type_ in _PARTS | IN_RESULTS_ONLY:
            return None
        if draft.role == ASSISTANT:
            thinks = type_ in THINKING
            fits = type_ not in USER_ONLY and (not thinks or maker(draft.model) == PROVIDER)
        else:
            fits = type_ not in ASSISTANT_ONLY and not is_server_result(type_)
        return self._keep(found) if fits else None


def block(part: Part) -> Wire:
    """Return the block of a part that is fit."""
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    if isinstance(part, Reasoning):
        return {"type": "thinking", "thinking": part.text, "signature": part.signature}
    if isinstance(part, ToolCall):
        return {"type": "tool_use", "id": part.id, "name": part.name, "input": object_of(part)}
    if isinstance(part, ToolResult):
        result: Wire = {"type": "tool_result", "tool_use_id": part.call_id}
        result["content"] = content(part.content)
        return result | ({"is_error": True} if part.is_error else {})
    if isinstance(part, Image):
        if part.url is not None:
            return {"type": "image", "source": {"type": "url", "url": part.url}}
        data = base64.b64encode(part.data or b"").decode()
        source = {"type": "base64", "media_type": part.media_type, "data": data}
        return {"type": "image", "source": source}
    return (parse_object(part.data) if isinstance(part, Opaque) else None) or {}


def content(parts: Sequence[Part]) -> str | list[Wire]:
    """Return parts as the content of a message or a result: a text that stands alone is a string."""
    text = only_text(parts)
    return [block(part) for part in parts] if text is None else text


def usage_of(usage: Usage) -> Wire:
    """Return a report in Anthropic's numbers, which are disjoint."""
    form: Wire = {
        "input_tokens": max(0, usage.input_total - usage.cache_read - usage.cache_write),
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": usage.output_total,
    }
    if usage.reasoning:
        form["output_tokens_details"] = {"thinking_tokens": usage.reasoning}
    return form


def fit_usage(usage: Usage | None) -> Usage | None:
    """Return a report as a reader gets it back from Anthropic's numbers."""
    return None if usage is None else normalise_usage(usage_of(usage))


def block_type(found: Wire) -> str:
    """Return the type of a block, or "" when it has none."""
    type_ = found.get("type")
    return type_ if isinstance(type_, str) else ""
