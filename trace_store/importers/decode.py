"""Decoding of input files: decompression, text encoding, lines of any length.

Invariant: detection is by content, never by name; decompressed size is limited. Lines are split at newlines only,
with at most one chunk and one line in memory.
"""

from __future__ import annotations

import codecs
import json
import re
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from trace_store.context.tokens.tokenizer import load_zstd
from trace_store.errors import UnreadableInputError

COMPRESSED = (".zst", ".gz")
"""Suffixes removed from file names."""
MAXIMUM_PLAIN_BYTES = 1 << 30
_ZSTD = b"\x28\xb5\x2f\xfd"  # RFC 8878, 3.1.1
_GZIP = b"\x1f\x8b"  # RFC 1952, 2.3.1
MAXIMUM_PRINTED_BYTES = 64 << 20
_OBJECT_START = re.compile(rb"(?:\xef\xbb\xbf)?\s*\{\s*\r?\n")
_OBJECT_START_BYTES = 256
_WORD = re.compile(r"\S")
_decode = json.JSONDecoder().raw_decode
_GZIP_WINDOW = zlib.MAX_WBITS | 16
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),  # first, because UTF-16 starts the same way
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def plain_content(path: str, size: int, read_at: Callable[[int, int], bytes]) -> bytes | None:
    """Return the content of a compressed, non-UTF-8 or pretty-printed file, else None.

    Args:
        path: path for errors.
        size: file size in bytes.
        read_at: reads bytes at an offset and size.

    Raises:
        UnreadableInputError: the file is damaged, truncated, or larger than 1 GiB decompressed.
    """
    head = read_at(0, 4)
    if head == _ZSTD:
        zstd = load_zstd()
        return _decompress(zstd.ZstdDecompressor, zstd.ZstdError, read_at(0, size), path)
    if head.startswith(_GZIP):
        return _decompress(_gzip, zlib.error, read_at(0, size), path)
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            return read_at(0, size).decode(encoding, "replace").encode("utf-8", "replace")
    if _OBJECT_START.match(read_at(0, _OBJECT_START_BYTES)) and size <= MAXIMUM_PRINTED_BYTES:
        return _compact_values(read_at(0, size))
    return None


