"""Lock holders: notes next to a lock, and messages for waiting processes.

Loaded only by long operations and long waits. Notes about holders are informational.
"""

from __future__ import annotations

import sys
from time import monotonic, sleep

from trace_store import errors
from trace_store.disk.file_systems import kind_of
from trace_store.maintenance import lock, lock_owner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.contracts.protocols import LockWaiter
    from trace_store.disk.files import Disk
    from trace_store.store.store import Store


LONGEST_PAUSE_SECONDS = 0.02


def write_owner(store: Store, path: str, command: str) -> None:
    """Write a note about the holder of a lock next to it."""
    lock_owner.write_owner(store.disk, path, command, store.layout.tmp_dir)


def remove_owner(store: Store, path: str) -> None:
    """Remove the note before the lock is released."""
    lock_owner.remove_owner(store.disk, path)


def tell_holder(store: Store, path: str, waiter: LockWaiter) -> None:
    """Report the holder of a lock to a waiting caller."""
    waiter.tell(lock_owner.owner_of(store.disk, path))


def locked_error(store: Store, path: str) -> errors.LockedError:
    """Return the error for a wait that timed out."""
    holder = lock_owner.owner_of(store.disk, path)
    message = f"{holder} is sealing, packing or collecting"
    where = kind_of(path)
    if not where.locks:
        message += f"; note that it is on {where.name}: {where.note}"
    return errors.LockedError(message, path=path, holder=holder)


def lock_patiently(disk: Disk, fd: int, path: str, waiter: LockWaiter) -> None:
    """Take the exclusive lock of an open file.

    Report its holder once if that takes long.
    """
    started, pause, is_reported = monotonic(), 0.0001, False
    while not disk.lock(fd, blocking=False):
        sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
        if not is_reported and monotonic() - started >= lock.PATIENCE_SECONDS:
            is_reported = True
            waiter.tell(lock_owner.owner_of(disk, path))


LOGGER = "trace_store"


class LoggingLockWaiter:
    """Logs lock waits of more than a second, if `INFO` is enabled."""

    __slots__ = ()

    def lock(self, disk: Disk, fd: int, path: str) -> None:
        """Take the exclusive lock of an open file, without a timeout."""
        if disk.lock(fd, blocking=False):
            return
        if _is_enabled():
            lock_patiently(disk, fd, path, self)
        else:
            disk.lock(fd)  # the system wakes waiting processes in order; polling would not

    def tell(self, holder: object) -> None:
        """Log the holder of the lock."""
        if _is_enabled():
            sys.modules["logging"].getLogger(LOGGER).info("waiting for %s", _escape(holder))


def warn_of_unsealed(error: Exception) -> None:
    """Log that a seal was deferred.

    The data is durable, and the next seal includes it.
    """
    import logging

    logging.getLogger(LOGGER).warning("not sealed: %s", _escape(error))


def log_restored(count: int) -> None:
    """Log that objects came back which git had removed."""
    import logging

    logging.getLogger(LOGGER).warning("restored %d objects that git had removed", count)


def _escape(value: object) -> str:
    """Escape text from repository files, which may reach a terminal."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in str(value))


def _is_enabled() -> bool:
    logging = sys.modules.get("logging")
    return logging is not None and logging.getLogger(LOGGER).isEnabledFor(logging.INFO)
