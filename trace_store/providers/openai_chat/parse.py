"""Parser of what is specific to OpenAI's chat completions: calls, and image links.

Invariant: a block without a part type in Trace is kept verbatim, as an opaque part of provider "openai". The message
around it is read by `providers.chat`, because many programs mix blocks of OpenAI and Anthropic.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trace_store.objects.parts import Part, ToolCall
from trace_store.providers.fields import dump, parts_of_each, required, wrong

KEPT_BLOCKS = frozenset(
    {"file", "image_url", "input_audio", "input_file", "input_image", "refusal"}
)
"""Block types of chat completions and Responses kept verbatim; images only without a link."""


def tool_calls(calls: object, where: str) -> list[Part]:
    """Return the calls in "tool_calls", also with the function's fields in the call."""
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
    """Yield the call of OpenAI's older "function_call", with its name as the id."""
    if isinstance(call, dict):
        name = required(call, "name", f"{where}: function_call")
        arguments = call.get("arguments", "")
        yield ToolCall(name, name, arguments if isinstance(arguments, str) else dump(arguments))


def image_link(block: Mapping[str, Any]) -> str | None:
    """Return the URL of a block's image, which may be a `data:` URL; None without one."""
    link = block.get("image_url")
    if isinstance(link, dict):
        link = link.get("url")
    return link if isinstance(link, str) else None
