"""Commits that differ from one already checked only in ids, words and time.

Rule: a shortcut of what decodes and checks an object, and never another answer. What makes a structured object valid
and canonical is where its values stand, how long they are, and what its keys and the names of its operations say; an id
of 32 bytes, a word of as many ASCII bytes, or a time of eight bytes may be any other. So most commits of a history need
no decoding.
"""

from __future__ import annotations

import struct

from trace_store.oid import OID_BYTES

MAXIMUM_SHAPES = 4096
MAXIMUM_BYTES = 64 * 1024
MAXIMUM_VALUES = 512
_HEAD = b"\x92\xa6commit"
_SIZES = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4, 0xDC: 2, 0xDD: 4, 0xDE: 2, 0xDF: 4}
_NUMBERS = {0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8, 0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8}
_TIME = 0xCF
_TIME_BYTES = 8
_NOTHING = bytes(_TIME_BYTES // 2)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Unpack = Callable[[bytes], tuple[bytes, ...]]


class _Shape:
    """What commits of one length have in common, and where they differ."""

    __slots__ = ("common", "ids", "same", "times", "words")

    def __init__(self, data: bytes, spans: list[tuple[int, int, str]]) -> None:
        """Take over what `_spans` found in a checked commit."""
        ends = [(at, size) for at, size, _ in spans]
        self.same = _picker(len(data), _between(len(data), ends))
        self.common = self.same(data)
        self.ids = _picker(len(data), [(at, size) for at, size, kind in spans if kind == "id"])
        self.words = _picker(len(data), [(at, size) for at, size, kind in spans if kind == "word"])
        # The upper half: a number that fits into the lower one has a shorter spelling.
        self.times = _picker(len(data), [(at, 4) for at, _, kind in spans if kind == "time"])


class Likenesses:
    """The shapes of commits that were checked."""

    __slots__ = ("_count", "_shapes")

    def __init__(self) -> None:
        self._shapes: dict[int, list[_Shape]] = {}
        self._count = 0

    def links(self, data: bytes) -> tuple[bytes, ...] | None:
        """Return the ids that a commit names, in order and with repetitions; None when it is like none before."""
        for shape in self._shapes.get(len(data), ()):
            if shape.same(data) == shape.common:
                if b"".join(shape.words(data)).isascii() and _NOTHING not in shape.times(data):
                    return shape.ids(data)
                return None
        return None

    def learn(self, data: bytes) -> None:
        """Remember the shape of a commit that is valid and canonical."""
        if self._count >= MAXIMUM_SHAPES or len(data) > MAXIMUM_BYTES or data[:8] != _HEAD:
            return
        spans = _spans(data)
        if spans is not None:
            self._shapes.setdefault(len(data), []).append(_Shape(data, spans))
            self._count += 1


def _picker(size: int, spans: list[tuple[int, int]]) -> Unpack:
    """Return what cuts these spans out of bytes of a size."""
    form, at = ["<"], 0
    for start, length in spans:
        form.append(f"{start - at}x{length}s")
        at = start + length
    form.append(f"{size - at}x")
    return struct.Struct("".join(form)).unpack


def _between(size: int, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    found, at = [], 0
    for start, length in spans:
        found.append((at, start - at))
        at = start + length
    found.append((at, size - at))
    return [each for each in found if each[1]]


def _spans(data: bytes) -> list[tuple[int, int, str]] | None:
    """Return (offset, size, kind) of the values of a commit that may be others; None when there are too many."""
    found: list[tuple[int, int, str]] = []
    # How many values are left in each open container, and what it is: a map, an operation, the list of them, or else.
    stack: list[list[object]] = []
    at = 0
    key = b""
    while at < len(data):
        if len(found) > MAXIMUM_VALUES:
            return None
        byte = data[at]
        at += 1
        left, kind = stack[-1] if stack else (1, "")
        assert isinstance(left, int)
        is_key = kind == "map" and left % 2 == 0
        is_name = kind == "operation" and left == 2
        if stack:
            stack[-1][0] = left - 1
        if byte in _SIZES:
            width = _SIZES[byte]
            size = int.from_bytes(data[at : at + width], "big")
            at += width
        elif byte < 0x90 or byte < 0xA0:
            size = byte & 0x0F
        else:
            size = byte & 0x1F
        if 0x80 <= byte < 0x90 or byte in (0xDE, 0xDF):
            stack.append([2 * size, "map"])
        elif 0x90 <= byte < 0xA0 or byte in (0xDC, 0xDD):
            inner = ""
            if len(stack) == 2 and key == b"ops":
                inner = "operations"
            elif kind == "operations":
                inner = "operation"
            stack.append([size, inner])
        elif 0xA0 <= byte < 0xC0 or byte in (0xD9, 0xDA, 0xDB):
            if is_key:
                key = data[at : at + size] if len(stack) == 2 else key
            elif not is_name and len(stack) > 1 and data[at : at + size].isascii() and size:
                found.append((at, size, "word"))
            at += size
        elif byte in (0xC4, 0xC5, 0xC6):
            if size == OID_BYTES:
                found.append((at, size, "id"))
            at += size
        elif byte in _NUMBERS:
            if byte == _TIME:
                found.append((at, _TIME_BYTES, "time"))
            at += _NUMBERS[byte]
        while stack and not stack[-1][0]:
            stack.pop()
    return found
