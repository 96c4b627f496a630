"""The index beside a pack: which object is where in it.

    offset  size          field
    0       4             "TRPI"
    4       1             version, 1
    5       1             b, the number of leading bits of an id that choose a bucket
    6       2             zero
    8       4             number of objects n
    12      4             number of frames f
    16      8             size of the pack
    24      32            check of the pack (the hash in its trailer)
    56      4 (2^b + 1)   where each bucket begins
            32 n          ids, sorted
            12 n          per id: frame, offset and length in the frame's raw content
            20 f          per frame: file offset u64, compressed size, raw size, number of prefix frames
            32            blake3-256 of everything above

Rule: derived and local. It is read in small pieces, never as a whole, so an open costs the same at any size; it is
made again from the pack when it is absent or does not fit.
"""

from __future__ import annotations

import struct
from bisect import bisect_left

from trace_store.errors import CorruptIndexError, CorruptObjectError, CorruptPackError
from trace_store.odb.pack import FramePlace, Pack, walk_objects
from trace_store.oid import OID_BYTES, ObjectId, digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

MAGIC = b"TRPI"
VERSION = 1
HASH_BYTES = 32
BUCKET_OBJECTS = 32
MAXIMUM_BITS = 16
MAXIMUM_INDEX_BYTES = 16 * 1024 * 1024
"""More than that of a pack with as many objects and frames as one may hold."""
_HEADER = struct.Struct("<4sBB2xIIQ32s")
_BOUNDS = struct.Struct("<II")
_ROW = struct.Struct("<III")
_PLACE = struct.Struct("<QIII")


