"""Planner of one Claude Code transcript.

Invariant: the plan depends only on the file. File order decides; links between records only tell whether a prompt
went back (a rewind), which subagent speaks, and whether the context was restarted. A round is final when the next
API message starts, so only the unfinished end changes. Saved state has no content: unfinished records are saved by
position and read again. When a round is final, its groups get their parents and their effects on earlier messages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from trace_store.base.frozen import fields
from trace_store.base.oid import digest
from trace_store.errors import StateError
from trace_store.importers.contract import (
    AGENTS_KEY,
    DUPLICATE,
    MESSAGE,
    NO_MESSAGES,
    NOTHING,
    SOURCE,
    UNREADABLE,
    Count,
    Place,
    Planned,
    PlannedCommit,
    PlannedThread,
    Skip,
)
from trace_store.importers.convert import (
    author_of,
    ref_component,
    short_id,
    storable_name,
    time_of_text,
)
from trace_store.importers.formats.claude_code import threads as groups_
from trace_store.importers.formats.claude_code.records import (
    API_LINE,
    AUTHOR,
    CLEARED_TEXT,
    COMPACTION,
    METADATA,
    MICRO,
    QUEUED,
    RECALLED,
    RESULT,
    SAID,
    TAKEN,
    agent_of_result,
    classify,
    is_prompt,
    label,
)
from trace_store.importers.formats.claude_code.threads import (
    BEGINNING,
    LATE,
    MICROCOMPACTION,
    Origin,
    PlannedCommits,
    RecordGroup,
    RecordLinks,
    Thread,
    TranscriptState,
    assign_thread,
    note_group,
    side_thread,
    turn_message,
)
from trace_store.importers.input_files import InputLine, ReadAt, line_at
from trace_store.importers.json_records import records_of
from trace_store.objects.parts import Text, ToolResult
from trace_store.transcripts.sources import Record

MAXIMUM_OPEN_PARTS = 4096
"""Parts per round; more end it, so that memory and commits stay bounded."""
MAXIMUM_SEGMENT_ROWS = 4096
"""Maximum rows of a preserved segment; Claude Code preserves about ten thousand tokens."""
_UUID_GROUPS = (8, 4, 4, 4, 12)
COMPACTION_REASON = "compaction"


class ClaudeCodePlanner:
    """Planner of one transcript; see `contract.FilePlanner`."""

    def __init__(self, name: str, read_at: ReadAt) -> None:
        """Start with an empty plan.

        Args:
            name: file name without suffix, which is the id of a session.
            read_at: reads the file again for duplicate ids.
        """
        self._read_at = read_at
        self._name = name
        self._session_id = ref_component(name) if _is_uuid(name) else ""
        self._agent_id = ref_component(name.removeprefix("agent-")) if _is_agent(name) else ""
        self._state = TranscriptState()
        self._strays: dict[str, list[bytes]] = {}
        self._counts: Counter[Count] = Counter()
        self._skips: list[Skip] = []

    @classmethod
    def load(cls, name: str, read_at: ReadAt, saved: Any) -> ClaudeCodePlanner:
        """Return a planner that resumes from saved state; errors as in `load_session`."""
        planner = cls(name, read_at)
        planner._session_id, planner._agent_id = saved["session"], saved["agent"]
        planner._state = load_session(saved["state"], read_at)
        return planner

    def save(self) -> Any:
        return {
            "session": self._session_id,
            "agent": self._agent_id,
            "state": _saved(self._state),
        }

    def resumes_at(self) -> None:
        """Resume after the last complete line; unfinished records are read by position."""

    @property
    def session(self) -> str:
        return self._session_id or ref_component(self._name)

    @property
    def agent(self) -> str:
        return self._agent_id

    @property
    def strays(self) -> Mapping[str, Sequence[bytes]]:
        return self._strays

    def counts(self) -> Mapping[Count, int]:
        return self._counts

    def skips(self) -> Sequence[Skip]:
        return self._skips

    def feed(self, line: InputLine) -> Iterable[Planned]:
        records = records_of(line)
        # The common case is one record a line; several are written one by one.
        return self._take(records[0]) if isinstance(records, tuple) else self._take_each(records)

    def _take_each(self, records: Iterable[Record | Skip]) -> Iterator[Planned]:
        for record in records:
            if isinstance(record, Skip):
                self._skips.append(record)
                self._counts[UNREADABLE, record.reason] += 1
            else:
                yield from self._take(record)

    def finish(self) -> Iterator[Planned]:
        state = self._state
        # The session first: its subagents wait for it.
        for thread in sorted(state.threads, key=lambda t: (t.side, t.index)):
            yield from close_round(state, thread)
        for thread in state.threads:
            yield from trailing_records(state, thread)
            for record in thread.waiting:
                name = label(record.data)
                self._counts[name, SOURCE] -= 1
                self._counts[name, NO_MESSAGES] += 1
                self._skips.append(Skip(record.line, NO_MESSAGES, name))
        self._counts = +self._counts

    def _take(self, record: Record) -> Sequence[Planned]:
        state, data = self._state, record.data
        links = state.links
        uuid = data.get("uuid")
        name = label(data)
        first = None
        if not isinstance(uuid, str):
            uuid = ""
        elif uuid not in links.spans:
            if uuid:
                links.spans[uuid] = (record.offset, record.length)
        else:
            first = self._first_with(uuid)
            if first is not None and first.raw == record.raw:
                self._counts[name, DUPLICATE] += 1
                self._skips.append(Skip(record.line, DUPLICATE, uuid[:100]))
                self._redirect(uuid)
                return ()
        if not self._session_id:
            self._read_ids(data)
        purpose = classify(record)
        owner = self._owner(data)
        if owner:
            # Stored with this file; its message is imported into its own session.
            self._strays.setdefault(owner, []).append(record.raw)
            state.strays.add(uuid)
            purpose = METADATA
        if (
            first is not None
            and purpose not in (METADATA, MICRO)
            and _is_same_message(first, record)
        ):
            # A copy with other surroundings, which are stored; the message is not repeated.
            purpose = METADATA
        if purpose in (QUEUED, TAKEN, RECALLED):
            self._note_queue(record, purpose)
            purpose = METADATA
        origin = links.origin(data)
        if purpose in (METADATA, MICRO):
            record.parts = ()
            self._counts[name, SOURCE] += 1
            if first is None:
                self._add_silent(record, uuid, origin, purpose)
            else:
                self._redirect(uuid)
                self._add_silent(record, "", origin, purpose)
            return ()
        self._counts[name, MESSAGE] += 1
        final = self._add_message(record, uuid, origin, purpose)
        if state.open_count > MAXIMUM_OPEN_PARTS:
            for thread in sorted(state.threads, key=lambda t: (t.side, t.index)):
                final += close_round(state, thread)
        return final

    def _add_silent(
        self, record: Record, uuid: str, origin: Origin | str | None, purpose: str
    ) -> None:
        state = self._state
        # Followers of a compaction boundary follow its summary, which comes next.
        if uuid and not _is_boundary(record.data):
            state.links.add_silent(uuid, origin)
        thread = state.threads[state.live]
        if record.data.get("isSidechain") is True and not self._agent_id:
            thread = side_thread(state, record, origin) or thread
        thread.waiting.append(record)
        if purpose == MICRO and not thread.empty:
            group = self._new_group(thread, groups_.MICROCOMPACTION, record, uuid)
            group.records += thread.waiting
            thread.waiting.clear()
            thread.turns.append(group)

    def _add_message(
        self, record: Record, uuid: str, origin: Origin | str | None, purpose: str
    ) -> list[Planned]:
        state = self._state
        final: list[Planned] = []
        thread, rewind, restart, begun = assign_thread(
            state, record, origin, own_agent=bool(self._agent_id)
        )
        if begun is not None:
            final.append(begun)
        if rewind is not None:
            final += close_round(state, thread)
            rewound = self._rewind(thread, rewind)
            if rewound is not None:
                abandoned, thread = rewound
                final += (abandoned, PlannedThread(thread.index, ""))
        if purpose == COMPACTION:
            final += close_round(state, thread)
            if not (thread.held or thread.fresh):
                preserved = self._preserved(thread)
                commit = compaction(state, thread, record, record_key(record), preserved)
                thread.last = commit.number
                if uuid:
                    state.links.add_message(uuid, thread.index, (commit.number, 0))
                final.append(commit)
                return final
        if purpose == API_LINE and self._begins_round(thread, record):
            if thread is state.threads[state.live]:
                self._hand_over_queue(thread)
            final += close_round(state, thread)
        elif purpose == SAID:
            self._forget_queued(record)
        group = self._group(thread, record, uuid, purpose)
        group.restart = group.restart or restart
        group.said.append(record)
        if thread.waiting:
            group.records += thread.waiting
            thread.waiting.clear()
        group.records.append(record)
        thread.last = group.number
        state.open_count += len(record.parts)
        if uuid:
            # Only turns have a message per record.
            index = len(group.said) - 1 if group.kind == groups_.TURN else 0
            state.links.add_message(uuid, thread.index, (group.number, index))
        return final

    def _note_queue(self, record: Record, purpose: str) -> None:
        """Record a change of the queue of prompts.

        A request takes all that is queued. Removals are not matched one by one: those of the harness's own entries
        are not all recorded.
        """
        state = self._state
        if purpose == QUEUED:
            copy = Record(record.line, record.offset, record.length, record.raw, record.data)
            copy.parts = record.parts  # the record itself is stored with the commit that is next
            state.queue.append(copy)
            return
        if purpose == TAKEN:
            state.taken += state.queue
            state.taken_at = time_of(record.data)
        state.queue.clear()

    def _forget_queued(self, record: Record) -> None:
        """Forget queued text that has a record of its own."""
        state = self._state
        if state.queue or state.taken:
            said = _text_of(record)
            for queue in (state.taken, state.queue):
                queue[:] = [each for each in queue if _text_of(each) != said]

    def _hand_over_queue(self, thread: Thread) -> None:
        """Add queued text that is sent with the next request and has no record of its own.

        Not before that request: until then, a record of its own may follow.
        """
        state = self._state
        for record in state.taken:
            group = self._group(thread, record, "", SAID)
            group.time = group.time if group.said else state.taken_at
            group.said.append(record)
            thread.last = group.number
            state.open_count += len(record.parts)
        state.taken.clear()

    def _preserved(self, thread: Thread) -> list[Place]:
        """Return the messages that a compaction preserved, in order."""
        boundary = next((r for r in reversed(thread.waiting) if _is_boundary(r.data)), None)
        metadata = None if boundary is None else boundary.data.get("compactMetadata")
        if not isinstance(metadata, dict):
            return []
        messages, segment = metadata.get("preservedMessages"), metadata.get("preservedSegment")
        uuids: list[Any] = []
        if isinstance(messages, dict) and isinstance(messages.get("uuids"), list):
            uuids = messages["uuids"]
        elif isinstance(segment, dict):
            uuids = self._segment(segment.get("headUuid"), segment.get("tailUuid"))
        places = [self._state.links.place(uuid) for uuid in uuids if isinstance(uuid, str)]
        return [place for place in places if place is not None]

    def _segment(self, head: Any, tail: Any) -> list[str]:
        """Return the uuids from a head to a tail; empty if the links do not connect them."""
        uuids: list[str] = []
        spans = self._state.links.spans
        while isinstance(tail, str) and tail in spans and len(uuids) < MAXIMUM_SEGMENT_ROWS:
            uuids.append(tail)
            if tail == head:
                return uuids[::-1]
            record = self._first_with(tail)
            tail = None if record is None else record.data.get("parentUuid")
        return []

    def _rewind(self, thread: Thread, target: int) -> tuple[PlannedThread, Thread] | None:
        """Abandon a thread and continue from an earlier commit.

        None if nothing is between.
        """
        state = self._state
        base = None if target == BEGINNING else target
        left = state.table.after(base, thread.tip)
        if not left:
            return None
        key = state.table.keys[left[0]]
        abandoned = PlannedThread(
            thread.index, state.unique_name("rewinds", short_id(key), ref_component(key))
        )
        new = state.new_thread()
        new.tip = new.last = base
        new.time, new.root, new.linked = thread.time, thread.root, thread.linked
        new.waiting, thread.waiting = thread.waiting, []
        state.live = new.index
        return abandoned, new

    def _begins_round(self, thread: Thread, record: Record) -> bool:
        """Return True if a line starts a new API message.

        Anything said before an API message belongs to the previous round.
        """
        return thread.api is None or thread.api.message_id != _message_id(record)

    def _group(self, thread: Thread, record: Record, uuid: str, purpose: str) -> RecordGroup:
        """Return the open group of a record, or a new one."""
        if purpose == API_LINE:
            if thread.api is None:
                thread.api = self._new_group(thread, groups_.ASSISTANT, record, uuid)
            return thread.api
        if purpose == RESULT:
            return self._result_group(thread, record, uuid)
        entered = is_prompt(record) and record.data.get("isMeta") is not True
        last = thread.turns[-1] if thread.turns else None
        if not entered and last is not None and last.kind == groups_.TURN:
            return last
        group = self._new_group(thread, groups_.TURN, record, uuid)
        group.prompt = is_prompt(record)
        thread.turns.append(group)
        return group

    def _result_group(self, thread: Thread, record: Record, uuid: str) -> RecordGroup:
        state = self._state
        group = thread.results
        if not _answers(thread, record):
            number = next((state.table.calls.get(call) for call in _calls(record)), None)
            if number is not None and number in state.table.present(thread.tip):
                group = self._new_group(thread, groups_.LATE, record, uuid)
                thread.turns.append(group)
        if group is None:
            group = thread.results = self._new_group(thread, groups_.RESULTS, record, uuid)
        agent = agent_of_result(record.data)
        if agent and agent not in group.agents:
            group.agents.append(agent)
        return group

    def _new_group(self, thread: Thread, kind: str, record: Record, uuid: str) -> RecordGroup:
        return RecordGroup(
            kind,
            self._state.number(),
            self._state.unique_key(record_key(record)),
            time_of(record.data),
            message_id=_message_id(record) if kind == groups_.ASSISTANT else "",
        )

    def _first_with(self, uuid: str) -> Record | None:
        """Return the first record with this id; equal ids do not prove equal records."""
        span = self._state.links.spans[uuid]
        first = next(iter(records_of(line_at(self._read_at, 0, *span))), None)
        return first if isinstance(first, Record) else None

    def _owner(self, data: dict[str, Any]) -> str:
        """Return the session that a stray row belongs to, or "".

        A program may resume this file under another id, and a file may start with a copy of another session. Only a
        row whose parent is not in this file belongs elsewhere.
        """
        session, parent, state = data.get("sessionId"), data.get("parentUuid"), self._state
        if session == self._session_id or not isinstance(session, str):
            return ""
        if not isinstance(parent, str) or self._agent_id:
            return ""
        owner = ref_component(session) if session else ""
        if owner in ("", self._session_id) or data.get("isSidechain") is True:
            return ""
        if state.threads[0].empty or (parent in state.links.spans and parent not in state.strays):
            return ""
        return owner

    def _redirect(self, uuid: str) -> None:
        """Handle a row with a used id that adds no message.

        Claude Code appends old rows again when it lost track of the file, and some rows of hooks share one id.
        Followers of such a row continue from what was in memory; no rewind follows one.
        """
        state = self._state
        known = state.links.known(uuid)
        index = state.sides.get(known) if isinstance(known, str) else known and known[0]
        thread = state.threads[state.live if index is None else index]
        if not thread.side:
            thread = state.threads[state.live]
        if known is not None and thread.last is not None:
            state.links.redirect(uuid, thread.index, thread.last)

    def _read_ids(self, data: dict[str, Any]) -> None:
        """Read the session and subagent id from the first record that has them."""
        session = data.get("sessionId")
        if isinstance(session, str) and session:
            self._session_id = ref_component(session)
            agent = data.get("agentId")
            if data.get("isSidechain") is True and isinstance(agent, str) and agent:
                self._agent_id = ref_component(agent)


def _answers(thread: Thread, record: Record) -> bool:
    """Return True if a result answers a call of the round's API message."""
    if thread.api is None:
        return False
    calls = {getattr(p, "id", None) for said in thread.api.said for p in said.parts}
    return any(call in calls for call in _calls(record))


