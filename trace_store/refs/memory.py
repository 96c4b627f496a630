"""Refs in memory."""

from __future__ import annotations

from trace_store import errors
from trace_store.ident import MonotonicClock
from trace_store.journal.frames import Frame, Move
from trace_store.oid import ObjectId
from trace_store.refs.head import NAME, Head
from trace_store.refs.names import BRANCHES, check_ref_name
from trace_store.refs.reflog import ReflogEntry, entries_of
from trace_store.refs.resolution import check_expected
from trace_store.refs.summary import RefStatus

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from trace_store.contracts import ObjectReader, RefEdit
    from trace_store.ident import Clock


class MemoryRefs:
    """Refs that last as long as the process; they never diverge."""

    def __init__(self, objects: ObjectReader, clock: Clock, *, default_branch: str) -> None:
        self._objects = objects
        self.times = MonotonicClock(clock, lambda _: 0)
        self._head: str | ObjectId = check_ref_name(BRANCHES + default_branch)
        self._original: ObjectId | None = None
        self._values: dict[str, ObjectId] = {}
        self._logs: dict[str, list[ReflogEntry]] = {}

    def read(self, name: str) -> ObjectId | None:
        """Return the value of a ref, or None."""
        return self._values.get(check_ref_name(name))

    def tips(self, name: str) -> tuple[ObjectId, ...]:
        """Return the value of a ref as its only tip."""
        value = self.read(name)
        return () if value is None else (value,)

    def iterate(self, prefix: str = "refs/") -> Iterator[tuple[str, ObjectId]]:
        """Yield (name, value) of all refs under a prefix, sorted by name."""
        return iter([item for item in sorted(self._values.items()) if item[0].startswith(prefix)])

    def iterate_tips(self, prefix: str = "refs/") -> Iterator[tuple[str, tuple[ObjectId, ...]]]:
        """Yield (name, tips) of all refs under a prefix, sorted by name."""
        return ((name, (value,)) for name, value in self.iterate(prefix))

    def status(self) -> RefStatus:
        """Return which refs are incomplete, and the number of branches."""
        status = RefStatus()
        status.incomplete = [n for n, value in self.iterate() if not self._objects.contains(value)]
        status.branch_count = sum(name.startswith(BRANCHES) for name in self._values)
        return status

    def values(self) -> dict[str, ObjectId]:
        """Return the value of each ref."""
        return dict(self.iterate())

    def names_of(self, commits: Iterable[ObjectId]) -> dict[ObjectId, list[str]]:
        """Return, for each commit, the sorted names of the refs with that value."""
        return {oid: [name for name, value in self.iterate() if value == oid] for oid in commits}

    def diverged(self) -> list[str]:
        """Return []: only tip files that git merges can diverge."""
        return []

    def moved_by_git(self) -> list[tuple[str, ObjectId | None, ObjectId | None]]:
        """Return []: git does not see these refs."""
        return []

    def head(self) -> Head:
        """Return HEAD."""
        if isinstance(self._head, str):
            return Head(self._head, self._values.get(self._head))
        return Head(None, self._head)

    def head_target(self) -> str | ObjectId:
        """Return HEAD's full ref name or commit."""
        return self._head

    def set_head(
        self,
        target: str | ObjectId,
        *,
        message: str = "",
        author: str = "",
        time: int | None = None,
    ) -> None:
        """Set HEAD to a branch (full name) or a commit (detached), and log it."""
        old = self.head().oid
        self._head = check_ref_name(target) if isinstance(target, str) else ObjectId(target)
        moment = self.times.now() if time is None else time
        entry = ReflogEntry(old, self.head().oid, moment, author, message)
        self._logs.setdefault(NAME, []).append(entry)

    def original(self) -> ObjectId | None:
        """Return ORIG_HEAD, HEAD before the last command that moved it; or None."""
        return self._original

    def set_original(self, oid: ObjectId) -> None:
        """Set ORIG_HEAD; called before a command moves HEAD."""
        self._original = oid

    def reflog(self, name: str) -> list[ReflogEntry]:
        """Return the reflog of a ref or of HEAD, newest first."""
        if name != NAME:
            check_ref_name(name)
        return self._logs.get(name, [])[::-1]

    def logged(self) -> list[str]:
        """Return the names of all reflogs."""
        return list(self._logs)

    def plan_moves(self, edits: Sequence[RefEdit]) -> list[Move]:
        """Check the expectations of edits and return the moves.

        Raises:
            RefChangedError: a ref does not have the expected value.
            InvalidInputError: two edits of one ref.
        """
        if len({edit.name for edit in edits}) != len(edits):
            raise errors.InvalidInputError("two edits of one ref in a transaction")
        moves: list[Move] = []
        for edit in edits:
            current = self.read(edit.name)
            check_expected(edit, current)
            if edit.new != current:
                moves.append(Move(edit.name, current, edit.new))
        return moves

    def apply(self, frame: Frame) -> None:
        """Apply the moves of a transaction."""
        for move in frame.moves:
            if move.new is None:
                self._values.pop(move.name, None)
            else:
                self._values[move.name] = move.new
        for name, entries in entries_of([frame]).items():
            self._logs.setdefault(name, []).extend(entries)
