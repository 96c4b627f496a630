"""Tool schemas in each provider's form.

Rule: a schema comes neutral (`name`, `description`, `parameters`) or in a provider's own form, and is written
in the form asked for; keys that only the other form knows are left behind. A tool that runs at one provider
(web search, say) goes to that provider verbatim and to no other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trace_store.context.render.values import NAME_CHANGED, TOOL_LEFT_OUT, Repairs
from trace_store.context.render.wire import word

ANTHROPIC_NAME_LIMIT = 128
OPENAI_NAME_LIMIT = 64
_TEXT_INPUT = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
}
# What both forms call by the same name.
_SHARED = {"description": str, "strict": bool}
# What only Anthropic's own form of a tool knows.
_ANTHROPIC_KEYS = (
    *("allowed_callers", "defer_loading", "eager_input_streaming", "input_examples", "type"),
)


def openai_tools(tools: Sequence[dict[str, Any]], repairs: Repairs) -> list[dict[str, Any]]:
    """Return the schemas as OpenAI chat takes them."""
    return [found for tool in tools if (found := _openai_tool(tool, repairs)) is not None]


def anthropic_tools(tools: Sequence[dict[str, Any]], repairs: Repairs) -> list[dict[str, Any]]:
    """Return the schemas as Anthropic takes them."""
    return [found for tool in tools if (found := _anthropic_tool(tool, repairs)) is not None]


def _openai_tool(tool: Any, repairs: Repairs) -> dict[str, Any] | None:
    known = _function(tool)
    if known is not None and known["schema"] is _TEXT_INPUT:
        return {"type": "custom", "custom": _named(tool["custom"], OPENAI_NAME_LIMIT, repairs)}
    if known is None:
        _leave_out(tool, repairs)
        return None
    function = {"name": known["name"]}
    function |= _shared(known)
    if known["schema"] is not None:
        function["parameters"] = known["schema"]
    return {"type": "function", "function": _named(function, OPENAI_NAME_LIMIT, repairs)}


def _anthropic_tool(tool: Any, repairs: Repairs) -> dict[str, Any] | None:
    kind = tool.get("type") if isinstance(tool, dict) else None
    if isinstance(kind, str) and kind not in ("function", "custom") and "name" in tool:
        return {key: value for key, value in tool.items() if key != "cache_control"}
    known = _function(tool)
    if known is None:
        _leave_out(tool, repairs)
        return None
    form = {"name": known["name"], **_shared(known)}
    form["input_schema"] = {**(known["schema"] or {}), "type": "object"}
    if "input_schema" in tool:
        form |= {key: tool[key] for key in _ANTHROPIC_KEYS if tool.get(key) is not None}
    return _named(form, ANTHROPIC_NAME_LIMIT, repairs)


def _function(tool: Any) -> dict[str, Any] | None:
    """Return name, description, strict and schema (or None) of a tool that the caller runs, else None."""
    if not isinstance(tool, dict):
        return None
    custom = tool.get("custom")
    if tool.get("type") == "custom" and isinstance(custom, dict):
        return {**custom, "schema": _TEXT_INPUT} if isinstance(custom.get("name"), str) else None
    nested = tool.get("function")
    form = nested if isinstance(nested, dict) else tool
    if not isinstance(form.get("name"), str):
        return None
    if form.get("type") not in (None, "function", "custom"):
        return None
    schema = form.get("parameters", form.get("input_schema"))
    return {**form, "schema": schema if isinstance(schema, dict) else None}


def _shared(known: dict[str, Any]) -> dict[str, Any]:
    return {key: known[key] for key, type_ in _SHARED.items() if isinstance(known.get(key), type_)}


def _named(form: dict[str, Any], limit: int, repairs: Repairs) -> dict[str, Any]:
    return {**form, "name": tool_name(form["name"], limit, None, repairs)}


def tool_name(name: str, limit: int, at: int | None, repairs: Repairs) -> str:
    """Return the name a provider takes for a tool; the same for its schema and its calls."""
    taken = word(name, limit, "tool")
    if taken != name:
        repairs.add(NAME_CHANGED, at, f"tool {name!r} is called {taken!r}")
    return taken


def _leave_out(tool: Any, repairs: Repairs) -> None:
    name = (tool.get("name") or tool.get("type")) if isinstance(tool, dict) else None
    repairs.add(
        TOOL_LEFT_OUT, None, f"tool {name or 'without a name'!r} has no form here; left out"
    )