def _calls(record: Record) -> list[str]:
    return [part.call_id for part in record.parts if hasattr(part, "call_id")]


def _message_id(record: Record) -> str:
    message_id = record.data["message"].get("id")
    if isinstance(message_id, str) and message_id:
        return message_id
    return record_key(record)


def _text_of(record: Record) -> str:
    return "\n".join(part.text for part in record.parts if isinstance(part, Text)).strip()


def _is_same_message(first: Record, record: Record) -> bool:
    return classify(first) == classify(record) and first.parts == record.parts


def _is_boundary(data: dict[str, Any]) -> bool:
    return data.get("subtype") == "compact_boundary"


def _is_uuid(name: str) -> bool:
    groups = name.split("-")
    return tuple(map(len, groups)) == _UUID_GROUPS and all(
        c in "0123456789abcdefABCDEF" for group in groups for c in group
    )


def _is_agent(name: str) -> bool:
    return name.startswith("agent-")


def load_session(saved: Any, read_at: ReadAt) -> TranscriptState:
    """Return the saved session.

    Raises:
        StateError: the file no longer has the unfinished records.
        KeyError, TypeError, ValueError: the state is from another version.
    """
    sets = ("names", "strays", "restarts", "keys", "message_ids", "holding")
    links = RecordLinks.load(saved["links"])
    table = PlannedCommits.load(saved["table"], links.ids())
    others = {
        "threads": [_load_thread(thread, read_at) for thread in saved["threads"]],
        "links": links,
        "table": table,
        "sides": dict(saved["sides"]),
        "queue": _load_queue(saved["queue"], read_at),
        "taken": _load_queue(saved["taken"], read_at),
    }
    state = TranscriptState(**{**saved, **{name: set(saved[name]) for name in sets}, **others})
    state.keys.update(table.keys.values())
    return state


