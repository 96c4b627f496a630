"""Copilot CLI: events of a session, one a line.

User messages (as augmented), system and assistant messages and tool results reach the model; everything else is
state. A subagent's events name it or the call that started it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from trace_store.base.environment import Environment
from trace_store.base.oid import digest
from trace_store.disk.files import Disk
from trace_store.importers.contract import PlannedMessage
from trace_store.importers.convert import (
    image_from_url,
    opaque,
    ref_component,
    storable_name,
    text_parts,
    time_of,
)
from trace_store.importers.input_files import files_in
from trace_store.importers.json_records import compact
from trace_store.importers.sniff import first_records, is_below, read_head
from trace_store.importers.turn_plan import TurnFormat
from trace_store.importers.turns import (
    Compaction,
    Event,
    Rewind,
    Switch,
    Turn,
    TurnEdit,
    TurnReader,
)
from trace_store.objects.parts import Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.transcripts.sources import Record

NAME = "copilot"
SUFFIXES = (".jsonl",)
FOLDERS = ("session-state", "history-session-state")
RESULTS = "results"
AGENTS = "agents"

_OPENING = ("session.start", "session.resume")
_SEALED = ("encryptedContent", "reasoningOpaque")
"""Encrypted reasoning of this session; Copilot drops it on resume."""


class CopilotReader(TurnReader):
    """Reader of one session.

    State: `session`, `model`; `line`, the current line of work; `callers`, the calls that started subagents;
    `calls`, turn keys of open calls; `systems`, key, digest and line of each system message; `recent`, keys of
    messages during a compaction.
    """

    AGENT = NAME

    def __init__(self, name: str) -> None:
        super().__init__(name)
        said: dict[str, Any] = {"line": "", "model": "", "recent": None}
        self.state = {**said, "callers": {}, "calls": {}, "systems": {}}

    def read(self, record: Record) -> Iterable[Event]:
        kind, data = record.data.get("type"), record.data.get("data")
        if not isinstance(kind, str) or not isinstance(data, dict):
            return ()
        parse = _MESSAGE_TYPES.get(kind)
        if parse is None:
            return self._state_event(record.data, kind, data)
        message = parse(data, self.state["model"])
        return () if message is None else self._turn(record, kind, data, message)

    def _set(self, **values: Any) -> None:
        self.state = {**self.state, **values}

    def _state_event(
        self, event: Mapping[str, Any], kind: str, data: Mapping[str, Any]
    ) -> Iterator[Event]:
        if kind in _OPENING and "session" not in self.state:
            self._set(session=storable_name(data.get("sessionId")))
        if kind in (*_OPENING, "session.model_change"):
            model = data.get("newModel") or data.get("selectedModel")
            self._set(model=storable_name(model) or self.state["model"])
        elif kind == "subagent.started":
            agent, call = storable_name(event.get("agentId")), storable_name(data.get("toolCallId"))
            if agent and call:
                self._set(callers={**self.state["callers"], agent: call})
        elif kind == "session.compaction_start" and not _agent(event, data):
            # Answers to earlier calls are part of what stays.
            self._set(recent=tuple(dict.fromkeys(self.state["calls"].values())))
        elif kind == "session.compaction_complete":
            yield from self._compaction(event, data)
        elif kind == "session.snapshot_rewind":
            key = storable_name(data.get("upToEventId"))
            if key:
                yield Rewind(key)

    def _turn(
        self, record: Record, kind: str, data: Mapping[str, Any], message: PlannedMessage
    ) -> Iterator[Event]:
        event = record.data
        key = storable_name(event.get("id")) or digest(record.raw).hex()[:16]
        time = time_of(event.get("timestamp"))
        yield from self._go_to(_agent(event, data))
        if kind == "system.message":
            yield from self._system(message, f"{message.role} {data.get('name')!r:.100}", key, time)
            return
        if self.state["recent"] is not None and not self.state["line"]:
            self._set(recent=(*self.state["recent"], key))
        calls = self.state["calls"]
        if message.role == "assistant":
            opened = {part.id: key for part in message.parts if isinstance(part, ToolCall)}
            self._set(calls={**calls, **opened})
        elif message.role == "tool":
            answered = {part.call_id for part in message.parts if isinstance(part, ToolResult)}
            self._set(calls={id_: at for id_, at in calls.items() if id_ not in answered})
        who = message.model if message.role == "assistant" else ""
        yield Turn(
            (message,),
            key=key,
            time=time,
            author="user" if message.role == "user" and not message.kind else who,
            usage=_usage(data, message.model) if message.role == "assistant" else {},
            group=RESULTS if message.role == "tool" else "",
        )

    def _go_to(self, agent: str) -> Iterator[Event]:
        """Switch to a subagent's line of work, or back."""
        line = f"{AGENTS}/{ref_component(agent)}" if agent else ""
        if line == self.state["line"]:
            return
        call = self.state["callers"].get(agent, agent)
        self._set(line=line)
        yield Switch(line, at=self.state["calls"].get(call) if agent else None)

    def _system(
        self, message: PlannedMessage, label: str, key: str, time: int | None
    ) -> Iterator[Event]:
        """Add a system message, or edit it.

        A resumed session may start with another version.
        """
        systems, line = self.state["systems"], self.state["line"]
        mark = digest(repr(message.parts).encode("utf-8", "backslashreplace")).hex()
        known = systems.get(f"{line} {label}")
        first = key if known is None else known[0]
        self._set(systems={**systems, f"{line} {label}": [first, mark, line]})
        if known is None:
            yield Turn((message,), key=key, time=time)
        elif known[1] != mark:
            yield TurnEdit(first, (message,), time)

    def _compaction(self, event: Mapping[str, Any], data: Mapping[str, Any]) -> Iterator[Event]:
        summary = data.get("summaryContent")
        if data.get("success") is False or not isinstance(summary, str) or not summary:
            return
        yield from self._go_to(_agent(event, data))
        line = self.state["line"]
        keeps = [key for key, _, where in self.state["systems"].values() if where == line]
        if not line:
            keeps += self.state["recent"] or ()
            self._set(recent=None)
        message = PlannedMessage("user", (Text(summary),))
        time = time_of(event.get("timestamp"))
        yield Compaction((message,), time=time, keeps=tuple(keeps))


