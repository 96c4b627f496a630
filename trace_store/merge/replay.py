"""Picks and rebases: steps that make commits anew, one after the other, and one transaction at the end.

A step brings what its commit changed since its parent onto the line: a three-way merge with that parent as its base.

Rule: steps, start and settlements decide everything, so that what stops is computed anew when it goes on; nothing is
written before all steps are done.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.context.entries import is_as_created
from trace_store.contracts import RefEdit, Transaction
from trace_store.frozen import replace
from trace_store.history.trash import keeping
from trace_store.merge import conflicts as kinds
from trace_store.merge import in_progress, meaning_warnings
from trace_store.merge.changes import reworded_parts
from trace_store.merge.conflicts import TEXT, settle_open
from trace_store.merge.inputs import Plan, Reading
from trace_store.merge.merge3 import three_way
from trace_store.merge.merge_commits import MAXIMUM_ATTEMPTS, is_outpaced
from trace_store.merge.resolver import Desk
from trace_store.merge.result import DONE, STOPPED, UP_TO_DATE, Rewrite
from trace_store.merge.todo import DROP, EDIT, FIXUP, JOINED, Step, take_along
from trace_store.objects import operations as ops
from trace_store.objects.commit import PICKED, REWRITES, Commit
from trace_store.objects.content import Gathering
from trace_store.objects.operations import carried_operations
from trace_store.oid import ObjectId, hash_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from trace_store.context.fold import Fold
    from trace_store.contracts import RefReader
    from trace_store.merge.conflicts import Conflict, Resolver
    from trace_store.merge.llm_assist.review import Judge, Judgement
    from trace_store.merge.meaning_warnings import MeaningWarning
    from trace_store.objects.address import Address
    from trace_store.objects.commit import Operation
    from trace_store.secrets.guard import Guard
    from trace_store.store.handle import Store


class Line:
    """The line of commits that steps make.

    Attributes:
        start: the commit that it begins on; None is nothing.
        tip: where it ends.
        made: the commits to be written.
        ends_in: the commit whose messages its context ends with, as far as that is known without a fold.
    """

    def __init__(self, reading: Reading, start: ObjectId | None) -> None:
        self._reading = reading
        self.start = self.tip = start
        self.made: list[tuple[ObjectId, Commit]] = []
        self.ends_in: ObjectId | None = None
        self._state: Fold | None = None
        self._steps: list[tuple[ObjectId | None, ObjectId, Commit]] = []

    @property
    def state(self) -> Fold:
        """The context at its end, which is folded when it is first asked for."""
        if self._state is None:
            self._state = self._reading.fold(self.start).copy()
            for _, oid, made in self._steps:
                self._state.apply(oid, made)
        return self._state

    def put(self, made: Commit, kept: ObjectId | None = None) -> ObjectId:
        """Put a commit at the end, one that is there already (`kept`) or a new one, and return its id."""
        oid = kept or hash_object(made.encode())
        if kept is None:
            self.made.append((oid, made))
        if self._state is not None:
            self._state.apply(oid, made)
        self._steps.append((self.tip, oid, made))
        self.tip = oid
        return oid

    def take_back(self) -> tuple[ObjectId, Commit] | None:
        """Take the last commit off the end, and return it; None when the line has none."""
        if not self._steps:
            return None
        self.tip, oid, made = self._steps.pop()
        self.made = [each for each in self.made if each[0] != oid]
        self._state = None
        return oid, made


class Rewriting:
    """A pick or a rebase, from its inputs to the transaction."""

    def __init__(
        self,
        store: Store,
        stop: in_progress.Stop,
        author: str,
        guard: Guard | None = None,
        resolver: Resolver | None = None,
        judge: Judge | None = None,
    ) -> None:
        self._store = store
        self._judge = judge
        self._stop = stop
        self._author = author
        self._resolver = resolver
        self._reading = Reading(store)
        self._gathering = Gathering() if guard is None else guard.gathering()
        self._rebases = stop.kind == in_progress.REBASE
        self._steps = _steps(stop)
        self._judgement: Judgement | None = None
        self._begin()

    def _begin(self) -> None:
        """Begin, or begin anew on what the branch is by now."""
        self._before: ObjectId | None = None
        self._made: list[tuple[ObjectId, ObjectId]] = []
        self._dropped: list[ObjectId] = []
        self._there: list[ObjectId] = []
        self._parted: dict[
            tuple[ObjectId | None, ObjectId | None], list[tuple[ObjectId, Commit]] | None
        ] = {}
        self._settled: list[Conflict] = []

    def run(self) -> Rewrite:
        """Do all steps and write, or stop and write down what is needed to go on.

        Raises:
            ConflictError: a pinned message would be dropped, and that was not asked for.
            RefChangedError: others move the branch again and again.
        """
        found, line = self.look()
        for left in reversed(range(MAXIMUM_ATTEMPTS)):
            if found.outcome == STOPPED:
                in_progress.write_stop(self._store, self._stop)
                return found
            found = self._checked(found, line)
            try:
                self._write(found, line)
                break
            except errors.RefChangedError as error:
                if not left or not is_outpaced(error):
                    raise
            if self._rebases:
                # Only what was committed meanwhile is made anew: else a long branch would never be quick enough.
                done = len(self._steps)
                take_along(self._store, self._stop)
                self._steps = _steps(self._stop)
                found = self._went_through(line, done)
            else:
                self._begin()
                found, line = self.look()
        in_progress.clear_stop(self._store)
        return found

    def look(self) -> tuple[Rewrite, Line]:
        """Return what it comes to, and write nothing."""
        stop = self._stop
        self._before = stop.before if self._rebases else self._store.refs.read(stop.ref)
        onto, before = stop.inputs["onto"], self._before
        start = before if onto is None else ObjectId.parse(onto) if onto else None
        line = Line(self._reading, start)
        return self._went_through(line, 0), line

    def _checked(self, found: Rewrite, line: Line) -> Rewrite:
        """Return what it comes to, with what a model says of it, where it may be written."""
        if self._rebases and not self._stop.inputs["drop_pinned"]:
            self._refuse_to_drop_pinned(found.before, line)
        if found.after is None and found.before is not None:
            raise errors.InvalidInputError(
                "no commit would be left on the branch", code=errors.ErrorCode.NO_COMMIT_LEFT
            )
        if self._judge is not None and found.outcome == DONE:
            found = self._judged(self._judge, found, line)
        return found

    def _went_through(self, line: Line, first: int) -> Rewrite:
        """Do the steps from a number on, and return what all come to."""
        stop = self._stop
        before = stop.before if self._rebases else self._before
        for number, step in enumerate(self._steps[first:], first):
            if number in stop.skipped or step.deed == DROP:
                self._dropped.append(step.oid)
                continue
            open_ = self._do(number, step, line)
            if open_:
                stop.number = number
                found = Rewrite(STOPPED, stop.ref, before, before, step=step)
                return self._with_conflicts(found, open_)
        outcome = UP_TO_DATE if line.tip == before else DONE
        warnings = tuple(self._warnings(before, line)) if outcome == DONE else ()
        found = Rewrite(
            *(outcome, stop.ref, before, line.tip, tuple(self._made), tuple(self._dropped)),
            there=tuple(self._there),
            warnings=warnings,
        )
        return self._with_conflicts(found)

    def _with_conflicts(self, found: Rewrite, open_: Sequence[Conflict] = ()) -> Rewrite:
        numbered = self._stop.numbered(open_)
        return replace(found, conflicts=numbered, settled=self._stop.by_hand(self._settled))

    def _do(self, number: int, step: Step, line: Line) -> Sequence[Conflict]:
        """Do a step; return the conflicts that keep it from being done."""
        if self._keeps(step, line):
            kept = self._reading.commit(step.oid)
            line.put(kept, step.oid)
            line.ends_in = step.oid if ops.only_appends(kept) else None
            self._made.append((step.oid, step.oid))
            return ()

        def tried() -> Plan:
            return self._plan(number, step, line)

        said = self._stop.settlements
        plan = settle_open(self._resolver, said, tried(), tried, lambda made: made.conflicts)
        self._settled += plan.settled
        if plan.conflicts:
            return plan.conflicts
        self._put(step, plan, line)
        return ()

    def _keeps(self, step: Step, line: Line) -> bool:
        """Tell whether a commit stays as it is, since it goes on what it went on before."""
        parents = self._reading.commit(step.oid).parents
        is_next = line.tip == (parents[0] if parents else None)
        return self._rebases and is_next and step.deed not in (*JOINED, EDIT) and not step.message

    def _plan(self, number: int, step: Step, line: Line) -> Plan:
        """Return what a step does to the line."""
        commit, name = self._reading.commit(step.oid), f"{number}:"
        if step.number is not None:
            return Plan(tuple(self._message(step, line)), (), (), ())
        plan = self._appended(step.oid, commit, line)
        if plan is None:
            plan = three_way(
                self._reading.before(step.oid),
                line.state,
                self._reading.fold(step.oid),
                settlements=self._stop.settlements,
                favour=self._stop.inputs.get("favour", ""),
                step=name,
                put=self._gathering.put,
                read=self._store.objects.read,
            )
            if plan.operations or not commit.operations or _says_only(commit):
                whole = carried_operations(step.oid, commit)
                kept = [o for o in whole if o.name in ops.LEAVES_CONTEXT]
                plan = replace(plan, operations=(*plan.operations, *kept))
        return self._reworded(plan, step, line, name) if step.deed == EDIT else plan

    def _appended(self, oid: ObjectId, commit: Commit, line: Line) -> Plan | None:
        """Return what brings onto the line what a commit appends; None where only contexts can tell.

        All of it comes to the end of the line as it is, or is there already.
        """
        parent = commit.parents[0] if commit.parents else None
        beside = self._beside(line.start, parent)
        if parent is None or beside is None or not _only_appends(commit):
            return None
        there = {a for each, made in beside for a, _ in ops.added_messages(made, each)}
        added = [address in there for address, _ in ops.added_messages(commit, oid)]
        if added and all(added):
            return Plan((), (), (), ())
        if any(added):
            return None
        is_first = line.tip == line.start
        made = Plan(tuple(carried_operations(oid, commit)), (), (), ())
        if line.ends_in == parent:
            return made
        answers = any(_answers(each) for _, each in [(oid, commit), *beside])
        return made if is_first and not answers else None

    def _beside(
        self, start: ObjectId | None, parent: ObjectId | None
    ) -> list[tuple[ObjectId, Commit]] | None:
        """Return the commits of a line since it parted from another commit's; None where they do more than append."""
        key = (start, parent)
        if key not in self._parted:
            self._parted[key] = self._found_beside(start, parent)
        return self._parted[key]

    def _found_beside(
        self, start: ObjectId | None, parent: ObjectId | None
    ) -> list[tuple[ObjectId, Commit]] | None:
        found: list[tuple[ObjectId, Commit]] = []
        oid = start
        while oid is not None and parent is not None:
            if self._reading.commits.is_ancestor(oid, parent):
                return found
            commit = self._reading.commit(oid)
            if not _only_appends(commit):
                return None
            found.append((oid, commit))
            oid = commit.parents[0] if commit.parents else None
        return None

    def _message(self, step: Step, line: Line) -> list[Operation]:
        """Return what brings one message, with its unit, as a context has it."""
        assert step.number is not None
        commit = self._reading.commit(step.oid)
        address = list(ops.added_messages(commit, step.oid))[step.number][0]
        at = self._stop.inputs.get("at")
        state = self._reading.fold(ObjectId.parse(at) if at else step.oid)
        state.entry(address)
        unit = state.in_order(state.unit(address))
        new = [state.entry(each) for each in unit if each not in line.state]
        return [ops.add([entry.carried() for entry in new])] if new else []

    def _reworded(self, plan: Plan, step: Step, line: Line, name: str) -> Plan:
        """Return a plan with the wordings that were asked for in the messages that its commit adds."""
        settlements = self._stop.settlements
        desk = Desk(settlements, "", name, read=self._store.objects.read)
        after = self._reading.fold(step.oid)
        edits: list[Operation] = []
        for address, _ in ops.added_messages(self._reading.commit(step.oid), step.oid):
            if address in line.state:
                continue
            entry = after.entry(address)
            settled = desk.bring(kinds.REWORDING, [address], entry, [entry], ())
            if settled.choice == TEXT:
                parts = reworded_parts(entry.parts, settled.text, self._gathering.put)
                edits.append(ops.edit(address, parts))
        return Plan(
            (*plan.operations, *edits),
            (*plan.conflicts, *desk.open),
            (*plan.settled, *desk.settled),
            plan.included,
        )

    def _put(self, step: Step, plan: Plan, line: Line) -> None:
        """Put the commit of a step on the line."""
        old, operations = self._reading.commit(step.oid), list(plan.operations)
        grows = bool(operations) and all(map(_is_at_end, operations))
        line.ends_in = step.oid if grows and ops.added_by(old) else None
        if not operations and old.operations:  # all of it was settled against, or is there already
            (self._dropped if plan.settled else self._there).append(step.oid)
            return
        if step.deed in JOINED and self._squash(step, old, operations, line):
            return
        parent = () if line.tip is None else (line.tip,)
        made = Commit(
            [*parent, *(old.parents[1:] if self._rebases else ())],
            old.author,
            old.time if self._rebases else self._store.clock.now(),
            operations,
            self._gathering.text(step.message) if step.message else old.message,
            old.meta,
            self._links(step, old),
        )
        made._unknown = dict(old._unknown)
        self._made.append((step.oid, line.put(made)))

    def _links(self, step: Step, old: Commit) -> list[tuple[str, ObjectId | str]]:
        """Return the links of a commit that is made anew: those it had, and where it comes from."""
        kept = [link for link in old.links if link[0] not in (PICKED, REWRITES)]
        name = str(step.oid) if step.number is None else f"{step.oid}.{step.number}"
        return [*kept, (REWRITES if self._rebases else PICKED, name)]

    def _squash(self, step: Step, old: Commit, operations: Sequence[Operation], line: Line) -> bool:
        """Put a commit into the one before it; False when there is none on the line."""
        taken = line.take_back()
        if taken is None:
            return False
        oid, last = taken
        more = "" if step.deed == FIXUP else step.message or old.message
        # A root stays one: another parent would be its first.
        others = [each for each in old.parents[1:] if last.parents and each not in last.parents]
        made = Commit(
            [*last.parents, *others],
            last.author,
            last.time,
            [*carried_operations(oid, last), *operations],
            "\n\n".join(said for said in (last.message, more) if said),
            {**old.meta, **last.meta},
            [*last.links, *self._links(step, old)],
        )
        new = line.put(made)
        self._made = [(o, new if now == oid else now) for o, now in self._made]
        self._made.append((step.oid, new))
        return True

    def _refuse_to_drop_pinned(self, before: ObjectId | None, line: Line) -> None:
        """Raise ConflictError when a pinned message that the branch showed is shown no more, and nobody chose that."""
        if before is None or not self._may_lose():
            return
        decided = {address for each in self._settled for address in each.addresses}
        began = self._reading.fold(line.start)
        lost: list[Address] = []
        for entry in self._reading.fold(before).visible():
            if entry.priority != ops.PINNED or entry.address in decided:
                continue
            by_others = entry.address in began and not began.entry(entry.address).visible
            is_there = entry.address in line.state and line.state.entry(entry.address).visible
            if not is_there and not by_others:
                lost.append(entry.address)
        if lost:
            raise errors.ConflictError(
                f"a pinned message would be dropped: {', '.join(map(str, lost[:3]))}",
                code=errors.ErrorCode.DROPS_PINNED,
                addresses=tuple(lost),
            )

    def _may_lose(self) -> bool:
        """Tell whether a rebase does more than go on from where a branch stands by now."""
        inputs = self._stop.inputs
        return bool(self._dropped or inputs["reordered"] or inputs["elsewhere"])

    def _warnings(self, before: ObjectId | None, line: Line) -> list[MeaningWarning]:
        """Return warnings about what is shown now."""
        read = self._store.objects.read
        added = [each for oid, made in line.made for each in ops.added_messages(made, oid)]
        new = {address for address, _ in added}
        found: list[MeaningWarning] = []
        if any(stored["role"] == "assistant" for _, stored in added):
            found = self._premises(line, new)
        if not self._rebases:
            halves = {address for address, stored in added if _has_halves(stored)}
            return [*(meaning_warnings.loose_ends(line.state, halves) if halves else ()), *found]
        if before is None or not self._may_lose():
            return found
        old = list(self._reading.fold(before).visible())
        order = [entry.address for entry in line.state.entries]
        return [
            *meaning_warnings.check_order(
                old, order, lambda entry: meaning_warnings.texts_of(entry, read)
            ),
            *meaning_warnings.newly_loose(self._reading.fold(before), line.state),
            *(
                meaning_warnings.lost_pins(old, line.state)
                if self._stop.inputs["reordered"]
                else ()
            ),
            *found,
        ]

    def _premises(self, line: Line, new: set[Address]) -> list[MeaningWarning]:
        """Return warnings that what answers were given to was changed on the line that they go on."""
        first = next((step for step in self._steps if step.deed != DROP), None)
        if first is None or first.number is not None or not new:
            return []
        was = self._reading.before(first.oid)
        return meaning_warnings.changed_premises(was, line.state, new)

    def _judged(self, judge: Judge, found: Rewrite, line: Line) -> Rewrite:
        """Return what it comes to with a model's warnings; what that cost becomes a commit of its own.

        It is asked once, and not again about what others commit meanwhile.
        """
        if self._judgement is not None and self._rebases:  # whose commit is on the line
            return replace(found, warnings=(*found.warnings, *self._judgement.warnings))
        said = self._judgement
        if said is None:
            old = list(self._reading.fold(found.before).visible())
            said = judge(old, list(line.state.visible()), found.warnings)
            self._judgement = said
        if said.operations and line.tip is not None:
            kind, time = in_progress.WORDS[self._stop.kind], self._store.clock.now()
            message = f"a model's judgement of a {kind}"
            line.put(Commit([line.tip], self._author, time, said.operations, message))
        return replace(found, after=line.tip, warnings=(*found.warnings, *said.warnings))

    def _write(self, found: Rewrite, line: Line) -> None:
        stop, before, after = self._stop, found.before, found.after
        if after is None or after == before:
            return
        in_progress.note_tip(self._store, stop, after)
        new = [*self._gathering.objects, *((oid, made.encode()) for oid, made in line.made)]
        edits = [RefEdit(stop.ref, after, before)]
        if self._rebases and before is not None:
            edits.append(keeping(stop.ref, before))
            self._store.refs.set_original(before)
        said = f"{stop.kind}: {stop.inputs['name']}"

        def build(refs: RefReader) -> Transaction:
            return Transaction(new, edits, said)

        self._store.transact(build, author=self._author)


