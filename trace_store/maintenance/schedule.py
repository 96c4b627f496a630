"""When a process that goes on writing seals: at most every half minute, and when the journal has grown large.

Rule: whoever asks has just been told that a commit is durable, and a seal that fails must not look as if that had
failed. So no error leaves here, nobody waits for another process, and the next who asks tries again. Asking costs the
same at any length of history; it looks at sizes that are known already.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.maintenance.seal import SealReport, seal
from trace_store.store.handle import Store
from trace_store.store.unsealed import INTERVAL_MS, MAXIMUM_JOURNAL_BYTES

RETRY_MS = 1_000
"""How long after a seal that failed for another reason than a lock the next one is tried at the earliest."""


class SealSchedule:
    """Seals one store now and then; the first time an interval after it was made."""

    __slots__ = ("_last", "_not_before", "_store")

    def __init__(self, store: Store) -> None:
        self._store = store
        self._last = store.clock.now()
        self._not_before = self._last

    def seal_if_due(self) -> SealReport | None:
        """Seal when it is time, and return what was done; None when it is not, or when it cannot be done now."""
        store = self._store
        if not store.local:
            return None
        now = store.clock.now()
        files = store.journal.files
        large = bool(files) and not files[-1].closed and files[-1].end >= MAXIMUM_JOURNAL_BYTES
        due = large or now - self._last >= INTERVAL_MS
        if not due or now < self._not_before:
            return None
        try:
            report = seal(store, wait=False)
        except errors.LockedError:
            return None
        except errors.TraceError:
            self._not_before = now + RETRY_MS
            return None
        self._last = now
        return report


def seal_if_due_by_age(store: Store) -> SealReport | None:
    """Seal when the oldest unsealed transaction is old, or the journal large; for processes that write once and end.

    Returns:
        What was done; None when it is not time, or when it cannot be done now.
    """
    try:
        if not store.unsealed().due(store.clock.now()):
            return None
        return seal(store, wait=False)
    except errors.TraceError:
        return None
