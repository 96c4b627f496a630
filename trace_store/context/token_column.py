"""The tokens column beside a compile index: what each message weighs under one encoding, and the running total.

Rule: counting is put off until somebody asks, so it has a file of its own that catches up by itself: the records of
the index are appended when a compile first sees a message, and records are never changed. There is one column an
encoding. It belongs to one generation of the index and is begun anew with the next, which takes over what it has in
common with it, or with the column of another branch: what begins with the same messages weighs the same so far, and
what is seen alike weighs the same anywhere.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.column_file import DiskColumn, MemoryBytes, MemoryColumn
from trace_store.context import index_records as form
from trace_store.context.index_records import Header, MessageRecord, TokenRecord

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import TypeAlias

    from trace_store.context.compile_index import IndexView, Measured, Opened
    from trace_store.context.tokens.overhead import MessageTokens

    Count: TypeAlias = Callable[[Iterator[MessageRecord], int], Iterator[MessageTokens]]
    """Counts messages of a context; told how many there are."""


_COLUMN = form.TOKENS_MAGIC, form.TOKENS_BYTES
NOTHING = TokenRecord(0, 0, 0, 0, bytes(form.TIE_BYTES), bytes(form.SEEN_BYTES))


class TokenColumn:
    """Tokens of the messages of one index, under one encoding."""

    __slots__ = ("_column", "_others")

    def __init__(
        self,
        column: DiskColumn | MemoryColumn,
        others: Callable[[], Iterable[DiskColumn | MemoryColumn]] = tuple,
    ) -> None:
        """Say which column, and what gives those of other indexes under the same encoding."""
        self._column = column
        self._others = others

    def total(self, view: IndexView, count: Count) -> TokenRecord:
        """Return the record of a context's last message, whose total is the context's; counts what is uncounted."""
        wanted = view.message_count
        if not wanted:
            return NOTHING
        opened, have, old = self._load(view)
        if have >= wanted:
            return _read(opened, wanted - 1)
        return self._extend(opened, have, old, view, count)[1]

    def total_then(
        self, view: IndexView, measured: Measured, count: Count, count_then: Callable[[], int]
    ) -> int:
        """Return the tokens of all messages at the commit that was measured last, as `total` does for the view.

        Args:
            view: the context.
            measured: what it says was measured.
            count: as in `total`.
            count_then: counts the messages of that commit, where nothing tells them; the answer is kept.
        """
        if measured.is_beginning:
            end = measured.message_count
            return self.tokens(view, count, end - 1, end)[0].total if end else 0
        self.total(view, count)  # so that what is kept has its counts
        opened, have, _ = self._load(view)
        try:
            total = _total_then(opened, measured)
            if total is None:
                total = count_then()
                kept = opened.read(form.HEADER_BYTES, have * form.TOKENS_BYTES)
                self._begin(view, kept, measured.commit[: len(form.NO_COMMIT)], total)
            return total
        except errors.CorruptIndexError:
            return count_then()

    def tokens(
        self, view: IndexView, count: Count, start: int = 0, stop: int | None = None
    ) -> list[TokenRecord]:
        """Return the records of the messages of a context at positions from `start` to before `stop` (None: all)."""
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
            opened, _ = self._extend(self._begin(view, b""), 0, None, view, count)
            return _read_range(opened, start, end)

    def _load(self, view: IndexView) -> tuple[Opened, int, Opened | None]:
        """Return the column, how many of its records are of this generation, and one whose counts may serve it too."""
        own = self._column.current()
        if own is not None:
            try:
                head = own.read(0, form.HEADER_BYTES)
                if Header.unpack(head, *_COLUMN).generation == view.generation:
                    have = (own.size() - form.HEADER_BYTES) // form.TOKENS_BYTES
                    if _belongs(own, min(have, view.message_count), view):
                        return own, have, None
            except errors.CorruptIndexError:
                pass
        old, number = self._most_in_common(own, view)
        kept = old.read(form.HEADER_BYTES, number * form.TOKENS_BYTES) if old else b""
        begun = self._begin(view, kept, *self._known_then(own, view.measured()))
        return begun, number, old

    def _begin(
        self, view: IndexView, kept: bytes, measured: bytes = form.NO_COMMIT, total: int = 0
    ) -> Opened:
        """Return a column of this generation with the first records, in place of what there was."""
        generation = view.generation
        header = Header(form.TOKENS_MAGIC, form.TOKENS_BYTES, generation, measured, total)
        return self._column.replace(header.pack() + kept)

    def _known_then(self, own: Opened | None, measured: Measured | None) -> tuple[bytes, int]:
        """Return what a header says of a measured commit, as what there was or another column tells it."""
        if measured is not None and not measured.is_beginning:
            for opened in (own, *(column.current() for column in self._others())):
                try:
                    total = None if opened is None else _total_then(opened, measured)
                except errors.CorruptIndexError:
                    continue
                if total is not None:
                    return measured.commit[: len(form.NO_COMMIT)], total
        return form.NO_COMMIT, 0

    def _most_in_common(self, own: Opened | None, view: IndexView) -> tuple[Opened | None, int]:
        """Return what there was or another column: the one that has most of the first messages, and how many."""
        found, most = None, -1
        for opened in (own, *(column.current() for column in self._others())):
            if opened is None or most == view.message_count:
                continue
            try:
                number = _common(opened, view)
            except errors.CorruptIndexError:
                continue
            if number > most:
                found, most = opened, number
        return found, max(most, 0)

    def _extend(
        self, opened: Opened, have: int, old: Opened | None, view: IndexView, count: Count
    ) -> tuple[Opened, TokenRecord]:
        """Append what is missing; counts of what another column saw alike behind the first records are taken over."""
        known = {} if old is None else _weights(old, have)
        last = _read(opened, have - 1) if have else NOTHING
        new = (
            MessageRecord.unpack_from(block, at)
            for block, places in view.blocks(have)
            for at in places
            if form.ties_at(block, at)[1] not in known
        )
        counts = count(new, max(view.message_count - have - len(known), 0))
        added = bytearray()
        for block, places in view.blocks(have):
            for at in places:
                tie, seen = form.ties_at(block, at)
                weight = known.get(seen)
                if weight is None:
                    counted = next(counts)
                    weight = counted.total, counted.text
                totals = last.total + weight[0], last.text_total + weight[1]
                last = TokenRecord(*weight, *totals, tie, seen)
                added += last.pack()
        next(counts, None)  # the end of it
        expected = form.HEADER_BYTES + have * form.TOKENS_BYTES
        if not opened.append(expected, bytes(added)):
            # Somebody else is counting too, or a torn tail is in the way.
            whole = opened.read(0, expected) + added
            torn = (opened.size() - form.HEADER_BYTES) // form.TOKENS_BYTES == have
            opened = self._column.replace(whole) if torn else MemoryBytes(whole)
        return opened, last


def _weights(opened: Opened, start: int) -> dict[bytes, tuple[int, int]]:
    """Return the tokens that records from a number on hold, by what is seen; none when one is damaged."""
    try:
        number = (opened.size() - form.HEADER_BYTES) // form.TOKENS_BYTES
        records = _read_range(opened, start, number)
    except errors.CorruptIndexError:
        return {}
    return {record.seen: (record.tokens, record.text) for record in records}


def _common(opened: Opened, view: IndexView) -> int:
    """Return how many of the first records are of the context's own messages.

    Raises:
        CorruptIndexError: it is no such column, or a record is damaged.
    """
    Header.unpack(opened.read(0, form.HEADER_BYTES), *_COLUMN)
    high = min((opened.size() - form.HEADER_BYTES) // form.TOKENS_BYTES, view.message_count)
    low, middle = 0, high
    while low < high:
        if _belongs(opened, middle, view):
            low = middle
        else:
            high = middle - 1
        middle = (low + high + 1) // 2
    return low


def _total_then(opened: Opened, measured: Measured) -> int | None:
    """Return the tokens of the messages at a measured commit, by the header or the records; None when neither has them.

    Raises:
        CorruptIndexError: it is no such column, or a record is damaged.
    """
    header = Header.unpack(opened.read(0, form.HEADER_BYTES), *_COLUMN)
    if header.measured == measured.commit[: len(header.measured)]:
        return header.measured_total
    number = measured.message_count
    if 0 < number <= (opened.size() - form.HEADER_BYTES) // form.TOKENS_BYTES:
        record = _read(opened, number - 1)
        if record.tie == measured.prefix[: form.TIE_BYTES]:
            return record.total
    return None


def _belongs(opened: Opened, number: int, view: IndexView) -> bool:
    """Tell whether the first records are of the context's own messages: each prefix hash covers all before it."""
    if not number:
        return True
    message = next(view.messages(number - 1, number))
    return _read(opened, number - 1).tie == message.prefix[: form.TIE_BYTES]


def _read(opened: Opened, number: int) -> TokenRecord:
    return _read_range(opened, number, number + 1)[0]


def _read_range(opened: Opened, start: int, end: int) -> list[TokenRecord]:
    size = form.TOKENS_BYTES
    data = opened.read(form.HEADER_BYTES + start * size, (end - start) * size)
    if len(data) != (end - start) * size:
        raise errors.CorruptIndexError("a tokens column ends before its context does")
    return form.unpack_tokens(data)
