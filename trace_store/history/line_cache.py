"""What the log says of each commit in one line, kept beside the commit table.

    commits.lines, a row for each row of the table                 commits.text
     0   8  where its text begins in commits.text                  for each row its line and a newline
     8   4  bytes of its text
    12   2  characters of the line before what is said
    14   2  characters of what is said
    16   1  flags
    17   3  zero
    20   4  checksum of the text from the first row of the chunk on
    24   4  checksum

Rule: as with the commit table, whose rows these follow: pulled, checked, and deleted at no loss. What cannot be told
from a commit and content that are here is not written down, and is looked for each time. Text is read and checked
by the chunk, so that a line costs next to nothing.
"""

from __future__ import annotations

import struct
from zlib import crc32

from trace_store import errors
from trace_store.column_file import DiskColumn
from trace_store.commit_table.rows import (
    CHECK_BYTES,
    CHUNK_ROWS,
    HEADER_BYTES,
    MORE,
    SEED,
    checked,
    decode_header,
    encode_header,
    is_sound,
    tag_of,
)
from trace_store.context.line import LINE_WIDTH, Line
from trace_store.objects.commit import read_commit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from trace_store.column_file import MemoryBytes, OpenColumn
    from trace_store.commit_table.rows import CommitRows
    from trace_store.objects.commit import Commit
    from trace_store.store.handle import Store

    Opened: TypeAlias = OpenColumn | MemoryBytes
    Tell: TypeAlias = Callable[[Commit, Callable[[bytes], bytes]], list[Line]]

LINES_MAGIC = b"TRCL"
TEXT_MAGIC = b"TRCX"
_PLACE = struct.Struct("<QIHHB3xI")
_ROW = struct.Struct(f"<QIHHB3xI{CHECK_BYTES}x")
LINE_BYTES = _ROW.size

KNOWN = 1
"""The line is here; else the commit is asked."""
WHOLE = 2
"""The line is all of the commit's message."""
NEAR = 256
"""So many commits without a line are given one by whoever asks for some; more only for a whole log."""
BATCH_ROWS = 4 * CHUNK_ROWS
_KEPT_CHUNKS = 16
_LONGEST_TEXT = 8192


class _Chunk:
    """The lines of as many rows as a chunk of the commit table has."""

    __slots__ = ("places", "texts")

    def __init__(self, places: list[tuple[int, int, int, int, int, int]], texts: list[str]) -> None:
        self.places = places
        self.texts = texts


class Lines:
    """The lines of one state of the commit table.

    Attributes:
        count: how many rows have one.
    """

    def __init__(self, store: Store, rows: CommitRows, tell: Tell) -> None:
        """Look at what there is.

        Args:
            store: where from.
            rows: the rows that the lines are about.
            tell: returns the lines about a commit, at least one, given what reads objects.
        """
        self._store = store
        self._rows = rows
        # Lines from before a purge may say what was purged: they are of another repository, as it were.
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
        """Return the line of a row with at most `width` characters of what is said; None when it is not kept."""
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
        """Return the message of a row's commit; None when it is not kept as a whole."""
        chunk = self._chunks.get(number // CHUNK_ROWS) or self._read(number // CHUNK_ROWS)
        at = number % CHUNK_ROWS
        if chunk is None or at >= len(chunk.places) or not chunk.places[at][4] & KNOWN:
            return None
        flags = chunk.places[at][4]
        return chunk.texts[at] if flags & WHOLE else None

    def catch_up(self) -> None:
        """Write the lines of rows that have none yet, as far as the disk and other writers let it."""
        self._chunks.clear()
        while self.count < self._rows.stored:
            if self._places is None or self._texts is None:
                self._begin()
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

    def _begin(self) -> None:
        """Begin both files anew."""
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
        # Damaged: the next update rebuilds it.
        self._places = self._texts = None
        self.count = 0
        for path in (self._store.layout.commit_lines_file, self._store.layout.commit_text_file):
            try:
                self._store.disk.remove(path)
            except errors.StorageError:
                continue  # a read-only repository: it is found damaged each time
        return None

    def _append(self, first: int, end: int) -> bool:
        """Write the lines of some rows; False when somebody else is writing, or the disk refuses."""
        assert self._places is not None
        assert self._texts is not None
        start = at = self._texts.size()
        check = self._check_before(first)
        places: list[bytes] = []
        texts: list[bytes] = []
        for number, row in enumerate(self._rows.oldest_first(first, end), first):
            line, message = (None, "") if row[8] & MORE else self._told(row[0])
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
        """Return the checksum of a chunk's text up to a row."""
        assert self._places is not None
        if not number % CHUNK_ROWS:
            return SEED
        data = self._places.read(HEADER_BYTES + (number - 1) * LINE_BYTES, LINE_BYTES)
        return int(_ROW.unpack(data)[5]) if len(data) == LINE_BYTES else SEED

    def _told(self, oid: bytes) -> tuple[Line | None, str]:
        """Return the line about a commit, or None when it cannot be told for good, and the commit's message."""
        read = self._store.objects.read
        whole = True

        def look(wanted: bytes) -> bytes:
            nonlocal whole
            try:
                return read(wanted)
            except (errors.FormatError, errors.NotFoundError):
                whole = False
                raise

        try:
            commit = read_commit(oid, look)
            lines = self._tell(commit, look)
        except (errors.FormatError, errors.NotFoundError):
            return None, ""
        if len(lines) > 1 and not any(line.said for line in lines):
            lines = [Line("; ".join(line.before + line.after for line in lines))]
        return lines[0] if whole and len(lines) == 1 else None, commit.message


def encode_line(at: int, line: Line | None, message: str, check: int) -> tuple[bytes, bytes]:
    """Return the row and the text of a line.

    Args:
        at: where its text begins.
        line: the line, or None when it is not known.
        message: the commit's message.
        check: the checksum of the chunk's text before it.
    """
    shown = "" if line is None else line.cut(LINE_WIDTH)
    try:
        text = f"{shown}\n".encode()
    except UnicodeEncodeError:
        line, text = None, b"\n"
    if line is None or "\n" in shown or len(text) > _LONGEST_TEXT:
        text = b"\n"
        return checked(_PLACE.pack(at, len(text), 0, 0, 0, crc32(text, check))), text
    flags = KNOWN | WHOLE if message and message == shown else KNOWN
    said = min(len(line.said), LINE_WIDTH)
    row = _PLACE.pack(at, len(text), len(line.before), said, flags, crc32(text, check))
    return checked(row), text
