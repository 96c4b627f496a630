"""Entire's `transcript.jsonl`: an agent's session as its checkpoints store it.

A record is a user message, or one block of an API message with the results of its calls. Reasoning, system prompts
and session ids are missing; the first record's id identifies the session.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from trace_store.base.oid import digest
from trace_store.importers.contract import PlannedMessage
from trace_store.importers.convert import opaque, storable_name, time_of
from trace_store.importers.json_records import compact
from trace_store.importers.sniff import first_records
from trace_store.importers.turn_plan import TurnFormat
from trace_store.importers.turns import Event, Turn, TurnReader
from trace_store.objects.parts import Part, Text, ToolCall, ToolResult
from trace_store.transcripts.sources import Record

NAME = "entire"
SUFFIXES = (".jsonl",)
ROLES = ("assistant", "user")


class EntireReader(TurnReader):
    """Reader of one transcript."""

    AGENT = NAME

    def read(self, record: Record) -> Iterable[Event]:
        data = record.data
        if "session" not in self.state:
            self.state = {"session": _id_of(data) or digest(record.raw).hex()[:16]}
        role, content = data.get("type"), data.get("content")
        if role not in ROLES or not isinstance(content, list) or not content:
            return ()
        return self._turn(role, _id_of(data), content, data)

    def _turn(
        self, role: str, key: str, content: list[Any], data: Mapping[str, Any]
    ) -> Iterator[Event]:
        parts: list[Part] = []
        results: list[Part] = []
        for block in content:
            parts.append(_part(block))
            result = _result(block)
            if result is not None:
                results.append(result)
        id_ = storable_name(data.get("id"))
        messages = [PlannedMessage(role, tuple(parts), id=id_)]
        if results:
            messages.append(PlannedMessage("tool", tuple(results)))
        yield Turn(
            tuple(messages),
            key=key,
            time=time_of(data.get("ts")),
            author="user" if role == "user" else "",
            usage=_usage(data) if role == "assistant" else {},
            group=id_ if role == "assistant" else "",
        )


def recognises(head: bytes) -> bool:
    """Return True if the first bytes are a transcript of Entire."""
    return any(
        data.get("v") == 1
        and {"agent", "cli_version", "type", "ts"} <= data.keys()
        and data["type"] in ROLES
        for data in first_records(head, 1)
    )


def _id_of(data: Mapping[str, Any]) -> str:
    """Return a record's id; a user message has it in its first block."""
    content = data.get("content")
    first = content[0] if isinstance(content, list) and content else None
    inner = first.get("id") if isinstance(first, dict) else None
    return storable_name(data.get("id")) or storable_name(inner)


def _part(block: Any) -> Part:
    if isinstance(block, dict):
        kind, text = block.get("type", "text"), block.get("text")
        if kind == "text" and isinstance(text, str):
            return Text(text)
        call, name = storable_name(block.get("id")), storable_name(block.get("name"))
        if kind == "tool_use" and call and name and "input" in block:
            arguments = block["input"]
            whole = arguments if isinstance(arguments, str) else compact(arguments)
            return ToolCall(call, name, whole)
    return opaque(NAME, block)


def _result(block: Any) -> ToolResult | None:
    call = storable_name(block.get("id")) if isinstance(block, dict) else ""
    if not call or block.get("type") != "tool_use":
        return None
    result = block.get("result")
    if not isinstance(result, dict):
        return None
    output = result.get("output")
    failed = result.get("status") == "error"
    if isinstance(output, str):
        return ToolResult(call, output, failed)
    return ToolResult(call, () if output is None else (opaque(NAME, output),), failed)


def _usage(data: Mapping[str, Any]) -> dict[str, int | str]:
    """Return the output tokens.

    Input tokens exclude cache reads, so they are not a total.
    """
    tokens = data.get("output_tokens")
    if type(tokens) is not int or not 0 <= tokens < 1 << 53:
        return {}
    return {"output_total": tokens, "source": NAME}


FORMAT = TurnFormat(NAME, SUFFIXES, recognises, EntireReader)
