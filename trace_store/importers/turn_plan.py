"""Planner of sequential transcripts, and the formats that use it.

Invariant: the saved state is numbers and ids only, no content. The plan depends only on the file. A round is an API
message, the results of its calls, and records about them. It is final once something else is said, so only the
unfinished end changes. A grown file is resumed at the start of its last round.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from trace_store.base.environment import Environment
from trace_store.base.frozen import field, mutable, value
from trace_store.base.oid import digest
from trace_store.disk.files import Disk
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
from trace_store.importers.convert import author_of, ref_component, short_id
from trace_store.importers.input_files import Inner, InputLine, ReadAt
from trace_store.importers.turns import (
    Compaction,
    Event,
    ResultClearing,
    Return,
    Rewind,
    Switch,
    Turn,
    TurnEdit,
    TurnReader,
    UsageReport,
    all_parts,
    join_turns,
)
from trace_store.transcripts.sources import Record


class Row(NamedTuple):
    """A planned commit; a tuple, since there are many and all are saved each time.

    Attributes:
        line: index of its line of work.
        parent: number of the parent commit.
        messages: number of messages that it adds.
        resets: True if it drops the context before it.
        key: its key.
        kept: commits whose messages stay when the context is reset, in order.
    """

    line: int
    parent: int | None
    messages: int
    resets: bool
    key: str
    kept: tuple[int, ...] = ()


@mutable
class LineOfWork:
    """The session, a branch of it, or what a rewind left.

    Attributes:
        name: name of its branch below the session's.
        tip: its last commit, or the one it branched from, or None.
        fresh: True if its next commit removes the context so far.
        time: time of the last turn that had one.
    """

    name: str = ""
    tip: int | None = None
    fresh: bool = False
    time: int = 0


@value
class TableMark:
    """A state of the table to save; rows are append-only, so their number is enough."""

    rows: int
    lines: tuple[tuple[Any, ...], ...]
    live: int


class TurnTable:
    """The commits of a plan.

    Attributes:
        rows: commits by number.
        keys: commit numbers by key.
        lines: lines of work.
        live: index of the current line.
    """

    __slots__ = ("_duplicates", "_marked", "_named", "keys", "lines", "live", "rows")

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.keys: dict[str, int] = {}
        self.lines = [LineOfWork()]
        self.live = 0
        self._duplicates: dict[str, int] = {}
        self._marked = 0
        self._named: dict[str, int] | None = None

    def add(
        self, key: str, messages: int, *, resets: bool, kept: tuple[int, ...] = ()
    ) -> tuple[int, Row]:
        """Append a commit to the current line; return its number and row."""
        line, number = self.lines[self.live], len(self.rows)
        key = self._unique(key or f"turn-{number}")
        row = Row(self.live, line.tip, messages, resets, key, kept)
        self.rows.append(row)
        self.keys[row.key] = number
        line.tip, line.fresh = number, False
        return number, row

    def begin_line(self, name: str, tip: int | None, *, fresh: bool) -> int:
        """Start a line of work and make it current; return its index."""
        self.lines.append(LineOfWork(name, tip, fresh, self.lines[self.live].time))
        self.live = len(self.lines) - 1
        if self._named is not None:
            self._named[name] = self.live
        return self.live

    def line_named(self, name: str) -> int | None:
        """Return the index of the line with a name, or None."""
        if self._named is None:
            self._named = {line.name: index for index, line in enumerate(self.lines)}
        return self._named.get(name)

    def line_with_messages(self) -> int | None:
        """Return a line that has messages, preferably the current one, or None."""
        order = [self.live, *reversed(range(len(self.lines)))]
        lines = (i for i in order if self.lines[i].tip is not None and not self.lines[i].fresh)
        return next(lines, None)

    def context(self) -> tuple[Place, ...]:
        """Return the messages of the current context, in order."""
        groups: list[list[Place]] = []
        tip = self.lines[self.live].tip
        while tip is not None:
            row = self.rows[tip]
            groups.append(self._places(tip))
            if row.resets:
                groups += [self._places(number) for number in reversed(row.kept)]
            tip = None if row.resets else row.parent
        return tuple(place for places in reversed(groups) for place in places)

    def _places(self, number: int) -> list[Place]:
        return [(number, index) for index in range(self.rows[number].messages)]

    def on_current_line(self, key: str) -> int | None:
        """Return the number of a commit by key if it is on the current line, or None."""
        number = self.keys.get(key)
        return number if number is not None and number in self._chain() else None

    def first_after(self, base: int | None) -> int | None:
        """Return the oldest commit of the current line after `base`, or None."""
        left = None
        for number in self._chain():
            if number == base:
                break
            left = number
        return left

    def shared_with(self, number: int | None) -> int | None:
        """Return the last commit that a commit's history shares with the current line, or None."""
        line = set(self._chain())
        while number is not None and number not in line:
            number = self.rows[number].parent
        return number

    def free_name(self, folder: str, *ids: str) -> str:
        """Return an unused line name in a folder, from candidate ids."""
        self._named = None
        taken = {line.name.lower() for line in self.lines}
        names = [f"{folder}/{candidate}" for candidate in ids]
        free = next((name for name in names if name.lower() not in taken), "")
        return free or self.free_name(folder, *(f"{candidate}-2" for candidate in ids))

    def should_mark(self) -> bool:
        """Return True if enough rows were added to justify the cost of a mark."""
        return len(self.rows) - self._marked >= len(self.lines) // 16

    def mark(self) -> TableMark:
        """Return the current state, to be saved later."""
        self._marked = len(self.rows)
        lines = tuple((line.name, line.tip, line.fresh, line.time) for line in self.lines)
        return TableMark(len(self.rows), lines, self.live)

    def save(self, mark: TableMark) -> dict[str, Any]:
        """Return the state at a mark as JSON values."""
        return {"rows": self.rows[: mark.rows], "lines": mark.lines, "live": mark.live}

    @classmethod
    def load(cls, saved: Any) -> TurnTable:
        """Return the saved table.

        Raises:
            KeyError, TypeError, ValueError: the state is from another version.
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
            self._duplicates[key] = self._duplicates.get(key, 1) + 1
            unique = f"{key}#{self._duplicates[key]}"
        return unique


MAXIMUM_OPEN_PARTS = 4096
"""Records per round; more end it, so that memory and commits stay bounded."""

_MESSAGE_EVENTS = (Turn, Compaction, TurnEdit)
_LineStart = tuple[dict[str, Any], tuple[int, int]]
"""The reader's state before a line, and the line's offset and number."""


@mutable
class _OpenCommit:
    """A commit of the current round."""

    turn: Turn
    key: str
    records: list[Record] = field(default_factory=list)


class TurnPlanner:
    """Planner for a turn reader; see `contract.FilePlanner`."""

    def __init__(self, reader: TurnReader) -> None:
        """Start with an empty plan."""
        self._reader = reader
        self._table = TurnTable()
        self._open: dict[str, _OpenCommit] = {}
        self._pending_records: list[Record] = []
        self._rewind_line: int | None = None  # the line of work started by the last rewind
        self._counts: Counter[Count] = Counter()
        self._skips: list[Skip] = []
        # The last line start between two rounds: state of reader and table, and position.
        self._resume_point: tuple[dict[str, Any], TableMark, tuple[int, int]] | None = None

    @classmethod
    def load(cls, reader: TurnReader, saved: Any) -> TurnPlanner:
        """Return a planner that resumes from saved state.

        Raises:
            KeyError, TypeError, ValueError: the state is from another version.
        """
        planner = cls(reader)
        if saved is None:
            return planner
        reader.state = dict(saved["reader"])
        planner._table = TurnTable.load(saved["table"])
        planner._resume_point = (
            saved["reader"],
            planner._table.mark(),
            (saved["at"][0], saved["at"][1]),
        )
        return planner

    def save(self) -> Any:
        if self._resume_point is None:
            return None
        reader, mark, at = self._resume_point
        return {"reader": reader, "table": self._table.save(mark), "at": list(at)}

    def resumes_at(self) -> Resumption | None:
        if self._resume_point is None:
            return Resumption(0, 1, 0)
        _, mark, (offset, line) = self._resume_point
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

    def feed(self, line: InputLine) -> Iterable[Planned]:
        begun = (dict(self._reader.state), (line.offset, line.number))
        records = self._reader.records(line)
        if type(records) is tuple and len(records) == 1 and type(records[0]) is Record:
            return self._take(records[0], begun)
        return self._take_each(records, begun)

    def _take_each(
        self, records: Iterable[Record | Skip], begun: _LineStart | None
    ) -> Iterator[Planned]:
        for record in records:
            if isinstance(record, Skip):
                self._skips.append(record)
                self._counts[UNREADABLE, record.reason] += 1
            else:
                yield from self._take(record, begun)
                begun = None

    def finish(self) -> Iterator[Planned]:
        for event in self._reader.finish():
            yield from self._handle(event, None)
        yield from self._close()
        if not self._pending_records:
            yield from self._end_rewind()
            return
        line = self._table.line_with_messages()
        if line is not None:
            self._table.live = line
            records, self._pending_records = tuple(self._pending_records), []
            yield self._commit(Turn((), key=_record_key(records[0])), records, {})
            return
        for record in self._pending_records:
            name = self._reader.label(record)
            self._counts[name, SOURCE] -= 1
            self._counts[name, NO_MESSAGES] += 1
            self._skips.append(Skip(record.line, NO_MESSAGES, name))
        self._counts = +self._counts

    def _take(self, record: Record, begun: _LineStart | None) -> Sequence[Planned]:
        """Return what a record makes final; `begun` is the state before its line."""
        reader = self._reader
        events = reader.read(record)
        if type(events) is not tuple and type(events) is not list:
            events = list(events)
        self._counts[reader.label(record), _outcome_of(events)] += 1
        final: list[Planned] = []
        if self._open and any(map(self._ends_round, events)):
            final += self._close()
            # A file is resumed at a line start only.
            if begun is not None and not self._pending_records and self._table.should_mark():
                self._resume_point = (begun[0], self._table.mark(), begun[1])
        if len(events) == 1 and type(events[0]) is Turn:
            self._add_turn(events[0], record)  # the common case
            return final
        carried = False
        for event in events:
            takes = isinstance(event, _MESSAGE_EVENTS)
            final += self._handle(event, record if takes and not carried else None)
            carried = carried or takes
        if not carried:
            self._carry(record)
        return final

    def _carry(self, record: Record) -> None:
        """Attach a record without a message to the last open commit, or to the next one."""
        record.parts = ()
        if self._open:
            next(reversed(self._open.values())).records.append(record)
        else:
            self._pending_records.append(record)

    def _ends_round(self, event: Event) -> bool:
        if not self._open or isinstance(event, UsageReport):
            return False
        if isinstance(event, TurnEdit):
            return self._open_with(event.key) is None
        if not isinstance(event, Turn):
            return True
        if event.group and event.group in self._open:
            return sum([len(o.records) for o in self._open.values()]) > MAXIMUM_OPEN_PARTS
        # Results belong to the round of their calls.
        return not (event.messages and event.messages[0].role == "tool")

    def _handle(self, event: Event, record: Record | None) -> Sequence[Planned]:
        final = self._close() if self._ends_round(event) else []
        if isinstance(event, Turn):
            self._add_turn(event, record)
        elif isinstance(event, UsageReport):
            self._report(event)
        else:
            final += self._handle_rare(event, record)
        return final

    def _handle_rare(self, event: Event, record: Record | None) -> Iterator[Planned]:
        """Yield what a rare event makes final."""
        if isinstance(event, Compaction):
            yield self._compact(event, record)
        elif isinstance(event, TurnEdit):
            yield from self._edit(event, record)
        elif isinstance(event, ResultClearing):
            yield from self._clear(event)
        elif isinstance(event, Rewind):
            yield from self._rewind(event)
        elif isinstance(event, Return):
            yield from self._return(event.key)
        elif isinstance(event, Switch):
            yield from self._switch(event)

    def _add_turn(self, turn: Turn, record: Record | None) -> None:
        records = self._with_pending(record, turn.messages)
        existing = self._open.get(turn.group) if turn.group else None
        if existing is not None:
            existing.turn = join_turns(existing.turn, turn)
            existing.records += records
            return
        key = turn.key or (_record_key(record) if record is not None else "")
        self._open[turn.group or f"\0{len(self._open)}"] = _OpenCommit(turn, key, list(records))

    def _with_pending(
        self, record: Record | None, messages: Sequence[PlannedMessage]
    ) -> tuple[Record, ...]:
        """Return a record and the pending ones, and set the parts that it added."""
        waiting, self._pending_records = self._pending_records, []
        if record is None:
            return tuple(waiting)
        record.parts = all_parts(messages)
        return (*waiting, record)

    def _report(self, event: UsageReport) -> None:
        for commit in self._open.values():
            last = commit.turn.messages[-1].role if commit.turn.messages else ""
            if commit.key == event.key if event.key else last == "assistant":
                commit.turn = commit.turn._replace(usage=event.usage)
                return

    def _compact(self, event: Compaction, record: Record | None) -> PlannedCommit:
        table = self._table
        stays = {table.keys[key] for key in event.keeps if key in table.keys}
        context = () if table.lines[table.live].fresh else table.context()
        numbers = list(dict.fromkeys(number for number, _ in context))
        later = numbers[self._first_kept(event, numbers) :]
        stays.update(number for number in later if not table.rows[number].resets)
        kept = tuple(number for number in numbers if number in stays)
        replaced = tuple(place for place in context if place[0] not in stays)
        more: dict[str, Any] = {}
        if replaced or not kept:
            more = {"replaces": replaced, "reason": event.reason}
            if event.last and kept:
                more["after"] = next(place for place in reversed(context) if place[0] in stays)
        elif event.since is not None or event.after is not None:
            more["before"] = context  # nothing goes, and the messages stand before it all
        turn = Turn(event.messages, event.key, event.time, event.author, event.usage)
        return self._commit(turn, self._with_pending(record, event.messages), more, kept)

    def _first_kept(self, event: Compaction, numbers: Sequence[int]) -> int:
        """Return the index of the first commit that stays with its followers."""
        if event.after == "":
            return 0
        key = event.since if event.after is None else event.after
        number = -1 if key is None else self._table.keys.get(key, -1)
        if number not in numbers:
            return len(numbers)
        return numbers.index(number) + (event.after is not None)

    def _open_with(self, key: str) -> _OpenCommit | None:
        return next((commit for commit in self._open.values() if commit.key == key), None)

    def _edit(self, event: TurnEdit, record: Record | None) -> Iterator[Planned]:
        commit = self._open_with(event.key)
        if commit is not None:
            usage = event.usage or commit.turn.usage
            commit.turn = commit.turn._replace(messages=event.messages, usage=usage)
            commit.records += self._with_pending(record, event.messages)
            for each in commit.records:
                # An earlier record that still has the same content refers to it as well.
                if each.parts:
                    each.parts = all_parts(event.messages)
            return
        number = self._table.on_current_line(event.key)
        if number is None:
            if record is not None:
                self._carry(record)
            return
        known = self._table.rows[number].messages
        edits = tuple(
            ((number, index), message.parts) for index, message in enumerate(event.messages[:known])
        )
        more = event.messages[known:]
        records = self._with_pending(record, more)
        key = f"{event.key}~{_record_key(record)}" if record is not None else f"{event.key}~"
        yield self._commit(Turn(more, key=key, time=event.time), records, {"edits": edits})

    def _clear(self, event: ResultClearing) -> Iterator[Planned]:
        table = self._table
        shown = () if table.lines[table.live].fresh else table.context()
        places = [(table.keys.get(key, -1), index) for key, index, _ in event.results]
        visible = frozenset(shown).intersection(places)
        clears = tuple(
            (place, calls)
            for place, (_, _, calls) in zip(places, event.results, strict=True)
            if place in visible
        )
        if clears:
            turn = Turn((), key=f"{event.results[0][0]}~cleared", time=event.time)
            more = {"clears": clears, "placeholder": event.placeholder}
            yield self._commit(turn, self._with_pending(None, ()), more)

    def _rewind(self, event: Rewind) -> Iterator[Planned]:
        table = self._table
        base = None
        if event.key is not None:
            number = table.on_current_line(event.key)
            if number is None:
                return
            base = table.rows[number].parent
        left = table.first_after(base)
        if left is not None:
            yield from self._abandon(left, base)

    def _return(self, key: str) -> Iterator[Planned]:
        table = self._table
        base = table.keys.get(key) if key else None
        if key and base is None:
            return
        left = table.first_after(table.shared_with(base))
        if left is not None:
            yield from self._abandon(left, base)
        else:
            table.lines[table.live].tip = base

    def _abandon(self, left: int, base: int | None) -> Iterator[Planned]:
        """Leave the current line from a commit on, and continue after another one."""
        table = self._table
        abandoned, line = table.live, table.lines[table.live]
        key = table.rows[left].key
        folder = f"{line.name}/rewinds" if line.name else "rewinds"
        name = line.name
        line.name = table.free_name(folder, short_id(key), ref_component(key))
        yield PlannedThread(abandoned, line.name)
        self._rewind_line = table.begin_line(name, base, fresh=line.fresh)
        yield PlannedThread(self._rewind_line, name)

    def _end_rewind(self) -> Iterator[Planned]:
        """Yield an empty commit that marks the end of a branch after a rewind."""
        table = self._table
        tip = table.lines[table.live].tip
        if (
            table.live == self._rewind_line
            and tip is not None
            and table.rows[tip].line != self._rewind_line
        ):
            yield self._commit(Turn(()), (), {})

    def _switch(self, event: Switch) -> Iterator[Planned]:
        yield from self._end_rewind()
        table = self._table
        known = table.line_named(event.name)
        if known is not None:
            table.live = known
            return
        at = None if event.at is None else table.keys.get(event.at)
        index = table.begin_line(event.name, at, fresh=event.fresh and at is not None)
        yield PlannedThread(index, event.name)

    def _close(self) -> list[Planned]:
        """Return the commits of the round and start a new one."""
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
        resets = line.fresh or "replaces" in more or "before" in more
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


def _outcome_of(events: Sequence[Event]) -> str:
    """Return the outcome of a record with these events."""
    outcome = SOURCE
    for event in events:
        if isinstance(event, _MESSAGE_EVENTS):
            if event.messages or not isinstance(event, Turn):
                return MESSAGE
            outcome = EVENT
    return outcome


def _record_key(record: Record) -> str:
    return digest(record.raw).hex()[:16]


Histories = Callable[[Environment, str, Disk], list[str]]
Inside = Callable[[str, Disk], Sequence[Inner]]


def _nowhere(environment: Environment, project_dir: str, disk: Disk) -> list[str]:
    return []


def _nothing(path: str, disk: Disk) -> Sequence[Inner]:
    return ()


def _never(head: bytes) -> bool:
    return False


@value
class TurnFormat:
    """A registry row; see `contract.Format`.

    Attributes:
        NAME, SUFFIXES: as there.
        recognises: returns True if the first bytes match this format.
        reader: creates the reader of a file, given its name without suffix.
        reads_document: returns True if the file is one document.
        finds: returns a project's transcripts in the program's own folders.
        holds: returns True if the file holds several transcripts; see `contract.MultiTranscriptFormat`.
        looks_inside: returns the transcripts in such a file.
    """

    NAME: str
    SUFFIXES: tuple[str, ...]
    recognises: Callable[[bytes], bool]
    reader: Callable[[str], TurnReader]
    reads_document: Callable[[bytes], bool] = _never
    finds: Histories = _nowhere
    holds: Callable[[bytes], bool] = _never
    looks_inside: Inside = _nothing

    def sniff(self, head: bytes) -> bool:
        return self.recognises(head)

    def is_document(self, head: bytes) -> bool:
        return self.reads_document(head)

    def histories(self, environment: Environment, project_dir: str, disk: Disk) -> list[str]:
        return self.finds(environment, project_dir, disk)

    def plan(self, name: str, read_at: ReadAt) -> TurnPlanner:
        return TurnPlanner(self.reader(name))

    def resume(self, name: str, read_at: ReadAt, saved: Any) -> TurnPlanner:
        return TurnPlanner.load(self.reader(name), saved)

    def holds_several(self, head: bytes) -> bool:
        return self.holds(head)

    def inside(self, path: str, disk: Disk) -> Sequence[Inner]:
        return self.looks_inside(path, disk)
