"""Recovery of frames and objects after the valid frames of a damaged journal.

Rule: a journal counts up to its first invalid frame, and this module does not change that. It distinguishes a torn
write from damage, and recovers what follows damage: complete frames, and objects with correct hashes from damaged
frames.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from trace_store.base.oid import ObjectId
from trace_store.journal.frames import (
    COUNT,
    ENTRY_BYTES,
    FIRST_PASSING,
    HEADER,
    HEADER_BYTES,
    KNOWN,
    MAXIMUM_FRAME_BYTES,
    TRANSACTION,
    VOID,
    Frame,
    scan,
)

_BEGINNING = bytes((TRANSACTION, 0, 0, 0))
_KIND_AT = 4
_ENTRY = struct.Struct("<32sI")
_LOOKS = 64
"""Limit for the search, as a multiple of the data size: any bytes can look like a frame's header, and a hostile file
may have very many."""
_SECTOR_BYTES = 512


def transactions_in(data: bytes) -> list[Frame]:
    """Return the complete transactions anywhere in some bytes, except voided ones."""
    found: list[Frame] = []
    left = _LOOKS * len(data)
    at = 0
    while left > 0:
        at = data.find(_BEGINNING, at + _KIND_AT) - _KIND_AT
        if at < 0:
            break
        length = HEADER.unpack_from(data, at)[0] if at + HEADER_BYTES <= len(data) else -1
        if not 0 <= length <= len(data) - at - HEADER_BYTES:
            at += 1
            continue
        left -= length + HEADER_BYTES
        frames = _frames_at(data, at)
        found += frames
        at = max((frame.end for frame in frames), default=at + 1) - (_KIND_AT if frames else 0)
    return [frame for frame in found if not frame.voided]


def _frames_at(data: bytes, at: int) -> list[Frame]:
    """Return the transactions in the consecutive frames from an offset on."""
    found: list[Frame] = []
    last: Frame | None = None
    for frame in scan(lambda start, size: data[start : start + size], at, len(data)):
        if frame.kind == TRANSACTION:
            found.append(frame)
        elif frame.kind == VOID and last is not None and last.kind == TRANSACTION:
            last.voided = True
        if frame.kind < FIRST_PASSING:
            last = frame
    return found


def frame_starts(data: bytes, start: int, stop: int) -> Iterator[int]:
    """Yield the possible offsets of damaged frames in a range.

    A frame's length may itself be damaged, so the search also stops at anything that looks like a frame's header.
    """
    at, looks = start, _LOOKS
    while at + HEADER_BYTES <= stop and looks:
        yield at
        looks -= 1
        length = HEADER.unpack_from(data, at)[0]
        following = at + HEADER_BYTES + length
        if following <= stop and length:
            at = following
        else:
            at = data.find(_BEGINNING, at + 2 * _KIND_AT, stop) - _KIND_AT
            if at < start:
                return


def objects_at(data: bytes, start: int) -> Iterator[tuple[ObjectId, bytes]]:
    """Yield (id, content) of a damaged frame's objects, if its table is readable.

    The damage may affect an object, its id or its offset, so the caller must check each hash.
    """
    place = start + HEADER_BYTES
    if place + COUNT.size > len(data):
        return
    (count,) = COUNT.unpack_from(data, place)
    at = place + COUNT.size
    offset = at + ENTRY_BYTES * count
    for number in range(count if offset <= len(data) else 0):
        oid, size = _ENTRY.unpack_from(data, at + number * ENTRY_BYTES)
        content = data[offset : offset + size]
        if len(content) == size:
            yield ObjectId(oid), content
        offset += size


def is_cut_off(rest: bytes, start: int = 0) -> bool:
    """Return True if the bytes after the last valid frame look like a torn write.

    Args:
        rest: the bytes.
        start: their offset in the journal, if known.

    A torn frame is longer than the remaining bytes, begins or ends with zeros, or has a sector of zeros. A complete
    frame with a wrong checksum was damaged later.
    """
    rest = rest.rstrip(b"\0")
    if not rest[: _SECTOR_BYTES - start % _SECTOR_BYTES].strip(b"\0"):
        return True  # the rest of the first sector, with at least a part of the header
    if len(rest) < HEADER_BYTES or not rest[:HEADER_BYTES].strip(b"\0"):
        return True
    length, kind, _ = HEADER.unpack_from(rest)
    if kind not in KNOWN or not 0 < length <= MAXIMUM_FRAME_BYTES:
        return False  # no frame starts like this
    if HEADER_BYTES + length > len(rest):
        return True
    return bytes(_SECTOR_BYTES) in rest[: HEADER_BYTES + length]
