"""The binary records of the compile index.

Integers are little-endian. The checksum is CRC-32 starting from SEED. So a run of zeros, which a crash may leave, is
never valid, and the CRC-32 of any number of whole records, starting from SEED, is SEED.

A column starts with a header of 64 bytes:

     0   4  "TRIX" (messages) or "TRTK" (tokens)        16  16  generation
     4   2  version                                     32  16  measured: prefix of a commit's id, or 0
     6   2  bytes of a record                           48   8  tokens of the messages there
     8   8  zero                                        56   4  zero
                                                        60   4  checksum

Only a tokens column uses the fields from 32 on.

A record of the messages column has 180 bytes:

     0  16  birth of the address                        96   4  tools: 1 + number of the record that set them, or 0
    16   4  number of the address                      100  32  prefix hash up to here
    20  32  commit with the message                    132  32  hash of the model-visible content
    52   4  number of the message there                164   8  ordinal: messages up to here
    56  32  commit with the current version            172   4  measured: 1 + number of the record, or 0
    88   4  number of the version there                176   4  checksum
    92   2  flags
    94   1  role
    95   1  kind

A record of a tokens column has 40 bytes:

     0   4  tokens of the message                       24   4  tie: first bytes of the prefix hash
     4   4  tokens of its text alone                    28   8  first bytes of the message's hash
     8   8  tokens up to here                           36   4  checksum
    16   8  tokens of text up to here
"""

from __future__ import annotations

import struct
import zlib

from trace_store import errors
from trace_store.frozen import value
from trace_store.objects.address import Address
from trace_store.objects.message import KINDS, ROLES
from trace_store.objects.operations import IMPORTANT, NORMAL, PINNED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

VERSION = 5
SEED = 0x2144DF1C
"""The CRC-32 of any bytes followed by their own CRC-32, so consecutive records can be checked together."""
MESSAGES_MAGIC = b"TRIX"
TOKENS_MAGIC = b"TRTK"

_HEADER = struct.Struct("<4sHH8x16s16sQ4xI")
_MESSAGE = struct.Struct("<16sI32sI32sIHBBI32s32sQII")
_TOLD = struct.Struct("<92sH2sI32s32sQI")
_PLACE = struct.Struct("<20x32sI36xH70xQ8x")
_LEAN = struct.Struct("<92xH70xQ8x")
_TOKENS = struct.Struct("<IIQQ4s8sI")
HEADER_BYTES = _HEADER.size
MESSAGE_BYTES = _MESSAGE.size
TOKENS_BYTES = _TOKENS.size
ADDRESS_BYTES = 20
TOLD_SEEN_AT = 96
KEY_BYTES = 92
"""Address, home and place, the first fields of a record: `Entry.key`."""
TIE_BYTES = 4
SEEN_BYTES = 8
_ROLE_AT = 94
NO_COMMIT = bytes(16)
START = bytes(32)
"""The prefix hash before the first message."""

MARKER = 1
"""The record is not a message; it marks that the index reaches a commit, or where the tools were set."""
END = 2
"""The last record of a commit; the index is valid up to here."""
GHOST = 4
EDITED = 8
IS_PINNED = 16
IS_IMPORTANT = 32
LABELLED = 64
TOOLS = 128
"""The commit of this marker set the tools."""
CARRIED = 256
"""This marker represents an earlier commit with a report whose context is not a prefix of the records.

Its number and its message hash are the count of that context's messages and their prefix hash; zeros if unknown.
"""

_PRIORITY_FLAGS = {PINNED: IS_PINNED, IMPORTANT: IS_IMPORTANT, NORMAL: 0}


@value
class Header:
    """The header of a column.

    Attributes:
        measured: prefix of the id of a commit whose messages have `measured_total` tokens; only in a tokens column.
    """

    magic: bytes
    record_bytes: int
    generation: bytes
    measured: bytes = NO_COMMIT
    measured_total: int = 0

    def pack(self) -> bytes:
        """Return the 64 bytes."""
        data = _HEADER.pack(
            self.magic,
            VERSION,
            self.record_bytes,
            self.generation,
            self.measured,
            self.measured_total,
            0,
        )
        return _sealed(data)

    @classmethod
    def unpack(cls, data: bytes, magic: bytes, record_bytes: int) -> Header:
        """Return the header.

        Raises:
            CorruptIndexError: it is damaged, or of another version or column.
        """
        _check(data, HEADER_BYTES)
        found, version, size, generation, measured, total, _ = _HEADER.unpack(data)
        if (found, version, size) != (magic, VERSION, record_bytes):
            raise errors.CorruptIndexError("not an index of this version")
        return cls(found, size, generation, measured, total)


