"""The commit table: one row per commit, parents first, in an append-only file.

Rule: a cache of the commits' own bytes. A reader adds the rows that it needs and does not find; nobody else updates the
table. A table that does not match is rewritten, and deleting it only costs time. An incomplete history is never
written, so the table has the whole history of each row.
"""

from __future__ import annotations

import os
import struct
from zlib import crc32

from trace_store import errors
from trace_store.base.oid import OID_BYTES, ObjectId, digest
from trace_store.disk.column_file import DiskColumn
from trace_store.objects.commit import read_commit
from trace_store.objects.operations import OPERATIONS, message_count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import TypeAlias

    from trace_store.base.oid import ObjectId
    from trace_store.contracts.protocols import ObjectReader
    from trace_store.disk.column_file import MemoryBytes, OpenColumn
    from trace_store.disk.files import Disk
    from trace_store.objects.commit import Commit

    Row: TypeAlias = tuple[bytes, int, int, int, int, int, int, int, int, bytes]
    """Id, number, parent, second parent, run, time, messages, operation, flags, author."""
    Facts: TypeAlias = tuple[int, int, int, int, bytes]
    """Time, messages, operation, flags and author of a commit."""
    Found: TypeAlias = tuple[tuple[ObjectId, ...], Facts]


MAGIC = b"TRCT"
VERSION = 2
SEED = 0x2144DF1C
STORE_BYTES = 16
GENERATION_BYTES = 16
_HEADER = struct.Struct(f"<4sHH{STORE_BYTES}s{GENERATION_BYTES}s20s")
AUTHOR_BYTES = 44
_ROW = struct.Struct(f"<32sIIIIqIBBH{AUTHOR_BYTES}s")
ROW = struct.Struct(f"<32sIIIIqIBB2x{AUTHOR_BYTES}s4x")
LOG_ROW = struct.Struct(f"<32s16xqI4x{AUTHOR_BYTES}s4x")
"""The fields of a row that a log needs: id, time, messages, author."""
PARENTS = struct.Struct("<II")
PARENTS_AT = 36
CHECK_BYTES = 4
HEADER_BYTES = _HEADER.size + CHECK_BYTES
ROW_BYTES = ROW.size
NUMBER_AT = 32
FLAGS_AT = 61
FURTHER = struct.Struct("<H")
FURTHER_AT = 62
MAXIMUM_FURTHER = 2**16 - 1
MAXIMUM_ROWS = 2**32 - 2

IS_CONTINUATION = 1
"""The row is not a commit: it has further parents of the commit before it."""
HAS_MORE_PARENTS = 2
"""The commit has more than two parents, which are in the rows with IS_CONTINUATION that follow."""
TIME_OVERFLOW = 4
"""The time is out of range; read the commit."""
HAS_MESSAGE = 8
"""The commit has a message."""
AUTHOR_OVERFLOW = 16
"""The author is too long; read the commit."""
OTHER = 255
"""The operation number of several operations, or of an unknown one."""
_NUMBERS = {name: number for number, name in enumerate(OPERATIONS, 1)}
_TIME_END = 1 << 63
_COUNT_END = 1 << 32


def tag_of(store_id: str) -> bytes:
    """Return the tag of a repository in the header."""
    return digest(store_id.encode())[:STORE_BYTES]


def with_checksum(data: bytes) -> bytes:
    """Return bytes followed by their checksum."""
    return data + crc32(data, SEED).to_bytes(CHECK_BYTES, "little")


def is_sound(data: bytes) -> bool:
    """Return True if the checksums of one or several consecutive records are correct."""
    return crc32(data, SEED) == SEED


def encode_header(
    store: bytes, generation: bytes, magic: bytes = MAGIC, size: int = ROW_BYTES
) -> bytes:
    """Return the header of a table, or of another column with rows of this size."""
    return with_checksum(_HEADER.pack(magic, VERSION, size, store, generation, bytes(20)))


