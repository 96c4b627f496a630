"""Commits made anew on another context, one after the other.

Rule: operations are rewritten, never invented: addresses of commits that were made anew become the new ones, all others
stay. What a commit changes is compared with what the new context has by then, so that nothing is overwritten unseen.
Contexts are folded only where a commit does more than append.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.context.folding import REMOVED, REPLACED, Entry, Fold, Version, is_append_only
from trace_store.joining import conflicts as kinds
from trace_store.joining.conflicts import BOTH, TEXT, THEIRS, Desk
from trace_store.joining.groups import calls_of, misplaced, open_calls, results_of
from trace_store.joining.rewriting.answers import appended, rival_answers, settle_answers
from trace_store.joining.three_way.exchanges import settle_parted
from trace_store.joining.three_way.properties import (
    Change,
    both_parts,
    operations_of,
    reworded_parts,
)
from trace_store.joining.three_way.squashing import squashed
from trace_store.objects import operations as ops
from trace_store.objects.commit import Commit, Operation
from trace_store.oid import ObjectId, hash_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from trace_store.joining.three_way.properties import Put
    from trace_store.joining.three_way.sides import Reading

    Address = tuple[bytes, int]

REWRITES, PICKED = "rewrites", "picked"
"""Links of a commit that was made anew: from which it was. The target is text, since that one need not stay."""


class Replay:
    """A line of commits on a start, which grows by commits of another.

    Attributes:
        tip: where it ends; None as long as there is nothing.
        made: new commits with their ids, oldest first.
        addresses: for each commit that was made anew the new one, and the number that its first message has there.
        dropped: messages of commits that were left out.
    """

    def __init__(self, reading: Reading, start: ObjectId | None, put: Put) -> None:
        self.tip = start
        self.made: list[tuple[ObjectId, Commit]] = []
        self.addresses: dict[bytes, tuple[bytes, int]] = {}
        self.dropped: set[Address] = set()
        self._reading = reading
        self._put = put
        self._state: Fold | None = None
        self._pending: list[tuple[ObjectId, Commit]] = []
        self._line: list[tuple[ObjectId, Commit]] = []
        self._start = start
        self._called: set[str] = set()

    def state(self) -> Fold:
        """Return the context that it ends with."""
        if self._state is None:
            start = self._start
            self._state = Fold() if start is None else self._reading.fold(start).copy()
        for oid, commit in self._pending:
            self._state.apply(oid, commit, self._reading.others(commit))
        self._pending = []
        return self._state

    def address(self, old: Address) -> Address:
        """Return where a message is now."""
        found = self.addresses.get(bytes(old[0]))
        return old if found is None else (found[0], found[1] + old[1])

    def operations(
        self, oid: ObjectId, commit: Commit, desk: Desk, *, flat: bool = False
    ) -> list[Operation]:
        """Return the operations of a commit as they are on this line.

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
        includes = any(operation.name == ops.INCLUDE for operation in given)
        if flat and includes:
            before = self._reading.fold(commit.parents[0])
            for number in range(1, len(commit.parents)):
                given = squashed(given, before, self._reading.fold(commit.parents[number]))
        if is_append_only(commit):
            made = [self._rewritten(operation, oid) for operation in given]
            return [*made, *self._settled_answers(oid, commit, desk)]
        before = self._reading.fold(commit.parents[0]) if commit.parents else Fold()
        checking = _Checking(self, oid, before, self.state(), desk, self._put)
        made = [each for operation in given for each in checking.checked(operation)]
        return [*made, *self._kept_together(oid, commit, before, made, desk)]

    def _settled_answers(self, oid: ObjectId, commit: Commit, desk: Desk) -> list[Operation]:
        """Return what settles that a commit answers calls that the new line has answered as well."""
        brought = appended(oid, commit)
        answers = {name for entry in brought for name in results_of(entry)} - self._called
        self._called.update(name for entry in brought for name in calls_of(entry))
        if not answers:
            return []  # as nearly always: a line parts seldom where a call waits
        waited = open_calls(self._reading.fold(commit.parents[0]).entries) if commit.parents else {}
        rivals = rival_answers(self.state().entries, brought, answers & waited.keys())
        return settle_answers(rivals, desk, self._put)

    def _kept_together(
        self,
        oid: ObjectId,
        commit: Commit,
        before: Fold,
        made: Sequence[Operation],
        desk: Desk,
    ) -> list[Operation]:
        """Return what keeps calls and results together that operations would part, as is settled."""
        if desk.open or not any(map(_may_part, [*commit.operations, *made])):
            return []  # as most are; and what is decided may well part nothing
        others = self._reading.others(commit)
        ours, after = self.state(), before.copy()
        after.apply(oid, commit, others)
        new = ours.copy()
        new.apply(ops.HERE, Commit(commit.parents, "", 0, list(made)), others)
        theirs = [entry.copy() for entry in after.entries]
        for entry in theirs:
            entry.address = self._placed(entry.address, oid)
        changes: dict[Address, Change] = {}
        there = {entry.address: entry for entry in new.entries}
        settle_parted(ours.entries, theirs, there, changes, desk)
        settled = operations_of(list(changes.items()))
        new.apply(ops.HERE, Commit((), "", 0, settled))
        # What was apart on either line stays so.
        lines = ours.entries, theirs
        apart = {e.address for each in lines for e, _ in misplaced([e for e in each if e.visible])}
        found = misplaced(list(new.visible()))
        moves = [(e.address, behind.address) for e, behind in found if e.address not in apart]
        return [*settled, *(ops.move([address], after=behind) for address, behind in moves)]

    def add(self, commit: Commit, old: Sequence[tuple[bytes, int]]) -> ObjectId:
        """Put a commit on the line; `old` are the commits that it stands for, with where their messages begin."""
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
        self.tip = oid

    def _rewritten(self, operation: Operation, oid: ObjectId) -> Operation:
        return rewritten(operation, lambda address: self._placed(address, oid))

    def _placed(self, address: Address, oid: ObjectId) -> Address:
        """Return an address of an old commit's operation as it is in the new one."""
        if not address[0] or address[0] == oid:
            return (ops.HERE, address[1])
        return self.address(address)


