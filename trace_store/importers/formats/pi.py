"""pi: sessions of a coding agent as trees of entries, one a line.

An entry names its parent. The path from the last entry to the root is the context; what is not on it is a branch.
Entries of the first version have no ids and follow each other. A compaction replaces what is before its first kept
entry. Answers that failed or were stopped are kept by the program but not sent again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from trace_store.base.environment import Environment
from trace_store.disk.files import Disk
from trace_store.errors import InvalidInputError
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
from trace_store.importers.sniff import first_records, is_below, read_head
from trace_store.importers.turn_plan import TurnFormat
from trace_store.importers.turns import Compaction, Event, Return, Turn, TurnReader
from trace_store.objects.parts import Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.providers.openai_responses import reasoning_parts
from trace_store.transcripts.sources import Record

NAME = "pi"
SUFFIXES = (".jsonl",)
RESULTS = "results"
MAXIMUM_BLOCKS = 10_000
_FAILED = ("error", "aborted")
_ENTRIES = (
    *("branch_summary", "compaction", "custom", "custom_message", "label", "message"),
    *("model_change", "session_info", "thinking_level_change"),
)
_OWN_ROLES = ("bashExecution", "branchSummary", "compactionSummary", "toolResult")
_COUNTS = ("input", "output", "cacheRead", "cacheWrite")


class PiReader(TurnReader):
    """Reader of one session.

    State: `count`, entries so far; `leaf`, the key of the last turn on the path; `silent`, for each entry without a
    message the key of the turn before it; `joined`, for each result after the first of a round the key of the first.
    """

    AGENT = NAME

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.state = {"count": 0, "leaf": "", "silent": {}, "joined": {}, "results": ""}

    def read(self, record: Record) -> Iterable[Event]:
        data = record.data
        number = self.state["count"]
        self.state["count"] = number + 1
        if data.get("type") == "session":
            if "session" not in self.state and not self.state["leaf"]:
                self.state["session"] = storable_name(data.get("id"))
            return
        id_ = storable_name(data.get("id")) or f"entry-{number}"
        yield from self._go_to_parent(data)
        event = self._event(data, id_)
        if event is None:
            self.state["silent"] = {**self.state["silent"], id_: self.state["leaf"]}
        else:
            self.state["leaf"] = self._joined(event, id_)
            yield event

    def _joined(self, event: Event, id_: str) -> str:
        """Return the key of the turn that an entry is part of."""
        if not isinstance(event, Turn) or event.group != RESULTS:
            self.state["results"] = ""
            return id_
        first: str = self.state["results"] or id_
        if first != id_:
            self.state["joined"] = {**self.state["joined"], id_: first}
        self.state["results"] = first
        return first

    def label(self, record: Record) -> str:
        kind = super().label(record)
        role = _message(record.data).get("role") if kind == "message" else None
        return f"{kind}:{role}"[:100] if isinstance(role, str) else kind

    def _go_to_parent(self, data: Mapping[str, Any]) -> Iterator[Event]:
        """Return to the entry's parent if it is not the last entry of the path."""
        parent = data.get("parentId", self.state["leaf"])
        if parent is not None and not isinstance(parent, str):
            return
        joined = self.state["joined"].get(parent, parent or "")
        key = self.state["silent"].get(parent, joined)
        if key != self.state["leaf"]:
            yield Return(key)
            self.state["leaf"], self.state["results"] = key, ""

    def _event(self, data: Mapping[str, Any], key: str) -> Event | None:
        kind, time = data.get("type"), time_of(data.get("timestamp"))
        if kind == "compaction":
            return self._compaction(data, key, time)
        if kind == "message":
            message = _message(data)
        elif kind == "custom_message":
            message = {**data, "role": "custom"}
        elif kind == "branch_summary":
            message = {**data, "role": "branchSummary"}
        else:
            return None
        planned = _planned(message)
        if planned is None:
            return None
        failed = message.get("stopReason") in _FAILED
        if failed:
            planned = planned._replace(skipped=True, labels=("api-error",))
        by_user = planned.role == "user" and not planned.kind
        return Turn(
            (planned,),
            key=key,
            time=time_of(message.get("timestamp")) if time is None else time,
            author="user" if by_user else planned.model,
            usage=_usage(message) if planned.role == "assistant" and not failed else {},
            group=RESULTS if planned.role == "tool" else "",
        )

    def _compaction(self, data: Mapping[str, Any], key: str, time: int | None) -> Event | None:
        texts = text_parts(data.get("summary"))
        if not texts:
            return None
        first, index = data.get("firstKeptEntryId"), data.get("firstKeptEntryIndex")
        if type(index) is int:
            first = f"entry-{index}"
        silent = self.state["silent"]
        if isinstance(first, str) and first in silent:
            return Compaction((PlannedMessage("user", texts),), key, time, after=silent[first])
        since = first if isinstance(first, str) else None
        return Compaction((PlannedMessage("user", texts),), key, time, since=since)


def recognises(head: bytes) -> bool:
    """Return True if the first bytes are a session of pi."""
    for data in first_records(head, 4):
        kind = data.get("type")
        if kind == "session" and isinstance(data.get("id"), str):
            return isinstance(data.get("cwd"), str)
        if kind == "compaction" and "firstKeptEntryId" in data:
            return True
        if kind in _ENTRIES and {"id", "parentId", "timestamp"} <= data.keys():
            if kind != "message" or _message(data).get("role") in _OWN_ROLES:
                return True
            if "api" in _message(data) and "stopReason" in _message(data):
                return True
    return False


