"""pydantic-ai: message histories, as `all_messages_json()` writes them.

A request has what the model was sent since its last response: system prompts, prompts, results and retries. Its
`instructions` are sent with that request only, so that a later text replaces an earlier one. Members of unknown kinds
become opaque parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

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
from trace_store.importers.json_records import ROOT, compact
from trace_store.importers.sniff import HEAD_BYTES, file_shape
from trace_store.importers.turn_plan import TurnFormat
from trace_store.importers.turns import DocumentReader, Event, Turn, TurnEdit
from trace_store.objects.content import bytes_of
from trace_store.objects.parts import Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from trace_store.transcripts.sources import Record

NAME = "pydantic-ai"
SUFFIXES = (".json", ".jsonl")
LISTS = (ROOT, "messages", "message_history", "history")
RESULTS = "results"
MAXIMUM_PARTS = 10_000
_KINDS = ("request", "response")
_SESSIONS = ("session_id", "conversation_id", "id")
_COUNTS = {
    "cache_read": ("cache_read_tokens",),
    "cache_write": ("cache_write_tokens",),
    "input_total": ("input_tokens", "request_tokens"),
    "output_total": ("output_tokens", "response_tokens"),
}


class PydanticAiReader(DocumentReader):
    """Reader of one history.

    State: `instructions`, a mark of those of the last request.
    """

    AGENT = NAME
    LISTS = LISTS

    def begin(self, fields: Mapping[str, Any]) -> None:
        names = (storable_name(fields.get(key)) for key in _SESSIONS)
        self.state["session"] = next((name for name in names if name), "")

    def read(self, record: Record) -> Iterable[Event]:
        data = record.data
        kind, parts = data.get("kind"), data.get("parts")
        if kind not in _KINDS or not isinstance(parts, list) or len(parts) > MAXIMUM_PARTS:
            if isinstance(parts, list) and parts:
                yield Turn((planned_message(unreadable_message("user", data)),))
        elif kind == "response":
            yield from self._response(data, parts)
        else:
            yield from self._request(data, parts)

    def label(self, record: Record) -> str:
        kind = record.data.get("kind")
        return kind[:100] if isinstance(kind, str) else super().label(record)

    def _request(self, data: Mapping[str, Any], parts: Sequence[Any]) -> Iterator[Event]:
        time = time_of(data.get("timestamp"))
        if time is None:
            times = (time_of(part.get("timestamp")) for part in parts if isinstance(part, dict))
            time = next((each for each in times if each is not None), None)
        results, others = _request_messages(parts)
        if results:
            yield Turn(results, time=time, group=RESULTS)
        yield from self._instructions(data.get("instructions"), time)
        if others:
            by_user = any(each.role == "user" and not each.kind for each in others)
            yield Turn(others, time=time, author="user" if by_user else "")

    def _instructions(self, text: Any, time: int | None) -> Iterator[Event]:
        """Add the instructions of a request, or replace those of an earlier one."""
        if not isinstance(text, str) or not text or text == self.state.get("instructions"):
            return
        message = PlannedMessage("system", (Text(text),), kind="instruction")
        known = "instructions" in self.state
        self.state["instructions"] = text
        if known:
            yield TurnEdit("instructions", (message,), time)
        else:
            yield Turn((message,), key="instructions", time=time)

    def _response(self, data: Mapping[str, Any], parts: Sequence[Any]) -> Iterator[Event]:
        model = storable_name(data.get("model_name"))
        said = tuple(part for each in parts for part in _said(each))
        if said:
            id_ = storable_name(data.get("provider_response_id"))
            yield Turn(
                (PlannedMessage("assistant", said, model=model, id=id_),),
                time=time_of(data.get("timestamp")),
                author=model,
                usage=_usage(data.get("usage"), model),
            )


def messages_of(data: Mapping[str, Any]) -> tuple[PlannedMessage, ...]:
    """Return the messages of one member of a history, without instructions."""
    parts = data.get("parts")
    if not isinstance(parts, list) or data.get("kind") not in _KINDS:
        return (planned_message(unreadable_message("user", data)),)
    if data["kind"] == "request":
        results, others = _request_messages(parts)
        return (*results, *others)
    said = tuple(part for each in parts for part in _said(each))
    model, id_ = (
        storable_name(data.get("model_name")),
        storable_name(data.get("provider_response_id")),
    )
    return (PlannedMessage("assistant", said, model=model, id=id_),) if said else ()


def _request_messages(
    parts: Sequence[Any],
) -> tuple[tuple[PlannedMessage, ...], tuple[PlannedMessage, ...]]:
    """Return the message with all results of a request, and its other messages."""
    messages = list(_sent(parts))
    answers = tuple(part for each in messages if each.role == "tool" for part in each.parts)
    results = (PlannedMessage("tool", answers),) if answers else ()
    return results, tuple(message for message in messages if message.role != "tool")


def _sent(parts: Sequence[Any]) -> Iterator[PlannedMessage]:
    """Yield the messages of a request: adjacent parts of one role and kind."""
    made = [_sent_part(part) for part in parts]
    for (role, kind), run in groupby(made, lambda each: each[:2]):
        content = tuple(part for _, _, inner in run for part in inner)
        if content:
            yield PlannedMessage(role, content, kind=kind)


def _sent_part(part: Any) -> tuple[str, str, tuple[Part, ...]]:
    kind = part.get("part_kind") if isinstance(part, dict) else None
    call = storable_name(part.get("tool_call_id")) if isinstance(part, dict) else ""
    if kind == "system-prompt":
        return "system", "instruction", _content(part.get("content"))
    if kind == "user-prompt":
        return "user", "", _content(part.get("content"))
    if kind == "tool-return" and call:
        failed = part.get("outcome") not in (None, "success")
        return "tool", "", (ToolResult(call, _content(part.get("content")), failed),)
    if kind == "retry-prompt":
        text = _content(part.get("content"))
        if call and part.get("tool_name"):
            return "tool", "", (ToolResult(call, text, True),)
        return "user", "instruction", text
    return "user", "instruction", (opaque(NAME, part),)


def _content(content: Any) -> tuple[Part, ...]:
    """Return the parts of a content: text, pieces with a kind, or any other JSON value."""
    if content is None or isinstance(content, str):
        return text_parts(content)
    pieces = content if isinstance(content, list) else []
    if pieces and all(_is_piece(piece) for piece in pieces):
        return tuple(map(_piece, pieces[:MAXIMUM_PARTS]))
    if _is_piece(content):
        return (_piece(content),)
    return (Text(compact(content)),)


def _is_piece(piece: Any) -> bool:
    return isinstance(piece, str) or (
        isinstance(piece, dict) and isinstance(piece.get("kind"), str)
    )


def _piece(piece: Any) -> Part:
    if isinstance(piece, str):
        return Text(piece)
    kind, text = piece["kind"], piece.get("content")
    if kind == "text-content" and isinstance(text, str):
        return Text(text)
    if kind == "image-url" and isinstance(piece.get("url"), str):
        return image_from_url(piece["url"])
    if kind == "binary" and str(piece.get("media_type")).startswith("image/"):
        # URL-safe base64, as the library writes bytes.
        data = str(piece.get("data")).replace("-", "+").replace("_", "/")
        image = image_from_url(f"data:{piece['media_type']};base64,{data}")
        if image.url is None:
            return image
    return opaque(NAME, piece)


def _said(part: Any) -> Iterator[Part]:
    """Yield the parts of a member of a response."""
    kind = part.get("part_kind") if isinstance(part, dict) else None
    text = part.get("content") if isinstance(part, dict) else None
    if kind == "text" and isinstance(text, str):
        yield from text_parts(text)
    elif kind == "thinking" and isinstance(text, str):
        yield from _thought(part, text)
    elif kind == "tool-call" and storable_name(part.get("tool_call_id")):
        name = storable_name(part.get("tool_name"))
        arguments = part.get("args")
        if name:
            if not isinstance(arguments, str):
                arguments = compact({} if arguments is None else arguments)
            yield ToolCall(part["tool_call_id"], name, arguments or "{}")
            return
        yield opaque(NAME, part)
    else:
        yield opaque(NAME, part)


def _thought(part: Mapping[str, Any], text: str) -> Iterator[Part]:
    signature = part.get("signature")
    signature = signature if isinstance(signature, str) and signature else None
    if part.get("id") == "redacted_thinking" and signature is not None:
        block = {"type": "redacted_thinking", "data": signature}
        yield Opaque("anthropic", bytes_of(compact(block)))
    elif text or signature:
        yield Reasoning(text, signature)


def _usage(usage: Any, model: str) -> dict[str, int | str]:
    """Return the usage in stored form; input tokens include cached ones."""
    if not isinstance(usage, dict):
        return {}
    counts: dict[str, int | str] = {}
    for name, keys in _COUNTS.items():
        given = (usage.get(key) for key in keys)
        count = next((each for each in given if type(each) is int and 0 <= each < 1 << 53), None)
        if count is not None:
            counts[name] = count
    if not any(counts.values()):
        return {}
    if model:
        counts["model"] = model
    return dict(sorted({**counts, "source": NAME}.items()))


def recognises(head: bytes) -> bool:
    """Return True if the first bytes are a message history."""
    shape = file_shape(head)
    holder = shape.single(*LISTS[1:])
    held = next((holder[key] for key in LISTS[1:] if isinstance(holder.get(key), list)), None)
    forms = shape.values if held is None else held
    if any(_is_message(form) for form in forms[:2] if isinstance(form, dict)):
        return True
    return len(head) >= HEAD_BYTES and b'"part_kind"' in head and b'"kind"' in head


def _is_document(head: bytes) -> bool:
    shape = file_shape(head)
    return shape.is_document or bool(shape.single(*LISTS[1:]))


def _is_message(form: Mapping[str, Any]) -> bool:
    parts = form.get("parts")
    return (
        form.get("kind") in _KINDS
        and isinstance(parts, list)
        and all(isinstance(part, dict) for part in parts)
        and (not parts or any("part_kind" in part for part in parts))
    )


FORMAT = TurnFormat(
    NAME,
    SUFFIXES,
    recognises,
    PydanticAiReader,
    reads_document=_is_document,
)
