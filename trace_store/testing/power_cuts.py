"""A disk in memory with a log of all changes, to simulate power cuts at any point.

The log has the kernel events in order; `enumeration` derives what a power cut may leave.
"""

from __future__ import annotations

import stat
import sys
from itertools import count
from typing import TYPE_CHECKING

from trace_store.files import WRITABLE, Disk
from trace_store.store.memory_disk import ROOT, MemoryDisk, Node

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trace_store.store.memory_disk import Naming

NAMES, WRITTEN, SYNCED, NAMES_SYNCED, MODE = "names", "written", "synced", "names synced", "mode"
SYNC_FAILED = "sync failed"
GONE = 0

LoggedNaming = tuple[int, str, int]
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
        namings: tuple[LoggedNaming, ...] = (),
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


_START_NS = 1_600_000_000_000_000_000
_TICK_NS = 1_000_001
_DISK_MODULE = "trace_store.files"


class PowerCutDisk(MemoryDisk):
    """A disk in memory with a log.

    Attributes:
        log: the events, in order.
        without: syncs of this site are silently skipped.
        links: whether hard links are supported.
        now: the current time in nanoseconds; each change advances it.
    """

    has_paths = True  # it stands for a real disk

    def __init__(self, image: DiskImage | None = None, *, without: str = "") -> None:
        super().__init__()
        self.log: list[Event] = []
        self.without = without
        self.links = True
        self.now = _START_NS
        if image is not None:
            self.root = self._load(image, ROOT, {})
            self._numbers = count(max(image.folders | image.files) + 1)

    def write(self, fd: int, data: bytes, at: int | None = None) -> int:
        node, start = self._target(fd, at)
        self._note(Event(WRITTEN, node.number, at=start, data=bytes(data)))
        return super().write(fd, data, at)

    def sync(self, fd: int) -> None:
        self._note_sync(SYNCED, self._opened(fd)[0])

    def sync_directory(self, path: str) -> None:
        self._note_sync(NAMES_SYNCED, self._required(path))

    def protect(self, fd: int) -> None:
        self._note(Event(MODE, self._opened(fd)[0].number, mode=stat.S_IFREG | 0o444))
        super().protect(fd)

    def link(self, source: str, target: str) -> bool:
        return self.links and super().link(source, target)

    def _note(self, event: Event) -> None:
        """Log an event before it happens; a subclass may raise to prevent it."""
        self.log.append(event)

    def _change(self, node: Node, *namings: Naming) -> None:
        logged = tuple(
            (folder.number, name, node.number if is_there else GONE)
            for folder, name, is_there in namings
        )
        is_folder = node.names is not None
        self._note(Event(NAMES, node.number, namings=logged, is_folder=is_folder))
        super()._change(node, *namings)

    def _time(self) -> int:
        self.now += _TICK_NS
        return self.now

    def _wait(self) -> None:
        raise AssertionError("deadlock: the only process waits for its own lock")

    def _load(self, image: DiskImage, number: int, loaded: dict[int, Node]) -> Node:
        if number in loaded:
            return loaded[number]
        mode = stat.S_IFREG | 0o644 if number in image.files else stat.S_IFDIR | 0o755
        node = loaded[number] = Node(number, image.modes.get(number, mode))
        self._touch(node)
        if node.names is None:
            node.data += image.files[number]
            return node
        for name, each in image.folders[number].items():
            node.names[name] = self._load(image, each, loaded)
            node.names[name].count += 1
        return node

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
        image.files[node.number] = bytes(node.data)
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
