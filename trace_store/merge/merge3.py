"""The three-way merge of contexts: base, ours and theirs in; operations and conflicts out."""

from __future__ import annotations

from trace_store.context.entries import REMOVED, REPLACED
from trace_store.context.fold import Fold
from trace_store.merge import changes
from trace_store.merge import conflicts as kinds
from trace_store.merge.changes import Changes, both_parts, reworded_parts, shown_of
from trace_store.merge.conflicts import BOTH, OURS, TEXT, THEIRS
from trace_store.merge.duplicate_answers import Answers
from trace_store.merge.inputs import APPEND, DECISION, DECISIONS, INTERLEAVE, Plan, no_put
from trace_store.merge.resolver import Desk
from trace_store.objects import operations as ops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from trace_store.context.entries import Entry
    from trace_store.merge.changes import Put, Shown
    from trace_store.merge.conflicts import Read, Settlement, Settlements
    from trace_store.objects.address import Address
    from trace_store.objects.commit import Operation


def three_way(
    base: Fold,
    ours: Fold,
    theirs: Fold,
    *,
    strategy: str = APPEND,
    settlements: Settlements | None = None,
    favour: str = "",
    step: str = "",
    reverts: bool = False,
    time_of: Callable[[Address], int] = lambda _: 0,
    put: Put = no_put,
    read: Read | None = None,
) -> Plan:
    """Return what brings theirs into ours.

    Args:
        base: what theirs is compared with; an empty fold for histories that share nothing.
        ours: the context that goes on.
        theirs: what is brought in.
        strategy: APPEND, INTERLEAVE, OURS, THEIRS or DECISIONS.
        settlements: how conflicts are settled, by their keys.
        favour: OURS or THEIRS settles the conflicts without one.
        step: which of several steps this is, for the names of conflicts.
        reverts: whether theirs is the context before a commit that is taken back, so that what theirs lacks goes.
        time_of: the time at which a message was written, for INTERLEAVE.
        put: stores the content of texts that settle conflicts.
        read: returns content, for those who settle conflicts.

    Raises:
        InvalidOperationError: a text settles a conflict and there is no `put`.
    """
    desk = Desk(settlements or {}, favour, step, reverts=reverts, read=read)
    made = _Merge(base, ours, theirs, desk, put, reverts=reverts)
    if strategy == THEIRS:
        made.take_theirs()
    elif strategy == DECISIONS:
        made.take_decisions()
    elif strategy != OURS:
        made.join(time_of if strategy == INTERLEAVE else None)
    return Plan(
        tuple(made.operations()), tuple(desk.open), tuple(desk.settled), tuple(made.brought)
    )


