"""Schedule of automatic seals: every half minute, or when the journal is large, whichever process does it.

Invariant: the caller's commit is already durable, so a seal never waits, raises no error if it fails, and is retried
later. The check takes constant time.
"""

from __future__ import annotations

from trace_store import errors, maintenance
from trace_store.store.store import Store
from trace_store.store.unsealed import INTERVAL_MS, MAXIMUM_JOURNAL_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.maintenance.seal import SealReport

PIECE_BYTES = 32 * 1024 * 1024
"""Bytes of the journal that a long write fills before it seals. As large as a seal consolidates, so that no pack is
written twice; the view of such a journal takes 50 MB."""
RETRY_MS = 1_000
"""Minimum time before a retry, after an error or while another process seals."""


class SealSchedule:
    """Seals one store periodically, first after one interval."""

    __slots__ = ("_in_pieces", "_last", "_maximum", "_not_before", "_store")

    def __init__(self, store: Store, *, in_pieces: bool = False) -> None:
        """Set the store; `in_pieces` is for a long write, as an import: it seals each PIECE_BYTES of the journal."""
        self._store = store
        self._in_pieces = in_pieces
        self._maximum = PIECE_BYTES if in_pieces else MAXIMUM_JOURNAL_BYTES
        self._last = store.clock.now()
        self._not_before = self._last

    def seal_if_due(self) -> SealReport | None:
        """Seal if due and return the report; None if not due or not possible now."""
        store = self._store
        if not store.local:
            return None
        now = store.clock.now()
        if now < self._not_before:
            return None
        files, frames = store.journal.files, store.journal.fold.frames
        large = bool(files) and not files[-1].closed and files[-1].end >= self._maximum
        # Another process may have sealed since, so the oldest unsealed transaction counts, too.
        old = bool(frames) and now - max(self._last, frames[0].time) >= INTERVAL_MS
        if not large and not old:
            return None
        try:
            report = maintenance.seal.seal(store, wait=False)
        except errors.TraceError:
            self._not_before = now + RETRY_MS
            return None
        self._last = now
        if self._in_pieces:  # indexes and frames of earlier pieces, read to find duplicates
            with store.mutex:
                store.objects.packs.close()
        return report


def seal_if_due_by_age(store: Store) -> SealReport | None:
    """Seal if the oldest unsealed transaction is old or the journal large.

    For short-lived processes.

    Returns:
        The report; None if not due or not possible now.
    """
    try:
        if not store.unsealed().due(store.clock.now()):
            return None
        return maintenance.seal.seal(store, wait=False)
    except errors.TraceError:
        return None
