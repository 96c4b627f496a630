"""Threads of one session, and the commits of each round.

Invariant: one API message is one message, however its lines are spread, and the results of its parallel calls are
one message after it. So the lines of a round are collected and leave in the order the model saw them: API message,
results, then what the user and the harness added.

Invariant: numbers and ids only, no content, so that all of it can be saved. Links are used only for what file order
cannot tell: a subagent's lines, rewinds, and restarts of the context.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from trace_store.base.frozen import field, mutable
from trace_store.importers.contract import Place, PlannedCommit, PlannedMessage, PlannedThread
from trace_store.importers.convert import author_of, ref_component, short_id, storable_name
from trace_store.importers.formats.claude_code.records import (
    AUTHOR,
    is_harness_text,
    is_prompt,
    observed_usage,
)
from trace_store.objects.parts import Part, ToolCall, ToolResult
from trace_store.transcripts.sources import Record

Origin = tuple[int, int]
"""Origin of a record: thread and commit."""


class RecordLinks:
    """Record ids of a session, and what each record follows."""

    __slots__ = ("_places", "_roots", "_spoken", "spans")

    def __init__(self) -> None:
        self._spoken: dict[str, Origin] = {}
        self._roots: dict[str, str] = {}
        self._places: dict[str, Place] = {}
        self.spans: dict[str, tuple[int, int]] = {}  # byte range of the record with an id

    def origin(self, data: dict[str, Any]) -> Origin | str | None:
        """Return what a record follows.

        Thread and commit, the uuid of a root without message, or None.
        """
        if "parentUuid" not in data:
            return None
        parent = data["parentUuid"]
        if parent is None:
            uuid = data.get("uuid")
            return uuid if isinstance(uuid, str) else None
        if not isinstance(parent, str):
            return None
        return self.known(parent)

    def add_silent(self, uuid: str, origin: Origin | str | None) -> None:
        """Add a record without message: its followers get its origin."""
        if uuid in self._spoken:
            return  # already seen: this is a copy
        if isinstance(origin, str):
            self._roots[uuid] = origin
        elif origin is not None:
            self._spoken[uuid] = origin

    def add_message(self, uuid: str, thread: int, place: Place) -> None:
        """Add a record with a message."""
        self._spoken[uuid] = (thread, place[0])
        self._places[uuid] = place

    def redirect(self, uuid: str, thread: int, number: int) -> None:
        """Make followers of a record follow a later commit."""
        self._spoken[uuid] = (thread, number)

    def known(self, uuid: str) -> Origin | str | None:
        """Return what followers of a record follow; None for an unknown record."""
        spoken = self._spoken.get(uuid)
        return self._roots.get(uuid) if spoken is None else spoken

    def place(self, uuid: str) -> Place | None:
        """Return the message of a record, or None."""
        return self._places.get(uuid)

    def ids(self) -> list[str]:
        """Return the ids of all records, in the order of `save`."""
        return list({**self.spans, **self._spoken})

    def save(self) -> dict[str, Any]:
        """Return the state as plain values. Each id, which takes the most room, is in one row."""
        rows, end = [], 0
        for uuid in self.ids():
            offset, length = self.spans.get(uuid, (end, None))
            row = [uuid, offset - end, length, *self._spoken.get(uuid, ())]
            end = offset + (length or 0)
            rows.append([*row, *self._places.get(uuid, ())])
        return {"roots": dict(self._roots), "rows": rows}

    @classmethod
    def load(cls, saved: Any) -> RecordLinks:
        """Return the saved links."""
        links, end = cls(), 0
        links._roots = dict(saved["roots"])
        for uuid, gap, length, *rest in saved["rows"]:
            if length is not None:
                links.spans[uuid] = (end + gap, length)
                end += gap + length
            if rest:
                links._spoken[uuid] = (rest[0], rest[1])
            if rest[2:]:
                links._places[uuid] = (rest[2], rest[3])
        return links


ASSISTANT = "assistant"
RESULTS = "results"
TURN = "turn"
LATE = "late"
MICROCOMPACTION = "microcompaction"


@mutable
class RecordGroup:
    """Records of one future commit.

    Attributes:
        kind: one of the constants above.
        number: number of the planned commit.
        key: its key.
        time: time of its first record, or None.
        message_id: id of an API message.
        prompt: True if the user, not the harness, started the turn.
        restart: True if the context restarts with it.
        said: records with messages, in order.
        records: all its records, in file order.
        agents: ids of subagents whose results it holds.
    """

    kind: str
    number: int
    key: str
    time: int | None
    message_id: str = ""
    prompt: bool = False
    restart: bool = False
    said: list[Record] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    agents: list[str] = field(default_factory=list)

    def author(self) -> str:
        """Return the author of the commit."""
        if self.kind == ASSISTANT:
            return author_of(AUTHOR, _model(self.said[-1].data))
        if self.kind == TURN and self.prompt:
            return author_of(AUTHOR, "user")
        return author_of(AUTHOR, "")

    def messages(self) -> tuple[PlannedMessage, ...]:
        """Return the messages of the commit."""
        if self.kind == ASSISTANT:
            return (self._api_message(),)
        if self.kind in (RESULTS, LATE):
            parts = [part for record in self.said for part in record.parts]
            results = [part for part in parts if isinstance(part, ToolResult)]
            others = [part for part in parts if not isinstance(part, ToolResult)]
            return (PlannedMessage("tool", (*results, *others), kind="tool_io"),)
        return tuple(turn_message(record) for record in self.said)

    def usage(self) -> dict[str, int | str]:
        """Return the usage report; the last line of an API message has the final numbers."""
        if self.kind != ASSISTANT:
            return {}
        message = self.said[-1].data["message"]
        return observed_usage(message, final=message.get("stop_reason") is not None)

    def call_ids(self) -> Iterator[str]:
        """Yield the ids of the calls that it answers."""
        for record in self.said:
            for part in record.parts:
                if isinstance(part, ToolResult):
                    yield part.call_id

    def _api_message(self) -> PlannedMessage:
        parts: list[Part] = [part for record in self.said for part in record.parts]
        data = self.said[-1].data
        labels: tuple[str, ...] = ()
        if data.get("isApiErrorMessage") is True:
            labels = ("api-error",)
        return PlannedMessage(
            "assistant",
            tuple(parts),
            model=_model(data),
            id=storable_name(data["message"].get("id")),
            labels=labels,
            # API errors are shown to the user only, never sent to a model.
            skipped=bool(labels),
        )


def turn_message(record: Record) -> PlannedMessage:
    """Return the message of a user record, an attachment or a local command."""
    data = record.data
    kind = ""
    if data.get("type") != "user" or data.get("isMeta") is True:
        kind = "instruction"
        if data.get("type") == "system":
            kind = "freeform"
        elif is_queued(data):
            kind = ""
    elif is_harness_text(record.parts):
        kind = "freeform"
    only_shown = data.get("isVisibleInTranscriptOnly") is True and not data.get("isCompactSummary")
    return PlannedMessage("user", record.parts, kind=kind, skipped=only_shown)


def is_queued(data: dict[str, Any]) -> bool:
    """Return True if a record has text that the user queued while the agent worked."""
    attachment = data.get("attachment")
    handed_over = isinstance(attachment, dict) and attachment.get("type") == "queued_command"
    return handed_over or data.get("type") == "queue-operation"


def _model(data: dict[str, Any]) -> str:
    return storable_name(data["message"].get("model"))


@mutable
class Thread:
    """One line of work: the session, a subagent, or what a rewind left.

    Attributes:
        index: its number.
        side: True for a subagent inside the session's file.
        tip: last commit of a finished round, or the one it branched from, or None.
        last: last commit with messages in file order, also in the current round.
        time: time of the last record that had one.
        root: uuid at the end of its parent chain, if known.
        linked: True once a parent link was found, so that missing ones are significant.
        fresh: True if its next commit removes the context, as for a new subagent.
        api, results, turns: groups of the current round.
        waiting: pending records without a message, for the next commit.
        held: groups of finished rounds that wait for the commit they branch from.
    """

    index: int
    side: bool = False
    tip: int | None = None
    last: int | None = None
    time: int = 0
    root: str = ""
    linked: bool = False
    fresh: bool = False
    api: RecordGroup | None = None
    results: RecordGroup | None = None
    turns: list[RecordGroup] = field(default_factory=list)
    waiting: list[Record] = field(default_factory=list)
    held: list[RecordGroup] = field(default_factory=list)

    def groups(self) -> list[RecordGroup]:
        """Return the groups of the round in output order."""
        return [group for group in (self.api, self.results, *self.turns) if group is not None]

    def clear(self) -> None:
        """Start a new round."""
        self.api = self.results = None
        self.turns = []

    @property
    def empty(self) -> bool:
        """True if it has no messages."""
        return self.tip is None and self.last is None


class PlannedCommits:
    """Planned commits, their context, and where calls and results are."""

    __slots__ = ("answers", "calls", "cleared", "keys", "reused", "rows", "summaries")

    def __init__(self) -> None:
        # By number: (parent, message count, what remains of the context before). None keeps all of
        # it; the rest follows the commit's own messages.
        self.rows: dict[int, tuple[int | None, int, tuple[Place, ...] | None]] = {}
        self.summaries: set[int] = set()  # numbers of compactions
        self.keys: dict[int, str] = {}
        self.calls: dict[str, int] = {}  # call id: commit of its API message
        self.reused: dict[str, list[int]] = {}  # call id: all commits with it, if reused
        self.answers: dict[str, int] = {}  # call id: commit with its result
        self.cleared: dict[int, list[tuple[int, tuple[str, ...]]]] = {}

    def note_call(self, call: str, number: int) -> None:
        """Record the commit of a call."""
        first = self.calls.get(call, number)
        if first != number:
            self.reused.setdefault(call, [first]).append(number)
        self.calls[call] = number

    def add(self, commit: PlannedCommit, *, left: tuple[Place, ...] | None = None) -> None:
        """Add a commit, and what it leaves of the context; None is all."""
        self.rows[commit.number] = (commit.parent, len(commit.messages), left)
        self.keys[commit.number] = commit.key

    def context(self, tip: int | None) -> tuple[Place, ...]:
        """Return the messages of a commit's context, in order."""
        pieces: list[Sequence[Place]] = []
        while tip is not None:
            parent, count, left = self.rows[tip]
            own = [(tip, index) for index in range(count)]
            pieces.append(own if left is None else [*own, *left])
            tip = parent if left is None else None
        return tuple(place for piece in reversed(pieces) for place in piece)

    def present(self, tip: int | None) -> set[int]:
        """Return the commits whose messages are in a commit's context."""
        return {number for number, _ in self.context(tip)}

    def compaction_of(self, number: int, tip: int | None) -> int:
        """Return the compaction that a record after an earlier message continues.

        Claude Code links the next prompt to what a compaction preserved, or to the last row before it. Both mean
        the end of the context, not a rewind.

        Args:
            number: the commit that the record follows.
            tip: the current tip.

        Returns:
            The compaction, or the number itself.
        """
        while tip is not None and tip != number:
            if tip not in self.rows:
                break
            parent, _, left = self.rows[tip]
            if tip in self.summaries and (
                parent == number or any(kept == number for kept, _ in left or ())
            ):
                return tip
            tip = parent
        return number

    def with_partners(self, places: Sequence[Place], tip: int | None) -> tuple[Place, ...]:
        """Return messages of a context with their calls and results, without duplicates."""
        present = set(self.context(tip))
        calls_of: dict[int, list[int]] = {}
        answers_of: dict[int, list[int]] = {}
        for call, number in self.calls.items():
            answer = self.answers.get(call)
            if answer is not None and (number, 0) in present and (answer, 0) in present:
                calls_of.setdefault(answer, []).append(number)
                answers_of.setdefault(number, []).append(answer)
        given = [place for place in dict.fromkeys(places) if place in present]
        partners: dict[Place, None] = {}
        for place in given:
            for number in (*calls_of.get(place[0], ()), place[0]):
                partners.setdefault((number, 0) if number != place[0] else place)
                for answer in answers_of.get(number, ()):
                    if (answer, 0) not in given:
                        partners.setdefault((answer, 0))
        return tuple(partners)

    def after(self, ancestor: int | None, tip: int | None) -> list[int]:
        """Return the commits after an ancestor up to the tip, oldest first.

        All without an ancestor.
        """
        commits = []
        while tip is not None and tip != ancestor:
            commits.append(tip)
            tip = self.rows[tip][0]
        return commits[::-1]

    def is_ancestor(self, number: int, tip: int | None) -> bool:
        """Return True if a commit is an ancestor of a tip or equal."""
        while tip is not None and tip != number:
            tip = self.rows[tip][0] if tip in self.rows else None
        return tip is not None

    def clearing(
        self, tip: int | None, number: int, calls: list[str]
    ) -> list[tuple[Place, tuple[str, ...]]]:
        """Return the results, by message, that are cleared with these calls."""
        present = self.present(tip)
        holders: dict[int, set[str]] = {}
        for call in calls:
            holder = self.answers.get(call)
            if holder in present and holder is not None:
                holders.setdefault(holder, set()).add(call)
        cleared: list[tuple[Place, tuple[str, ...]]] = []
        for holder, now in sorted(holders.items()):
            for by, earlier in self.cleared.get(holder, ()):
                if self.is_ancestor(by, tip):
                    now.update(earlier)
            ids = tuple(sorted(now))
            self.cleared.setdefault(holder, []).append((number, ids))
            cleared.append(((holder, 0), ids))
        return cleared

    def save(self, ids: Sequence[str]) -> dict[str, Any]:
        """Return the table as plain values. Most keys are ids of records: those are saved as places in `ids`."""
        places = {each: at for at, each in enumerate(ids)}
        return {
            "answers": self.answers,
            "calls": self.calls,
            "cleared": [[h, [[by, list(ids)] for by, ids in v]] for h, v in self.cleared.items()],
            "reused": self.reused,
            "rows": [
                [
                    n,
                    None if parent is None else n - parent,
                    *rest,
                    places.get(key := self.keys[n], key),
                ]
                for n, (parent, *rest) in self.rows.items()
            ],
            "summaries": sorted(self.summaries),
        }

    @classmethod
    def load(cls, saved: Any, ids: Sequence[str]) -> PlannedCommits:
        """Return the saved table, given the ids of records."""
        table = cls()
        table.answers = dict(saved["answers"])
        table.calls = dict(saved["calls"])
        table.reused = {call: list(numbers) for call, numbers in saved["reused"].items()}
        table.cleared = {h: [(by, tuple(ids)) for by, ids in v] for h, v in saved["cleared"]}
        for number, back, count, left, key in saved["rows"]:
            places = None if left is None else tuple((n, index) for n, index in left)
            table.rows[number] = (None if back is None else number - back, count, places)
            table.keys[number] = ids[key] if isinstance(key, int) else key
        table.summaries = set(saved["summaries"])
        return table


