"""Atomic creation of a file: it appears under its name only when complete."""

from __future__ import annotations

import os
import stat

from trace_store.disk.files import CREATE, Disk, write_all
from trace_store.errors import AlreadyExistsError, StorageError


class NewFile:
    """A file under construction, used in a `with` block; an error leaves no file.

    Attributes:
        path: the target.
        size: bytes written so far.
    """

    __slots__ = ("_disk", "_fd", "_overwrite", "_scratch", "path", "size")

    def __init__(self, disk: Disk, path: str, *, overwrite: bool = False) -> None:
        """Create a temporary file beside the target.

        Raises:
            AlreadyExistsError: the target exists and `overwrite` is false.
            StorageError: the target is not a regular file, its folder does not exist, or the disk failed.
        """
        self._disk = disk
        self._overwrite = overwrite
        self.path = path
        self.size = 0
        self._check_free()
        if path.endswith((os.sep, "/")):
            raise StorageError(f"not the name of a file: {path}", path=path)
        folder, name = os.path.split(os.path.abspath(path))
        if disk.stat(folder) is None:
            raise StorageError(f"no such folder: {folder}", path=self.path)
        unique = f"{os.getpid()}-{os.urandom(6).hex()}"
        self._scratch = os.path.join(folder, f".{name[:100]}.{unique}.tmp")
        self._fd = disk.open(self._scratch, CREATE)
        if self._fd is None:
            raise StorageError("temporary file already exists", path=self._scratch)

    def write(self, data: bytes) -> None:
        """Append bytes."""
        assert self._fd is not None
        write_all(self._disk, self._fd, data)
        self.size += len(data)

    def __enter__(self) -> NewFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        placed = False
        try:
            if kind is None:
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
        # A hard link never overwrites; some file systems do not support links.
        if not self._overwrite and self._disk.link(self._scratch, self.path):
            self._disk.remove(self._scratch)
        else:
            self._check_free()
            self._disk.rename(self._scratch, self.path)
        self._disk.sync_directory(os.path.dirname(self._scratch))

    def _check_free(self) -> None:
        status = self._disk.stat(self.path)
        if status is not None and not self._overwrite:
            raise AlreadyExistsError(f"{self.path} already exists", path=self.path)
        if status is not None and not stat.S_ISREG(status.st_mode):
            raise StorageError(f"not a regular file: {self.path}", path=self.path)

    def _close(self) -> None:
        fd, self._fd = self._fd, None
        if fd is not None:
            self._disk.close(fd)
