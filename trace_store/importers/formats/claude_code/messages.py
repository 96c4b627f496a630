"""The messages of records that are read without their session, such as the entries that the Claude Agent SDK stores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from trace_store.importers.convert import storable_name
from trace_store.importers.formats.claude_code.records import (
    API_LINE,
    COMPACTION,
    RESULT,
    SAID,
    classify,
)
from trace_store.importers.formats.claude_code.threads import turn_message
from trace_store.objects.message import Message
from trace_store.objects.parts import ToolResult
from trace_store.transcripts.sources import Record


def is_boundary(entry: Mapping[str, Any]) -> bool:
    """Return True for the record of a compaction: only what follows it is in the context."""
    return entry.get("type") == "system" and entry.get("subtype") == "compact_boundary"


def messages_of(entries: Iterable[Mapping[str, Any]]) -> list[Message]:
    """Return the messages that a model is shown; adjacent lines of one API message are one message."""
    found: list[Message] = []
    last_id = ""
    for entry in entries:
        message = _message_of(entry)
        if message is None:
            continue
        id_ = message.id if message.role == "assistant" else ""
        if id_ and id_ == last_id:
            parts = (*found.pop().parts, *message.parts)
            message = Message("assistant", parts, model=message.model, id=id_)
        found.append(message)
        last_id = id_
    return found


def _message_of(entry: Mapping[str, Any]) -> Message | None:
    record = Record(0, 0, 0, b"", dict(entry))
    purpose = classify(record)
    if purpose == API_LINE and entry.get("isApiErrorMessage") is not True:
        said = entry["message"]
        model, id_ = storable_name(said.get("model")), storable_name(said.get("id"))
        return Message("assistant", record.parts, model=model, id=id_)
    if purpose == RESULT:
        results = [part for part in record.parts if isinstance(part, ToolResult)]
        others = [part for part in record.parts if not isinstance(part, ToolResult)]
        return Message("tool", (*results, *others), kind="tool_io")
    if purpose in (SAID, COMPACTION) and not (planned := turn_message(record)).skipped:
        return Message(planned.role, planned.parts, kind=planned.kind)
    return None
