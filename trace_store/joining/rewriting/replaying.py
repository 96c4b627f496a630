"""Commits made anew on another context, one after the other.

Rule: operations are rewritten, never invented: addresses of commits that were made anew become the new ones, all others
stay. What a commit changes is compared with what the new context has by then, so that nothing is overwritten unseen.
Contexts are folded only where a commit does more than append.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.context.folding import Entry, Fold, is_append_only
from trace_store.context.pairs import callers
from trace_store.joining.groups import misplaced, open_calls, results_of, strayed
from trace_store.joining.plan import Side
from trace_store.joining.rewriting.addressing import rewritten
from trace_store.joining.rewriting.answers import (
    answers_of_others,
    brought,
    called_by,
    rival_answers,
    settle_answers,
)
from trace_store.joining.rewriting.checking import Checking
from trace_store.joining.three_way.exchanges import settle_exchanges
from trace_store.joining.three_way.properties import Change, operations_of, same_state
from trace_store.joining.three_way.squashing import squashed
from trace_store.objects import operations as ops
from trace_store.objects.commit import Commit, Operation
from trace_store.objects.shapes import check_operation
from trace_store.oid import ObjectId, hash_object
from trace_store.revision import created_by

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from trace_store.joining.desk import Desk
    from trace_store.joining.three_way.properties import Put
    from trace_store.joining.three_way.sides import Reading

    Address = tuple[bytes, int]


class Replay:
    """A line of commits on a start, which grows by commits of another.

    Attributes:
        tip: where it ends; None as long as there is nothing.
        made: new commits with their ids, oldest first.
        addresses: for each commit that was made anew the new one, and the number that its first message has there.
        present: for messages of commits that are to be made anew what is the same in what the line goes on.
        dropped: messages of commits that were left out.
        coming: commits that will be made anew on it later.
    """

    def __init__(self, reading: Reading, start: ObjectId | None, put: Put) -> None:
        self.tip = start
        self.made: list[tuple[ObjectId, Commit]] = []
        self.addresses: dict[bytes, tuple[bytes, int]] = {}
        self.present: dict[Address, Address] = {}
        self.dropped: set[Address] = set()
        self.coming: set[bytes] = set()
        self._reading = reading
        self._put = put
        self._state: Fold | None = None
        self._pending: list[tuple[ObjectId, Commit]] = []
        self._line: list[tuple[ObjectId, Commit]] = []
        self._start = start
        # Ids of calls: how many of its commits wait, and those of the next commit that will; what that answers, and
        # what of calls that are not its own.
        self._called: dict[str, int] = {}
        self._calls: set[str] = set()
        self._answered: set[str] = set()
        self._answers: set[str] = set()
        self._early: set[str] = (
            set()
        )  # ids of results that came before their calls, in another order of commits
        self._onto: dict[tuple[ObjectId, ...], Side] = {}
        # Of own messages of merges, behind copies of what these included.
        self._numbers: dict[Address, int] = {}

    def state(self) -> Fold:
        """Return the context that it ends with."""
        if self._state is None:
            start = self._start
            self._state = Fold() if start is None else self._reading.fold(start).copy()
        for oid, commit in self._pending:
            self._state.apply(oid, commit, self._reading.others(commit))
        self._pending = []
        return self._state

    def onto(self, oid: ObjectId) -> Side:
        """Return what it began on, and what was done there since the line of a commit parted from it."""
        parents = self._reading.commit(oid).parents
        itself = self._start is not None and self._reading.bases(self._start, oid) == [oid]
        if self._start is None or not parents or itself:
            return Side(Fold())  # what goes on itself contradicts nothing
        bases = self._reading.bases(self._start, parents[0])
        if tuple(bases) not in self._onto:  # picked commits may have parted elsewhere
            self._onto[tuple(bases)] = self._reading.side(self._start, bases)
        return self._onto[tuple(bases)]

    def merged(self, oid: ObjectId, number: int) -> tuple[Fold, Sequence[Fold], Fold]:
        """Return what it began on, what that shares with another parent of a commit, and that parent's context."""
        if self._start is None:
            return Fold(), (), Fold()
        parent = self._reading.commit(oid).parents[number]
        bases = [self._reading.fold(base) for base in self._reading.bases(self._start, parent)]
        return self._reading.fold(self._start), bases, self._reading.fold(parent)

    def address(self, old: Address) -> Address:
        """Return where a message is now."""
        if old in self.present:
            return self.present[old]
        found = self.addresses.get(bytes(old[0]))
        if found is None:
            return old
        return found[0], found[1] + self._numbers.get((bytes(old[0]), old[1]), old[1])

    def operations(
        self, oid: ObjectId, commit: Commit, desk: Desk, *, flat: bool = False
    ) -> list[Operation]:
        """Return the operations of a commit as they are on this line; none where it has all of that already.

        Args:
            oid: the commit's id.
            commit: the commit.
            desk: where contradictions are brought.
            flat: whether what a merge included is copied, since its other parents stay behind.

        Raises:
            UnsupportedFormatError: an operation is unknown to this version.
        """
        for operation in commit.operations:
            if operation.name not in ops.OPERATIONS:
                raise errors.UnsupportedFormatError(
                    f"commit {oid.short()} holds the operation {operation.name[:40]!r}, "
                    "which this version does not know",
                    required=f"operation:{operation.name}",
                )
        given: Sequence[Operation] = commit.operations
        if flat and any(operation.name == ops.INCLUDE for operation in given):
            given = self._squashed(oid, commit)
        twice = [n for n in range(created_by(commit)) if (oid, n) in self.present]
        if not twice and is_append_only(commit) and all(each.name != ops.TOOLS for each in given):
            made = [self.rewritten(operation, oid) for operation in given]
            made += self._settled_answers(oid, commit, given, desk)
            if not self._answers and not self._calls & self._early:
                return made
            return [*made, *self._kept_together(oid, commit, self._before(commit), made, desk)]
        before = self._before(commit)
        final = self._final(oid, commit, before)
        checking = Checking(self, oid, before, final, self.state(), desk, self._put)
        checking.written.update(self._written(oid, commit, twice))
        made = [each for operation in given for each in checking.checked(operation)]
        made += self._settled_answers(oid, commit, given, desk)
        # It keeps the numbers of its messages, by which older commits name them.
        made += [ops.remove([(ops.HERE, number) for number in twice])] if twice else []
        made += self._kept_together(oid, commit, before, made, desk)
        return [] if twice and not desk.open and not self._says_more(made) else made

    def _says_more(self, made: Sequence[Operation]) -> bool:
        """Tell whether operations change what is shown, or how, or say something of another kind."""
        if any(each.name in (ops.INCLUDE, ops.TOOLS, *ops.LEAVES_CONTEXT) for each in made):
            return True
        before, after = self.state(), self.state().copy()
        after.apply(ops.HERE, Commit((), "", 0, made))
        shown, now = [*before.visible()], [*after.visible()]
        return len(shown) != len(now) or not all(
            old.address == new.address and same_state(old, new)
            for old, new in zip(shown, now, strict=True)
        )

    def _squashed(self, oid: ObjectId, commit: Commit) -> Sequence[Operation]:
        """Return the operations of a merge without its other parents, and note which numbers its own messages get.

        What it included is copied, but for what the line shows, or what of it was copied by itself.
        """
        state = self.state()
        given: list[Operation] = []
        for operation in commit.operations:
            if operation.name == ops.INCLUDE:
                named = [(bytes(made), number) for made, number in operation.fields["targets"]]
                placed = [(each, self.address(each)) for each in named]
                left = [
                    list(old)
                    for old, new in placed
                    if new not in state or (new == old and not state.entry(old).visible)
                ]
                operation = Operation(operation.name, {**operation.fields, "targets": left})
            given.append(operation)
        numbers = list(range(sum(map(ops.message_count, given))))
        before = self._before(commit)
        for parent in range(1, len(commit.parents)):
            theirs = self._reading.fold(commit.parents[parent])
            given, later = squashed(given, before, theirs, parent)
            numbers = [later[number] for number in numbers]
        self._numbers.update(((bytes(oid), old), new) for old, new in enumerate(numbers))
        return given

    def _before(self, commit: Commit) -> Fold:
        return self._reading.fold(commit.parents[0]) if commit.parents else Fold()

    def _final(self, oid: ObjectId, commit: Commit, before: Fold) -> dict[Address, Entry]:
        """Return the messages that a commit changes several times, as it leaves them."""
        seen: set[Address] = set()
        several: set[Address] = set()
        for each in commit.operations if len(commit.operations) > 1 else ():
            target = each.fields.get("target")
            targets = each.fields.get("targets", ()) if target is None else [target]
            named = {(bytes(made), number) for made, number in targets if made}
            several |= named & seen
            seen |= named
        several &= before.addresses()
        if not several:
            return {}
        after = before.copy()
        after.apply(oid, commit, self._reading.others(commit))
        return {address: after.entry(address) for address in several}

    def _written(
        self, oid: ObjectId, commit: Commit, numbers: Sequence[int]
    ) -> dict[Address, Entry]:
        """Return some messages of a commit as it wrote them, by their addresses in its own operations."""
        messages = [m for each in commit.operations for m in each.fields.get("messages", ())]
        return {(ops.HERE, number): Entry((oid, number), messages[number]) for number in numbers}

    def _settled_answers(
        self, oid: ObjectId, commit: Commit, given: Sequence[Operation], desk: Desk
    ) -> list[Operation]:
        """Return what settles that operations of a commit answer calls that the new line has answered as well."""
        done = Commit(commit.parents, "", 0, list(given))
        every = brought(oid, done, lambda: self._before(commit), self._reading.others(done))
        new = [entry for entry in every if entry.address not in self.present]
        included = [each for each in new if each.address[0] != oid]
        there = [each for each in included if self.placed(each.address, oid) in self.state()]
        self._calls = set(open_calls(each for each in new if each not in there))
        self._answered = {name for entry in new for name in results_of(entry)}
        own = {name for name, count in self._called.items() if count == 1}
        self._answers = answers_of_others(new, there) - own
        if not self._answers:
            return []  # as nearly always: a line parts seldom where a call waits
        line = self._before(commit).copy()
        line.apply(oid, done, self._reading.others(done))
        new = [each for each in new if each not in there]
        called = called_by(line.entries, new, self._answers)
        now = {key: self.placed(call, oid) for key, call in called.items()}
        rivals = rival_answers(self.state().entries, new, now)
        return settle_answers(rivals, desk, self._put, lambda each: self.placed(each, oid))

    def _kept_together(
        self,
        oid: ObjectId,
        commit: Commit,
        before: Fold,
        made: Sequence[Operation],
        desk: Desk,
    ) -> list[Operation]:
        """Return what keeps calls and results together that operations would part or double, as is settled."""
        parts = bool(self._answers or self._calls & self._early)
        parts = parts or any(map(_may_part, [*commit.operations, *made]))
        if desk.open or not parts:
            return []  # as most are; and what is decided may well part nothing
        others = self._reading.others(commit)
        ours, after = self.state(), before.copy()
        after.apply(oid, commit, others)
        new = ours.copy()
        new.apply(ops.HERE, Commit(commit.parents, "", 0, list(made)), others)
        # In another order of commits the other half of an exchange may be about to come.
        theirs = [e.copy() for e in after.entries if e.address[0] not in self.coming]
        for entry in theirs:
            entry.address = self.placed(entry.address, oid)
        changes: dict[Address, Change] = {}
        there = {entry.address: entry for entry in new.entries}
        settle_exchanges(ours.entries, theirs, there, changes, desk, self._put)
        settled = operations_of(list(changes.items()))
        new.apply(ops.HERE, Commit((), "", 0, settled))
        # An id may be used again: what comes in answers the call that it answers on its own line.
        astray = strayed(list(new.visible()), [e for e in theirs if e.visible])
        back = [ops.move([e.address], after=behind.address) for e, behind in astray]
        new.apply(ops.HERE, Commit((), "", 0, back))
        settled = [*settled, *back]
        # What was apart on either line stays so.
        lines = ours.entries, theirs
        apart = {e.address for each in lines for e, _ in misplaced([e for e in each if e.visible])}
        seen = list(new.visible())
        found = misplaced(seen)
        if self.coming:
            paired = {(seen[result].address, name) for result, name in callers(seen)}
            self._early |= {n for e in seen for n in results_of(e) if (e.address, n) not in paired}
        moves = [(e.address, behind.address) for e, behind in found if e.address not in apart]
        return [*settled, *(ops.move([address], after=behind) for address, behind in moves)]

    def add(self, commit: Commit, old: Sequence[tuple[bytes, int]]) -> ObjectId:
        """Put a commit on the line; `old` are the commits that it stands for, with where their messages begin.

        Raises:
            CorruptObjectError: nobody could read it.
        """
        for operation in commit.operations:
            check_operation(operation.name, operation.fields)
        data = commit.encode()
        oid = hash_object(data)
        self.made.append((oid, commit))
        self._reading.remember(oid, commit)
        self._follow(oid, commit, old)
        return oid

    def keep(self, oid: ObjectId, commit: Commit) -> None:
        """Put a commit on the line as it is, since nothing before it changed."""
        self._follow(oid, commit, [(oid, 0)])

    @property
    def last(self) -> Commit | None:
        """The last commit that was put on the line; None as long as there is none."""
        return self._line[-1][1] if self._line else None

    def take_back(self) -> tuple[Commit, list[tuple[bytes, int]]] | None:
        """Take the last commit off, to put another in its place; None when nothing was put on the line."""
        if not self._line:
            return None
        oid, commit = self._line.pop()
        if self.made and self.made[-1][0] == oid:
            self.made.pop()
        self.tip = commit.parents[0] if commit.parents else None
        old = [(o, first) for o, (new, first) in self.addresses.items() if new == oid]
        self._state, self._pending = None, list(self._line)
        return commit, old

    def _follow(self, oid: ObjectId, commit: Commit, old: Sequence[tuple[bytes, int]]) -> None:
        for each, first in old:
            self.addresses[bytes(each)] = (oid, first)
        self._pending.append((oid, commit))
        self._line.append((oid, commit))
        for name in self._answered:
            self._called[name] = max(self._called.get(name, 0) - 1, 0)
        for name in self._calls:
            self._called[name] = self._called.get(name, 0) + 1
        self.tip = oid

    def rewritten(self, operation: Operation, oid: ObjectId) -> Operation:
        """Return an operation of an old commit with the addresses of the new one."""
        return rewritten(
            operation,
            lambda address: self.placed(address, oid),
            lambda about: self.address((about, 0))[0],
        )

    def placed(self, address: Address, oid: ObjectId) -> Address:
        """Return an address of an old commit's operation as it is in the new one."""
        if not address[0] or address[0] == oid:
            return self.present.get((oid, address[1])) or (ops.HERE, address[1])
        return self.address(address)


def _may_part(operation: Operation) -> bool:
    """Tell whether an operation can part a call from its result."""
    parts = operation.name in (ops.REMOVE, ops.RESTORE, ops.REPLACE, ops.MOVE)
    return parts or (operation.name == ops.ANNOTATE and "priority" in operation.fields)
