"""Waiting for a lock, and telling for whom: what only those load who wait long, or make others wait.

Rule: what is told of a holder decides nothing.
"""

from __future__ import annotations

from time import monotonic, sleep

from trace_store import errors, lock_owner
from trace_store.file_systems import kind_of
from trace_store.maintenance import lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.contracts import Patience
    from trace_store.files import Disk
    from trace_store.store.handle import Store

LONGEST_PAUSE_SECONDS = 0.02


def note_holder(store: Store, path: str, command: str) -> None:
    """Leave word beside a lock of who has it."""
    lock_owner.note_holder(store.disk, path, command, store.layout.tmp_dir)


def forget_holder(store: Store, path: str) -> None:
    """Take the word away, before the lock is released."""
    lock_owner.forget_holder(store.disk, path)


def tell_holder(store: Store, path: str, patience: Patience) -> None:
    """Tell somebody who waits for a lock who has it."""
    patience.tell(lock_owner.holder_of(store.disk, path))


def locked_error(store: Store, path: str) -> errors.LockedError:
    """Return the error of who does not wait any longer."""
    holder = lock_owner.holder_of(store.disk, path)
    message = f"{holder} is sealing, packing or collecting"
    where = kind_of(path)
    if not where.locks:
        message += f"; mind that it lies on {where.name}: {where.note}"
    return errors.LockedError(message, path=path, holder=holder)


def lock_patiently(disk: Disk, fd: int, path: str, patience: Patience) -> None:
    """Take the exclusive lock of an open file, and tell once for whom it is waited when that takes long."""
    begun, pause, told = monotonic(), 0.0001, False
    while not disk.lock(fd, blocking=False):
        sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
        if not told and monotonic() - begun >= lock.PATIENCE_SECONDS:
            told = True
            patience.tell(lock_owner.holder_of(disk, path))
