"""Folds in a file, to the byte, and read entry by entry as they are looked at.

A file begins with a head of 60 bytes, little-endian:

     0   4  "TRFD"                              44   4  number of entries
     4   2  version                             48   4  number of links
     6   2  zero                                52   4  bytes of the facts
     8   4  CRC-32 of all that follows          56   4  zero
    12  32  commit

Behind it come the facts (msgpack: tools, tools_commit, measured), a record of 97 bytes for each entry (key, flags, and
how much it says), one of 40 for each link (a message with results, and a message with calls that it answers), and the
msgpack of what each entry says.

Rule: derived. A file that is absent, damaged or of another version is made anew from the commits.
"""

from __future__ import annotations

import struct
import zlib

from trace_store import errors
from trace_store.collector import paused
from trace_store.context.folding import REMOVED, REPLACED, Fold
from trace_store.context.message_entries import Entry, Place, Version
from trace_store.objects import operations as ops
from trace_store.objects.address import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VERSION = 1
_MAGIC = b"TRFD"
_HEAD = struct.Struct("<4sHHI32sIIII")
_ENTRY = struct.Struct("<92sBI")
_KEY = struct.Struct("<16sI32sI32sI")
_LINK = struct.Struct("<16sI16sI")
_CHECKED_FROM = 12
_HIDDEN = ("", REMOVED, REPLACED)
_GHOST, _ANSWERS, _MARKED, _EDITED = 4, 8, 64, 128
_PRIORITY_AT = 4
_SHOWN = {
    hidden | ghost | priority << _PRIORITY_AT: (
        *(_HIDDEN[hidden], bool(ghost), ops.PRIORITIES[priority]),
    )
    for hidden in range(len(_HIDDEN))
    for ghost in (0, _GHOST)
    for priority in range(len(ops.PRIORITIES))
}
"""What flags say of how a message is shown: hidden, ghost and priority."""
_LAZY = ("message", "versions", "current", "labels", "keep")


class KeptEntry(Entry):
    """An entry of which address, place, and how it is shown are at hand, and the rest is unpacked when it is asked for.

    It is never changed: a fold copies entries before it changes them, and a copy is a plain one.
    """

    __slots__ = ("_data", "_flags", "_key", "_start", "_stop")

    def __init__(self, key: bytes, flags: int, data: bytes, start: int, stop: int) -> None:
        self.address = Address(key[:16], int.from_bytes(key[16:20], "little"))
        self.hidden, self.ghost, self.priority = _SHOWN[flags & 0x37]
        self._key = key
        self._flags = flags
        self._data = data
        self._start = start
        self._stop = stop

    def __getattr__(self, name: str) -> Any:
        if name not in _LAZY:
            raise AttributeError(name)
        said = self._data[self._start : self._stop]
        message, versions, self.current, labels, keep = _unpacked(said)
        self.versions = [Version(parts, (commit, n)) for parts, commit, n in versions]
        self.message = {**message, "parts": self.versions[0].parts}
        self.labels = frozenset(labels)
        self.keep = tuple(keep)
        return object.__getattribute__(self, name)

    @property
    def key(self) -> bytes:
        """As in `Entry`."""
        return self._key

    @property
    def home(self) -> Place:  # type: ignore[override]
        """As in `Entry`."""
        return _KEY.unpack(self._key)[2:4]

    @property
    def place(self) -> Place:
        """As in `Entry`."""
        return _KEY.unpack(self._key)[4:]

    @property
    def answers(self) -> tuple[Address, ...]:
        """As in `Entry`."""
        return super().answers if self._flags & _ANSWERS else ()

    @property
    def is_edited(self) -> bool:
        """As in `Entry`."""
        return bool(self._flags & _EDITED)

    @property
    def is_marked(self) -> bool:
        """As in `Entry`."""
        return bool(self._flags & _MARKED)

    def same_state(self, other: Entry) -> bool:
        """As in `Entry`; what is packed alike is not unpacked."""
        if isinstance(other, KeptEntry):
            own = self._data[self._start : self._stop]
            if (
                self._flags == other._flags
                and self._key == other._key
                and own == other._data[other._start : other._stop]
            ):
                return True
        return super().same_state(other)


