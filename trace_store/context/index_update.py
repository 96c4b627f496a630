"""Updates of the compile index of a branch.

A record's own fields do not depend on earlier records, so one index can copy them from another. The other fields are
computed again. However an index is updated, its messages equal those of a fold. `tools` and `measured` need to be
correct only in the last record of a commit.
"""

from __future__ import annotations

from functools import cache

from trace_store import errors
from trace_store.base.frozen import replace, value
from trace_store.base.gc_pause import paused
from trace_store.base.oid import digest
from trace_store.context import compile_index as form
from trace_store.context.compile_index import START, Header, IndexView, MessageRecord, prefix_of
from trace_store.context.content import prefix_after, seen_of_entry
from trace_store.context.fold import Entry, Fold, by_state, is_measured
from trace_store.objects import operations as ops
from trace_store.objects.commit import Commit
from trace_store.objects.message import FREEFORM, KINDS, ROLES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import TypeAlias

    from trace_store.context.compile_index import Column, History, Measured, Seeds
    from trace_store.objects.address import Address

    Find: TypeAlias = Callable[[Address], MessageRecord | None]


_NOBODY, _UNSEEN = bytes(16), bytes(32)
_MARKED_AS = bytes((ROLES.index("user"), KINDS.index(FREEFORM)))


class UnknownError(Exception):
    """Only a fold can decide."""


@value
class AppendStep:
    """A commit that only appends.

    Attributes:
        parent: its parent, or None.
        records: the own fields of its records, at least one, each with the messages whose calls it answers.
        is_measured: whether a provider reported the tokens of its context.
    """

    parent: bytes | None
    records: Sequence[tuple[bytes, tuple[Address, ...]]]
    is_measured: bool


def step_of(oid: bytes, commit: Commit) -> AppendStep | None:
    """Return the messages that a commit appends; None if it does anything else.

    Raises:
        UnsupportedFormatError: a message has a role that this version does not know.
    """
    if not ops.only_appends(commit):
        return None
    records: list[tuple[bytes, tuple[Address, ...]]] = []
    if any(operation.name == ops.TOOLS for operation in commit.operations):
        records.append((marker(oid, form.TOOLS), ()))
    for number, (_, stored) in enumerate(ops.added_messages(commit, oid)):
        entry = Entry.read(stored, oid, number, number)
        records.append((own_fields_of(entry, {}), entry.answers))
    parent = commit.parents[0] if commit.parents else None
    return AppendStep(parent, records or [(marker(oid), ())], is_measured(commit))


class Builder:
    """Builds records after existing ones.

    Attributes:
        count: number of records, including the existing ones.
        data: the new records.
        tools, measured: the values for the next record.
    """

    def __init__(self, last: MessageRecord | None = None, count: int = 0) -> None:
        self.count = count
        self.data = bytearray()
        self._prefix, self._ordinal = (last.prefix, last.ordinal) if last else (START, 0)
        self.tools, self.measured = (last.tools, last.measured) if last else (0, 0)

    def append(self, steps: Iterable[AppendStep], find: Find) -> None:
        """Add the records of commits that append.

        Args:
            steps: the commits, oldest first.
            find: returns the record of a message in the context before.

        Raises:
            UnknownError: a result answers a call that is hidden or edited, so only a fold knows its state.
        """
        made: dict[bytes, int] = {}
        for step in steps:
            last = len(step.records) - 1
            for n, (record, answers) in enumerate(step.records):
                flags = self._priority(answers, made, find) if answers else 0
                made[record[: form.ADDRESS_BYTES]] = len(self.data)
                if n == last:
                    self.end(record, flags, is_measured=step.is_measured)
                else:
                    self.put(record, flags)

    def end(self, own_fields: bytes, flags: int = 0, *, is_measured: bool) -> None:
        """Add the last record of a commit."""
        if is_measured:
            self.measured = self.count + 1
        self.put(own_fields, flags | form.END)

    def put(self, own_fields: bytes, flags: int = 0) -> None:
        """Add a record with additional flags."""
        self.count += 1
        flags |= form.flags_at(own_fields, 0)
        if not flags & form.MARKER:
            self._ordinal += 1
            self._prefix = prefix_after(self._prefix, own_fields[form.OWN_SEEN_AT :])
        elif flags & form.TOOLS:
            self.tools = self.count
        elif flags & form.MEASURED_EARLIER:
            self.measured = self.count
        self.data += form.pack_record(
            own_fields, flags, self.tools, self._prefix, self._ordinal, self.measured
        )

    def _priority(self, answers: Sequence[Address], made: Mapping[bytes, int], find: Find) -> int:
        """Return the priority flag of a result, which equals its call's."""
        birth, number = answers[0]
        at = made.get(birth + number.to_bytes(4, "little"))
        record = find(answers[0]) if at is None else MessageRecord.unpack_from(self.data, at)
        if record is None or record.flags & form.GHOST or len(answers) > 1:
            raise UnknownError
        return form.priority_flag(record.priority)


