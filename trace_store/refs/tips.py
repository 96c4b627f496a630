"""Tip files under `refs/`: one empty file per tip, `refs/heads/main/3f2a…`.

Rule: this module knows files, not their meaning. Other files in a ref's directory are ignored, and reported by
`strays`.
"""

from __future__ import annotations

import os
import stat

from trace_store import errors
from trace_store.base.oid import HEX_CHARACTERS, ObjectId
from trace_store.contracts.ref_names import is_ref_name
from trace_store.disk.files import create_file, stamp, unchanged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trace_store.disk.files import Disk
    from trace_store.disk.layout import Layout

MAXIMUM_REMEMBERED = 256
_HEX = frozenset("0123456789abcdef")


class TipFiles:
    """The tips on disk."""

    __slots__ = ("_disk", "_layout", "_named", "_remembered")

    def __init__(self, disk: Disk, layout: Layout) -> None:
        self._disk = disk
        self._layout = layout
        self._named: set[str] = set()
        """Directories whose names this process has synced."""
        self._remembered: dict[str, tuple[str, object, tuple[ObjectId, ...]]] = {}

    def read(self, name: str) -> tuple[ObjectId, ...]:
        """Return the tips of a ref, sorted; an unchanged directory is listed only once."""
        known = self._remembered.get(name)
        if known is not None and unchanged(self._disk, known[0], known[1]):
            return known[2]
        folder = self._layout.ref_dir(name)
        seen = stamp(self._disk, folder)
        names = [] if seen is None else self._disk.scan(folder)[1]  # None: there is no folder
        tips = tuple(ObjectId.parse(n) for n in names if _is_tip(n))
        if len(self._remembered) >= MAXIMUM_REMEMBERED:
            del self._remembered[next(iter(self._remembered))]
        self._remembered[name] = (folder, seen, tips)
        return tips

    def iterate(self, prefix: str = "refs/") -> Iterator[tuple[str, tuple[ObjectId, ...]]]:
        """Yield (name, tips) of the refs that have a file and start with the prefix."""
        for name, files in self._walk(prefix):
            tips = tuple([ObjectId(bytes.fromhex(n)) for n in files if _is_tip(n)])
            if tips and name.startswith(prefix) and is_ref_name(name):
                yield name, tips

    def strays(self) -> Iterator[str]:
        """Yield the paths (relative to `.trace`) under `refs/` that are not tip files."""
        for name, files in self._walk("refs/"):
            for file in files:
                path = os.path.join(self._layout.ref_dir(name), file)
                found = self._disk.stat(path)
                sound = found is not None and stat.S_ISREG(found.st_mode) and found.st_size == 0
                if not (sound and _is_tip(file) and is_ref_name(name)):
                    yield f"{name}/{file}"

    def write(
        self,
        name: str,
        tips: Sequence[ObjectId],
        present: Sequence[ObjectId],
        published: Sequence[ObjectId] = (),
    ) -> None:
        """Replace the files of a ref: create, sync, remove, sync.

        A file that appeared meanwhile stays, because git adds files without a lock. Files that are not `published` may
        be unsynced, because the process that wrote them may have died; so they are synced with the names of their
        directories.
        """
        folder = self._layout.ref_dir(name)
        added = [tip for tip in tips if tip not in present]
        removed = [tip for tip in present if tip not in tips]
        if added or removed or (tips and not published):
            self._make_directory(name, durable=bool(published))
        for tip in added:
            create_file(self._disk, os.path.join(folder, str(tip)))
        if added or (not removed and set(published) != set(tips) and self._disk.exists(folder)):
            self._disk.sync_directory(folder)
        for tip in removed:
            self._disk.remove(os.path.join(folder, str(tip)))
        if removed:
            self._disk.sync_directory(folder)
        if not tips:
            self._prune(name)

    def add(self, name: str, tip: ObjectId) -> None:
        """Add a tip to a ref durably, as a git merge does."""
        self._make_directory(name, durable=False)
        folder = self._layout.ref_dir(name)
        create_file(self._disk, os.path.join(folder, str(tip)))
        self._disk.sync_directory(folder)

    def _walk(self, prefix: str) -> Iterator[tuple[str, list[str]]]:
        start = prefix.rpartition("/")[0] or "refs"
        stack = [(start, self._layout.ref_dir(start))]
        while stack:
            name, path = stack.pop()
            folders, files = self._disk.scan(path)
            stack += [(f"{name}/{each}", f"{path}{os.sep}{each}") for each in reversed(folders)]
            if files:
                yield name, files

    def _make_directory(self, name: str, *, durable: bool) -> None:
        """Create and sync the directories of a ref, none of which may be a link.

        With `durable`, existing ones are known to be synced.
        """
        path = self._layout.root
        for component in name.split("/"):
            parent = path
            path = os.path.join(path, component)
            found = self._disk.stat(path)
            if found is not None and not stat.S_ISDIR(found.st_mode):
                raise errors.StorageError("not a directory", path=path)
            if found is None:
                self._disk.make_directory(path)
            if found is None or not (durable or path in self._named):
                self._disk.sync_directory(parent)
                self._named.add(path)

    def _prune(self, name: str) -> None:
        while name.count("/") > 1 and self._disk.remove_directory(self._layout.ref_dir(name)):
            self._named.discard(self._layout.ref_dir(name))
            name = name.rpartition("/")[0]


def _is_tip(name: str) -> bool:
    return len(name) == HEX_CHARACTERS and _HEX.issuperset(name)
