"""Tasks in the names of git branches, such as `feature/ENG-456-auth`, `123-fix` or `bd-a3f8`."""

from __future__ import annotations

import os
import re

from trace_store.files import read_file
from trace_store.refs.summary import git_dir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from trace_store.files import Disk

HEAD_BYTES = 4_096
_BRANCH = "ref: refs/heads/"
_BEADS = re.compile(r"(?:^|[/_-])(bd-[a-z0-9]+(?:\.[0-9]+)*)(?=[/_-]|$)")
_KEY = re.compile(r"(?:^|[/_-])([A-Z][A-Z0-9]{0,9}-[0-9]{1,9})(?=[/_-]|$)")
_SMALL_KEY = re.compile(r"(?:^|/)([a-z][a-z0-9]{1,9}-[0-9]{1,9})(?=[/_-]|$)")
_NUMBER = re.compile(r"(?:^|/)(?:gh-|issue-|#)?([1-9][0-9]{0,6})(?=[/_-]|$)")


def git_branch(disk: Disk, root: str) -> str:
    """Return git's branch in the work tree around a folder; "" if there is none.

    Raises:
        StorageError: git's files cannot be read.
    """
    folder = git_dir(disk, root)
    head = (
        None if folder is None else read_file(disk, os.path.join(folder, "HEAD"), limit=HEAD_BYTES)
    )
    text = (head or b"").decode("utf-8", "replace").strip()
    return text.removeprefix(_BRANCH) if text.startswith(_BRANCH) else ""


def named_tasks(branch: str) -> Iterator[tuple[str, str]]:
    """Yield (possible id of a task, words after it) from the name of a branch, likely ids first.

    Issue trackers have ids in upper case, but suggest branch names in lower case.
    """
    for pattern, prefix in ((_BEADS, ""), (_KEY, ""), (_NUMBER, "#"), (_SMALL_KEY, "")):
        for found in pattern.finditer(branch):
            name = found[1].upper() if pattern is _SMALL_KEY else prefix + found[1]
            yield name, " ".join(re.split(r"[/_-]+", branch[found.end() :])).strip()
