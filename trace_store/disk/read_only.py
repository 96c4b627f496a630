"""A disk that is only read, for looks at a damaged repository that must leave nothing behind."""

from __future__ import annotations

import errno

from trace_store import errors
from trace_store.disk.files import READ, Disk


class ReadOnlyDisk(Disk):
    """A disk that refuses every change with a StorageError, as a read-only file system does."""

    __slots__ = ()

    def open(self, path: str, mode: str = READ) -> int | None:
        """Open a regular file for reading; other modes are refused."""
        if mode != READ:
            raise _refusal(path)
        return super().open(path, mode)

    def make_directory(self, path: str) -> None:
        """Refuse."""
        raise _refusal(path)

    def rename(self, source: str, target: str) -> None:
        """Refuse."""
        raise _refusal(target)

    def link(self, source: str, target: str) -> bool:
        """Refuse."""
        raise _refusal(target)

    def remove(self, path: str) -> bool:
        """Refuse."""
        raise _refusal(path)

    def remove_directory(self, path: str) -> bool:
        """Refuse."""
        raise _refusal(path)


def _refusal(path: str) -> errors.StorageError:
    return errors.StorageError(
        "nothing is written while objects are missing", path=path, errno=errno.EROFS
    )
