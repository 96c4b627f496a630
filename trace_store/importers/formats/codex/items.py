"""Items of Codex rollouts as messages.

Invariant: pure, and never fails. Items are parsed by the provider's parser, so that an item is the same message
everywhere; a damaged one becomes an opaque part.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from trace_store.errors import InvalidInputError
from trace_store.importers.contract import PlannedMessage
from trace_store.importers.parts import opaque, storable_name
from trace_store.objects.message import ROLES, Message
from trace_store.objects.parts import Image, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.providers.chat import TEXT_BLOCKS
from trace_store.providers.openai_responses.parse import message_of_item, place_responses
from trace_store.providers.openai_responses.render import FRAMES

PROVIDER = "openai"
CALLS = frozenset({"custom_tool_call", "function_call", "local_shell_call"})
OUTPUTS = frozenset({"custom_tool_call_output", "function_call_output", "local_shell_call_output"})
PRIVATE = "internal_chat_message_metadata_passthrough"
"""Codex's notes for its own servers; not part of the item, and rejected by the public API."""
_JSON_OUTPUT = '{"output"'
"""Start of an output that may say whether the call failed."""
SHELL = "local_shell"
"""Tool name of calls of OpenAI's own shell, which have none."""

SCAFFOLDING = (
    *("<environment_context>", "<user_instructions>", "# AGENTS.md instructions", "<INSTRUCTIONS>"),
    *("<permissions instructions>", "<collaboration_mode>", "<multi_agent_mode>", "<app-context>"),
    *("<apps_instructions>", "<plugins_instructions>", "<skills_instructions>", "<skill>"),
    *("<recommended_plugins>", "<turn_aborted>", "<subagent_notification>", "<user_action>"),
)
"""Prefixes of user text that Codex inserts and the model sees."""

_CALL_FIELDS = {"function_call": ("arguments", "json"), "custom_tool_call": ("input", "text")}
_RESULT_TYPES = frozenset({"custom_tool_call_output", "function_call_output"})
_SPEAKERS = frozenset({"assistant", "developer", "system", "user"})
_FRAMES = {kind: frozenset(names) for kind, names in FRAMES.items()}
_NONE: tuple[object, ...] = (None, [])


def message_of(item: Mapping[str, Any], model: str) -> PlannedMessage:
    """Return the message of an item; `model` is a storable name."""
    return _plain(item, model) or parsed_message_of(item, model)


def parsed_message_of(item: Mapping[str, Any], model: str) -> PlannedMessage:
    """Return the message of any item, without the fast path."""
    form = _normalise(item)
    try:
        message = message_of_item(form, "input", model=model)
    except (InvalidInputError, RecursionError):
        return _opaque_message(item)
    return _planned(message, [form])[0]


def messages_of(items: Sequence[Any], model: str) -> tuple[PlannedMessage, ...]:
    """Return the messages of items, joining consecutive assistant items."""
    forms = [_normalise(item) for item in items]
    try:
        placed = list(place_responses(forms, model=model))
    except (InvalidInputError, RecursionError):
        if len(items) == 1:
            return (_opaque_message(items[0]),)
        return tuple(message for item in items for message in messages_of([item], model))
    return tuple(
        message
        for group in placed
        for message in _planned(group.message, forms[group.start : group.stop])
    )


def is_scaffolding(message: PlannedMessage) -> bool:
    """Return True if all texts of a user message are Codex's own."""
    texts = [part.text for part in message.parts if isinstance(part, Text)]
    return bool(texts) and all(text.lstrip().startswith(SCAFFOLDING) for text in texts)


def _plain(item: Mapping[str, Any], model: str) -> PlannedMessage | None:
    """Return the message of a common item without unusual fields, else None."""
    kind, id_ = item.get("type"), item.get("id")
    if type(kind) is not str or not (id_ is None or type(id_) is str):
        return None
    if kind == "message":
        return _plain_text(item, model)
    if "role" in item:
        return None
    if kind == "reasoning":
        signature = item.get("encrypted_content")
        if item.get("summary") not in _NONE or item.get("content") not in _NONE:
            return None
        if not (signature is None or type(signature) is str):
            return None
        return PlannedMessage("assistant", (Reasoning("", signature or None),), "", model)
    call_id = storable_name(item.get("call_id"))
    if not call_id:
        return None
    if kind in _CALL_FIELDS:
        field, format = _CALL_FIELDS[kind]
        name, given = storable_name(item.get("name")), item.get(field)
        if not name or type(given) is not str or not _FRAMES[kind].isdisjoint(item):
            return None
        return PlannedMessage("assistant", (ToolCall(call_id, name, given, format),), "", model)
    output = item.get("output") if kind in _RESULT_TYPES else None
    if type(output) is not str or output.startswith(_JSON_OUTPUT):
        return None
    return PlannedMessage("tool", (ToolResult(call_id, output),))


