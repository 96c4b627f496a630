"""The refs of a repository on disk: files, journals and HEAD as one.

Rule: reading takes no lock, and what is read is looked at once more when it cannot be explained, because a seal may
have been at work meanwhile. Nothing here moves a ref: moves go through the journal, files change in a seal.
"""

from __future__ import annotations

from trace_store import errors, refs
from trace_store.files import read_file, replace_file, stamp, unchanged
from trace_store.ident import RisingClock, SystemClock
from trace_store.journal.frames import Move
from trace_store.oid import ObjectId
from trace_store.ref_names import Spellings, named_by_users
from trace_store.refs.head import MAXIMUM_BYTES, NAME, Head, decode_head, encode_head, read_original
from trace_store.refs.names import BRANCHES, check_ref_name, refuse_twins
from trace_store.refs.resolution import check_expected, lineage_of, resolve, unexplained
from trace_store.refs.tips import TipFiles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from trace_store.contracts import ObjectReader, RefEdit
    from trace_store.files import Disk
    from trace_store.ident import Clock
    from trace_store.journal.journal import Journal
    from trace_store.journal.ref_moves import RefFold
    from trace_store.layout import Layout

ATTEMPTS = 5
_MEMORY = 256
_FEW = 16


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
        self.times = RisingClock(clock, self._last_logged)
        self._mutex = mutex
        self._default = check_ref_name(BRANCHES + default_branch)
        self.lineage = lineage_of(objects)
        self._looked_at = (0, 0)
        self._seen: dict[str, tuple[ObjectId, ...]] = {}
        self._passed_over: dict[str, list[ObjectId]] = {}  # files that a tip has joined
        self._settled: dict[str, tuple[RefFold, str, object]] = {}
        self._head: tuple[object, str | ObjectId] | None = None
        self._spellings: Spellings | None = None
        self.files = TipFiles(disk, layout)
        self.began = SystemClock().now()
        self.known: dict[str, ObjectId] = {}
        """The value that this process last saw or made of a ref, from which it goes on: see `refs/rewind_guard.py`."""
        self.stand_ins: dict[str, ObjectId] = {}
        """What readers take for the value of refs whose own commits are missing; nothing is written on top of it."""
        self.taken_by_git: set[str] = set()
        """Refs whose files git has taken away, and holds: that was meant, as by a switch to an earlier commit."""

    def read(self, name: str) -> ObjectId | None:
        """Return this working copy's own value of a ref, or None when it has none.

        Raises:
            InvalidRefNameError: not the name of a ref.
        """
        tips = self.tips(name)
        return tips[0] if tips else None

    def tips(self, name: str) -> tuple[ObjectId, ...]:
        """Return all tips of a ref, this working copy's own first; more than one: it is diverged."""
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

    def standing(self) -> refs.summary.Standing:
        """Return which refs need attention, and how many branches there are; see `Overview`, which looks at few."""
        with self._mutex:
            self._journal.refresh()
            return self.overview.standing(self.head_target(), self._tips_now)

    def values(self) -> dict[str, ObjectId]:
        """Return the value of each ref, unsorted. It reads few files unless something other than Trace moved refs."""
        with self._mutex:
            self._journal.refresh()
            return self.overview.values(self.head_target(), self._tips_now)

    def naming(self, commits: Iterable[ObjectId]) -> dict[ObjectId, list[str]]:
        """Return for each of some commits the names of the refs whose own value it is, sorted; looks at few, too."""
        with self._mutex:
            self._journal.refresh()
            return self.overview.naming(commits, self.head_target(), self._tips_now)

    def diverged(self) -> list[str]:
        """Return the names of refs with more than one tip."""
        return list(self.standing().diverged)

    def moved_by_git(self) -> list[tuple[str, ObjectId | None, ObjectId | None]]:
        """Return (name, what this working copy last wrote, what it is now) of refs that something else moved.

        The next seal accepts these, after which they are no longer reported.
        """
        return self.standing().moved

    @property
    def overview(self) -> refs.summary.Overview:
        """What looks at all refs at once."""
        contains = self._objects.contains
        return refs.summary.Overview(self._disk, self._layout, self._journal, self.files, contains)

    @property
    def witness(self) -> refs.rewind_guard.Witness:
        """What knows how refs came to their values."""
        return refs.rewind_guard.Witness(self._disk, self._layout, self._journal, self)

    def head(self) -> Head:
        """Return where HEAD is; without a file it is attached to the default branch.

        Raises:
            FormatError: the file is not readable.
        """
        target = self.head_target()
        if isinstance(target, str):
            return Head(target, self.read(target))
        return Head(None, target)

    def head_target(self) -> str | ObjectId:
        """Return what HEAD names, a full ref name or a commit, without looking the ref up.

        Raises:
            FormatError: the file is not readable.
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
        """Attach HEAD to a branch, by its full name, or detach it at a commit; the reflog says that it was now.

        Raises:
            InvalidRefNameError: not the name of a ref.
        """
        data = encode_head(target)
        with self._mutex:
            try:
                old = self.head().oid
            except errors.FormatError:
                old = None  # setting it heals it
            scratch = self._layout.tmp_dir
            replace_file(self._disk, self._layout.head_file, data, scratch=scratch)
            new = self.head().oid
            # What the journals say of HEAD came before, so it is written first; a seal will find it there.
            entries = refs.reflog.entries_of(self._journal.fold.frames).get(NAME, [])
            moment = self.times.now() if time is None else time
            entries.append(refs.reflog.ReflogEntry(old, new, moment, author, message))
            refs.reflog.append_log(
                self._disk, self._layout.logs_dir, self._layout.log_file(NAME), entries
            )

    def original(self) -> ObjectId | None:
        """Return ORIG_HEAD: where HEAD stood before the last command that took it elsewhere; None when none did."""
        return read_original(self._disk, self._layout.original_file)

    def set_original(self, oid: ObjectId) -> None:
        """Note where HEAD stands; whoever takes it elsewhere does so first."""
        path, scratch = self._layout.original_file, self._layout.tmp_dir
        replace_file(self._disk, path, encode_head(oid), scratch=scratch)

    def reflog(self, name: str) -> list[refs.reflog.ReflogEntry]:
        """Return the movements of a ref, or of HEAD, newest first."""
        if name != NAME:
            check_ref_name(name)
        with self._mutex:
            self._journal.refresh()
            logged = refs.reflog.read_log(self._disk, self._layout.log_file(name))
            recent = refs.reflog.entries_of(self._journal.fold.frames).get(name, [])
        entries = refs.reflog.join_logs(logged, recent)
        entries.reverse()
        return entries

    def resolve(
        self,
        name: str,
        files: Sequence[ObjectId],
        published: Sequence[ObjectId],
        fold: RefFold | None,
    ) -> tuple[ObjectId, ...]:
        """Return the tips that follow from these files, published tips and journals; own tip first."""
        return resolve(name, files, published, fold, self.lineage)

    def settled_tip(self, name: str) -> ObjectId | None:
        """Return a ref's only value when the journal gives it and its files, unchanged, have nothing to add.

        None says nothing: the ref has to be resolved. Called under the journal's lock.
        """
        fold = self._journal.fold.refs.get(name)
        if fold is None or fold.value is None:
            return None
        had = self.known.get(name, fold.value)
        if had != fold.value and had not in fold.passed:
            return None
        known = self._settled.get(name)
        if known is not None and known[0] is fold and unchanged(self._disk, known[1], known[2]):
            return fold.value
        if self._journal.is_published_anew():
            self._journal.doubt()  # what the fold says may be sealed, and the files have the word
            return None
        folder = self._layout.ref_dir(name)
        seen = stamp(self._disk, folder)
        if not fold.passed.issuperset(self.files.read(name)):
            return None
        if len(self._settled) >= _MEMORY:
            self._settled.clear()
        self._settled[name] = (fold, folder, seen)  # what a value was moved on from only grows
        return fold.value

    def judge(self, edits: Sequence[RefEdit]) -> list[Move]:
        """Return the moves that make these edits, after checking what they expect; called under the journal's lock.

        Raises:
            RefChangedError: a ref has another value than expected.
            RewoundError: something else took a ref back since this process last saw it.
            InvalidRefNameError: not the name of a ref.
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
                self.witness.check(edit.name, had, current)
            if edit.new == current and (len(tips) < 2 or edit.name.startswith(BRANCHES)):
                continue
            moves += self._moves(edit, tips)
        if created:
            self._refuse_twins(created)
        return moves

    def _refuse_twins(self, created: list[str]) -> None:
        """Accept new refs, none of which differs from another by case only; errors as in `judge`."""
        if self._spellings is None:
            self._spellings = Spellings(self._names())
        if any(map(self._spellings.twin, created)):
            # It may have gone since the names were listed.
            there = [name for name in self._names() if self._tips(name)]
            refuse_twins(created, there)
            self._spellings = Spellings(there)
        refuse_twins(created, ())
        for name in created:
            self._spellings.add(name)

    def _names(self) -> set[str]:
        """Return the names of refs, as of the last seal and the journals since; some may have gone."""
        return {*self._journal.published.tips.all(), *self._journal.fold.refs}

    def _moves(self, edit: RefEdit, tips: Sequence[ObjectId]) -> list[Move]:
        """Return the steps from what the journal says, by way of the tips that are given up, to the new value."""
        fold = self._journal.fold.refs.get(edit.name)
        steps: list[ObjectId | None] = [fold.value] if fold is not None else []
        joined = self._passed_over.get(edit.name, [])
        others: Sequence[ObjectId] = (*tips[1:], *joined)
        if others and edit.new is not None and edit.name.startswith(BRANCHES):
            others = self._given_up(edit.new, tips, joined)
            steps += tips[:1] if others else ()
        steps += [*others, tips[0] if tips else None, edit.new]
        moves: list[Move] = []
        old = steps[0]
        for new in steps[1:]:
            if new != old:
                moves.append(Move(edit.name, old, new))
            old = new
        return moves

    def _given_up(
        self, value: ObjectId, tips: Sequence[ObjectId], joined: Sequence[ObjectId]
    ) -> Sequence[ObjectId]:
        """Return the other tips of a branch, and those that its tip has joined, that a move to a value gives up.

        An advance leaves the other tips, and a step back to before a join brings the joined one back. But what is newer
        than the value would be taken for an advance of it.
        """
        if not self.lineage.contains(value):
            return joined  # a commit that is only being made
        is_ancestor = self.lineage.is_ancestor
        newer = [tip for tip in (*tips[1:], *joined) if tip != value and is_ancestor(value, tip)]
        if tips and is_ancestor(value, tips[0]):
            return newer
        return [*newer, *(tip for tip in joined if tip != value and tip not in newer)]

    def _tips(self, name: str) -> tuple[ObjectId, ...]:
        if not self._journal.locked and name not in self.stand_ins:
            self._journal.refresh()
        return self._tips_now(name)

    def _tips_now(self, name: str) -> tuple[ObjectId, ...]:
        """Return the tips of a ref, given that the journal has just been brought up to date."""
        if name in self.stand_ins:
            return (self.stand_ins[name],)
        if self._journal.locked:
            return self._tips_under_lock(name)
        for attempt in range(ATTEMPTS):
            generation, published = self._journal.generation, self._journal.published
            files = self.files.read(name)
            before = published.tips.get(name, ())
            fold = self._journal.fold.refs.get(name)
            if attempt == ATTEMPTS - 1 or not unexplained(files, before, fold):
                return resolve(name, files, before, fold, self.lineage)
            self._journal.refresh()
            if self._journal.generation == generation and self._journal.published is published:
                return resolve(name, files, before, fold, self.lineage)
        return ()

    def _tips_under_lock(self, name: str) -> tuple[ObjectId, ...]:
        """Return the tips of a ref, which nobody else moves meanwhile, so that a transaction looks them up once."""
        at = (self._journal.locks, len(self._journal.fold.frames))
        if self._looked_at != at:
            self._looked_at = at
            self._seen.clear()
            self._passed_over.clear()
        tips = self._seen.get(name)
        if tips is None:
            before = self._journal.published.tips.get(name, ())
            fold = self._journal.fold.refs.get(name)
            files = self.files.read(name)
            tips = resolve(name, files, before, fold, self.lineage)
            self._seen[name] = tips
            passed = () if fold is None else fold.passed
            left = [each for each in files if each not in tips and each not in passed]
            self._passed_over[name] = left
        return tips

    def _last_logged(self, look: bool) -> int:
        frames = self._journal.fold.frames
        if frames:
            return frames[-1].time
        last = (
            next(refs.reflog.newest_first(self._disk, self._layout.log_file(NAME)), None)
            if look
            else None
        )
        return 0 if last is None else last.time

    def _all(self, prefix: str) -> list[tuple[str, tuple[ObjectId, ...]]]:
        found: list[tuple[str, tuple[ObjectId, ...]]] = []
        for _ in range(ATTEMPTS):
            self._journal.refresh()
            generation, published = self._journal.generation, self._journal.published
            folds = self._journal.fold.refs
            files = dict(self.files.iterate(prefix))
            names = {*files, *(name for name in folds if name.startswith(prefix))}
            found = []
            explained = True
            if len(names) > _FEW:
                published.tips.all()  # one by one they would take longer
            for name in sorted(names):
                if name in self.stand_ins:
                    found.append((name, (self.stand_ins[name],)))
                    continue
                here, before = files.get(name, ()), published.tips.get(name, ())
                fold = folds.get(name)
                if fold is None and here == before and len(here) == 1:
                    found.append(
                        (name, here)
                    )  # nobody moved it, as is the rule where there are many
                    continue
                explained = explained and not unexplained(here, before, fold)
                tips = resolve(name, here, before, fold, self.lineage)
                if tips:
                    found.append((name, tips))
            if explained:
                break
            self._journal.refresh()
            if self._journal.generation == generation and self._journal.published is published:
                break
        return found
