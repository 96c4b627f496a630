"""Input files: listing, decompression, decoding, lines and redaction.

A file may change while it is read, and lines may have any length.

Invariant: detection is by content, never by name; decompressed size is limited. Lines are split at newlines only, with
at most one chunk and one line in memory.

Invariant: every reader sees redacted lines only. A line that is read again is redacted the same way.
"""

from __future__ import annotations

import codecs
import json
import os
import re
import stat
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from trace_store.base.frozen import value
from trace_store.context.tokens.tokenizer import load_zstd
from trace_store.disk.files import Disk
from trace_store.errors import StorageError, UnreadableInputError
from trace_store.secrets.placeholders import placeholder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.secrets.engine import SecretFinding
    from trace_store.secrets.guard import Guard

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
CHUNK_BYTES = 1 << 20
MAXIMUM_LINE_BYTES = 64 << 20

ReadAt = Callable[[int, int], bytes]
"""Reads bytes at an offset and size; fewer only at the end."""

STDIN = "-"
INNER = "#"
"""Separates the path of a file with several transcripts from the name of one."""
AGENT_PREFIX = "agent-"
"""Prefix of the names of subagent files."""


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


class InputLine(NamedTuple):
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

    def part(self, number: int, start: int, end: int, *, ended: bool) -> InputLine:
        """Return a part of the line as a line of its own."""
        offset = self.file_offset(start)
        length = self.file_offset(end) - offset
        edits = None if self.edits is None else self.edits.between(offset, offset + length)
        data = None if self.data is None else self.data[start:end]
        return InputLine(number, offset, data, length, ended, edits=edits)


class LineAt(Protocol):
    """Reads a line once more, by number, offset and length."""

    def __call__(self, number: int, offset: int, length: int) -> InputLine: ...


def line_at(read_at: ReadAt, number: int, offset: int, length: int) -> InputLine:
    """Return a line once more, as the planner received it first.

    Args:
        read_at: the reader that the planner was created with.
        number: line number.
        offset: byte offset in the file.
        length: length in the file in bytes.
    """
    line_reader: LineAt | None = getattr(read_at, "line_at", None)
    if line_reader is not None:
        return line_reader(number, offset, length)
    return InputLine(number, offset, read_at(offset, length), length, True)


def read_lines(
    read_at: ReadAt,
    end: int,
    *,
    offset: int = 0,
    number: int = 1,
    limit: int = MAXIMUM_LINE_BYTES,
    chunk_bytes: int = CHUNK_BYTES,
) -> Iterator[InputLine]:
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
            yield InputLine(number, start, data, length, True)
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
        yield InputLine(number, start, data, position - start, False)


class Input(Protocol):
    """An input: a file, or bytes read from a pipe.

    Attributes:
        path: path as given.
        size: size in bytes when opened; later data is left for the next import.
        bytes_read: bytes read so far.
        name: file name without folder and suffix.
        stamp: changes when the file is written to; "" if unknown.
    """

    @property
    def path(self) -> str: ...

    @property
    def size(self) -> int: ...

    @property
    def bytes_read(self) -> int: ...

    @property
    def name(self) -> str: ...

    @property
    def stamp(self) -> str: ...

    def read_at(self, offset: int, size: int) -> bytes:
        """Return bytes at an offset; fewer only at the end."""
        ...


class InputBytes:
    """An input in memory; see `Input`."""

    __slots__ = ("_data", "bytes_read", "name", "path", "size", "stamp")

    def __init__(self, path: str, name: str, data: bytes) -> None:
        self._data = data
        self.path = path
        self.name = name
        self.size = len(data)
        self.stamp = ""
        self.bytes_read = 0

    def read_at(self, offset: int, size: int) -> bytes:
        data = self._data[offset : offset + size]
        self.bytes_read += len(data)
        return data


