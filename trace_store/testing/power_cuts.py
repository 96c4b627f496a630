"""Power cuts: a disk in memory that logs its changes, and the states they may leave.

The log has the kernel events in order. A cut may happen at every point of it.

Rule: only synced data is certain. Every other name change is present or not, independently (a rename as a whole). A
file has its synced content, all writes, or a part: some writes in order, the last one torn between sectors; zeros
instead of appended data; or a hole. Syncing a file does not make its name certain, nor syncing a directory the content
of its files. After a failed sync of a file, later successful syncs make none of the earlier writes certain, because
kernels drop what they could not write.
"""

from __future__ import annotations

import stat
import sys
from collections.abc import Iterator, Sequence
from itertools import combinations, count, product
from random import Random

from trace_store.disk.files import READ_ONLY, WRITABLE, Disk
from trace_store.store.memory_disk import ROOT, MemoryDisk, Naming, Node

NAMES, WRITTEN, SYNCED, NAMES_SYNCED, MODE = "names", "written", "synced", "names synced", "mode"
SYNC_FAILED = "sync failed"
GONE = 0

LoggedNaming = tuple[int, str, int]
"""(directory inode, name, inode that the name now refers to; 0 if removed)."""
_START_NS = 1_600_000_000_000_000_000
_TICK_NS = 1_000_001
_DISK_MODULE = "trace_store.disk.files"

SECTOR_BYTES = 512
SCRATCH = frozenset({"tmp", "locks"})
"""Directories that are never read; their name changes are present all or none."""
MAXIMUM_WRITES = 6
"""Up to this many writes to a file, every number may be present; of more, a sample."""


class DiskEvent:
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
        self.log: list[DiskEvent] = []
        self.without = without
        self.links = True
        self.now = _START_NS
        if image is not None:
            self.root = self._load(image, ROOT, {})
            self._numbers = count(max(image.folders | image.files) + 1)

    def write(self, fd: int, data: bytes, at: int | None = None) -> int:
        node, start = self._target(fd, at)
        self._note(DiskEvent(WRITTEN, node.number, at=start, data=bytes(data)))
        return super().write(fd, data, at)

    def sync(self, fd: int) -> None:
        self._note_sync(SYNCED, self._opened(fd)[0])

    def sync_directory(self, path: str) -> None:
        self._note_sync(NAMES_SYNCED, self._required(path))

    def protect(self, fd: int, mode: int = READ_ONLY) -> None:
        self._note(DiskEvent(MODE, self._opened(fd)[0].number, mode=stat.S_IFREG | mode))
        super().protect(fd, mode)

    def link(self, source: str, target: str) -> bool:
        return self.links and super().link(source, target)

    def _note(self, event: DiskEvent) -> None:
        """Log an event before it happens; a subclass may raise to prevent it."""
        self.log.append(event)

    def _change(self, node: Node, *namings: Naming) -> None:
        logged = tuple(
            (folder.number, name, node.number if is_there else GONE)
            for folder, name, is_there in namings
        )
        is_folder = node.names is not None
        self._note(DiskEvent(NAMES, node.number, namings=logged, is_folder=is_folder))
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
            self._note(DiskEvent(kind, node.number, site=site))


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


class Kernel:
    """The certain and the possible content of a disk.

    Attributes:
        cuts: how many points of the log were examined.
        bounded: at how many of them only some choices were made, because there were too many.
    """

    def __init__(self, image: DiskImage, *, limit: int) -> None:
        """Start with a disk image; about `limit` choices are made at each point."""
        self._files = dict(image.files)
        self._folders = {n: dict(names) for n, names in image.folders.items()}
        self._modes = dict(image.modes)
        self._limit = limit
        self._writes: dict[int, list[DiskEvent]] = {}
        self._unreliable: set[int] = set()
        self._changes: list[tuple[LoggedNaming, ...]] = []
        self._scratch: set[int] = {
            n for path, n in image.paths() if path.rpartition("/")[2] in SCRATCH
        }
        self.cuts = 0
        self.bounded = 0

    def apply(self, event: DiskEvent) -> None:
        """Apply the next event of a log."""
        number = event.inode
        if event.kind == NAMES:
            self._changes.append(event.namings)
            for _, name, inode in event.namings:
                if name in SCRATCH:
                    self._scratch.add(inode)
            if number not in self._files and number not in self._folders:
                self._create(event)
        elif event.kind == WRITTEN:
            self._writes.setdefault(number, []).append(event)
        elif event.kind == SYNC_FAILED:
            self._unreliable.add(number)
        elif event.kind == SYNCED and number not in self._unreliable:
            self._files[number] = _written(self._files[number], self._writes.pop(number, []))
        elif event.kind == NAMES_SYNCED:
            self._sync_names(number)
        elif event.kind == MODE:
            self._modes[number] = event.mode

    def states(self) -> Iterator[DiskImage]:
        """Yield the states that a power cut may leave here; the first has everything."""
        loose = [c for c in self._changes if not self._is_scratch(c)]
        units: list[Sequence[object]] = [(True, False)] * (len(loose) + 1)
        dirty = list(self._writes)
        units += [contents(self._files[n], self._writes[n]) for n in dirty]
        self.cuts += 1
        groups: dict[int, list[int]] = {}
        for at, change in enumerate(loose):
            for folder, _, _ in change:
                groups.setdefault(folder, []).append(at)
        choices = self._choices([len(unit) for unit in units], list(groups.values()))
        position = {id(c): at for at, c in enumerate(loose)}
        for choice in choices:
            image = DiskImage(dict(self._files), dict(self._folders), self._modes)
            copied: set[int] = set()
            for change in self._changes:
                if choice[position.get(id(change), len(loose))]:
                    continue
                for folder, name, inode in change:
                    if folder not in copied:
                        image.folders[folder] = dict(image.folders[folder])
                        copied.add(folder)
                    _rename(image.folders[folder], name, inode)
            for at, number in enumerate(dirty, len(loose) + 1):
                content = units[at][choice[at]]
                assert isinstance(content, bytes)
                image.files[number] = content
            yield image

    def _create(self, event: DiskEvent) -> None:
        if event.is_folder:
            self._folders[event.inode] = {}
        else:
            self._files[event.inode] = b""

    def _is_scratch(self, change: tuple[LoggedNaming, ...]) -> bool:
        return all(folder in self._scratch for folder, _, _ in change)

    def _sync_names(self, number: int) -> None:
        kept: list[tuple[LoggedNaming, ...]] = []
        for change in self._changes:
            if not any(folder == number for folder, _, _ in change):
                kept.append(change)
                continue
            places = {(folder, name) for folder, name, _ in change}
            for folder, name, inode in change:
                _rename(self._folders[folder], name, inode)
            # Earlier changes of these names are superseded; their other halves are still open.
            kept = [tuple(n for n in other if n[:2] not in places) for other in kept]
            kept = [other for other in kept if other]
        self._changes = kept

    def _choices(
        self, sizes: list[int], groups: Sequence[Sequence[int]]
    ) -> Iterator[tuple[int, ...]]:
        whole = 1
        for size in sizes:
            whole *= size
        if whole <= self._limit:
            yield from product(*(range(size) for size in sizes))
            return
        self.bounded += 1
        yield from _some_choices(sizes, groups, self._limit)


