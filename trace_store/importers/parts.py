"""Messages and parts shared by formats.

Invariant: pure, and never fails. Invalid names are dropped. What has no part of its own, or cannot be stored,
becomes an opaque part that is sent to no provider.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from trace_store.context.usage import normalise_usage
from trace_store.errors import InvalidInputError
from trace_store.ident import check_author, parse_time
from trace_store.importers.contract import PlannedMessage
from trace_store.importers.json_records import compact
from trace_store.objects.codec import encode
from trace_store.objects.content import bytes_of
from trace_store.objects.message import ROLES, Message, default_kind, store_message
from trace_store.objects.parts import Image, Opaque, Part, Text, ToolResult
from trace_store.oid import OID_BYTES, ObjectId
from trace_store.providers.chat import message_from_chat
from trace_store.providers.fields import UNREAD, damage_kept, dump
from trace_store.providers.lossless import render_part

LONGEST_NAME_BYTES = 256
MAXIMUM_TIME = 253_402_300_799_999
"""Last millisecond of the year 9999."""


@lru_cache(maxsize=256)
def author_of(agent: str, who: str) -> str:
    """Return the author of a commit: `codex/user`, `codex/<model>` or `codex`."""
    if not who:
        return agent
    try:
        return check_author(f"{agent}/{who}")
    except InvalidInputError:
        return agent


def storable_name(value: object) -> str:
    """Return a name or id if a commit may hold it, else ""."""
    if not isinstance(value, str):
        return ""
    try:
        if value.isascii():
            return value if len(value) <= LONGEST_NAME_BYTES else ""
        return value if len(value.encode()) <= LONGEST_NAME_BYTES else ""
    except UnicodeEncodeError:
        return ""


def usage_counts(usage: object, model: object = "") -> dict[str, int | str]:
    """Return a provider's usage in stored form; empty if its shape is unknown."""
    if not isinstance(usage, Mapping):
        return {}
    try:
        normal = normalise_usage(usage)
    except InvalidInputError:
        return {}
    # In storage order.
    counts: dict[str, int | str] = {
        "cache_read": normal.cache_read,
        "cache_write": normal.cache_write,
        "input_total": normal.input_total,
    }
    name = storable_name(model)
    if name:
        counts["model"] = name
    counts["output_total"] = normal.output_total
    counts["reasoning"] = normal.reasoning
    counts["source"] = normal.source
    return counts


def time_of(value: object) -> int | None:
    """Return an ISO time, or seconds or milliseconds, as milliseconds since the epoch."""
    if isinstance(value, str):
        return time_of_text(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        return None
    # Seconds stay below this until the year 5138; milliseconds are above it since 1973.
    milliseconds = value * 1000 if value < 100_000_000_000 else value
    return int(milliseconds) if milliseconds <= MAXIMUM_TIME else None


def time_of_text(text: str) -> int | None:
    """Return an ISO time in milliseconds since the epoch, or None."""
    try:
        # JavaScript's format; the minute is parsed once and cached.
        if len(text) == 24 and text[13:20:3] == "::." and text[23] == "Z":
            rest = text[17:19] + text[20:23]
            if rest < "60" and rest.isdecimal() and text.isascii():
                return _minute(text[:16]) + int(rest)
        return parse_time(text)
    except InvalidInputError:
        return None


@lru_cache(maxsize=16)
def _minute(text: str) -> int:
    return parse_time(text + ":00Z")


def opaque(provider: str, value: Any) -> Opaque:
    """Return a value without a part of its own as JSON."""
    return Opaque(provider, bytes_of(compact(value)))


def text_parts(*values: object) -> tuple[Text, ...]:
    """Return a text part for each non-empty string."""
    return tuple(Text(value) for value in values if isinstance(value, str) and value)


def image_of_data(url: str) -> Image:
    """Return the image of a URL; the bytes of a base64 data URL."""
    head, comma, body = url.partition(",")
    if url.startswith("data:") and comma and head.endswith(";base64"):
        media = storable_name(head[5:].removesuffix(";base64"))
        try:
            if media:
                return Image(media, base64.b64decode(body, validate=True))
        except (binascii.Error, ValueError):
            pass
    return Image(url=url)


MAXIMUM_PARTS = 10_000
"""Maximum parts of a message; a commit is limited, and no provider sends as many."""

_LEVELS_OF_A_COMMIT = 8
_SOME_ID = ObjectId(bytes(OID_BYTES))


def try_parse(parse: Callable[[], Message]) -> Message | None:
    """Return the parsed message, with unreadable content as opaque parts.

    None if the parser rejects all of it, or if it cannot be stored.
    """
    try:
        with damage_kept():
            message = parse()
    except (InvalidInputError, RecursionError):
        return None
    return message if is_storable(message) else _make_storable(message)


def chat_message(form: Mapping[str, Any]) -> Message | None:
    """Return a message in OpenAI's or Anthropic's shape; None if its role is unknown."""
    message = try_parse(lambda: message_from_chat(form, "message"))
    if message is not None:
        return message
    role = form.get("role")
    if not isinstance(role, str) or role not in ROLES:
        return None
    fields = {key: form[key] for key in ("role", "content") if key in form}
    return try_parse(lambda: message_from_chat(fields, "message")) or unreadable_message(role, form)


def unreadable_message(role: str, form: Any) -> Message:
    """Return a message that holds unreadable data as it is."""
    return Message(role, [Opaque(UNREAD, bytes_of(dump(form)))])


def is_storable(message: Message) -> bool:
    """Return True if a commit can hold a message."""
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


def _make_storable(message: Message) -> Message | None:
    """Return a message with unstorable parts made opaque, or None if that fails."""
    parts = [
        part if is_storable(Message(message.role, [part])) else _unread_part(part)
        for part in message.parts[: MAXIMUM_PARTS + 1]
    ]
    named = {key: storable_name(getattr(message, key)) for key in ("id", "model", "name")}
    repaired = Message(message.role, parts, kind=message.kind, **named)
    return repaired if is_storable(repaired) else None


def _unread_part(part: Part) -> Opaque:
    try:
        return Opaque(UNREAD, bytes_of(dump(render_part(part))))
    except RecursionError:
        return Opaque(UNREAD, b"{}")


def planned_message(
    message: Message, *, model: str = "", labels: Sequence[str] = (), priority: str = ""
) -> PlannedMessage:
    """Return a planned message; `model` applies if the message names none."""
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
    """Return the author suffix of a message: `user`, its model, or "" for programs."""
    if message.role == "assistant":
        return message.model
    has_text = any(not isinstance(part, ToolResult) for part in message.parts)
    return "user" if message.role == "user" and has_text else ""


def tool_schemas(value: Any) -> tuple[bytes, ...] | None:
    """Return a list of tool schemas in stored form.

    None if it is not a list of objects.
    """
    if not isinstance(value, list) or not all(isinstance(schema, dict) for schema in value):
        return None
    try:
        return tuple(as_json(schema) for schema in value[:MAXIMUM_PARTS])
    except ValueError:
        return None  # not a JSON number


def as_json(value: Any) -> bytes:
    """Return a value as compact JSON, keys in the given order.

    Raises:
        ValueError: it holds a number that JSON cannot express.
    """
    return bytes_of(json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")))
