"""Duplicate answers: two replies to the same question, or two results of one call.

Which answer to show is a conflict; until it is resolved, ours is shown. A call has only one result.
"""

from __future__ import annotations

from trace_store.context.fold import REMOVED, Fold
from trace_store.merge.changes import both_parts, reworded_parts, visibility_of
from trace_store.merge.conflicts import BOTH, OURS, TEXT, THEIRS, TWO_ANSWERS
from trace_store.objects import operations as ops
from trace_store.objects.address import RESULT, Address
from trace_store.objects.message import Message, store_message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from trace_store.context.fold import Entry
    from trace_store.merge.changes import Changes, Put
    from trace_store.merge.conflicts import ConflictCollector, Resolution
    from trace_store.objects.commit import Operation

_HIDDEN = (REMOVED, False)


class Answers:
    """Detects and resolves duplicate answers of two sides."""

    def __init__(
        self, base: Fold, ours: Fold, theirs: Fold, conflicts: ConflictCollector, put: Put
    ) -> None:
        self._base, self._ours, self._theirs = base, ours, theirs
        self._conflicts, self._put = conflicts, put

    def settle_results(self, new: Sequence[Entry], changes: Changes) -> list[Entry]:
        """Resolve duplicate results of a call; return the messages of theirs that come in.

        Our result stays, with the content that was chosen; the other parts of their message come in.
        """
        common = self._theirs.addresses()
        mine = {
            (call, part["id"]): entry
            for entry in self._ours.entries
            if entry.address not in common and entry.answers
            for call, part in _results(entry)
        }
        left_out: set[Address] = set()
        for entry in new if mine else ():
            rivals = [(key, part) for key, part in _results_by_call(entry) if key in mine]
            for key, part in rivals:
                self._settle_result(mine[key], entry, key, part, changes)
            if rivals:
                gone = [part for _, part in rivals]
                left = [part for part in entry.parts if not any(part is each for each in gone)]
                # A tool message without its result is meaningless.
                if any(part["type"] == RESULT for part in left) or (
                    left and entry.message["role"] != "tool"
                ):
                    changes[entry.address].parts = left
                else:
                    left_out.add(entry.address)
        return [entry for entry in new if entry.address not in left_out]

    def _settle_result(
        self,
        mine: Entry,
        yours: Entry,
        key: tuple[Address, str],
        part: Mapping[str, Any],
        changes: Changes,
    ) -> None:
        at, own = next((n, each) for n, each in enumerate(mine.parts) if _key(each) == key)
        if own["parts"] == part["parts"]:
            return
        call = self._ours.entry(key[0]) if key[0] in self._ours else None
        settled = self._conflicts.add(TWO_ANSWERS, [key[0]], call, [mine], [yours])
        if settled.choice == OURS:
            return
        if settled.choice == THEIRS:
            said: Any = part
        elif settled.choice == BOTH:
            said = both_parts([own], [part])[0]
        else:
            said = reworded_parts([own], settled.text, self._put)[0]
        parts = list(changes[mine.address].parts or mine.parts)
        changes[mine.address].parts = [*parts[:at], said, *parts[at + 1 :]]

    def settle_turns(self, new: Sequence[Entry], changes: Changes) -> list[Operation]:
        """Resolve different answers to the last common question; return operations that add a new text."""
        asked = self._last_question(self._ours, self._theirs)
        if asked is None or asked != self._last_question(self._theirs, self._ours):
            return []
        mine = self._new_turn(self._ours, self._theirs)
        coming = {entry.address for entry in new}
        yours = [e for e in self._new_turn(self._theirs, self._ours) if e.address in coming]
        if not mine or not yours:
            return []
        if _are_equal(mine, yours):
            _hide_entries(yours, changes)
            return []
        settled = self._conflicts.add(TWO_ANSWERS, [asked], self._asked(asked), mine, yours)
        return self._apply_choice(settled, asked, mine, yours, changes)

    def _last_question(self, side: Fold, other: Fold) -> Address | None:
        """Return the last common question that a side shows; None if both sides show an answer after it.

        An answer that one side hides does not count: that side may have answered again.
        """
        for entry in reversed(side.entries):
            if entry.address in other:
                shown = _is_shown(entry), _is_shown(other.entry(entry.address))
                if any(shown) and _is_question(entry):
                    return entry.address
                if all(shown):
                    return None
        return None

    def _new_turn(self, side: Fold, other: Fold) -> list[Entry]:
        """Return the answer of one side after the last common message; results of common calls are no answers."""
        tail = (e for e in _tail(side, other) if not any(a in other for a in e.answers))
        return [
            entry
            for entry in _turn(tail)
            if all(a not in self._base or a in other for a in side.unit(entry.address))
        ]

    def _asked(self, question: Address) -> Entry:
        return (self._base if question in self._base else self._ours).entry(question)

    def settle_hidden_by_each(self, shared: Sequence[Address], changes: Changes) -> None:
        """Resolve the case that each side shows one answer and hides the other's, which would hide both.

        It happens if two merges of the same lines chose differently. `shared` are the common messages that differ or
        change, in order.
        """
        going: list[Entry] = []
        hidden: list[Entry] = []
        # Whether they are shown is known only when these are resolved.
        open_ = {address for each in self._conflicts.open for address in each.addresses}
        for address in shared:
            if open_ and not open_.isdisjoint(self._ours.unit(address)):
                continue
            mine, yours = self._ours.entry(address), self._theirs.entry(address)
            change = changes.get(address)
            visibility = None if change is None else change.visibility
            if visibility is not None and visibility[0] and _is_shown(mine):
                going.append(yours)
            elif visibility is None and mine.hidden and _is_shown(yours):
                hidden.append(yours)
        if not going or not hidden:
            return
        settled: set[Address] = set()
        answered = _by_question([self._ours, self._theirs], going, hidden)
        for question, (mine_, yours_) in sorted(answered.items(), key=lambda each: each[0]):
            rivals = {entry.address for entry in (*mine_, *yours_)}
            is_common = question in self._ours and question in self._theirs
            in_base = {address in self._base for address in rivals}
            if is_common and len(in_base) == 2 and not rivals & settled:  # only one is in the base
                self._settle_choice(question, mine_, yours_, changes)
                settled |= rivals

    def _settle_choice(
        self,
        question: Address,
        going: Sequence[Entry],
        hidden: Sequence[Entry],
        changes: Changes,
    ) -> None:
        mine = [self._ours.entry(each.address) for each in going]
        settled = self._conflicts.add(TWO_ANSWERS, [question], self._asked(question), mine, hidden)
        if settled.choice in (OURS, BOTH):
            for entry in mine:
                changes[entry.address].visibility = None
        if settled.choice in (THEIRS, BOTH):
            for entry in hidden:
                changes[entry.address].visibility = visibility_of(entry)
        if settled.choice == TEXT:
            for entry in mine:
                changes[entry.address].visibility = None
            says = mine[-1]
            changes[says.address].parts = reworded_parts(says.parts, settled.text, self._put)

    def _apply_choice(
        self,
        settled: Resolution,
        question: Address,
        mine: Sequence[Entry],
        yours: Sequence[Entry],
        changes: Changes,
    ) -> list[Operation]:
        if settled.choice in (OURS, TEXT):
            _hide_entries(yours, changes)
        if settled.choice in (THEIRS, TEXT):
            _hide_entries(mine, changes)
        if settled.choice != TEXT:
            return []
        said = store_message(Message("assistant", settled.text), self._put)
        return [ops.add([said], after=question)]


