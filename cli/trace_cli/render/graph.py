"""The lines beside a log that show which commit follows which."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

COMMIT = "*"


class Graph:
    """Draws commits, children before their parents, each in the column of the child that led to it.

    Attributes:
        columns: the commit that each column waits for.
    """

    __slots__ = ("columns",)

    def __init__(self) -> None:
        self.columns: list[bytes] = []

    def commit(self, oid: bytes, parents: Sequence[bytes]) -> Iterator[str]:
        """Yield the rows of a commit: those that lead to it, its own with a `*`, and those that lead on."""
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
        """Return what stands beside further lines of the last commit."""
        return " ".join("|" for _ in self.columns)

    def _joining(self, at: int, other: int) -> str:
        """Return the row in which a column goes over to one on its left."""
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
        """Return the row in which the columns behind one that ends move up."""
        row = [" "] * (2 * len(self.columns))
        for index in range(len(self.columns)):
            if index != at:
                row[2 * index - (index > at)] = "|" if index < at else "/"
        return "".join(row).rstrip()

    def _opening(self, at: int) -> str:
        """Return the row in which a column begins behind another, and those behind it move on."""
        row = [" "] * (2 * len(self.columns) + 1)
        for index in range(len(self.columns)):
            if index <= at:
                row[2 * index] = "|"
            if index >= at:
                row[2 * index + 1] = "\\"
        return "".join(row).rstrip()
