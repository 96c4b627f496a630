"""Commits that another line has already, made anew or copied; and messages that a merge would show twice for that.

Rule: only the links of commits say what is a copy. What is hidden for it says the same as a message that is shown.
"""

from __future__ import annotations

from bisect import bisect_left

from trace_store import context
from trace_store.context.ends import targets_of
from trace_store.joining.groups import groups, with_groups
from trace_store.objects import operations as ops
from trace_store.objects.codec import encode
from trace_store.objects.commit import Commit, read_commit
from trace_store.objects.origins import PICKED, SQUASHES, origins_of, picked_message
from trace_store.oid import ObjectId, is_full_id
from trace_store.revision import commits_of, created_by
from trace_store.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set

    from trace_store.context.folding import Entry, Fold
    from trace_store.objects.commit import Operation
    from trace_store.store import Store

    Address = tuple[bytes, int]
    Picked = tuple[Address, ObjectId, int]

_MOST = 2000
"""Of so many commits a side it is looked up whether the other has them."""


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


def already_there(
    store: Store, commits: Sequence[ObjectId], tip: ObjectId, other: ObjectId
) -> dict[ObjectId, tuple[ObjectId, int]]:
    """Return which commits another line has already, made anew, copied or squashed, and where messages begin there.

    Args:
        store: the repository.
        commits: those of the line that is asked about.
        tip: where that line ends.
        other: where the other ends; what both have in their past is not looked at.
    """
    there: dict[str, tuple[ObjectId, int]] = {}
    line = list(commits_of(store).topological([other], [tip]))
    for oid in line:
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
    sources = _Sources(store, other, _kin(store, commits, tip))
    for oid in reversed(line):
        sources.names(oid)
        if sources.squashed[oid]:
            left = [each for each in commits if each not in found]
            found.update(_there_as_one(store, left, oid, sources.squashed[oid]))
    return {oid: found[oid] for oid in commits if oid in found}


def _there_as_one(
    store: Store, commits: Sequence[ObjectId], squash: ObjectId, squashed: Mapping[Address, int]
) -> Iterator[tuple[ObjectId, tuple[ObjectId, int]]]:
    """Yield the commits that one put together with others has, and where their messages begin there.

    What only says something of messages is there when all of these are: their copies say and show what they did.
    """
    links = read_commit(squash, store.objects.read).links
    tips = [ObjectId.parse(str(name)) for relation, name in links if relation == SQUASHES]
    tips = [tip for tip in tips if store.objects.contains(tip)]
    table = commits_of(store)
    for oid in commits:
        if not any(table.is_ancestor(oid, tip) for tip in tips):
            continue
        commit = read_commit(oid, store.objects.read)
        own = [squashed.get((oid, number)) for number in range(created_by(commit))]
        first = own[0] if own else 0
        if first is not None and own and own == [*range(first, first + len(own))]:
            yield oid, (squash, first)
        elif not own:
            named = [each for operation in commit.operations for each in targets_of(operation, oid)]
            if named and all(each in squashed for each in named):
                yield oid, (squash, 0)