def _some_choices(
    sizes: Sequence[int], groups: Sequence[Sequence[int]], limit: int
) -> Iterator[tuple[int, ...]]:
    """Yield some of all choices.

    The first ones are all-first, all-last, each group, and each one or two that differ from these; then random ones. A
    group is the changes in one directory, which one sync would cover.
    """
    seen: set[tuple[int, ...]] = set()
    first = (0,) * len(sizes)
    last = tuple(1 if size > 1 else 0 for size in sizes)
    chance = Random(0)

    def candidates() -> Iterator[tuple[int, ...]]:
        yield from (first, last)
        for group in groups:
            yield tuple(1 if at in group else 0 for at in range(len(sizes)))
            yield tuple(0 if at in group else value for at, value in enumerate(last))
        for number in (1, 2):
            for places in combinations(range(len(sizes)), number):
                for values in product(*(range(sizes[place]) for place in places)):
                    for ground in (first, last):
                        choice = list(ground)
                        for place, value in zip(places, values, strict=True):
                            choice[place] = value
                        yield tuple(choice)
        while True:
            yield tuple(chance.randrange(size) for size in sizes)

    for tried, choice in enumerate(candidates()):
        if len(seen) >= limit or tried > 20 * limit:
            return
        if choice not in seen:
            seen.add(choice)
            yield choice


def contents(synced: bytes, writes: Sequence[DiskEvent]) -> list[bytes]:
    """Return the possible contents of a file with unsynced writes.

    The first has all writes, the second none.
    """
    whole = _written(synced, writes)
    states = [whole, synced]
    size = len(whole)
    states.append(synced.ljust(size, b"\0"))
    counts = range(1, len(writes))
    if len(writes) > MAXIMUM_WRITES:
        counts = range(1, len(writes), len(writes) // MAXIMUM_WRITES + 1)
    for kept in counts:
        part = _written(synced, writes[:kept])
        states += [part, part.ljust(size, b"\0")]
    if writes:
        before, write = _written(synced, writes[:-1]), writes[-1]
        start, end = write.at, write.at + len(write.data)
        for cut in _tears(start, end):
            torn = overwrite(before, start, write.data[: cut - start])
            states += [torn, torn.ljust(size, b"\0")]
        sector = min(end, (start // SECTOR_BYTES + 1) * SECTOR_BYTES)
        if sector < end:  # the first sector was lost, the others written
            old = before.ljust(size, b"\0")[start:sector]
            states.append(overwrite(whole, start, old))
    return list(dict.fromkeys(states))


def _tears(start: int, end: int) -> list[int]:
    """Return where a write may be torn: at some sectors, and within one."""
    sectors = range((start // SECTOR_BYTES + 1) * SECTOR_BYTES, end, SECTOR_BYTES)
    chosen = {*sectors[:2], *sectors[-2:], *sectors[len(sectors) // 2 :][:1]}
    return sorted({*chosen, (start + end) // 2, start + min(8, end - start)} - {start, end})


def _written(content: bytes, writes: Sequence[DiskEvent]) -> bytes:
    for write in writes:
        content = overwrite(content, write.at, write.data)
    return content


def _rename(names: dict[str, int], name: str, inode: int) -> None:
    if inode == GONE:
        names.pop(name, None)
    else:
        names[name] = inode
