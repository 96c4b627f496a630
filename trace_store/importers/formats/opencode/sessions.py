"""Reader of opencode sessions, from an export or a database dump.

A dump holds the rows of any number of sessions. If there is only one, it is imported like an export. Several become
separate branches.

Invariant: pure. opencode stores only the latest state of a session, so the reader restores the original order of
events: a tool result is cleared between the messages where opencode cleared it, and a revert is the last event.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from trace_store.base.frozen import value
from trace_store.importers.contract import AGENTS_KEY, PlannedMessage, Skip
from trace_store.importers.convert import ref_component, storable_name, time_of
from trace_store.importers.formats.opencode.messages import MessageStep, steps_of
from trace_store.importers.formats.opencode.rows import (
    ROW,
    TABLE,
    TABLES,
    Row,
    in_order,
    is_dump,
    message_info,
    part_of,
    rows_of,
    session_info,
)
from trace_store.importers.input_files import InputLine
from trace_store.importers.json_records import read_document, records_of
from trace_store.importers.turns import (
    Compaction,
    DocumentReader,
    Event,
    ResultClearing,
    Rewind,
    Switch,
    Turn,
    TurnEdit,
)
from trace_store.transcripts.sources import Record

NAME = "opencode"
MESSAGES = "messages"


class OpencodeReader(DocumentReader):
    """Reader of one file; events are computed before the first record is returned."""

    AGENT = NAME
    LISTS = (MESSAGES,)

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._events: dict[int, list[Event]] = {}
        self._end: list[Event] = []

    def records(self, line: InputLine) -> Iterator[Record | Skip]:
        if not line.whole:
            yield from records_of(line)
        elif is_dump(line.data or b""):
            yield from self._read_dump(line)
        else:
            yield from self._read_export(line)

    def read(self, record: Record) -> Iterable[Event]:
        return self._events.get(record.offset, ())

    def finish(self) -> Iterable[Event]:
        return self._end

    def label(self, record: Record) -> str:
        data = record.data
        if TABLE in data:
            return str(data[TABLE])
        info = data.get("info")
        role = info.get("role") if isinstance(info, dict) else None
        return role[:100] if isinstance(role, str) else "untyped"

    def _read_export(self, line: InputLine) -> Iterator[Record | Skip]:
        document = read_document(line, *self.LISTS)
        info = _map(document.fields.get("info"))
        self._set_state(info)
        records = list(document.records(MESSAGES))
        messages = [
            OpencodeMessage(_map(r.data.get("info")), _list(r.data.get("parts"))) for r in records
        ]
        conversation = Conversation(info, messages)
        for number, record in enumerate(records):
            self._events[record.offset] = [each.event for each in conversation.events_of(number)]
        self._end = conversation.end()
        yield from document.lists.get(MESSAGES, ())
        if document.damage is not None:
            yield document.damage

    def _read_dump(self, line: InputLine) -> Iterator[Record | Skip]:
        rows: dict[str, list[Record]] = {table: [] for table in TABLES}
        skips: list[Skip] = []
        for found in rows_of(line, TABLES):
            if isinstance(found, Skip):
                skips.append(found)
            else:
                rows[found.data[TABLE]].append(found)
        dump_rows = _DumpRows(rows)
        several = len(dump_rows.infos) > 1
        for id_, info in dump_rows.infos.items():
            pending: list[Event] = [*self._end]
            if several:
                pending.append(Switch(f"conversations/{ref_component(str(id_))}"))
            else:
                self._set_state(info)
            yield from self._session(dump_rows, id_, pending)
        yield from dump_rows.remaining()
        yield from skips

    def _session(self, dump_rows: _DumpRows, id_: Any, pending: list[Event]) -> Iterator[Record]:
        """Yield the rows of a session in conversation order."""
        yield from self._yield_with(pending, dump_rows.take("session", id_))
        message_rows = dump_rows.take("message", id_)
        part_rows = [dump_rows.take("part", record.data[ROW].get("id")) for record in message_rows]
        messages = [
            OpencodeMessage(
                message_info(record.data[ROW]), [part_of(r.data[ROW], id_) for r in parts]
            )
            for record, parts in zip(message_rows, part_rows, strict=True)
        ]
        conversation = Conversation(dump_rows.infos[id_], messages)
        for number, (record, parts) in enumerate(zip(message_rows, part_rows, strict=True)):
            before: list[Event] = pending
            pending = []
            for message_event in conversation.events_of(number):
                before = self._attach(message_event, before, parts)
            yield from self._yield_with(before, [record])
            yield from parts
        self._end = [*pending, *conversation.end()]

    def _attach(
        self, message_event: MessageEvent, before: list[Event], rows: list[Record]
    ) -> list[Event]:
        """Attach an event, and those before it, to the row of its first part.

        For a turn, the rows of the other parts get a TurnEdit with the same messages. Returns the events that still
        need a row.
        """
        if not message_event.parts:
            return [*before, message_event.event]
        first, *others = (rows[number] for number in message_event.parts)
        self._events.setdefault(first.offset, []).extend((*before, message_event.event))
        if isinstance(message_event.event, Turn):
            turn = message_event.event
            for row in others:
                self._events.setdefault(row.offset, []).append(
                    TurnEdit(turn.key, turn.messages, turn.time, turn.usage)
                )
        return []

    def _yield_with(self, events: list[Event], records: list[Record]) -> Iterator[Record]:
        """Yield records, attaching events to the first."""
        if events and records:
            self._events.setdefault(records[0].offset, []).extend(events)
            events.clear()
        yield from records

    def _set_state(self, info: Mapping[str, Any]) -> None:
        id_, parent = storable_name(info.get("id")), storable_name(info.get("parentID"))
        if id_ and parent:
            self.state = {"session": parent, "agent": id_}
        elif id_:
            self.state = {"session": id_}


class _DumpRows:
    """Rows of a dump by owner.

    Attributes:
        infos: sessions by id, in order of creation.
    """

    def __init__(self, rows: Mapping[str, list[Record]]) -> None:
        self._rows: dict[str, dict[Any, list[Record]]] = {table: {} for table in TABLES}
        for record in _sorted(rows["session"]):
            self._add("session", record.data[ROW].get("id"), record)
        for record in _sorted(rows["message"]):
            self._add("message", record.data[ROW].get("session_id"), record)
        for record in sorted(rows["part"], key=lambda r: str(r.data[ROW].get("id") or "")):
            self._add("part", record.data[ROW].get("message_id"), record)
        known = {**self._rows["session"], **self._rows["message"]}
        self.infos: dict[Any, Mapping[str, Any]] = {}
        for id_ in known:
            own = self._rows["session"].get(id_)
            self.infos[id_] = {"id": id_} if own is None else session_info(own[0].data[ROW])

    def take(self, table: str, owner: Any) -> list[Record]:
        """Remove and return the rows of a table that belong to an owner."""
        return self._rows[table].pop(_key(owner), [])

    def remaining(self) -> Iterator[Record]:
        """Yield the rows that no owner took, in dump order."""
        records = [
            record for table in self._rows.values() for rows in table.values() for record in rows
        ]
        yield from sorted(records, key=lambda record: record.offset)

    def _add(self, table: str, owner: Any, record: Record) -> None:
        self._rows[table].setdefault(_key(owner), []).append(record)


def _sorted(records: list[Record]) -> list[Record]:
    by_row = {id(record.data[ROW]): record for record in records}
    rows: list[Row] = in_order([record.data[ROW] for record in records])
    return [by_row[id(row)] for row in rows]


def _key(value: Any) -> str:
    """Return an id as text."""
    return value if isinstance(value, str) else "" if value is None else repr(value)


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


CLEARED_TEXT = "[Old tool result content cleared]"
"""Text shown for a cleared result."""

Map = Mapping[str, Any]


@value
class MessageEvent:
    """An event of a message, and the indexes of the message's parts that it comes from."""

    event: Event
    parts: tuple[int, ...] = ()


