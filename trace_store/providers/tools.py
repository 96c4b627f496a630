"""Tool schemas in each provider's form.

Invariant: a schema is neutral (`name`, `description`, `parameters`) or in a provider's own form, and is converted to
the requested form; keys specific to the other form are dropped. A tool that runs at one provider (such as web search)
is sent to that provider verbatim, and to no other.

JSON Schema is not changed: all providers accept it, Gemini as `parametersJsonSchema`. Only a schema in Gemini's
earlier form, with types in capitals, is converted to JSON Schema.
"""

from __future__ import annotations

import re

from trace_store.providers.rendering import ARGUMENTS_WRAPPED, NAME_CHANGED, TOOL_LEFT_OUT, Repairs
from trace_store.providers.wire import INNER_DEPTH, marked, parse_object, word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from trace_store.objects.parts import ToolCall

ANTHROPIC_NAME_LIMIT = 128
GEMINI_NAME_LIMIT = 64
OPENAI_NAME_LIMIT = 64
_TEXT_INPUT = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
}
_NO_INPUT: dict[str, Any] = {"type": "object", "properties": {}}
# Keys that several forms share.
_SHARED = {"description": str, "strict": bool}
# Keys specific to one provider's form.
_ANTHROPIC_KEYS = (
    *("allowed_callers", "defer_loading", "eager_input_streaming", "input_examples", "type"),
)
_RESPONSES_KEYS = ("allowed_callers", "defer_loading", "output_schema")
# Tools that run at OpenAI, or that are built into its models.
_RESPONSES_TYPES = frozenset(
    {
        *("apply_patch", "code_interpreter", "computer", "computer_use_preview", "file_search"),
        *("image_generation", "local_shell", "mcp", "namespace", "programmatic_tool_calling"),
        *("shell", "tool_search", "web_search", "web_search_preview"),
    }
)
_PRINTABLE = re.compile(r"[!-~]+")
_DATED = re.compile(r"_20\d\d_\d\d_\d\d$")
_DECLARATIONS = ("functionDeclarations", "function_declarations")
_GEMINI_SCHEMAS = ("parametersJsonSchema", "parameters_json_schema")
_GEMINI_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,63}")
_GEMINI_TYPES = ("ARRAY", "BOOLEAN", "INTEGER", "NULL", "NUMBER", "OBJECT", "STRING")


def openai_tools(tools: Sequence[dict[str, Any]], repairs: Repairs) -> list[dict[str, Any]]:
    """Return the schemas for OpenAI chat."""
    return [made for tool in _each(tools) if (made := _openai_tool(tool, repairs)) is not None]


def responses_tools(tools: Sequence[dict[str, Any]], repairs: Repairs) -> list[dict[str, Any]]:
    """Return the schemas for OpenAI Responses, where `strict` must be explicit."""
    return [made for tool in _each(tools) if (made := _responses_tool(tool, repairs)) is not None]


def anthropic_tools(tools: Sequence[dict[str, Any]], repairs: Repairs) -> list[dict[str, Any]]:
    """Return the schemas for Anthropic."""
    return [made for tool in _each(tools) if (made := _anthropic_tool(tool, repairs)) is not None]


def gemini_tools(tools: Sequence[dict[str, Any]], repairs: Repairs) -> list[dict[str, Any]]:
    """Return the schemas for Gemini: all functions in one tool, then Google's tools."""
    functions: list[dict[str, Any]] = []
    hosted: list[dict[str, Any]] = []
    for tool in _each(tools):
        if _runs_at_google(tool):
            hosted.append(tool)
        elif (made := _gemini_function(tool, repairs)) is not None:
            functions.append(made)
    return ([{"functionDeclarations": functions}] if functions else []) + hosted


def tool_name(name: str, limit: int, at: int | None, repairs: Repairs) -> str:
    """Return the name of a tool for a provider; the same for its schema and its calls."""
    return _named(name, word(name, limit, "tool"), at, repairs)


