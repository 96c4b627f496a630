"""When a process that goes on writing seals: at most every half minute, and when the journal has grown large.

Rule: asking costs the same at any length of history; it looks at sizes that are known already.
"""

from __future__ import annotations

from trace_store.maintenance.sealing import SealReport, seal
from trace_store.store import Store

INTERVAL_MS = 30_000
MAXIMUM_JOURNAL_BYTES = 8 * 1024 * 1024


class SealSchedule:
    """Seals one store now and then; the first time an interval after it was made."""

    __slots__ = ("_last", "_store")

    def __init__(self, store: Store) -> None:
        self._store = store
        self._last = store.clock.now()

    def seal_if_due(self) -> SealReport | None:
        """Seal when it is time, and return what was done; None when it is not.

        Raises:
            As `seal`; the transactions before are durable all the same.
        """
        store = self._store
        if not store.local:
            return None
        now = store.clock.now()
        size = sum(file.end for file in store.journal.files if not file.closed)
        if now - self._last < INTERVAL_MS and size < MAXIMUM_JOURNAL_BYTES:
            return None
        self._last = now
        return seal(store)
