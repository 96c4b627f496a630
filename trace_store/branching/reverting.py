"""`revert`: new commits that take earlier ones back.

Rule: nothing is written unless all of it can be: the commits of one call are made on top of each other and become the
branch's in one transaction. History stays as it is; a commit that takes another back links to it.
"""

from __future__ import annotations

from trace_store import context, errors, graph
from trace_store import revision as revisions
from trace_store.branching.inverting import invert
from trace_store.branching.nearby import nearby
from trace_store.branching.switching import keep_and_move
from trace_store.contracts import RefEdit, Transaction
from trace_store.ident import check_author
from trace_store.objects import operations as ops
from trace_store.objects.commit import Commit, read_commit
from trace_store.oid import ObjectId, hash_object
from trace_store.values import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence, Set
    from typing import Any

    from trace_store.branching.inverting import Conflict, Decide, Inverse
    from trace_store.context.folding import Fold
    from trace_store.contracts import RefReader
    from trace_store.store import Store

    Address = tuple[bytes, int]

RELATION = "reverts"


@value
class Reverted:
    """A commit that takes another back.

    Attributes:
        oid: its id; the commit's own where there was nothing to take back.
        reverts: the commit that it takes back.
        ref: the branch that has it; None when HEAD is detached.
        operations: the names of its operations.
        conflicts: what had to be decided.
    """

    oid: ObjectId
    reverts: ObjectId
    ref: str | None
    operations: tuple[str, ...]
    conflicts: tuple[Conflict, ...]


