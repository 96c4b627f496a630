"""Reader of files with chat messages, requests and responses.

Invariant: each record is parsed by its own shape, so a file may mix shapes. A message in a request, response or log
is a record of its own. Never fails.

The first conversation of a file is its session; each further one is a branch `conversations/<n>`. In a log, whose
requests repeat the conversation so far, a request continues the conversation whose messages it starts with.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from trace_store.base.frozen import replace, value
from trace_store.base.oid import digest
from trace_store.errors import InvalidInputError
from trace_store.importers.contract import Skip
from trace_store.importers.convert import (
    chat_message,
    planned_message,
    speaker,
    storable_name,
    time_of,
    tool_schemas,
    try_parse,
    unreadable_message,
    usage_counts,
)
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
from trace_store.importers.input_files import InputLine, read_lines
from trace_store.importers.json_records import ROOT, Document, read_document, records_of, within
from trace_store.importers.turns import Event, Switch, Turn, TurnReader
from trace_store.objects import operations as ops
from trace_store.objects.content import bytes_of
from trace_store.objects.message import Message
from trace_store.objects.parts import Text, ToolResult
from trace_store.providers.chat import content_parts
from trace_store.providers.foreign import ROLE_NAMES
from trace_store.providers.gemini import GeminiCalls, message_from_gemini
from trace_store.providers.langchain import message_from_langchain
from trace_store.providers.lossless import parse_message
from trace_store.providers.openai_responses import messages_from_responses, place_responses
from trace_store.transcripts.sources import Record

LISTS = (*PROMPT_KEYS, *ANSWER_KEYS)
MAXIMUM_CONVERSATIONS = 16
"""Number of recent conversations of a log that a request may continue."""

_SESSIONS = ("session_id", "sessionId", "conversation_id", "thread_id")
_MARK = b"\xef\xbb\xbf"


class ChatReader(TurnReader):
    """Reader of one file of chat messages.

    State: `session`; `live` and `conversations`, the number of the current one and their count; `said`, per
    conversation of a log its message count and hash; `tools`, a hash of the current tools; `calls`, Gemini's calls
    without ids; `group` and `item`, to join items of one response.
    """

    def __init__(self, agent: str, name: str) -> None:
        super().__init__(name)
        self.AGENT = agent
        self._calls: GeminiCalls | None = None
        self._answer = NO_FIELDS
        self._tools: tuple[bytes, ...] | None = None
        self._switch: Switch | None = None
        self._is_log = False
        self._repeated = 0
        self._ids: dict[int, str] = {}
        self._unknown_items: frozenset[int] = frozenset()

    def records(self, line: InputLine) -> Iterator[Record | Skip]:
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
        if message is None and record.offset in self._unknown_items:
            message = try_parse(lambda: _item(data, self._answer.model))
        saved = calls.save()
        if saved != self.state.get("calls", []):
            self.state["calls"] = saved
        if message is None:
            return
        if self._repeated:
            self._repeated -= 1
            return
        if self._switch is not None:
            yield self._switch
            self._switch = None
        yield self._turn(message, record)
        if self._is_log:
            self._record_said(message)

    def label(self, record: Record) -> str:
        data = record.data
        path = data.get("id")
        name = path[-1] if "lc" in data and isinstance(path, list) and path else None
        inner = held_message(data) or data.get("content")
        role = inner.get("role") if isinstance(inner, dict) else None
        names = (name, data.get("role"), role, data.get("type"), next(iter(data), None))
        return next((name[:100] for name in names if isinstance(name, str) and name), "untyped")

    def _document(self, line: InputLine) -> Iterator[Record | Skip]:
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
                yield from self._expand(line, element)
        else:
            form = _form(document)
            if container_shape(form):
                yield from self._conversation(line, document, form)
            elif document.damage is None:
                yield from records_of(_without_mark(line))
        if document.damage is not None:
            yield document.damage

    def _line(self, line: InputLine) -> Iterator[Record | Skip]:
        line = _without_mark(line)
        if line.data is not None and line.data.startswith(b"["):
            document = read_document(line._replace(whole=True), ROOT)
            yield from self._conversation(line, document, {})
            return
        for record in records_of(line):
            yield from self._expand(line, record)

    def _expand(self, line: InputLine, record: Record | Skip) -> Iterator[Record | Skip]:
        """Yield the messages of a container, or the record itself."""
        if isinstance(record, Skip) or not container_shape(record.data):
            yield record
            return
        inner = within(line, record)
        document = read_document(inner, *LISTS, singles=SINGLE_KEYS)
        yield from self._conversation(inner, document, record.data)

    def _conversation(
        self, line: InputLine, document: Document, form: Mapping[str, Any]
    ) -> Iterator[Record | Skip]:
        self._begin(form)
        yield from self._container(line, document, form)
        self._tools, self._switch, self._repeated = None, None, 0
        self._is_log = False
        self._answer = NO_FIELDS

    def _container(
        self, line: InputLine, document: Document, form: Mapping[str, Any]
    ) -> Iterator[Record | Skip]:
        """Yield the messages of a request, a response, and what wraps them."""
        self._offer(form)
        for key in (*SYSTEM_KEYS, "config"):
            if key in document.singles:
                yield document.singles[key]
        for key in (ROOT, *PROMPT_KEYS):
            if key in document.singles:
                yield document.singles[key]
            yield from self._elements(document, key)
        self._answer = response_fields(form)
        for key in ANSWER_KEYS:
            # A model may return several answers; the conversation continues with the first.
            limit = None if key == "output" else 1
            yield from self._elements(document, key, limit)
        self._answer = NO_FIELDS
        for key in (*REQUEST_KEYS, *RESPONSE_KEYS):
            single = document.singles.get(key)
            held = None if single is None else single.data[key]
            if single is None or not isinstance(held, dict):
                continue
            if container_shape(held):
                inner = within(line, single)
                inner_document = read_document(inner, *LISTS, singles=SINGLE_KEYS)
                yield from self._container(inner, inner_document, held)
            elif key in RESPONSE_KEYS and message_shape(held):
                yield single

    def _elements(
        self, document: Document, key: str, limit: int | None = None
    ) -> Iterator[Record | Skip]:
        elements = document.lists.get(key, [])[:limit]
        self._note_items(elements)
        yield from elements

    def _note_items(self, elements: list[Record | Skip]) -> None:
        """Record the ids of messages that consist of several Responses items."""
        self._ids = {}
        records = [each for each in elements if isinstance(each, Record)]
        items_ = {record.offset for record in records if any(items_of(record.data))}
        others = (record for record in records if items_ and _may_be_item(record.data))
        self._unknown_items = frozenset(each.offset for each in others) - items_
        items_ |= self._unknown_items
        for are_items, run in groupby(records, lambda record: record.offset in items_):
            items = list(run) if are_items else []
            try:
                for each in place_responses([record.data for record in items]):
                    self._ids[items[each.start].offset] = storable_name(each.message.id)
            except (InvalidInputError, RecursionError):
                continue

    def _begin(self, form: Mapping[str, Any]) -> None:
        """Start a conversation, or continue one of a log."""
        count = self.state.get("conversations", 0)
        if not count:
            ids = (storable_name(form.get(key)) for key in _SESSIONS)
            self.state["session"] = next((each for each in ids if each), "")
        self._is_log = _is_log(form)
        self._calls = GeminiCalls()
        if self._is_log and count:
            known = self._find_continued(form)
            if known is not None:
                number, self._repeated = known
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

    def _find_continued(self, form: Mapping[str, Any]) -> tuple[int, int] | None:
        """Return the conversation that a request continues, and its repeated messages."""
        calls = GeminiCalls()
        hashes = [""]
        for data in _prompt(form):
            message = message_of(data, calls, NO_FIELDS)
            if message is not None:
                hashes.append(_hash_after(hashes[-1], message))
        said: list[list[Any]] = self.state.get("said", [])
        continued = [
            (count, number)
            for number, count, hash_ in said
            if 0 < count < len(hashes) and hashes[count] == hash_
        ]
        if not continued:
            return None
        count, number = max(continued)
        return number, count

    def _record_said(self, message: Message) -> None:
        live = self.state["live"]
        count, hash_ = next(((c, h) for n, c, h in self.state["said"] if n == live), (0, ""))
        self._remember(live, count + 1, _hash_after(hash_, message))

    def _remember(self, number: int, count: int, hash_: str) -> None:
        others = [each for each in self.state.get("said", []) if each[0] != number]
        self.state["said"] = [*others, [number, count, hash_]][-MAXIMUM_CONVERSATIONS:]

    def _offer(self, form: Mapping[str, Any]) -> None:
        """Record the tools that a request offers, for the next message."""
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
        fields = details(data, self._answer)
        priority, labels = marks(data)
        planned = planned_message(message, priority=priority, labels=labels)
        group = ""
        is_unknown = record.offset in self._unknown_items
        for type_ in (str(data["type"]),) if is_unknown else items_of(data):
            group, id_ = self._group(message, type_, record.offset)
            planned = planned._replace(id=id_)
        if not group:
            self.state["item"] = ""
        elif fields.usage is not None and fields.usage is self._answer.usage:
            self._answer = replace(self._answer, usage=None)
        address = data.get("address") if "parts" in data else None
        tools, self._tools = self._tools, None
        return Turn(
            (planned,),
            key=storable_name(address),
            time=fields.time,
            author=speaker(message),
            usage=usage_of(message, fields),
            group=group,
            tools=tools,
        )

    def _group(self, message: Message, type_: str, offset: int) -> tuple[str, str]:
        """Return the response group of an item, and its message id."""
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
    """Return the complete fields of a document."""
    lists = {name: [record.data for record in document.records(name)] for name in document.lists}
    singles = {key: record.data[key] for key, record in document.singles.items()}
    return {**document.fields, **lists, **singles}


def _without_mark(line: InputLine) -> InputLine:
    """Return a line without the file's byte order mark."""
    if line.offset or line.data is None or not line.data.startswith(_MARK):
        return line
    return line._replace(offset=3, data=line.data[3:], length=line.length - 3)


