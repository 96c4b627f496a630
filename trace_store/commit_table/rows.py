"""One generation of the commit table, as far as a reader looks: its rows by number.

Rule: rows are read in chunks, and a chunk is checked before anything in it is believed. The rows only grow, so what
was read stays true. A parent has a smaller number than its child.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.commit_table.records import (
    FLAGS_AT,
    FURTHER,
    FURTHER_AT,
    HEADER_BYTES,
    MANY,
    MORE,
    NUMBER_AT,
    PARENTS,
    PARENTS_AT,
    ROW,
    ROW_BYTES,
    is_sound,
)
from trace_store.oid import OID_BYTES, ObjectId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from trace_store.columns import MemoryBytes, OpenColumn
    from trace_store.commit_table.records import Row

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
