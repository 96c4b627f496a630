"""Saving of exported files."""

from __future__ import annotations

from trace_store.exporters.contract import Exported
from trace_store.files import Disk
from trace_store.new_file import NewFile


def save_file(disk: Disk, path: str, exported: Exported, *, overwrite: bool = False) -> int:
    """Write an exported file and return its size in bytes.

    Args:
        disk: the file access to use.
        path: the target; its folder must exist.
        exported: the file to write.
        overwrite: replace an existing file.

    Raises:
        AlreadyExistsError: the target exists and `overwrite` is false.
        StorageError: the disk refuses, the folder does not exist, or the target is not a regular file.
    """
    with NewFile(disk, path, overwrite=overwrite) as file:
        for chunk in exported.chunks():
            file.write(chunk)
    return file.size
