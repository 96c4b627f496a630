"""Exported files on the disk.

Rule: a path gets the whole file or keeps what it had; nothing is overwritten that was not meant to be.
"""

from __future__ import annotations

import os
import stat

from trace_store.errors import AlreadyExistsError, StorageError
from trace_store.exporters.contract import Exported
from trace_store.files import CREATE, Disk, write_all


def save_file(disk: Disk, path: str, exported: Exported, *, overwrite: bool = False) -> int:
    """Write an exported file and return its size in bytes.

    Args:
        disk: the access to files.
        path: where to; the folder must be there.
        exported: what to write.
        overwrite: whether a file that is there already is replaced.

    Raises:
        AlreadyExistsError: the path is taken, and `overwrite` is false.
        StorageError: the disk refuses, there is no such folder, or the path is no regular file.
    """
    _check_free(disk, path, overwrite=overwrite)
    folder = os.path.dirname(path) or os.curdir
    if disk.stat(folder) is None:
        raise StorageError(f"there is no folder {folder}", path=path)
    scratch = os.path.join(
        folder, f".{os.path.basename(path)[:100]}.{os.getpid()}-{os.urandom(6).hex()}.tmp"
    )
    fd = disk.open(scratch, CREATE)
    if fd is None:
        raise StorageError("a temporary file stands in the way", path=scratch)
    placed = False
    try:
        try:
            size = 0
            for chunk in exported.chunks():
                write_all(disk, fd, chunk)
                size += len(chunk)
            disk.sync(fd)
        finally:
            disk.close(fd)
        # A link is made only where nothing is; some file systems have none.
        linked = not overwrite and disk.link(scratch, path)
        if not linked:
            _check_free(disk, path, overwrite=overwrite)
            disk.rename(scratch, path)
            placed = True
    finally:
        if not placed:
            disk.remove(scratch)
    disk.sync_directory(folder)
    return size


def _check_free(disk: Disk, path: str, *, overwrite: bool) -> None:
    found = disk.stat(path)
    if found is None:
        return
    if not overwrite:
        raise AlreadyExistsError(f"{path} is there already", path=path)
    if not stat.S_ISREG(found.st_mode):
        raise StorageError(f"not a regular file: {path}", path=path)
