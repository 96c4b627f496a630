"""The entries of a fold: messages with the effects of all operations."""

from __future__ import annotations

import struct

from trace_store.objects import operations as ops
from trace_store.objects.address import RESULT, Address, read_address, resolve_calls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeAlias, TypeVar

    Answer = TypeVar("Answer")

    Stored: TypeAlias = ops.Stored
    Parts: TypeAlias = Sequence[Stored]

_KEY = struct.Struct("<16sI32sI32sI")
Place = tuple[bytes, int]
"""A place in the history: the id of a commit, and a number there."""

REMOVED = "removed"
REPLACED = "replaced"
_HIDDEN = ("", REMOVED, REPLACED)
_GHOST, _MARKED, _EDITED = 4, 64, 128
_PRIORITY_AT = 4
SHOWN = {
    hidden | ghost | priority << _PRIORITY_AT | more: (
        *(_HIDDEN[hidden], bool(ghost), ops.PRIORITIES[priority]),
    )
    for hidden in range(len(_HIDDEN))
    for ghost in (0, _GHOST)
    for priority in range(len(ops.PRIORITIES))
    for more in (0, _MARKED, _EDITED, _MARKED | _EDITED)
}
"""What each value of `Entry.state` says of hidden, ghost and priority."""


class Version:
    """One version of a message.

    Attributes:
        parts: in stored form, with full addresses in results.
        place: (commit id, number among all versions in the commit).
    """

    __slots__ = ("parts", "place")

    def __init__(self, parts: Parts, place: Place) -> None:
        self.parts = parts
        self.place = place


