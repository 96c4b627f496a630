"""Append-only files of fixed-size records ("columns"), each with its own header.

Rule: a writer appends only under a non-blocking file lock. Any other change writes a new file and renames it. A reader
keeps the descriptor it opened, so its view does not change. Columns are derived data: nothing is synced, and a lost
file only costs time.
"""

from __future__ import annotations

from _thread import allocate_lock  # same as in `threading`, which takes longer to import

from trace_store import errors
from trace_store.disk.files import APPEND, Disk, replace_file, write_all

HEADER_BYTES = 64


class OpenColumn:
    """An open column file, unaffected by later renames onto its path."""

    __slots__ = ("_disk", "_fd", "_path", "identity")

    def __init__(self, disk: Disk, fd: int, path: str) -> None:
        self._disk = disk
        self._fd = fd
        self._path = path
        self.identity = disk.identity(fd)

    def __del__(self) -> None:
        # The interpreter may be shutting down. A read-only descriptor has nothing to lose.
        try:
            self._disk.close(self._fd)
        except (errors.StorageError, AttributeError, TypeError):
            return

    def size(self) -> int:
        """Return the length in bytes."""
        return self._disk.size(self._fd)

    def read(self, offset: int, size: int) -> bytes:
        """Return the bytes at an offset; fewer only at the end of the file."""
        return self._disk.read_at(self._fd, offset, size)

    def append(self, expected: int, data: bytes) -> bool:
        """Append if the length is as expected and no other writer holds the lock.

        Returns whether the data was appended.
        """
        # A lock belongs to an open file description, which threads and forked children share, so each append opens its
        # own.
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
            disk.close(fd)  # also releases the lock


class DiskColumn:
    """A column stored in a file."""

    __slots__ = ("_disk", "_open", "_path")

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self._path = path
        self._open: OpenColumn | None = None

    def current(self) -> OpenColumn | None:
        """Return the column that the path currently names, or None."""
        identity = self._disk.identity(self._path)
        if identity is None:
            self._open = None
        elif self._open is None or self._open.identity != identity:
            self._open = self._reopen()
        return self._open

    def replace(self, data: bytes) -> OpenColumn | MemoryBytes:
        """Replace the file with these bytes and return it; in memory if the disk fails."""
        try:
            replace_file(self._disk, self._path, data, durable=False)
            opened = self.current()
        except errors.StorageError:
            opened = None  # read-only or full: the caller still needs an answer
        return opened if opened is not None else MemoryBytes(data)

    def _reopen(self) -> OpenColumn | None:
        fd = self._disk.open(self._path)
        return None if fd is None else OpenColumn(self._disk, fd, self._path)


class MemoryBytes:
    """The bytes of a column in memory."""

    __slots__ = ("_data", "_mutex", "identity")

    def __init__(self, data: bytes = b"") -> None:
        self._data = bytearray(data)
        self._mutex = allocate_lock()
        self.identity = None

    def size(self) -> int:
        """Return the length in bytes."""
        return len(self._data)

    def read(self, offset: int, size: int) -> bytes:
        """Return the bytes at an offset; fewer only at the end."""
        return bytes(self._data[offset : offset + size])

    def append(self, expected: int, data: bytes) -> bool:
        """Append if the length is as expected; return whether the data was appended."""
        with self._mutex:
            if len(self._data) != expected:
                return False
            self._data += data
        return True


class MemoryColumn:
    """A column in memory, for a context without an index."""

    __slots__ = ("_bytes",)

    def __init__(self) -> None:
        self._bytes: MemoryBytes | None = None

    def current(self) -> MemoryBytes | None:
        """Return the column, or None before the first `replace`."""
        return self._bytes

    def replace(self, data: bytes) -> MemoryBytes:
        """Replace the content with these bytes and return it."""
        self._bytes = MemoryBytes(data)
        return self._bytes
