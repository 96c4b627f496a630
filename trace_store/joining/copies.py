"""Messages that a merge would show twice, since the other line has them already: rewritten, picked or squashed.

Rule: what is hidden for that says the same as a message that is shown, and is a copy by the links of commits.
"""

from __future__ import annotations

from functools import partial

from trace_store.joining.groups import groups
from trace_store.joining.lineage import Sources, kin, picked_pairs
from trace_store.objects import operations as ops
from trace_store.objects.commit import Commit, read_commit
from trace_store.oid import ObjectId
from trace_store.revision import commits_of, created_by
from trace_store.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from trace_store.context.folding import Entry, Fold
    from trace_store.joining.lineage import Picked
    from trace_store.objects.commit import Operation
    from trace_store.store import Store

    Address = tuple[bytes, int]


@value
class Copies:
    """What of theirs ours has already.

    Attributes:
        commits: commits of theirs of whose messages ours has some, none before one that continues it.
        messages: for each message of theirs that was copied with others, on either side, what is the same in ours.
        picked: (message of theirs that was copied alone, or with what it stands with; the commit that did; how many it
            copied).
        picked_by_theirs: the same of messages of ours that a commit of theirs copied.
    """

    commits: tuple[ObjectId, ...] = ()
    messages: Mapping[Address, Sequence[Address]] = {}
    picked: Sequence[Picked] = ()
    picked_by_theirs: Sequence[Picked] = ()


def find_copies(store: Store, ours: ObjectId, theirs: ObjectId) -> Copies:
    """Return which messages that only theirs has ours holds copies of, or are themselves copies of messages of ours.

    Nothing is found where a tip is not written yet.
    """
    if not (store.objects.contains(ours) and store.objects.contains(theirs)):
        return Copies()
    commits = commits_of(store)
    sides = [
        list(commits.topological([one], [other])) for one, other in ((theirs, ours), (ours, theirs))
    ]
    counts = {oid: created_by(read_commit(oid, store.objects.read)) for oid in sides[0]}
    if not any(counts.values()):
        return Copies()
    yours: dict[Address, list[Address]] = {}
    mine: dict[Address, list[Address]] = {}
    picks: list[list[Picked]] = [[], []]
    kins = [partial(kin, store, *line) for line in zip(sides, (theirs, ours), strict=True)]
    for side, tip, others, found, picked in zip(
        *(sides, (theirs, ours), reversed(kins), (yours, mine), picks), strict=True
    ):
        sources = Sources(store, tip, others)
        for oid in reversed(side):
            found.update(sources.names(oid))
            picked += sources.picked(oid)
    own = {*sides[1]}
    copies: dict[Address, list[Address]] = {}
    for address, names in mine.items():
        for name in names:
            copies.setdefault(name, []).append(address)
    messages: dict[Address, Sequence[Address]] = {}
    for oid, count in counts.items():
        for address in ((oid, number) for number in range(count)):
            names = yours.get(address, [])
            same = [name for name in names if ObjectId(name[0]) in own]
            same += [each for name in (address, *names) for each in copies.get(name, ())]
            if same:
                messages[address] = same
    there = tuple(oid for oid in sides[0] if any((oid, n) in messages for n in range(counts[oid])))
    return Copies(
        there,
        messages,
        [each for each in picks[1] if counts.get(ObjectId(each[0][0]))],
        [each for each in picks[0] if ObjectId(each[0][0]) in own],
    )


def shown_twice(merged: Fold, ours: Fold, theirs: Fold, copies: Copies) -> list[Address]:
    """Return the messages of theirs that say in a merged context what their copies, or originals, say there.

    A call and its result are such only together.
    """
    pairs = {address: [*same] for address, same in copies.messages.items()}
    for address, copy in picked_pairs(theirs, copies.picked):
        pairs.setdefault(address, []).append(copy)
    for address, copy in picked_pairs(ours, copies.picked_by_theirs):
        pairs.setdefault(copy, []).append(address)
    seen = [entry for entry in merged.visible() if not entry.is_ghost]
    there = {entry.address: entry for entry in seen}

    def is_twice(entry: Entry) -> bool:
        same = (there[each] for each in pairs.get(entry.address, ()) if each in there)
        return any(each is not entry and _told(each) == _told(entry) for each in same)

    found = [group for group in groups(seen) if all(map(is_twice, group))]
    return [entry.address for group in found for entry in group]


def shown_again(
    store: Store,
    ours: ObjectId,
    theirs: ObjectId,
    operations: Sequence[Operation],
    fold_of: Callable[[ObjectId], Fold],
) -> tuple[list[Address], list[ObjectId]]:
    """Return the messages of theirs that a merge with these operations would show twice.

    And the commits of theirs that ours has already, but of which the merge would still show something else.
    """
    copies = find_copies(store, ours, theirs)
    if not (copies.messages or copies.picked or copies.picked_by_theirs):
        return [], []
    mine, yours = fold_of(ours), fold_of(theirs)
    merged = mine.copy()
    merged.apply(ops.HERE, Commit((), "", 0, list(operations)), [None, yours])
    twice = shown_twice(merged, mine, yours, copies)
    shown = {e.address[0] for e in merged.visible() if e.address not in twice}
    return twice, [oid for oid in copies.commits if oid in shown]


def without(fold: Fold, addresses: Sequence[Address]) -> Fold:
    """Return a context in which some messages are hidden."""
    left = fold.copy()
    left.apply(ops.HERE, Commit((), "", 0, [ops.remove(list(addresses))] if addresses else []))
    return left


def _told(entry: Entry) -> tuple[object, ...]:
    return (entry.message["role"], entry.parts, entry.priority, entry.labels, entry.keep)
