"""Read files of chat messages, requests and responses.

Rule: each record is read as what it is, so a file may mix shapes. A message that stands in a request, a response or a
log of both is a record of its own.

The first conversation of a file is its session; each further one is a branch `conversations/<n>`. Of a log of requests,
in which each says again what was said so far, a request goes on in the conversation whose messages it begins with.

Rule: never fails, and remembers nothing but the calls of Gemini that have no ids.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from trace_store.errors import InvalidInputError
from trace_store.frozen import replace, value
from trace_store.importers.contract import Skip
from trace_store.importers.decode import Line, read_lines
from trace_store.importers.documents import ROOT, Document, read_document, within
from trace_store.importers.formats.chats.shapes import (
    ANSWER_KEYS,
    GEMINI,
    LANGCHAIN,
    PROMPT_KEYS,
    REQUEST_KEYS,
    RESPONSE_KEYS,
    RESPONSES,
    SYSTEM_KEYS,
    TRACE,
    candidate_content,
    container_shape,
    held_message,
    message_shape,
)
from trace_store.importers.json_records import records_of
from trace_store.importers.parts import (
    attempt,
    chat_message,
    planned,
    speaker,
    storable_name,
    time_of,
    tool_schemas,
    unread,
    usage_counts,
)
from trace_store.importers.turns import Event, Switch, Turn, TurnReader
from trace_store.objects import operations as ops
from trace_store.objects.content import bytes_of
from trace_store.objects.message import Message
from trace_store.objects.parts import Text, ToolResult
from trace_store.oid import digest
from trace_store.providers.chat import content_parts
from trace_store.providers.foreign import ROLE_NAMES
from trace_store.providers.gemini.parse import GeminiCalls, message_from_gemini
from trace_store.providers.langchain.parse import message_from_langchain
from trace_store.providers.lossless import parse_message
from trace_store.providers.openai_responses.parse import messages_from_responses, place_responses
from trace_store.transcripts.records import Record

LISTS = (*PROMPT_KEYS, *ANSWER_KEYS)
MAXIMUM_CONVERSATIONS = 16
"""Conversations of a log in which a request may go on; the latest ones."""

_SESSIONS = ("session_id", "sessionId", "conversation_id", "thread_id")
_MARK = b"\xef\xbb\xbf"


class ChatReader(TurnReader):
    """Reads one file of chat messages.

    What is remembered: `session`; `live` and `conversations`, the number of the one that goes on and how many there
    are; `said`, per conversation of a log how many messages it has and a hash of them; `tools`, a hash of those in
    force; `calls`, what Gemini's calls are known by; `group` and `item`, how items of one response hang together.
    """

    def __init__(self, agent: str, name: str) -> None:
        super().__init__(name)
        self.AGENT = agent
        self._calls: GeminiCalls | None = None
        self._answer = NOTHING_BESIDE
        self._tools: tuple[bytes, ...] | None = None
        self._switch: Switch | None = None
        self._is_log = False
        self._passing = 0
        self._ids: dict[int, str] = {}

    def records(self, line: Line) -> Iterator[Record | Skip]:
        if line.whole:
            yield from self._document(line)
        else:
            yield from self._line(line)

    def read(self, record: Record) -> Iterable[Event]:
        data = record.data
        if not self.state.get("session") and "conversations" not in self.state:
            keys = (
                ("id",) if data.get("type") == "session" else _SESSIONS if "message" in data else ()
            )
            self.state["session"] = next(
                filter(None, (storable_name(data.get(k)) for k in keys)), ""
            )
        calls = self._gemini_calls()
        message = message_of(data, calls, self._answer) or unknown_speaker(data)
        saved = calls.save()
        if saved != self.state.get("calls", []):
            self.state["calls"] = saved
        if message is None:
            return
        if self._passing:
            self._passing -= 1
            return
        if self._switch is not None:
            yield self._switch
            self._switch = None
        yield self._turn(message, record)
        if self._is_log:
            self._note_said(message)

    def label(self, record: Record) -> str:
        data = record.data
        path = data.get("id")
        name = path[-1] if "lc" in data and isinstance(path, list) and path else None
        inner = held_message(data) or data.get("content")
        role = inner.get("role") if isinstance(inner, dict) else None
        names = (name, data.get("role"), role, data.get("type"), next(iter(data), None))
        return next((name[:100] for name in names if isinstance(name, str) and name), "untyped")

    def _document(self, line: Line) -> Iterator[Record | Skip]:
        document = read_document(line, ROOT, *LISTS, singles=SINGLE_KEYS)
        elements = document.lists.get(ROOT)
        if document.damage is not None and _begins_with_a_line(line):
            data = line.data or b""
            for each in read_lines(lambda at, size: data[at : at + size], len(data)):
                end = each.offset + each.length
                yield from self._line(line.part(each.number, each.offset, end, ended=each.ended))
            return
        if elements is not None:
            self._note_items(elements)
            for element in elements:
                yield from self._taken_apart(line, element)
        else:
            form = _form(document)
            if container_shape(form):
                yield from self._conversation(line, document, form)
            elif document.damage is None:
                yield from records_of(_without_mark(line))
        if document.damage is not None:
            yield document.damage

    def _line(self, line: Line) -> Iterator[Record | Skip]:
        line = _without_mark(line)
        if line.data is not None and line.data.startswith(b"["):
            document = read_document(line._replace(whole=True), ROOT)
            yield from self._conversation(line, document, {})
            return
        for found in records_of(line):
            yield from self._taken_apart(line, found)

    def _taken_apart(self, line: Line, found: Record | Skip) -> Iterator[Record | Skip]:
        """Yield what holds messages as these, and everything else as it is."""
        if isinstance(found, Skip) or not container_shape(found.data):
            yield found
            return
        inner = within(line, found)
        document = read_document(inner, *LISTS, singles=SINGLE_KEYS)
        yield from self._conversation(inner, document, found.data)

    def _conversation(
        self, line: Line, document: Document, form: Mapping[str, Any]
    ) -> Iterator[Record | Skip]:
        self._begin(form)
        yield from self._container(line, document, form)
        self._tools, self._switch, self._passing = None, None, 0
        self._is_log = False
        self._answer = NOTHING_BESIDE

    def _container(
        self, line: Line, document: Document, form: Mapping[str, Any]
    ) -> Iterator[Record | Skip]:
        """Yield the messages of a request, of a response, and of what is around them."""
        self._offer(form)
        for key in (*SYSTEM_KEYS, "config"):
            if key in document.singles:
                yield document.singles[key]
        for key in (ROOT, *PROMPT_KEYS):
            if key in document.singles:
                yield document.singles[key]
            yield from self._elements(document, key)
        self._answer = beside(form)
        for key in ANSWER_KEYS:
            # A model may be asked for several answers; the talk goes on with the first.
            limit = None if key == "output" else 1
            yield from self._elements(document, key, limit)
        self._answer = NOTHING_BESIDE
        for key in (*REQUEST_KEYS, *RESPONSE_KEYS):
            single = document.singles.get(key)
            held = None if single is None else single.data[key]
            if single is None or not isinstance(held, dict):
                continue
            if container_shape(held):
                inner = within(line, single)
                found = read_document(inner, *LISTS, singles=SINGLE_KEYS)
                yield from self._container(inner, found, held)
            elif key in RESPONSE_KEYS and message_shape(held):
                yield single

    def _elements(
        self, document: Document, key: str, limit: int | None = None
    ) -> Iterator[Record | Skip]:
        elements = document.lists.get(key, [])[:limit]
        self._note_items(elements)
        yield from elements

    def _note_items(self, elements: list[Record | Skip]) -> None:
        """Note what id the messages get that are made of several items of Responses."""
        self._ids = {}
        records = [each for each in elements if isinstance(each, Record)]
        for are_items, run in groupby(records, lambda record: any(items_of(record.data))):
            items = list(run) if are_items else []
            try:
                for each in place_responses([record.data for record in items]):
                    self._ids[items[each.start].offset] = each.message.id
            except (InvalidInputError, RecursionError):
                continue

    def _begin(self, form: Mapping[str, Any]) -> None:
        """Begin a conversation, or go on with one of a log."""
        count = self.state.get("conversations", 0)
        if not count:
            found = (storable_name(form.get(key)) for key in _SESSIONS)
            self.state["session"] = next((each for each in found if each), "")
        self._is_log = _is_log(form)
        self._calls = GeminiCalls()
        if self._is_log and count:
            known = self._continued(form)
            if known is not None:
                number, self._passing = known
                self._go_to(number)
                return
        self.state["conversations"] = count + 1
        self._go_to(count + 1)
        self.state["tools"] = ""
        if self._is_log:
            self._remember(count + 1, 0, "")

    def _go_to(self, number: int) -> None:
        if number != self.state.get("live", 1):
            self._switch = Switch("" if number == 1 else f"conversations/{number}")
        self.state["live"] = number
        self.state["group"] = self.state.get("group", 0) + 1

    def _continued(self, form: Mapping[str, Any]) -> tuple[int, int] | None:
        """Return the conversation that a request goes on with, and how many messages it says again."""
        calls = GeminiCalls()
        hashes = [""]
        for data in _prompt(form):
            message = message_of(data, calls, NOTHING_BESIDE)
            if message is not None:
                hashes.append(_hash_after(hashes[-1], message))
        said: list[list[Any]] = self.state.get("said", [])
        going_on = [
            (count, number)
            for number, count, hash_ in said
            if 0 < count < len(hashes) and hashes[count] == hash_
        ]
        if not going_on:
            return None
        count, number = max(going_on)
        return number, count

    def _note_said(self, message: Message) -> None:
        live = self.state["live"]
        count, hash_ = next(((c, h) for n, c, h in self.state["said"] if n == live), (0, ""))
        self._remember(live, count + 1, _hash_after(hash_, message))

    def _remember(self, number: int, count: int, hash_: str) -> None:
        others = [each for each in self.state.get("said", []) if each[0] != number]
        self.state["said"] = [*others, [number, count, hash_]][-MAXIMUM_CONVERSATIONS:]

    def _offer(self, form: Mapping[str, Any]) -> None:
        """Note the tools that a request offers, for the next message."""
        config = form.get("config")
        holder = form if form.get("tools") or not isinstance(config, dict) else config
        schemas = tool_schemas(holder.get("tools"))
        if schemas is not None:
            name = digest(b"\n".join(schemas)).hex()[:16] if schemas else ""
            if name != self.state.get("tools", ""):
                self.state["tools"] = name
                self._tools = schemas

    def _turn(self, message: Message, record: Record) -> Turn:
        data = record.data
        told = details(data, self._answer)
        priority, labels = marks(data)
        made = planned(message, priority=priority, labels=labels)
        group = ""
        for type_ in items_of(data):
            group, id_ = self._group(message, type_, record.offset)
            made = made._replace(id=id_)
        if not group:
            self.state["item"] = ""
        elif told.usage is not None and told.usage is self._answer.usage:
            self._answer = replace(self._answer, usage=None)
        address = data.get("address") if "parts" in data else None
        tools, self._tools = self._tools, None
        return Turn(
            (made,),
            key=storable_name(address),
            time=told.time,
            author=speaker(message),
            usage=usage_of(message, told),
            group=group,
            tools=tools,
        )

    def _group(self, message: Message, type_: str, offset: int) -> tuple[str, str]:
        """Return the response that an item is of, and the id that the message gets from it."""
        if message.role != "assistant":
            self.state["item"] = ""
            return "", message.id
        before = self.state.get("item", "")
        begins = not before or (type_ == "message" and before == "message") or offset in self._ids
        if begins:
            self.state["group"] = self.state.get("group", 0) + 1
        self.state["item"] = type_
        id_ = self._ids.get(offset, message.id if type_ == "message" else "")
        return f"response-{self.state['group']}", id_

    def _gemini_calls(self) -> GeminiCalls:
        if self._calls is None:
            self._calls = GeminiCalls.load(self.state.get("calls", []))
        return self._calls


def _form(document: Document) -> dict[str, Any]:
    """Return what a document says, as far as it is whole."""
    lists = {name: [record.data for record in document.records(name)] for name in document.lists}
    singles = {key: record.data[key] for key, record in document.singles.items()}
    return {**document.fields, **lists, **singles}


def _without_mark(line: Line) -> Line:
    """Return a line without the byte order mark of the file."""
    if line.offset or line.data is None or not line.data.startswith(_MARK):
        return line
    return line._replace(offset=3, data=line.data[3:], length=line.length - 3)


def _begins_with_a_line(line: Line) -> bool:
    """Tell whether a file that is no document begins with an object, or a list, on a line of its own."""
    first, newline, _ = (line.data or b"").partition(b"\n")
    try:
        return bool(newline) and isinstance(json.loads(first), dict | list)
    except (ValueError, RecursionError):
        return False


def _is_log(form: Mapping[str, Any]) -> bool:
    """Tell a request that was sent, which names its model, from an example to learn from."""
    held = [form, *(form[key] for key in REQUEST_KEYS if isinstance(form.get(key), dict))]
    return any(isinstance(each.get("model"), str) for each in held)


def _prompt(form: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what the records of a request hold, in their order."""
    for key in (*SYSTEM_KEYS, "config"):
        if key in form:
            yield {key: form[key]}
    for key in PROMPT_KEYS:
        value = form.get(key)
        if isinstance(value, list):
            yield from (each for each in value if isinstance(each, dict))
        elif key in form and key in SINGLE_KEYS:
            yield {key: value}
    for key in REQUEST_KEYS:
        inner = form.get(key)
        if isinstance(inner, dict) and container_shape(inner):
            yield from _prompt(inner)


