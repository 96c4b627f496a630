"""A sequential walk over a pack, without its index.

Rule: an object's id is the hash of its bytes, and links lead backwards only, so all ids are known when needed. A
damaged frame also loses the objects that link to its objects, and the frames that need it as a dictionary. Memory holds
one frame, one dictionary, and the ids.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.odb.compression import Dictionary
from trace_store.odb.delta_links import ABSENT, expand_links
from trace_store.odb.pack import DICTIONARY, NEEDS_DICTIONARY, SHORT_LINKS, split
from trace_store.oid import OID_BYTES, hash_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Protocol, TypeAlias

    from trace_store.odb.pack import FramePlace, Pack
    from trace_store.oid import ObjectId

    class Frames(Protocol):
        """The source of a walk."""

        def decode(self, place: FramePlace, dictionary: Dictionary | None = None, /) -> bytes: ...

    Objects: TypeAlias = list[tuple[ObjectId, int, bytes]]


def walk_objects(
    pack: Pack,
) -> Iterator[tuple[int, FramePlace, Objects | errors.CorruptObjectError]]:
    """Yield (number, place, objects or error) of every frame in order.

    A dictionary has no objects.

    An object is (id, offset in the frame's content, bytes). Unreadable objects are left out, but counted in the place.

    Raises:
        CorruptPackError: the remaining frames cannot be found, or there are too many.
        StorageError: the pack cannot be read.
    """
    walk = PackWalk(pack)
    for number, place in enumerate(pack.places()):
        try:
            yield number, place, walk.objects(place)
        except errors.CorruptObjectError as error:
            yield number, place, error


class PackWalk:
    """The state of a walk over a pack.

    Attributes:
        ids: the joined ids of the objects so far; zeros for unreadable ones.
        offsets: the offsets of the last frame's objects in its content; 0 if it is damaged.
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
            CorruptObjectError: the frame is damaged.
            StorageError: the pack cannot be read.
        """
        first = len(self.ids)
        self.ids += ABSENT * place.objects
        self.offsets = [0] * place.objects
        if place.flags == DICTIONARY:
            self._dictionary = None
            self._dictionary = Dictionary(self._pack.decode(place))
            return []
        if not place.flags & NEEDS_DICTIONARY:
            raw = self._pack.decode(place)
        elif self._dictionary is None:
            raise errors.CorruptObjectError("the frame's dictionary is damaged or missing")
        else:
            raw = self._pack.decode(place, self._dictionary)
        places = list(split(raw, place.objects))
        self.offsets = [offset for offset, _ in places]
        if place.flags & SHORT_LINKS:
            return self._expand(raw, places, first)
        cut = [(offset, raw[offset : offset + size]) for offset, size in places]
        objects = [(hash_object(data), offset, data) for offset, data in cut]
        self.ids[first:] = b"".join([each[0] for each in objects])
        return objects

    def _expand(self, raw: bytes, places: list[tuple[int, int]], first: int) -> Objects:
        objects: Objects = []
        for ordinal, (offset, size) in enumerate(places, first // OID_BYTES):
            try:
                data = expand_links(raw[offset : offset + size], ordinal, self._id_of)
            except errors.CorruptObjectError:
                continue
            oid = hash_object(data)
            self.ids[ordinal * OID_BYTES : (ordinal + 1) * OID_BYTES] = oid
            objects.append((oid, offset, data))
        return objects

    def _id_of(self, ordinal: int) -> bytes:
        return bytes(self.ids[ordinal * OID_BYTES : (ordinal + 1) * OID_BYTES])
