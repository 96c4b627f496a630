"""The index of a pack: the position of each object.

    offset  size          field
    0       4             "TRPI"
    4       1             version, 2
    5       1             b, the number of leading bits of an id that select a bucket
    6       2             zero
    8       4             number of objects n
    12      4             number of frames f
    16      8             size of the pack
    24      32            check of the pack (the hash in its trailer)
    56      4 (2^b + 1)   start of each bucket
            4 n           entries in the order of the ids: the object's number in the pack in the lower 18 bits, above
                          them the third byte of the id and the upper 6 bits of the fourth
            32 n          ids, in the order of the pack
            6 n           per object: offset in the frame's raw content u32, frame u16
            24 f          per frame: file offset, compressed size, raw size, number of objects, 1 + the number of its
                          dictionary's frame or 0, flags
            32            blake3-256 of everything above

Rule: derived and local; rebuilt from the pack if it is missing or does not match. It is read in small pieces, so that
opening it costs the same at any size, until loading it completely is cheaper. The loaded ones have a bound.
"""

from __future__ import annotations

import struct
import sys
from itertools import accumulate, islice

from trace_store import errors
from trace_store.base.oid import OID_BYTES, ObjectId, digest
from trace_store.odb.delta_links import ABSENT
from trace_store.odb.pack import DICTIONARY, FLAGS, NEEDS_DICTIONARY, FramePlace, Pack, PackWalk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Literal

MAGIC = b"TRPI"
VERSION = 2
HASH_BYTES = 32
BUCKET_OBJECTS = 4
NUMBER_BITS = 18  # enough for the objects of any pack
MAXIMUM_BITS = 16
MAXIMUM_INDEX_BYTES = 16 * 1024 * 1024
"""More than the index of the largest pack needs."""
NO_FRAME = 0xFFFF
"""More than the frames of any pack."""
FEW_LOOK_UPS = 16
LOOK_UP_BYTES = 32 * 1024
"""Loading this much takes about as long as one look-up in pieces."""
HEADER = struct.Struct("<4sBB2xIIQ32s")
_BOUNDS = struct.Struct("<II")
ENTRY = struct.Struct("<I")
_NUMBER = (1 << NUMBER_BITS) - 1
ID_HEAD = struct.Struct(f">I{OID_BYTES - 4}x")
CHECK = 0xFFFC
"""The bits of an id's first four bytes that its entry holds."""
ROW = struct.Struct("<IH")
_ROWS = struct.Struct("<IHIH")
PLACE = struct.Struct("<IIIIII")


LOADED_BYTES = 48 * 1024 * 1024
"""How many bytes of loaded indexes stay in memory: the objects of four full packs."""


class LoadedIndexes:
    """The loaded indexes of a repository; the first one loaded is the first to go."""

    __slots__ = ("_bytes", "_indexes")

    def __init__(self) -> None:
        self._indexes: list[PackIndex] = []
        self._bytes = 0

    def add(self, index: PackIndex) -> None:
        """Add an index that was loaded, and unload others to make room for it."""
        self.drop(index)
        while self._indexes and self._bytes + index.size > LOADED_BYTES:
            first = self._indexes[0]
            self.drop(first)
            first.unload()
        self._indexes.append(index)
        self._bytes += index.size

    def drop(self, index: PackIndex) -> None:
        """Forget an index."""
        if index in self._indexes:
            self._indexes.remove(index)
            self._bytes -= index.size


