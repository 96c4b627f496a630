"""The compile index: the visible messages of a branch, one record each.

A compile after an append reads and writes what is new and nothing else.

Rule: the index is a cache of `folding.py`. It is pulled, never pushed: a reader compares its tip with the branch's and
catches up. Whatever does not match is rebuilt; deleting it costs time only.

A record ends with the flag END where a commit ends, so a torn append is seen and ignored. Commits that add no message
leave a marker record, so that the index knows how far it reaches.
"""

from __future__ import annotations

from trace_store.columns import DiskColumn, MemoryBytes, MemoryColumn, OpenColumn
from trace_store.context import index_records as form
from trace_store.context.deriving import derive
from trace_store.context.folding import fold
from trace_store.context.index_building import (
    START,
    AppendRun,
    Builder,
    Step,
    append_run,
    records_of_fold,
    steps_since,
)
from trace_store.context.index_records import Header, MessageRecord
from trace_store.errors import CorruptIndexError
from trace_store.objects.commit import read_commit
from trace_store.objects.moulds import Moulds
from trace_store.oid import digest
from trace_store.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import TypeAlias

    from trace_store.context.deriving import ReadMany

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
    """

    opened: Opened
    records: int
    last: MessageRecord | None
    base: int
    generation: bytes

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
        return START if self.last is None else self.last.prefix

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

    def blocks(
        self, start: int = 0, stop: int | None = None
    ) -> Iterator[tuple[bytes, Sequence[int]]]:
        """Yield blocks of checked records, and the offsets in them of messages.

        They are the messages at positions from `start` up to, not including, `stop`.

        Raises:
            CorruptIndexError: a record is damaged.
        """
        left = (self.message_count if stop is None else min(stop, self.message_count)) - start
        if left <= 0:
            return
        number = self.number_of(start)
        size = form.MESSAGE_BYTES
        while left > 0:
            count = min(_BATCH, self.records - number, left)
            if not count:
                raise CorruptIndexError("the index ends before its context does")
            block = self.opened.read(form.HEADER_BYTES + number * size, count * size)
            places = form.message_places(block)
            left -= len(places)
            number += count
            if places:
                yield block, places

    def find(self, address: tuple[bytes, int]) -> MessageRecord | None:
        """Return the record of a message, None when the context does not show it. Looks at the latest first."""
        size = form.MESSAGE_BYTES
        for start in range((self.records - 1) // _BATCH * _BATCH, -1, -_BATCH):
            count = min(_BATCH, self.records - start)
            block = self.opened.read(form.HEADER_BYTES + start * size, count * size)
            at = form.find_message(block, address)
            if at is not None:
                return MessageRecord.unpack(block[at : at + size])
        return None

    def tools_commit(self) -> bytes | None:
        """Return the commit that set the tools in force, or None."""
        if self.last is None or not self.last.tools:
            return None
        return self.record(self.last.tools - 1).commit


class CompileIndex:
    """The index of one branch (or of nothing that lasts, in memory)."""

    __slots__ = ("_column", "_moulds")

    def __init__(self, column: Column, moulds: Moulds | None = None) -> None:
        self._column = column
        self._moulds = moulds or Moulds()

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
            seeds: gives the views of other indexes; asked only when this one is of no use. When appends alone
                lead from one of them to the tip, its records are taken over.
            read_many: gives many objects; without it the index is never derived from what it was.

        Raises:
            ObjectNotFoundError, InvalidOperationError, UnsupportedFormatError, CorruptObjectError: as in `fold`.
        """
        if tip is None:
            return IndexView(MemoryBytes(), 0, None, 0, NO_GENERATION)
        own = self.load()
        if own is not None and own.tip == tip:
            return own
        run = append_run(tip, None if own is None else own.tip, read, self._moulds)
        return self._follow(own, run, read, read_many) or self._rebuild(tip, read, run, seeds())

    def unfolded(self, tip: bytes, read: Read, read_many: ReadMany) -> IndexView | None:
        """Return the context of a commit as `view` does, or None when that would take a fold."""
        own = self.load()
        if own is not None and own.tip == tip:
            return own
        run = append_run(tip, None if own is None else own.tip, read, self._moulds)
        followed = self._follow(own, run, read, read_many)
        if followed is None and run.reaches_root:
            return self._rebuild(tip, read, run, ())
        return followed

    def rebuild(self, tip: bytes, read: Read) -> IndexView:
        """Write the index of a commit anew from its history alone; errors as in `view`."""
        return self._rebuild(tip, read, append_run(tip, None, read, self._moulds), ())

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
        except CorruptIndexError:
            pass
        return None

    def prefix_view(self, tip: bytes) -> IndexView | None:
        """Return the context of an ancestor from the same records, when appends alone lead from it to here.

        Looks through the commits of the records, newest first.
        """
        view = self.load()
        if view is None:
            return None
        size = form.MESSAGE_BYTES
        floor, end = max(view.base - 1, 0), view.records
        while end > floor:
            start = max(end - _BATCH, floor)
            data = view.opened.read(form.HEADER_BYTES + start * size, (end - start) * size)
            at = data.rfind(tip)
            while at >= 0:
                if at % size == 0:
                    record = MessageRecord.unpack(data[at : at + size])
                    if record.flags & form.END:
                        count = start + at // size + 1
                        return IndexView(view.opened, count, record, view.base, view.generation)
                at = data.rfind(tip, 0, at + len(tip) - 1)
            end = start
        return None

    def _extend(self, view: IndexView, delta: Sequence[Step]) -> IndexView:
        builder = Builder(view.last, view.records)
        builder.append(delta)
        data = bytes(builder.data)
        expected = form.HEADER_BYTES + view.records * form.MESSAGE_BYTES
        opened: Opened = view.opened
        if not opened.append(expected, data):
            # Somebody else is catching up, or a torn tail is in the way: answer from memory.
            whole = opened.read(0, expected) + data
            damaged = opened.size() > expected and self.load() == view
            opened = self._column.replace(whole) if damaged else MemoryBytes(whole)
        return IndexView(opened, builder.count, builder.last, view.base, view.generation)

    def _follow(
        self, own: IndexView | None, run: AppendRun, read: Read, read_many: ReadMany | None
    ) -> IndexView | None:
        """Return the view at the end of a run as it follows from what there is; None when it does not."""
        if own is None:
            return None
        if run.since == own.tip:
            return self._extend(own, run.commits)
        return self._derive(own, run, read, read_many)

    def _derive(
        self, view: IndexView, run: AppendRun, read: Read, read_many: ReadMany | None
    ) -> IndexView | None:
        """Return the view that a few more commits of any kind lead to; None when only a fold can tell."""
        steps = None if read_many is None else steps_since(view.tip, run, read, self._moulds)
        if steps is None or read_many is None:
            return None
        data = view.opened.read(form.HEADER_BYTES, view.records * form.MESSAGE_BYTES)
        try:
            form.message_places(data)
        except CorruptIndexError:
            return None
        builder = Builder(view.last, view.records)
        builder.data[:] = data
        for step in steps:
            if step.only_appends:
                builder.append([step])
            else:
                made = derive(
                    bytes(builder.data), step.oid, step.decoded(), read_many, self._moulds
                )
                if made is None:
                    return None
                builder = made
        generation = digest(steps[-1].oid)[:16]
        header = Header(form.MESSAGES_MAGIC, form.MESSAGE_BYTES, builder.count, generation)
        opened = self._column.replace(b"".join((header.pack(), builder.data)))
        return IndexView(opened, builder.count, builder.last, builder.count, generation)

    def _rebuild(
        self, tip: bytes, read: Read, run: AppendRun, seeds: Iterable[IndexView]
    ) -> IndexView:
        seed, delta = _longest(seeds, run)
        builder = Builder()
        base = 0
        kept = b""
        if seed is not None:
            base = seed.base
            kept = seed.opened.read(form.HEADER_BYTES, seed.records * form.MESSAGE_BYTES)
            builder = Builder(seed.last, seed.records)
            builder.append(delta)
        elif run.reaches_root:
            builder.append(run.commits)
        else:
            for record in records_of_fold(tip, fold(tip, lambda oid: read_commit(oid, read))):
                builder.add(record)
            base = builder.count
        generation = digest(tip)[:16]
        header = Header(form.MESSAGES_MAGIC, form.MESSAGE_BYTES, base, generation)
        opened = self._column.replace(b"".join((header.pack(), kept, builder.data)))
        return IndexView(opened, builder.count, builder.last, base, generation)


def cold_view(tip: bytes | None, read: Read) -> IndexView:
    """Return the context of a commit from its history alone; errors as in `CompileIndex.view`."""
    return CompileIndex(MemoryColumn()).view(tip, read)


def _longest(seeds: Iterable[IndexView], run: AppendRun) -> tuple[IndexView | None, Sequence[Step]]:
    """Return the view from which the fewest commits of the run lead to its tip, and those commits."""
    places: dict[bytes | None, int] = {each.oid: i + 1 for i, each in enumerate(run.commits)}
    if run.commits and run.commits[0].parent is not None:
        places[run.commits[0].parent] = 0
    best: IndexView | None = None
    start = -1
    for view in seeds:
        at = -1 if view.tip is None else places.get(view.tip, -1)
        if at > start:
            best, start = view, at
    return best, run.commits[max(start, 0) :]
