"""All that the index of a pack says: for whoever shows or examines it.

Rule: what is not to the byte what the writer would have made of the same content is no index.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.odb.pack import FramePlace
from trace_store.odb.pack_index import (
    HASH_BYTES,
    HEADER,
    MAGIC,
    MAXIMUM_BITS,
    PLACE,
    ROW,
    VERSION,
    encode_index,
    is_whole,
)
from trace_store.oid import OID_BYTES, ObjectId


class IndexContent:
    """All that an index says.

    Attributes:
        rows: (id, frame, offset) of each object, sorted by id; an object that stands there twice comes twice.
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
        if len(data) < HEADER.size + HASH_BYTES or not is_whole(data, len(data)):
            raise errors.CorruptIndexError("a pack index is too short, or its checksum is wrong")
        magic, version, bits, objects, frames, pack_size, check = HEADER.unpack_from(data)
        if magic != MAGIC or version != VERSION or bits > MAXIMUM_BITS:
            raise errors.CorruptIndexError("a pack index does not begin like one")
        ids_at = HEADER.size + 4 * ((1 << bits) + 1) + 4 * objects
        rows_at = ids_at + OID_BYTES * objects
        frames_at = rows_at + ROW.size * objects
        if frames_at + PLACE.size * frames + HASH_BYTES != len(data):
            raise errors.CorruptIndexError("a pack index has another size than it says")
        ids = [data[at : at + OID_BYTES] for at in range(ids_at, rows_at, OID_BYTES)]
        stands = [(frame, offset) for offset, frame in ROW.iter_unpack(data[rows_at:frames_at])]
        self.places = [
            FramePlace(offset, compressed, raw, held, sort)
            for offset, compressed, raw, held, _, sort in PLACE.iter_unpack(
                data[frames_at:-HASH_BYTES]
            )
        ]
        self.rows: list[tuple[ObjectId, int, int]] = sorted(
            (ObjectId(oid), frame, offset) for oid, (frame, offset) in zip(ids, stands, strict=True)
        )
        self.pack_size: int = pack_size
        self.check: bytes = check
        again = encode_index(b"".join(ids), stands, self.places, pack_size, check, bits=bits)
        if again != data:
            raise errors.CorruptIndexError("a pack index is not in order")
