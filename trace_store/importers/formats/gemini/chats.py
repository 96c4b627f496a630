"""Reader of Gemini CLI chats.

Records are distinguished by key, in this order: `$rewindTo` removes a message and all later ones; a record with an
`id` is a message and replaces an earlier one with this id, since a message is rewritten as it grows; `$set` changes
facts of the session, with `messages` the whole chat; anything else is a header. A document has the same messages in
a list.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from trace_store.importers.contract import AGENTS_KEY, PlannedMessage
from trace_store.importers.formats.gemini.messages import ParsedContent, parse_content
from trace_store.importers.parts import storable_name, time_of
from trace_store.importers.turns import (
    Compaction,
    DocumentReader,
    Event,
    Rewind,
    Turn,
    TurnEdit,
    UsageReport,
)
from trace_store.objects.codec import encode
from trace_store.objects.content import bytes_of
from trace_store.objects.message import store_parts
from trace_store.oid import digest, hash_object
from trace_store.transcripts.records import Record

NAME = "gemini"


class ChatEntry(NamedTuple):
    """A message in the current chat.

    Attributes:
        id: its id in the chat.
        key: key of its turn; "" while it is empty.
        back: key of the turn to rewind to when the message is removed.
        roles: roles of its messages.
        says: hash of its content.
        answers: ids of calls whose results it holds.
    """

    id: str
    key: str
    back: str
    roles: tuple[str, ...]
    says: str
    answers: tuple[str, ...]


class _ParsedMessage(NamedTuple):
    """A message as parsed from a record."""

    id: str
    time: int | None
    said: ParsedContent


class GeminiReader(DocumentReader):
    """Reader of one chat.

    State: `order`, the messages of the current chat; `left`, ids of removed ones, whose reuse needs another key.
    """

    AGENT = NAME
    LISTS = ("messages",)

    def begin(self, fields: Mapping[str, Any]) -> None:
        self._read_session(fields)

    def read(self, record: Record) -> Iterable[Event]:
        data = record.data
        if isinstance(data.get("$rewindTo"), str):
            yield from self._rewind(data["$rewindTo"])
        elif isinstance(data.get("id"), str):
            yield from self._message(data)
        elif isinstance(data.get("$set"), dict) or "sessionId" in data:
            change = data["$set"] if isinstance(data.get("$set"), dict) else data
            self._read_session(change)
            if isinstance(change.get("messages"), list):
                yield from self._replace_all(change["messages"])

    def label(self, record: Record) -> str:
        data = record.data
        for key in ("$rewindTo", "$set"):
            if key in data:
                return key
        return "header" if "id" not in data and "sessionId" in data else super().label(record)

    def _read_session(self, fields: Mapping[str, Any]) -> None:
        """Read the session id, unless there are messages already."""
        id_ = storable_name(fields.get("sessionId"))
        if not id_ or self._order() or self.state.get("left"):
            return
        # Some subagent chats do not name their parent and become sessions of their own.
        parent = storable_name(fields.get("parentSessionId"))
        if fields.get("kind") == "subagent" and parent:
            self.state = {**self.state, "session": parent, "agent": id_}
        else:
            self.state = {**self.state, "session": id_}

    def _message(self, data: Mapping[str, Any]) -> Iterator[Event]:
        order = self._order()
        at = _place(order, data["id"])
        now = _parse(data, {id_ for n, each in enumerate(order) if n != at for id_ in each.answers})
        before = None if at is None or not order[at].key else order[at]
        if before is not None and not now.said.messages:
            return  # its earlier content stays
        if before is not None and _can_update(before.roles, now):
            after = before._replace(**_content_fields(now.said))
            if after.says != before.says:
                yield _edit_of(before, now)
            elif now.said.usage:
                yield UsageReport(now.said.usage, before.key)
        else:
            if before is not None:
                self._leave([before])
            after = self._new(now)
            if after.key:
                yield _turn(now, after.key)
        self._keep([*order, after] if at is None else [*order[:at], after, *order[at + 1 :]])

    def _rewind(self, id_: str) -> Iterator[Event]:
        order = self._order()
        at = _place(order, id_)
        removed = order if at is None else order[at:]
        yield from _rewinds(removed)
        self._leave(removed)
        self._keep([] if at is None else order[:at])

    def _replace_all(self, messages: Sequence[Any]) -> Iterator[Event]:
        """Change the chat to a list of all its messages."""
        before = [entry for entry in self._order() if entry.key]
        parsed = _parse_all(messages)
        spoken = [now for now in parsed if now.said.messages]
        same = 0
        for entry, now in zip(before, spoken, strict=False):
            if entry.id != now.id or not _can_update(entry.roles, now):
                break
            same += 1
        entries: dict[str, ChatEntry] = {}
        for entry, now in zip(before[:same], spoken, strict=False):
            entries[now.id] = entry._replace(**_content_fields(now.said))
            if entries[now.id].says != entry.says:
                yield _edit_of(entry, now)
        removed, fresh = before[same:], spoken[same:]
        self._leave(removed)
        if removed and fresh and _is_summary(fresh, removed):
            summary, *fresh = fresh
            entry = entries[summary.id] = self._new(summary)._replace(back=removed[0].back)
            yield Compaction(
                summary.said.messages,
                entry.key,
                summary.time,
                summary.said.author,
                summary.said.usage,
                keeps=tuple(each.key for each in before[:same]),
            )
        else:
            yield from _rewinds(removed)
        for now in fresh:
            entries[now.id] = self._new(now)
            yield _turn(now, entries[now.id].key)
        self._keep([entries.get(now.id) or self._new(now) for now in parsed])

    def _new(self, now: _ParsedMessage) -> ChatEntry:
        """Return the entry of a new message."""
        key = ""
        if now.said.messages:
            name = storable_name(now.id) or digest(bytes_of(now.id)).hex()[:16]
            again = self.state.get("left", ()).count(now.id)
            key = f"{name}~{again}" if again else name
        return ChatEntry(now.id, key, key, **_content_fields(now.said))

    def _order(self) -> list[ChatEntry]:
        order: list[Any] = self.state.get("order", [])
        if order and not isinstance(order[0], ChatEntry):
            # Loaded from saved state.
            order = [_entry(saved) for saved in order]
            self._keep(order)
        return order

    def _keep(self, order: list[ChatEntry]) -> None:
        self.state = {**self.state, "order": order}

    def _leave(self, removed: Sequence[ChatEntry]) -> None:
        ids = [entry.id for entry in removed if entry.key]
        if ids:
            self.state = {**self.state, "left": [*self.state.get("left", ()), *ids]}


def _place(order: Sequence[ChatEntry], id_: str) -> int | None:
    """Return the index of a message, searching from the end."""
    for at in range(len(order) - 1, -1, -1):
        if order[at].id == id_:
            return at
    return None


def _parse(data: Mapping[str, Any], answered: Collection[str]) -> _ParsedMessage:
    return _ParsedMessage(data["id"], time_of(data.get("timestamp")), parse_content(data, answered))


def _parse_all(messages: Sequence[Any]) -> list[_ParsedMessage]:
    """Return the messages of a list; of duplicates the last, at the first one's place."""
    answered: set[str] = set()
    by_id = {m["id"]: m for m in messages if isinstance(m, dict) and isinstance(m.get("id"), str)}
    messages = []
    for data in by_id.values():
        messages.append(_parse(data, answered))
        answered.update(messages[-1].said.answers)
    return messages