class _Merge:
    """A merge that is being planned.

    Attributes:
        changes: what becomes of messages.
        brought: messages of theirs that come in.
    """

    def __init__(
        self, base: Fold, ours: Fold, theirs: Fold, desk: Desk, put: Put, *, reverts: bool
    ) -> None:
        self.changes = Changes()
        self.brought: list[Address] = []
        self._base, self._ours, self._theirs = base, ours, theirs
        self._desk, self._put, self._reverts = desk, put, reverts
        self._placed: list[Operation] = []
        self._tools: tuple[bytes, ...] | None = None
        self._said: list[Operation] = []
        self._kept: set[Address] = set()  # messages that were settled to stay as ours has them
        self._order = [entry.address for entry in ours.entries]
        self._shared = [e for e in theirs.entries if e.address in ours]

    def operations(self) -> list[Operation]:
        """Return all that the merge does, in order."""
        tools = [] if self._tools is None else [ops.tools(list(self._tools))]  # type: ignore[arg-type]
        return [*self._placed, *tools, *self._said, *self.changes.operations()]

    def join(self, time_of: Callable[[Address], int] | None) -> None:
        """Bring everything in that theirs has new, and what it changed; with `time_of` ends are put in its order."""
        self._settle_shown()
        self._settle_properties()
        new = self._new_of_theirs()
        self._settle_summaries(new)
        answers = Answers(self._base, self._ours, self._theirs, self._desk, self._put)
        if not self._reverts:
            left_out = answers.settle_results(new, self.changes)
            new = [each for each in new if each.address not in left_out]
            self._said += answers.settle_turns(new, self.changes)
            answers.settle_hidden_by_each(self._shared, self.changes)
        self._move()
        self._bring(new, time_of)
        self._settle_tools()

    def take_decisions(self) -> None:
        """Bring in what theirs labelled as decisions, each with its unit."""
        wanted = [e.address for e in self._theirs.visible() if DECISION in e.labels]
        units = set(self._theirs.units(wanted))
        new = [
            e for e in self._theirs.entries if e.address in units and e.address not in self._ours
        ]
        self._bring(new, None)

    def take_theirs(self) -> None:
        """Let the context become theirs, whatever ours did; what only ours has is hidden."""
        for entry in self._shared:
            mine = self._ours.entry(entry.address)
            if mine.same_state(entry):
                continue
            change = self.changes[entry.address]
            change.parts = entry.parts if entry.parts != mine.parts else None
            change.shown = shown_of(entry) if shown_of(entry) != shown_of(mine) else None
            change.priority = entry.priority if entry.priority != mine.priority else None
            change.keep = entry.keep if entry.keep != mine.keep else None
            change.labels = tuple(sorted(entry.labels - mine.labels))
            change.unlabels = tuple(sorted(mine.labels - entry.labels))
        for mine in self._ours.entries:
            if not {*self._ours.unit(mine.address)} & self._theirs.addresses() and mine.visible:
                self.changes[mine.address].shown = (REMOVED, False)
        new = [each for each in self._theirs.entries if each.address not in self._ours]
        self._add(new, self._order[-1] if self._order else None)
        wanted = [each.address for each in self._theirs.entries]
        going = changes.moved([a for a in self._order if a in self._theirs], wanted)
        going |= self._whole(going) & {*wanted}
        self._place(changes.steps(wanted, going, set(self._order)))
        if self._theirs.tools != self._ours.tools:
            self._tools = self._theirs.tools

    # How units are shown

    def _was(self, entry: Entry) -> Entry:
        """Return a message as the base has it, or as it was created: both sides may have brought it."""
        if entry.address in self._base:
            return self._base.entry(entry.address)
        created = entry.copy()
        created.current, created.hidden, created.ghost = 0, "", False
        created.priority, created.labels, created.keep = ops.NORMAL, frozenset(), ()
        return created

    def _unit_was(self, unit: Iterable[Address]) -> Entry:
        """Return a message of a unit as the base has the unit, or as it was created."""
        known = [each for each in unit if each in self._base]
        return self._was(
            self._ours.entry(([each for each in known if each in self._ours] or [*unit])[0])
        )

    def _settle_shown(self) -> None:
        """Settle for each unit whether it is shown; it is asked of the whole, never of half of it."""
        done: set[Address] = set()
        same = set() if self._reverts else {id(entry) for entry in self._theirs.entries}
        for mine in self._ours.entries:
            address = mine.address
            if address in done or id(mine) in same:
                continue
            unit = self._ours.unit(address)
            done.update(unit[1:])
            yours = next((self._theirs.entry(a) for a in unit if a in self._theirs), None)
            is_lost = self._is_lost(unit)
            if is_lost or (yours is not None and shown_of(yours) != shown_of(mine)):
                theirs = (REMOVED, False) if is_lost or yours is None else shown_of(yours)
                was = self._unit_was(unit)
                self._settle_unit(unit, shown_of(was), shown_of(mine), theirs)

    def _is_lost(self, unit: Iterable[Address]) -> bool:
        """Tell whether a commit brought a message of a unit that is to be taken back."""
        return self._reverts and any(a in self._base and a not in self._theirs for a in unit)

    def _settle_unit(self, unit: Sequence[Address], was: Shown, mine: Shown, yours: Shown) -> None:
        if mine[0] and yours[0] and mine != was:
            return
        if yours == was:
            self._settle_clash(unit, self._theirs, yours, keeps=mine != was and bool(mine[0]))
            return
        clashing = self._settle_clash(unit, self._ours, yours, keeps=bool(yours[0]))
        if clashing:
            return
        if mine != was:  # one shows it, the other hides it in another way than before
            self._settle_between(unit, kinds.EDITED_AND_REMOVED, yours)
        else:
            self.changes[unit[0]].shown = yours

    def _settle_clash(
        self, unit: Sequence[Address], changer: Fold, yours: Shown, *, keeps: bool
    ) -> bool:
        """Settle that one side hides a unit (`keeps`) in which `changer` reworded or pinned a message."""
        if not keeps:
            return False
        for address in unit:
            if address not in changer:
                continue
            entry = changer.entry(address)
            was = self._was(entry)
            if entry.parts != was.parts:
                replaced = self._hider(changer, unit) == REPLACED
                kind = kinds.COMPRESSED_AND_EDITED if replaced else kinds.EDITED_AND_REMOVED
            elif entry.priority == ops.PINNED != was.priority:
                # What a revert takes back was pinned since.
                kind = kinds.EDITED_AND_REMOVED if self._reverts else kinds.PINNED_AND_REMOVED
            else:
                continue
            self._settle_between((address, *unit), kind, yours)
            return True
        return False

    def _hider(self, changer: Fold, unit: Iterable[Address]) -> str:
        other = self._theirs if changer is self._ours else self._ours
        return next((other.entry(a).hidden for a in unit if a in other), REMOVED)

    def _settle_between(self, unit: Sequence[Address], kind: str, yours: Shown) -> None:
        """Bring to the desk that one side shows a unit and the other hides it; the first message gives its name."""
        settled = self._bring_up(kind, unit[0], yours)
        if settled.choice == THEIRS:
            self.changes[unit[0]].shown = yours
            self._unskip(unit[0])
        elif settled.choice == TEXT:
            change = self.changes[unit[0]]
            change.shown = ("", False)
            both = [side.entry(unit[0]) for side in (self._ours, self._theirs) if unit[0] in side]
            says = next((entry for entry in both if not entry.hidden), both[0])
            change.parts = reworded_parts(says.parts, settled.text, self._put)
            self._unskip(unit[0])
        if settled.choice != THEIRS:
            self._kept.update(unit)

    def _unskip(self, address: Address) -> None:
        """Let a message that was settled to be shown have a priority by which it is."""
        sides = [side.entry(address) for side in (self._ours, self._theirs) if address in side]
        change = self.changes[address]
        if change.shown == ("", False) and sides[0].priority == ops.SKIP:
            change.priority = ops.NORMAL if sides[-1].priority == ops.SKIP else sides[-1].priority

    def _bring_up(self, kind: str, address: Address, yours: Shown | None = None) -> Settlement:
        """Return how a conflict about one message is settled; `yours` is how theirs shows its unit, if that counts."""
        mine, theirs = (
            [side.entry(address)] if address in side else [] for side in (self._ours, self._theirs)
        )
        if yours is not None:  # before a commit that is reverted, the message may not be there
            theirs = [each.copy() for each in theirs or mine]
            for each in theirs:
                each.hidden, each.ghost = yours
        base = self._base.entry(address) if address in self._base else None
        return self._desk.bring(kind, [address], base, mine, theirs)

    # What messages are

    def _settle_properties(self) -> None:
        """Settle for each message that both have what it says, and how it is marked."""
        ranked: set[Address] = set()
        for yours in self._shared:
            mine = self._ours.entry(yours.address)
            if mine.same_state(yours) or yours.address in self._kept:
                continue
            was = self._was(mine)
            self._settle_wording(was, mine, yours)
            if yours.address not in ranked:
                unit = self._ours.unit(yours.address)
                ranked.update(unit)
                self._settle_priority(self._unit_was(unit), mine, yours)
            self._add_up(was, mine, yours)

    def _settle_wording(self, was: Entry, mine: Entry, yours: Entry) -> None:
        if yours.parts in (mine.parts, was.parts):
            return
        change = self.changes
        if mine.parts == was.parts:
            change[mine.address].parts = yours.parts
        elif not (mine.hidden and yours.hidden):
            settled = self._bring_up(kinds.BOTH_EDITED, mine.address)
            if settled.choice == THEIRS:
                change[mine.address].parts = yours.parts
            elif settled.choice == BOTH:
                change[mine.address].parts = both_parts(mine.parts, yours.parts)
            elif settled.choice == TEXT:
                change[mine.address].parts = reworded_parts(mine.parts, settled.text, self._put)

    def _settle_priority(self, was: Entry, mine: Entry, yours: Entry) -> None:
        if yours.priority in (mine.priority, was.priority):
            return
        if mine.priority != was.priority:
            kind = kinds.CONTRADICTING_PRIORITIES
            if self._bring_up(kind, self._ours.unit_id(mine.address)).choice != THEIRS:
                return
        self.changes[mine.address].priority = yours.priority

    def _add_up(self, was: Entry, mine: Entry, yours: Entry) -> None:
        """Bring labels and patterns together: what either side gave, and neither took away, stays."""
        labels = (mine.labels | (yours.labels - was.labels)) - (was.labels - yours.labels)
        if labels != mine.labels:
            change = self.changes[mine.address]
            change.labels = tuple(sorted(labels - mine.labels))
            change.unlabels = tuple(sorted(mine.labels - labels))
        if yours.keep not in (mine.keep, was.keep):
            if mine.keep == was.keep:
                self.changes[mine.address].keep = yours.keep
            else:
                more = [each for each in yours.keep if each not in mine.keep]
                if more:
                    self.changes[mine.address].keep = (*mine.keep, *more)

    def _settle_tools(self) -> None:
        was, mine, yours = self._base.tools, self._ours.tools, self._theirs.tools
        if yours in (mine, was):
            return
        if mine != was:
            kind = kinds.BOTH_SET_TOOLS if self._reverts else kinds.CONTRADICTING_TOOLS
            settled = self._desk.bring(kind, [])
            if settled.choice == BOTH:
                yours = (*mine, *(each for each in yours if each not in mine))
            elif settled.choice != THEIRS:
                return
        self._tools = yours

    # What comes in

    def _new_of_theirs(self) -> list[Entry]:
        """Return the messages of theirs that come in, in their order.

        What the base has and ours has not was left out before, and stays out; that theirs changed it is a conflict, and
        so is a new result of a call that is not here.
        """
        coming: set[Address] = set()
        missing: dict[Address, None] = {}
        for entry in self._theirs.entries:
            if entry.address in self._ours:
                continue
            if entry.address in self._base:
                if not entry.same_state(self._base.entry(entry.address)):
                    missing[self._theirs.unit_id(entry.address)] = None
                continue
            unit = self._theirs.unit(entry.address)
            left_out = any(each in self._base and each not in self._ours for each in unit)
            if left_out:
                missing[self._theirs.unit_id(entry.address)] = None
            else:
                coming.add(entry.address)
        for address in missing:
            base = self._base.entry(address) if address in self._base else None
            unit = self._theirs.unit(address)
            entries = [self._theirs.entry(each) for each in self._theirs.in_order(unit)]
            settled = self._desk.bring(kinds.MISSING_TARGET, [address], base, (), entries)
            if settled.choice == THEIRS:
                coming.update(each for each in unit if each not in self._ours)
        return [entry for entry in self._theirs.entries if entry.address in coming]

    def _settle_summaries(self, new: Sequence[Entry]) -> None:
        """Settle that both sides put summaries of their own in the place of the same messages."""
        coming = {entry.address for entry in new}
        done: set[Address] = set()
        for first in self._replaced_by_both():
            if first in done:
                continue
            gone, mine = self._replaced_around(self._ours, first, lambda a: a not in self._theirs)
            left, yours = self._replaced_around(self._theirs, first, lambda a: a in coming)
            done |= gone & left
            if not mine or not yours:
                continue
            settled = self._desk.bring(
                *(kinds.BOTH_COMPRESSED, [first], self._base.entry(first), mine, yours)
            )
            if settled.choice == OURS:
                self._hide(yours)
                for address in left - gone:
                    self.changes[address].shown = None
            elif settled.choice == THEIRS:
                self._hide(mine)
                for address in gone - left:
                    self.changes[address].shown = ("", False)

    def _replaced_by_both(self) -> list[Address]:
        return [
            each.address
            for each in self._shared
            if each.hidden == REPLACED == self._ours.entry(each.address).hidden
            and self._is_replaced(each)
        ]

    def _is_replaced(self, entry: Entry) -> bool:
        """Tell whether a side has put something in the place of a message since the base."""
        was = self._base.entry(entry.address) if entry.address in self._base else None
        return entry.hidden == REPLACED and was is not None and not was.hidden

    def _replaced_around(
        self, side: Fold, first: Address, is_new: Callable[[Address], bool]
    ) -> tuple[set[Address], list[Entry]]:
        """Return the messages around one that a side replaced with it, and what is shown in their place."""
        entries = side.entries
        at = end = entries.index(side.entry(first))
        while end < len(entries) and self._is_replaced(entries[end]):
            end += 1
        while at and (self._is_replaced(entries[at - 1]) or is_new(entries[at - 1].address)):
            at -= 1
        run = entries[at:end]
        gone = {each.address for each in run if self._is_replaced(each)}
        return gone, [each for each in run if is_new(each.address) and each.visible]

    def _hide(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self.changes[entry.address].shown = (REMOVED, False)

    def _bring(self, new: Sequence[Entry], time_of: Callable[[Address], int] | None) -> None:
        """Bring in messages, each behind what it follows in theirs, and results at their calls."""
        coming = {entry.address for entry in new}
        answering = [e for e in new if any(a in self._ours for a in self._theirs.unit(e.address))]
        for entry in answering:
            self._add([entry], self._last_of_unit(entry.address))
            coming.discard(entry.address)
        there = {entry.address for entry in self._shared}
        run: list[Entry] = []
        after: Address | None = None
        for entry in self._theirs.entries:
            if entry.address in coming:
                run.append(entry)
            elif entry.address in there:
                if run:
                    self._add(run, self._behind_ours(after, there))
                run, after = [], entry.address
        if time_of is None:
            self._add(run, self._order[-1] if self._order else None)
        else:
            end = max((at for at, a in enumerate(self._order) if a in there), default=-1) + 1
            self._interleave(run, self._order[end:], time_of)

    def _last_of_unit(self, address: Address) -> Address:
        """Return the last of the messages in ours that a result of theirs stands with."""
        unit = set(self._theirs.unit(address))
        for each in self._theirs.unit(address):
            unit.update(self._ours.unit(each) if each in self._ours else ())
        return next(each for each in reversed(self._order) if each in unit)

    def _behind_ours(self, after: Address | None, there: Collection[Address]) -> Address | None:
        """Return the last message of what ours put behind a shared one: theirs comes after ours."""
        at = -1 if after is None else self._order.index(after)
        while at + 1 < len(self._order) and self._order[at + 1] not in there:
            at += 1
        return self._order[at] if at >= 0 else None

    def _interleave(
        self, run: Sequence[Entry], own: Sequence[Address], time_of: Callable[[Address], int]
    ) -> None:
        """Bring in the end of theirs by time; units stay whole, and the order of each side as it is."""
        mine = _timed(own, self._ours, time_of)
        yours = _timed([entry.address for entry in run], self._theirs, time_of)
        mixed: list[Address] = []
        for _times, _of_ours, addresses in sorted(
            [(time, 0, a) for time, a in mine] + [(time, 1, a) for time, a in yours],
            key=lambda each: each[:2],
        ):
            mixed += addresses
        coming = {entry.address for entry in run}
        before = self._order[: len(self._order) - len(own)]
        steps = changes.steps([*before, *mixed], coming, {*self._order})
        for targets, after in steps:
            self._add([self._theirs.entry(each) for each in targets], after)

    def _add(self, entries: Sequence[Entry], after: Address | None) -> None:
        """Add messages of theirs behind one, None puts them first."""
        if not entries:
            return
        addresses = [entry.address for entry in entries]
        is_end = bool(self._order) and after == self._order[-1]
        carried = [entry.carried() for entry in entries]
        if (
            self._order and after is None
        ):  # an `add` names what it comes behind: at the front is nothing
            self._placed.append(ops.add(carried))
            self._placed.append(ops.move(addresses, after=None))
        else:
            self._placed.append(ops.add(carried, after=None if is_end else after))
        at = 0 if after is None else self._order.index(after) + 1
        self._order[at:at] = addresses
        self.brought += addresses

    # Places

    def _move(self) -> None:
        """Place what theirs moved as theirs has it."""
        before = [entry.address for entry in self._base.entries]
        ours = [entry.address for entry in self._ours.entries]
        theirs = [entry.address for entry in self._theirs.entries]
        shared = {entry.address for entry in self._shared}
        going = changes.moved(before, theirs) & shared
        if not going or [a for a in ours if a in shared] == [a for a in theirs if a in shared]:
            return
        by_us = changes.moved(before, ours) & shared
        still = shared - by_us - going
        for address in [a for a in theirs if a in by_us & going]:
            places = [changes.neighbour(order, address, still) for order in (ours, theirs)]
            if places[0] == places[1] or self._bring_up(kinds.BOTH_MOVED, address).choice == OURS:
                going.discard(address)
        self._place(changes.steps(theirs, self._whole(going) & shared, shared))

    def _whole(self, addresses: Iterable[Address]) -> set[Address]:
        return {each for a in addresses if a in self._ours for each in self._ours.unit(a)}

    def _place(self, steps: Iterable[tuple[list[Address], Address | None]]) -> None:
        for targets, after in steps:
            moved = [*targets, *(a for a in self._whole(targets) if a not in targets)]
            rest = [each for each in self._order if each not in moved]
            at = 0 if after is None else rest.index(after) + 1
            self._placed.append(ops.move(targets, after=after))
            whole = [each for each in self._order if each in moved]
            self._order = [*rest[:at], *_as_moved(targets, whole, self._ours), *rest[at:]]


def _as_moved(targets: Sequence[Address], moved: Sequence[Address], fold: Fold) -> list[Address]:
    """Return moved messages in the order that the fold gives them: units as named, each in the context's order."""
    found: dict[Address, None] = {}
    for address in targets:
        unit = set(fold.unit(address)) if address in fold else {address}
        if address not in found:
            found.update(dict.fromkeys(each for each in moved if each in unit))
    return list(found)


def _timed(
    tail: Sequence[Address], fold: Fold, time_of: Callable[[Address], int]
) -> list[tuple[int, list[Address]]]:
    """Return units with the time of their last message; what is earlier than something before it counts as later."""
    there, latest = set(tail), 0
    done: set[Address] = set()
    found: list[tuple[int, list[Address]]] = []
    for address in tail:
        if address in done:
            continue
        whole = set(fold.unit(address))
        unit = [each for each in tail if each in whole]
        done |= whole
        if whole <= there:  # what answers a call from before stays where it is
            latest = max(latest, *map(time_of, unit))
        found.append((latest, unit))
    return found