@value
class MessageRecord:
    """One message of a compiled context, or a marker.

    Attributes:
        birth, number: the message's address; in a marker, 0 or the message count of a measured context.
        home_commit, home_number: where the message is; in a marker, its commit.
        place_commit, place_number: where its current version is.
        tools: 1 + the number of the record that set the current tools, or 0.
        prefix: the prefix hash up to here.
        seen: the hash of the model-visible content; in a marker, the prefix hash of a measured context.
        ordinal: number of messages up to here.
        measured: 1 + the number of the record that ends, or is CARRIED for, the last commit with a report; or 0.
    """

    birth: bytes
    number: int
    home_commit: bytes
    home_number: int
    place_commit: bytes
    place_number: int
    flags: int
    role: str
    kind: str
    tools: int
    prefix: bytes
    seen: bytes
    ordinal: int
    measured: int = 0

    @property
    def address(self) -> Address:
        """The message's address."""
        return Address(self.birth, self.number)

    @property
    def is_message(self) -> bool:
        """Whether this is a message, not a marker."""
        return not self.flags & MARKER

    @property
    def priority(self) -> str:
        """The message's priority."""
        if self.flags & IS_PINNED:
            return PINNED
        return IMPORTANT if self.flags & IS_IMPORTANT else NORMAL

    def pack(self) -> bytes:
        """Return the 180 bytes."""
        data = _MESSAGE.pack(
            self.birth,
            self.number,
            self.home_commit,
            self.home_number,
            self.place_commit,
            self.place_number,
            self.flags,
            ROLES.index(self.role),
            KINDS.index(self.kind),
            self.tools,
            self.prefix,
            self.seen,
            self.ordinal,
            self.measured,
            0,
        )
        return _sealed(data)

    @classmethod
    def unpack(cls, data: bytes) -> MessageRecord:
        """Return the record.

        Raises:
            CorruptIndexError: it is damaged.
        """
        _check(data, MESSAGE_BYTES)
        return cls.unpack_from(data, 0)

    @classmethod
    def unpack_from(cls, block: bytes | bytearray, at: int) -> MessageRecord:
        """Return a record of a block with verified checksums; raises as `unpack`."""
        *places, role, kind, tools, prefix, seen, ordinal, measured, _ = _MESSAGE.unpack_from(
            block, at
        )
        if role >= len(ROLES) or kind >= len(KINDS):
            raise errors.CorruptIndexError("an index record is damaged")
        told = (ROLES[role], KINDS[kind], tools, prefix, seen, ordinal, measured)
        return cls(*(*places, *told))


def pack_told(
    told: bytes, flags: int, tools: int, prefix: bytes, ordinal: int, measured: int
) -> bytes:
    """Return the bytes of a record from its own fields (`told`) and those that depend on earlier records.

    `told` has the key, flags, role and kind, and the hash of the model-visible content.
    """
    data = _TOLD.pack(
        told[:KEY_BYTES], flags, told[94:96], tools, prefix, told[96:], ordinal, measured
    )
    return data + zlib.crc32(data, SEED).to_bytes(4, "little")


def by_key(block: bytes) -> dict[bytes, bytes]:
    """Return the message records in a checked block by their key: address, home and place."""
    found = {}
    for at in message_places(block) if block else ():
        found[block[at : at + KEY_BYTES]] = block[at : at + MESSAGE_BYTES]
    return found


def flags_at(block: bytes, at: int) -> int:
    """Return the flags of a record."""
    return block[at + 92] | block[at + 93] << 8


def comparable_fields(block: bytes, at: int) -> bytes:
    """Return the fields of a message's record that do not depend on its neighbours."""
    flags = int.from_bytes(block[at + 92 : at + 94], "little") & ~END
    return b"%b%b%b%b" % (
        block[at : at + 92],
        flags.to_bytes(2, "little"),
        block[at + 94 : at + 96],
        block[at + 100 : at + 172],
    )


