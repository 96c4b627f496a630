"""The lock that seal and pack share, taken in two ways.

A pack may take minutes and takes it with filelock. A seal is short, and part of what an agent waits for: it takes the
same lock of the same file by a descriptor, as the journal takes its own, since importing filelock costs several times
as much as a seal. On POSIX both are `flock`, so they exclude each other; on Windows, where filelock locks another byte
than `Disk.lock` does, both go through filelock.

Who waits for longer than a second is told for whom (`contracts.Patience`).

Rule: a lock never expires, whoever sleeps with it; a dead process has none. It makes waiting orderly and work not be
done twice; the order of writes, not the lock, is what keeps a repository sound.
"""

from __future__ import annotations

import sys
from time import monotonic, sleep

from trace_store import errors, maintenance
from trace_store.files import APPEND, CREATE
from trace_store.os_errors import failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from trace_store.store.handle import Store

WAIT_SECONDS = 60.0
POLL_SECONDS = 0.01
PATIENCE_SECONDS = 1.0
"""How long somebody waits before it is told for whom."""
NAME = "maintenance"


class OperationLock:
    """Holds the lock for the length of a `with`, taken with filelock: for work that may take long."""

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
            LockedError: another process holds it for longer than `WAIT_SECONDS`, or at all when not asked to wait.
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
        waited = _Waiting(self._store, self._path)
        while True:
            try:
                self._lock.acquire(timeout=waited.until_next() if self._wait else 0)
                break
            except Timeout as error:
                if not self._wait or waited.is_over():
                    raise maintenance.lock_wait.locked_error(self._store, self._path) from error
            except OSError as error:
                raise failure(error, "lock", self._path) from error
        maintenance.lock_wait.note_holder(self._store, self._path, self._command)

    def __exit__(self, *_: object) -> None:
        maintenance.lock_wait.forget_holder(self._store, self._path)
        self._lock.release()


class _Waiting:
    """How long somebody has been waiting for a lock; tells once for whom."""

    __slots__ = ("_begun", "_path", "_store", "_told")

    def __init__(self, store: Store, path: str) -> None:
        self._store = store
        self._path = path
        self._begun = monotonic()
        self._told = False

    def is_over(self) -> bool:
        """Tell whether it has been long enough; the lock itself never expires."""
        waited = monotonic() - self._begun
        patience = self._store.journal.patience
        if patience is not None and not self._told and waited >= PATIENCE_SECONDS:
            self._told = True
            maintenance.lock_wait.tell_holder(self._store, self._path, patience)
        return waited >= WAIT_SECONDS

    def until_next(self) -> float:
        """Return for how many seconds to wait before asking `is_over` again."""
        return min(PATIENCE_SECONDS, max(0.0, self._begun + WAIT_SECONDS - monotonic()))


class BriefLock:
    """Holds the same lock for the length of a `with`, taken by a descriptor: for what is done in a moment."""

    __slots__ = ("_command", "_fd", "_path", "_store", "_wait")

    def __init__(self, store: Store, command: str = "", *, wait: bool = True) -> None:
        self._store = store
        self._command = command
        self._wait = wait
        self._path = store.layout.lock_file(NAME)
        self._fd: int | None = None

    def __enter__(self) -> None:
        """Take the lock; raises as `OperationLock`, and StorageError when the file system knows no locks."""
        disk = self._store.disk
        disk.make_directory(self._store.layout.locks_dir)
        waited = _Waiting(self._store, self._path)
        while True:
            fd = self._opened()
            try:
                # A file that was removed meanwhile guards nothing: the next comer locks another.
                if disk.lock(fd, blocking=False) and disk.identity(fd) == disk.identity(self._path):
                    self._fd, fd = fd, -1
                    if self._command:
                        maintenance.lock_wait.note_holder(self._store, self._path, self._command)
                    return
            finally:
                if fd >= 0:
                    disk.close(fd)
            if not self._wait or waited.is_over():
                raise maintenance.lock_wait.locked_error(self._store, self._path)
            sleep(POLL_SECONDS)

    def __exit__(self, *_: object) -> None:
        fd, self._fd = self._fd, None
        if fd is not None:
            if self._command:
                maintenance.lock_wait.forget_holder(self._store, self._path)
            self._store.disk.unlock(fd)
            self._store.disk.close(fd)

    def _opened(self) -> int:
        for mode in (APPEND, CREATE, APPEND):
            fd = self._store.disk.open(self._path, mode)
            if fd is not None:
                return fd
        raise errors.StorageError("the lock file comes and goes", path=self._path)


def brief_lock(store: Store, command: str = "", *, wait: bool = True) -> BriefLock | OperationLock:
    """Return the lock, to be held with `with`; who holds it for long says with which command, for those who wait."""
    if sys.platform == "win32":
        return OperationLock(store, command or "trace seal", wait=wait)
    return BriefLock(store, command, wait=wait)
