"""Operations on a context: their fields, and the messages they add and name.

Rule: constructors only build the stored form; `context/fold.py` applies operations. Which messages an operation adds or
names is decided here.

A target is an address `[birth, n]`; an empty birth means the commit that contains the operation. n numbers all messages
that a commit adds, new or carried, over all its operations.

Rule: pure functions of commits.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.objects.address import (
    BIRTH_BYTES,
    Address,
    read_address,
    read_addresses,
    resolve_calls,
)
from trace_store.objects.codec import unpack_unchecked
from trace_store.objects.commit import Commit, Operation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from trace_store.base.oid import ObjectId

    Stored = Mapping[str, Any]
    """A message in stored form."""
    AnyAddress = tuple[bytes, int]


ADD = "add"
EDIT = "edit"
ANNOTATE = "annotate"
REMOVE = "remove"
RESTORE = "restore"
REPLACE = "replace"
MOVE = "move"
TOOLS = "tools"
USAGE = "usage"
CONFIG = "config"
RECORDS = "records"
OPERATIONS = (
    ADD,
    EDIT,
    ANNOTATE,
    REMOVE,
    RESTORE,
    REPLACE,
    MOVE,
    TOOLS,
    USAGE,
    CONFIG,
    RECORDS,
)
ADDS_MESSAGES = (ADD, REPLACE)
LEAVES_CONTEXT = (USAGE, CONFIG, RECORDS)
"""Operations that do not change the compiled messages."""
_AT_END = (TOOLS, USAGE, CONFIG, RECORDS)

PINNED = "pinned"
IMPORTANT = "important"
NORMAL = "normal"
SKIP = "skip"
PRIORITIES = (PINNED, IMPORTANT, NORMAL, SKIP)

META = "meta"
SETTINGS = "settings"
MAXIMUM_NAME = 100
"""Maximum length of a fact's or setting's name."""

MAXIMUM_RECORD_NAME = 1000
"""Maximum length of a hidden record's name; programs form it from names of their own."""

BORN = "born"
"""The field of a carried message with its address."""
STATE = frozenset((BORN, "edits", "current", "hidden", "ghost", "priority", "labels", "keep"))
"""Fields of a carried message besides those of a new one."""


def add(messages: Sequence[Stored], *, after: AnyAddress | None = None) -> Operation:
    """Add stored messages, new or carried, after another message or at the end."""
    fields: dict[str, Any] = {} if after is None else {"after": _target(after)}
    fields["messages"] = list(messages)
    return Operation(ADD, fields)


def edit(target: AnyAddress, parts: Sequence[Mapping[str, Any]]) -> Operation:
    """Replace one message's parts; earlier versions stay readable."""
    return Operation(EDIT, {"parts": list(parts), "target": _target(target)})


def annotate(
    targets: Sequence[AnyAddress],
    *,
    priority: str | None = None,
    keep: Sequence[ObjectId] | None = None,
    labels: Sequence[str] = (),
    unlabels: Sequence[str] = (),
) -> Operation:
    """Set a priority, must-keep patterns (blobs) and labels.

    Raises:
        InvalidOperationError: unknown priority, an empty label, or nothing to set.
    """
    fields: dict[str, Any] = {"targets": _targets(targets)}
    if priority is not None:
        if priority not in PRIORITIES:
            raise errors.InvalidOperationError(
                f"unknown priority {priority[:40]!r}: one of {', '.join(PRIORITIES)}"
            )
        fields["priority"] = priority
    if keep is not None:
        fields["keep"] = list(keep)
    if labels:
        fields["labels"] = [_label(label) for label in labels]
    if unlabels:
        fields["unlabels"] = [_label(label) for label in unlabels]
    if len(fields) == 1:
        raise errors.InvalidOperationError("an annotation needs a priority, patterns or labels")
    return Operation(ANNOTATE, fields)


def remove(targets: Sequence[AnyAddress], *, ghost: bool = False) -> Operation:
    """Hide messages, with or without a ghost in their place."""
    fields: dict[str, Any] = {"targets": _targets(targets)}
    if ghost:
        fields["ghost"] = True
    return Operation(REMOVE, fields)


def restore(targets: Sequence[AnyAddress], *, version: int | None = None) -> Operation:
    """Show hidden messages again; with a version, also restore that version.

    Args:
        targets: the messages.
        version: 0 is the original, 1 the first edit, and so on.
    """
    fields: dict[str, Any] = {"targets": _targets(targets)}
    if version is not None:
        given: object = version
        if not isinstance(given, int) or given < 0:
            raise errors.InvalidOperationError("a version must be an integer from 0")
        fields["version"] = version
    return Operation(RESTORE, fields)


