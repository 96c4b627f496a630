"""Tool calls and their results in a fold: what belongs together, and what waits.

Rule: asked of stored parts, so that no content is read. A call and all that stands up to its last result is one group.
"""

from __future__ import annotations

from trace_store.context.pairs import CALL, RESULT, apart, callers, loose

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from trace_store.context.folding import Entry


def calls_of(entry: Entry) -> list[str]:
    """Return the ids of a message's tool calls."""
    return [str(part.get("id", "")) for part in entry.parts if part.get("type") == CALL]


def results_of(entry: Entry) -> list[str]:
    """Return the ids of the calls whose results a message holds."""
    return [str(part.get("id", "")) for part in entry.parts if part.get("type") == RESULT]


def is_half(part: Mapping[str, Any]) -> bool:
    """Tell whether a stored part is a call or a result."""
    return part.get("type") in (CALL, RESULT)


def answering_before(answer: Sequence[Entry]) -> dict[tuple[bytes, int], set[str]]:
    """Return the ids of the calls from before an answer that it gives results for, by the messages that do."""
    own = callers(answer)
    found: dict[tuple[bytes, int], set[str]] = {}
    for at, entry in enumerate(answer):
        ids = {name for name in results_of(entry) if own.get((at, name), at) >= at}
        if ids:
            found[entry.address] = ids
    return found


def answered_before(answer: Sequence[Entry]) -> set[str]:
    """Return the ids of the calls from before an answer that it gives results for."""
    return set().union(*answering_before(answer).values())


def open_calls(entries: Iterable[Entry]) -> dict[str, Entry]:
    """Return the visible calls that have no result, by their ids, each with its message.

    A result that was hidden is one: whoever took it out did not mean the call to wait. A ghost calls nothing.
    """
    waiting: dict[str, Entry] = {}
    for entry in entries:
        for name in results_of(entry):
            waiting.pop(name, None)
        for name in calls_of(entry) if entry.visible and not entry.is_ghost else ():
            waiting[name] = entry
    return waiting


def whole(entries: Iterable[Entry], line: Sequence[Entry]) -> list[Entry]:
    """Return those of a line's messages that have no call or result whose other half is none of them, or is missing."""
    some = list(entries)
    among = {entry.address for entry in some}
    calls, results = loose(line)
    pairs = [{line[at].address for at in (c, r)} for (r, _), c in callers(line).items()]
    parted = {address for pair in pairs if not pair <= among for address in pair}
    return [each for each in some if each.address not in calls | results | parted]


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

    A message that answers calls of several turns is left where it is. A ghost neither calls nor stands between.
    """
    entries = [entry for entry in entries if not entry.is_ghost]
    found: list[tuple[Entry, Entry]] = []
    moved = apart(entries)
    end: dict[int, int] = {}
    for at in sorted(moved):
        last = end.get(moved[at])
        if last is None:
            last = moved[at]
            while (
                last + 1 < len(entries)
                and last + 1 not in moved
                and _only_answers(entries[last + 1])
            ):
                last += 1
        found.append((entries[at], entries[last]))
        end[moved[at]] = at
    return found


def strayed(entries: Sequence[Entry], before: Sequence[Entry]) -> list[tuple[Entry, Entry]]:
    """Return results that answer another call than they did, each with the message that it belongs behind.

    Args:
        entries: the visible messages of a context.
        before: those of one that some come from, by the addresses that they have now.
    """
    seen = [entry for entry in entries if not entry.is_ghost]
    was = [entry for entry in before if not entry.is_ghost]
    there = {entry.address: at for at, entry in enumerate(seen)}
    called = {
        (was[result].address, name): was[call].address
        for (result, name), call in callers(was).items()
    }
    found: list[tuple[Entry, Entry]] = []
    for (result, name), call in callers(seen).items():
        wanted = called.get((seen[result].address, name))
        if wanted is None or wanted not in there or wanted == seen[call].address:
            continue
        last = there[wanted]
        while last + 1 < len(seen) and _only_answers(seen[last + 1]):
            last += 1
        if last < result and (seen[result], seen[last]) not in found:
            found.append((seen[result], seen[last]))
    return found


def _only_answers(entry: Entry) -> bool:
    return bool(results_of(entry)) and not calls_of(entry)