def _saved(part: Any) -> Any:
    """Return a part of a session as JSON values; of a record, only its place."""
    if isinstance(part, Record):
        return [part.line, part.offset, part.length]
    if isinstance(part, RecordLinks):
        return part.save()
    if isinstance(part, list):
        return [_saved(each) for each in part]
    if isinstance(part, set):
        return sorted(part)
    if not isinstance(part, TranscriptState | Thread | RecordGroup):
        return part
    saved = {name: _saved(getattr(part, name)) for name in fields(part)}
    if isinstance(part, TranscriptState):
        saved["table"] = part.table.save(part.links.ids())
        saved["keys"] = sorted(part.keys.difference(part.table.keys.values()))
    if isinstance(part, RecordGroup):
        places = {id(record): at for at, record in enumerate(part.records)}
        saved["said"] = [places.get(id(record), _saved(record)) for record in part.said]
    return saved


def _load_thread(saved: Any, read_at: ReadAt) -> Thread:
    one = {name: saved[name] and _load_group(saved[name], read_at) for name in ("api", "results")}
    many = {
        name: [_load_group(group, read_at) for group in saved[name]] for name in ("turns", "held")
    }
    waiting = [_load_record(record, read_at) for record in saved["waiting"]]
    return Thread(**{**saved, **one, **many, "waiting": waiting})


