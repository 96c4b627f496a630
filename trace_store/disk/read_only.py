"""A disk that is only read: for looks at a repository that must leave nothing behind."""

from __future__ import annotations

import errno

from trace_store import errors
from trace_store.disk.files import READ, Disk


class ReadOnlyDisk(Disk):
    """A disk that refuses every change with a StorageError, as a read-only file system does."""

    __slots__ = ("_why",)
    can_write = False

    def __init__(self, why: str) -> None:
        """Create one whose errors give this reason."""
        super().__init__()
        self._why = why

    def open(self, path: str, mode: str = READ) -> int | None:
        """Open a regular file for reading; other modes are refused."""
        if mode != READ:
            raise self._refusal(path)
        return super().open(path, mode)

    def make_directory(self, path: str) -> None:
        """Refuse."""
        raise self._refusal(path)

    def rename(self, source: str, target: str) -> None:
        """Refuse."""
        raise self._refusal(target)

    def link(self, source: str, target: str) -> bool:
        """Refuse."""
        raise self._refusal(target)

    def remove(self, path: str) -> bool:
        """Refuse."""
        raise self._refusal(path)

    def remove_directory(self, path: str) -> bool:
        """Refuse."""
        raise self._refusal(path)

    def _refusal(self, path: str) -> errors.StorageError:
        return errors.StorageError(self._why, path=path, errno=errno.EROFS)
