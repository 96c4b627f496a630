"""Files to import: which there are, and access to one that may change meanwhile.

Rule: reads through the Disk, and counts what it reads.
"""

from __future__ import annotations

import os
from types import TracebackType

from trace_store.errors import StorageError, UnreadableInputError
from trace_store.files import Disk

SUFFIX = ".jsonl"
AGENT_PREFIX = "agent-"
"""How the names of subagents' files begin."""
HEAD_BYTES = 256 * 1024
"""What is looked at to tell the format."""


class InputFile:
    """An open file, as long as it was when it was opened.

    Attributes:
        path: as it was given.
        size: its bytes when it was opened; what is written later is for next time.
        bytes_read: bytes that were read.
    """

    __slots__ = ("_disk", "_fd", "bytes_read", "path", "size")

    def __init__(self, disk: Disk, path: str) -> None:
        """Open a file; a link is followed, since its owner named it.

        Raises:
            UnreadableInputError: it is not there, is no file, or cannot be read.
        """
        try:
            fd = disk.open(os.path.realpath(path))
        except (StorageError, ValueError) as error:
            raise UnreadableInputError(f"cannot be read: {path}", path=path) from error
        if fd is None:
            raise UnreadableInputError(f"no such file: {path}", path=path)
        self._disk = disk
        self._fd = fd
        self.path = path
        self.size = disk.size(fd)
        self.bytes_read = 0

    @property
    def name(self) -> str:
        """The file's name without the folder and the ending."""
        return os.path.splitext(os.path.basename(self.path))[0]

    def read_at(self, offset: int, size: int) -> bytes:
        """Return bytes from an offset; fewer only at the end."""
        data = self._disk.read_at(self._fd, offset, size)
        self.bytes_read += len(data)
        return data

    def __enter__(self) -> InputFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._disk.close(self._fd)


def files_in(folder: str, disk: Disk) -> list[str]:
    """Return the `.jsonl` files in a folder and the folders in it, sorted; links in it are not followed."""
    folders, files = disk.scan(folder)
    found = [os.path.join(folder, name) for name in files if name.endswith(SUFFIX)]
    for name in folders:
        found += files_in(os.path.join(folder, name), disk)
    return found


def is_folder(path: str) -> bool:
    """Tell whether a path is a folder, or a link to one."""
    return os.path.isdir(path)


def is_of_agent(path: str) -> bool:
    """Tell from its name whether a file is a subagent's."""
    return os.path.basename(path).startswith(AGENT_PREFIX)