class Entry:
    """One message of a fold, with the effects of all operations.

    Attributes:
        address: its id.
        message: its stored form as created; the current content is `parts`.
        home: where the message is: (commit id, number among the messages that the commit adds).
        versions: its versions, oldest first; `current` is the index of the current one.
        hidden: "" if it is in the context, else REMOVED or REPLACED.
        ghost: whether a removed message leaves a short placeholder.
        priority, labels, keep: as annotated; `keep` holds the blobs of must-keep patterns.
    """

    __slots__ = (
        "address",
        "current",
        "ghost",
        "hidden",
        "home",
        "keep",
        "labels",
        "message",
        "priority",
        "versions",
    )

    def __init__(self, address: Address, message: Stored, home: Place, place: Place) -> None:
        """Create the entry of a new message; `place` is the place of its first version."""
        self.address = address
        self.message = message
        self.home = home
        self.versions = [Version(message["parts"], place)]
        self.current = 0
        self.hidden = ""
        self.ghost = False
        self.priority = ops.NORMAL
        self.labels: frozenset[str] = frozenset()
        self.keep: tuple[bytes, ...] = ()

    @classmethod
    def read(cls, stored: Stored, oid: bytes, number: int, wording: int) -> Entry:
        """Return the entry of a message in a commit, new or carried with its state.

        Args:
            stored: the message.
            oid: the id of the commit.
            number: the number of the message among those that the commit adds.
            wording: the number of its first version among all versions in the commit.

        Raises:
            KeyError, TypeError, IndexError: the stored form is damaged.
        """
        parts = resolve_calls(stored["parts"], oid)
        born = stored.get(ops.BORN)
        if born is None:
            message = stored if parts is stored["parts"] else {**stored, "parts": parts}
            return cls(Address.of(oid, number), message, (oid, number), (oid, wording))
        message = {**ops.without_state(stored), "parts": parts}
        made = cls(read_address(born, oid), message, (oid, number), (oid, wording))
        for at, edit in enumerate(stored.get("edits", ()), 1):
            made.reword(resolve_calls(edit, oid), (oid, wording + at))
        made.current = stored.get("current", made.current)
        made.versions[made.current]
        made.hidden = stored.get("hidden", "")
        made.ghost = bool(stored.get("ghost", False))
        made.priority = stored.get("priority", ops.NORMAL)
        made.labels = frozenset(stored.get("labels", ()))
        made.keep = tuple(stored.get("keep", ()))
        return made

    def carried(self) -> dict[str, Any]:
        """Return the stored form of the message with its state, for another commit that carries it."""
        stored: dict[str, Any] = {ops.BORN: list(self.address), **self.message}
        stored["parts"] = self.versions[0].parts
        if len(self.versions) > 1:
            stored["edits"] = [version.parts for version in self.versions[1:]]
            if self.current != len(self.versions) - 1:
                stored["current"] = self.current
        if self.hidden:
            stored["hidden"] = self.hidden
        if self.ghost:
            stored["ghost"] = True
        if self.priority != ops.NORMAL:
            stored["priority"] = self.priority
        if self.labels:
            stored["labels"] = sorted(self.labels)
        if self.keep:
            stored["keep"] = list(self.keep)
        return dict(sorted(stored.items()))

    @property
    def parts(self) -> Parts:
        """The current version, in stored form."""
        return self.versions[self.current].parts

    @property
    def place(self) -> Place:
        """The place of the current version."""
        return self.versions[self.current].place

    @property
    def key(self) -> bytes:
        """Address, home and place as 92 bytes, the key of cached data about the message."""
        key: bytes = _KEY.pack(*self.address, *self.home, *self.place)
        return key

    @property
    def answers(self) -> tuple[Address, ...]:
        """The messages whose calls its results answered when it was created, which fixes its unit."""
        return calls_answered(self.message["parts"])

    @property
    def state(self) -> int:
        """Hidden, ghost, priority, `is_marked` and `is_edited` as one number, a key of SHOWN."""
        state = _HIDDEN.index(self.hidden) | ops.PRIORITIES.index(self.priority) << _PRIORITY_AT
        state |= _GHOST if self.ghost else 0
        state |= _MARKED if self.is_marked else 0
        return state | (_EDITED if self.is_edited else 0)

    @property
    def is_edited(self) -> bool:
        """Whether the current version is not the first."""
        return bool(self.current)

    @property
    def is_marked(self) -> bool:
        """Whether it has labels or patterns."""
        return bool(self.labels or self.keep)

    @property
    def visible(self) -> bool:
        """Whether it is part of the compiled context, also as a ghost."""
        if self.hidden:
            return self.hidden == REMOVED and self.ghost
        return self.priority != ops.SKIP

    @property
    def is_ghost(self) -> bool:
        """Whether only its placeholder is shown."""
        return bool(self.hidden) and self.ghost

    def reword(self, parts: Parts, place: Place) -> None:
        """Add a version and make it the current one."""
        self.versions.append(Version(parts, place))
        self.current = len(self.versions) - 1

    def same_state(self, other: Entry) -> bool:
        """Return True if an entry of another context has the same content, visibility and annotations."""
        return self is other or (
            self.hidden == other.hidden
            and self.ghost == other.ghost
            and self.priority == other.priority
            and self.labels == other.labels
            and self.keep == other.keep
            and self.parts == other.parts
        )

    def copy(self) -> Entry:
        """Return an entry that changes independently."""
        other = Entry.__new__(Entry)
        for name in Entry.__slots__:
            setattr(other, name, getattr(self, name))
        other.versions = list(self.versions)
        return other


def by_state(ask: Callable[[Entry], Answer]) -> dict[int, Answer]:
    """Return what a question that depends on `state` alone is answered, for each state."""
    found = {}
    for state, shown in SHOWN.items():
        entry = Entry.__new__(Entry)
        entry.hidden, entry.ghost, entry.priority = shown
        entry.current = int(bool(state & _EDITED))
        entry.labels, entry.keep = frozenset("x" if state & _MARKED else ""), ()
        found[state] = ask(entry)
    return found


def is_as_created(stored: Stored) -> bool:
    """Return True if a stored message is new, or carried in its original state."""
    return stored.keys() & ops.STATE <= {ops.BORN}


def calls_answered(parts: Parts) -> tuple[Address, ...]:
    """Return the messages whose calls the results among stored parts answer, without duplicates."""
    found = [Address(*part["call"]) for part in parts if part["type"] == RESULT and "call" in part]
    return tuple(dict.fromkeys(found)) if found else ()
