"""The plan of one Claude Code transcript.

Rule: a function of the file's bytes alone. File order says what comes after what; the links between records are asked
only whether a prompt goes back behind what was said (a rewind), which subagent speaks, and whether the context began
anew. A round leaves when the next API message begins, so what is planned never changes, except for the unfinished end.

Rule: no content is saved. What is unfinished is saved as places in the file, and read again from there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from trace_store.errors import StateError
from trace_store.importers.contract import (
    DUPLICATE,
    MESSAGE,
    NO_MESSAGES,
    SOURCE,
    UNREADABLE,
    Count,
    Place,
    Planned,
    PlannedThread,
    Skip,
)
from trace_store.importers.decode import Line, ReadAt, line_at
from trace_store.importers.formats.claude_code import threads as groups_
from trace_store.importers.formats.claude_code.links import Finder, Spoken
from trace_store.importers.formats.claude_code.records import (
    API_LINE,
    COMPACTION,
    METADATA,
    MICRO,
    RESULT,
    agent_of_result,
    classify,
    is_prompt,
    label,
)
from trace_store.importers.formats.claude_code.round_end import (
    close_round,
    compaction,
    record_key,
    remainder,
    time_of,
)
from trace_store.importers.formats.claude_code.threads import (
    BEGINNING,
    CommitTable,
    Group,
    Session,
    Thread,
    belonging,
    side_thread,
)
from trace_store.importers.json_records import records_of
from trace_store.importers.names import ref_component, short_id
from trace_store.transcripts.records import Record

MAXIMUM_OPEN_PARTS = 4096
"""Parts that may wait for the end of their round; past it the round ends, so that memory and commits stay bounded."""

MAXIMUM_SEGMENT_ROWS = 4096
"""Rows of a segment that a compaction preserved; Claude Code preserves some ten thousand tokens."""

_UUID_GROUPS = (8, 4, 4, 4, 12)


class ClaudeCodePlan:
    """Makes planned commits from the lines of one transcript; see `contract.Plan`."""

    def __init__(self, name: str, read_at: ReadAt) -> None:
        """Begin a plan.

        Args:
            name: the file's name without its ending; a session's file is named by the session's id.
            read_at: reads the file again where an id comes twice.
        """
        self._read_at = read_at
        self._name = name
        self._session_id = ref_component(name) if _is_uuid(name) else ""
        self._agent_id = ref_component(name.removeprefix("agent-")) if _is_agent(name) else ""
        self._state = Session()
        self._strays: dict[str, list[bytes]] = {}
        self._counts: Counter[Count] = Counter()
        self._skips: list[Skip] = []

    @classmethod
    def load(cls, name: str, read_at: ReadAt, saved: Any) -> ClaudeCodePlan:
        """Return a plan that goes on where a saved one was; errors as in `load_session`."""
        plan = cls(name, read_at)
        plan._session_id, plan._agent_id = saved["session"], saved["agent"]
        plan._state = load_session(saved["state"], read_at)
        return plan

    def save(self) -> Any:
        return {
            "session": self._session_id,
            "agent": self._agent_id,
            "state": save_session(self._state),
        }

    def resumes_at(self) -> None:
        """Read on behind what was understood: what is unfinished is saved by its place."""

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

    def feed(self, line: Line) -> Iterable[Planned]:
        records = records_of(line)
        # One record, as on nearly every line; of many on one line each is written before the next is read.
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
            yield from remainder(state, thread)
            for record in thread.waiting:
                name = label(record.data)
                self._counts[name, SOURCE] -= 1
                self._counts[name, NO_MESSAGES] += 1
                self._skips.append(Skip(record.line, NO_MESSAGES, name))
        self._counts = +self._counts

    def _take(self, record: Record) -> Sequence[Planned]:
        state, data = self._state, record.data
        finder = state.finder
        uuid = data.get("uuid")
        name = label(data)
        first = None
        if not isinstance(uuid, str):
            uuid = ""
        elif uuid not in finder.spans:
            if uuid:
                finder.spans[uuid] = (record.offset, record.length)
        else:
            first = self._first_with(uuid)
            if first is not None and first.raw == record.raw:
                self._counts[name, DUPLICATE] += 1
                self._skips.append(Skip(record.line, DUPLICATE, uuid[:100]))
                self._note_copy(uuid)
                return ()
        if not self._session_id:
            self._learn(data)
        purpose = classify(record)
        owner = self._owner(data)
        if owner:
            # It says nothing here; it is kept with the file, and joins its own session.
            self._strays.setdefault(owner, []).append(record.raw)
            state.strays.add(uuid)
            purpose = METADATA
        if first is not None and purpose not in (METADATA, MICRO) and _says_the_same(first, record):
            # Copied into the file again with other surroundings, which are kept; it is not said twice.
            purpose = METADATA
            self._note_copy(uuid)
        origin = finder.origin(data)
        if purpose in (METADATA, MICRO):
            record.parts = ()
            self._counts[name, SOURCE] += 1
            self._take_silent(record, uuid, origin, purpose)
            return ()
        self._counts[name, MESSAGE] += 1
        final = self._take_spoken(record, uuid, origin, purpose)
        if state.open_count > MAXIMUM_OPEN_PARTS:
            for thread in sorted(state.threads, key=lambda t: (t.side, t.index)):
                final += close_round(state, thread)
        return final

    def _take_silent(
        self, record: Record, uuid: str, origin: Spoken | str | None, purpose: str
    ) -> None:
        state = self._state
        # What hangs on the boundary of a compaction hangs on its summary, which follows.
        if uuid and not _is_boundary(record.data):
            state.finder.note_silent(uuid, origin)
        thread = state.threads[state.live]
        if record.data.get("isSidechain") is True and not self._agent_id:
            thread = side_thread(state, record, origin) or thread
        thread.waiting.append(record)
        if purpose == MICRO and not thread.empty:
            group = self._new_group(thread, groups_.MICROCOMPACTION, record, uuid)
            group.records += thread.waiting
            thread.waiting.clear()
            thread.turns.append(group)

    def _take_spoken(
        self, record: Record, uuid: str, origin: Spoken | str | None, purpose: str
    ) -> list[Planned]:
        state = self._state
        final: list[Planned] = []
        thread, rewind, restart, begun = belonging(
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
                    state.finder.note_spoken(uuid, thread.index, (commit.number, 0))
                final.append(commit)
                return final
        if purpose == API_LINE and self._begins_round(thread, record):
            final += close_round(state, thread)
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
            # Only turns make a message of each record.
            index = len(group.said) - 1 if group.kind == groups_.TURN else 0
            state.finder.note_spoken(uuid, thread.index, (group.number, index))
        return final

    def _preserved(self, thread: Thread) -> list[Place]:
        """Return the messages that a compaction preserved, as its boundary tells, in their order."""
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
        places = [self._state.finder.place(uuid) for uuid in uuids if isinstance(uuid, str)]
        return [place for place in places if place is not None]

    def _segment(self, head: Any, tail: Any) -> list[str]:
        """Return the uuids of the rows from a head to a tail; none when the links do not lead from one to the other."""
        uuids: list[str] = []
        spans = self._state.finder.spans
        while isinstance(tail, str) and tail in spans and len(uuids) < MAXIMUM_SEGMENT_ROWS:
            uuids.append(tail)
            if tail == head:
                return uuids[::-1]
            record = self._first_with(tail)
            tail = None if record is None else record.data.get("parentUuid")
        return []

    def _rewind(self, thread: Thread, target: int) -> tuple[PlannedThread, Thread] | None:
        """Leave a thread behind and go on from an earlier commit of it; None when nothing lies between."""
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
        """Tell whether a line is not one of the API message whose round is open.

        What was said before an API message belongs to the round before it.
        """
        return thread.api is None or thread.api.message_id != _message_id(record)

    def _group(self, thread: Thread, record: Record, uuid: str, purpose: str) -> Group:
        """Return the open group that a record belongs to, or a new one."""
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

    def _result_group(self, thread: Thread, record: Record, uuid: str) -> Group:
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

    def _new_group(self, thread: Thread, kind: str, record: Record, uuid: str) -> Group:
        return Group(
            kind,
            self._state.number(),
            self._state.unique_key(record_key(record)),
            time_of(record.data),
            message_id=_message_id(record) if kind == groups_.ASSISTANT else "",
        )

    def _first_with(self, uuid: str) -> Record | None:
        """Return the record with this id that the file holds already. An id alone proves no equality."""
        span = self._state.finder.spans[uuid]
        first = next(iter(records_of(line_at(self._read_at, 0, *span))), None)
        return first if isinstance(first, Record) else None

    def _owner(self, data: dict[str, Any]) -> str:
        """Return the session that a row belongs to, when it is another than the file's; else nothing.

        A program that resumes under another id goes on from rows of this file, and a file may begin with a copy of
        another session. Only a row that hangs on what is not in this file belongs elsewhere.
        """
        session, parent, state = data.get("sessionId"), data.get("parentUuid"), self._state
        if not isinstance(session, str) or not isinstance(parent, str) or self._agent_id:
            return ""
        owner = ref_component(session) if session else ""
        if owner in ("", self._session_id) or data.get("isSidechain") is True:
            return ""
        if state.threads[0].empty or (parent in state.finder.spans and parent not in state.strays):
            return ""
        return owner

    def _note_copy(self, uuid: str) -> None:
        """Note that a row was appended again.

        Claude Code appends old rows again when it lost track of which are in the file. What hangs on such a copy goes
        on from what the process had in memory, and no rewind hangs on one.
        """
        state = self._state
        live = state.threads[state.live]
        if live.last is not None:
            state.finder.note_copy(uuid, live.index, live.last)

    def _learn(self, data: dict[str, Any]) -> None:
        """Learn whose file it is from the first record that tells."""
        session = data.get("sessionId")
        if isinstance(session, str) and session:
            self._session_id = ref_component(session)
            agent = data.get("agentId")
            if data.get("isSidechain") is True and isinstance(agent, str) and agent:
                self._agent_id = ref_component(agent)


def _answers(thread: Thread, record: Record) -> bool:
    """Tell whether a result answers a call of the round's own API message."""
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


