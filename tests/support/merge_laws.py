"""What holds of any context, and of a merge of two, said of their folds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trace_store.objects import operations as ops

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trace_store.context.fold import Fold
    from trace_store.merge.conflicts import Conflict
    from trace_store.objects.address import Address


def about(met: Sequence[Conflict], *sides: Fold) -> set[Address]:
    """Return the messages that conflicts are about, with their units."""
    named = {address for each in met for address in each.addresses}
    named.update(entry.address for each in met for entry in (*each.ours, *each.theirs))
    return {other for side in sides for address in named for other in side.unit(address)}


def check_sound(state: Fold) -> None:
    """Assert that each message is there once, each unit is shown as one, and no call has two results."""
    addresses = [entry.address for entry in state.entries]
    assert len(addresses) == len(set(addresses))
    shown: set[Any] = set()
    for entry in state.entries:
        for other in map(state.entry, state.unit(entry.address)):
            assert (entry.hidden, entry.ghost, entry.priority) == (
                *(other.hidden, other.ghost, other.priority),
            ), "a unit is shown and ranked as one"
        for part in entry.parts if entry.visible else ():
            if part["type"] == "tool_result":
                key = (*part["call"], part["id"])
                assert key not in shown, "a call has one result"
                shown.add(key)


def check_changes(base: Fold, before: Fold, other: Fold, after: Fold, clash: set[Address]) -> None:
    """Assert that one-sided changes are merged, except for messages in conflicts."""
    for theirs in other.entries:
        address = theirs.address
        if address not in before or address not in base or address in clash:
            continue
        ours, was, now = before.entry(address), base.entry(address), after.entry(address)
        properties = ["parts"] if len(before.unit(address)) > 1 else ["parts", "priority"]
        for each in properties:
            mine, yours, old = (getattr(entry, each) for entry in (ours, theirs, was))
            if mine == old:
                assert getattr(now, each) == yours, "what theirs changed is here"
            if yours == old:
                assert getattr(now, each) == mine, "what ours changed stays"
        if theirs.priority == ops.PINNED and not theirs.hidden and not ours.hidden:
            assert not now.hidden, "what is pinned is not hidden without a conflict"


def check_alike(one: Fold, other: Fold) -> None:
    """Assert that two merges, without a conflict and in both directions, say the same."""
    for address in one.addresses() & other.addresses():
        states = [
            (not each.hidden and each.parts, bool(each.hidden), each.priority, each.labels)
            for each in (one.entry(address), other.entry(address))
        ]
        assert states[0] == states[1]
