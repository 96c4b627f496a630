"""What can still be read of a journal where its valid frames end and bytes follow.

Rule: a journal counts up to its first frame that is not valid, and nothing here changes that. It is for telling a write
that was cut off from damage, and for bringing back what stands behind damage: whole frames, and of a damaged one
those objects whose hash is right.
"""

from __future__ import annotations

import struct

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
from trace_store.oid import ObjectId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_BEGINNING = bytes((TRANSACTION, 0, 0, 0))
_KIND_AT = 4
_ENTRY = struct.Struct("<32sI")
_LOOKS = 64
"""So many times the bytes there are may be gone through in search of frames: what looks like the head of one may be
anything, and a hostile file has very many."""
_SECTOR_BYTES = 512


def transactions_in(data: bytes, start: int = 0) -> list[Frame]:
    """Return the whole transactions that stand anywhere in some bytes, without those that were voided."""
    found: list[Frame] = []
    left = _LOOKS * len(data)
    at = start
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
    """Return the transactions of the frames that follow one another from here on; none when no frame begins here."""
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
    """Yield where damaged frames may begin between two places: where whole ones end, and behind each such frame.

    A frame's length may be what has changed, so what looks like a frame's head is taken for one as well.
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
    """Yield the objects of a damaged frame, as far as its table of them can be read, with the ids that it gives them.

    What has changed may be an object, its id, or where the others begin: a hash tells.
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
    """Tell whether bytes behind the last valid frame look as a write leaves them that did not come to its end.

    Args:
        rest: the bytes.
        start: where in the journal they stand, as far as is known.

    Such a frame is longer than what is there, begins or ends in zeros, or has a sector of them. One that is there
    from its first byte to its last, and says otherwise than its checksum, has changed since.
    """
    rest = rest.rstrip(b"\0")
    if not rest[: _SECTOR_BYTES - start % _SECTOR_BYTES].strip(b"\0"):
        return True  # the sector that it begins in, with what of its head is in there
    if len(rest) < HEADER_BYTES or not rest[:HEADER_BYTES].strip(b"\0"):
        return True
    length, kind, _ = HEADER.unpack_from(rest)
    if kind not in KNOWN or not 0 < length <= MAXIMUM_FRAME_BYTES:
        return False  # no write of a frame begins like this
    if HEADER_BYTES + length > len(rest):
        return True
    return bytes(_SECTOR_BYTES) in rest[: HEADER_BYTES + length]
