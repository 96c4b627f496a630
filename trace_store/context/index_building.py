"""Making the records of an index: from commits that append, and from a fold.

Rule: what appends make equals what a fold makes, message by message. Commits that fit a mould are read in place, and
the others by the decoder.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.context import index_records as form
from trace_store.context.folding import Entry, Fold, is_append_only, is_measured
from trace_store.context.index_records import START, MessageRecord
from trace_store.context.wording import prefix_after, prefix_after_ghost
from trace_store.objects import operations as ops
from trace_store.objects.commit import Commit, read_commit
from trace_store.objects.message import KINDS, ROLES
from trace_store.objects.moulds import MessagePlan, Mould, Moulds
from trace_store.oid import digest
from trace_store.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from trace_store.context.folding import Address
    from trace_store.objects.commit import Operation

    Read = Callable[[bytes], bytes]

MAXIMUM_STEPS = 256
"""So many commits behind it an index is derived from what it was; beyond, it is made anew."""
_SEEN = b"\x92\xa7message\x83\xa4name"
_ROLES = {
    role: (number, bytes((0xA0 + len(role),)) + role.encode()) for number, role in enumerate(ROLES)
}
_KINDS = {kind: number for number, kind in enumerate(KINDS)}
_FREEFORM = _KINDS["freeform"]
_MARKS = form.IS_PINNED | form.IS_IMPORTANT
_PRIORITIES = (ops.PINNED, ops.IMPORTANT, ops.NORMAL)


class UnknownError(Exception):
    """Only a fold of the whole history can tell."""


@value
class Step:
    """A commit on the way to a context: its id and bytes, and its form or, where it has none, what the decoder says."""

    oid: bytes
    data: bytes
    mould: Mould | None
    commit: Commit | None

    @property
    def parent(self) -> bytes | None:
        """The id of the first parent."""
        if self.mould is not None:
            return None if self.mould.parent is None else self.data[self.mould.parent]
        assert self.commit is not None
        return self.commit.parents[0] if self.commit.parents else None

    @property
    def only_adds(self) -> bool:
        """Whether it only adds at the end, be it messages of another parent."""
        return self.mould is not None or all(
            each.name in ops.ADDS_AT_END
            or (each.name == ops.INCLUDE and each.fields.get("after") is None)
            for each in self.decoded().operations
        )

    @property
    def only_appends(self) -> bool:
        """Whether it leaves all earlier messages as they are."""
        return self.mould is not None or is_append_only(self.decoded())

    def decoded(self) -> Commit:
        """Return the commit."""
        return self.commit or Commit.decode(self.data)


@value
class AppendRun:
    """Commits that only append, up to a tip, oldest first.

    Attributes:
        commits: without the commit the run stops at.
        since: the wanted commit when the run got there, else None.
        reaches_root: whether the run is the whole history.
        stopped: the commit the run stops at, None at the root.
    """

    commits: Sequence[Step]
    since: bytes | None
    reaches_root: bool
    stopped: bytes | None


def append_run(
    tip: bytes, since: bytes | None, read: Read, moulds: Moulds, at_most: int = 0
) -> AppendRun:
    """Return the run of appends that ends at a tip, stopping at `since` when it is met, or after `at_most` (0: all).

    Raises:
        ObjectNotFoundError, CorruptObjectError: a commit is not here, or is damaged or none.
    """
    found: list[Step] = []
    oid: bytes | None = tip
    while oid is not None and oid != since and not 0 < at_most <= len(found):
        step = read_step(oid, read, moulds)
        if not step.only_appends:
            break
        found.append(step)
        oid = step.parent
    found.reverse()
    return AppendRun(found, since if oid == since else None, oid is None, oid)


def steps_since(
    since: bytes | None, run: AppendRun, read: Read, moulds: Moulds, at_most: int = MAXIMUM_STEPS
) -> list[Step] | None:
    """Return all commits that lead from one to the end of a run; None when they are too many, or do not lead there."""
    found: list[Step] = []
    oid = run.stopped
    while oid != since:
        if oid is None or len(found) == at_most:
            return None
        found.append(read_step(oid, read, moulds))
        oid = found[-1].parent
    found.reverse()
    return [*found, *run.commits]


def read_step(oid: bytes, read: Read, moulds: Moulds) -> Step:
    """Return a commit as a step; raises as `append_run`."""
    data = read(oid)
    mould = moulds.find(data)
    return Step(oid, data, mould, None if mould else read_commit(oid, {oid: data}.__getitem__))


def seen_in_place(commit: bytes, plan: MessagePlan) -> bytes:
    """Return what `seen_of` returns of a message of a commit, of whose role it is known that it is one of ROLES."""
    # The canonical bytes of the parts are those that stand in the commit.
    name = b"\xa0" if plan.name_span is None else commit[plan.name_span]
    return b"".join(
        (_SEEN, name, b"\xa5parts", commit[plan.span], b"\xa4role", _ROLES[plan.role][1])
    )


class Builder:
    """Makes records behind those there are.

    Attributes:
        last: the last record, None when there is none.
        count: how many records there are, those before it included.
        head: records before those that were made, to the byte, as far as they are at hand.
        data: the records that were made, to the byte.
        kept: how many records at the beginning are those that there were, and end the same commits; -1 when none does.
    """

    def __init__(
        self,
        last: MessageRecord | None = None,
        count: int = 0,
        head: bytes | bytearray | memoryview = b"",
    ) -> None:
        self.kept = count
        self.last = last
        self.count = count
        self.head = head
        self.data = bytearray()

    def append(
        self,
        commits: Iterable[Step],
        included: Callable[[Commit], Mapping[Address, Entry]] = lambda _: {},
    ) -> None:
        """Add the records of commits that only add at the end; `included` gives what they bring of other parents."""
        for commit in commits:
            if commit.mould is not None and commit.mould.messages:
                self._append_moulded(commit, commit.mould)
            else:
                decoded = commit.decoded()
                brought = included(decoded)
                for record in records_at_end(self.last, self.count, commit.oid, decoded, brought):
                    self.add(record)

    def add(self, record: MessageRecord) -> None:
        """Add a record."""
        self.data += record.pack()
        self.last = record
        self.count += 1

    def _append_moulded(self, commit: Step, mould: Mould) -> None:
        oid, data, last = commit.oid, commit.data, self.last
        prefix, ordinal, tools, measured = START, 0, 0, 0
        if last is not None:
            prefix, ordinal = last.prefix, last.ordinal
            tools, measured = last.tools, last.measured
        end = len(mould.messages) - 1
        for number, plan in enumerate(mould.messages):
            if plan.role not in _ROLES:
                raise _unknown_role(plan.role)
            role = _ROLES[plan.role][0]
            ordinal += 1
            prefix = digest(prefix + seen_in_place(data, plan))
            flags = 0
            if number == end:
                flags = form.END
                measured = self.count + end + 1 if mould.is_measured else measured
            kind = _KINDS.get(plan.kind, _FREEFORM)
            self.data += form.pack_created(
                oid, number, flags, role, kind, tools, prefix, ordinal, measured
            )
        self.count += end + 1
        self.last = MessageRecord.unpack_from(bytes(self.data[-form.MESSAGE_BYTES :]), 0)


def records_at_end(
    last: MessageRecord | None,
    number: int,
    oid: bytes,
    commit: Commit,
    included: Mapping[Address, Entry],
) -> list[MessageRecord]:
    """Return the records that a commit adds after `last`, whose successor has this number.

    `included` are the messages that it brings of other parents.
    """
    ordinal = last.ordinal if last else 0
    prefix = last.prefix if last else START
    tools, measured = (last.tools, last.measured) if last else (0, 0)
    records: list[MessageRecord] = []
    if any(operation.name == ops.TOOLS for operation in commit.operations):
        tools = number + 1
        records.append(marker_record(oid, form.TOOLS, tools, prefix, ordinal, measured))
    for entry in _added(oid, commit, included):
        ordinal += 1
        prefix = _prefix_after(prefix, entry)
        records.append(made_record(entry, tools, prefix, ordinal, measured))
    if not records or records[-1].commit != oid:
        records.append(marker_record(oid, 0, tools, prefix, ordinal, measured))
    if is_measured(commit):
        measured = number + len(records)
    records[-1] = records[-1].ended(measured)
    return records


def _added(oid: bytes, commit: Commit, included: Mapping[Address, Entry]) -> Iterator[Entry]:
    """Yield the visible messages that a commit adds at the end."""
    created = 0
    left = dict(included)
    for operation in commit.operations:
        if operation.name == ops.APPEND:
            for message in operation.fields["messages"]:
                yield Entry((oid, created), message)
                created += 1
        elif operation.name == ops.INCLUDE:
            for made, n in operation.fields["targets"]:
                entry = left.pop((bytes(made), n), None)
                if entry is not None and entry.visible:
                    yield entry


def records_of_fold(tip: bytes, state: Fold) -> list[MessageRecord]:
    """Return the records of the context of a commit."""
    records: list[MessageRecord] = []
    prefix, tools, measured = START, 0, 0
    measuring, tools_then = (None, None) if state.measured is None else state.measured
    if measuring is not None and measuring != tip:
        if tools_then is not None:
            tools = 1
            records.append(marker_record(tools_then, form.TOOLS, tools, prefix, 0, 0))
        measured = len(records) + 1
        records.append(marker_record(measuring, form.CARRIED, tools, prefix, 0, measured))
    if state.tools_commit is not None and not (measured and state.tools_commit == tools_then):
        tools = len(records) + 1
        records.append(marker_record(state.tools_commit, form.TOOLS, tools, prefix, 0, measured))
    ordinal = 0
    for entry in state.visible():
        ordinal += 1
        prefix = _prefix_after(prefix, entry)
        records.append(made_record(entry, tools, prefix, ordinal, measured))
    records.append(marker_record(tip, 0, tools, prefix, ordinal, measured))
    records[-1] = records[-1].ended(len(records) if measuring == tip else measured)
    return records


def flags_after(flags: int, operation: Operation) -> int:
    """Return the flags of a record after a mark.

    Raises:
        UnknownError: only a fold can tell what is left, or the priority is none that this version knows.
    """
    fields = operation.fields
    priority = fields.get("priority")
    if priority is not None:
        if priority not in _PRIORITIES:
            raise UnknownError
        flags = flags & ~_MARKS | form.priority_flag(priority)
    added = set(fields.get("labels", ())) - set(fields.get("unlabels", ()))
    if added or fields.get("keep"):
        return flags | form.LABELLED
    if flags & form.LABELLED and (fields.get("unlabels") or "keep" in fields):
        raise UnknownError  # others may be left
    return flags


def made_record(
    entry: Entry, tools: int, prefix: bytes, ordinal: int, measured: int = 0
) -> MessageRecord:
    """Return the record of a message.

    Raises:
        UnsupportedFormatError: its role is none that this version knows.
    """
    flags = form.priority_flag(entry.priority) if entry.priority != ops.SKIP else 0
    if entry.is_ghost:
        flags |= form.GHOST
    if entry.current:
        flags |= form.EDITED
    if entry.labels or entry.keep:
        flags |= form.LABELLED
    role, kind = entry.message["role"], entry.message.get("kind")
    if role not in ROLES:
        raise _unknown_role(role)
    return MessageRecord(
        *entry.address,
        *entry.place,
        flags,
        role,
        kind if kind in KINDS else "freeform",
        tools,
        prefix,
        ordinal,
        measured,
    )


def marker_record(
    commit: bytes, flags: int, tools: int, prefix: bytes, ordinal: int, measured: int
) -> MessageRecord:
    """Return a marker."""
    flags |= form.MARKER
    return MessageRecord(
        commit, 0, commit, 0, flags, "user", "freeform", tools, prefix, ordinal, measured
    )


def carried_record(
    record: MessageRecord, tools: int, prefix: bytes, ordinal: int, measured: int
) -> MessageRecord:
    """Return a marker for the commit that a record ends, or is a marker for.

    It keeps how many messages the context had there, and their prefix hash: the columns of tokens know their total.
    """
    count, then = record.ordinal, record.prefix
    if record.flags & form.CARRIED:
        count, then = record.number, record.place_commit
    flags = form.MARKER | form.CARRIED
    return MessageRecord(
        record.commit, count, then, 0, flags, "user", "freeform", tools, prefix, ordinal, measured
    )


def _prefix_after(prefix: bytes, entry: Entry) -> bytes:
    return prefix_after_ghost(prefix, entry) if entry.is_ghost else prefix_after(prefix, entry)


def _unknown_role(role: str) -> errors.UnsupportedFormatError:
    return errors.UnsupportedFormatError(
        f"a message has the unknown role {role!r}", required="role"
    )
