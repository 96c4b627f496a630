"""The compile index: the visible messages of a branch, one record each.

A compile after an append reads and writes only what is new. The index is a cache of the fold: a reader compares its tip
with the branch's and catches up. An index that does not match is rebuilt, so deleting it costs only time.

The last record of a commit has the flag END, so a torn append is detected and ignored. A commit without messages leaves
a marker record, so that the index knows its tip.
"""

from __future__ import annotations

from trace_store import context, errors
from trace_store.column_file import DiskColumn, MemoryBytes, MemoryColumn, OpenColumn
from trace_store.context import index_records as form
from trace_store.context.index_records import Header, MessageRecord
from trace_store.frozen import value
from trace_store.objects.commit import Commit, read_commit

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
    """A commit with a report that measures its context.

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
    """

    opened: Opened
    records: int
    last: MessageRecord | None
    generation: bytes
    rebuild: Callable[[], IndexView] | None = None

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
        return form.START if self.last is None else self.last.prefix

    def record(self, number: int) -> MessageRecord:
        """Return a record by its number in the file."""
        offset = form.HEADER_BYTES + number * form.MESSAGE_BYTES
        return MessageRecord.unpack(self.opened.read(offset, form.MESSAGE_BYTES))

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
        for block, places in self.blocks(start, stop):
            for at in places:
                yield MessageRecord.unpack_from(block, at)

    def comparable_records(self) -> Iterator[bytes]:
        """Yield the comparable part of each message's record, in order.

        Raises:
            CorruptIndexError: a record is damaged.
        """
        for block, places in self.blocks():
            yield from [form.comparable_fields(block, at) for at in places]

    def blocks(
        self, start: int = 0, stop: int | None = None
    ) -> Iterator[tuple[bytes, Sequence[int]]]:
        """Yield checked blocks of records, with the offsets of messages from `start` up to, not including, `stop`.

        Raises:
            CorruptIndexError: a record is damaged.
        """
        done = start
        try:
            for block, places in self._blocks(start, stop):
                yield block, places
                done += len(places)
            return
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
        """Return the last commit with a report that measures its context, or None; raises as `find`."""
        return self._or_rebuilt(lambda view: view._measured())

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
        is_carried = record.flags & form.CARRIED
        if is_carried:
            count, prefix = record.number, record.seen
        else:
            count, prefix = record.ordinal, record.prefix
        tools_commit = self._tools_commit_at(record)
        return Measured(record.home_commit, count, prefix, tools_commit, is_prefix=not is_carried)

    def _blocks(self, start: int, stop: int | None) -> Iterator[tuple[bytes, Sequence[int]]]:
        left = (self.message_count if stop is None else min(stop, self.message_count)) - start
        if left <= 0:
            return
        number = self.number_of(start)
        size = form.MESSAGE_BYTES
        while left > 0:
            count = min(_BATCH, self.records - number, left)
            if not count:
                raise errors.CorruptIndexError("the index ends before its context does")
            block = self.opened.read(form.HEADER_BYTES + number * size, count * size)
            places = form.message_places(block)
            left -= len(places)
            number += count
            if places:
                yield block, places

    def _find(self, address: tuple[bytes, int]) -> MessageRecord | None:
        size = form.MESSAGE_BYTES
        for start in range((self.records - 1) // _BATCH * _BATCH, -1, -_BATCH):
            count = min(_BATCH, self.records - start)
            block = self.opened.read(form.HEADER_BYTES + start * size, count * size)
            at = form.find_message(block, address)
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
            head = opened.read(0, form.HEADER_BYTES)
            header = Header.unpack(head, form.MESSAGES_MAGIC, form.MESSAGE_BYTES)
            records = (opened.size() - form.HEADER_BYTES) // form.MESSAGE_BYTES
            view = IndexView(opened, records, None, header.generation)
            while records > 0:
                last = view.record(records - 1)
                if last.flags & form.END:
                    return IndexView(opened, records, last, header.generation)
                records -= 1  # of an incomplete commit
        except errors.CorruptIndexError:
            pass
        return None

    def prefix_view(self, tip: bytes) -> IndexView | None:
        """Return the context of an ancestor from the same records, as `prefix_of`."""
        view = self.load()
        return None if view is None else prefix_of(view, tip)


def prefix_of(view: IndexView, tip: bytes) -> IndexView | None:
    """Return the context of an ancestor if it is a prefix of the records.

    The commits of the records are searched, newest first. Return None if no record belongs to the
    ancestor, or a record is damaged.
    """
    size = form.MESSAGE_BYTES
    end = view.records
    while end > 0:
        start = max(end - _BATCH, 0)
        data = view.opened.read(form.HEADER_BYTES + start * size, (end - start) * size)
        at = data.rfind(tip)
        while at >= 0:
            if at % size == _HOME_AT:
                at -= _HOME_AT
                try:
                    record = MessageRecord.unpack(data[at : at + size])
                except errors.CorruptIndexError:
                    return None
                if record.flags & form.END:
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
