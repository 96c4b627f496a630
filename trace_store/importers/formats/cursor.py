"""Cursor: conversations in its database `globalStorage/state.vscdb`.

A conversation is a row `composerData:ID` that lists its bubbles, each a row `bubbleId:ID:BUBBLE`; older builds kept the
bubbles in the conversation's row. A bubble is a prompt, reasoning, a text, or a call with its result.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from trace_store.base.environment import Environment
from trace_store.disk.files import Disk
from trace_store.errors import TraceError
from trace_store.importers.contract import PlannedMessage
from trace_store.importers.convert import (
    opaque,
    planned_message,
    storable_name,
    text_parts,
    time_of,
    unreadable_message,
)
from trace_store.importers.json_records import compact
from trace_store.importers.session_database import Rows, SessionDatabase, json_value
from trace_store.importers.sniff import is_below, read_head
from trace_store.importers.turns import DocumentReader, Event, Turn
from trace_store.objects.parts import Part, Reasoning, ToolCall, ToolResult
from trace_store.transcripts.sources import Record

NAME = "cursor"
SUFFIXES = (".vscdb",)
MAXIMUM_PARTS = 10_000
_PLACES = ("~/.config/Cursor/User", "~/Library/Application Support/Cursor/User")
_USER, _ASSISTANT = 1, 2
_FAILED = ("cancelled", "error")


class CursorReader(DocumentReader):
    """Reader of one conversation."""

    AGENT = NAME
    LISTS = ("bubbles",)

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._model = ""
        self._began: int | None = None
        self._inline: list[Any] = []
        self._listed: set[str] = set()
        self._said: list[Part] = []
        self._first: tuple[str, int | None] = ("", None)

    def begin(self, fields: Mapping[str, Any]) -> None:
        row = fields.get("cursor")
        row = row if isinstance(row, dict) else {}
        composer = _object(row.get("value"))
        id_ = storable_name(_last_of(row.get("key")))
        parent = storable_name(_object(composer.get("subagentInfo")).get("parentComposerId"))
        self.state = {"session": parent, "agent": id_} if parent else {"session": id_}
        self._began = time_of(composer.get("createdAt"))
        self._model = storable_name(_object(composer.get("modelConfig")).get("modelName"))
        self._listed = set(_listed(composer))
        self._inline = _inline(composer)

    def read(self, record: Record) -> Iterable[Event]:
        key = storable_name(_last_of(record.data.get("key")))
        bubble = json_value(record.data.get("value"))
        if key in self._listed and bubble is not None:
            yield from self._bubble(key, bubble)

    def finish(self) -> Iterable[Event]:
        inline, self._inline = self._inline, []
        for bubble in inline:
            yield from self._bubble(storable_name(_object(bubble).get("bubbleId")), bubble)
        yield from self._answer()

    def label(self, record: Record) -> str:
        kind = _object(record.data.get("value")).get("type")
        return {_USER: "user", _ASSISTANT: "assistant"}.get(kind, "untyped")  # type: ignore[arg-type]

    def _bubble(self, key: str, bubble: Any) -> Iterator[Event]:
        data = _object(bubble)
        sent = _object(data.get("timingInfo")).get("clientRpcSendTime")
        time = time_of(data.get("createdAt")) or time_of(sent) or self._began
        self._began = None
        if data.get("type") == _USER:
            yield from self._answer()
            parts = (*text_parts(data.get("text")), *_images(data))
            if parts:
                yield Turn((PlannedMessage("user", parts),), key, time, "user")
        elif data.get("type") == _ASSISTANT:
            yield from self._assistant(key, time, data)
        else:
            yield from self._answer()
            yield Turn((planned_message(unreadable_message("user", bubble)),), key, time)

    def _assistant(self, key: str, time: int | None, data: Mapping[str, Any]) -> Iterator[Event]:
        """Yield a call with its result; what was said before a call is one message with it."""
        thinking = _object(data.get("thinking"))
        text, thought = text_parts(data.get("text")), text_parts(thinking.get("text"))
        signature = thinking.get("signature")
        sign = signature if isinstance(signature, str) and signature else None
        call, result = _call(key, _object(data.get("toolFormerData")))
        said: list[Part] = [*(Reasoning(part.text, sign) for part in thought), *text]
        if not said and call is None:
            return
        if said and any(not isinstance(part, Reasoning) for part in self._said):
            yield from self._answer()
        if not self._said:
            self._first = (key, time)
        model = storable_name(_object(data.get("modelInfo")).get("modelName"))
        self._model = model or self._model
        self._said += said
        if call is not None:
            self._said.append(call)
            yield from self._answer()
        if result is not None:
            yield Turn((PlannedMessage("tool", (result,)),), f"{key}.result" if key else "", time)

    def _answer(self) -> Iterator[Event]:
        said, self._said = tuple(self._said), []
        if said:
            key, time = self._first
            yield Turn(
                (PlannedMessage("assistant", said, model=self._model),), key, time, self._model
            )


def _object(value: Any) -> dict[str, Any]:
    """Return an object, or one in JSON; empty for anything else."""
    value = json_value(value)
    return value if isinstance(value, dict) else {}


def _items(value: Any) -> list[Any]:
    """Return a list; empty for anything else."""
    return value if isinstance(value, list) else []


def _last_of(key: Any) -> str:
    return key.rpartition(":")[2] if isinstance(key, str) else ""


def _listed(composer: Mapping[str, Any]) -> list[str]:
    """Return the ids of a conversation's bubbles, in order."""
    headers = _items(composer.get("fullConversationHeadersOnly"))
    ids = [_object(each).get("bubbleId") for each in headers]
    return [id_ for id_ in ids if isinstance(id_, str)]


