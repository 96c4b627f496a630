"""Goose: sessions in a database, exported sessions, and the files of builds before the database.

A message is a row with JSON content; files of older builds have one a line. A summary is a message that only the agent
sees. It replaces the messages before it that the agent no longer sees.
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
from trace_store.importers.input_files import files_in
from trace_store.importers.json_records import compact
from trace_store.importers.session_database import (
    Rows,
    SessionDatabase,
    is_database,
    json_value,
    session_document,
    works_below,
)
from trace_store.importers.sniff import file_shape, first_records, is_below, read_head
from trace_store.importers.turns import Compaction, DocumentReader, Event, Turn
from trace_store.objects.parts import Part, Reasoning, ToolCall, ToolResult
from trace_store.transcripts.sources import Record

NAME = "goose"
SUFFIXES = (".db", ".json", ".jsonl")
MAXIMUM_PARTS = 10_000
_SESSION_KEYS = frozenset({"working_dir", "extension_data"})
_FIRST_LINE = frozenset({"working_dir", "description", "message_count"})
_NOTICES = frozenset(
    {
        "actionRequired",
        "contextLengthExceeded",
        "conversationCompacted",
        "summarizationRequested",
        "systemNotification",
        "toolConfirmationRequest",
    }
)
"""Contents that are shown to the user alone."""


class GooseReader(DocumentReader):
    """Reader of one session."""

    AGENT = NAME
    LABELS = ("role", "type")
    LISTS = ("messages", "conversation")

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._has_visibility = False
        self._model = ""
        self._hidden: list[Turn] = []
        self._visible: list[str] = []

    def begin(self, fields: Mapping[str, Any]) -> None:
        row = fields.get("goose")
        session = row if isinstance(row, dict) else fields
        model = json_value(session.get("model_config_json") or session.get("model_config"))
        self._model = storable_name(model.get("model_name")) if isinstance(model, dict) else ""
        id_, parent = (
            storable_name(session.get("id")),
            storable_name(session.get("parent_session_id")),
        )
        self.state = {"session": parent, "agent": id_} if parent else {"session": id_}
        self._has_visibility = True

    def read(self, record: Record) -> Iterable[Event]:
        data = record.data
        key = storable_name(data.get("message_id") or data.get("id")) or str(data.get("id") or "")
        time = time_of(data.get("created_timestamp") or data.get("created"))
        turns = [
            Turn((said,), "" if number else key, time, _author(said), group=_group(said))
            for number, said in enumerate(_messages(data, self._model))
        ]
        is_for_agent, is_for_user = _visibility(data) if self._has_visibility else (True, True)
        if turns and self._hidden and not is_for_user:
            yield from self._hidden
            said = tuple(message for turn in turns for message in turn.messages)
            self._hidden = []
            yield Compaction(said, key, time, keeps=tuple(self._visible))
        elif not is_for_agent:
            self._hidden += turns
            return
        else:
            yield from self.finish()
            yield from turns
        if is_for_agent and key:
            self._visible.append(key)

    def finish(self) -> Iterable[Event]:
        """Return what no summary replaced and the agent does not see."""
        hidden, self._hidden = self._hidden, []
        for turn in hidden:
            said = tuple(
                message._replace(skipped=True, labels=("user-only",)) for message in turn.messages
            )
            yield turn._replace(messages=said)


def _visibility(data: Mapping[str, Any]) -> tuple[bool, bool]:
    """Return whether the agent, and the user, see a message."""
    found = json_value(data.get("metadata_json") or data.get("metadata"))
    found = found if isinstance(found, dict) else {}
    return found.get("agentVisible") is not False, found.get("userVisible") is not False


def _author(message: PlannedMessage) -> str:
    return {"assistant": message.model, "user": "user"}.get(message.role, "")


def _group(message: PlannedMessage) -> str:
    return "results" if message.role == "tool" else ""


def _messages(data: Mapping[str, Any], model: str) -> Iterator[PlannedMessage]:
    """Yield the messages of a record: results come before what else a prompt has."""
    role = data.get("role")
    forms = json_value(data.get("content_json") or data.get("content"))
    if role not in ("assistant", "user") or not isinstance(forms, list):
        if "role" in data:
            yield planned_message(unreadable_message("user", data))
        return
    parts = [part for form in forms[:MAXIMUM_PARTS] for part in _parts(form)]
    results = tuple(part for part in parts if isinstance(part, ToolResult))
    others = tuple(part for part in parts if not isinstance(part, ToolResult))
    if results:
        yield PlannedMessage("tool", results)
    if others:
        yield PlannedMessage(str(role), others, model=model if role == "assistant" else "")


def _parts(form: Any) -> Iterator[Part]:
    kind = form.get("type") if isinstance(form, dict) else None
    if kind in _NOTICES:
        return
    if kind == "thinking" and isinstance(form.get("thinking"), str):
        signature = form.get("signature")
        yield Reasoning(form["thinking"], signature if isinstance(signature, str) else None)
    elif kind == "redactedThinking" and isinstance(form.get("data"), str):
        yield opaque("anthropic", {"type": "redacted_thinking", "data": form["data"]})
    elif kind in ("toolRequest", "frontendToolRequest"):
        yield _call(form)
    elif kind == "toolResponse" and storable_name(form.get("id")):
        yield _result(form)
    else:
        yield from _content(form)


def _call(form: Mapping[str, Any]) -> Part:
    asked = form.get("toolCall")
    call = asked.get("value") if isinstance(asked, dict) else None
    call = call if isinstance(call, dict) else {}
    id_, name = storable_name(form.get("id")), storable_name(call.get("name"))
    if not id_ or not name:
        return opaque(NAME, form)
    return ToolCall(id_, name, compact(call.get("arguments") or {}))


def _result(form: Mapping[str, Any]) -> ToolResult:
    answer = form.get("toolResult")
    answer = answer if isinstance(answer, dict) else {}
    value = answer.get("value")
    contents = value.get("content") if isinstance(value, dict) else value
    parts = [
        part
        for item in (contents[:MAXIMUM_PARTS] if isinstance(contents, list) else ())
        if _is_for_agent(item)
        for part in _content(item)
    ]
    parts += text_parts(answer.get("error"))
    failed = answer.get("status") == "error" or (
        isinstance(value, dict) and value.get("isError") is True
    )
    return ToolResult(storable_name(form.get("id")), tuple(parts), failed)


def _is_for_agent(item: Any) -> bool:
    notes = item.get("annotations") if isinstance(item, dict) else None
    audience = notes.get("audience") if isinstance(notes, dict) else None
    return not isinstance(audience, list) or not audience or "assistant" in audience


def _content(item: Any) -> Iterator[Part]:
    """Yield a content of the Model Context Protocol."""
    kind = item.get("type") if isinstance(item, dict) else None
    resource = item.get("resource") if kind == "resource" else None
    if kind == "text" and isinstance(item.get("text"), str):
        yield from text_parts(item["text"])
    elif isinstance(resource, dict) and isinstance(resource.get("text"), str):
        yield from text_parts(resource["text"])
    elif kind == "image" and isinstance(item.get("data"), str):
        yield image_from_url(f"data:{item.get('mimeType')};base64,{item['data']}")
    else:
        yield opaque(NAME, item)


def recognises(head: bytes) -> bool:
    """Return True if a file starts like a database of Goose, or a session of one."""
    if is_database(head):
        return DATABASE.recognises(head)
    if DATABASE.recognises(head) or file_shape(head).single("conversation").keys() >= _SESSION_KEYS:
        return True
    return not _reads_document(head)


def _reads_document(head: bytes) -> bool:
    return not any(form.keys() >= _FIRST_LINE for form in first_records(head, 1))


def finds(environment: Environment, project_dir: str, disk: Disk) -> list[str]:
    """Return the sessions of a project's folder or below."""
    root = environment.variables("GOOSE_PATH_ROOT").get("GOOSE_PATH_ROOT", "")
    data = root and os.path.join(root, "data")
    data = data or (environment.data_dir and os.path.join(environment.data_dir, "goose"))
    if not data:
        return []
    folder = os.path.join(data, "sessions")
    files = [
        path
        for path in files_in(folder, disk, (".jsonl",))
        if any(
            is_below(str(form.get("working_dir")), project_dir)
            for form in first_records(read_head(disk, path), 1)
        )
    ]
    stored = DATABASE.found(os.path.join(folder, "sessions.db"), disk, works_below(project_dir))
    return files + stored


def _sessions(rows: Rows) -> Iterator[tuple[str, str]]:
    listed = list(rows("SELECT * FROM sessions ORDER BY created_at, rowid"))
    listed.sort(key=lambda row: bool(row.get("parent_session_id")))
    return ((row["id"], str(row.get("working_dir") or "")) for row in listed)


def _document(rows: Rows, id_: str) -> dict[str, Any]:
    return session_document(rows, NAME, id_, "id")


DATABASE = SessionDatabase(
    "Goose",
    ("sessions", "messages"),
    (b"content_json", b"extension_data", b"working_dir"),
    _sessions,
    _document,
)
FORMAT = DATABASE.format(SUFFIXES, GooseReader, finds, recognises, _reads_document)