def finds(environment: Environment, project_dir: str, disk: Disk) -> list[str]:
    """Return the sessions that started in a project's folder or below."""
    given = environment.variables("PI_CODING_AGENT_DIR").get("PI_CODING_AGENT_DIR", "")
    folder = given or (environment.home and os.path.join(environment.home, ".pi", "agent"))
    if not folder:
        return []
    return [
        path
        for path in files_in(os.path.join(folder, "sessions"), disk, SUFFIXES)
        if is_below(_worked_in(read_head(disk, path)), project_dir)
    ]


def _worked_in(head: bytes) -> str:
    for data in first_records(head, 1):
        if data.get("type") == "session" and isinstance(data.get("cwd"), str):
            return str(data["cwd"])
    return ""


def _message(data: Mapping[str, Any]) -> Mapping[str, Any]:
    message = data.get("message")
    return message if isinstance(message, dict) else {}


def _planned(message: Mapping[str, Any]) -> PlannedMessage | None:
    """Return the message of an entry; None if it has no content."""
    role = message.get("role")
    if role == "user":
        return _said("user", _parts(message.get("content"), ""))
    if role == "assistant":
        return _answer(message)
    if role == "toolResult":
        call = storable_name(message.get("toolCallId"))
        if call:
            parts = _parts(message.get("content"), "")
            result = ToolResult(call, parts, message.get("isError") is True)
            return PlannedMessage("tool", (result,))
    elif role == "bashExecution":
        excluded = message.get("excludeFromContext") is True
        planned = PlannedMessage("user", (Text(_execution(message)),), kind="freeform")
        return planned._replace(skipped=excluded)
    elif role in ("custom", "hookMessage"):
        return _said("user", _parts(message.get("content"), ""), "instruction")
    elif role in ("branchSummary", "compactionSummary"):
        return _said("user", text_parts(message.get("summary")), "instruction")
    return planned_message(unreadable_message("user", message)) if message else None


def _said(role: str, parts: tuple[Part, ...], kind: str = "") -> PlannedMessage | None:
    return PlannedMessage(role, parts, kind=kind) if parts else None


def _answer(message: Mapping[str, Any]) -> PlannedMessage | None:
    parts = _parts(message.get("content"), message.get("api"))
    model = storable_name(message.get("model"))
    if not parts:
        parts = text_parts(message.get("errorMessage"))
    return PlannedMessage("assistant", parts, model=model) if parts else None


def _execution(message: Mapping[str, Any]) -> str:
    """Return a command of the user with its output, as the model is shown it."""
    output = message.get("output")
    shown = f"```\n{output}\n```" if isinstance(output, str) and output else "(no output)"
    code = message.get("exitCode")
    lines = [f"Ran `{message.get('command')}`", shown]
    if message.get("cancelled") is True:
        lines += ["", "(command cancelled)"]
    elif type(code) is int and code:
        lines += ["", f"Command exited with code {code}"]
    if message.get("truncated") is True and isinstance(message.get("fullOutputPath"), str):
        lines += ["", f"[Output truncated. Full output: {message['fullOutputPath']}]"]
    return "\n".join(lines)


def _parts(content: Any, api: Any) -> tuple[Part, ...]:
    if isinstance(content, str):
        return text_parts(content)
    if not isinstance(content, list):
        return () if content is None else (opaque(NAME, content),)
    if len(content) > MAXIMUM_BLOCKS:
        return (opaque(NAME, content),)
    return tuple(part for block in content for part in _block(block, api))


def _block(block: Any, api: Any) -> Iterable[Part]:
    kind = block.get("type") if isinstance(block, dict) else None
    if kind == "text" and isinstance(block.get("text"), str):
        return (Text(block["text"]),)
    if kind == "thinking" and isinstance(block.get("thinking"), str):
        return _thoughts(block, api if isinstance(api, str) else "")
    if kind == "toolCall":
        call, name = storable_name(block.get("id")), storable_name(block.get("name"))
        signature = block.get("thoughtSignature")
        if call and name:
            before = (Reasoning("", signature),) if isinstance(signature, str) else ()
            arguments = block.get("arguments", {})
            whole = arguments if isinstance(arguments, str) else compact(arguments)
            return (*before, ToolCall(call, name, whole))
    if kind == "image" and isinstance(block.get("data"), str):
        image = image_from_url(f"data:{block.get('mimeType')};base64,{block['data']}")
        if image.url is None:
            return (image,)
    return (opaque(NAME, block),)


def _thoughts(block: Mapping[str, Any], api: str) -> Iterable[Part]:
    """Return a thought; what its signature is depends on the provider's API."""
    text, signature = block["thinking"], block.get("thinkingSignature")
    if not isinstance(signature, str) or not signature or api == "openai-completions":
        return (Reasoning(text),)
    if block.get("redacted") is True:
        return (opaque("anthropic", {"type": "redacted_thinking", "data": signature}),)
    if "responses" in api:
        try:
            return reasoning_parts(json.loads(signature), "thinking")
        except (ValueError, InvalidInputError, RecursionError):
            return (Reasoning(text),)
    return (Reasoning(text, signature),)


def _usage(message: Mapping[str, Any]) -> dict[str, int | str]:
    """Return the usage in stored form; pi counts cached input separately."""
    usage = message.get("usage")
    given = [usage.get(name) for name in _COUNTS] if isinstance(usage, dict) else []
    counts = [count for count in given if type(count) is int and 0 <= count < 1 << 53]
    if len(counts) < len(_COUNTS) or not any(counts):
        return {}
    taken, output, read, written = counts
    model = storable_name(message.get("model"))
    return {
        "cache_read": read,
        "cache_write": written,
        "input_total": taken + read + written,
        **({"model": model} if model else {}),
        "output_total": output,
        "source": NAME,
    }


FORMAT = TurnFormat(NAME, SUFFIXES, recognises, PiReader, finds=finds)
