"""What others have appended, in one loop: frames that say what earlier ones said, of other objects, values and times.

Rule: a frame is read here only where `frames.scan` would read the same, which a property test shows; whatever is not
usual is left to that. Where many processes write to one branch, each reads the frames of all others before its own,
so here the checksum is most of the work. Where a frame's objects stand is worked out when somebody asks.
"""

from __future__ import annotations

from struct import Struct
from zlib import crc32

from trace_store.journal.frames import (
    COUNT,
    ENTRY_BYTES,
    HEADER_BYTES,
    SEED,
    TRANSACTION,
    Frame,
    Move,
    encode_transaction,
)
from trace_store.oid import ObjectId

_MAXIMUM_COUNT = 8
_ENTRIES = [Struct("<" + "32sI" * count) for count in range(_MAXIMUM_COUNT + 1)]
"""Ids and sizes of so many objects; frames with more are not usual."""
_MAXIMUM_KNOWN = 64
_ID = b"\xc4\x20"
_TIME = b"\xa4time\xcf"
_START = Struct("<IB3xII")
"""A frame's head, and how many objects it has."""
_ENDING = Struct(">2s32s2s32s6sQ")
"""A section's last bytes: two ids, and the time, each behind what says so."""


class UsualFrames:
    """Tells which frames are usual: those whose section begins as one that was decoded before, and ends alike.

    It remembers some such beginnings: who wrote, what for, and which ref it moved.
    """

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[str, str, str, str]] = {}

    def learn(self, frame: Frame) -> None:
        """Remember how the section of a frame begins, when it has the form of a usual one."""
        if frame.kind != TRANSACTION or len(frame.moves) != 1 or frame.time >> 32 == 0:
            return
        [move] = frame.moves
        if move.old is None or move.new is None:
            return
        alike = encode_transaction(frame, {})
        section = alike[HEADER_BYTES + COUNT.size :]
        if len(self._known) >= _MAXIMUM_KNOWN:
            self._known.clear()
        said = frame.author, frame.message, frame.head, move.name
        self._known[section[: -_ENDING.size]] = said

    def read(
        self, data: bytes, base: int, at: int, frames: list[Frame], objects: dict[bytes, Frame]
    ) -> bool:
        """Add the usual frames that stand one after the other in bytes of a journal, as far as they are whole there.

        Args:
            data: the bytes.
            base: their place in the journal.
            at: where in them a frame begins.
            frames: takes the frames.
            objects: takes in which frame each object stands.

        Returns:
            Whether there was one.
        """
        before = len(frames)
        whole = len(data)
        last = whole - _START.size
        new: ObjectId | None = None
        while at <= last:
            length, kind, check, count = _START.unpack_from(data, at)
            body = at + HEADER_BYTES
            end = body + length
            contents = at + _START.size + ENTRY_BYTES * count
            ending = end - _ENDING.size
            if kind != TRANSACTION or end > whole or count > _MAXIMUM_COUNT or contents > ending:
                break
            entries = _ENTRIES[count].unpack_from(data, at + _START.size)
            said = self._known.get(data[contents + sum(entries[1::2]) : ending])
            id_head, old, other_head, value, time_head, time = _ENDING.unpack_from(data, ending)
            if (
                said is None
                or id_head != _ID
                or other_head != _ID
                or time_head != _TIME
                or crc32(data[body:end], crc32(data[at : at + 8], SEED)) != check
            ):
                break
            author, message, head, name = said
            expected = new if old == new else ObjectId(old)
            new = ObjectId(value)
            moves = [Move(name, expected, new)]
            held = data[at + _START.size : contents]
            frame = Frame(kind, base + at, base + end, moves, author, time, message, head, held)
            frames.append(frame)
            objects.update(dict.fromkeys(entries[::2], frame))
            at = end
        return len(frames) > before
