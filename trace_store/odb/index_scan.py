"""Whole-index operations: parse, look up many ids, compare with the pack.

Rule: an index is valid only if it is byte for byte what the writer produces for the same content.
"""

from __future__ import annotations

import struct
from itertools import accumulate, islice

from trace_store import errors
from trace_store.base.oid import OID_BYTES, ObjectId, joined_digests
from trace_store.odb.compression import Dictionary
from trace_store.odb.delta_links import expand_all_links
from trace_store.odb.pack import DICTIONARY, NEEDS_DICTIONARY, SHORT_LINKS, FramePlace, split
from trace_store.odb.pack_index import (
    FEW_LOOK_UPS,
    HASH_BYTES,
    HEADER,
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
        encoded = encode_index(b"".join(ids), positions, self.places, pack_size, check, bits=bits)
        if encoded != data:
            raise errors.CorruptIndexError("the pack index is not sorted")


WALK_WORTH = 16
"""A look-up takes about as long as scanning this many ids."""


def ids_among(index: PackIndex, oids: frozenset[bytes]) -> frozenset[bytes]:
    """Return the ids that a pack has, using its index alone.

    Raises:
        CorruptIndexError: the index is damaged.
        StorageError: the index cannot be read.
    """
    if not index.ids and len(oids) > max(index.size // LOOK_UP_BYTES, FEW_LOOK_UPS):
        index.load()
    ids = index.ids
    if not ids or index.objects > WALK_WORTH * len(oids):
        return frozenset(oid for oid in oids if index.find(oid) is not None)
    return oids.intersection([ids[at : at + OID_BYTES] for at in range(0, len(ids), OID_BYTES)])


_ID_BEGINNING = struct.Struct(f">I{OID_BYTES - 4}x")
_NUMBER = (1 << NUMBER_BITS) - 1
_CHECK = 0xFFFC
"""The bits of an id's first four bytes that its entry holds."""


def has_valid_entries(index: bytes) -> bool:
    """Return True if a well-sized index has one valid entry for every object."""
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
    return all(map(bytes.__lt__, in_order, islice(in_order, 1, None)))


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
