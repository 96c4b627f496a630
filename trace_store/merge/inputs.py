"""Inputs of a merge (commits, contexts and merge bases), and the resulting plan.

A commit that is not written yet can be added to the cache.
"""

from __future__ import annotations

from trace_store import context, errors
from trace_store.base.frozen import value
from trace_store.base.oid import ObjectId
from trace_store.commit_table import graph
from trace_store.context.fold import Fold
from trace_store.merge.conflicts import OURS, THEIRS
from trace_store.objects.commit import Commit, read_commit
from trace_store.store.revision import commits_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from trace_store.merge.conflicts import Conflict
    from trace_store.objects.address import Address
    from trace_store.objects.commit import Operation
    from trace_store.store.store import Store


class ContextCache:
    """Cached commits and contexts of a store."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.commits = commits_of(store)
        self._read: dict[bytes, Commit] = {}
        self._new: set[bytes] = set()
        self._folds: dict[bytes, Fold] = {}

    def commit(self, oid: bytes) -> Commit:
        """Return a commit.

        Raises:
            ObjectNotFoundError, CorruptObjectError: it is missing or damaged.
        """
        found = self._read.get(oid)
        if found is None:
            found = self._read[oid] = read_commit(oid, self.store.objects.read)
        return found

    def remember(self, oid: bytes, commit: Commit) -> None:
        """Add a commit that is not written yet."""
        self._read[oid] = commit
        self._new.add(oid)

    def fold(self, tip: bytes | None) -> Fold:
        """Return the context of a commit, which must not be changed; None gives an empty one. Raises as `fold_of`."""
        if tip is None:
            return Fold()
        found = self._folds.get(tip)
        if found is None:
            found = self._folds[tip] = self._compute_fold(tip)
        return found

    def before(self, oid: bytes) -> Fold:
        """Return the context before a commit."""
        parents = self.commit(oid).parents
        return self.fold(parents[0] if parents else None)

    def time(self, address: Address) -> int:
        """Return the time of a message in milliseconds since the epoch; 0 if its birth commit is missing."""
        found = self.store.objects.resolve_prefix(address.birth.hex())
        return self.commit(found[0]).time if len(found) == 1 else 0

    def bases(self, ours: ObjectId, theirs: ObjectId) -> list[ObjectId]:
        """Return the best common ancestors of two commits, newest first."""
        if self._new.isdisjoint((ours, theirs)):
            found = self.commits.merge_bases(ours, theirs)
        else:
            found = graph.merge_bases(ours, theirs, lambda oid: self.commit(oid).parents)
        return sorted(found, key=lambda oid: (self.commit(oid).time, oid), reverse=True)

    def _compute_fold(self, tip: bytes) -> Fold:
        if tip not in self._new:
            return context.snapshots.fold_of(self.store, tip, self._folds)
        commit = self.commit(tip)
        state = self.before(tip).copy()
        state.apply(tip, commit)
        return state


APPEND = "append"
INTERLEAVE = "interleave"
DECISIONS = "decisions"
SEMANTIC = "semantic"
STRATEGIES = (APPEND, INTERLEAVE, OURS, THEIRS, DECISIONS, SEMANTIC)
DECISION = "decision"
"""The label of a message that records a decision."""


@value
class MergePlan:
    """The plan of a merge.

    Attributes:
        wordings: edits that keep the wordings of theirs that a resolution did not choose as earlier versions.
        operations: the other ones, in order; they follow the edits.
        conflicts: the open ones; as long as there are any, the operations keep ours in each.
        settled: the resolved ones.
        included: messages of theirs that are added.
    """

    wordings: tuple[Operation, ...]
    operations: tuple[Operation, ...]
    conflicts: tuple[Conflict, ...]
    settled: tuple[Conflict, ...]
    included: tuple[Address, ...]

    @classmethod
    def of(cls, operations: Iterable[Operation]) -> MergePlan:
        """Return a plan without conflicts."""
        return cls((), tuple(operations), (), (), ())


def no_put(content: bytes) -> ObjectId:
    """Refuse to store content, where no text can resolve a conflict."""
    raise errors.InvalidOperationError("no content can be stored here")
