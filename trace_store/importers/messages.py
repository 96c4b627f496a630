"""Messages that parsing makes of the forms that many programs share, as messages of a plan.

Rule: never fails. A message that is damaged says what of it can be read; one that cannot be stored as it is becomes an
opaque part, which no provider is shown.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trace_store.context.form_fields import UNREAD, damage_kept, dump
from trace_store.context.parsing import message_from_chat
from trace_store.context.render.lossless import render_part
from trace_store.errors import InvalidInputError
from trace_store.importers.contract import PlannedMessage
from trace_store.importers.normalise import storable_name
from trace_store.objects.codec import encode
from trace_store.objects.content import bytes_of
from trace_store.objects.message import ROLES, Message, default_kind, store_message
from trace_store.objects.parts import Opaque, Part, ToolResult
from trace_store.oid import OID_BYTES, ObjectId

MAXIMUM_PARTS = 10_000
"""Parts of one message that are taken apart; a commit has a bound, and no provider sends so many."""

_LEVELS_OF_A_COMMIT = 8
_SOME_ID = ObjectId(bytes(OID_BYTES))


def attempt(parse: Callable[[], Message]) -> Message | None:
    """Return what a parser makes of a form, with what it cannot read of it as opaque parts.

    None when it refuses the whole, or when that cannot be stored.
    """
    try:
        with damage_kept():
            message = parse()
    except (InvalidInputError, RecursionError):
        return None
    return message if is_storable(message) else _storable(message)


def chat_message(form: Mapping[str, Any]) -> Message | None:
    """Return a message in the shape of OpenAI's or Anthropic's; None when it has no role that a message can have."""
    found = attempt(lambda: message_from_chat(form, "message"))
    if found is not None:
        return found
    role = form.get("role")
    if not isinstance(role, str) or role not in ROLES:
        return None
    spoken = {key: form[key] for key in ("role", "content") if key in form}
    return attempt(lambda: message_from_chat(spoken, "message")) or unread(role, form)


def unread(role: str, form: Any) -> Message:
    """Return a message that holds a form as it is."""
    return Message(role, [Opaque(UNREAD, bytes_of(dump(form)))])


def is_storable(message: Message) -> bool:
    """Tell whether a commit can hold a message: its names are text, and it is within the bounds."""
    if len(message.parts) > MAXIMUM_PARTS:
        return False
    try:
        stored: Any = store_message(message, lambda _: _SOME_ID)
        results = [part for part in message.parts if isinstance(part, ToolResult)]
        if any(len(part.content) > MAXIMUM_PARTS for part in results):
            return False
        if any(isinstance(inner, ToolResult) for part in results for inner in part.content):
            for _ in range(_LEVELS_OF_A_COMMIT):
                stored = [stored]
            encode(stored)
    except (InvalidInputError, RecursionError):
        return False
    return True


def _storable(message: Message) -> Message | None:
    """Return a message with what cannot be stored of it as opaque parts, or None if that does not help."""
    parts = [
        part if is_storable(Message(message.role, [part])) else _unread_part(part)
        for part in message.parts[: MAXIMUM_PARTS + 1]
    ]
    named = {key: storable_name(getattr(message, key)) for key in ("id", "model", "name")}
    found = Message(message.role, parts, kind=message.kind, **named)
    return found if is_storable(found) else None


def _unread_part(part: Part) -> Opaque:
    try:
        return Opaque(UNREAD, bytes_of(dump(render_part(part))))
    except RecursionError:
        return Opaque(UNREAD, b"{}")


def planned(
    message: Message, *, model: str = "", labels: Sequence[str] = (), priority: str = ""
) -> PlannedMessage:
    """Return a message of a plan; `model` is that of a message that names none itself."""
    usual = message.kind == default_kind(message.role, message.parts)
    return PlannedMessage(
        message.role,
        message.parts,
        kind="" if usual else message.kind,
        model=message.model or model,
        id=message.id,
        name=message.name,
        labels=tuple(labels),
        priority=priority,
    )


def speaker(message: Message) -> str:
    """Return the rest of the author of a message's commit: `user`, its model, or nothing for what programs say."""
    if message.role == "assistant":
        return message.model
    spoken = any(not isinstance(part, ToolResult) for part in message.parts)
    return "user" if message.role == "user" and spoken else ""


def tool_schemas(value: Any) -> tuple[bytes, ...] | None:
    """Return the schemas of a list of tools as a commit holds them; None when it is no list of objects."""
    if not isinstance(value, list) or not all(isinstance(schema, dict) for schema in value):
        return None
    try:
        return tuple(as_json(schema) for schema in value[:MAXIMUM_PARTS])
    except ValueError:
        return None  # a number that JSON does not have


def as_json(value: Any) -> bytes:
    """Return a value as compact JSON, its keys in the order given.

    Raises:
        ValueError: it holds a number that JSON does not have.
    """
    return bytes_of(json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")))
