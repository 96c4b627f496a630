"""The disk states that a power cut may leave, at every point of a log.

Rule: only synced data is certain. Every other name change is present or not, independently (a rename as a whole). A
file has its synced content, all writes, or a part: some writes in order, the last one torn between sectors; zeros
instead of appended data; or a hole. Syncing a file does not make its name certain, nor syncing a directory the content
of its files. After a failed sync of a file, later successful syncs make none of the earlier writes certain, because
kernels drop what they could not write.
"""

from __future__ import annotations

from itertools import combinations, product
from random import Random
from typing import TYPE_CHECKING

from trace_store.testing.power_cuts import (
    GONE,
    MODE,
    NAMES,
    NAMES_SYNCED,
    SYNC_FAILED,
    SYNCED,
    WRITTEN,
    DiskImage,
    overwrite,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trace_store.testing.power_cuts import Event, LoggedNaming

SECTOR_BYTES = 512
SCRATCH = frozenset({"tmp", "locks"})
"""Directories that are never read; their name changes are present all or none."""
MAXIMUM_WRITES = 6
"""Up to this many writes to a file, every number may be present; of more, a sample."""


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
        self._writes: dict[int, list[Event]] = {}
        self._unreliable: set[int] = set()
        self._changes: list[tuple[LoggedNaming, ...]] = []
        self._scratch: set[int] = {
            n for path, n in image.paths() if path.rpartition("/")[2] in SCRATCH
        }
        self.cuts = 0
        self.bounded = 0

    def apply(self, event: Event) -> None:
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

    def _create(self, event: Event) -> None:
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
        yield from some_choices(sizes, groups, self._limit)


def some_choices(
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
        for count in (1, 2):
            for places in combinations(range(len(sizes)), count):
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


def contents(synced: bytes, writes: Sequence[Event]) -> list[bytes]:
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
    for count in counts:
        part = _written(synced, writes[:count])
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


def _written(content: bytes, writes: Sequence[Event]) -> bytes:
    for write in writes:
        content = overwrite(content, write.at, write.data)
    return content


def _rename(names: dict[str, int], name: str, inode: int) -> None:
    if inode == GONE:
        names.pop(name, None)
    else:
        names[name] = inode
