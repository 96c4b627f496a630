"""Detection of refs that another program rewound under a running process.

    adopted
    3f2a…64 hex digits… refs/heads/main
    …

Rule: a process remembers the last value of each ref that it saw or wrote. A different value must be explained by the
journals, by ancestry, or by the reflog. Otherwise git or another program moved the ref, and nothing is written on top.
The file `local/adopted` has the values that a user accepted since. A new process takes the files as they are.
"""

from __future__ import annotations

from trace_store import errors, refs
from trace_store.base.oid import ObjectId
from trace_store.contracts.ref_names import RECOVERED
from trace_store.disk.files import read_file, replace_file
from trace_store.refs.reflog import GIT, MOVED_BY_GIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from trace_store.disk.files import Disk
    from trace_store.disk.layout import Layout
    from trace_store.journal.journal import Journal
    from trace_store.refs.database import RefDatabase

    Change = tuple[str, ObjectId | None, ObjectId | None]

_HEAD = "adopted"
_NANOSECONDS = 1_000_000


class RewindGuard:
    """Explains changed ref values for one process."""

    __slots__ = ("_disk", "_journal", "_layout", "_refs")

    def __init__(self, disk: Disk, layout: Layout, journal: Journal, database: RefDatabase) -> None:
        self._disk = disk
        self._layout = layout
        self._journal = journal
        self._refs = database

    def check(self, name: str, had: ObjectId, now: ObjectId | None) -> None:
        """Check that a ref's change from a known value is explained.

        Raises:
            RewoundError: it is not.
        """
        if self.explains(name, had, now) or self._is_adopted(name, now):
            return
        was, became = had.short(), "gone" if now is None else f"at {now.short()}"
        raise errors.RewoundError(
            f"another program rewound the repository: {name} was at {was}, now it is {became}",
            ref=name,
            before=had,
            now=now,
        )

    def is_gone(self, name: str) -> bool:
        """Return True if all published files of a ref are gone without an explanation."""
        if name in self._journal.fold.refs or name in self._refs.removed_by_git:
            return False
        published = self._journal.published.tips.get(name)
        return bool(published) and not self._refs.files.read(name)

    def untold(self, moved: Sequence[Change]) -> list[Change]:
        """Return the moves of other programs that no command has reported yet, and remember all.

        If they cannot be remembered, the next command reports them again.
        """
        named = {
            f"{before or '-'} {now or '-'} {name}": (name, before, now)
            for name, before, now in moved
        }
        path = self._layout.told_file
        try:
            data = read_file(self._disk, path)
            told = (data or b"").decode("utf-8", "replace").splitlines()
            if data is not None and not named:
                self._disk.remove(path)
            elif set(told) != named.keys():
                content, scratch = "\n".join(named).encode(), self._layout.tmp_dir
                replace_file(self._disk, path, content, durable=False, scratch=scratch)
        except errors.StorageError:
            return list(moved)
        return [named[line] for line in named if line not in told]

    def explains(self, name: str, had: ObjectId, now: ObjectId | None) -> bool:
        """Return True if the ref moved by a command of Trace, or fast-forwarded."""
        fold = self._journal.fold.refs.get(name)
        if fold is not None and had in fold.passed:
            return True
        if self._is_lost(name, had):
            return True
        if now is not None and self._refs.lineage.is_ancestor(had, now):
            return True
        if self._is_kept(name, had):
            return True
        recent = refs.reflog.entries_of(self._journal.fold.frames).get(name, [])
        path = self._layout.log_file(name)
        for entry in refs.reflog.newest_first(self._disk, path, recent):
            if (entry.author, entry.message) == (GIT, MOVED_BY_GIT):
                return False
            if entry.old == had:
                return True
        return False

    def _is_lost(self, name: str, had: ObjectId) -> bool:
        """Return True if a removed journal has the value.

        It is restored before the next write.
        """
        return any(
            (move.name, move.new) == (name, had)
            for file in self._journal.lost
            for frame in file.transactions()
            for move in frame.moves
        )

    def _is_kept(self, name: str, had: ObjectId) -> bool:
        """Return True if another tip or a recovered ref contains the value."""
        # As seen by the lock's holder: listing the directory would notice the removed journal and start another.
        tips = list(self._refs.files.read(name))
        for _, recovered in self._refs.files.iterate(RECOVERED):
            tips += recovered
        for ref, fold in self._journal.fold.refs.items():
            if fold.value is not None and ref.startswith(RECOVERED):
                tips.append(fold.value)
        return any(self._refs.lineage.is_ancestor(had, tip) for tip in tips)

    def _is_adopted(self, name: str, now: ObjectId | None) -> bool:
        """Return True if a user accepted this value or an ancestor meanwhile."""
        path = self._layout.adopted_file
        stat = self._disk.stat(path)
        if stat is None or stat.st_mtime_ns < self._refs.opened_at * _NANOSECONDS:
            return False
        head, *lines = (read_file(self._disk, path) or b"").decode("ascii", "replace").splitlines()
        if head != _HEAD:
            return False
        values = {ref: oid for oid, _, ref in (line.partition(" ") for line in lines)}
        accepted = values.get(name)
        if accepted is None or now is None:
            return accepted is None and now is None
        try:
            return self._refs.lineage.is_ancestor(ObjectId.parse(accepted), now)
        except errors.InvalidInputError:
            return False


def write_adopted(disk: Disk, layout: Layout, values: Iterable[tuple[str, ObjectId]]) -> None:
    """Tell all processes that have the repository open to accept these ref values."""
    lines = [_HEAD, *(f"{oid} {name}" for name, oid in values)]
    data = ("\n".join(lines) + "\n").encode("ascii")
    replace_file(disk, layout.adopted_file, data, durable=False, scratch=layout.tmp_dir)
