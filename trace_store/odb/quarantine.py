"""What was taken out of the repository and is kept for a while: `quarantine/<time>/objects/…`.

Rule: things come in and go back under the journal's lock, and get their new names durably before they lose the old
ones, so an object is always in one of both places. Each taking has a folder of its own, laid out as a repository is.
Git is told to ignore all of it by a file in the folder itself.
"""

from __future__ import annotations

import os

from trace_store import errors, odb
from trace_store.files import check_folders, create_file, make_durable_directory, read_file
from trace_store.layout import INDEX_SUFFIX, PACK_SUFFIX, Layout
from trace_store.odb.packs import pack_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from trace_store.files import Disk
    from trace_store.oid import ObjectId

IGNORED_NAME = ".gitignore"
IGNORED = b"*\n"


class Taking:
    """What was taken at one time.

    Attributes:
        name: the time, in milliseconds, as the folder is called.
        layout: where its files are.
    """

    __slots__ = ("layout", "loose", "name", "packs")

    def __init__(self, disk: Disk, layout: Layout, name: str) -> None:
        self.name = name
        self.layout = Layout(os.path.join(layout.quarantine_dir, name))
        self.packs = odb.packs.Packs(disk, self.layout)
        self.loose = odb.loose.LooseObjects(disk, self.layout)

    @property
    def time(self) -> int:
        """When it was taken, in milliseconds."""
        return int(self.name)


class Quarantine:
    """All that was taken and is still there."""

    __slots__ = ("_disk", "_layout", "_takings")

    def __init__(self, disk: Disk, layout: Layout) -> None:
        self._disk = disk
        self._layout = layout
        self._takings: dict[str, Taking] = {}

    def takings(self) -> list[Taking]:
        """Return what there is now, oldest first."""
        folders, _ = self._disk.scan(self._layout.quarantine_dir)
        names = [name for name in folders if name.isascii() and name.isdecimal()]
        for name in self._takings.keys() - set(names):
            self._takings.pop(name).packs.close()
        for name in sorted(names, key=int):
            if name not in self._takings:
                taking = Taking(self._disk, self._layout, name)
                try:
                    check_folders(self._disk, self._layout.root, taking.layout.pack_file(name))
                except errors.StorageError:
                    continue  # through a link it would be elsewhere that things are moved from
                self._takings[name] = taking
        return list(self._takings.values())

    def read(self, oid: bytes) -> bytes | None:
        """Return an object's bytes, hash-checked, or None when there is no sound copy."""
        for taking in self.takings():
            taking.packs.refresh()
            for place in (taking.packs.read, taking.loose.read):
                try:
                    data = place(oid)
                except (errors.FormatError, errors.StorageError):
                    continue
                if data is not None:
                    return data
        return None

    def take(self, time: int, packs: Iterable[str], loose: Iterable[ObjectId]) -> Taking:
        """Take packs all of whose other objects stand in durable ones, and loose objects; return where they are.

        Called under the journal's lock; `time` is in milliseconds.

        Raises:
            StorageError: the disk refuses; what was taken is in one of both places, or in both.
        """
        disk, folder = self._disk, self._layout.quarantine_dir
        ignored = os.path.join(folder, IGNORED_NAME)
        make_durable_directory(disk, folder)
        if read_file(disk, ignored) != IGNORED:
            disk.remove(ignored)
            create_file(disk, ignored, IGNORED, durable=False)
        while disk.stat(os.path.join(folder, str(time))) is not None:
            time += 1
        taking = Taking(disk, self._layout, str(time))
        _move(disk, self._layout, taking.layout, packs, loose)
        self._takings[taking.name] = taking
        return taking

    def bring_back(self) -> None:
        """Bring back everything, durably; called under the journal's lock.

        What was taken together leads to itself or to what stayed, so nothing of it has to be followed.
        """
        for taking in self.takings():
            packs = pack_names(self._disk, taking.layout)
            _move(self._disk, taking.layout, self._layout, packs, taking.loose.iterate())
            taking.packs.refresh()

    def close(self) -> None:
        """Close all files."""
        for taking in self._takings.values():
            taking.packs.close()
        self._takings.clear()


def _move(
    disk: Disk,
    source: Layout,
    target: Layout,
    packs: Iterable[str],
    loose: Iterable[ObjectId],
) -> None:
    """Move packs with their indexes, and loose objects: all of it is durable there before any of it goes here."""
    names = [
        (source.pack_base(name) + suffix, target.pack_base(name) + suffix)
        for name in packs
        for suffix in (INDEX_SUFFIX, PACK_SUFFIX)  # a pack without an index is whole
    ]
    names += [(source.loose_file(o.hex()), target.loose_file(o.hex())) for o in loose]
    names = [(here, there) for here, there in names if disk.stat(here) is not None]
    for folder in sorted({os.path.dirname(there) for _, there in names}):
        make_durable_directory(disk, folder)
    for here, there in names:
        if not disk.link(here, there) and disk.stat(there) is None:
            disk.rename(here, there)  # a file system without links
    for folder in sorted({os.path.dirname(there) for _, there in names}):
        disk.sync_directory(folder)
    for here, _ in names:
        disk.remove(here)