def _inline(composer: Mapping[str, Any]) -> list[Any]:
    return [] if _listed(composer) else _items(composer.get("conversation"))


def _images(data: Mapping[str, Any]) -> Iterator[Part]:
    for image in _items(data.get("images"))[:MAXIMUM_PARTS]:
        yield opaque(NAME, image)


def _call(key: str, tool: Mapping[str, Any]) -> tuple[Part | None, ToolResult | None]:
    """Return a call and its result; None for a bubble that has none."""
    name = storable_name(tool.get("name"))
    if not name:
        return None, None
    id_ = storable_name(tool.get("toolCallId")) or key
    if not id_:
        return opaque(NAME, tool), None
    given = tool.get("rawArgs") or tool.get("params") or "{}"
    arguments = given if isinstance(given, str) else compact(given)
    result, error = tool.get("result"), tool.get("error")
    failed = tool.get("status") in _FAILED
    if result is None and error is None and not failed:
        return ToolCall(id_, name, arguments), None
    texts = [each if isinstance(each, str) else compact(each) for each in (result, error) if each]
    return ToolCall(id_, name, arguments), ToolResult(id_, text_parts(*texts), failed)


def finds(environment: Environment, project_dir: str, disk: Disk) -> list[str]:
    """Return the conversations of a project: those that a workspace in its folder or below lists."""
    paths: list[str] = []
    for place in _PLACES if environment.home else ():
        user = place.replace("~", environment.home, 1)
        workspaces = os.path.join(user, "workspaceStorage")
        ids = {
            id_
            for name in disk.scan(workspaces)[0]
            for id_ in _ids_of_workspace(os.path.join(workspaces, name), project_dir, disk)
        }
        if ids:
            path = os.path.join(user, "globalStorage", "state.vscdb")
            paths += DATABASE.found(path, disk, lambda id_, _, ids=ids: id_ in ids)  # type: ignore[misc]
    return paths


def _ids_of_workspace(folder: str, project_dir: str, disk: Disk) -> list[str]:
    """Return the ids of a workspace's conversations; none of one elsewhere."""
    head = read_head(disk, os.path.join(folder, "workspace.json"))
    place = _object(head.decode("utf-8", "replace")).get("folder")
    if not isinstance(place, str) or not is_below(unquote(urlsplit(place).path), project_dir):
        return []
    try:
        value = DATABASE.read(os.path.join(folder, "state.vscdb"), disk, _workspace)
    except TraceError:
        return []
    composers = _object(value).get("allComposers")
    found = [_object(each).get("composerId") for each in _items(composers)]
    return [id_ for id_ in found if isinstance(id_, str)]


def _workspace(rows: Rows) -> Any:
    query = "SELECT value FROM ItemTable WHERE key = 'composer.composerData'"
    return next(rows(query), {}).get("value")


def _sessions(rows: Rows) -> Iterator[tuple[str, str]]:
    query = (
        "SELECT key, value FROM cursorDiskKV WHERE key >= 'composerData:' AND key < 'composerData;'"
    )
    found = []
    for number, row in enumerate(rows(query)):
        composer = _object(row["value"])
        if _listed(composer) or _inline(composer):
            is_subagent = bool(_object(composer.get("subagentInfo")).get("parentComposerId"))
            began = time_of(composer.get("createdAt")) or 0
            found.append((is_subagent, began, number, _last_of(row["key"])))
    return ((id_, "") for *_, id_ in sorted(found))


def _document(rows: Rows, id_: str) -> dict[str, Any]:
    """Return the rows of a conversation: its bubbles in order, then those that it no longer lists."""
    one = "SELECT key, value FROM cursorDiskKV WHERE key = ?"
    row = next(rows(one, f"composerData:{id_}"), {"key": f"composerData:{id_}", "value": None})
    query = "SELECT key, value FROM cursorDiskKV WHERE key >= ? AND key < ? ORDER BY rowid"
    prefix = f"bubbleId:{id_}"
    bubbles = {_last_of(each["key"]): each for each in rows(query, f"{prefix}:", f"{prefix};")}
    listed = [bubbles.pop(each) for each in _listed(_object(row["value"])) if each in bubbles]
    return {"cursor": row, "bubbles": [*listed, *bubbles.values()]}


DATABASE = SessionDatabase(
    "Cursor",
    ("ItemTable", "cursorDiskKV"),
    (b"CREATE TABLE ItemTable", b"CREATE TABLE cursorDiskKV"),
    _sessions,
    _document,
)
FORMAT = DATABASE.format(SUFFIXES, CursorReader, finds)