def rewritten(operation: Operation, place: Any) -> Operation:
    """Return an operation with other addresses; what an `include` names stays, since it is in another context."""
    fields = dict(operation.fields)
    for name in ("target", "after"):
        if fields.get(name) is not None:
            fields[name] = list(place((bytes(fields[name][0]), fields[name][1])))
    if operation.name != ops.INCLUDE:
        for name in ("targets", "sources"):
            if name in fields:
                fields[name] = [list(place((bytes(c), n))) for c, n in fields[name]]
    if isinstance(fields.get("about"), bytes):
        fields["about"] = ObjectId(place((fields["about"], 0))[0])
    return Operation(operation.name, fields)


def with_address(operations: Sequence[Operation], old: Address, new: Address) -> list[Operation]:
    """Return operations that name a message by another address."""
    return [rewritten(each, lambda given: new if given == old else given) for each in operations]


class _Checking:
    """The operations of one commit, each against what the new context has by then."""

    def __init__(
        self, replay: Replay, oid: ObjectId, before: Fold, state: Fold, desk: Desk, put: Put
    ) -> None:
        self._replay = replay
        self._oid = oid
        self._before = {entry.address: entry for entry in before.entries}
        self._now = {entry.address: entry for entry in state.entries}
        self._desk = desk
        self._put = put
        self._brought: set[Address] = set()  # what a merge included before it says more of it
        self._created = 0

    def checked(self, operation: Operation) -> list[Operation]:
        """Return the operation as it is made anew; none when nothing is left of it. To be asked one after the other."""
        if operation.name == ops.RESTORE and operation.fields.get("version") is not None:
            return [each for one in self._renumbered(operation) for each in self._checked(one)]
        return self._checked(operation)

    def _renumbered(self, operation: Operation) -> list[Operation]:
        """Return what goes back to wordings of a message that the new line may count otherwise, or not have."""
        version: int = operation.fields["version"]
        made: list[Operation] = []
        for commit, number in operation.fields["targets"]:
            old = bytes(commit), number
            base, now = self._before.get(old), self._now.get(self._replay.address(old))
            if base is None or now is None:
                made.append(ops.restore([old], version=version))
            elif version >= len(base.versions):  # a wording of this very commit
                later = version - len(base.versions) + len(now.versions)
                made.append(ops.restore([old], version=later))
            else:
                wording = base.versions[version].parts
                if now.versions[version : version + 1] and now.versions[version].parts == wording:
                    made.append(ops.restore([old], version=version))
                else:
                    made += [ops.edit(old, wording)] if now.parts != wording else []
                    made.append(ops.restore([old]))
        return made

    def _checked(self, operation: Operation) -> list[Operation]:
        made: list[Operation] = []
        first, placed = self._created, list[Operation]()
        self._created += ops.message_count(operation)
        fields = dict(operation.fields)
        kept: dict[str, Any] = {}
        if operation.name == ops.EDIT:
            target = (bytes(fields["target"][0]), fields["target"][1])
            if not self._may(operation, target, made):
                return made
        elif "targets" in fields and operation.name != ops.INCLUDE:
            targets = [(bytes(commit), number) for commit, number in fields["targets"]]
            kept["targets"] = [list(each) for each in targets if self._may(operation, each, made)]
            if targets and not kept["targets"]:
                if not fields.get("messages"):
                    return made
                # It stands for nothing that would tell where.
                own = [(ops.HERE, number) for number in range(first, self._created)]
                placed.append(ops.move(own, after=self._place_of(targets)))
        elif operation.name == ops.INCLUDE:
            targets = [(bytes(commit), number) for commit, number in fields["targets"]]
            brought = [each for each in targets if not self._is_made_anew(each)]
            if not brought:
                return made
            kept["targets"] = [list(each) for each in brought]
            self._brought.update(brought)
        after = fields.get("after")
        if after is not None and not self._is_there((bytes(after[0]), after[1])):
            if operation.name != ops.INCLUDE:
                self._missing((bytes(after[0]), after[1]))
                return made
            del fields["after"]
        new = Operation(operation.name, {**fields, **kept})
        return [*made, rewritten(new, lambda a: self._replay._placed(a, self._oid)), *placed]

    def _place_of(self, targets: Sequence[Address]) -> Address | None:
        """Return the last of some messages that is on the new line, or what stood before them; None: nothing did."""
        order = list(self._before)
        there = [each for each in targets if each in self._before]
        at = max(map(order.index, there), default=len(order) - 1)
        found = (self._replay.address(each) for each in reversed(order[: at + 1]))
        return next((each for each in found if each in self._now), None)

    def _is_there(self, old: Address) -> bool:
        own = not old[0] or old[0] == self._oid or old in self._brought
        return own or self._replay.address(old) in self._now

    def _is_made_anew(self, old: Address) -> bool:
        """Tell whether a message has another address here, under which it is on the line already."""
        new = self._replay.address(old)
        return new != old and new in self._now

    def _missing(self, old: Address) -> None:
        """Bring up that a message is not there, unless its commit was left out on purpose."""
        if old not in self._replay.dropped:
            base = self._before.get(old)
            self._desk.bring(kinds.MISSING_TARGET, [old], base, (), [base] if base else ())

    def _may(self, operation: Operation, old: Address, made: list[Operation]) -> bool:
        """Tell whether an operation may change a message; what settles a contradiction otherwise is added."""
        if not self._is_there(old):
            self._missing(old)
            return False
        base, now = self._before.get(old), self._now.get(self._replay.address(old))
        if base is None or now is None:
            return True
        kind = _contradiction(operation, base, now)
        if not kind:
            return True
        theirs = _after(base.copy(), operation)
        settled = self._desk.bring(kind, [now.address], base, [now], [theirs])
        if settled.choice in (BOTH, TEXT):
            parts = both_parts(now.parts, theirs.parts)
            if settled.choice == TEXT:
                parts = reworded_parts(now.parts, settled.text, self._put)
            made.append(ops.edit(now.address, parts))
            if now.hidden:
                made.append(ops.restore([now.address]))
        elif settled.choice == THEIRS and now.hidden and not base.hidden:
            made.append(ops.restore([now.address]))  # theirs shows it
        return settled.choice == THEIRS


