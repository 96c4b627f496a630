"""Disk images and kernel events, for simulated power cuts."""

from __future__ import annotations

from typing import TYPE_CHECKING

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


class Image:
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
