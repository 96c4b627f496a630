"""Expiry of reflog entries and of the quarantine.

Invariant: reflog entries expire by their own time. That alone loses no content: undo, reset, rebase and deletion
leave refs under `refs/trash/`. Quarantine folders are first renamed, so that no reader finds them, then deleted.
"""

from __future__ import annotations

import os

from trace_store.files import APPEND, files_below, replace_file, write_all
from trace_store.refs.reflog import encode_entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from trace_store.files import Disk
    from trace_store.maintenance.reachability import Roots
    from trace_store.odb.quarantine import QuarantineBatch
    from trace_store.oid import ObjectId
    from trace_store.refs.reflog import ReflogEntry
    from trace_store.store.handle import Store

_EXPIRED = "gone-"


def is_expired(
    entry: ReflogEntry, reached: Container[ObjectId], *, since: int, unreachable_since: int
) -> bool:
    """Return True if an entry has expired.

    Entries of unreachable commits expire earlier.
    """
    if entry.time < since:
        return True
    named = [oid for oid in (entry.old, entry.new) if oid is not None]
    return entry.time < unreachable_since and not all(oid in reached for oid in named)


def expire_logs(store: Store, roots: Roots, expired: Callable[[ReflogEntry], bool]) -> int:
    """Remove expired entries from the reflogs; return their number."""
    removed = 0
    for name, entries in roots.logs.items():
        removed_entries = [entry for entry in entries if expired(entry)]
        if removed_entries:
            removed += len(removed_entries)
            _rewrite(
                store, store.layout.log_file(name), frozenset(map(encode_entry, removed_entries))
            )
    return removed


def _rewrite(store: Store, path: str, removed: frozenset[bytes]) -> None:
    """Rewrite a reflog without some lines, keeping lines appended meanwhile."""
    disk = store.disk
    fd = disk.open(path)
    if fd is None:
        return
    try:
        size = disk.size(fd)
        lines = disk.read_at(fd, 0, size).splitlines(keepends=True)
        kept = b"".join(line for line in lines if line not in removed)
        replace_file(disk, path, kept, durable=False, scratch=store.layout.tmp_dir)
        added = disk.read_at(fd, size, disk.size(fd) - size)
        new = disk.open(path, APPEND) if added else None
        if new is not None:
            try:
                write_all(disk, new, added)
            finally:
                disk.close(new)
    finally:
        disk.close(fd)


def empty_quarantine(store: Store, before: int) -> tuple[int, int]:
    """Delete quarantine folders from before a time in milliseconds.

    Return number and size of the files.
    """
    quarantine, disk = store.objects.quarantine, store.disk
    folder = store.layout.quarantine_dir
    if any(taking.time <= before for taking in quarantine.batches()):

        def hide() -> None:
            for taking in quarantine.batches():
                if taking.time <= before:
                    disk.rename(taking.layout.root, os.path.join(folder, _EXPIRED + taking.name))

        store.alone(hide)  # a writer that relied on quarantined objects has to look again
        quarantine.batches()
    files = size = 0
    for name in disk.scan(folder)[0]:
        if name.startswith(_EXPIRED):
            count, freed = _remove_all(disk, os.path.join(folder, name))
            files, size = files + count, size + freed
    return files, size


def size_of(disk: Disk, taking: QuarantineBatch) -> int:
    """Return the size of a quarantine folder in bytes."""
    stats = map(disk.stat, files_below(disk, taking.layout.root))
    return sum(each.st_size for each in stats if each is not None)


def _remove_all(disk: Disk, path: str) -> tuple[int, int]:
    """Delete a folder tree; return number and size of its files."""
    folders, names = disk.scan(path)
    files = size = 0
    for name in folders:
        count, freed = _remove_all(disk, os.path.join(path, name))
        files, size = files + count, size + freed
    for name in names:
        status = disk.stat(os.path.join(path, name))
        size += 0 if status is None else status.st_size
        files += disk.remove(os.path.join(path, name))
    disk.remove_directory(path)
    return files, size
