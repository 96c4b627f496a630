"""The three-way merge of contexts: base, ours and theirs in; operations and conflicts out."""

from __future__ import annotations

from trace_store.context.fold import REMOVED, REPLACED, Fold
from trace_store.merge import conflicts as kinds
from trace_store.merge.changes import Changes, both_parts, reworded_parts, visibility_of
from trace_store.merge.conflicts import BOTH, OURS, TEXT, THEIRS, ConflictCollector
from trace_store.merge.duplicate_answers import Answers
from trace_store.merge.inputs import APPEND, DECISION, DECISIONS, INTERLEAVE, MergePlan, no_put
from trace_store.merge.order import ContextOrder, fewest_moved, moves_into, neighbour
from trace_store.objects import operations as ops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from trace_store.context.fold import Entry
    from trace_store.merge.changes import Put, Visibility
    from trace_store.merge.conflicts import Read, Resolution, Resolutions
    from trace_store.objects.address import Address
    from trace_store.objects.commit import Operation


def three_way(
    base: Fold,
    ours: Fold,
    theirs: Fold,
    *,
    strategy: str = APPEND,
    resolutions: Resolutions | None = None,
    favour: str = "",
    step: str = "",
    reverts: bool = False,
    time_of: Callable[[Address], int] = lambda _: 0,
    put: Put = no_put,
    read: Read | None = None,
) -> MergePlan:
    """Return the plan that merges the changes of theirs into ours.

    Args:
        base: the common ancestor; an empty fold for unrelated histories.
        ours: the context to change.
        theirs: the context to merge.
        strategy: APPEND, INTERLEAVE, OURS, THEIRS or DECISIONS.
        resolutions: resolutions by conflict key.
        favour: OURS or THEIRS resolves all other conflicts.
        step: prefix of conflict keys if there are several merges.
        reverts: whether this is a revert: theirs is the context before a commit, so messages that it lacks are removed.
        time_of: returns the time of a message, for INTERLEAVE.
        put: stores texts that resolve conflicts.
        read: reads content, for resolvers.

    Raises:
        InvalidOperationError: a text resolves a conflict, and there is no `put`.
    """
    favour = THEIRS if strategy == THEIRS else favour
    conflicts = ConflictCollector(resolutions or {}, favour, step, reverts=reverts, read=read)
    made = _Merge(base, ours, theirs, conflicts, put, reverts=reverts)
    if strategy == THEIRS:
        made.take_theirs()
    elif strategy == DECISIONS:
        made.take_decisions()
    elif strategy != OURS:
        made.join(time_of if strategy == INTERLEAVE else None)
    return MergePlan(
        tuple(made.wordings()),
        tuple(made.operations()),
        tuple(conflicts.open),
        tuple(conflicts.settled),
        tuple(made.brought),
    )


