"""A file that is written piece by piece, and has its name only when all of it is there."""

from __future__ import annotations

import os
import stat
from types import TracebackType

from trace_store.errors import AlreadyExistsError, StorageError
from trace_store.files import CREATE, Disk, write_all


class NewFile:
    """A file under construction, for a `with` block; leaving it with an error leaves nothing."""

    __slots__ = ("_disk", "_fd", "_overwrite", "_scratch", "path")

    def __init__(self, disk: Disk, path: str, *, overwrite: bool = False) -> None:
        """Begin a file beside its final place.

        Raises:
            AlreadyExistsError: the path is taken, and `overwrite` is false.
            StorageError: the path is no regular file, there is no such folder, or the disk refuses.
        """
        self._disk = disk
        self._overwrite = overwrite
        self.path = os.path.abspath(path)
        self._check_free()
        folder, name = os.path.split(self.path)
        if disk.stat(folder) is None:
            raise StorageError(f"there is no folder {folder}", path=self.path)
        unique = f"{os.getpid()}-{os.urandom(6).hex()}"
        self._scratch = os.path.join(folder, f".{name[:100]}.{unique}.tmp")
        self._fd = disk.open(self._scratch, CREATE)
        if self._fd is None:
            raise StorageError("a temporary name is taken", path=self._scratch)

    def write(self, data: bytes) -> None:
        """Append bytes."""
        assert self._fd is not None
        write_all(self._disk, self._fd, data)

    def __enter__(self) -> NewFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        placed = False
        try:
            if error is None:
                self._place()
                placed = True
        finally:
            self._close()
            if not placed:
                self._disk.remove(self._scratch)

    def _place(self) -> None:
        assert self._fd is not None
        self._disk.sync(self._fd)
        self._close()
        # A link is made only where nothing is; some file systems have none.
        if not self._overwrite and self._disk.link(self._scratch, self.path):
            self._disk.remove(self._scratch)
        else:
            self._check_free()
            self._disk.rename(self._scratch, self.path)
        self._disk.sync_directory(os.path.dirname(self.path))

    def _check_free(self) -> None:
        found = self._disk.stat(self.path)
        if found is not None and not self._overwrite:
            raise AlreadyExistsError(f"{self.path} is there already", path=self.path)
        if found is not None and not stat.S_ISREG(found.st_mode):
            raise StorageError(f"not a regular file: {self.path}", path=self.path)

    def _close(self) -> None:
        fd, self._fd = self._fd, None
        if fd is not None:
            self._disk.close(fd)
