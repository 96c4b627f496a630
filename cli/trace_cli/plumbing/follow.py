"""`trace follow`: ref moves and emitted events of all processes, live.

Prints one line for each ref move and for each event that `trace emit` sent:

    <time> SP ref SP <full name> SP <old id> SP <new id>
    <time> SP <kind> SP <data as JSON>

Times are ISO 8601 in UTC with milliseconds. 64 zeros mean that the ref did not exist, or was deleted. With `--json`
each line is a JSON object with the keys `kind`, `time`, `author`, `data`, `ref`, `old` and `new`. The last three are
null for emitted events. The data of a ref move is its reflog message, as `message`. Bytes in data are
`{"$bin": "hex"}`.

It runs until interrupted, or until `--timeout` or `--count` ends it. With `--since` it first prints the ref moves after
that time, and the emitted events that no seal has dropped.
"""

from __future__ import annotations

from trace_cli.arguments import Option, takes
from trace_cli.failures import usage_error
from trace_cli.plumbing.contents import json_line
from trace_cli.plumbing.support import ABSENT, open_store
from trace_cli.runtime import Invocation
from trace_store.base.ident import format_time, parse_moment
from trace_store.journal.tail import REF

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from trace_store.journal.tail import JournalEvent


@takes(
    Option("--json", "json", "Print one JSON object a line"),
    Option("--since", "since", "First print the events after this time", "TIME"),
    Option("--timeout", "timeout", "Stop after this long without an event", "SECONDS", number=True),
    Option("-n --count", "count", "Stop after this many events", "NUMBER", number=True),
)
def run(
    invocation: Invocation,
    *,
    json: bool,
    since: str | None,
    timeout: int | None,
    count: int | None,
) -> int:
    """Print a line for each event until interrupted."""
    with open_store(invocation) as store:
        moment = None if since is None else parse_moment(since, store.clock.now())
        if since is not None and moment is None:
            raise usage_error(f"not a time: {since[:80]!r}")
        left = -1 if count is None else count
        if not left:
            return 0
        with store.follow(since=moment, timeout=timeout) as events:
            for event in events:
                record = _record(event)
                invocation.write(
                    json_line(record, ascii_only=invocation.terminal) + b"\n"
                    if json
                    else _plain(record)
                )
                invocation.flush()
                left -= 1
                if not left:
                    break
    return 0


def _record(event: JournalEvent) -> dict[str, Any]:
    is_move = event.kind == REF
    return {
        "kind": event.kind,
        "time": format_time(event.moment),
        "author": event.author,
        "data": _json_value(event.data),
        "ref": event.ref if is_move else None,
        "old": None if event.old is None else str(event.old),
        "new": None if event.new is None else str(event.new),
    }


def _plain(record: dict[str, Any]) -> bytes:
    head = f"{record['time']} {record['kind']} ".encode()
    if record["ref"] is None:
        return head + json_line(record["data"], ascii_only=False) + b"\n"
    return head + f"{record['ref']} {record['old'] or ABSENT} {record['new'] or ABSENT}\n".encode()


def _json_value(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"$bin": value.hex()}
    if isinstance(value, dict):
        return {key: _json_value(item) for key, item in value.items()}
    return [_json_value(item) for item in value] if isinstance(value, list) else value
