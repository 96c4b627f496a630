"""System calls that differ between systems: locks, positioned I/O, syncs.

Rule: only `files` calls these functions. They raise OSError.
"""

from __future__ import annotations

import errno
import os
import sys
from time import sleep

COMMON_FLAGS = sum(getattr(os, flag, 0) for flag in ("O_NOFOLLOW", "O_CLOEXEC", "O_BINARY"))
SYNC_REPORTS_FAILED_WRITES = sys.platform == "linux"
"""Whether a failed background write is reported to the next sync of each descriptor open at the time.

Linux does so since 4.13; elsewhere only the first sync may report it.
"""
PAUSES = (0.00005, 0.0001, 0.0002, 0.0004, 0.0008)
"""Seconds to sleep between attempts at a lock, before waiting in the kernel."""

if sys.platform == "win32":
    import msvcrt

    _LOCK_OFFSET = 1 << 40  # locks are mandatory on Windows, so lock a byte beyond any content

    def lock(fd: int, blocking: bool) -> bool:
        """Lock an open file exclusively; False if not `blocking` and already locked."""
        os.lseek(fd, _LOCK_OFFSET, os.SEEK_SET)
        while True:
            try:
                msvcrt.locking(fd, msvcrt.LK_NBLCK if not blocking else msvcrt.LK_LOCK, 1)
            except OSError as error:
                if error.errno not in (errno.EACCES, errno.EDEADLK):
                    raise
                if not blocking:
                    return False
            else:
                return True

    def unlock(fd: int) -> None:
        """Release the lock of an open file."""
        os.lseek(fd, _LOCK_OFFSET, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)

    def pread(fd: int, size: int, offset: int, /) -> bytes:
        """Return up to `size` bytes from an offset."""
        return os.read(fd, size) if os.lseek(fd, offset, os.SEEK_SET) >= 0 else b""

    def pwrite(fd: int, data: bytes, offset: int, /) -> int:
        """Write at an offset; return the number of bytes written."""
        return os.write(fd, data) if os.lseek(fd, offset, os.SEEK_SET) >= 0 else 0

    def sync_directory(path: str) -> None:
        """Do nothing: Windows logs names itself, and cannot open directories."""

    def protect(fd: int, mode: int) -> None:
        """Do nothing: a file open for writing cannot be made read-only on Windows."""

    sync = os.fsync

else:
    import fcntl

    pread, pwrite = os.pread, os.pwrite
    _AT_ONCE = fcntl.LOCK_EX | fcntl.LOCK_NB

    def lock(fd: int, blocking: bool) -> bool:
        """Lock an open file exclusively; False if not `blocking` and already locked.

        A journal's lock is held for about 0.1 ms, so a waiter polls for a while first, and then waits in the kernel,
        which is fair to all waiters.
        """
        try:
            fcntl.flock(fd, _AT_ONCE)  # usually free
            return True
        except BlockingIOError:
            if not blocking:
                return False
        for pause in PAUSES:
            sleep(pause)
            try:
                fcntl.flock(fd, _AT_ONCE)
                return True
            except BlockingIOError:
                pass
        fcntl.flock(fd, fcntl.LOCK_EX)
        return True

    def unlock(fd: int) -> None:
        """Release the lock of an open file."""
        fcntl.flock(fd, fcntl.LOCK_UN)

    protect = os.fchmod

    def sync_directory(path: str) -> None:
        """Sync the names in a directory to stable storage."""
        fd = os.open(path, os.O_RDONLY | COMMON_FLAGS)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    if sys.platform == "darwin":

        def sync(fd: int) -> None:
            """Sync the content of an open file to stable storage."""
            # fsync only reaches the drive's cache on macOS; network file systems support nothing stronger.
            try:
                fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
            except OSError as error:
                if error.errno not in (errno.ENOTSUP, errno.EINVAL):
                    raise
                os.fsync(fd)

    else:
        sync = os.fdatasync


def processor_count() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
