"""Saving of exported files."""

from __future__ import annotations

from trace_store import exporters
from trace_store.base.frozen import value
from trace_store.disk.files import Disk, read_file
from trace_store.disk.new_file import NewFile
from trace_store.exporters.contract import Exported

_MARK_BYTES = 8_000
"""A page that Trace wrote has its mark in the first bytes."""
_LARGEST_PAGE_BYTES = 1 << 30


@value
class SavedPages:
    """Pages of sessions, and their index, in one folder.

    Attributes:
        index: absolute path of the index.
        pages: id of each session, and the name of its file.
    """

    index: str
    pages: tuple[tuple[str, str], ...]


def save_page(disk: Disk, path: str, exported: Exported, *, overwrite: bool = False) -> int:
    """Write a page and return its size in bytes; without `overwrite` replace only pages that Trace wrote.

    Raises as `save_file`.
    """
    if not overwrite and disk.exists(path):
        data = read_file(disk, path, limit=_LARGEST_PAGE_BYTES) or b""
        overwrite = exporters.html.page.MADE_BY in data[:_MARK_BYTES]
    return save_file(disk, path, exported, overwrite=overwrite)


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
