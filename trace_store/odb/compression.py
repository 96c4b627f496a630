"""Zstandard compression: limits for untrusted input, dictionaries, threads.

Rule: decompressed data is never larger than declared, its window is bounded, and nothing follows the frame. The format
is https://datatracker.ietf.org/doc/html/rfc8878.

Transcripts repeat themselves over long distances: a file is read again, a test log recurs. A dictionary holds what
several frames have in common, so that each frame stays small and can be read alone.

Rule: the same frames give the same dictionary in every process. Its lines are in order of their first occurrence, which
keeps neighbours together.

Rule: the results of tasks in threads, and their order, do not depend on the number of threads.
"""

from __future__ import annotations

import sys

from trace_store import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from threading import Thread
    from typing import Any

MAXIMUM_WINDOW_LOG = 25  # 32 MiB
MINIMUM_DICTIONARY_BYTES = 8
BLOCK_BYTES = 128 * 1024
"""Maximum size of a zstd block."""


class Dictionary:
    """A zstd dictionary.

    Attributes:
        size: its size in bytes.
    """

    __slots__ = ("_content", "size")

    def __init__(self, content: bytes) -> None:
        """Load a dictionary.

        Raises:
            CorruptObjectError: it is too short.
        """
        if len(content) < MINIMUM_DICTIONARY_BYTES:
            raise errors.CorruptObjectError("the dictionary is too short")
        self.size = len(content)
        self._content: Any = _library().ZstdDict(content, is_raw=True)

    @property
    def for_compression(self) -> Any:
        """The form used to compress, digested once per level."""
        return self._content.as_digested_dict

    @property
    def for_decompression(self) -> Any:
        """The form used to decompress, without another copy."""
        return self._content.as_prefix


def compress(data: bytes, *, level: int, dictionary: Dictionary | None = None) -> bytes:
    """Compress data into one zstd frame with a checksum."""
    zstd = _library()
    options = {zstd.ZSTD_c_compressionLevel: level, zstd.ZSTD_c_checksumFlag: 1}
    loaded = None if dictionary is None else dictionary.for_compression
    machine = zstd.ZstdCompressor(options=options, zstd_dict=loaded)
    compressed: bytes = machine.compress(data, mode=machine.FLUSH_FRAME)
    return compressed


def decompress(data: bytes, size: int, *, dictionary: Dictionary | None = None) -> bytes:
    """Decompress one zstd frame of exactly `size` bytes.

    Raises:
        CorruptObjectError: it has another size, is damaged, or something follows it.
    """
    return PartialFrame(data, size, dictionary=dictionary).until(size)


def decompress_first(data: bytes, limit: int) -> bytes:
    """Return up to `limit` bytes of a zstd frame; anything may follow it.

    Raises:
        CorruptObjectError: there is no frame, or its first `limit` bytes are damaged.
    """
    zstd = _library()
    try:
        machine: Any = zstd.ZstdDecompressor(options={zstd.ZSTD_d_windowLogMax: MAXIMUM_WINDOW_LOG})
        content: bytes = machine.decompress(data, max_length=limit)
    except (zstd.ZstdError, EOFError, ValueError, MemoryError) as error:
        raise errors.CorruptObjectError(f"the compressed data is damaged: {error}") from error
    return content


