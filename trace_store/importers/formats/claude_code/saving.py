"""What a plan remembers, as plain values and back.

Rule: no content is saved. What is unfinished is saved as places in the file, and read again from there.
"""

from __future__ import annotations

from typing import Any

from trace_store.errors import StateError
from trace_store.importers.contract import Record
from trace_store.importers.formats.claude_code.finding import Finder
from trace_store.importers.formats.claude_code.groups import Group
from trace_store.importers.formats.claude_code.kinds import classify
from trace_store.importers.formats.claude_code.threads import CommitTable, Session, Thread
from trace_store.importers.json_records import records_of
from trace_store.importers.lines import ReadAt, line_at


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
