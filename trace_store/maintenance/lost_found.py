"""`lost-found/`: files that repair takes out of use, and data it cannot recover.

Invariant: nothing is deleted. A file is linked or copied here durably before it loses its place. Names end in a
part of the content hash, so a repeated repair changes nothing. Git does not ignore the folder: after `git add
.trace`, `git clean` no longer removes it.
"""

from __future__ import annotations

import os

from trace_store import errors
from trace_store.base.oid import digest
from trace_store.disk.files import WRITE, read_file, replace_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.store.store import Store


_HASH_CHARACTERS = 8


def keep_bytes(store: Store, name: str, data: bytes) -> str:
    """Store bytes under a file's path; return their path, relative to `.trace`.

    Raises:
        StorageError: the disk refuses.
    """
    target = _target(store, name, data)
    _write(store, target, data)
    _sync(store, target)
    return _relative(store, target)


def is_kept(store: Store, name: str, data: bytes) -> bool:
    """Return True if these bytes are already stored for the file."""
    return store.disk.exists(_target(store, name, data))


def keep_file(store: Store, path: str, *, remove: bool = True) -> str | None:
    """Store a file, and remove the original if asked.

    Return its path, or None if it is absent.

    Raises:
        StorageError: the disk refuses.
    """
    data = read_file(store.disk, path)
    if data is None:
        return None
    target = _target(store, _relative(store, path), data)
    store.disk.make_directory(os.path.dirname(target))
    if not _is_durable(store, path) or not store.disk.link(path, target):
        _write(store, target, data)
    _sync(store, target)
    if remove:
        store.disk.remove(path)
        store.disk.sync_directory(os.path.dirname(path))
    return _relative(store, target)


def _target(store: Store, name: str, data: bytes) -> str:
    name = f"{name}-{digest(data).hex()[:_HASH_CHARACTERS]}"
    return os.path.join(store.layout.lost_found_dir, *name.split("/"))


def _write(store: Store, target: str, data: bytes) -> None:
    """Write a file, unless an earlier repair did."""
    if not store.disk.exists(target):
        replace_file(store.disk, target, data, scratch=store.layout.tmp_dir)


def _is_durable(store: Store, path: str) -> bool:
    """Sync a file's content; return False if it cannot be opened for that.

    Raises:
        StorageError: the disk refuses the sync.
    """
    try:
        fd = store.disk.open(path, WRITE)
    except errors.StorageError:
        return False
    if fd is None:
        return False
    try:
        store.disk.sync(fd)
    finally:
        store.disk.close(fd)
    return True


def _sync(store: Store, target: str) -> None:
    """Sync a name and the folders above it."""
    folder = os.path.dirname(target)
    while len(folder) >= len(store.layout.root):
        store.disk.sync_directory(folder)
        folder = os.path.dirname(folder)


def _relative(store: Store, path: str) -> str:
    return os.path.relpath(path, store.layout.root).replace(os.sep, "/")


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
