"""Rows of the commit table: their bytes, and lookup by number.

    header
     0   4  "TRCT"                        24  16  generation
     4   2  version                       40  20  zero
     6   2  bytes of a row                60   4  checksum
     8  16  store: the repository's tag

    row
     0  32  id of the commit              48   8  time, signed
    32   4  number of this row            56   4  messages that it adds
    36   4  1 + row of the first parent   60   1  operation
    40   4  1 + row of the second         61   1  flags
    44   4  run                           62   2  continuation rows
                                          64  44  author, then zeros
                                         108   4  checksum

Rule: numbers and bytes only. Integers are little-endian. A checksum is the CRC-32 of the bytes before it, started with
SEED. SEED is the CRC-32 of any bytes followed by their own CRC-32, so one call checks any number of consecutive rows.
Zeros, which a crash may leave, never pass.

Rule: rows are read in chunks, and each chunk is checked before use. Rows are only appended, so cached rows stay valid.
A parent has a smaller number than its child.
"""

from __future__ import annotations

import struct
from zlib import crc32

from trace_store import errors
from trace_store.objects.operations import OPERATIONS, message_count
from trace_store.oid import OID_BYTES, ObjectId, digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import TypeAlias

    from trace_store.column_file import MemoryBytes, OpenColumn
    from trace_store.objects.commit import Commit

    Row: TypeAlias = tuple[bytes, int, int, int, int, int, int, int, int, bytes]
    """Id, number, parent, second parent, run, time, messages, operation, flags, author."""
    Facts: TypeAlias = tuple[int, int, int, int, bytes]
    """Time, messages, operation, flags and author of a commit."""


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
