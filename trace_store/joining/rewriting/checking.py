"""What a commit changes, held against what the context that it goes on has by then.

Rule: nothing is overwritten unseen: where the other line has changed the same, a conflict is brought to the desk, of
the kind that a merge would bring. Of what a commit changes several times it is brought once, about what comes of it.
"""

from __future__ import annotations

from trace_store.context.folding import REPLACED, Entry, Fold
from trace_store.joining import conflicts as kinds
from trace_store.joining.conflicts import BOTH, OURS, TEXT, THEIRS
from trace_store.joining.desk import Desk
from trace_store.joining.groups import whole
from trace_store.joining.rewriting.contradicting import as_left, contradiction
from trace_store.joining.three_way.properties import (
    both_parts,
    merge_entry,
    operations_of,
    reworded_parts,
)
from trace_store.objects import operations as ops
from trace_store.objects.commit import Operation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Protocol

    from trace_store.joining.plan import Side
    from trace_store.joining.three_way.properties import Put
    from trace_store.oid import ObjectId

    Address = tuple[bytes, int]

    class NewLine(Protocol):
        """What is asked of the line that a commit is made anew on."""

        dropped: set[Address]

        def onto(self, oid: ObjectId) -> Side:
            """Return what the line began on, and what was done there since that of a commit parted from it."""

        def merged(self, oid: ObjectId, number: int) -> tuple[Fold, Sequence[Fold], Fold]:
            """Return what the line began on, what that shares with another parent of a commit, and that parent."""

        def address(self, old: Address) -> Address:
            """Return where a message is now."""

        def placed(self, address: Address, oid: ObjectId) -> Address:
            """Return an address of an old commit's operation as it is in the new one."""

        def rewritten(self, operation: Operation, oid: ObjectId) -> Operation:
            """Return an operation of an old commit with the addresses of the new one."""


