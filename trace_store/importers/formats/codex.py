"""Codex: rollouts of OpenAI's agent, one record a line, of all builds since 2025.

Invariant: reading is pure. Response items make the context; events tell about usage, rewound turns and subagents.
One API response is delimited as follows:

- Consecutive assistant items are one response, also calls after outputs if the file marks the ends of responses
  (some builds write each call with its output). A second `message` in a row is another response.
- A `token_count` with new totals, a `turn_context` and a new task end a response. Its usage is the response's
  before it, or the next one's if that already had usage.

Ids are UUIDs that start with a 48 bit timestamp.

Invariant: detection reads only the first lines of a file.
"""

from __future__ import annotations

import json
import os
import re
import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from trace_store.base.environment import Environment
from trace_store.base.oid import digest
from trace_store.disk.files import Disk
from trace_store.errors import InvalidInputError
from trace_store.importers.contract import AGENTS_KEY, PlannedMessage
from trace_store.importers.convert import (
    opaque,
    ref_component,
    storable_name,
    time_of,
    usage_counts,
)
from trace_store.importers.input_files import files_in
from trace_store.importers.sniff import first_records, is_below, read_head
from trace_store.importers.turn_plan import TurnFormat
from trace_store.importers.turns import Compaction, DocumentReader, Event, Rewind, Turn, UsageReport
from trace_store.objects.message import ROLES, Message
from trace_store.objects.parts import Image, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.providers.chat import TEXT_BLOCKS
from trace_store.providers.openai_responses import FRAMES, message_of_item, place_responses
from trace_store.transcripts.sources import Record

SUFFIXES = (".json", ".jsonl", ".jsonl.zst")
PROVIDER = "openai"
CALLS = frozenset({"custom_tool_call", "function_call", "local_shell_call"})
OUTPUTS = frozenset({"custom_tool_call_output", "function_call_output", "local_shell_call_output"})
PRIVATE = "internal_chat_message_metadata_passthrough"
"""Codex's notes for its own servers; not part of the item, and rejected by the public API."""
_JSON_OUTPUT = '{"output"'
"""Start of an output that may say whether the call failed."""
SHELL = "local_shell"
"""Tool name of calls of OpenAI's own shell, which have none."""
SCAFFOLDING = (
    *("<environment_context>", "<user_instructions>", "# AGENTS.md instructions", "<INSTRUCTIONS>"),
    *("<permissions instructions>", "<collaboration_mode>", "<multi_agent_mode>", "<app-context>"),
    *("<apps_instructions>", "<plugins_instructions>", "<skills_instructions>", "<skill>"),
    *("<recommended_plugins>", "<turn_aborted>", "<subagent_notification>", "<user_action>"),
)
"""Prefixes of user text that Codex inserts and the model sees."""
_CALL_FIELDS = {"function_call": ("arguments", "json"), "custom_tool_call": ("input", "text")}
_RESULT_TYPES = frozenset({"custom_tool_call_output", "function_call_output"})
_SPEAKERS = frozenset({"assistant", "developer", "system", "user"})
_FRAMES = {kind: frozenset(names) for kind, names in FRAMES.items()}
_NONE: tuple[object, ...] = (None, [])
FOLDERS = ("sessions", "archived_sessions")
ROLLOUT_SUFFIXES = (".jsonl", ".jsonl.zst")
"""Codex compresses rollouts after some days."""
RECORDS = 5
"""Records to read; enough to detect the format and the folder of a session of early 2025."""
_ENVELOPES = frozenset(
    {
        *("compacted", "event_msg", "inter_agent_communication_metadata", "response_item"),
        *("session_meta", "turn_context", "world_state"),
    }
)
_ITEMS = CALLS | OUTPUTS | {"message", "reasoning"}
_LONG_LINE = re.compile(rb'\{"timestamp":"[^"]*","type":"session_meta","payload":\{')
_WORKED_IN = re.compile(r"<cwd>([^<]+)</cwd>|Current working directory: (\S+)")


