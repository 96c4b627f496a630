"""Presence: whether the process of a run is still at work.

The process holds a lock as long as it lives, and writes a heartbeat into the lock's file. A run is interrupted if the
lock is free or the last heartbeat is too old. A new heartbeat ends that, for example after a laptop slept. A clone has
no such file, so it knows only the last commit.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.base.frozen import value
from trace_store.store.process_lock import RUN_LOCK, SILENT_SECONDS, ProcessLock
from trace_store.store.store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.base.ident import Time


HEARTBEAT_SECONDS = 15.0


@value
class Presence:
    """What a working copy knows of the process of a run.

    Attributes:
        is_here: whether a process of this working copy runs or ran it.
        is_alive: whether that process holds the lock.
        beat: its last heartbeat, in milliseconds since the epoch; 0 if unknown.
    """

    is_here: bool = False
    is_alive: bool = False
    beat: Time = 0

    def is_at_work(self, now: int) -> bool:
        """Return True if the process lives and its last heartbeat is recent."""
        return self.is_alive and now - self.beat < 1000 * SILENT_SECONDS


class Heart:
    """Marks a run as running in this process, until it stops or the process ends."""

    def __init__(self, store: Store, id: str) -> None:
        self._store = store
        self._id = id
        self._lock = ProcessLock(store, RUN_LOCK, id) if store.local else None

    def start(self) -> None:
        """Take the lock.

        Raises:
            LockedError: another process has it.
            StorageError: the disk failed.
        """
        if self._lock is not None and not self._lock.take():
            raise errors.LockedError(
                f"the run {self._id} belongs to another process", name=self._id
            )
        self.beat()

    def beat(self) -> None:
        """Write a heartbeat; raises StorageError if the disk failed."""
        if self._lock is not None:
            self._lock.beat()

    def stop(self) -> None:
        """Release the lock and remove its file, since the run has ended."""
        if self._lock is not None:
            self._lock.remove()


def presence_of(store: Store, id: str) -> Presence:
    """Return what is known here of the process of a run."""
    if not store.local:
        return Presence(is_here=True, is_alive=True, beat=store.clock.now())
    lock = ProcessLock(store, RUN_LOCK, id)
    beat = lock.last_beat
    return Presence(is_here=True, is_alive=lock.is_held, beat=beat) if beat else Presence()