class PartialFrame:
    """A zstd frame that is decompressed only as far as needed.

    Attributes:
        content: the content decompressed so far.
        size: the size of the whole content in bytes.
    """

    __slots__ = ("_data", "_machine", "content", "size")

    def __init__(self, data: bytes, size: int, *, dictionary: Dictionary | None = None) -> None:
        """Open a frame with `size` bytes of content.

        Raises:
            CorruptObjectError: it declares another size, or is not a frame.
        """
        zstd = _library()
        options = {zstd.ZSTD_d_windowLogMax: MAXIMUM_WINDOW_LOG}
        loaded = None if dictionary is None else dictionary.for_decompression
        try:
            if zstd.get_frame_info(data)[0] != size:
                raise errors.CorruptObjectError("the compressed data declares another size")
            self._machine: Any = zstd.ZstdDecompressor(zstd_dict=loaded, options=options)
        except (zstd.ZstdError, ValueError, MemoryError) as error:
            raise errors.CorruptObjectError(f"the compressed data is damaged: {error}") from error
        self._data = data
        self.size = size
        self.content = b""

    def until(self, end: int) -> bytes:
        """Return the content, up to this offset or further; the rest is not checked.

        Raises:
            CorruptObjectError: the content is damaged, or has the wrong size.
        """
        done = len(self.content)
        if self._machine is None or end <= done < self.size:
            return self.content
        # zstd decompresses whole blocks, so return whole blocks.
        goal = min(-(-end // BLOCK_BYTES) * BLOCK_BYTES, self.size)
        whole = goal == self.size
        zstd, machine = _library(), self._machine
        try:
            # Asking for one byte more makes the decompressor read to the end of the frame.
            piece: bytes = machine.decompress(self._data, max_length=goal - done + whole)
        except (zstd.ZstdError, EOFError, ValueError, MemoryError) as error:
            raise errors.CorruptObjectError(f"the compressed data is damaged: {error}") from error
        if len(piece) != goal - done or (whole and (not machine.eof or machine.unused_data)):
            raise errors.CorruptObjectError("the compressed data does not have its declared size")
        self.content = self.content + piece if done else piece
        self._data = b""
        if whole:
            self._machine = None
        return self.content


def is_truncated(data: bytes) -> bool:
    """Return True if the bytes are the start of a truncated frame."""
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
    """Return the compiled half of the zstd module, imported on first use.

    The other half, with files and enumerations, takes 3 ms to import.
    """
    if sys.version_info >= (3, 14):
        import _zstd

        return _zstd
    name = "backports.zstd._zstd"
    if name not in sys.modules and not _load(name):
        from backports.zstd import _zstd  # the package's own import names what is missing

        return _zstd
    return sys.modules[name]


def _load(name: str) -> bool:
    """Import a package's submodule without the package's `__init__`.

    Returns False if that is not possible.
    """
    place, spec = None, None
    for end in (*(i for i, c in enumerate(name) if c == "."), len(name)):
        specs = (finder.find_spec(name[:end], place) for finder in sys.meta_path)
        spec = next((each for each in specs if each is not None), None)
        if spec is None:
            return False
        place = spec.submodule_search_locations
    if spec is None or spec.loader is None or not hasattr(spec.loader, "create_module"):
        return False
    module = spec.loader.create_module(spec)
    if module is None:
        return False  # not compiled: the Python version needs the package
    spec.loader.exec_module(module)
    sys.modules[name] = module
    return True


MAXIMUM_DICTIONARY_BYTES = 1024 * 1024
"""Small, because it is read before the first object."""
MAXIMUM_LINES_SEEN = 1 << 20
"""Maximum number of lines held to detect repetition; each takes some hundred bytes plus its content."""


def lines_in_common(contents: Sequence[bytes]) -> bytes:
    r"""Return the lines that occur in several contents, each once, as long as a dictionary holds them.

    An escaped newline in JSON (`\n`) ends a line too.
    """
    seen: dict[bytes, None] = {}
    repeated: set[bytes] = set()
    for content in contents:
        lines = dict.fromkeys(_lines(content))
        repeated |= lines.keys() & seen.keys()
        if len(seen) < MAXIMUM_LINES_SEEN:
            seen.update(lines)
    common: list[bytes] = []
    size = 0
    for line in seen:
        if line in repeated:
            size += len(line)
            if size > MAXIMUM_DICTIONARY_BYTES:
                break
            common.append(line)
    return b"".join(common)


def _lines(content: bytes) -> list[bytes]:
    return content.replace(b"\n", b"\n\0").replace(b"\\n", b"\\n\0").split(b"\0")


class BackgroundTasks:
    """Tasks that run in threads; they finish even if nobody asks for the results."""

    __slots__ = ("_error", "_left", "_results", "_tasks", "_threads")

    def __init__(self, tasks: Sequence[Callable[[], bytes]], threads: int) -> None:
        """Start the tasks.

        Args:
            tasks: functions that release the interpreter lock, in any order.
            threads: number of threads; with one, `results` runs the tasks itself.
        """
        self._tasks = tasks
        self._left = [*reversed(range(len(tasks)))]
        self._results = [b""] * len(tasks)
        self._error: BaseException | None = None
        self._threads = [
            _start(self._work) for _ in range(min(threads, len(tasks)) if threads > 1 else 0)
        ]

    def results(self) -> list[bytes]:
        """Wait for the tasks and return their results in order.

        Raises:
            BaseException: the first error that a task raised.
        """
        if not self._threads:
            self._work()
        for thread in self._threads:
            thread.join()
        if self._error is not None:
            raise self._error
        return self._results

    def _work(self) -> None:
        while self._error is None:
            try:
                number = self._left.pop()
            except IndexError:
                return
            try:
                self._results[number] = self._tasks[number]()
            except BaseException as error:  # noqa: BLE001 - raised again by `results`
                self._error = error


def _start(work: Callable[[], None]) -> Thread:
    import threading  # most commands write little and need no thread

    thread = threading.Thread(target=work, name="trace-compression")
    thread.start()
    return thread
