"""One-line summaries of commits for the log, cached beside the commit table.

    commits.lines, a row for each row of the table                 commits.text
     0   8  offset of its text in commits.text                      for each row its line and a newline
     8   4  bytes of its text
    12   2  characters of the line before the quoted text
    14   2  characters of the quoted text
    16   1  flags
    17   3  zero
    20   4  checksum of the text since the start of the chunk
    24   4  checksum

Both files are derived data: appended on demand, checked on reading, and safe to delete. A line that needs a missing
object is not stored but computed each time. Text is read and checked by the chunk, so that a line costs almost nothing.
"""

from __future__ import annotations

import struct
from zlib import crc32

from trace_store import errors
from trace_store.commit_table.table import (
    CHECK_BYTES,
    CHUNK_ROWS,
    HEADER_BYTES,
    IS_CONTINUATION,
    SEED,
    decode_header,
    encode_header,
    is_sound,
    tag_of,
    with_checksum,
)
from trace_store.context.content import LINE_WIDTH, SummaryLine
from trace_store.disk.column_file import DiskColumn
from trace_store.objects.commit import read_commit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from trace_store.commit_table.table import CommitRows
    from trace_store.disk.column_file import MemoryBytes, OpenColumn
    from trace_store.objects.commit import Commit
    from trace_store.store.store import Store

    Opened: TypeAlias = OpenColumn | MemoryBytes
    Tell: TypeAlias = Callable[[Commit, Callable[[bytes], bytes]], list[SummaryLine]]

LINES_MAGIC = b"TRCL"
TEXT_MAGIC = b"TRCX"
_PLACE = struct.Struct("<QIHHB3xI")
_ROW = struct.Struct(f"<QIHHB3xI{CHECK_BYTES}x")
LINE_BYTES = _ROW.size

KNOWN = 1
"""The line is stored; else the commit is read."""
WHOLE = 2
"""The line is the whole commit message."""
NEAR = 256
"""A log that shows only some commits stores up to this many missing lines; a log of everything stores all."""
BATCH_ROWS = 4 * CHUNK_ROWS
_KEPT_CHUNKS = 16
_LONGEST_TEXT = 8192


class _Chunk:
    """The lines of one chunk of the commit table."""

    __slots__ = ("places", "texts")

    def __init__(self, places: list[tuple[int, int, int, int, int, int]], texts: list[str]) -> None:
        self.places = places
        self.texts = texts


