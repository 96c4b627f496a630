"""Operations on a context: their names and the shape of their fields.

Rule: constructors make the stored form and nothing else; what an operation does is in `context/folding.py`.

A target is an address: `[commit id, n]`, where n numbers the messages that the commit creates, over all its
operations in order, and an empty commit id means the commit that the operation stands in.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.objects.commit import Commit, Operation
from trace_store.oid import OID_BYTES, ObjectId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    Address = tuple[bytes, int]

APPEND = "append"
INCLUDE = "include"
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
    APPEND,
    INCLUDE,
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
CREATES_MESSAGES = (APPEND, REPLACE)
ADDS_AT_END = (APPEND, TOOLS, USAGE, CONFIG)
"""Operations that leave all earlier messages as they are, and so fit any context."""
LEAVES_CONTEXT = (USAGE, CONFIG)
"""Operations after which the compiled messages are the same."""

PINNED = "pinned"
IMPORTANT = "important"
NORMAL = "normal"
SKIP = "skip"
PRIORITIES = (PINNED, IMPORTANT, NORMAL, SKIP)

META = "meta"
SETTINGS = "settings"
MAXIMUM_NAME = 100
"""Characters of the name of a fact or a setting."""

HERE = b""
"""The commit id of an address inside the commit that is being made."""


def append(messages: Sequence[Mapping[str, Any]]) -> Operation:
    """Add stored messages at the end."""
    return Operation(APPEND, {"messages": list(messages)})


def include(
    targets: Sequence[Address], *, parent: int = 1, after: Address | None = None
) -> Operation:
    """Bring messages of another parent, with the state they have there, after a neighbour (or at the end).

    Args:
        targets: addresses in that parent's context.
        parent: the place among the commit's parents, counted from 0; 0 is the context itself.
        after: the neighbour they come after; None puts them at the end.
    """
    if parent < 1:
        raise errors.InvalidOperationError("messages are included from a parent after the first")
    fields: dict[str, Any] = {"parent": parent, "targets": _targets(targets)}
    if after is not None:
        fields["after"] = _target(after)
    return Operation(INCLUDE, fields)


def edit(target: Address, parts: Sequence[Mapping[str, Any]]) -> Operation:
    """Replace one message's parts; earlier versions stay readable."""
    return Operation(EDIT, {"parts": list(parts), "target": _target(target)})


def annotate(
    targets: Sequence[Address],
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


def remove(targets: Sequence[Address], *, ghost: bool = False) -> Operation:
    """Hide messages, leaving a ghost in their place or nothing."""
    fields: dict[str, Any] = {"targets": _targets(targets)}
    if ghost:
        fields["ghost"] = True
    return Operation(REMOVE, fields)


def restore(targets: Sequence[Address], *, version: int | None = None) -> Operation:
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
    targets: Sequence[Address],
    messages: Sequence[Mapping[str, Any]],
    *,
    reason: str = "",
    model: str = "",
    prompt: ObjectId | None = None,
    sources: Sequence[Address] = (),
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


def move(targets: Sequence[Address], *, after: Address | None) -> Operation:
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
    """Return how many messages an operation creates."""
    return len(operation.fields["messages"]) if operation.name in CREATES_MESSAGES else 0


def _target(address: Address) -> list[Any]:
    commit, number = address
    if len(commit) not in (0, OID_BYTES) or number < 0:
        raise errors.InvalidOperationError(f"not an address: {commit.hex()}.{number}")
    return [commit, number]


def _targets(addresses: Sequence[Address]) -> list[list[Any]]:
    if len({(bytes(commit), number) for commit, number in addresses}) != len(addresses):
        raise errors.InvalidOperationError("an operation names a message twice")
    return [_target(address) for address in addresses]


def _label(label: str) -> str:
    if not label or len(label) > 100 or any(ord(c) < 33 or ord(c) == 127 for c in label):
        raise errors.InvalidOperationError(f"not a label: {label[:40]!r}")
    return label