def _begins_with_a_line(line: InputLine) -> bool:
    """Return True if a damaged document's first line is a complete object or list."""
    first, newline, _ = (line.data or b"").partition(b"\n")
    try:
        return bool(newline) and isinstance(json.loads(first), dict | list)
    except (ValueError, RecursionError):
        return False


def _is_log(form: Mapping[str, Any]) -> bool:
    """Return True for a sent request, which names its model, not a training example."""
    held = [form, *(form[key] for key in REQUEST_KEYS if isinstance(form.get(key), dict))]
    return any(isinstance(each.get("model"), str) for each in held)


def _prompt(form: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the records of a request, in order."""
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
"""Label of a placeholder for a removed message."""

SINGLE_KEYS = (*SYSTEM_KEYS, "config", "contents", "input", *REQUEST_KEYS, *RESPONSE_KEYS)
"""Values of a request, or around it, that are records of their own."""

_TIMES = ("timestamp", "created_at", "created", "createTime", "create_time")
_MODELS = ("model", "modelVersion", "model_version")
_HOLDERS = ("message", "data", "kwargs")
_USAGES = ("usage", "usageMetadata", "usage_metadata")


@value
class ResponseFields:
    """Response fields besides the message.

    Attributes:
        id: the provider's id.
        model: model that answered.
        usage: the provider's usage report.
        time: milliseconds since the epoch, or None.
    """

    id: str = ""
    model: str = ""
    usage: Any = None
    time: int | None = None


NO_FIELDS = ResponseFields()


def response_fields(form: Mapping[str, Any]) -> ResponseFields:
    """Return the response fields of an object."""
    usage = next((form[key] for key in _USAGES if isinstance(form.get(key), dict)), None)
    model = next((name for key in _MODELS if (name := storable_name(form.get(key)))), "")
    time = next((found for key in _TIMES if (found := time_of(form.get(key))) is not None), None)
    return ResponseFields(storable_name(form.get("id")), model, usage, time)


def message_of(
    data: Mapping[str, Any], calls: GeminiCalls, answer: ResponseFields
) -> Message | None:
    """Return the message of a record; None if it has none for a model."""
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
        return try_parse(lambda: message_from_gemini(content, "", model=answer.model, calls=calls))
    shape = message_shape(data)
    if shape == TRACE:
        return try_parse(lambda: parse_message(data, "message")) or _damaged(data)
    if shape == LANGCHAIN:
        return try_parse(lambda: message_from_langchain(data, "message")) or _damaged(data)
    if shape == GEMINI:
        return try_parse(lambda: message_from_gemini(data, "", calls=calls)) or _damaged(data)
    if shape == RESPONSES:
        return try_parse(lambda: _item(data, answer.model)) or unreadable_message("assistant", data)
    return _of_a_tool(chat_message(data))


def details(data: Mapping[str, Any], answer: ResponseFields) -> ResponseFields:
    """Return the response fields of a record's message, next to it or inside it."""
    for form in (data, *(data.get(key) for key in (*_HOLDERS, *RESPONSE_KEYS))):
        if isinstance(form, dict):
            own = response_fields(form)
            answer = ResponseFields(
                id=own.id or answer.id,
                model=own.model or answer.model,
                usage=own.usage or answer.usage,
                time=answer.time if own.time is None else own.time,
            )
    return answer


def usage_of(message: Message, answer: ResponseFields) -> dict[str, int | str]:
    """Return the usage of an assistant message in stored form."""
    if message.role != "assistant" or answer.usage is None:
        return {}
    return usage_counts(answer.usage, message.model or answer.model)


def marks(data: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    """Return priority and labels of a message in lossless JSON."""
    priority, labels = data.get("priority"), data.get("labels")
    valid_labels = [each for each in labels if _is_label(each)] if isinstance(labels, list) else []
    if data.get("ghost") is True:
        valid_labels.append(GHOST)
    known = isinstance(priority, str) and priority in ops.PRIORITIES and priority != ops.NORMAL
    return str(priority) if known else "", tuple(dict.fromkeys(valid_labels))


def items_of(data: Mapping[str, Any]) -> Iterator[str]:
    """Yield the type of a record that is a Responses item."""
    if message_shape(data) == RESPONSES:
        yield str(data.get("type", "message"))


def _may_be_item(data: Mapping[str, Any]) -> bool:
    """Return True if a neighbour of Responses items may be an item of a type that is not known."""
    return isinstance(data.get("type"), str) and "role" not in data and not message_shape(data)


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
        return message_of(value, calls, NO_FIELDS) if isinstance(value, dict) else None
    if key in RESPONSE_KEYS:
        return message_of(value, calls, NO_FIELDS) if isinstance(value, dict) else None
    if key not in SYSTEM_KEYS:
        return None
    if key in SYSTEM_KEYS[2:] and not isinstance(value, str):
        form = value if isinstance(value, dict) else {"parts": value}
        content = {**form, "role": "system"}
        message = try_parse(lambda: message_from_gemini(content, ""))
    else:
        message = try_parse(lambda: Message("system", content_parts(value, "")))
    return message or unreadable_message("system", value)


def _of_a_tool(message: Message | None) -> Message | None:
    """Return an Anthropic message of results as a tool message.

    Anthropic has no such role.
    """
    if message is None or message.role != "user" or not message.parts:
        return message
    if not all(isinstance(part, ToolResult) for part in message.parts):
        return message
    return Message("tool", message.parts, name=message.name, id=message.id)


def unknown_speaker(data: Mapping[str, Any]) -> Message | None:
    """Return a message of unknown role as unreadable.

    Roles like `_usage` are a program's own notes.
    """
    role = data.get("role")
    if not isinstance(role, str) or role.startswith("_") or not data.get("content"):
        return None
    return unreadable_message("user", data)


def _item(data: Mapping[str, Any], model: str) -> Message:
    (found,) = messages_from_responses([data], model=model)
    return found


def _damaged(data: Mapping[str, Any]) -> Message | None:
    roles = {**ROLE_NAMES, "function": "tool"}
    role = data.get("role", data.get("type"))
    if not isinstance(role, str):
        return None
    return try_parse(lambda: unreadable_message(roles.get(role, role), data))


def _is_label(label: Any) -> bool:
    return (
        storable_name(label) != ""
        and len(label) <= 100
        and all(ord(c) > 32 and ord(c) != 127 for c in label)
    )
