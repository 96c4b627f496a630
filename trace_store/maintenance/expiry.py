"""Expiry: old entries of reflogs, and what has been in quarantine for long.

Rule: of a reflog an entry goes by its own time. Nobody loses content by that alone: undo, reset, rebase and deletion
leave a ref under `refs/trash/`. What is in quarantine goes folder by folder, each of which first gets a name under
which nobody looks.
"""

from __future__ import annotations

import os

from trace_store.files import APPEND, replace_file, write_all
from trace_store.odb.database import ObjectDatabase
from trace_store.refs.reflog import encode_entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from trace_store.files import Disk
    from trace_store.maintenance.reachability import Roots
    from trace_store.odb.quarantine import Taking
    from trace_store.oid import ObjectId
    from trace_store.refs.reflog import ReflogEntry
    from trace_store.store.handle import Store

_GONE = "gone-"


def is_expired(
    entry: ReflogEntry, reached: Container[ObjectId], *, since: int, unreachable_since: int
) -> bool:
    """Tell whether an entry is older than one keeps it; those that name what no ref leads to are kept for less long."""
    if entry.time < since:
        return True
    named = [oid for oid in (entry.old, entry.new) if oid is not None]
    return entry.time < unreachable_since and not all(oid in reached for oid in named)


def expire_logs(store: Store, roots: Roots, expired: Callable[[ReflogEntry], bool]) -> int:
    """Write the reflogs that have expired entries anew without these, and return how many entries went."""
    removed = 0
    for name, entries in roots.logs.items():
        gone = [entry for entry in entries if expired(entry)]
        if gone:
            removed += len(gone)
            _rewrite(store, store.layout.log_file(name), frozenset(map(encode_entry, gone)))
    return removed


def _rewrite(store: Store, path: str, gone: frozenset[bytes]) -> None:
    """Replace a reflog by one without some lines; what is added to the old one meanwhile is taken along."""
    disk = store.disk
    fd = disk.open(path)
    if fd is None:
        return
    try:
        size = disk.size(fd)
        lines = disk.read_at(fd, 0, size).splitlines(keepends=True)
        kept = b"".join(line for line in lines if line not in gone)
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
    """Remove for good what was taken before a time, in milliseconds, and return how many files, and their bytes."""
    assert isinstance(store.objects, ObjectDatabase)
    quarantine, disk = store.objects.quarantine, store.disk
    folder = store.layout.quarantine_dir
    if any(taking.time <= before for taking in quarantine.takings()):

        def hide() -> None:
            for taking in quarantine.takings():
                if taking.time <= before:
                    disk.rename(taking.layout.root, os.path.join(folder, _GONE + taking.name))

        store.alone(hide)  # a writer that counted on something there has to look again
        quarantine.takings()
    files = size = 0
    for name in disk.scan(folder)[0]:
        if name.startswith(_GONE):
            found = _remove_all(disk, os.path.join(folder, name))
            files, size = files + found[0], size + found[1]
    return files, size


def size_of(disk: Disk, taking: Taking) -> int:
    """Return how many bytes the files of a taking have."""
    return sum(_sizes(disk, taking.layout.root))


def _sizes(disk: Disk, path: str) -> list[int]:
    folders, files = disk.scan(path)
    found = [disk.stat(os.path.join(path, name)) for name in files]
    below = [size for name in folders for size in _sizes(disk, os.path.join(path, name))]
    return [each.st_size for each in found if each is not None] + below


def _remove_all(disk: Disk, path: str) -> tuple[int, int]:
    """Remove a folder with all that is in it; return how many files there were, and their bytes."""
    folders, names = disk.scan(path)
    files = size = 0
    for name in folders:
        found = _remove_all(disk, os.path.join(path, name))
        files, size = files + found[0], size + found[1]
    for name in names:
        known = disk.stat(os.path.join(path, name))
        size += 0 if known is None else known.st_size
        files += disk.remove(os.path.join(path, name))
    disk.remove_directory(path)
    return files, size