def _says_the_same(first: Record, record: Record) -> bool:
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


def save_session(session: Session) -> dict[str, Any]:
    """Return a session as values that JSON knows."""
    return {
        "finder": session.finder.save(),
        "keys": sorted(session.keys),
        "live": session.live,
        "message_ids": sorted(session.message_ids),
        "names": sorted(session.names),
        "next_number": session.next_number,
        "open_count": session.open_count,
        "restarts": sorted(session.restarts),
        "sides": session.sides,
        "strays": sorted(session.strays),
        "table": session.table.save(),
        "threads": [_save_thread(thread) for thread in session.threads],
    }


def load_session(saved: Any, read_at: ReadAt) -> Session:
    """Return what was saved.

    Raises:
        StateError: the file no longer holds what was unfinished.
        KeyError, TypeError, ValueError: it was not saved by this version.
    """
    threads = [_load_thread(thread, read_at) for thread in saved["threads"]]
    return Session(
        threads=threads,
        live=saved["live"],
        sides=dict(saved["sides"]),
        strays=set(saved["strays"]),
        names=set(saved["names"]),
        restarts=set(saved["restarts"]),
        keys=set(saved["keys"]),
        message_ids=set(saved["message_ids"]),
        next_number=saved["next_number"],
        open_count=saved["open_count"],
        holding={thread.index for thread in threads if thread.held},
        finder=Finder.load(saved["finder"]),
        table=CommitTable.load(saved["table"]),
    )


