"""The index beside a pack: which object is where in it.

    offset  size          field
    0       4             "TRPI"
    4       1             version, 2
    5       1             b, the number of leading bits of an id that choose a bucket
    6       2             zero
    8       4             number of objects n
    12      4             number of frames f
    16      8             size of the pack
    24      32            check of the pack (the hash in its trailer)
    56      4 (2^b + 1)   where each bucket begins
            4 n           in the order of the ids, per object its number in the pack, in the lower 18 bits, and
                          above them the third byte of the id and the upper 6 bits of the fourth
            32 n          ids, in the order of the pack
            6 n           per object: offset in the frame's raw content u32, frame u16
            24 f          per frame: file offset, compressed size, raw size, number of objects, 1 + the number of its
                          dictionary's frame or 0, sort
            32            blake3-256 of everything above

Rule: derived and local. It is read in small pieces until as much has been read as it holds, so an open costs the same
at any size; it is made again from the pack when it is absent or does not fit.
"""

from __future__ import annotations

import struct
import sys
from itertools import islice

from trace_store import errors
from trace_store.odb.delta_links import ABSENT
from trace_store.odb.pack import DICTIONARY, NEEDS_DICTIONARY, SORTS, FramePlace, Pack
from trace_store.odb.pack_walk import PackWalk
from trace_store.oid import OID_BYTES, ObjectId, digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Literal

MAGIC = b"TRPI"
VERSION = 2
HASH_BYTES = 32
BUCKET_OBJECTS = 4
NUMBER_BITS = 18  # enough for the objects of any pack
MAXIMUM_BITS = 16
MAXIMUM_INDEX_BYTES = 16 * 1024 * 1024
"""More than that of a pack with as many objects and frames as one may hold."""
NO_FRAME = 0xFFFF
"""More than the frames of a pack."""
FEW_LOOK_UPS = 16
LOOK_UP_BYTES = 32 * 1024
"""Loading that much costs about what a look-up in pieces does."""
HEADER = struct.Struct("<4sBB2xIIQ32s")
_BOUNDS = struct.Struct("<II")
_ENTRY = struct.Struct("<I")
_NUMBER = (1 << NUMBER_BITS) - 1
ROW = struct.Struct("<IH")
_ROWS = struct.Struct("<IHIH")
PLACE = struct.Struct("<IIIIII")


