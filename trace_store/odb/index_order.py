"""Whether the index of a pack leads to every object: told by going through it once, without making it anew."""

from __future__ import annotations

import struct
from itertools import accumulate, islice
from operator import lt

from trace_store.odb.pack_index import HEADER, MAXIMUM_BITS, NUMBER_BITS
from trace_store.oid import OID_BYTES

_ID_BEGINNING = struct.Struct(f">I{OID_BYTES - 4}x")
_NUMBER = (1 << NUMBER_BITS) - 1
_CHECK = 0xFFFC
"""Of the first four bytes of an id, the bits that stand in its entry."""


def leads_to_all(index: bytes) -> bool:
    """Tell whether an index, whose sizes are right, has entries that lead to every object, all of them different."""
    _, _, bits, count, *_ = HEADER.unpack_from(index)
    entries_at = HEADER.size + 4 * ((1 << bits) + 1)
    ids_at = entries_at + 4 * count
    starts = struct.unpack(f"<{(1 << bits) + 1}I", index[HEADER.size : entries_at])
    entries = struct.unpack(f"<{count}I", index[entries_at:ids_at])
    ids = index[ids_at : ids_at + OID_BYTES * count]
    beginnings = [beginning for (beginning,) in _ID_BEGINNING.iter_unpack(ids)]
    shift = 2 * MAXIMUM_BITS - bits
    sizes = [0] * (1 << bits)
    for beginning in beginnings:
        sizes[beginning >> shift] += 1
    numbers = [entry & _NUMBER for entry in entries]
    if starts != tuple(accumulate(sizes, initial=0)) or max(numbers, default=0) >= max(count, 1):
        return False
    wanted = [
        number | (beginning & _CHECK) << NUMBER_BITS - 2
        for number, beginning in enumerate(beginnings)
    ]
    if list(entries) != [wanted[number] for number in numbers]:
        return False
    in_order = [ids[OID_BYTES * number : OID_BYTES * (number + 1)] for number in numbers]
    return all(map(lt, in_order, islice(in_order, 1, None)))