class Lines:
    """The stored lines for one state of the commit table.

    Attributes:
        count: number of rows that have a line.
    """

    def __init__(self, store: Store, rows: CommitRows, tell: Tell) -> None:
        """Open the stored lines.

        Args:
            store: the repository's store.
            rows: the rows of the commit table.
            tell: returns the lines for a commit, at least one, given a function that reads objects.
        """
        self._store = store
        self._rows = rows
        # Lines from before a purge may quote purged text, so a purge invalidates both files.
        self._tag = tag_of(store.config.store_id + store.objects.purged_key())
        self._tell = tell
        self._column = DiskColumn(store.disk, store.layout.commit_lines_file)
        self._text_column = DiskColumn(store.disk, store.layout.commit_text_file)
        self._chunks: dict[int, _Chunk] = {}
        self._places: Opened | None = None
        self._texts: Opened | None = None
        self.count = 0
        self._load()

    def summary(self, number: int, width: int) -> str | None:
        """Return the line of a row with at most `width` characters of quoted text; None if it is not stored."""
        chunk = self._chunks.get(number // CHUNK_ROWS) or self._read(number // CHUNK_ROWS)
        at = number % CHUNK_ROWS
        if chunk is None or at >= len(chunk.places) or width > LINE_WIDTH:
            return None
        _, _, before, said, flags, _ = chunk.places[at]
        line = chunk.texts[at]
        if said <= width:
            return line if flags & KNOWN else None
        return line[: before + width - 1] + "…" + line[before + said :]

    def message(self, number: int) -> str | None:
        """Return the commit message of a row; None unless it is stored in full."""
        chunk = self._chunks.get(number // CHUNK_ROWS) or self._read(number // CHUNK_ROWS)
        at = number % CHUNK_ROWS
        if chunk is None or at >= len(chunk.places) or not chunk.places[at][4] & KNOWN:
            return None
        flags = chunk.places[at][4]
        return chunk.texts[at] if flags & WHOLE else None

    def catch_up(self) -> None:
        """Write the missing lines, unless the disk fails or another process is writing."""
        self._chunks.clear()
        while self.count < self._rows.stored:
            if self._places is None or self._texts is None:
                self._create()
            end = min(self.count + BATCH_ROWS, self._rows.stored)
            if not self._append(self.count, end):
                return
            self.count = end

    def _load(self) -> None:
        try:
            places, texts = self._column.current(), self._text_column.current()
            if places is None or texts is None:
                return
            for opened, magic in ((places, LINES_MAGIC), (texts, TEXT_MAGIC)):
                head = opened.read(0, HEADER_BYTES)
                if decode_header(head, self._tag, magic, LINE_BYTES) != self._rows.generation:
                    return
            count, rest = divmod(places.size() - HEADER_BYTES, LINE_BYTES)
        except (errors.CorruptIndexError, errors.StorageError):
            return
        if not rest:
            self._places, self._texts = places, texts
            self.count = min(count, self._rows.stored)

    def _create(self) -> None:
        """Create both files, without rows."""
        self.count = 0
        self._texts, self._places = (
            column.replace(encode_header(self._tag, self._rows.generation, magic, LINE_BYTES))
            for column, magic in ((self._text_column, TEXT_MAGIC), (self._column, LINES_MAGIC))
        )

    def _read(self, number: int) -> _Chunk | None:
        first = number * CHUNK_ROWS
        end = min(first + CHUNK_ROWS, self.count)
        if first >= end or self._places is None or self._texts is None:
            return None
        size = (end - first) * LINE_BYTES
        data = self._places.read(HEADER_BYTES + first * LINE_BYTES, size)
        if len(data) == size and is_sound(data):
            places = list(_ROW.iter_unpack(data))
            base, last = places[0][0], places[-1]
            size = last[0] + last[1] - base
            text = self._texts.read(base, size) if size <= len(places) * _LONGEST_TEXT else b""
            if len(text) == size and crc32(text, SEED) == last[5]:
                if len(self._chunks) >= _KEPT_CHUNKS:
                    del self._chunks[next(iter(self._chunks))]
                chunk = self._chunks[number] = _Chunk(places, text.decode().split("\n"))
                return chunk
        # Damaged: the next `catch_up` rebuilds both files.
        self._places = self._texts = None
        self.count = 0
        for path in (self._store.layout.commit_lines_file, self._store.layout.commit_text_file):
            try:
                self._store.disk.remove(path)
            except errors.StorageError:
                continue  # read-only: the damage is detected each time
        return None

    def _append(self, first: int, end: int) -> bool:
        """Write the lines of some rows; return False if another process is writing or the disk fails."""
        assert self._places is not None
        assert self._texts is not None
        start = at = self._texts.size()
        check = self._check_before(first)
        places: list[bytes] = []
        texts: list[bytes] = []
        for number, row in enumerate(self._rows.oldest_first(first, end), first):
            line, message = (None, "") if row[8] & IS_CONTINUATION else self._line_of(row[0])
            seed = check if number % CHUNK_ROWS else SEED
            place, text = encode_line(at, line, message, seed)
            check = crc32(text, seed)
            places.append(place)
            texts.append(text)
            at += len(text)
        return self._texts.append(start, b"".join(texts)) and self._places.append(
            HEADER_BYTES + first * LINE_BYTES, b"".join(places)
        )

    def _check_before(self, number: int) -> int:
        """Return the checksum of a chunk's text before a row."""
        assert self._places is not None
        if not number % CHUNK_ROWS:
            return SEED
        data = self._places.read(HEADER_BYTES + (number - 1) * LINE_BYTES, LINE_BYTES)
        return int(_ROW.unpack(data)[5]) if len(data) == LINE_BYTES else SEED

    def _line_of(self, oid: bytes) -> tuple[SummaryLine | None, str]:
        """Return the line for a commit, or None if it depends on a missing object, and the commit message."""
        read = self._store.objects.read
        whole = True

        def read_or_note(wanted: bytes) -> bytes:
            nonlocal whole
            try:
                return read(wanted)
            except (errors.FormatError, errors.NotFoundError):
                whole = False
                raise

        try:
            commit = read_commit(oid, read_or_note)
            lines = self._tell(commit, read_or_note)
        except (errors.FormatError, errors.NotFoundError):
            return None, ""
        if len(lines) > 1 and not any(line.said for line in lines):
            lines = [SummaryLine("; ".join(line.before + line.after for line in lines))]
        return lines[0] if whole and len(lines) == 1 else None, commit.message


def encode_line(at: int, line: SummaryLine | None, message: str, check: int) -> tuple[bytes, bytes]:
    """Return the row and the text of a line.

    Args:
        at: the offset of its text.
        line: the line, or None if it is unknown.
        message: the commit message.
        check: the checksum of the chunk's text before it.
    """
    shown = "" if line is None else line.cut(LINE_WIDTH)
    try:
        text = f"{shown}\n".encode()
    except UnicodeEncodeError:
        line, text = None, b"\n"
    if line is None or "\n" in shown or len(text) > _LONGEST_TEXT:
        text = b"\n"
        return with_checksum(_PLACE.pack(at, len(text), 0, 0, 0, crc32(text, check))), text
    flags = KNOWN | WHOLE if message and message == shown else KNOWN
    said = min(len(line.said), LINE_WIDTH)
    row = _PLACE.pack(at, len(text), len(line.before), said, flags, crc32(text, check))
    return with_checksum(row), text
