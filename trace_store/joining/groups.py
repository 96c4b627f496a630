"""Tool calls and their results in a fold: what belongs together, and what waits.

Rule: asked of stored parts, so that no content is read. A call and all that stands up to its last result is one group.
"""

from __future__ import annotations

from trace_store.context.pairs import CALL, RESULT, callers, loose

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from trace_store.context.folding import Entry


def calls_of(entry: Entry) -> list[str]:
    """Return the ids of a message's tool calls."""
    return [str(part.get("id", "")) for part in entry.parts if part.get("type") == CALL]


def results_of(entry: Entry) -> list[str]:
    """Return the ids of the calls whose results a message holds."""
    return [str(part.get("id", "")) for part in entry.parts if part.get("type") == RESULT]


def open_calls(entries: Iterable[Entry]) -> dict[str, Entry]:
    """Return the visible calls that have no result, by their ids, each with its message.

    A result that was hidden is one: whoever took it out did not mean the call to wait.
    """
    waiting: dict[str, Entry] = {}
    for entry in entries:
        for name in results_of(entry):
            waiting.pop(name, None)
        for name in calls_of(entry) if entry.visible else ():
            waiting[name] = entry
    return waiting


def whole(entries: Iterable[Entry]) -> list[Entry]:
    """Return messages without calls that none of them answers, and results that none of them asked for."""
    every = list(entries)
    calls, results = loose(every)
    return [entry for entry in every if entry.address not in calls | results]


def groups(entries: Sequence[Entry]) -> list[list[Entry]]:
    """Return messages in groups that move as one: a call with its results and what stands between them."""
    made: list[list[Entry]] = []
    last: dict[int, int] = {}
    for (result, _), call in callers(entries).items():
        last[call] = max(last.get(call, call), result)
    end = -1
    for at, entry in enumerate(entries):
        if at > end:
            made.append([])
        made[-1].append(entry)
        end = max(end, at, last.get(at, at))
    return made


def with_groups(entries: Sequence[Entry], wanted: Iterable[tuple[bytes, int]]) -> list[Entry]:
    """Return the messages of all groups in which one is wanted, in their order."""
    names = set(wanted)
    return [
        entry
        for group in groups(entries)
        if any(each.address in names for each in group)
        for entry in group
    ]


def misplaced(entries: Sequence[Entry]) -> list[tuple[Entry, Entry]]:
    """Return results that do not stand at their calls, each with the message that it belongs behind.

    A message that answers calls of several messages is left where it is. A ghost neither calls nor stands between.
    """
    entries = [entry for entry in entries if not entry.is_ghost]
    found: list[tuple[Entry, Entry]] = []
    calls: dict[int, set[int]] = {}
    for (result, _), call in callers(entries).items():
        calls.setdefault(result, set()).add(call)
    end: dict[int, int] = {}
    for at in sorted(calls):
        if len(calls[at]) != 1:
            continue
        (call,) = calls[at]
        behind = end.get(call, call)
        if at < call or at > behind + 1:
            found.append((entries[at], entries[behind]))
        else:
            end[call] = at
    return found
