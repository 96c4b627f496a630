"""Chats of Gemini CLI, record by record.

Records are told apart by their keys, in this order: `$rewindTo` takes a message and all behind it out; what has an `id`
is a message, which takes the place of an earlier one with the same id, since a message is written again whenever it has
grown; `$set` changes what is known of the session, and with `messages` all that was said; the rest is a header. A
document holds the same messages in a list.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from trace_store.importers.contract import AGENTS_KEY, PlannedMessage
from trace_store.importers.formats.gemini.messages import Said, what_is_said
from trace_store.importers.parts import storable_name, time_of
from trace_store.importers.turns import (
    Compaction,
    DocumentReader,
    Event,
    GoBack,
    Reported,
    Rewording,
    Turn,
)
from trace_store.objects.codec import encode
from trace_store.objects.content import bytes_of
from trace_store.objects.message import store_parts
from trace_store.oid import digest, hash_object
from trace_store.transcripts.records import Record

NAME = "gemini"


class Entry(NamedTuple):
    """A message of the chat as it is now.

    Attributes:
        id: by which the chat knows it.
        key: of its turn; empty while it says nothing.
        back: the key of the turn before which the talk goes on when the message is taken out.
        roles: of what it says.
        says: a hash of what it says.
        answers: ids of calls whose results it holds.
    """

    id: str
    key: str
    back: str
    roles: tuple[str, ...]
    says: str
    answers: tuple[str, ...]


class _Heard(NamedTuple):
    """A message as a record holds it."""

    id: str
    time: int | None
    said: Said


class GeminiReader(DocumentReader):
    """Reads one chat.

    Its state holds `order`, the messages that the chat has now, and `left`, ids of those that were taken out: what is
    said under one of these again needs another key.
    """

    AGENT = NAME
    LISTS = ("messages",)

    def begin(self, fields: Mapping[str, Any]) -> None:
        self._know(fields)

    def read(self, record: Record) -> Iterable[Event]:
        data = record.data
        if isinstance(data.get("$rewindTo"), str):
            yield from self._rewind(data["$rewindTo"])
        elif isinstance(data.get("id"), str):
            yield from self._message(data)
        elif isinstance(data.get("$set"), dict) or "sessionId" in data:
            change = data["$set"] if isinstance(data.get("$set"), dict) else data
            self._know(change)
            if isinstance(change.get("messages"), list):
                yield from self._replace_all(change["messages"])

    def label(self, record: Record) -> str:
        data = record.data
        for key in ("$rewindTo", "$set"):
            if key in data:
                return key
        return "header" if "id" not in data and "sessionId" in data else super().label(record)

    def _know(self, fields: Mapping[str, Any]) -> None:
        """Take the session's id; when something was said it stays as it is."""
        id_ = storable_name(fields.get("sessionId"))
        if not id_ or self._order() or self.state.get("left"):
            return
        # Only some chats of subagents tell whose they are; others are sessions of their own.
        parent = storable_name(fields.get("parentSessionId"))
        if fields.get("kind") == "subagent" and parent:
            self.state = {**self.state, "session": parent, "agent": id_}
        else:
            self.state = {**self.state, "session": id_}

    def _message(self, data: Mapping[str, Any]) -> Iterator[Event]:
        order = self._order()
        at = _place(order, data["id"])
        now = _heard(data, {id_ for n, each in enumerate(order) if n != at for id_ in each.answers})
        before = None if at is None or not order[at].key else order[at]
        if before is not None and not now.said.messages:
            return  # what it said is still there
        if before is not None and _goes_on(before.roles, now):
            after = before._replace(**_sayings(now.said))
            if after.says != before.says:
                yield _rewording(before, now)
            elif now.said.usage:
                yield Reported(now.said.usage, before.key)
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
        gone = order if at is None else order[at:]
        yield from _go_back(gone)
        self._leave(gone)
        self._keep([] if at is None else order[:at])

    def _replace_all(self, messages: Sequence[Any]) -> Iterator[Event]:
        """Bring the chat from what it was to a list of all its messages."""
        before = [entry for entry in self._order() if entry.key]
        heard = _all_heard(messages)
        spoken = [now for now in heard if now.said.messages]
        same = 0
        for entry, now in zip(before, spoken, strict=False):
            if entry.id != now.id or not _goes_on(entry.roles, now):
                break
            same += 1
        entries: dict[str, Entry] = {}
        for entry, now in zip(before[:same], spoken, strict=False):
            entries[now.id] = entry._replace(**_sayings(now.said))
            if entries[now.id].says != entry.says:
                yield _rewording(entry, now)
        gone, fresh = before[same:], spoken[same:]
        self._leave(gone)
        if gone and fresh and _is_summary(fresh, gone):
            summary, *fresh = fresh
            entry = entries[summary.id] = self._new(summary)._replace(back=gone[0].back)
            yield Compaction(
                summary.said.messages,
                entry.key,
                summary.time,
                summary.said.author,
                summary.said.usage,
                keeps=tuple(each.key for each in before[:same]),
            )
        else:
            yield from _go_back(gone)
        for now in fresh:
            entries[now.id] = self._new(now)
            yield _turn(now, entries[now.id].key)
        self._keep([entries.get(now.id) or self._new(now) for now in heard])

    def _new(self, now: _Heard) -> Entry:
        """Return the entry of a message that was not there before."""
        key = ""
        if now.said.messages:
            name = storable_name(now.id) or digest(bytes_of(now.id)).hex()[:16]
            again = self.state.get("left", ()).count(now.id)
            key = f"{name}~{again}" if again else name
        return Entry(now.id, key, key, **_sayings(now.said))

    def _order(self) -> list[Entry]:
        order: list[Any] = self.state.get("order", [])
        if order and not isinstance(order[0], Entry):
            # It was saved.
            order = [_entry(saved) for saved in order]
            self._keep(order)
        return order

    def _keep(self, order: list[Entry]) -> None:
        self.state = {**self.state, "order": order}

    def _leave(self, gone: Sequence[Entry]) -> None:
        ids = [entry.id for entry in gone if entry.key]
        if ids:
            self.state = {**self.state, "left": [*self.state.get("left", ()), *ids]}