def ordinal_at(block: bytes, at: int) -> int:
    """Return the ordinal of a record."""
    ordinal: int = _LEAN.unpack_from(block, at)[1]
    return ordinal


def home_at(block: bytes, at: int) -> bytes:
    """Return the commit that contains a record's message."""
    return block[at + 20 : at + 52]


def role_at(block: bytes, at: int) -> str:
    """Return the role of a record; errors as in `MessageRecord.unpack`."""
    role = block[at + _ROLE_AT]
    if role >= len(ROLES):
        raise errors.CorruptIndexError("an index record is damaged")
    return ROLES[role]


def ties_at(block: bytes, at: int) -> tuple[bytes, bytes]:
    """Return the first bytes of a record's prefix hash and of its content hash."""
    prefix, seen = at + 100, at + 132
    return block[prefix : prefix + TIE_BYTES], block[seen : seen + SEEN_BYTES]


def is_message(block: bytes, at: int) -> bool:
    """Return True if a record is a message, not a marker."""
    flags: int = _LEAN.unpack_from(block, at)[0]
    return not flags & MARKER


def find_message(block: bytes, address: tuple[bytes, int]) -> int | None:
    """Return the offset of a message's record, or None."""
    birth, number = address
    if not 0 <= number < 1 << 32:
        return None
    needle = birth + number.to_bytes(4, "little")
    at = block.rfind(needle)
    while at >= 0:
        if at % MESSAGE_BYTES == 0 and is_message(block, at):
            return at
        at = block.rfind(needle, 0, at + len(needle) - 1)
    return None


def unpack_places(block: bytes) -> Iterator[tuple[bytes, int, int, int]]:
    """Yield (home commit, number there, flags, ordinal) of records with verified checksums."""
    return _PLACE.iter_unpack(block)


def check_records(block: bytes, size: int = MESSAGE_BYTES) -> None:
    """Verify the checksums of a block of records.

    Raises:
        CorruptIndexError: a record is damaged or incomplete.
    """
    # After each valid record the running CRC is SEED again, so one computation checks all.
    if len(block) % size or zlib.crc32(block, SEED) != SEED:
        raise errors.CorruptIndexError("an index record is damaged")


def message_places(block: bytes) -> Sequence[int]:
    """Return the offsets of the messages in a block of records.

    Raises:
        CorruptIndexError: a record is damaged or incomplete.
    """
    check_records(block)
    first, last = _LEAN.unpack_from(block), _LEAN.unpack_from(block, len(block) - MESSAGE_BYTES)
    if not first[0] & MARKER and last[1] - first[1] == len(block) // MESSAGE_BYTES - 1:
        return range(0, len(block), MESSAGE_BYTES)  # there are no markers
    flags = _LEAN.iter_unpack(block)
    return [at * MESSAGE_BYTES for at, fields in enumerate(flags) if not fields[0] & MARKER]


def priority_flag(priority: str) -> int:
    """Return the flag of a priority other than skip."""
    return _PRIORITY_FLAGS[priority]


@value
class TokenRecord:
    """The tokens of one message, and of all up to it.

    Attributes:
        tokens: text, framing and estimated parts.
        text: the counted part of it, without estimates.
        total, text_total: the same for all messages up to here.
        tie: the first bytes of the prefix hash up to here, which detect counts of other messages.
        seen: the first bytes of the message's hash, by which other columns find it.
    """

    tokens: int
    text: int
    total: int
    text_total: int
    tie: bytes
    seen: bytes

    def pack(self) -> bytes:
        """Return the 40 bytes."""
        numbers = self.tokens, self.text, self.total, self.text_total
        return _sealed(_TOKENS.pack(*numbers, self.tie, self.seen, 0))


def unpack_tokens(block: bytes) -> list[TokenRecord]:
    """Return the records of a block of a tokens column; raises as `check_records`."""
    check_records(block, TOKENS_BYTES)
    return [TokenRecord(*fields) for *fields, _ in _TOKENS.iter_unpack(block)]


def _sealed(data: bytes) -> bytes:
    return data[:-4] + zlib.crc32(data[:-4], SEED).to_bytes(4, "little")


def _check(data: bytes, size: int) -> None:
    if len(data) != size or zlib.crc32(data[:-4], SEED) != int.from_bytes(data[-4:], "little"):
        raise errors.CorruptIndexError("an index record is damaged")
