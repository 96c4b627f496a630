"""Turn planned commits into commits.

Rule: a function of the plan and of the ids that its earlier commits got; what comes out holds nothing of this machine.

Rule: notes, and reads commits only where what is there differs from what was planned.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from trace_store.context.calls import Calls, link_wording
from trace_store.importers.contract import Place, PlannedCommit, PlannedMessage
from trace_store.objects import operations as ops
from trace_store.objects.address import HERE, Address
from trace_store.objects.codec import encode_text
from trace_store.objects.commit import Commit, Operation
from trace_store.objects.content import bytes_of
from trace_store.objects.fast_encode import encode_commit, encode_message
from trace_store.objects.message import ROLES, Message, is_kind, store_message, store_parts
from trace_store.objects.parts import Part, ToolCall, ToolResult
from trace_store.oid import ObjectId
from trace_store.transcripts.layout import Placed, record_hash
from trace_store.transcripts.records import Record
from trace_store.transcripts.reread import Pages
from trace_store.transcripts.sources import (
    SOURCE_KEY,
    content_numbers,
    encode_source,
    records_left,
    without_contents,
)

RECORD_KEY = "record"
"""In a commit's metadata: the transcript's own id of what it was made from. Commits of an import have it."""

MAXIMUM_TARGETS = 10_000
"""Messages that one operation names; a list of a commit has a bound."""

Put = Callable[[bytes], ObjectId]
AddressOf = Callable[[Place], Address]
StoredMessage = Mapping[str, Any]
StoredParts = Callable[[Place], Sequence[StoredMessage]]
"""Returns a message's parts as they were created, with whole addresses."""


class Spot(NamedTuple):
    """Where a message of the plan is: its address, and the commit that it stands in, as the message of this number."""

    address: Address
    commit: ObjectId
    number: int

    @classmethod
    def born(cls, commit: ObjectId, number: int) -> Spot:
        """Return the spot of a message that is in the commit in which it was born."""
        return cls(Address.of(commit, number), commit, number)


def linked(planned: PlannedCommit, calls: Calls, address: AddressOf) -> PlannedCommit:
    """Return a planned commit with the calls that its results answer; what it knows of them itself comes first."""
    for place, worded in planned.edits:
        note_calls(worded, address(place), calls)
    if not any(type(p) in (ToolCall, ToolResult) for m in planned.messages for p in m.parts):
        return planned
    given = {call: address(place) for call, place in planned.answers}
    messages = calls.link([_message(each, given) for each in planned.messages])
    return planned._replace(
        messages=tuple(
            before._replace(parts=message.parts)
            for before, message in zip(planned.messages, messages, strict=True)
        )
    )


def note_calls(parts: Sequence[Part], address: Address, calls: Calls) -> None:
    """Note the calls in another wording of a message."""
    for part in parts:
        if isinstance(part, ToolCall):
            calls.call(part.id, address)


def _message(message: PlannedMessage, given: Mapping[str, Address]) -> Message:
    parts = message.parts
    if given:
        parts = tuple(
            ToolResult(p.call_id, p.content, p.is_error, call=given.get(p.call_id))
            if isinstance(p, ToolResult)
            else p
            for p in parts
        )
    return Message(message.role, parts)


def encode_plain(
    planned: PlannedCommit, parent: ObjectId | None, put: Put, source: ObjectId | None
) -> bytes | None:
    """Return the canonical bytes of a planned commit that adds messages and tells the usage, as most do.

    None of any other: it is made of its operations. What is put by then is what those put again.

    Args:
        planned: the commit, with its results linked.
        parent: its parent.
        put: stores a content and returns its id.
        source: the id of its raw records, where they are kept.

    Raises:
        InvalidInputError: it holds what cannot be stored.
    """
    if planned.removes or planned.edits or planned.clears or planned.meta or planned.links:
        return None
    if planned.replaces is not None or planned.after is not None or planned.tools is not None:
        return None
    if planned.before:
        return None
    key, usage = planned.key, planned.usage
    if type(key) is not str:
        return None
    messages: list[bytes] = []
    for role, parts, kind, model, id_, labels, skipped, name, priority in planned.messages:
        if labels or skipped or priority or role not in ROLES or (kind and not is_kind(kind)):
            return None
        try:
            message = encode_message(role, parts, put, kind=kind, name=name, model=model, id=id_)
        except (AttributeError, TypeError):
            return (
                None  # an importer of another package gave what is no text; the slow way tells what
            )
        if message is None:
            return None
        messages.append(message)
    if not messages and not usage and source is None:
        return None
    facts = b"\x81\xa6record" + encode_text(key)
    if source is not None:
        facts = b"\x82" + facts[1:] + b"\xa6source\xc4\x20" + source
    return encode_commit(parent, planned.author, planned.time, messages, usage, facts)