def call_id(id_: str, limit: int) -> str:
    """Return an id of 1 to `limit` printable ASCII characters, or a stable replacement."""
    fits = len(id_) <= limit and _PRINTABLE.fullmatch(id_)
    return id_ if fits else marked(id_, limit, "call")


def gemini_tool_name(name: str, at: int | None, repairs: Repairs | None) -> str:
    """Return the name of a tool for Gemini; record a change in `repairs`, if given."""
    taken = name
    if not _GEMINI_NAME.fullmatch(name):
        start = "" if name[:1].isalpha() else "_"
        taken = marked(f"{start}{name}", GEMINI_NAME_LIMIT, "tool")
    return taken if repairs is None else _named(name, taken, at, repairs)


def add_tools(request: dict[str, Any], schemas: list[dict[str, Any]], repairs: Repairs) -> None:
    """Add the schemas in a provider's form to a request, if there are any."""
    if schemas:
        what = "lone surrogates in tool schemas"
        request["tools"] = repairs.scrubbed(schemas, None, what)


def call_input(
    call: ToolCall, at: int | None = None, repairs: Repairs | None = None
) -> dict[str, Any]:
    """Return a call's arguments as an object; other arguments as `{"input": text}`.

    Records a repair for arguments that are not an object, if `repairs` is given.
    """
    if call.format != "text":
        found = parse_object(call.arguments, INNER_DEPTH) if call.arguments.strip() else {}
        if found is not None:
            return found
        if repairs is not None:
            detail = f"the arguments of call {call.id!r} are not a JSON object; sent as text"
            repairs.add(ARGUMENTS_WRAPPED, at, detail)
    return {"input": call.arguments}


def _named(name: str, taken: str, at: int | None, repairs: Repairs) -> str:
    if taken != name:
        repairs.add(NAME_CHANGED, at, f"tool {name!r} is renamed to {taken!r}")
    return taken


def _each(tools: Sequence[Any]) -> Iterator[Any]:
    """Yield the tools one by one; Gemini's form has several functions in one."""
    for tool in tools:
        key = next((k for k in _DECLARATIONS if isinstance(tool, dict) and k in tool), None)
        if key is None:
            yield tool
            continue
        declared = tool[key]
        yield from declared if isinstance(declared, list) else ()
        for name, value in tool.items():
            if name != key:
                yield {name: value}


def _openai_tool(tool: Any, repairs: Repairs) -> dict[str, Any] | None:
    known = _function(tool)
    if known is None:
        _leave_out(tool, repairs)
        return None
    name = tool_name(known["name"], OPENAI_NAME_LIMIT, None, repairs)
    if known["schema"] is _TEXT_INPUT:
        nested = tool.get("custom")
        if isinstance(nested, dict):
            return {"type": "custom", "custom": {**nested, "name": name}}
        form = {"name": name, **_shared(known, "description"), **_chat_format(known)}
        return {"type": "custom", "custom": form}
    function = {"name": name, **_shared(known)}
    if known["schema"] is not None:
        function["parameters"] = known["schema"]
    return {"type": "function", "function": function}


def _responses_tool(tool: Any, repairs: Repairs) -> dict[str, Any] | None:
    kind = tool.get("type") if isinstance(tool, dict) else None
    if isinstance(kind, str) and _DATED.sub("", kind) in _RESPONSES_TYPES:
        own: dict[str, Any] = tool
        return own
    known = _function(tool)
    if known is None:
        _leave_out(tool, repairs)
        return None
    name = tool_name(known["name"], OPENAI_NAME_LIMIT, None, repairs)
    if known["schema"] is _TEXT_INPUT:
        form = {"type": "custom", "name": name, **_shared(known, "description")}
        return form | _text_format(known)
    form = {"type": "function", "name": name, **_shared(known, "description")}
    form["parameters"] = _NO_INPUT if known["schema"] is None else known["schema"]
    form["strict"] = known.get("strict") is True
    if kind == "function" and "function" not in tool:
        form |= {key: tool[key] for key in _RESPONSES_KEYS if tool.get(key) is not None}
    return form


