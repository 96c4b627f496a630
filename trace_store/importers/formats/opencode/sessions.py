"""Sessions of opencode: an export, or a dump of the database.

A dump holds the same in rows, and any number of sessions. With one it is that session; with several each is a line of
work of its own.

Rule: pure. A session shows how it is now, so what happened to it since is put back where it belongs in time: results
that were cleared stay as they were until then, and a revert is the last thing that happens.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from trace_store.frozen import value
from trace_store.importers.contract import AGENTS_KEY, PlannedMessage, Skip
from trace_store.importers.decode import Line
from trace_store.importers.documents import read_document
from trace_store.importers.formats.opencode.dump import ROW, TABLE, rows_of
from trace_store.importers.formats.opencode.locations import TABLES, is_dump
from trace_store.importers.formats.opencode.messages import Step, steps_of
from trace_store.importers.formats.opencode.rows import (
    Row,
    in_order,
    message_info,
    part_of,
    session_info,
)
from trace_store.importers.json_records import records_of
from trace_store.importers.names import ref_component
from trace_store.importers.parts import storable_name, time_of
from trace_store.importers.turns import (
    Clearing,
    Compaction,
    DocumentReader,
    Event,
    GoBack,
    Rewording,
    Switch,
    Turn,
)
from trace_store.transcripts.records import Record

NAME = "opencode"
MESSAGES = "messages"


class OpencodeReader(DocumentReader):
    """Reads one file. All of it is known before the first record is read, so what each means is found then."""

    AGENT = NAME
    LISTS = (MESSAGES,)

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._events: dict[int, list[Event]] = {}
        self._end: list[Event] = []

    def records(self, line: Line) -> Iterator[Record | Skip]:
        if not line.whole:
            yield from records_of(line)
        elif is_dump(line.data or b""):
            yield from self._dumped(line)
        else:
            yield from self._exported(line)

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

    def _exported(self, line: Line) -> Iterator[Record | Skip]:
        document = read_document(line, *self.LISTS)
        info = _map(document.fields.get("info"))
        self._know(info)
        found = list(document.records(MESSAGES))
        messages = [Message(_map(r.data.get("info")), _list(r.data.get("parts"))) for r in found]
        talk = Conversation(info, messages)
        for number, record in enumerate(found):
            self._events[record.offset] = [told.event for told in talk.tell(number)]
        self._end = talk.end()
        yield from document.lists.get(MESSAGES, ())
        if document.damage is not None:
            yield document.damage

    def _dumped(self, line: Line) -> Iterator[Record | Skip]:
        rows: dict[str, list[Record]] = {table: [] for table in TABLES}
        skips: list[Skip] = []
        for found in rows_of(line, TABLES):
            if isinstance(found, Skip):
                skips.append(found)
            else:
                rows[found.data[TABLE]].append(found)
        sessions = _Dumped(rows)
        several = len(sessions.infos) > 1
        for id_, info in sessions.infos.items():
            opening: list[Event] = [*self._end]
            if several:
                opening.append(Switch(f"conversations/{ref_component(str(id_))}"))
            else:
                self._know(info)
            yield from self._session(sessions, id_, opening)
        yield from sessions.left()
        yield from skips

    def _session(self, sessions: _Dumped, id_: Any, opening: list[Event]) -> Iterator[Record]:
        """Yield the rows of a session in the order in which things were said, which is not that of the dump."""
        yield from self._with(opening, sessions.take("session", id_))
        message_rows = sessions.take("message", id_)
        part_rows = [sessions.take("part", record.data[ROW].get("id")) for record in message_rows]
        messages = [
            Message(message_info(record.data[ROW]), [part_of(r.data[ROW], id_) for r in parts])
            for record, parts in zip(message_rows, part_rows, strict=True)
        ]
        talk = Conversation(sessions.infos[id_], messages)
        for number, (record, parts) in enumerate(zip(message_rows, part_rows, strict=True)):
            before: list[Event] = opening
            opening = []
            for told in talk.tell(number):
                before = self._tell(told, before, parts)
            yield from self._with(before, [record])
            yield from parts
        self._end = [*opening, *talk.end()]

    def _tell(self, told: Told, before: list[Event], rows: list[Record]) -> list[Event]:
        """Give an event to the row that begins to tell it, and say it again at the others; return what waits."""
        if not told.parts:
            return [*before, told.event]
        first, *others = (rows[number] for number in told.parts)
        self._events.setdefault(first.offset, []).extend((*before, told.event))
        if isinstance(told.event, Turn):
            turn = told.event
            for row in others:
                self._events.setdefault(row.offset, []).append(
                    Rewording(turn.key, turn.messages, turn.time, turn.usage)
                )
        return []

    def _with(self, events: list[Event], records: list[Record]) -> Iterator[Record]:
        """Yield records of which the first means these events, beside what it means already."""
        if events and records:
            self._events.setdefault(records[0].offset, []).extend(events)
            events.clear()
        yield from records

    def _know(self, info: Mapping[str, Any]) -> None:
        id_, parent = storable_name(info.get("id")), storable_name(info.get("parentID"))
        if id_ and parent:
            self.state = {"session": parent, "agent": id_}
        elif id_:
            self.state = {"session": id_}


class _Dumped:
    """The rows of a dump, by what they belong to.

    Attributes:
        infos: what is known of each session, by its id, in the order in which they were made.
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
        """Return the rows of a table that belong to something, once."""
        return self._rows[table].pop(_key(owner), [])

    def left(self) -> Iterator[Record]:
        """Yield the rows that belong to nothing, in the order of the dump."""
        found = [r for table in self._rows.values() for records in table.values() for r in records]
        yield from sorted(found, key=lambda record: record.offset)

    def _add(self, table: str, owner: Any, record: Record) -> None:
        self._rows[table].setdefault(_key(owner), []).append(record)


