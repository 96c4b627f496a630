"""Zstandard compression, with size limits for untrusted input.

Rule: what is decompressed is never larger than was declared, nor its window larger than a bound, and the compressed
bytes end exactly where the frame does. The format is https://datatracker.ietf.org/doc/html/rfc8878.

A transcript repeats itself over long distances: a file that is read again, a listing, the log of a failing test. What
a frame repeats of another is found in the dictionary, so a frame can stay small and be read alone.

Rule: the same frames have the same dictionary, in every process. Lines stand in the order in which they first occur,
so that what stood together stands together.
"""

from __future__ import annotations

import sys

from trace_store import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


MAXIMUM_WINDOW_LOG = 25  # 32 MiB
MINIMUM_DICTIONARY_BYTES = 8
BLOCK_BYTES = 128 * 1024
"""What zstd decompresses at once, at most."""


class Dictionary:
    """Content that writer and reader have at hand: what is compressed with it may repeat any of it.

    Attributes:
        size: how many bytes it holds.
    """

    __slots__ = ("_content", "size")

    def __init__(self, content: bytes) -> None:
        """Load it.

        Raises:
            CorruptObjectError: it has fewer bytes than a dictionary needs.
        """
        if len(content) < MINIMUM_DICTIONARY_BYTES:
            raise errors.CorruptObjectError("a dictionary is too short")
        self.size = len(content)
        self._content: Any = _library().ZstdDict(content, is_raw=True)

    @property
    def for_writing(self) -> Any:
        """What the library compresses with; made ready once for each level."""
        return self._content.as_digested_dict

    @property
    def for_reading(self) -> Any:
        """What the library decompresses with, without another copy."""
        return self._content.as_prefix


def deflate(data: bytes, *, level: int, dictionary: Dictionary | None = None) -> bytes:
    """Return the data as one zstd frame with a checksum."""
    zstd = _library()
    options = {zstd.ZSTD_c_compressionLevel: level, zstd.ZSTD_c_checksumFlag: 1}
    loaded = None if dictionary is None else dictionary.for_writing
    machine = zstd.ZstdCompressor(options=options, zstd_dict=loaded)
    compressed: bytes = machine.compress(data, mode=machine.FLUSH_FRAME)
    return compressed


def inflate(data: bytes, size: int, *, dictionary: Dictionary | None = None) -> bytes:
    """Return the `size` bytes that one zstd frame holds.

    Raises:
        CorruptObjectError: it holds another number of bytes, is damaged, or is followed by something.
    """
    return Inflation(data, size, dictionary=dictionary).until(size)


def inflate_first(data: bytes, limit: int) -> bytes:
    """Return what a zstd frame holds that is followed by anything; at most `limit` bytes.

    Raises:
        CorruptObjectError: they begin with no frame, or it is damaged within what is returned.
    """
    zstd = _library()
    try:
        machine: Any = zstd.ZstdDecompressor(options={zstd.ZSTD_d_windowLogMax: MAXIMUM_WINDOW_LOG})
        content: bytes = machine.decompress(data, max_length=limit)
    except (zstd.ZstdError, EOFError, ValueError, MemoryError) as error:
        raise errors.CorruptObjectError(f"compressed data is damaged: {error}") from error
    return content