class Checking:
    """The operations of one commit, each against what the new context has by then.

    Attributes:
        written: messages that the commit wrote and the new context has already, by their addresses in its operations.
    """

    def __init__(
        self,
        replay: NewLine,
        oid: ObjectId,
        before: Fold,
        final: Mapping[Address, Entry],
        state: Fold,
        desk: Desk,
        put: Put,
    ) -> None:
        """Begin.

        Args:
            replay: the line that the commit is made anew on.
            oid: the commit's id.
            before: the context that it went on from.
            final: the messages that it changes several times, as it leaves them.
            state: the context that it goes on by now.
            desk: where contradictions are brought.
            put: stores the content of texts that settle them.
        """
        self._replay = replay
        self._oid = oid
        self._before = {entry.address: entry for entry in before.entries}
        self.written: dict[Address, Entry] = {}
        self._final = final
        self._tools = before.tools, state.tools
        self._our_tools = state.tools
        self._now = {entry.address: entry for entry in state.entries}
        self._desk = desk
        self._put = put
        self._brought: set[Address] = set()  # what a merge included before it says more of it
        self._worded: set[Address] = set()  # what this commit itself has given another wording
        self._hid: set[Address] = set()  # and what it hides, whatever it says of that later
        self._decided: dict[tuple[str, Address], str] = {}
        # Of its wordings of a message, in order: the number that each has now; None when it was not taken.
        self._numbers: dict[Address, list[int | None]] = {}
        self._reworded: dict[Address, int] = {}  # how often what is made anew rewords a message
        self._created = 0

    def checked(self, operation: Operation) -> list[Operation]:
        """Return the operation as it is made anew; none when nothing is left of it. To be asked one after the other."""
        made = self._made_anew(operation)
        for each in made:
            if each.name == ops.EDIT:
                target = bytes(each.fields["target"][0]), each.fields["target"][1]
                self._reworded[target] = self._reworded.get(target, 0) + 1
        return made

    def _made_anew(self, operation: Operation) -> list[Operation]:
        if operation.name == ops.TOOLS:
            return self._offered(operation)
        if operation.name == ops.RESTORE and operation.fields.get("version") is not None:
            made = self._renumbered(operation)
            self._worded.update((bytes(oid), n) for oid, n in operation.fields["targets"])
            return made
        if operation.name == ops.ANNOTATE and "keep" in operation.fields:
            return [each for one in self._with_patterns(operation) for each in self._checked(one)]
        if operation.name == ops.REPLACE and not self._has_all_of(operation):
            return self._summarised(operation)
        return self._checked(operation)

    def _has_all_of(self, operation: Operation) -> bool:
        """Tell whether the new context has all messages already that an operation writes."""
        count = len(operation.fields["messages"])
        return all((ops.HERE, self._created + n) in self.written for n in range(count))

    def _offered(self, operation: Operation) -> list[Operation]:
        """Return what sets tools, where the other line has not set others."""
        before, now = self._tools
        theirs = tuple(operation.fields["schemas"])
        self._tools = theirs, theirs
        if now in (before, theirs):
            return [operation]
        settled = self._desk.bring(kinds.CONTRADICTING_TOOLS, [])
        if settled.choice == BOTH:
            ours = self._our_tools
            both: list[Any] = [*ours, *(each for each in theirs if each not in ours)]
            self._tools = theirs, tuple(both)
            return [ops.tools(both)]
        if settled.choice == OURS:
            self._tools = theirs, now
        return [operation] if settled.choice == THEIRS else []

    def _with_patterns(self, operation: Operation) -> list[Operation]:
        """Return what annotates messages so that patterns which the other line set are kept as well."""
        added: dict[Address, list[Any]] = {}
        for commit, number in operation.fields["targets"]:
            old = bytes(commit), number
            base, now = self._before.get(old), self._now.get(self._replay.address(old))
            if base is not None and now is not None and now.keep != base.keep:
                new = [each for each in operation.fields["keep"] if each not in now.keep]
                added[old] = [*now.keep, *new]
        given = [(bytes(commit), number) for commit, number in operation.fields["targets"]]
        rest = [list(each) for each in given if each not in added]
        fields = operation.fields
        made = [Operation(ops.ANNOTATE, {**fields, "targets": rest})] if rest else []
        for old, keep in added.items():
            made.append(Operation(ops.ANNOTATE, {**fields, "targets": [list(old)], "keep": keep}))
        return made

    def _summarised(self, operation: Operation) -> list[Operation]:
        """Return what puts a summary in the place of messages, where the other line has not put one of its own."""
        first, count = self._created, len(operation.fields["messages"])
        targets = [(bytes(commit), number) for commit, number in operation.fields["targets"]]
        placed = {self._replay.address(each) for each in targets}
        rivals = [
            (others, [self._now[a] for a in made if a in self._now and self._now[a].visible])
            for others, made in self._replay.onto(self._oid).replacements
            if others & placed
        ]
        mine = [entry for _, entries in rivals for entry in entries]
        if not mine:
            return self._checked(operation)
        own = [(ops.HERE, first + number) for number in range(count)]
        messages = operation.fields["messages"]
        yours = [Entry((self._oid, first + n), message) for n, message in enumerate(messages)]
        about = self._replay.address(targets[0])
        settled = self._desk.bring(kinds.BOTH_COMPRESSED, [about], None, mine, yours)
        if settled.choice == OURS:
            self._created += count
            after = ops.move(own, after=self._place_of(targets))
            kept = Operation(operation.name, {**operation.fields, "targets": []})
            kept = self._replay.rewritten(kept, self._oid)
            return [kept, after, ops.remove(own)]
        made = self._checked(operation)
        if settled.choice == THEIRS:
            made.append(ops.remove([entry.address for entry in mine]))
            made_by_us = {a for _, new in self._replay.onto(self._oid).replacements for a in new}
            back = {a for others, _ in rivals for a in others} - placed - made_by_us
            now = self._now.values()
            hidden = [each for each in now if each.address in back and each.hidden == REPLACED]
            shown = [entry.address for entry in whole(hidden, list(now))]
            made += [ops.restore(shown)] if shown else []
        return made

    def _renumbered(self, operation: Operation) -> list[Operation]:
        """Return what restores an earlier wording of messages, which may have another number here, or not be here."""
        version: int = operation.fields["version"]
        made: list[Operation] = []
        for commit, number in operation.fields["targets"]:
            old = bytes(commit), number
            base, now = self._before.get(old), self._now.get(self._replay.address(old))
            if base is None or now is None:
                made += self._checked(ops.restore([old], version=version))
                continue
            if version >= len(base.versions):  # a wording of this very commit
                later = self._numbers.get(old, [])[version - len(base.versions)]
                taken = ops.restore([old]) if later is None else ops.restore([old], version=later)
                made += self._checked(taken)
                continue
            wording = base.versions[version].parts
            edit = ops.edit(old, wording)
            if base.parts != wording and not self._may(edit, old, made):
                continue
            if old in self._worded and base.parts == wording:  # after all it is as it was
                made += self._checked(ops.restore([old], version=now.current))
            elif old not in self._worded and wording in (base.parts, now.parts):
                made += self._checked(ops.restore([old]))  # it may be hidden
            elif [each.parts for each in now.versions[version : version + 1]] == [wording]:
                made += self._checked(ops.restore([old], version=version))
            else:
                made.append(self._replay.rewritten(edit, self._oid))
                made += self._checked(ops.restore([old]))
        return made

    def _checked(self, operation: Operation) -> list[Operation]:
        made: list[Operation] = []
        first, placed = self._created, list[Operation]()
        self._created += ops.message_count(operation)
        fields = dict(operation.fields)
        kept: dict[str, Any] = {}
        if operation.name == ops.EDIT:
            target = (bytes(fields["target"][0]), fields["target"][1])
            if not self._may_word(operation, target, made):
                return made
            self._worded.add(target)
        elif "targets" in fields and operation.name != ops.INCLUDE:
            targets = [(bytes(commit), number) for commit, number in fields["targets"]]
            if operation.name == ops.MOVE:
                targets = [each for each in targets if each not in self.written]
                targets = self._not_placed_otherwise(targets, fields.get("after"))
                if not targets:
                    return made
            allowed = [each for each in targets if self._may(operation, each, made)]
            self._note_hidden(operation.name, allowed)
            kept["targets"] = [list(each) for each in allowed]
            if targets and not kept["targets"]:
                if not fields.get("messages"):
                    return made
                # It stands for nothing that would tell where.
                own = [(ops.HERE, number) for number in range(first, self._created)]
                placed.append(ops.move(own, after=self._place_of(targets)))
        elif operation.name == ops.INCLUDE:
            targets = [(bytes(commit), number) for commit, number in fields["targets"]]
            made += self._merged(targets, fields["parent"])
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
        return [*made, self._replay.rewritten(new, self._oid), *placed]

    def _merged(self, targets: Sequence[Address], number: int) -> list[Operation]:
        """Return what a merge's other parent has changed in messages that the new line began with.

        The merge included them with these changes; this line has them already, so that an include changes nothing.
        """
        if not any(each in self._now for each in targets):
            return []  # as in nearly every merge
        start, bases, other = self._replay.merged(self._oid, number)
        changes = []
        for each in targets:
            theirs = other.entry(each) if each in other else None
            if theirs is None or each not in start or each not in self._now:
                continue
            based = [base.entry(each) for base in bases if each in base]
            change = merge_entry(based, self._now[each], theirs, self._desk, self._put)
            if change is not None:
                changes.append((each, change))
        return operations_of(changes)

    def _note_hidden(self, name: str, targets: Sequence[Address]) -> None:
        if name in (ops.REMOVE, ops.REPLACE):
            self._hid.update(targets)
        elif name == ops.RESTORE:
            self._hid.difference_update(targets)

    def _not_placed_otherwise(self, targets: Sequence[Address], after: Any) -> list[Address]:
        """Return the messages that a move may place: those that the other line has not placed, or as is settled."""
        placed = self._replay.onto(self._oid).placed
        if not placed:
            return list(targets)
        behind = (
            None if after is None else self._replay.placed((bytes(after[0]), after[1]), self._oid)
        )
        moving = [self._replay.address(each) for each in targets]
        going = {*moving} - {*placed}
        order = [each for each in self._now if each not in going]
        places = {each: at for at, each in enumerate(order)}
        chosen: list[Address] = []
        for old, new in zip(targets, moving, strict=True):
            base, now = self._before.get(old), self._now.get(new)
            if base is not None and now is not None and new in placed:
                at = places[new]
                if (order[at - 1] if at else None) != behind:
                    settled = self._desk.bring(kinds.BOTH_MOVED, [new], base, [now], [base])
                    if settled.choice == OURS:
                        continue
            chosen.append(old)
        return chosen

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

    def _may_word(self, operation: Operation, old: Address, made: list[Operation]) -> bool:
        """Tell whether an edit is made, and note which number its wording has then."""
        may = self._may(operation, old, made)
        now = self._now.get(self._replay.placed(old, self._oid))
        had = 0 if now is None else len(now.versions) + self._reworded.get(now.address, 0)
        self._numbers.setdefault(old, []).append(had if may else None)
        return may

    def _may(self, operation: Operation, old: Address, made: list[Operation]) -> bool:
        """Tell whether an operation may change a message; what settles a contradiction otherwise is added."""
        if not self._is_there(old):
            self._missing(old)
            return False
        base = self._before.get(old) or self.written.get(old)
        now = self._now.get(self._replay.placed(old, self._oid))
        if base is None or now is None:
            return True
        kind = contradiction(operation, base, now, hides=bool(base.hidden) or old in self._hid)
        if not kind:
            return True
        if (kind, old) in self._decided:
            return self._decided[kind, old] == THEIRS
        theirs = self._final.get(old) or as_left(base.copy(), operation)
        settled = self._desk.bring(kind, [now.address], base, [now], [theirs])
        self._decided[kind, old] = settled.choice
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
