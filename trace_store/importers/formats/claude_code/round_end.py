"""Planned commits of a finished round.

Here a group gets its parent and its effect on earlier messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from trace_store.importers.contract import AGENTS_KEY, NOTHING, Place, PlannedCommit
from trace_store.importers.formats.claude_code.records import AUTHOR, CLEARED_TEXT
from trace_store.importers.formats.claude_code.threads import (
    LATE,
    MICROCOMPACTION,
    RecordGroup,
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
    """Return the id of a record, or a hash of its bytes."""
    uuid = storable_name(record.data.get("uuid"))
    return uuid or digest(record.raw).hex()[:16]


def close_round(session: Session, thread: Thread) -> list[PlannedCommit]:
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
    session: Session, thread: Thread, record: Record, key: str, preserved: Sequence[Place]
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


def trailing_records(session: Session, thread: Thread) -> list[PlannedCommit]:
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


def _planned(session: Session, thread: Thread, group: RecordGroup) -> PlannedCommit:
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


def _named_calls(session: Session, group: RecordGroup) -> Iterator[tuple[str, Place]]:
    """Yield results of calls with reused ids, with the call that their records name."""
    for record in group.said:
        named = record.data.get("sourceToolAssistantUUID")
        place = session.links.place(named) if isinstance(named, str) else None
        calls = [part.call_id for part in record.parts if isinstance(part, ToolResult)]
        if place is not None:
            reused = session.table.reused
            yield from ((call, place) for call in calls if place[0] in reused.get(call, ()))


def _neighbour(session: Session, thread: Thread, group: RecordGroup) -> Place | None:
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


def _leave(session: Session, thread: Thread, groups: list[RecordGroup]) -> list[PlannedCommit]:
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
