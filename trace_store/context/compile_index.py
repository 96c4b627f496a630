"""The compile index: the visible messages of a branch, one record each.

A compile after an append reads and writes only what is new. The index caches the fold. A reader compares the index's
tip with the branch's tip, and adds the missing records. An index that does not match is rebuilt, so deleting it costs
only time.

The last record of a commit has the flag END, so a torn append is detected and ignored. A commit without messages leaves
a marker record, so that the index knows its tip.
"""

from __future__ import annotations

import struct
import zlib

from trace_store import context, errors
from trace_store.base.frozen import value
from trace_store.disk.column_file import DiskColumn, MemoryBytes, MemoryColumn, OpenColumn
from trace_store.objects.address import Address
from trace_store.objects.commit import Commit, read_commit
from trace_store.objects.message import KINDS, ROLES
from trace_store.objects.operations import IMPORTANT, NORMAL, PINNED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import TypeAlias, TypeVar

    from trace_store.context.fold import Fold

    Answer = TypeVar("Answer")
    Seeds: TypeAlias = Callable[[], Iterable["IndexView"]]
    Read: TypeAlias = Callable[[bytes], bytes]
    Opened: TypeAlias = OpenColumn | MemoryBytes
    Column: TypeAlias = DiskColumn | MemoryColumn


Sums = tuple[int, int, int]
"""Tokens of several messages, not scaled: all, of text, and of media."""
VERSION = 6
SEED = 0x2144DF1C
"""The CRC-32 of any bytes followed by their own CRC-32, so consecutive records can be checked together."""
MESSAGES_MAGIC = b"TRIX"
TOKENS_MAGIC = b"TRTK"

_HEADER = struct.Struct("<4sHHII16s16sQ4xI")
_MESSAGE = struct.Struct("<16sI32sI32sIHBBI32s32sQII")
_KEY_AND_FIELDS = struct.Struct("<92sH2sI32s32sQI")  # a message record without its checksum
# Partial views of a message record.
_HOME_FLAGS_ORDINAL = struct.Struct("<20x32sI36xH70xQ8x")
_FLAGS_ORDINAL = struct.Struct("<92xH70xQ8x")
_TOKENS = struct.Struct("<IIIQQQ4s8sI")
HEADER_BYTES = _HEADER.size
MESSAGE_BYTES = _MESSAGE.size
TOKENS_BYTES = _TOKENS.size
ADDRESS_BYTES = 20
OWN_SEEN_AT = 96
"""Offset of the content hash in the own fields of a record: see `pack_record`."""
KEY_BYTES = 92
"""Address, home and place, the first fields of a record: `Entry.key`."""
PREFIX_START_BYTES = 4
SEEN_BYTES = 8
_ROLE_AT, _KIND_AT = 94, 95
NO_COMMIT = bytes(16)
START = bytes(32)
"""The prefix hash before the first message."""

MARKER = 1
"""The record is about a commit and not about a message. It is the last commit of the index, a commit that set the
tools, or a commit that was measured earlier."""
END = 2
"""The last record of a commit; the index is valid up to here."""
GHOST = 4
EDITED = 8
IS_PINNED = 16
IS_IMPORTANT = 32
IS_MARKED = 64
"""The message has labels or must-keep patterns."""
TOOLS = 128
"""The commit of this marker set the tools."""
MEASURED_EARLIER = 256
"""This marker is about a commit that was measured earlier, with a context that these records do not begin with.

A commit is measured if a provider reported the tokens of its context. The marker's `number` is the message count of
that context, and `seen` its prefix hash; both are 0 if unknown.
"""

_PRIORITY_FLAGS = {PINNED: IS_PINNED, IMPORTANT: IS_IMPORTANT, NORMAL: 0}


