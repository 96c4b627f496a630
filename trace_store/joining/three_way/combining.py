"""The three-way merge: the folds of the bases, of ours and of theirs in; operations and conflicts out.

Rule: a pure function. What it returns makes of our context, with theirs as the second parent, the merged one; nothing
is added to the context that neither side had, unless a text settles a conflict.
"""

from __future__ import annotations

from trace_store.context.folding import REMOVED, REPLACED, Entry, Fold
from trace_store.joining import conflicts as kinds
from trace_store.joining.conflicts import BOTH, OURS, TEXT, THEIRS
from trace_store.joining.desk import Desk
from trace_store.joining.groups import calls_of, misplaced, results_of, whole, with_groups
from trace_store.joining.plan import APPEND, DECISION, DECISIONS, INTERLEAVE, Plan, Side, no_put
from trace_store.joining.three_way import placing, tails
from trace_store.joining.three_way.exchanges import settle_exchanges, settle_left_out
from trace_store.joining.three_way.line import Line
from trace_store.joining.three_way.properties import (
    Change,
    as_changed,
    joined_base,
    merge_entry,
    operations_of,
    reworded_parts,
    same_state,
)
from trace_store.joining.three_way.taking_theirs import take_theirs
from trace_store.joining.three_way.two_answers import settle_other_choices, settle_two_answers
from trace_store.objects import operations as ops
from trace_store.objects.commit import Commit
from trace_store.objects.message import Message, store_message
from trace_store.objects.parts import ToolResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from trace_store.joining.at_stake import Read
    from trace_store.joining.conflicts import Settlements
    from trace_store.joining.three_way.properties import Put

    Address = tuple[bytes, int]

_MAY_PART = (ops.INCLUDE, ops.MOVE, ops.RESTORE, ops.ANNOTATE)


def three_way(
    bases: Sequence[Fold],
    ours: Side,
    theirs: Side,
    *,
    strategy: str = APPEND,
    settlements: Settlements | None = None,
    favour: str = "",
    time_of: Callable[[Address], int] = lambda _: 0,
    put: Put = no_put,
    elder: Fold | None = None,
    read: Read | None = None,
) -> Plan:
    """Return what brings theirs into ours.

    Args:
        bases: the folds of the merge bases; none for histories that share nothing.
        ours: the side that goes on.
        theirs: the side that is brought in.
        strategy: APPEND, INTERLEAVE, OURS, THEIRS or DECISIONS.
        settlements: how conflicts are settled, by their keys.
        favour: OURS or THEIRS settles the conflicts without one.
        time_of: the time at which a message was written, for INTERLEAVE.
        put: stores the content of texts that settle conflicts.
        elder: what two bases come from themselves, where that is one; None where nobody looked.
        read: returns content, for those who settle conflicts.

    Raises:
        InvalidOperationError: a text settles a conflict and there is no `put`.
    """
    desk = Desk(settlements or {}, favour, read=read)
    made = _Merge(bases, ours, theirs, desk, time_of, put, elder)
    if strategy == THEIRS:
        take_theirs(made.line, ours.fold, theirs.fold)
    elif strategy == DECISIONS:
        made.take_decisions()
    elif strategy != OURS:
        made.join(interleave=strategy == INTERLEAVE)
    return Plan(
        tuple(made.line.operations),
        tuple(desk.open),
        tuple(desk.settled),
        tuple(made.line.included),
    )