class PackIndex:
    """An index, read through a function that returns the bytes at (offset, size).

    Attributes:
        objects: how many objects the pack has.
        frames: how many frames the pack has.
        size: the size of the index in bytes.
        ids: the joined ids in the order of the pack; empty until the index is loaded.
        frame_of, offset_of: each object's frame and its offset there, plus a sentinel; empty until the index is loaded.
        verified: whether the checksum was checked.
    """

    def __init__(
        self,
        read: Callable[[int, int], bytes],
        size: int,
        pack: Pack,
        loaded: LoadedIndexes | None = None,
    ) -> None:
        """Open an index of a pack.

        Args:
            read: returns the bytes of the index at (offset, size).
            size: its size in bytes.
            pack: the pack.
            loaded: bounds the memory of all loaded indexes; None for no bound.

        Raises:
            CorruptIndexError: it does not belong to the pack.
        """
        head = read(0, HEADER.size)
        if len(head) < HEADER.size:
            raise errors.CorruptIndexError("the pack index is too short", path=pack.path)
        magic, version, bits, objects, frames, pack_size, check = HEADER.unpack(head)
        if magic != MAGIC or version != VERSION or bits > MAXIMUM_BITS:
            raise errors.CorruptIndexError("the pack index has an invalid header", path=pack.path)
        if pack_size != pack.size or check != pack.check:
            raise errors.CorruptIndexError("the pack index belongs to another pack", path=pack.path)
        self._read = self._file = read
        self._tables = b""
        self._loaded = loaded
        self._left = max(size // LOOK_UP_BYTES, FEW_LOOK_UPS)
        self.ids = b""
        self.frame_of = self.offset_of = memoryview(b"")  # of int, when loaded
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
            raise errors.CorruptIndexError(
                "the pack index does not have its declared size", path=pack.path
            )

    def find(self, oid: bytes) -> int | None:
        """Return an object's number in the pack, or None.

        Raises:
            CorruptIndexError: the index is damaged.
        """
        if not self.ids:
            if not self._tables:
                self._count_look_up()
        else:
            # Sequential readers ask for the next object, either with or without links.
            number = self._next
            at = OID_BYTES * number
            if self.ids[at : at + OID_BYTES] != oid:
                number, self._other = self._other, number
                at = OID_BYTES * number
            if self.ids[at : at + OID_BYTES] == oid:
                self._next = number + 1
                return number
        found = self._find(oid, self._read)
        if found is not None:
            self._next = found + 1
            if self._tables and not self.ids:
                self._count_look_up()
        return found

    def _count_look_up(self) -> None:
        """Load the index when that is cheaper than the look-ups in pieces so far."""
        self._left -= 1
        if self._left < 0:
            self.load()

    def find_all(self, oids: Iterable[bytes]) -> frozenset[bytes]:
        """Return the ids that the pack has; reads the tables of the index at once, but keeps them only meanwhile.

        Raises:
            CorruptIndexError: the index is damaged.
        """
        tables = self._read(0, self._ids_at)

        def read(at: int, size: int) -> bytes:
            return tables[at : at + size]

        return frozenset(oid for oid in oids if self._find(oid, read) is not None)

    def starting_with(self, first: int) -> list[bytes]:
        """Return the ids whose first four bits are these."""
        ids = self.joined_ids(0, self.objects)
        shift = self._bits - 4
        if shift < 0:
            found = [ids[at : at + OID_BYTES] for at in range(0, len(ids), OID_BYTES)]
            return [oid for oid in found if oid[0] >> 4 == first]
        low, high = (
            ENTRY.unpack(self._read(HEADER.size + 4 * (bucket << shift), ENTRY.size))[0]
            for bucket in (first, first + 1)
        )
        entries = self._read(self._entries_at + 4 * low, 4 * max(high - low, 0))
        starts = [OID_BYTES * (entry & _NUMBER) for (entry,) in ENTRY.iter_unpack(entries)]
        return [ids[at : at + OID_BYTES] for at in starts]

    def _find(self, oid: bytes, read: Callable[[int, int], bytes]) -> int | None:
        """Return an object's number; `read` returns bytes of the tables."""
        low, high = self._bucket(oid, read)
        entries = read(self._entries_at + 4 * low, 4 * (high - low))
        check = _check_of(oid)
        for (entry,) in ENTRY.iter_unpack(entries[: len(entries) & ~3]):
            if entry >> NUMBER_BITS == check:
                number = int(entry) & _NUMBER
                if self.id_of(number) == oid:
                    return number
        return None

    def copies(self, oid: bytes) -> list[int]:
        """Return the numbers of all copies of an object: a pack from elsewhere may have several."""
        low, high = self._bucket(oid, self._read)
        entries = self._read(self._entries_at + 4 * low, 4 * (high - low))
        numbers = [entry & _NUMBER for (entry,) in ENTRY.iter_unpack(entries[: len(entries) & ~3])]
        return [number for number in numbers if self.id_of(number) == oid]

    def runs(self, oids: Sequence[bytes]) -> list[range]:
        """Return objects' numbers as ranges, up to the first that is not in the pack.

        Raises:
            CorruptIndexError: the index is damaged.
        """
        ranges: list[range] = []
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
            ranges.append(range(first, stop))
        return ranges

    def id_of(self, number: int) -> bytes:
        """Return an object's id, given its number in the pack; b"" if out of range."""
        if number >= self.objects:
            return b""
        return self.joined_ids(number, number + 1)

    def joined_ids(self, first: int, stop: int) -> bytes:
        """Return the joined ids of a range of objects."""
        if self.ids:
            return self.ids[OID_BYTES * first : OID_BYTES * stop]
        return self._read(self._ids_at + OID_BYTES * first, OID_BYTES * (stop - first))

    def row(self, number: int) -> tuple[int, int, int]:
        """Return (frame, offset, end) of an object; end is 0 at the end of the frame.

        Raises:
            CorruptIndexError: the index is too short.
        """
        # More data follows the last row, so a sound index is never too short.
        data = self._read(self._rows_at + ROW.size * number, _ROWS.size)
        if number >= self.objects or len(data) < _ROWS.size:
            raise errors.CorruptIndexError("the pack index is too short")
        offset, frame, end, following = _ROWS.unpack(data)
        within = frame == following and number + 1 < self.objects
        return frame, offset, end if within else 0

    def stored_rows(self, first: int, stop: int) -> bytes:
        """Return the encoded offsets and frames of a range of objects."""
        return self._read(self._rows_at + ROW.size * first, ROW.size * (stop - first))

    def place(self, frame: int) -> tuple[FramePlace, int]:
        """Return a frame's position and its dictionary's frame number, or -1.

        Raises:
            CorruptIndexError: there is no such frame, or its position is invalid.
        """
        if not 0 <= frame < self.frames:
            raise errors.CorruptIndexError(f"the pack index names frame {frame} of {self.frames}")
        data = self._read(self._frames_at + PLACE.size * frame, PLACE.size)
        if len(data) < PLACE.size:
            raise errors.CorruptIndexError("the pack index is too short")
        offset, compressed, raw, objects, dictionary, flags = PLACE.unpack(data)
        if offset + compressed > self._pack_size or dictionary > frame or flags not in FLAGS:
            raise errors.CorruptIndexError("the pack index names a position outside of its pack")
        return FramePlace(offset, compressed, raw, objects, flags), dictionary - 1

    def with_prefix(self, prefix: str, limit: int) -> list[ObjectId]:
        """Return at most `limit` ids that start with these hex digits, sorted."""
        first = bytes.fromhex(prefix + "0" * (2 * OID_BYTES - len(prefix)))
        low, high = self._bucket(first, self._read)
        matches: dict[ObjectId, None] = {}
        # A prefix may span several buckets, which then follow each other.
        while low < self.objects and len(matches) < limit:
            entries = self._read(self._entries_at + 4 * low, 4 * max(high - low, 1))
            for (entry,) in ENTRY.iter_unpack(entries[: len(entries) & ~3]):
                oid = ObjectId(self.id_of(entry & _NUMBER))
                if oid < first:
                    continue
                if not oid.hex().startswith(prefix):
                    return list(matches)
                matches[oid] = None
                if len(matches) == limit:
                    break
            low = max(high, low + 1)
            high = min(low + BUCKET_OBJECTS, self.objects)
        return list(matches)

    def in_order(self) -> Iterator[ObjectId]:
        """Yield all ids in the order of the pack, the fastest order to read."""
        step = 1024
        for low in range(0, self.objects, step):
            count = min(step, self.objects - low)
            ids = self.joined_ids(low, low + count)
            for at in range(0, len(ids), OID_BYTES):
                oid = ids[at : at + OID_BYTES]
                if oid != ABSENT:
                    yield ObjectId(oid)

    def entries(self) -> dict[bytes, tuple[int, int]] | None:
        """Return (frame, offset) of every object by id, or None if a look-up would fail."""
        count = self.objects
        data = self.joined_ids(0, count)
        ids = [data[at : at + OID_BYTES] for at in range(0, OID_BYTES * count, OID_BYTES)]
        rows = self._read(self._rows_at, ROW.size * count)
        tables = self._read(HEADER.size, self._ids_at - HEADER.size)
        if tables != _tables(data, self._bits) or len(rows) != ROW.size * count:
            return None
        places: dict[bytes, tuple[int, int]] = {}
        for oid, (offset, frame) in zip(ids, ROW.iter_unpack(rows), strict=True):
            places.setdefault(oid, (frame, offset))
        return places

    def verify(self) -> bool:
        """Return True if the checksum matches; reads the whole index once."""
        if not self.verified:
            self.verified = is_whole(self._read(0, self.size), self.size)
        return self.verified

    def load(self) -> None:
        """Load the whole index and check it.

        Raises:
            CorruptIndexError: the checksum is wrong.
        """
        data = self._file(0, self.size)
        if not is_whole(data, self.size):
            raise errors.CorruptIndexError("the pack index has a wrong checksum")
        self.verified = True
        tables = self._tables = data[: self._ids_at]
        self.ids = data[self._ids_at : self._rows_at]
        start, rest = self._rows_at, data[self._rows_at :]
        rows = rest[: ROW.size * self.objects] + ROW.pack(0, NO_FRAME)
        self.offset_of, self.frame_of = _column(rows, 0, "I"), _column(rows, 4, "H")

        def read(at: int, size: int) -> bytes:
            return tables[at : at + size] if at < start else rest[at - start : at - start + size]

        self._read = read
        if self._loaded is not None:
            self._loaded.add(self)

    def unload(self) -> None:
        """Keep only the tables in memory, 5 bytes an object: most questions about absent objects need no more."""
        tables, file, end = self._tables, self._file, self._ids_at
        self.ids = b""
        self.frame_of = self.offset_of = memoryview(b"")
        self._left = max(self.size // LOOK_UP_BYTES, FEW_LOOK_UPS)
        self._read = lambda at, size: tables[at : at + size] if at < end else file(at, size)

    def _bucket(self, oid: bytes, read: Callable[[int, int], bytes]) -> tuple[int, int]:
        bucket = (oid[0] << 8 | oid[1]) >> (MAXIMUM_BITS - self._bits)
        data = read(HEADER.size + 4 * bucket, _BOUNDS.size)
        if len(data) < _BOUNDS.size:
            return 0, 0
        low, high = _BOUNDS.unpack(data)
        if not low <= high <= self.objects:
            return 0, 0
        return low, high


def encode_index(
    ids: bytes,
    rows: bytes,
    places: Sequence[FramePlace],
    pack_size: int,
    check: bytes,
    *,
    bits: int | None = None,
) -> bytes:
    """Return the bytes of an index.

    Args:
        ids: the joined ids in the order of the pack.
        rows: the joined ROWs of the objects.
        places: the positions of the frames.
        pack_size: the size of the pack in bytes.
        check: the hash in the pack's trailer.
        bits: leading id bits that select a bucket; default: enough for few objects per bucket.
    """
    count = len(rows) // ROW.size
    if bits is None:
        bits = 0
        while bits < MAXIMUM_BITS and count >> bits > BUCKET_OBJECTS:
            bits += 1
    pieces = [
        HEADER.pack(MAGIC, VERSION, bits, count, len(places), pack_size, check),
        _tables(ids, bits),
        ids,
        rows,
    ]
    dictionary = 0
    for number, p in enumerate(places, 1):
        needed = dictionary if p.flags & NEEDS_DICTIONARY else 0
        pieces.append(PLACE.pack(p.offset, p.compressed, p.raw, p.objects, needed, p.flags))
        if p.flags == DICTIONARY:
            dictionary = number
    data = b"".join(pieces)
    return data + digest(data)


def build_index(pack: Pack) -> tuple[bytes, bool]:
    """Build a pack's index from its content; return it and whether the pack is sound."""
    walk = PackWalk(pack)
    rows = bytearray()
    places: list[FramePlace] = []
    whole = pack.digests()[1]
    try:
        for number, place in enumerate(pack.places()):
            places.append(place)
            try:
                whole = len(walk.objects(place)) == place.objects and whole
            except errors.CorruptObjectError:
                whole = False
            rows += encode_rows(number, walk.offsets)
    except errors.CorruptPackError:
        whole = False
    whole = whole and len(places) == pack.frame_count and len(rows) == ROW.size * pack.object_count
    return encode_index(bytes(walk.ids), bytes(rows), places, pack.size, pack.check), whole


def encode_rows(frame: int, offsets: Iterable[int]) -> bytes:
    """Return the joined ROWs of objects at some offsets in a frame."""
    return b"".join([ROW.pack(offset, frame) for offset in offsets])


def _tables(joined: bytes, bits: int) -> bytes:
    """Return the encoded buckets and entries of joined ids."""
    heads = [head for (head,) in ID_HEAD.iter_unpack(joined)]
    ids = [joined[at : at + OID_BYTES] for at in range(0, len(joined), OID_BYTES)]
    shift = 2 * MAXIMUM_BITS - bits
    sizes = [0] * (1 << bits)
    for head in heads:
        sizes[head >> shift] += 1
    ordered = sorted(range(len(ids)), key=ids.__getitem__)
    del ids
    # The bits of the head that are an entry's check, moved to their place above the number.
    entries = [number | (heads[number] & CHECK) << NUMBER_BITS - 2 for number in ordered]
    starts = accumulate(sizes, initial=0)
    return struct.pack(f"<{len(sizes) + 1 + len(entries)}I", *starts, *entries)


def _column(rows: bytes, at: int, code: Literal["H", "I"]) -> memoryview[int]:
    """Return one field of all rows as numbers, given its offset in a row."""
    size = struct.calcsize(code)
    column = bytearray(len(rows) // ROW.size * size)
    for to, byte in enumerate(range(size)[:: 1 if sys.byteorder == "little" else -1]):
        column[to::size] = rows[at + byte :: ROW.size]
    return memoryview(column).cast(code)


def _check_of(oid: bytes) -> int:
    return oid[2] << 6 | oid[3] >> 2


def is_whole(data: bytes, size: int) -> bool:
    """Return True if an index has the expected size and a correct checksum."""
    return len(data) == size and digest(memoryview(data)[:-HASH_BYTES]) == data[-HASH_BYTES:]
