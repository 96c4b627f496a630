"""Conversion of planned commits to commits.

Invariant: depends only on the plan and the ids of its earlier commits; nothing of this machine enters a commit.
`RecordPlaces` reads a commit only if it differs from the planned one.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from trace_store.base.oid import ObjectId
from trace_store.context.calls import Calls, link_version
from trace_store.importers.contract import Place, PlannedCommit, PlannedMessage
from trace_store.objects import operations as ops
from trace_store.objects.address import HERE, Address
from trace_store.objects.codec import encode_text
from trace_store.objects.commit import Commit, Operation
from trace_store.objects.content import bytes_of
from trace_store.objects.fast_encode import encode_commit, encode_message
from trace_store.objects.message import ROLES, Message, is_kind, store_message, store_parts
from trace_store.objects.parts import Part, ToolCall, ToolResult
from trace_store.transcripts.layout import Pages, RecordPlace, record_hash
from trace_store.transcripts.sources import (
    SOURCE_KEY,
    Record,
    compact_record,
    content_numbers,
    encode_source,
    records_unless_purged,
)

RECORD_KEY = "record"
"""Metadata key: the transcript's own id of an imported commit."""

MAXIMUM_TARGETS = 10_000
"""Messages per operation, below the limit of list lengths."""

Put = Callable[[bytes], ObjectId]
AddressOf = Callable[[Place], Address]
StoredMessage = Mapping[str, Any]
StoredParts = Callable[[Place], Sequence[StoredMessage]]
"""Returns the stored parts of a message as created, with absolute addresses."""


class MessageLocation(NamedTuple):
    """Address of a planned message, and the commit and number where it is stored."""

    address: Address
    commit: ObjectId
    number: int

    @classmethod
    def at_birth(cls, commit: ObjectId, number: int) -> MessageLocation:
        """Return the location of a message in its birth commit."""
        return cls(Address.of(commit, number), commit, number)


def link_calls(planned: PlannedCommit, calls: Calls, address: AddressOf) -> PlannedCommit:
    """Return a planned commit whose results name their calls."""
    for place, parts in planned.edits:
        note_calls(parts, address(place), calls)
    before = [message.parts for message in planned.messages]
    if not any(type(part) in (ToolCall, ToolResult) for parts in before for part in parts):
        return planned
    if planned.answers:
        given = {call: address(place) for call, place in planned.answers}
        before = [_with_calls(parts, given) for parts in before]
    linked = calls.link_parts(before)
    pairs = list(zip(planned.messages, linked, strict=True))
    if all(parts is message.parts for message, parts in pairs):
        return planned
    return planned._replace(
        messages=tuple([message._replace(parts=tuple(parts)) for message, parts in pairs])
    )


def note_calls(parts: Sequence[Part], address: Address, calls: Calls) -> None:
    """Register the calls in a new version of a message."""
    for part in parts:
        if isinstance(part, ToolCall):
            calls.call(part.id, address)


def _with_calls(parts: Sequence[Part], given: Mapping[str, Address]) -> tuple[Part, ...]:
    return tuple(
        ToolResult(p.call_id, p.content, p.is_error, call=given.get(p.call_id))
        if isinstance(p, ToolResult)
        else p
        for p in parts
    )


def encode_plain(
    planned: PlannedCommit, parent: ObjectId | None, put: Put, source: ObjectId | None
) -> bytes | None:
    """Return the bytes of a commit that only adds messages and usage, else None.

    If this returns None, the commit is built from operations, which store the same contents.

    Args:
        planned: the commit, with linked results.
        parent: its parent.
        put: stores a content and returns its id.
        source: id of its raw records, if stored.

    Raises:
        InvalidInputError: a message cannot be stored.
    """
    if planned.removes or planned.edits or planned.clears or planned.meta or planned.links:
        return None
    if planned.replaces is not None or planned.after is not None or planned.tools is not None:
        return None
    if planned.before or planned.facts:
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
            return None  # wrong types from an external importer; the slow path reports them
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
    """Return the operations for a planned commit's own messages and usage.

    Args:
        planned: the commit, with linked results.
        put: stores a content and returns its id.
        address: returns the address of an earlier planned message.
        about: the commit whose context the usage describes; None is the parent.
    """
    operations: list[Operation] = []
    stored = [stored_message(message, put) for message in planned.messages]
    if planned.tools is not None:
        operations.append(ops.tools([put(schema) for schema in planned.tools]))
    if planned.replaces is not None:
        targets = [address(place) for place in planned.replaces]
        operations += remove_operations(targets[:-MAXIMUM_TARGETS])
        targets = targets[-MAXIMUM_TARGETS:]
        operations.append(ops.replace(targets, stored, reason=planned.reason))
        if planned.after is not None:
            own_messages = [(HERE, n) for n in range(len(stored))]
            operations.append(ops.move(own_messages, after=address(planned.after)))
    elif stored:
        after = None if planned.after is None else address(planned.after)
        operations.append(ops.add(stored, after=after))
    # Last first: each batch moves behind the same message, so order is kept.
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
    if planned.facts:
        operations.append(ops.config(planned.facts, {}))
    return operations


