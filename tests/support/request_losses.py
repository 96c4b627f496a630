"""What each provider's form cannot carry, as functions that take it away from messages.

Rule: a loss is named as in docs/format/rendering.md. Two lists of messages that are equal after the losses of a form
differ in nothing else.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from typing import Any

from trace_store.objects.message import Message
from trace_store.objects.parts import (
    Data,
    Image,
    Opaque,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from trace_store.providers import anthropic, gemini, openai_chat, openai_responses
from trace_store.providers.rendering import LOST_EVERYWHERE

Loss = Callable[[list[Message]], list[Message]]


def changed(message: Message, parts: Sequence[Part] | None = None, **fields: str) -> Message:
    """A message with some of it otherwise."""
    given = {name: getattr(message, name) for name in ("kind", "name", "model", "id", "role")}
    given |= fields
    return Message(content=message.parts if parts is None else parts, **given)


def each_part(messages: list[Message], change: Callable[[Part], Part | None]) -> list[Message]:
    """Messages with each part, also those of results, changed or gone; messages that say nothing go too."""

    def inside(parts: Sequence[Part]) -> list[Part]:
        found = []
        for part in parts:
            if isinstance(part, ToolResult):
                part = ToolResult(part.call_id, inside(part.content), part.is_error)
            if (made := change(part)) is not None:
                found.append(made)
        return found

    made = [changed(message, inside(message.parts)) for message in messages]
    return [message for message in made if message.parts]


def kind(messages: list[Message]) -> list[Message]:
    return [changed(message, kind="") for message in messages]


def model(messages: list[Message]) -> list[Message]:
    return [changed(message, model="") for message in messages]


def message_id(messages: list[Message]) -> list[Message]:
    return [changed(message, id="") for message in messages]


def name(messages: list[Message]) -> list[Message]:
    return [changed(message, name="") for message in messages]


def empty_text(messages: list[Message]) -> list[Message]:
    return each_part(messages, lambda part: None if part == Text("") else part)


def data_url(messages: list[Message]) -> list[Message]:
    def bare(part: Part) -> Part:
        if isinstance(part, Image) and (part.url or "").startswith("data:"):
            head, body = str(part.url)[len("data:") :].split(";base64,")
            return Image(head, base64.b64decode(body))
        return part

    return each_part(messages, bare)


def opaque_form(messages: list[Message]) -> list[Message]:
    def compact(part: Part) -> Part:
        if isinstance(part, Opaque):
            text = json.dumps(json.loads(part.data), ensure_ascii=False, separators=(",", ":"))
            return Opaque(part.provider, text.encode())
        return part

    return each_part(messages, compact)


def data_schema(messages: list[Message]) -> list[Message]:
    def as_text(part: Part) -> Part:
        return Text(part.text) if isinstance(part, Data) else part

    return each_part(messages, as_text)


def results_apart(messages: list[Message]) -> list[Message]:
    """Each result becomes a tool message, by id, before the rest of its message."""
    found: list[Message] = []
    results: list[ToolResult] = []
    rest: list[Message] = []

    def flush() -> None:
        results.sort(key=lambda result: int(result.call_id.partition("_")[2]))
        found.extend(Message("tool", [result]) for result in results)
        found.extend(rest)
        results.clear()
        rest.clear()

    for message in messages:
        own = [part for part in message.parts if isinstance(part, ToolResult)]
        if not own:
            flush()
            found.append(message)
            continue
        if rest:
            flush()
        results.extend(own)
        besides = [part for part in message.parts if not isinstance(part, ToolResult)]
        if besides:
            rest.append(changed(message, besides, role="user", kind=""))
    flush()
    return found


def neighbours(messages: list[Message]) -> list[Message]:
    return _merged(messages, lambda before, message: before.role == message.role != "tool")


def neighbours_of_the_assistant(messages: list[Message]) -> list[Message]:
    return _merged(messages, lambda before, message: before.role == message.role == "assistant")


def split_calls(messages: list[Message]) -> list[Message]:
    def waits(before: Message, message: Message) -> bool:
        calls = any(isinstance(part, ToolCall) for part in before.parts)
        return calls and before.role == message.role == "assistant"

    return _merged(messages, waits)


def calls_last(messages: list[Message]) -> list[Message]:
    return [
        changed(message, sorted(message.parts, key=lambda part: isinstance(part, ToolCall)))
        for message in messages
    ]


def reasoning(messages: list[Message]) -> list[Message]:
    return each_part(messages, lambda part: None if isinstance(part, Reasoning) else part)


def error_flag(messages: list[Message]) -> list[Message]:
    def told(part: Part) -> Part:
        if not isinstance(part, ToolResult) or not part.is_error:
            return part
        # Empty text is left out before the line is put on.
        content = [inner for inner in part.content if inner != Text("")]
        if content and isinstance(content[0], Text):
            content[0] = Text(f"[tool error]\n{content[0].text}")
        else:
            content.insert(0, Text("[tool error]"))
        return ToolResult(part.call_id, content)

    return each_part(messages, told)


def front(messages: list[Message]) -> list[Message]:
    """The leading instructions as one system message."""
    count = 0
    while count < len(messages) and messages[count].role in ("system", "developer"):
        count += 1
    parts = [part for message in messages[:count] for part in message.parts]
    return ([Message("system", parts)] if parts else []) + messages[count:]


def arguments(messages: list[Message]) -> list[Message]:
    def parsed(part: Part) -> Part:
        if not isinstance(part, ToolCall):
            return part
        value: Any = {"input": part.arguments}
        if part.format == "json":
            value = json.loads(part.arguments or "{}")
        return ToolCall(part.id, part.name, value)

    return each_part(messages, parsed)


PROVIDERS = {
    "anthropic": anthropic,
    "gemini": gemini,
    "openai": openai_chat,
    "openai-responses": openai_responses,
}
TAKEN_AWAY: dict[str, Loss] = {
    "kind": kind,
    "model": model,
    "message-id": message_id,
    "empty-text": empty_text,
    "data-url": data_url,
    "data-schema": data_schema,
    "opaque-form": opaque_form,
    "name": name,
    "reasoning": reasoning,
    "front": front,
    "arguments": arguments,
    "error-flag": error_flag,
    "results-apart": results_apart,
    "neighbours": neighbours,
    "answers": neighbours_of_the_assistant,
    "split-calls": split_calls,
    "calls-last": calls_last,
}
"""Functions that remove each loss, in the order in which they are applied."""
LOSSES: dict[str, dict[str, Loss]] = {"json": {}} | {
    form: {
        word: loss
        for word, loss in TAKEN_AWAY.items()
        if word in (*LOST_EVERYWHERE, *package.CANNOT_CARRY)
    }
    for form, package in PROVIDERS.items()
}


def without(form: str, messages: Sequence[Message], *kept: str) -> list[Message]:
    """Messages after all losses of a form, but for those named in `kept`."""
    found = list(messages)
    for each, loss in LOSSES[form].items():
        if each not in kept:
            found = loss(found)
    return found


def _merged(messages: list[Message], one: Callable[[Message, Message], bool]) -> list[Message]:
    found: list[Message] = []
    for message in messages:
        if found and one(found[-1], message):
            found[-1] = changed(found[-1], [*found[-1].parts, *message.parts], kind="")
        else:
            found.append(message)
    return found
