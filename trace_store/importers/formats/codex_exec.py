"""`codex exec --json`: events of a run, one a line.

These record actions, not the model's input: there is no prompt, time or model. An action becomes a call
named after its type, with its fields as arguments. For the conversation itself, import Codex's rollout.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from trace_store.importers.contract import PlannedMessage
from trace_store.importers.convert import image_from_url, opaque, storable_name, text_parts
from trace_store.importers.json_records import compact
from trace_store.importers.sniff import first_records
from trace_store.importers.turn_plan import TurnFormat
from trace_store.importers.turns import Event, Turn, TurnReader
from trace_store.objects.parts import Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.transcripts.sources import Record

NAME = "codex-exec"
SUFFIXES = (".jsonl",)

_FIRST = frozenset({"thread.started", "turn.started", "item.completed"})
_SAID = frozenset({"agent_message", "plan", "reasoning"})
# All other fields are the action's arguments.
_OUTCOMES = frozenset({"aggregated_output", "error", "exit_code", "id", "result", "status", "type"})
_ACTIONS = frozenset({"command_execution", "file_change", "mcp_tool_call"})
_UNSAID = frozenset({"error", "todo_list"})


class CodexExecReader(TurnReader):
    """Reader of the events of one run."""

    AGENT = "codex"

    def read(self, record: Record) -> Iterable[Event]:
        data = record.data
        if data.get("type") == "thread.started" and "session" not in self.state:
            self.state = {"session": storable_name(data.get("thread_id"))}
        item = data.get("item")
        if data.get("type") == "item.completed" and isinstance(item, dict):
            return self._item(item)
        return ()

    def label(self, record: Record) -> str:
        item = record.data.get("item")
        inner = item.get("type") if isinstance(item, dict) else None
        outer = super().label(record)
        return f"{outer}/{inner}"[:100] if isinstance(inner, str) else outer

    def _item(self, item: dict[str, Any]) -> Iterator[Event]:
        kind, text = item.get("type"), item.get("text")
        if not isinstance(kind, str) or kind in _UNSAID:
            return
        messages: tuple[PlannedMessage, ...]
        if kind in _SAID and isinstance(text, str):
            said: Part = Reasoning(text) if kind == "reasoning" else Text(text)
            messages = (PlannedMessage("assistant", (said,)),)
        elif kind in _ACTIONS and storable_name(item.get("id")):
            messages = _action(item, kind)
        else:
            messages = (PlannedMessage("assistant", (opaque(NAME, item),)),)
        yield Turn(messages)


def recognises(head: bytes) -> bool:
    """Return True if the first bytes are events of `codex exec`."""
    return any(
        isinstance(data.get("type"), str)
        and data["type"] in _FIRST
        and (data["type"] != "thread.started" or "thread_id" in data)
        and (data["type"] != "item.completed" or isinstance(data.get("item"), dict))
        and "payload" not in data
        for data in first_records(head, 1)
    )


def _action(item: Mapping[str, Any], kind: str) -> tuple[PlannedMessage, ...]:
    call = storable_name(item["id"])
    name = kind
    arguments: Any = {key: item[key] for key in item if key not in _OUTCOMES}
    if kind == "mcp_tool_call" and storable_name(item.get("tool")):
        name, arguments = storable_name(item["tool"]), item.get("arguments")
    whole = arguments if isinstance(arguments, str) else compact(arguments)
    result = ToolResult(call, _outcome(item), item.get("status") == "failed")
    return (
        PlannedMessage("assistant", (ToolCall(call, name, whole),)),
        PlannedMessage("tool", (result,)),
    )


def _outcome(item: Mapping[str, Any]) -> tuple[Part, ...]:
    """Return the output of an action, or how it ended."""
    output = item.get("aggregated_output")
    if isinstance(output, str):
        return (Text(output),)
    error, result = item.get("error"), item.get("result")
    if isinstance(error, dict) and isinstance(error.get("message"), str):
        return (Text(error["message"]),)
    content = result.get("content") if isinstance(result, dict) else None
    if isinstance(content, list) and content:
        return tuple(map(_block, content))
    return text_parts(item.get("status"))


def _block(block: Any) -> Part:
    """Return a block of an MCP server's result."""
    if isinstance(block, dict):
        kind, text = block.get("type"), block.get("text")
        if kind == "text" and isinstance(text, str):
            return Text(text)
        data, media = block.get("data"), block.get("mimeType")
        if kind == "image" and isinstance(data, str) and isinstance(media, str):
            image = image_from_url(f"data:{media};base64,{data}")
            if image.url is None:
                return image
    return opaque(NAME, block)


FORMAT = TurnFormat(NAME, SUFFIXES, recognises, CodexExecReader)
