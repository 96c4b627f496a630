"""Rows of the commit table: their bytes, and lookup by number.

    header
     0   4  "TRCT"                        24  16  generation
     4   2  version                       40  20  zero
     6   2  bytes of a row                60   4  checksum
     8  16  store: which one the rows are of

    row
     0  32  id of the commit              48   8  time, signed
    32   4  number of this row            56   4  messages that it creates
    36   4  1 + row of the first parent   60   1  operation
    40   4  1 + row of the second         61   1  flags
    44   4  run                           62   2  further rows
                                          64  44  author, then zeros
                                         108   4  checksum

Rule: numbers and bytes only. Integers are little-endian. A checksum is the CRC-32 of the bytes before it, begun with
SEED. That is what any bytes with their own CRC-32 behind them come to, so rows that follow one another are checked by
one call, however many they are; and zeros, which a crash may leave, never pass.

Rule: rows are read in chunks, and a chunk is checked before anything in it is believed. The rows only grow, so what
was read stays true. A parent has a smaller number than its child.
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
    """What a commit says of itself: time, messages, operation, flags, author."""


MAGIC = b"TRCT"
VERSION = 2
SEED = 0x2144DF1C
STORE_BYTES = 16
GENERATION_BYTES = 16
_HEADER = struct.Struct(f"<4sHH{STORE_BYTES}s{GENERATION_BYTES}s20s")
AUTHOR_BYTES = 44
_ROW = struct.Struct(f"<32sIIIIqIBBH{AUTHOR_BYTES}s")
ROW = struct.Struct(f"<32sIIIIqIBB2x{AUTHOR_BYTES}s4x")
TOLD = struct.Struct(f"<32s16xqI4x{AUTHOR_BYTES}s4x")
"""What a log tells of a row: id, time, messages, author."""
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

MORE = 1
"""The row is no commit: it holds further parents of the commit before it."""
MANY = 2
"""The commit has more than two parents; so many rows with MORE follow as it says, unless they have been cut off."""
ODD = 4
"""The time does not fit; the commit has it."""
SAYS = 8
"""The commit has a message."""
UNNAMED = 16
"""The author does not fit; the commit has it."""
OTHER = 255
"""Operations that have no number: several, or one that is unknown here."""
_NUMBERS = {name: number for number, name in enumerate(OPERATIONS, 1)}
_TIME_END = 1 << 63
_COUNT_END = 1 << 32


def tag_of(store_id: str) -> bytes:
    """Return what the header names a repository by."""
    return digest(store_id.encode())[:STORE_BYTES]


def checked(data: bytes) -> bytes:
    """Return bytes with their checksum behind them."""
    return data + crc32(data, SEED).to_bytes(CHECK_BYTES, "little")


def is_sound(data: bytes) -> bool:
    """Tell whether the checksums hold of bytes, or of many that follow one another."""
    return crc32(data, SEED) == SEED


def encode_header(
    store: bytes, generation: bytes, magic: bytes = MAGIC, size: int = ROW_BYTES
) -> bytes:
    """Return the header of a table, or of a column beside it with rows of another size."""
    return checked(_HEADER.pack(magic, VERSION, size, store, generation, bytes(20)))


def decode_header(data: bytes, store: bytes, magic: bytes = MAGIC, size: int = ROW_BYTES) -> bytes:
    """Return the generation of a table of a store, or of a column beside it.

    Raises:
        CorruptIndexError: it is damaged, of another version, or of another store.
    """
    if len(data) != HEADER_BYTES or not is_sound(data):
        raise errors.CorruptIndexError("the header of the commit table is damaged")
    named, version, rows, owner, generation, _ = _HEADER.unpack(data[:-CHECK_BYTES])
    if (named, version, rows) != (magic, VERSION, size):
        raise errors.CorruptIndexError(f"a commit table of version {version}, not {VERSION}")
    if owner != store:
        raise errors.CorruptIndexError("the commit table belongs to another repository")
    return bytes(generation)


def encode_rows(oid: bytes, number: int, parents: Sequence[int], run: int, facts: Facts) -> bytes:
    """Return the row of a commit, with those that hold further parents.

    Args:
        oid: its id.
        number: the number of the row.
        parents: the rows of its parents, in order.
        run: the row of the oldest commit from which single parents, each one row before its child, lead here.
        facts: as `facts_of` returns them.
    """
    time, count, operation, flags, author = facts
    flags |= MANY if len(parents) > 2 else 0
    first, second = (*(parent + 1 for parent in parents[:2]), 0, 0)[:2]
    rest = range(2, len(parents), 2)
    further = min(len(rest), MAXIMUM_FURTHER)
    row = _ROW.pack(oid, number, first, second, run, time, count, operation, flags, further, author)
    data = checked(row)
    for at in rest:
        number += 1
        first, second = (*(parent + 1 for parent in parents[at : at + 2]), 0)[:2]
        data += checked(_ROW.pack(bytes(32), number, first, second, number, 0, 0, 0, MORE, 0, b""))
    return data


def facts_of(commit: Commit) -> Facts:
    """Return what a row says of a commit besides its parents."""
    time, flags = commit.time, SAYS if commit.message else 0
    if not -_TIME_END <= time < _TIME_END:
        time, flags = 0, flags | ODD
    author = commit.author.encode()
    if len(author) > AUTHOR_BYTES or b"\0" in author:
        author, flags = b"", flags | UNNAMED
    names = [operation.name for operation in commit.operations]
    number = 0 if not names else _NUMBERS.get(names[0], OTHER) if len(names) == 1 else OTHER
    count = min(sum(map(message_count, commit.operations)), _COUNT_END - 1)
    return time, count, number, flags, author.ljust(AUTHOR_BYTES, b"\0")


def names_of(number: int) -> tuple[str, ...] | None:
    """Return the names of a commit's operations, or None when the number does not tell them."""
    if number == 0:
        return ()
    return (OPERATIONS[number - 1],) if number <= len(OPERATIONS) else None


