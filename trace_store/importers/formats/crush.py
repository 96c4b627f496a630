"""Crush: sessions in a database, `.crush/crush.db` of a project.

A message is a row whose `parts` are JSON. A summary replaces all messages before it. A session with a parent is a
subagent's.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
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
    time_of,
    unreadable_message,
)
from trace_store.importers.session_database import (
    Rows,
    SessionDatabase,
    json_value,
    session_document,
)
from trace_store.importers.turns import Compaction, DocumentReader, Event, Turn
from trace_store.objects.parts import Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.transcripts.sources import Record

NAME = "crush"
SUFFIXES = (".db",)
MAXIMUM_PARTS = 10_000
_ROLES = ("assistant", "system", "tool", "user")


class CrushReader(DocumentReader):
    """Reader of one session."""

    AGENT = NAME
    LABELS = ("role", "type")
    LISTS = ("messages",)

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._summary: Any = None

    def begin(self, fields: Mapping[str, Any]) -> None:
        session = fields.get("crush")
        session = session if isinstance(session, dict) else {}
        id_, parent = (
            storable_name(session.get("id")),
            storable_name(session.get("parent_session_id")),
        )
        self._summary = session.get("summary_message_id")
        self.state = {"session": parent, "agent": id_} if parent else {"session": id_}

    def read(self, record: Record) -> Iterable[Event]:
        data = record.data
        message = _message(data)
        if message is None:
            return
        key, time = storable_name(data.get("id")), time_of(data.get("created_at"))
        is_summary = data.get("is_summary_message") in (1, True)
        if (is_summary or (key and key == self._summary)) and not message.skipped:
            yield Compaction((message._replace(role="user", model=""),), key, time)
            return
        author = {"assistant": message.model, "user": "user"}.get(message.role, "")
        group = "results" if message.role == "tool" else ""
        yield Turn((message,), key, time, author, group=group)


def _message(data: Mapping[str, Any]) -> PlannedMessage | None:
    """Return the message of a row; None if it says nothing."""
    role, forms = data.get("role"), _forms(data.get("parts"))
    if role not in _ROLES or forms is None:
        return planned_message(unreadable_message("user", data))
    parts = tuple(part for form in forms[:MAXIMUM_PARTS] for part in _parts(form))
    model = storable_name(data.get("model")) if role == "assistant" else ""
    if parts:
        return PlannedMessage(str(role), parts, model=model)
    failures = (_failure(form) for form in forms)
    texts = next((texts for texts in failures if texts), ())
    if not texts:
        return None
    return PlannedMessage(str(role), texts, model=model, skipped=True, labels=("api-error",))


def _forms(text: Any) -> list[Any] | None:
    """Return the parts of a row, or None if they are damaged."""
    forms = json_value(text)
    return forms if isinstance(forms, list) else None


def _opened(form: Any) -> tuple[str, dict[str, Any]]:
    """Return the type and the data of a part; "" for another form."""
    data = form.get("data") if isinstance(form, dict) else None
    kind = form.get("type") if isinstance(form, dict) else None
    return (kind, data) if isinstance(kind, str) and isinstance(data, dict) else ("", {})


def _failure(form: Any) -> tuple[Text, ...]:
    kind, data = _opened(form)
    return text_parts(data.get("message")) if kind == "finish" else ()


def _parts(form: Any) -> Iterator[Part]:
    kind, data = _opened(form)
    if kind == "finish":
        return
    if kind == "text" and isinstance(data.get("text"), str):
        yield from text_parts(data["text"])
    elif kind == "reasoning" and isinstance(data.get("thinking"), str):
        signature = data.get("signature") or data.get("thought_signature")
        signature = signature if isinstance(signature, str) and signature else None
        if data["thinking"] or signature:
            yield Reasoning(data["thinking"], signature)
    elif kind == "tool_call" and storable_name(data.get("id")) and storable_name(data.get("name")):
        given = data.get("input")
        yield ToolCall(
            data["id"], data["name"], given if isinstance(given, str) and given else "{}"
        )
    elif kind == "tool_result" and storable_name(data.get("tool_call_id")):
        yield ToolResult(data["tool_call_id"], tuple(_output(data)), data.get("is_error") is True)
    elif kind == "image_url" and isinstance(data.get("url"), str):
        yield image_from_url(data["url"])
    elif kind == "shell_command":
        yield Text(f"$ {data.get('command')}\n{data.get('output')}")
    else:
        yield _file(data.get("MIMEType"), data.get("Data")) or opaque(NAME, form)


def _output(data: Mapping[str, Any]) -> Iterator[Part]:
    yield from text_parts(data.get("content"))
    if data.get("data"):
        yield _file(data.get("mime_type"), data["data"]) or opaque(NAME, dict(data))


def _file(media: Any, data: Any) -> Part | None:
    """Return an image; None for any other file."""
    if not isinstance(data, str) or not isinstance(media, str) or not media.startswith("image/"):
        return None
    image = image_from_url(f"data:{media};base64,{data}")
    return image if image.url is None else None


def finds(environment: Environment, project_dir: str, disk: Disk) -> list[str]:
    """Return the sessions of a project; a database that cannot be read itself."""
    return DATABASE.found(os.path.join(project_dir, ".crush", "crush.db"), disk)


def _sessions(rows: Rows) -> Iterator[tuple[str, str]]:
    query = "SELECT id FROM sessions ORDER BY parent_session_id IS NOT NULL, created_at, rowid"
    return ((row["id"], "") for row in rows(query))


def _document(rows: Rows, id_: str) -> dict[str, Any]:
    return session_document(rows, NAME, id_, "created_at, rowid")


DATABASE = SessionDatabase(
    "Crush",
    ("sessions", "messages"),
    (b"prompt_tokens", b"parts TEXT", b"parent_session_id"),
    _sessions,
    _document,
)
FORMAT = DATABASE.format(SUFFIXES, CrushReader, finds)
