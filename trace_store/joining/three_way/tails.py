"""The ends of two sides: what each went on with after what they share, and how that is put in one line.

Rule: pure functions of folds. A tool call and its results stay together, and the order of each side stays as it is.
"""

from __future__ import annotations

from trace_store.joining.groups import answered_before, calls_of, groups, open_calls, results_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from trace_store.context.folding import Entry

    Address = tuple[bytes, int]

QUESTION_ROLES = ("user", "tool")


def role_of(entry: Entry) -> str:
    """Return the role of a message."""
    return str(entry.message.get("role", ""))


def tail_of(entries: Sequence[Entry], shared: Collection[Address]) -> list[Entry]:
    """Return what stands behind the last shared message."""
    at = len(entries)
    while at and entries[at - 1].address not in shared:
        at -= 1
    return list(entries[at:])


def turn_of(tail: Sequence[Entry]) -> list[Entry]:
    """Return the visible messages of the answer that a tail begins with: up to where somebody else speaks."""
    found: list[Entry] = []
    for entry in tail:
        if not entry.visible:
            continue
        if role_of(entry) not in ("assistant", "tool") and not results_of(entry):
            break
        found.append(entry)
    return found


def answers(
    shared: Sequence[Entry], ours: Sequence[Entry], theirs: Sequence[Entry]
) -> tuple[list[Entry], list[Entry]] | None:
    """Return the two answers to the last shared message, when both sides answered it; else None.

    Args:
        shared: what stands before both tails.
        ours: our tail.
        theirs: their tail.
    """
    last = next((entry for entry in reversed(shared) if entry.visible), None)
    if last is None:
        return None
    turns = turn_of(ours), turn_of(theirs)
    if not all(turns):
        return None
    # A call that waits further back was given up long ago, and is no question any more.
    waiting = {name for entry in waiting_end(shared) for name in calls_of(entry)}
    waiting &= open_calls(shared).keys()
    if waiting:
        answered = [answered_before(turn) & waiting for turn in turns]
        return turns if answered[0] & answered[1] else None
    if role_of(last) not in QUESTION_ROLES and not results_of(last):
        return None
    return turns


def say_the_same(one: Sequence[Entry], other: Sequence[Entry]) -> bool:
    """Tell whether two runs of messages say the same."""
    return len(one) == len(other) and all(
        role_of(mine) == role_of(yours) and mine.parts == yours.parts
        for mine, yours in zip(one, other, strict=True)
    )


def completing(shared: Sequence[Entry], tail: Sequence[Entry]) -> int:
    """Return how many of a tail's first messages it takes to answer the calls that the shared part left open.

    Calls of the tail among these messages have their own results with them. A result that answers a call of the tail
    itself answers none of the shared part, even if the id was used there before.
    """
    waiting = open_calls(shared)
    if not waiting:
        return 0
    found = 0
    called: set[str] = set()
    for at, entry in enumerate(tail, 1):
        if waiting.keys() & (set(results_of(entry)) - called):
            found = at
        called.update(calls_of(entry))
    end = 0
    for group in groups(tail):
        if end >= found:
            break
        end += len(group)
    return end


def waiting_end(entries: Sequence[Entry]) -> list[Entry]:
    """Return the visible messages from the open call at a context's end to its last; none when it ends otherwise."""
    seen = [entry for entry in entries if entry.visible]
    waiting = set(map(id, open_calls(entries).values()))
    if not waiting:
        return []
    for at in range(len(seen) - 1, -1, -1):
        if id(seen[at]) in waiting:
            return seen[at:]
        if not results_of(seen[at]):
            return []
    return []


def interleaved(
    ours: Sequence[Entry], theirs: Sequence[Entry], time_of: Callable[[Address], int]
) -> list[Entry]:
    """Return both tails by the time of their messages; ours first at the same time.

    The order of each side stays: what has an earlier time than something before it on its side counts as later. What
    waits for a result comes last.
    """
    one, other = _timed(ours, time_of), _timed(theirs, time_of)
    made: list[Entry] = []
    first = second = 0
    while first < len(one) or second < len(other):
        if second == len(other) or (first < len(one) and one[first][0] <= other[second][0]):
            made += one[first][1]
            first += 1
        else:
            made += other[second][1]
            second += 1
    return made


def _timed(
    tail: Sequence[Entry], time_of: Callable[[Address], int]
) -> list[tuple[float, list[Entry]]]:
    end = {entry.address for entry in waiting_end(tail)}
    found: list[tuple[float, list[Entry]]] = []
    latest: float = 0
    for group in groups(tail):
        own = max(time_of(entry.address) for entry in group)
        latest = max(latest, own)
        if any(entry.address in end for entry in group):
            latest = float("inf")
        found.append((latest, group))
    return found
