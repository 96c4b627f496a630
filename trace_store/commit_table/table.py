"""The commit table: a row for each commit, parents first, in a file that only grows.

Rule: a cache of the commits' own bytes. It is pulled, never pushed: a reader compares what it is asked for with what
the table holds and adds what is missing. What does not match is written anew, and deleting it costs time only. A
history that is not whole is never written down, so a row's whole past is in the table.
"""

from __future__ import annotations

import os

from trace_store import errors
from trace_store.column_file import DiskColumn
from trace_store.commit_table.rows import (
    GENERATION_BYTES,
    HEADER_BYTES,
    MAXIMUM_ROWS,
    RECENT_ROWS,
    ROW_BYTES,
    CommitRows,
    decode_header,
    encode_header,
    encode_rows,
    facts_of,
    tag_of,
)
from trace_store.objects.commit import read_commit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import TypeAlias

    from trace_store.commit_table.rows import Facts
    from trace_store.contracts import ObjectReader
    from trace_store.files import Disk
    from trace_store.oid import ObjectId

    Found: TypeAlias = tuple[tuple[ObjectId, ...], Facts]

NEAR = 64
"""How many commits are looked at to get from a new one to those that have rows, before all rows are looked at."""


class CommitTable:
    """The table of one repository."""

    __slots__ = ("_column", "_disk", "_loaded", "_objects", "_path", "_store")

    def __init__(self, disk: Disk, path: str, store_id: str, objects: ObjectReader) -> None:
        """Say where the table is, whose it is, and where its commits come from."""
        self._disk = disk
        self._path = path
        self._store = tag_of(store_id)
        self._objects = objects
        self._column = DiskColumn(disk, path)
        self._loaded: tuple[object, CommitRows] | None = None

    def load(self) -> CommitRows | None:
        """Return the rows that the file holds, or None when there is none, or another's, or a damaged one."""
        try:
            opened = self._column.current()
            if opened is None:
                return None
            known = opened.identity, opened.size()
            if self._loaded is not None and self._loaded[0] == known:
                return self._loaded[1]
            generation = decode_header(opened.read(0, HEADER_BYTES), self._store)
            stored = (known[1] - HEADER_BYTES) // ROW_BYTES
            rows = CommitRows(opened, min(stored, MAXIMUM_ROWS), generation)
            if rows.count:
                rows.row(rows.count - 1)
            self._loaded = known, rows
            return rows
        except (errors.CorruptIndexError, errors.StorageError):
            return None

    def is_recent(self, oid: bytes) -> bool:
        """Tell whether a commit has one of the newest rows."""
        rows = self.load()
        try:
            return rows is not None and rows.recent(oid) is not None
        except errors.CorruptIndexError:
            return False  # a reader of the rows reports the damage

    def discard(self) -> None:
        """Remove the table, which is made anew when a walk needs it."""
        self._loaded = None
        try:
            self._disk.remove(self._path)
        except errors.StorageError:
            return  # a read-only repository: what is wrong with it will be found again

    def forget(self, gone: Iterable[bytes]) -> None:
        """Remove a table that has a row of one of some commits, which are about to be removed on purpose."""
        rows = self.load()
        try:
            if rows is None or rows.numbers().keys().isdisjoint(gone):
                return
        except errors.CorruptIndexError:
            pass
        self.discard()

    def reaching(
        self, starts: Iterable[bytes], *, limit: int | None = None
    ) -> tuple[CommitRows, list[int]] | None:
        """Return rows that hold the whole past of commits, and the rows of these; what is missing is added.

        Args:
            starts: the commits.
            limit: how many commits may be read to get there; None reads all that it takes.

        Returns:
            None when it would take more, or the history is not whole.

        Raises:
            StorageError: the disk refuses an object.
        """
        starts = list(starts)
        rows = self.load()
        try:
            return self._reaching(starts, rows, limit)
        except errors.CorruptIndexError:
            self.discard()
            return None

    def _reaching(
        self, starts: list[bytes], rows: CommitRows | None, limit: int | None
    ) -> tuple[CommitRows, list[int]] | None:
        missing = _Missing(self._objects)
        known = _nothing if rows is None else rows.near
        near = NEAR if limit is None and rows is not None else limit
        # A commit without parents may be an old one, which a look at the newest rows alone cannot tell from a new one.
        roots = rows is None or rows.count <= RECENT_ROWS or rows.knows_all()
        if not missing.look(starts, known, near, roots=roots):
            if limit is not None or missing.broken or rows is None:
                return None
            all_rows = rows.numbers()
            known = lambda oid: all_rows.get(oid)  # noqa: E731
            if not missing.look(starts, known, None):
                return None
        data, numbers = missing.encode(0 if rows is None else rows.count, known, starts)
        if data:
            rows = self._add(rows, data)
        return None if rows is None else (rows, numbers)

    def _add(self, rows: CommitRows | None, data: bytes) -> CommitRows | None:
        if rows is None:
            generation = os.urandom(GENERATION_BYTES)
            opened = self._column.replace(encode_header(self._store, generation) + data)
            return CommitRows(opened, len(data) // ROW_BYTES, generation)
        more = rows.extended(data)
        if more is None:
            # Something else stands behind the rows: a write that was cut off, or another writer's rows.
            again = self.load()
            if again is not None and (again.count, again.generation) == (
                rows.count,
                rows.generation,
            ):
                return self._add(None, rows.all() + data)
            return rows.with_added(data)
        now = self._column.current()
        size = HEADER_BYTES + more.count * ROW_BYTES
        if now is not None and rows.is_of(now) and now.size() == size:  # nobody else has written
            self._loaded = (now.identity, size), more
        return more


class _Missing:
    """Commits that have no row yet.

    Attributes:
        broken: whether one of them is not here, or not readable.
    """

    __slots__ = ("_facts", "_objects", "_order", "broken")

    def __init__(self, objects: ObjectReader) -> None:
        self._objects = objects
        self._facts: dict[bytes, Found] = {}
        self._order: list[bytes] = []
        self.broken = False

    def look(
        self,
        starts: Iterable[bytes],
        known: Callable[[bytes], int | None],
        budget: int | None,
        *,
        roots: bool = True,
    ) -> bool:
        """Find the commits between some and those with rows.

        Return False when more than `budget` would be read, or when it comes to one without parents, unless `roots`.
        """
        self._order = []
        seen: set[bytes] = set()
        for start in starts:
            below: bytes | None = start
            stack: list[tuple[bytes, Iterator[bytes]]] = []
            while True:
                if below is not None and below not in seen:
                    seen.add(below)
                    if known(below) is None:
                        if below not in self._facts:
                            if budget is not None and len(self._facts) >= budget:
                                return False
                            if not self._read(below):
                                return False
                        if not roots and not self._facts[below][0]:
                            return False
                        stack.append((below, iter(self._facts[below][0])))
                if not stack:
                    break
                below = next(stack[-1][1], None)
                if below is None:
                    self._order.append(stack.pop()[0])
        return True

    def encode(
        self, first: int, known: Callable[[bytes], int | None], starts: Iterable[bytes]
    ) -> tuple[bytes, list[int]]:
        """Return the rows of what was found, of which the first has a number, and the rows of the starts."""
        numbers: dict[bytes, int] = {}
        pieces: list[bytes] = []
        at, run = first, -1

        def number_of(oid: bytes) -> int:
            found = numbers.get(oid)
            if found is None:
                found = known(oid)
            if found is None:
                raise errors.CorruptIndexError("the commit table lost a row")
            return found

        for oid in self._order:
            parents, facts = self._facts[oid]
            above = [number_of(parent) for parent in parents]
            straight = len(above) == 1 and above[0] == at - 1 and run >= 0
            run = run if straight else at
            numbers[oid] = at
            data = encode_rows(oid, at, above, run, facts)
            at += len(data) // ROW_BYTES
            pieces.append(data)
        return b"".join(pieces), [number_of(oid) for oid in starts]

    def _read(self, oid: bytes) -> bool:
        try:
            commit = read_commit(oid, self._objects.read)
        except (errors.NotFoundError, errors.FormatError):
            self.broken = True
            return False
        self._facts[oid] = (commit.parents, facts_of(commit))
        return True


def _nothing(oid: bytes) -> int | None:
    return None
