"""Input files: listing, and access to a file that may change while it is read."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from typing import Protocol

from trace_store.errors import StorageError, UnreadableInputError
from trace_store.files import Disk
from trace_store.frozen import value
from trace_store.importers.decode import COMPRESSED, plain_content

STDIN = "-"
INNER = "#"
"""Separates the path of a file with several transcripts from the name of one."""
AGENT_PREFIX = "agent-"
"""Prefix of the names of subagent files."""


class Input(Protocol):
    """An input: a file, or bytes read from a pipe.

    Attributes:
        path: path as given.
        size: size in bytes when opened; later data is left for the next import.
        bytes_read: bytes read so far.
        name: file name without folder and suffix.
        stamp: changes when the file is written to; "" if unknown.
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
        """Return bytes at an offset; fewer only at the end."""
        ...


class InputBytes:
    """An input in memory; see `Input`."""

    __slots__ = ("_data", "bytes_read", "name", "path", "size", "stamp")

    def __init__(self, path: str, name: str, data: bytes) -> None:
        self._data = data
        self.path = path
        self.name = name
        self.size = len(data)
        self.stamp = ""
        self.bytes_read = 0

    def read_at(self, offset: int, size: int) -> bytes:
        data = self._data[offset : offset + size]
        self.bytes_read += len(data)
        return data


class InputFile:
    """An open file of fixed size; see `Input`.

    A compressed or UTF-16 file is read as its UTF-8 content.

    Attributes:
        path: path as given.
        size: size in bytes when opened; later data is left for the next import.
        bytes_read: bytes read so far.
        stamp: inode and modification time.
    """

    __slots__ = ("_disk", "_fd", "_plain", "bytes_read", "path", "size", "stamp")

    def __init__(self, disk: Disk, path: str) -> None:
        """Open a file, following symbolic links.

        Raises:
            UnreadableInputError: it does not exist, is not a regular file, cannot be read, or its compressed
                content is damaged.
        """
        try:
            target = os.path.realpath(path)
            # Before opening: a later write changes the stamp.
            status = disk.stat(target)
            # Opening a pipe would block.
            regular = status is None or stat.S_ISREG(status.st_mode)
            fd = disk.open(target) if regular else None
        except (StorageError, ValueError) as error:
            raise UnreadableInputError(f"cannot read: {path}", path=path) from error
        if not regular:
            raise UnreadableInputError(f"not a regular file: {path}", path=path)
        if fd is None:
            raise UnreadableInputError(f"no such file: {path}", path=path)
        self._disk = disk
        self._fd = fd
        self.path = path
        self.size = disk.size(fd)
        self.stamp = "" if status is None else f"{status.st_ino}-{status.st_mtime_ns}"
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
        """File name without folder and suffix."""
        name = os.path.basename(self.path)
        if self._plain is not None and name.endswith(COMPRESSED):
            name = os.path.splitext(name)[0]
        return os.path.splitext(name)[0]

    def read_at(self, offset: int, size: int) -> bytes:
        """Return bytes at an offset; fewer only at the end.

        Raises:
            UnreadableInputError: the disk refuses.
        """
        if self._plain is not None:
            return self._plain[offset : offset + size]
        try:
            data = self._disk.read_at(self._fd, offset, size)
        except StorageError as error:
            raise UnreadableInputError(f"cannot read: {self.path}", path=self.path) from error
        self.bytes_read += len(data)
        return data

    def __enter__(self) -> InputFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._disk.close(self._fd)


@value
class Inner:
    """A transcript inside a file that holds several.

    Attributes:
        path: path of the file, INNER, and the transcript's name.
        name: name for a file of its own, without suffix.
        read: returns its bytes, as a file of its own would have them.
    """

    path: str
    name: str
    read: Callable[[], bytes]

    def open(self) -> InputBytes:
        """Return it as an input; errors as in `read`."""
        return InputBytes(self.path, self.name, self.read())


def files_in(folder: str, disk: Disk, suffixes: Sequence[str]) -> list[str]:
    """Return the files with one of the suffixes in a folder tree, sorted.

    Symbolic links to folders, or to files outside, are not followed. An unreadable folder is listed itself.
    """
    paths: list[str] = []
    root = os.path.join(os.path.realpath(folder), "")
    pending = [folder]
    while pending:
        path = pending.pop()
        try:
            folders, files = disk.scan(path)
        except StorageError:
            paths.append(path)
            continue
        paths += [
            file
            for name in files
            if name.endswith(tuple(suffixes)) and _is_inside(file := os.path.join(path, name), root)
        ]
        pending += [os.path.join(path, name) for name in reversed(folders)]
    return paths


def _is_inside(path: str, root: str) -> bool:
    """Return True if a path resolves to something inside a folder."""
    return os.path.join(os.path.realpath(path), "").startswith(root)


def is_folder(path: str) -> bool:
    """Return True if a path is a folder or a link to one."""
    return os.path.isdir(path)


def is_of_agent(path: str) -> bool:
    """Return True if a file name is a subagent's."""
    return os.path.basename(path).startswith(AGENT_PREFIX)
