"""The messages of a context, each with what its commit knows of it.

Rule: reads commits along first parents, and no content.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from trace_store.context.compiled import CompiledContext, CompiledMessage
from trace_store.context.compiler import ContextCompiler
from trace_store.context.folding import Entry
from trace_store.context.index_records import LABELLED, MessageRecord, priority_flag
from trace_store.context.usage import Usage, normalise_usage
from trace_store.errors import InvalidInputError
from trace_store.exporters.contract import SKIPPED, Turn
from trace_store.objects import operations as ops
from trace_store.objects.address import Address
from trace_store.objects.commit import Commit
from trace_store.objects.message import FREEFORM, KINDS
from trace_store.oid import OID_BYTES, ObjectId

ANSWERER = "assistant"


def read_turns(
    contexts: ContextCompiler, context: CompiledContext, *, hidden: bool
) -> Iterator[Turn]:
    """Yield the messages of a context; with `hidden` also those that it hides, all in the order they were made."""
    messages: list[tuple[CompiledMessage, str]] = [(message, "") for message in context.messages]
    if hidden and context.commit is not None:
        messages = _with_hidden(contexts, context.commit, list(context.messages))
    reports = _reports(contexts, context.commit)
    # A report goes with the last answer that its commit made.
    reporting = {
        message.record.home_commit: message.address
        for message, _ in messages
        if message.role == ANSWERER
    }
    for message, why in messages:
        home, address = message.record.home_commit, message.address
        oid, number = _born_in(contexts, message.record)
        commit = contexts.read_commit(oid)
        reason, replaced = _origin(commit, number)
        yield Turn(
            message,
            oid,
            commit.time,
            commit.author,
            reports.get(home) if reporting.get(home) == address else None,
            reason,
            replaced,
            why,
        )


def _born_in(contexts: ContextCompiler, record: MessageRecord) -> tuple[ObjectId, int]:
    """Return the commit in which a message was born, and its number there; where it stands, if that is not here."""
    home = ObjectId(record.home_commit)
    if home.startswith(record.birth):
        return home, record.home_number
    found = contexts.store.objects.resolve_prefix(record.birth.hex())
    return (found[0], record.number) if found else (home, record.home_number)


def _with_hidden(
    contexts: ContextCompiler, tip: ObjectId, shown: Sequence[CompiledMessage]
) -> list[tuple[CompiledMessage, str]]:
    """Return the messages of a context and those it hides, as they were made, each with why it is hidden."""
    source = _HiddenSource(contexts)
    visible = iter(shown)
    made: dict[bytes, int] = {oid: n for n, oid in enumerate(chain_of(contexts, tip))}
    found: list[tuple[tuple[int, int], CompiledMessage, str]] = []
    # The latest commit has the number 0. What was carried from elsewhere stays behind its neighbour.
    key = (-len(made), 0)
    for position, entry in enumerate(contexts.fold(tip).entries):
        home, number = entry.home
        if home.startswith(entry.address.birth):
            key = (-made[home], number)
        # Of a ghost the context has its placeholder; here the message itself is told.
        standing = next(visible) if entry.visible else None
        if standing is not None and is_shown(entry):
            found.append((key, standing, ""))
            continue
        priority = ops.NORMAL if entry.priority == ops.SKIP else entry.priority
        kind = entry.message.get("kind")
        record = MessageRecord(
            *entry.address,
            *entry.home,
            *entry.place,
            flags=priority_flag(priority) | (LABELLED if entry.labels else 0),
            role=entry.message["role"],
            kind=kind if kind in KINDS else FREEFORM,
            tools=0,
            prefix=bytes(OID_BYTES),
            seen=bytes(OID_BYTES),
            ordinal=position + 1,
        )
        message = CompiledMessage.of(source, tip, record)
        found.append((key, message, entry.hidden or SKIPPED))
    found.sort(key=lambda each: each[0])
    return [(message, why) for _, message, why in found]


def chain_of(contexts: ContextCompiler, tip: ObjectId | None) -> Iterator[ObjectId]:
    """Yield a commit and those behind it along first parents, newest first."""
    while tip is not None:
        yield tip
        parents = contexts.read_commit(tip).parents
        tip = parents[0] if parents else None


def is_shown(entry: Entry) -> bool:
    """Tell whether a message stands in the context, with what it says."""
    return entry.visible and not entry.is_ghost


def _origin(commit: Commit, number: int) -> tuple[str, int]:
    """Return why a message that a commit adds stands in for others, and for how many."""
    for operation in commit.operations:
        count = ops.message_count(operation)
        if number < count:
            if operation.name != ops.REPLACE:
                break
            reason = operation.fields.get("reason", "")
            return reason or ops.REPLACE, len(operation.fields["targets"])
        number -= count
    return "", 0


def _reports(contexts: ContextCompiler, tip: ObjectId | None) -> dict[bytes, Usage]:
    """Return what providers reported, by the commit with the answer.

    A report may stand in the commit with the answer, or in one of its own behind it.
    """
    found: dict[bytes, Usage] = {}
    later: Usage | None = None
    for oid in chain_of(contexts, tip):
        commit = contexts.read_commit(oid)
        own = next((_usage(o.fields) for o in commit.operations if o.name == ops.USAGE), None)
        if any(message["role"] == ANSWERER for _, message in ops.added_messages(commit, oid)):
            report = own or later
            if report is not None:
                found[oid] = report
            later = None
        else:
            later = own or later
    return found


def _usage(fields: Mapping[str, Any]) -> Usage | None:
    try:
        return normalise_usage(fields)
    except InvalidInputError:
        return None  # written by hand, or by another version


class _HiddenSource:
    """Where messages read from that no context holds."""

    __slots__ = ("_contexts",)

    def __init__(self, contexts: ContextCompiler) -> None:
        self._contexts = contexts

    def read(self, oid: bytes) -> bytes:
        return self._contexts.store.objects.read(oid)

    def read_data(self, oids: Iterable[bytes]) -> Iterator[bytes]:
        return self._contexts.store.objects.read_data(oids)

    def read_commit(self, oid: bytes) -> Commit:
        return self._contexts.read_commit(oid)

    def labels(self, tip: bytes, address: Address) -> frozenset[str]:
        return self._contexts.fold(tip).entry(address).labels
