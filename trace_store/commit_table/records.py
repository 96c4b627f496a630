"""The rows of the commit table, to the byte.

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
"""

from __future__ import annotations

import struct
from zlib import crc32

from trace_store import errors
from trace_store.objects.operations import OPERATIONS, message_count
from trace_store.oid import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

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