def _compact_values(data: bytes) -> bytes | None:
    """Return pretty-printed JSON values one a line.

    None for a single or damaged document.

    `jq .` prints the records of a transcript this way.
    """
    try:
        text = data.decode("utf-8-sig")
        lines: list[str] = []
        at = _skip_blanks(text, 0)
        while at < len(text):
            value, end = _decode(text, at)
            lines.append(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
            at = _skip_blanks(text, end)
    except (ValueError, RecursionError):
        return None
    return "\n".join([*lines, ""]).encode("utf-8", "surrogatepass") if len(lines) > 1 else None


def _skip_blanks(text: str, at: int) -> int:
    match = _WORD.search(text, at)
    return len(text) if match is None else match.start()


def _gzip() -> Any:
    return zlib.decompressobj(_GZIP_WINDOW)


def _decompress(begin: Callable[[], Any], damage: type[Exception], data: bytes, path: str) -> bytes:
    """Return the content of all frames or members of a compressed file."""
    pieces: list[bytes] = []
    left = MAXIMUM_PLAIN_BYTES
    while data:
        decompressor = begin()
        try:
            piece = decompressor.decompress(data, left + 1)
        except damage as error:
            raise UnreadableInputError(f"damaged compressed file: {path}", path=path) from error
        pieces.append(piece)
        left -= len(piece)
        if left < 0:
            raise UnreadableInputError(f"larger than 1 GiB decompressed: {path}", path=path)
        if not decompressor.eof:
            raise UnreadableInputError(f"truncated compressed file: {path}", path=path)
        data = decompressor.unused_data
    return b"".join(pieces)


CHUNK_BYTES = 1 << 20
MAXIMUM_LINE_BYTES = 64 << 20

ReadAt = Callable[[int, int], bytes]
"""Reads bytes at an offset and size; fewer only at the end."""


class Edits:
    """Replacements in a line, to map offsets back to the file.

    Attributes:
        spans: (start, end, size): byte range in the file, and size of its replacement.
    """

    __slots__ = ("_ends", "_shifts", "spans")

    def __init__(self, spans: Sequence[tuple[int, int, int]]) -> None:
        self.spans = spans
        self._ends: list[int] = []  # end of each replacement, relative to file offsets
        self._shifts: list[int] = []  # cumulative shift after each replacement
        shift = 0
        for start, end, size in spans:
            self._ends.append(start - shift + size)
            shift += end - start - size
            self._shifts.append(shift)

    def file_offset(self, at: int) -> int:
        """Return the file offset of `at`, which is line offset plus position in the line."""
        number = bisect_right(self._ends, at)
        return at + self._shifts[number - 1] if number else at

    def between(self, start: int, end: int) -> Edits | None:
        """Return the replacements within a byte range of the file, or None."""
        spans = [span for span in self.spans if start <= span[0] and span[1] <= end]
        return Edits(spans) if spans else None


class Line(NamedTuple):
    """One line without its newline.

    Attributes:
        number: line number, from 1.
        offset: byte offset in the file.
        data: its bytes; None if it exceeds the limit and was skipped.
        length: length in the file in bytes, without the newline.
        ended: True if a newline follows; only the last line may lack one.
        whole: True if it is a whole file with one document.
        edits: replacements in `data`; None if it equals the file.
    """

    number: int
    offset: int
    data: bytes | None
    length: int
    ended: bool
    whole: bool = False
    edits: Edits | None = None

    def file_offset(self, at: int) -> int:
        """Return the file offset of a position in `data`."""
        offset = self.offset + at
        return offset if self.edits is None else self.edits.file_offset(offset)

    def part(self, number: int, start: int, end: int, *, ended: bool) -> Line:
        """Return a part of the line as a line of its own."""
        offset = self.file_offset(start)
        length = self.file_offset(end) - offset
        edits = None if self.edits is None else self.edits.between(offset, offset + length)
        data = None if self.data is None else self.data[start:end]
        return Line(number, offset, data, length, ended, edits=edits)


class LineAt(Protocol):
    """Reads a line line_reader by number, offset and length."""

    def __call__(self, number: int, offset: int, length: int) -> Line: ...


def line_at(read_at: ReadAt, number: int, offset: int, length: int) -> Line:
    """Return a line line_reader as the plan first received it.

    Args:
        read_at: the reader that the plan was created with.
        number: line number.
        offset: byte offset in the file.
        length: length in the file in bytes.
    """
    line_reader: LineAt | None = getattr(read_at, "line_at", None)
    if line_reader is not None:
        return line_reader(number, offset, length)
    return Line(number, offset, read_at(offset, length), length, True)


def read_lines(
    read_at: ReadAt,
    end: int,
    *,
    offset: int = 0,
    number: int = 1,
    limit: int = MAXIMUM_LINE_BYTES,
    chunk_bytes: int = CHUNK_BYTES,
) -> Iterator[Line]:
    """Yield the lines of a byte range; a file that shrinks meanwhile ends early.

    Args:
        read_at: reads bytes at an offset and size.
        end: end offset, the file size at the start of the import.
        offset: start offset: start of a line or where reading stopped in one.
        number: line number at the offset.
        limit: longest line to keep, in bytes.
        chunk_bytes: bytes per read.
    """
    start = offset
    pieces: list[bytes] = []
    held = 0
    position = offset
    while position < end:
        chunk = read_at(position, min(chunk_bytes, end - position))
        if not chunk:
            break
        begin = 0
        while (newline := chunk.find(b"\n", begin)) >= 0:
            length = position + newline - start
            data = None
            if length <= limit:
                data = chunk[begin:newline]
                if pieces:
                    pieces.append(data)
                    data = b"".join(pieces)
            yield Line(number, start, data, length, True)
            number += 1
            begin = newline + 1
            start = position + begin
            if held:
                pieces, held = [], 0
        rest = chunk[begin:]
        held += len(rest)
        if held > limit:
            pieces = []
        elif rest:  # nothing remains if the chunk ends with a newline
            pieces.append(rest)
        position += len(chunk)
    if position > start:
        data = b"".join(pieces) if held <= limit else None
        yield Line(number, start, data, position - start, False)