@value
class Header:
    """The header of a column.

    Attributes:
        measured: the first 16 bytes of the id of a measured commit; only in a tokens column.
        sums: the tokens of its messages: all, of text, and of media.
    """

    magic: bytes
    record_bytes: int
    generation: bytes
    measured: bytes = NO_COMMIT
    sums: Sums = (0, 0, 0)

    def pack(self) -> bytes:
        """Return the 64 bytes."""
        total, text, media = self.sums
        data = _HEADER.pack(
            *(self.magic, VERSION, self.record_bytes, text, media),
            *(self.generation, self.measured, total, 0),
        )
        return _with_checksum(data)

    @classmethod
    def unpack(cls, data: bytes, magic: bytes, record_bytes: int) -> Header:
        """Return the header.

        Raises:
            CorruptIndexError: it is damaged, or of another version or column.
        """
        _check(data, HEADER_BYTES)
        found, version, size, text, media, generation, measured, total, _ = _HEADER.unpack(data)
        if (found, version, size) != (magic, VERSION, record_bytes):
            raise errors.CorruptIndexError("not an index of this version")
        return cls(found, size, generation, measured, (total, text, media))


@value
class MessageRecord:
    """One message of a compiled context, or a marker.

    Attributes:
        birth, number: the message's address; in a marker, 0 or the message count of a measured context.
        home_commit, home_number: the commit that contains the message, as new or carried, and the message's number
            among those that the commit adds; in a marker, its commit and 0.
        place_commit, place_number: the commit that contains the current version, and the version's number among all
            versions there.
        tools: 1 + the number of the record that set the current tools, or 0.
        prefix: the prefix hash up to here.
        seen: the hash of the model-visible content; in a marker, the prefix hash of a measured context.
        ordinal: number of messages up to here.
        measured: 1 + the number of the record of the last measured commit (its END record, or its MEASURED_EARLIER
            marker); 0 if there is none.
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
        return priority_of(self.flags)

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
        return _with_checksum(data)

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
        *first, role, kind, tools, prefix, seen, ordinal, measured, _ = _MESSAGE.unpack_from(
            block, at
        )
        if role >= len(ROLES) or kind >= len(KINDS):
            raise errors.CorruptIndexError("an index record is damaged")
        rest = (ROLES[role], KINDS[kind], tools, prefix, seen, ordinal, measured)
        return cls(*(*first, *rest))


def pack_record(
    own_fields: bytes, flags: int, tools: int, prefix: bytes, ordinal: int, measured: int
) -> bytes:
    """Return the bytes of a record.

    `own_fields` are those that do not depend on earlier records: key, flags, role, kind and content hash. The argument
    `flags` replaces the flags in them.
    """
    key, role_and_kind = own_fields[:KEY_BYTES], own_fields[94:96]
    seen = own_fields[OWN_SEEN_AT:]
    data = _KEY_AND_FIELDS.pack(key, flags, role_and_kind, tools, prefix, seen, ordinal, measured)
    return data + zlib.crc32(data, SEED).to_bytes(4, "little")


def priority_of(flags: int) -> str:
    """Return the priority that a record's flags mean."""
    if flags & IS_PINNED:
        return PINNED
    return IMPORTANT if flags & IS_IMPORTANT else NORMAL


def by_key(block: bytes) -> dict[bytes, bytes]:
    """Return the message records in a checked block by their key: address, home and place."""
    found = {}
    for at in message_offsets(block) if block else ():
        found[block[at : at + KEY_BYTES]] = block[at : at + MESSAGE_BYTES]
    return found


def flags_at(block: bytes, at: int) -> int:
    """Return the flags of a record."""
    return block[at + 92] | block[at + 93] << 8


def comparable_fields(block: bytes, at: int) -> bytes:
    """Return the fields of a message's record that are the same however the index was built.

    These are all but END, `tools`, `measured` and the checksum.
    """
    flags = int.from_bytes(block[at + 92 : at + 94], "little") & ~END
    return b"%b%b%b%b" % (
        block[at : at + 92],
        flags.to_bytes(2, "little"),
        block[at + 94 : at + 96],
        block[at + 100 : at + 172],
    )