def earlier_operations(
    planned: PlannedCommit, put: Put, address: AddressOf, stored_parts: StoredParts, calls: Calls
) -> list[Operation]:
    """Return the operations on earlier messages: removals, edits and cleared results."""
    operations = remove_operations([address(place) for place in planned.removes])
    for place, new_parts in planned.edits:
        parts = store_parts(new_parts, put)
        if any(isinstance(part, ToolResult) for part in new_parts):
            parts = link_version(parts, [stored_parts(place)], calls.answer)
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


def remove_operations(targets: Sequence[Address]) -> list[Operation]:
    """Return the operations that remove messages, in batches."""
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
    """Store the raw records of a planned commit.

    Return their id, or None if there are none.
    """
    if not planned.records:
        return None
    parts: list[Part] = [part for message in planned.messages for part in message.parts]
    return put(encode_source(planned.records, parts))


def stored_message(message: PlannedMessage, put: Put) -> dict[str, Any]:
    """Return the stored form of a planned message."""
    role, parts, kind, model, id_, _, _, name, _ = message
    return store_message(Message(role, parts, kind=kind, name=name, model=model, id=id_), put)


def messages_of(commit: Commit) -> list[StoredMessage]:
    """Return the messages that a commit adds, in stored form."""
    return [message for _, message in ops.added_messages(commit, HERE)]


def equal_except_source(one: Commit, other: Commit) -> bool:
    """Return True if two commits differ in nothing but their raw records."""
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


class RecordPlaces:
    """Places of a file's records in commits.

    Attributes:
        places: by offset in the file.
        pages: pages of the file read in this import.
        tail: offsets of the records of the unfinished end, which the next import notes again.
    """

    def __init__(self, places: dict[int, RecordPlace] | None = None) -> None:
        self.places: dict[int, RecordPlace] = {} if places is None else places
        self.tail: set[int] = set()
        self.pages: Pages | None = None
        self._is_settled = True

    def begin_tail(self) -> None:
        """Treat records noted from now on as the unfinished end of the file."""
        self._is_settled = False

    def note_source(self, records: Sequence[Record], oid: ObjectId) -> None:
        """Note records that are the source of a commit, in this order."""
        start = end = 0
        if self._is_settled and self.pages is not None:
            start, end = self.pages.start, self.pages.end  # inlined `covers`
        for number, record in enumerate(records):
            offset, length = record.offset, record.length
            if start <= offset and offset + length <= end and not record.filtered:
                self.places[offset] = RecordPlace(length, oid, number)
            else:
                self._note(record, oid, number)

    def note_equivalent(
        self, planned: PlannedCommit, oid: ObjectId, commit: Commit, read: Read
    ) -> None:
        """Note the records of a planned commit that an equal commit represents."""
        numbers = content_numbers([p for message in planned.messages for p in message.parts])
        for record in self._note_matching(planned.records, oid, commit, read):
            raw = compact_record(record, numbers)
            if raw != record.raw:
                self._note(record, oid, None, raw)

    def note_existing(
        self, records: Sequence[Record], commits: Iterable[ObjectId], read: Read
    ) -> None:
        """Note the records that existing commits hold."""
        rest: Sequence[Record] = records
        for oid in commits:
            rest = self._note_matching(rest, oid, Commit.decode(read(oid)), read)

    def _note_matching(
        self, records: Sequence[Record], oid: ObjectId, commit: Commit, read: Read
    ) -> list[Record]:
        """Note the records in a commit's source; return the others."""
        held = {raw: number for number, raw in enumerate(records_unless_purged(commit, read))}
        rest = []
        for record in records:
            number = held.get(record.raw)
            if number is None:
                rest.append(record)
            else:
                self._note(record, oid, number)
        return rest

    def _note(self, record: Record, oid: ObjectId, number: int | None, raw: bytes = b"") -> None:
        kept = record.raw if record.filtered else None
        offset, length = record.offset, record.length
        # If a page covers it, the page hash detects changes.
        noted = kept is not None or (self.pages is not None and self.pages.covers(offset, length))
        known = b"" if noted else record_hash(record.raw)
        self.places[offset] = RecordPlace(length, oid, number, raw, kept, known)
        if not self._is_settled:
            self.tail.add(offset)

    def save(self, begin: int) -> list[list[Any]] | None:
        """Return the settled places from an offset on as JSON values.

        None if the file changed.
        """
        saved: list[list[Any]] = []
        for offset in sorted(self.places.keys() - self.tail):
            if offset < begin:
                continue
            length, commit, number, raw, kept, known = self.places[offset]
            if not known and kept is None and self.pages is not None:
                data, as_read = self.pages.reread(offset, length)
                if not as_read:
                    return None
                known = record_hash(data)
            saved.append(
                [offset, length, str(commit), number, _text(raw), _text(kept), known.hex()]
            )
        return saved


def load_places(saved: Iterable[Sequence[Any]]) -> dict[int, RecordPlace]:
    """Return the saved places.

    Raises:
        InvalidInputError, TypeError, ValueError: the data is from another version.
    """
    places = {}
    for offset, length, oid, number, raw, kept, known in saved:
        if not (_is_count(offset) and _is_count(length) and (number is None or _is_count(number))):
            raise ValueError("not a count")
        commit = ObjectId.parse(oid)
        places[offset] = RecordPlace(
            length, commit, number, _bytes(raw) or b"", _bytes(kept), bytes.fromhex(known)
        )
    return places


def _is_count(value: object) -> bool:
    return isinstance(value, int) and value >= 0


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b85encode(data).decode("ascii")


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b85decode(text)