def _key(part: Mapping[str, Any]) -> tuple[Address, str] | None:
    if part["type"] != RESULT or "call" not in part:
        return None
    birth, number = part["call"]
    return Address(birth, number), part["id"]


def _results_by_call(entry: Entry) -> list[tuple[Any, Mapping[str, Any]]]:
    return [(key, part) for part in entry.parts if (key := _key(part)) is not None]


def _results(entry: Entry) -> list[tuple[Any, Mapping[str, Any]]]:
    return [(key[0], part) for key, part in _results_by_call(entry)]


def _tail(side: Fold, other: Fold) -> list[Entry]:
    """Return the messages of one side after the last common one."""
    at = len(side.entries)
    while at and side.entries[at - 1].address not in other:
        at -= 1
    return side.entries[at:]


def _turn(tail: Iterable[Entry]) -> list[Entry]:
    """Return the visible messages at the start of a tail, up to the next user message."""
    found: list[Entry] = []
    for entry in tail:
        if not _is_shown(entry):
            continue
        if entry.message["role"] not in ("assistant", "tool") and not entry.answers:
            break
        found.append(entry)
    return found


def _is_shown(entry: Entry) -> bool:
    """Return True if a model sees the message itself, not only its placeholder."""
    return entry.visible and not entry.is_ghost


def _is_question(entry: Entry) -> bool:
    return entry.message["role"] in ("user", "tool") or bool(entry.answers)


def _questions(fold: Fold) -> dict[Address, Address]:
    """Return, for each message, the question it answers: the nearest one before it."""
    found: dict[Address, Address] = {}
    asked: Address | None = None
    for entry in fold.entries:
        if asked is not None:
            found[entry.address] = asked
        asked = entry.address if _is_question(entry) else asked
    return found


def _by_question(
    sides: Iterable[Fold], going: Sequence[Entry], hidden: Sequence[Entry]
) -> dict[Address, tuple[list[Entry], list[Entry]]]:
    """Return two lists of messages by the question they answer on either side, where both have some."""
    questions = [_questions(side) for side in sides]
    found: dict[Address, tuple[list[Entry], list[Entry]]] = {}
    for at, entries in enumerate((going, hidden)):
        for entry in entries:
            asked = dict.fromkeys(each.get(entry.address) for each in questions)
            for question in asked if not _is_question(entry) else ():
                if question is not None:
                    found.setdefault(question, ([], []))[at].append(entry)
    return {question: both for question, both in found.items() if all(both)}


def _are_equal(one: Sequence[Entry], other: Sequence[Entry]) -> bool:
    return len(one) == len(other) and all(
        mine.message["role"] == yours.message["role"] and mine.parts == yours.parts
        for mine, yours in zip(one, other, strict=True)
    )


def _hide_entries(entries: Iterable[Entry], changes: Changes) -> None:
    for entry in entries:
        changes[entry.address].visibility = _HIDDEN