def note_group(table: PlannedCommits, group: RecordGroup) -> None:
    """Record where the calls or results of a group are."""
    if group.kind == ASSISTANT:
        for record in group.said:
            for part in record.parts:
                if isinstance(part, ToolCall):
                    table.note_call(part.id, group.number)
    elif group.kind == RESULTS:
        for call in group.call_ids():
            table.answers[call] = group.number


@mutable
class TranscriptState:
    """State of a plan.

    Attributes:
        threads: threads by index; the first is the start of the session.
        live: index of the current thread.
        sides: subagents in the file, by agent id or uuid of their first record.
        names: thread names in use.
        strays: uuids of rows of other sessions.
        restarts: uuids of roots at which the context restarted.
        keys: keys of all planned commits.
        message_ids: ids of API messages in finished rounds.
        next_number: number of the next planned commit.
        open_count: number of parts in open rounds.
        holding: threads with waiting groups.
        queue: records of text that the user typed while the agent worked.
        taken: those sent with the next request, unless they have a record of their own.
        taken_at: time of the last one, or None.
        links: links between records.
        table: planned commits.
    """

    threads: list[Thread] = field(default_factory=lambda: [Thread(0)])
    live: int = 0
    sides: dict[str, int] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    strays: set[str] = field(default_factory=set)
    restarts: set[str] = field(default_factory=set)
    keys: set[str] = field(default_factory=set)
    message_ids: set[str] = field(default_factory=set)
    next_number: int = 0
    open_count: int = 0
    holding: set[int] = field(default_factory=set)
    queue: list[Record] = field(default_factory=list)
    taken: list[Record] = field(default_factory=list)
    taken_at: int | None = None
    links: RecordLinks = field(default_factory=RecordLinks)
    table: PlannedCommits = field(default_factory=PlannedCommits)

    def new_thread(self, *, side: bool = False) -> Thread:
        """Add a thread."""
        thread = Thread(len(self.threads), side=side)
        self.threads.append(thread)
        return thread

    def number(self) -> int:
        """Return the number of the next planned commit."""
        self.next_number += 1
        return self.next_number - 1

    def unique_key(self, key: str) -> str:
        """Return a key, with a count if it is already used."""
        count, unique = 1, key
        while unique in self.keys:
            count += 1
            unique = f"{key}#{count}"
        self.keys.add(unique)
        return unique

    def unique_name(self, folder: str, *ids: str) -> str:
        """Return an unused name in a folder, from candidate ids."""
        for candidate in ids:
            name = f"{folder}/{candidate}"
            if name.lower() not in map(str.lower, self.names):
                self.names.add(name)
                return name
        return self.unique_name(folder, *(f"{candidate}-2" for candidate in ids))


