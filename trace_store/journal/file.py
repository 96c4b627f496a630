"""One open journal, and the frames read from it so far.

Rule: a rescan starts after the last known frame. A successor may limit how many bytes of the file count. Frames beyond
the limit have no effect, even if they were read before the successor existed.
"""

from __future__ import annotations

import errno

from trace_store import errors
from trace_store.disk.files import READ, WRITABLE, WRITE
from trace_store.journal.frames import (
    BEGIN,
    END,
    FIRST_PASSING,
    HEADER_BYTES,
    KNOWN_LASTING,
    TRANSACTION,
    VOID,
    Frame,
    length_in,
    scan,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from trace_store.base.oid import ObjectId
    from trace_store.disk.files import Disk

MAXIMUM_ROOM_BYTES = 1 << 20
MAXIMUM_PASSING_BYTES = 4 << 20
"""A journal with more bytes of passing frames is sealed for that reason alone, so that it cannot grow forever."""
WHOLE, FAILED, GONE = "whole", "failed", "gone"
_ZEROS = bytes(1 << 16)
"""Compared with the bytes after the frames, in pieces small enough that the system maps no new memory."""
_BEGIN_BYTES = 512
_FIRST_READ = 1 << 12
_READ_AHEAD = 1 << 20
_READ_ONLY = (errno.EACCES, errno.EROFS, errno.EPERM)


class JournalFile:
    """An open journal.

    Attributes:
        number, path, fd, identity: identify the file.
        end: the end of the valid frames read so far.
        room: the end of the zeros that are known to follow them; less than `end` if unknown.
        written: whether this process has appended to it.
        closed: whether it has ended; nothing more is written to it.
        refusal: why it is read-only; None if it is writable.
        unsynced: whether it was appended to without a sync.
        durable: number of bytes known to be on disk; 0 if unknown.
        failed: whether a sync of it failed in any process, so that nothing more is written to it.
        refused: the frame whose sync failed in this process, until its outcome is known.
        at_end: whether the last scan reached the end of the file or zeros, without an end frame or damage.
        passing: number of bytes of passing frames read. They are not kept, since nothing depends on them.
        frames: the lasting frames read.
        objects: (id, offset, size) of each object, the very tuple of its frame.
    """

    def __init__(self, number: int, path: str, fd: int, identity: tuple[int, int]) -> None:
        self.number = number
        self.path = path
        self.fd = fd
        self.identity = identity
        self.end = 0
        self.room = -1
        self.written = False
        self.closed = False
        self.refusal: errors.StorageError | None = None
        self.unsynced = False
        self.durable = 0
        self.failed = False
        self.refused: Frame | None = None
        self.passing = 0
        self.frames: list[Frame] = []
        self.objects: dict[bytes, tuple[ObjectId, int, int]] = {}
        self.at_end = False
        self._ahead = _FIRST_READ
        self._limit: int | None = None

    @property
    def line(self) -> bytes:
        """The line of journals it belongs to; empty without a begin frame."""
        return self.frames[0].line if self.frames else b""

    @property
    def key(self) -> tuple[bytes, int]:
        """Its permanent identity: line and number."""
        return self.line, self.number

    @property
    def limited(self) -> bool:
        """Whether a successor limits it."""
        return self._limit is not None

    def scan(self, disk: Disk) -> list[Frame]:
        """Read new frames, and return the lasting ones."""
        known, start = len(self.frames), self.end
        data, base, ahead = b"", start, self._ahead
        while not self.closed:
            if self.end + HEADER_BYTES > base + len(data):
                data, base = self._read_within(disk, ahead), self.end
                ahead = min(4 * ahead, _READ_AHEAD)
            at = self.end - base
            head = data[at : at + HEADER_BYTES]
            self.at_end = not head.strip(b"\0")
            if self.at_end:
                break
            if at and at + HEADER_BYTES + length_in(head) > len(data):
                data, base = b"", self.end  # the buffer has only a part of the frame
            elif not self._take_next(disk, data, base):
                break
        self._ahead = min(max(_FIRST_READ, 2 * (self.end - start)), _READ_AHEAD)
        return self.frames[known:]

    def _read_within(self, disk: Disk, count: int) -> bytes:
        """Return up to `count` bytes after the known frames, within the limit."""
        if self._limit is not None:
            count = max(0, min(count, self._limit - self.end))
        return disk.read_at(self.fd, self.end, count)

    def _take_next(self, disk: Disk, data: bytes, base: int) -> bool:
        """Read the frames that are whole in `data`, else one from the file; False if no valid frame follows."""
        start = self.end
        for frame in scan(
            lambda at, count: data[at - base : at - base + count], start, base + len(data)
        ):
            if frame.start == 0 and frame.kind != BEGIN:
                return False
            self.take(frame)
            if self.closed:
                break
        if self.end > start:
            return True
        size = disk.size(self.fd)
        if self._limit is not None:
            size = min(size, self._limit)
        for frame in scan(lambda at, count: disk.read_at(self.fd, at, count), start, size):
            if frame.start == 0 and frame.kind != BEGIN:
                return False
            self.take(frame)
            return True
        return False

    def ends_here(self, disk: Disk) -> bool:
        """Return True if the known frames are followed by zeros or the end of the file."""
        return not disk.read_at(self.fd, self.end, HEADER_BYTES).strip(b"\0")

    def is_free_behind(self, disk: Disk) -> bool:
        """Return True if only a bounded run of zeros follows, so a frame may be written.

        If this was checked before, later frames of other processes were each written right after the last one.
        """
        if self.room >= self.end:
            return self.ends_here(disk)
        end = disk.size(self.fd)
        if not 0 <= end - self.end <= MAXIMUM_ROOM_BYTES:
            return False
        for at in range(self.end, end, len(_ZEROS)):
            size = min(len(_ZEROS), end - at)
            if disk.read_at(self.fd, at, size) != _ZEROS[:size]:
                return False
        self.room = end
        return True

    def status(self, disk: Disk) -> str:
        """Return GONE if its path names no or another file, FAILED after a sync error."""
        found = disk.stat(self.path)
        if found is None or (found.st_dev, found.st_ino) != self.identity:
            return GONE
        return WHOLE if found.st_mode & WRITABLE else FAILED

    def take(self, frame: Frame) -> None:
        """Add the next frame."""
        self.end = frame.end
        if frame.kind >= FIRST_PASSING:
            self.passing += frame.end - frame.start
            return
        self.frames.append(frame)
        for placed in frame.objects:
            self.objects[placed[0]] = placed
        if frame.kind == END:
            self.closed = True
        elif frame.kind == VOID and self.frames[-2].kind == TRANSACTION:
            voided = self.frames[-2]
            voided.voided = True
            for placed in voided.objects:
                if self.objects.get(placed[0]) is placed:
                    del self.objects[placed[0]]

    def place(self, oid: bytes) -> tuple[int, int] | None:
        """Return (offset, size) of an object; None if it is not in this journal."""
        placed = self.objects.get(oid)
        return None if placed is None else placed[1:]

    def places(self) -> dict[ObjectId, tuple[int, int]]:
        """Return (offset, size) of each object."""
        return {oid: (offset, size) for oid, offset, size in self.objects.values()}

    def begin(self, disk: Disk) -> bytes:
        """Return its line, from the first frame alone; empty if its number is wrong."""
        if self.frames:
            return self.line
        frame = self._first(disk)
        return b"" if frame is None or self._belongs_elsewhere(frame) else frame.line

    def is_misplaced(self, disk: Disk) -> bool:
        """Return True if it follows a journal other than the one with the previous number."""
        frame = self._first(disk)
        return frame is not None and self._belongs_elsewhere(frame)

    def _first(self, disk: Disk) -> Frame | None:
        size = min(disk.size(self.fd), _BEGIN_BYTES)
        frames = scan(lambda at, count: disk.read_at(self.fd, at, count), 0, size)
        return next(frames, None)

    def forget(self) -> None:
        """Drop what was read, which takes more memory than the file has bytes; `scan` reads it again."""
        self.end, self.closed, self.frames, self.objects, self.passing = 0, False, [], {}, 0

    def limit(self, predecessor: JournalFile, disk: Disk) -> None:
        """Limit the predecessor to the number of bytes recorded in this journal.

        Numbers restart after the directory is removed, so a different journal may now have the predecessor's number.
        The line tells them apart; journals of early versions did not record it.
        """
        first = self.frames[0]
        if first.closed_line and first.closed_line != predecessor.begin(disk):
            return
        for number, border in first.closes:
            if number == predecessor.number:
                predecessor.cut(border)
                predecessor.failed = predecessor.failed or first.failed

    def _belongs_elsewhere(self, first: Frame) -> bool:
        return any(number != self.number - 1 for number, _ in first.closes)

    def cut(self, limit: int) -> None:
        """Ignore everything after the first `limit` bytes."""
        if self._limit == limit:
            return
        self._limit = limit
        if self.end <= limit:
            self.closed = bool(self.frames) and self.frames[-1].kind == END
            return
        frames = [frame for frame in self.frames if frame.end <= limit]
        self.forget()
        for frame in frames:
            frame.voided = False  # set again when `take` reaches its void frame
            self.take(frame)

    def transactions(self) -> Iterator[Frame]:
        """Yield the transaction frames that were not voided, in order."""
        return (f for f in self.frames if f.kind == TRANSACTION and not f.voided)

    def has_content(self) -> bool:
        """Return True if it holds anything that a seal would write, or must not drop.

        Passing frames count if the journal is closed, so that a seal removes them, or if there are many.
        """
        if self.passing > (0 if self.closed else MAXIMUM_PASSING_BYTES):
            return True
        return any(f.kind not in (BEGIN, END, VOID) and not f.voided for f in self.frames)

    def unknown_kinds(self) -> list[int]:
        """Return its lasting frame kinds that this version does not know."""
        kinds = {frame.kind for frame in self.frames}
        return sorted(kinds - KNOWN_LASTING)


def open_journal(disk: Disk, path: str, number: int) -> JournalFile | None:
    """Open a journal, read-only if writing is not permitted; None if it is absent."""
    refusal: errors.StorageError | None = None
    try:
        fd = disk.open(path, WRITE)
    except errors.StorageError as error:
        if error.errno not in _READ_ONLY:
            raise
        refusal = errors.StorageError(error.message, path=path, errno=error.errno)
        fd = disk.open(path, READ)
    if fd is None:
        return None
    identity = disk.identity(fd)
    if identity is None:
        return None
    file = JournalFile(number, path, fd, identity)
    file.refusal = refusal
    file.failed = file.status(disk) is FAILED
    return file
