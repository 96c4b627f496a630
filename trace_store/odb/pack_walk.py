"""A pack gone through from front to back, with nothing else at hand.

Rule: an object's id is the hash of its bytes, and what links lead to stands before what has them; so all ids are known
when they are needed. A frame that is damaged takes along the objects that name its objects, and those that need it.
Memory holds one frame, one dictionary, and the ids.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.odb.compression import Dictionary
from trace_store.odb.delta_links import ABSENT, lengthen
from trace_store.odb.pack import DICTIONARY, NEEDS_DICTIONARY, SHORT_LINKS, split
from trace_store.oid import OID_BYTES, hash_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Protocol, TypeAlias

    from trace_store.odb.pack import FramePlace, Pack
    from trace_store.oid import ObjectId

    class Frames(Protocol):
        """What a pack is gone through by."""

        def decode(self, place: FramePlace, dictionary: Dictionary | None = None, /) -> bytes: ...

    Objects: TypeAlias = list[tuple[ObjectId, int, bytes]]


def walk_objects(
    pack: Pack,
) -> Iterator[tuple[int, FramePlace, Objects | errors.CorruptObjectError]]:
    """Yield (number, place, objects or what is wrong) of every frame in order; a dictionary has none.

    An object is (id, offset in the frame's content, bytes); the id is the hash of the bytes. One that cannot be
    had is left out, and counted in the place all the same.

    Raises:
        CorruptPackError: the rest cannot be found, or there is more than a pack may hold.
        StorageError: the disk refuses.
    """
    walk = PackWalk(pack)
    for number, place in enumerate(pack.places()):
        try:
            yield number, place, walk.objects(place)
        except errors.CorruptObjectError as error:
            yield number, place, error


class PackWalk:
    """What is known of a pack on the way through it.

    Attributes:
        ids: of the objects so far, joined; those that could not be had have one of zeros.
        offsets: where the objects of the last frame stand in its content; 0 for all when it is damaged.
    """

    __slots__ = ("_dictionary", "_pack", "ids", "offsets")

    def __init__(self, pack: Frames) -> None:
        self._pack = pack
        self._dictionary: Dictionary | None = None
        self.ids = bytearray()
        self.offsets: list[int] = []

    def objects(self, place: FramePlace) -> Objects:
        """Return the objects of the next frame.

        Raises:
            CorruptObjectError: it is damaged.
            StorageError: the disk refuses.
        """
        first = len(self.ids)
        self.ids += ABSENT * place.objects
        self.offsets = [0] * place.objects
        if place.sort == DICTIONARY:
            self._dictionary = None
            self._dictionary = Dictionary(self._pack.decode(place))
            return []
        if not place.sort & NEEDS_DICTIONARY:
            raw = self._pack.decode(place)
        elif self._dictionary is None:
            raise errors.CorruptObjectError("the dictionary of a frame is damaged, or absent")
        else:
            raw = self._pack.decode(place, self._dictionary)
        places = list(split(raw, place.objects))
        self.offsets = [offset for offset, _ in places]
        if place.sort & SHORT_LINKS:
            return self._lengthened(raw, places, first)
        cut = [(offset, raw[offset : offset + size]) for offset, size in places]
        found = [(hash_object(data), offset, data) for offset, data in cut]
        self.ids[first:] = b"".join([each[0] for each in found])
        return found

    def _lengthened(self, raw: bytes, places: list[tuple[int, int]], first: int) -> Objects:
        found: Objects = []
        for ordinal, (offset, size) in enumerate(places, first // OID_BYTES):
            try:
                data = lengthen(raw[offset : offset + size], ordinal, self._id_of)
            except errors.CorruptObjectError:
                continue
            oid = hash_object(data)
            self.ids[ordinal * OID_BYTES : (ordinal + 1) * OID_BYTES] = oid
            found.append((oid, offset, data))
        return found

    def _id_of(self, ordinal: int) -> bytes:
        return bytes(self.ids[ordinal * OID_BYTES : (ordinal + 1) * OID_BYTES])
