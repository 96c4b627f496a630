"""Groups of records as planned commits, when their round is over.

Rule: here a group gets its parent, and what it does to the messages before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from trace_store.importers.contract import AGENTS_KEY, NOTHING, Place, PlannedCommit
from trace_store.importers.formats.claude_code.records import AUTHOR, CLEARED_TEXT
from trace_store.importers.formats.claude_code.threads import (
    LATE,
    MICROCOMPACTION,
    Group,
    Session,
    Thread,
    note_group,
    turn_message,
)
from trace_store.importers.parts import author_of, storable_name, time_of_text
from trace_store.objects.parts import ToolResult
from trace_store.oid import digest
from trace_store.transcripts.records import Record

COMPACTION_REASON = "compaction"


def time_of(data: dict[str, Any]) -> int | None:
    """Return a record's time in milliseconds since the epoch, or None."""
    text = data.get("timestamp")
    return time_of_text(text) if isinstance(text, str) else None


def record_key(record: Record) -> str:
    """Return the id of a record, or for one that has none an id of its bytes."""
    uuid = storable_name(record.data.get("uuid"))
    return uuid or digest(record.raw).hex()[:16]


def close_round(session: Session, thread: Thread) -> list[PlannedCommit]:
    """Return the commits of a thread's round, and those of subagents that it called, and begin a new round.

    The round of a subagent whose call has not left its own round waits for it.
    """
    groups = thread.groups()
    thread.clear()
    if thread.held or (thread.fresh and thread.tip not in session.table.rows):
        thread.held += groups
        session.holding.add(thread.index)
        return []
    return _leave(session, thread, groups)


def compaction(
    session: Session, thread: Thread, record: Record, key: str, preserved: Sequence[Place]
) -> PlannedCommit:
    """Return the commit in which a summary stands in for what was before it; the thread's round is over.

    Args:
        session: what is known of the session.
        thread: the thread that is compacted.
        record: the summary.
        key: what the commit is known by.
        preserved: messages that the agent is still shown, behind the summary.
    """
    context = session.table.context(thread.tip)
    left = session.table.with_partners(preserved, thread.tip)
    gone = set(context).difference(left)
    commit = PlannedCommit(
        number=session.number(),
        key=session.unique_key(key),
        thread=thread.index,
        parent=thread.tip,
        author=author_of(AUTHOR, ""),
        time=advance(thread, time_of(record.data)),
        replaces=tuple(place for place in context if place in gone),
        reason=COMPACTION_REASON,
        messages=(turn_message(record),),
        # A tail stands behind the summary by itself.
        before=() if gone and left == context[len(context) - len(left) :] else left,
        records=(*take_waiting(thread), record),
    )
    session.table.add(commit, left=left)
    session.table.summaries.add(commit.number)
    thread.tip = commit.number
    return commit


def remainder(session: Session, thread: Thread) -> list[PlannedCommit]:
    """Return a commit that only carries records without a place, when the file ends with such."""
    if not thread.waiting or thread.tip is None or thread.fresh:
        return []
    records = take_waiting(thread)
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
    """Return a time, or that of the record before where there is none."""
    if time is not None:
        thread.time = time
    return thread.time


def take_waiting(thread: Thread) -> tuple[Record, ...]:
    """Return the records without a place of their own, which go with the next that has one."""
    records = tuple(thread.waiting)
    thread.waiting.clear()
    return records


def _planned(session: Session, thread: Thread, group: Group) -> PlannedCommit:
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
    # By position: names for as many values as there are commits take longer than the values.
    return PlannedCommit(
        group.number,
        group.key,
        thread.index,
        thread.tip,
        group.author(),
        advance(thread, group.time),
        removes,
        None,  # replaces nothing
        "",
        (),  # edits nothing
        clears,
        CLEARED_TEXT if clears else "",
        () if group.kind == MICROCOMPACTION else group.messages(),
        _neighbour(session, thread, group) if group.kind == LATE else None,
        (),  # stands before nothing
        None,  # sets no tools
        NOTHING if group.message_id in session.message_ids else group.usage(),
        {AGENTS_KEY: list(group.agents)} if group.agents else NOTHING,
        (),  # links nothing
        tuple(group.records),
        tuple(_named_calls(session, group)) if session.table.reused else (),
    )


def _named_calls(session: Session, group: Group) -> Iterator[tuple[str, Place]]:
    """Yield results of calls whose id comes again, with the message that their records name as the call's."""
    for record in group.said:
        named = record.data.get("sourceToolAssistantUUID")
        place = session.finder.place(named) if isinstance(named, str) else None
        calls = [part.call_id for part in record.parts if isinstance(part, ToolResult)]
        if place is not None:
            reused = session.table.reused
            yield from ((call, place) for call in calls if place[0] in reused.get(call, ()))


def _neighbour(session: Session, thread: Thread, group: Group) -> Place | None:
    """Return behind which message a result belongs that came when its call was long past.

    None when the call has left the context meanwhile. An answer to another call of the same message may stand on a
    branch that the talk went back from, where nothing here can be put behind it.
    """
    table = session.table
    present = table.present(thread.tip)
    calling = table.calls[next(group.call_ids())]
    if calling not in present:
        return None
    answers = (table.answers.get(call) for call, number in table.calls.items() if number == calling)
    return (max([calling, *present.intersection(answers)]), 0)


def _leave(session: Session, thread: Thread, groups: list[Group]) -> list[PlannedCommit]:
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
