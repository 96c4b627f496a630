"""What a plan remembers of the commits behind it: how they hang together, and the lines of work they belong to.

Rule: numbers and ids only, no content, so that all of it can be saved.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from trace_store.importers.contract import Place
from trace_store.values import mutable, value


class Row(NamedTuple):
    """A planned commit; a tuple, since there are as many as commits, and all are saved each time.

    Attributes:
        line: of which line of work.
        parent: the number of the commit whose context it continues.
        messages: how many it adds.
        resets: whether the context before it is gone.
        key: what it is known by.
        kept: the commits whose messages stayed when it reset the context, in order.
    """

    line: int
    parent: int | None
    messages: int
    resets: bool
    key: str
    kept: tuple[int, ...] = ()


@mutable
class LineOfWork:
    """The session itself, a branch of it, or what a rewind left.

    Attributes:
        name: of its branch below the session's.
        tip: its last commit, or the one it branched from, or None.
        fresh: whether its next commit takes the context so far out.
        time: of the last turn that had one.
    """

    name: str = ""
    tip: int | None = None
    fresh: bool = False
    time: int = 0


@value
class Mark:
    """A state of the table that it can still be saved as: rows are only added, the rest is by value."""

    rows: int
    lines: tuple[tuple[Any, ...], ...]
    live: int


class TurnTable:
    """The commits of a plan, by number.

    Attributes:
        rows: the commits.
        keys: their numbers by key.
        lines: the lines of work.
        live: in which one the talk is.
    """

    __slots__ = ("_again", "_marked", "_named", "keys", "lines", "live", "rows")

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.keys: dict[str, int] = {}
        self.lines = [LineOfWork()]
        self.live = 0
        self._again: dict[str, int] = {}
        self._marked = 0
        self._named: dict[str, int] | None = None

    def add(
        self, key: str, messages: int, *, resets: bool, kept: tuple[int, ...] = ()
    ) -> tuple[int, Row]:
        """Add a commit at the end of the live line, and return its number and row."""
        line, number = self.lines[self.live], len(self.rows)
        key = self._unique(key or f"turn-{number}")
        row = Row(self.live, line.tip, messages, resets, key, kept)
        self.rows.append(row)
        self.keys[row.key] = number
        line.tip, line.fresh = number, False
        return number, row

    def begin_line(self, name: str, tip: int | None, *, fresh: bool) -> int:
        """Begin a line of work, in which the talk goes on, and return its index."""
        self.lines.append(LineOfWork(name, tip, fresh, self.lines[self.live].time))
        self.live = len(self.lines) - 1
        if self._named is not None:
            self._named[name] = self.live
        return self.live

    def line_named(self, name: str) -> int | None:
        """Return the line with a name, or None."""
        if self._named is None:
            self._named = {line.name: index for index, line in enumerate(self.lines)}
        return self._named.get(name)

    def line_with_words(self) -> int | None:
        """Return a line in which something was said, the live one if it can be, or None."""
        order = [self.live, *reversed(range(len(self.lines)))]
        said = (i for i in order if self.lines[i].tip is not None and not self.lines[i].fresh)
        return next(said, None)

    def context(self) -> tuple[Place, ...]:
        """Return the messages of the live line's context, in order."""
        found: list[list[Place]] = []
        tip = self.lines[self.live].tip
        while tip is not None:
            row = self.rows[tip]
            found.append(self._places(tip))
            if row.resets:
                found += [self._places(number) for number in reversed(row.kept)]
            tip = None if row.resets else row.parent
        return tuple(place for places in reversed(found) for place in places)

    def _places(self, number: int) -> list[Place]:
        return [(number, index) for index in range(self.rows[number].messages)]

    def behind(self, key: str) -> int | None:
        """Return the commit with a key when it lies on the live line, or None."""
        number = self.keys.get(key)
        return number if number is not None and number in self._chain() else None

    def first_after(self, base: int | None) -> int | None:
        """Return the oldest commit of the live line behind another one, or behind its beginning."""
        left = None
        for number in self._chain():
            if number == base:
                break
            left = number
        return left

    def free_name(self, folder: str, *ids: str) -> str:
        """Return the first of the ids whose name under the folder is free, for a line to be called by it."""
        self._named = None
        taken = {line.name.lower() for line in self.lines}
        names = [f"{folder}/{candidate}" for candidate in ids]
        free = next((name for name in names if name.lower() not in taken), "")
        return free or self.free_name(folder, *(f"{candidate}-2" for candidate in ids))

    def is_worth_a_mark(self) -> bool:
        """Tell whether enough was added since the last mark: one costs as much as there are lines of work."""
        return len(self.rows) - self._marked >= len(self.lines) // 16

    def mark(self) -> Mark:
        """Return the state as it is now, to be saved later."""
        self._marked = len(self.rows)
        lines = tuple((line.name, line.tip, line.fresh, line.time) for line in self.lines)
        return Mark(len(self.rows), lines, self.live)

    def save(self, mark: Mark) -> dict[str, Any]:
        """Return the state at a mark as values that JSON knows."""
        return {"rows": self.rows[: mark.rows], "lines": mark.lines, "live": mark.live}

    @classmethod
    def load(cls, saved: Any) -> TurnTable:
        """Return what was saved.

        Raises:
            KeyError, TypeError, ValueError: it was not saved by this version.
        """
        table = cls()
        table.rows = [
            Row(line, parent, messages, resets, key, tuple(kept))
            for line, parent, messages, resets, key, kept in saved["rows"]
        ]
        table.keys = {row.key: number for number, row in enumerate(table.rows)}
        table.lines = [LineOfWork(*line) for line in saved["lines"]]
        table.live = saved["live"]
        return table

    def _chain(self) -> Iterator[int]:
        tip = self.lines[self.live].tip
        while tip is not None:
            yield tip
            tip = self.rows[tip].parent

    def _unique(self, key: str) -> str:
        unique = key
        while unique in self.keys:
            self._again[key] = self._again.get(key, 1) + 1
            unique = f"{key}#{self._again[key]}"
        return unique