class PackIndex:
    """An index, read through a function that returns the bytes at (offset, size)."""

    __slots__ = (
        "_bits",
        "_frames_at",
        "_ids_at",
        "_pack_size",
        "_read",
        "_rows_at",
        "_size",
        "frames",
        "objects",
        "verified",
    )

    def __init__(self, read: Callable[[int, int], bytes], size: int, pack: Pack) -> None:
        """Accept an index that fits its pack.

        Raises:
            CorruptIndexError: it does not.
        """
        head = read(0, _HEADER.size)
        if len(head) < _HEADER.size:
            raise CorruptIndexError("a pack index is too short", path=pack.path)
        magic, version, bits, objects, frames, pack_size, check = _HEADER.unpack(head)
        if magic != MAGIC or version != VERSION or bits > MAXIMUM_BITS:
            raise CorruptIndexError("a pack index does not begin like one", path=pack.path)
        if pack_size != pack.size or check != pack.check:
            raise CorruptIndexError("a pack index belongs to another pack", path=pack.path)
        self._read = read
        self._size = size
        self._pack_size: int = pack_size
        self._bits = bits
        self._ids_at = _HEADER.size + 4 * ((1 << bits) + 1)
        self._rows_at = self._ids_at + OID_BYTES * objects
        self._frames_at = self._rows_at + _ROW.size * objects
        self.objects: int = objects
        self.frames: int = frames
        self.verified = False
        if self._frames_at + _PLACE.size * frames + HASH_BYTES != size:
            raise CorruptIndexError("a pack index has another size than it says", path=pack.path)

    def find(self, oid: bytes) -> tuple[int, int, int] | None:
        """Return (frame, offset, length) of an object, or None."""
        low, high = self._bucket(oid)
        ids = self._read(self._ids_at + OID_BYTES * low, OID_BYTES * (high - low))
        at = ids.find(oid)
        while at >= 0 and at % OID_BYTES:
            at = ids.find(oid, at + 1)
        if at < 0:
            return None
        row = self._read(self._rows_at + _ROW.size * (low + at // OID_BYTES), _ROW.size)
        if len(row) < _ROW.size:
            return None
        frame, offset, length = _ROW.unpack(row)
        return frame, offset, length

    def place(self, frame: int) -> FramePlace:
        """Return where a frame is.

        Raises:
            CorruptIndexError: there is no such frame, or it is said to be outside of the pack.
        """
        if not 0 <= frame < self.frames:
            raise CorruptIndexError(f"a pack index names frame {frame} of {self.frames}")
        data = self._read(self._frames_at + _PLACE.size * frame, _PLACE.size)
        if len(data) < _PLACE.size:
            raise CorruptIndexError("a pack index is too short")
        place = FramePlace(*_PLACE.unpack(data))
        if place.offset + place.compressed > self._pack_size:
            raise CorruptIndexError("a pack index names a place outside of its pack")
        return place

    def with_prefix(self, prefix: str, limit: int) -> list[ObjectId]:
        """Return at most `limit` ids that begin with these hex digits, sorted."""
        first = bytes.fromhex(prefix + "0" * (2 * OID_BYTES - len(prefix)))
        low, high = self._bucket(first)
        found: list[ObjectId] = []
        # A prefix has at least as many bits as choose a bucket, or the buckets it spans follow one another.
        while low < self.objects and len(found) < limit:
            ids = self._read(self._ids_at + OID_BYTES * low, OID_BYTES * max(high - low, 1))
            for at in range(0, len(ids), OID_BYTES):
                oid = ObjectId(ids[at : at + OID_BYTES])
                if oid < first:
                    continue
                if not oid.hex().startswith(prefix):
                    return found
                found.append(oid)
                if len(found) == limit:
                    break
            low = max(high, low + 1)
            high = min(low + BUCKET_OBJECTS, self.objects)
        return found

    def iterate(self) -> Iterator[ObjectId]:
        """Yield all ids, sorted."""
        step = 1024
        for low in range(0, self.objects, step):
            count = min(step, self.objects - low)
            ids = self._read(self._ids_at + OID_BYTES * low, OID_BYTES * count)
            for at in range(0, len(ids), OID_BYTES):
                yield ObjectId(ids[at : at + OID_BYTES])

    def in_order(self) -> list[ObjectId]:
        """Return all ids in the order in which their objects stand in the pack: reading them so is quick."""
        rows = self._read(self._rows_at, _ROW.size * self.objects)
        if len(rows) < _ROW.size * self.objects:
            return list(self.iterate())
        places = zip(_ROW.iter_unpack(rows), self.iterate(), strict=False)
        return [oid for _, oid in sorted(places)]

    def entries(self) -> dict[bytes, tuple[int, int, int]] | None:
        """Return (frame, offset, length) of every object; None when one of them would not be found."""
        count = self.objects
        data = self._read(self._ids_at, OID_BYTES * count)
        ids = [data[at : at + OID_BYTES] for at in range(0, OID_BYTES * count, OID_BYTES)]
        rows = self._read(self._rows_at, _ROW.size * count)
        bounds = self._read(_HEADER.size, self._ids_at - _HEADER.size)
        shift = MAXIMUM_BITS - self._bits
        starts = [
            bisect_left(ids, (bucket << shift).to_bytes(2, "big"))
            for bucket in range(1 << self._bits)
        ]
        if bounds != struct.pack(f"<{len(starts) + 1}I", *starts, count) or ids != sorted(ids):
            return None
        found = dict(zip(ids, _ROW.iter_unpack(rows), strict=True))
        return found if len(found) == count else None

    def verify(self) -> bool:
        """Tell whether the checksum holds; reads the whole index, once."""
        if not self.verified:
            data = self._read(0, self._size)
            self.verified = (
                len(data) == self._size and digest(data[:-HASH_BYTES]) == data[-HASH_BYTES:]
            )
        return self.verified

    def _bucket(self, oid: bytes) -> tuple[int, int]:
        bucket = int.from_bytes(oid[:2], "big") >> (MAXIMUM_BITS - self._bits)
        data = self._read(_HEADER.size + 4 * bucket, _BOUNDS.size)
        if len(data) < _BOUNDS.size:
            return 0, 0
        low, high = _BOUNDS.unpack(data)
        if not low <= high <= self.objects:
            return 0, 0
        return low, high


class IndexContent:
    """All that an index says.

    Attributes:
        rows: (id, frame, offset, length) of each object, sorted by id.
        places: where the frames are.
        pack_size: the size of the pack in bytes.
        check: the hash in the pack's trailer.
    """

    __slots__ = ("check", "pack_size", "places", "rows")

    def __init__(self, data: bytes) -> None:
        """Take the bytes of an index apart.

        Raises:
            CorruptIndexError: they are none, or damaged.
        """
        if (
            len(data) < _HEADER.size + HASH_BYTES
            or digest(data[:-HASH_BYTES]) != data[-HASH_BYTES:]
        ):
            raise CorruptIndexError("a pack index is too short, or its checksum is wrong")
        magic, version, bits, objects, frames, pack_size, check = _HEADER.unpack_from(data)
        if magic != MAGIC or version != VERSION or bits > MAXIMUM_BITS:
            raise CorruptIndexError("a pack index does not begin like one")
        ids_at = _HEADER.size + 4 * ((1 << bits) + 1)
        rows_at = ids_at + OID_BYTES * objects
        frames_at = rows_at + _ROW.size * objects
        if frames_at + _PLACE.size * frames + HASH_BYTES != len(data):
            raise CorruptIndexError("a pack index has another size than it says")
        ids = [ObjectId(data[at : at + OID_BYTES]) for at in range(ids_at, rows_at, OID_BYTES)]
        found = _ROW.iter_unpack(data[rows_at:frames_at])
        self.rows: list[tuple[bytes, int, int, int]] = [
            (oid, *row) for oid, row in zip(ids, found, strict=True)
        ]
        self.places = [
            FramePlace(*place) for place in _PLACE.iter_unpack(data[frames_at:-HASH_BYTES])
        ]
        self.pack_size: int = pack_size
        self.check: bytes = check
        if encode_index(self.rows, self.places, pack_size, check, bits=bits) != data:
            raise CorruptIndexError("a pack index is not in order")


def encode_index(
    rows: Sequence[tuple[bytes, int, int, int]],
    places: Sequence[FramePlace],
    pack_size: int,
    check: bytes,
    *,
    bits: int | None = None,
) -> bytes:
    """Return the bytes of an index, given (id, frame, offset, length) of each object in any order.

    `bits` of an id choose its bucket; when not given, as many as leave few objects in one.
    """
    ordered = sorted(rows)
    if bits is None:
        bits = 0
        while bits < MAXIMUM_BITS and len(ordered) >> bits > BUCKET_OBJECTS:
            bits += 1
    starts = [0] * ((1 << bits) + 1)
    for oid, _, _, _ in ordered:
        starts[(int.from_bytes(oid[:2], "big") >> (MAXIMUM_BITS - bits)) + 1] += 1
    for bucket in range(1, len(starts)):
        starts[bucket] += starts[bucket - 1]
    pieces = [
        _HEADER.pack(MAGIC, VERSION, bits, len(ordered), len(places), pack_size, check),
        struct.pack(f"<{len(starts)}I", *starts),
    ]
    pieces += [oid for oid, _, _, _ in ordered]
    pieces += [_ROW.pack(frame, offset, length) for _, frame, offset, length in ordered]
    pieces += [_PLACE.pack(p.offset, p.compressed, p.raw, p.prefixes) for p in places]
    data = b"".join(pieces)
    return data + digest(data)


def build_index(pack: Pack) -> tuple[bytes, bool]:
    """Return the index of a pack, made from its content, and whether all of the pack could be read."""
    rows: dict[bytes, tuple[int, int, int]] = {}
    places: list[FramePlace] = []
    whole = True
    try:
        for number, place, objects in walk_objects(pack):
            places.append(place)
            if isinstance(objects, CorruptObjectError):
                whole = False
                continue
            for oid, offset, data in objects:
                rows.setdefault(oid, (number, offset, len(data)))
    except CorruptPackError:
        whole = False
    whole = whole and len(places) == pack.frame_count
    listed = [(oid, *row) for oid, row in rows.items()]
    return encode_index(listed, places, pack.size, pack.check), whole