def _may_part(operation: Operation) -> bool:
    """Tell whether an operation can part a call from its result."""
    parts = operation.name in (ops.REMOVE, ops.RESTORE, ops.REPLACE, ops.MOVE)
    return parts or (operation.name == ops.ANNOTATE and "priority" in operation.fields)


def _contradiction(operation: Operation, base: Entry, now: Entry) -> str:
    """Return the kind of conflict between what an operation does and what the context has by then, or ""."""
    if operation.name == ops.EDIT:
        if now.hidden and not base.hidden:
            return (
                kinds.COMPRESSED_AND_EDITED if now.hidden == REPLACED else kinds.EDITED_AND_REMOVED
            )
        changed = now.parts != base.parts and now.parts != operation.fields["parts"]
        return kinds.BOTH_EDITED if changed else ""
    if operation.name in (ops.REMOVE, ops.REPLACE) and not now.hidden:
        if now.parts != base.parts:
            replaces = operation.name == ops.REPLACE
            return kinds.COMPRESSED_AND_EDITED if replaces else kinds.EDITED_AND_REMOVED
        pinned = now.priority == ops.PINNED != base.priority
        return kinds.PINNED_AND_REMOVED if pinned else ""
    priority = operation.fields.get("priority")
    if operation.name == ops.ANNOTATE and now.hidden and not base.hidden:
        return kinds.PINNED_AND_REMOVED if priority == ops.PINNED != base.priority else ""
    if operation.name == ops.ANNOTATE and priority not in (None, now.priority):
        return kinds.CONTRADICTING_PRIORITIES if now.priority != base.priority else ""
    return ""


def _after(entry: Entry, operation: Operation) -> Entry:
    """Return a message after an operation, to be shown as what theirs wants."""
    if operation.name == ops.EDIT:
        entry.versions[entry.current] = Version(operation.fields["parts"], entry.place)
    elif operation.name == ops.ANNOTATE:
        entry.priority = operation.fields["priority"]
    else:
        entry.hidden = REPLACED if operation.name == ops.REPLACE else REMOVED
    return entry
