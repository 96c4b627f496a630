"""Parser of items of OpenAI's Responses API, input and output.

Invariant: consecutive items of the model are one message, as they were one response; only a `message` item
directly after another one starts a new message. Every other item is a separate message.

- A `reasoning` item becomes one reasoning part for each of its texts (summaries, else the reasoning itself);
  the last has `encrypted_content` as its signature, byte for byte.
- Calls and outputs are paired on `call_id`, never on `id`. A `custom_tool_call` has arguments of format "text".
- Fields that must be sent again but have no place in a part (`phase` of a message; `namespace` and `caller` of a
  call) precede it as a frame: an opaque part with the item's type and only these fields.
- Any other item is kept verbatim as an opaque part of provider "openai": of the model, unless it is an output
  or an answer of the program.
- `id` of an item (except a message), `status` and `annotations` are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from trace_store.errors import InvalidInputError
from trace_store.objects.message import ROLES, Message
from trace_store.objects.parts import Part, Reasoning, ToolCall, ToolResult
from trace_store.providers.chat import content_parts
from trace_store.providers.fields import (
    Placed,
    closest,
    details,
    dump,
    entries,
    keeps_damage,
    mapping,
    message,
    opaque,
    optional,
    parts_of,
    required,
    unread,
    wrong,
)
from trace_store.providers.openai_responses import PROVIDER
from trace_store.providers.openai_responses.render import FRAMES, is_by_program

_CALLS = {"function_call": "json", "custom_tool_call": "text"}
_OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output"})


class _Item(NamedTuple):
    """Content of one item."""

    role: str
    type: str
    parts: list[Part]
    id: str = ""
    name: str = ""


def messages_from_responses(
    items: Iterable[Any], where: str = "input", *, model: str = ""
) -> list[Message]:
    """Return the messages of a list of items: an `input`, or a response's `output`.

    Args:
        items: the items, oldest first.
        where: name of the list in errors.
        model: the model of the assistant's items.

    Raises:
        InvalidMessageError: an item is damaged; `.where` names it.
    """
    return [placed.message for placed in place_responses(items, where, model=model)]


def place_responses(
    items: Iterable[Any], where: str = "input", *, model: str = ""
) -> Iterator[Placed]:
    """Yield the messages of a list of items, each with its range of items.

    Every item is in one range, and the ranges are consecutive. Arguments and errors as in
    `messages_from_responses`.
    """
    return place_items(items, lambda index: f"{where}[{index}]", model=model)


def place_items(
    items: Iterable[Any], place: Callable[[int], str], *, model: str = ""
) -> Iterator[Placed]:
    """Yield as `place_responses`; `place` returns the name of an item in errors."""
    group: list[_Item] = []
    start = 0
    for index, form in enumerate(items):
        item = _read(form, place(index))
        apart = item.role != "assistant"
        if group and (apart or (item.type == "message" and group[-1].type == "message")):
            yield Placed(start, index, _message(group, place(start), model))
            group = []
        if apart:
            yield Placed(index, index + 1, _message([item], place(index), ""))
            continue
        start = start if group else index
        group.append(item)
    if group:
        yield Placed(start, start + len(group), _message(group, place(start), model))


def message_of_item(form: Any, where: str, *, model: str = "") -> Message:
    """Return the message of one item; otherwise as `messages_from_responses`."""
    item = _read(form, where)
    return _message([item], where, model if item.role == "assistant" else "")


def reasoning_parts(form: Mapping[str, Any], where: str) -> list[Part]:
    """Return the parts of a reasoning item."""
    texts = [
        required(mapping(entry, where, "a summary"), "text", where)
        for name in ("summary", "content")
        for entry in entries(form.get(name), where, name)
    ] or [""]
    signature = optional(form, "encrypted_content", where) or None
    return [*map(Reasoning, texts[:-1]), Reasoning(texts[-1], signature)]


def _message(group: list[_Item], where: str, model: str) -> Message:
    first = group[0]
    if len(group) == 1:
        return message(first.role, first.parts, where, id=first.id, model=model, name=first.name)
    spoken = [item for item in group if item.type == "message"]
    parts = [part for item in group for part in item.parts]
    id_ = (spoken or group)[0].id
    return message(first.role, parts, where, id=id_, model=model, name=first.name)


def _read(value: Any, where: str) -> _Item:
    try:
        return _item(value, where)
    except (InvalidInputError, RecursionError):
        if not keeps_damage():
            raise
    type_ = value.get("type") if isinstance(value, dict) else None
    type_ = type_ if isinstance(type_, str) else ""
    role = "tool" if type_ in _OUTPUTS else "assistant"
    return _Item(role, type_, [unread(value)])


def _item(value: Any, where: str) -> _Item:
    form = mapping(value, where, "an item")
    type_ = form.get("type", "message" if "role" in form else None)
    if not isinstance(type_, str):
        raise wrong(where, "an item needs a type")
    id_ = details(form, where, "id")["id"]
    if type_ == "message":
        role = required(form, "role", where)
        if "content" not in form:
            raise wrong(where, "a message needs content")
        if role not in ROLES:
            raise wrong(where, f"unknown role {role[:40]!r}{closest(role, ROLES)}")
        parts = parts_of(_blocks, form["content"], f"{where}: content")
        return _Item(role, type_, [*_frame(form, type_), *parts], id_)
    if type_ == "reasoning":
        return _Item("assistant", type_, reasoning_parts(form, where), id_)
    if type_ in _CALLS:
        call = call_part(form, type_, where)
        return _Item("assistant", type_, [*_frame(form, type_, call.id), call], id_)
    if type_ in _OUTPUTS:
        return _Item("tool", type_, [_result(form, where)], id_)
    if type_ == "agent_message":
        # Not OpenAI's: a program's agents use it for messages to each other; read as input.
        parts = parts_of(_blocks, form.get("content"), f"{where}: content")
        return _Item("user", type_, parts, id_, details(form, where, "author")["author"])
    return _Item(
        "user" if is_by_program(type_) else "assistant", type_, [opaque(PROVIDER, form)], id_
    )


def call_part(form: Mapping[str, Any], type_: str, where: str) -> ToolCall:
    """Return the call of a `function_call` or `custom_tool_call` item."""
    arguments = form.get("input" if type_ == "custom_tool_call" else "arguments", "")
    return ToolCall(
        required(form, "call_id", where),
        required(form, "name", where),
        arguments if isinstance(arguments, str) else dump(arguments),
        _CALLS[type_],
    )


def _result(form: Mapping[str, Any], where: str) -> ToolResult:
    output = form.get("output")
    failed = False
    if isinstance(output, dict):
        # Some recorders write the text, and whether the tool succeeded.
        failed = output.get("success") is False
        output = output.get("content_items") or output.get("content")
    content = parts_of(_blocks, output, f"{where}: output")
    return ToolResult(required(form, "call_id", where), content, failed)


def _blocks(content: Any, where: str) -> list[Part]:
    return content_parts(content, where, PROVIDER)


def _frame(form: Mapping[str, Any], type_: str, call_id: str | None = None) -> Sequence[Part]:
    kept = {key: form[key] for key in FRAMES[type_] if form.get(key) is not None}
    if not kept or (type_ == "message" and form.get("role") != "assistant"):
        return ()
    held = {"type": type_, **({"call_id": call_id} if call_id else {}), **kept}
    return (opaque(PROVIDER, held),)
