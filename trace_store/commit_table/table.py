"""The commit table: one row per commit, parents first, in an append-only file.

Rule: a cache of the commits' own bytes. A reader adds the rows that it needs and does not find; nobody else updates the
table. A table that does not match is rewritten, and deleting it only costs time. An incomplete history is never
written, so the table has the whole history of each row.
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
"""How many new commits are read before all rows are loaded to find the known ones."""


class CommitTable:
    """The table of one repository."""

    __slots__ = ("_column", "_disk", "_loaded", "_objects", "_path", "_store")

    def __init__(self, disk: Disk, path: str, store_id: str, objects: ObjectReader) -> None:
        """Open the table in the file `path`; nothing is read yet."""
        self._disk = disk
        self._path = path
        self._store = tag_of(store_id)
        self._objects = objects
        self._column = DiskColumn(disk, path)
        self._loaded: tuple[object, CommitRows] | None = None

    def load(self) -> CommitRows | None:
        """Return the file's rows, or None if missing, damaged or of another repository."""
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
        """Return True if a commit is among the newest rows."""
        rows = self.load()
        try:
            return rows is not None and rows.recent(oid) is not None
        except errors.CorruptIndexError:
            return False  # a reader of the rows will detect the damage too

    def discard(self) -> None:
        """Remove the table; it is rebuilt when needed."""
        self._loaded = None
        try:
            self._disk.remove(self._path)
        except errors.StorageError:
            return  # a read-only repository: the damage will be detected again

    def forget(self, removed: Iterable[bytes]) -> None:
        """Remove the table if it has rows of commits that are about to be removed."""
        rows = self.load()
        try:
            if rows is None or rows.numbers().keys().isdisjoint(removed):
                return
        except errors.CorruptIndexError:
            pass
        self.discard()

    def rows_for(
        self, starts: Iterable[bytes], *, limit: int | None = None
    ) -> tuple[CommitRows, list[int]] | None:
        """Return rows with the whole history of the starts, and the starts' numbers.

        Missing rows are added.

        Args:
            starts: the commits.
            limit: the maximum number of commits to read, or None.

        Returns:
            None if the limit is too small, or the history is incomplete.

        Raises:
            StorageError: an object cannot be read.
        """
        starts = list(starts)
        rows = self.load()
        try:
            return self._rows_for(starts, rows, limit)
        except errors.CorruptIndexError:
            self.discard()
            return None

    def _rows_for(
        self, starts: list[bytes], rows: CommitRows | None, limit: int | None
    ) -> tuple[CommitRows, list[int]] | None:
        missing = _Missing(self._objects)
        known = _no_row if rows is None else rows.near
        near = NEAR if limit is None and rows is not None else limit
        # A root commit may be old or new, which the newest rows alone do not tell.
        roots = rows is None or rows.count <= RECENT_ROWS or rows.knows_all()
        if not missing.find(starts, known, near, roots=roots):
            if limit is not None or missing.broken or rows is None:
                return None
            all_rows = rows.numbers()
            known = lambda oid: all_rows.get(oid)  # noqa: E731
            if not missing.find(starts, known, None):
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
        more = rows.append(data)
        if more is None:
            # Something follows the rows: a torn write, or another writer's rows.
            reloaded = self.load()
            if reloaded is not None and (reloaded.count, reloaded.generation) == (
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
        broken: whether a commit is missing or unreadable.
    """

    __slots__ = ("_facts", "_objects", "_order", "broken")

    def __init__(self, objects: ObjectReader) -> None:
        self._objects = objects
        self._facts: dict[bytes, Found] = {}
        self._order: list[bytes] = []
        self.broken = False

    def find(
        self,
        starts: Iterable[bytes],
        known: Callable[[bytes], int | None],
        budget: int | None,
        *,
        roots: bool = True,
    ) -> bool:
        """Find the commits between the starts and those with rows.

        Returns False if more than `budget` would be read, or, unless `roots`, if a root commit is found.
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
        """Return the new rows, numbered from `first`, and the row numbers of the starts."""
        numbers: dict[bytes, int] = {}
        pieces: list[bytes] = []
        at, run = first, -1

        def number_of(oid: bytes) -> int:
            number = numbers.get(oid)
            if number is None:
                number = known(oid)
            if number is None:
                raise errors.CorruptIndexError("the commit table lost a row")
            return number

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


def _no_row(oid: bytes) -> int | None:
    return None