def _plain_text(item: Mapping[str, Any], model: str) -> PlannedMessage | None:
    """Return the message of a plain text item, else None."""
    role, content = item.get("role"), item.get("content")
    if type(role) is not str or role not in _SPEAKERS or type(content) is not list:
        return None
    parts: list[Part] = []
    if role == "assistant" and not _FRAMES["message"].isdisjoint(item):
        frame = {name: item[name] for name in FRAMES["message"] if name in item}
        if not {*map(type, frame.values())} <= {str}:
            return None
        parts.append(opaque(PROVIDER, {"type": "message", **frame}))
    for block in content:
        if type(block) is not dict or type(block.get("type")) is not str:
            return None
        text = block.get("text")
        if block["type"] not in TEXT_BLOCKS or type(text) is not str:
            return None
        parts.append(Text(text))
    author = model if role == "assistant" else ""
    planned = PlannedMessage(role, tuple(parts), "", author, storable_name(item.get("id")))
    if role == "user" and is_scaffolding(planned):
        return planned._replace(kind="instruction")
    return planned


def _planned(message: Message, forms: Sequence[Any]) -> tuple[PlannedMessage, ...]:
    parts: tuple[Part, ...] = tuple([_attribute(part) for part in message.parts])
    for part in parts:
        if not _is_storable(part):
            return tuple(map(_opaque_message, forms))
    if message.role == "tool":
        parts = tuple([_with_error_flag(part, forms[0].get("output")) for part in parts])
    has_role = False
    for form in forms:
        has_role = has_role or (isinstance(form, dict) and "role" in form)
    planned = PlannedMessage(
        message.role,
        parts,
        model=storable_name(message.model),
        id=storable_name(message.id) if has_role else "",
        name=storable_name(message.name),
    )
    if planned.role == "user" and is_scaffolding(planned):
        return (PlannedMessage(planned.role, parts, kind="instruction", id=planned.id),)
    return (planned,)


def _normalise(item: Any) -> Any:
    """Return an item as the Responses API writes it."""
    if not isinstance(item, dict):
        return item
    if PRIVATE in item:
        item = {key: value for key, value in item.items() if key != PRIVATE}
    kind = item.get("type")
    call_id = item.get("call_id")
    if kind == "local_shell_call" and isinstance(call_id, str) and call_id:
        action = item.get("action")
        return {**item, "type": "function_call", "name": SHELL, "arguments": action}
    if kind == "local_shell_call_output":
        return {**item, "type": "function_call_output"}
    return item


def _attribute(part: Part) -> Part:
    """Return a part with unknown blocks attributed to OpenAI."""
    if isinstance(part, Text):
        return part
    if isinstance(part, Opaque) and part.provider != PROVIDER:
        return Opaque(PROVIDER, part.data)
    if isinstance(part, ToolResult):
        return ToolResult(
            part.call_id, [_attribute(inner) for inner in part.content], part.is_error
        )
    return part


def _with_error_flag(part: Part, output: Any) -> Part:
    """Return a result with the error flag from its output.

    Builds of 2025 write JSON with text and exit code; the text stays as the model saw it.
    """
    if not isinstance(part, ToolResult):
        return part
    if isinstance(output, dict) and output and not part.content:
        return ToolResult(part.call_id, (opaque(PROVIDER, output),), part.is_error)
    if not isinstance(output, str) or not output.startswith(_JSON_OUTPUT):
        return part
    try:
        data = json.loads(output)
    except (ValueError, RecursionError):
        return part
    metadata = data.get("metadata")
    code = metadata.get("exit_code") if isinstance(metadata, dict) else None
    failed = type(code) is int and code != 0
    return ToolResult(part.call_id, part.content, True) if failed else part


def _is_storable(part: Part) -> bool:
    if isinstance(part, Text):
        return True
    if isinstance(part, ToolCall):
        return bool(storable_name(part.id) and storable_name(part.name))
    if isinstance(part, ToolResult):
        if not storable_name(part.call_id):
            return False
        for inner in part.content:
            if not _is_storable(inner):
                return False
    if isinstance(part, Image) and part.url is None:
        return bool(storable_name(part.media_type))
    return True


def _opaque_message(item: Any) -> PlannedMessage:
    """Return an item as an opaque message, with its likely role."""
    kind = item.get("type") if isinstance(item, dict) else None
    role = item.get("role") if isinstance(item, dict) else None
    if not isinstance(role, str) or role not in ROLES or role == "tool":
        output = not isinstance(kind, str) or kind == "message" or kind.endswith("_output")
        role = "user" if output else "assistant"
    return PlannedMessage(role, (opaque(PROVIDER, item),))