BEGINNING = -1


class Assignment(NamedTuple):
    """Assignment of a record to a thread; a tuple, since there is one per record.

    Attributes:
        thread: the thread.
        rewind: commit that a prompt goes back to; BEGINNING for the start; None for no rewind.
        restart: True if the context restarts.
        begun: name of a thread that starts with it.
    """

    thread: Thread
    rewind: int | None = None
    restart: bool = False
    begun: PlannedThread | None = None


def assign_thread(
    session: TranscriptState, record: Record, origin: Origin | str | None, *, own_agent: bool
) -> Assignment:
    """Assign a record with a message to a thread.

    Args:
        session: state of the session; a new subagent is added.
        record: the record.
        origin: what it follows, from the record links.
        own_agent: True if the file is a subagent's own, so that side chains have no meaning.
    """
    if record.data.get("isSidechain") is True and not own_agent:
        return _assign_side(session, record, origin)
    live = session.threads[session.live]
    if isinstance(origin, str):
        return _assign_root(session, live, record, origin)
    if origin is None:
        return Assignment(live)
    thread = session.threads[origin[0]]
    if thread.side:
        return Assignment(live)
    if thread is not live and session.table.is_ancestor(origin[1], live.tip):
        thread = live
    thread.linked = True
    if thread is live and is_prompt(record) and _is_followed(session, live, origin[1]):
        target = session.table.compaction_of(origin[1], live.tip)
        if target == origin[1] or _is_followed(session, live, target):
            return Assignment(live, rewind=target)
    return Assignment(thread)


