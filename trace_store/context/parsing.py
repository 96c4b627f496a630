"""Messages that people and programs write as JSON or JSONL: chat shapes and Trace's own.

Rule: the shape is told by each message, never by its neighbours, so that one file may mix them.

- A message with "parts" is one of lossless JSON (`render/lossless.py`).
- Any other has a "role" and "content": text, or a list of OpenAI's or Anthropic's blocks. "tool_calls",
  "tool_call_id", "refusal" and "reasoning_content" are understood as OpenAI and its imitators write them.
- Input is one message, a list of them, an object with "messages" (a "system" beside it becomes the first
  message), or one such value on each line.

A block that has no part of its own in Trace is kept verbatim as an opaque part. What only a response or a
cache knows ("usage", "stop_reason", "annotations", "citations", "cache_control") is passed over.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping
from typing import Any

from trace_store.context.render.lossless import FORMAT, parse, parse_message
from trace_store.context.render.wire import parse_json
from trace_store.errors import InvalidInputError, InvalidMessageError, UnreadableInputError
from trace_store.objects.message import Message
from trace_store.objects.parts import Image, Opaque, Part, Reasoning, Text, ToolCall, ToolResult

_TEXT_BLOCKS = frozenset({"input_text", "output_text", "text"})
_OPENAI_BLOCKS = frozenset({"file", "input_audio", "refusal"})


def parse_messages(text: str) -> list[Message]:
    """Return the messages that a text holds, at least one.

    Raises:
        UnreadableInputError: it is not JSON or JSONL, or empty; `.line` and `.column` count from one.
        InvalidMessageError: a message is not of a known shape, or its role is unknown.
        InvalidInputError: lossless JSON is damaged; `.where` names the place.
    """
    messages: list[Message] = []
    for value in _values(text.removeprefix("\ufeff")):
        messages += _messages(value, len(messages))
    if not messages:
        raise UnreadableInputError("the input holds no message", line=1, column=1)
    return messages


def message_from_chat(form: Mapping[str, Any], where: str) -> Message:
    """Return a message of OpenAI's or Anthropic's shape.

    Raises:
        InvalidMessageError: it is not of that shape; `.where` is `where`.
    """
    role = form.get("role")
    if not isinstance(role, str):
        raise _wrong(where, "a message needs a role")
    content = form.get("content")
    parts: list[Part] = []
    thought = form.get("reasoning_content")
    if isinstance(thought, str) and thought:
        parts.append(Reasoning(thought))
    parts += _content(content, f"{where}: content")
    refusal = form.get("refusal")
    if isinstance(refusal, str) and refusal:
        parts.append(_opaque({"type": "refusal", "refusal": refusal}))
    parts += _tool_calls(form.get("tool_calls"), where)
    if content is None and not parts:
        raise _wrong(where, "a message needs content")
    if role == "tool":
        call_id = form.get("tool_call_id")
        if isinstance(call_id, str):
            parts = [ToolResult(call_id, parts)]
        elif not any(isinstance(part, ToolResult) for part in parts):
            raise _wrong(where, "a tool message needs a tool_call_id")
    fields = {name: _optional(form, name, where) for name in ("kind", "name", "model", "id")}
    try:
        return Message(role, parts, **fields)
    except InvalidMessageError as error:
        raise _wrong(where, error.message) from None


def _values(text: str) -> Iterator[Any]:
    """Yield the JSON value of a whole text, or of each of its lines."""
    try:
        yield _load(text, 1)
        return
    except UnreadableInputError as error:
        whole = error
    lines = [(n, line) for n, line in enumerate(text.split("\n"), 1) if line.strip()]
    if len(lines) < 2:
        raise whole
    try:
        first = _load(lines[0][1], lines[0][0])
    except UnreadableInputError:
        raise whole from None
    yield first
    for number, line in lines[1:]:
        yield _load(line, number)


def _load(text: str, line: int) -> Any:
    if not text.strip():
        raise UnreadableInputError("the input is empty", line=1, column=1)
    try:
        return parse_json(text)
    except json.JSONDecodeError as error:
        at = line + error.lineno - 1
        raise UnreadableInputError(
            f"line {at}, column {error.colno}: not JSON: {error.msg[:1].lower()}{error.msg[1:]}",
            line=at,
            column=error.colno,
        ) from None
    except ValueError as error:
        raise UnreadableInputError(
            f"line {line}: not JSON that can be kept: {error}", line=line, column=1
        ) from None


def _messages(value: Any, before: int) -> list[Message]:
    if isinstance(value, list):
        return [_message(item, before + n) for n, item in enumerate(value, 1)]
    if not isinstance(value, dict) or "messages" not in value:
        return [_message(value, before + 1)]
    if value.get("format") == FORMAT:
        return parse(value)
    found = value["messages"]
    if not isinstance(found, list):
        raise InvalidMessageError("messages must be a list")
    system = value.get("system")
    messages = [] if not system else [Message("system", _content(system, "system"))]
    return messages + [
        _message(item, before + len(messages) + n) for n, item in enumerate(found, 1)
    ]


def _message(value: Any, number: int) -> Message:
    where = f"message {number}"
    if not isinstance(value, dict):
        raise _wrong(where, "a message must be an object")
    return parse_message(value, where) if "parts" in value else message_from_chat(value, where)


def _content(content: object, where: str) -> list[Part]:
    if content is None:
        return []
    if isinstance(content, str):
        return [Text(content)]
    if not isinstance(content, list):
        raise _wrong(where, "must be text or a list of blocks")
    return [_block(block, f"{where}[{index}]") for index, block in enumerate(content)]


def _block(block: object, where: str) -> Part:
    if isinstance(block, str):
        return Text(block)
    if not isinstance(block, dict) or not isinstance(block.get("type"), str):
        raise _wrong(where, "a block must be an object with a type")
    type_ = block["type"]
    if type_ in _TEXT_BLOCKS:
        return Text(_required(block, "text", where))
    if type_ == "thinking":
        signature = _optional(block, "signature", where)
        return Reasoning(_required(block, "thinking", where), signature or None)
    if type_ == "tool_use":
        arguments = block.get("input", {})
        return ToolCall(
            _required(block, "id", where), _required(block, "name", where), _dump(arguments)
        )
    if type_ == "tool_result":
        return ToolResult(
            _required(block, "tool_use_id", where),
            _content(block.get("content"), f"{where}.content"),
            block.get("is_error") is True,
        )
    if type_ in ("image", "image_url"):
        return _image(block, where) or _opaque(block)
    return _opaque(block)


def _image(block: Mapping[str, Any], where: str) -> Image | None:
    """Return the image of a block, or None when it is at the provider (a file id)."""
    link = block.get("image_url")
    if isinstance(link, dict):
        link = link.get("url")
    if isinstance(link, str):
        head, comma, body = link.removeprefix("data:").partition(";base64,")
        if not link.startswith("data:") or not comma:
            return Image(url=link)
        return Image(head, _bytes(body, where))
    source = block.get("source")
    if not isinstance(source, dict):
        raise _wrong(where, "an image needs a source")
    if source.get("type") == "base64":
        return Image(
            _required(source, "media_type", where), _bytes(_required(source, "data", where), where)
        )
    return Image(url=_required(source, "url", where)) if source.get("type") == "url" else None


def _tool_calls(calls: object, where: str) -> Iterator[Part]:
    if calls is None:
        return
    if not isinstance(calls, list):
        raise _wrong(where, "tool_calls must be a list")
    for index, call in enumerate(calls):
        place = f"{where}: tool_calls[{index}]"
        if not isinstance(call, dict):
            raise _wrong(place, "a call must be an object")
        custom = call.get("custom")
        function = custom if isinstance(custom, dict) else call.get("function")
        if not isinstance(function, dict):
            raise _wrong(place, "a call needs a function")
        field = "input" if function is custom else "arguments"
        arguments = function.get(field, "")
        yield ToolCall(
            _required(call, "id", place),
            _required(function, "name", place),
            arguments if isinstance(arguments, str) else _dump(arguments),
            "text" if function is custom else "json",
        )


def _opaque(block: Mapping[str, Any]) -> Opaque:
    kept = {key: value for key, value in block.items() if key != "cache_control"}
    provider = "openai" if kept["type"] in _OPENAI_BLOCKS | {"image_url"} else "anthropic"
    # Escapes keep lone surrogates, which UTF-8 cannot hold.
    return Opaque(provider, _dump(kept).encode("utf-8", "backslashreplace"))


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _bytes(text: str, where: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise _wrong(where, "the image is not base64") from None


def _required(form: Mapping[str, Any], name: str, where: str) -> str:
    value = form.get(name)
    if not isinstance(value, str):
        raise _wrong(where, f"{name} must be text")
    return value


def _optional(form: Mapping[str, Any], name: str, where: str) -> str:
    value = form.get(name)
    return "" if value is None else _required(form, name, where)


def _wrong(where: str, what: str) -> InvalidInputError:
    return InvalidMessageError(f"{where}: {what}", where=where)
