"""What follows what among a repository's commits, by the cheapest way that is right.

Rule: this module chooses between the commit table and the commits themselves, and both give the same answers: without a
table, or where the history is not whole, the objects are walked.
"""

from __future__ import annotations

from trace_store import errors, graph
from trace_store.commit_table import walks
from trace_store.objects.commit import parents_of, read_commit
from trace_store.oid import ObjectId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trace_store.commit_table.rows import CommitRows
    from trace_store.commit_table.table import CommitTable
    from trace_store.contracts import ObjectReader

STEPS = 64
"""So many commits are read sooner than a table is begun."""


class Commits:
    """Questions about the commits of one repository."""

    __slots__ = ("_objects", "_table")

    def __init__(self, objects: ObjectReader, table: CommitTable | None = None) -> None:
        self._objects = objects
        self._table = table

    def parents(self, oid: bytes) -> Sequence[ObjectId]:
        """Return the parents of a commit, from the commit.

        Raises:
            ObjectNotFoundError, CorruptObjectError: it is not here, or no commit.
        """
        return parents_of(self._objects.read(oid))

    def rows(
        self, starts: Sequence[ObjectId], *, limit: int | None = None
    ) -> tuple[CommitRows, list[int]] | None:
        """Return rows with the whole past of commits, and theirs; None where the objects must be walked.

        No more than `limit` commits are read to bring the table up to date. What has one of the newest rows is taken
        to be here, without opening packs to see that.
        """
        if self._table is None:
            return None
        for oid in starts:
            if not self._table.is_recent(oid) and not self._objects.contains(oid):
                return None
        return self._table.reaching(starts, limit=limit)

    def is_recent(self, oid: bytes) -> bool:
        """Tell whether an id is known to be that of a commit, since it has one of the newest rows."""
        return self._table is not None and self._table.is_recent(oid)

    def has_table(self) -> bool:
        """Tell whether there is a table, however far it reaches."""
        return self._table is not None and self._table.load() is not None

    def distrust(self) -> None:
        """Give the table up, since it is damaged."""
        if self._table is not None:
            self._table.discard()

    def topological(
        self,
        starts: Sequence[ObjectId],
        hidden: Sequence[ObjectId] = (),
        *,
        limit: int | None = None,
        first_parent: bool = False,
    ) -> Iterator[ObjectId]:
        """Yield ids as `graph.topological` does.

        Args:
            starts: where to begin.
            hidden: what is left out, with its past.
            limit: at most so many.
            first_parent: whether first parents alone are followed.

        Raises:
            ObjectNotFoundError, CorruptObjectError: the history is not whole.
        """
        given = 0
        if limit == 0:
            return
        found = self.rows([*starts, *hidden], limit=limit)
        if found is not None:
            rows, numbers = found
            spans = walks.Spans(
                rows, numbers[: len(starts)], numbers[len(starts) :], first_parent=first_parent
            )
            try:
                for high, low in spans.between(0, limit):
                    for oid in rows.ids_newest_first(high, low):
                        given += 1
                        yield oid
                return
            except errors.CorruptIndexError:
                self.distrust()
        for number, oid in enumerate(self.walked(starts, hidden, first_parent=first_parent)):
            if number == limit:
                return
            if number >= given:
                yield oid

    def walked(
        self,
        starts: Sequence[ObjectId],
        hidden: Sequence[ObjectId] = (),
        *,
        first_parent: bool = False,
        by_time: bool = False,
    ) -> Iterator[ObjectId]:
        """Yield what `topological` does, from the objects; with `by_time` lines are interleaved, the latest first.

        A line of history is walked as it is asked for; from the first merge on the rest is looked at as a whole.
        """
        known: dict[ObjectId, Sequence[ObjectId]] = {}

        def parents(oid: ObjectId) -> Sequence[ObjectId]:
            found = known.get(oid)
            if found is None:
                found = self.parents(oid)
                known[oid] = found = found[:1] if first_parent else found
            return found

        if not hidden:
            while len(starts) == 1:
                above = list(dict.fromkeys(self.parents(starts[0])))
                if first_parent:
                    above = above[:1]
                if len(above) > 1:
                    break
                yield starts[0]
                starts = above
            if not starts:
                return
        read = self._objects.read
        time_of = (lambda oid: read_commit(oid, read).time) if by_time else None
        yield from graph.topological(starts, parents, hidden=hidden, time_of=time_of)

    def is_ancestor(self, candidate: ObjectId, descendant: ObjectId) -> bool:
        """Tell whether a commit is another, or lies in its past; raises as `topological`."""
        found = self.rows([candidate, descendant])
        if found is not None:
            rows, (one, other) = found
            try:
                return walks.is_ancestor(rows, one, other)
            except errors.CorruptIndexError:
                self.distrust()
        return graph.is_ancestor(candidate, descendant, self.parents)

    def merge_bases(self, one: ObjectId, other: ObjectId) -> list[ObjectId]:
        """Return the best common ancestors of two commits, sorted; raises as `topological`."""
        found = self.rows([one, other])
        if found is not None:
            rows, (first, second) = found
            try:
                return sorted(map(rows.oid, walks.merge_bases(rows, first, second)))
            except errors.CorruptIndexError:
                self.distrust()
        return graph.merge_bases(one, other, self.parents)

    def ancestor(self, oid: ObjectId, generations: int) -> tuple[ObjectId, int]:
        """Return the first parents' commit so many generations before, and how many are left where none is.

        Raises:
            ObjectNotFoundError, CorruptObjectError: a commit on the way is not here, or no commit.
        """
        found = self.rows([oid]) if generations > STEPS else None
        if found is not None:
            rows, (number,) = found
            try:
                number, left = walks.ancestor(rows, number, generations)
                return rows.oid(number), left
            except errors.CorruptIndexError:
                self.distrust()
        while generations:
            above = self.parents(oid)
            if not above:
                break
            oid = above[0]
            generations -= 1
        return oid, generations