def message_of(item: Mapping[str, Any], model: str) -> PlannedMessage:
    """Return the message of an item; `model` is a storable name."""
    return _plain(item, model) or parsed_message_of(item, model)


def parsed_message_of(item: Mapping[str, Any], model: str) -> PlannedMessage:
    """Return the message of any item, without the fast path."""
    form = _normalise(item)
    try:
        message = message_of_item(form, "input", model=model)
    except (InvalidInputError, RecursionError):
        return _opaque_message(item)
    return _planned(message, [form])[0]


def messages_of(items: Sequence[Any], model: str) -> tuple[PlannedMessage, ...]:
    """Return the messages of items, joining consecutive assistant items."""
    forms = [_normalise(item) for item in items]
    try:
        placed = list(place_responses(forms, model=model))
    except (InvalidInputError, RecursionError):
        if len(items) == 1:
            return (_opaque_message(items[0]),)
        return tuple(message for item in items for message in messages_of([item], model))
    return tuple(
        message
        for group in placed
        for message in _planned(group.message, forms[group.start : group.stop])
    )


def is_scaffolding(message: PlannedMessage) -> bool:
    """Return True if all texts of a user message are Codex's own."""
    texts = [part.text for part in message.parts if isinstance(part, Text)]
    return bool(texts) and all(text.lstrip().startswith(SCAFFOLDING) for text in texts)


def _plain(item: Mapping[str, Any], model: str) -> PlannedMessage | None:
    """Return the message of a common item without unusual fields, else None."""
    kind, id_ = item.get("type"), item.get("id")
    if type(kind) is not str or not (id_ is None or type(id_) is str):
        return None
    if kind == "message":
        return _plain_text(item, model)
    if "role" in item:
        return None
    if kind == "reasoning":
        signature = item.get("encrypted_content")
        if item.get("summary") not in _NONE or item.get("content") not in _NONE:
            return None
        if not (signature is None or type(signature) is str):
            return None
        return PlannedMessage("assistant", (Reasoning("", signature or None),), "", model)
    call_id = storable_name(item.get("call_id"))
    if not call_id:
        return None
    if kind in _CALL_FIELDS:
        field, format = _CALL_FIELDS[kind]
        name, given = storable_name(item.get("name")), item.get(field)
        if not name or type(given) is not str or not _FRAMES[kind].isdisjoint(item):
            return None
        return PlannedMessage("assistant", (ToolCall(call_id, name, given, format),), "", model)
    output = item.get("output") if kind in _RESULT_TYPES else None
    if type(output) is not str or output.startswith(_JSON_OUTPUT):
        return None
    return PlannedMessage("tool", (ToolResult(call_id, output),))


def _plain_text(item: Mapping[str, Any], model: str) -> PlannedMessage | None:
    """Return the message of a plain text item, else None."""
    role, content = item.get("role"), item.get("content")
    if type(role) is not str or role not in _SPEAKERS or type(content) is not list:
        return None
    parts: list[Part] = []
    if role == "assistant" and not _FRAMES["message"].isdisjoint(item):
        frame = {name: item[name] for name in FRAMES["message"] if name in item}
        if not {*map(type, frame.values())} <= {str}:
            return None
        parts.append(opaque(PROVIDER, {"type": "message", **frame}))
    for block in content:
        if type(block) is not dict or type(block.get("type")) is not str:
            return None
        text = block.get("text")
        if block["type"] not in TEXT_BLOCKS or type(text) is not str:
            return None
        parts.append(Text(text))
    author = model if role == "assistant" else ""
    planned = PlannedMessage(role, tuple(parts), "", author, storable_name(item.get("id")))
    if role == "user" and is_scaffolding(planned):
        return planned._replace(kind="instruction")
    return planned