def own_operations(
    planned: PlannedCommit, put: Put, address: AddressOf, about: ObjectId | None = None
) -> list[Operation]:
    """Return the operations that bring a planned commit's own messages, and its usage.

    Args:
        planned: the commit, with its results linked.
        put: stores a content and returns its id.
        address: the address of an earlier message of the plan.
        about: the commit whose context the usage measures; None is the one before.
    """
    operations: list[Operation] = []
    stored = [stored_message(message, put) for message in planned.messages]
    if planned.tools is not None:
        operations.append(ops.tools([put(schema) for schema in planned.tools]))
    if planned.replaces is not None:
        targets = [address(place) for place in planned.replaces]
        operations += removal(targets[:-MAXIMUM_TARGETS])
        targets = targets[-MAXIMUM_TARGETS:]
        operations.append(ops.replace(targets, stored, reason=planned.reason))
        if planned.after is not None:
            here = [(HERE, n) for n in range(len(stored))]
            operations.append(ops.move(here, after=address(planned.after)))
    elif stored:
        after = None if planned.after is None else address(planned.after)
        operations.append(ops.add(stored, after=after))
    # The last go first: behind the same neighbour, since a unit of them may not stand behind itself.
    for start in reversed(range(0, len(planned.before), MAXIMUM_TARGETS)):
        moved = [address(place) for place in planned.before[start : start + MAXIMUM_TARGETS]]
        operations.append(ops.move(moved, after=(HERE, len(stored) - 1)))
    for number, message in enumerate(planned.messages):
        priority = ops.SKIP if message.skipped else message.priority
        if priority or message.labels:
            operations.append(
                ops.annotate(
                    [(HERE, number)],
                    priority=priority or None,
                    labels=message.labels,
                )
            )
    if planned.usage:
        operations.append(ops.usage(planned.usage, about=about))
    return operations


def earlier_operations(
    planned: PlannedCommit, put: Put, address: AddressOf, stored_parts: StoredParts, calls: Calls
) -> list[Operation]:
    """Return the operations on messages before a planned commit: what it takes out, rewords and clears."""
    operations = removal([address(place) for place in planned.removes])
    for place, worded in planned.edits:
        parts = store_parts(worded, put)
        if any(isinstance(part, ToolResult) for part in worded):
            parts = link_wording(parts, [stored_parts(place)], calls.answer)
        operations.append(ops.edit(address(place), parts))
    for place, cleared in planned.clears:
        shown = [{"blob": put(bytes_of(planned.placeholder)), "type": "text"}]
        parts = [
            {**part, "parts": shown}
            if part.get("type") == ToolResult.type and part.get("id") in cleared
            else dict(part)
            for part in stored_parts(place)
        ]
        operations.append(ops.edit(address(place), parts))
    return operations


def removal(targets: Sequence[Address]) -> list[Operation]:
    """Return the operations that hide messages, however many."""
    starts = range(0, len(targets), MAXIMUM_TARGETS)
    return [ops.remove(targets[start : start + MAXIMUM_TARGETS]) for start in starts]


def make_commit(
    planned: PlannedCommit,
    operations: Sequence[Operation],
    parents: Sequence[ObjectId],
    source: ObjectId | None,
) -> Commit:
    """Return the commit of a planned one."""
    meta: dict[str, Any] = {RECORD_KEY: planned.key, **planned.meta}
    if source is not None:
        meta[SOURCE_KEY] = source
    if planned.meta:
        meta = dict(sorted(meta.items()))
    return Commit(parents, planned.author, planned.time, operations, meta=meta, links=planned.links)


def put_source(planned: PlannedCommit, put: Put) -> ObjectId | None:
    """Store the raw records of a planned commit and return the id to read them by; None when it has none."""
    if not planned.records:
        return None
    parts: list[Part] = [part for message in planned.messages for part in message.parts]
    return put(encode_source(planned.records, parts))


def stored_message(message: PlannedMessage, put: Put) -> dict[str, Any]:
    """Return the stored form of a planned message."""
    role, parts, kind, model, id_, _, _, name, _ = message
    return store_message(Message(role, parts, kind=kind, name=name, model=model, id=id_), put)


def messages_of(commit: Commit) -> list[StoredMessage]:
    """Return the messages that a commit adds, in stored form, by their number."""
    return [message for _, message in ops.added_messages(commit, HERE)]


