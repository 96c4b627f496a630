"""Commits that another line has already, made anew or copied; and messages that a merge would show twice for that.

Rule: only the links of commits say what is a copy. What is hidden for it says the same as a message that is shown.
"""

from __future__ import annotations

from trace_store.joining.groups import groups, with_groups
from trace_store.objects import operations as ops
from trace_store.objects.commit import Commit, read_commit
from trace_store.objects.origins import PICKED, SQUASHES, origins_of, picked_message
from trace_store.oid import ObjectId, is_full_id
from trace_store.revision import commits_of, created_by
from trace_store.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trace_store.context.folding import Entry, Fold
    from trace_store.objects.commit import Operation
    from trace_store.store import Store

    Address = tuple[bytes, int]

_MOST = 2000
"""Of so many commits a side it is looked up whether the other has them."""


@value
class Copies:
    """What of theirs ours has already.

    Attributes:
        commits: commits of theirs, none before one that continues it.
        messages: for each message of theirs that a whole commit was copied with, where it is in ours.
        picked: (message of theirs that was copied alone, or with what it stands with; the commit that did; how many it
            copied).
    """

    commits: tuple[ObjectId, ...] = ()
    messages: Mapping[Address, Address] = {}
    picked: Sequence[tuple[Address, ObjectId, int]] = ()


def already_there(
    store: Store, commits: Sequence[ObjectId], tip: ObjectId, other: ObjectId
) -> dict[ObjectId, tuple[ObjectId, int]]:
    """Return which commits another line has already, made anew or copied, and where the messages of each begin there.

    Args:
        store: the repository.
        commits: those of the line that is asked about.
        tip: where that line ends.
        other: where the other ends; what both have in their past is not looked at.
    """
    there: dict[str, tuple[ObjectId, int]] = {}
    for oid in commits_of(store).topological([other], [tip]):
        there[str(oid)] = (oid, 0)
        for _, name, first in origins_of(store.objects.read(oid)):
            there.setdefault(name, (oid, first))
    found: dict[ObjectId, tuple[ObjectId, int]] = {}
    for oid in commits if there else ():
        data = store.objects.read(oid)
        origins = origins_of(data)
        if str(oid) in there:
            found[oid] = there[str(oid)]
        elif not any(first for _, _, first in origins):
            names = [name for _, name, _ in origins if name in there]
            # Of what was squashed together some may have brought no message: those are not what it is a copy of.
            count = created_by(Commit.decode(data)) if names else 0
            for to, first in (there[name] for name in names):
                if created_by(read_commit(to, store.objects.read)) >= first + count:
                    found[oid] = to, first
                    break
    return found


def find_copies(store: Store, ours: ObjectId, theirs: ObjectId) -> Copies:
    """Return which messages that only theirs has ours has made anew, copied or squashed.

    Of a side with very many commits of its own nothing is said, nor of a tip that is about to be written.
    """
    if not (store.objects.contains(ours) and store.objects.contains(theirs)):
        return Copies()
    commits = commits_of(store)
    sides = [
        list(commits.topological([one], [other], limit=_MOST + 1))
        for one, other in ((theirs, ours), (ours, theirs))
    ]
    if any(len(side) > _MOST for side in sides):
        return Copies()
    counts = {oid: created_by(read_commit(oid, store.objects.read)) for oid in sides[0]}
    new = [oid for oid in sides[0] if counts[oid]]
    if not new:
        return Copies()
    there = already_there(store, new, theirs, ours)
    found, picked = set(there), []
    for oid in sides[1]:
        data = store.objects.read(oid)
        if PICKED.encode() not in data and SQUASHES.encode() not in data:
            continue  # as nearly all
        commit = Commit.decode(data)
        for relation, target in commit.links:
            origin = picked_message(relation, target)
            if relation == SQUASHES and is_full_id(str(target)):
                tip = ObjectId.parse(str(target))
                here = [tip] if store.objects.contains(tip) else []
                found.update({*commits.topological(here, [ours])} & {*new})
            elif origin is not None and counts.get(ObjectId(origin[0])):
                picked.append((origin, oid, created_by(commit)))
    messages: dict[Address, Address] = {
        (oid, number): (to, first + number)
        for oid, (to, first) in there.items()
        for number in range(counts[oid])
    }
    return Copies(tuple(oid for oid in new if oid in found), messages, picked)


def shown_twice(merged: Fold, theirs: Fold, copies: Copies) -> list[Address]:
    """Return the messages of theirs that say in a merged context what their copies say there.

    A call and its result are such only together.
    """
    pairs = dict(copies.messages)
    for origin, commit, count in copies.picked:
        seen = [e for e in theirs.entries if e.address == origin or (e.visible and not e.is_ghost)]
        group = with_groups(seen, [origin])
        if len(group) == count:
            pairs.update((e.address, (commit, number)) for number, e in enumerate(group))
    seen = [entry for entry in merged.visible() if not entry.is_ghost]
    there = {entry.address: entry for entry in seen}

    def is_twice(entry: Entry) -> bool:
        copy = there.get(pairs.get(entry.address, entry.address))
        return copy is not None and copy is not entry and _told(copy) == _told(entry)

    found = [group for group in groups(seen) if all(map(is_twice, group))]
    return [entry.address for group in found for entry in group]


def shown_once(
    operations: Sequence[Operation], ours: Fold, theirs: Fold, copies: Copies
) -> tuple[list[Operation], list[ObjectId]]:
    """Return the operations of a merge, with what hides messages that they would show twice.

    Beside them stand the commits of theirs that ours has already, and of which something is shown all the same.
    """
    merged = ours.copy()
    merged.apply(ops.HERE, Commit((), "", 0, list(operations)), [None, theirs])
    twice = shown_twice(merged, theirs, copies)
    shown = {e.address[0] for e in merged.visible() if e.address not in twice}
    again = [oid for oid in copies.commits if oid in shown]
    return [*operations, *([ops.remove(twice)] if twice else [])], again


def _told(entry: Entry) -> tuple[object, ...]:
    return (entry.message["role"], entry.parts, entry.priority, entry.labels, entry.keep)