def pack(tip: bytes, state: Fold) -> bytes:
    """Return the bytes of a file that keeps the fold of a commit."""
    import msgpack

    entries, links, said = bytearray(), bytearray(), bytearray()
    count = 0
    for entry in state.entries:
        answers = entry.answers
        said += _said(entry, msgpack.packb)
        entries += _ENTRY.pack(entry.key, _flags(entry, answers), len(said))
        for call in answers:
            links += _LINK.pack(*entry.address, *call)
            count += 1
    facts = msgpack.packb([list(state.tools), state.tools_commit, state.measured])
    body = b"".join((facts, entries, links, said))
    head = _HEAD.pack(_MAGIC, VERSION, 0, 0, tip, len(state.entries), count, len(facts), 0)
    check = zlib.crc32(body, zlib.crc32(head[_CHECKED_FROM:]))
    return b"".join((head[:8], check.to_bytes(4, "little"), head[_CHECKED_FROM:], body))


def unpack(tip: bytes, data: bytes) -> Fold:
    """Return the fold of a commit from the bytes of its file.

    Raises:
        CorruptIndexError: they are damaged, of another version, or of another commit.
    """
    if len(data) < _HEAD.size or zlib.crc32(data[_CHECKED_FROM:]) != int.from_bytes(
        data[8:_CHECKED_FROM], "little"
    ):
        raise errors.CorruptIndexError("a kept fold is damaged")
    magic, version, _, _, oid, count, links, facts, _ = _HEAD.unpack_from(data)
    if (magic, version, oid) != (_MAGIC, VERSION, tip):
        raise errors.CorruptIndexError("a kept fold is of another version, or of another commit")
    at = _HEAD.size
    try:
        tools, tools_commit, measured = _unpacked(data[at : at + facts])
        at += facts
        entries = data[at : at + count * _ENTRY.size]
        at += len(entries)
        linked = data[at : at + links * _LINK.size]
        at += len(linked)
        state = Fold.of(_entries(entries, data, at), _links(linked))
        state.tools, state.tools_commit = tuple(tools), tools_commit
        state.measured = None if measured is None else (measured[0], measured[1])
    except (ValueError, TypeError, LookupError, struct.error) as error:
        raise errors.CorruptIndexError("a kept fold is damaged") from error
    return state


def _unpacked(data: bytes) -> Any:
    import msgpack

    return msgpack.unpackb(data)


def _entries(records: bytes, data: bytes, said: int) -> list[Entry]:
    found: list[Entry] = []
    start = said
    with paused:
        for key, flags, end in _ENTRY.iter_unpack(records):
            stop = said + end
            found.append(KeptEntry(key, flags, data, start, stop))
            start = stop
    return found


def _links(records: bytes) -> dict[Address, tuple[Address, ...]]:
    found: dict[Address, tuple[Address, ...]] = {}
    for birth, n, call, cn in _LINK.iter_unpack(records):
        one, other = Address(birth, n), Address(call, cn)
        found[one] = (*found.get(one, ()), other)
        found[other] = (*found.get(other, ()), one)
    return found


def _said(entry: Entry, packb: Any) -> bytes:
    if isinstance(entry, KeptEntry):
        return entry._data[entry._start : entry._stop]
    message = {key: entry.message[key] for key in entry.message if key != "parts"}
    versions = [[each.parts, *each.place] for each in entry.versions]
    packed: bytes = packb(
        [message, versions, entry.current, sorted(entry.labels), list(entry.keep)]
    )
    return packed


def _flags(entry: Entry, answers: tuple[Address, ...]) -> int:
    flags = _HIDDEN.index(entry.hidden)
    flags |= _GHOST if entry.ghost else 0
    flags |= _ANSWERS if answers else 0
    flags |= _MARKED if entry.is_marked else 0
    flags |= _EDITED if entry.is_edited else 0
    return flags | ops.PRIORITIES.index(entry.priority) << _PRIORITY_AT
