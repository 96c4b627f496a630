"""Creation of a repository's directory.

Rule: it is built under a temporary name and then renamed, so it is never incomplete.
"""

from __future__ import annotations

import os

from trace_store import errors
from trace_store.disk.files import create_file, read_file, replace_file
from trace_store.disk.git import ask_git, find_git
from trace_store.disk.layout import (
    ATTRIBUTES,
    CONFIG_NAME,
    DIRECTORY_NAME,
    IGNORED,
    TEMPORARY_PREFIX,
    Layout,
)
from trace_store.store.config import new_config

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.disk.files import Disk

_HIDDEN = "*\n"
"""A `.gitignore` for all files, itself included; git overwrites such files when it switches to a branch with them."""


def create(disk: Disk, target: str, store_id: bytes) -> None:
    """Create an empty repository whose `.trace` directory is `target`.

    Raises:
        AlreadyExistsError: the path exists, or git has it, although not in the work tree.
        StorageError: the disk failed.
    """
    folder = os.path.dirname(target)
    if disk.stat(target) is not None:
        raise _taken(disk, target)
    refuse_what_git_has(disk, folder, errors.AlreadyExistsError)
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
        raise _taken(disk, target) from error
    disk.sync_directory(folder)


def _taken(disk: Disk, target: str) -> errors.AlreadyExistsError:
    """Return the error for a path that exists."""
    is_repository = disk.exists(Layout(target).config_file)
    what = "a repository" if is_repository else "something else"
    return errors.AlreadyExistsError(f"there is already {what} at {target}", path=target)


def refuse_what_git_has(disk: Disk, folder: str, error: type[errors.TraceError]) -> None:
    """Raise an error if git tracks a repository of this folder or one above that is not in the work tree."""
    git = find_git(disk, os.path.join(folder, DIRECTORY_NAME)) if disk.has_paths else None
    if git is None:
        return
    above, names = folder, [os.path.join(DIRECTORY_NAME, CONFIG_NAME)]
    while above != os.path.dirname(git) and above != os.path.dirname(above):
        above = os.path.dirname(above)
        names.append(os.path.join(os.pardir, names[-1]))
    listed = ask_git(folder, "ls-files", "-t", "-z", "--", *names) or ""
    for entry in filter(None, listed.split("\0")):
        path = os.path.dirname(entry[2:])
        why, hint = "it was removed from the work tree", f"`git checkout -- {path}` restores it"
        if entry[0] == "S":
            why, hint = "a sparse checkout leaves it out", f"`git sparse-checkout add {path}`"
        raise error(f"git has the repository {path}, but {why}", path=path, hint=hint)


def restore_config(disk: Disk, layout: Layout) -> bool:
    """Restore a missing configuration from its second copy; return False without one.

    Git deleted it: `git clean` did before it was committed, or the branch that git checked out has no `.trace`. On such
    a branch all of it is hidden from git until something is sealed. Otherwise git would add what is local, and would
    not switch back over the restored files.

    Raises:
        StorageError: the disk failed.
    """
    kept = read_file(disk, layout.kept_config_file)
    if kept is None:
        return False
    ignored = _HIDDEN if _is_in_git(disk, layout) else IGNORED
    for path, text in ((layout.ignore_file, ignored), (layout.attributes_file, ATTRIBUTES)):
        if not disk.exists(path):
            create_file(disk, path, text.encode(), durable=False)
    replace_file(disk, layout.config_file, kept, durable=False)
    return True


def show_to_git(disk: Disk, layout: Layout) -> None:
    """Let git see a repository that `restore_config` hid.

    Raises:
        StorageError: the disk failed.
    """
    if read_file(disk, layout.ignore_file) == _HIDDEN.encode():
        replace_file(disk, layout.ignore_file, IGNORED.encode(), durable=False)


def _is_in_git(disk: Disk, layout: Layout) -> bool:
    """Return True if a commit of some git branch has the configuration."""
    if find_git(disk, layout.root) is None:
        return False
    folder, own = os.path.split(layout.root)
    return bool(ask_git(folder, "rev-list", "--max-count=1", "--all", "--", f"{own}/{CONFIG_NAME}"))


def _remove_new(disk: Disk, layout: Layout) -> None:
    for file in (layout.config_file, layout.ignore_file, layout.attributes_file):
        disk.remove(file)
    for directory in (layout.pack_dir, layout.objects_dir, layout.refs_dir, layout.root):
        disk.remove_directory(directory)