def recognises(head: bytes) -> bool:
    """Return True if the first bytes are a Copilot session."""
    return any(
        data.get("type") in (*_OPENING, *_MESSAGE_TYPES)
        and isinstance(data.get("data"), dict)
        and {"id", "timestamp", "parentId"} <= data.keys()
        for data in first_records(head, 1)
    )


def finds(environment: Environment, project_dir: str, disk: Disk) -> list[str]:
    """Return the sessions that started in a project's folder or below."""
    if not environment.copilot_dir:
        return []
    return [
        path
        for folder in FOLDERS
        for path in files_in(os.path.join(environment.copilot_dir, folder), disk, SUFFIXES)
        if is_below(_worked_in(read_head(disk, path)), project_dir)
    ]


def _worked_in(head: bytes) -> str:
    for record in first_records(head, 1):
        data = record.get("data")
        context = data.get("context") if isinstance(data, dict) else None
        cwd = context.get("cwd") if isinstance(context, dict) else None
        if record.get("type") in _OPENING and isinstance(cwd, str):
            return cwd
    return ""


def _agent(event: Mapping[str, Any], data: Mapping[str, Any]) -> str:
    """Return the subagent of an event: its id, or the call that started it."""
    return storable_name(event.get("agentId")) or storable_name(data.get("parentToolCallId"))


def _user(data: Mapping[str, Any], model: str) -> PlannedMessage | None:
    texts = text_parts(data.get("transformedContent")) or text_parts(data.get("content"))
    attachments = data.get("attachments")
    images = [_attached(a) for a in attachments] if isinstance(attachments, list) else []
    parts = (*texts, *(image for image in images if image is not None))
    own = storable_name(data.get("source")) in ("", "user")
    return PlannedMessage("user", parts, kind="" if own else "instruction") if parts else None


def _attached(attachment: Any) -> Part | None:
    """Return an attached image; files and selections are in the text."""
    if not isinstance(attachment, dict) or attachment.get("type") != "blob":
        return None
    image = image_from_url(f"data:{attachment.get('mimeType')};base64,{attachment.get('data')}")
    return image if image.url is None and image.media_type.startswith("image/") else None


def _system_message(data: Mapping[str, Any], model: str) -> PlannedMessage | None:
    role = "developer" if data.get("role") == "developer" else "system"
    parts = text_parts(data.get("content"))
    return PlannedMessage(role, parts, kind="instruction") if parts else None


def _assistant(data: Mapping[str, Any], model: str) -> PlannedMessage | None:
    parts: list[Part] = []
    if isinstance(data.get("reasoningText"), str) and data["reasoningText"]:
        parts.append(Reasoning(data["reasoningText"]))
    sealed = {name: data[name] for name in _SEALED if isinstance(data.get(name), str)}
    if sealed:
        parts.append(opaque(NAME, sealed))
    parts += text_parts(data.get("content"))
    requests = data.get("toolRequests")
    parts += [_request(request) for request in requests] if isinstance(requests, list) else []
    if not parts:
        return None
    id_ = storable_name(data.get("messageId"))
    named = storable_name(data.get("model")) or model
    return PlannedMessage("assistant", tuple(parts), model=named, id=id_)


def _request(request: Any) -> Part:
    if not isinstance(request, dict):
        return opaque(NAME, request)
    call, name = storable_name(request.get("toolCallId")), storable_name(request.get("name"))
    if not call or not name:
        return opaque(NAME, request)
    arguments = request.get("arguments", {})
    whole = arguments if isinstance(arguments, str) else compact(arguments)
    free = request.get("type") == "custom" and isinstance(arguments, str)
    return ToolCall(call, name, whole, "text" if free else "json")


def _result(data: Mapping[str, Any], model: str) -> PlannedMessage | None:
    call = storable_name(data.get("toolCallId"))
    if not call or data.get("isUserRequested") is True:
        return None
    result, error = data.get("result"), data.get("error")
    failed = data.get("success") is False
    parts: tuple[Part, ...] = ()
    if isinstance(result, dict):
        kind = result.get("result_type")
        failed = failed or (isinstance(kind, str) and kind != "success")
        parts = text_parts(result.get("text_result_for_llm")) or text_parts(result.get("content"))
    elif result is not None:
        parts = text_parts(result)
    if not parts and isinstance(error, dict):
        parts = text_parts(error.get("message"))
    if not parts:
        parts = tuple(opaque(NAME, value) for value in (result, error) if value)
    return PlannedMessage("tool", (ToolResult(call, parts, failed),))


def _usage(data: Mapping[str, Any], model: str) -> dict[str, int | str]:
    """Return the output tokens, the only usage in a session."""
    tokens = data.get("outputTokens")
    if type(tokens) is not int or not 0 <= tokens < 1 << 53:
        return {}
    return {"output_total": tokens, "source": NAME, **({"model": model} if model else {})}


_MESSAGE_TYPES = {
    "assistant.message": _assistant,
    "system.message": _system_message,
    "tool.execution_complete": _result,
    "user.message": _user,
}

FORMAT = TurnFormat(NAME, SUFFIXES, recognises, CopilotReader, finds=finds)
