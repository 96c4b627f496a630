"""A disk in memory, for repositories that last as long as the process.

Rule: it behaves like `Disk`, errors included, for the threads of one process. Nothing on it is durable, so syncs only
check their argument. Its paths are absolute, and mean nothing to other programs.
"""

from __future__ import annotations

import errno
import os
import stat
from _thread import RLock
from itertools import count
from time import sleep, time_ns

from trace_store import errors
from trace_store.disk.files import (
    APPEND,
    CREATE,
    PRIVATE,
    READ,
    READ_ONLY,
    WRITABLE,
    WRITE,
    Disk,
)

ROOT = 1
"""The number of the root directory."""
_FIRST_FD = 1 << 20  # unlike those of the system, so that a mix-up fails
_PAUSE_SECONDS = 0.0001
_FILE, _PRIVATE_FILE = stat.S_IFREG | 0o644, stat.S_IFREG | 0o600
_DIRECTORY = stat.S_IFDIR | 0o755
_DEVICE = 1
_OWNER = os.geteuid() if hasattr(os, "geteuid") else 0


class Node:
    """A file, or a directory, which has `names`."""

    __slots__ = ("changed", "count", "data", "mode", "names", "number")

    def __init__(self, number: int, mode: int) -> None:
        self.number = number
        self.mode = mode
        self.names: dict[str, Node] | None = {} if stat.S_ISDIR(mode) else None
        self.data = bytearray()
        self.changed = 0
        """When it changed, in nanoseconds."""
        self.count = 0
        """How many names it has."""


Naming = tuple[Node, str, bool]
"""(directory, name, whether the name is there from now on)."""


