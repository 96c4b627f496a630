"""Events for followers of the journal.

There are two kinds: an emitted event, stored as a passing frame, and a ref move.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.frozen import value
from trace_store.ident import check_author
from trace_store.journal.frames import encode_event, event_section

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from trace_store.journal.frames import Frame
    from trace_store.oid import ObjectId

REF = "ref"
"""The kind of an event for a ref move."""
MAXIMUM_EVENT_BYTES = 64 * 1024
_MAXIMUM_KIND = 64
_KIND_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_-.")


@value
class Event:
    """One event.

    Attributes:
        kind: a lower-case name; `ref` for a ref move.
        data: the emitted data; for a ref move, its reflog message as `message`.
        moment: its time in milliseconds since the epoch, by the writer's clock.
        author: its author; empty if not given.
        ref: the full name of the ref that moved; empty for other events.
        old: its value before; None if it was absent, and for other events.
        new: its value after; None if it was deleted, and for other events.
    """

    kind: str
    data: Mapping[str, Any]
    moment: int
    author: str = ""
    ref: str = ""
    old: ObjectId | None = None
    new: ObjectId | None = None

    @property
    def move(self) -> tuple[str, bytes | None, bytes | None, int] | None:
        """The identity of a ref move; None for other events."""
        return (self.ref, self.old, self.new, self.moment) if self.kind == REF else None


def encode(event: Event) -> bytes:
    """Return the passing frame of an event.

    Raises:
        InvalidInputError: the kind is not a lower-case name or is `ref`, the data is not a map that msgpack can hold,
            the author is not valid, or all of it takes more than 64 KiB.
    """
    kind, data = event.kind, event.data
    if not is_kind(kind) or kind == REF:
        raise errors.InvalidInputError(
            "the kind of an event is a name of lower-case letters, digits, '_', '-' and '.', "
            f"and not {REF!r}: {str(kind)[:80]!r}",
            value=kind,
        )
    if not isinstance(data, dict):
        raise errors.InvalidInputError(f"the data of an event is a dict, not {type(data).__name__}")
    if event.author:
        check_author(event.author)
    section = {"author": event.author, "data": data, "kind": kind, "time": event.moment}
    frame = encode_event(section)
    if len(frame) > MAXIMUM_EVENT_BYTES:
        raise errors.InvalidInputError(
            f"an event has at most {MAXIMUM_EVENT_BYTES} bytes, not {len(frame)}"
        )
    return frame


def is_kind(kind: object) -> bool:
    """Return True for a letter followed by lower-case letters, digits, `_`, `-`, `.`."""
    return (
        isinstance(kind, str)
        and 0 < len(kind) <= _MAXIMUM_KIND
        and "a" <= kind[0] <= "z"
        and _KIND_CHARACTERS.issuperset(kind)
    )


def decode(payload: bytes) -> Event | None:
    """Return the event in a passing frame's payload, or None if it is unreadable."""
    section = event_section(payload)
    if section is None:
        return None
    kind, data, moment = section.get("kind"), section.get("data"), section.get("time")
    if not (isinstance(kind, str) and isinstance(data, dict) and isinstance(moment, int)):
        return None
    if kind == REF or not is_kind(kind):
        return None  # `emit` never writes these, and `ref` would look like a move
    return Event(kind, data, moment, str(section.get("author", "")))


def moves_of(frame: Frame) -> list[Event]:
    """Return an event for each ref move of a transaction."""
    data = {"message": frame.message}
    return [
        Event(REF, data, frame.time, frame.author, move.name, move.old, move.new)
        for move in frame.moves
    ]