def _save_thread(thread: Thread) -> dict[str, Any]:
    return {
        "index": thread.index,
        "side": thread.side,
        "tip": thread.tip,
        "last": thread.last,
        "time": thread.time,
        "root": thread.root,
        "linked": thread.linked,
        "fresh": thread.fresh,
        "api": None if thread.api is None else _save_group(thread.api),
        "results": None if thread.results is None else _save_group(thread.results),
        "turns": [_save_group(group) for group in thread.turns],
        "held": [_save_group(group) for group in thread.held],
        "waiting": [_save_record(record) for record in thread.waiting],
    }


def _load_thread(saved: Any, read_at: ReadAt) -> Thread:
    return Thread(
        index=saved["index"],
        side=saved["side"],
        tip=saved["tip"],
        last=saved["last"],
        time=saved["time"],
        root=saved["root"],
        linked=saved["linked"],
        fresh=saved["fresh"],
        api=None if saved["api"] is None else _load_group(saved["api"], read_at),
        results=None if saved["results"] is None else _load_group(saved["results"], read_at),
        turns=[_load_group(group, read_at) for group in saved["turns"]],
        held=[_load_group(group, read_at) for group in saved["held"]],
        waiting=[_load_record(record, read_at) for record in saved["waiting"]],
    )


def _save_group(group: Group) -> dict[str, Any]:
    said = {id(record) for record in group.said}
    return {
        "kind": group.kind,
        "number": group.number,
        "key": group.key,
        "time": group.time,
        "message_id": group.message_id,
        "prompt": group.prompt,
        "restart": group.restart,
        "agents": group.agents,
        "records": [[*_save_record(record), id(record) in said] for record in group.records],
    }


def _load_group(saved: Any, read_at: ReadAt) -> Group:
    group = Group(
        kind=saved["kind"],
        number=saved["number"],
        key=saved["key"],
        time=saved["time"],
        message_id=saved["message_id"],
        prompt=saved["prompt"],
        restart=saved["restart"],
        agents=list(saved["agents"]),
    )
    for line, offset, length, said in saved["records"]:
        record = _load_record((line, offset, length), read_at)
        group.records.append(record)
        if said:
            classify(record)
            group.said.append(record)
    return group


def _save_record(record: Record) -> list[int]:
    return [record.line, record.offset, record.length]


def _load_record(saved: Any, read_at: ReadAt) -> Record:
    line, offset, length = saved
    found = next(iter(records_of(line_at(read_at, line, offset, length))), None)
    if not isinstance(found, Record) or found.length != length:
        raise StateError("the file was changed where it was read before")
    return found