def _planned(message: Message, forms: Sequence[Any]) -> tuple[PlannedMessage, ...]:
    parts: tuple[Part, ...] = tuple([_attribute(part) for part in message.parts])
    for part in parts:
        if not _is_storable(part):
            return tuple(map(_opaque_message, forms))
    if message.role == "tool":
        parts = tuple([_with_error_flag(part, forms[0].get("output")) for part in parts])
    has_role = False
    for form in forms:
        has_role = has_role or (isinstance(form, dict) and "role" in form)
    planned = PlannedMessage(
        message.role,
        parts,
        model=storable_name(message.model),
        id=storable_name(message.id) if has_role else "",
        name=storable_name(message.name),
    )
    if planned.role == "user" and is_scaffolding(planned):
        return (PlannedMessage(planned.role, parts, kind="instruction", id=planned.id),)
    return (planned,)


def _normalise(item: Any) -> Any:
    """Return an item as the Responses API writes it."""
    if not isinstance(item, dict):
        return item
    if PRIVATE in item:
        item = {key: value for key, value in item.items() if key != PRIVATE}
    kind = item.get("type")
    call_id = item.get("call_id")
    if kind == "local_shell_call" and isinstance(call_id, str) and call_id:
        action = item.get("action")
        return {**item, "type": "function_call", "name": SHELL, "arguments": action}
    if kind == "local_shell_call_output":
        return {**item, "type": "function_call_output"}
    return item


def _attribute(part: Part) -> Part:
    """Return a part with unknown blocks attributed to OpenAI."""
    if isinstance(part, Text):
        return part
    if isinstance(part, Opaque) and part.provider != PROVIDER:
        return Opaque(PROVIDER, part.data)
    if isinstance(part, ToolResult):
        return ToolResult(
            part.call_id, [_attribute(inner) for inner in part.content], part.is_error
        )
    return part


def _with_error_flag(part: Part, output: Any) -> Part:
    """Return a result with the error flag from its output.

    Builds of 2025 write JSON with text and exit code; the text stays as the model saw it.
    """
    if not isinstance(part, ToolResult):
        return part
    if isinstance(output, dict) and output and not part.content:
        return ToolResult(part.call_id, (opaque(PROVIDER, output),), part.is_error)
    if not isinstance(output, str) or not output.startswith(_JSON_OUTPUT):
        return part
    try:
        data = json.loads(output)
    except (ValueError, RecursionError):
        return part
    metadata = data.get("metadata")
    code = metadata.get("exit_code") if isinstance(metadata, dict) else None
    failed = type(code) is int and code != 0
    return ToolResult(part.call_id, part.content, True) if failed else part


def _is_storable(part: Part) -> bool:
    if isinstance(part, Text):
        return True
    if isinstance(part, ToolCall):
        return bool(storable_name(part.id) and storable_name(part.name))
    if isinstance(part, ToolResult):
        if not storable_name(part.call_id):
            return False
        for inner in part.content:
            if not _is_storable(inner):
                return False
    if isinstance(part, Image) and part.url is None:
        return bool(storable_name(part.media_type))
    return True


def _opaque_message(item: Any) -> PlannedMessage:
    """Return an item as an opaque message, with its likely role."""
    kind = item.get("type") if isinstance(item, dict) else None
    role = item.get("role") if isinstance(item, dict) else None
    if not isinstance(role, str) or role not in ROLES or role == "tool":
        output = not isinstance(kind, str) or kind == "message" or kind.endswith("_output")
        role = "user" if output else "assistant"
    return PlannedMessage(role, (opaque(PROVIDER, item),))


NAME = "codex"
_sorted = json.JSONEncoder(sort_keys=True).encode
RESPONSE = "response"
RESULTS = "results"
# State without an open response.
_NOTHING_OPEN = {"open": False, "outputs": False, "last": "", "pending": {}}


