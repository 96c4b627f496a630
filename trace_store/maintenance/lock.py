"""Maintenance lock shared by seal, repack and gc, with two implementations.

Long operations take it with filelock. A seal is short and delays an agent, so it locks the same file by descriptor,
as the journal does: importing filelock takes several times as long as a seal. On POSIX both are `flock` and exclude
each other; on Windows filelock locks a different byte than `Disk.lock`, so both use filelock.

After a second of waiting, the holder of the lock is reported to the caller (`contracts.LockWaiter`).

Invariant: a lock never expires while its process lives, and dies with it. It orders waiting and avoids duplicate
work; soundness comes from the order of writes, not from the lock.
"""

from __future__ import annotations

import sys
from time import monotonic, sleep

from trace_store import errors, maintenance
from trace_store.disk.files import APPEND, CREATE, failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from trace_store.store.store import Store

WAIT_SECONDS = 60.0
POLL_SECONDS = 0.01
PATIENCE_SECONDS = 1.0
"""How long to wait before reporting the holder."""
NAME = "maintenance"


class OperationLock:
    """The lock for long operations, taken with filelock."""

    __slots__ = ("_command", "_lock", "_path", "_store", "_wait")

    def __init__(self, store: Store, command: str = "trace seal", *, wait: bool = True) -> None:
        self._store = store
        self._command = command
        self._wait = wait
        self._path = store.layout.lock_file(NAME)
        self._lock: Any = None

    def __enter__(self) -> None:
        """Take the lock.

        Raises:
            LockedError: another process holds it for `WAIT_SECONDS`, or at all without `wait`.
            StorageError: the disk refuses.
        """
        from filelock import FileLock, Timeout

        self._store.disk.make_directory(self._store.layout.locks_dir)
        self._lock = FileLock(
            self._path,
            poll_interval=POLL_SECONDS,
            fallback_to_soft=False,
            preserve_lock_file=True,
        )
        wait = _LockWait(self._store, self._path)
        while True:
            try:
                self._lock.acquire(timeout=wait.until_next() if self._wait else 0)
                break
            except Timeout as error:
                if not self._wait or wait.is_over():
                    raise maintenance.lock_wait.locked_error(self._store, self._path) from error
            except OSError as error:
                raise failure(error, "lock", self._path) from error
        maintenance.lock_wait.write_owner(self._store, self._path, self._command)

    def __exit__(self, *_: object) -> None:
        maintenance.lock_wait.remove_owner(self._store, self._path)
        self._lock.release()


class _LockWait:
    """A wait for the lock; reports the holder once."""

    __slots__ = ("_path", "_reported", "_started", "_store")

    def __init__(self, store: Store, path: str) -> None:
        self._store = store
        self._path = path
        self._started = monotonic()
        self._reported = False

    def is_over(self) -> bool:
        """Return True if the wait has timed out; report the holder after a second."""
        waited = monotonic() - self._started
        waiter = self._store.journal.lock_waiter
        if waiter is not None and not self._reported and waited >= PATIENCE_SECONDS:
            self._reported = True
            maintenance.lock_wait.tell_holder(self._store, self._path, waiter)
        return waited >= WAIT_SECONDS

    def until_next(self) -> float:
        """Return the seconds to wait before the next call of `is_over`."""
        return min(PATIENCE_SECONDS, max(0.0, self._started + WAIT_SECONDS - monotonic()))


class BriefLock:
    """The same lock for short operations, taken by descriptor."""

    __slots__ = ("_command", "_fd", "_path", "_store", "_wait")

    def __init__(self, store: Store, command: str = "", *, wait: bool = True) -> None:
        self._store = store
        self._command = command
        self._wait = wait
        self._path = store.layout.lock_file(NAME)
        self._fd: int | None = None

    def __enter__(self) -> None:
        """Take the lock.

        Errors as `OperationLock`, and StorageError if the file system has no locks.
        """
        disk = self._store.disk
        disk.make_directory(self._store.layout.locks_dir)
        wait = _LockWait(self._store, self._path)
        while True:
            fd = self._open_file()
            try:
                # A deleted lock file protects nothing: the next process creates another.
                if disk.lock(fd, blocking=False) and disk.identity(fd) == disk.identity(self._path):
                    self._fd, fd = fd, -1
                    if self._command:
                        maintenance.lock_wait.write_owner(self._store, self._path, self._command)
                    return
            finally:
                if fd >= 0:
                    disk.close(fd)
            if not self._wait or wait.is_over():
                raise maintenance.lock_wait.locked_error(self._store, self._path)
            sleep(POLL_SECONDS)

    def __exit__(self, *_: object) -> None:
        fd, self._fd = self._fd, None
        if fd is not None:
            if self._command:
                maintenance.lock_wait.remove_owner(self._store, self._path)
            self._store.disk.unlock(fd)
            self._store.disk.close(fd)

    def _open_file(self) -> int:
        for mode in (APPEND, CREATE, APPEND):
            fd = self._store.disk.open(self._path, mode)
            if fd is not None:
                return fd
        raise errors.StorageError("the lock file keeps disappearing", path=self._path)


def operation_lock(store: Store, command: str = "trace seal") -> BriefLock | OperationLock:
    """Return the lock for a long operation; filelock needs a file that the system knows."""
    return OperationLock(store, command) if store.local else BriefLock(store, command)


def brief_lock(store: Store, command: str = "", *, wait: bool = True) -> BriefLock | OperationLock:
    """Return the lock; a long operation names its command for those who wait."""
    if sys.platform == "win32" and store.local:
        return OperationLock(store, command or "trace seal", wait=wait)
    return BriefLock(store, command, wait=wait)
