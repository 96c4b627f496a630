"""A cheap stamp that shows whether another program may have changed `refs/`.

Rule: it takes two stat calls, however many refs there are. git rewrites its index after changing tracked files. Adding
or removing a branch by hand changes the branches directory.
"""

from __future__ import annotations

import os
import stat

from trace_store import errors
from trace_store.files import read_file, stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.files import Disk
    from trace_store.layout import Layout

_NAME = ".git"
_POINTER = b"gitdir: "
_LONGEST_POINTER = 8192


def change_stamp(disk: Disk, layout: Layout) -> tuple[str, str] | None:
    """Return a stamp that changes when git changes files, or branches come or go.

    None means that git's index changed a moment ago or has no exact time, so that no stamp is reliable.
    """
    index = _index_of_git(disk, layout)
    seen = "none" if index is None else _text(stamp(disk, index))
    return None if seen is None else (seen, branches_stamp(disk, layout))


def branches_stamp(disk: Disk, layout: Layout) -> str:
    """Return the second half of the stamp.

    It also changes when Trace adds or removes a branch.
    """
    found = disk.stat(layout.branches_dir)
    if found is None:
        return "none"
    return f"{found.st_dev}-{found.st_ino}-{found.st_mtime_ns}-{found.st_ctime_ns}"


def _text(seen: object) -> str | None:
    if isinstance(seen, tuple):
        return "-".join(map(str, seen))
    return "none" if seen is None else None


def _index_of_git(disk: Disk, layout: Layout) -> str | None:
    """Return the index path of the enclosing git repository, whether it exists or not.

    Else None.
    """
    folder, above = layout.root, os.path.dirname(layout.root)
    while above != folder:
        folder, above = above, os.path.dirname(above)
        path = os.path.join(folder, _NAME)
        try:
            found = disk.stat(path)
            if found is None:
                continue
            if stat.S_ISREG(
                found.st_mode
            ):  # in a worktree or submodule, `.git` is a file that names the directory
                path = _git_dir(disk, path)
            return os.path.join(path, "index")
        except errors.StorageError:
            return None
    return None


def _git_dir(disk: Disk, path: str) -> str:
    data = read_file(disk, path, limit=_LONGEST_POINTER) or b""
    named = os.fsdecode(data.removeprefix(_POINTER).strip(b"\r\n"))
    return os.path.join(os.path.dirname(path), named)
