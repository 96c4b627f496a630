"""What a library tells programs that have no terminal, through `logging`: for whom it waits, and what it left undone.

Rule: decides nothing, and logs nothing that a terminal would obey. A program that never imported `logging` listens to
nobody, so waiting does not load it.
"""

from __future__ import annotations

import sys

from trace_store import maintenance

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.files import Disk

LOGGER = "trace_store"


class LoggedPatience:
    """Logs for whom a program waits, once that takes longer than a second, where somebody listens to `INFO`."""

    __slots__ = ()

    def lock(self, disk: Disk, fd: int, path: str) -> None:
        """Take the exclusive lock of an open file, however long that takes."""
        if disk.lock(fd, blocking=False):
            return
        if _is_heard():
            maintenance.lock_wait.lock_patiently(disk, fd, path, self)
        else:
            disk.lock(
                fd
            )  # the system wakes who waits in turn, which looking again and again does not

    def tell(self, holder: object) -> None:
        """Log who holds the lock, and for how long it has had it."""
        if _is_heard():
            sys.modules["logging"].getLogger(LOGGER).info("waiting for %s", _plain(holder))


def warn_of_unsealed(error: Exception) -> None:
    """Log that what was committed is not sealed yet: it is durable, and whoever seals next does that."""
    import logging

    logging.getLogger(LOGGER).warning("not sealed: %s", _plain(error))


def _plain(told: object) -> str:
    """Return what a log may hold, which may end on a terminal: who holds a lock is told by a file of the repository."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in str(told))


def tell_moved(old: tuple[bytes, int], new: tuple[bytes, int]) -> None:
    """Log that a message was named as it was before a rebase, and which address it has."""
    if _is_heard():
        names = [f"{commit.hex()}.{number}" for commit, number in (old, new)]
        sys.modules["logging"].getLogger(LOGGER).info("%s is %s since a rebase", *names)


def _is_heard() -> bool:
    logging = sys.modules.get("logging")
    return logging is not None and logging.getLogger(LOGGER).isEnabledFor(logging.INFO)