def _hash_after(before: str, message: Message) -> str:
    said = f"{before}\n{message.role}\n{message.parts!r}"
    return digest(bytes_of(said)).hex()[:32]


GHOST = "ghost"
"""The label of a message that only stands for a removed one."""

SINGLE_KEYS = (*SYSTEM_KEYS, "config", "contents", "input", *REQUEST_KEYS, *RESPONSE_KEYS)
"""Values of a request, or of what is around it, that are records of their own."""

_TIMES = ("timestamp", "created_at", "created", "createTime", "create_time")
_MODELS = ("model", "modelVersion", "model_version")
_HOLDERS = ("message", "data", "kwargs")
_USAGES = ("usage", "usageMetadata", "usage_metadata")


@value
class Answer:
    """What a response says beside its message.

    Attributes:
        id: the provider's.
        model: that made it.
        usage: as the provider reports it.
        time: milliseconds since the epoch, or None.
    """

    id: str = ""
    model: str = ""
    usage: Any = None
    time: int | None = None


NOTHING_BESIDE = Answer()


def beside(form: Mapping[str, Any]) -> Answer:
    """Return what an object says beside its message."""
    usage = next((form[key] for key in _USAGES if isinstance(form.get(key), dict)), None)
    model = next((name for key in _MODELS if (name := storable_name(form.get(key)))), "")
    time = next((found for key in _TIMES if (found := time_of(form.get(key))) is not None), None)
    return Answer(storable_name(form.get("id")), model, usage, time)


