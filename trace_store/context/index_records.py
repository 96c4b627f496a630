"""The records of the compile index, to the byte.

Rule: numbers and bytes only; what they mean for a context is in `compile_index.py`. Integers are little-endian. The
checksum is CRC-32 begun with SEED, so that a run of zeros, which a crash may leave, never validates, and that the
CRC-32 of a run of whole records, begun with SEED, is SEED.

A column begins with a header of 64 bytes:

     0   4  "TRIX" (messages) or "TRTK" (tokens)        16  16  generation
     4   2  version                                     32  16  measured: beginning of a commit's id, or 0
     6   2  bytes of a record                           48   8  tokens of the messages there
     8   8  base: records of the first writing          56   4  zero
                                                        60   4  checksum

Only a tokens column uses the fields from 32 on.

A record of the messages column has 128 bytes:

     0  32  commit of the address                       75   1  kind
    32   4  number of the address                       76   4  tools: 1 + number of the record that set them, or 0
    36  32  commit where the wording stands             80  32  prefix hash up to here
    68   4  number of the wording there                112   8  ordinal: messages up to here
    72   2  flags                                      120   4  measured: 1 + number of the record, or 0
    74   1  role                                       124   4  checksum

A record of a tokens column has 32 bytes:

     0   4  tokens of the message                       16   8  tokens of text up to here
     4   4  tokens of its text alone                    24   4  tie: the prefix hash up to here begins so
     8   8  tokens up to here                           28   4  checksum
"""

from __future__ import annotations

import struct
import zlib

from trace_store import errors
from trace_store.objects.message import KINDS, ROLES
from trace_store.objects.operations import IMPORTANT, NORMAL, PINNED
from trace_store.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

VERSION = 3
SEED = 0x2144DF1C
"""What the CRC-32 of any bytes and their own CRC-32 is: records behind each other check as one."""
MESSAGES_MAGIC = b"TRIX"
TOKENS_MAGIC = b"TRTK"

_HEADER = struct.Struct("<4sHHQ16s16sQII")
_MESSAGE = struct.Struct("<32sI32sIHBBI32sQII")
_PLACE = struct.Struct("<32sI36xH38xQ8x")
_LEAN = struct.Struct("<72xH38xQ8x")
_TOKENS = struct.Struct("<IIQQ4sI")
HEADER_BYTES = _HEADER.size
MESSAGE_BYTES = _MESSAGE.size
TOKENS_BYTES = _TOKENS.size
TIE_BYTES = 4
_ROLE_AT = 74
NO_COMMIT = bytes(16)
START = bytes(32)
"""The prefix hash before the first message."""

MARKER = 1
"""The record is no message; it says that the index reaches a commit, or where the tools were set."""
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
"""This marker stands for an earlier commit with a report, whose context the records before it do not make."""

_PRIORITY_FLAGS = {PINNED: IS_PINNED, IMPORTANT: IS_IMPORTANT, NORMAL: 0}


@value
class Header:
    """The head of a column.

    Attributes:
        measured: how the id of a commit begins whose messages had `measured_total` tokens; in a tokens column.
    """

    magic: bytes
    record_bytes: int
    base: int
    generation: bytes
    measured: bytes = NO_COMMIT
    measured_total: int = 0

    def pack(self) -> bytes:
        """Return the 64 bytes."""
        data = _HEADER.pack(
            self.magic,
            VERSION,
            self.record_bytes,
            self.base,
            self.generation,
            self.measured,
            self.measured_total,
            0,
            0,
        )
        return _sealed(data)

    @classmethod
    def unpack(cls, data: bytes, magic: bytes, record_bytes: int) -> Header:
        """Return the header.

        Raises:
            CorruptIndexError: damaged, of another version, or of another column.
        """
        _check(data, HEADER_BYTES)
        found, version, size, base, generation, measured, total, _, _ = _HEADER.unpack(data)
        if (found, version, size) != (magic, VERSION, record_bytes):
            raise errors.CorruptIndexError("not an index of this version")
        return cls(found, size, base, generation, measured, total)