def decode_header(data: bytes, store: bytes, magic: bytes = MAGIC, size: int = ROW_BYTES) -> bytes:
    """Return the generation in the header of a table, or of another column.

    Raises:
        CorruptIndexError: it is damaged, or has another version or repository.
    """
    if len(data) != HEADER_BYTES or not is_sound(data):
        raise errors.CorruptIndexError("the header of the commit table is damaged")
    named, version, rows, owner, generation, _ = _HEADER.unpack(data[:-CHECK_BYTES])
    if (named, version, rows) != (magic, VERSION, size):
        raise errors.CorruptIndexError(f"the commit table has version {version}, not {VERSION}")
    if owner != store:
        raise errors.CorruptIndexError("the commit table belongs to another repository")
    return bytes(generation)


def encode_rows(oid: bytes, number: int, parents: Sequence[int], run: int, facts: Facts) -> bytes:
    """Return the row of a commit, followed by rows for parents after the second.

    Args:
        oid: its id.
        number: its row number.
        parents: the row numbers of its parents, in order.
        run: the row number of the oldest commit of the linear run, with consecutive numbers, that ends here.
        facts: as returned by `facts_of`.
    """
    time, count, operation, flags, author = facts
    flags |= HAS_MORE_PARENTS if len(parents) > 2 else 0
    first, second = (*(parent + 1 for parent in parents[:2]), 0, 0)[:2]
    rest = range(2, len(parents), 2)
    further = min(len(rest), MAXIMUM_FURTHER)
    row = _ROW.pack(oid, number, first, second, run, time, count, operation, flags, further, author)
    data = with_checksum(row)
    for at in rest:
        number += 1
        first, second = (*(parent + 1 for parent in parents[at : at + 2]), 0)[:2]
        data += with_checksum(
            _ROW.pack(bytes(32), number, first, second, number, 0, 0, 0, IS_CONTINUATION, 0, b"")
        )
    return data


def facts_of(commit: Commit) -> Facts:
    """Return the fields of a commit's row, except id and parents."""
    time, flags = commit.time, HAS_MESSAGE if commit.message else 0
    if not -_TIME_END <= time < _TIME_END:
        time, flags = 0, flags | TIME_OVERFLOW
    author = commit.author.encode()
    if len(author) > AUTHOR_BYTES or b"\0" in author:
        author, flags = b"", flags | AUTHOR_OVERFLOW
    names = [operation.name for operation in commit.operations]
    number = 0 if not names else _NUMBERS.get(names[0], OTHER) if len(names) == 1 else OTHER
    count = min(sum(map(message_count, commit.operations)), _COUNT_END - 1)
    return time, count, number, flags, author.ljust(AUTHOR_BYTES, b"\0")


def names_of(number: int) -> tuple[str, ...] | None:
    """Return the names of a commit's operations, or None if the number does not tell."""
    if number == 0:
        return ()
    return (OPERATIONS[number - 1],) if number <= len(OPERATIONS) else None


CHUNK_ROWS = 512
RECENT_ROWS = 2 * CHUNK_ROWS
"""How many of the newest rows are searched first."""
_KEPT_CHUNKS = 64
_MOST_NUMBERS = 1 << 17
"""The ids of up to this many rows are kept in memory, about 16 MiB."""
BLOCK_ROWS = 128
"""Rows unpacked at once; more values would trigger the garbage collector more often."""
_RUN = slice(44, 48)


