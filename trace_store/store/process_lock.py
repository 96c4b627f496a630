"""Locks that show whether a process still works on an agent or a run.

Rule: the system releases the lock when the process ends, for any reason. The file may hold a heartbeat: a time and the
name of the agent or run. The file of a process that died is renamed, so that the others are found without reading it.
"""

from __future__ import annotations

import os

from trace_store.base.oid import digest
from trace_store.disk.files import CREATE, WRITE, read_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from trace_store.store.store import Store

AGENT_LOCK, RUN_LOCK = "agent", "run"
"""Kinds of locks: on an agent's branch, and on a live run."""
SILENT_SECONDS = 60.0
"""A process without a heartbeat for so long is taken for gone."""
_GONE = "gone-"
"""Prefix of the file of a process that died."""
_DIGITS = 32
_TIME_DIGITS = 20
_MAXIMUM_BYTES = 4096


class ProcessLock:
    """The lock of one thing, such as an agent's branch, in one repository."""

    __slots__ = ("_fd", "_gone_path", "_name", "_path", "_store")

    def __init__(self, store: Store, kind: str, name: str) -> None:
        """Name a lock; the store is on disk.

        Args:
            store: the repository.
            kind: what is locked, such as AGENT_LOCK.
            name: any text that identifies it.
        """
        self._store = store
        self._name = name
        file = f"{kind}-{digest(name.encode()).hex()[:_DIGITS]}"
        self._path = store.layout.lock_file(file)
        self._gone_path = store.layout.lock_file(_GONE + file)
        self._fd: int | None = None

    def take(self) -> bool:
        """Take the lock and return True, or return False if another process holds it.

        Raises:
            StorageError: the disk failed.
        """
        disk = self._store.disk
        while self._fd is None:
            fd = self._opened()
            if fd is None or not disk.lock(fd, blocking=False):
                self._close(fd)
                return False
            if disk.identity(self._path) == disk.identity(fd):
                self._fd = fd
            else:
                self._close(fd)  # `put_aside` renamed it meanwhile
        return True

    def beat(self) -> None:
        """Write a heartbeat; the lock is taken.

        Raises:
            StorageError: the disk failed.
        """
        if self._fd is not None:
            text = f"{self._store.clock.now():0{_TIME_DIGITS}} {self._name}\n"
            self._store.disk.write(self._fd, text.encode(), 0)

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
    def last_beat(self) -> int:
        """The last heartbeat, in milliseconds since the epoch; 0 if there is none; raises as `take`."""
        return _read_beat(self._store, self._path)[0] or _read_beat(self._store, self._gone_path)[0]

    def release(self) -> None:
        """Release the lock; the file stays."""
        fd, self._fd = self._fd, None
        self._close(fd)

    def remove(self) -> None:
        """Release the lock and remove its file."""
        if self._fd is not None:
            self._store.disk.remove(self._path)
        self.release()

    def forget(self) -> None:
        """Remove the file of a process that died."""
        self._store.disk.remove(self._gone_path)

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


def names_at_work(store: Store, kind: str) -> list[str]:
    """Return the sorted names of the locks with a recent heartbeat.

    Raises:
        StorageError: the disk failed.
    """
    folder, after = store.layout.locks_dir, store.clock.now() - 1000 * SILENT_SECONDS
    files = [name for name in store.disk.names(folder) if name.startswith(f"{kind}-")]
    found = [_read_beat(store, os.path.join(folder, name)) for name in files]
    return sorted(name for time, name in found if time > after)


def put_aside(store: Store, kind: str, is_needed: Callable[[str], bool]) -> None:
    """Rename the files of processes that died, or remove those whose name is not needed any more.

    A file without a heartbeat belongs to a process that is starting. A process that only sleeps still has its lock.

    Raises:
        StorageError: the disk failed.
    """
    disk, folder = store.disk, store.layout.locks_dir
    after = store.clock.now() - 1000 * SILENT_SECONDS
    for file in [each for each in disk.names(folder) if each.startswith(f"{kind}-")]:
        path = os.path.join(folder, file)
        time, name = _read_beat(store, path)
        fd = disk.open(path, WRITE) if 0 < time <= after else None
        if fd is None:
            continue
        try:
            if disk.lock(fd, blocking=False) and disk.identity(path) == disk.identity(fd):
                if is_needed(name):
                    disk.rename(path, os.path.join(folder, _GONE + file))
                else:
                    disk.remove(path)
        finally:
            disk.close(fd)


def _read_beat(store: Store, path: str) -> tuple[int, str]:
    """Return the time and the name in a file; (0, "") if there is no heartbeat."""
    data = read_file(store.disk, path, limit=_MAXIMUM_BYTES) or b""
    time, _, name = data.decode("utf-8", "replace").partition(" ")
    return (int(time), name.strip()) if time.isdigit() and len(time) == _TIME_DIGITS else (0, "")
