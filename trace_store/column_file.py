"""Columns: files of fixed-size records that only grow, each behind a header of its own.

Rule: records are only appended, by whoever gets a non-blocking lock on the file; any other change writes a new file
and renames it. A reader keeps the descriptor it opened, so what it has seen stays as it was. Columns are derived:
nothing here is synced, and losing a file costs time and nothing else.
"""

from __future__ import annotations

from _thread import allocate_lock  # what `threading` has, which takes longer to load

from trace_store import errors
from trace_store.files import APPEND, Disk, replace_file, write_all

HEADER_BYTES = 64


class OpenColumn:
    """One generation of a column: the bytes of one file, whatever its name points to later."""

    __slots__ = ("_disk", "_fd", "_path", "identity")

    def __init__(self, disk: Disk, fd: int, path: str) -> None:
        self._disk = disk
        self._fd = fd
        self._path = path
        self.identity = disk.identity(fd)

    def __del__(self) -> None:
        # The interpreter may be going down, and what was only read has nothing to lose.
        try:
            self._disk.close(self._fd)
        except (errors.StorageError, AttributeError, TypeError):
            return

    def size(self) -> int:
        """Return the length in bytes."""
        return self._disk.size(self._fd)

    def read(self, offset: int, size: int) -> bytes:
        """Return bytes from an offset; fewer only at the end."""
        return self._disk.read_at(self._fd, offset, size)

    def append(self, expected: int, data: bytes) -> bool:
        """Append when the length is still the expected one and nobody else is writing; tell whether it was done."""
        # A lock belongs to an open file, which threads and forked children share; so each append opens its own.
        disk = self._disk
        try:
            fd = disk.open(self._path, APPEND)
        except errors.StorageError:
            return False
        if fd is None:
            return False
        try:
            if disk.identity(fd) != self.identity or not disk.lock(fd, blocking=False):
                return False
            if disk.size(fd) != expected:
                return False
            write_all(disk, fd, data)
            return True
        except errors.StorageError:
            return False  # a full disk costs the index, never the answer
        finally:
            disk.close(fd)  # which releases the lock


class DiskColumn:
    """A column in a file."""

    __slots__ = ("_disk", "_open", "_path")

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self._path = path
        self._open: OpenColumn | None = None

    def current(self) -> OpenColumn | None:
        """Return the column as the path names it now, or None when there is none."""
        identity = self._disk.identity(self._path)
        if identity is None:
            self._open = None
        elif self._open is None or self._open.identity != identity:
            self._open = self._reopen()
        return self._open

    def replace(self, data: bytes) -> OpenColumn | MemoryBytes:
        """Let a new file with these bytes take the path, and return it; in memory when the disk refuses."""
        try:
            replace_file(self._disk, self._path, data, durable=False)
            opened = self.current()
        except errors.StorageError:
            opened = None  # read-only or full: an answer is still owed
        return opened if opened is not None else MemoryBytes(data)

    def _reopen(self) -> OpenColumn | None:
        fd = self._disk.open(self._path)
        return None if fd is None else OpenColumn(self._disk, fd, self._path)


class MemoryBytes:
    """One generation of a column, in memory."""

    __slots__ = ("_data", "_mutex", "identity")

    def __init__(self, data: bytes = b"") -> None:
        self._data = bytearray(data)
        self._mutex = allocate_lock()
        self.identity = None

    def size(self) -> int:
        """Return the length in bytes."""
        return len(self._data)

    def read(self, offset: int, size: int) -> bytes:
        """Return bytes from an offset; fewer only at the end."""
        return bytes(self._data[offset : offset + size])

    def append(self, expected: int, data: bytes) -> bool:
        """Append when the length is still the expected one; tell whether it was done."""
        with self._mutex:
            if len(self._data) != expected:
                return False
            self._data += data
        return True


class MemoryColumn:
    """A column without a file: of a store in memory, or of a context that no index covers."""

    __slots__ = ("_bytes",)

    def __init__(self) -> None:
        self._bytes: MemoryBytes | None = None

    def current(self) -> MemoryBytes | None:
        """Return the column, or None before its first `replace`."""
        return self._bytes

    def replace(self, data: bytes) -> MemoryBytes:
        """Begin a new generation with these bytes and return it."""
        self._bytes = MemoryBytes(data)
        return self._bytes
