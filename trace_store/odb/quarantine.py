"""What was taken out of the repository and is kept for a while: `quarantine/<time>/objects/…`.

Rule: things come in and go back by a rename each, under the journal's lock, so an object is always in one of both
places. Each taking has a folder of its own, laid out as a repository is. Git is told to ignore all of it by a file in
the folder itself, which is there before anything else.
"""

from __future__ import annotations

import os

from trace_store import errors, odb
from trace_store.files import check_folders, create_file
from trace_store.layout import INDEX_SUFFIX, PACK_SUFFIX, Layout
from trace_store.odb.packs import pack_names

TYPE_CHECKING = False
if TYPE_CHECKING:
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
        self.packs = odb.Packs(disk, self.layout)
        self.loose = odb.LooseObjects(disk, self.layout)

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

    def begin(self, time: int) -> Taking:
        """Make the folder of what is taken now, and return it; `time` is in milliseconds.

        Raises:
            StorageError: the disk refuses.
        """
        disk, folder = self._disk, self._layout.quarantine_dir
        ignored = os.path.join(folder, IGNORED_NAME)
        if disk.stat(ignored) is None:
            disk.make_directory(folder)
            create_file(disk, ignored, IGNORED)
            disk.sync_directory(folder)
            disk.sync_directory(self._layout.root)
        while disk.stat(os.path.join(folder, str(time))) is not None:
            time += 1
        taking = Taking(disk, self._layout, str(time))
        disk.make_directory(taking.layout.pack_dir)
        for path in (taking.layout.objects_dir, taking.layout.root, folder):
            disk.sync_directory(path)
        self._takings[taking.name] = taking
        return taking

    def take_pack(self, taking: Taking, name: str) -> None:
        """Take a pack all of whose other objects stand in another one that is durable."""
        _move(self._disk, self._layout.pack_base(name), taking.layout.pack_base(name))

    def take_loose(self, taking: Taking, oid: ObjectId) -> None:
        """Take a loose object."""
        source = self._layout.loose_file(oid.hex())
        target = taking.layout.loose_file(oid.hex())
        self._disk.make_directory(os.path.dirname(target))
        self._disk.rename(source, target)

    def settle(self, taking: Taking) -> None:
        """Make durable what was taken: there first, and then that it is gone from where it was."""
        disk = self._disk
        for layout in (taking.layout, self._layout):
            for folder in sorted(
                {os.path.dirname(taking.layout.loose_file(o.hex())) for o in taking.loose.iterate()}
            ):
                moved = os.path.join(layout.objects_dir, os.path.basename(folder))
                if disk.stat(moved) is not None:
                    disk.sync_directory(moved)
            for folder in (layout.pack_dir, layout.objects_dir):
                disk.sync_directory(folder)

    def bring_back(self) -> None:
        """Bring back everything, durably; called under the journal's lock.

        What was taken together leads to itself or to what stayed, so nothing of it has to be followed.
        """
        disk, layout = self._disk, self._layout
        folders: dict[str, None] = {}
        for taking in self.takings():
            for oid in list(taking.loose.iterate()):
                target = layout.loose_file(oid.hex())
                disk.make_directory(os.path.dirname(target))
                disk.rename(taking.layout.loose_file(oid.hex()), target)
                folders[os.path.dirname(target)] = None
            for name in pack_names(disk, taking.layout):
                _move(disk, taking.layout.pack_base(name), layout.pack_base(name))
                folders[layout.pack_dir] = None
            taking.packs.refresh()
        for folder in (*folders, *((layout.objects_dir,) if folders else ())):
            disk.sync_directory(folder)

    def close(self) -> None:
        """Close all files."""
        for taking in self._takings.values():
            taking.packs.close()
        self._takings.clear()


def _move(disk: Disk, source: str, target: str) -> None:
    """Move a pack with its index, which goes first: a pack without one is whole."""
    if disk.stat(source + PACK_SUFFIX) is None:
        return  # git may have taken it away meanwhile
    disk.make_directory(os.path.dirname(target))
    if disk.stat(source + INDEX_SUFFIX) is not None:
        disk.rename(source + INDEX_SUFFIX, target + INDEX_SUFFIX)
    disk.rename(source + PACK_SUFFIX, target + PACK_SUFFIX)
