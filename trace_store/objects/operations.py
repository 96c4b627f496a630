"""Operations on a context: their fields, and the messages that each adds and names.

Constructors return the stored form. This module says what an operation adds and names; `context/fold.py` says what it
does.

A target is an address, `[birth, n]`; an empty birth means the operation's own commit. n counts all messages that a
commit adds, over all its operations in order, new or carried.

Rule: pure functions of commits.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.objects.address import (
    BIRTH_BYTES,
    Address,
    absolute,
    read_address,
    read_addresses,
)
from trace_store.objects.commit import Commit, Operation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from trace_store.oid import ObjectId

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
)
ADDS_MESSAGES = (ADD, REPLACE)
LEAVES_CONTEXT = (USAGE, CONFIG)
"""Operations after which the compiled messages are the same."""
_AT_END = (TOOLS, USAGE, CONFIG)

PINNED = "pinned"
IMPORTANT = "important"
NORMAL = "normal"
SKIP = "skip"
PRIORITIES = (PINNED, IMPORTANT, NORMAL, SKIP)

META = "meta"
SETTINGS = "settings"
MAXIMUM_NAME = 100
"""Characters of the name of a fact or a setting."""

BORN = "born"
"""The field of a carried message that holds its address."""
STATE = frozenset((BORN, "edits", "current", "hidden", "ghost", "priority", "labels", "keep"))
"""What a carried message says besides what was created."""


def add(messages: Sequence[Stored], *, after: AnyAddress | None = None) -> Operation:
    """Add stored messages, new ones or such as are carried from elsewhere, behind a neighbour or at the end."""
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
        raise errors.InvalidOperationError("an annotation sets a priority, patterns or labels")
    return Operation(ANNOTATE, fields)


def remove(targets: Sequence[AnyAddress], *, ghost: bool = False) -> Operation:
    """Hide messages, leaving a ghost in their place or nothing."""
    fields: dict[str, Any] = {"targets": _targets(targets)}
    if ghost:
        fields["ghost"] = True
    return Operation(REMOVE, fields)


def restore(targets: Sequence[AnyAddress], *, version: int | None = None) -> Operation:
    """Show hidden messages at their place again; with a version also go back to that wording.

    Args:
        targets: the messages.
        version: 0 is the wording as first written, 1 the first edit, and so on.
    """
    fields: dict[str, Any] = {"targets": _targets(targets)}
    if version is not None:
        given: object = version
        if not isinstance(given, int) or given < 0:
            raise errors.InvalidOperationError("a version is counted from 0")
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
    """Let a set of messages become zero or more others, which stand where the first of the set stood.

    Args:
        targets: the messages that are replaced.
        messages: their replacement, in stored form.
        reason: "compaction", "compression" or another word for it.
        model: the model that wrote the replacement.
        prompt: the blob of what it was asked.
        sources: messages that the replacement was made from, when they are not just the targets.
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
    """Place messages, in the given order, after a neighbour; None puts them first."""
    fields: dict[str, Any] = {"targets": _targets(targets)}
    if after is not None:
        fields["after"] = _target(after)
    return Operation(MOVE, fields)


def tools(schemas: Sequence[ObjectId]) -> Operation:
    """Set the tool schemas the model is offered, each a blob of JSON; an empty list offers none."""
    return Operation(TOOLS, {"schemas": list(schemas)})


def usage(counts: Mapping[str, int | str], *, about: ObjectId | None = None) -> Operation:
    """Record what a provider reported.

    Args:
        counts: the normal form (`input_total`, `cache_read`, `cache_write`, `output_total`, `reasoning`, in
            tokens) and `provider`, `model`, `renderer`, `renderer_version`, `sent` (hex of the hash of the
            bytes sent), as far as known.
        about: the commit whose context was sent; None is the first parent.
    """
    fields: dict[str, Any] = dict(counts)
    if about is not None:
        fields["about"] = about
    return Operation(USAGE, fields)


