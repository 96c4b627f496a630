"""A pack looked at as a whole: every byte read, every hash computed, every object taken for what it is.

Rule: what is wrong is told, and the rest is gone through all the same. Memory is bounded by what a frame may hold.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.objects.validate import check_object
from trace_store.odb.pack_index import encode_index
from trace_store.odb.pack_walk import PackWalk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from trace_store.odb.index_scan import IndexContent
    from trace_store.odb.pack import FramePlace, Pack
    from trace_store.oid import ObjectId


class PackedObject:
    """An object and its place in a pack.

    Attributes:
        oid: its id, the hash of its bytes.
        kind: what it is.
        data: its canonical bytes.
        frame: the number of its frame, from 0.
        offset: where it begins in the frame's raw content.
    """

    __slots__ = ("data", "frame", "kind", "offset", "oid")

    def __init__(self, oid: ObjectId, kind: str, data: bytes, frame: int, offset: int) -> None:
        self.oid = oid
        self.kind = kind
        self.data = data
        self.frame = frame
        self.offset = offset


class Examination:
    """One look at a pack.

    Attributes:
        places: where its frames are; of those that were gone through.
        rows: (id, frame, offset) of each sound object.
    """

    __slots__ = ("_damage", "_pack", "_stands", "_walk", "places", "rows")

    def __init__(self, pack: Pack, damage: Callable[[str], None] | None = None) -> None:
        """Prepare to look at a pack.

        Args:
            pack: an open pack.
            damage: told what is wrong, in half a sentence each; without it the first thing wrong is raised.
        """
        self._pack = pack
        self._damage = damage
        self.places: list[FramePlace] = []
        self.rows: list[tuple[ObjectId, int, int]] = []
        self._stands: list[tuple[int, int]] = []
        self._walk = PackWalk(pack)

    def objects(self) -> Iterator[PackedObject]:
        """Yield the sound objects in the order they were written.

        Raises:
            CorruptPackError: something is wrong, and nobody wants to be told.
            StorageError: the disk refuses.
        """
        pack = self._pack
        if not pack.digests()[1]:
            self._tell("its bytes have another hash than its trailer says")
        count = 0
        try:
            for number, place in enumerate(pack.places()):
                self.places.append(place)
                try:
                    objects = self._walk.objects(place)
                except errors.CorruptObjectError as error:
                    self._tell(f"frame {number}: {error.message}")
                    continue
                finally:
                    self._stands += [(number, offset) for offset in self._walk.offsets]
                if len(objects) < place.objects:
                    lost = place.objects - len(objects)
                    self._tell(f"frame {number}: {lost} objects name objects that are damaged")
                for oid, offset, data in objects:
                    count += 1
                    found = self._look_at(oid, data, number, offset)
                    if found is not None:
                        yield found
        except errors.CorruptPackError as error:
            if self._damage is None:
                raise
            self._tell(error.message)
        frames = len(self.places)
        if (frames, count) != (pack.frame_count, pack.object_count):
            self._tell(
                f"it has {count} objects in {frames} frames,"
                f" not {pack.object_count} in {pack.frame_count} as its trailer says"
            )

    def index(self) -> bytes:
        """Return the index that belongs to the pack, when all of it was gone through."""
        ids, pack = bytes(self._walk.ids), self._pack
        return encode_index(ids, self._stands, self.places, pack.size, pack.check)

    def agrees_with(self, index: IndexContent) -> bool:
        """Tell whether an index leads to every object of the pack, when all of it was gone through."""
        return (
            (index.pack_size, index.check) == (self._pack.size, self._pack.check)
            and [place.key() for place in self.places] == [place.key() for place in index.places]
            and sorted(self.rows) == index.rows
        )

    def _look_at(self, oid: ObjectId, data: bytes, number: int, offset: int) -> PackedObject | None:
        try:
            kind = check_object(data)
        except errors.FormatError as error:
            self._tell(f"object {oid} in frame {number}: {error.message}")
            return None
        self.rows.append((oid, number, offset))
        return PackedObject(oid, kind, data, number, offset)

    def _tell(self, what: str) -> None:
        if self._damage is None:
            raise errors.CorruptPackError(
                f"pack {self._pack.name[:12]} is damaged: {what}", path=self._pack.path
            )
        self._damage(what)