def _sorted(records: list[Record]) -> list[Record]:
    by_row = {id(record.data[ROW]): record for record in records}
    rows: list[Row] = in_order([record.data[ROW] for record in records])
    return [by_row[id(row)] for row in rows]


def _key(value: Any) -> str:
    """Return an id as text, whatever the dump has it as."""
    return value if isinstance(value, str) else "" if value is None else repr(value)


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


CLEARED_TEXT = "[Old tool result content cleared]"
"""What a model is shown in place of a result that was cleared."""

Map = Mapping[str, Any]


@value
class Told:
    """Something that happens in a message, and the parts of the message that tell it."""

    event: Event
    parts: tuple[int, ...] = ()


@value
class Message:
    """A message as a session holds it."""

    info: Map
    parts: Sequence[Any]

    @property
    def id(self) -> str:
        return storable_name(self.info.get("id"))

    @property
    def time(self) -> int | None:
        """When it was begun, in milliseconds since the epoch."""
        times = self.info.get("time")
        return time_of(times.get("created")) if isinstance(times, dict) else None


@value
class _Cleared:
    """A result that was cleared, and behind how many messages that was noticed; None while it is not yet."""

    when: int
    key: str
    message: int
    call: str


class Conversation:
    """One session: its messages in order, each told once, and then its end."""

    def __init__(self, info: Map, messages: Sequence[Message]) -> None:
        """Look at a session.

        Args:
            info: what is known of it.
            messages: all of them.
        """
        self._info = info
        self._messages = messages
        self._keys: list[list[str]] = [[] for _ in messages]
        self._used: set[str] = set()
        self._waiting: list[_Cleared] = []
        self._gone: list[tuple[int, _Cleared]] = []
        places = {message.id: n for n, message in enumerate(messages) if message.id}
        self._places = places
        # A summary, and the order to make it; those of old builds were made without one.
        self._order_of: dict[int, int | None] = {}
        for number, message in enumerate(messages):
            if message.info.get("summary") is True and message.info.get("role") == "assistant":
                order = places.get(storable_name(message.info.get("parentID")))
                asked = order is not None and order < number and _compaction(messages[order])
                whole = not message.info.get("error") and (message.info.get("finish") or not asked)
                if whole:
                    self._order_of[number] = order if asked else None
        self._orders = {order for order in self._order_of.values() if order is not None}

    def tell(self, number: int) -> list[Told]:
        """Return what happens in a message, in order; call it once for each, first to last."""
        message = self._messages[number]
        told = [Told(event) for event in self._clearings(number, message.time)]
        if number in self._orders:
            return told  # it is told with the summary
        steps = steps_of(message.info, message.parts)
        if number in self._order_of:
            return [*told, self._compaction(number, steps)]
        for index, step in enumerate(steps):
            told.append(Told(self._turn(number, index, step), step.parts))
        return told

    def end(self) -> list[Event]:
        """Return what happened behind the last message."""
        events: list[Event] = []
        revert = self._info.get("revert")
        at = None
        if isinstance(revert, dict):
            at = self._places.get(storable_name(revert.get("messageID")))
        if at is not None and isinstance(revert, dict):
            events += self._revert(at, revert.get("partID"))
        return [*events, *self._clearings(len(self._messages), None, since=at)]

    def _turn(self, number: int, index: int, step: Step) -> Turn:
        message = self._messages[number]
        name = message.id or f"message-{number + 1}"
        key = f"{name}/{index + 1}" if index else name
        if key in self._used:
            key = f"{key}~{number + 1}"
        self._used.add(key)
        self._keys[number].append(key)
        where = next((n for n, m in enumerate(step.messages) if m.role == "tool"), 0)
        for when, call in step.cleared:
            self._waiting.append(_Cleared(time_of(when) or 0, key, where, call))
        meta = {AGENTS_KEY: list(step.agents)} if step.agents else {}
        return Turn(step.messages, key, message.time, step.author, step.usage, meta=meta)

    def _compaction(self, number: int, steps: Sequence[Step]) -> Told:
        """Return the summary, with the order to make it, in place of all that is not told to stay."""
        message = self._messages[number]
        order = self._order_of[number]
        answers = [m for step in steps for m in step.messages if m.role == "assistant"]
        parts = tuple(part for message in answers for part in message.parts)
        said: list[PlannedMessage] = []
        keeps: tuple[str, ...] = ()
        if order is not None:
            asked = self._messages[order]
            said += [m for step in steps_of(asked.info, asked.parts) for m in step.messages]
            first = self._places.get(storable_name(_compaction(asked).get("tail_start_id")))
            tail = self._keys[first:order] if first is not None else []
            keeps = tuple(key for keys in tail for key in keys)
        author = storable_name(message.info.get("modelID"))
        if parts:
            said.append(PlannedMessage("assistant", parts, model=author))
        turn = self._turn(number, 0, steps[-1] if steps else Step())
        event = Compaction(tuple(said), turn.key, turn.time, author, turn.usage, keeps=keeps)
        return Told(event, tuple(n for step in steps for n in step.parts))

    def _clearings(
        self, number: int, until: int | None, *, since: int | None = None
    ) -> Iterator[Clearing]:
        """Yield what was cleared before a message began.

        Args:
            number: of the message.
            until: when it began; None is the end of the session, and of messages that do not tell.
            since: the message that a revert went back to: what was cleared behind it is to be cleared again.
        """
        last = number == len(self._messages)
        due: list[_Cleared] = []
        waiting: list[_Cleared] = []
        for each in self._waiting:
            now = last or (until is not None and each.when <= until)
            (due if now else waiting).append(each)
        self._waiting = waiting
        if since is not None:
            due = [*(c for n, c in self._gone if n >= since), *due]
        self._gone += [(number, c) for c in due]
        if due:
            calls: dict[tuple[str, int], list[str]] = {}
            for each in due:
                calls.setdefault((each.key, each.message), []).append(each.call)
            results = tuple((key, at, tuple(ids)) for (key, at), ids in calls.items())
            yield Clearing(results, CLEARED_TEXT, max(c.when for c in due) or None)

    def _revert(self, at: int, part: Any) -> Iterator[Event]:
        """Yield what takes out a message and all behind it, or what of it begins with a part."""
        message = self._messages[at]
        ids = [p.get("id") if isinstance(p, dict) else None for p in message.parts]
        cut = ids.index(part) if part is not None and part in ids else 0
        stays = steps_of(message.info, message.parts[:cut])
        whole = len(stays)
        if stays and stays[-1].parts != steps_of(message.info, message.parts)[whole - 1].parts:
            whole -= 1
        left = [*self._keys[at][whole:], *(key for keys in self._keys[at + 1 :] for key in keys)]
        if left:
            yield GoBack(left[0])
            for index, step in enumerate(stays[whole:], whole):
                yield self._turn(at, index, step)


def _compaction(message: Message) -> Map:
    """Return the part by which a message orders a summary; nothing when it does not."""
    if message.info.get("role") != "user":
        return {}
    found = (p for p in message.parts if isinstance(p, dict) and p.get("type") == "compaction")
    return next(found, {})
