"""What happens in one session of opencode, message by message.

Rule: pure. A session shows how it is now, so what happened to it since is put back where it belongs in time: results
that were cleared stay as they were until then, and a revert is the last thing that happens.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trace_store.importers.contract import AGENTS_KEY, PlannedMessage
from trace_store.importers.formats.opencode.saying import Step, steps_of
from trace_store.importers.normalise import storable_name, time_of
from trace_store.importers.turns import Clearing, Compaction, Event, GoBack, Turn
from trace_store.values import value

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