def message_of(data: Mapping[str, Any], calls: GeminiCalls, answer: Answer) -> Message | None:
    """Return what a record says; None when it says nothing that a model is shown."""
    if len(data) == 1:
        ((key, value),) = data.items()
        if key in SINGLE_KEYS:
            return _single(key, value, calls)
    if "role" not in data and message_shape(held_message(data)):
        named = {"id": answer.id, "model": answer.model}
        held = {key: value for key, value in named.items() if value}
        return message_of({**held, **held_message(data)}, calls, answer)
    content = candidate_content(data)
    if content is not None:
        return attempt(lambda: message_from_gemini(content, "", model=answer.model, calls=calls))
    shape = message_shape(data)
    if shape == TRACE:
        return attempt(lambda: parse_message(data, "message")) or _damaged(data)
    if shape == LANGCHAIN:
        return attempt(lambda: message_from_langchain(data, "message")) or _damaged(data)
    if shape == GEMINI:
        return attempt(lambda: message_from_gemini(data, "", calls=calls)) or _damaged(data)
    if shape == RESPONSES:
        return attempt(lambda: _item(data, answer.model)) or unread("assistant", data)
    return _of_a_tool(chat_message(data))


def details(data: Mapping[str, Any], answer: Answer) -> Answer:
    """Return what is told of a record's message: beside it, or in it."""
    for form in (data, *(data.get(key) for key in (*_HOLDERS, *RESPONSE_KEYS))):
        if isinstance(form, dict):
            own = beside(form)
            answer = Answer(
                id=own.id or answer.id,
                model=own.model or answer.model,
                usage=own.usage or answer.usage,
                time=answer.time if own.time is None else own.time,
            )
    return answer


