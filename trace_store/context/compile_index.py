"""The compile index: the visible messages of a branch, one record each.

A compile after an append reads and writes what is new and nothing else.

Rule: the index is a cache of `folding.py`. It is pulled, never pushed: a reader compares its tip with the branch's and
catches up. Whatever does not match is rebuilt; deleting it costs time only.

A record ends with the flag END where a commit ends, so a torn append is seen and ignored. Commits that add no message
leave a marker record, so that the index knows how far it reaches.
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


@value
class History:
    """What an index is made from: gives commits, and folds, which are not to be changed."""

    read_commit: Callable[[bytes], Commit]
    fold: Callable[[bytes], Fold]


@value
class Measured:
    """A commit with a report that measures its context.

    Attributes:
        commit: its id.
        message_count: messages of its context, 0 when that is not known.
        prefix: the hash over them; that of no message when it is not known.
        tools_commit: the commit that set the tools there, or None.
        is_beginning: whether the context in which this was found begins with them.
    """

    commit: bytes
    message_count: int
    prefix: bytes
    tools_commit: bytes | None
    is_beginning: bool


@value
class IndexView:
    """A context as the index holds it: the records up to one that ends a commit.

    Attributes:
        opened: the bytes; they only grow, so the view stays true.
        records: how many of them belong to the context.
        last: the last of them; None for a context without a commit.
        generation: names the writing that the records belong to, for columns that run beside.
        rebuilt: returns a view of a rebuilt index, for when a record is damaged; None if that is an error.
    """

    opened: Opened
    records: int
    last: MessageRecord | None
    generation: bytes
    rebuilt: Callable[[], IndexView] | None = None

    @property
    def tip(self) -> bytes | None:
        """The commit that the records reach."""
        return None if self.last is None else self.last.home_commit

    @property
    def message_count(self) -> int:
        """How many messages the context has."""
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
        """Return the record number of the message at a position (from 0) of the context."""
        # Without markers a message's record is found at once; each marker before it moves it by one.
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

    def shown(self) -> Iterator[bytes]:
        """Yield what the records say of each message, in order; two views are compared by it.

        Raises:
            CorruptIndexError: a record is damaged.
        """
        for block, places in self.blocks():
            yield from [form.shown(block, at) for at in places]

    def blocks(
        self, start: int = 0, stop: int | None = None
    ) -> Iterator[tuple[bytes, Sequence[int]]]:
        """Yield blocks of checked records, and the offsets in them of messages.

        They are the messages at positions from `start` up to, not including, `stop`.

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
            if self.rebuilt is None:
                raise
        yield from self.rebuilt().blocks(done, stop)

    def find(self, address: tuple[bytes, int]) -> MessageRecord | None:
        """Return the record of a message, None when the context does not show it. Looks at the latest first.

        Raises:
            CorruptIndexError: the record is damaged.
        """
        return self._whole(lambda view: view._find(address))

    def tools_commit(self) -> bytes | None:
        """Return the commit that set the tools in force, or None; errors as in `find`."""
        return self._whole(lambda view: view._setter(view.last))

    def measured(self) -> Measured | None:
        """Return the last commit with a report that measures its context, or None; errors as in `find`."""
        return self._whole(lambda view: view._measured())

    def _whole(self, look: Callable[[IndexView], Answer]) -> Answer:
        """Look at the records, and at rebuilt ones where one is damaged."""
        try:
            return look(self)
        except errors.CorruptIndexError:
            if self.rebuilt is None:
                raise
        return look(self.rebuilt())

    def _setter(self, last: MessageRecord | None) -> bytes | None:
        if last is None or not last.tools:
            return None
        return self.record(last.tools - 1).home_commit

    def _measured(self) -> Measured | None:
        last = self.last
        if last is None or not last.measured:
            return None
        record = last if last.measured == self.records else self.record(last.measured - 1)
        is_carried = record.flags & form.CARRIED
        then = (record.number, record.seen) if is_carried else (record.ordinal, record.prefix)
        return Measured(
            record.home_commit, *then, self._setter(record), is_beginning=not is_carried
        )

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
    """The index of one branch (or of nothing that lasts, in memory)."""

    __slots__ = ("_column", "_history")

    def __init__(self, column: Column, history: History) -> None:
        """Say where the records are, and what they are made from."""
        self._column = column
        self._history = history

    def view(self, tip: bytes | None, seeds: Seeds = tuple) -> IndexView:
        """Return the context of a commit, catching the index up or making it anew where it does not reach.

        Args:
            tip: the commit; None for an unborn branch.
            seeds: gives the views of other indexes; asked only when this one does not reach the tip. When appends
                alone lead from one of them to the tip, its records are taken over.

        Raises:
            ObjectNotFoundError, InvalidOperationError, UnsupportedFormatError, CorruptObjectError: as in `fold`.
        """
        if tip is None:
            return IndexView(MemoryBytes(), 0, None, NO_GENERATION)
        own = self.load()
        if own is not None and own.tip == tip:
            return own
        return context.index_update.Growth(self._column, self._history).view(own, tip, seeds)

    def rebuild(self, tip: bytes) -> IndexView:
        """Write the index of a commit anew from its history alone; errors as in `view`."""
        return context.index_update.Growth(self._column, self._history).view(None, tip, tuple)

    def load(self) -> IndexView | None:
        """Return what the file holds, or None when it is absent or damaged. Reads two records."""
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
                records -= 1  # a writer was cut off within a commit
        except errors.CorruptIndexError:
            pass
        return None

    def prefix_view(self, tip: bytes) -> IndexView | None:
        """Return the context of an ancestor from the same records, as `prefix_of` does."""
        view = self.load()
        return None if view is None else prefix_of(view, tip)


def prefix_of(view: IndexView, tip: bytes) -> IndexView | None:
    """Return the context of an ancestor of a context, when what follows left its records as they were: the first ones.

    Looks through the commits of the records, newest first. A damaged record tells of none.
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
    """Return the context of a commit from its history alone; errors as in `CompileIndex.view`."""

    def commit(oid: bytes) -> Commit:
        return read_commit(oid, read)

    return CompileIndex(
        MemoryColumn(), History(commit, lambda oid: context.fold.fold(oid, commit))
    ).view(tip)