class CodexReader(DocumentReader):
    """Reader of one rollout.

    State: `session`, `agent`, `model`, `time` from the header; `begun`, whether messages precede it; `total`, last
    usage totals; `marks`, whether the file marks the ends of responses; the open response; `top` and `prompts`,
    keys of the session's start and of the prompts; `spawned`, subagents started by calls of this response; `forked`
    and `copied`, whether the file continues another session and whether a copy of it is being read.
    """

    AGENT = NAME
    LISTS = ("items",)

    def __init__(self, name: str) -> None:
        super().__init__(name)
        named = session_in_name(name)
        self.state = {"named": named, "number": 0, "marks": False, **_NOTHING_OPEN}

    @property
    def session(self) -> str:
        return super().session or str(self.state.get("named", ""))

    def begin(self, fields: Mapping[str, Any]) -> None:
        session = fields.get("session")
        if isinstance(session, dict):
            self._header(session)

    def read(self, record: Record) -> Iterable[Event]:
        data = record.data
        payload = data.get("payload")
        kind = data.get("type")
        if isinstance(payload, dict):
            time = time_of(data.get("timestamp"))
            return self._read(
                record, kind, payload, self.state.get("time") if time is None else time
            )
        if "payload" not in data and ("type" in data or "role" in data):
            return self._read(record, "response_item", data, self.state.get("time"))
        if "id" in data and "record_type" not in data:
            self._header(data)
        return ()

    def label(self, record: Record) -> str:
        kind, payload = record.data.get("type"), record.data.get("payload")
        inner = payload.get("type") if isinstance(payload, dict) else None
        if type(kind) is str and type(inner) is str:
            return f"{kind}/{inner}"[:100]
        if "type" not in record.data and isinstance(record.data.get("record_type"), str):
            return str(record.data["record_type"])[:100]
        outer = super().label(record)
        return f"{outer}/{inner}"[:100] if isinstance(inner, str) else outer

    def _read(
        self, record: Record, kind: Any, payload: dict[str, Any], time: int | None
    ) -> Iterable[Event]:
        if kind in ("response_item", "compacted") and "id" not in self.state:
            self._set(begun=True)
        if kind == "response_item":
            return self._item(record, payload, time)
        if kind == "event_msg":
            return self._event(payload)
        if kind == "compacted":
            return self._compaction(payload, time)
        if kind == "session_meta":
            self._header(payload)
        elif kind == "turn_context":
            self._start_turn(payload.get("turn_id"), model=storable_name(payload.get("model")))
        return ()

    def _set(self, **values: Any) -> None:
        self.state = {**self.state, **values}

    def _header(self, meta: Mapping[str, Any]) -> None:
        """Read the first header; a later one means that another session's history follows."""
        name = storable_name(meta.get("id"))
        if "id" in self.state:
            self._set(forked=self.state.get("forked", False) or name != self.state["id"])
            return
        self._set(id=name, time=time_of(meta.get("timestamp")))
        if self.state.get("begun"):
            return  # earlier messages already have a branch named after the file
        self._set(session=name)
        parent = parent_of_subagent(meta)
        if parent and name:
            self._set(session=parent, agent=name)

    def _start_turn(self, turn: Any, **values: str) -> None:
        """Start a turn, which ends the open response."""
        known = {key: value for key, value in values.items() if value}
        copied = bool(self.state.get("forked")) and is_older(turn, self.state.get("id"))
        self._set(marks=True, copied=copied, **_NOTHING_OPEN, **known)

    def _item(self, record: Record, item: dict[str, Any], time: int | None) -> Iterable[Event]:
        kind = item.get("type", "message" if "role" in item else None)
        if kind == "ghost_snapshot" or not isinstance(kind, str):
            return ()
        message = message_of(item, self._model)
        key = storable_name(item.get("id")) or digest(record.raw).hex()[:16]
        if message.role == "assistant":
            return (self._answer(message, kind, key, time),)
        if kind in OUTPUTS and message.role == "tool":
            if not self.state["outputs"]:
                self._set(outputs=True)
            spawned = self.state.get("spawned", ())
            meta = {AGENTS_KEY: list(spawned)} if spawned else {}
            group = f"{RESULTS} {self.state['number']}"
            return (Turn((message,), key=key, time=time, group=group, meta=meta),)
        return (self._input(message, kind, key, time),)

    def _answer(self, message: PlannedMessage, kind: str, key: str, time: int | None) -> Turn:
        state = self.state
        continues = state["open"] and not (kind == "message" and state["last"] == "message")
        if state["outputs"]:
            continues = continues and kind in CALLS and state["marks"]
        usage: Mapping[str, int | str] = {}
        if not continues:
            usage = state["pending"]
            self._set(number=state["number"] + 1, spawned=(), **_NOTHING_OPEN)
        self._set(open=True, last=kind)
        group = f"{RESPONSE} {self.state['number']}"
        return Turn((message,), key=key, time=time, author=self._model, usage=usage, group=group)

    def _input(self, message: PlannedMessage, kind: str, key: str, time: int | None) -> Turn:
        """Return the turn of a message by the user, Codex or another agent."""
        self._set(**_NOTHING_OPEN)
        prompts = self.state.get("prompts", ())
        typed = message.role == "user" and kind == "message" and not is_scaffolding(message)
        if typed:
            key = key if key not in prompts else f"{key}-{len(prompts)}"
            self._set(prompts=(*prompts, key))
        elif not prompts:
            self._set(top=(*self.state.get("top", ()), key))
        return Turn((message,), key=key, time=time, author="user" if typed else "")

    def _event(self, event: Mapping[str, Any]) -> Iterator[Event]:
        kind = event.get("type")
        if kind == "token_count":
            yield from self._usage(event.get("info"))
        elif kind in ("task_started", "turn_started"):
            self._start_turn(event.get("turn_id"))
        elif kind == "thread_rolled_back":
            yield from self._rollback(event.get("num_turns"))
        elif kind == "sub_agent_activity" and event.get("kind") == "started":
            agent = storable_name(event.get("agent_thread_id"))
            if agent:
                spawned = self.state.get("spawned", ())
                self._set(spawned=(*spawned, ref_component(agent)))

    def _usage(self, info: Any) -> Iterator[Event]:
        if not isinstance(info, dict):
            return
        total = _sorted(info.get("total_token_usage"))
        if total == self.state.get("total"):
            return
        self._set(total=total, marks=True)
        usage = usage_counts(info.get("last_token_usage"), self._model)
        if self.state.get("copied") or not usage:
            return
        if self.state["open"]:
            self._set(**_NOTHING_OPEN)
            yield UsageReport(usage)
        else:
            self._set(pending=usage)

    def _rollback(self, count: Any) -> Iterator[Event]:
        prompts = self.state.get("prompts", ())
        if type(count) is not int or count < 1 or not prompts:
            return
        left = max(0, len(prompts) - count)
        yield Rewind(prompts[left])
        self._set(prompts=tuple(prompts[:left]), **_NOTHING_OPEN)

    def _compaction(self, payload: Mapping[str, Any], time: int | None) -> Iterator[Event]:
        usage = self.state["pending"]
        self._set(**_NOTHING_OPEN)
        history = payload.get("replacement_history")
        summary = payload.get("message")
        if isinstance(history, list) and history:
            self._set(top=())
            yield Compaction(messages_of(history, self._model), time=time, usage=usage)
        elif isinstance(summary, str) and summary:
            # Codex rebuilds the context: its instructions, the prompts and the summary.
            keeps = (*self.state.get("top", ()), *self.state.get("prompts", ()))
            message = PlannedMessage("user", (Text(summary),))
            yield Compaction((message,), time=time, usage=usage, keeps=keeps, last=True)

    @property
    def _model(self) -> str:
        model = self.state.get("model")
        return model if isinstance(model, str) else ""


