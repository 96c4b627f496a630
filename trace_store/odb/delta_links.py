"""Short links: inside a pack, an object names another of the same pack by a number instead of its id.

    A link is written c4 20 (the head of a 32-byte `bin`) and an id. Its short form is c4 20 and three digits to the
    base 128, the lowest first: how many objects the named one stands before this one. Where c4 20 stands for anything
    else, and before an id that is not in the pack, three zero bytes follow, and then what followed before.

Rule: this is a matter of bytes alone. Any bytes have a short form, and it leads back to them; what they mean is not
looked at, and whether they are right is told by their hash.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.layout import MAXIMUM_OBJECT_BYTES
from trace_store.oid import OID_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

MARK = b"\xc4\x20"
DIGITS = 3
SPARED_BYTES = OID_BYTES - DIGITS
ABSENT = bytes(OID_BYTES)
"""Stands for the id of an object that was not readable."""
_LITERAL = MARK + bytes(DIGITS)
_SURELY_SHORT_BYTES = MAXIMUM_OBJECT_BYTES // 8
"""A short form is at least a seventh as long as what it stands for."""


def shorten(
    data: bytes, ordinal: int, first: Mapping[bytes, int], second: Mapping[bytes, int]
) -> bytes:
    """Return the short form of an object's bytes.

    Args:
        data: the bytes.
        ordinal: its number in the pack.
        first: the numbers of objects that may be named, by id; all of them smaller.
        second: those of further ones.
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


def lengthen(data: bytes, ordinal: int, id_of: Callable[[int], bytes]) -> bytes:
    """Return the bytes that a short form stands for.

    Args:
        data: the short form.
        ordinal: the object's number in the pack.
        id_of: given the number of an object, returns its id.

    Raises:
        CorruptObjectError: it names what is not before it, or was not readable, or is longer than an object may be.
    """
    pieces = data.split(MARK)
    if len(pieces) == 1:
        return data
    if len(data) + SPARED_BYTES * (len(pieces) - 1) > MAXIMUM_OBJECT_BYTES:
        _check_length(data, pieces)
    for at in range(1, len(pieces)):
        piece = pieces[at]
        if len(piece) < DIGITS:
            raise errors.CorruptObjectError("a short link is cut off")
        back = piece[0] + (piece[1] << 7) + (piece[2] << 14)
        if not back:
            pieces[at] = piece[DIGITS:]
            continue
        if back > ordinal:
            raise errors.CorruptObjectError("a short link leads out of its pack")
        oid = id_of(ordinal - back)
        if len(oid) != OID_BYTES or oid == ABSENT:
            raise errors.CorruptObjectError("a short link leads to an object that cannot be read")
        pieces[at] = oid + piece[DIGITS:]
    return MARK.join(pieces)


def lengthen_all(forms: Iterable[bytes], first: int, ids: bytes) -> list[bytes]:
    """Return what `lengthen` makes of objects that stand one after the other, for whoever checks their hashes.

    Args:
        forms: their short forms.
        first: the number of the first in the pack.
        ids: of the objects of the pack, joined; also zeros are taken as they stand.

    Raises:
        CorruptObjectError: as `lengthen` does.
    """
    # No call for each object and each link: a context has hundreds of thousands.
    found: list[bytes] = []
    here = OID_BYTES * first
    try:
        for data in forms:
            pieces = data.split(MARK)
            if len(data) > _SURELY_SHORT_BYTES:
                _check_length(data, pieces)
            for at in range(1, len(pieces)):
                piece = pieces[at]
                back = piece[0] + (piece[1] << 7) + (piece[2] << 14)
                if back:
                    there = here - OID_BYTES * back
                    if there < 0:
                        raise errors.CorruptObjectError("a short link leads out of its pack")
                    pieces[at] = ids[there : there + OID_BYTES] + piece[DIGITS:]
                else:
                    pieces[at] = piece[DIGITS:]
            found.append(MARK.join(pieces))
            here += OID_BYTES
    except IndexError:
        raise errors.CorruptObjectError("a short link is cut off") from None
    return found


def may_name_others(data: bytes) -> bool:
    """Tell whether a short form may have an id written out, such as of an object that is not in the pack."""
    return _LITERAL in data


def _check_length(data: bytes, pieces: list[bytes]) -> None:
    links = sum(1 for piece in pieces[1:] if piece[:DIGITS] != bytes(DIGITS))
    literals = len(pieces) - 1 - links
    if len(data) + SPARED_BYTES * links - DIGITS * literals > MAXIMUM_OBJECT_BYTES:
        raise errors.CorruptObjectError("an object is longer than it may be")