def differs_in_source_only(one: Commit, other: Commit) -> bool:
    """Tell whether two commits are equal but for the raw records kept with them."""
    return (
        one.parents == other.parents
        and one.author == other.author
        and one.time == other.time
        and list(one.operations) == list(other.operations)
        and one.links == other.links
        and _facts(one) == _facts(other)
    )


def _facts(commit: Commit) -> dict[str, Any]:
    return {key: value for key, value in commit.meta.items() if key != SOURCE_KEY}


Read = Callable[[bytes], bytes]


class Placing:
    """The places of a file's records.

    Attributes:
        places: by offset in the file.
        pages: the file, as far as it was read this time.
        unsettled: the first offset of the records whose commits are of the unfinished end; None when there are none.
    """

    def __init__(self, places: dict[int, Placed] | None = None) -> None:
        self.places: dict[int, Placed] = {} if places is None else places
        self.unsettled: int | None = None
        self.pages: Pages | None = None
        self._settling = True

    def unsettle(self) -> None:
        """Take what is noted from here on for the unfinished end of the file."""
        self._settling = False

    def made(self, records: Sequence[Record], oid: ObjectId) -> None:
        """Note records that are, in this order, the source of a commit."""
        start = end = 0
        if self._settling and self.pages is not None:
            start, end = self.pages.start, self.pages.end  # what `covers` asks for
        for number, record in enumerate(records):
            offset, length = record.offset, record.length
            if start <= offset and offset + length <= end and not record.filtered:
                self.places[offset] = Placed(length, oid, number)
            else:
                self._note(record, oid, number)

    def shared(self, planned: PlannedCommit, oid: ObjectId, commit: Commit, read: Read) -> None:
        """Note the records of a planned commit for which another stands, with other records but the same messages."""
        numbers = content_numbers([p for message in planned.messages for p in message.parts])
        for record in self._found(planned.records, oid, commit, read):
            raw = without_contents(record, numbers)
            if raw != record.raw:
                self._note(record, oid, None, raw)

    def spread(self, records: Sequence[Record], commits: Iterable[ObjectId], read: Read) -> None:
        """Note records that some of these commits hold."""
        left: Sequence[Record] = records
        for oid in commits:
            left = self._found(left, oid, Commit.decode(read(oid)), read)

    def _found(
        self, records: Sequence[Record], oid: ObjectId, commit: Commit, read: Read
    ) -> list[Record]:
        """Note the records that are in a commit's source, and return the others."""
        held = {raw: number for number, raw in enumerate(records_left(commit, read))}
        left = []
        for record in records:
            number = held.get(record.raw)
            if number is None:
                left.append(record)
            else:
                self._note(record, oid, number)
        return left

    def _note(self, record: Record, oid: ObjectId, number: int | None, raw: bytes = b"") -> None:
        kept = record.raw if record.filtered else None
        offset, length = record.offset, record.length
        # Its page tells whether the file still holds it.
        noted = kept is not None or (self.pages is not None and self.pages.covers(offset, length))
        known = b"" if noted else record_hash(record.raw)
        self.places[offset] = Placed(length, oid, number, raw, kept, known)
        if not self._settling and (self.unsettled is None or offset < self.unsettled):
            self.unsettled = offset

    def save(self, begin: int) -> list[list[Any]] | None:
        """Return the settled places from an offset on as values that JSON knows; None when the file has changed."""
        end = self.unsettled
        saved: list[list[Any]] = []
        for offset in sorted(self.places):
            if offset < begin or (end is not None and offset >= end):
                continue
            length, commit, number, raw, kept, known = self.places[offset]
            if not known and kept is None and self.pages is not None:
                data, as_read = self.pages.again(offset, length)
                if not as_read:
                    return None
                known = record_hash(data)
            saved.append(
                [offset, length, str(commit), number, _text(raw), _text(kept), known.hex()]
            )
        return saved


def load_places(saved: Iterable[Sequence[Any]]) -> dict[int, Placed]:
    """Return what was saved.

    Raises:
        InvalidInputError, TypeError, ValueError: it was not saved by this version.
    """
    places = {}
    for offset, length, oid, number, raw, kept, known in saved:
        if not (_counts(offset) and _counts(length) and (number is None or _counts(number))):
            raise ValueError("a number expected")
        commit = ObjectId.parse(oid)
        places[offset] = Placed(
            length, commit, number, _bytes(raw) or b"", _bytes(kept), bytes.fromhex(known)
        )
    return places


def _counts(value: object) -> bool:
    return isinstance(value, int) and value >= 0


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b85encode(data).decode("ascii")


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b85decode(text)
