"""Files open for reading, of which only so many have a descriptor at a time.

Rule: a handle stands for one file for ever. A file that was closed to spare its descriptor is opened again when it is
read, and is then the same file or an error.
"""

from __future__ import annotations

import errno

from trace_store import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.files import Disk

MAXIMUM_DESCRIPTORS = 64
"""Few enough for a process that may have 256, and enough for every pack that is read often, with its index."""
NO_DESCRIPTORS = (errno.EMFILE, errno.ENFILE)
"""The process, or the machine, has no descriptor left: that says nothing of the file."""


class OpenFiles:
    """Files by handle; handles are no descriptors."""

    __slots__ = ("_disk", "_fds", "_files", "_limit", "_next")

    def __init__(self, disk: Disk, *, limit: int = MAXIMUM_DESCRIPTORS) -> None:
        self._disk = disk
        self._limit = limit
        self._next = 0
        self._files: dict[int, tuple[str, tuple[int, int] | None]] = {}
        self._fds: dict[int, int] = {}  # the least recently used first

    def open(self, path: str) -> int | None:
        """Return a handle of a file, or None when it is absent.

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
        """Return up to `size` bytes from an offset; fewer only at the end of the file.

        Raises:
            StorageError: the disk refuses; with errno ENOENT the file is gone, or another has its name.
        """
        return self._disk.read_at(self._fd(handle), offset, size)

    def size(self, handle: int) -> int:
        """Return the length of a file in bytes."""
        return self._disk.size(self._fd(handle))

    def close(self, handle: int) -> None:
        """Give a handle up."""
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
                    f"the file is gone: {path}", path=path, errno=errno.ENOENT
                )
        self._fds[handle] = fd  # now the most recently used
        return fd

    def _descriptor(self, path: str) -> int | None:
        """Open a file, and close others until that is possible."""
        self._spare(self._limit - 1)
        while True:
            try:
                return self._disk.open(path)
            except errors.StorageError as error:
                if error.errno not in NO_DESCRIPTORS or not self._fds:
                    raise
                # Half of what there were, so that the rest of the process has some, too.
                self._limit = max(len(self._fds) // 2, 1)
                self._spare(self._limit - 1)

    def _spare(self, count: int) -> None:
        while len(self._fds) > count:
            self._disk.close(self._fds.pop(next(iter(self._fds))))
