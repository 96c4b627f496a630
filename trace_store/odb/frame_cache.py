"""What was decoded of packs: the content of frames, and dictionaries.

Rule: what is held is bounded, and what was used last is held longest. A dictionary counts apart, since many frames
need the same one.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.odb.compression import Dictionary, Inflation
from trace_store.odb.pack import DICTIONARY, MAXIMUM_DICTIONARY_BYTES, NEEDS_DICTIONARY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.odb.pack import Pack
    from trace_store.odb.pack_index import PackIndex

CACHE_BYTES = 96 * 1024 * 1024
"""As much as git holds of the bases of deltas, unless it is told otherwise."""
PASSING_BYTES = 16 * 1024 * 1024
"""How much is held once a frame is read as a whole: whoever reads one after the other does not come back."""
DICTIONARY_CACHE_BYTES = 64 * 1024 * 1024


class FrameCache:
    """Frames and dictionaries by pack and number."""

    __slots__ = ("_dictionaries", "_dictionary_bytes", "_frame_bytes", "_frames", "_unfinished")

    def __init__(self) -> None:
        self._frames: dict[tuple[str, int], tuple[bytes, int, int]] = {}
        """Content, or the beginning of it, with its sort and the size of all."""
        self._frame_bytes = 0
        self._unfinished: tuple[tuple[str, int], Inflation] | None = None
        """The last frame of which only a beginning was wanted; more of it may be, and one is all that is held open."""
        self._dictionaries: dict[tuple[str, int], Dictionary] = {}
        self._dictionary_bytes = 0

    def frame(
        self, pack: Pack, index: PackIndex, number: int, end: int | None = None
    ) -> tuple[bytes, int]:
        """Return a frame's raw content, and its sort.

        Args:
            pack: the pack.
            index: its index.
            number: that of the frame.
            end: up to which offset, at least, the content is wanted; 0 for all of it, and None for all of it from
                one who reads frame after frame.

        Raises:
            CorruptObjectError: it is damaged.
            CorruptIndexError: it is not where the index says.
        """
        key = pack.name, number
        found = self._frames.pop(key, None)
        if found is None or len(found[0]) < (end or found[2]):
            if found is not None:
                self._frame_bytes -= len(found[0])
            found = self._decode(pack, index, key, end)
            self._frame_bytes += len(found[0])
            bound = PASSING_BYTES if end is None else CACHE_BYTES
            while self._frame_bytes > bound and self._frames:
                self._frame_bytes -= len(self._frames.pop(next(iter(self._frames)))[0])
        self._frames[key] = found  # now the most recently used
        return found[0], found[1]

    def drop(self, name: str) -> None:
        """Forget what is of a pack."""
        for key in [key for key in self._frames if key[0] == name]:
            self._frame_bytes -= len(self._frames.pop(key)[0])
        for key in [key for key in self._dictionaries if key[0] == name]:
            self._dictionary_bytes -= self._dictionaries.pop(key).size
        if self._unfinished is not None and self._unfinished[0][0] == name:
            self._unfinished = None

    def _decode(
        self, pack: Pack, index: PackIndex, key: tuple[str, int], end: int | None
    ) -> tuple[bytes, int, int]:
        place, dictionary = index.place(key[1])
        if self._unfinished is not None and self._unfinished[0] == key:
            inflation = self._unfinished[1]
        elif place.sort & NEEDS_DICTIONARY:
            inflation = pack.inflation(place, self._dictionary(pack, index, dictionary))
        else:
            inflation = pack.inflation(place)
        content = inflation.until(end or place.raw)
        if len(content) < place.raw:
            self._unfinished = key, inflation
        elif self._unfinished is not None and self._unfinished[0] == key:
            self._unfinished = None
        return content, place.sort, place.raw

    def _dictionary(self, pack: Pack, index: PackIndex, number: int) -> Dictionary:
        key = pack.name, number
        found = self._dictionaries.pop(key, None)
        if found is None:
            if number < 0:
                raise errors.CorruptIndexError("a frame needs a dictionary that is not there")
            place, _ = index.place(number)
            if place.sort != DICTIONARY or place.raw > MAXIMUM_DICTIONARY_BYTES:
                raise errors.CorruptIndexError("a frame's dictionary is none")
            found = Dictionary(pack.decode(place))
            self._dictionary_bytes += found.size
            while self._dictionary_bytes > DICTIONARY_CACHE_BYTES and self._dictionaries:
                oldest = self._dictionaries.pop(next(iter(self._dictionaries)))
                self._dictionary_bytes -= oldest.size
        self._dictionaries[key] = found
        return found
