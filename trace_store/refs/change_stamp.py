"""A cheap sign of whether somebody else may have changed the files under `refs/`.

Rule: two looks at a few paths, however many refs there are. git writes its index anew after it has changed what it
tracks, whatever made it; and who adds or removes a branch by hand changes the directory of the branches.
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


def sign_of(disk: Disk, layout: Layout) -> tuple[str, str] | None:
    """Return what differs once git has changed files, and once branches came or went in another way.

    None says that git was at work a moment ago, or that its index has no exact time, so that nothing can be told by it.
    """
    index = _index_of_git(disk, layout)
    seen = "none" if index is None else _text(stamp(disk, index))
    return None if seen is None else (seen, sign_of_branches(disk, layout))


def sign_of_branches(disk: Disk, layout: Layout) -> str:
    """Return the second half of the sign alone, which changes when Trace makes or removes a branch, too."""
    found = disk.stat(layout.branches_dir)
    if found is None:
        return "none"
    return f"{found.st_dev}-{found.st_ino}-{found.st_mtime_ns}-{found.st_ctime_ns}"


def _text(seen: object) -> str | None:
    if isinstance(seen, tuple):
        return "-".join(map(str, seen))
    return "none" if seen is None else None


def _index_of_git(disk: Disk, layout: Layout) -> str | None:
    """Return the path of the index of the git repository around, whether there is one yet or not."""
    folder, above = layout.root, os.path.dirname(layout.root)
    while above != folder:
        folder, above = above, os.path.dirname(above)
        path = os.path.join(folder, _NAME)
        try:
            found = disk.stat(path)
            if found is None:
                continue
            if stat.S_ISREG(found.st_mode):  # of a worktree or a submodule: it names the directory
                path = _named_in(disk, path)
            return os.path.join(path, "index")
        except errors.StorageError:
            return None
    return None


def _named_in(disk: Disk, path: str) -> str:
    data = read_file(disk, path, limit=_LONGEST_POINTER) or b""
    named = os.fsdecode(data.removeprefix(_POINTER).strip(b"\r\n"))
    return os.path.join(os.path.dirname(path), named)