class PackIndex:
    """An index, read through a function that returns the bytes at (offset, size).

    Attributes:
        objects: how many objects the pack has.
        frames: how many frames.
        size: of the index, in bytes.
        ids: of the objects in the order of the pack, joined; none before all of the index is held.
        frame_of, offset_of: the frame of each object, and where it begins there, and one of no frame behind the last;
            none before all of the index is held.
        verified: whether the checksum was looked at.
    """

    __slots__ = (
        "_bits",
        "_data",
        "_entries_at",
        "_frames_at",
        "_ids_at",
        "_left",
        "_next",
        "_other",
        "_pack_size",
        "_read",
        "_rows_at",
        "frame_of",
        "frames",
        "ids",
        "objects",
        "offset_of",
        "size",
        "verified",
    )

    def __init__(self, read: Callable[[int, int], bytes], size: int, pack: Pack) -> None:
        """Accept an index that fits its pack.

        Raises:
            CorruptIndexError: it does not.
        """
        head = read(0, HEADER.size)
        if len(head) < HEADER.size:
            raise errors.CorruptIndexError("a pack index is too short", path=pack.path)
        magic, version, bits, objects, frames, pack_size, check = HEADER.unpack(head)
        if magic != MAGIC or version != VERSION or bits > MAXIMUM_BITS:
            raise errors.CorruptIndexError("a pack index does not begin like one", path=pack.path)
        if pack_size != pack.size or check != pack.check:
            raise errors.CorruptIndexError("a pack index belongs to another pack", path=pack.path)
        self._read = read
        self._left = max(size // LOOK_UP_BYTES, FEW_LOOK_UPS)
        self._data: bytes | None = None
        self.ids = b""
        self.frame_of = self.offset_of = memoryview(b"")  # of numbers, then
        self._next = self._other = 0
        self._pack_size: int = pack_size
        self._bits = bits
        self._entries_at = HEADER.size + 4 * ((1 << bits) + 1)
        self._ids_at = self._entries_at + 4 * objects
        self._rows_at = self._ids_at + OID_BYTES * objects
        self._frames_at = self._rows_at + ROW.size * objects
        self.size = size
        self.objects: int = objects
        self.frames: int = frames
        self.verified = False
        if self._frames_at + PLACE.size * frames + HASH_BYTES != size:
            raise errors.CorruptIndexError("a pack index has not the size it says", path=pack.path)

    def find(self, oid: bytes) -> int | None:
        """Return an object's number in the pack, or None.

        Raises:
            CorruptIndexError: the index is damaged.
        """
        data = self._data
        if data is None:
            self._left -= 1
            if self._left < 0:
                self.hold()
        else:
            # Whoever reads on asks for the next one, of those with links or of the others.
            number = self._next
            at = OID_BYTES * number
            if self.ids[at : at + OID_BYTES] != oid:
                number, self._other = self._other, number
                at = OID_BYTES * number
            if self.ids[at : at + OID_BYTES] == oid:
                self._next = number + 1
                return number
        low, high = self._bucket(oid)
        entries = self._read(self._entries_at + 4 * low, 4 * (high - low))
        check = _check_of(oid)
        for (entry,) in _ENTRY.iter_unpack(entries[: len(entries) & ~3]):
            if entry >> NUMBER_BITS == check:
                number = int(entry) & _NUMBER
                if self.id_of(number) == oid:
                    self._next = number + 1
                    return number
        return None

    def runs(self, oids: Sequence[bytes]) -> list[range]:
        """Return the numbers of objects, up to the first that the pack does not have: a range for those in a row.

        Raises:
            CorruptIndexError: the index is damaged.
        """
        found: list[range] = []
        done, count = 0, len(oids)
        while done < count:
            first = self.find(oids[done])
            if first is None:
                break
            ids, at = self.ids, OID_BYTES * first
            if not done and ids.startswith(b"".join(oids), at):
                stop = first + count
            else:
                stop = first + 1
                for oid in islice(oids, done + 1, None):
                    at += OID_BYTES
                    if ids[at : at + OID_BYTES] != oid:
                        break
                    stop += 1
            self._next = stop
            done += stop - first
            found.append(range(first, stop))
        return found

    def id_of(self, number: int) -> bytes:
        """Return the id of an object, by its number in the pack; fewer bytes when there is none."""
        if number >= self.objects:
            return b""
        if self._data is not None:
            return self.ids[OID_BYTES * number : OID_BYTES * (number + 1)]
        return self._read(self._ids_at + OID_BYTES * number, OID_BYTES)

    def row(self, number: int) -> tuple[int, int, int]:
        """Return (frame, offset, end) of an object; the end is 0 when it is that of the frame.

        Raises:
            CorruptIndexError: the index is too short.
        """
        # Behind the last row stands more of the index, so this is never too short.
        data = self._read(self._rows_at + ROW.size * number, _ROWS.size)
        if number >= self.objects or len(data) < _ROWS.size:
            raise errors.CorruptIndexError("a pack index is too short")
        offset, frame, end, following = _ROWS.unpack(data)
        within = frame == following and number + 1 < self.objects
        return frame, offset, end if within else 0

    def stored_rows(self, first: int, stop: int) -> bytes:
        """Return offsets and frames of the objects from one number up to another, as they are written here."""
        return self._read(self._rows_at + ROW.size * first, ROW.size * (stop - first))

    def place(self, frame: int) -> tuple[FramePlace, int]:
        """Return where a frame is, and the number of its dictionary's frame; -1 when it needs none.

        Raises:
            CorruptIndexError: there is no such frame, or it is said to be outside of the pack.
        """
        if not 0 <= frame < self.frames:
            raise errors.CorruptIndexError(f"a pack index names frame {frame} of {self.frames}")
        data = self._read(self._frames_at + PLACE.size * frame, PLACE.size)
        if len(data) < PLACE.size:
            raise errors.CorruptIndexError("a pack index is too short")
        offset, compressed, raw, objects, dictionary, sort = PLACE.unpack(data)
        if offset + compressed > self._pack_size or dictionary > frame or sort not in SORTS:
            raise errors.CorruptIndexError("a pack index names a place outside of its pack")
        return FramePlace(offset, compressed, raw, objects, sort), dictionary - 1

    def with_prefix(self, prefix: str, limit: int) -> list[ObjectId]:
        """Return at most `limit` ids that begin with these hex digits, sorted."""
        first = bytes.fromhex(prefix + "0" * (2 * OID_BYTES - len(prefix)))
        low, high = self._bucket(first)
        found: dict[ObjectId, None] = {}
        # A prefix has at least as many bits as choose a bucket, or the buckets it spans follow one another.
        while low < self.objects and len(found) < limit:
            entries = self._read(self._entries_at + 4 * low, 4 * max(high - low, 1))
            for (entry,) in _ENTRY.iter_unpack(entries[: len(entries) & ~3]):
                oid = ObjectId(self.id_of(entry & _NUMBER))
                if oid < first:
                    continue
                if not oid.hex().startswith(prefix):
                    return list(found)
                found[oid] = None
                if len(found) == limit:
                    break
            low = max(high, low + 1)
            high = min(low + BUCKET_OBJECTS, self.objects)
        return list(found)

    def in_order(self) -> Iterator[ObjectId]:
        """Yield all ids in the order in which their objects stand in the pack: reading them so is quick."""
        step = 1024
        for low in range(0, self.objects, step):
            count = min(step, self.objects - low)
            ids = self._read(self._ids_at + OID_BYTES * low, OID_BYTES * count)
            for at in range(0, len(ids), OID_BYTES):
                oid = ids[at : at + OID_BYTES]
                if oid != ABSENT:
                    yield ObjectId(oid)

    def entries(self) -> dict[bytes, tuple[int, int]] | None:
        """Return (frame, offset) of every object; None when one of them would not be found."""
        count = self.objects
        data = self._read(self._ids_at, OID_BYTES * count)
        ids = [data[at : at + OID_BYTES] for at in range(0, OID_BYTES * count, OID_BYTES)]
        rows = self._read(self._rows_at, ROW.size * count)
        tables = self._read(HEADER.size, self._ids_at - HEADER.size)
        if tables != _tables(ids, self._bits) or len(rows) != ROW.size * count:
            return None
        found: dict[bytes, tuple[int, int]] = {}
        for oid, (offset, frame) in zip(ids, ROW.iter_unpack(rows), strict=True):
            found.setdefault(oid, (frame, offset))
        return found

    def verify(self) -> bool:
        """Tell whether the checksum holds; reads the whole index, once."""
        if not self.verified:
            self.verified = is_whole(self._read(0, self.size), self.size)
        return self.verified

    def hold(self) -> None:
        """Hold all of it from now on, checked: what was read of it in pieces may be about as much.

        Raises:
            CorruptIndexError: its checksum is wrong.
        """
        data = self._read(0, self.size)
        if not is_whole(data, self.size):
            raise errors.CorruptIndexError("the checksum of a pack index is wrong")
        self.verified = True
        self._data = data
        self.ids = data[self._ids_at : self._rows_at]
        rows = data[self._rows_at : self._frames_at] + ROW.pack(0, NO_FRAME)
        self.offset_of, self.frame_of = _column(rows, 0, "I"), _column(rows, 4, "H")
        self._read = lambda at, size: data[at : at + size]

    def _bucket(self, oid: bytes) -> tuple[int, int]:
        bucket = (oid[0] << 8 | oid[1]) >> (MAXIMUM_BITS - self._bits)
        data = self._read(HEADER.size + 4 * bucket, _BOUNDS.size)
        if len(data) < _BOUNDS.size:
            return 0, 0
        low, high = _BOUNDS.unpack(data)
        if not low <= high <= self.objects:
            return 0, 0
        return low, high


def encode_index(
    ids: bytes,
    rows: Sequence[tuple[int, int]],
    places: Sequence[FramePlace],
    pack_size: int,
    check: bytes,
    *,
    bits: int | None = None,
) -> bytes:
    """Return the bytes of an index.

    Args:
        ids: of the objects in the order of the pack, joined.
        rows: (frame, offset) of each of them.
        places: where the frames are.
        pack_size: the size of the pack in bytes.
        check: the hash in its trailer.
        bits: of an id, to choose its bucket; when not given, as many as leave few objects in one.
    """
    count = len(rows)
    if bits is None:
        bits = 0
        while bits < MAXIMUM_BITS and count >> bits > BUCKET_OBJECTS:
            bits += 1
    listed = [ids[at : at + OID_BYTES] for at in range(0, len(ids), OID_BYTES)]
    pieces = [
        HEADER.pack(MAGIC, VERSION, bits, count, len(places), pack_size, check),
        _tables(listed, bits),
        ids,
    ]
    pieces += [ROW.pack(offset, frame) for frame, offset in rows]
    dictionary = 0
    for number, p in enumerate(places, 1):
        needed = dictionary if p.sort & NEEDS_DICTIONARY else 0
        pieces.append(PLACE.pack(p.offset, p.compressed, p.raw, p.objects, needed, p.sort))
        if p.sort == DICTIONARY:
            dictionary = number
    data = b"".join(pieces)
    return data + digest(data)


def build_index(pack: Pack) -> tuple[bytes, bool]:
    """Return the index of a pack, made from its content, and whether all of the pack could be read."""
    walk = PackWalk(pack)
    rows: list[tuple[int, int]] = []
    places: list[FramePlace] = []
    whole = pack.digests()[1]
    try:
        for number, place in enumerate(pack.places()):
            places.append(place)
            try:
                whole = len(walk.objects(place)) == place.objects and whole
            except errors.CorruptObjectError:
                whole = False
            rows += [(number, offset) for offset in walk.offsets]
    except errors.CorruptPackError:
        whole = False
    whole = whole and len(places) == pack.frame_count and len(rows) == pack.object_count
    return encode_index(bytes(walk.ids), rows, places, pack.size, pack.check), whole


def _tables(ids: list[bytes], bits: int) -> bytes:
    """Return the buckets and the entries."""
    shift = MAXIMUM_BITS - bits
    starts = [0] * ((1 << bits) + 1)
    for oid in ids:
        starts[((oid[0] << 8 | oid[1]) >> shift) + 1] += 1
    for bucket in range(1, len(starts)):
        starts[bucket] += starts[bucket - 1]
    ordered = sorted(range(len(ids)), key=ids.__getitem__)
    entries = [number | _check_of(ids[number]) << NUMBER_BITS for number in ordered]
    return struct.pack(f"<{len(starts) + len(entries)}I", *starts, *entries)


def _column(rows: bytes, at: int, code: Literal["H", "I"]) -> memoryview[int]:
    """Return one field of rows, which stands at an offset in each of them, as numbers."""
    size = struct.calcsize(code)
    column = bytearray(len(rows) // ROW.size * size)
    for to, byte in enumerate(range(size)[:: 1 if sys.byteorder == "little" else -1]):
        column[to::size] = rows[at + byte :: ROW.size]
    return memoryview(column).cast(code)


def _check_of(oid: bytes) -> int:
    return oid[2] << 6 | oid[3] >> 2


def is_whole(data: bytes, size: int) -> bool:
    """Tell whether the bytes of an index are as many as they should be, and its checksum holds."""
    return len(data) == size and digest(memoryview(data)[:-HASH_BYTES]) == data[-HASH_BYTES:]