def _turn(now: _ParsedMessage, key: str) -> Turn:
    said = now.said
    meta = {AGENTS_KEY: list(said.agents)} if said.agents else {}
    return Turn(said.messages, key, now.time, said.author, said.usage, meta=meta)


def _edit_of(before: ChatEntry, now: _ParsedMessage) -> TurnEdit:
    """Return a new version of a message, with empty messages for lost ones."""
    messages = now.said.messages
    lost = (PlannedMessage(role, ()) for role in before.roles[len(messages) :])
    return TurnEdit(before.key, (*messages, *lost), now.time, now.said.usage)


def _is_summary(fresh: Sequence[_ParsedMessage], removed: Sequence[ChatEntry]) -> bool:
    """Return True if a new message replaces removed ones."""
    known = {entry.id for entry in removed}
    return fresh[0].id not in known and not known <= {now.id for now in fresh}


def _rewinds(removed: Sequence[ChatEntry]) -> Iterator[Rewind]:
    """Yield the rewind that removes messages up to the end."""
    first = next((entry for entry in removed if entry.key), None)
    if first is not None:
        yield Rewind(first.back)


def _can_update(roles: Sequence[str], now: _ParsedMessage) -> bool:
    """Return True if a message can be a new version of one with these roles."""
    theirs = [message.role for message in now.said.messages]
    size = min(len(theirs), len(roles))
    return bool(theirs) and theirs[:size] == list(roles[:size])


def _content_fields(said: ParsedContent) -> dict[str, Any]:
    stored = [[m.role, m.model, store_parts(m.parts, hash_object)] for m in said.messages]
    return {
        "roles": tuple(message.role for message in said.messages),
        "says": digest(encode(stored)).hex()[:32],
        "answers": said.answers,
    }


def _entry(saved: Sequence[Any]) -> ChatEntry:
    id_, key, back, roles, says, answers = saved
    return ChatEntry(id_, key, back, tuple(roles), says, tuple(answers))
