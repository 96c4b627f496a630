"""Two answers to one question: each side goes on from what they share with its own, or chose otherwise in a merge.

Rule: which answer is shown is a decision, so it is brought to the desk; until then it is ours.
"""

from __future__ import annotations

from trace_store.context.folding import REMOVED
from trace_store.context.pairs import callers
from trace_store.joining.conflicts import BOTH, TEXT, THEIRS, TWO_ANSWERS
from trace_store.joining.desk import Desk
from trace_store.joining.groups import results_of
from trace_store.joining.three_way import tails
from trace_store.joining.three_way.exchanges import join_answers, without_results
from trace_store.joining.three_way.properties import Change, reworded_parts, shown_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping, Sequence

    from trace_store.context.folding import Entry, Fold
    from trace_store.joining.three_way.properties import Put

    Address = tuple[bytes, int]
    Changes = MutableMapping[Address, Change]


def settle_two_answers(
    shared: Sequence[Entry],
    ours: Sequence[Entry],
    theirs: Sequence[Entry],
    changes: Changes,
    desk: Desk,
    put: Put,
) -> None:
    """Settle that both sides answer the last message that they share.

    Args:
        shared: what stands before both tails.
        ours: what ours goes on with.
        theirs: what theirs goes on with.
        changes: what is to be changed in messages; it is added to.
        desk: where contradictions are brought.
        put: stores the content of a text that settles one.
    """
    found = tails.answers(shared, ours, theirs)
    if found is None:
        return
    mine, yours = found
    if tails.say_the_same(mine, yours):
        _hide(yours, changes)
        return
    last = next(entry for entry in reversed(shared) if entry.visible)
    settled = desk.bring(TWO_ANSWERS, [last.address], last, mine, yours)
    _hide({THEIRS: mine, BOTH: []}.get(settled.choice, yours), changes)
    if settled.choice == BOTH:
        join_answers(mine, yours, changes)
    if settled.choice == TEXT:
        _say(mine, ours, settled.text, changes, put)


def settle_other_choices(
    bases: Sequence[Fold],
    ours: Mapping[Address, Entry],
    theirs: Mapping[Address, Entry],
    changes: Changes,
    desk: Desk,
    put: Put,
) -> set[Address]:
    """Settle that each side shows one of two answers, and hides the one that the other side shows.

    That comes of two merges of the same two lines that chose differently. These lines are the merge bases now, so the
    answers are found there. Return the messages of both answers: whether they are shown is settled by this.

    Args:
        bases: the contexts of the merge bases.
        ours: the messages of our side.
        theirs: those of theirs.
        changes: what is to be changed in messages; it is added to.
        desk: where contradictions are brought.
        put: stores the content of a text that settles one.
    """
    settled: set[Address] = set()
    for at, one in enumerate(bases):
        for other in bases[at + 1 :]:
            settled |= _settle_choice(one, other, ours, theirs, changes, desk, put)
    return settled


def _settle_choice(
    one: Fold,
    other: Fold,
    ours: Mapping[Address, Entry],
    theirs: Mapping[Address, Entry],
    changes: Changes,
    desk: Desk,
    put: Put,
) -> set[Address]:
    both = {entry.address for entry in one.entries if entry.address in other}
    tail = tails.tail_of(one.entries, both)
    shared = one.entries[: len(one.entries) - len(tail)]
    found = tails.answers(shared, tail, tails.tail_of(other.entries, both))
    if found is None:
        return set()
    groups = [[entry.address for entry in answer] for answer in found]
    known = [all(a in ours and a in theirs for a in group) for group in groups]
    shown = [
        [any(side[a].visible for a in g) for g in groups] for side in (ours, theirs) if all(known)
    ]
    if shown not in ([[True, False], [False, True]], [[False, True], [True, False]]):
        return set()
    if shown[0][1]:
        groups.reverse()
    last = next(entry for entry in reversed(shared) if entry.visible)
    mine, yours = [ours[a] for a in groups[0]], [theirs[a] for a in groups[1]]
    settled = desk.bring(TWO_ANSWERS, [last.address], last, mine, yours)
    every = {address for group in groups for address in group}
    for address in (
        every if settled.choice == THEIRS else groups[1] if settled.choice == BOTH else ()
    ):
        wanted = shown_of(theirs[address])
        if wanted != shown_of(ours[address]):
            _change(ours[address], changes).shown = wanted
    if settled.choice == BOTH:
        join_answers(mine, yours, changes)
    if settled.choice == TEXT:
        _say(mine, mine, settled.text, changes, put)
    return every


def _say(
    answer: Sequence[Entry], tail: Sequence[Entry], text: str, changes: Changes, put: Put
) -> None:
    """Let an answer say a text instead, and take out the calls that it made, with their results.

    The text goes to its last message that is no result of these. Results of earlier calls stay: both sides share those.
    """
    # An id may be used again, before the answer or behind it.
    line = [entry for entry in tail if entry.visible or entry in answer]
    own: dict[Address, set[str]] = {}
    for (result, name), call in callers(line).items():
        if call < result and line[call] in answer:
            own.setdefault(line[result].address, set()).add(name)
    given_up = [e for e in answer if own.get(e.address, set()).issuperset(results_of(e))]
    says = [entry for entry in answer if entry not in given_up or not results_of(entry)]
    speaker = (says or answer)[-1]
    _hide([entry for entry in given_up if entry is not speaker], changes)
    parts = [part for part in speaker.parts if part.get("type") != "tool_call"]
    _change(speaker, changes).parts = reworded_parts(parts, text, put)
    for entry in tail:  # a result may stand behind what somebody else said
        if entry not in answer and entry.address in own:
            left = without_results(entry, entry.parts, own[entry.address])
            if left:
                _change(entry, changes).parts = left
            else:
                _hide([entry], changes)


def _hide(entries: Sequence[Entry], changes: Changes) -> None:
    for entry in entries:
        _change(entry, changes).shown = (REMOVED, False)


def _change(entry: Entry, changes: Changes) -> Change:
    return changes.setdefault(entry.address, Change())