class TakingBack:
    """Commits that take others back, one on top of the other, which are written in the end or not at all.

    Attributes:
        head: where HEAD is.
        tip: where the line ends.
        found: what was made, in order.
        now: the context that the line ends with.
    """

    def __init__(self, store: Store, author: str, wanted: Sequence[ObjectId]) -> None:
        """Begin at HEAD; `wanted` are the commits that may be taken back.

        Raises:
            UnbornBranchError: HEAD has no commit.
            InvalidInputError: there can be no such author.
        """
        self._author = check_author(author)
        self._store = store
        self._reading = _Reading(store)
        self._made: list[tuple[ObjectId, bytes]] = []
        self.head = store.refs.head()
        self.tip = revisions.resolve_commit(store, "HEAD")
        near = nearby(store, self.tip, {*wanted}, self._reading.commit)
        self._near = {} if near is None else near[0]
        self.now = context.fold(self.tip, self._reading.commit) if near is None else near[1]
        self.found: list[Reverted] = []

    def before(self, oid: ObjectId) -> Fold:
        """Return the context that a commit continued, or what of it matters to the commit."""
        return self._around(oid)[0]

    def _around(self, oid: ObjectId) -> tuple[Fold, Fold]:
        return self._near.get(oid) or _around(self._reading, oid, self._reading.commit(oid))

    def inverse(self, oid: ObjectId, decide: Decide, later: Sequence[ObjectId] = ()) -> Inverse:
        """Return what takes a commit back on the line; it may be nothing.

        Args:
            oid: the commit.
            decide: decides about conflicts.
            later: the commits that are taken back after it.
        """
        before, after = self._around(oid)
        commit = self._reading.commit(oid)
        return invert(before, after, self.now, commit, decide, lambda: self._brought_by(later))

    def _brought_by(self, oids: Sequence[ObjectId]) -> set[Address]:
        """Return the messages that some commits brought, and that are shown as these wrote them."""
        found: set[Address] = set()
        for oid in oids:
            operations = self._reading.commit(oid).operations
            messages = [m for each in operations for m in each.fields.get("messages", ())]
            for number, message in enumerate(messages):
                now = self.now.entry((oid, number)) if (oid, number) in self.now else None
                if now is not None and not now.hidden and now.parts == message["parts"]:
                    found.add((oid, number))
        return found

    def nothing(self, oid: ObjectId) -> errors.StateError:
        """Return the error that says why there is nothing of a commit to take back."""
        why = _why(oid, self._reading.commit(oid))
        return errors.StateError(f"there is nothing to take back: {why}", oid=oid)

    def put(
        self,
        oid: ObjectId,
        inverse: Inverse,
        message: str = "",
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        """Put the commit that takes another back on the line; none when nothing of it is taken back."""
        if not inverse.operations:
            return
        new = Commit(
            [self.tip],
            self._author,
            self._store.clock.now(),
            inverse.operations,
            message or f"revert {oid.short()}",
            meta or {},
            [(RELATION, oid)],
        )
        data = new.encode()
        self.tip = hash_object(data)
        self.now.apply(self.tip, new)
        self._made.append((self.tip, data))
        names = tuple(operation.name for operation in inverse.operations)
        made = Reverted(self.tip, oid, self.head.ref, names, tuple(inverse.conflicts))
        self.found.append(made)

    def write(self, objects: Sequence[tuple[ObjectId, bytes]] = ()) -> None:
        """Write the line, with objects that its commits name, and let HEAD end in it.

        Raises:
            RefChangedError: HEAD moved meanwhile.
        """
        if not self._made:
            return
        message = "revert " + " ".join(each.reverts.short() for each in self.found)
        first = Commit.decode(self._made[0][1]).parents[0]
        head = self.head

        def build(_: RefReader) -> Transaction:
            edits = [] if head.ref is None else [RefEdit(head.ref, self.tip, first)]
            return Transaction([*objects, *self._made], edits, message)

        self._store.transact(build, author=self._author)
        if head.ref is None:
            keep_and_move(self._store, head, self.tip, message, self._author)


class _Reading:
    """Reads commits, each once."""

    def __init__(self, store: Store) -> None:
        self._read = store.objects.read
        self._known: dict[bytes, Commit] = {}

    def commit(self, oid: bytes) -> Commit:
        found = self._known.get(oid)
        if found is None:
            found = self._known[oid] = read_commit(oid, self._read)
        return found


def chosen(store: Store, wanted: Sequence[str]) -> list[ObjectId]:
    """Return the commits that revisions and ranges name, each once; those of a range newest first.

    Of a range these are the commits along first parents: what a merge among them brought goes with the merge.

    Raises:
        As `resolve_commit`.
    """
    commits = revisions.commits_of(store)
    found: dict[ObjectId, None] = {}
    for text in wanted:
        if ".." in text:
            span = revisions.resolve_range(store, text, commits)
            hidden = list(span.exclude)
            if span.symmetric:
                hidden += commits.merge_bases(*span.include)
            every = list(graph.topological(span.include, commits.parents, hidden=hidden))
            line = _first_parents(span.include, set(every), commits.parents)
            found.update(dict.fromkeys(oid for oid in every if oid in line))
        else:
            found[revisions.resolve_commit(store, text, commits)] = None
    return list(found)


def _first_parents(
    tips: Iterable[ObjectId],
    among: Set[ObjectId],
    parents: Callable[[ObjectId], Sequence[ObjectId]],
) -> set[ObjectId]:
    """Return those of some commits to which first parents lead from a tip."""
    found: set[ObjectId] = set()
    for tip in tips:
        oid: ObjectId | None = tip
        while oid is not None and oid in among and oid not in found:
            found.add(oid)
            oid = next(iter(parents(oid)), None)
    return found


def _around(reading: _Reading, oid: ObjectId, commit: Commit) -> tuple[Fold, Fold]:
    """Return the context before a commit, and after it."""
    before = context.fold(commit.parents[0], reading.commit) if commit.parents else context.Fold()
    after = before.copy()
    others: list[Fold | None] = [None] * len(commit.parents)
    for operation in commit.operations:
        number = operation.fields.get("parent") if operation.name == ops.INCLUDE else None
        if isinstance(number, int) and 0 < number < len(commit.parents):
            others[number] = context.fold(commit.parents[number], reading.commit)
    after.apply(oid, commit, others)
    return before, after


def _why(oid: ObjectId, commit: Commit) -> str:
    if commit.operations and all(each.name in ops.LEAVES_CONTEXT for each in commit.operations):
        return f"{oid.short()} records what a provider reported or facts, which changes no message"
    return f"what {oid.short()} did does not show here any more"
