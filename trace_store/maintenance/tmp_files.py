"""Removing what interrupted operations left in `tmp/`.

Rule: only files of our own making that are a day old go, since a younger one may be in use.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.store.handle import Store

AGE_MILLISECONDS = 24 * 60 * 60 * 1000


def sweep(store: Store) -> int:
    """Remove old temporary files and return how many there were."""
    removed = 0
    limit = store.clock.now() - AGE_MILLISECONDS
    for name in store.disk.names(store.layout.tmp_dir):
        path = os.path.join(store.layout.tmp_dir, name)
        found = store.disk.stat(path)
        if found is not None and found.st_mtime_ns // 1_000_000 < limit:
            removed += store.disk.remove(path)
    return removed
