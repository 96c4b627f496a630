"""Tool calls and their results in a fold: what belongs together, and what waits.

Rule: asked of stored parts, so that no content is read. A call and all that stands up to its last result is one group.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from trace_store.context.folding import Entry

CALL, RESULT = "tool_call", "tool_result"


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


def groups(entries: Sequence[Entry]) -> list[list[Entry]]:
    """Return messages in groups that move as one: a call with its results and what stands between them."""
    made: list[list[Entry]] = []
    last: dict[str, int] = {}
    for at, entry in enumerate(entries):
        for name in results_of(entry):
            last[name] = at
    end = -1
    for at, entry in enumerate(entries):
        if at > end:
            made.append([])
        made[-1].append(entry)
        end = max([end, at, *(last.get(name, at) for name in calls_of(entry))])
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

    A message that answers calls of several messages is left where it is.
    """
    found: list[tuple[Entry, Entry]] = []
    caller: dict[str, int] = {}
    for at, entry in enumerate(entries):
        for name in calls_of(entry):
            caller.setdefault(name, at)
    end: dict[int, int] = {}
    for at, entry in enumerate(entries):
        callers = {caller[name] for name in results_of(entry) if name in caller}
        if len(callers) != 1:
            continue
        (call,) = callers
        behind = end.get(call, call)
        apart = any(not each.is_ghost for each in entries[behind + 1 : at]) if at > call else True
        if apart:
            found.append((entry, entries[behind]))
        else:
            end[call] = at
    return found
