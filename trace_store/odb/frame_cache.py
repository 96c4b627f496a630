"""What was decoded of packs: the content of frames, and dictionaries.

Rule: what is held is bounded, and what was used last is held longest. A dictionary counts apart, since many frames
need the same one.
"""

from __future__ import annotations

from trace_store.errors import CorruptIndexError
from trace_store.odb.deflate import Dictionary
from trace_store.odb.pack import DICTIONARY, MAXIMUM_DICTIONARY_BYTES, NEEDS_DICTIONARY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.odb.pack import Pack
    from trace_store.odb.pack_index import PackIndex

CACHE_BYTES = 16 * 1024 * 1024
DICTIONARY_CACHE_BYTES = 64 * 1024 * 1024


class FrameCache:
    """Frames and dictionaries by pack and number."""

    __slots__ = ("_dictionaries", "_dictionary_bytes", "_frame_bytes", "_frames")

    def __init__(self) -> None:
        self._frames: dict[tuple[str, int], tuple[bytes, int]] = {}
        self._frame_bytes = 0
        self._dictionaries: dict[tuple[str, int], Dictionary] = {}
        self._dictionary_bytes = 0

    def frame(self, pack: Pack, index: PackIndex, number: int) -> tuple[bytes, int]:
        """Return a frame's raw content, and its sort.

        Raises:
            CorruptObjectError: it is damaged.
            CorruptIndexError: it is not where the index says.
        """
        key = pack.name, number
        found = self._frames.pop(key, None)
        if found is None:
            place, dictionary = index.place(number)
            if place.sort & NEEDS_DICTIONARY:
                raw = pack.decode(place, self._dictionary(pack, index, dictionary))
            else:
                raw = pack.decode(place)
            found = raw, place.sort
            self._frame_bytes += len(raw)
            while self._frame_bytes > CACHE_BYTES and self._frames:
                self._frame_bytes -= len(self._frames.pop(next(iter(self._frames)))[0])
        self._frames[key] = found  # now the most recently used
        return found

    def drop(self, name: str) -> None:
        """Forget what is of a pack."""
        for key in [key for key in self._frames if key[0] == name]:
            self._frame_bytes -= len(self._frames.pop(key)[0])
        for key in [key for key in self._dictionaries if key[0] == name]:
            self._dictionary_bytes -= self._dictionaries.pop(key).size

    def _dictionary(self, pack: Pack, index: PackIndex, number: int) -> Dictionary:
        key = pack.name, number
        found = self._dictionaries.pop(key, None)
        if found is None:
            if number < 0:
                raise CorruptIndexError("a frame needs a dictionary that is not there")
            place, _ = index.place(number)
            if place.sort != DICTIONARY or place.raw > MAXIMUM_DICTIONARY_BYTES:
                raise CorruptIndexError("a frame's dictionary is none")
            found = Dictionary(pack.decode(place))
            self._dictionary_bytes += found.size
            while self._dictionary_bytes > DICTIONARY_CACHE_BYTES and self._dictionaries:
                oldest = self._dictionaries.pop(next(iter(self._dictionaries)))
                self._dictionary_bytes -= oldest.size
        self._dictionaries[key] = found
        return found