def find_copies(store: Store, ours: ObjectId, theirs: ObjectId) -> Copies:
    """Return which messages that only theirs has ours has made anew, copied or squashed, or the other way about.

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
    if not any(counts.values()):
        return Copies()
    yours: dict[Address, list[Address]] = {}
    mine: dict[Address, list[Address]] = {}
    picks: list[list[Picked]] = [[], []]
    kin = [_kin(store, side, tip) for side, tip in zip(sides, (theirs, ours), strict=True)]
    for side, tip, other, found, picked in zip(
        *(sides, (theirs, ours), reversed(kin), (yours, mine), picks), strict=True
    ):
        sources = _Sources(store, tip, other)
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


def _kin(store: Store, side: Iterable[ObjectId], tip: ObjectId) -> set[ObjectId]:
    """Return the commits of a side, and those that they were made from or squashed."""
    found: set[ObjectId] = set()
    for oid in side:
        data = store.objects.read(oid)
        found.add(oid)
        found.update(ObjectId.parse(name) for _, name, _ in origins_of(data))
        for squashed in _squashed_tips(store, data):
            found.update(commits_of(store).topological([squashed], [tip]))
    return found


def _squashed_tips(store: Store, data: bytes) -> list[ObjectId]:
    """Return the tips of other lines that a commit, given its bytes, squashed, as far as they are here."""
    if SQUASHES.encode() not in data:
        return []  # as nearly all
    named = [str(target) for relation, target in Commit.decode(data).links if relation == SQUASHES]
    tips = [ObjectId.parse(name) for name in named if is_full_id(name)]
    return [tip for tip in tips if store.objects.contains(tip)]


class _Sources:
    """What the messages of one line's commits were made from, asked of one after the other, the oldest first.

    What was squashed is looked at only where the other line has to do with it, since that takes whole contexts.

    Attributes:
        squashed: for each commit that was asked about the messages of another line that it squashed, with the numbers
            of their copies.
    """

    def __init__(self, store: Store, tip: ObjectId, others: Set[ObjectId]) -> None:
        """Begin with the tip of the line, and what the other line has to do with."""
        self._store = store
        self._tip = tip
        self._others = others
        self._taken: set[Address] = set()
        self.squashed: dict[ObjectId, dict[Address, int]] = {}

    def names(self, oid: ObjectId) -> dict[Address, list[Address]]:
        """Return for messages of a commit those that they were made from, with others of the same commit."""
        data = self._store.objects.read(oid)
        found: dict[Address, list[Address]] = {}
        origins = [(ObjectId.parse(name), first) for _, name, first in origins_of(data)]
        read, contains = self._store.objects.read, self._store.objects.contains
        counts = {
            name: created_by(read_commit(name, read)) for name, _ in origins if contains(name)
        }
        for number in range(created_by(Commit.decode(data))) if origins else ():
            # What is not here any more has its messages up to where those of the next begin.
            last = max((first for _, first in origins if first <= number), default=0)
            found[oid, number] = [
                (name, number - first)
                for name, first in origins
                if first <= number < first + counts.get(name, number + 1 if first == last else 0)
            ]
        self.squashed[oid] = self._squashed(oid, data)
        for address, number in self.squashed[oid].items():
            found.setdefault((oid, number), []).append(address)
        self._taken.update(name for names in found.values() for name in names)
        return found

    def picked(self, oid: ObjectId) -> list[Picked]:
        """Return the messages that a commit copied alone, or with what they stand with, and how many it copied."""
        data = self._store.objects.read(oid)
        if PICKED.encode() not in data:
            return []  # as nearly all
        commit = Commit.decode(data)
        origins = [picked_message(relation, target) for relation, target in commit.links]
        return [(each, oid, created_by(commit)) for each in origins if each is not None]

    def _squashed(self, oid: ObjectId, data: bytes) -> dict[Address, int]:
        """Return for the messages that a commit has copies of since it squashed another line the copies' numbers.

        They come in the order of that line, and said there what they say; the commit may have messages between them
        that settled conflicts. Of what says the same, that is meant which nothing before the commit has a copy of.
        """
        found: dict[Address, int] = {}
        line_of = commits_of(self._store).topological
        tips = _squashed_tips(self._store, data)
        tips = [each for each in tips if not self._others.isdisjoint(line_of([each], [self._tip]))]
        if not tips:
            return found  # as nearly always
        commit = Commit.decode(data)
        brought = [m for each in commit.operations for m in each.fields.get("messages", ())]
        had = self._fold(commit.parents[0]) if commit.parents else context.Fold()
        for tip in tips:
            line = self._fold(tip).visible()
            every = [e for e in line if not e.is_ghost and e.address not in had]
            new = [entry for entry in every if entry.address not in self._taken]
            ways = [_in_order(brought, new), _in_order(brought, every)]
            longest = max(ways, key=len)
            found.update(longest)
        return found

    def _fold(self, tip: bytes) -> Fold:
        return context.fold(tip, lambda oid: read_commit(oid, self._store.objects.read))


def _in_order(
    messages: Sequence[Mapping[str, object]], entries: Sequence[Entry]
) -> dict[Address, int]:
    """Return the entries of which messages are copies, in the same order, each with its copy's number."""
    places: dict[bytes, list[int]] = {}
    for at, entry in enumerate(entries):
        places.setdefault(encode({**entry.message, "parts": [*entry.parts]}), []).append(at)
    found: dict[Address, int] = {}
    after = 0
    for number, message in enumerate(messages):
        same = places.get(encode(message), [])
        next_ = bisect_left(same, after)
        if next_ < len(same):
            found[entries[same[next_]].address] = number
            after = same[next_] + 1
    return found


def shown_twice(merged: Fold, ours: Fold, theirs: Fold, copies: Copies) -> list[Address]:
    """Return the messages of theirs that say in a merged context what their copies, or originals, say there.

    A call and its result are such only together.
    """
    pairs = {address: [*same] for address, same in copies.messages.items()}
    for address, copy in _picked_pairs(theirs, copies.picked):
        pairs.setdefault(address, []).append(copy)
    for address, copy in _picked_pairs(ours, copies.picked_by_theirs):
        pairs.setdefault(copy, []).append(address)
    seen = [entry for entry in merged.visible() if not entry.is_ghost]
    there = {entry.address: entry for entry in seen}

    def is_twice(entry: Entry) -> bool:
        same = (there[each] for each in pairs.get(entry.address, ()) if each in there)
        return any(each is not entry and _told(each) == _told(entry) for each in same)

    found = [group for group in groups(seen) if all(map(is_twice, group))]
    return [entry.address for group in found for entry in group]


def _picked_pairs(fold: Fold, picked: Sequence[Picked]) -> Iterator[tuple[Address, Address]]:
    """Yield (message, its copy) of what was picked alone, or with what it stands with."""
    for origin, commit, count in picked:
        seen = [e for e in fold.entries if e.address == origin or (e.visible and not e.is_ghost)]
        group = with_groups(seen, [origin])
        if len(group) == count:
            yield from ((e.address, (commit, number)) for number, e in enumerate(group))


def shown_again(
    store: Store,
    ours: ObjectId,
    theirs: ObjectId,
    operations: Sequence[Operation],
    fold_of: Callable[[ObjectId], Fold],
) -> tuple[list[Address], list[ObjectId]]:
    """Return the messages of theirs that a merge with these operations would show twice.

    Beside them stand the commits of theirs that ours has already, and of which something else is shown all the same.
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