def _place(order: Sequence[Entry], id_: str) -> int | None:
    """Return where a message is; the one that is written again is mostly the last."""
    for at in range(len(order) - 1, -1, -1):
        if order[at].id == id_:
            return at
    return None


def _heard(data: Mapping[str, Any], answered: Collection[str]) -> _Heard:
    return _Heard(data["id"], time_of(data.get("timestamp")), what_is_said(data, answered))


def _all_heard(messages: Sequence[Any]) -> list[_Heard]:
    """Return the messages of a list; of several with one id the last, where the first stood."""
    answered: set[str] = set()
    by_id = {m["id"]: m for m in messages if isinstance(m, dict) and isinstance(m.get("id"), str)}
    found = []
    for data in by_id.values():
        found.append(_heard(data, answered))
        answered.update(found[-1].said.answers)
    return found


def _turn(now: _Heard, key: str) -> Turn:
    said = now.said
    meta = {AGENTS_KEY: list(said.agents)} if said.agents else {}
    return Turn(said.messages, key, now.time, said.author, said.usage, meta=meta)


def _rewording(before: Entry, now: _Heard) -> Rewording:
    """Return a message again, with empty ones in place of what it says no more."""
    messages = now.said.messages
    lost = (PlannedMessage(role, ()) for role in before.roles[len(messages) :])
    return Rewording(before.key, (*messages, *lost), now.time, now.said.usage)


def _is_summary(fresh: Sequence[_Heard], gone: Sequence[Entry]) -> bool:
    """Tell whether something new stands where messages were that are no more."""
    known = {entry.id for entry in gone}
    return fresh[0].id not in known and not known <= {now.id for now in fresh}


def _go_back(gone: Sequence[Entry]) -> Iterator[GoBack]:
    """Yield what takes out messages, up to the end."""
    first = next((entry for entry in gone if entry.key), None)
    if first is not None:
        yield GoBack(first.back)


def _goes_on(roles: Sequence[str], now: _Heard) -> bool:
    """Tell whether a message can be the wording of one that spoke in these roles."""
    theirs = [message.role for message in now.said.messages]
    size = min(len(theirs), len(roles))
    return bool(theirs) and theirs[:size] == list(roles[:size])


def _sayings(said: Said) -> dict[str, Any]:
    stored = [[m.role, m.model, store_parts(m.parts, hash_object)] for m in said.messages]
    return {
        "roles": tuple(message.role for message in said.messages),
        "says": digest(encode(stored)).hex()[:32],
        "answers": said.answers,
    }


def _entry(saved: Sequence[Any]) -> Entry:
    id_, key, back, roles, says, answers = saved
    return Entry(id_, key, back, tuple(roles), says, tuple(answers))
