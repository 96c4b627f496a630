"""Qwen Code: chats with Gemini contents, in records that name their parents.

The path from the last record to the root is the chat. A `chat_compression` has the whole history that replaces what
was before it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from trace_store.base.environment import Environment
from trace_store.disk.files import Disk
from trace_store.importers.contract import PlannedMessage
from trace_store.importers.convert import (
    planned_message,
    storable_name,
    time_of,
    try_parse,
    unreadable_message,
    usage_counts,
)
from trace_store.importers.input_files import files_in
from trace_store.importers.sniff import first_records, is_below, read_head
from trace_store.importers.turn_plan import TurnFormat
from trace_store.importers.turns import Compaction, Event, Return, Turn, TurnReader
from trace_store.objects.message import Message
from trace_store.objects.parts import ToolResult
from trace_store.providers.gemini import GeminiCalls, message_from_gemini
from trace_store.transcripts.sources import Record

NAME = "qwen-code"
SUFFIXES = (".jsonl",)
RECORDS = 8
MAXIMUM_CONTENTS = 10_000
_TYPES = ("assistant", "system", "tool_result", "user")


class QwenReader(TurnReader):
    """Reader of one chat.

    State: `leaf`, the key of the last turn on the path; `silent`, for each record without a message the key of the
    turn before it; `calls`, calls without ids.
    """

    AGENT = NAME

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.state = {"leaf": "", "silent": {}, "calls": []}

    def read(self, record: Record) -> Iterable[Event]:
        data = record.data
        if "session" not in self.state:
            self.state["session"] = storable_name(data.get("sessionId"))
        yield from self._go_to_parent(data)
        key = storable_name(data.get("uuid")) or f"line-{record.line}"
        event = self._event(data, key)
        if event is None:
            self.state["silent"] = {**self.state["silent"], key: self.state["leaf"]}
        else:
            self.state["leaf"] = key
            yield event

    def label(self, record: Record) -> str:
        subtype = record.data.get("subtype")
        kind = super().label(record)
        return f"{kind}:{subtype}"[:100] if isinstance(subtype, str) else kind

    def _go_to_parent(self, data: Mapping[str, Any]) -> Iterator[Event]:
        """Return to the record's parent if it is not the last record of the path."""
        parent = data.get("parentUuid", self.state["leaf"])
        if parent is not None and not isinstance(parent, str):
            return
        key = self.state["silent"].get(parent, parent or "")
        if key != self.state["leaf"]:
            yield Return(key)
            self.state["leaf"] = key

    def _event(self, data: Mapping[str, Any], key: str) -> Event | None:
        time = time_of(data.get("timestamp"))
        if data.get("subtype") == "chat_compression":
            payload = data.get("systemPayload")
            history = payload.get("compressedHistory") if isinstance(payload, dict) else None
            contents = history[:MAXIMUM_CONTENTS] if isinstance(history, list) else []
            parsed = (self._message(content, "") for content in contents)
            messages = tuple(message for message in parsed if message is not None)
            return Compaction(messages, key, time) if messages else None
        content = data.get("message")
        if data.get("type") not in _TYPES or not isinstance(content, dict):
            return None
        message = self._message(content, storable_name(data.get("model")))
        if message is None:
            return None
        is_answer = message.role == "assistant"
        author = message.model if is_answer else "user" if message.role == "user" else ""
        usage = usage_counts(data.get("usageMetadata"), message.model) if is_answer else {}
        return Turn((message,), key, time, author, usage)

    def _message(self, content: Any, model: str) -> PlannedMessage | None:
        if not isinstance(content, dict) or not content.get("parts"):
            return None
        calls = GeminiCalls.load(self.state["calls"])
        message = try_parse(lambda: message_from_gemini(content, "", model=model, calls=calls))
        self.state["calls"] = calls.save()
        if message is None:
            message = unreadable_message("user", content)
        if message.role == "user" and any(isinstance(part, ToolResult) for part in message.parts):
            message = Message("tool", message.parts)
        return planned_message(message)


def recognises(head: bytes) -> bool:
    """Return True if the first bytes are a chat of Qwen Code."""
    return any(
        {"uuid", "parentUuid", "sessionId"} <= data.keys()
        and data.get("type") in _TYPES
        and _has_contents(data)
        for data in first_records(head, RECORDS)
    )


def _has_contents(data: Mapping[str, Any]) -> bool:
    message = data.get("message")
    return isinstance(message, dict) and isinstance(message.get("parts"), list)


def finds(environment: Environment, project_dir: str, disk: Disk) -> list[str]:
    """Return the chats that started in a project's folder or below."""
    if not environment.home:
        return []
    root = os.path.join(environment.home, ".qwen")
    return [
        path
        for folder in ("projects", "tmp")
        for path in files_in(os.path.join(root, folder), disk, SUFFIXES)
        if is_below(_worked_in(read_head(disk, path)), project_dir)
    ]


def _worked_in(head: bytes) -> str:
    for data in first_records(head, 1):
        if isinstance(data.get("cwd"), str) and "uuid" in data:
            return str(data["cwd"])
    return ""


FORMAT = TurnFormat(NAME, SUFFIXES, recognises, QwenReader, finds=finds)
