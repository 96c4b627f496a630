"""Deriving an index from the one before: what an edit, a mark, a removal or a move makes of the records.

A fold of the whole history says the same. Here the records before the first that changes stay as they are, to the
byte; those behind it get new ordinals and, where the prefix changed, new prefix hashes, for which their commits are
read again. A mark changes the one record.

Rule: what is derived equals what a fold makes, message by message, or nothing is derived. The records hold visible
messages alone; what is shown again is looked up at the end of the context, and what began before is left to a fold.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.context import index_records as form
from trace_store.context.ends import targets_of
from trace_store.context.folding import Entry, is_measured
from trace_store.context.index_building import (
    Builder,
    UnknownError,
    carried_record,
    flags_after,
    made_record,
    marker_record,
)
from trace_store.context.index_records import START, MessageRecord
from trace_store.context.record_wording import seen_of_records
from trace_store.context.revealing import Hidden, shown_again
from trace_store.objects import operations as ops
from trace_store.objects.commit import Commit, Operation
from trace_store.oid import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from trace_store.context.recent import Recent
    from trace_store.context.record_wording import ReadMany
    from trace_store.objects.moulds import Moulds

Address = tuple[bytes, int]

_SIZE = form.MESSAGE_BYTES
_MOST_UNENDED = 4096
"""Between a mark and the end of the records that stay; where there are more, none of them tells any more of commits."""


def derive(
    data: bytes,
    oid: bytes,
    commit: Commit,
    recent: Recent,
    read_many: ReadMany,
    moulds: Moulds,
) -> Builder | None:
    """Return a builder with all records after one more commit.

    Args:
        data: the records of the context of the commit's first parent, checked.
        oid: the commit's id.
        commit: what it does.
        recent: looks up what it brings of its other parents, and what it shows again.
        read_many: gives objects by their ids.
        moulds: the forms of commits that were met.

    Returns:
        None when only a fold can tell.
    """
    try:
        change = _Change(data, oid, commit, recent)
        change.apply()
        return change.build(read_many, moulds)
    except (UnknownError, errors.UnsupportedFormatError, IndexError):
        return None  # the last, when records name messages that there are not


def applies(data: bytes, commit: Commit, recent: Recent) -> bool:
    """Tell whether a commit that is being made names messages that are there, so that it applies; else ask a fold."""
    if any(operation.name == ops.INCLUDE for operation in commit.operations):
        return False
    try:
        _Change(data, ops.HERE, commit, recent).apply()
    except (UnknownError, errors.UnsupportedFormatError):
        return False
    return True


class _Change:
    """A commit on its way into records.

    Attributes:
        first: the number of the first record that does not stay as it is.
    """

    def __init__(self, data: bytes, oid: bytes, commit: Commit, recent: Recent) -> None:
        self._data = data
        self._oid = oid
        self._commit = commit
        self._recent = recent
        self._brought: dict[Address, Entry] = {}
        self._met: set[Address] = set()
        self._count = len(data) // _SIZE
        self.first = self._count
        self._version = sum(ops.message_count(operation) for operation in commit.operations)
        self._created = 0
        self._marked: dict[int, MessageRecord] = {}
        self._tail: list[MessageRecord] = []
        self._renew = False
        self._touched: set[Address] = set()
        self._in_order = True

    def apply(self) -> None:
        """Apply the operations.

        Raises:
            UnknownError: only a fold can tell what comes of them.
        """
        if any(operation.name not in _APPLY for operation in self._commit.operations):
            raise UnknownError
        if any(operation.name == ops.INCLUDE for operation in self._commit.operations):
            self._brought = self._recent.included(self._commit, self._is_shown)
        hidden = {
            address
            for operation in self._commit.operations
            for address in shown_again(operation, self._oid)
            if self._is_to_be_looked_up(operation, address)
        }
        self._hidden = Hidden(self._oid, self._commit, hidden, self._recent)
        self._open_tail()
        for operation in self._commit.operations:
            _APPLY[operation.name](self, operation)
            if not shown_again(operation, self._oid):
                self._touched.update(targets_of(operation, self._oid))
                self._in_order = self._in_order and operation.name not in _PLACES

    def build(self, read_many: ReadMany, moulds: Moulds) -> Builder:
        """Return all records: those that stay, those that were marked, and the tail with new hashes."""
        head, kept = self._head()
        last = MessageRecord.unpack_from(bytes(head[-_SIZE:]), 0) if head else None
        before = (
            MessageRecord.unpack_from(self._data, len(self._data) - _SIZE) if self._count else None
        )
        builder = Builder(last, self.first, head)
        builder.kept = kept
        prefix, ordinal = (last.prefix, last.ordinal) if last else (START, 0)
        old, measured = (before.tools, before.measured) if before else (0, 0)
        tools, known = 0, 0
        if measured > self.first:  # what was measured is not the beginning of this context any more
            then = self._record(measured)
            known = then.tools
            tools = self._tools_again(known, builder)
            measured = builder.count + 1
            builder.add(carried_record(then, tools, prefix, ordinal, measured))
        if old != known:
            tools = self._tools_again(old, builder)
        seen: Iterator[bytes] = iter(())
        if self._renew:
            seen = seen_of_records(self._tail, self._oid, self._commit, read_many, moulds)
        for record in self._tail:
            ordinal += 1
            prefix = digest(prefix + next(seen)) if self._renew else record.prefix
            flags = record.flags & ~form.END
            builder.add(record.changed(flags, tools, prefix, ordinal, measured))
        end = marker_record(self._oid, 0, tools, prefix, ordinal, measured)
        if is_measured(self._commit):
            measured = builder.count + 1
        builder.add(end.ended(measured))
        return builder

    def _record(self, number: int) -> MessageRecord:
        """Return a record by its number from 1, as records point to each other."""
        return MessageRecord.unpack_from(self._data, (number - 1) * _SIZE)

    def _tools_again(self, tools: int, builder: Builder) -> int:
        """Return what records point to for their tools; what set them gets a marker when it stood in the tail."""
        if tools <= self.first:
            return tools
        last, number = builder.last, builder.count + 1
        prefix, ordinal, measured = (
            (last.prefix, last.ordinal, last.measured) if last else (START, 0, 0)
        )
        setter = self._record(tools).commit
        builder.add(marker_record(setter, form.TOOLS, number, prefix, ordinal, measured))
        return number

    def _head(self) -> tuple[memoryview | bytearray, int]:
        """Return the records before the first, and how many of them end the same commits as before; -1 for none.

        They are not copied unless a mark changes one: there may be very many.
        """
        head = memoryview(self._data)[: self.first * _SIZE]
        if not self._marked:
            return head, self.first
        marked = bytearray(head)
        for number, record in self._marked.items():
            marked[number * _SIZE : (number + 1) * _SIZE] = record.pack()
        return marked, self._without_ends(marked)

    def _without_ends(self, head: bytearray) -> int:
        """Let no record from the first mark on end a commit; return how many stand before, -1 when it was not done."""
        low = min(self._marked)
        if self.first - low > _MOST_UNENDED:
            return -1
        for at in range(low * _SIZE, len(head), _SIZE):
            record = MessageRecord.unpack_from(head, at)
            if record.flags & form.END:
                head[at : at + _SIZE] = record.flagged(record.flags & ~form.END).pack()
        return low

    def _open_tail(self) -> None:
        """Take the records from the first on that may change its place, its wording or the hash before it."""
        for operation in self._commit.operations:
            fields = operation.fields
            targets = fields.get("targets", ())
            if operation.name == ops.EDIT:
                targets = (fields["target"],)
            elif operation.name == ops.ANNOTATE and fields.get("priority") != ops.SKIP:
                targets = [each for each in targets if self._address(each) in self._hidden]
            elif operation.name == ops.INCLUDE:
                targets = ()
            elif operation.name == ops.MOVE and fields.get("after") is None:
                self.first = 0
            if fields.get("after") is not None:
                targets = (*targets, fields["after"])
            for target in targets:
                if not self._is_new(target):
                    self.first = min(self.first, self._number(self._standing(target)))
        if self.first < self._count:
            self._renew = True
            block = self._data[self.first * _SIZE :]
            places = form.message_places(block)
            self._tail = [MessageRecord.unpack_from(block, at) for at in places]

    def _is_new(self, target: Sequence[Any]) -> bool:
        """Tell whether the commit itself creates or brings a message."""
        return not target[0] or target[0] == self._oid or (target[0], target[1]) in self._brought

    def _standing(self, target: Sequence[Any]) -> Address:
        """Return a message, or the one that is shown before it when it is hidden."""
        address = self._address(target)
        if address in self._hidden and not self._is_shown(address):
            return self._hidden.shown_before(address)
        return address

    def _is_to_be_looked_up(self, operation: Operation, address: Address) -> bool:
        """Tell whether no record says what an operation makes of a message: it is hidden, or was otherwise before."""
        if address[0] == self._oid:
            return False
        at = form.find_message(self._data, address)
        if at is None or operation.name != ops.RESTORE:
            return at is None
        is_ghost = MessageRecord.unpack_from(self._data, at).flags & form.GHOST
        return bool(is_ghost) or operation.fields.get("version") is not None

    def _is_shown(self, address: Address) -> bool:
        return form.find_message(self._data, address) is not None

    def _address(self, target: Sequence[Any]) -> Address:
        return bytes(target[0]) or self._oid, target[1]

    def _number(self, address: Address) -> int:
        """Return the number of a visible message's record; the latest are looked at first."""
        at = form.find_message(self._data, address)
        if at is None:
            raise UnknownError
        return at // _SIZE

    def _in_tail(self, address: Address) -> int:
        for at, record in enumerate(self._tail):
            if (record.commit, record.number) == address:
                return at
        raise UnknownError

    def _take_out(self, targets: Sequence[Sequence[Any]]) -> tuple[list[MessageRecord], int]:
        """Take messages out of the tail; return them as they are named, and where the first one stood."""
        addresses = list(dict.fromkeys(map(self._address, targets)))
        named = set(addresses)
        taken: dict[Address, MessageRecord] = {}
        left: list[MessageRecord] = []
        at = -1
        for record in self._tail:
            address = (record.commit, record.number)
            if address in named:
                at = len(left) if at < 0 else at
                taken[address] = record
            else:
                left.append(record)
        if len(taken) != len(addresses):
            raise UnknownError
        self._tail = left
        return [taken[address] for address in addresses], len(left) if at < 0 else at

    def _create(self, operation: Operation) -> list[MessageRecord]:
        made = []
        for message in operation.fields["messages"]:
            made.append(made_record(Entry((self._oid, self._created), message), 0, START, 0))
            self._created += 1
        self._renew = True
        return made

    def _append(self, operation: Operation) -> None:
        self._tail += self._create(operation)

    def _include(self, operation: Operation) -> None:
        after = operation.fields.get("after")
        at = len(self._tail) if after is None else self._in_tail(self._address(after)) + 1
        for target in operation.fields["targets"]:
            address = self._address(target)
            entry = None if address in self._met else self._brought.get(address)
            self._met.add(address)
            if entry is not None and entry.visible:
                self._tail.insert(at, made_record(entry, 0, START, 0))
                at += 1
                self._renew = True

    def _edit(self, operation: Operation) -> None:
        at = self._in_tail(self._address(operation.fields["target"]))
        self._tail[at] = self._tail[at].reworded(self._oid, self._version)
        self._version += 1

    def _remove(self, operation: Operation) -> None:
        if not operation.fields.get("ghost", False):
            self._take_out(operation.fields["targets"])
            return
        for target in operation.fields["targets"]:
            at = self._in_tail(self._address(target))
            self._tail[at] = self._tail[at].flagged(self._tail[at].flags | form.GHOST)

    def _replace(self, operation: Operation) -> None:
        _, at = self._take_out(operation.fields["targets"])
        self._tail[at:at] = self._create(operation)

    def _move(self, operation: Operation) -> None:
        moved, _ = self._take_out(operation.fields["targets"])
        after = operation.fields.get("after")
        at = 0 if after is None else self._in_tail(self._address(after)) + 1
        self._tail[at:at] = moved

    def _restore(self, operation: Operation) -> None:
        for target in operation.fields["targets"]:
            address = self._address(target)
            if address in self._hidden:
                self._reveal(operation, address)
            elif operation.fields.get("version") is not None:
                raise UnknownError  # a wording of this very commit
            elif self._tail[self._in_tail(address)].flags & form.GHOST:
                raise UnknownError  # a ghost of this very commit

    def _reveal(self, operation: Operation, address: Address) -> None:
        """Change a message that was hidden, or of which other wordings are asked for."""
        if address in self._touched or not self._in_order:
            raise UnknownError  # it is not as it was, or what stands around it does not stand there any more
        places = {(record.commit, record.number): at for at, record in enumerate(self._tail)}
        entry = self._hidden.apply(operation, address)
        if address in places:
            del self._tail[places[address]]
        if entry.visible:
            at = places.get(address)
            if at is None:
                before = (places[each] for each in self._hidden.before(address) if each in places)
                at = next(before, -1) + 1
                if not at:
                    raise UnknownError  # what stood before it went
            self._tail.insert(at, made_record(entry, 0, START, 0))

    def _annotate(self, operation: Operation) -> None:
        fields = operation.fields
        if fields.get("priority") == ops.SKIP:
            taken, _ = self._take_out(fields["targets"])
            if any(record.flags & form.GHOST for record in taken):
                raise UnknownError
            return
        for target in fields["targets"]:
            if self._address(target) in self._hidden:
                self._reveal(operation, self._address(target))
                continue
            number = self._count if self._is_new(target) else self._number(self._address(target))
            if number < self.first:
                marked = self._marked.get(number)
                record = marked or MessageRecord.unpack_from(self._data, number * _SIZE)
                self._marked[number] = record.flagged(flags_after(record.flags, operation))
            else:
                at = self._in_tail(self._address(target))
                record = self._tail[at]
                self._tail[at] = record.flagged(flags_after(record.flags, operation))

    def _usage(self, operation: Operation) -> None:
        """What a provider reported changes no message, and neither do facts and settings."""


_PLACES = (ops.INCLUDE, ops.MOVE, ops.REPLACE)
_APPLY: dict[str, Callable[[_Change, Operation], None]] = {
    ops.APPEND: _Change._append,
    ops.INCLUDE: _Change._include,
    ops.EDIT: _Change._edit,
    ops.ANNOTATE: _Change._annotate,
    ops.REMOVE: _Change._remove,
    ops.RESTORE: _Change._restore,
    ops.REPLACE: _Change._replace,
    ops.MOVE: _Change._move,
    ops.USAGE: _Change._usage,
    ops.CONFIG: _Change._usage,
}
