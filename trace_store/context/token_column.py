"""The tokens column beside a compile index: the tokens of each message in one encoding, and the running total.

Tokens are counted on demand, so the column is a file of its own that catches up separately. It belongs to one
generation of the index. A new generation starts a new column and copies the counts of a common prefix, from the old
column or another branch's, and of messages with equal content.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.context import compile_index as form
from trace_store.context.compile_index import Header, MessageRecord, TokenRecord
from trace_store.disk.column_file import DiskColumn, MemoryBytes, MemoryColumn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import TypeAlias

    from trace_store.context.compile_index import IndexView, Measured, Opened, Sums
    from trace_store.context.tokens.overhead import MessageTokens

    Count: TypeAlias = Callable[[Iterator[MessageRecord], int], Iterator[MessageTokens]]
    """Counts messages; the second argument is their number."""


_COLUMN = form.TOKENS_MAGIC, form.TOKENS_BYTES
NOTHING = TokenRecord(0, 0, 0, 0, 0, 0, bytes(form.PREFIX_START_BYTES), bytes(form.SEEN_BYTES))


class TokenColumn:
    """Tokens of the messages of one index, in one encoding."""

    __slots__ = ("_column", "_others")

    def __init__(
        self,
        column: DiskColumn | MemoryColumn,
        others: Callable[[], Iterable[DiskColumn | MemoryColumn]] = tuple,
    ) -> None:
        """Set the column, and a function that returns those of other indexes in the same encoding."""
        self._column = column
        self._others = others

    def total(self, view: IndexView, count: Count) -> TokenRecord:
        """Return the record of the last message, which has the total; count missing messages."""
        wanted = view.message_count
        if not wanted:
            return NOTHING
        opened, have, old = self._load(view)
        if have >= wanted:
            return _read(opened, wanted - 1)
        return self._extend(opened, have, old, view, count)[1]

    def total_then(
        self, view: IndexView, measured: Measured, count: Count, count_then: Callable[[], Sums]
    ) -> Sums:
        """Return the tokens of all messages at the last measured commit, as `total` does for the view.

        Args:
            view: the context.
            measured: the measured commit according to it.
            count: as in `total`.
            count_then: counts the messages of that commit if no column has them; the result is stored.
        """
        if measured.is_prefix:
            end = measured.message_count
            return self.tokens(view, count, end - 1, end)[0].sums if end else NOTHING.sums
        self.total(view, count)  # so that the stored counts are complete
        opened, have, _ = self._load(view)
        try:
            sums = _measured_sums(opened, measured)
            if sums is None:
                sums = count_then()
                kept = opened.read(form.HEADER_BYTES, have * form.TOKENS_BYTES)
                self._replace(view, kept, measured.commit[: len(form.NO_COMMIT)], sums)
            return sums
        except errors.CorruptIndexError:
            return count_then()

    def tokens(
        self, view: IndexView, count: Count, start: int = 0, stop: int | None = None
    ) -> list[TokenRecord]:
        """Return the records of messages at positions from `start` up to, not including, `stop` (None: all)."""
        wanted = view.message_count
        end = wanted if stop is None else min(stop, wanted)
        if start >= end:
            return []
        opened, have, old = self._load(view)
        if have < wanted:
            opened, _ = self._extend(opened, have, old, view, count)
        try:
            return _read_range(opened, start, end)
        except errors.CorruptIndexError:
            opened, _ = self._extend(self._replace(view, b""), 0, None, view, count)
            return _read_range(opened, start, end)

    def _load(self, view: IndexView) -> tuple[Opened, int, Opened | None]:
        """Return the column, its number of valid records, and an older column whose counts may be reused."""
        own = self._column.current()
        if own is not None:
            try:
                head = own.read(0, form.HEADER_BYTES)
                if Header.unpack(head, *_COLUMN).generation == view.generation:
                    have = (own.size() - form.HEADER_BYTES) // form.TOKENS_BYTES
                    if _is_prefix(own, min(have, view.message_count), view):
                        return own, have, None
            except errors.CorruptIndexError:
                pass
        old, number = self._longest_prefix(own, view)
        kept = old.read(form.HEADER_BYTES, number * form.TOKENS_BYTES) if old else b""
        begun = self._replace(view, kept, *self._measured_header(own, view.measured()))
        return begun, number, old

    def _replace(
        self,
        view: IndexView,
        kept: bytes,
        measured: bytes = form.NO_COMMIT,
        sums: Sums = NOTHING.sums,
    ) -> Opened:
        """Replace the column with one of this generation that has the given records."""
        generation = view.generation
        header = Header(form.TOKENS_MAGIC, form.TOKENS_BYTES, generation, measured, sums)
        return self._column.replace(header.pack() + kept)

    def _measured_header(self, own: Opened | None, measured: Measured | None) -> tuple[bytes, Sums]:
        """Return the header fields of a measured commit, from the old column or another one."""
        if measured is not None and not measured.is_prefix:
            for opened in (own, *(column.current() for column in self._others())):
                try:
                    sums = None if opened is None else _measured_sums(opened, measured)
                except errors.CorruptIndexError:
                    continue
                if sums is not None:
                    return measured.commit[: len(form.NO_COMMIT)], sums
        return form.NO_COMMIT, NOTHING.sums

    def _longest_prefix(self, own: Opened | None, view: IndexView) -> tuple[Opened | None, int]:
        """Return the column with the longest common prefix, the old one or another, and its length."""
        found, most = None, -1
        for opened in (own, *(column.current() for column in self._others())):
            if opened is None or most == view.message_count:
                continue
            try:
                number = _common_length(opened, view)
            except errors.CorruptIndexError:
                continue
            if number > most:
                found, most = opened, number
        return found, max(most, 0)

    def _extend(
        self, opened: Opened, have: int, old: Opened | None, view: IndexView, count: Count
    ) -> tuple[Opened, TokenRecord]:
        """Append missing records, reusing counts of equal messages from another column."""
        known = {} if old is None else _counts_by_hash(old, have)
        last = _read(opened, have - 1) if have else NOTHING
        new = (
            MessageRecord.unpack_from(block, at)
            for block, offsets in view.blocks(have)
            for at in offsets
            if form.short_hashes_at(block, at)[1] not in known
        )
        counts = count(new, max(view.message_count - have - len(known), 0))
        added = bytearray()
        for block, offsets in view.blocks(have):
            for at in offsets:
                prefix_start, seen = form.short_hashes_at(block, at)
                weight = known.get(seen)
                if weight is None:
                    counted = next(counts)
                    weight = counted.total, counted.text, counted.media
                tokens, text, media = weight
                total, text_total, media_total = last.sums
                last = TokenRecord(
                    *(tokens, text, media),
                    *(total + tokens, text_total + text, media_total + media),
                    *(prefix_start, seen),
                )
                added += last.pack()
        next(counts, None)  # finish the generator, which saves its counts
        expected = form.HEADER_BYTES + have * form.TOKENS_BYTES
        if not opened.append(expected, bytes(added)):
            # Another process is counting too, or a torn record is at the end.
            whole = opened.read(0, expected) + added
            torn = (opened.size() - form.HEADER_BYTES) // form.TOKENS_BYTES == have
            opened = self._column.replace(whole) if torn else MemoryBytes(whole)
        return opened, last


def _counts_by_hash(opened: Opened, start: int) -> dict[bytes, Sums]:
    """Return token counts from a record on, by message hash; empty if a record is damaged."""
    try:
        number = (opened.size() - form.HEADER_BYTES) // form.TOKENS_BYTES
        records = _read_range(opened, start, number)
    except errors.CorruptIndexError:
        return {}
    return {record.seen: record.own for record in records}


def _common_length(opened: Opened, view: IndexView) -> int:
    """Return how many of the first records belong to the context.

    Raises:
        CorruptIndexError: it is not such a column, or a record is damaged.
    """
    Header.unpack(opened.read(0, form.HEADER_BYTES), *_COLUMN)
    high = min((opened.size() - form.HEADER_BYTES) // form.TOKENS_BYTES, view.message_count)
    low, middle = 0, high
    while low < high:
        if _is_prefix(opened, middle, view):
            low = middle
        else:
            high = middle - 1
        middle = (low + high + 1) // 2
    return low


def _measured_sums(opened: Opened, measured: Measured) -> Sums | None:
    """Return the tokens of the messages at a measured commit from the header or the records, or None.

    Raises:
        CorruptIndexError: it is not such a column, or a record is damaged.
    """
    header = Header.unpack(opened.read(0, form.HEADER_BYTES), *_COLUMN)
    if header.measured == measured.commit[: len(header.measured)]:
        return header.sums
    number = measured.message_count
    if 0 < number <= (opened.size() - form.HEADER_BYTES) // form.TOKENS_BYTES:
        record = _read(opened, number - 1)
        if record.prefix_start == measured.prefix[: form.PREFIX_START_BYTES]:
            return record.sums
    return None


def _is_prefix(opened: Opened, number: int, view: IndexView) -> bool:
    """Return True if the first records belong to the context; a prefix hash covers all before it."""
    if not number:
        return True
    message = next(view.messages(number - 1, number))
    return _read(opened, number - 1).prefix_start == message.prefix[: form.PREFIX_START_BYTES]


def _read(opened: Opened, number: int) -> TokenRecord:
    return _read_range(opened, number, number + 1)[0]


def _read_range(opened: Opened, start: int, end: int) -> list[TokenRecord]:
    size = form.TOKENS_BYTES
    data = opened.read(form.HEADER_BYTES + start * size, (end - start) * size)
    if len(data) != (end - start) * size:
        raise errors.CorruptIndexError("a tokens column ends before its context does")
    return form.unpack_tokens(data)