def ordinal_at(block: bytes, at: int) -> int:
    """Return the ordinal of a record."""
    ordinal: int = _FLAGS_ORDINAL.unpack_from(block, at)[1]
    return ordinal


def home_at(block: bytes, at: int) -> bytes:
    """Return the commit that contains a record's message."""
    return block[at + 20 : at + 52]


def address_at(block: bytes, at: int) -> Address:
    """Return the address of a record's message."""
    return Address(block[at : at + 16], int.from_bytes(block[at + 16 : at + 20], "little"))


def role_at(block: bytes, at: int) -> str:
    """Return the role of a record; errors as in `MessageRecord.unpack`."""
    role = block[at + _ROLE_AT]
    if role >= len(ROLES):
        raise errors.CorruptIndexError("an index record is damaged")
    return ROLES[role]


def kind_at(block: bytes, at: int) -> str:
    """Return the kind of a record, FREEFORM for a custom one; errors as in `MessageRecord.unpack`."""
    kind = block[at + _KIND_AT]
    if kind >= len(KINDS):
        raise errors.CorruptIndexError("an index record is damaged")
    return KINDS[kind]


def fields_at(block: bytes, at: int) -> tuple[Address, str, str, str, bool]:
    """Return (address, role, kind, priority, whether it is a ghost) of a record; errors and kind as above."""
    flags = flags_at(block, at)
    role, kind, priority = role_at(block, at), kind_at(block, at), priority_of(flags)
    return address_at(block, at), role, kind, priority, bool(flags & GHOST)


def short_hashes_at(block: bytes, at: int) -> tuple[bytes, bytes]:
    """Return the first bytes of a record's prefix hash and of its content hash."""
    prefix, seen = at + 100, at + 132
    return block[prefix : prefix + PREFIX_START_BYTES], block[seen : seen + SEEN_BYTES]


def is_message(block: bytes, at: int) -> bool:
    """Return True if a record is a message, not a marker."""
    flags: int = _FLAGS_ORDINAL.unpack_from(block, at)[0]
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


def unpack_homes(block: bytes) -> Iterator[tuple[bytes, int, int, int]]:
    """Yield (home commit, number there, flags, ordinal) of records with verified checksums."""
    return _HOME_FLAGS_ORDINAL.iter_unpack(block)


def check_records(block: bytes, size: int = MESSAGE_BYTES) -> None:
    """Verify the checksums of a block of records.

    Raises:
        CorruptIndexError: a record is damaged or incomplete.
    """
    # After each valid record the running CRC is SEED again, so one computation checks all.
    if len(block) % size or zlib.crc32(block, SEED) != SEED:
        raise errors.CorruptIndexError("an index record is damaged")


def message_offsets(block: bytes) -> Sequence[int]:
    """Return the offsets of the messages in a block of records.

    Raises:
        CorruptIndexError: a record is damaged or incomplete.
    """
    check_records(block)
    first, last = (
        _FLAGS_ORDINAL.unpack_from(block),
        _FLAGS_ORDINAL.unpack_from(block, len(block) - MESSAGE_BYTES),
    )
    if not first[0] & MARKER and last[1] - first[1] == len(block) // MESSAGE_BYTES - 1:
        return range(0, len(block), MESSAGE_BYTES)  # there are no markers
    flags = _FLAGS_ORDINAL.iter_unpack(block)
    return [at * MESSAGE_BYTES for at, fields in enumerate(flags) if not fields[0] & MARKER]


def priority_flag(priority: str) -> int:
    """Return the flag of a priority other than skip."""
    return _PRIORITY_FLAGS[priority]