class InputFile:
    """An open file of fixed size; see `Input`.

    A compressed or UTF-16 file is read as its UTF-8 content.

    Attributes:
        path: path as given.
        size: size in bytes when opened; later data is left for the next import.
        bytes_read: bytes read so far.
        stamp: inode and modification time.
    """

    __slots__ = ("_disk", "_fd", "_plain", "bytes_read", "path", "size", "stamp")

    def __init__(self, disk: Disk, path: str) -> None:
        """Open a file, following symbolic links.

        Raises:
            UnreadableInputError: it does not exist, is not a regular file, cannot be read, or its compressed
                content is damaged.
        """
        try:
            target = os.path.realpath(path)
            # Before opening: a later write changes the stamp.
            status = disk.stat(target)
            # Opening a pipe would block.
            regular = status is None or stat.S_ISREG(status.st_mode)
            fd = disk.open(target) if regular else None
        except (StorageError, ValueError) as error:
            raise UnreadableInputError(f"cannot read: {path}", path=path) from error
        if not regular:
            raise UnreadableInputError(f"not a regular file: {path}", path=path)
        if fd is None:
            raise UnreadableInputError(f"no such file: {path}", path=path)
        self._disk = disk
        self._fd = fd
        self.path = path
        self.size = disk.size(fd)
        self.stamp = "" if status is None else f"{status.st_ino}-{status.st_mtime_ns}"
        self.bytes_read = 0
        self._plain: bytes | None = None
        try:
            self._plain = plain_content(path, self.size, self.read_at)
        except BaseException:
            disk.close(fd)
            raise
        if self._plain is not None:
            self.size = len(self._plain)

    @property
    def name(self) -> str:
        """File name without folder and suffix."""
        name = os.path.basename(self.path)
        if self._plain is not None and name.endswith(COMPRESSED):
            name = os.path.splitext(name)[0]
        return os.path.splitext(name)[0]

    def read_at(self, offset: int, size: int) -> bytes:
        """Return bytes at an offset; fewer only at the end.

        Raises:
            UnreadableInputError: the disk refuses.
        """
        if self._plain is not None:
            return self._plain[offset : offset + size]
        try:
            data = self._disk.read_at(self._fd, offset, size)
        except StorageError as error:
            raise UnreadableInputError(f"cannot read: {self.path}", path=self.path) from error
        self.bytes_read += len(data)
        return data

    def __enter__(self) -> InputFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._disk.close(self._fd)


@value
class Inner:
    """A transcript inside a file that holds several.

    Attributes:
        path: path of the file, INNER, and the transcript's name.
        name: name for a file of its own, without suffix.
        read: returns its bytes, as a file of its own would have them.
    """

    path: str
    name: str
    read: Callable[[], bytes]

    def open(self) -> InputBytes:
        """Return it as an input; errors as in `read`."""
        return InputBytes(self.path, self.name, self.read())


def files_in(folder: str, disk: Disk, suffixes: Sequence[str]) -> list[str]:
    """Return the files with one of the suffixes in a folder tree, sorted.

    Symbolic links to folders, or to files outside, are not followed. An unreadable folder is listed itself.
    """
    paths: list[str] = []
    root = os.path.join(os.path.realpath(folder), "")
    pending = [folder]
    while pending:
        path = pending.pop()
        try:
            folders, files = disk.scan(path)
        except StorageError:
            paths.append(path)
            continue
        paths += [
            file
            for name in files
            if name.endswith(tuple(suffixes)) and _is_inside(file := os.path.join(path, name), root)
        ]
        pending += [os.path.join(path, name) for name in reversed(folders)]
    return paths


def _is_inside(path: str, root: str) -> bool:
    """Return True if a path resolves to something inside a folder."""
    return os.path.join(os.path.realpath(path), "").startswith(root)


def is_folder(path: str) -> bool:
    """Return True if a path is a folder or a link to one."""
    return os.path.isdir(path)


def is_of_agent(path: str) -> bool:
    """Return True if a file name is a subagent's."""
    return os.path.basename(path).startswith(AGENT_PREFIX)


class Redactor:
    """Reader of one file that redacts secrets.

    Attributes:
    findings: the secrets found.
    """

    def __init__(self, guard: Guard | None, file: Input) -> None:
        self._guard = guard
        self._file = file
        self.findings: list[SecretFinding] = []

    def line(self, line: InputLine) -> InputLine:
        """Return a redacted line.

        Raises:
            SecretFoundError: it holds a secret, and the guard blocks.
        """
        redacted, findings = self._redact(line)
        if findings:
            self.findings += findings
        return redacted

    def __call__(self, offset: int, size: int) -> bytes:
        """Return redacted bytes of the file at an offset and size."""
        return self.line_at(0, offset, size).data or b""

    def line_at(self, number: int, offset: int, length: int) -> InputLine:
        """Return a redacted line that was read before."""
        line = InputLine(number, offset, self._file.read_at(offset, length), length, True)
        return self._redact(line)[0]

    @property
    def redact_bytes(self) -> Callable[[bytes], bytes] | None:
        """A function that redacts bytes between records; None without a guard."""
        return None if self._guard is None else self._redact_bytes

    def _redact_bytes(self, data: bytes) -> bytes:
        guard = self._guard
        if guard is None or not guard.meets(data):
            return data
        return guard.screened(data, self._file.path)[0]

    def _redact(self, line: InputLine) -> tuple[InputLine, list[SecretFinding]]:
        guard, data = self._guard, line.data
        if guard is None or data is None or not guard.meets(data):
            return line, []
        redacted, findings = guard.screened(data, self._file.path, line.number)
        if redacted is data:
            return line, findings
        spans = [
            (line.offset + each.start, line.offset + each.end, len(placeholder(each.rule, each.id)))
            for each in findings
        ]
        return line._replace(data=redacted, edits=Edits(spans)), findings