class MemoryDisk(Disk):
    """A disk in memory.

    Attributes:
        root: the root directory.
        descriptors: open files and their modes.
    """

    has_paths = False

    def __init__(self) -> None:
        self.descriptors: dict[int, tuple[Node, str]] = {}
        self._fds = count(_FIRST_FD)
        self._numbers = count(ROOT)
        self._locks: dict[int, int] = {}
        self._mutex = RLock()
        self._changed = 0
        self.root = Node(next(self._numbers), _DIRECTORY)

    def open(self, path: str, mode: str = READ) -> int | None:
        creates = mode in (CREATE, PRIVATE)
        with self._mutex:
            folder, name, node = self._find(path)
            if creates:
                if node is not None:
                    return None
                node = self._put(folder, name, path, _PRIVATE_FILE if mode == PRIVATE else _FILE)
            elif node is None:
                return None
        if node.names is not None:
            raise errors.StorageError("not a regular file", path=path, errno=errno.EINVAL)
        if mode in (APPEND, WRITE) and not node.mode & WRITABLE:
            raise _failure(errno.EACCES, path)
        fd = next(self._fds)
        self.descriptors[fd] = node, mode
        return fd

    def close(self, fd: int) -> None:
        self.unlock(fd)
        del self.descriptors[fd]

    def read_at(self, fd: int, offset: int, size: int) -> bytes:
        return bytes(self._opened(fd)[0].data[offset : offset + size])

    def write(self, fd: int, data: bytes, at: int | None = None) -> int:
        node, start = self._target(fd, at)
        content = node.data
        if start > len(content):
            content += bytes(start - len(content))
        content[start : start + len(data)] = data
        self._touch(node)
        return len(data)

    def sync(self, fd: int) -> None:
        self._opened(fd)

    def sync_directory(self, path: str) -> None:
        self._required(path)

    def size(self, fd: int) -> int:
        return len(self._opened(fd)[0].data)

    def identity(self, target: int | str) -> tuple[int, int] | None:
        node = self._find(target)[2] if isinstance(target, str) else self._opened(target)[0]
        return None if node is None else (_DEVICE, node.number)

    def stat(self, path: str) -> os.stat_result | None:
        node = self._find(path)[2]
        if node is None:
            return None
        time, seconds = node.changed, node.changed // 1_000_000_000
        times, exact = (seconds,) * 3, {"st_mtime_ns": time, "st_ctime_ns": time}
        place = (node.mode, node.number, _DEVICE, node.count)
        return os.stat_result((*place, _OWNER, 0, len(node.data), *times), exact)

    def protect(self, fd: int, mode: int = READ_ONLY) -> None:
        node = self._opened(fd)[0]
        node.mode = stat.S_IFREG | mode
        self._touch(node)

    def exists(self, path: str) -> bool:
        return self._find(path)[2] is not None

    def names(self, path: str) -> list[str]:
        node = self._find(path)[2]
        return [] if node is None or node.names is None else sorted(node.names)

    def scan(self, path: str) -> tuple[list[str], list[str]]:
        node = self._find(path)[2]
        if node is None or node.names is None:
            return [], []
        with self._mutex:
            entries = sorted(node.names.items())
        folders = [name for name, each in entries if each.names is not None]
        return folders, [name for name, each in entries if each.names is None]

    def make_directory(self, path: str) -> None:
        with self._mutex:
            folder, name, node = self._find(path)
            if node is None:
                if folder is None:
                    self.make_directory(os.path.dirname(path))
                    folder, name, _ = self._find(path)
                self._put(folder, name, path, _DIRECTORY)
            elif node.names is None:
                raise errors.StorageError("not a directory", path=path, errno=errno.ENOTDIR)

    def rename(self, source: str, target: str) -> None:
        with self._mutex:
            folder, name, node = self._find(source)
            onto, new, replaced = self._find(target)
            if folder is None or node is None or onto is None:
                raise _failure(errno.ENOENT, target)
            if replaced is not None and (replaced.names is not None or node.names is not None):
                raise _failure(errno.EISDIR if node.names is None else errno.ENOTEMPTY, target)
            self._change(node, (folder, name, False), (onto, new, True))

    def link(self, source: str, target: str) -> bool:
        with self._mutex:
            node = self._required(source)
            folder, name, taken = self._find(target)
            if folder is None:
                raise _failure(errno.ENOENT, target)
            if taken is not None:
                return False
            self._change(node, (folder, name, True))
        return True

    def remove(self, path: str) -> bool:
        with self._mutex:
            folder, name, node = self._find(path)
            if folder is None or node is None:
                return False
            if node.names is not None:
                raise _failure(errno.EISDIR, path)
            self._change(node, (folder, name, False))
        return True

    def remove_directory(self, path: str) -> bool:
        with self._mutex:
            folder, name, node = self._find(path)
            if folder is None or node is None or node.names is None or node.names:
                return False
            self._change(node, (folder, name, False))
        return True

    def lock(self, fd: int, *, blocking: bool = True) -> bool:
        number = self._opened(fd)[0].number
        while self._locks.setdefault(number, fd) != fd:
            if not blocking:
                return False
            self._wait()
        return True

    def unlock(self, fd: int) -> None:
        number = self._opened(fd)[0].number
        if self._locks.get(number) == fd:
            del self._locks[number]

    def _wait(self) -> None:
        """Pause before the next attempt at a lock, which another thread holds."""
        sleep(_PAUSE_SECONDS)

    def _time(self) -> int:
        """Return the time of a change in nanoseconds, later than that of the one before."""
        self._changed = max(time_ns(), self._changed + 1)
        return self._changed

    def _find(self, path: str) -> tuple[Node | None, str, Node | None]:
        """Return (directory, name, node with that name); None for what is absent."""
        folder: Node | None = None
        node: Node | None = self.root
        name = ""
        for part in path.replace(os.sep, "/").split("/"):
            if part:
                if node is None or node.names is None:
                    return None, "", None
                folder, name = node, part
                node = node.names.get(part)
        return folder, name, node

    def _required(self, path: str) -> Node:
        node = self._find(path)[2]
        if node is None:
            raise _failure(errno.ENOENT, path)
        return node

    def _opened(self, fd: int) -> tuple[Node, str]:
        opened = self.descriptors.get(fd)
        if opened is None:
            raise _failure(errno.EBADF, "")
        return opened

    def _target(self, fd: int, at: int | None) -> tuple[Node, int]:
        """Return the file to write to, and the offset: its end, unless opened for WRITE."""
        node, mode = self._opened(fd)
        if mode == READ:
            raise _failure(errno.EBADF, "")
        return node, len(node.data) if at is None or mode != WRITE else at

    def _put(self, folder: Node | None, name: str, path: str, mode: int) -> Node:
        """Create an empty file or directory."""
        if folder is None:
            raise _failure(errno.ENOENT, path)
        node = Node(next(self._numbers), mode)
        self._change(node, (folder, name, True))
        return node

    def _change(self, node: Node, *namings: Naming) -> None:
        """Change names of a file or directory together."""
        for folder, name, is_there in namings:
            names = folder.names
            assert names is not None
            if name in names:
                names.pop(name).count -= 1
            if is_there:
                names[name] = node
                node.count += 1
            self._touch(folder)
        self._touch(node)

    def _touch(self, node: Node) -> None:
        node.changed = self._time()


def _failure(number: int, path: str) -> errors.StorageError:
    text = os.strerror(number)
    return errors.StorageError(f"{text}{f': {path}' if path else ''}", path=path, errno=number)
