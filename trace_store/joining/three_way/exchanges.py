"""Exchanges (a call with its results) that a merge would show only half of, and calls that would get two results.

Rule: what either side shows whole is not shown as a half, and a call has one result. Which side wins is a decision, so
it is brought to the desk.
"""

from __future__ import annotations

from trace_store.context.folding import REMOVED
from trace_store.context.pairs import CALL, RESULT, callers
from trace_store.joining.conflicts import BOTH, PARTED_CALL, TEXT, THEIRS, TWO_ANSWERS
from trace_store.joining.desk import Desk
from trace_store.joining.groups import answered_before, answering_before, calls_of, results_of
from trace_store.joining.three_way.properties import (
    Change,
    both_parts,
    reworded_parts,
    shown_of,
)
from trace_store.objects import operations as ops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, MutableMapping, Sequence
    from typing import Any

    from trace_store.context.folding import Entry
    from trace_store.joining.three_way.properties import Put

    Address = tuple[bytes, int]
    Changes = MutableMapping[Address, Change]


def settle_exchanges(
    ours: Sequence[Entry],
    theirs: Sequence[Entry],
    made: Mapping[Address, Entry],
    changes: Changes,
    desk: Desk,
    put: Put,
) -> None:
    """Bring calls with two results, and exchanges that the changes would part, to the desk, and do what was settled.

    Args:
        ours: the messages of our side.
        theirs: those of the other.
        made: the messages of the merged context, before `changes` are made in them.
        changes: what the merge changes in them; what was settled is added.
        desk: where contradictions are brought.
        put: stores the content of texts that settle them.
    """
    sides = _Side(ours), _Side(theirs)
    merged = _Merged(made, changes)
    _show_whole(sides, merged)
    _settle_doubled(sides, merged, desk, put)
    if not desk.open:
        _settle_parted(sides, merged, desk)


def _settle_doubled(sides: tuple[_Side, _Side], merged: _Merged, desk: Desk, put: Put) -> None:
    """Settle which result a call keeps when each side answers it in a message of its own."""
    ours, theirs = sides
    for call, results in ours.answered.items():
        own = [each for each in results if each[1] not in theirs.shown and merged.answers(*each)]
        rivals = theirs.answered.get(call, ()) if own else ()
        other = [each for each in rivals if each[1] not in ours.shown and merged.answers(*each)]
        ids = {name for name, _ in own} & {name for name, _ in other}
        if not ids or not merged.shows(call):
            continue
        mine = [ours.entries[a] for a in dict.fromkeys(a for name, a in own if name in ids)]
        yours = [theirs.entries[a] for a in dict.fromkeys(a for name, a in other if name in ids)]
        if _results(mine, ids) == _results(yours, ids):
            merged.take_out(yours, ids)
            continue
        settled = desk.bring(TWO_ANSWERS, [call], ours.entries[call], mine, yours)
        if settled.choice == BOTH:
            merged.add(mine, yours, ids)
        elif settled.choice == TEXT:
            said = reworded_parts(mine[-1].parts, settled.text, put)
            merged.change(mine[-1].address).parts = said
        merged.take_out(mine if settled.choice == THEIRS else yours, ids)


def _settle_parted(sides: tuple[_Side, _Side], merged: _Merged, desk: Desk) -> None:
    """Settle which side holds where one's changes would show half of an exchange."""
    ours, theirs = sides
    for call in {**ours.answered, **theirs.answered}:
        results = [*ours.answered.get(call, ()), *theirs.answered.get(call, ())]
        if _is_sound(merged, call, results):
            continue
        if not all(_is_sound(side, call, results) for side in sides):
            continue  # a merge repairs nothing
        together = [call, *sorted({address for _, address in results})]
        stakes = [[side.entries[a] for a in together if a in side.entries] for side in sides]
        settled = desk.bring(PARTED_CALL, [call], None, *stakes)
        wanted = theirs if settled.choice == THEIRS else ours
        # A rebase elsewhere may have half of it only, which cannot be shown whole.
        whole = all(map(merged.holds, filter(wanted.shown.__contains__, together)))
        for address in together:
            merged.make_as(address, wanted.entries.get(address) if whole else None)


