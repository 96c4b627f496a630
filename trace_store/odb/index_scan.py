"""Whole-index operations: parse, look up many ids, compare with the pack.

Rule: an index is valid only if it is byte for byte what the writer produces for the same content.
"""

from __future__ import annotations

import struct
from itertools import accumulate

from trace_store import errors
from trace_store.base.oid import OID_BYTES, ObjectId, joined_digests
from trace_store.odb.compression import Dictionary
from trace_store.odb.delta_links import expand_all_links
from trace_store.odb.pack import (
    DICTIONARY,
    MAXIMUM_PACK_OBJECTS,
    NEEDS_DICTIONARY,
    SHORT_LINKS,
    FramePlace,
    split,
)
from trace_store.odb.pack_index import (
    CHECK,
    ENTRY,
    FEW_LOOK_UPS,
    HASH_BYTES,
    HEADER,
    ID_HEAD,
    LOOK_UP_BYTES,
    MAGIC,
    MAXIMUM_BITS,
    NUMBER_BITS,
    PLACE,
    ROW,
    VERSION,
    encode_index,
    is_whole,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trace_store.odb.pack import Pack
    from trace_store.odb.pack_index import PackIndex


class IndexContent:
    """The parsed content of an index.

    Attributes:
        rows: (id, frame, offset) of each object, sorted by id; duplicates included.
        places: the positions of the frames.
        pack_size: the size of the pack in bytes.
        check: the hash in the pack's trailer.
    """

    __slots__ = ("check", "pack_size", "places", "rows")

    def __init__(self, data: bytes) -> None:
        """Parse the bytes of an index.

        Raises:
            CorruptIndexError: they are not a valid index.
        """
        if len(data) < HEADER.size + HASH_BYTES or not is_whole(data, len(data)):
            raise errors.CorruptIndexError("the pack index is too short, or its checksum is wrong")
        magic, version, bits, objects, frames, pack_size, check = HEADER.unpack_from(data)
        if magic != MAGIC or version != VERSION or bits > MAXIMUM_BITS:
            raise errors.CorruptIndexError("the pack index has an invalid header")
        ids_at = HEADER.size + 4 * ((1 << bits) + 1) + 4 * objects
        rows_at = ids_at + OID_BYTES * objects
        frames_at = rows_at + ROW.size * objects
        if frames_at + PLACE.size * frames + HASH_BYTES != len(data):
            raise errors.CorruptIndexError("the pack index does not have its declared size")
        ids = [data[at : at + OID_BYTES] for at in range(ids_at, rows_at, OID_BYTES)]
        positions = [(frame, offset) for offset, frame in ROW.iter_unpack(data[rows_at:frames_at])]
        self.places = [
            FramePlace(offset, compressed, raw, held, flags)
            for offset, compressed, raw, held, _, flags in PLACE.iter_unpack(
                data[frames_at:-HASH_BYTES]
            )
        ]
        self.rows: list[tuple[ObjectId, int, int]] = sorted(
            (ObjectId(oid), frame, offset)
            for oid, (frame, offset) in zip(ids, positions, strict=True)
        )
        self.pack_size: int = pack_size
        self.check: bytes = check
        tables = data[ids_at:rows_at], data[rows_at:frames_at]
        encoded = encode_index(*tables, self.places, pack_size, check, bits=bits)
        if encoded != data:
            raise errors.CorruptIndexError("the pack index is not sorted")


WALK_WORTH = 16
"""A look-up takes about as long as scanning this many ids."""


def ids_among(index: PackIndex, oids: frozenset[bytes]) -> frozenset[bytes]:
    """Return the ids that a pack has, using its index alone, of which nothing is kept in memory.

    Raises:
        CorruptIndexError: the index is damaged.
        StorageError: the index cannot be read.
    """
    few = len(oids) <= max(index.size // LOOK_UP_BYTES, FEW_LOOK_UPS)
    if few or (index.ids and index.objects > WALK_WORTH * len(oids)):
        return frozenset(oid for oid in oids if index.find(oid) is not None)
    if index.objects > WALK_WORTH * len(oids):
        return index.find_all(oids)
    if not index.verify():
        raise errors.CorruptIndexError("the pack index has a wrong checksum")
    return oids.intersection(index.in_order())


def ids_in_several(indexes: Sequence[PackIndex]) -> frozenset[bytes]:
    """Return the ids that more than one of these indexes has.

    Memory holds as many ids as a pack has at most, or a sixteenth of all.
    """
    if len(indexes) < 2:
        return frozenset()
    several: set[bytes] = set()
    is_large = sum(index.objects for index in indexes) > MAXIMUM_PACK_OBJECTS
    for first in range(16) if is_large else (None,):
        seen: set[bytes] = set()
        for index in indexes:
            ids = list(index.in_order()) if first is None else index.starting_with(first)
            several |= seen.intersection(ids)
            seen.update(ids)
    return frozenset(several)


_NUMBER = (1 << NUMBER_BITS) - 1


def has_valid_entries(index: bytes) -> bool:
    """Return True if a well-sized index has one valid entry for every object."""
    from array import array  # slow to import

    _, _, bits, count, *_ = HEADER.unpack_from(index)
    entries_at = HEADER.size + 4 * ((1 << bits) + 1)
    ids_at = entries_at + 4 * count
    starts = struct.unpack(f"<{(1 << bits) + 1}I", index[HEADER.size : entries_at])
    ids = index[ids_at : ids_at + OID_BYTES * count]
    shift = 2 * MAXIMUM_BITS - bits
    sizes = [0] * (1 << bits)
    heads = array("L")
    for (head,) in ID_HEAD.iter_unpack(ids):
        sizes[head >> shift] += 1
        heads.append(head)
    if starts != tuple(accumulate(sizes, initial=0)):
        return False
    before = b""
    for (entry,) in ENTRY.iter_unpack(index[entries_at:ids_at]):
        number = entry & _NUMBER
        oid = ids[OID_BYTES * number : OID_BYTES * (number + 1)]
        if number >= count or entry != number | (heads[number] & CHECK) << NUMBER_BITS - 2:
            return False
        if oid <= before:
            return False
        before = oid
    return True


def walk_by_index(
    pack: Pack, index: PackIndex, places: Sequence[FramePlace], frames: range
) -> Iterator[tuple[int, list[bytes], list[bytes]]]:
    """Yield (first object's number, objects, stored forms) of each checked frame.

    Links lead backwards only. So if all frames match, the index is correct: each id is the hash of its object, computed
    with links to correct ids. The frames can thus be checked in any order.

    Args:
        pack: the pack.
        index: its index, loaded completely.
        places: the positions of all frames of the pack.
        frames: the frames to check; dictionaries are skipped.

    Raises:
        CorruptObjectError: a frame is damaged, or does not match the index.
        StorageError: the pack cannot be read.
    """
    first = sum(place.objects for place in places[: frames.start])
    dictionary: Dictionary | None = None
    for number in frames:
        place = places[number]
        if place.flags == DICTIONARY:
            dictionary = Dictionary(pack.decode(place))
            continue
        needs = place.flags & NEEDS_DICTIONARY
        if needs and dictionary is None:
            dictionary = _dictionary_before(pack, places, number)
        raw = pack.decode(place, dictionary if needs else None)
        stop = first + place.objects
        cuts = list(split(raw, place.objects))
        rows = b"".join([ROW.pack(offset, number) for offset, _ in cuts])
        forms = [raw[offset : offset + size] for offset, size in cuts]
        objects = forms
        if place.flags & SHORT_LINKS:
            objects = expand_all_links(forms, first, index.ids)
        ids = index.ids[OID_BYTES * first : OID_BYTES * stop]
        if joined_digests(objects) != ids or index.stored_rows(first, stop) != rows:
            raise errors.CorruptObjectError("a frame does not match the pack index")
        yield first, objects, forms
        first = stop


def _dictionary_before(pack: Pack, places: Sequence[FramePlace], frame: int) -> Dictionary:
    for place in reversed(places[:frame]):
        if place.flags == DICTIONARY:
            return Dictionary(pack.decode(place))
    raise errors.CorruptObjectError("a frame's dictionary is missing")
