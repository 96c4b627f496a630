"""Planned commits as commits.

Rule: a function of the plan and of the ids that its earlier commits got; what comes out holds nothing of this machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trace_store.importers.contract import Place, PlannedCommit, PlannedMessage
from trace_store.objects import operations as ops
from trace_store.objects.codec import encode_text
from trace_store.objects.commit import Commit, Operation
from trace_store.objects.content import bytes_of
from trace_store.objects.direct import encode_commit, encode_message
from trace_store.objects.message import ROLES, Message, is_kind, store_message, store_parts
from trace_store.objects.parts import Part
from trace_store.oid import ObjectId
from trace_store.transcripts.sources import SOURCE_KEY, encode_source

RECORD_KEY = "record"
"""In a commit's metadata: the transcript's own id of what it was made from. Commits of an import have it."""

MAXIMUM_TARGETS = 10_000
"""Messages that one operation names; a list of a commit has a bound."""

Put = Callable[[bytes], ObjectId]
Address = tuple[bytes, int]
StoredMessage = dict[str, Any]
StoredParts = Callable[[Address], Sequence[Mapping[str, Any]]]


def encode_plain(
    planned: PlannedCommit, parent: ObjectId | None, put: Put, *, source: bool
) -> bytes | None:
    """Return the canonical bytes of a planned commit that adds messages and tells the usage, as most do.

    None of any other: it is made of its operations. What is put by then is what those put again.

    Args:
        planned: the commit.
        parent: its parent.
        put: stores a content and returns its id.
        source: whether raw records are kept.

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
    kept = put_source(planned, put) if source else None
    if not messages and not usage and kept is None:
        return None
    facts = b"\x81\xa6record" + encode_text(key)
    if kept is not None:
        facts = b"\x82" + facts[1:] + b"\xa6source\xc4\x20" + kept
    return encode_commit(parent, planned.author, planned.time, messages, usage, facts)


def own_operations(
    planned: PlannedCommit,
    put: Put,
    address: Callable[[Place], Address],
    about: ObjectId | None = None,
) -> list[Operation]:
    """Return the operations that bring a planned commit's own messages, and its usage.

    Args:
        planned: the commit.
        put: stores a content and returns its id.
        address: where an earlier message of the plan is.
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
    elif stored:
        operations.append(ops.append(stored))
    if planned.after is not None:
        here = [(ops.HERE, n) for n in range(len(stored))]
        operations.append(ops.move(here, after=address(planned.after)))
    neighbour: Address = (ops.HERE, len(stored) - 1)
    for start in range(0, len(planned.before), MAXIMUM_TARGETS):
        moved = [address(place) for place in planned.before[start : start + MAXIMUM_TARGETS]]
        operations.append(ops.move(moved, after=neighbour))
        neighbour = moved[-1]
    for number, message in enumerate(planned.messages):
        priority = ops.SKIP if message.skipped else message.priority
        if priority or message.labels:
            operations.append(
                ops.annotate(
                    [(ops.HERE, number)],
                    priority=priority or None,
                    labels=message.labels,
                )
            )
    if planned.usage:
        operations.append(ops.usage(planned.usage, about=about))
    return operations


def earlier_operations(
    planned: PlannedCommit, put: Put, address: Callable[[Place], Address], stored_parts: StoredParts
) -> list[Operation]:
    """Return the operations on messages before a planned commit: what it takes out, rewords and clears."""
    operations: list[Operation] = []
    if planned.removes:
        targets = [address(place) for place in planned.removes]
        operations += removal(targets)
    for place, worded in planned.edits:
        operations.append(ops.edit(address(place), store_parts(worded, put)))
    for place, calls in planned.clears:
        target = address(place)
        shown = [{"blob": put(bytes_of(planned.placeholder)), "type": "text"}]
        parts = [
            {**part, "parts": shown}
            if part.get("type") == "tool_result" and part.get("id") in calls
            else dict(part)
            for part in stored_parts(target)
        ]
        operations.append(ops.edit(target, parts))
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


def stored_message(message: PlannedMessage, put: Put) -> StoredMessage:
    """Return the stored form of a planned message."""
    role, parts, kind, model, id_, _, _, name, _ = message
    return store_message(Message(role, parts, kind=kind, name=name, model=model, id=id_), put)


def messages_of(commit: Commit) -> list[StoredMessage]:
    """Return the messages that a commit creates, in stored form, by their number."""
    return [
        message
        for operation in commit.operations
        if operation.name in ops.CREATES_MESSAGES
        for message in operation.fields["messages"]
    ]


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