def _is_sound(
    there: _Side | _Merged, call: Address, results: Sequence[tuple[str, Address]]
) -> bool:
    """Tell whether, of some results of a message's calls, exactly those are shown whose calls are shown."""
    called = {name for name, _ in results if there.calls(name, call)}
    return called == {name for name, address in results if there.answers(name, address)}


def _show_whole(sides: tuple[_Side, _Side], merged: _Merged) -> None:
    """Show the whole of an exchange that neither side shows, where a text that settles a conflict shows half of it."""
    seen = sides[0].shown | sides[1].shown
    new = {a for side in sides for a in side.entries if a not in seen and merged.shows(a)}
    for side in sides if new else ():
        every = list(side.entries.values())
        for (result, _), call in callers(every).items():
            pair = every[call], every[result]
            if any(each.address in new for each in pair):
                for each in pair:
                    merged.show(each.address)


def settle_left_out(
    ours: Mapping[Address, Entry], theirs: Sequence[Entry], new: set[Address], desk: Desk
) -> None:
    """Bring to the desk each exchange that would come in only in part, since ours left the rest of it out before.

    Args:
        ours: the messages of our side.
        theirs: those of the other.
        new: the messages of theirs that come in; whole exchanges are added or taken out, as was settled.
        desk: where contradictions are brought.
    """
    left = any(each.address not in ours and each.address not in new for each in theirs)
    if not left or desk.open:  # what is decided there may well part nothing
        return
    yours = _Side(theirs)
    for call, results in yours.answered.items():
        together = [call, *sorted({address for _, address in results})]
        coming = new.intersection(together)
        if not coming or len(coming) == len(together) or any(each in ours for each in together):
            continue
        settled = desk.bring(PARTED_CALL, [call], None, [], [yours.entries[a] for a in together])
        if settled.choice == THEIRS:
            new.update(together)
        else:
            new.difference_update(together)


def join_answers(ours: Sequence[Entry], theirs: Sequence[Entry], changes: Changes) -> None:
    """Where two answers hold results of the same earlier calls, add what theirs say to ours, and take theirs out.

    Args:
        ours: our answer; results of calls that it makes itself are left alone.
        theirs: theirs.
        changes: what is to be changed in the messages; it is added to.
    """
    merged = _Merged({}, changes)
    both = [answering_before(answer) for answer in (ours, theirs)]
    ids = answered_before(ours) & answered_before(theirs)
    # An id may be used again within an answer: only what answers from before it is joined.
    mine, yours = (
        [each for each in answer if ids & found.get(each.address, set())]
        for answer, found in zip((ours, theirs), both, strict=True)
    )
    merged.add(mine, yours, ids)
    merged.take_out(yours, ids)


def is_result_of(part: Mapping[str, Any], ids: Collection[str]) -> bool:
    """Tell whether a stored part is the result of one of some calls."""
    return part.get("type") == RESULT and part.get("id") in ids


def without_results(entry: Entry, parts: Sequence[Any], ids: Collection[str]) -> list[Any]:
    """Return stored parts of a message without the results of some calls; none where a tool has nothing left to say."""
    left = [part for part in parts if not is_result_of(part, ids)]
    taken = len(left) < len(parts)
    answers = any(part.get("type") == RESULT for part in left)
    return [] if taken and not answers and entry.message.get("role") == "tool" else left


