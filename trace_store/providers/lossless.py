"""Lossless JSON: Trace's own format for complete messages, and its parser.

Invariant: `parse(document)` returns messages equal to those that were rendered.

    {"format": "trace/1", "messages": [message, …], "tools": [schema, …]}

    message      {"role", "kind", "parts"} and, when not empty, "name", "model", "id"; for readers also
                 "address" (32 hex digits, a dot, n), "priority", "labels", "ghost": true
    text         {"type", "text"}
    data         {"type", "schema", "value"}, where the value is a JSON object
    image        {"type", "media_type", "data"} with the bytes in base64, or {"type", "url"}; "media_type" is
                 left out when empty, "data" when there is none
    tool_call    {"type", "id", "name", "arguments"} and "format" when it is not "json"
    tool_result  {"type", "call_id", "content": [part, …]} and "is_error": true when the tool failed
    reasoning    {"type", "text"} and "signature" when there is one
    opaque       {"type", "provider", "data"} with the bytes in base64

A lone surrogate is written as JSON escapes it. A high surrogate before a low one, which JSON would read as
one character, makes the field `<field>_base64` instead: the UTF-8 bytes with surrogates passed. Readers take
either form of every text field. Unknown keys are ignored; an unknown type of part is an error.
"""

from __future__ import annotations

import base64
import binascii
import re