def _load_group(saved: Any, read_at: ReadAt) -> RecordGroup:
    records = [_load_record(record, read_at) for record in saved["records"]]
    # Queued text was stored with an earlier commit.
    said = [
        records[at] if isinstance(at, int) else _load_record(at, read_at) for at in saved["said"]
    ]
    for record in said:
        classify(record)
    return RecordGroup(**{**saved, "records": records, "said": said})


def _load_queue(saved: Any, read_at: ReadAt) -> list[Record]:
    records = [_load_record(record, read_at) for record in saved]
    for record in records:
        classify(record)
    return records


def _load_record(saved: Any, read_at: ReadAt) -> Record:
    line, offset, length = saved
    record = next(iter(records_of(line_at(read_at, line, offset, length))), None)
    if not isinstance(record, Record) or record.length != length:
        raise StateError("the file changed where it was read before")
    return record


def time_of(data: dict[str, Any]) -> int | None:
    """Return a record's time in milliseconds since the epoch, or None."""
    text = data.get("timestamp")
    return time_of_text(text) if isinstance(text, str) else None


def record_key(record: Record) -> str:
    """Return the id of a record, or a hash of its bytes."""
    uuid = storable_name(record.data.get("uuid"))
    return uuid or digest(record.raw).hex()[:16]