def _halves(parts: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Return the calls and results of stored parts."""
    return [(p["type"], p.get("id")) for p in parts if p.get("type") in (CALL, RESULT)]


def _results(answer: Sequence[Entry], ids: Collection[str]) -> list[Any]:
    return [part for each in answer for part in each.parts if is_result_of(part, ids)]


class _Side:
    """The messages of a side.

    Attributes:
        entries: all of them, by address.
        shown: the addresses of those that are shown.
        answered: for each message with calls, by its address: (id of a call, address of its result) of those shown.
    """

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.entries = {entry.address: entry for entry in entries}
        seen = [entry for entry in entries if entry.visible and not entry.is_ghost]
        self.shown = {entry.address for entry in seen}
        self.answered: dict[Address, list[tuple[str, Address]]] = {}
        for (result, name), call in callers(seen).items():
            found = self.answered.setdefault(seen[call].address, [])
            found.append((name, seen[result].address))

    def calls(self, name: str, address: Address) -> bool:
        """Tell whether a message is shown that makes a call."""
        return address in self.shown and name in calls_of(self.entries[address])

    def answers(self, name: str, address: Address) -> bool:
        """Tell whether a message is shown that holds the result of a call."""
        return address in self.shown and name in results_of(self.entries[address])


class _Merged:
    """The messages of the context that a merge is about to make, and what it changes in them."""

    def __init__(self, entries: Mapping[Address, Entry], changes: Changes) -> None:
        self._entries = entries
        self._changes = changes

    def holds(self, address: Address) -> bool:
        """Tell whether a message will be there, be it hidden."""
        return address in self._entries

    def shows(self, address: Address) -> bool:
        """Tell whether a message will be shown."""
        entry = self._entries.get(address)
        if entry is None:
            return False
        change = self._changes.get(address) or Change()
        hidden, _ = shown_of(entry) if change.shown is None else change.shown
        return not hidden and (change.priority or entry.priority) != ops.SKIP

    def answers(self, name: str, address: Address) -> bool:
        """Tell whether a message will be shown that holds the result of a call."""
        return (RESULT, name) in _halves(self._parts(address))

    def calls(self, name: str, address: Address) -> bool:
        """Tell whether a message will be shown that makes a call."""
        return (CALL, name) in _halves(self._parts(address))

    def _parts(self, address: Address) -> Sequence[Any]:
        """Return what a message will say; nothing when it will not be shown."""
        if not self.shows(address):
            return ()
        change = self._changes.get(address) or Change()
        return self._entries[address].parts if change.parts is None else change.parts

    def show(self, address: Address) -> None:
        """Let a message that will be there be shown."""
        entry = self._entries.get(address)
        if entry is None or self.shows(address):
            return
        change = self.change(address)
        change.shown = ("", False) if entry.hidden else None
        if (change.priority or entry.priority) == ops.SKIP:
            change.priority = ops.NORMAL if entry.priority == ops.SKIP else None

    def change(self, address: Address) -> Change:
        """Return what is to be changed in a message, to be added to."""
        return self._changes.setdefault(address, Change())

    def add(self, ours: Sequence[Entry], theirs: Sequence[Entry], ids: Collection[str]) -> None:
        """Let our results of some calls say what theirs say, too."""
        said = _results(theirs, ids)
        for entry in ours:
            own = set(results_of(entry)).intersection(ids)
            if own:
                more = [part for part in said if part["id"] in own]
                self.change(entry.address).parts = both_parts(entry.parts, more)

    def take_out(self, entries: Sequence[Entry], ids: Collection[str]) -> None:
        """Let messages lose their results of some calls, and be hidden when they say nothing else."""
        for entry in entries:
            change = self.change(entry.address)
            parts = entry.parts if change.parts is None else change.parts
            left = without_results(entry, parts, ids)
            if not left:
                change.shown = (REMOVED, False)
            elif len(left) < len(parts):
                change.parts = left

    def make_as(self, address: Address, wanted: Entry | None) -> None:
        """Show or hide a message as `wanted` is, with its wording where calls or results differ; None hides it."""
        entry = self._entries.get(address)
        if entry is None:
            return
        change = self.change(address)
        shown = (REMOVED, False) if wanted is None else shown_of(wanted)
        change.shown = shown if shown != shown_of(entry) else None
        says = entry.parts if change.parts is None else change.parts
        again = entry.hidden and change.parts is None
        if (
            wanted is not None
            and not wanted.hidden
            and (again or _halves(says) != _halves(wanted.parts))
        ):
            change.parts = wanted.parts if wanted.parts != entry.parts else None
        if wanted is not None and ops.SKIP in (change.priority or entry.priority, wanted.priority):
            change.priority = wanted.priority if wanted.priority != entry.priority else None
