"""What a power cut may leave of what a kernel was told, at every point of a log.

Rule: nothing is on the disk for certain but what a sync covered. Of the rest, each change of names is there or not,
whatever the others are (a rename is there as a whole), and each file has what was synced, or all, or a part: some of
the writes in order, the last one torn between sectors; zeros in the place of what was added; or a hole. A sync of a
file makes nothing of its name certain, a sync of a directory nothing of what is in its files. Where the sync of a file
failed, another one that succeeds makes nothing certain of what was written before: kernels forget what they could not
write.
"""

from __future__ import annotations

from itertools import combinations, product
from random import Random
from typing import TYPE_CHECKING

from trace_store.testing.images import (
    DOUBTED,
    GONE,
    MODE,
    NAMES,
    NAMES_SYNCED,
    SYNCED,
    WRITTEN,
    Image,
    overwritten,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trace_store.testing.images import Event, Naming

SECTOR_BYTES = 512
SCRATCH = frozenset({"tmp", "locks"})
"""Directories of which nothing is read, so the changes of names in them alone come all or none."""
MAXIMUM_WRITES = 6
"""Of so many writes to one file every number may be there; of more the first, the last, and some between."""


class Kernel:
    """What is certain to be on the disk, and what may be.

    Attributes:
        cuts: how many points in the log were looked at.
        bounded: at how many of them only some of the choices were made, because there were too many.
    """

    def __init__(self, image: Image, *, limit: int) -> None:
        """Begin with what is on the disk; at most about `limit` choices are made at one point."""
        self._files = dict(image.files)
        self._folders = {n: dict(names) for n, names in image.folders.items()}
        self._modes = dict(image.modes)
        self._limit = limit
        self._writes: dict[int, list[Event]] = {}
        self._doubted: set[int] = set()
        self._changes: list[tuple[Naming, ...]] = []
        self._scratch: set[int] = {
            n for path, n in image.paths() if path.rpartition("/")[2] in SCRATCH
        }
        self.cuts = 0
        self.bounded = 0

    def tell(self, event: Event) -> None:
        """Do the next thing of a log."""
        number = event.inode
        if event.kind == NAMES:
            self._changes.append(event.namings)
            for _, name, inode in event.namings:
                if name in SCRATCH:
                    self._scratch.add(inode)
            if number not in self._files and number not in self._folders:
                self._begin(event)
        elif event.kind == WRITTEN:
            self._writes.setdefault(number, []).append(event)
        elif event.kind == DOUBTED:
            self._doubted.add(number)
        elif event.kind == SYNCED and number not in self._doubted:
            self._files[number] = _written(self._files[number], self._writes.pop(number, []))
        elif event.kind == NAMES_SYNCED:
            self._sync_names(number)
        elif event.kind == MODE:
            self._modes[number] = event.mode

    def states(self) -> Iterator[Image]:
        """Yield what a power cut at this point may leave; the first is all that was done."""
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
            image = Image(dict(self._files), dict(self._folders), self._modes)
            copied: set[int] = set()
            for change in self._changes:
                if choice[position.get(id(change), len(loose))]:
                    continue
                for folder, name, inode in change:
                    if folder not in copied:
                        image.folders[folder] = dict(image.folders[folder])
                        copied.add(folder)
                    _name(image.folders[folder], name, inode)
            for at, number in enumerate(dirty, len(loose) + 1):
                content = units[at][choice[at]]
                assert isinstance(content, bytes)
                image.files[number] = content
            yield image

    def _begin(self, event: Event) -> None:
        if event.is_folder:
            self._folders[event.inode] = {}
        else:
            self._files[event.inode] = b""

    def _is_scratch(self, change: tuple[Naming, ...]) -> bool:
        return all(folder in self._scratch for folder, _, _ in change)

    def _sync_names(self, number: int) -> None:
        kept: list[tuple[Naming, ...]] = []
        for change in self._changes:
            if not any(folder == number for folder, _, _ in change):
                kept.append(change)
                continue
            places = {(folder, name) for folder, name, _ in change}
            for folder, name, inode in change:
                _name(self._folders[folder], name, inode)
            # What an earlier change made of these names is past; the rest of it is still open.
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

    All first, all last, each group, each one and each two otherwise than these, and then by chance. The groups are the
    changes in one directory, which a sync of that would have covered.
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
    """Return what a file may hold that was written to since it was synced: all of it first, then what was synced."""
    whole = _written(synced, writes)
    found = [whole, synced]
    size = len(whole)
    found.append(synced.ljust(size, b"\0"))
    counts = range(1, len(writes))
    if len(writes) > MAXIMUM_WRITES:
        counts = range(1, len(writes), len(writes) // MAXIMUM_WRITES + 1)
    for count in counts:
        part = _written(synced, writes[:count])
        found += [part, part.ljust(size, b"\0")]
    if writes:
        before, write = _written(synced, writes[:-1]), writes[-1]
        start, end = write.at, write.at + len(write.data)
        for cut in _tears(start, end):
            torn = overwritten(before, start, write.data[: cut - start])
            found += [torn, torn.ljust(size, b"\0")]
        sector = min(end, (start // SECTOR_BYTES + 1) * SECTOR_BYTES)
        if sector < end:  # the first sector did not get there, and the others did
            old = before.ljust(size, b"\0")[start:sector]
            found.append(overwritten(whole, start, old))
    return list(dict.fromkeys(found))


def _tears(start: int, end: int) -> list[int]:
    """Return where a write may be torn: at the first sectors, the middle one and the last, and between two bytes."""
    sectors = range((start // SECTOR_BYTES + 1) * SECTOR_BYTES, end, SECTOR_BYTES)
    chosen = {*sectors[:2], *sectors[-2:], *sectors[len(sectors) // 2 :][:1]}
    return sorted({*chosen, (start + end) // 2, start + min(8, end - start)} - {start, end})


def _written(content: bytes, writes: Sequence[Event]) -> bytes:
    for write in writes:
        content = overwritten(content, write.at, write.data)
    return content


def _name(names: dict[str, int], name: str, inode: int) -> None:
    if inode == GONE:
        names.pop(name, None)
    else:
        names[name] = inode
