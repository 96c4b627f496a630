"""Log messages of the library: lock waits and deferred seals.

Invariant: escapes terminal control characters. A program that never imported `logging` has no listeners, so waiting
does not import it.
"""

from __future__ import annotations

import sys

from trace_store import maintenance

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.files import Disk

LOGGER = "trace_store"


class LoggingLockWaiter:
    """Logs lock waits of more than a second, if `INFO` is enabled."""

    __slots__ = ()

    def lock(self, disk: Disk, fd: int, path: str) -> None:
        """Take the exclusive lock of an open file, without a timeout."""
        if disk.lock(fd, blocking=False):
            return
        if _is_enabled():
            maintenance.lock_wait.lock_patiently(disk, fd, path, self)
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


def _escape(value: object) -> str:
    """Escape text from repository files, which may reach a terminal."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in str(value))


def _is_enabled() -> bool:
    logging = sys.modules.get("logging")
    return logging is not None and logging.getLogger(LOGGER).isEnabledFor(logging.INFO)
