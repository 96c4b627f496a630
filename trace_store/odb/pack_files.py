"""Packs on their way to the disk: written aside, synced, and only then given their names, all of them together.

Rule: a file under a pack's name is complete, and so is its index, which goes first: it can be made again, but whoever
opens it looks at pieces of it only, and would take one that a power cut left in part for one that lacks objects.
"""

from __future__ import annotations

import os

from trace_store import errors
from trace_store.files import CREATE, create_file, write_all
from trace_store.layout import INDEX_SUFFIX, PACK_SUFFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from trace_store.files import Disk

TEMPORARY_PREFIX = "pack-"


class PackFile:
    """A pack that is being written to a file without its final name."""

    __slots__ = ("_disk", "_durable", "_fd", "_path", "name")

    def __init__(self, disk: Disk, folder: str, *, durable: bool) -> None:
        """Create the file.

        Raises:
            StorageError: the disk refuses.
        """
        self._disk = disk
        self._durable = durable
        self._path = os.path.join(folder, f"{TEMPORARY_PREFIX}{os.getpid()}-{os.urandom(6).hex()}")
        fd = disk.open(self._path, CREATE)
        if fd is None:
            raise errors.StorageError("a temporary name is taken", path=self._path)
        self._fd: int | None = fd
        self.name = ""

    def write(self, data: bytes) -> None:
        """Append bytes."""
        assert self._fd is not None
        write_all(self._disk, self._fd, data)

    def complete(self, name: str, index: bytes) -> None:
        """Sync and close the file, and write its index beside it, synced too."""
        fd, self._fd = self._fd, None
        if fd is not None:
            try:
                if self._durable:
                    self._disk.sync(fd)
            finally:
                self._disk.close(fd)
        create_file(self._disk, self._path + INDEX_SUFFIX, index, durable=self._durable)
        self.name = name

    def publish(self, base: str) -> None:
        """Give the file and its index their final path, to which the suffixes are added."""
        self._disk.rename(self._path + INDEX_SUFFIX, base + INDEX_SUFFIX)
        self._disk.rename(self._path, base + PACK_SUFFIX)

    def abandon(self) -> None:
        """Remove what was written and has no name yet."""
        fd, self._fd = self._fd, None
        if fd is not None:
            self._disk.close(fd)
        self._disk.remove(self._path + INDEX_SUFFIX)
        self._disk.remove(self._path)


class PackFiles:
    """Packs that are written one after the other and appear together."""

    __slots__ = ("_base_of", "_disk", "_durable", "_files", "_folder")

    def __init__(
        self, disk: Disk, folder: str, base_of: Callable[[str], str], *, durable: bool = True
    ) -> None:
        """Write nothing yet.

        Args:
            disk: where.
            folder: for the files while they have no name; on the file system of their final place.
            base_of: given a pack's name, returns its final path without the suffix.
            durable: whether a file is synced before it gets its name.
        """
        self._disk = disk
        self._folder = folder
        self._base_of = base_of
        self._durable = durable
        self._files: list[PackFile] = []

    def begin(self) -> PackFile:
        """Return the file of the next pack.

        Raises:
            StorageError: the disk refuses.
        """
        file = PackFile(self._disk, self._folder, durable=self._durable)
        self._files.append(file)
        return file

    def publish(self) -> list[str]:
        """Give the complete ones their names, durably, and return these.

        Raises:
            StorageError: the disk refuses; some may have got their names.
        """
        names: list[str] = []
        folders: dict[str, None] = {}
        while self._files:
            file = self._files[0]
            if file.name:
                base = self._base_of(file.name)
                file.publish(base)
                names.append(file.name)
                folders[os.path.dirname(base) or os.curdir] = None
            del self._files[0]
        for folder in folders if self._durable else ():
            self._disk.sync_directory(folder)
        return names

    def abandon(self) -> None:
        """Remove those without a name."""
        while self._files:
            self._files.pop().abandon()
