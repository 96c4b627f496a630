"""A repository opened for a server that only reads: what a tool would write is refused by the disk.

Caches may be written, since each search of a large repository would else build its index again. So may what git's hooks
noted, which every command that reads a trajectory first turns into links that wait. Neither is history.
"""

from __future__ import annotations

import os

from trace_store.base.environment import Environment
from trace_store.disk.files import READ, Disk
from trace_store.disk.layout import Layout
from trace_store.disk.read_only import ReadOnlyDisk
from trace_store.repo.repository import Repo
from trace_store.store.store import Store


class CacheOnlyDisk(ReadOnlyDisk):
    """A disk that refuses every change of a repository, except for its caches and the notes of git's hooks."""

    __slots__ = ("_places",)

    def __init__(self, layout: Layout) -> None:
        super().__init__("the server only reads; start it with --allow-write to record")
        self._places = (
            *(layout.cache_dir, layout.tmp_dir, layout.waiting_dir, layout.seen_file),
            *(layout.unlinked_file, layout.lock_file("seen")),
        )

    def _may_change(self, path: str) -> bool:
        return os.path.abspath(path).startswith(self._places)

    def open(self, path: str, mode: str = READ) -> int | None:
        """Open a regular file; for writing only one that may change."""
        return Disk.open(self, path, mode) if self._may_change(path) else super().open(path, mode)

    def make_directory(self, path: str) -> None:
        """Create a directory that may change; an existing one is left alone."""
        if self._may_change(path):
            Disk.make_directory(self, path)
        elif os.path.isdir(path):
            return
        else:
            super().make_directory(path)

    def rename(self, source: str, target: str) -> None:
        """Rename a file that may change to another."""
        if self._may_change(source) and self._may_change(target):
            Disk.rename(self, source, target)
        else:
            super().rename(source, target)

    def remove(self, path: str) -> bool:
        """Remove a file that may change."""
        return Disk.remove(self, path) if self._may_change(path) else super().remove(path)


def open_for_reading(directory: str, environment: Environment, *, folder: str = ".") -> Repo:
    """Open a repository that nothing can write to, except for its caches and notes of hooks.

    Args:
        directory: its `.trace` directory.
        environment: has the user's settings.
        folder: where the caller works.

    Raises:
        FormatError, UnsupportedFormatError, StorageError: as `Store.open`.
    """
    disk = CacheOnlyDisk(Layout(os.path.abspath(directory)))
    store = Store.open(directory, disk=disk)
    store.folder = folder
    try:
        return Repo(store, author=None, environment=environment)
    except BaseException:
        store.close()
        raise
