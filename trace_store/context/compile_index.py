"""The compile index: the visible messages of a branch, one record each.

A compile after an append reads and writes what is new and nothing else.

Rule: the index is a cache of `folding.py`. It is pulled, never pushed: a reader compares its tip with the branch's and
catches up. Whatever does not match is rebuilt; deleting it costs time only.

A record ends with the flag END where a commit ends, so a torn append is seen and ignored. Commits that add no message
leave a marker record, so that the index knows how far it reaches.
"""

from __future__ import annotations

from trace_store import context, errors
from trace_store.columns import DiskColumn, MemoryBytes, MemoryColumn, OpenColumn
from trace_store.context import index_records as form
from trace_store.context.index_records import Header, MessageRecord
from trace_store.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import TypeAlias

    from trace_store.context.index_growth import Growth
    from trace_store.context.recent import NewCommits
    from trace_store.context.record_wording import ReadMany
    from trace_store.objects.moulds import Moulds

    Seeds: TypeAlias = Callable[[], Iterable["IndexView"]]
    Read: TypeAlias = Callable[[bytes], bytes]
    Opened: TypeAlias = OpenColumn | MemoryBytes
    Column: TypeAlias = DiskColumn | MemoryColumn


NO_GENERATION = bytes(16)
_BATCH = 2048


@value
class IndexView:
    """A context as the index holds it: the records up to one that ends a commit.

    Attributes:
        opened: the bytes; they only grow, so the view stays true.
        records: how many of them belong to the context.
        last: the last of them; None for a context without a commit.
        base: as in the header.
        generation: names the writing that the records belong to, for columns that run beside.
        rebuilt: returns a view of a rebuilt index, for when a record is damaged; None if that is an error.
    """

    opened: Opened
    records: int
    last: MessageRecord | None
    base: int
    generation: bytes
    rebuilt: Callable[[], IndexView] | None = None

    @property
    def tip(self) -> bytes | None:
        """The commit that the records reach."""
        return None if self.last is None else self.last.commit

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
        try:
            return self._find(address)
        except errors.CorruptIndexError:
            if self.rebuilt is None:
                raise
        return self.rebuilt().find(address)

    def tools_commit(self) -> bytes | None:
        """Return the commit that set the tools in force, or None; errors as in `find`."""
        if self.last is None or not self.last.tools:
            return None
        try:
            return self.record(self.last.tools - 1).commit
        except errors.CorruptIndexError:
            if self.rebuilt is None:
                raise
        return self.rebuilt().tools_commit()

    def measured(self) -> Measured | None:
        """Return the last commit with a report that measures its context, or None; errors as in `find`."""
        last = self.last
        if last is None or not last.measured:
            return None
        try:
            record = last if last.measured == self.records else self.record(last.measured - 1)
            tools = None
            if record.tools:
                tools = (
                    self.tools_commit()
                    if record.tools == last.tools
                    else self.record(record.tools - 1).commit
                )
        except errors.CorruptIndexError:
            if self.rebuilt is None:
                raise
        else:
            if record.flags & form.CARRIED:
                return Measured(
                    record.commit, record.number, record.place_commit, tools, is_beginning=False
                )
            return Measured(record.commit, record.ordinal, record.prefix, tools, is_beginning=True)
        return self.rebuilt().measured()

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


class CompileIndex:
    """The index of one branch (or of nothing that lasts, in memory)."""

    __slots__ = ("_column", "_growing", "_moulds", "_new_commits")

    def __init__(
        self,
        column: Column,
        moulds: Callable[[], Moulds] | None = None,
        new_commits: NewCommits = lambda *_: (),
    ) -> None:
        """Say which column.

        Args:
            column: where the records are.
            moulds: gives what decodes commits, where indexes share it.
            new_commits: gives the commits of one's past that are not in another's; without it a merge is folded.
        """
        self._column = column
        self._moulds = moulds
        self._new_commits = new_commits
        self._growing: Growth | None = None

    def _growth(self) -> Growth:
        # Most commands find the index as they left it.
        if self._growing is None:
            moulds = context.Moulds() if self._moulds is None else self._moulds()
            self._growing = context.Growth(self._column, moulds, self.load, self._new_commits)
        return self._growing

    def view(
        self,
        tip: bytes | None,
        read: Read,
        seeds: Seeds = tuple,
        read_many: ReadMany | None = None,
    ) -> IndexView:
        """Return the context of a commit, catching the index up or making it anew where it does not reach.

        Args:
            tip: the commit; None for an unborn branch.
            read: gives an object's bytes by its id.
            seeds: gives the views of other indexes; asked only when this one is of no use. When appends alone or
                few commits lead from one of them to the tip, its records are taken over.
            read_many: gives many objects; without it the index is never derived from what it was.

        Raises:
            ObjectNotFoundError, InvalidOperationError, UnsupportedFormatError, CorruptObjectError: as in `fold`.
        """
        if tip is None:
            return IndexView(MemoryBytes(), 0, None, 0, NO_GENERATION)
        own = self.load()
        if own is not None and own.tip == tip:
            return own
        return self._growth().view(own, tip, read, seeds, read_many)

    def unfolded(self, tip: bytes, read: Read, read_many: ReadMany) -> IndexView | None:
        """Return the context of a commit as `view` does, or None when that would take a fold."""
        own = self.load()
        if own is not None and own.tip == tip:
            return own
        return self._growth().unfolded(own, tip, read, read_many)

    def rebuild(self, tip: bytes, read: Read) -> IndexView:
        """Write the index of a commit anew from its history alone; errors as in `view`."""
        return self._growth().rebuild(tip, read)

    def load(self) -> IndexView | None:
        """Return what the file holds, or None when it is absent or damaged. Reads two records."""
        opened = self._column.current()
        if opened is None:
            return None
        try:
            head = opened.read(0, form.HEADER_BYTES)
            header = Header.unpack(head, form.MESSAGES_MAGIC, form.MESSAGE_BYTES)
            records = (opened.size() - form.HEADER_BYTES) // form.MESSAGE_BYTES
            view = IndexView(opened, records, None, header.base, header.generation)
            while records > 0:
                last = view.record(records - 1)
                if last.flags & form.END:
                    return IndexView(opened, records, last, header.base, header.generation)
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
    floor, end = max(view.base - 1, 0), view.records
    while end > floor:
        start = max(end - _BATCH, floor)
        data = view.opened.read(form.HEADER_BYTES + start * size, (end - start) * size)
        at = data.rfind(tip)
        while at >= 0:
            if at % size == 0:
                try:
                    record = MessageRecord.unpack(data[at : at + size])
                except errors.CorruptIndexError:
                    return None
                if record.flags & form.END:
                    count = start + at // size + 1
                    return IndexView(view.opened, count, record, view.base, view.generation)
            at = data.rfind(tip, 0, at + len(tip) - 1)
        end = start
    return None


def cold_view(tip: bytes | None, read: Read) -> IndexView:
    """Return the context of a commit from its history alone; errors as in `CompileIndex.view`."""
    return CompileIndex(MemoryColumn()).view(tip, read)