class _Merge:
    """A three-way merge in progress.

    Attributes:
        changes: changes to messages.
        brought: messages of theirs that are added.
    """

    def __init__(
        self,
        base: Fold,
        ours: Fold,
        theirs: Fold,
        conflicts: ConflictCollector,
        put: Put,
        *,
        reverts: bool,
    ) -> None:
        self.changes = Changes()
        self.brought: list[Address] = []
        self._base, self._ours, self._theirs = base, ours, theirs
        self._conflicts, self._put, self._reverts = conflicts, put, reverts
        self._tools: tuple[bytes, ...] | None = None
        self._answers: list[Operation] = []
        self._unchosen: dict[Address, Entry] = {}  # messages whose wording in theirs was not chosen
        self._kept: set[Address] = set()  # messages that a resolution keeps as they are in ours
        self._order = ContextOrder(ours, theirs)
        held = ours.addresses()
        self._shared = [entry for entry in theirs.entries if entry.address in held]
        # An entry that neither side has changed since they parted is one object in both.
        mine, yours = ({*map(id, side.entries)} for side in (ours, theirs))
        self._own = [entry for entry in ours.entries if id(entry) not in yours]
        self._other = [entry for entry in theirs.entries if id(entry) not in mine]

    def wordings(self) -> list[Operation]:
        """Return edits that keep the wordings of theirs that were not chosen as earlier versions."""
        made: list[Operation] = []
        for address, yours in self._unchosen.items():
            mine = self._ours.entry(address)
            if all(yours.parts != version.parts for version in mine.versions):
                made.append(ops.edit(address, yours.parts))
                if address not in self.changes or self.changes[address].parts is None:
                    made.append(ops.edit(address, mine.parts))
        return made

    def operations(self) -> list[Operation]:
        """Return all other operations of the merge, in order."""
        tools = [] if self._tools is None else [ops.tools(list(self._tools))]  # type: ignore[arg-type]
        return [*self._order.operations, *tools, *self._answers, *self.changes.operations()]

    def join(self, time_of: Callable[[Address], int] | None) -> None:
        """Merge new and changed messages of theirs; `time_of` interleaves the ends by time."""
        self._merge_visibility()
        self._merge_properties()
        new = self._new_of_theirs()
        self._resolve_summaries(new)
        answers = self._answers_of_both()
        if not self._reverts:
            new = answers.settle_results(new, self.changes)
            self._answers += answers.settle_turns(new, self.changes)
            touched = {*self.changes, *(entry.address for entry in self._other)}
            shared = [each for each in touched if each in self._ours and each in self._theirs]
            answers.settle_hidden_by_each(self._theirs.in_order(shared), self.changes)
        self._merge_moves()
        self._add_new(new, time_of)
        self._merge_tools()

    def take_decisions(self) -> None:
        """Add the messages of theirs that are labelled as decisions, with their units."""
        wanted = [e.address for e in self._theirs.visible() if DECISION in e.labels]
        units = set(self._theirs.units(wanted))
        new = [
            e for e in self._theirs.entries if e.address in units and e.address not in self._ours
        ]
        self._add_new(self._answers_of_both().settle_results(new, self.changes), None)

    def take_theirs(self) -> None:
        """Make the context equal to theirs; messages that only ours has are hidden.

        But a result that only ours has stays with its call, with the content of theirs if theirs has one.
        """
        for entry in self._shared:
            mine = self._ours.entry(entry.address)
            if mine.same_state(entry):
                continue
            change = self.changes[entry.address]
            change.parts = entry.parts if entry.parts != mine.parts else None
            change.visibility = (
                visibility_of(entry) if visibility_of(entry) != visibility_of(mine) else None
            )
            change.priority = entry.priority if entry.priority != mine.priority else None
            change.keep = entry.keep if entry.keep != mine.keep else None
            change.labels = tuple(sorted(entry.labels - mine.labels))
            change.unlabels = tuple(sorted(mine.labels - entry.labels))
        for mine in self._ours.entries:
            if not {*self._ours.unit(mine.address)} & self._theirs.addresses() and mine.visible:
                self.changes[mine.address].visibility = (REMOVED, False)
        new = [each for each in self._theirs.entries if each.address not in self._ours]
        self._add(self._answers_of_both().settle_results(new, self.changes), self._last())
        wanted = [each.address for each in self._theirs.entries]
        order = self._order.addresses
        going = fewest_moved([a for a in order if a in self._theirs], wanted)
        going |= self._order.units(going) & {*wanted}
        self._order.move(moves_into(wanted, going, {*order}))
        if self._theirs.tools != self._ours.tools:
            self._tools = self._theirs.tools

    def _answers_of_both(self) -> Answers:
        return Answers(self._base, self._ours, self._theirs, self._conflicts, self._put)

    # Visibility of units

    def _base_entry(self, entry: Entry) -> Entry:
        """Return a message in the base, or as it was created, since both sides may have added it."""
        if entry.address in self._base:
            return self._base.entry(entry.address)
        created = entry.copy()
        created.current, created.hidden, created.ghost = 0, "", False
        created.priority, created.labels, created.keep = ops.NORMAL, frozenset(), ()
        return created

    def _base_unit(self, unit: Iterable[Address]) -> Entry:
        """Return the state of a unit in the base, or as it was created."""
        known = [each for each in unit if each in self._base]
        return self._base_entry(
            self._ours.entry(([each for each in known if each in self._ours] or [*unit])[0])
        )

    def _merge_visibility(self) -> None:
        """Merge the visibility of units, always as a whole."""
        done: set[Address] = set()
        for mine in self._ours.entries if self._reverts else self._own:
            address = mine.address
            if address in done:
                continue
            unit = self._ours.unit(address)
            done.update(unit[1:])
            yours = next((self._theirs.entry(a) for a in unit if a in self._theirs), None)
            is_lost = self._is_reverted_add(unit)
            if is_lost or (yours is not None and visibility_of(yours) != visibility_of(mine)):
                theirs = (REMOVED, False) if is_lost or yours is None else visibility_of(yours)
                was = self._base_unit(unit)
                self._merge_unit(unit, visibility_of(was), visibility_of(mine), theirs)

    def _is_reverted_add(self, unit: Iterable[Address]) -> bool:
        """Return True if the reverted commit added a message of a unit."""
        return self._reverts and any(a in self._base and a not in self._theirs for a in unit)

    def _merge_unit(
        self, unit: Sequence[Address], was: Visibility, mine: Visibility, yours: Visibility
    ) -> None:
        if mine[0] and yours[0] and mine != was:
            return
        if yours == was:
            self._resolve_hidden_change(
                unit, self._theirs, yours, keeps=mine != was and bool(mine[0])
            )
            return
        clashing = self._resolve_hidden_change(unit, self._ours, yours, keeps=bool(yours[0]))
        if clashing:
            return
        if mine != was:  # one shows it, the other hides it differently
            self._resolve_visibility(unit, kinds.EDITED_AND_REMOVED, yours)
        else:
            self.changes[unit[0]].visibility = yours

    def _resolve_hidden_change(
        self, unit: Sequence[Address], changer: Fold, yours: Visibility, *, keeps: bool
    ) -> bool:
        """Resolve a conflict: one side hides a unit that `changer` edited or pinned."""
        if not keeps:
            return False
        for address in unit:
            if address not in changer:
                continue
            entry = changer.entry(address)
            was = self._base_entry(entry)
            if entry.parts != was.parts:
                replaced = self._hidden_kind(changer, unit) == REPLACED
                kind = kinds.COMPRESSED_AND_EDITED if replaced else kinds.EDITED_AND_REMOVED
            elif entry.priority == ops.PINNED != was.priority:
                # In a revert, the message was pinned after the commit.
                kind = kinds.EDITED_AND_REMOVED if self._reverts else kinds.PINNED_AND_REMOVED
            else:
                continue
            self._resolve_visibility((address, *unit), kind, yours)
            return True
        return False

    def _hidden_kind(self, changer: Fold, unit: Iterable[Address]) -> str:
        other = self._theirs if changer is self._ours else self._ours
        return next((other.entry(a).hidden for a in unit if a in other), REMOVED)

    def _resolve_visibility(self, unit: Sequence[Address], kind: str, yours: Visibility) -> None:
        """Resolve a conflict: one side shows a unit and the other hides it.

        The first message of `unit` is the key of the conflict.
        """
        settled = self._resolve(kind, unit[0], yours)
        if settled.choice == THEIRS:
            self.changes[unit[0]].visibility = yours
            self._reset_skip(unit[0])
        elif settled.choice == TEXT:
            change = self.changes[unit[0]]
            change.visibility = ("", False)
            both = [side.entry(unit[0]) for side in (self._ours, self._theirs) if unit[0] in side]
            says = next((entry for entry in both if not entry.hidden), both[0])
            change.parts = reworded_parts(says.parts, settled.text, self._put)
            self._reset_skip(unit[0])
        if settled.choice != THEIRS:
            self._kept.update(unit)

    def _reset_skip(self, address: Address) -> None:
        """Reset the priority `skip` of a message that a resolution shows."""
        sides = [side.entry(address) for side in (self._ours, self._theirs) if address in side]
        change = self.changes[address]
        if change.visibility == ("", False) and sides[0].priority == ops.SKIP:
            change.priority = ops.NORMAL if sides[-1].priority == ops.SKIP else sides[-1].priority

    def _resolve(self, kind: str, address: Address, yours: Visibility | None = None) -> Resolution:
        """Return the resolution of a conflict about a message; `yours` overrides how theirs shows its unit."""
        mine, theirs = (
            [side.entry(address)] if address in side else [] for side in (self._ours, self._theirs)
        )
        if yours is not None:  # in a revert, theirs may lack the message
            theirs = [each.copy() for each in theirs or mine]
            for each in theirs:
                each.hidden, each.ghost = yours
        base = self._base.entry(address) if address in self._base else None
        return self._conflicts.add(kind, [address], base, mine, theirs)

    # Properties of messages

    def _merge_properties(self) -> None:
        """Merge content, priority, labels and patterns of common messages."""
        ranked: set[Address] = set()
        for yours in self._other:
            if yours.address not in self._ours:
                continue
            mine = self._ours.entry(yours.address)
            if mine.same_state(yours):
                continue
            was = self._base_entry(mine)
            if yours.address in self._kept:
                if yours.parts not in (mine.parts, was.parts):
                    self._unchosen[yours.address] = yours
                continue
            self._merge_content(was, mine, yours)
            if yours.address not in ranked:
                ranked.update(self._merge_priority(yours.address))
            self._merge_labels(was, mine, yours)

    def _merge_content(self, was: Entry, mine: Entry, yours: Entry) -> None:
        if yours.parts in (mine.parts, was.parts):
            return
        change = self.changes
        if mine.parts == was.parts:
            change[mine.address].parts = yours.parts
            return
        settled = self._resolve(kinds.BOTH_EDITED, mine.address)
        if settled.choice == THEIRS:
            change[mine.address].parts = yours.parts
            return
        self._unchosen[mine.address] = yours
        if settled.choice == BOTH:
            change[mine.address].parts = both_parts(mine.parts, yours.parts)
        elif settled.choice == TEXT:
            change[mine.address].parts = reworded_parts(mine.parts, settled.text, self._put)

    def _merge_priority(self, address: Address) -> list[Address]:
        """Merge the priority of the unit of a common message; return the messages of that unit in both contexts."""
        unit = self._joint_unit(address)
        present = [each for each in unit if each in self._ours]
        was = self._base_unit(present).priority
        mine, yours = (_unit_priority(side, unit, was) for side in (self._ours, self._theirs))
        chosen = mine if yours == was else yours
        if mine not in (was, yours) and yours != was:
            kind = kinds.CONTRADICTING_PRIORITIES
            if self._resolve(kind, self._ours.unit_id(address)).choice != THEIRS:
                chosen = mine
        # A unit with new messages of theirs may take over its priority from one of them.
        grows = chosen != yours and len(present) < len(unit)
        if grows or any(self._ours.entry(each).priority != chosen for each in present):
            self.changes[address].priority = chosen
        return unit

    def _joint_unit(self, address: Address) -> list[Address]:
        """Return a unit's messages in both contexts; a result may join units of one side."""
        unit = [address]
        for each in unit:
            for side in (self._ours, self._theirs):
                if each in side:
                    unit += [a for a in side.unit(each) if a not in unit]
        return unit

    def _merge_labels(self, was: Entry, mine: Entry, yours: Entry) -> None:
        """Merge labels and patterns: additions of both sides, minus removals of either."""
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

    def _merge_tools(self) -> None:
        was, mine, yours = self._base.tools, self._ours.tools, self._theirs.tools
        if yours in (mine, was):
            return
        if mine != was:
            kind = kinds.BOTH_SET_TOOLS if self._reverts else kinds.CONTRADICTING_TOOLS
            settled = self._conflicts.add(kind, [])
            if settled.choice == BOTH:
                yours = (*mine, *(each for each in yours if each not in mine))
            elif settled.choice != THEIRS:
                return
        self._tools = yours

    # Incoming messages

    def _new_of_theirs(self) -> list[Entry]:
        """Return the messages of theirs to add, in their order.

        A message that is in the base but not in ours was dropped on purpose and stays out. If theirs changed it, or
        added a result to its call, that is a conflict.
        """
        coming: set[Address] = set()
        missing: dict[Address, None] = {}
        for entry in self._other:
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
            settled = self._conflicts.add(kinds.MISSING_TARGET, [address], base, (), entries)
            if settled.choice == THEIRS:
                coming.update(each for each in unit if each not in self._ours)
        return [entry for entry in self._other if entry.address in coming]

    def _resolve_summaries(self, new: Sequence[Entry]) -> None:
        """Resolve the conflict that both sides replaced the same messages with different summaries."""
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
            settled = self._conflicts.add(
                *(kinds.BOTH_COMPRESSED, [first], self._base.entry(first), mine, yours)
            )
            if settled.choice == OURS:
                self._hide(yours)
                for address in left - gone:
                    self.changes[address].visibility = None
            elif settled.choice == THEIRS:
                self._hide(mine)
                for address in gone - left:
                    self.changes[address].visibility = ("", False)

    def _replaced_by_both(self) -> list[Address]:
        return [
            each.address
            for each in self._shared
            if each.hidden == REPLACED == self._ours.entry(each.address).hidden
            and self._is_replaced(each)
        ]

    def _is_replaced(self, entry: Entry) -> bool:
        """Return True if a side has replaced a message since the base."""
        was = self._base.entry(entry.address) if entry.address in self._base else None
        return entry.hidden == REPLACED and was is not None and not was.hidden

    def _replaced_around(
        self, side: Fold, first: Address, is_new: Callable[[Address], bool]
    ) -> tuple[set[Address], list[Entry]]:
        """Return the adjacent messages that a side replaced, and what is visible in their place."""
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
            self.changes[entry.address].visibility = (REMOVED, False)

    def _add_new(self, new: Sequence[Entry], time_of: Callable[[Address], int] | None) -> None:
        """Add messages after their predecessors in theirs, and results after their calls."""
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
                    self._add(run, self._end_of_ours(after, there))
                run, after = [], entry.address
        if time_of is None:
            self._add(run, self._last())
        else:
            order = self._order.addresses
            end = max((at for at, a in enumerate(order) if a in there), default=-1) + 1
            self._interleave(run, order[end:], time_of)

    def _last_of_unit(self, address: Address) -> Address:
        """Return our last message of a unit that a result of theirs belongs to."""
        unit = set(self._theirs.unit(address))
        for each in self._theirs.unit(address):
            unit.update(self._ours.unit(each) if each in self._ours else ())
        return next(each for each in reversed(self._order.addresses) if each in unit)

    def _end_of_ours(self, after: Address | None, there: Collection[Address]) -> Address | None:
        """Return the last message that ours added after a common one; theirs goes after it."""
        order = self._order.addresses
        at = -1 if after is None else order.index(after)
        while at + 1 < len(order) and order[at + 1] not in there:
            at += 1
        return order[at] if at >= 0 else None

    def _last(self) -> Address | None:
        """Return the last message of the context by now."""
        order = self._order.addresses
        return order[-1] if order else None

    def _interleave(
        self, run: Sequence[Entry], own: Sequence[Address], time_of: Callable[[Address], int]
    ) -> None:
        """Add the last messages of theirs by time, without splitting units or reordering a side."""
        mine = _unit_times(own, self._ours, time_of)
        yours = _unit_times([entry.address for entry in run], self._theirs, time_of)
        mixed: list[Address] = []
        for _times, _of_ours, addresses in sorted(
            [(time, 0, a) for time, a in mine] + [(time, 1, a) for time, a in yours],
            key=lambda each: each[:2],
        ):
            mixed += addresses
        coming = {entry.address for entry in run}
        order = self._order.addresses
        before = order[: len(order) - len(own)]
        steps = moves_into([*before, *mixed], coming, {*order})
        for targets, after in steps:
            self._add([self._theirs.entry(each) for each in targets], after)

    def _add(self, entries: Sequence[Entry], after: Address | None) -> None:
        """Add messages of theirs after another one; None puts them first."""
        if entries:
            self._order.add(entries, after)
            self.brought += [entry.address for entry in entries]

    # Positions

    def _merge_moves(self) -> None:
        """Apply the moves of theirs."""
        before = [entry.address for entry in self._base.entries]
        ours = [entry.address for entry in self._ours.entries]
        theirs = [entry.address for entry in self._theirs.entries]
        shared = {entry.address for entry in self._shared}
        going = fewest_moved(before, theirs) & shared
        if not going or [a for a in ours if a in shared] == [a for a in theirs if a in shared]:
            return
        by_us = fewest_moved(before, ours) & shared
        still = shared - by_us - going
        for address in [a for a in theirs if a in by_us & going]:
            places = [neighbour(order, address, still) for order in (ours, theirs)]
            if places[0] == places[1] or self._resolve(kinds.BOTH_MOVED, address).choice == OURS:
                going.discard(address)
        self._order.move(moves_into(theirs, self._order.units(going) & shared, shared))


def _unit_priority(side: Fold, unit: Iterable[Address], was: str) -> str:
    """Return the priority of a unit, changed as soon as one of its messages is."""
    found = (side.entry(each).priority for each in unit if each in side)
    return next((each for each in found if each != was), was)


def _unit_times(
    tail: Sequence[Address], fold: Fold, time_of: Callable[[Address], int]
) -> list[tuple[int, list[Address]]]:
    """Return units with the time of their last message, raised so that times never decrease."""
    there, latest = set(tail), 0
    done: set[Address] = set()
    found: list[tuple[int, list[Address]]] = []
    for address in tail:
        if address in done:
            continue
        whole = set(fold.unit(address))
        unit = [each for each in tail if each in whole]
        done |= whole
        if whole <= there:  # an answer to an earlier call keeps its position
            latest = max(latest, *map(time_of, unit))
        found.append((latest, unit))
    return found
