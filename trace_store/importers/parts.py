"""Messages and parts that many formats share.

Rule: pure, and never fails: what cannot be stored as a name is left out, and what has no part of its own is opaque.

Rule: never fails. A message that is damaged says what of it can be read; one that cannot be stored as it is becomes an
opaque part, which no provider is shown.
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
"""The last millisecond of the year 9999."""


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
    """Return a name or id as it may stand in a commit; empty when it may not."""
    if not isinstance(value, str):
        return ""
    try:
        if value.isascii():
            return value if len(value) <= LONGEST_NAME_BYTES else ""
        return value if len(value.encode()) <= LONGEST_NAME_BYTES else ""
    except UnicodeEncodeError:
        return ""


def usage_counts(usage: object, model: object = "") -> dict[str, int | str]:
    """Return a provider's usage in the form in which a commit holds it; nothing when it is of no known shape."""
    if not isinstance(usage, Mapping):
        return {}
    try:
        normal = normalise_usage(usage)
    except InvalidInputError:
        return {}
    # In the order in which they are stored.
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
    """Return a time in milliseconds since the epoch: of ISO text, or of a number of seconds or milliseconds."""
    if isinstance(value, str):
        return time_of_text(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        return None
    # A number of seconds stays below this until the year 5138, one of milliseconds is above it since 1973.
    milliseconds = value * 1000 if value < 100_000_000_000 else value
    return int(milliseconds) if milliseconds <= MAXIMUM_TIME else None


def time_of_text(text: str) -> int | None:
    """Return an ISO time in milliseconds since the epoch, or None."""
    try:
        # As JavaScript writes it; of the records of a minute only the first is taken apart.
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
    """Return a value that has no part of its own, in JSON."""
    return Opaque(provider, bytes_of(compact(value)))


def text_parts(*values: object) -> tuple[Text, ...]:
    """Return a part for each of the values that is text and not empty."""
    return tuple(Text(value) for value in values if isinstance(value, str) and value)


def image_of_data(url: str) -> Image:
    """Return the image of a URL: its bytes when it is a data URL in base64."""
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