@value
class MessageRecord:
    """One message of a compiled context, or a marker.

    Attributes:
        tools: 1 + the number of the record that set the tools in force, or 0.
        measured: 1 + the number of the record that ends the last commit with a report, or is CARRIED for it; or 0.
    """

    commit: bytes
    number: int
    place_commit: bytes
    place_number: int
    flags: int
    role: str
    kind: str
    tools: int
    prefix: bytes
    ordinal: int
    measured: int = 0

    @property
    def is_message(self) -> bool:
        """Whether this is a message and no marker."""
        return not self.flags & MARKER

    @property
    def priority(self) -> str:
        """The message's priority."""
        if self.flags & IS_PINNED:
            return PINNED
        return IMPORTANT if self.flags & IS_IMPORTANT else NORMAL

    def ended(self, measured: int) -> MessageRecord:
        """Return the record as the last one of its commit."""
        flags = self.flags | END
        return self.changed(flags, self.tools, self.prefix, self.ordinal, measured)

    def flagged(self, flags: int) -> MessageRecord:
        """Return the record with other flags."""
        return self.changed(flags, self.tools, self.prefix, self.ordinal, self.measured)

    def changed(
        self, flags: int, tools: int, prefix: bytes, ordinal: int, measured: int
    ) -> MessageRecord:
        """Return the record of the same wording with other flags, at another place."""
        return MessageRecord(
            self.commit,
            self.number,
            self.place_commit,
            self.place_number,
            flags,
            self.role,
            self.kind,
            tools,
            prefix,
            ordinal,
            measured,
        )

    def reworded(self, commit: bytes, number: int) -> MessageRecord:
        """Return the record with a wording that an edit made."""
        return MessageRecord(
            self.commit,
            self.number,
            commit,
            number,
            self.flags | EDITED,
            self.role,
            self.kind,
            self.tools,
            self.prefix,
            self.ordinal,
            self.measured,
        )

    def pack(self) -> bytes:
        """Return the 128 bytes."""
        data = _MESSAGE.pack(
            self.commit,
            self.number,
            self.place_commit,
            self.place_number,
            self.flags,
            ROLES.index(self.role),
            KINDS.index(self.kind),
            self.tools,
            self.prefix,
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
        """Return a record of a block whose checksums were looked at before; errors as in `unpack`."""
        (commit, number, place_commit, place_number, flags, role, kind, *rest, _) = (
            _MESSAGE.unpack_from(block, at)
        )
        if role >= len(ROLES) or kind >= len(KINDS):
            raise errors.CorruptIndexError("an index record is damaged")
        return cls(
            commit,
            number,
            place_commit,
            place_number,
            flags,
            ROLES[role],
            KINDS[kind],
            *rest,
        )


def pack_created(
    commit: bytes,
    number: int,
    flags: int,
    role: int,
    kind: int,
    tools: int,
    prefix: bytes,
    ordinal: int,
    measured: int,
) -> bytes:
    """Return the record of a message that stands as it was created; role and kind by their numbers."""
    return _sealed(
        _MESSAGE.pack(
            commit, number, commit, number, flags, role, kind, tools, prefix, ordinal, measured, 0
        )
    )


def shown(block: bytes, at: int) -> bytes:
    """Return what a record says of its message, without what hangs on the records around it."""
    flags = block[at + 72] & ~END
    return (
        b"%c%b%b" % (flags, block[at : at + 72], block[at + 73 : at + 76])
        + block[at + 80 : at + 120]
    )


def ordinal_at(block: bytes, at: int) -> int:
    """Return the ordinal of a record."""
    ordinal: int = _LEAN.unpack_from(block, at)[1]
    return ordinal


def role_at(block: bytes, at: int) -> str:
    """Return the role of a record; errors as in `MessageRecord.unpack`."""
    role = block[at + _ROLE_AT]
    if role >= len(ROLES):
        raise errors.CorruptIndexError("an index record is damaged")
    return ROLES[role]


def is_message(block: bytes, at: int) -> bool:
    """Tell whether a record is a message and no marker."""
    flags: int = _LEAN.unpack_from(block, at)[0]
    return not flags & MARKER


def find_message(block: bytes, address: tuple[bytes, int]) -> int | None:
    """Return the offset of the record of a message, None when it is not there."""
    commit, number = address
    if not 0 <= number < 1 << 32:
        return None
    needle = commit + number.to_bytes(4, "little")
    at = block.rfind(needle)
    while at >= 0:
        if at % MESSAGE_BYTES == 0 and is_message(block, at):
            return at
        at = block.rfind(needle, 0, at + len(needle) - 1)
    return None


def unpack_places(block: bytes) -> Iterator[tuple[bytes, int, int, int]]:
    """Yield (commit, number, flags, ordinal) of records whose checksums were looked at before."""
    return _PLACE.iter_unpack(block)


def check_records(block: bytes) -> None:
    """Look at the checksums of a block of records.

    Raises:
        CorruptIndexError: a record is damaged, or the last is cut off.
    """
    # After a record with its checksum the running CRC is SEED again, so one look checks them all.
    if len(block) % MESSAGE_BYTES or zlib.crc32(block, SEED) != SEED:
        raise errors.CorruptIndexError("an index record is damaged")


def message_places(block: bytes) -> Sequence[int]:
    """Return the offsets of the messages in a block of records.

    Raises:
        CorruptIndexError: a record is damaged, or the last is cut off.
    """
    check_records(block)
    first, last = _LEAN.unpack_from(block), _LEAN.unpack_from(block, len(block) - MESSAGE_BYTES)
    if not first[0] & MARKER and last[1] - first[1] == len(block) // MESSAGE_BYTES - 1:
        return range(0, len(block), MESSAGE_BYTES)  # no marker counts as a message
    flags = _LEAN.iter_unpack(block)
    return [at * MESSAGE_BYTES for at, fields in enumerate(flags) if not fields[0] & MARKER]


def priority_flag(priority: str) -> int:
    """Return the flag of a priority that lets a message stand in the context."""
    return _PRIORITY_FLAGS[priority]


@value
class TokenRecord:
    """The tokens of one message, and of all up to it.

    Attributes:
        tokens: text, framing and what had to be guessed.
        text: the part of it that is text, counted and not estimated.
        total, text_total: the same of all messages up to here.
        tie: the first bytes of the prefix hash up to here, by which a count of other messages is told.
    """

    tokens: int
    text: int
    total: int
    text_total: int
    tie: bytes

    def pack(self) -> bytes:
        """Return the 24 bytes."""
        return _sealed(
            _TOKENS.pack(self.tokens, self.text, self.total, self.text_total, self.tie, 0)
        )

    @classmethod
    def unpack(cls, data: bytes) -> TokenRecord:
        """Return the record.

        Raises:
            CorruptIndexError: it is damaged.
        """
        _check(data, TOKENS_BYTES)
        tokens, text, total, text_total, tie, _ = _TOKENS.unpack(data)
        return cls(tokens, text, total, text_total, tie)


def _sealed(data: bytes) -> bytes:
    return data[:-4] + zlib.crc32(data[:-4], SEED).to_bytes(4, "little")


def _check(data: bytes, size: int) -> None:
    if len(data) != size or zlib.crc32(data[:-4], SEED) != int.from_bytes(data[-4:], "little"):
        raise errors.CorruptIndexError("an index record is damaged")
