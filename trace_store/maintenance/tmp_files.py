"""Removal of temporary files left by interrupted operations.

Invariant: only files older than a day are removed; younger ones may be in use.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.store.handle import Store

AGE_MILLISECONDS = 24 * 60 * 60 * 1000


def sweep(store: Store) -> int:
    """Remove old temporary files; return their number."""
    removed = 0
    limit = store.clock.now() - AGE_MILLISECONDS
    for name in store.disk.names(store.layout.tmp_dir):
        path = os.path.join(store.layout.tmp_dir, name)
        status = store.disk.stat(path)
        if status is not None and status.st_mtime_ns // 1_000_000 < limit:
            removed += store.disk.remove(path)
    return removed
