"""What one record of a chat says, whichever provider's shape it has.

Rule: never fails, and remembers nothing but the calls of Gemini that have no ids.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trace_store.context.parsing import (
    GeminiCalls,
    content_parts,
    message_from_gemini,
    message_from_langchain,
    messages_from_responses,
)
from trace_store.context.parsing.foreign import ROLE_NAMES
from trace_store.context.render.lossless import parse_message
from trace_store.importers.formats.chats.shapes import (
    GEMINI,
    LANGCHAIN,
    REQUEST_KEYS,
    RESPONSE_KEYS,
    RESPONSES,
    SYSTEM_KEYS,
    TRACE,
    candidate_content,
    held_message,
    message_shape,
)
from trace_store.importers.messages import attempt, chat_message, unread
from trace_store.importers.normalise import storable_name, time_of, usage_counts
from trace_store.objects import operations as ops
from trace_store.objects.message import Message
from trace_store.objects.parts import Text, ToolResult
from trace_store.values import value

GHOST = "ghost"
"""The label of a message that only stands for a removed one."""

SINGLE_KEYS = (*SYSTEM_KEYS, "config", "contents", "input", *REQUEST_KEYS, *RESPONSE_KEYS)
"""Values of a request, or of what is around it, that are records of their own."""

_TIMES = ("timestamp", "created_at", "created", "createTime", "create_time")
_MODELS = ("model", "modelVersion", "model_version")
_HOLDERS = ("message", "data", "kwargs")
_USAGES = ("usage", "usageMetadata", "usage_metadata")


@value
class Answer:
    """What a response says beside its message.

    Attributes:
        id: the provider's.
        model: that made it.
        usage: as the provider reports it.
        time: milliseconds since the epoch, or None.
    """

    id: str = ""
    model: str = ""
    usage: Any = None
    time: int | None = None


NOTHING_BESIDE = Answer()


def beside(form: Mapping[str, Any]) -> Answer:
    """Return what an object says beside its message."""
    usage = next((form[key] for key in _USAGES if isinstance(form.get(key), dict)), None)
    model = next((name for key in _MODELS if (name := storable_name(form.get(key)))), "")
    time = next((found for key in _TIMES if (found := time_of(form.get(key))) is not None), None)
    return Answer(storable_name(form.get("id")), model, usage, time)


def message_of(data: Mapping[str, Any], calls: GeminiCalls, answer: Answer) -> Message | None:
    """Return what a record says; None when it says nothing that a model is shown."""
    if len(data) == 1:
        ((key, value),) = data.items()
        if key in SINGLE_KEYS:
            return _single(key, value, calls)
    if "role" not in data and message_shape(held_message(data)):
        named = {"id": answer.id, "model": answer.model}
        held = {key: value for key, value in named.items() if value}
        return message_of({**held, **held_message(data)}, calls, answer)
    content = candidate_content(data)
    if content is not None:
        return attempt(lambda: message_from_gemini(content, "", model=answer.model, calls=calls))
    shape = message_shape(data)
    if shape == TRACE:
        return attempt(lambda: parse_message(data, "message")) or _damaged(data)
    if shape == LANGCHAIN:
        return attempt(lambda: message_from_langchain(data, "message")) or _damaged(data)
    if shape == GEMINI:
        return attempt(lambda: message_from_gemini(data, "", calls=calls)) or _damaged(data)
    if shape == RESPONSES:
        return attempt(lambda: _item(data, answer.model)) or unread("assistant", data)
    return _of_a_tool(chat_message(data))


def details(data: Mapping[str, Any], answer: Answer) -> Answer:
    """Return what is told of a record's message: beside it, or in it."""
    for form in (data, *(data.get(key) for key in (*_HOLDERS, *RESPONSE_KEYS))):
        if isinstance(form, dict):
            own = beside(form)
            answer = Answer(
                id=own.id or answer.id,
                model=own.model or answer.model,
                usage=own.usage or answer.usage,
                time=answer.time if own.time is None else own.time,
            )
    return answer


def usage_of(message: Message, answer: Answer) -> dict[str, int | str]:
    """Return the usage of a message that a model made, in the form in which a commit holds it."""
    if message.role != "assistant" or answer.usage is None:
        return {}
    return usage_counts(answer.usage, message.model or answer.model)


def marks(data: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    """Return the priority and the labels that lossless JSON gives a message."""
    priority, labels = data.get("priority"), data.get("labels")
    found = [each for each in labels if _is_label(each)] if isinstance(labels, list) else []
    if data.get("ghost") is True:
        found.append(GHOST)
    known = isinstance(priority, str) and priority in ops.PRIORITIES and priority != ops.NORMAL
    return str(priority) if known else "", tuple(dict.fromkeys(found))


def items_of(data: Mapping[str, Any]) -> Iterator[str]:
    """Yield the type of a record that is an item of Responses."""
    if message_shape(data) == RESPONSES:
        yield str(data.get("type", "message"))


def _single(key: str, value: Any, calls: GeminiCalls) -> Message | None:
    if key == "config":
        config = value if isinstance(value, dict) else {}
        key = next((name for name in SYSTEM_KEYS[2:] if config.get(name)), "")
        value = config.get(key)
    if not value:
        return None
    if key == "input":
        return Message("user", [Text(value)]) if isinstance(value, str) else None
    if key == "contents":
        return message_of(value, calls, NOTHING_BESIDE) if isinstance(value, dict) else None
    if key in RESPONSE_KEYS:
        return message_of(value, calls, NOTHING_BESIDE) if isinstance(value, dict) else None
    if key not in SYSTEM_KEYS:
        return None
    if key in SYSTEM_KEYS[2:] and not isinstance(value, str):
        form = value if isinstance(value, dict) else {"parts": value}
        content = {**form, "role": "system"}
        found = attempt(lambda: message_from_gemini(content, ""))
    else:
        found = attempt(lambda: Message("system", content_parts(value, "")))
    return found or unread("system", value)


def _of_a_tool(message: Message | None) -> Message | None:
    """Return a message of Anthropic's that holds results alone as one of tools, for which it has no role."""
    if message is None or message.role != "user" or not message.parts:
        return message
    if not all(isinstance(part, ToolResult) for part in message.parts):
        return message
    return Message("tool", message.parts, name=message.name, id=message.id)


def unknown_speaker(data: Mapping[str, Any]) -> Message | None:
    """Return a message of an unknown role, unread; roles like `_usage` mark a program's own notes, which are none."""
    role = data.get("role")
    if not isinstance(role, str) or role.startswith("_") or not data.get("content"):
        return None
    return unread("user", data)


def _item(data: Mapping[str, Any], model: str) -> Message:
    (found,) = messages_from_responses([data], model=model)
    return found


def _damaged(data: Mapping[str, Any]) -> Message | None:
    roles = {**ROLE_NAMES, "function": "tool"}
    role = data.get("role", data.get("type"))
    if not isinstance(role, str):
        return None
    return attempt(lambda: unread(roles.get(role, role), data))


def _is_label(label: Any) -> bool:
    return (
        storable_name(label) != ""
        and len(label) <= 100
        and all(ord(c) > 32 and ord(c) != 127 for c in label)
    )