def close_round(session: TranscriptState, thread: Thread) -> list[PlannedCommit]:
    """Return the commits of a thread's round and of subagents that it called.

    Start a new round.

    A subagent's round waits until the call is in a finished round.
    """
    groups = thread.groups()
    thread.clear()
    if thread.held or (thread.fresh and thread.tip not in session.table.rows):
        thread.held += groups
        session.holding.add(thread.index)
        return []
    return _leave(session, thread, groups)


def compaction(
    session: TranscriptState, thread: Thread, record: Record, key: str, preserved: Sequence[Place]
) -> PlannedCommit:
    """Return the commit of a summary that replaces the context; ends the round.

    Args:
        session: state of the session.
        thread: the compacted thread.
        record: the summary.
        key: key of the commit.
        preserved: messages that stay after the summary.
    """
    context = session.table.context(thread.tip)
    left = session.table.with_partners(preserved, thread.tip)
    replaced = set(context).difference(left)
    commit = PlannedCommit(
        number=session.number(),
        key=session.unique_key(key),
        thread=thread.index,
        parent=thread.tip,
        author=author_of(AUTHOR, ""),
        time=advance(thread, time_of(record.data)),
        replaces=tuple(place for place in context if place in replaced),
        reason=COMPACTION_REASON,
        messages=(turn_message(record),),
        # A preserved tail stays after the summary without a move.
        before=() if replaced and left == context[len(context) - len(left) :] else left,
        records=(*take_pending(thread), record),
    )
    session.table.add(commit, left=left)
    session.table.summaries.add(commit.number)
    thread.tip = commit.number
    return commit