def _anthropic_tool(tool: Any, repairs: Repairs) -> dict[str, Any] | None:
    kind = tool.get("type") if isinstance(tool, dict) else None
    known = _function(tool)
    if known is None and isinstance(kind, str) and "name" in tool and kind != "namespace":
        return {key: value for key, value in tool.items() if key != "cache_control"}
    if known is None:
        _leave_out(tool, repairs)
        return None
    name = tool_name(known["name"], ANTHROPIC_NAME_LIMIT, None, repairs)
    form = {"name": name, **_shared(known)}
    form["input_schema"] = {**(known["schema"] or {}), "type": "object"}
    if "input_schema" in tool:
        form |= {key: tool[key] for key in _ANTHROPIC_KEYS if tool.get(key) is not None}
    return form


def _gemini_function(tool: Any, repairs: Repairs) -> dict[str, Any] | None:
    known = _function(tool)
    if known is None:
        _leave_out(tool, repairs)
        return None
    form = {"name": gemini_tool_name(known["name"], None, repairs), **_shared(known, "description")}
    if known["schema"] is not None:
        form["parametersJsonSchema"] = known["schema"]
    return form


def _function(tool: Any) -> dict[str, Any] | None:
    """Return name, description, strict and schema of a caller's tool, else None."""
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
    names = ("parameters", "input_schema", *_GEMINI_SCHEMAS)
    schema = next((form[name] for name in names if name in form), None)
    if form.get("type") == "custom" and schema is None:
        schema = _TEXT_INPUT
    elif isinstance(schema, dict) and schema.get("type") in _GEMINI_TYPES:
        schema = _json_schema(schema)
    return {**form, "schema": schema if isinstance(schema, dict) else None}


def _json_schema(schema: Any) -> Any:
    """Convert a schema in Gemini's earlier form to JSON Schema."""
    if not isinstance(schema, dict):
        return schema
    plain = {key: value for key, value in schema.items() if key != "nullable"}
    if isinstance(schema.get("properties"), dict):
        named = schema["properties"].items()
        plain["properties"] = {name: _json_schema(value) for name, value in named}
    if "items" in schema:
        plain["items"] = _json_schema(schema["items"])
    if isinstance(schema.get("anyOf"), list):
        plain["anyOf"] = [_json_schema(value) for value in schema["anyOf"]]
    if (type_ := schema.get("type")) in _GEMINI_TYPES:
        name = str(type_).lower()
        plain["type"] = [name, "null"] if schema.get("nullable") is True else name
    return plain


def _shared(known: dict[str, Any], *names: str) -> dict[str, Any]:
    return {
        key: known[key]
        for key, type_ in _SHARED.items()
        if isinstance(known.get(key), type_) and (not names or key in names)
    }


def _text_format(known: dict[str, Any]) -> dict[str, Any]:
    """Return the format of free text for Responses, with the grammar's fields inline."""
    found = known.get("format")
    if not isinstance(found, dict):
        return {}
    grammar = found.get("grammar")
    return {"format": {"type": "grammar", **grammar} if isinstance(grammar, dict) else found}


def _chat_format(known: dict[str, Any]) -> dict[str, Any]:
    """Return the format of free text for chat completions, with a nested grammar."""
    found = known.get("format")
    if not isinstance(found, dict):
        return {}
    if found.get("type") != "grammar" or "grammar" in found:
        return {"format": found}
    grammar = {key: value for key, value in found.items() if key != "type"}
    return {"format": {"type": "grammar", "grammar": grammar}}


def _runs_at_google(tool: Any) -> bool:
    """Return True if a tool is Google's own: one key with its settings."""
    return (
        isinstance(tool, dict)
        and bool(tool)
        and not {"function", "name", "type"} & set(tool)
        and all(isinstance(value, dict) for value in tool.values())
    )


def _leave_out(tool: Any, repairs: Repairs) -> None:
    name = (tool.get("name") or tool.get("type")) if isinstance(tool, dict) else None
    if name is None and _runs_at_google(tool):
        name = next(iter(tool))
    repairs.add(
        TOOL_LEFT_OUT, None, f"tool {name or 'without a name'!r} is not supported here; left out"
    )
