"""Objects removed by gc, kept for a while in `quarantine/<time>/objects/…`.

Rule: files move in and out under the journal's lock, and get their new name durably before they lose the old one, so an
object is always in at least one place. Each batch has its own folder, laid out like a repository. A `.gitignore` in the
folder hides it from git.
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


class QuarantineBatch:
    """The files quarantined at one time.

    Attributes:
        name: the folder's name, the time in milliseconds.
        layout: the paths of its files.
    """

    __slots__ = ("layout", "loose", "name", "packs")

    def __init__(self, disk: Disk, layout: Layout, name: str) -> None:
        self.name = name
        self.layout = Layout(os.path.join(layout.quarantine_dir, name))
        self.packs = odb.packs.Packs(disk, self.layout)
        self.loose = odb.loose.LooseObjects(disk, self.layout)

    @property
    def time(self) -> int:
        """When it was quarantined, in milliseconds."""
        return int(self.name)


class Quarantine:
    """All quarantined batches."""

    __slots__ = ("_disk", "_layout", "_takings")

    def __init__(self, disk: Disk, layout: Layout) -> None:
        self._disk = disk
        self._layout = layout
        self._takings: dict[str, QuarantineBatch] = {}

    def batches(self) -> list[QuarantineBatch]:
        """Return the current batches, oldest first."""
        folders, _ = self._disk.scan(self._layout.quarantine_dir)
        names = [name for name in folders if name.isascii() and name.isdecimal()]
        for name in self._takings.keys() - set(names):
            self._takings.pop(name).packs.close()
        for name in sorted(names, key=int):
            if name not in self._takings:
                taking = QuarantineBatch(self._disk, self._layout, name)
                try:
                    check_folders(self._disk, self._layout.root, taking.layout.pack_file(name))
                except errors.StorageError:
                    continue  # a symbolic link could lead outside of the repository
                self._takings[name] = taking
        return list(self._takings.values())

    def read(self, oid: bytes) -> bytes | None:
        """Return an object's bytes, hash-checked, or None if there is no sound copy."""
        for taking in self.batches():
            taking.packs.refresh()
            for place in (taking.packs.read, taking.loose.read):
                try:
                    data = place(oid)
                except (errors.FormatError, errors.StorageError):
                    continue
                if data is not None:
                    return data
        return None

    def take(self, time: int, packs: Iterable[str], loose: Iterable[ObjectId]) -> QuarantineBatch:
        """Move packs and loose objects into a new batch and return it.

        All objects that remain needed must be in other durable packs. Called under the journal's lock; `time` is in
        milliseconds.

        Raises:
            StorageError: a move failed; every file is in at least one of both places.
        """
        disk, folder = self._disk, self._layout.quarantine_dir
        ignored = os.path.join(folder, IGNORED_NAME)
        make_durable_directory(disk, folder)
        if read_file(disk, ignored) != IGNORED:
            disk.remove(ignored)
            create_file(disk, ignored, IGNORED, durable=False)
        while disk.stat(os.path.join(folder, str(time))) is not None:
            time += 1
        taking = QuarantineBatch(disk, self._layout, str(time))
        _move(disk, self._layout, taking.layout, packs, loose)
        self._takings[taking.name] = taking
        return taking

    def restore(self) -> None:
        """Restore everything durably; called under the journal's lock.

        A batch is closed under links, except for links to objects that stayed, so nothing needs to be traversed.
        """
        for taking in self.batches():
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
    """Move packs with their indexes, and loose objects.

    All new names are durable before old ones go.
    """
    names = [
        (source.pack_base(name) + suffix, target.pack_base(name) + suffix)
        for name in packs
        for suffix in (INDEX_SUFFIX, PACK_SUFFIX)  # a pack without an index is still complete
    ]
    names += [(source.loose_file(o.hex()), target.loose_file(o.hex())) for o in loose]
    names = [(old, new) for old, new in names if disk.stat(old) is not None]
    for folder in sorted({os.path.dirname(new) for _, new in names}):
        make_durable_directory(disk, folder)
    for old, new in names:
        if not disk.link(old, new) and disk.stat(new) is None:
            disk.rename(old, new)  # the file system has no links
    for folder in sorted({os.path.dirname(new) for _, new in names}):
        disk.sync_directory(folder)
    for old, _ in names:
        disk.remove(old)
