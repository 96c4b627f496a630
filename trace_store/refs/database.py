"""The refs of a repository: tip files, journals and HEAD together.

Rule: reading takes no lock. If a ref's files differ from what the journals explain, they are read again, because a seal
may be running. Nothing here moves a ref: moves are written to the journal, and files change in a seal.
"""

from __future__ import annotations

from trace_store import errors, refs
from trace_store.base.ident import MonotonicClock, SystemClock
from trace_store.base.oid import ObjectId
from trace_store.contracts.ref_names import (
    BRANCHES,
    UsedNames,
    check_case_conflicts,
    check_ref_name,
    joins_by_merge,
    named_by_users,
)
from trace_store.disk.files import read_file, replace_file, stamp, unchanged
from trace_store.journal.frames import Move
from trace_store.refs.head import MAXIMUM_BYTES, NAME, Head, decode_head, encode_head, read_original
from trace_store.refs.resolution import Lineage, check_expected, is_unexplained, resolve
from trace_store.refs.tips import TipFiles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from trace_store.base.ident import Clock
    from trace_store.contracts import RefEdit
    from trace_store.contracts.protocols import ObjectReader
    from trace_store.disk.files import Disk
    from trace_store.disk.layout import Layout
    from trace_store.journal.journal import Journal
    from trace_store.journal.view import RefState

ATTEMPTS = 5
_MAXIMUM_REMEMBERED = 256
"""Number of refs whose unchanged files are remembered."""
_FEW = 16
"""The published tips of more refs than this are loaded at once."""


