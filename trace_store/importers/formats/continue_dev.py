"""Continue: sessions of the editor extension and the command line, one JSON document each.

An item of `history` has a message and what was gathered for it: context, reasoning, and the states of its calls with
their outputs. A message of role `tool` repeats such an output. A summary of the conversation belongs to the last
message that it covers, and replaces all up to it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from trace_store.base.environment import Environment
from trace_store.disk.files import Disk
from trace_store.importers.contract import PlannedMessage
from trace_store.importers.convert import (
    image_from_url,
    opaque,
    planned_message,
    storable_name,
    text_parts,
    unreadable_message,
)
from trace_store.importers.input_files import files_in
from trace_store.importers.json_records import compact
from trace_store.importers.sniff import file_shape, is_below, read_head
from trace_store.importers.turn_plan import TurnFormat
from trace_store.importers.turns import Compaction, DocumentReader, Event, Turn
from trace_store.objects.parts import Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.transcripts.sources import Record

NAME = "continue"
SUFFIXES = (".json",)
MAXIMUM_PARTS = 10_000
_FAILED = ("canceled", "errored")
_SESSION_KEYS = frozenset({"sessionId", "workspaceDirectory"})


class ContinueReader(DocumentReader):
    """Reader of one session."""

    AGENT = NAME
    LISTS = ("history",)

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._model = ""
        self._answered: set[str] = set()
        self._thoughts: tuple[Part, ...] = ()

    def begin(self, fields: Mapping[str, Any]) -> None:
        self.state["session"] = storable_name(fields.get("sessionId"))
        self._model = storable_name(fields.get("chatModelTitle"))

    def read(self, record: Record) -> Iterator[Event]:
        data = record.data
        message = data.get("message")
        message = message if isinstance(message, dict) else {}
        for planned in self._messages(data, message):
            author = {"assistant": planned.model, "user": "user"}.get(planned.role, "")
            usage = _usage(message.get("usage"), planned.model) if author and planned.model else {}
            yield Turn((planned,), author=author, usage=usage)
        summary = text_parts(data.get("conversationSummary"))
        if summary:
            yield Compaction((PlannedMessage("user", summary),))

    def label(self, record: Record) -> str:
        message = record.data.get("message")
        role = message.get("role") if isinstance(message, dict) else None
        return role[:100] if isinstance(role, str) else super().label(record)

    def _messages(
        self, data: Mapping[str, Any], message: Mapping[str, Any]
    ) -> Iterator[PlannedMessage]:
        role = message.get("role")
        parts = _content(message.get("content"))
        if role == "user":
            given = data.get("contextItems")
            items = given[:MAXIMUM_PARTS] if isinstance(given, list) else []
            context = tuple(part for item in items for part in _context(item))
            if context or parts:
                yield PlannedMessage("user", (*context, *parts))
        elif role == "system":
            if parts:
                yield PlannedMessage("system", parts, kind="instruction")
        elif role == "thinking":
            self._thoughts = (*self._thoughts, *_thoughts(message))
        elif role == "assistant":
            yield from self._answer(data, message, parts)
        elif role == "tool":
            call = storable_name(message.get("toolCallId"))
            if call and call not in self._answered:
                self._answered.add(call)
                yield PlannedMessage("tool", (ToolResult(call, parts),))
        elif message:
            yield planned_message(unreadable_message("user", message))

    def _answer(
        self, data: Mapping[str, Any], message: Mapping[str, Any], parts: Sequence[Part]
    ) -> Iterator[PlannedMessage]:
        thoughts, self._thoughts = self._thoughts, ()
        reasoning = data.get("reasoning")
        if not thoughts and isinstance(reasoning, dict):
            thoughts = tuple(Reasoning(part.text) for part in text_parts(reasoning.get("text")))
        states = data.get("toolCallStates")
        states = (
            [each for each in states if isinstance(each, dict)] if isinstance(states, list) else []
        )
        forms = message.get("toolCalls")
        forms = (
            forms
            if isinstance(forms, list) and forms
            else [each.get("toolCall") for each in states]
        )
        calls = [_call(form) for form in forms[:MAXIMUM_PARTS]]
        if thoughts or parts or calls:
            yield PlannedMessage("assistant", (*thoughts, *parts, *calls), model=self._model)
        ids = {part.id for part in calls if isinstance(part, ToolCall)}
        results = [result for state in states for result in _result(state, ids)]
        if results:
            self._answered.update(result.call_id for result in results)
            yield PlannedMessage("tool", tuple(results))


def _content(content: Any) -> tuple[Part, ...]:
    if content is None or isinstance(content, str):
        return text_parts(content)
    blocks = content[:MAXIMUM_PARTS] if isinstance(content, list) else [content]
    return tuple(part for block in blocks for part in _block(block))


def _block(block: Any) -> tuple[Part, ...]:
    kind = block.get("type") if isinstance(block, dict) else None
    if kind == "text" and isinstance(block.get("text"), str):
        return text_parts(block["text"])
    image = block.get("imageUrl") if kind == "imageUrl" else None
    if isinstance(image, dict) and isinstance(image.get("url"), str):
        return (image_from_url(image["url"]),)
    return (opaque(NAME, block),)


def _context(item: Any) -> tuple[Part, ...]:
    """Return what a context item adds to a prompt: a text with a newline, as the model is shown it."""
    text = item.get("content") if isinstance(item, dict) else None
    return (Text(f"{text}\n"),) if isinstance(text, str) and text.strip() else ()


def _thoughts(message: Mapping[str, Any]) -> tuple[Part, ...]:
    signature, redacted = message.get("signature"), message.get("redactedThinking")
    if isinstance(redacted, str) and redacted:
        return (opaque("anthropic", {"type": "redacted_thinking", "data": redacted}),)
    sign = signature if isinstance(signature, str) and signature else None
    texts = "".join(
        part.text for part in _content(message.get("content")) if isinstance(part, Text)
    )
    return (Reasoning(texts, sign),) if texts or sign else ()


def _call(form: Any) -> Part:
    function = form.get("function") if isinstance(form, dict) else None
    function = function if isinstance(function, dict) else {}
    call = storable_name(form.get("id")) if isinstance(form, dict) else ""
    name = storable_name(function.get("name"))
    if not call or not name:
        return opaque(NAME, form)
    arguments = function.get("arguments", "{}")
    return ToolCall(call, name, arguments if isinstance(arguments, str) else compact(arguments))


def _result(state: Mapping[str, Any], calls: Iterable[str]) -> Iterator[ToolResult]:
    """Yield the output of a call; none if it was never made."""
    call, output = storable_name(state.get("toolCallId")), state.get("output")
    failed = state.get("status") in _FAILED
    if call not in calls or not (isinstance(output, list) or failed):
        return
    items = output if isinstance(output, list) else []
    texts = [item.get("content") for item in items if isinstance(item, dict)]
    whole = "\n\n".join(text for text in texts if isinstance(text, str))
    yield ToolResult(call, text_parts(whole), failed)


def _usage(usage: Any, model: str) -> dict[str, int | str]:
    given = usage if isinstance(usage, dict) else {}
    taken, output = given.get("promptTokens"), given.get("completionTokens")
    if type(taken) is not int or type(output) is not int or not 0 < taken < 1 << 53 > output >= 0:
        return {}
    return {"input_total": taken, "model": model, "output_total": output, "source": NAME}


def recognises(head: bytes) -> bool:
    """Return True if the first bytes are a session of Continue."""
    form = file_shape(head).single("history")
    if form.keys() >= _SESSION_KEYS:
        return True
    return any(
        isinstance(item, dict) and isinstance(item.get("message"), dict) and "contextItems" in item
        for item in form.get("history", ())[:1]
    )


def finds(environment: Environment, project_dir: str, disk: Disk) -> list[str]:
    """Return the sessions of a project's folder or below."""
    given = environment.variables("CONTINUE_GLOBAL_DIR").get("CONTINUE_GLOBAL_DIR", "")
    folder = given or (environment.home and os.path.join(environment.home, ".continue"))
    if not folder:
        return []
    return [
        path
        for path in files_in(os.path.join(folder, "sessions"), disk, SUFFIXES)
        if is_below(_worked_in(read_head(disk, path)), project_dir)
    ]


def _worked_in(head: bytes) -> str:
    folder = file_shape(head).single("history").get("workspaceDirectory")
    return folder.removeprefix("file://") if isinstance(folder, str) else ""


FORMAT = TurnFormat(
    NAME, SUFFIXES, recognises, ContinueReader, reads_document=lambda head: True, finds=finds
)