def trailing_records(session: TranscriptState, thread: Thread) -> list[PlannedCommit]:
    """Return a commit for trailing records without a message, if any."""
    if not thread.waiting or thread.tip is None or thread.fresh:
        return []
    records = take_pending(thread)
    commit = PlannedCommit(
        number=session.number(),
        key=session.unique_key(record_key(records[0])),
        thread=thread.index,
        parent=thread.tip,
        author=author_of(AUTHOR, ""),
        time=thread.time,
        records=records,
    )
    session.table.add(commit)
    thread.tip = commit.number
    return [commit]


def advance(thread: Thread, time: int | None) -> int:
    """Return a time; None means the previous record's."""
    if time is not None:
        thread.time = time
    return thread.time


def take_pending(thread: Thread) -> tuple[Record, ...]:
    """Return and clear the pending records."""
    records = tuple(thread.waiting)
    thread.waiting.clear()
    return records


def _planned(session: TranscriptState, thread: Thread, group: RecordGroup) -> PlannedCommit:
    table = session.table
    removes: tuple[Place, ...] = ()
    if group.restart or thread.fresh:
        removes = table.context(thread.tip)
    clears: tuple[tuple[Place, tuple[str, ...]], ...] = ()
    if group.kind == MICROCOMPACTION:
        metadata = group.records[-1].data.get("microcompactMetadata")
        calls = metadata.get("compactedToolIds") if isinstance(metadata, dict) else None
        named = [call for call in calls or () if isinstance(call, str)]
        clears = tuple(table.clearing(thread.tip, group.number, named))
    # Positional: keyword arguments take longer than the values.
    return PlannedCommit(
        group.number,
        group.key,
        thread.index,
        thread.tip,
        group.author(),
        advance(thread, group.time),
        removes,
        None,  # replaces
        "",
        (),  # edits
        clears,
        CLEARED_TEXT if clears else "",
        () if group.kind == MICROCOMPACTION else group.messages(),
        _neighbour(session, thread, group) if group.kind == LATE else None,
        (),  # before
        None,  # tools
        NOTHING if group.message_id in session.message_ids else group.usage(),
        {AGENTS_KEY: list(group.agents)} if group.agents else NOTHING,
        (),  # links
        tuple(group.records),
        tuple(_named_calls(session, group)) if session.table.reused else (),
    )


def _named_calls(session: TranscriptState, group: RecordGroup) -> Iterator[tuple[str, Place]]:
    """Yield results of calls with reused ids, with the call that their records name."""
    for record in group.said:
        named = record.data.get("sourceToolAssistantUUID")
        place = session.links.place(named) if isinstance(named, str) else None
        calls = [part.call_id for part in record.parts if isinstance(part, ToolResult)]
        if place is not None:
            reused = session.table.reused
            yield from ((call, place) for call in calls if place[0] in reused.get(call, ()))


def _neighbour(session: TranscriptState, thread: Thread, group: RecordGroup) -> Place | None:
    """Return the message after which a late result belongs.

    None if the call has left the context. Answers to other calls of that message may be on an abandoned branch.
    """
    table = session.table
    present = table.present(thread.tip)
    calling = table.calls[next(group.call_ids())]
    if calling not in present:
        return None
    answers = (table.answers.get(call) for call, number in table.calls.items() if number == calling)
    return (max([calling, *present.intersection(answers)]), 0)


def _leave(
    session: TranscriptState, thread: Thread, groups: list[RecordGroup]
) -> list[PlannedCommit]:
    commits: list[PlannedCommit] = []
    for group in groups:
        commit = _planned(session, thread, group)
        session.table.add(commit, left=() if group.restart or thread.fresh else None)
        note_group(session.table, group)
        for record in group.said:
            session.open_count -= len(record.parts)
        if group.message_id:
            session.message_ids.add(group.message_id)
        thread.fresh = False
        thread.tip = group.number
        commits.append(commit)
        for index in sorted(session.holding) if session.holding else ():
            other = session.threads[index]
            if other.tip == group.number:
                released, other.held = other.held, []
                session.holding.discard(index)
                commits += _leave(session, other, released)
    return commits
