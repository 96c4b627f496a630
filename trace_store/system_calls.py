"""What operating systems do differently: locks, reading and writing at a place, and what reaches stable storage.

Rule: `files` alone calls this. Each function raises OSError, as the system has it.
"""

from __future__ import annotations

import errno
import os
import sys
from time import sleep

COMMON_FLAGS = sum(getattr(os, flag, 0) for flag in ("O_NOFOLLOW", "O_CLOEXEC", "O_BINARY"))
FAILED_WRITES_SHOW = sys.platform == "linux"
"""Whether a write that failed behind a file's back shows in the next sync by each descriptor that was open then.

Linux keeps that with each descriptor (since 4.13); elsewhere the first who syncs may be the only one to learn of it.
"""
PAUSES = (0.00005, 0.0001, 0.0002, 0.0004, 0.0008)
"""In seconds: how long who waits for a lock sleeps between looks, before the kernel is asked to wake it."""

if sys.platform == "win32":
    import msvcrt

    _LOCK_OFFSET = 1 << 40  # locks are mandatory there, so it lies beyond any content

    def lock(fd: int, blocking: bool) -> bool:
        """Take the exclusive lock of an open file; False when it is taken and `blocking` is not asked."""
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
        """Write at an offset, and return how many bytes were taken."""
        return os.write(fd, data) if os.lseek(fd, offset, os.SEEK_SET) >= 0 else 0

    def sync_directory(path: str) -> None:
        """Do nothing: Windows keeps names in its own log, and opens no directory."""

    def protect(fd: int) -> None:
        """Do nothing: what is open for writing is not changed there."""

    sync = os.fsync

else:
    import fcntl

    pread, pwrite = os.pread, os.pwrite
    _AT_ONCE = fcntl.LOCK_EX | fcntl.LOCK_NB

    def lock(fd: int, blocking: bool) -> bool:
        """Take the exclusive lock of an open file; False when it is taken and `blocking` is not asked.

        A journal's lock is held for a tenth of a millisecond, so who waits looks by itself for a while, and then
        waits in the kernel, which serves in turns, so nobody waits for long where many write.
        """
        try:
            fcntl.flock(fd, _AT_ONCE)  # mostly it is free
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

    def protect(fd: int) -> None:
        """Take the right to write away from an open file, for all to see."""
        os.fchmod(fd, 0o444)

    def sync_directory(path: str) -> None:
        """Return when the names in a directory are on stable storage."""
        fd = os.open(path, os.O_RDONLY | COMMON_FLAGS)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    if sys.platform == "darwin":

        def sync(fd: int) -> None:
            """Return when the content of an open file is on stable storage."""
            # fsync only reaches the drive's own cache there; network file systems know nothing stronger.
            try:
                fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
            except OSError as error:
                if error.errno not in (errno.ENOTSUP, errno.EINVAL):
                    raise
                os.fsync(fd)

    else:
        sync = os.fdatasync
