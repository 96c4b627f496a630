"""Complete verification of a pack: every byte, every hash, every object.

Rule: damage is reported and the rest is still checked. Memory is bounded by the largest frame.

Rule: in objects, unknown kinds and fields are accepted if their encoding is canonical.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.base.frozen import value
from trace_store.objects.codec import (
    BLOB,
    COMMIT,
    TAG,
    blob_content,
    inspect,
    is_plain_blob,
    kind_of,
)
from trace_store.objects.commit import Commit, Tag
from trace_store.odb.pack import PackWalk
from trace_store.odb.pack_index import encode_index, encode_rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from trace_store.base.oid import ObjectId
    from trace_store.odb.index_scan import IndexContent
    from trace_store.odb.pack import FramePlace, Pack


@value
class PackedObject:
    """An object and its position in a pack.

    Attributes:
        oid: its id, the hash of its bytes.
        kind: its object kind.
        data: its canonical bytes.
        frame: the number of its frame, from 0.
        offset: its offset in the frame's raw content.
    """

    oid: ObjectId
    kind: str
    data: bytes
    frame: int
    offset: int


class PackVerifier:
    """Verifies one pack.

    Attributes:
        places: the positions of the frames checked so far.
        rows: (id, frame, offset) of each sound object.
    """

    __slots__ = ("_damage", "_pack", "_rows", "_walk", "places", "rows")

    def __init__(self, pack: Pack, damage: Callable[[str], None] | None = None) -> None:
        """Prepare to verify a pack.

        Args:
            pack: an open pack.
            damage: called with a description of each fault; without it, the first fault is raised.
        """
        self._pack = pack
        self._damage = damage
        self.places: list[FramePlace] = []
        self.rows: list[tuple[ObjectId, int, int]] = []
        self._rows = bytearray()
        self._walk = PackWalk(pack)

    def objects(self) -> Iterator[PackedObject]:
        """Yield the sound objects in the order of writing.

        Raises:
            CorruptPackError: a fault was found, and `damage` is not given.
            StorageError: the pack cannot be read.
        """
        pack = self._pack
        if not pack.digests()[1]:
            self._report("it does not match the hash in its trailer")
        count = 0
        try:
            for number, place in enumerate(pack.places()):
                self.places.append(place)
                try:
                    objects = self._walk.objects(place)
                except errors.CorruptObjectError as error:
                    self._report(f"frame {number}: {error.message}")
                    continue
                finally:
                    self._rows += encode_rows(number, self._walk.offsets)
                if len(objects) < place.objects:
                    lost = place.objects - len(objects)
                    self._report(f"frame {number}: {lost} objects link to damaged objects")
                for oid, offset, data in objects:
                    count += 1
                    checked = self._check(oid, data, number, offset)
                    if checked is not None:
                        yield checked
        except errors.CorruptPackError as error:
            if self._damage is None:
                raise
            self._report(error.message)
        frames = len(self.places)
        if (frames, count) != (pack.frame_count, pack.object_count):
            self._report(
                f"it has {count} objects in {frames} frames,"
                f" not {pack.object_count} in {pack.frame_count} as in its trailer"
            )

    def index(self) -> bytes:
        """Return the pack's index, once all objects were verified."""
        ids, pack = bytes(self._walk.ids), self._pack
        return encode_index(ids, bytes(self._rows), self.places, pack.size, pack.check)

    def agrees_with(self, index: IndexContent) -> bool:
        """Return True if an index matches the pack, once all objects were verified."""
        return (
            (index.pack_size, index.check) == (self._pack.size, self._pack.check)
            and [place.key() for place in self.places] == [place.key() for place in index.places]
            and sorted(self.rows) == index.rows
        )

    def _check(self, oid: ObjectId, data: bytes, number: int, offset: int) -> PackedObject | None:
        try:
            kind = check_object(data)
        except errors.FormatError as error:
            self._report(f"object {oid} in frame {number}: {error.message}")
            return None
        self.rows.append((oid, number, offset))
        return PackedObject(oid, kind, data, number, offset)

    def _report(self, what: str) -> None:
        if self._damage is None:
            raise errors.CorruptPackError(
                f"pack {self._pack.name[:12]} is damaged: {what}", path=self._pack.path
            )
        self._damage(what)


def check_object(data: bytes) -> str:
    """Return an object's kind if it is valid and canonical.

    Raises:
        CorruptObjectError: it is not.
    """
    kind = kind_of(data)
    value, is_canonical, _ = inspect(data)
    if not is_canonical:
        raise errors.CorruptObjectError(f"the {kind} is not in canonical form")
    if kind == COMMIT:
        Commit.of(value)
    elif kind == TAG:
        Tag.of(value)
    elif kind == BLOB and not is_plain_blob(data):
        blob_content(data)
    return kind


def is_truncated(data: bytes) -> bool:
    """Return True if the bytes are the start of a truncated object."""
    import msgpack

    unpacker = msgpack.Unpacker(max_buffer_size=len(data) + 1)
    unpacker.feed(data)
    try:
        unpacker.skip()
    except msgpack.OutOfData:
        return True
    except Exception:  # noqa: BLE001 - any error means that it is not an object
        return False
    return False