@value
class TokenRecord:
    """The tokens of one message, and of all up to it.

    Attributes:
        tokens: text, framing, media and other estimated parts.
        text: the tokens of its counted text, without framing and estimates.
        media: the tokens of its images, documents and recordings, by the provider's own rule.
        total, text_total, media_total: the same for all messages up to here.
        prefix_start: the first 4 bytes of the prefix hash up to here; a mismatch shows that this record counts a
            different context.
        seen: the first 8 bytes of the content hash; another tokens column can copy the count of a message with the
            same hash.
    """

    tokens: int
    text: int
    media: int
    total: int
    text_total: int
    media_total: int
    prefix_start: bytes
    seen: bytes

    @property
    def own(self) -> Sums:
        """The tokens of the message: all, of text, and of media."""
        return self.tokens, self.text, self.media

    @property
    def sums(self) -> Sums:
        """The tokens of all messages up to here: all, of text, and of media."""
        return self.total, self.text_total, self.media_total

    def pack(self) -> bytes:
        """Return the 52 bytes."""
        numbers = (*self.own, *self.sums)
        return _with_checksum(_TOKENS.pack(*numbers, self.prefix_start, self.seen, 0))


def unpack_tokens(block: bytes) -> list[TokenRecord]:
    """Return the records of a block of a tokens column; raises as `check_records`."""
    check_records(block, TOKENS_BYTES)
    return [TokenRecord(*fields) for *fields, _ in _TOKENS.iter_unpack(block)]


def _with_checksum(data: bytes) -> bytes:
    return data[:-4] + zlib.crc32(data[:-4], SEED).to_bytes(4, "little")


def _check(data: bytes, size: int) -> None:
    if len(data) != size or zlib.crc32(data[:-4], SEED) != int.from_bytes(data[-4:], "little"):
        raise errors.CorruptIndexError("an index record is damaged")


NO_GENERATION = bytes(16)
_BATCH = 2048
_HOME_AT = 20
"""Offset of the home commit in a record."""


@value
class History:
    """The source of an index: functions that return commits and folds.

    Callers must not change the folds.
    """

    read_commit: Callable[[bytes], Commit]
    fold: Callable[[bytes], Fold]


@value
class Measured:
    """A measured commit: a provider reported the tokens of its context.

    Attributes:
        commit: its id.
        message_count: messages of its context; 0 if unknown.
        prefix: the hash over them; if unknown, the hash of an empty context.
        tools_commit: the commit that set the tools of that context, or None.
        is_prefix: whether the current context starts with these messages.
    """

    commit: bytes
    message_count: int
    prefix: bytes
    tools_commit: bytes | None
    is_prefix: bool


