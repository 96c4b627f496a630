"""`lost-found/`: where repair puts what it takes out of use, and what it cannot recover.

Rule: nothing is deleted. A file gets its second name there, or a copy, durably, before it loses the first. Names end
with a part of the content's hash, so doing it again after an interruption changes nothing. Git does not ignore the
folder: `git add .trace` takes it along, and from then on no `git clean` removes it.
"""

from __future__ import annotations

import os

from trace_store import errors
from trace_store.files import WRITE, create_file, read_file
from trace_store.oid import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.store.handle import Store

_HASH_CHARACTERS = 8


def keep_bytes(store: Store, name: str, data: bytes) -> str:
    """Put bytes there under the path of a file, relative to `.trace`; return where they are, relative too.

    Raises:
        StorageError: the disk refuses.
    """
    target = _target(store, name, data)
    store.disk.make_directory(os.path.dirname(target))
    _write(store, target, data)
    _sync(store, target)
    return _relative(store, target)


def is_kept(store: Store, name: str, data: bytes) -> bool:
    """Tell whether these bytes are there already, under the path of this file."""
    return store.disk.exists(_target(store, name, data))


def keep_file(store: Store, path: str, *, remove: bool = True) -> str | None:
    """Give a file a place there, and take it from where it was if asked; return the place, None when it is absent.

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


def files_in(store: Store, folder: str) -> list[str]:
    """Return the paths of all files below a folder, sorted."""
    found: list[str] = []
    stack = [folder]
    while stack:
        here = stack.pop()
        folders, files = store.disk.scan(here)
        stack += [os.path.join(here, name) for name in folders]
        found += [os.path.join(here, name) for name in files]
    return sorted(found)


def _target(store: Store, name: str, data: bytes) -> str:
    told = f"{name}-{digest(data).hex()[:_HASH_CHARACTERS]}"
    return os.path.join(store.layout.lost_found_dir, *told.split("/"))


def _write(store: Store, target: str, data: bytes) -> None:
    """Write a file that is there whole or not at all, unless an earlier repair has."""
    disk, scratch = store.disk, store.layout.tmp_dir
    if disk.exists(target):
        return
    disk.make_directory(scratch)
    name = f"{os.path.basename(target)}.{os.getpid()}-{os.urandom(6).hex()}.tmp"
    temporary = os.path.join(scratch, name)
    create_file(disk, temporary, data)
    disk.rename(temporary, target)


def _is_durable(store: Store, path: str) -> bool:
    """Make the content of a file durable, which nobody may have done before; False where it cannot be opened for that.

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
    """Make a name durable, with the names of the folders that it is in."""
    folder = os.path.dirname(target)
    while len(folder) >= len(store.layout.root):
        store.disk.sync_directory(folder)
        folder = os.path.dirname(folder)


def _relative(store: Store, path: str) -> str:
    return os.path.relpath(path, store.layout.root).replace(os.sep, "/")