class CommitRows:
    """Rows by number, from 0.

    Attributes:
        count: the number of rows.
        generation: the id of this table's current version; other columns refer to it.
    """

    __slots__ = ("_added", "_chunks", "_numbers", "_opened", "_stored", "count", "generation")

    def __init__(
        self, opened: OpenColumn | MemoryBytes, stored: int, generation: bytes, added: bytes = b""
    ) -> None:
        """Open the first `stored` rows of a column.

        `added` are further rows that could not be written.
        """
        self._opened = opened
        self._stored = stored
        self._added = added
        self._chunks: dict[int, bytes] = {}
        self._numbers: dict[bytes, int] | None = None
        self.count = stored + len(added) // ROW_BYTES
        self.generation = generation

    def read(self, first: int, end: int) -> bytes:
        """Return the checked bytes of rows `first` to `end` (exclusive).

        Raises:
            CorruptIndexError: they are damaged.
        """
        if end <= self._stored:
            data = self._opened.read(HEADER_BYTES + first * ROW_BYTES, (end - first) * ROW_BYTES)
        else:
            head = self.read(first, self._stored) if first < self._stored else b""
            start = max(first - self._stored, 0) * ROW_BYTES
            data = head + self._added[start : (end - self._stored) * ROW_BYTES]
        number = data[NUMBER_AT : NUMBER_AT + 4]
        if (
            len(data) != (end - first) * ROW_BYTES
            or not is_sound(data)
            or int.from_bytes(number, "little") != first
        ):
            raise errors.CorruptIndexError("rows of the commit table are damaged")
        return data

    def chunk(self, number: int) -> bytes:
        """Return a chunk by number: CHUNK_ROWS rows, or fewer at the end."""
        data = self._chunks.get(number)
        if data is None:
            first = number * CHUNK_ROWS
            data = self.read(first, min(first + CHUNK_ROWS, self.count))
            if len(self._chunks) >= _KEPT_CHUNKS:
                del self._chunks[next(iter(self._chunks))]
            self._chunks[number] = data
        return data

    def row(self, number: int) -> Row:
        """Return a row."""
        data = self.chunk(number // CHUNK_ROWS)
        return ROW.unpack_from(data, number % CHUNK_ROWS * ROW_BYTES)

    def newest_first(self, high: int, low: int) -> Iterator[tuple[int, bytes]]:
        """Yield the rows from `high` down to `low` (inclusive) in blocks.

        A block is (number of its first row, bytes); within it, the oldest row comes first.
        """
        while high >= low:
            number = high // CHUNK_ROWS
            first = max(number * CHUNK_ROWS, low, high + 1 - BLOCK_ROWS)
            start = first - number * CHUNK_ROWS
            end = high + 1 - number * CHUNK_ROWS
            yield first, self.chunk(number)[start * ROW_BYTES : end * ROW_BYTES]
            high = first - 1

    def ids_newest_first(self, high: int, low: int) -> Iterator[ObjectId]:
        """Yield the ids of the commits from `high` down to `low` (inclusive)."""
        for _, data in self.newest_first(high, low):
            for at in range(len(data) - ROW_BYTES, -1, -ROW_BYTES):
                yield ObjectId(data[at : at + OID_BYTES])

    def oldest_first(self, first: int, end: int) -> Iterator[Row]:
        """Yield the rows `first` to `end` (exclusive)."""
        for start in range(first, end, CHUNK_ROWS):
            yield from ROW.iter_unpack(self.read(start, min(start + CHUNK_ROWS, end)))

    def oid(self, number: int) -> ObjectId:
        """Return the id of a commit."""
        at = number % CHUNK_ROWS * ROW_BYTES
        return ObjectId(self.chunk(number // CHUNK_ROWS)[at : at + OID_BYTES])

    def run(self, number: int) -> int:
        """Return the first row of the linear run that ends with this row."""
        at = number % CHUNK_ROWS * ROW_BYTES
        first = int.from_bytes(
            self.chunk(number // CHUNK_ROWS)[at : at + ROW_BYTES][_RUN], "little"
        )
        if first > number:
            raise errors.CorruptIndexError("a run of the commit table starts after its end")
        return first

    def parents(self, number: int) -> list[int]:
        """Return the row numbers of a commit's parents, in order."""
        data = self.chunk(number // CHUNK_ROWS)
        at = number % CHUNK_ROWS * ROW_BYTES
        first, second = PARENTS.unpack_from(data, at + PARENTS_AT)
        if not second:
            result = [first - 1] if first else []
        else:
            result = [first - 1, second - 1]
            if data[at + FLAGS_AT] & HAS_MORE_PARENTS:
                result += self._further(number + 1, *FURTHER.unpack_from(data, at + FURTHER_AT))
        if result and max(result) >= number:
            raise errors.CorruptIndexError("a row of the commit table comes before its parent's")
        return result

    def recent(self, oid: bytes) -> int | None:
        """Return the row number of a commit if it is among the newest, else None."""
        return self.find(oid, max(self.count - RECENT_ROWS, 0))

    def knows_all(self) -> bool:
        """Return True if all ids are in memory."""
        return self._numbers is not None

    def near(self, oid: bytes) -> int | None:
        """Return a commit's row number, or None if that needs a scan of all rows."""
        return self.recent(oid) if self._numbers is None else self._numbers.get(oid)

    def find(self, oid: bytes, since: int = 0) -> int | None:
        """Return a commit's row number, searching from the newest row down to row `since`."""
        if self.count <= since:
            return None
        for number in range((self.count - 1) // CHUNK_ROWS, since // CHUNK_ROWS - 1, -1):
            data = self.chunk(number)
            at = data.rfind(oid)
            while at >= 0:
                if at % ROW_BYTES == 0:
                    return number * CHUNK_ROWS + at // ROW_BYTES
                at = data.rfind(oid, 0, at + OID_BYTES - 1)
        return None

    def numbers(self) -> dict[bytes, int]:
        """Return all row numbers by id; do not modify."""
        if self._numbers is not None:
            return self._numbers
        numbers: dict[bytes, int] = {}
        for first in range(0, self.count, CHUNK_ROWS):
            data = self.read(first, min(first + CHUNK_ROWS, self.count))
            numbers.update(
                (row[0], row[1]) for row in ROW.iter_unpack(data) if not row[8] & IS_CONTINUATION
            )
        if self.count <= _MOST_NUMBERS:
            self._numbers = numbers
        return numbers

    def all(self) -> bytes:
        """Return the bytes of all rows."""
        return b"".join(
            self.read(first, min(first + CHUNK_ROWS, self.count))
            for first in range(0, self.count, CHUNK_ROWS)
        )

    def is_of(self, opened: OpenColumn) -> bool:
        """Return True if the rows are from this column."""
        return getattr(self._opened, "identity", None) == opened.identity

    def append(self, data: bytes) -> CommitRows | None:
        """Append rows to the file; None if another writer is active or has appended."""
        if self._added:
            return None
        end = HEADER_BYTES + self._stored * ROW_BYTES
        if not self._opened.append(end, data):
            return None
        extended = CommitRows(self._opened, self._stored + len(data) // ROW_BYTES, self.generation)
        if self._numbers is not None and extended.count <= _MOST_NUMBERS:
            new = {row[0]: row[1] for row in ROW.iter_unpack(data) if not row[8] & IS_CONTINUATION}
            extended._numbers = {**self._numbers, **new}
        return extended

    def with_added(self, data: bytes) -> CommitRows:
        """Return these rows plus some that are not written."""
        return CommitRows(self._opened, self._stored, self.generation, self._added + data)

    @property
    def stored(self) -> int:
        """How many rows are in the file."""
        return self._stored

    def _further(self, number: int, rows: int) -> list[int]:
        parents: list[int] = []
        end = number + rows
        while number < self.count:
            row = self.row(number)
            if not row[8] & IS_CONTINUATION:
                break
            parents += [parent - 1 for parent in row[2:4] if parent]
            number += 1
        if not rows or number < end:
            raise errors.CorruptIndexError("the commit table lacks parents of a commit")
        return parents


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