CHUNK_ROWS = 512
RECENT_ROWS = 2 * CHUNK_ROWS
"""How far back a commit's row is looked for at first."""
_KEPT_CHUNKS = 64
_MOST_NUMBERS = 1 << 17
"""The numbers of so many rows are kept, some 16 MiB."""
BLOCK_ROWS = 128
"""So many are unpacked at once: more values at a time would set off the garbage collector more often."""
_RUN = slice(44, 48)


class CommitRows:
    """Rows by number, from 0.

    Attributes:
        count: how many there are.
        generation: names the writing that they belong to, for columns that run beside.
    """

    __slots__ = ("_added", "_chunks", "_numbers", "_opened", "_stored", "count", "generation")

    def __init__(
        self, opened: OpenColumn | MemoryBytes, stored: int, generation: bytes, added: bytes = b""
    ) -> None:
        """Look at the first `stored` rows of a column, and at rows behind them that could not be written."""
        self._opened = opened
        self._stored = stored
        self._added = added
        self._chunks: dict[int, bytes] = {}
        self._numbers: dict[bytes, int] | None = None
        self.count = stored + len(added) // ROW_BYTES
        self.generation = generation

    def read(self, first: int, end: int) -> bytes:
        """Return the bytes of the rows from one up to, not including, another, checked.

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
        """Return the chunk of this number: CHUNK_ROWS rows, or fewer at the end."""
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
        """Yield the rows from one down to another, both included, some at a time.

        These are (number of the first, bytes), and in the bytes the oldest comes first, as in the file.
        """
        while high >= low:
            number = high // CHUNK_ROWS
            first = max(number * CHUNK_ROWS, low, high + 1 - BLOCK_ROWS)
            start = first - number * CHUNK_ROWS
            end = high + 1 - number * CHUNK_ROWS
            yield first, self.chunk(number)[start * ROW_BYTES : end * ROW_BYTES]
            high = first - 1

    def ids_newest_first(self, high: int, low: int) -> Iterator[ObjectId]:
        """Yield the ids of the commits from one row down to another, both included."""
        for _, data in self.newest_first(high, low):
            for at in range(len(data) - ROW_BYTES, -1, -ROW_BYTES):
                yield ObjectId(data[at : at + OID_BYTES])

    def oldest_first(self, first: int, end: int) -> Iterator[Row]:
        """Yield the rows from one up to, not including, another."""
        for start in range(first, end, CHUNK_ROWS):
            yield from ROW.iter_unpack(self.read(start, min(start + CHUNK_ROWS, end)))

    def oid(self, number: int) -> ObjectId:
        """Return the id of a commit."""
        at = number % CHUNK_ROWS * ROW_BYTES
        return ObjectId(self.chunk(number // CHUNK_ROWS)[at : at + OID_BYTES])

    def run(self, number: int) -> int:
        """Return the row from which single parents, each one row before its child, lead to this one."""
        at = number % CHUNK_ROWS * ROW_BYTES
        found = int.from_bytes(
            self.chunk(number // CHUNK_ROWS)[at : at + ROW_BYTES][_RUN], "little"
        )
        if found > number:
            raise errors.CorruptIndexError("a run of the commit table begins after its end")
        return found

    def parents(self, number: int) -> list[int]:
        """Return the rows of a commit's parents, in order."""
        data = self.chunk(number // CHUNK_ROWS)
        at = number % CHUNK_ROWS * ROW_BYTES
        first, second = PARENTS.unpack_from(data, at + PARENTS_AT)
        if not second:
            found = [first - 1] if first else []
        else:
            found = [first - 1, second - 1]
            if data[at + FLAGS_AT] & MANY:
                found += self._further(number + 1, *FURTHER.unpack_from(data, at + FURTHER_AT))
        if found and max(found) >= number:
            raise errors.CorruptIndexError("a row of the commit table comes before its parent's")
        return found

    def recent(self, oid: bytes) -> int | None:
        """Return the row of a commit that is among the newest, else None."""
        return self.find(oid, max(self.count - RECENT_ROWS, 0))

    def knows_all(self) -> bool:
        """Tell whether the rows of all commits are at hand by their ids."""
        return self._numbers is not None

    def near(self, oid: bytes) -> int | None:
        """Return the row of a commit where that takes no walk over all rows; None when that is not known."""
        return self.recent(oid) if self._numbers is None else self._numbers.get(oid)

    def find(self, oid: bytes, since: int = 0) -> int | None:
        """Return the row of a commit, looking from the newest row down to the row `since`."""
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
        """Return the rows of all commits by their ids; not to be changed."""
        if self._numbers is not None:
            return self._numbers
        found: dict[bytes, int] = {}
        for first in range(0, self.count, CHUNK_ROWS):
            data = self.read(first, min(first + CHUNK_ROWS, self.count))
            found.update((row[0], row[1]) for row in ROW.iter_unpack(data) if not row[8] & MORE)
        if self.count <= _MOST_NUMBERS:
            self._numbers = found
        return found

    def all(self) -> bytes:
        """Return the bytes of all rows."""
        return b"".join(
            self.read(first, min(first + CHUNK_ROWS, self.count))
            for first in range(0, self.count, CHUNK_ROWS)
        )

    def is_of(self, opened: OpenColumn) -> bool:
        """Tell whether these are rows of a column."""
        return getattr(self._opened, "identity", None) == opened.identity

    def extended(self, data: bytes) -> CommitRows | None:
        """Write further rows behind these; None when something stands there, or somebody is writing."""
        if self._added:
            return None
        end = HEADER_BYTES + self._stored * ROW_BYTES
        if not self._opened.append(end, data):
            return None
        made = CommitRows(self._opened, self._stored + len(data) // ROW_BYTES, self.generation)
        if self._numbers is not None and made.count <= _MOST_NUMBERS:
            new = {row[0]: row[1] for row in ROW.iter_unpack(data) if not row[8] & MORE}
            made._numbers = {**self._numbers, **new}
        return made

    def with_added(self, data: bytes) -> CommitRows:
        """Return these rows with further ones that are not written."""
        return CommitRows(self._opened, self._stored, self.generation, self._added + data)

    @property
    def stored(self) -> int:
        """How many of the rows are in the file."""
        return self._stored

    def _further(self, number: int, rows: int) -> list[int]:
        found: list[int] = []
        end = number + rows
        while number < self.count:
            row = self.row(number)
            if not row[8] & MORE:
                break
            found += [parent - 1 for parent in row[2:4] if parent]
            number += 1
        if not rows or number < end:
            raise errors.CorruptIndexError("the commit table lacks further parents of a commit")
        return found
