"""What is on a disk, and what a kernel was told to do with it: values, for power cuts."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

NAMES, WRITTEN, SYNCED, NAMES_SYNCED, MODE = "names", "written", "synced", "names synced", "mode"
DOUBTED = "doubted"
ROOT = 1
GONE = 0

Naming = tuple[int, str, int]
"""In the directory with this number, this name stands for that inode; for none when that is 0."""


class Event:
    """One thing the kernel was told.

    Attributes:
        kind: `NAMES`, `WRITTEN`, `SYNCED`, `NAMES_SYNCED`, `MODE`, or `DOUBTED` when the sync of a file failed.
        inode: of which file or directory; of `NAMES` the one it is about.
        namings: what `NAMES` changes, all together or not at all.
        is_folder: whether that is a directory.
        at, data: what was written where.
        mode: what `MODE` made of it.
        site: which line of the library asked for a sync.
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
    """What is on a disk: the bytes of each file, the names in each directory, and the modes that are not usual."""

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
        """Yield (path, inode) of all that has a name, parents first, but for directories that are called so."""
        stack = [("", ROOT)]
        while stack:
            path, folder = stack.pop()
            for name, inode in self.folders[folder].items():
                yield f"{path}/{name}", inode
                if inode in self.folders and name not in skipped:
                    stack.append((f"{path}/{name}", inode))

    def key(self, skipped: frozenset[str]) -> frozenset[tuple[str, bytes | None, int]]:
        """Return a value that is equal for images that hold the same, but for what is in the skipped directories."""
        files, modes = self.files, self.modes
        return frozenset([(path, files.get(n), modes.get(n, 0)) for path, n in self.paths(skipped)])


def overwritten(content: bytes, at: int, data: bytes) -> bytes:
    """Return bytes with others written over them from an offset, with zeros between when that is beyond their end."""
    return content[:at].ljust(at, b"\0") + data + content[at + len(data) :]
