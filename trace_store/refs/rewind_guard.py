"""A ref that something else took back under a process that has the repository open.

    adopted
    3f2a…64 hex digits… refs/heads/main
    …

Rule: a process goes on from the value of a ref that it last saw or made. Where the ref stands elsewhere now, that is
explained by the journals, by the new value's past, or by the reflog; anything else was git, or another tool that knows
nothing of Trace, and then nothing is written on top of it. The file `local/adopted` says which values a person has
accepted since. Between commands nothing of this matters: a process that begins takes the files as they are.
"""

from __future__ import annotations

from trace_store import errors, refs
from trace_store.files import read_file, replace_file
from trace_store.oid import ObjectId
from trace_store.refs.reflog import GIT, MOVED_BY_GIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from trace_store.files import Disk
    from trace_store.journal.journal import Journal
    from trace_store.layout import Layout
    from trace_store.refs.database import RefDatabase

    Change = tuple[str, ObjectId | None, ObjectId | None]

_HEAD = "adopted"
_NANOSECONDS = 1_000_000


class Witness:
    """What one process knows of how refs came to their values."""

    __slots__ = ("_disk", "_journal", "_layout", "_refs")

    def __init__(self, disk: Disk, layout: Layout, journal: Journal, database: RefDatabase) -> None:
        self._disk = disk
        self._layout = layout
        self._journal = journal
        self._refs = database

    def check(self, name: str, had: ObjectId, now: ObjectId | None) -> None:
        """Accept that a ref, which this process knew to stand at one value, stands at another.

        Raises:
            RewoundError: nothing explains it.
        """
        if self.explains(name, had, now) or self._is_adopted(name, now):
            return
        was, became = had.short(), "gone" if now is None else f"at {now.short()}"
        raise errors.RewoundError(
            f"another tool took the repository back: {name} was at {was}, and is {became}",
            ref=name,
            before=had,
            now=now,
        )

    def is_gone(self, name: str) -> bool:
        """Return True if all files of a ref are gone that this working copy published, and nothing says why."""
        if name in self._journal.fold.refs or name in self._refs.taken_by_git:
            return False
        published = self._journal.published.tips.get(name)
        return bool(published) and not self._refs.files.read(name)

    def explains(self, name: str, had: ObjectId, now: ObjectId | None) -> bool:
        """Tell whether a ref came from one value to another by what Trace does, or went forward."""
        fold = self._journal.fold.refs.get(name)
        if fold is not None and had in fold.passed:
            return True
        if self._is_lost(name, had):
            return True
        if now is not None and self._refs.lineage.is_ancestor(had, now):
            return True
        if self._is_kept(name, had):
            return True
        logged = refs.reflog.read_log(self._disk, self._layout.log_file(name))
        recent = refs.reflog.entries_of(self._journal.fold.frames).get(name, [])
        for entry in reversed(refs.reflog.join_logs(logged, recent)):
            if (entry.author, entry.message) == (GIT, MOVED_BY_GIT):
                return False
            if entry.old == had:
                return True
        return False

    def _is_lost(self, name: str, had: ObjectId) -> bool:
        """Tell whether a removed journal moved a ref to a value: that is brought back before a next write counts."""
        return any(
            (move.name, move.new) == (name, had)
            for file in self._journal.lost
            for frame in file.transactions()
            for move in frame.moves
        )

    def _is_kept(self, name: str, had: ObjectId) -> bool:
        """Tell whether a value is in another tip of a ref, or kept aside, because a journal was removed meanwhile."""
        # As the lock's holder sees it: a look at the directory would find a removed journal gone, and begin another.
        kept = list(self._refs.files.read(name))
        for _, tips in self._refs.files.iterate(refs.names.RECOVERED):
            kept += tips
        for ref, fold in self._journal.fold.refs.items():
            if fold.value is not None and ref.startswith(refs.names.RECOVERED):
                kept.append(fold.value)
        return any(self._refs.lineage.is_ancestor(had, tip) for tip in kept)

    def _is_adopted(self, name: str, now: ObjectId | None) -> bool:
        """Tell whether this value, or one that it continues, was accepted since this process began."""
        path = self._layout.adopted_file
        found = self._disk.stat(path)
        if found is None or found.st_mtime_ns < self._refs.began * _NANOSECONDS:
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


def note_adopted(disk: Disk, layout: Layout, values: Iterable[tuple[str, ObjectId]]) -> None:
    """Say, for every process that has the repository open, that these are the refs to go on from."""
    lines = [_HEAD, *(f"{oid} {name}" for name, oid in values)]
    data = ("\n".join(lines) + "\n").encode("ascii")
    replace_file(disk, layout.adopted_file, data, durable=False, scratch=layout.tmp_dir)