@value
class IndexView:
    """A context in the index: the records up to the end of a commit.

    Attributes:
        opened: the file, which only grows, so the view stays valid.
        records: number of records of the context.
        last: the last of them; None for a context without a commit.
        generation: identifies this version of the file; the token column of the index names it.
        rebuild: called if a record is damaged; rebuilds the index and returns its view. If None, an error is raised.
        only_appends: True if all of the history was read and only appends, so that the context hides nothing.
    """

    opened: Opened
    records: int
    last: MessageRecord | None
    generation: bytes
    rebuild: Callable[[], IndexView] | None = None
    only_appends: bool = False

    @property
    def tip(self) -> bytes | None:
        """The commit of the last record."""
        return None if self.last is None else self.last.home_commit

    @property
    def message_count(self) -> int:
        """Number of messages of the context."""
        return 0 if self.last is None else self.last.ordinal

    @property
    def prefix_hash(self) -> bytes:
        """The hash over all messages."""
        return START if self.last is None else self.last.prefix

    def record(self, number: int) -> MessageRecord:
        """Return a record by its number in the file."""
        offset = HEADER_BYTES + number * MESSAGE_BYTES
        return MessageRecord.unpack(self.opened.read(offset, MESSAGE_BYTES))

    def number_of(self, position: int) -> int:
        """Return the record number of the message at a position of the context, from 0."""
        # Without markers both numbers are equal; each marker before the message adds one.
        low, high = position, self.records - 1
        if self.records == self.message_count:
            return low
        while low < high:
            middle = (low + high) // 2
            if self.record(middle).ordinal <= position:
                low = middle + 1
            else:
                high = middle
        return low

    def messages(self, start: int = 0, stop: int | None = None) -> Iterator[MessageRecord]:
        """Yield the message records at positions from `start` up to, not including, `stop`."""
        for block, offsets in self.blocks(start, stop):
            for at in offsets:
                yield MessageRecord.unpack_from(block, at)

    def comparable_records(self) -> Iterator[bytes]:
        """Yield the comparable part of each message's record, in order.

        Raises:
            CorruptIndexError: a record is damaged.
        """
        for block, offsets in self.blocks():
            yield from [comparable_fields(block, at) for at in offsets]

    def blocks(
        self, start: int = 0, stop: int | None = None
    ) -> Iterator[tuple[bytes, Sequence[int]]]:
        """Yield checked blocks of records, with the offsets of messages from `start` up to, not including, `stop`.

        Raises:
            CorruptIndexError: a record is damaged.
        """
        done = start
        try:
            for block, offsets in self._blocks(start, stop):
                yield block, offsets
                done += len(offsets)
            return
        except GeneratorExit:
            raise  # the caller stopped early; the next `except` would import the error classes
        except errors.CorruptIndexError:
            if self.rebuild is None:
                raise
        yield from self.rebuild().blocks(done, stop)

    def find(self, address: tuple[bytes, int]) -> MessageRecord | None:
        """Return the record of a message, searching from the end; None if it is not visible.

        Raises:
            CorruptIndexError: a record is damaged.
        """
        return self._or_rebuilt(lambda view: view._find(address))

    def tools_commit(self) -> bytes | None:
        """Return the commit that set the current tools, or None; raises as `find`."""
        return self._or_rebuilt(lambda view: view._tools_commit_at(view.last))

    def measured(self) -> Measured | None:
        """Return the last measured commit, or None; raises as `find`."""
        return self._or_rebuilt(lambda view: view._measured())

    def newest_answer(self, within: int) -> tuple[MessageRecord | None, int]:
        """Return the newest assistant message of the last ones, and how many messages follow it; raises as `find`.

        Placeholders do not count. Records are read one by one, because most contexts end with an answer.
        """
        return self._or_rebuilt(lambda view: view._newest_answer(within))

    def _or_rebuilt(self, read: Callable[[IndexView], Answer]) -> Answer:
        """Call a function on this view, and on the rebuilt one if a record is damaged."""
        try:
            return read(self)
        except errors.CorruptIndexError:
            if self.rebuild is None:
                raise
        return read(self.rebuild())

    def _tools_commit_at(self, record: MessageRecord | None) -> bytes | None:
        if record is None or not record.tools:
            return None
        return self.record(record.tools - 1).home_commit

    def _measured(self) -> Measured | None:
        last = self.last
        if last is None or not last.measured:
            return None
        record = last if last.measured == self.records else self.record(last.measured - 1)
        is_earlier = record.flags & MEASURED_EARLIER
        if is_earlier:
            count, prefix = record.number, record.seen
        else:
            count, prefix = record.ordinal, record.prefix
        tools_commit = self._tools_commit_at(record)
        return Measured(record.home_commit, count, prefix, tools_commit, is_prefix=not is_earlier)

    def _newest_answer(self, within: int) -> tuple[MessageRecord | None, int]:
        for number in reversed(range(self.records)):
            record = self.record(number)
            since = self.message_count - record.ordinal
            if since >= within:
                break
            if record.is_message and record.role == "assistant" and not record.flags & GHOST:
                return record, since
        return None, within

    def _blocks(self, start: int, stop: int | None) -> Iterator[tuple[bytes, Sequence[int]]]:
        left = (self.message_count if stop is None else min(stop, self.message_count)) - start
        if left <= 0:
            return
        number = self.number_of(start)
        size = MESSAGE_BYTES
        while left > 0:
            count = min(_BATCH, self.records - number, left)
            if not count:
                raise errors.CorruptIndexError("the index ends before its context does")
            block = self.opened.read(HEADER_BYTES + number * size, count * size)
            offsets = message_offsets(block)
            left -= len(offsets)
            number += count
            if offsets:
                yield block, offsets

    def _find(self, address: tuple[bytes, int]) -> MessageRecord | None:
        size = MESSAGE_BYTES
        for start in range((self.records - 1) // _BATCH * _BATCH, -1, -_BATCH):
            count = min(_BATCH, self.records - start)
            block = self.opened.read(HEADER_BYTES + start * size, count * size)
            at = find_message(block, address)
            if at is not None:
                return MessageRecord.unpack(block[at : at + size])
        return None


class CompileIndex:
    """The index of a branch, or of any context in memory."""

    __slots__ = ("_column", "_history")

    def __init__(self, column: Column, history: History) -> None:
        """Set the file of the records, and their source."""
        self._column = column
        self._history = history

    def view(self, tip: bytes | None, seeds: Seeds = tuple) -> IndexView:
        """Return the context of a commit; catch up or rebuild the index if needed.

        Args:
            tip: the commit; None for an unborn branch.
            seeds: returns views of other indexes. If only appends separate one of them from the tip, its records are
                copied. Called only if this index does not match.

        Raises:
            ObjectNotFoundError, InvalidOperationError, UnsupportedFormatError, CorruptObjectError: as in `fold`.
        """
        if tip is None:
            return IndexView(MemoryBytes(), 0, None, NO_GENERATION)
        own = self.load()
        if own is not None and own.tip == tip:
            return own
        return context.index_update.IndexUpdate(self._column, self._history).view(own, tip, seeds)

    def rebuild(self, tip: bytes) -> IndexView:
        """Rewrite the index of a commit from its history; raises as `view`."""
        return context.index_update.IndexUpdate(self._column, self._history).view(None, tip, tuple)

    def load(self) -> IndexView | None:
        """Return a view of the file, or None if it is missing or damaged.

        Only the header and the last record are read.
        """
        opened = self._column.current()
        if opened is None:
            return None
        try:
            head = opened.read(0, HEADER_BYTES)
            header = Header.unpack(head, MESSAGES_MAGIC, MESSAGE_BYTES)
            records = (opened.size() - HEADER_BYTES) // MESSAGE_BYTES
            view = IndexView(opened, records, None, header.generation)
            while records > 0:
                last = view.record(records - 1)
                if last.flags & END:
                    return IndexView(opened, records, last, header.generation)
                records -= 1  # of an incomplete commit
        except errors.CorruptIndexError:
            pass
        return None

    def prefix_view(self, tip: bytes) -> IndexView | None:
        """Return the context of an ancestor if it is a prefix of this index, else None."""
        view = self.load()
        return None if view is None else prefix_of(view, tip)


def prefix_of(view: IndexView, tip: bytes) -> IndexView | None:
    """Return the context of an ancestor if it is a prefix of the records.

    The commits of the records are searched, newest first. Return None if no record belongs to the
    ancestor, or a record is damaged.
    """
    size = MESSAGE_BYTES
    end = view.records
    while end > 0:
        start = max(end - _BATCH, 0)
        data = view.opened.read(HEADER_BYTES + start * size, (end - start) * size)
        at = data.rfind(tip)
        while at >= 0:
            if at % size == _HOME_AT:
                at -= _HOME_AT
                try:
                    record = MessageRecord.unpack(data[at : at + size])
                except errors.CorruptIndexError:
                    return None
                if record.flags & END:
                    count = start + at // size + 1
                    return IndexView(view.opened, count, record, view.generation)
                at += _HOME_AT
            at = data.rfind(tip, 0, at + len(tip) - 1)
        end = start
    return None


def cold_view(tip: bytes | None, read: Read) -> IndexView:
    """Return the context of a commit from its history alone; raises as `CompileIndex.view`."""

    def commit(oid: bytes) -> Commit:
        return read_commit(oid, read)

    return CompileIndex(
        MemoryColumn(), History(commit, lambda oid: context.fold.fold(oid, commit))
    ).view(tip)