def replace(
    targets: Sequence[AnyAddress],
    messages: Sequence[Mapping[str, Any]],
    *,
    reason: str = "",
    model: str = "",
    prompt: ObjectId | None = None,
    sources: Sequence[AnyAddress] = (),
) -> Operation:
    """Replace messages by others at the position of the first one.

    Args:
        targets: the messages to replace.
        messages: the new messages in stored form; may be empty.
        reason: "compaction", "compression" or another reason.
        model: the model that wrote the new messages.
        prompt: the blob of that model's prompt.
        sources: the messages that the new ones were made from, if not the targets.
    """
    fields: dict[str, Any] = {"messages": list(messages), "targets": _targets(targets)}
    if reason:
        fields["reason"] = reason
    if model:
        fields["model"] = model
    if prompt is not None:
        fields["prompt"] = prompt
    if sources:
        fields["sources"] = _targets(sources)
    return Operation(REPLACE, fields)


def move(targets: Sequence[AnyAddress], *, after: AnyAddress | None) -> Operation:
    """Move messages, in the given order, after another one.

    None moves them to the start.
    """
    fields: dict[str, Any] = {"targets": _targets(targets)}
    if after is not None:
        fields["after"] = _target(after)
    return Operation(MOVE, fields)


def tools(schemas: Sequence[ObjectId]) -> Operation:
    """Set the tool schemas (blobs of JSON); an empty list removes all tools."""
    return Operation(TOOLS, {"schemas": list(schemas)})


def usage(counts: Mapping[str, int | str], *, about: ObjectId | None = None) -> Operation:
    """Record the usage that a provider reported.

    Args:
        counts: as far as known, `input_total`, `cache_read`, `cache_write`, `output_total`, `reasoning` (in tokens),
            `provider`, `model`, `renderer`, `renderer_version`, `sent` (hex hash of the request), `estimated` (Trace's
            count of the request when it was sent).
        about: the commit whose context was sent; None means the first parent.
    """
    fields: dict[str, Any] = dict(counts)
    if about is not None:
        fields["about"] = about
    return Operation(USAGE, fields)


def config(meta: Mapping[str, str], settings: Mapping[str, str]) -> Operation:
    """Record facts about the commit, and the generation settings of its messages.

    Raises:
        InvalidOperationError: a name is empty or too long, or both maps are empty.
    """
    fields: dict[str, Any] = {}
    for key, given in ((META, meta), (SETTINGS, settings)):
        for name in given:
            if not 0 < len(name) <= MAXIMUM_NAME:
                raise errors.InvalidOperationError(
                    f"a name must have 1 to {MAXIMUM_NAME} characters: {name[:40]!r}"
                )
        if given:
            fields[key] = dict(given)
    if not fields:
        raise errors.InvalidOperationError("nothing to record")
    return Operation(CONFIG, fields)


def records(values: Mapping[str, tuple[str, ObjectId]]) -> Operation:
    """Set the hidden records: for each name the type of its value, and the content or sequence that holds it.

    Raises:
        InvalidOperationError: a name is empty or too long.
    """
    for name in values:
        if not 0 < len(name) <= MAXIMUM_RECORD_NAME:
            raise errors.InvalidOperationError(
                f"a record's name must have 1 to {MAXIMUM_RECORD_NAME} characters: {name[:40]!r}"
            )
    stored = {
        name: {"content": content, "type": type_} for name, (type_, content) in values.items()
    }
    return Operation(RECORDS, {"values": stored})


def records_of(commit: Commit) -> dict[str, tuple[str, bytes]] | None:
    """Return the hidden records that a commit sets, as (type, content) by name; None if it sets none."""
    found = None
    for operation in commit.operations:
        if operation.name == RECORDS:
            values = operation.fields["values"]
            found = {name: (each["type"], each["content"]) for name, each in values.items()}
    return found


def facts_of(commit: Commit, key: str) -> dict[str, str]:
    """Return the facts (META) or the SETTINGS that a commit records."""
    facts: dict[str, str] = {}
    for operation in commit.operations:
        if operation.name == CONFIG:
            facts |= operation.fields.get(key, {})
    return facts


def message_count(operation: Operation) -> int:
    """Return how many messages an operation adds."""
    return len(operation.fields["messages"]) if operation.name in ADDS_MESSAGES else 0


def added_by(commit: Commit) -> int:
    """Return how many messages a commit adds."""
    return sum([message_count(operation) for operation in commit.operations])


def added_messages(commit: Commit, oid: bytes) -> Iterator[tuple[Address, Stored]]:
    """Yield (address, stored message) of the messages that a commit adds, in order."""
    for number, message in enumerate(stored_messages(commit)):
        yield address_of(message, oid, number), message