_GROUPS = (8, 4, 4, 4, 12)
_UUID_LENGTH = 36
_TIMED = "7"
_HEX = frozenset(string.hexdigits)


def session_in_name(name: str) -> str:
    """Return the session id at the end of a rollout's file name, or ""."""
    return name[-_UUID_LENGTH:] if _is_uuid(name[-_UUID_LENGTH:]) else ""


def parent_of_subagent(meta: Mapping[str, Any]) -> str:
    """Return the parent session of a subagent's thread, or ""."""
    source = meta.get("source")
    spawned = source.get("subagent") if isinstance(source, dict) else None
    if spawned is None and meta.get("thread_source") != "subagent":
        return ""
    spawn = spawned.get("thread_spawn") if isinstance(spawned, dict) else None
    named = spawn.get("parent_thread_id") if isinstance(spawn, dict) else None
    for value in (meta.get("session_id"), meta.get("parent_thread_id"), named):
        parent = storable_name(value)
        if parent and parent != meta.get("id"):
            return parent
    return ""


def is_older(one: object, other: object) -> bool:
    """Return True if an id is older than another; False if unknown."""
    times = [_time(value) for value in (one, other)]
    return None not in times and times[0] < times[1]  # type: ignore[operator]


def _time(value: object) -> int | None:
    if not isinstance(value, str) or not _is_uuid(value) or value[14] != _TIMED:
        return None
    return int(value[:8] + value[9:13], 16)