from trace_store.errors import InvalidInputError
from trace_store.objects.message import Message
from trace_store.objects.parts import (
    Data,
    Image,
    Opaque,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from trace_store.providers.fields import parts_of_each
from trace_store.providers.rendering import Options, Renderable, Repairs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

FORMAT = "trace/1"
MAXIMUM_NESTING = 32
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def render_lossless(
    messages: Sequence[Renderable],
    tools: Sequence[dict[str, Any]],
    options: Options,
    repairs: Repairs,
) -> dict[str, Any]:
    """Return the document; reasoning is omitted only if `options.reasoning` is False."""
    return {
        "format": FORMAT,
        "messages": [_message(message, options.reasoning) for message in messages],
        "tools": list(tools),
    }


def parse(document: object) -> list[Message]:
    """Return the messages of a document.

    Raises:
        InvalidInputError: it has another form; `.where` is the place, such as `messages[2].parts[0].text`.
        InvalidMessageError: a role or a kind is unknown.
    """
    form = _mapping(document, "document")
    if form.get("format") != FORMAT:
        raise _wrong("format", f"expected {FORMAT!r}, found {str(form.get('format'))[:40]!r}")
    return [
        parse_message(message, f"messages[{index}]")
        for index, message in enumerate(_sequence(form.get("messages"), "messages"))
    ]


def parse_message(value: object, where: str) -> Message:
    """Return one message of a document; errors as in `parse`."""
    form = _mapping(value, where)
    place = f"{where}.parts"
    parts = parts_of_each(
        lambda part, at: (_parse_part(part, at, MAXIMUM_NESTING),),
        _sequence(form.get("parts"), place),
        place,
    )
    fields = {
        name: _get_text(form, name, where, default="") for name in ("kind", "name", "model", "id")
    }
    try:
        return Message(_get_text(form, "role", where), parts, **fields)
    except InvalidInputError as error:
        if hasattr(error, "where"):
            raise
        raise type(error)(f"{where}: {error.message}", where=where) from None


def _message(message: Renderable, reasoning: bool) -> dict[str, Any]:
    form: dict[str, Any] = {}
    _put_text(form, "role", message.role)
    _put_text(form, "kind", message.kind)
    for name in ("name", "model", "id"):
        if getattr(message, name):
            _put_text(form, name, getattr(message, name))
    address = getattr(message, "address", None)
    if address is not None:
        form["address"] = address.hex
    if hasattr(message, "priority"):
        form["priority"] = message.priority
    if hasattr(message, "labels"):
        form["labels"] = sorted(message.labels)
    if getattr(message, "ghost", False):
        form["ghost"] = True
    form["parts"] = [
        render_part(part) for part in message.parts if reasoning or not isinstance(part, Reasoning)
    ]
    return form


def render_part(part: Part) -> dict[str, Any]:
    """Return the form of one part."""
    form: dict[str, Any] = {"type": part.type}
    if isinstance(part, Data):
        _put_text(form, "schema", part.schema)
        form["value"] = part.value
    elif isinstance(part, Text):
        _put_text(form, "text", part.text)
    elif isinstance(part, Image):
        if part.media_type:
            _put_text(form, "media_type", part.media_type)
        if part.url is not None:
            _put_text(form, "url", part.url)
        if part.data is not None:
            form["data"] = base64.b64encode(part.data).decode()
    elif isinstance(part, ToolCall):
        for name in ("id", "name", "arguments"):
            _put_text(form, name, getattr(part, name))
        if part.format != "json":
            _put_text(form, "format", part.format)
    elif isinstance(part, ToolResult):
        _put_text(form, "call_id", part.call_id)
        form["content"] = [render_part(inner) for inner in part.content]
        if part.is_error:
            form["is_error"] = True
    elif isinstance(part, Reasoning):
        _put_text(form, "text", part.text)
        if part.signature is not None:
            _put_text(form, "signature", part.signature)
    elif isinstance(part, Opaque):
        _put_text(form, "provider", part.provider)
        form["data"] = base64.b64encode(part.data).decode()
    return form


def _parse_part(value: object, where: str, levels: int) -> Part:
    form = _mapping(value, where)
    type_ = _get_text(form, "type", where)
    if type_ == "text":
        return Text(_get_text(form, "text", where))
    if type_ == "data":
        return Data(_get_text(form, "schema", where), dict(_mapping(form.get("value"), where)))
    if type_ == "image":
        return Image(
            _get_text(form, "media_type", where, default=""),
            _bytes(form["data"], f"{where}.data") if "data" in form else None,
            _get_text(form, "url", where) if _has_text(form, "url") else None,
        )
    if type_ == "tool_call":
        return ToolCall(
            _get_text(form, "id", where),
            _get_text(form, "name", where),
            _get_text(form, "arguments", where),
            _get_text(form, "format", where, default="json"),
        )
    if type_ == "tool_result":
        if not levels:
            raise _wrong(where, "tool results are nested too deeply")
        content = [
            _parse_part(inner, f"{where}.content[{index}]", levels - 1)
            for index, inner in enumerate(_sequence(form.get("content"), f"{where}.content"))
        ]
        return ToolResult(_get_text(form, "call_id", where), content, _flag(form, where))
    if type_ == "reasoning":
        signed = _has_text(form, "signature")
        return Reasoning(
            _get_text(form, "text", where), _get_text(form, "signature", where) if signed else None
        )
    if type_ == "opaque":
        data = _bytes(form.get("data"), f"{where}.data")
        return Opaque(_get_text(form, "provider", where), data)
    raise _wrong(f"{where}.type", f"unknown type of part {type_[:40]!r}")


def _put_text(form: dict[str, Any], name: str, text: str) -> None:
    if text.isascii() or not _PAIR.search(text):
        form[name] = text
    else:
        data = text.encode("utf-8", "surrogatepass")
        form[f"{name}_base64"] = base64.b64encode(data).decode()


def _has_text(form: Mapping[str, Any], name: str) -> bool:
    return name in form or f"{name}_base64" in form


def _get_text(form: Mapping[str, Any], name: str, where: str, default: str | None = None) -> str:
    encoded = f"{name}_base64"
    if encoded in form:
        try:
            return _bytes(form[encoded], f"{where}.{encoded}").decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            raise _wrong(f"{where}.{encoded}", "expected UTF-8 bytes in base64") from None
    value = form.get(name, default)
    if not isinstance(value, str):
        raise _wrong(f"{where}.{name}", f"expected text, found {_kind(value)}")
    return value


def _bytes(value: object, where: str) -> bytes:
    if not isinstance(value, str):
        raise _wrong(where, f"expected base64, found {_kind(value)}")
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise _wrong(where, "expected base64") from None


def _flag(form: Mapping[str, Any], where: str) -> bool:
    value = form.get("is_error", False)
    if not isinstance(value, bool):
        raise _wrong(f"{where}.is_error", f"expected true or false, found {_kind(value)}")
    return value


def _mapping(value: object, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _wrong(where, f"expected an object, found {_kind(value)}")
    return value


def _sequence(value: object, where: str) -> Sequence[Any]:
    if not isinstance(value, list):
        raise _wrong(where, f"expected a list, found {_kind(value)}")
    return value


def _wrong(where: str, what: str) -> InvalidInputError:
    return InvalidInputError(f"{where}: {what}", where=where)


def _kind(value: object) -> str:
    names = {
        "NoneType": "nothing",
        "bool": "true or false",
        "dict": "an object",
        "list": "a list",
        "str": "text",
    }
    return names.get(type(value).__name__, "a number")
