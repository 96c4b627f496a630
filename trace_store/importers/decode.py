"""Lines of a file: decompressed, decoded, of any length.

Rule: the first bytes tell, never the name. What is decompressed is bounded.

Rule: bytes in, bytes out, split at newlines and at nothing else; never more than one chunk and one line in memory.
"""

from __future__ import annotations

import codecs
import json
import re
import sys
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from trace_store.errors import UnreadableInputError

COMPRESSED = (".zst", ".gz")
"""Suffixes that are removed from a file's name."""
MAXIMUM_PLAIN_BYTES = 1 << 30
_ZSTD = b"\x28\xb5\x2f\xfd"  # RFC 8878, 3.1.1
_GZIP = b"\x1f\x8b"  # RFC 1952, 2.3.1
MAXIMUM_PRINTED_BYTES = 64 << 20
_OPENING = re.compile(rb"(?:\xef\xbb\xbf)?\s*\{\s*\r?\n")
_OPENING_BYTES = 256
_WORD = re.compile(r"\S")
_decode = json.JSONDecoder().raw_decode
_GZIP_WINDOW = zlib.MAX_WBITS | 16
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),  # begins as UTF-16 does, so it comes first
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def plain_content(path: str, size: int, read_at: Callable[[int, int], bytes]) -> bytes | None:
    """Return what a file holds when it is compressed, not in UTF-8, or JSON values over many lines; None for any other.

    Args:
        path: of the file, for errors.
        size: its bytes.
        read_at: returns bytes, given an offset and a size.

    Raises:
        UnreadableInputError: it is damaged, cut short, or holds more than 1 GiB.
    """
    head = read_at(0, 4)
    if head == _ZSTD:
        zstd = _zstd()
        return _decompressed(zstd.ZstdDecompressor, zstd.ZstdError, read_at(0, size), path)
    if head.startswith(_GZIP):
        return _decompressed(_gzip, zlib.error, read_at(0, size), path)
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            return read_at(0, size).decode(encoding, "replace").encode("utf-8", "replace")
    if _OPENING.match(read_at(0, _OPENING_BYTES)) and size <= MAXIMUM_PRINTED_BYTES:
        return _one_a_line(read_at(0, size))
    return None


def _one_a_line(data: bytes) -> bytes | None:
    """Return JSON values that are printed over many lines with one a line; None when it is one document, or damaged.

    `jq .` prints the records of a transcript so.
    """
    try:
        text = data.decode("utf-8-sig")
        lines: list[str] = []
        at = _blanks(text, 0)
        while at < len(text):
            value, end = _decode(text, at)
            lines.append(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
            at = _blanks(text, end)
    except (ValueError, RecursionError):
        return None
    return "\n".join([*lines, ""]).encode("utf-8", "surrogatepass") if len(lines) > 1 else None


def _blanks(text: str, at: int) -> int:
    found = _WORD.search(text, at)
    return len(text) if found is None else found.start()


def _gzip() -> Any:
    return zlib.decompressobj(_GZIP_WINDOW)


def _zstd() -> Any:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd  # slow to load, and seldom needed
    return zstd


def _decompressed(
    begin: Callable[[], Any], damage: type[Exception], data: bytes, path: str
) -> bytes:
    """Return the content of all frames, or members, of a compressed file."""
    pieces: list[bytes] = []
    left = MAXIMUM_PLAIN_BYTES
    while data:
        decompressor = begin()
        try:
            piece = decompressor.decompress(data, left + 1)
        except damage as error:
            raise UnreadableInputError(
                f"damaged, it cannot be decompressed: {path}", path=path
            ) from error
        pieces.append(piece)
        left -= len(piece)
        if left < 0:
            raise UnreadableInputError(f"it holds more than 1 GiB: {path}", path=path)
        if not decompressor.eof:
            raise UnreadableInputError(f"the end of it is missing: {path}", path=path)
        data = decompressor.unused_data
    return b"".join(pieces)


CHUNK_BYTES = 1 << 20
MAXIMUM_LINE_BYTES = 64 << 20

ReadAt = Callable[[int, int], bytes]
"""Given an offset and a size in bytes, return the bytes there; fewer only at the end."""


class Edits:
    """What was replaced in a line, and so where in the file what stands in it is.

    Attributes:
        spans: each as (start, end, size): which bytes of the file, and how many stand for them.
    """

    __slots__ = ("_ends", "_shifts", "spans")

    def __init__(self, spans: Sequence[tuple[int, int, int]]) -> None:
        self.spans = spans
        self._ends: list[
            int
        ] = []  # where what was put in ends, as if nothing else came before the line
        self._shifts: list[
            int
        ] = []  # from there on, how much further on in the file something stands
        shift = 0
        for start, end, size in spans:
            self._ends.append(start - shift + size)
            shift += end - start - size
            self._shifts.append(shift)

    def in_file(self, at: int) -> int:
        """Return where in the file something is, given the line's offset and its place in the line together."""
        number = bisect_right(self._ends, at)
        return at + self._shifts[number - 1] if number else at

    def between(self, start: int, end: int) -> Edits | None:
        """Return those within a part of the file; None when there are none."""
        spans = [span for span in self.spans if start <= span[0] and span[1] <= end]
        return Edits(spans) if spans else None


class Line(NamedTuple):
    """One line without its newline.

    Attributes:
        number: counted from 1.
        offset: where it begins in the file.
        data: its bytes; None when it is longer than the bound, and then it was passed over unread.
        length: its bytes in the file, without the newline.
        ended: whether a newline ends it; only the last line of a file may lack one.
        whole: whether it is a whole file, which holds one document.
        edits: what was replaced in `data`, which then differs from what the file holds; None: nothing.
    """

    number: int
    offset: int
    data: bytes | None
    length: int
    ended: bool
    whole: bool = False
    edits: Edits | None = None

    def in_file(self, at: int) -> int:
        """Return where in the file a place in `data` is."""
        offset = self.offset + at
        return offset if self.edits is None else self.edits.in_file(offset)

    def part(self, number: int, start: int, end: int, *, ended: bool, whole: bool = False) -> Line:
        """Return a part of the line, between two places in `data`, as one of its own."""
        offset = self.in_file(start)
        length = self.in_file(end) - offset
        edits = None if self.edits is None else self.edits.between(offset, offset + length)
        data = None if self.data is None else self.data[start:end]
        return Line(number, offset, data, length, ended, whole, edits)


class LineAt(Protocol):
    """What reads a line again, given its number, where it begins, and its length in the file."""

    def __call__(self, number: int, offset: int, length: int) -> Line: ...


def line_at(read_at: ReadAt, number: int, offset: int, length: int) -> Line:
    """Return a line that was read before, as it was given to the plan then.

    Args:
        read_at: what the plan was made with.
        number: of the line.
        offset: where it begins in the file.
        length: its bytes there.
    """
    again: LineAt | None = getattr(read_at, "line_at", None)
    if again is not None:
        return again(number, offset, length)
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
    """Yield the lines between two offsets; a file that shrinks meanwhile just ends early.

    Args:
        read_at: how to read.
        end: where to stop, the size of the file when the reading began: what is written later is for next time.
        offset: where to begin, the start of a line or the place behind what was read of one.
        number: the number of the line there.
        limit: the longest line that is kept, in bytes.
        chunk_bytes: how much to read at once.
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
        elif rest:  # a chunk that ends with a line leaves nothing for the next one
            pieces.append(rest)
        position += len(chunk)
    if position > start:
        data = b"".join(pieces) if held <= limit else None
        yield Line(number, start, data, position - start, False)
