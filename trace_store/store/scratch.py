"""Scratch copies of a repository in memory, for verbs that say what they would do."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from trace_store.contracts import FAST
from trace_store.disk.files import Disk, create_file, read_file
from trace_store.store.memory_disk import MemoryDisk
from trace_store.store.store import Store

_TRANSIENT = ("tmp", "locks")
"""Folders of a repository that a copy does not need."""


@contextmanager
def scratch_copy(store: Store) -> Iterator[Store]:
    """Open a copy of a repository in memory; what is written to it is gone at the end.

    Raises:
        StorageError: the repository cannot be read.
    """
    disk, root = MemoryDisk(), store.layout.root
    disk.make_directory(root)
    _copy(store.disk, disk, root, leave_out=_TRANSIENT)
    with Store.open(root, disk=disk, clock=store.clock, durability=FAST) as copy:
        yield copy


@contextmanager
def empty_copy(store: Store) -> Iterator[Store]:
    """Open a repository in memory with the settings of another one, and nothing else.

    Raises:
        StorageError: the repository cannot be read.
    """
    disk, layout = MemoryDisk(), store.layout
    for folder in (layout.pack_dir, layout.refs_dir):
        disk.make_directory(folder)
    config = read_file(store.disk, layout.config_file)
    create_file(disk, layout.config_file, config or b"", durable=False)
    with Store.open(layout.root, disk=disk, clock=store.clock, durability=FAST) as copy:
        yield copy


def _copy(source: Disk, target: Disk, folder: str, leave_out: tuple[str, ...] = ()) -> None:
    """Copy the files and folders below a folder."""
    folders, files = source.scan(folder)
    for name in files:
        path = os.path.join(folder, name)
        data = read_file(source, path)
        if data is not None:  # it may be removed meanwhile
            create_file(target, path, data, durable=False)
    for name in folders:
        if name not in leave_out:
            path = os.path.join(folder, name)
            target.make_directory(path)
            _copy(source, target, path)