def records_of_fold(
    tip: bytes, state: Fold, records: bytes, then: Measured | None
) -> tuple[bytes, Builder]:
    """Return the records of a context: a prefix of existing records, and a builder with the others.

    Args:
        tip: the commit.
        state: its fold.
        records: checked records of another context, or empty.
        then: the last measured commit according to that index.

    Raises:
        UnsupportedFormatError: a message has a role that this version does not know.
    """
    entries = list(state.visible())
    end, common = _in_common(records, entries)
    kept, known = records[:end], form.by_key(records[end:])
    last = MessageRecord.unpack_from(kept, end - form.MESSAGE_BYTES) if kept else None
    made = Builder(last, end // form.MESSAGE_BYTES)
    for entry in entries[common:]:
        made.put(own_fields_of(entry, known))
    tools = _commit_of(kept, made.tools)
    measuring, tools_then = state.measured or (None, None)
    if measuring is None:
        made.measured = 0
    elif measuring not in (tip, _commit_of(kept, made.measured)):
        tools = _put_tools(made, tools, tools_then)
        count, prefix = 0, _UNSEEN
        if then is not None and then.commit == measuring:
            count, prefix = then.message_count, then.prefix
        made.put(marker(measuring, form.MEASURED_EARLIER, count=count, prefix=prefix))
    _put_tools(made, tools, state.tools_commit)
    made.end(marker(tip), is_measured=measuring == tip)
    return kept, made


def own_fields_of(entry: Entry, known: Mapping[bytes, bytes]) -> bytes:
    """Return the own fields of a message's record; the hash is copied from a known record if possible.

    Raises:
        UnsupportedFormatError: this version does not know the role.
    """
    key, flags = entry.key, _flags()[entry.state]
    record = known.get(key)
    if record is not None and not (form.flags_at(record, 0) ^ flags) & form.GHOST:
        return b"%b%b%b%b" % (key, flags.to_bytes(2, "little"), record[94:96], record[132:164])
    kind = entry.message.get("kind")
    named = bytes((role_number(entry), KINDS.index(kind if kind in KINDS else FREEFORM)))
    return b"%b%b%b%b" % (key, flags.to_bytes(2, "little"), named, seen_of_entry(entry))


def role_number(entry: Entry) -> int:
    """Return the number of a message's role; raises as above."""
    role = entry.message["role"]
    if role not in ROLES:
        raise errors.UnsupportedFormatError(
            f"a message has the unknown role {role!r}", required="role"
        )
    return ROLES.index(role)


def record_of(entry: Entry) -> MessageRecord:
    """Return the record of a message alone, without the fields that depend on earlier records; raises as above."""
    own = own_fields_of(entry, {})
    return MessageRecord.unpack(form.pack_record(own, form.flags_at(own, 0), 0, START, 0, 0))


def marker(commit: bytes, flags: int = 0, *, count: int = 0, prefix: bytes = _UNSEEN) -> bytes:
    """Return the own fields of a commit's marker; `count` and `prefix` describe a measured context."""
    number, flags = count.to_bytes(4, "little"), flags | form.MARKER
    key = b"%b%b%b\0\0\0\0%b\0\0\0\0" % (_NOBODY, number, commit, commit)
    return b"%b%b%b%b" % (key, flags.to_bytes(2, "little"), _MARKED_AS, prefix)


def _in_common(records: bytes, entries: Sequence[Entry]) -> tuple[int, int]:
    """Return the length of the common prefix of records and entries, in bytes and messages."""
    offsets = form.message_offsets(records) if records else ()
    flags = _flags()
    number = 0
    for at, entry in zip(offsets, entries, strict=False):
        said = form.flags_at(records, at) & ~form.END
        if said != flags[entry.state] or not records.startswith(entry.key, at):
            return at, number
        number += 1
    return len(records) if number == len(offsets) else offsets[number], number


def _commit_of(records: bytes, number: int) -> bytes | None:
    """Return the commit of a record, given 1 + its number; None for 0."""
    return form.home_at(records, (number - 1) * form.MESSAGE_BYTES) if number else None


def _put_tools(made: Builder, had: bytes | None, setter: bytes | None) -> bytes | None:
    """Set the commit that set the tools, or None, and return it."""
    if setter is None:
        made.tools = 0
    elif setter != had:
        made.put(marker(setter, form.TOOLS))
    return setter


@cache
def _flags() -> dict[int, int]:
    """Return the flags of a record by the `state` of its entry."""
    return by_state(_flags_of)


def _flags_of(entry: Entry) -> int:
    flags = form.priority_flag(entry.priority) if entry.priority != ops.SKIP else 0
    if entry.is_ghost:
        flags |= form.GHOST
    if entry.is_edited:
        flags |= form.EDITED
    if entry.is_marked:
        flags |= form.IS_MARKED
    return flags


NEAR = 16
"""An index follows its branch over this many commits before other indexes are tried."""
FAR = 4096
"""Prefixes of other contexts are searched over this many commits; beyond that a fold, perhaps cached, is closer."""


class IndexUpdate:
    """Updates one index."""

    __slots__ = ("_column", "_history")

    def __init__(self, column: Column, history: History) -> None:
        self._column = column
        self._history = history

    def view(self, own: IndexView | None, tip: bytes, seeds: Seeds) -> IndexView:
        """Return the context of a commit, given this index and others."""
        with paused:
            return self._view(own, tip, seeds)

    def _view(self, own: IndexView | None, tip: bytes, seeds: Seeds) -> IndexView:
        steps = None if own is None else self._steps_since(own, tip)
        views = [] if own is None else [own]
        seed = own
        if steps is None:
            views += seeds()
            steps, seed = self._steps_since_any(views, tip)
        appends = [step for step in reversed(steps) if step is not None]
        if len(appends) == len(steps):
            try:
                view = self._extended(own, seed, appends, tip)
                return view if seed else replace(view, only_appends=True)
            except UnknownError:
                pass
        return self._folded(tip, views[0] if views else None)

    def _steps_since(self, own: IndexView, tip: bytes) -> list[AppendStep | None] | None:
        """Return the commits from this index to a commit, newest first; None if there are more than a few."""
        found: list[AppendStep | None] = []
        oid: bytes | None = tip
        while oid != own.tip:
            if oid is None or len(found) == NEAR:
                return None
            commit = self._history.read_commit(oid)
            found.append(step_of(oid, commit))
            oid = commit.parents[0] if commit.parents else None
        return found

    def _steps_since_any(
        self, views: Sequence[IndexView], tip: bytes
    ) -> tuple[list[AppendStep | None], IndexView | None]:
        """Return the commits since another index's context, newest first, and that context, or None.

        The last commit is None if there is something other than appends, or too many. Prefixes are tried at growing
        distances.
        """
        ends = {view.tip: view for view in reversed(views)}
        found: list[AppendStep | None] = []
        oid: bytes | None = tip
        due = 0
        while oid is not None:
            seed = ends.get(oid)
            if seed is None and len(found) == due:
                due = 4 * due or 1
                seed = next(filter(None, (prefix_of(view, oid) for view in views)), None)
            if seed is not None:
                return found, seed
            is_far = views and len(found) == FAR
            step = None if is_far else step_of(oid, self._history.read_commit(oid))
            found.append(step)
            oid = None if step is None else step.parent
        return found, None

    def _extended(
        self, own: IndexView | None, seed: IndexView | None, steps: Sequence[AppendStep], tip: bytes
    ) -> IndexView:
        """Return the view extended by appends; raises UnknownError if a fold is needed."""
        if seed is None:
            builder = Builder()
            builder.append(steps, lambda _: None)
            return self._written(tip, b"", builder)
        builder = Builder(seed.last, seed.records)
        builder.append(steps, seed.find)
        expected = form.HEADER_BYTES + seed.records * form.MESSAGE_BYTES
        if seed is own and seed.opened.append(expected, bytes(builder.data)):
            last = MessageRecord.unpack_from(builder.data, len(builder.data) - form.MESSAGE_BYTES)
            return IndexView(seed.opened, builder.count, last, seed.generation)
        records = _records(seed)
        if records is None:
            raise UnknownError
        return self._written(tip, records, builder)

    def _folded(self, tip: bytes, view: IndexView | None) -> IndexView:
        """Write the index of a commit from its fold, copying records of another index."""
        records = None if view is None else _records(view)
        measured = view.measured() if view is not None and records is not None else None
        state = self._history.fold(tip)
        return self._written(tip, *records_of_fold(tip, state, records or b"", measured))

    def _written(self, tip: bytes, records: bytes, builder: Builder) -> IndexView:
        """Write the index from existing and new records."""
        generation = digest(tip)[:16]
        header = Header(form.MESSAGES_MAGIC, form.MESSAGE_BYTES, generation)
        opened = self._column.replace(b"".join((header.pack(), records, builder.data)))
        data = builder.data or records
        last = MessageRecord.unpack_from(bytes(data[-form.MESSAGE_BYTES :]), 0)
        return IndexView(opened, builder.count, last, generation)


def _records(view: IndexView) -> bytes | None:
    """Return the records of a view for copying; None if one is damaged."""
    data = view.opened.read(form.HEADER_BYTES, view.records * form.MESSAGE_BYTES)
    try:
        form.check_records(data)
    except errors.CorruptIndexError:
        return None
    return data
