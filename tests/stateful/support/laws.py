"""What has to hold of a merge, a pick, a rebase and a revert, said of the contexts before and after.

Rule: pure functions that assert. They say what is to come out, message by message, and nothing of how it is made.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

from tests.stateful.support.pictures import (
    Address,
    Picture,
    Seen,
    broken,
    each_pair,
    faults,
    in_order,
    together,
)
from trace_store.joining import Conflict, Settlement
from trace_store.objects import operations as ops

Settled = Sequence[tuple[Conflict, Settlement]]
OF_MANY = ("both-compressed", "both-moved")
"""Kinds of conflicts whose settlement changes messages that the conflict does not name."""


def common(ours: Picture, theirs: Picture, result: Picture, settled: Settled) -> None:
    """What holds of every merge, whatever its strategy and settlements."""
    new = broken(result, ours, theirs)
    assert not new, f"the merge broke {new}"
    visible = {each.address for each in result.visible}
    for mine, yours in each_pair(ours, theirs):
        if mine.is_visible and yours.is_visible and not (mine.is_ghost or yours.is_ghost):
            assert mine.address in visible, "lost what both sides show"
    known = {each.address for each in (*ours.visible, *theirs.visible)}
    added = visible - known
    answers = sum(c.kind == "open-call" and said.choice == "text" for c, said in settled)
    revived = _with_texts(result, settled)
    restored = {
        a
        for each, said in settled
        if each.kind == "both-compressed" and said.choice == "theirs"
        for a in (mine.address for mine in ours.entries)
    }
    assert len(added - revived - restored) <= answers, "shows what neither side shows"


def clean(
    bases: Sequence[Picture],
    elder: Picture | None,
    ours: Picture,
    theirs: Picture,
    result: Picture,
    settled: Settled,
) -> None:
    """A merge by `append` or `interleave`: each property of each message by the rule of three ways.

    Messages that a settlement decided on are left to `chosen`.

    Args:
        bases: the merge bases.
        elder: what two bases come from, where that is one.
        ours, theirs: the sides.
        result: what they became.
        settled: the conflicts, and what was said of them.
    """
    based = [base.by_address for base in bases]
    mine, yours, made = ours.by_address, theirs.by_address, result.by_address
    decided = _decided(settled) | _with_texts(result, settled)
    whole = not any(each.kind in OF_MANY for each, _ in settled)
    gone = {a for a in yours if a not in mine and any(a in base for base in based)}
    # What ours left out, the rest of an exchange follows, where that is what somebody chose.
    gone |= _decided([each for each in settled if each[0].kind == "parted-call"]) - mine.keys()
    added = set(made) - (set(mine) | set(yours)) | (set(made) & gone)
    assert set(mine) | (set(yours) - gone) <= set(made), "lost a message"
    assert len(added - decided) <= sum(said.choice == "text" for _, said in settled)
    if not whole:
        return
    for address, each in made.items():
        if address in decided or address in added:
            continue
        if address in mine and address in yours:
            had = [base[address] for base in based if address in base]
            had = had or [mine[address].as_written()]
            if elder is not None and len(had) == 2:
                before = elder.by_address.get(address) or had[0].as_written()
                had = _without_contradiction(before, *had)
            _three_ways(had, mine[address], yours[address], each)
        elif address in mine:
            assert each.state == mine[address].state
        elif each.state != yours[address].state:
            said = [other.says for other in ours.visible]
            assert not each.is_visible, "changed what only theirs has"
            assert yours[address].says in said, "hid what nobody else says"
    if not settled:
        _orders(bases, ours, theirs, result)


def _without_contradiction(elder: Seen, one: Seen, other: Seen) -> list[Seen]:
    """Return a message as two bases have it together, or both of them where they contradict each other."""

    def did(side: Seen, name: str) -> bool:
        return bool(getattr(side, name) != getattr(elder, name))

    hidden = bool(one.shown[0] and other.shown[0])
    for name in ("says", "shown", "priority"):
        differ = getattr(one, name) != getattr(other, name)
        if differ and did(one, name) and did(other, name) and not (hidden and name != "priority"):
            return [one, other]
    for hider, shower in ((one, other), (other, one)):
        if hider.shown[0] and not shower.shown[0] and did(hider, "shown"):
            pins = shower.priority == ops.PINNED and did(shower, "priority")
            if did(shower, "says") or pins:
                return [one, other]
    said = one if did(one, "says") else other
    return [
        replace(
            one,
            parts=said.parts,
            first=said.first,
            shown=(one if did(one, "shown") else other).shown,
            priority=(one if did(one, "priority") else other).priority,
            keep=tuple(dict.fromkeys((*one.keep, *other.keep)))
            if did(one, "keep") and did(other, "keep")
            else (one if did(one, "keep") else other).keep,
            labels=frozenset(
                label
                for label in one.labels | other.labels
                if (label in one.labels and label in other.labels) or label not in elder.labels
            ),
        )
    ]


def _three_ways(bases: Sequence[Seen], ours: Seen, theirs: Seen, made: Seen) -> None:
    of: tuple[Callable[[Seen], Any], ...] = (
        lambda each: each.says,
        lambda each: each.shown,
        lambda each: each.priority,
    )
    for value in of:
        mine, yours, now = value(ours), value(theirs), value(made)
        by_us = all(value(base) != mine for base in bases)
        by_them = all(value(base) != yours for base in bases)
        if mine == yours or not by_them:
            assert now == mine, (mine, yours, now)
        elif not by_us:
            assert now == yours, (mine, yours, now)
        else:
            assert ours.shown[0], "both changed it, and nobody was asked"
            assert theirs.shown[0], "both changed it, and nobody was asked"
            assert now == mine
    expected = {
        label
        for label in ours.labels | theirs.labels
        if (label in ours.labels and label in theirs.labels)
        or (label in ours.labels and not all(label in base.labels for base in bases))
        or (label in theirs.labels and not any(label in base.labels for base in bases))
    }
    assert made.labels == expected, (ours.labels, theirs.labels, made.labels)
    if set(ours.keep) != set(theirs.keep) and all(base.keep != theirs.keep for base in bases):
        assert set(theirs.keep) <= set(made.keep)


def _orders(bases: Sequence[Picture], ours: Picture, theirs: Picture, result: Picture) -> None:
    """Where nobody moved what both have, each side's messages stand in their order."""
    mine, yours = ours.by_address, theirs.by_address
    shared = [a for a in ours.order if a in yours]
    if shared != [a for a in theirs.order if a in mine] or faults(ours) or faults(theirs):
        return
    for side in (ours, theirs):
        wanted = [each.address for each in side.visible if each.address in result.by_address]
        assert in_order(result.order, wanted), "stands in another order"


