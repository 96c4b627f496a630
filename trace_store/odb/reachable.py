"""Objects reachable through links, including those in unknown kinds and fields.

Rule: each object is read, hashed and yielded once, after everything that it links to; a commit's parents come first. So
the oldest comes first, and every prefix of the sequence is self-contained. The walk never recurses.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.base.oid import OID_BYTES, ObjectId
from trace_store.objects.codec import BLOB, COMMIT, decode, kind_of, links_within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator
    from typing import TypeAlias

    Read: TypeAlias = Callable[[bytes], bytes]
    Absent: TypeAlias = Callable[[ObjectId, ObjectId | None], None]


def reachable(
    read: Read,
    starts: Iterable[ObjectId],
    *,
    hidden: Container[bytes] = frozenset(),
    absent: Absent | None = None,
) -> Iterator[tuple[ObjectId, bytes]]:
    """Yield (id, bytes) of the starts and all they reach, except purged objects.

    Args:
        read: returns an object's bytes, hash-checked.
        starts: the ids to start from.
        hidden: ids to leave out, with whatever only they reach.
        absent: called with each missing or purged object, and the object that links to it (None for a start).

    Raises:
        ObjectNotFoundError: an object is missing, and `absent` is not given.
        CorruptObjectError: an object is damaged.
    """
    seen: set[ObjectId] = set()
    for start in starts:
        if start in seen or start in hidden:
            continue
        seen.add(start)
        stack: list[_Open] = []
        below: ObjectId | None = start
        while True:
            while below is not None:
                data = _read(read, below, stack[-1].oid if stack else None, absent)
                if data is not None:
                    names = links_first_parents(data)
                    if names:
                        stack.append(_Open(below, names))
                    else:
                        yield below, data
                below = stack[-1].next(seen, hidden) if stack else None
            if not stack:
                break
            done = stack.pop().oid
            yield done, read(done)
            below = stack[-1].next(seen, hidden) if stack else None


def reachable_ids(read: Read, starts: Iterable[ObjectId]) -> set[ObjectId]:
    """Return the ids of all existing objects that the starts reach."""
    return {oid for oid, _ in reachable(read, starts, absent=lambda oid, referrer: None)}


def links_first_parents(data: bytes) -> list[ObjectId]:
    """Return the ids that an object links to, without duplicates.

    A commit's parents first.

    Raises:
        CorruptObjectError: the bytes are not an object.
    """
    if kind_of(data) == BLOB:
        return []
    value = decode(data)
    parents: list[ObjectId] = []
    if value[0] == COMMIT and len(value) > 1 and isinstance(value[1], dict):
        parents = links_within(value[1].get("parents"))
    return list(dict.fromkeys(parents + links_within(value)))


class _Open:
    """An object whose links are being followed; bytes, because a history can be deep."""

    __slots__ = ("_at", "_names", "oid")

    def __init__(self, oid: ObjectId, names: list[ObjectId]) -> None:
        self.oid = oid
        self._names = b"".join(names)
        self._at = 0

    def next(self, seen: set[ObjectId], hidden: Container[bytes]) -> ObjectId | None:
        """Return the next unvisited link, or None."""
        while self._at < len(self._names):
            oid = ObjectId(self._names[self._at : self._at + OID_BYTES])
            self._at += OID_BYTES
            if oid not in seen and oid not in hidden:
                seen.add(oid)
                return oid
        return None


def _read(
    read: Read, oid: ObjectId, referrer: ObjectId | None, absent: Absent | None
) -> bytes | None:
    try:
        return read(oid)
    except errors.ObjectNotFoundError as error:
        if absent is not None:
            absent(oid, referrer)
            return None
        if referrer is None:
            raise
        if isinstance(error, errors.PurgedError):
            return None
        raise errors.ObjectNotFoundError(
            f"no object {oid}, which {referrer} links to", oid=oid, named_by=referrer
        ) from error
