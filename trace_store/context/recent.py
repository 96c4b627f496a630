"""What the newest commits of a line say of the messages that they brought, without the history before them.

A commit that includes messages of another parent has them in the state that this parent's line gave them. Most of them
began on that line not long before; so it is walked back to where they did, and no further.

Rule: what is said here is what a fold of the whole line says of the same messages, or nothing is said. That a message
was not there before it was included is shown by its commit, which has no part in the history up to then.
"""

from __future__ import annotations

from trace_store import revision as revisions
from trace_store.context.folding import Fold
from trace_store.context.index_building import UnknownError
from trace_store.objects import operations as ops
from trace_store.objects.commit import Commit, Operation
from trace_store.oid import ObjectId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Sequence
    from typing import Any, TypeAlias

    from trace_store.context.folding import Address, Entry
    from trace_store.context.folding_history import ReadCommit
    from trace_store.store import Store

    NewCommits: TypeAlias = Callable[[bytes, bytes], Collection[bytes]]
    """The commits of one's past, itself included, that are not in another's."""
    Wanted: TypeAlias = tuple[bytes, Collection[Address]]
    Walk: TypeAlias = Generator[Wanted, Fold, Fold]


class Recent:
    """Looks at the newest commits of lines, which `read` gives; `new_commits` tells which two lines do not share."""

    def __init__(self, read_commit: ReadCommit, new_commits: NewCommits) -> None:
        self.read = read_commit
        self.new_commits = new_commits

    def included(self, commit: Commit, is_there: Callable[[Address], bool]) -> dict[Address, Entry]:
        """Return the messages that a commit brings, as they are in the parents that it includes them from.

        Args:
            commit: the commit.
            is_there: tells of a message whether it is known to be in the context that the commit goes on from; then it
                is not brought.

        Raises:
            UnknownError: a message may have been there before, or did not begin on its line.
            ObjectNotFoundError, CorruptObjectError: a commit is not here, or damaged.
        """
        found: dict[Address, Entry] = {}
        for number, targets in _included(commit).items():
            new = self.new_commits(commit.parents[number], commit.parents[0])
            old = {each for each in targets if each[0] not in new}
            if not all(map(is_there, old)):
                raise UnknownError
            wanted = [each for each in targets if each not in old]
            if not found.keys().isdisjoint(wanted):
                raise UnknownError  # of two parents, the first operation counts
            state = self.entries(commit.parents[number], wanted)
            found |= {each: state.entry(each) for each in wanted}
        return found

    def entries(self, tip: bytes, wanted: Collection[Address]) -> Fold:
        """Return a fold with some messages of a context, and perhaps others, in no certain order; raises as `included`.

        The messages must be such as began on the tip's line.
        """
        # An explicit stack, since what is included may itself have been, without bound.
        stack: list[Walk] = [self._walk(tip, wanted)]
        answer: Fold | None = None
        while True:
            try:
                asked = next(stack[-1]) if answer is None else stack[-1].send(answer)
            except StopIteration as done:
                stack.pop()
                answer = done.value
                if not stack:
                    assert isinstance(answer, Fold)
                    return answer
            else:
                stack.append(self._walk(*asked))
                answer = None

    def _new_ones(self, commit: Commit, number: int, targets: Collection[Address]) -> Wanted:
        """Return what is asked of a parent, where no target can have been in the first parent's context."""
        parent = commit.parents[number]
        if targets:
            new = self.new_commits(parent, commit.parents[0])
            if any(oid not in new for oid, _ in targets):
                raise UnknownError
        return parent, targets

    def _walk(self, tip: bytes, wanted: Collection[Address]) -> Walk:
        state = Fold()
        narrow = narrowing(wanted)
        for oid, commit in reversed(self._since_all_began(tip, set(wanted))):
            others: list[Fold | None] = [None] * len(commit.parents)
            for number, targets in _included(commit).items():
                asked = [each for each in targets if each in wanted and each not in state]
                others[number] = Fold()
                if asked:
                    others[number] = yield self._new_ones(commit, number, asked)
            state.apply(oid, commit, others, narrow)
        if any(each not in state for each in wanted):
            raise UnknownError
        return state

    def _since_all_began(self, tip: bytes, left: set[Address]) -> list[tuple[bytes, Commit]]:
        """Return the commits of a line, newest first, back to where the last of some messages began."""
        creators = {oid for oid, _ in left}
        found: list[tuple[bytes, Commit]] = []
        oid = tip
        while left:
            commit = self.read(oid)
            found.append((oid, commit))
            if oid in creators:
                left = {each for each in left if each[0] != oid}
            for targets in _included(commit).values():
                left = left.difference(targets)
            if not commit.parents:
                break
            oid = commit.parents[0]
        return found


def narrowing(
    wanted: Collection[Address] = (),
) -> Callable[[Fold, Operation, bytes], Operation | None]:
    """Return what leaves of operations only what they do to messages that a fold holds, their order apart.

    Of what is included only the wanted messages come in.
    """

    def narrow(state: Fold, operation: Operation, oid: bytes) -> Operation | None:
        fields = operation.fields
        if operation.name == ops.EDIT:
            return operation if _address(fields["target"], oid) in state else None
        if operation.name == ops.MOVE:
            return None
        if "targets" not in fields:
            return operation
        include = operation.name == ops.INCLUDE
        among: Collection[Address] | Fold = wanted if include else state
        kept = [each for each in fields["targets"] if _address(each, oid) in among]
        if include:
            kept = [each for each in kept if _address(each, oid) not in state]
        if not kept and not ops.message_count(operation):
            return None
        narrowed = {**fields, "targets": kept}
        if include:
            narrowed.pop("after", None)
        return Operation(operation.name, narrowed)

    return narrow


def _included(commit: Commit) -> dict[int, list[Address]]:
    """Return the messages that a commit includes, by the place of the parent that has them."""
    found: dict[int, list[Address]] = {}
    for operation in commit.operations:
        if operation.name == ops.INCLUDE:
            number, targets = operation.fields.get("parent"), operation.fields.get("targets")
            if not isinstance(number, int) or not 0 < number < len(commit.parents):
                raise UnknownError
            try:
                named = [(bytes(made), n) for made, n in targets or ()]
            except (TypeError, ValueError):
                raise UnknownError from None
            found.setdefault(number, []).extend(named)
    return found


def _address(target: Sequence[Any], oid: bytes) -> Address:
    made, number = target
    return (bytes(made) or oid, number)


def new_commits(store: Store, tip: bytes, other: bytes) -> frozenset[bytes]:
    """Return the commits of one's past, itself included, that are not in another's."""
    commits = revisions.commits_of(store)
    return frozenset(commits.topological([ObjectId(tip)], [ObjectId(other)]))
