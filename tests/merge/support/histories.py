"""In-memory histories and merges of them, for tests of merge laws."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trace_store.base.oid import ObjectId, hash_object
from trace_store.context.calls import Calls, HistoryCalls, link_operations
from trace_store.context.fold import Fold
from trace_store.context.snapshots import fold_of
from trace_store.contracts import Transaction
from trace_store.merge.merge3 import three_way
from trace_store.merge.touched import merge_touched
from trace_store.objects import operations as ops
from trace_store.objects.commit import Commit, read_commit
from trace_store.objects.content import ObjectCollector
from trace_store.objects.message import store_message
from trace_store.store.revision import commits_of
from trace_store.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trace_store.merge.conflicts import Conflict
    from trace_store.merge.inputs import MergePlan
    from trace_store.objects.commit import Operation
    from trace_store.objects.message import Message


class History:
    """Commits of one store and their merges; one side resolves all conflicts."""

    def __init__(self) -> None:
        self.store = Store.memory()
        self.commits: list[ObjectId] = []
        self._gathering = ObjectCollector()
        self._folds: dict[bytes, Fold] = {}

    def fold(self, oid: ObjectId | None) -> Fold:
        """Return the context of a commit, which is not to be changed."""
        if oid is None:
            return Fold()
        if oid not in self._folds:
            self._folds[oid] = fold_of(self.store, oid, self._folds)
        return self._folds[oid]

    def put(self, text: str) -> ObjectId:
        """Return the id of a text."""
        return self._gathering.put(text.encode())

    def commit(self, parents: Sequence[ObjectId], operations: Sequence[Operation]) -> ObjectId:
        """Write a commit; its new results are linked to their calls."""
        tip = parents[0] if parents else None
        calls = Calls(HistoryCalls(tip, self._read, lambda oid: self.fold(ObjectId(oid))))
        made = Commit(parents, "ada", len(self.commits), link_operations(operations, calls))
        data = made.encode()
        oid = hash_object(data)
        objects = [*self._gathering.objects, (oid, data)]
        self.store.transact(lambda _: Transaction(objects))
        self.commits.append(oid)
        return oid

    def say(self, tip: ObjectId | None, *messages: Message) -> ObjectId:
        """Append messages."""
        stored = [store_message(each, self._gathering.put) for each in messages]
        return self.commit([] if tip is None else [tip], [ops.add(stored)])

    def parent(self, oid: ObjectId) -> ObjectId | None:
        """Return the first parent."""
        parents = self._read(oid).parents
        return parents[0] if parents else None

    def past(self, oid: ObjectId) -> set[ObjectId]:
        """Return a commit, and all before it."""
        return set(commits_of(self.store).topological([oid]))

    def base(self, ours: ObjectId, theirs: ObjectId) -> ObjectId | None:
        """Return the newest merge base."""
        found = commits_of(self.store).merge_bases(ours, theirs)
        return max(found, key=self.commits.index, default=None)

    def plan(
        self,
        base: ObjectId | None,
        ours: ObjectId,
        theirs: ObjectId | None,
        favour: str,
        *,
        strategy: str = "append",
        reverts: bool = False,
    ) -> tuple[MergePlan, list[Conflict]]:
        """Return the operations of a three-way merge, and its conflicts."""
        made = three_way(
            self.fold(base),
            self.fold(ours),
            self.fold(theirs),
            favour=favour,
            strategy=strategy,
            reverts=reverts,
            put=self._gathering.put,
        )
        return made, [*made.settled, *made.conflicts]

    def merge(
        self,
        ours: ObjectId,
        theirs: ObjectId,
        favour: str,
        *,
        squash: bool = False,
        strategy: str = "append",
    ) -> tuple[ObjectId, list[Conflict]]:
        """Merge theirs into ours."""
        if theirs in self.past(ours):
            return ours, []
        if ours in self.past(theirs) and not squash:
            return theirs, []
        base = self.base(ours, theirs)
        plan, met = self.plan(base, ours, theirs, favour, strategy=strategy)
        if squash:
            return self._on(ours, plan), met
        return self.commit([ours, theirs], [*plan.wordings, *plan.operations]), met

    def pick(self, tip: ObjectId, oid: ObjectId, favour: str) -> tuple[ObjectId, list[Conflict]]:
        """Cherry-pick a commit onto a tip."""
        plan, met = self.plan(self.parent(oid), tip, oid, favour)
        self.check_touched(tip, oid, plan, favour)
        return self._on(tip, plan), met

    def check_touched(self, tip: ObjectId, oid: ObjectId, plan: MergePlan, favour: str) -> bool:
        """Assert that a merge of the touched messages alone has the same result, and return True if it has one."""
        sides = self.fold(self.parent(oid)), self.fold(tip)
        if not sides[0].addresses() <= sides[1].addresses():
            return False
        found = merge_touched(oid, self._read(oid), *sides, favour=favour, put=self._gathering.put)
        assert found is None or found == plan
        return found is not None

    def revert(self, tip: ObjectId, oid: ObjectId, favour: str) -> tuple[ObjectId, list[Conflict]]:
        """Take a commit back."""
        plan, met = self.plan(oid, tip, self.parent(oid), favour, reverts=True)
        return self._on(tip, plan), met

    def rebase(self, tip: ObjectId, onto: ObjectId, favour: str) -> tuple[ObjectId, list[Conflict]]:
        """Rebase a tip's line onto a commit."""
        known, line, met = self.past(onto), [], []
        at: ObjectId | None = tip
        while at is not None and at not in known:
            line.append(at)
            at = self.parent(at)
        for oid in reversed(line):
            onto, more = self.pick(onto, oid, favour)
            met += more
        return onto, met

    def _on(self, tip: ObjectId, plan: MergePlan) -> ObjectId:
        made = [*plan.wordings, *plan.operations]
        return self.commit([tip], made) if plan.operations else tip

    def _read(self, oid: bytes) -> Commit:
        return read_commit(oid, self.store.objects.read)
