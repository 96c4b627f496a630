"""Creation of a repository's directory.

Rule: it is built under a temporary name and then renamed, so it is never incomplete.
"""

from __future__ import annotations

import os

from trace_store import errors
from trace_store.config import new_config
from trace_store.files import create_file, read_file, replace_file
from trace_store.layout import ATTRIBUTES, IGNORED, TEMPORARY_PREFIX, Layout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.files import Disk


def create(disk: Disk, target: str, store_id: bytes) -> None:
    """Create an empty repository whose `.trace` directory is `target`.

    Raises:
        AlreadyExistsError: the path exists.
        StorageError: the disk failed.
    """
    folder = os.path.dirname(target)
    if disk.stat(target) is not None:
        raise errors.AlreadyExistsError(f"there is already something at {target}", path=target)
    building = Layout(os.path.join(folder, TEMPORARY_PREFIX + os.urandom(6).hex()))
    for directory in (building.pack_dir, building.refs_dir):
        disk.make_directory(directory)
    create_file(disk, building.config_file, new_config(store_id.hex()).encode())
    create_file(disk, building.ignore_file, IGNORED.encode())
    create_file(disk, building.attributes_file, ATTRIBUTES.encode())
    disk.sync_directory(building.root)
    try:
        disk.rename(building.root, target)
    except errors.StorageError as error:
        _remove_new(disk, building)
        if disk.stat(target) is None:
            raise
        raise errors.AlreadyExistsError(
            f"there is already something at {target}", path=target
        ) from error
    disk.sync_directory(folder)


def restore_config(disk: Disk, layout: Layout) -> bool:
    """Restore a missing configuration from its second copy; return False without one.

    A configuration is missing if git deleted it, for example with `git clean` before it was committed.

    Raises:
        StorageError: the disk failed.
    """
    kept = read_file(disk, layout.kept_config_file)
    if kept is None:
        return False
    for path, text in ((layout.ignore_file, IGNORED), (layout.attributes_file, ATTRIBUTES)):
        if not disk.exists(path):
            create_file(disk, path, text.encode(), durable=False)
    replace_file(disk, layout.config_file, kept, durable=False)
    return True


def _remove_new(disk: Disk, layout: Layout) -> None:
    for file in (layout.config_file, layout.ignore_file, layout.attributes_file):
        disk.remove(file)
    for directory in (layout.pack_dir, layout.objects_dir, layout.refs_dir, layout.root):
        disk.remove_directory(directory)
