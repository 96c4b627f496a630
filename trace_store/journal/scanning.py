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
    HEADER,
    HEADER_BYTES,
    SEED,
    TRANSACTION,
    Frame,
    Move,
    encode_transaction,
)
from trace_store.oid import ObjectId

_ENTRIES = [Struct("<" + "32sI" * count) for count in range(9)]
"""Ids and sizes of so many objects; frames with more are not usual."""
_MAXIMUM_KNOWN = 64
_ID = b"\xc4\x20"
_TIME = b"\xa4time\xcf"
_ENDING_BYTES = 82
"""A section's last bytes: two ids, and the time, each of them with a fixed number of bytes."""


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
        alike = encode_transaction(
            (),
            frame.moves,
            author=frame.author,
            time=frame.time,
            message=frame.message,
            head=frame.head,
        )
        section = alike[HEADER_BYTES + COUNT.size :]
        if len(self._known) >= _MAXIMUM_KNOWN:
            self._known.clear()
        said = frame.author, frame.message, frame.head, move.name
        self._known[section[:-_ENDING_BYTES]] = said

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
        last = len(data) - HEADER_BYTES
        new: ObjectId | None = None
        while at <= last:
            length, kind, check = HEADER.unpack_from(data, at)
            body = at + HEADER_BYTES
            end = body + length
            ending = end - _ENDING_BYTES
            if kind != TRANSACTION or end > len(data) or ending < body + COUNT.size:
                break
            (count,) = COUNT.unpack_from(data, body)
            contents = body + COUNT.size + ENTRY_BYTES * count
            if count >= len(_ENTRIES) or contents > ending:
                break
            entries = _ENTRIES[count].unpack_from(data, body + COUNT.size)
            said = self._known.get(data[contents + sum(entries[1::2]) : ending])
            if (
                said is None
                or data[ending : ending + 2] != _ID
                or data[ending + 34 : ending + 36] != _ID
                or data[end - 14 : end - 8] != _TIME
                or crc32(data[body:end], crc32(data[at : at + 8], SEED)) != check
            ):
                break
            author, message, head, name = said
            old = data[ending + 2 : ending + 34]
            expected = new if old == new else ObjectId(old)
            new = ObjectId(data[ending + 36 : ending + 68])
            frame = Frame(
                kind,
                base + at,
                base + end,
                [Move(name, expected, new)],
                author,
                int.from_bytes(data[end - 8 : end], "big"),
                message,
                head,
                data[body + COUNT.size : contents],
            )
            frames.append(frame)
            objects.update(dict.fromkeys(entries[::2], frame))
            at = end
        return len(frames) > before
