"""The plan of a transcript that is read message by message.

Rule: numbers and ids only, no content, so that all of it can be saved.

Rule: a function of the file's bytes alone. A round is an API message, the results of its calls, and the records about
them; it leaves when something else is said, so what is planned never changes, except for the unfinished end. A grown
file is read on from where its last round began.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from trace_store.frozen import field, mutable, value
from trace_store.importers.contract import (
    EVENT,
    MESSAGE,
    NO_MESSAGES,
    SOURCE,
    UNREADABLE,
    Count,
    Place,
    Planned,
    PlannedCommit,
    PlannedMessage,
    PlannedThread,
    Resumption,
    Skip,
)
from trace_store.importers.decode import Line
from trace_store.importers.names import ref_component, short_id
from trace_store.importers.parts import author_of
from trace_store.importers.turns import (
    Clearing,
    Compaction,
    Event,
    GoBack,
    Reported,
    Rewording,
    Switch,
    Turn,
    TurnReader,
    all_parts,
    joined,
)
from trace_store.oid import digest
from trace_store.transcripts.records import Record


class Row(NamedTuple):
    """A planned commit; a tuple, since there are as many as commits, and all are saved each time.

    Attributes:
        line: of which line of work.
        parent: the number of the commit whose context it continues.
        messages: how many it adds.
        resets: whether the context before it is gone.
        key: what it is known by.
        kept: the commits whose messages stayed when it reset the context, in order.
    """

    line: int
    parent: int | None
    messages: int
    resets: bool
    key: str
    kept: tuple[int, ...] = ()


@mutable
class LineOfWork:
    """The session itself, a branch of it, or what a rewind left.

    Attributes:
        name: of its branch below the session's.
        tip: its last commit, or the one it branched from, or None.
        fresh: whether its next commit takes the context so far out.
        time: of the last turn that had one.
    """

    name: str = ""
    tip: int | None = None
    fresh: bool = False
    time: int = 0


@value
class Mark:
    """A state of the table that it can still be saved as: rows are only added, the rest is by value."""

    rows: int
    lines: tuple[tuple[Any, ...], ...]
    live: int


class TurnTable:
    """The commits of a plan, by number.

    Attributes:
        rows: the commits.
        keys: their numbers by key.
        lines: the lines of work.
        live: in which one the talk is.
    """

    __slots__ = ("_again", "_marked", "_named", "keys", "lines", "live", "rows")

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.keys: dict[str, int] = {}
        self.lines = [LineOfWork()]
        self.live = 0
        self._again: dict[str, int] = {}
        self._marked = 0
        self._named: dict[str, int] | None = None

    def add(
        self, key: str, messages: int, *, resets: bool, kept: tuple[int, ...] = ()
    ) -> tuple[int, Row]:
        """Add a commit at the end of the live line, and return its number and row."""
        line, number = self.lines[self.live], len(self.rows)
        key = self._unique(key or f"turn-{number}")
        row = Row(self.live, line.tip, messages, resets, key, kept)
        self.rows.append(row)
        self.keys[row.key] = number
        line.tip, line.fresh = number, False
        return number, row

    def begin_line(self, name: str, tip: int | None, *, fresh: bool) -> int:
        """Begin a line of work, in which the talk goes on, and return its index."""
        self.lines.append(LineOfWork(name, tip, fresh, self.lines[self.live].time))
        self.live = len(self.lines) - 1
        if self._named is not None:
            self._named[name] = self.live
        return self.live

    def line_named(self, name: str) -> int | None:
        """Return the line with a name, or None."""
        if self._named is None:
            self._named = {line.name: index for index, line in enumerate(self.lines)}
        return self._named.get(name)

    def line_with_words(self) -> int | None:
        """Return a line in which something was said, the live one if it can be, or None."""
        order = [self.live, *reversed(range(len(self.lines)))]
        said = (i for i in order if self.lines[i].tip is not None and not self.lines[i].fresh)
        return next(said, None)

    def context(self) -> tuple[Place, ...]:
        """Return the messages of the live line's context, in order."""
        found: list[list[Place]] = []
        tip = self.lines[self.live].tip
        while tip is not None:
            row = self.rows[tip]
            found.append(self._places(tip))
            if row.resets:
                found += [self._places(number) for number in reversed(row.kept)]
            tip = None if row.resets else row.parent
        return tuple(place for places in reversed(found) for place in places)

    def _places(self, number: int) -> list[Place]:
        return [(number, index) for index in range(self.rows[number].messages)]

    def behind(self, key: str) -> int | None:
        """Return the commit with a key when it lies on the live line, or None."""
        number = self.keys.get(key)
        return number if number is not None and number in self._chain() else None

    def first_after(self, base: int | None) -> int | None:
        """Return the oldest commit of the live line behind another one, or behind its beginning."""
        left = None
        for number in self._chain():
            if number == base:
                break
            left = number
        return left

    def free_name(self, folder: str, *ids: str) -> str:
        """Return the first of the ids whose name under the folder is free, for a line to be called by it."""
        self._named = None
        taken = {line.name.lower() for line in self.lines}
        names = [f"{folder}/{candidate}" for candidate in ids]
        free = next((name for name in names if name.lower() not in taken), "")
        return free or self.free_name(folder, *(f"{candidate}-2" for candidate in ids))

    def is_worth_a_mark(self) -> bool:
        """Tell whether enough was added since the last mark: one costs as much as there are lines of work."""
        return len(self.rows) - self._marked >= len(self.lines) // 16

    def mark(self) -> Mark:
        """Return the state as it is now, to be saved later."""
        self._marked = len(self.rows)
        lines = tuple((line.name, line.tip, line.fresh, line.time) for line in self.lines)
        return Mark(len(self.rows), lines, self.live)

    def save(self, mark: Mark) -> dict[str, Any]:
        """Return the state at a mark as values that JSON knows."""
        return {"rows": self.rows[: mark.rows], "lines": mark.lines, "live": mark.live}

    @classmethod
    def load(cls, saved: Any) -> TurnTable:
        """Return what was saved.

        Raises:
            KeyError, TypeError, ValueError: it was not saved by this version.
        """
        table = cls()
        table.rows = [
            Row(line, parent, messages, resets, key, tuple(kept))
            for line, parent, messages, resets, key, kept in saved["rows"]
        ]
        table.keys = {row.key: number for number, row in enumerate(table.rows)}
        table.lines = [LineOfWork(*line) for line in saved["lines"]]
        table.live = saved["live"]
        return table

    def _chain(self) -> Iterator[int]:
        tip = self.lines[self.live].tip
        while tip is not None:
            yield tip
            tip = self.rows[tip].parent

    def _unique(self, key: str) -> str:
        unique = key
        while unique in self.keys:
            self._again[key] = self._again.get(key, 1) + 1
            unique = f"{key}#{self._again[key]}"
        return unique