class Inflation:
    """A zstd frame that is decompressed as far as its content is wanted.

    Attributes:
        content: as much of it as there is so far.
        size: how many bytes there are in all.
    """

    __slots__ = ("_data", "_machine", "content", "size")

    def __init__(self, data: bytes, size: int, *, dictionary: Dictionary | None = None) -> None:
        """Decompress nothing yet of a frame that holds `size` bytes.

        Raises:
            CorruptObjectError: it says that it holds another number, or is none.
        """
        zstd = _library()
        options = {zstd.ZSTD_d_windowLogMax: MAXIMUM_WINDOW_LOG}
        loaded = None if dictionary is None else dictionary.for_reading
        try:
            if zstd.get_frame_info(data)[0] != size:
                raise errors.CorruptObjectError("compressed data declares another size")
            self._machine: Any = zstd.ZstdDecompressor(zstd_dict=loaded, options=options)
        except (zstd.ZstdError, ValueError, MemoryError) as error:
            raise errors.CorruptObjectError(f"compressed data is damaged: {error}") from error
        self._data = data
        self.size = size
        self.content = b""

    def until(self, end: int) -> bytes:
        """Return the content, up to this offset at least; what was not asked for may be damaged.

        Raises:
            CorruptObjectError: it is damaged, or has another length than it should.
        """
        done = len(self.content)
        if self._machine is None or end <= done < self.size:
            return self.content
        # A block is decompressed as a whole, so it may as well be returned as a whole.
        goal = min(-(-end // BLOCK_BYTES) * BLOCK_BYTES, self.size)
        whole = goal == self.size
        zstd, machine = _library(), self._machine
        try:
            # One byte more than there should be takes the decompressor to the end of the frame.
            piece: bytes = machine.decompress(self._data, max_length=goal - done + whole)
        except (zstd.ZstdError, EOFError, ValueError, MemoryError) as error:
            raise errors.CorruptObjectError(f"compressed data is damaged: {error}") from error
        if len(piece) != goal - done or (whole and (not machine.eof or machine.unused_data)):
            raise errors.CorruptObjectError("compressed data has another length than declared")
        self.content = self.content + piece if done else piece
        self._data = b""
        if whole:
            self._machine = None
        return self.content


def is_beginning(data: bytes) -> bool:
    """Tell whether bytes are the beginning of a frame, of which the rest is lacking."""
    zstd = _library()
    try:
        machine = zstd.ZstdDecompressor(options={zstd.ZSTD_d_windowLogMax: MAXIMUM_WINDOW_LOG})
        machine.decompress(data, max_length=BLOCK_BYTES)
        while not machine.eof and not machine.needs_input:
            machine.decompress(b"", max_length=BLOCK_BYTES)
    except (zstd.ZstdError, EOFError, ValueError, MemoryError):
        return False
    return not machine.eof


def _library() -> Any:
    """Return the compiled half of the zstd module; its other half, with files and enumerations, costs 3 ms to import.

    It is imported on first use: a command that meets nothing compressed need not pay for it.
    """
    if sys.version_info >= (3, 14):
        import _zstd

        return _zstd
    name = "backports.zstd._zstd"
    if name not in sys.modules and not _load(name):
        from backports.zstd import _zstd  # by way of its package, which says what is missing

        return _zstd
    return sys.modules[name]


def _load(name: str) -> bool:
    """Load a module of a package without what the package's `__init__` imports; False when it is not found so."""
    place, spec = None, None
    for end in (*(i for i, c in enumerate(name) if c == "."), len(name)):
        found = (finder.find_spec(name[:end], place) for finder in sys.meta_path)
        spec = next((each for each in found if each is not None), None)
        if spec is None:
            return False
        place = spec.submodule_search_locations
    if spec is None or spec.loader is None or not hasattr(spec.loader, "create_module"):
        return False
    module = spec.loader.create_module(spec)
    if module is None:
        return False  # no compiled one: its Python form needs the package
    spec.loader.exec_module(module)
    sys.modules[name] = module
    return True


MAXIMUM_DICTIONARY_BYTES = 1024 * 1024
"""It has to be read before the first object is, so it is small."""
MAXIMUM_LINES_SEEN = 1 << 20
"""How many different lines are held, each in some hundred bytes besides its own, to tell which of them occur again."""


def lines_in_common(contents: Sequence[bytes], limit: int = MAXIMUM_DICTIONARY_BYTES) -> bytes:
    """Return the lines that occur in more than one of these contents, each once, `limit` bytes at most.

    A line also ends where one's end is written out, as JSON does it.
    """
    seen: dict[bytes, None] = {}
    repeated: set[bytes] = set()
    for content in contents:
        lines = dict.fromkeys(_lines(content))
        repeated |= lines.keys() & seen.keys()
        if len(seen) < MAXIMUM_LINES_SEEN:
            seen.update(lines)
    found: list[bytes] = []
    size = 0
    for line in seen:
        if line in repeated:
            size += len(line)
            if size > limit:
                break
            found.append(line)
    return b"".join(found)


def _lines(content: bytes) -> list[bytes]:
    return content.replace(b"\n", b"\n\0").replace(b"\\n", b"\\n\0").split(b"\0")
