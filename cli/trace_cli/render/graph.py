"""The commit graph beside a log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from trace_store.base.oid import ObjectId
from trace_store.commit_table import graph as commit_graph
from trace_store.history.log import LogEntry

COMMIT = "*"


class Graph:
    """Draws commits, children before their parents, each in the column of its child.

    Attributes:
        columns: the commit that each column waits for.
    """

    __slots__ = ("columns",)

    def __init__(self) -> None:
        self.columns: list[bytes] = []

    def commit(self, oid: bytes, parents: Sequence[bytes]) -> Iterator[str]:
        """Yield the rows of a commit: joining columns, its own with a `*`, new columns."""
        columns = self.columns
        if oid not in columns:
            columns.append(oid)
        at = columns.index(oid)
        while oid in columns[at + 1 :]:
            other = columns.index(oid, at + 1)
            yield self._joining(at, other)
            del columns[other]
        yield " ".join(COMMIT if index == at else "|" for index in range(len(columns)))
        if not parents:
            if at < len(columns) - 1:
                yield self._closing(at)
            del columns[at]
            return
        columns[at] = parents[0]
        for place, parent in enumerate(parents[1:], at + 1):
            yield self._opening(place - 1)
            columns.insert(place, parent)

    def beside(self) -> str:
        """Return the columns beside further lines of the last commit."""
        return " ".join("|" for _ in self.columns)

    def _joining(self, at: int, other: int) -> str:
        """Return the row in which a column joins one to its left."""
        row = [" "] * (2 * len(self.columns))
        for index in range(len(self.columns)):
            if index < other:
                row[2 * index] = "|"
            else:
                row[2 * index - 1] = "/"
        for index in range(at, other - 1):
            row[2 * index + 1] = "_"
        return "".join(row).rstrip()

    def _closing(self, at: int) -> str:
        """Return the row in which the columns right of an ended one move left."""
        row = [" "] * (2 * len(self.columns))
        for index in range(len(self.columns)):
            if index != at:
                row[2 * index - (index > at)] = "|" if index < at else "/"
        return "".join(row).rstrip()

    def _opening(self, at: int) -> str:
        """Return the row in which a column starts, and those right of it move right."""
        row = [" "] * (2 * len(self.columns) + 1)
        for index in range(len(self.columns)):
            if index <= at:
                row[2 * index] = "|"
            if index >= at:
                row[2 * index + 1] = "\\"
        return "".join(row).rstrip()


class Drawing:
    """The graph beside a log; lines skip commits that filters left out.

    Attributes:
        graph: draws the rows.
    """

    def __init__(self, first_parent: bool) -> None:
        self.graph = Graph()
        self._first_parent = first_parent
        self._line: list[tuple[ObjectId, Sequence[ObjectId]]] = []
        self._nearest: dict[ObjectId, list[ObjectId]] | None = None

    def note(self, entry: LogEntry) -> None:
        """Record the parents of a commit, which may be left out later."""
        self._line.append((entry.oid, self.parents(entry)))

    def simplified(self, kept: Iterable[LogEntry]) -> Iterator[LogEntry]:
        """Yield the entries unchanged, and draw only these."""
        entries = list(kept)
        self._nearest = commit_graph.simplify(self._line, {entry.oid for entry in entries})
        return iter(entries)

    def parents(self, entry: LogEntry) -> Sequence[ObjectId]:
        """Return the commits that lines lead to from a commit."""
        if self._nearest is not None:
            return self._nearest[entry.oid]
        return entry.parents[:1] if self._first_parent else entry.parents
