"""A bundle to read: a file, or a function that reads a stream."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from trace_store.bundles.format import BundleReader, Read
from trace_store.errors import StorageError, UnreadableInputError
from trace_store.files import Disk


@contextmanager
def opened_bundle(source: str | Read) -> Iterator[BundleReader]:
    """Open a bundle for the length of a `with` block; a link to a file is followed, since it was named.

    Raises:
        UnreadableInputError: there is no such file, or it cannot be read.
        CorruptBundleError: it is no bundle.
        UnsupportedFormatError: a newer version wrote it.
    """
    if not isinstance(source, str):
        yield BundleReader(source)
        return
    disk = Disk()
    try:
        fd = disk.open(os.path.realpath(source))
    except (StorageError, ValueError) as error:
        raise UnreadableInputError(f"cannot read {source}: {error}", path=source) from error
    if fd is None:
        raise UnreadableInputError(f"there is no file {source}", path=source)
    try:
        yield BundleReader(_Descriptor(disk, fd).read)
    finally:
        disk.close(fd)


class _Descriptor:
    """An open file that is read from its beginning to its end."""

    __slots__ = ("_at", "_disk", "_fd")

    def __init__(self, disk: Disk, fd: int) -> None:
        self._disk = disk
        self._fd = fd
        self._at = 0

    def read(self, size: int) -> bytes:
        data = self._disk.read_at(self._fd, self._at, size)
        self._at += len(data)
        return data