def side_thread(
    session: TranscriptState, record: Record, origin: Origin | str | None
) -> Thread | None:
    """Return the subagent thread of a side-chain record, if known."""
    agent = record.data.get("agentId")
    if isinstance(agent, str) and agent:
        index = session.sides.get(agent)
    elif isinstance(origin, str):
        index = session.sides.get(origin)
    elif origin is not None and session.threads[origin[0]].side:
        index = origin[0]
    else:
        index = None
        if origin is None:
            index = next((t.index for t in reversed(session.threads) if t.side), None)
    return None if index is None else session.threads[index]


def _assign_side(
    session: TranscriptState, record: Record, origin: Origin | str | None
) -> Assignment:
    known = side_thread(session, record, origin)
    if known is not None:
        return Assignment(known)
    live = session.threads[session.live]
    thread = session.new_thread(side=True)
    # Its caller is the API message of the open round, which may not be planned yet.
    thread.tip = live.api.number if live.api is not None else live.tip
    thread.fresh = thread.tip is not None
    agent = record.data.get("agentId")
    if isinstance(agent, str) and agent:
        session.sides[agent] = thread.index
        name = session.unique_name("agents", ref_component(agent))
    else:
        uuid = str(record.data.get("uuid") or f"line-{record.line}")
        session.sides[origin if isinstance(origin, str) else uuid] = thread.index
        name = session.unique_name("agents", short_id(uuid), ref_component(uuid))
    return Assignment(thread, begun=PlannedThread(thread.index, name))


def _assign_root(session: TranscriptState, live: Thread, record: Record, root: str) -> Assignment:
    if live.empty and not live.root:
        live.root = root
        return Assignment(live)
    if root == live.root or root in session.restarts:
        back_to_start = root == live.root and live.linked and is_prompt(record)
        if back_to_start and not live.empty and root != record.data.get("uuid"):
            return Assignment(live, rewind=BEGINNING)
        return Assignment(live)
    if not live.linked:
        return Assignment(live)
    session.restarts.add(root)
    return Assignment(live, restart=True)


def _is_followed(session: TranscriptState, thread: Thread, number: int) -> bool:
    """Return True if something follows the commit that a prompt there would abandon."""
    for index, turn in enumerate(thread.turns):
        if turn.number == number:
            return any(later.prompt and later.kind == TURN for later in thread.turns[index + 1 :])
    round_numbers = [group.number for group in (thread.api, thread.results) if group is not None]
    if number in round_numbers:
        return any(turn.prompt and turn.kind == TURN for turn in thread.turns)
    if thread.api is not None or thread.results is not None:
        return True
    # The round only has turns that answer earlier messages.
    return number != thread.tip or any(turn.prompt for turn in thread.turns)
