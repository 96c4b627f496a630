"""What the messages of a line were made from: by which commits they were rewritten, picked or squashed.

Rule: only the links of commits say what is a copy; of text that only happens to be the same nothing is concluded.
"""

from __future__ import annotations

from bisect import bisect_left

from trace_store import context
from trace_store.joining.groups import with_groups
from trace_store.objects.codec import encode
from trace_store.objects.commit import Commit, read_commit
from trace_store.objects.origins import PICKED, SQUASHES, origins_of, picked_message
from trace_store.oid import ObjectId, is_full_id
from trace_store.revision import commits_of, created_by

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set

    from trace_store.context.folding import Entry, Fold
    from trace_store.store import Store

    Address = tuple[bytes, int]
    Picked = tuple[Address, ObjectId, int]
    """A message that was copied alone, or with what it stands with; the commit that did; how many it copied."""


def kin(store: Store, side: Iterable[ObjectId], tip: ObjectId) -> set[ObjectId]:
    """Return the commits of a side, and those that they were made from or squashed."""
    found: set[ObjectId] = set()
    for oid in side:
        data = store.objects.read(oid)
        found.add(oid)
        found.update(ObjectId.parse(name) for _, name, _ in origins_of(data))
        for squashed in squashed_tips(store, data):
            found.update(commits_of(store).topological([squashed], [tip]))
    return found


def squashed_tips(store: Store, data: bytes) -> list[ObjectId]:
    """Return the tips of other lines that a commit, given its bytes, squashed, as far as they are here."""
    if SQUASHES.encode() not in data:
        return []  # as nearly all
    named = [str(target) for relation, target in Commit.decode(data).links if relation == SQUASHES]
    tips = [ObjectId.parse(name) for name in named if is_full_id(name)]
    return [tip for tip in tips if store.objects.contains(tip)]


class Sources:
    """What the messages of one line's commits were made from, asked of one after the other, the oldest first.

    What was squashed is looked at only where the other line has to do with it, since that takes whole contexts.

    Attributes:
        squashed: for each commit that was asked about the messages of another line that it squashed, with the numbers
            of their copies.
    """

    def __init__(self, store: Store, tip: ObjectId, others: Callable[[], Set[ObjectId]]) -> None:
        """Begin with the tip of the line; `others` returns what the other line has to do with, as `kin` does."""
        self._store = store
        self._tip = tip
        self._kin_of_others = others
        self._others: Set[ObjectId] | None = None
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
        """Return the messages of another line that a commit squashed, each with the number of its copy.

        Copies stand in the order of that line and say the same; messages that settled conflicts may stand between them.
        Of several messages that say the same, one that has no copy yet before the commit is taken.
        """
        found: dict[Address, int] = {}
        line_of = commits_of(self._store).topological
        tips = squashed_tips(self._store, data)
        if not tips:
            return found  # as nearly always
        if self._others is None:
            self._others = self._kin_of_others()
        tips = [each for each in tips if not self._others.isdisjoint(line_of([each], [self._tip]))]
        if not tips:
            return found
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


def picked_pairs(fold: Fold, picked: Sequence[Picked]) -> Iterator[tuple[Address, Address]]:
    """Yield (message, its copy) of what was picked alone, or with what it stands with."""
    for origin, commit, count in picked:
        seen = [e for e in fold.entries if e.address == origin or (e.visible and not e.is_ghost)]
        group = with_groups(seen, [origin])
        if len(group) == count:
            yield from ((e.address, (commit, number)) for number, e in enumerate(group))