def _is_uuid(text: str) -> bool:
    groups = text.split("-")
    return tuple(map(len, groups)) == _GROUPS and all(_HEX.issuperset(group) for group in groups)


def recognises(head: bytes) -> bool:
    """Return True if the first bytes are a rollout."""
    if reads_document(head) or _LONG_LINE.match(head):
        return True
    records = first_records(head, RECORDS)
    return bool(records) and (_is_envelope(records[0]) or _is_bare(records))


def reads_document(head: bytes) -> bool:
    """Return True if a file is a rollout of the first builds, one JSON document."""
    start = head[:4096].lstrip(b"\xef\xbb\xbf \t\r\n")
    return start[:1] == b"{" and b'"items"' in start and start[1:].lstrip().startswith(b'"session"')


def finds(environment: Environment, project_dir: str, disk: Disk) -> list[str]:
    """Return the rollouts whose session started in a project's folder or below."""
    if not environment.codex_dir:
        return []
    paths: list[str] = []
    for folder in FOLDERS:
        for path in files_in(os.path.join(environment.codex_dir, folder), disk, ROLLOUT_SUFFIXES):
            if os.path.basename(path).startswith("rollout-"):
                records = first_records(read_head(disk, path), RECORDS)
                if is_below(_worked_in(records), project_dir):
                    paths.append(path)
    return paths


def _worked_in(records: list[dict[str, Any]]) -> str:
    """Return the folder where a session started, from its first records."""
    for record in records:
        payload = record.get("payload")
        if isinstance(payload, dict) and isinstance(payload.get("cwd"), str):
            return str(payload["cwd"])
        content = record.get("content")
        for block in content if isinstance(content, list) else ():
            text = block.get("text") if isinstance(block, dict) else None
            match = _WORKED_IN.search(text) if isinstance(text, str) else None
            if match is not None:
                return match[1] or match[2]
    return ""


def _is_envelope(record: dict[str, Any]) -> bool:
    kind = record.get("type")
    return isinstance(kind, str) and kind in _ENVELOPES and isinstance(record.get("payload"), dict)


def _is_bare(records: list[dict[str, Any]]) -> bool:
    """Return True for records of builds that write bare items after a header."""
    first, *rest = records
    header = {"id", "timestamp"} <= first.keys() and not {"type", "role"} & first.keys()
    if not header:
        return "record_type" in first and not {"type", "role"} & first.keys()
    return (
        "instructions" in first
        or "git" in first
        or any("record_type" in record or _is_item(record.get("type")) for record in rest)
    )


def _is_item(kind: Any) -> bool:
    return isinstance(kind, str) and kind in _ITEMS


FORMAT = TurnFormat(NAME, SUFFIXES, recognises, CodexReader, reads_document, finds)
