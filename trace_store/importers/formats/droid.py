"""Droid, Factory's agent: sessions of Anthropic messages, one record a line.

A `session_start` names the session; a `message` has Anthropic's role and content; other types are state.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from trace_store.base.environment import Environment
from trace_store.disk.files import Disk
from trace_store.importers.contract import PlannedMessage
from trace_store.importers.convert import storable_name, time_of
from trace_store.importers.formats.claude_code import project_name
from trace_store.importers.formats.claude_code.records import content_parts
from trace_store.importers.input_files import files_in
from trace_store.importers.turn_plan import TurnFormat
from trace_store.importers.turns import Event, Turn, TurnReader
from trace_store.objects.parts import ToolResult
from trace_store.transcripts.sources import Record

NAME = "droid"
SUFFIXES = (".jsonl",)


class DroidReader(TurnReader):
    """Reader of one session file."""

    AGENT = NAME

    def read(self, record: Record) -> Iterable[Event]:
        data = record.data
        if data.get("type") == "session_start":
            self.state = {"session": storable_name(data.get("id"))}
        elif data.get("type") == "message":
            yield from self._message(record)

    def _message(self, record: Record) -> Iterator[Event]:
        message = record.data.get("message")
        if not isinstance(message, dict):
            return
        parts = content_parts(message.get("content"))
        role = message.get("role")
        if not parts or role not in ("user", "assistant"):
            return
        model = storable_name(message.get("model"))
        results = role == "user" and any(isinstance(part, ToolResult) for part in parts)
        if results:
            # Providers expect results before other content.
            parts = tuple(sorted(parts, key=lambda part: not isinstance(part, ToolResult)))
        yield Turn(
            (PlannedMessage("tool" if results else role, parts, model=model),),
            key=storable_name(record.data.get("id")),
            time=time_of(record.data.get("timestamp")),
            author=model if role == "assistant" else "" if results else "user",
        )


def recognises(head: bytes) -> bool:
    """Return True if the first bytes are a Droid session."""
    first = head.partition(b"\n")[0]
    return b'"session_start"' in first and b'"type"' in first and b'"sessionTitle"' in first


def finds(environment: Environment, project_dir: str, disk: Disk) -> list[str]:
    """Return a project's sessions; Droid names its folders like Claude Code."""
    if not environment.home:
        return []
    folder = os.path.join(environment.home, ".factory", "sessions", project_name(project_dir))
    return files_in(folder, disk, SUFFIXES)


FORMAT = TurnFormat(NAME, SUFFIXES, recognises, DroidReader, finds=finds)