class _Merge:
    """A merge that is being planned: operations, and the order that they lead to."""

    def __init__(
        self,
        bases: Sequence[Fold],
        ours: Side,
        theirs: Side,
        desk: Desk,
        time_of: Callable[[Address], int],
        put: Put,
        elder: Fold | None,
    ) -> None:
        self.line = Line(entry.address for entry in ours.fold.entries)
        self._ours, self._theirs = ours.fold, theirs.fold
        self._sides = ours, theirs
        self._bases = list(bases)
        self._elder = elder
        self._desk = desk
        self._time_of = time_of
        self._put = put
        self._mine: Mapping[Address, Entry] = {e.address: e for e in ours.fold.entries}
        self._based = [{e.address: e for e in base.entries} for base in bases]
        self._yours: Mapping[Address, Entry] = {e.address: e for e in theirs.fold.entries}
        self._shared = self._mine.keys() & self._yours.keys()
        self._changes: dict[Address, Change] = {}
        self._kept: set[Address] = set()  # messages that stay as ours has them
        self._shown: set[Address] = set()  # of which it is settled whether they are shown

    def join(self, *, interleave: bool) -> None:
        """Bring everything of theirs in, and what they changed."""
        self._summaries()
        new = self._new_of_theirs()
        self._shown = settle_other_choices(
            self._bases, self._mine, self._yours, self._changes, self._desk, self._put
        )
        self._merge_entries()
        moves = self._moves()
        tail = [e for e in tails.tail_of(self._theirs.entries, self._shared) if e.address in new]
        in_tail = {entry.address for entry in tail}
        for targets, after in moves:  # first, since what comes in has its place behind what moved
            self.line.place(targets, after)
        self._bring_runs(new - in_tail)
        self._bring_tail(tail, interleave=interleave)
        self._tools()
        self._settle_exchanges()
        self._change()
        self._keep_together()

    def take_decisions(self) -> None:
        """Bring in what theirs labelled as decisions, each with the calls or results that it stands with."""
        wanted = {
            entry.address
            for entry in self._theirs.entries
            if DECISION in entry.labels and entry.visible and entry.address not in self._shared
        }
        seen = [entry for entry in self._theirs.entries if entry.visible]
        chosen = [e for e in with_groups(seen, wanted) if e.address not in self._shared]
        self._bring_tail(chosen, interleave=False, rivals=False)
        self._settle_exchanges()
        self._change()
        self._keep_together()

    def _new_of_theirs(self) -> set[Address]:
        """Return the messages that theirs has and ours never had; what ours left out before stays out."""
        new: set[Address] = set()
        for entry in self._theirs.entries:
            if entry.address in self._mine:
                continue
            had = [base[entry.address] for base in self._based if entry.address in base]
            if not had:
                new.add(entry.address)
            elif all(entry.parts != base.parts for base in had):
                settled = self._desk.bring(
                    kinds.EDITED_AND_REMOVED, [entry.address], had[0], (), [entry]
                )
                if settled.choice == THEIRS:
                    new.add(entry.address)
                elif settled.choice == TEXT:
                    new.add(entry.address)
                    change = self._changes.setdefault(entry.address, Change())
                    change.parts = reworded_parts(entry.parts, settled.text, self._put)
        settle_left_out(self._mine, self._theirs.entries, new, self._desk)
        return new

    def _merge_entries(self) -> None:
        for entry in self._theirs.entries:
            address = entry.address
            if address not in self._shared or address in self._kept:
                continue
            mine = self._mine[address]
            bases = self._bases_of(mine)
            if address in self._shown:
                entry = entry.copy()
                entry.hidden, entry.ghost = mine.hidden, mine.ghost
            change = merge_entry(bases, mine, entry, self._desk, self._put)
            if change is not None:
                settled = self._changes.get(address)
                if settled is not None:
                    change.shown = settled.shown
                    change.parts = change.parts if settled.parts is None else settled.parts
                self._changes[address] = change

    def _bases_of(self, mine: Entry) -> list[Entry]:
        """Return a message as the bases have it, or as they have it together where that is no conflict."""
        address = mine.address
        bases = [base[address] for base in self._based if address in base]
        if self._elder is None or len(bases) != len(self._bases) or same_state(*bases):
            return bases
        known = self._elder.entry(address) if address in self._elder else None
        joined = joined_base(known or Entry(address, mine.message), *bases)
        return bases if joined is None else [joined]

    def _summaries(self) -> None:
        """Settle that both sides put summaries of their own in the place of the same messages."""
        ours, theirs = self._sides
        for targets, new in theirs.replacements:
            rivals = [
                (others, made)
                for others, made in ours.replacements
                if others & targets and made and new and not set(made) & set(new)
            ]
            if not rivals:
                continue
            made = [address for _, some in rivals for address in some if address in self._mine]
            mine = [self._mine[address] for address in made]
            yours = [self._yours[a] for a in new if a not in self._mine and a in self._yours]
            if not any(e.visible for e in mine) or not any(e.visible for e in yours):
                continue
            first = next(e.address for e in self._theirs.entries if e.address in targets)
            settled = self._desk.bring(kinds.BOTH_COMPRESSED, [first], None, mine, yours)
            if settled.choice == OURS:
                self._kept |= targets
                for entry in yours:
                    self._hide(entry.address)
            elif settled.choice == THEIRS:
                for entry in mine:
                    self._hide(entry.address)
                for others, _ in rivals:
                    left = others - targets - {*made}
                    back = [e for e in self._ours.entries if e.address in left]
                    hidden = [each for each in back if each.hidden == REPLACED]
                    for entry in whole(hidden, self._ours.entries):
                        self._change_of(entry.address).shown = ("", False)

    def _bring_runs(self, new: set[Address]) -> None:
        """Bring in what stands between shared messages, each run behind what it stands behind in theirs."""
        among = set(self.line.order)
        wanted = [entry.address for entry in self._theirs.entries]
        for targets, after in placing.steps(wanted, new, among):
            if after is not None:
                after = self._behind_ours(after)
            self.line.include(targets, after)

    def _behind_ours(self, after: Address) -> Address:
        """Return the last message of what ours put behind a shared one: theirs comes after ours."""
        at = self.line.order.index(after) + 1
        order = self.line.order
        while at < len(order) and order[at] in self._mine and order[at] not in self._shared:
            after = self.line.order[at]
            at += 1
        return after

    def _bring_tail(self, tail: Sequence[Entry], *, interleave: bool, rivals: bool = True) -> None:
        """Bring in what theirs goes on with."""
        own = tails.tail_of(self._ours.entries, self._shared)
        shared = self._ours.entries[: len(self._ours.entries) - len(own)]
        if rivals:
            settle_two_answers(shared, own, tail, self._changes, self._desk, self._put)
        count = tails.completing(shared, tail)
        if count:
            last = self.line.order[-1 - len(own)]
            self.line.include([e.address for e in tail[:count]], last)
        rest = list(tail[count:])
        if interleave:
            waits = self._waits([], own, []) if tails.waiting_end(rest) else []
            places = [entry.address for entry in own]
            held = places.index(waits[0].address) if self._waiting(waits, rest) else len(own)
            first = min(held, tails.completing(shared, own))
            self._bring_interleaved((own[:first], own[first:held], own[held:]), rest)
            return
        waits = self._waits(shared, own, tail[:count])
        after = self._waiting(waits, rest) or self.line.last
        self.line.include([entry.address for entry in rest], after)

    def _waits(
        self, shared: Sequence[Entry], own: Sequence[Entry], completed: Sequence[Entry]
    ) -> list[Entry]:
        """Return the messages from an open call on with which ours ends by now."""
        return tails.waiting_end(as_changed([*shared, *completed, *own], self._changes))

    def _waiting(self, waits: Sequence[Entry], rest: Sequence[Entry]) -> Address | None:
        """Settle that ours ends in a call without its result; return where the rest of theirs goes (None: the end)."""
        gone = {a for a, change in self._changes.items() if change.shown and change.shown[0]}
        if not waits or waits[0].address in self._shared:
            return None
        if not any(e.visible and e.address not in gone for e in rest):
            return None
        settled = self._desk.bring(kinds.OPEN_CALL, [waits[0].address], None, waits, rest)
        if settled.choice == THEIRS:
            for entry in waits:
                self._hide(entry.address)
        elif settled.choice == TEXT:
            self._answer(waits, settled.text)
        elif settled.choice == OURS:
            at = self.line.order.index(waits[0].address)
            return self.line.order[at - 1] if at else None
        return None

    def _answer(self, waits: Sequence[Entry], text: str) -> None:
        """Give the open calls a result: the one message that a merge may add."""
        answered = {name for entry in waits for name in results_of(entry)}
        names = [name for entry in waits for name in calls_of(entry) if name not in answered]
        message = Message("tool", [ToolResult(name, text) for name in names])
        self.line.append(store_message(message, self._put))

    def _bring_interleaved(self, own: Sequence[Sequence[Entry]], rest: Sequence[Entry]) -> None:
        """Bring in the rest of theirs by time; what ours has first, and what it has last, stays there."""
        coming = {entry.address for entry in rest}
        mixed = [*own[0], *tails.interleaved(own[1], rest, self._time_of), *own[2]]
        line = [entry.address for entry in mixed]
        before = self.line.order[: len(self.line.order) - sum(map(len, own))]
        for targets, after in placing.steps([*before, *line], coming, set(self.line.order)):
            self.line.include(targets, after)

    def _moves(self) -> list[tuple[list[Address], Address | None]]:
        """Return how to place what theirs moved."""
        ours = [entry.address for entry in self._ours.entries]
        theirs = [entry.address for entry in self._theirs.entries]
        before = [[entry.address for entry in base.entries] for base in self._bases]
        by_us, by_them = (
            placing.moved_since(before, order, side.placed) & self._shared
            for order, side in zip((ours, theirs), self._sides, strict=True)
        )
        if not by_them:
            return []
        still = self._shared - by_us - by_them
        going = set(by_them)
        for address in [a for a in theirs if a in by_us & by_them]:
            places = [placing.neighbour(order, address, still) for order in (ours, theirs)]
            if places[0] == places[1]:
                going.discard(address)
                continue
            mine, yours = self._mine[address], self._yours[address]
            settled = self._desk.bring(kinds.BOTH_MOVED, [address], None, [mine], [yours])
            if settled.choice == OURS:
                going.discard(address)
        return placing.steps(theirs, going, self._shared)

    def _tools(self) -> None:
        ours, theirs = self._ours.tools, self._theirs.tools
        bases = [base.tools for base in self._bases] or [()]
        if ours == theirs or (theirs in bases and ours not in bases):
            return
        if (ours in bases) == (theirs in bases):  # both set them, or each has those of another base
            settled = self._desk.bring(kinds.CONTRADICTING_TOOLS, [])
            if settled.choice == OURS:
                return
            if settled.choice == BOTH:
                theirs = (*ours, *(each for each in theirs if each not in ours))
        self.line.operations.append(ops.tools(list(theirs)))  # type: ignore[arg-type]

    def _change_of(self, address: Address) -> Change:
        return self._changes.setdefault(address, Change())

    def _hide(self, address: Address) -> None:
        self._change_of(address).shown = (REMOVED, False)

    def _change(self) -> None:
        there = set(self.line.order)
        self.line.operations += operations_of([c for c in self._changes.items() if c[0] in there])

    def _settle_exchanges(self) -> None:
        if not self._desk.open:  # what is decided there may well part nothing
            made = {**{a: self._yours[a] for a in self.line.included}, **self._mine}
            ours, theirs = self._ours.entries, self._theirs.entries
            settle_exchanges(ours, theirs, made, self._changes, self._desk, self._put)

    def _keep_together(self) -> None:
        """Place results at their calls, where a merge has parted them; not what was apart before."""
        if not any(operation.name in _MAY_PART for operation in self.line.operations):
            return
        sides = self._ours, self._theirs
        apart = {e.address for side in sides for e, _ in misplaced(list(side.visible()))}
        state = self._ours.copy()
        made = Commit((), "", 0, self.line.operations)
        state.apply(ops.HERE, made, [None, self._theirs])
        seen = [entry for entry in state.entries if entry.visible]
        for entry, behind in misplaced(seen):
            if entry.address not in apart:
                self.line.place([entry.address], behind.address)
