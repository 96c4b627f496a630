"""The bytes of a journal: frames, each of which is complete or has no effect.

    offset  size  field
    0       4     length of the payload, little endian
    4       1     kind
    5       3     zero
    8       4     CRC-32 of the eight bytes above and the payload, begun with a seed
    12      …     payload: number of objects u32, per object its id (32) and size u32, the objects' bytes one
                  after the other, then a map in canonical msgpack to the end

Rule: pure functions on bytes. Because of the seed, a run of zeros, which a power cut may leave, is not a valid frame.
Kinds below 128 are lasting: a version that does not know one must not seal the journal. Kinds from 128 on are
passing: readers of objects and refs skip them, and a seal drops them.
"""

from __future__ import annotations

import struct
from zlib import crc32

from trace_store import errors
from trace_store.base.oid import ObjectId, checked_id
from trace_store.contracts.ref_names import is_ref_name
from trace_store.objects.codec import (
    MAXIMUM_ELEMENTS,
    SHORT_HEAD_LIMIT,
    SMALL_ARRAYS,
    array_head,
    encode_integer,
    encode_ordered,
    encode_text,
    encoded_texts,
    has_too_many_elements,
    unpack_unchecked,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

TRANSACTION = 1
END = 2
BEGIN = 3
VOID = 4
FIRST_PASSING = 128
EVENT = 128
SKIPPED = -1
"""The kind of a frame that a reader did not want decoded; never stored."""
KNOWN_LASTING = frozenset({TRANSACTION, END, BEGIN, VOID})
KNOWN = KNOWN_LASTING | {EVENT}
LINE_BYTES = 16

HEADER_BYTES = 12
MAXIMUM_FRAME_BYTES = 1 << 30
SEED = 0x54524A31  # "TRJ1"
_FIRST_READ = 1 << 13
_READ_AHEAD = 1 << 20
HEADER = struct.Struct("<IB3xI")
_CHECKED = struct.Struct("<IB3x")
COUNT = struct.Struct("<I")
_ENTRY = struct.Struct("<32sI")
ENTRY_BYTES = _ENTRY.size
_OID_HEAD = b"\xc4\x20"
_NOTHING = b"\xc0"
_EMPTY = b"\x80"


class Move:
    """A ref move from one value to another; None means absent."""

    __slots__ = ("name", "new", "old")

    def __init__(self, name: str, old: ObjectId | None, new: ObjectId | None) -> None:
        self.name = name
        self.old = old
        self.new = new

    def __repr__(self) -> str:
        return f"Move({self.name!r}, {self.old!r}, {self.new!r})"


class Frame:
    """One frame of a journal.

    Attributes:
        kind, start, end: its kind, and its byte range in the journal.
        moves: the ref moves, which take effect together or not at all.
        author, time, message: for the reflogs; `head` is the ref that HEAD was attached to.
        objects: (id, offset in the journal, size) of each object.
        closes: for a begin frame: (number of the predecessor, how many of its bytes count).
        closed_line: for a begin frame: the line of the predecessor; empty if not recorded.
        failed: for a begin frame: a sync of the predecessor failed, and its later frames were copied here.
        line: for a begin frame: the random id of its line of journals.
        voided: for a transaction: a void frame follows, so it has no effect and was never acknowledged.
    """

    __slots__ = (
        "author",
        "closed_line",
        "closes",
        "end",
        "failed",
        "head",
        "kind",
        "line",
        "message",
        "moves",
        "objects",
        "start",
        "time",
        "voided",
    )

    def __init__(
        self,
        kind: int,
        start: int,
        end: int,
        moves: list[Move] | None = None,
        author: str = "",
        time: int = 0,
        message: str = "",
        head: str = "",
    ) -> None:
        self.kind = kind
        self.start = start
        self.end = end
        self.moves: list[Move] = [] if moves is None else moves
        self.author = author
        self.time = time
        self.message = message
        self.head = head
        self.closes: Sequence[tuple[int, int]] = ()
        self.closed_line = b""
        self.failed = False
        self.line = b""
        self.voided = False
        self.objects: list[tuple[ObjectId, int, int]] = []

    def place(self, start: int, size: int, objects: Mapping[ObjectId, bytes]) -> None:
        """Set the position of the frame and its objects after it was written."""
        self.start = start
        self.end = start + size
        offset = start + HEADER_BYTES + COUNT.size + ENTRY_BYTES * len(objects)
        placed: list[tuple[ObjectId, int, int]] = []
        for oid, data in objects.items():
            size = len(data)
            placed.append((oid, offset, size))
            offset += size
        self.objects = placed

    def has_same_content(self, other: Frame) -> bool:
        """Return True if another frame has the same content; its position may differ."""
        if (self.time, self.author, self.message) != (other.time, other.author, other.message):
            return False
        mine, others = ([(m.name, m.old, m.new) for m in each.moves] for each in (self, other))
        objects, held = ([oid for oid, _, _ in each.objects] for each in (self, other))
        return mine == others and objects == held

    @classmethod
    def of_transaction(
        cls, moves: list[Move], author: str, time: int, message: str, head: str
    ) -> Frame:
        """Return a transaction that is not in a journal yet."""
        return cls(TRANSACTION, 0, 0, moves, author, time, message, head)


def encode_transaction(frame: Frame, objects: Mapping[ObjectId, bytes]) -> bytes:
    """Return the frame bytes of a transaction with these objects.

    Raises:
        InvalidInputError: it is too large, or its text is not valid UTF-8.
    """
    moves, head, message = frame.moves, frame.head, frame.message
    if len(moves) >= MAXIMUM_ELEMENTS:
        raise errors.InvalidInputError(f"{len(moves)} ref moves are too many for one transaction")
    # Concatenated as in `objects.fast_encode`: building a map just to encode it would double the time.
    section = [
        b"%c\xa6author" % (0x83 + bool(head) + bool(message)),
        encoded_texts[frame.author],
        b"\xa4head" + encoded_texts[head] if head else b"",
        b"\xa7message" + encode_text(message) if message else b"",
        b"\xa5moves",
        SMALL_ARRAYS[len(moves)] if len(moves) < SHORT_HEAD_LIMIT else array_head(len(moves)),
    ]
    for move in moves:
        old, new = move.old, move.new
        section += (
            b"\x93",
            encoded_texts[move.name],
            _NOTHING if old is None else _OID_HEAD + old,
            _NOTHING if new is None else _OID_HEAD + new,
        )
    section += b"\xa4time", encode_integer(frame.time)
    return _frame(TRANSACTION, objects, section)


def encode_begin(
    line: bytes, closed: tuple[bytes, int, int] | None = None, *, failed: bool = False
) -> bytes:
    """Return the bytes of the first frame of a journal.

    Args:
        line: the line of the journal.
        closed: line and number of the predecessor, and how many of its bytes count. The line is empty if the
            predecessor is not a valid journal.
        failed: whether a sync of the predecessor failed.
    """
    section: dict[str, Any] = {}
    if closed is not None and closed[0]:
        section["closed"] = closed[0]
    section["closes"] = [] if closed is None else [closed[1:]]
    if failed:
        section["failed"] = True
    section["line"] = line
    return _frame(BEGIN, {}, [encode_ordered(section)])


def encode_end() -> bytes:
    """Return the bytes of the frame that closes a journal."""
    return _frame(END, {}, [_EMPTY])


def encode_void() -> bytes:
    """Return the bytes of the frame that voids the transaction right before it."""
    return _frame(VOID, {}, [_EMPTY])


def encode_event(section: Mapping[str, Any]) -> bytes:
    """Return the bytes of a passing frame with this map.

    Raises:
        InvalidInputError: it contains a value that msgpack cannot encode, or a key that is not text.
    """
    try:
        packed = encode_ordered(section)
        _unpack(packed)
    except (
        TypeError,
        ValueError,
        OverflowError,
        RecursionError,
        errors.CorruptObjectError,
    ) as error:
        raise errors.InvalidInputError(f"cannot be written to a journal: {error}") from error
    return _frame(EVENT, {}, [packed])


def event_section(payload: bytes) -> dict[str, Any] | None:
    """Return the map in a passing frame's payload, or None if it is unreadable."""
    if payload[: COUNT.size] != bytes(COUNT.size):
        return None
    try:
        return _unpack(payload[COUNT.size :])
    except (TypeError, ValueError, OverflowError, errors.CorruptObjectError):
        return None


def scan(
    read: Callable[[int, int], bytes], start: int, size: int, *, containing: bytes = b""
) -> Iterator[Frame]:
    """Yield the frames of a journal from an offset on, up to the first invalid one.

    Args:
        read: returns the bytes at (offset, size).
        start: the offset of a frame.
        size: the size of the journal in bytes.
        containing: transactions and events without these bytes are not decoded, and get the kind SKIPPED.
    """
    view = memoryview(b"")
    base = start
    ahead = _FIRST_READ  # usually there is one new frame, followed by zeros
    while start + HEADER_BYTES <= size:
        at = start - base
        if at + HEADER_BYTES > len(view):
            base, at, view = start, 0, memoryview(read(start, min(ahead, size - start)))
            ahead = min(8 * ahead, _READ_AHEAD)
            if len(view) < HEADER_BYTES:
                return
        length, kind, check = HEADER.unpack_from(view, at)
        end = start + HEADER_BYTES + length
        if length > MAXIMUM_FRAME_BYTES or end > size:
            return
        if end - base > len(view):
            count = min(max(end - start, ahead), size - start)
            base, at, view = start, 0, memoryview(read(start, count))
        payload = view[at + HEADER_BYTES : end - base]
        if len(payload) < length or crc32(payload, crc32(view[at : at + 8], SEED)) != check:
            return
        if containing and kind in (TRANSACTION, EVENT) and containing not in bytes(payload):
            kind = SKIPPED
        frame = Frame(kind, start, end)
        if kind in KNOWN_LASTING:
            try:
                _parse(frame, payload)
            except errors.CorruptJournalError:
                return
        yield frame
        start = end


def length_in(head: bytes) -> int:
    """Return the length of the payload after a frame's header."""
    return int.from_bytes(head[:4], "little")


def _frame(kind: int, objects: Mapping[ObjectId, bytes], section: Sequence[bytes]) -> bytes:
    pack = COUNT.pack
    pieces = [pack(len(objects))]
    for oid, data in objects.items():
        pieces += oid, pack(len(data))
    pieces += objects.values()
    pieces += section
    payload = b"".join(pieces)
    if len(payload) > MAXIMUM_FRAME_BYTES:
        raise errors.InvalidInputError(f"{len(payload)} bytes are too many for one transaction")
    head = _CHECKED.pack(len(payload), kind)
    return head + pack(crc32(payload, crc32(head, SEED))) + payload


def _parse(frame: Frame, payload: memoryview) -> None:
    if len(payload) < COUNT.size:
        raise errors.CorruptJournalError("a frame has no object count")
    (count,) = COUNT.unpack_from(payload)
    place = COUNT.size + ENTRY_BYTES * count
    if place > len(payload):
        raise errors.CorruptJournalError("a frame counts more objects than it has room for")
    origin = frame.start + HEADER_BYTES
    end = origin + place
    for oid, size in _ENTRY.iter_unpack(payload[COUNT.size : place]):
        frame.objects.append((ObjectId(oid), end, size))
        end += size
    section_start = end - origin
    if section_start > len(payload):
        raise errors.CorruptJournalError("a frame's objects are longer than it is")
    try:
        _read_section(frame, _unpack(bytes(payload[section_start:])))
    except (TypeError, ValueError, KeyError, OverflowError, errors.CorruptObjectError) as error:
        raise errors.CorruptJournalError(f"a frame's section is not readable: {error}") from error


def _unpack(data: bytes) -> dict[str, Any]:
    # The caller checks every value of the map, so depth is not checked here.
    if has_too_many_elements(data):
        raise ValueError("it has too many elements")
    section = unpack_unchecked(data)
    if not isinstance(section, dict):
        raise TypeError("not a map")
    return section


def _read_section(frame: Frame, section: dict[str, Any]) -> None:
    if frame.kind == TRANSACTION:
        frame.author = str(section["author"])
        frame.time = int(section["time"])
        frame.message = str(section.get("message", ""))
        frame.head = str(section.get("head", ""))
        frame.moves = [_move(name, old, new) for name, old, new in section["moves"]]
    elif frame.kind == BEGIN:
        frame.closes = [(int(number), int(length)) for number, length in section["closes"]]
        frame.line = _line(section["line"])
        frame.closed_line = _line(section["closed"]) if "closed" in section else b""
        frame.failed = bool(section.get("failed"))


def _line(line: Any) -> bytes:
    if not isinstance(line, bytes) or len(line) != LINE_BYTES:
        raise TypeError("not the id of a line")
    return line


def _move(name: Any, old: Any, new: Any) -> Move:
    # The name becomes a path, and a repository from elsewhere may contain a forged journal.
    if not isinstance(name, str) or not is_ref_name(name):
        raise ValueError("invalid ref name")
    return Move(
        name,
        None if old is None else checked_id(old),
        None if new is None else checked_id(new),
    )