def chosen(
    ours: Picture,
    theirs: Picture,
    result: Picture,
    settled: Settled,
    stored: Callable[[str], str],
) -> None:
    """What somebody decided on is what is shown."""
    mine, yours, made = ours.by_address, theirs.by_address, result.by_address
    kinds = _counts(settled)
    parted = _decided([each for each in settled if each[0].kind == "parted-call"])
    # What theirs answers in the words of ours is shown once.
    answers = {each.says for each in ours.visible if each.address not in yours}
    theirs_stands = any(c.kind == "both-compressed" and s.choice == "theirs" for c, s in settled)
    for conflict, said in settled:
        address = conflict.addresses[0] if conflict.addresses else None
        if address is None or kinds[address] > 1 or address not in made or address in parted:
            continue
        side = {"ours": mine, "theirs": yours}.get(said.choice)
        if conflict.kind == "both-edited" and side is not None:
            assert made[address].says == side[address].says, "not the wording that was chosen"
        if conflict.kind == "contradicting-priorities" and side is not None:
            assert made[address].priority == side[address].priority
        hides = ("edited-and-removed", "compressed-and-edited", "pinned-and-removed")
        if conflict.kind in hides and side is not None and address in side:
            wanted = side[address].is_visible
            shown = made[address].is_visible
            shown = shown or (wanted and side is yours and made[address].says in answers)
            # What stood in its place may be given up for theirs.
            given_up = side is mine and mine[address].shown[0] == "replaced" and theirs_stands
            wanted = wanted or (given_up and shown)
            assert shown == wanted, "not shown as was chosen"
        if said.choice == "text" and conflict.kind in ("both-edited", *hides):
            assert stored(said.text) in made[address].says, "not the text that was given"


def kept_pins(
    before: Picture,
    result: Picture,
    decided: Collection[Address],
    address: Callable[[Address], Address],
) -> None:
    """What was pinned and shown is so still, unless somebody decided otherwise."""
    now = result.by_address
    for each in before.entries:
        if each.is_pinned and each.address not in decided:
            there = now.get(address(each.address))
            assert there is not None, "a pinned message is gone"
            assert there.is_pinned, "a pinned message is not shown, or not pinned"


def _with_texts(result: Picture, settled: Settled) -> set[Address]:
    """Return the messages that texts settle something of, with the calls and results that come along."""
    said = {a for c, said in settled if said.choice == "text" for a in c.addresses}
    return said | set(together(result, said))


def decided(settled: Settled) -> set[Address]:
    """Return the messages that settlements were about."""
    return _decided(settled)


def _decided(settled: Settled) -> set[Address]:
    found: set[Address] = set()
    for conflict, _ in settled:
        found.update(conflict.addresses)
        if conflict.kind in ("two-answers", "open-call", "both-compressed", "parted-call"):
            found.update(each.address for each in (*conflict.ours, *conflict.theirs))
    return found


def _counts(settled: Settled) -> dict[Address, int]:
    found: dict[Address, int] = {}
    for conflict, _ in settled:
        for address in conflict.addresses[:1]:
            found[address] = found.get(address, 0) + 1
    return found


def copied(ours: Picture, theirs: Picture, result: Picture, settled: Settled) -> None:
    """What holds of a merge that is squashed: copies of their messages, and nothing that neither side says."""
    new = broken(result, ours, theirs)
    assert not new, f"the squashed merge broke {new}"
    said = {each.says for each in (*ours.entries, *theirs.entries)}
    texts = sum(choice.choice in ("text", "both") for _, choice in settled)
    added = [each for each in result.visible if not each.is_ghost and each.says not in said]
    assert len(added) <= texts, "says what neither side says"
    there = [each.says for each in result.visible]
    for mine, yours in each_pair(ours, theirs):
        if mine.is_visible and yours.is_visible and mine.says == yours.says and not settled:
            assert mine.says in there, "lost what both sides show"
