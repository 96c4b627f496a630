"""A cache of decoded frames and dictionaries of packs.

Rule: bounded, least recently used first out. Dictionaries are counted separately, because many frames share one.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.odb.compression import Dictionary, PartialFrame
from trace_store.odb.pack import DICTIONARY, MAXIMUM_DICTIONARY_BYTES, NEEDS_DICTIONARY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.odb.pack import Pack
    from trace_store.odb.pack_index import PackIndex

CACHE_BYTES = 96 * 1024 * 1024
"""As much as git's default for delta bases."""
PASSING_BYTES = 16 * 1024 * 1024
"""The limit while frames are read in sequence: they are not read again."""
DICTIONARY_CACHE_BYTES = 64 * 1024 * 1024


class FrameCache:
    """Decoded frames and dictionaries by pack and number."""

    __slots__ = ("_dictionaries", "_dictionary_bytes", "_frame_bytes", "_frames", "_unfinished")

    def __init__(self) -> None:
        self._frames: dict[tuple[str, int], tuple[bytes, int, int]] = {}
        """Content so far, flags, and size of the whole content."""
        self._frame_bytes = 0
        self._unfinished: tuple[tuple[str, int], PartialFrame] | None = None
        """The last partly decompressed frame; only one is kept open."""
        self._dictionaries: dict[tuple[str, int], Dictionary] = {}
        self._dictionary_bytes = 0

    def frame(
        self, pack: Pack, index: PackIndex, number: int, end: int | None = None
    ) -> tuple[bytes, int]:
        """Return a frame's raw content and its flags.

        Args:
            pack: the pack.
            index: its index.
            number: the frame's number.
            end: decompress at least up to this offset; 0 for all, None for all if frames are read in sequence.

        Raises:
            CorruptObjectError: the frame is damaged.
            CorruptIndexError: it is not where the index says.
        """
        key = pack.name, number
        entry = self._frames.pop(key, None)
        if entry is None or len(entry[0]) < (end or entry[2]):
            if entry is not None:
                self._frame_bytes -= len(entry[0])
            entry = self._decode(pack, index, key, end)
            self._frame_bytes += len(entry[0])
            bound = PASSING_BYTES if end is None else CACHE_BYTES
            while self._frame_bytes > bound and self._frames:
                self._frame_bytes -= len(self._frames.pop(next(iter(self._frames)))[0])
        self._frames[key] = entry  # now the most recently used
        return entry[0], entry[1]

    def drop(self, name: str) -> None:
        """Remove the entries of a pack."""
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
            partial = self._unfinished[1]
        elif place.flags & NEEDS_DICTIONARY:
            partial = pack.open_frame(place, self._dictionary(pack, index, dictionary))
        else:
            partial = pack.open_frame(place)
        content = partial.until(end or place.raw)
        if len(content) < place.raw:
            self._unfinished = key, partial
        elif self._unfinished is not None and self._unfinished[0] == key:
            self._unfinished = None
        return content, place.flags, place.raw

    def _dictionary(self, pack: Pack, index: PackIndex, number: int) -> Dictionary:
        key = pack.name, number
        dictionary = self._dictionaries.pop(key, None)
        if dictionary is None:
            if number < 0:
                raise errors.CorruptIndexError("a frame's dictionary is missing")
            place, _ = index.place(number)
            if place.flags != DICTIONARY or place.raw > MAXIMUM_DICTIONARY_BYTES:
                raise errors.CorruptIndexError("a frame's dictionary is not a dictionary")
            dictionary = Dictionary(pack.decode(place))
            self._dictionary_bytes += dictionary.size
            while self._dictionary_bytes > DICTIONARY_CACHE_BYTES and self._dictionaries:
                oldest = self._dictionaries.pop(next(iter(self._dictionaries)))
                self._dictionary_bytes -= oldest.size
        self._dictionaries[key] = dictionary
        return dictionary
