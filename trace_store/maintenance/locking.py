"""The lock of long operations.

Rule: the lock makes waiting orderly and work not be done twice; the order of writes, not the lock, is what keeps a
repository sound.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from trace_store.errors import LockedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trace_store.store import Store

WAIT_SECONDS = 60.0


@contextmanager
def operation_lock(store: Store, *, wait: bool = True) -> Iterator[None]:
    """Hold the lock that seal and pack share.

    Raises:
        LockedError: another process holds it for longer than `WAIT_SECONDS`, or at all when not asked to wait.
    """
    # Its import takes several times as long as an append; only who seals pays for it.
    from filelock import FileLock, Timeout

    store.disk.make_directory(store.layout.locks_dir)
    path = store.layout.lock_file("maintenance")
    lock = FileLock(
        path,
        timeout=WAIT_SECONDS if wait else 0,
        poll_interval=0.01,
        fallback_to_soft=False,
        preserve_lock_file=True,
    )
    try:
        lock.acquire()
    except Timeout as error:
        raise LockedError("another process is sealing or packing", path=path) from error
    try:
        yield
    finally:
        lock.release()