def usage_of(message: Message, answer: Answer) -> dict[str, int | str]:
    """Return the usage of a message that a model made, in the form in which a commit holds it."""
    if message.role != "assistant" or answer.usage is None:
        return {}
    return usage_counts(answer.usage, message.model or answer.model)


def marks(data: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    """Return the priority and the labels that lossless JSON gives a message."""
    priority, labels = data.get("priority"), data.get("labels")
    found = [each for each in labels if _is_label(each)] if isinstance(labels, list) else []
    if data.get("ghost") is True:
        found.append(GHOST)
    known = isinstance(priority, str) and priority in ops.PRIORITIES and priority != ops.NORMAL
    return str(priority) if known else "", tuple(dict.fromkeys(found))


def items_of(data: Mapping[str, Any]) -> Iterator[str]:
    """Yield the type of a record that is an item of Responses."""
    if message_shape(data) == RESPONSES:
        yield str(data.get("type", "message"))


def _single(key: str, value: Any, calls: GeminiCalls) -> Message | None:
    if key == "config":
        config = value if isinstance(value, dict) else {}
        key = next((name for name in SYSTEM_KEYS[2:] if config.get(name)), "")
        value = config.get(key)
    if not value:
        return None
    if key == "input":
        return Message("user", [Text(value)]) if isinstance(value, str) else None
    if key == "contents":
        return message_of(value, calls, NOTHING_BESIDE) if isinstance(value, dict) else None
    if key in RESPONSE_KEYS:
        return message_of(value, calls, NOTHING_BESIDE) if isinstance(value, dict) else None
    if key not in SYSTEM_KEYS:
        return None
    if key in SYSTEM_KEYS[2:] and not isinstance(value, str):
        form = value if isinstance(value, dict) else {"parts": value}
        content = {**form, "role": "system"}
        found = attempt(lambda: message_from_gemini(content, ""))
    else:
        found = attempt(lambda: Message("system", content_parts(value, "")))
    return found or unread("system", value)


def _of_a_tool(message: Message | None) -> Message | None:
    """Return a message of Anthropic's that holds results alone as one of tools, for which it has no role."""
    if message is None or message.role != "user" or not message.parts:
        return message
    if not all(isinstance(part, ToolResult) for part in message.parts):
        return message
    return Message("tool", message.parts, name=message.name, id=message.id)


def unknown_speaker(data: Mapping[str, Any]) -> Message | None:
    """Return a message of an unknown role, unread; roles like `_usage` mark a program's own notes, which are none."""
    role = data.get("role")
    if not isinstance(role, str) or role.startswith("_") or not data.get("content"):
        return None
    return unread("user", data)


def _item(data: Mapping[str, Any], model: str) -> Message:
    (found,) = messages_from_responses([data], model=model)
    return found


def _damaged(data: Mapping[str, Any]) -> Message | None:
    roles = {**ROLE_NAMES, "function": "tool"}
    role = data.get("role", data.get("type"))
    if not isinstance(role, str):
        return None
    return attempt(lambda: unread(roles.get(role, role), data))


def _is_label(label: Any) -> bool:
    return (
        storable_name(label) != ""
        and len(label) <= 100
        and all(ord(c) > 32 and ord(c) != 127 for c in label)
    )