MAXIMUM_OPEN_PARTS = 4096
"""Parts that may wait for the end of their round; past it the round ends, so that memory and commits stay bounded."""

_SAYING = (Turn, Compaction, Rewording)
_Begun = tuple[dict[str, Any], tuple[int, int]]
"""What the reader knew before a line, and the line's offset and number."""


@mutable
class _Open:
    """A commit to be, whose round is not over."""

    turn: Turn
    key: str
    records: list[Record] = field(default_factory=list)


class TurnPlan:
    """Makes planned commits of what a reader says; see `contract.Plan`."""

    def __init__(self, reader: TurnReader) -> None:
        """Begin a plan."""
        self._reader = reader
        self._table = TurnTable()
        self._open: dict[str, _Open] = {}
        self._waiting: list[Record] = []
        self._begun: int | None = None  # the line that began when the talk went back last
        self._counts: Counter[Count] = Counter()
        self._skips: list[Skip] = []
        # The last line that began between two rounds: what reader and table knew there, and where it is.
        self._quiet: tuple[dict[str, Any], Mark, tuple[int, int]] | None = None

    @classmethod
    def load(cls, reader: TurnReader, saved: Any) -> TurnPlan:
        """Return a plan that goes on where a saved one was.

        Raises:
            KeyError, TypeError, ValueError: it was not saved by this version.
        """
        plan = cls(reader)
        if saved is None:
            return plan
        reader.state = dict(saved["reader"])
        plan._table = TurnTable.load(saved["table"])
        plan._quiet = (saved["reader"], plan._table.mark(), (saved["at"][0], saved["at"][1]))
        return plan

    def save(self) -> Any:
        if self._quiet is None:
            return None
        reader, mark, at = self._quiet
        return {"reader": reader, "table": self._table.save(mark), "at": list(at)}

    def resumes_at(self) -> Resumption | None:
        if self._quiet is None:
            return Resumption(0, 1, 0)
        _, mark, (offset, line) = self._quiet
        return Resumption(offset, line, mark.rows)

    @property
    def session(self) -> str:
        return ref_component(self._reader.session or self._reader.name)

    @property
    def agent(self) -> str:
        return ref_component(self._reader.agent) if self._reader.agent else ""

    def counts(self) -> Mapping[Count, int]:
        return self._counts

    def skips(self) -> Sequence[Skip]:
        return self._skips

    def feed(self, line: Line) -> Iterable[Planned]:
        begun = (dict(self._reader.state), (line.offset, line.number))
        records = self._reader.records(line)
        if type(records) is tuple and len(records) == 1 and type(records[0]) is Record:
            return self._take(records[0], begun)
        return self._take_each(records, begun)

    def _take_each(self, found: Iterable[Record | Skip], begun: _Begun | None) -> Iterator[Planned]:
        for record in found:
            if isinstance(record, Skip):
                self._skips.append(record)
                self._counts[UNREADABLE, record.reason] += 1
            else:
                yield from self._take(record, begun)
                begun = None

    def finish(self) -> Iterator[Planned]:
        for event in self._reader.finish():
            yield from self._happen(event, None)
        yield from self._close()
        if not self._waiting:
            yield from self._settle()
            return
        line = self._table.line_with_words()
        if line is not None:
            self._table.live = line
            records, self._waiting = tuple(self._waiting), []
            yield self._commit(Turn((), key=_record_key(records[0])), records, {})
            return
        for record in self._waiting:
            name = self._reader.label(record)
            self._counts[name, SOURCE] -= 1
            self._counts[name, NO_MESSAGES] += 1
            self._skips.append(Skip(record.line, NO_MESSAGES, name))
        self._counts = +self._counts

    def _take(self, record: Record, begun: _Begun | None) -> Sequence[Planned]:
        """Return what a record makes final; the first of a line comes with what was known before the line."""
        reader = self._reader
        events = reader.read(record)
        if type(events) is not tuple and type(events) is not list:
            events = list(events)
        self._counts[reader.label(record), _outcome(events)] += 1
        final: list[Planned] = []
        if self._open and any(map(self._ends_round, events)):
            final += self._close()
            # A line is read whole or not at all, so a file is read on from the beginning of one.
            if begun is not None and not self._waiting and self._table.is_worth_a_mark():
                self._quiet = (begun[0], self._table.mark(), begun[1])
        if len(events) == 1 and type(events[0]) is Turn:
            self._say(events[0], record)  # as most are
            return final
        carried = False
        for event in events:
            takes = isinstance(event, _SAYING)
            final += self._happen(event, record if takes and not carried else None)
            carried = carried or takes
        if not carried:
            self._carry(record)
        return final

    def _carry(self, record: Record) -> None:
        """Keep a record in which nothing is said with what was said last, or with what is said next."""
        record.parts = ()
        if self._open:
            next(reversed(self._open.values())).records.append(record)
        else:
            self._waiting.append(record)

    def _ends_round(self, event: Event) -> bool:
        if not self._open or isinstance(event, Reported):
            return False
        if isinstance(event, Rewording):
            return self._open_with(event.key) is None
        if not isinstance(event, Turn):
            return True
        if event.group and event.group in self._open:
            return sum([len(o.records) for o in self._open.values()]) > MAXIMUM_OPEN_PARTS
        # Results belong to the round of their calls.
        return not (event.messages and event.messages[0].role == "tool")

    def _happen(self, event: Event, record: Record | None) -> Sequence[Planned]:
        final = self._close() if self._ends_round(event) else []
        if isinstance(event, Turn):
            self._say(event, record)
        elif isinstance(event, Reported):
            self._report(event)
        else:
            final += self._turn_aside(event, record)
        return final

    def _turn_aside(self, event: Event, record: Record | None) -> Iterator[Planned]:
        """Yield what an event makes final that is rarer than that something is said."""
        if isinstance(event, Compaction):
            yield self._compact(event, record)
        elif isinstance(event, Rewording):
            yield from self._reword(event, record)
        elif isinstance(event, Clearing):
            yield from self._clear(event)
        elif isinstance(event, GoBack):
            yield from self._go_back(event)
        elif isinstance(event, Switch):
            yield from self._switch(event)

    def _say(self, turn: Turn, record: Record | None) -> None:
        records = self._with(record, turn.messages)
        found = self._open.get(turn.group) if turn.group else None
        if found is not None:
            found.turn = joined(found.turn, turn)
            found.records += records
            return
        key = turn.key or (_record_key(record) if record is not None else "")
        self._open[turn.group or f"\0{len(self._open)}"] = _Open(turn, key, list(records))

    def _with(
        self, record: Record | None, messages: Sequence[PlannedMessage]
    ) -> tuple[Record, ...]:
        """Return a record and those that waited for it, with the parts that it added."""
        waiting, self._waiting = self._waiting, []
        if record is None:
            return tuple(waiting)
        record.parts = all_parts(messages)
        return (*waiting, record)

    def _report(self, event: Reported) -> None:
        for found in self._open.values():
            last = found.turn.messages[-1].role if found.turn.messages else ""
            if found.key == event.key if event.key else last == "assistant":
                found.turn = found.turn._replace(usage=event.usage)
                return

    def _compact(self, event: Compaction, record: Record | None) -> PlannedCommit:
        table = self._table
        stays = {table.keys[key] for key in event.keeps if key in table.keys}
        context = () if table.lines[table.live].fresh else table.context()
        kept = tuple(dict.fromkeys(number for number, _ in context if number in stays))
        gone = tuple(place for place in context if place[0] not in stays)
        more: dict[str, Any] = {}
        if gone or not kept:
            more = {"replaces": gone, "reason": event.reason}
            if event.last and kept:
                more["after"] = next(place for place in reversed(context) if place[0] in stays)
        turn = Turn(event.messages, event.key, event.time, event.author, event.usage)
        return self._commit(turn, self._with(record, event.messages), more, kept)

    def _open_with(self, key: str) -> _Open | None:
        return next((found for found in self._open.values() if found.key == key), None)

    def _reword(self, event: Rewording, record: Record | None) -> Iterator[Planned]:
        found = self._open_with(event.key)
        if found is not None:
            usage = event.usage or found.turn.usage
            found.turn = found.turn._replace(messages=event.messages, usage=usage)
            found.records += self._with(record, event.messages)
            for each in found.records:
                # What earlier records said is not kept twice where they say it still.
                if each.parts:
                    each.parts = all_parts(event.messages)
            return
        number = self._table.behind(event.key)
        if number is None:
            if record is not None:
                self._carry(record)
            return
        known = self._table.rows[number].messages
        edits = tuple(
            ((number, index), message.parts) for index, message in enumerate(event.messages[:known])
        )
        more = event.messages[known:]
        records = self._with(record, more)
        key = f"{event.key}~{_record_key(record)}" if record is not None else f"{event.key}~"
        yield self._commit(Turn(more, key=key, time=event.time), records, {"edits": edits})

    def _clear(self, event: Clearing) -> Iterator[Planned]:
        table = self._table
        shown = () if table.lines[table.live].fresh else table.context()
        places = [(table.keys.get(key, -1), index) for key, index, _ in event.results]
        there = frozenset(shown).intersection(places)
        clears = tuple(
            (place, calls)
            for place, (_, _, calls) in zip(places, event.results, strict=True)
            if place in there
        )
        if clears:
            turn = Turn((), key=f"{event.results[0][0]}~cleared", time=event.time)
            more = {"clears": clears, "placeholder": event.placeholder}
            yield self._commit(turn, self._with(None, ()), more)

    def _go_back(self, event: GoBack) -> Iterator[Planned]:
        table = self._table
        base = None
        if event.key is not None:
            number = table.behind(event.key)
            if number is None:
                return
            base = table.rows[number].parent
        left = table.first_after(base)
        if left is None:
            return
        abandoned, line = table.live, table.lines[table.live]
        key = table.rows[left].key
        folder = f"{line.name}/rewinds" if line.name else "rewinds"
        name = line.name
        line.name = table.free_name(folder, short_id(key), ref_component(key))
        yield PlannedThread(abandoned, line.name)
        self._begun = table.begin_line(name, base, fresh=line.fresh)
        yield PlannedThread(self._begun, name)

    def _settle(self) -> Iterator[Planned]:
        """Yield a commit without words where nothing was said since the talk went back: the branch ends there."""
        table = self._table
        tip = table.lines[table.live].tip
        if table.live == self._begun and tip is not None and table.rows[tip].line != self._begun:
            yield self._commit(Turn(()), (), {})

    def _switch(self, event: Switch) -> Iterator[Planned]:
        yield from self._settle()
        table = self._table
        known = table.line_named(event.name)
        if known is not None:
            table.live = known
            return
        at = None if event.at is None else table.keys.get(event.at)
        index = table.begin_line(event.name, at, fresh=event.fresh and at is not None)
        yield PlannedThread(index, event.name)

    def _close(self) -> list[Planned]:
        """Return the commits of the round, and begin a new one."""
        closing, self._open = self._open, {}
        return [self._commit(o.turn, tuple(o.records), {}, key=o.key) for o in closing.values()]

    def _commit(
        self,
        turn: Turn,
        records: tuple[Record, ...],
        more: Mapping[str, Any],
        kept: tuple[int, ...] = (),
        *,
        key: str = "",
    ) -> PlannedCommit:
        table = self._table
        line = table.lines[table.live]
        if turn.time is not None:
            line.time = turn.time
        removes = table.context() if line.fresh else ()
        resets = line.fresh or "replaces" in more
        number, row = table.add(key or turn.key, len(turn.messages), resets=resets, kept=kept)
        return PlannedCommit(
            number=number,
            key=row.key,
            thread=row.line,
            parent=row.parent,
            author=author_of(self._reader.AGENT, turn.author),
            time=line.time,
            removes=removes,
            messages=turn.messages,
            tools=turn.tools,
            usage=turn.usage,
            meta=turn.meta,
            links=turn.links,
            records=records,
            **more,
        )


def _outcome(events: Sequence[Event]) -> str:
    """Return what became of a record that means these events."""
    outcome = SOURCE
    for event in events:
        if isinstance(event, _SAYING):
            if event.messages or not isinstance(event, Turn):
                return MESSAGE
            outcome = EVENT
    return outcome


def _record_key(record: Record) -> str:
    return digest(record.raw).hex()[:16]
