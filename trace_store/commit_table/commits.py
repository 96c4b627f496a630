"""The commit graph of a repository, read the cheapest way that is correct.

Rule: the commit table and the commits themselves give the same answers. Without a table, or if the history is
incomplete, the objects are walked.
"""

from __future__ import annotations

from trace_store import commit_table, errors
from trace_store.base.oid import ObjectId
from trace_store.commit_table import graph
from trace_store.objects.commit import parents_of, read_commit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trace_store.commit_table.table import CommitRows, CommitTable
    from trace_store.contracts.protocols import ObjectReader

TABLE_THRESHOLD = 64
"""Up to this many commits, reading the commits is faster than opening or building the table."""


class Commits:
    """The commit graph of one repository."""

    __slots__ = ("_objects", "_table")

    def __init__(self, objects: ObjectReader, table: CommitTable | None = None) -> None:
        self._objects = objects
        self._table = table

    def parents(self, oid: bytes) -> Sequence[ObjectId]:
        """Return a commit's parents, read from the commit.

        Raises:
            ObjectNotFoundError, CorruptObjectError: it is missing, or not a commit.
        """
        return parents_of(self._objects.read(oid))

    def rows(
        self, starts: Sequence[ObjectId], *, limit: int | None = None
    ) -> tuple[CommitRows, list[int]] | None:
        """Return rows with the whole history of the starts, and the row numbers of the starts.

        Returns None if the objects must be walked instead. At most `limit` commits are read to update the table. A
        start among the newest rows is assumed to exist, without opening packs.
        """
        if self._table is None:
            return None
        for oid in starts:
            if not self._table.is_recent(oid) and not self._objects.contains(oid):
                return None
        return self._table.rows_for(starts, limit=limit)

    def is_recent(self, oid: bytes) -> bool:
        """Return True if one of the newest rows is this commit's."""
        return self._table is not None and self._table.is_recent(oid)

    def has_table(self) -> bool:
        """Return True if there is a table, even an outdated one."""
        return self._table is not None and self._table.load() is not None

    def discard_table(self) -> None:
        """Remove the table, because it is damaged."""
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
            starts: where to start.
            hidden: commits to exclude, with their history.
            limit: the maximum number of ids.
            first_parent: whether to follow first parents only.

        Raises:
            ObjectNotFoundError, CorruptObjectError: the history is incomplete.
        """
        yielded = 0
        if limit == 0:
            return
        indexed = self.rows([*starts, *hidden], limit=limit)
        if indexed is not None:
            rows, numbers = indexed
            spans = commit_table.walks.Spans(
                rows, numbers[: len(starts)], numbers[len(starts) :], first_parent=first_parent
            )
            try:
                for high, low in spans.between(0, limit):
                    for oid in rows.ids_newest_first(high, low):
                        yielded += 1
                        yield oid
                return
            except errors.CorruptIndexError:
                self.discard_table()
        for number, oid in enumerate(self.walk(starts, hidden, first_parent=first_parent)):
            if number == limit:
                return
            if number >= yielded:  # the others came from the table, in the same order
                yield oid

    def walk(
        self,
        starts: Sequence[ObjectId],
        hidden: Sequence[ObjectId] = (),
        *,
        first_parent: bool = False,
        by_time: bool = False,
    ) -> Iterator[ObjectId]:
        """Like `topological`, but read the objects; `by_time` puts the latest first.

        Commits are read one by one up to the first merge commit. From there on, all others are read before the next
        id is yielded.
        """
        known: dict[ObjectId, Sequence[ObjectId]] = {}

        def parents(oid: ObjectId) -> Sequence[ObjectId]:
            result = known.get(oid)
            if result is None:
                result = self.parents(oid)
                known[oid] = result = result[:1] if first_parent else result
            return result

        if not hidden:
            while len(starts) == 1:
                parent_ids = list(dict.fromkeys(self.parents(starts[0])))
                if first_parent:
                    parent_ids = parent_ids[:1]
                if len(parent_ids) > 1:
                    break
                yield starts[0]
                starts = parent_ids
            if not starts:
                return
        read = self._objects.read
        time_of = (lambda oid: read_commit(oid, read).time) if by_time else None
        yield from graph.topological(starts, parents, hidden=hidden, time_of=time_of)

    def is_ancestor(self, candidate: ObjectId, descendant: ObjectId) -> bool:
        """Return True for equal commits or an ancestor; raises as `topological`."""
        indexed = self.rows([candidate, descendant])
        if indexed is not None:
            rows, (one, other) = indexed
            try:
                return commit_table.walks.is_ancestor(rows, one, other)
            except errors.CorruptIndexError:
                self.discard_table()
        return graph.is_ancestor(candidate, descendant, self.parents)

    def merge_bases(self, one: ObjectId, other: ObjectId) -> list[ObjectId]:
        """Return the best common ancestors, sorted; raises as `topological`."""
        if not self.has_table():
            near = graph.near_merge_base(one, other, self.parents, TABLE_THRESHOLD)
            if near is not None:
                return [near]
        indexed = self.rows([one, other])
        if indexed is not None:
            rows, (first, second) = indexed
            try:
                return sorted(map(rows.oid, commit_table.walks.merge_bases(rows, first, second)))
            except errors.CorruptIndexError:
                self.discard_table()
        return graph.merge_bases(one, other, self.parents)

    def ancestor(self, oid: ObjectId, generations: int) -> tuple[ObjectId, int]:
        """Return the n-th first-parent ancestor and 0, or the root and how many generations are missing.

        Raises:
            ObjectNotFoundError, CorruptObjectError: a commit is missing, or not a commit.
        """
        indexed = self.rows([oid]) if generations > TABLE_THRESHOLD else None
        if indexed is not None:
            rows, (number,) = indexed
            try:
                number, left = commit_table.walks.ancestor(rows, number, generations)
                return rows.oid(number), left
            except errors.CorruptIndexError:
                self.discard_table()
        while generations:
            parent_ids = self.parents(oid)
            if not parent_ids:
                break
            oid = parent_ids[0]
            generations -= 1
        return oid, generations
