"""Cline and Roo Code: the two lists of a task, as JSON documents.

`api_conversation_history.json` has the messages that the model was sent, in Anthropic's form. Some builds store a
call as a block and its result as text, `[read_file for 'a.py'] Result:`; such texts answer the calls in order. Roo
Code keeps messages that it no longer sends and marks them with the summary or the truncation that replaced them.

`ui_messages.json` has what the user was shown. A request row has the text that was sent. If no row has it, the user's
rows and the output rows are imported instead.

Neither file has the task's name, so the session is named after the time of its first message.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from trace_store.base.oid import digest
from trace_store.errors import InvalidInputError
from trace_store.importers.contract import PlannedMessage, Skip
from trace_store.importers.convert import (
    image_from_url,
    opaque,
    planned_message,
    storable_name,
    text_parts,
    time_of,
    unreadable_message,
)
from trace_store.importers.formats.claude_code.records import content_parts
from trace_store.importers.input_files import InputLine
from trace_store.importers.json_records import ROOT, compact
from trace_store.importers.sniff import LIST, file_shape
from trace_store.importers.turn_plan import TurnFormat
from trace_store.importers.turns import Compaction, DocumentReader, Event, Turn, TurnEdit
from trace_store.objects.parts import Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.providers.openai_responses import reasoning_parts
from trace_store.transcripts.sources import Record

NAME = "cline"
UI_NAME = "cline-ui"
SUFFIXES = (".json",)
MARK_BYTES = 4096
MAXIMUM_TITLE = 20_000

_RESULT = re.compile(rf"\[\w+\b.{{0,{MAXIMUM_TITLE}}}?\] Result:", re.DOTALL)
_NEXT_RESULT = re.compile(r"^(?=\[\w+\b[^\n]*\] Result:)", re.MULTILINE)
_MARKS = ("modelInfo", "metrics", "condenseId", "condenseParent", "truncationId", "isSummary")
_TEXTS = ("<task>", "<environment_details>", "<user_message>", "[TASK RESUMPTION]")
_OPENAI_REASONING = "reasoning"


class ClineReader(DocumentReader):
    """Reader of the messages that the model was sent."""

    AGENT = NAME
    LISTS = (ROOT,)

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._calls: list[str] = []
        self._count = 0
        self._thoughts = 0
        self._turns: list[tuple[str, Mapping[str, Any]]] = []

    def read(self, record: Record) -> Iterable[Event]:
        data = record.data
        _name_session(self.state, record)
        is_thought = data.get("type") == _OPENAI_REASONING
        message = _thought(data) if is_thought else self._message(data)
        if message is None:
            return
        self._count += 1
        key = f"message-{self._count}"
        yield self._event(data, message, key)
        self._turns.append((key, data))

    def label(self, record: Record) -> str:
        names = (record.data.get("type"), record.data.get("role"))
        return next((name[:100] for name in names if isinstance(name, str)), "untyped")

    def _event(self, data: Mapping[str, Any], message: PlannedMessage, key: str) -> Event:
        time = time_of(data.get("ts"))
        for mark, name, reason in (
            ("isSummary", "condense", "compaction"),
            ("isTruncationMarker", "truncation", "truncation"),
        ):
            id_ = data.get(f"{name}Id")
            if data.get(mark) is True and isinstance(id_, str):
                gone = [key for key, each in self._turns if each.get(f"{name}Parent") == id_]
                if gone:
                    keeps = tuple(key for key, _ in self._turns if key not in gone)
                    return Compaction((message,), key, time, reason=reason, keeps=keeps)
        group = ""
        if message.role == "assistant":
            group = f"answer-{self._thoughts}"
            if data.get("type") != _OPENAI_REASONING:
                self._thoughts += 1
        author = {"assistant": message.model, "user": "user"}.get(message.role, "")
        usage = _usage(data, message.model) if message.role == "assistant" else {}
        return Turn((message,), key, time, author, usage, group)

    def _message(self, data: Mapping[str, Any]) -> PlannedMessage | None:
        role, content = data.get("role"), data.get("content")
        parts = content_parts(content)
        if not parts and isinstance(data.get("reasoning_content"), str):
            parts = (Reasoning(data["reasoning_content"]),)
        if role not in ("user", "assistant") or (content and not parts):
            return planned_message(unreadable_message("user", data))
        if not parts:
            return None
        if role == "assistant":
            self._calls = [part.id for part in parts if isinstance(part, ToolCall)]
            info = data.get("modelInfo")
            model = storable_name(info.get("modelId")) if isinstance(info, dict) else ""
            return PlannedMessage("assistant", parts, model=model)
        answered = {part.call_id for part in parts if isinstance(part, ToolResult)}
        calls = iter([call for call in self._calls if call not in answered])
        self._calls = []
        results, others = _paired(parts, calls)
        if results:
            return PlannedMessage("tool", (*results, *others))
        is_output = any(isinstance(part, Text) and _RESULT.match(part.text) for part in parts[:1])
        return PlannedMessage("user", tuple(others), kind="tool_io" if is_output else "")


def _paired(parts: Sequence[Part], calls: Iterator[str]) -> tuple[list[Part], list[Part]]:
    """Return results and other parts; a text that is a result answers the next call."""
    results: list[Part] = []
    others: list[Part] = []
    for part in parts:
        if isinstance(part, ToolResult):
            results.append(part)
            continue
        call = None
        if isinstance(part, Text) and _RESULT.match(part.text):
            call = next(calls, None)
        if call is None:
            others.append(part)
        else:
            results.append(ToolResult(call, (part,)))
    return results, others


def _thought(data: Mapping[str, Any]) -> PlannedMessage:
    """Return a reasoning item, which Roo Code stores before its message."""
    form = {key: data[key] for key in ("id", "summary", "encrypted_content") if key in data}
    try:
        parts: Sequence[Part] = reasoning_parts(
            {"type": "reasoning", "summary": [], **form}, "item"
        )
    except (InvalidInputError, RecursionError):
        parts = (opaque(NAME, data),)
    return PlannedMessage("assistant", tuple(parts))


def _usage(data: Mapping[str, Any], model: str) -> dict[str, int | str]:
    """Return the output tokens; whether the input includes cached tokens differs by provider."""
    metrics = data.get("metrics")
    tokens = metrics.get("tokens") if isinstance(metrics, dict) else None
    output = tokens.get("completion") if isinstance(tokens, dict) else None
    return _output_tokens(output, model)


def _output_tokens(output: Any, model: str) -> dict[str, int | str]:
    if type(output) is not int or not 0 < output < 1 << 53:
        return {}
    return {**({"model": model} if model else {}), "output_total": output, "source": NAME}


def _name_session(state: dict[str, Any], record: Record) -> None:
    if "session" not in state:
        time = record.data.get("ts")
        is_time = type(time) is int and time > 0
        state["session"] = str(time) if is_time else digest(record.raw).hex()[:16]


_TO_USER = ("completion_result", "followup", "plan_mode_respond", "text")
_BY_USER = ("task", "user_feedback", "user_feedback_diff")
_OUTPUTS = ("browser_action_result", "command_output", "mcp_server_response")
_ACTIONS = (
    *("browser_action", "browser_action_launch", "command", "load_mcp_documentation", "tool"),
    *("use_mcp_server", "use_subagents"),
)
_REQUEST = "api_req_started"


class ClineUiReader(DocumentReader):
    """Reader of the rows that the user was shown."""

    AGENT = UI_NAME
    LISTS = (ROOT,)

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._has_requests = False
        self._last_request = -1
        self._calls: list[str] = []
        self._count = 0
        self._begun = False
        self._request = ("", None)  # key of the last request without an answer, and its place
        self._answer = 0
        self._last_output: tuple[str, str, tuple[Part, ...]] | None = None
        self._usage: dict[str, int | str] = {}

    def records(self, line: InputLine) -> Iterable[Record | Skip]:
        elements = list(super().records(line))
        for at, each in enumerate(elements):
            if isinstance(each, Record) and _request_text(each.data):
                self._has_requests, self._last_request = True, at
        self._at = -1
        return elements

    def label(self, record: Record) -> str:
        data = record.data
        said = data.get("say") or data.get("ask")
        return (
            f"{data.get('type')}:{said}"[:100] if isinstance(said, str) else super().label(record)
        )

    def read(self, record: Record) -> Iterable[Event]:
        _name_session(self.state, record)
        self._at += 1
        data = record.data
        kind = data.get("say") or data.get("ask")
        begun, self._begun = self._begun, self._begun or isinstance(kind, str)
        time = time_of(data.get("ts"))
        if kind == _REQUEST:
            yield from self._sent(data, time)
        elif kind in _BY_USER or (kind == "text" and not begun):
            if not self._has_requests or self._at > self._last_request:
                yield from self._said("user", _shown(data), time, "user")
        elif kind in _OUTPUTS and not self._has_requests:
            yield from self._output(_shown(data), time)
        else:
            yield from self._answered(data, kind, time)

    def _output(self, parts: tuple[Part, ...], time: int | None) -> Iterator[Event]:
        """Yield the output of the first call that has none, or more of the one before."""
        if self._calls and parts:
            self._count += 1
            self._answer += 1
            self._last_output = (f"row-{self._count}", self._calls.pop(0), parts)
            key, call, parts = self._last_output
            yield Turn((PlannedMessage("tool", (ToolResult(call, parts),)),), key, time)
        elif self._last_output is not None and parts:
            key, call, before = self._last_output
            self._last_output = (key, call, (*before, *parts))
            yield TurnEdit(key, (PlannedMessage("tool", (ToolResult(call, (*before, *parts)),)),))

    def _sent(self, data: Mapping[str, Any], time: int | None) -> Iterator[Event]:
        """Yield what was sent to the model; a repeated request replaces the one without an answer."""
        form = _form(data.get("text"))
        self._usage = _output_tokens(form.get("tokensOut"), _model(data))
        self._answer += 1
        text = form.get("request")
        if not isinstance(text, str) or not text:
            return
        index = data.get("conversationHistoryIndex")
        key, before = self._request
        if key and before == index:
            yield TurnEdit(key, (self._sent_message(text),), time)
            return
        self._calls, calls = [], self._calls
        self._sent_calls = calls
        message = self._sent_message(text)
        self._count += 1
        self._request = (f"row-{self._count}", index)
        author = "user" if message.role == "user" and not message.kind else ""
        yield Turn((message,), self._request[0], time, author)

    def _sent_message(self, text: str) -> PlannedMessage:
        pieces = [piece for piece in _NEXT_RESULT.split(text) if piece]
        calls = self._sent_calls
        if not calls or not pieces or not _RESULT.match(pieces[0]):
            kind = "tool_io" if _RESULT.match(text) else ""
            return PlannedMessage("user", (Text(text),), kind=kind)
        pieces[len(calls) - 1 :] = ["".join(pieces[len(calls) - 1 :])]
        results = [
            ToolResult(call, (Text(each),)) for call, each in zip(calls, pieces, strict=False)
        ]
        return PlannedMessage("tool", tuple(results))

    def _answered(self, data: Mapping[str, Any], kind: Any, time: int | None) -> Iterator[Event]:
        """Yield a row of the model: a thought, a text or an action."""
        parts: tuple[Part, ...] = ()
        if kind == "reasoning":
            parts = tuple(Reasoning(part.text) for part in text_parts(data.get("text")))
        elif kind in _TO_USER:
            parts = text_parts(_answer_text(data))
        elif kind in _ACTIONS:
            parts = (self._call(kind, data),)
        if parts:
            self._request = ("", None)
            yield from self._said("assistant", parts, time, _model(data))

    def _call(self, kind: str, data: Mapping[str, Any]) -> ToolCall:
        form = _form(data.get("text"))
        name = storable_name(form.get("tool") or form.get("toolName")) or kind
        given = {key: value for key, value in form.items() if key != "tool"}
        self._count += 1
        call = ToolCall(f"call-{self._count}", name, compact(given or {kind: data.get("text")}))
        self._calls.append(call.id)
        return call

    def _said(
        self, role: str, parts: tuple[Part, ...], time: int | None, author: str
    ) -> Iterator[Event]:
        if not parts:
            return
        self._count += 1
        model = author if role == "assistant" else ""
        usage, self._usage = (self._usage, {}) if role == "assistant" else ({}, self._usage)
        group = f"answer-{self._answer}" if role == "assistant" else ""
        message = PlannedMessage(role, parts, model=model)
        yield Turn((message,), f"row-{self._count}", time, author, usage, group)


def _shown(data: Mapping[str, Any]) -> tuple[Part, ...]:
    images = data.get("images")
    urls = [each for each in images if isinstance(each, str)] if isinstance(images, list) else []
    return (*text_parts(data.get("text")), *map(image_from_url, urls))


def _answer_text(data: Mapping[str, Any]) -> str:
    """Return the text of a row, which some kinds wrap."""
    text = data.get("text")
    form = _form(text)
    named = next(
        (form[key] for key in ("response", "question") if isinstance(form.get(key), str)), ""
    )
    return named or (text if isinstance(text, str) else "")


def _form(text: Any) -> dict[str, Any]:
    if not isinstance(text, str) or not text.startswith("{"):
        return {}
    try:
        form = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return form if isinstance(form, dict) else {}


def _request_text(data: Mapping[str, Any]) -> bool:
    return data.get("say") == _REQUEST and bool(_form(data.get("text")).get("request"))


def _model(data: Mapping[str, Any]) -> str:
    info = data.get("modelInfo")
    return storable_name(info.get("modelId")) if isinstance(info, dict) else ""


def _is_message(form: Mapping[str, Any]) -> bool:
    if form.get("role") not in ("user", "assistant"):
        return False
    content = form.get("content")
    blocks = content if isinstance(content, list) else [{"text": content}]
    texts = [
        each["text"]
        for each in blocks
        if isinstance(each, dict) and isinstance(each.get("text"), str)
    ]
    return type(form.get("ts")) is int and (
        any(mark in form for mark in _MARKS)
        or any(mark in text for text in texts for mark in _TEXTS)
        or any(_RESULT.match(text) for text in texts)
    )


def _is_row(form: Mapping[str, Any]) -> bool:
    kind = form.get("type")
    return kind in ("say", "ask") and isinstance(form.get(kind), str) and "ts" in form


def _recognises(
    is_own: Callable[[Mapping[str, Any]], bool], *marks: bytes
) -> Callable[[bytes], bool]:
    def recognises(head: bytes) -> bool:
        shape = file_shape(head)
        if shape.values:
            return shape.kind == LIST and any(map(is_own, shape.values[:2]))
        if head.lstrip()[:1] != b"[":
            return False
        return all(mark in head[:MARK_BYTES] for mark in marks)  # a message longer than the head

    return recognises


FORMAT = TurnFormat(
    NAME,
    SUFFIXES,
    _recognises(_is_message, b'"role"', b"<task>"),
    ClineReader,
    reads_document=lambda head: True,
)
UI_FORMAT = TurnFormat(
    UI_NAME,
    SUFFIXES,
    _recognises(_is_row, b'"ts"', b'"say"'),
    ClineUiReader,
    reads_document=lambda head: True,
)
