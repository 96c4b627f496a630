"""Locks that a process holds while it works on something, so that others see whether it still does.

Rule: the system releases the lock when the process ends, however it ends. The file may hold a short note, such as the
time of a heartbeat; whoever takes the lock writes it anew.
"""

from __future__ import annotations

import os

from trace_store.base.oid import digest
from trace_store.disk.files import CREATE, WRITE, read_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.store.store import Store

AGENT_LOCK, RUN_LOCK = "agent", "run"
"""Kinds of locks: on an agent's branch, and on a live run."""
_DIGITS = 32
_MAXIMUM_NOTE = 4096


class ProcessLock:
    """The lock of one thing, such as an agent's branch, in one repository."""

    __slots__ = ("_fd", "_path", "_store")

    def __init__(self, store: Store, kind: str, name: str) -> None:
        """Name a lock; the store is on disk.

        Args:
            store: the repository.
            kind: what is locked, such as AGENT_LOCK.
            name: any text that identifies it.
        """
        self._store = store
        self._path = store.layout.lock_file(f"{kind}-{digest(name.encode()).hex()[:_DIGITS]}")
        self._fd: int | None = None

    def take(self) -> bool:
        """Take the lock and return True, or return False if another process holds it.

        Raises:
            StorageError: the disk failed.
        """
        if self._fd is None:
            fd = self._opened()
            if fd is None or not self._store.disk.lock(fd, blocking=False):
                self._close(fd)
                return False
            self._fd = fd
        return True

    def write_note(self, note: str) -> None:
        """Write the note, of the same length each time; the lock is taken.

        Raises:
            StorageError: the disk failed.
        """
        if self._fd is not None:
            self._store.disk.write(self._fd, note.encode(), 0)

    @property
    def is_held(self) -> bool:
        """Whether a process holds the lock, this one included; raises as `take`."""
        if self._fd is not None:
            return True
        if not self._store.disk.exists(self._path):
            return False
        fd = self._opened()
        try:
            return fd is not None and not self._store.disk.lock(fd, blocking=False)
        finally:
            self._close(fd)

    @property
    def note(self) -> str:
        """The note of who took the lock last, or ""; raises as `take`."""
        return _read_note(self._store, self._path)

    @staticmethod
    def notes(store: Store, kind: str) -> list[str]:
        """Return the notes of all locks of a kind that have a file; raises as `take`."""
        folder = store.layout.locks_dir
        names = [name for name in store.disk.names(folder) if name.startswith(f"{kind}-")]
        return [_read_note(store, os.path.join(folder, name)) for name in names]

    def release(self) -> None:
        """Release the lock; the note stays."""
        fd, self._fd = self._fd, None
        self._close(fd)

    def remove(self) -> None:
        """Release the lock and remove its file."""
        if self._fd is not None:
            self._store.disk.remove(self._path)
        self.release()

    def _opened(self) -> int | None:
        disk = self._store.disk
        disk.make_directory(self._store.layout.locks_dir)
        fd = disk.open(self._path, WRITE)
        if fd is None:  # a file that is being created can only be appended to
            self._close(disk.open(self._path, CREATE))
            fd = disk.open(self._path, WRITE)
        return fd

    def _close(self, fd: int | None) -> None:
        if fd is not None:
            self._store.disk.close(fd)


def has_locks(store: Store, kind: str) -> bool:
    """Return True if a lock of a kind has a file, held or not; raises StorageError if the disk failed."""
    names = store.disk.names(store.layout.locks_dir)
    return any(name.startswith(f"{kind}-") for name in names)


def _read_note(store: Store, path: str) -> str:
    data = read_file(store.disk, path, limit=_MAXIMUM_NOTE) or b""
    return data.decode("utf-8", "replace")