@value
class OpencodeMessage:
    """A message of a session."""

    info: Map
    parts: Sequence[Any]

    @property
    def id(self) -> str:
        return storable_name(self.info.get("id"))

    @property
    def time(self) -> int | None:
        """Start time in milliseconds since the epoch."""
        times = self.info.get("time")
        return time_of(times.get("created")) if isinstance(times, dict) else None


@value
class _Cleared:
    """A cleared result.

    Attributes:
        when: when it was cleared, in milliseconds since the epoch; 0 if unknown.
        key: the key of its turn.
        message: the index of its message in the turn.
        call: the id of its call.
    """

    when: int
    key: str
    message: int
    call: str


class Conversation:
    """Converter of a session's messages to events."""

    def __init__(self, info: Map, messages: Sequence[OpencodeMessage]) -> None:
        """Prepare a session.

        Args:
            info: metadata of the session, such as its revert.
            messages: all messages.
        """
        self._info = info
        self._messages = messages
        self._keys: list[list[str]] = [[] for _ in messages]
        self._used: set[str] = set()
        self._pending_clearings: list[_Cleared] = []
        self._done_clearings: list[tuple[int, _Cleared]] = []
        places = {message.id: n for n, message in enumerate(messages) if message.id}
        self._places = places
        # For each summary, the message that requested it; None if an old build recorded no request.
        self._request_of: dict[int, int | None] = {}
        for number, message in enumerate(messages):
            if message.info.get("summary") is True and message.info.get("role") == "assistant":
                request = places.get(storable_name(message.info.get("parentID")))
                is_requested = (
                    request is not None and request < number and _summary_request(messages[request])
                )
                is_complete = not message.info.get("error") and (
                    message.info.get("finish") or not is_requested
                )
                if is_complete:
                    self._request_of[number] = request if is_requested else None
        self._requests = {request for request in self._request_of.values() if request is not None}

    def events_of(self, number: int) -> list[MessageEvent]:
        """Return the events of a message; call once for each, in order."""
        message = self._messages[number]
        events = [MessageEvent(event) for event in self._clearings(number, message.time)]
        if number in self._requests:
            return events  # included with the summary
        steps = steps_of(message.info, message.parts)
        if number in self._request_of:
            return [*events, self._compaction(number, steps)]
        for index, step in enumerate(steps):
            events.append(MessageEvent(self._turn(number, index, step), step.parts))
        return events

    def end(self) -> list[Event]:
        """Return the events after the last message."""
        events: list[Event] = []
        revert = self._info.get("revert")
        at = None
        if isinstance(revert, dict):
            at = self._places.get(storable_name(revert.get("messageID")))
        if at is not None and isinstance(revert, dict):
            events += self._revert(at, revert.get("partID"))
        return [*events, *self._clearings(len(self._messages), None, since=at)]

    def _turn(self, number: int, index: int, step: MessageStep) -> Turn:
        message = self._messages[number]
        name = message.id or f"message-{number + 1}"
        key = f"{name}/{index + 1}" if index else name
        if key in self._used:
            key = f"{key}~{number + 1}"
        self._used.add(key)
        self._keys[number].append(key)
        where = next((n for n, m in enumerate(step.messages) if m.role == "tool"), 0)
        for when, call in step.cleared:
            self._pending_clearings.append(_Cleared(time_of(when) or 0, key, where, call))
        meta = {AGENTS_KEY: list(step.agents)} if step.agents else {}
        return Turn(step.messages, key, message.time, step.author, step.usage, meta=meta)

    def _compaction(self, number: int, steps: Sequence[MessageStep]) -> MessageEvent:
        """Return the summary, with its request, as a compaction."""
        message = self._messages[number]
        request = self._request_of[number]
        answers = [m for step in steps for m in step.messages if m.role == "assistant"]
        parts = tuple(part for message in answers for part in message.parts)
        messages: list[PlannedMessage] = []
        keeps: tuple[str, ...] = ()
        if request is not None:
            request_message = self._messages[request]
            messages += [
                m
                for step in steps_of(request_message.info, request_message.parts)
                for m in step.messages
            ]
            first = self._places.get(
                storable_name(_summary_request(request_message).get("tail_start_id"))
            )
            tail = self._keys[first:request] if first is not None else []
            keeps = tuple(key for keys in tail for key in keys)
        author = storable_name(message.info.get("modelID"))
        if parts:
            messages.append(PlannedMessage("assistant", parts, model=author))
        turn = self._turn(number, 0, steps[-1] if steps else MessageStep())
        event = Compaction(tuple(messages), turn.key, turn.time, author, turn.usage, keeps=keeps)
        return MessageEvent(event, tuple(n for step in steps for n in step.parts))

    def _clearings(
        self, number: int, until: int | None, *, since: int | None = None
    ) -> Iterator[ResultClearing]:
        """Yield the clearing of all results that were cleared before a message.

        Args:
            number: number of the message; the number of messages for the end of the session.
            until: time of the message; None if unknown, or at the end of the session.
            since: number of the message that a revert goes back to. The rewind restores the results cleared from there
                on, so they are cleared again.
        """
        last = number == len(self._messages)
        due: list[_Cleared] = []
        waiting: list[_Cleared] = []
        for each in self._pending_clearings:
            now = last or (until is not None and each.when <= until)
            (due if now else waiting).append(each)
        self._pending_clearings = waiting
        if since is not None:
            due = [*(c for n, c in self._done_clearings if n >= since), *due]
        self._done_clearings += [(number, c) for c in due]
        if due:
            calls: dict[tuple[str, int], list[str]] = {}
            for each in due:
                calls.setdefault((each.key, each.message), []).append(each.call)
            results = tuple((key, at, tuple(ids)) for (key, at), ids in calls.items())
            yield ResultClearing(results, CLEARED_TEXT, max(c.when for c in due) or None)

    def _revert(self, at: int, part: Any) -> Iterator[Event]:
        """Yield the rewind to before a message, or to before one of its parts."""
        message = self._messages[at]
        ids = [p.get("id") if isinstance(p, dict) else None for p in message.parts]
        cut = ids.index(part) if part is not None and part in ids else 0
        kept = steps_of(message.info, message.parts[:cut])
        complete = len(kept)
        if kept and kept[-1].parts != steps_of(message.info, message.parts)[complete - 1].parts:
            complete -= 1  # the last step keeps only some of its parts
        later = (key for keys in self._keys[at + 1 :] for key in keys)
        abandoned = [*self._keys[at][complete:], *later]
        if abandoned:
            yield Rewind(abandoned[0])
            for index, step in enumerate(kept[complete:], complete):
                yield self._turn(at, index, step)


def _summary_request(message: OpencodeMessage) -> Map:
    """Return the part that requests a summary, or an empty map."""
    if message.info.get("role") != "user":
        return {}
    parts = (p for p in message.parts if isinstance(p, dict) and p.get("type") == "compaction")
    return next(parts, {})