def _only_appends(commit: Commit) -> bool:
    """Tell whether a commit only adds messages at the end, new ones or such as were created, usage and facts."""
    return all(
        operation.name in ops.LEAVES_CONTEXT
        or (
            operation.name == ops.ADD
            and "after" not in operation.fields
            and all(map(is_as_created, operation.fields["messages"]))
        )
        for operation in commit.operations
    )


def _is_at_end(operation: Operation) -> bool:
    """Tell whether an operation adds at the end, or changes no place."""
    return operation.name not in (ops.MOVE, ops.REPLACE) and "after" not in operation.fields


def _answers(commit: Commit) -> bool:
    """Tell whether what a commit adds first may answer what was said before: its call, or its question."""
    added = [each for o in commit.operations for each in o.fields.get("messages", ())]
    return any(each["role"] != "user" or _has_halves(each) for each in added[:1]) or any(
        map(_has_halves, added)
    )


def _has_halves(stored: ops.Stored) -> bool:
    return any(part["type"] in ("tool_call", "tool_result") for part in stored["parts"])


def _says_only(commit: Commit) -> bool:
    """Tell whether a commit records usage or facts, and changes no message."""
    return all(operation.name in ops.LEAVES_CONTEXT for operation in commit.operations)


def _steps(stop: in_progress.Stop) -> list[Step]:
    return [
        Step(deed, ObjectId.parse(oid), said, number)
        for deed, oid, said, number in stop.inputs["steps"]
    ]
