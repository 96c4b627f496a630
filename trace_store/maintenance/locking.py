"""The lock that seal and pack share, taken in two ways.

A pack may take minutes and takes it with filelock. A seal is short, and part of what an agent waits for: it takes the
same lock of the same file by a descriptor, as the journal takes its own, since importing filelock costs several times
as much as a seal. On POSIX both are `flock`, so they exclude each other; on Windows, where filelock locks another byte
than `Disk.lock` does, both go through filelock.

Rule: the lock makes waiting orderly and work not be done twice; the order of writes, not the lock, is what keeps a
repository sound.
"""

from __future__ import annotations

import sys
from time import sleep

from trace_store import errors
from trace_store.files import APPEND, CREATE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from trace_store.store import Store

WAIT_SECONDS = 60.0
POLL_SECONDS = 0.01
NAME = "maintenance"


class OperationLock:
    """Holds the lock for the length of a `with`, taken with filelock: for work that may take long."""

    __slots__ = ("_lock", "_path", "_store", "_wait")

    def __init__(self, store: Store, *, wait: bool = True) -> None:
        self._store = store
        self._wait = wait
        self._path = store.layout.lock_file(NAME)
        self._lock: Any = None

    def __enter__(self) -> None:
        """Take the lock.

        Raises:
            LockedError: another process holds it for longer than `WAIT_SECONDS`, or at all when not asked to wait.
        """
        from filelock import FileLock, Timeout

        self._store.disk.make_directory(self._store.layout.locks_dir)
        self._lock = FileLock(
            self._path,
            timeout=WAIT_SECONDS if self._wait else 0,
            poll_interval=POLL_SECONDS,
            fallback_to_soft=False,
            preserve_lock_file=True,
        )
        try:
            self._lock.acquire()
        except Timeout as error:
            raise _locked(self._path) from error

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class BriefLock:
    """Holds the same lock for the length of a `with`, taken by a descriptor: for what is done in a moment."""

    __slots__ = ("_fd", "_path", "_store", "_wait")

    def __init__(self, store: Store, *, wait: bool = True) -> None:
        self._store = store
        self._wait = wait
        self._path = store.layout.lock_file(NAME)
        self._fd: int | None = None

    def __enter__(self) -> None:
        """Take the lock; raises as `OperationLock`, and StorageError when the file system knows no locks."""
        disk = self._store.disk
        disk.make_directory(self._store.layout.locks_dir)
        for attempt in range(round(WAIT_SECONDS / POLL_SECONDS)):
            if attempt:
                sleep(POLL_SECONDS)
            fd = self._opened()
            try:
                # A file that was removed meanwhile guards nothing: the next comer locks another.
                if disk.lock(fd, blocking=False) and disk.identity(fd) == disk.identity(self._path):
                    self._fd, fd = fd, -1
                    return
            finally:
                if fd >= 0:
                    disk.close(fd)
            if not self._wait:
                break
        raise _locked(self._path)

    def __exit__(self, *_: object) -> None:
        fd, self._fd = self._fd, None
        if fd is not None:
            self._store.disk.unlock(fd)
            self._store.disk.close(fd)

    def _opened(self) -> int:
        for mode in (APPEND, CREATE, APPEND):
            fd = self._store.disk.open(self._path, mode)
            if fd is not None:
                return fd
        raise errors.StorageError("the lock file comes and goes", path=self._path)


def brief_lock(store: Store, *, wait: bool = True) -> BriefLock | OperationLock:
    """Return the lock for a seal, to be held with `with`."""
    return (
        OperationLock(store, wait=wait) if sys.platform == "win32" else BriefLock(store, wait=wait)
    )


def _locked(path: str) -> errors.LockedError:
    return errors.LockedError("another process is sealing or packing", path=path)