def config(meta: Mapping[str, str], settings: Mapping[str, str]) -> Operation:
    """Record facts about the commit, and the settings that its messages were generated with.

    Raises:
        InvalidOperationError: a name is empty or too long, or there is neither.
    """
    fields: dict[str, Any] = {}
    for key, given in ((META, meta), (SETTINGS, settings)):
        for name in given:
            if not 0 < len(name) <= MAXIMUM_NAME:
                raise errors.InvalidOperationError(
                    f"not a name of 1 to {MAXIMUM_NAME} characters: {name[:40]!r}"
                )
        if given:
            fields[key] = dict(given)
    if not fields:
        raise errors.InvalidOperationError("there is nothing to record")
    return Operation(CONFIG, fields)


def facts_of(commit: Commit, key: str) -> dict[str, str]:
    """Return what a commit records by name: its facts (META), or its SETTINGS."""
    found: dict[str, str] = {}
    for operation in commit.operations:
        if operation.name == CONFIG:
            found |= operation.fields.get(key, {})
    return found


def message_count(operation: Operation) -> int:
    """Return how many messages an operation adds."""
    return len(operation.fields["messages"]) if operation.name in ADDS_MESSAGES else 0


def added_by(commit: Commit) -> int:
    """Return how many messages a commit adds."""
    return sum(message_count(operation) for operation in commit.operations)


def added_messages(commit: Commit, oid: bytes) -> Iterator[tuple[Address, Stored]]:
    """Yield the messages that a commit with this id adds, in order, each with its address."""
    number = 0
    for operation in commit.operations:
        if operation.name in ADDS_MESSAGES:
            for message in operation.fields["messages"]:
                yield address_of(message, oid, number), message
                number += 1


def address_of(message: Stored, oid: bytes, number: int) -> Address:
    """Return the address of a stored message that stands in a commit as the message of this number."""
    born = message.get(BORN)
    return Address.of(oid, number) if born is None else read_address(born, oid)


def created(message: Stored) -> Stored:
    """Return a stored message without the state that a carried one has with it."""
    if BORN not in message:
        return message
    return {key: value for key, value in message.items() if key not in STATE}


def worded(message: Stored) -> Stored:
    """Return a stored message in the wording that counts where it is added; a carried one may have several."""
    wordings = [message["parts"], *message.get("edits", ())]
    return {**message, "parts": wordings[message.get("current", -1)]}


def targets_of(operation: Operation, oid: bytes) -> list[Address]:
    """Return the messages that an operation of a commit names as its targets."""
    fields = operation.fields
    named = [fields["target"]] if operation.name == EDIT else fields.get("targets", ())
    return read_addresses(named, oid)


def is_append(operation: Operation) -> bool:
    """Tell whether an operation leaves all messages before it as they are, and fits any context.

    An `add` of results may come to a call that is hidden; `only_appends` is asked by who can do without a fold.
    """
    if operation.name == ADD:
        fields = operation.fields
        return "after" not in fields and all(BORN not in each for each in fields["messages"])
    return operation.name in _AT_END


def only_appends(commit: Commit) -> bool:
    """Tell whether a commit leaves all messages before it as they are, so that it only adds at the end."""
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
    """Return the operations of a commit with whole addresses, and its messages as carried ones."""
    made: list[Operation] = []
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
            fields.setdefault("about", commit.parents[0])  # the commit before may be another
            fields = dict(sorted(fields.items()))
        if operation.name == EDIT:
            fields["parts"] = absolute(fields["parts"], oid)
        if operation.name in ADDS_MESSAGES:
            fields["messages"] = [
                _carried(stored, oid, number + n) for n, stored in enumerate(fields["messages"])
            ]
            number += len(fields["messages"])
        made.append(Operation(operation.name, fields))
    return made


def _carried(stored: Stored, oid: bytes, number: int) -> dict[str, Any]:
    made = {
        **stored,
        BORN: list(address_of(stored, oid, number)),
        "parts": absolute(stored["parts"], oid),
    }
    if "edits" in made:
        made["edits"] = [absolute(parts, oid) for parts in made["edits"]]
    return dict(sorted(made.items()))