class RefDatabase:
    """All refs of one repository."""

    def __init__(
        self,
        disk: Disk,
        layout: Layout,
        journal: Journal,
        objects: ObjectReader,
        clock: Clock,
        mutex: AbstractContextManager[object],
        *,
        default_branch: str,
    ) -> None:
        self._disk = disk
        self._layout = layout
        self._journal = journal
        self._objects = objects
        self.times = MonotonicClock(clock, self._last_logged)
        self._mutex = mutex
        self._default = check_ref_name(BRANCHES + default_branch)
        self.lineage = Lineage(objects)
        self._cache_key = (0, 0)
        self._cached_tips: dict[str, tuple[ObjectId, ...]] = {}
        self._superseded: dict[str, list[ObjectId]] = {}
        """By ref, the tip files whose commits another tip contains."""
        self._unchanged: dict[str, tuple[RefState, str, object]] = {}
        """By ref: the journal's fold, the directory of tip files, and its stamp when fold and files agreed."""
        self._head: tuple[object, str | ObjectId] | None = None
        self._used_names: UsedNames | None = None
        self._summary: refs.summary.RefSummary | None = None
        self.files = TipFiles(disk, layout)
        self.opened_at = SystemClock().now()
        self.known: dict[str, ObjectId] = {}
        """The last value of each ref that this process saw or wrote; see `refs/rewind_guard.py`."""
        self.removed_by_git: set[str] = set()
        """Refs whose tip files are in git but missing on disk, for example after checking out an earlier commit."""

    def read(self, name: str) -> ObjectId | None:
        """Return this working copy's value of a ref, or None.

        Raises:
            InvalidRefNameError: the name is invalid.
        """
        tips = self.tips(name)
        return tips[0] if tips else None

    def tips(self, name: str) -> tuple[ObjectId, ...]:
        """Return all tips of a ref, this working copy's first.

        Several mean that it has diverged.
        """
        check_ref_name(name)
        with self._mutex:
            tips = self._tips(name)
            if tips and name not in self.known and not self._journal.locked:
                self.known[name] = tips[0]
            return tips

    def iterate(self, prefix: str = "refs/") -> Iterator[tuple[str, ObjectId]]:
        """Yield (name, own value) of all refs under a prefix, sorted by name."""
        return ((name, tips[0]) for name, tips in self.iterate_tips(prefix))

    def iterate_tips(self, prefix: str = "refs/") -> Iterator[tuple[str, tuple[ObjectId, ...]]]:
        """Yield (name, tips) of all refs under a prefix, sorted by name, own tip first."""
        with self._mutex:
            return iter(self._all(prefix))

    def status(self) -> refs.summary.RefStatus:
        """Return which refs need attention, and the number of branches; reads few files."""
        with self._mutex:
            self._journal.refresh()
            return self.summary.status(self.head_target(), self._current_tips)

    def values(self) -> dict[str, ObjectId]:
        """Return the value of each ref, unsorted.

        Reads few files unless another program moved refs.
        """
        with self._mutex:
            self._journal.refresh()
            return self.summary.values(self.head_target(), self._current_tips)

    def names_of(self, commits: Iterable[ObjectId]) -> dict[ObjectId, list[str]]:
        """Return, for each commit, the sorted names of the refs with that value.

        Reads few files.
        """
        with self._mutex:
            self._journal.refresh()
            return self.summary.names_of(commits, self.head_target(), self._current_tips)

    def diverged(self) -> list[str]:
        """Return the names of refs with more than one tip."""
        return list(self.status().diverged)

    def moved_by_git(self) -> list[tuple[str, ObjectId | None, ObjectId | None]]:
        """Return (name, written, current value) of refs that another program moved.

        The next seal accepts them; after that they are no longer reported.
        """
        return self.status().moved

    @property
    def summary(self) -> refs.summary.RefSummary:
        """The summary of all refs."""
        if self._summary is None:
            contains = self._objects.contains
            self._summary = refs.summary.RefSummary(
                self._disk, self._layout, self._journal, self.files, contains
            )
        return self._summary

    @property
    def rewind_guard(self) -> refs.rewind_guard.RewindGuard:
        """The check of unexpected ref values."""
        return refs.rewind_guard.RewindGuard(self._disk, self._layout, self._journal, self)

    def head(self) -> Head:
        """Return HEAD; without a file it is the default branch.

        Raises:
            FormatError: the file is unreadable.
        """
        target = self.head_target()
        if isinstance(target, str):
            return Head(target, self.read(target))
        return Head(None, target)

    def head_target(self) -> str | ObjectId:
        """Return HEAD's full ref name or commit, without reading the ref.

        Raises:
            FormatError: the file is unreadable.
        """
        path = self._layout.head_file
        if self._head is None or not unchanged(self._disk, path, self._head[0]):
            seen = stamp(self._disk, path)
            data = read_file(self._disk, path, limit=MAXIMUM_BYTES)
            self._head = (seen, self._default if data is None else decode_head(data, path))
        return self._head[1]

    def set_head(
        self,
        target: str | ObjectId,
        *,
        message: str = "",
        author: str = "",
        time: int | None = None,
    ) -> None:
        """Set HEAD to a branch (full name) or a commit (detached), and log it.

        Raises:
            InvalidRefNameError: the name is invalid.
        """
        data = encode_head(target)
        with self._mutex:
            try:
                old = self.head().oid
            except errors.FormatError:
                old = None  # overwriting it repairs it
            scratch = self._layout.tmp_dir
            replace_file(self._disk, self._layout.head_file, data, scratch=scratch)
            new = self.head().oid
            # Earlier HEAD entries are still in the journal, so write them first; a seal skips duplicates.
            entries = refs.reflog.entries_of(self._journal.fold.frames).get(NAME, [])
            moment = self.times.now() if time is None else time
            entries.append(refs.reflog.ReflogEntry(old, new, moment, author, message))
            refs.reflog.append_log(
                self._disk, self._layout.logs_dir, self._layout.log_file(NAME), entries
            )

    def original(self) -> ObjectId | None:
        """Return ORIG_HEAD, HEAD before the last command that moved it; or None."""
        return read_original(self._disk, self._layout.original_file)

    def set_original(self, oid: ObjectId) -> None:
        """Set ORIG_HEAD; called before a command moves HEAD."""
        path, scratch = self._layout.original_file, self._layout.tmp_dir
        replace_file(self._disk, path, encode_head(oid), scratch=scratch)

    def reflog(self, name: str) -> list[refs.reflog.ReflogEntry]:
        """Return the reflog of a ref or of HEAD, newest first."""
        if name != NAME:
            check_ref_name(name)
        with self._mutex:
            self._journal.refresh()
            recent = refs.reflog.entries_of(self._journal.fold.frames).get(name, [])
            path = self._layout.log_file(name)
            return list(refs.reflog.newest_first(self._disk, path, recent))

    def resolve(
        self,
        name: str,
        files: Sequence[ObjectId],
        published: Sequence[ObjectId],
        fold: RefState | None,
    ) -> tuple[ObjectId, ...]:
        """Return the tips that follow from files, published tips and journals.

        Own tip first.
        """
        return resolve(name, files, published, fold, self.lineage)

    def journal_tip(self, name: str) -> ObjectId | None:
        """Return a ref's only value if the journal has it and the files are unchanged.

        None means that the ref must be resolved. Called under the journal's lock.
        """
        fold = self._journal.fold.refs.get(name)
        if fold is None or fold.value is None:
            return None
        last_seen = self.known.get(name, fold.value)
        if last_seen != fold.value and last_seen not in fold.passed:
            return None
        entry = self._unchanged.get(name)
        if entry is not None and entry[0] is fold and unchanged(self._disk, entry[1], entry[2]):
            return fold.value
        if self._journal.has_new_seals():
            self._journal.force_refresh()  # the fold may be sealed, so the files decide
            return None
        folder = self._layout.ref_dir(name)
        seen = stamp(self._disk, folder)
        if not fold.passed.issuperset(self.files.read(name)):
            return None
        if len(self._unchanged) >= _MAXIMUM_REMEMBERED:
            self._unchanged.clear()
        self._unchanged[name] = (fold, folder, seen)  # stays valid, since `passed` only grows
        return fold.value

    def plan_moves(self, edits: Sequence[RefEdit]) -> list[Move]:
        """Check the expectations of edits and return the moves.

        Called under the journal's lock.

        Raises:
            RefChangedError: a ref does not have the expected value.
            RewoundError: another program rewound a ref since this process last saw it.
            InvalidRefNameError: a name is invalid.
            InvalidInputError: two edits of one ref.
        """
        if len({edit.name for edit in edits}) != len(edits):
            raise errors.InvalidInputError("two edits of one ref in a transaction")
        moves: list[Move] = []
        created: list[str] = []
        for edit in edits:
            tips = self._tips(check_ref_name(edit.name))
            if not tips and edit.new is not None and named_by_users(edit.name):
                created.append(edit.name)
            current = tips[0] if tips else None
            check_expected(edit, current)
            had = self.known.get(edit.name)
            if had is not None and had != current:
                self.rewind_guard.check(edit.name, had, current)
            if edit.new == current and (len(tips) < 2 or joins_by_merge(edit.name)):
                continue
            moves += self._moves(edit, tips)
        if created:
            self._check_case_conflicts(created)
        return moves

    def _check_case_conflicts(self, created: list[str]) -> None:
        """Check that no new ref differs from another only by case; raises as `plan_moves`."""
        if self._used_names is None:
            self._used_names = UsedNames(self._names())
        for name in created:
            if self._used_names.case_conflict(name):
                # The other ref may be gone since the names were listed.
                existing = [each for each in self._names() if self._tips(each)]
                self._used_names = UsedNames(existing)
                check_case_conflicts(created, existing)
                self._used_names = UsedNames([*existing, *created])
                break
            self._used_names.add(name)

    def _names(self) -> set[str]:
        """Return the names of refs as of the last seal and the journals; some may be gone."""
        return {*self._journal.published.tips.all(), *self._journal.fold.refs}

    def _moves(self, edit: RefEdit, tips: Sequence[ObjectId]) -> list[Move]:
        """Return the moves of an edit.

        They go from the journal's value, through the tips that the edit abandons, to the new value.
        """
        fold = self._journal.fold.refs.get(edit.name)
        steps: list[ObjectId | None] = [fold.value] if fold is not None else []
        superseded = self._superseded.get(edit.name, [])
        others: Sequence[ObjectId] = (*tips[1:], *superseded)
        if others and edit.new is not None and joins_by_merge(edit.name):
            others = self._abandoned_tips(edit.new, tips, superseded)
            steps += tips[:1] if others else ()
        steps += [*others, tips[0] if tips else None, edit.new]
        moves: list[Move] = []
        old = steps[0]
        for new in steps[1:]:
            if new != old:
                moves.append(Move(edit.name, old, new))
            old = new
        return moves

    def _abandoned_tips(
        self, value: ObjectId, tips: Sequence[ObjectId], superseded: Sequence[ObjectId]
    ) -> Sequence[ObjectId]:
        """Return the other tips and superseded tips that a move to a value abandons.

        A tip that descends from the value is abandoned, because the branch would fast-forward to it. Other tips are
        kept. Other superseded tips are abandoned too, unless the branch goes back to an ancestor of its own tip: if
        that is before a merge of diverged tips, the merged tips are restored.
        """
        if not self.lineage.contains(value):
            return superseded  # the commit is not stored yet
        is_ancestor = self.lineage.is_ancestor
        newer = [
            tip for tip in (*tips[1:], *superseded) if tip != value and is_ancestor(value, tip)
        ]
        if tips and is_ancestor(value, tips[0]):
            return newer
        return [*newer, *(tip for tip in superseded if tip != value and tip not in newer)]

    def _tips(self, name: str) -> tuple[ObjectId, ...]:
        if not self._journal.locked:
            self._journal.refresh()
        return self._current_tips(name)

    def _current_tips(self, name: str) -> tuple[ObjectId, ...]:
        """Return the tips of a ref; the journal must just have been refreshed."""
        if self._journal.locked:
            return self._tips_under_lock(name)
        for attempt in range(ATTEMPTS):
            generation, published = self._journal.generation, self._journal.published
            files = self.files.read(name)
            before = published.tips.get(name, ())
            fold = self._journal.fold.refs.get(name)
            if attempt == ATTEMPTS - 1 or not is_unexplained(files, before, fold):
                return resolve(name, files, before, fold, self.lineage)
            self._journal.refresh()
            if self._journal.generation == generation and self._journal.published is published:
                return resolve(name, files, before, fold, self.lineage)
        return ()

    def _tips_under_lock(self, name: str) -> tuple[ObjectId, ...]:
        """Return the tips of a ref, cached during a transaction: nobody else moves it."""
        at = (self._journal.locks, len(self._journal.fold.frames))
        if self._cache_key != at:
            self._cache_key = at
            self._cached_tips.clear()
            self._superseded.clear()
        tips = self._cached_tips.get(name)
        if tips is None:
            before = self._journal.published.tips.get(name, ())
            fold = self._journal.fold.refs.get(name)
            files = self.files.read(name)
            tips = resolve(name, files, before, fold, self.lineage)
            self._cached_tips[name] = tips
            passed = () if fold is None else fold.passed
            self._superseded[name] = [
                each for each in files if each not in tips and each not in passed
            ]
        return tips

    def _last_logged(self, read_log: bool) -> int:
        """Return the time of the latest move in the journal.

        If the journal has none, return that in HEAD's log if `read_log` is set, else 0.
        """
        frames = self._journal.fold.frames
        if frames:
            return frames[-1].time
        last = (
            next(refs.reflog.newest_first(self._disk, self._layout.log_file(NAME)), None)
            if read_log
            else None
        )
        return 0 if last is None else last.time

    def _all(self, prefix: str) -> list[tuple[str, tuple[ObjectId, ...]]]:
        result: list[tuple[str, tuple[ObjectId, ...]]] = []
        for _ in range(ATTEMPTS):
            self._journal.refresh()
            generation, published = self._journal.generation, self._journal.published
            folds = self._journal.fold.refs
            files = dict(self.files.iterate(prefix))
            names = {*files, *(name for name in folds if name.startswith(prefix))}
            result = []
            explained = True
            if len(names) > _FEW:
                published.tips.all()  # loads all at once, which is faster than one by one
            for name in sorted(names):
                on_disk, before = files.get(name, ()), published.tips.get(name, ())
                fold = folds.get(name)
                if fold is None and on_disk == before and len(on_disk) == 1:
                    result.append((name, on_disk))  # unmoved, the usual case
                    continue
                explained = explained and not is_unexplained(on_disk, before, fold)
                tips = resolve(name, on_disk, before, fold, self.lineage)
                if tips:
                    result.append((name, tips))
            if explained:
                break
            self._journal.refresh()
            if self._journal.generation == generation and self._journal.published is published:
                break
        return result
