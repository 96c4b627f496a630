"""Short links: inside a pack, objects name each other by number, not by id.

    A link is c4 20 (the header of a 32-byte `bin`) and an id. Its short form is c4 20 and three base-128 digits, lowest
    first: the distance back to the named object. If c4 20 is not a link, or the id is not in the pack, three zero bytes
    follow, and then the original bytes.

Rule: this works on bytes alone. Any bytes have a short form that expands to them. Their meaning does not matter; the
hash verifies the result.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.base.oid import OID_BYTES
from trace_store.disk.layout import MAXIMUM_OBJECT_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

MARK = b"\xc4\x20"
DIGITS = 3
SPARED_BYTES = OID_BYTES - DIGITS
ABSENT = bytes(OID_BYTES)
"""The id of an unreadable object."""
_LITERAL = MARK + bytes(DIGITS)
_SURELY_SHORT_BYTES = MAXIMUM_OBJECT_BYTES // 8
"""A short form is at least a seventh as long as its expansion."""


def shorten_links(
    data: bytes, ordinal: int, first: Mapping[bytes, int], second: Mapping[bytes, int]
) -> bytes:
    """Return an object's bytes with short links.

    Args:
        data: the bytes.
        ordinal: the object's number in the pack.
        first: numbers of earlier objects, by id.
        second: numbers of further earlier objects.
    """
    at = data.find(MARK)
    if at < 0:
        return data
    pieces: list[bytes] = []
    done = 0
    while at >= 0:
        after = at + len(MARK)
        oid = data[after : after + OID_BYTES]
        target = first.get(oid)
        if target is None:
            target = second.get(oid)
        if target is None:
            pieces += (data[done:at], _LITERAL)
        else:
            back = ordinal - target
            pieces += (
                data[done:after],
                bytes((back & 127, back >> 7 & 127, back >> 14)),
            )
            after += OID_BYTES
        done = after
        at = data.find(MARK, done)
    pieces.append(data[done:])
    return b"".join(pieces)


def expand_links(data: bytes, ordinal: int, id_of: Callable[[int], bytes]) -> bytes:
    """Return an object's bytes with full links.

    Args:
        data: the bytes with short links.
        ordinal: the object's number in the pack.
        id_of: returns an object's id, given its number.

    Raises:
        CorruptObjectError: a link leads outside of the pack or to an unreadable object, or the result is too long.
    """
    pieces = data.split(MARK)
    if len(pieces) == 1:
        return data
    if len(data) + SPARED_BYTES * (len(pieces) - 1) > MAXIMUM_OBJECT_BYTES:
        _check_length(data, pieces)
    for at in range(1, len(pieces)):
        piece = pieces[at]
        if len(piece) < DIGITS:
            raise errors.CorruptObjectError("a short link is truncated")
        back = piece[0] + (piece[1] << 7) + (piece[2] << 14)
        if not back:
            pieces[at] = piece[DIGITS:]
            continue
        if back > ordinal:
            raise errors.CorruptObjectError("a short link leads outside of its pack")
        oid = id_of(ordinal - back)
        if len(oid) != OID_BYTES or oid == ABSENT:
            raise errors.CorruptObjectError("a short link leads to an unreadable object")
        pieces[at] = oid + piece[DIGITS:]
    return MARK.join(pieces)


def expand_all_links(forms: Iterable[bytes], first: int, ids: bytes) -> list[bytes]:
    """Expand the links of consecutive objects; the caller checks the hashes.

    Args:
        forms: their bytes with short links.
        first: the first object's number in the pack.
        ids: the joined ids of the pack; zeros of unreadable objects are used as they are.

    Raises:
        CorruptObjectError: as in `expand_links`.
    """
    # No function call per object or link: a context has hundreds of thousands.
    expanded: list[bytes] = []
    own = OID_BYTES * first
    try:
        for data in forms:
            pieces = data.split(MARK)
            if len(data) > _SURELY_SHORT_BYTES:
                _check_length(data, pieces)
            for at in range(1, len(pieces)):
                piece = pieces[at]
                back = piece[0] + (piece[1] << 7) + (piece[2] << 14)
                if back:
                    target = own - OID_BYTES * back
                    if target < 0:
                        raise errors.CorruptObjectError("a short link leads outside of its pack")
                    pieces[at] = ids[target : target + OID_BYTES] + piece[DIGITS:]
                else:
                    pieces[at] = piece[DIGITS:]
            expanded.append(MARK.join(pieces))
            own += OID_BYTES
    except IndexError:
        raise errors.CorruptObjectError("a short link is truncated") from None
    return expanded


def numbers_by_id(data: bytes, ordinal: int, ids: bytes) -> dict[bytes, int]:
    """Return the numbers of the objects that an object has short links to, by their ids; its form is sound.

    Args:
        data: the bytes with short links.
        ordinal: the object's number in the pack.
        ids: the joined ids of the pack.
    """
    backs = [piece[0] + (piece[1] << 7) + (piece[2] << 14) for piece in data.split(MARK)[1:]]
    numbers = [ordinal - back for back in backs if back]
    return {ids[OID_BYTES * number : OID_BYTES * (number + 1)]: number for number in numbers}


def may_name_others(data: bytes) -> bool:
    """Return True if a short form may contain full ids of objects outside the pack."""
    return _LITERAL in data


def _check_length(data: bytes, pieces: list[bytes]) -> None:
    links = sum(1 for piece in pieces[1:] if piece[:DIGITS] != bytes(DIGITS))
    literals = len(pieces) - 1 - links
    if len(data) + SPARED_BYTES * links - DIGITS * literals > MAXIMUM_OBJECT_BYTES:
        raise errors.CorruptObjectError("an object is too large")
