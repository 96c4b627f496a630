"""Files to import: which there are, and access to one that may change meanwhile.

Rule: reads through the Disk, and counts what it reads.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Protocol

from trace_store.errors import StorageError, UnreadableInputError
from trace_store.files import Disk
from trace_store.frozen import value
from trace_store.importers.decode import COMPRESSED, plain_content

STDIN = "-"
INNER = "#"
"""Stands between the path of a file that holds several transcripts and the name of one of them."""
AGENT_PREFIX = "agent-"
"""How the names of subagents' files begin."""


class Input(Protocol):
    """Something to import: a file, or what was read from a pipe.

    Attributes:
        path: as it was given.
        size: its bytes when it was opened; what is written later is for next time.
        bytes_read: bytes that were read.
        name: the file's name without the folder and the ending.
        stamp: another one when the file was written to since; empty when nothing is known of that.
    """

    @property
    def path(self) -> str: ...

    @property
    def size(self) -> int: ...

    @property
    def bytes_read(self) -> int: ...

    @property
    def name(self) -> str: ...

    @property
    def stamp(self) -> str: ...

    def read_at(self, offset: int, size: int) -> bytes:
        """Return bytes from an offset; fewer only at the end."""
        ...


class InputBytes:
    """Bytes that are at hand; see `Input`."""

    __slots__ = ("_data", "bytes_read", "name", "path", "size", "stamp")

    def __init__(self, path: str, name: str, data: bytes) -> None:
        self._data = data
        self.path = path
        self.name = name
        self.size = len(data)
        self.stamp = ""
        self.bytes_read = 0

    def read_at(self, offset: int, size: int) -> bytes:
        found = self._data[offset : offset + size]
        self.bytes_read += len(found)
        return found


class InputFile:
    """An open file, as long as it was when it was opened; see `Input`.

    One that is compressed, or UTF-16, is read as the plain text in UTF-8 that it holds.

    Attributes:
        path: as it was given.
        size: its bytes when it was opened; what is written later is for next time.
        bytes_read: bytes that were read.
        stamp: which file it is, and when it was written to last.
    """

    __slots__ = ("_disk", "_fd", "_plain", "bytes_read", "path", "size", "stamp")

    def __init__(self, disk: Disk, path: str) -> None:
        """Open a file; a link is followed, since its owner named it.

        Raises:
            UnreadableInputError: it is not there, is no file, cannot be read, or what is compressed in it is damaged.
        """
        try:
            target = os.path.realpath(path)
            # Before it is opened: what is written later makes another stamp.
            found = disk.stat(target)
            # A pipe would be waited for without end.
            regular = found is None or stat.S_ISREG(found.st_mode)
            fd = disk.open(target) if regular else None
        except (StorageError, ValueError) as error:
            raise UnreadableInputError(f"cannot be read: {path}", path=path) from error
        if not regular:
            raise UnreadableInputError(f"not a regular file: {path}", path=path)
        if fd is None:
            raise UnreadableInputError(f"no such file: {path}", path=path)
        self._disk = disk
        self._fd = fd
        self.path = path
        self.size = disk.size(fd)
        self.stamp = "" if found is None else f"{found.st_ino}-{found.st_mtime_ns}"
        self.bytes_read = 0
        self._plain: bytes | None = None
        try:
            self._plain = plain_content(path, self.size, self.read_at)
        except BaseException:
            disk.close(fd)
            raise
        if self._plain is not None:
            self.size = len(self._plain)

    @property
    def name(self) -> str:
        """The file's name without the folder and the ending."""
        name = os.path.basename(self.path)
        if self._plain is not None and name.endswith(COMPRESSED):
            name = os.path.splitext(name)[0]
        return os.path.splitext(name)[0]

    def read_at(self, offset: int, size: int) -> bytes:
        """Return bytes from an offset; fewer only at the end.

        Raises:
            UnreadableInputError: the disk refuses.
        """
        if self._plain is not None:
            return self._plain[offset : offset + size]
        try:
            data = self._disk.read_at(self._fd, offset, size)
        except StorageError as error:
            raise UnreadableInputError(f"cannot be read: {self.path}", path=self.path) from error
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


@value
class Inner:
    """A transcript in a file that holds several, each of which is imported by itself.

    Attributes:
        path: that of the file, INNER, and what tells it from the others.
        name: what a file of its own would be called, without the ending.
        read: returns its bytes, as a file of its own would have them.
    """

    path: str
    name: str
    read: Callable[[], bytes]

    def open(self) -> InputBytes:
        """Return it as something to import; errors as in `read`."""
        return InputBytes(self.path, self.name, self.read())


def files_in(folder: str, disk: Disk, suffixes: Sequence[str]) -> list[str]:
    """Return the files with one of some endings in a folder and the folders in it, sorted.

    No links to folders are followed, nor links to files outside. A folder that cannot be read stands for what
    is in it.
    """
    found: list[str] = []
    root = os.path.join(os.path.realpath(folder), "")
    waiting = [folder]
    while waiting:
        path = waiting.pop()
        try:
            folders, files = disk.scan(path)
        except StorageError:
            found.append(path)
            continue
        found += [
            file
            for name in files
            if name.endswith(tuple(suffixes)) and _lies_in(file := os.path.join(path, name), root)
        ]
        waiting += [os.path.join(path, name) for name in reversed(folders)]
    return found


def _lies_in(path: str, root: str) -> bool:
    """Return True if a path, whatever links it takes, leads to something in a folder."""
    return os.path.join(os.path.realpath(path), "").startswith(root)


def is_folder(path: str) -> bool:
    """Tell whether a path is a folder, or a link to one."""
    return os.path.isdir(path)


def is_of_agent(path: str) -> bool:
    """Tell from its name whether a file is a subagent's."""
    return os.path.basename(path).startswith(AGENT_PREFIX)
