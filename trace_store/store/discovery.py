"""Finding the `.trace` directory.

Rule: a directory that the caller names beats `TRACE_DIR`, which beats looking in the folder and those above it. What
is found by looking must be a real directory of the same user: a repository that belongs to someone else, or a link
to one, is not opened by accident.
"""

from __future__ import annotations

import os
import stat

from trace_store import errors
from trace_store.files import Disk
from trace_store.layout import CONFIG_NAME, DIRECTORY_NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.environment import Environment


def find(
    start: str, environment: Environment, *, explicit: str | None = None, disk: Disk | None = None
) -> str:
    """Return the path of the `.trace` directory to use.

    Args:
        start: the folder to look in, and above.
        environment: says whether to look, and may name a directory.
        explicit: a `.trace` directory, or a folder that holds one, named by the caller.
        disk: how to look.

    Raises:
        RepositoryNotFoundError: there is none.
        NotFoundError: there is no such folder to look in.
        StateError: it belongs to another user, or is a link.
    """
    disk = disk or Disk()
    named = explicit or environment.trace_dir
    if named:
        for path in (named, os.path.join(named, DIRECTORY_NAME)):
            if _is_repository(disk, path):
                return os.path.abspath(path)
        raise errors.RepositoryNotFoundError(f"there is no repository at {named}", path=named)
    folder = os.path.abspath(start)
    if disk.stat(folder) is None:
        raise errors.NotFoundError(f"there is no folder {start}", path=start)
    while True:
        path = os.path.join(folder, DIRECTORY_NAME)
        found = disk.stat(path)
        if found is not None and _is_repository(disk, path):
            _check_owner(path, found)
            return path
        parent = os.path.dirname(folder)
        if parent == folder or not environment.discovery:
            break
        folder = parent
    where = "" if not environment.discovery else " or in any folder above"
    raise errors.RepositoryNotFoundError(f"there is no repository in {start}{where}", path=start)


def _is_repository(disk: Disk, path: str) -> bool:
    return disk.stat(os.path.join(path, CONFIG_NAME)) is not None


def _check_owner(path: str, found: os.stat_result) -> None:
    if not stat.S_ISDIR(found.st_mode):
        raise errors.StateError(f"{path} is a link; name the directory it leads to", path=path)
    if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
        raise errors.StateError(f"{path} belongs to another user; name it to use it", path=path)
