"""A pool of files open for reading, with a limited number of descriptors.

Rule: a handle always means the same file. A file that was closed to free its descriptor is reopened on the next read,
and is then the same file or an error.
"""

from __future__ import annotations

import errno

from trace_store import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.files import Disk

MAXIMUM_DESCRIPTORS = 64
"""Few enough for a limit of 256, and enough for every often-read pack and its index."""
NO_DESCRIPTORS = (errno.EMFILE, errno.ENFILE)
"""The process or the system is out of descriptors; the file itself may be fine."""


class OpenFiles:
    """Open files by handle; a handle is not a descriptor."""

    __slots__ = ("_disk", "_fds", "_files", "_limit", "_next")

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._limit = MAXIMUM_DESCRIPTORS
        self._next = 0
        self._files: dict[int, tuple[str, tuple[int, int] | None]] = {}
        self._fds: dict[int, int] = {}  # least recently used first

    def open(self, path: str) -> int | None:
        """Return a handle of a file, or None if it is absent.

        Raises:
            StorageError: it cannot be opened.
        """
        fd = self._descriptor(path)
        if fd is None:
            return None
        self._next += 1
        self._files[self._next] = (path, self._disk.identity(fd))
        self._fds[self._next] = fd
        return self._next

    def read_at(self, handle: int, offset: int, size: int) -> bytes:
        """Return up to `size` bytes at an offset; fewer only at the end of the file.

        Raises:
            StorageError: the read failed; errno ENOENT if the file was removed or replaced.
        """
        return self._disk.read_at(self._fd(handle), offset, size)

    def size(self, handle: int) -> int:
        """Return the length of a file in bytes."""
        return self._disk.size(self._fd(handle))

    def close(self, handle: int) -> None:
        """Close a handle."""
        self._files.pop(handle, None)
        fd = self._fds.pop(handle, None)
        if fd is not None:
            self._disk.close(fd)

    def _fd(self, handle: int) -> int:
        fd = self._fds.pop(handle, None)
        if fd is None:
            path, identity = self._files[handle]
            fd = self._descriptor(path)
            if fd is not None and self._disk.identity(fd) != identity:
                self._disk.close(fd)
                fd = None
            if fd is None:
                raise errors.StorageError(
                    f"the file was removed: {path}", path=path, errno=errno.ENOENT
                )
        self._fds[handle] = fd  # now the most recently used
        return fd

    def _descriptor(self, path: str) -> int | None:
        """Open a file, closing others if needed."""
        self._close_oldest(self._limit - 1)
        while True:
            try:
                return self._disk.open(path)
            except errors.StorageError as error:
                if error.errno not in NO_DESCRIPTORS or not self._fds:
                    raise
                # Give back half of the descriptors, for the rest of the process.
                self._limit = max(len(self._fds) // 2, 1)
                self._close_oldest(self._limit - 1)

    def _close_oldest(self, keep: int) -> None:
        while len(self._fds) > keep:
            self._disk.close(self._fds.pop(next(iter(self._fds))))
