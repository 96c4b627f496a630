"""A disk in memory with a log of all changes, to simulate power cuts at any point.

Rule: it behaves like `Disk`, errors included, for a single process. The log has the kernel events in order;
`enumeration` derives what a power cut may leave.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from typing import TYPE_CHECKING

from trace_store.errors import StorageError
from trace_store.files import APPEND, CREATE, PRIVATE, READ, WRITABLE, WRITE, Disk

if TYPE_CHECKING:
    from collections.abc import Iterator

NAMES, WRITTEN, SYNCED, NAMES_SYNCED, MODE = "names", "written", "synced", "names synced", "mode"
SYNC_FAILED = "sync failed"
ROOT = 1
GONE = 0

Naming = tuple[int, str, int]
"""(directory inode, name, inode that the name now refers to; 0 if removed)."""


class Event:
    """One event that changes a disk.

    Attributes:
        kind: `NAMES`, `WRITTEN`, `SYNCED`, `NAMES_SYNCED`, `MODE`, or `SYNC_FAILED`.
        inode: the file or directory.
        namings: the name changes of `NAMES`, all or none.
        is_folder: whether the inode is a directory.
        at, data: the offset and bytes of a write.
        mode: the new mode for `MODE`.
        site: the line of the library that called for a sync.
    """

    __slots__ = ("at", "data", "inode", "is_folder", "kind", "mode", "namings", "site")

    def __init__(
        self,
        kind: str,
        inode: int,
        *,
        namings: tuple[Naming, ...] = (),
        is_folder: bool = False,
        at: int = 0,
        data: bytes = b"",
        mode: int = 0,
        site: str = "",
    ) -> None:
        self.kind = kind
        self.inode = inode
        self.namings = namings
        self.is_folder = is_folder
        self.at = at
        self.data = data
        self.mode = mode
        self.site = site


class DiskImage:
    """Disk content: bytes of each file, names in each directory, and unusual modes."""

    __slots__ = ("files", "folders", "modes")

    def __init__(
        self,
        files: dict[int, bytes] | None = None,
        folders: dict[int, dict[str, int]] | None = None,
        modes: dict[int, int] | None = None,
    ) -> None:
        self.files = files or {}
        self.folders = folders or {ROOT: {}}
        self.modes = modes or {}

    def paths(self, skipped: frozenset[str] = frozenset()) -> Iterator[tuple[str, int]]:
        """Yield (path, inode) of everything, parents first.

        The content of `skipped` directories is left out.
        """
        stack = [("", ROOT)]
        while stack:
            path, folder = stack.pop()
            for name, inode in self.folders[folder].items():
                yield f"{path}/{name}", inode
                if inode in self.folders and name not in skipped:
                    stack.append((f"{path}/{name}", inode))

    def key(self, skipped: frozenset[str]) -> frozenset[tuple[str, bytes | None, int]]:
        """Return a value that is equal for equal images, ignoring skipped directories."""
        files, modes = self.files, self.modes
        return frozenset([(path, files.get(n), modes.get(n, 0)) for path, n in self.paths(skipped)])


def overwrite(content: bytes, at: int, data: bytes) -> bytes:
    """Return bytes with others written at an offset, zero-filled if beyond the end."""
    return content[:at].ljust(at, b"\0") + data + content[at + len(data) :]


_FIRST_FD = 1 << 20
_START_NS = 1_600_000_000_000_000_000
_TICK_NS = 1_000_001
_DISK_MODULE = "trace_store.files"


class Node:
    """A file or a directory."""

    __slots__ = ("changed", "count", "data", "locked_by", "mode", "names", "number")

    def __init__(self, number: int, names: dict[str, Node] | None, changed: int) -> None:
        self.number = number
        self.names = names
        self.data = b""
        self.mode = stat.S_IFREG | 0o644 if names is None else stat.S_IFDIR | 0o755
        self.changed = changed
        self.count = 0
        """How many names it has."""
        self.locked_by = 0


class PowerCutDisk(Disk):
    """A disk in memory with a log.

    Attributes:
        log: the events, in order.
        without: syncs of this site are silently skipped.
        root: the root directory.
        descriptors: open files and their modes.
        links: whether hard links are supported.
        now: the current time in nanoseconds; each change advances it.
    """

    def __init__(self, image: DiskImage | None = None, *, without: str = "") -> None:
        self.log: list[Event] = []
        self.without = without
        self.descriptors: dict[int, tuple[Node, str]] = {}
        self.links = True
        self.now = _START_NS
        self._next_fd = _FIRST_FD
        self._nodes: dict[int, Node] = {}
        self.root = self._load(image or DiskImage(), ROOT)
        self._last = max(image.folders | image.files) if image else ROOT

    def open(self, path: str, mode: str = READ) -> int | None:
        folder, name, node = self._find(path)
        if mode in (CREATE, PRIVATE):
            if node is not None:
                return None
            node = self._put(self._parent(folder, path), name, None)
        elif node is None:
            return None
        if node.names is not None:
            raise StorageError("not a regular file", path=path)
        if mode in (APPEND, WRITE) and not node.mode & WRITABLE:
            raise _os_error(errno.EACCES, path)
        self._next_fd += 1
        self.descriptors[self._next_fd] = node, mode
        return self._next_fd

    def close(self, fd: int) -> None:
        node, _ = self._opened(fd)
        if node.locked_by == fd:
            node.locked_by = 0
        del self.descriptors[fd]

    def read_at(self, fd: int, offset: int, size: int) -> bytes:
        return self._opened(fd)[0].data[offset : offset + size]

    def write(self, fd: int, data: bytes, at: int | None = None) -> int:
        node, mode = self._opened(fd)
        if mode == READ:
            raise _os_error(errno.EBADF, "")
        start = len(node.data) if at is None or mode != WRITE else at
        self._note(Event(WRITTEN, node.number, at=start, data=bytes(data)))
        node.data = overwrite(node.data, start, bytes(data))
        self._touch(node)
        return len(data)

    def sync(self, fd: int) -> None:
        self._note_sync(SYNCED, self._opened(fd)[0])

    def sync_directory(self, path: str) -> None:
        _, _, node = self._find(path)
        if node is None:
            raise _os_error(errno.ENOENT, path)
        self._note_sync(NAMES_SYNCED, node)

    def size(self, fd: int) -> int:
        return len(self._opened(fd)[0].data)

    def identity(self, target: int | str) -> tuple[int, int] | None:
        node = self._find(target)[2] if isinstance(target, str) else self._opened(target)[0]
        return None if node is None else (1, node.number)

    def stat(self, path: str) -> os.stat_result | None:
        _, _, node = self._find(path)
        if node is None:
            return None
        owner = os.geteuid() if hasattr(os, "geteuid") else 0
        seconds = node.changed // 1_000_000_000
        whole = (node.mode, node.number, 1, node.count, owner, 0, len(node.data), *(seconds,) * 3)
        exact = dict.fromkeys(("st_atime_ns", "st_mtime_ns", "st_ctime_ns"), node.changed)
        return os.stat_result(whole, exact)

    def protect(self, fd: int) -> None:
        node, _ = self._opened(fd)
        mode = stat.S_IFREG | 0o444
        self._note(Event(MODE, node.number, mode=mode))
        node.mode = mode
        self._touch(node)

    def exists(self, path: str) -> bool:
        return self._find(path)[2] is not None

    def names(self, path: str) -> list[str]:
        _, _, node = self._find(path)
        return [] if node is None or node.names is None else sorted(node.names)

    def scan(self, path: str) -> tuple[list[str], list[str]]:
        _, _, node = self._find(path)
        if node is None or node.names is None:
            return [], []
        entries = sorted(node.names.items())
        folders = [name for name, each in entries if each.names is not None]
        return folders, [name for name, each in entries if each.names is None]

    def make_directory(self, path: str) -> None:
        folder, name, node = self._find(path)
        if node is None:
            parent = os.path.dirname(path)
            if folder is None:
                self.make_directory(parent)
                folder = self._find(parent)[2]
            self._put(self._parent(folder, path), name, {})
        elif node.names is None:
            raise StorageError("not a directory", path=path)

    def rename(self, source: str, target: str) -> None:
        folder, name, node = self._find(source)
        if folder is None or node is None:
            raise _os_error(errno.ENOENT, target)
        onto, new, replaced = self._find(target)
        onto = self._parent(onto, target)
        if replaced is not None and (replaced.names is not None or node.names is not None):
            raise _os_error(errno.ENOTEMPTY if node.names is not None else errno.EISDIR, target)
        self._change(node, (folder.number, name, GONE), (onto.number, new, node.number))

    def link(self, source: str, target: str) -> bool:
        _, _, node = self._find(source)
        folder, name, taken = self._find(target)
        if node is None or folder is None:
            raise _os_error(errno.ENOENT, target)
        if taken is not None or not self.links:
            return False
        self._change(node, (folder.number, name, node.number))
        return True

    def remove(self, path: str) -> bool:
        folder, name, node = self._find(path)
        if folder is None or node is None:
            return False
        if node.names is not None:
            raise _os_error(errno.EISDIR, path)
        self._change(node, (folder.number, name, GONE))
        return True

    def remove_directory(self, path: str) -> bool:
        folder, name, node = self._find(path)
        if folder is None or node is None or node.names is None or node.names:
            return False
        self._change(node, (folder.number, name, GONE))
        return True

    def lock(self, fd: int, *, blocking: bool = True) -> bool:
        node, _ = self._opened(fd)
        if node.locked_by not in (0, fd):
            if blocking:
                raise AssertionError("deadlock: the only process waits for its own lock")
            return False
        node.locked_by = fd
        return True

    def unlock(self, fd: int) -> None:
        node, _ = self._opened(fd)
        if node.locked_by == fd:
            node.locked_by = 0

    def _note(self, event: Event) -> None:
        """Log an event before it happens; a subclass may raise to prevent it."""
        self.log.append(event)

    def _load(self, image: DiskImage, number: int) -> Node:
        node = self._nodes.get(number)
        if node is not None:
            return node
        names = image.folders.get(number)
        node = self._nodes[number] = Node(number, None if names is None else {}, self.now)
        self.now += _TICK_NS
        if names is None:
            node.data = image.files[number]
            node.mode = image.modes.get(number, node.mode)
        else:
            node.names = {name: self._load(image, each) for name, each in names.items()}
            for each in node.names.values():
                each.count += 1
        return node

    def _find(self, path: str) -> tuple[Node | None, str, Node | None]:
        """Return (directory, name, node with that name); None for what is absent."""
        node: Node | None = self.root
        folder: Node | None = None
        name = ""
        for part in path.split("/"):
            if not part:
                continue
            if node is None or node.names is None:
                return None, os.path.basename(path), None
            folder, name = node, part
            node = node.names.get(part)
        return folder, name, node

    def _parent(self, folder: Node | None, path: str) -> Node:
        if folder is None:
            raise _os_error(errno.ENOENT, path)
        return folder

    def _opened(self, fd: int) -> tuple[Node, str]:
        opened = self.descriptors.get(fd)
        if opened is None:
            raise _os_error(errno.EBADF, "")
        return opened

    def _put(self, folder: Node, name: str, names: dict[str, Node] | None) -> Node:
        self._last += 1
        node = Node(self._last, names, self.now)
        self._nodes[node.number] = node
        self._change(node, (folder.number, name, node.number))
        return node

    def _change(self, node: Node, *namings: Naming) -> None:
        """Apply name changes atomically."""
        folder = node.names is not None
        self._note(Event(NAMES, node.number, namings=namings, is_folder=folder))
        for number, name, inode in namings:
            names = self._nodes[number].names
            assert names is not None
            if name in names:
                names[name].count -= 1
            if inode == GONE:
                del names[name]
            else:
                names[name] = node
                node.count += 1
            self._touch(self._nodes[number])
        self._touch(node)

    def _touch(self, node: Node) -> None:
        self.now += _TICK_NS
        node.changed = self.now

    def _note_sync(self, kind: str, node: Node) -> None:
        site = calling_site()
        if site != self.without:
            self._note(Event(kind, node.number, site=site))


def image_of(disk: PowerCutDisk) -> DiskImage:
    """Return the disk's image, assuming that everything is written."""
    image = DiskImage({}, {})
    stack = [disk.root]
    while stack:
        node = stack.pop()
        if node.names is not None:
            image.folders[node.number] = {name: each.number for name, each in node.names.items()}
            stack += node.names.values()
            continue
        image.files[node.number] = node.data
        if not node.mode & WRITABLE:
            image.modes[node.number] = node.mode
    return image


def kill(disk: PowerCutDisk) -> None:
    """Close all files and release all locks, as when the process is killed."""
    for fd in list(disk.descriptors):
        disk.close(fd)


def calling_site() -> str:
    """Return the module, line and function that called for a sync.

    If it called a function of `files`, the call chain inside `files` follows.
    """
    frame = sys._getframe(1)
    while isinstance(frame.f_locals.get("self"), Disk):
        assert frame.f_back is not None
        frame = frame.f_back
    within = ""
    while frame.f_globals["__name__"] == _DISK_MODULE:
        call = f"{frame.f_code.co_name}:{frame.f_lineno}"
        within = f" > {call}{within}"
        assert frame.f_back is not None
        frame = frame.f_back
    name = frame.f_globals["__name__"].removeprefix("trace_store.")
    return f"{name}:{frame.f_lineno} {frame.f_code.co_qualname}{within}"


def _os_error(number: int, path: str) -> StorageError:
    text = os.strerror(number)
    return StorageError(f"{text}{f': {path}' if path else ''}", path=path, errno=number)