def stored_messages(commit: Commit) -> list[Stored]:
    """Return the messages that a commit adds, in order and in stored form."""
    found: list[Stored] = []
    for operation in commit.operations:
        if operation.name in ADDS_MESSAGES:
            found += operation.fields["messages"]
    return found


def messages_in(data: bytes) -> list[Stored]:
    """Return the messages that a commit adds, as `stored_messages` does, given its bytes.

    Its form is not checked: use it for a commit that was decoded before, such as each that a compile index names.

    Raises:
        CorruptObjectError: it is not such a commit.
    """
    found: list[Stored] = []
    try:
        for name, fields in unpack_unchecked(data)[1]["ops"]:
            if name in ADDS_MESSAGES:
                found += fields["messages"]
    except (TypeError, LookupError, ValueError) as error:
        raise errors.CorruptObjectError(f"not a valid commit: {error}") from error
    return found


def address_of(message: Stored, oid: bytes, number: int) -> Address:
    """Return the address of the stored message with this number in a commit."""
    born = message.get(BORN)
    return Address.of(oid, number) if born is None else read_address(born, oid)


def without_state(message: Stored) -> Stored:
    """Return a stored message without the state of a carried one."""
    if BORN not in message:
        return message
    return {key: value for key, value in message.items() if key not in STATE}


def with_current_parts(message: Stored) -> Stored:
    """Return a stored message with its current parts.

    A carried one may have several versions.
    """
    versions = [message["parts"], *message.get("edits", ())]
    return {**message, "parts": versions[message.get("current", -1)]}


def targets_of(operation: Operation, oid: bytes) -> list[Address]:
    """Return the messages that an operation of a commit has as targets."""
    fields = operation.fields
    named = [fields["target"]] if operation.name == EDIT else fields.get("targets", ())
    return read_addresses(named, oid)


def is_append(operation: Operation) -> bool:
    """Return True if an operation only adds at the end, in any context.

    A result may still belong to a hidden call; a caller that skips the fold must check that.
    """
    if operation.name == ADD:
        fields = operation.fields
        return "after" not in fields and all(BORN not in each for each in fields["messages"])
    return operation.name in _AT_END


def only_appends(commit: Commit) -> bool:
    """Return True if a commit only adds at the end and changes no earlier message."""
    return all(map(is_append, commit.operations))


def _target(address: AnyAddress) -> list[Any]:
    birth, number = address
    if len(birth) not in (0, BIRTH_BYTES) or number < 0:
        raise errors.InvalidOperationError(f"not an address: {birth.hex()}.{number}")
    return [bytes(birth), number]


def _targets(addresses: Sequence[AnyAddress]) -> list[list[Any]]:
    if len({(bytes(birth), number) for birth, number in addresses}) != len(addresses):
        raise errors.InvalidOperationError("an operation names a message twice")
    return [_target(address) for address in addresses]


def _label(label: str) -> str:
    if not label or len(label) > 100 or any(ord(c) < 33 or ord(c) == 127 for c in label):
        raise errors.InvalidOperationError(f"not a label: {label[:40]!r}")
    return label


def carried_operations(oid: bytes, commit: Commit) -> list[Operation]:
    """Return a commit's operations with full addresses, its messages as carried ones."""
    operations: list[Operation] = []
    number = 0
    for operation in commit.operations:
        fields: dict[str, Any] = dict(operation.fields)
        for name in ("targets", "sources"):
            if name in fields:
                fields[name] = [list(read_address(each, oid)) for each in fields[name]]
        for name in ("target", "after"):
            if name in fields:
                fields[name] = list(read_address(fields[name], oid))
        if operation.name == USAGE and commit.parents:
            fields.setdefault("about", commit.parents[0])  # the new commit may have another parent
            fields = dict(sorted(fields.items()))
        if operation.name == EDIT:
            fields["parts"] = resolve_calls(fields["parts"], oid)
        if operation.name in ADDS_MESSAGES:
            fields["messages"] = [
                _carry(stored, oid, number + n) for n, stored in enumerate(fields["messages"])
            ]
            number += len(fields["messages"])
        operations.append(Operation(operation.name, fields))
    return operations


def _carry(stored: Stored, oid: bytes, number: int) -> dict[str, Any]:
    carried = {
        **stored,
        BORN: list(address_of(stored, oid, number)),
        "parts": resolve_calls(stored["parts"], oid),
    }
    if "edits" in carried:
        carried["edits"] = [resolve_calls(parts, oid) for parts in carried["edits"]]
    return dict(sorted(carried.items()))
