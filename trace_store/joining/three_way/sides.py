"""What a merge reads: merge bases, and the context of each side with what its operations say of places.

Rule: reads and changes nothing. A side is folded from the base on, when the base lies on its line of first parents, so
that what both share is folded once.
"""

from __future__ import annotations

from trace_store import context, graph
from trace_store.context.index_building import UnknownError
from trace_store.joining.plan import Side
from trace_store.joining.three_way.sparse import Sparse
from trace_store.objects import operations as ops
from trace_store.objects.commit import Commit, read_commit
from trace_store.oid import ObjectId
from trace_store.revision import commits_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from trace_store.context.folding import Fold
    from trace_store.joining.plan import Replacement
    from trace_store.store import Store

    Address = tuple[bytes, int]
    Sides = tuple[Fold, Side, Side]


class Reading:
    """Commits and folds of one store, each read once."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.commits = commits_of(store)
        self._read: dict[bytes, Commit] = {}
        self._folds: dict[bytes, Fold] = {}
        self._sparse: dict[tuple[bytes, bytes], Sides | None] = {}

    def commit(self, oid: bytes) -> Commit:
        """Return a commit.

        Raises:
            ObjectNotFoundError, CorruptObjectError: it is not here, or damaged.
        """
        found = self._read.get(oid)
        if found is None:
            found = self._read[oid] = read_commit(oid, self.store.objects.read)
        return found

    def sides(
        self,
        ours: ObjectId,
        theirs: ObjectId,
        bases: Sequence[ObjectId],
        refs: Sequence[str] = (),
    ) -> tuple[list[Fold], Side, Side]:
        """Return the contexts of merge bases and of both sides, or as much of them as a merge looks at.

        Args:
            ours: the tip of our side.
            theirs: the tip of theirs.
            bases: the merge bases.
            refs: our branch and perhaps theirs, whose indexes tell what is shown; none for whole contexts.
        """
        if refs and len(bases) == 1:
            key = bytes(ours), bytes(theirs)
            if key not in self._sparse:
                self._sparse[key] = self._made_sparse(ours, theirs, bases[0], refs)
            found = self._sparse[key]
            if found is not None:
                return [found[0]], found[1], found[2]
        folds = [self.fold(base) for base in bases]
        return folds, self.side(ours, bases), self.side(theirs, bases)

    def is_whole(self, ours: ObjectId, theirs: ObjectId) -> bool:
        """Tell whether two sides had to be looked at as whole contexts."""
        return self._sparse.get((bytes(ours), bytes(theirs))) is None

    def _made_sparse(
        self, ours: ObjectId, theirs: ObjectId, base: ObjectId, refs: Sequence[str]
    ) -> Sides | None:
        """Return what a merge looks at of three contexts; None when only folds can tell."""
        contains = self.store.objects.contains
        if not (contains(ours) and contains(theirs)):
            return None  # the table of commits knows nothing of what is about to be written

        def new(tip: bytes, other: bytes) -> frozenset[bytes]:
            return context.new_commits(self.store, tip, other)

        recent = context.Recent(self.commit, new)
        find = context.Shown(self.store, refs).find
        made = Sparse(self.commit, recent, find, self._is_ancestor)
        try:
            return made.sides(base, ours, theirs)
        except UnknownError:
            return None

    def _is_ancestor(self, candidate: bytes, descendant: bytes) -> bool:
        return self.commits.is_ancestor(ObjectId(candidate), ObjectId(descendant))

    def remember(self, oid: bytes, commit: Commit) -> None:
        """Take a commit for one that is here: it is about to be written."""
        self._read[oid] = commit

    def time(self, address: Address) -> int:
        """Return when a message was written, in milliseconds."""
        return self.commit(address[0]).time

    def fold(self, tip: bytes) -> Fold:
        """Return the fold of a commit, made from an earlier one of its line where there is one; it must not be changed.

        Raises:
            As `context.fold`.
        """
        return context.fold(tip, self.commit, self._folds)

    def others(self, commit: Commit) -> list[Fold | None]:
        """Return the folds of the parents that a commit includes messages of."""
        wanted = {o.fields.get("parent") for o in commit.operations if o.name == ops.INCLUDE}
        return [
            self.fold(parent) if number in wanted else None
            for number, parent in enumerate(commit.parents)
        ]

    def bases(self, ours: ObjectId, theirs: ObjectId) -> list[ObjectId]:
        """Return the best common ancestors of two commits, sorted; one may be about to be written."""
        if self.store.objects.contains(ours) and self.store.objects.contains(theirs):
            return self.commits.merge_bases(ours, theirs)
        return graph.merge_bases(ours, theirs, lambda oid: self.commit(oid).parents)

    def elder(self, bases: Sequence[ObjectId]) -> Fold | None:
        """Return the context of the merge base of two merge bases; None unless there are two, and one such base."""
        if len(bases) != 2:
            return None
        elders = self.bases(*bases)
        return self.fold(elders[0]) if len(elders) == 1 else None

    def _since(self, tip: ObjectId, bases: Sequence[ObjectId]) -> set[ObjectId]:
        """Return the commits of a side that lie in no base's past."""
        if self.store.objects.contains(tip):
            return set(self.commits.topological([tip], bases))
        parents = self.commit(tip).parents
        return {tip}.union(*(self._since(parent, bases) for parent in parents))

    def side(self, tip: ObjectId, bases: Sequence[ObjectId]) -> Side:
        """Return one side of a merge: its context, and what its commits since the bases did to places."""
        new = self._since(tip, bases)
        placed: set[Address] = set()
        replacements: list[Replacement] = []
        for oid in self._in_order(tip, new):
            _gather(oid, self.commit(oid), placed, replacements)
        return Side(self.fold(tip), placed, _in_full(replacements))

    def _in_order(self, tip: ObjectId, new: set[ObjectId]) -> list[ObjectId]:
        """Return the commits of a side: its line of first parents, newest first, and what came in by merges."""
        line: list[ObjectId] = []
        oid: ObjectId | None = tip
        while oid in new:
            line.append(oid)
            parents = self.commit(oid).parents
            oid = parents[0] if parents else None
        return [*line, *sorted(new.difference(line))]


def _in_full(replacements: Sequence[Replacement]) -> list[Replacement]:
    """Return replacements with all that each stands for: a summary of a summary stands for what that stood for."""
    stands_for = {address: targets for targets, new in replacements for address in new}
    made: list[Replacement] = []
    for targets, new in replacements:
        every, waiting = set(targets), list(targets)
        while waiting:
            more = stands_for.get(waiting.pop(), frozenset()) - every
            every |= more
            waiting += more
        made.append((frozenset(every), new))
    return made


def _gather(
    oid: bytes, commit: Commit, placed: set[Address], replacements: list[Replacement]
) -> None:
    """Add what a commit's operations say of places."""
    created = 0
    for operation in commit.operations:
        count = ops.message_count(operation)
        if operation.name in (ops.MOVE, ops.REPLACE):
            targets = [(bytes(made) or oid, number) for made, number in operation.fields["targets"]]
            if operation.name == ops.MOVE:
                placed.update(targets)
            elif count:
                new = tuple((oid, created + n) for n in range(count))
                replacements.append((frozenset(targets), new))
        created += count
