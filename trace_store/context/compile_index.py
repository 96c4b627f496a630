"""The compile index: the visible messages of a branch, one record each.

A compile after an append reads and writes what is new and nothing else.

Rule: the index is a cache of `folding.py`. It is pulled, never pushed: a reader compares its tip with the branch's and
catches up. Whatever does not match is rebuilt; deleting it costs time only.

A record ends with the flag END where a commit ends, so a torn append is seen and ignored. Commits that add no message
leave a marker record, so that the index knows how far it reaches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from trace_store.columns import DiskColumn, MemoryBytes, MemoryColumn, OpenColumn
from trace_store.context import index_records as form
from trace_store.context.folding import Entry, Fold, ReadCommit, fold, is_append_only
from trace_store.context.index_records import Header, MessageRecord
from trace_store.context.wording import prefix_after, prefix_after_ghost
from trace_store.errors import CorruptIndexError, UnsupportedFormatError
from trace_store.objects import operations as ops
from trace_store.objects.commit import Commit
from trace_store.objects.message import KINDS, ROLES
from trace_store.oid import OID_BYTES, digest
from trace_store.values import value

Seeds = Callable[[], Iterable["IndexView"]]
Opened = OpenColumn | MemoryBytes
Column = DiskColumn | MemoryColumn

START = bytes(OID_BYTES)
"""The prefix hash of a context without messages."""
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

    def tools_commit(self) -> bytes | None:
        """Return the commit that set the tools in force, or None."""
        if self.last is None or not self.last.tools:
            return None
        return self.record(self.last.tools - 1).commit


class CompileIndex:
    """The index of one branch (or of nothing that lasts, in memory)."""

    __slots__ = ("_column",)

    def __init__(self, column: Column) -> None:
        self._column = column

    def view(self, tip: bytes | None, read_commit: ReadCommit, seeds: Seeds = tuple) -> IndexView:
        """Return the context of a commit, catching the index up or making it anew where it does not reach.

        Args:
            tip: the commit; None for an unborn branch.
            read_commit: gives a commit by its id.
            seeds: gives the views of other indexes; asked only when this one is of no use. When appends alone
                lead from one of them to the tip, its records are taken over.

        Raises:
            ObjectNotFoundError, InvalidOperationError, UnsupportedFormatError, CorruptObjectError: as in `fold`.
        """
        if tip is None:
            return IndexView(MemoryBytes(), 0, None, 0, NO_GENERATION)
        own = self.load()
        if own is not None and own.tip == tip:
            return own
        run = append_run(tip, None if own is None else own.tip, read_commit)
        if own is not None and run.since == own.tip:
            return self._extend(own, run.commits)
        return self._rebuild(tip, read_commit, run, seeds())

    def rebuild(self, tip: bytes, read_commit: ReadCommit) -> IndexView:
        """Write the index of a commit anew from its history alone; errors as in `view`."""
        return self._rebuild(tip, read_commit, append_run(tip, None, read_commit), ())

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

    def _extend(self, view: IndexView, delta: Sequence[tuple[bytes, Commit]]) -> IndexView:
        added = records_of_appends(view.last, view.records, delta)
        data = b"".join(record.pack() for record in added)
        expected = form.HEADER_BYTES + view.records * form.MESSAGE_BYTES
        if not view.opened.append(expected, data):
            # Somebody else is catching up, or a torn tail is in the way: answer from memory.
            whole = view.opened.read(0, expected) + data
            damaged = view.opened.size() > expected and self.load() == view
            return replace_view(
                self._column.replace(whole) if damaged else MemoryBytes(whole), view, added
            )
        return replace_view(view.opened, view, added)

    def _rebuild(
        self, tip: bytes, read_commit: ReadCommit, run: AppendRun, seeds: Iterable[IndexView]
    ) -> IndexView:
        seed, delta = _longest(seeds, run)
        kept = b""
        if seed is not None:
            base = seed.base
            kept = seed.opened.read(form.HEADER_BYTES, seed.records * form.MESSAGE_BYTES)
            added = records_of_appends(seed.last, seed.records, delta)
        elif run.reaches_root:
            base, added = 0, records_of_appends(None, 0, run.commits)
        else:
            added = _records_of_fold(tip, fold(tip, read_commit))
            base = len(added)
        generation = digest(tip)[:16]
        header = Header(form.MESSAGES_MAGIC, form.MESSAGE_BYTES, base, generation)
        opened = self._column.replace(
            b"".join((header.pack(), kept, *(record.pack() for record in added)))
        )
        last = added[-1] if added or seed is None else seed.last
        count = len(kept) // form.MESSAGE_BYTES + len(added)
        return IndexView(opened, count, last, base, generation)


def cold_view(tip: bytes | None, read_commit: ReadCommit) -> IndexView:
    """Return the context of a commit from its history alone; errors as in `CompileIndex.view`."""
    return CompileIndex(MemoryColumn()).view(tip, read_commit)


def replace_view(opened: Opened, view: IndexView, added: Sequence[MessageRecord]) -> IndexView:
    """Return the view that follows when records are added to one."""
    return IndexView(opened, view.records + len(added), added[-1], view.base, view.generation)


@value
class AppendRun:
    """Commits that only append, up to a tip, oldest first.

    Attributes:
        commits: (id, commit), without the commit the run stops at.
        since: the wanted commit when the run got there, else None.
        reaches_root: whether the run is the whole history.
    """

    commits: Sequence[tuple[bytes, Commit]]
    since: bytes | None
    reaches_root: bool


def append_run(tip: bytes, since: bytes | None, read_commit: ReadCommit) -> AppendRun:
    """Return the run of appends that ends at a tip, stopping at `since` when it is met."""
    found: list[tuple[bytes, Commit]] = []
    oid: bytes | None = tip
    while oid is not None and oid != since:
        commit = read_commit(oid)
        if not is_append_only(commit):
            break
        found.append((oid, commit))
        oid = commit.parents[0] if commit.parents else None
    found.reverse()
    return AppendRun(found, since if oid == since else None, oid is None)


def _longest(
    seeds: Iterable[IndexView], run: AppendRun
) -> tuple[IndexView | None, Sequence[tuple[bytes, Commit]]]:
    """Return the view from which the fewest commits of the run lead to its tip, and those commits."""
    places = {oid: i + 1 for i, (oid, _) in enumerate(run.commits)}
    if run.commits and run.commits[0][1].parents:
        places[run.commits[0][1].parents[0]] = 0
    best: IndexView | None = None
    start = -1
    for view in seeds:
        at = places.get(view.tip or b"", -1)
        if at > start:
            best, start = view, at
    return best, run.commits[max(start, 0) :]


def records_of_appends(
    last: MessageRecord | None, number: int, commits: Sequence[tuple[bytes, Commit]]
) -> list[MessageRecord]:
    """Return the records that appending commits add after `last`, whose successor has this number."""
    ordinal = last.ordinal if last else 0
    prefix = last.prefix if last else START
    tools = last.tools if last else 0
    records: list[MessageRecord] = []
    for oid, commit in commits:
        first = len(records)
        if any(operation.name == ops.TOOLS for operation in commit.operations):
            tools = number + len(records) + 1
            records.append(_marker(oid, form.TOOLS, tools, prefix, ordinal))
        created = 0
        for operation in commit.operations:
            if operation.name != ops.APPEND:
                continue
            for message in operation.fields["messages"]:
                entry = Entry((oid, created), message)
                ordinal += 1
                prefix = prefix_after(prefix, entry)
                records.append(_record(entry, tools, prefix, ordinal))
                created += 1
        if len(records) == first:
            records.append(_marker(oid, 0, tools, prefix, ordinal))
        records[-1] = records[-1].ended()
    return records


def _records_of_fold(tip: bytes, state: Fold) -> list[MessageRecord]:
    records: list[MessageRecord] = []
    prefix = START
    tools = 0
    if state.tools_commit is not None:
        tools = 1
        records.append(_marker(state.tools_commit, form.TOOLS, tools, prefix, 0))
    ordinal = 0
    for entry in state.visible():
        ordinal += 1
        prefix = (
            prefix_after_ghost(prefix, entry) if entry.is_ghost else prefix_after(prefix, entry)
        )
        records.append(_record(entry, tools, prefix, ordinal))
    records.append(_marker(tip, 0, tools, prefix, ordinal).ended())
    return records


def _record(entry: Entry, tools: int, prefix: bytes, ordinal: int) -> MessageRecord:
    flags = form.priority_flag(entry.priority) if entry.priority != ops.SKIP else 0
    if entry.is_ghost:
        flags |= form.GHOST
    if entry.current:
        flags |= form.EDITED
    if entry.labels or entry.keep:
        flags |= form.LABELLED
    role, kind = entry.message["role"], entry.message.get("kind")
    if role not in ROLES:
        raise UnsupportedFormatError(f"a message has the unknown role {role!r}", required="role")
    return MessageRecord(
        *entry.address,
        *entry.place,
        flags,
        role,
        kind if kind in KINDS else "freeform",
        tools,
        prefix,
        ordinal,
    )


def _marker(commit: bytes, flags: int, tools: int, prefix: bytes, ordinal: int) -> MessageRecord:
    return MessageRecord(
        commit, 0, commit, 0, form.MARKER | flags, "user", "freeform", tools, prefix, ordinal
    )
