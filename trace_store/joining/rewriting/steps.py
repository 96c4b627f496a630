"""Picks and rebases: steps that make commits anew, one after the other, and one transaction at the end.

Rule: steps, start and settlements decide everything, so that what stops is computed anew when it goes on; nothing is
written before all steps are done.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.branching.trash import keeping
from trace_store.context.folding import Fold
from trace_store.contracts import RefEdit, Transaction
from trace_store.joining import safety, stops
from trace_store.joining.conflicts import settle_open
from trace_store.joining.desk import Desk
from trace_store.joining.outpaced import MAXIMUM_ATTEMPTS, is_outpaced
from trace_store.joining.rewriting.addressing import put_into
from trace_store.joining.rewriting.commits import copies, has_halves, links, origins, reworded
from trace_store.joining.rewriting.outcome import DONE, STOPPED, UP_TO_DATE, Rewrite
from trace_store.joining.rewriting.pins import refuse_to_drop_pins
from trace_store.joining.rewriting.replaying import Replay
from trace_store.joining.rewriting.spans import take_along
from trace_store.joining.rewriting.todo import DROP, EDIT, FIXUP, JOINED, Step
from trace_store.joining.three_way.sides import Reading
from trace_store.joining.three_way.squashing import with_parents
from trace_store.objects.commit import Commit, Operation
from trace_store.objects.content import Gathering
from trace_store.oid import ObjectId
from trace_store.revision import created_by
from trace_store.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from trace_store.contracts import RefReader
    from trace_store.joining.advising.judging import Judge, Judgement
    from trace_store.joining.conflicts import Conflict, Resolver
    from trace_store.joining.safety import MeaningWarning
    from trace_store.secrets import Guard
    from trace_store.store import Store

    Address = tuple[bytes, int]


class Rewriting:
    """A pick or a rebase, from its inputs to the transaction."""

    def __init__(
        self,
        store: Store,
        stop: stops.Stop,
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
        self._rebases = stop.kind == stops.REBASE
        self._steps = _steps(stop)
        self._judgement: Judgement | None = None
        self._begin()

    def _begin(self) -> None:
        """Begin, or begin anew on what the branch is by now."""
        self._before: ObjectId | None = None
        self._copied: set[Address] = set()
        self._made: list[tuple[ObjectId, ObjectId]] = []
        self._dropped: list[ObjectId] = []
        self._settled: list[Conflict] = []
        self._there = [
            (ObjectId.parse(old), ObjectId.parse(new), first)
            for old, new, first in self._stop.inputs.get("there", ())
        ]

    def run(self) -> Rewrite:
        """Do all steps and write, or stop and write down what is needed to go on.

        Raises:
            ConflictError: a pinned message would be dropped, and that was not asked for.
            RefChangedError: others move the branch again and again.
        """
        found, replay = self.look()
        for left in reversed(range(MAXIMUM_ATTEMPTS)):
            if found.outcome == STOPPED:
                stops.write_stop(self._store, self._stop)
                return found
            found = self._checked(found, replay)
            try:
                self._write(found, replay)
                break
            except errors.RefChangedError as error:
                if not left or not is_outpaced(error):
                    raise
            if self._rebases:
                # Only what was committed meanwhile is made anew: else a long branch would never be quick enough.
                done = len(self._steps)
                take_along(self._store, self._stop)
                self._steps = _steps(self._stop)
                found = self._went_through(replay, done)
            else:
                self._begin()
                found, replay = self.look()
        stops.clear_stop(self._store)
        return found

    def _checked(self, found: Rewrite, replay: Replay) -> Rewrite:
        """Return what it comes to, with what a model says of it, where it may be written."""
        if self._rebases and not self._stop.inputs["drop_pinned"]:
            self._refuse_to_drop_pinned(found.before, replay)
        if found.after is None and found.before is not None:
            raise errors.InvalidInputError(
                "nothing of the branch would be left: `trace branch -d` deletes one"
            )
        if self._judge is not None and found.outcome == DONE:
            found = self._judged(self._judge, found, replay)
        return found

    def look(self) -> tuple[Rewrite, Replay]:
        """Return what it comes to, and write nothing."""
        stop = self._stop
        self._before = stop.before if self._rebases else self._store.refs.read(stop.ref)
        onto, before = stop.inputs["onto"], self._before
        start = before if onto is None else ObjectId.parse(onto) if onto else None
        replay = Replay(self._reading, start, self._gathering.put)
        replay.addresses.update((bytes(old), (new, first)) for old, new, first in self._there)
        for old, number, new, to in stop.inputs.get("present", ()):
            replay.present[ObjectId.parse(old), number] = (ObjectId.parse(new), to)
        return self._went_through(replay, 0), replay

    def _went_through(self, replay: Replay, first: int) -> Rewrite:
        """Do the steps from a number on, and return what all come to."""
        stop = self._stop
        before = stop.before if self._rebases else self._before
        steps = list(enumerate(self._steps[first:], first))
        left_out = {n for n, step in steps if n in stop.skipped or step.deed == DROP}
        replay.coming = {step.oid for n, step in steps if n not in left_out}
        for number, step in steps:
            replay.coming.discard(step.oid)
            if number in left_out:
                self._drop(step, replay)
                continue
            open_ = self._do(number, step, replay)
            if open_:
                stop.number = number
                found = Rewrite(STOPPED, stop.ref, before, before, step=step)
                return self._with_conflicts(found, open_)
        outcome = UP_TO_DATE if replay.tip == before else DONE
        made, dropped = tuple(self._made), tuple(self._dropped)
        warnings = tuple(self._warnings(before, replay)) if outcome == DONE else ()
        found = Rewrite(outcome, stop.ref, before, replay.tip, made, dropped, warnings=warnings)
        found = replace(found, there=tuple(self._there), present=tuple(replay.present.items()))
        return self._with_conflicts(found)

    def _with_conflicts(self, found: Rewrite, open_: Sequence[Conflict] = ()) -> Rewrite:
        numbered = self._stop.numbered(open_)
        return replace(found, conflicts=numbered, settled=self._stop.by_hand(self._settled))

    def _drop(self, step: Step, replay: Replay) -> None:
        self._dropped.append(step.oid)
        count = created_by(self._reading.commit(step.oid))
        replay.dropped.update((step.oid, number) for number in range(count))

    def _do(self, number: int, step: Step, replay: Replay) -> Sequence[Conflict]:
        """Do a step; return the conflicts that keep it from being done."""
        desk, operations = settle_open(
            self._resolver,
            self._stop.settlements,
            self._tried(number, step, replay),
            lambda: self._tried(number, step, replay),
            lambda tried: tried[0].open,
        )
        self._settled += desk.settled
        if desk.open:
            return desk.open
        self._put(step, operations, replay)
        return ()

    def _tried(self, number: int, step: Step, replay: Replay) -> tuple[Desk, list[Operation]]:
        inputs = self._stop.inputs
        favour, read = inputs.get("favour", ""), self._store.objects.read
        desk = Desk(self._stop.settlements, favour, f"{number}:", read=read)
        return desk, self._operations(step, replay, desk)

    def _operations(self, step: Step, replay: Replay, desk: Desk) -> list[Operation]:
        if step.number is not None:
            at = self._stop.inputs.get("at") or str(step.oid)
            fold = self._reading.fold(ObjectId.parse(at))
            return copies(fold, (step.oid, step.number), self._copied)
        commit = self._reading.commit(step.oid)
        # What is squashed into a root has nothing to be a second parent to.
        into = replay.last if step.deed in JOINED else None
        flat = not self._rebases or (into is not None and not into.parents)
        operations = replay.operations(step.oid, commit, desk, flat=flat)
        put = self._gathering.put
        if step.deed != EDIT:
            return operations
        there = {number for oid, number in replay.present if oid == step.oid}
        return reworded(step.oid, operations, desk, put, there)

    def _put(self, step: Step, operations: Sequence[Operation], replay: Replay) -> None:
        """Put the commit of a step on the line."""
        old = self._reading.commit(step.oid)
        if not operations and old.operations:  # nothing is left of it
            count = created_by(old)
            there = [replay.present.get((step.oid, number)) for number in range(count)]
            first = next((each for each in there if each is not None), None)
            if first is None and step.number is None:
                self._drop(step, replay)
            elif first is not None:
                self._there.append((step.oid, ObjectId(first[0]), first[1]))
            return
        if step.deed in JOINED and self._squash(step, old, operations, replay):
            return
        parent = () if replay.tip is None else (replay.tip,)
        message = self._gathering.text(step.message) if step.message else old.message
        kept = (
            parent == old.parents[:1],
            [*operations] == [*old.operations],
            message == old.message,
        )
        if self._rebases and all(kept):
            replay.keep(step.oid, old)
            self._made.append((step.oid, step.oid))
            return
        merged = old.parents[1:] if self._rebases else ()
        time = old.time if self._rebases else self._store.clock.now()
        made = Commit(
            [*parent, *merged],
            old.author,
            time,
            operations,
            message,
            old.meta,
            links(step, old, rebases=self._rebases),
        )
        made._unknown = dict(old._unknown)
        numbered = [] if step.number is not None else [(bytes(step.oid), 0)]
        self._made.append((step.oid, replay.add(made, numbered)))

    def _squash(
        self, step: Step, old: Commit, operations: Sequence[Operation], replay: Replay
    ) -> bool:
        """Put a commit into the one before it; False when there is none on the line."""
        tip = replay.tip
        taken = replay.take_back()
        if taken is None or tip is None:
            return False
        last, originals = taken
        count = created_by(last)
        more = "" if step.deed == FIXUP else step.message or old.message
        message = "\n\n".join(said for said in (last.message, more) if said)
        parents, added = with_parents(operations, last.parents, old.parents)
        added = put_into(
            added, tip, count, originals[-1][0], old.parents[0] if old.parents else None
        )
        made = Commit(
            parents,
            last.author,
            last.time,
            [*last.operations, *added],
            message,
            {**old.meta, **last.meta},
            [*origins(last, originals), *links(step, old, count, rebases=self._rebases)],
        )
        oid = replay.add(made, [*originals, (bytes(step.oid), count)])
        self._made = [(o, oid if new == tip else new) for o, new in self._made]
        self._made.append((step.oid, oid))
        return True

    def _refuse_to_drop_pinned(self, before: ObjectId | None, replay: Replay) -> None:
        if before is not None and self._may_lose():
            decided = {address for each in self._settled for address in each.addresses}
            onto = self._stop.inputs["onto"]
            start = self._reading.fold(ObjectId.parse(onto)) if onto else Fold()
            refuse_to_drop_pins(self._reading.fold(before), start, replay, decided)

    def _may_lose(self) -> bool:
        """Tell whether a rebase does more than go on from where a branch stands by now."""
        inputs = self._stop.inputs
        return bool(self._dropped or inputs["reordered"] or inputs["elsewhere"])

    def _warnings(self, before: ObjectId | None, replay: Replay) -> list[MeaningWarning]:
        """Return warnings about what is shown now; contexts are folded only where that can matter."""
        if self._rebases:
            if before is None or not self._may_lose():
                return []
            read = self._store.objects.read
            old = [entry for entry in self._reading.fold(before).entries if entry.visible]
            now = list(replay.state().visible())
            back = {replay.address(entry.address): entry.address for entry in old}
            order = [back[e.address] for e in replay.state().entries if e.address in back]
            return [
                *safety.check_order(old, order, lambda entry: safety.texts_of(entry, read)),
                *safety.newly_loose(old, now, back),
                *(safety.lost_pins(old, now, back) if self._stop.inputs["reordered"] else ()),
            ]
        new = {oid for _, oid in self._made}
        if not any(has_halves(commit) for _, commit in replay.made):
            return []  # as most are, for which no context is folded
        seen = list(replay.state().visible())
        return safety.loose_ends(seen, [e.address for e in seen if e.address[0] in new])

    def _judged(self, judge: Judge, found: Rewrite, replay: Replay) -> Rewrite:
        """Return what it comes to with a model's warnings; what that cost becomes a commit of its own.

        It is asked once, and not again about what others commit meanwhile.
        """
        if self._judgement is not None and self._rebases:  # whose commit is on the line
            return replace(found, warnings=(*found.warnings, *self._judgement.warnings))
        old = [] if found.before is None else list(self._reading.fold(found.before).visible())
        back = {replay.address(entry.address): entry.address for entry in old}
        said = self._judgement
        if said is None:
            said = judge(old, list(replay.state().visible()), back, found.warnings)
            self._judgement = said
        if said.operations and replay.tip is not None:
            kind, time = stops.WORDS[self._stop.kind], self._store.clock.now()
            message = f"a model's judgement of a {kind}"
            replay.add(Commit([replay.tip], self._author, time, said.operations, message), ())
        return replace(found, after=replay.tip, warnings=(*found.warnings, *said.warnings))

    def _write(self, found: Rewrite, replay: Replay) -> None:
        stop, before, after = self._stop, found.before, found.after
        if after is None or after == before:
            return
        stops.note_tip(self._store, stop, after)
        new = [*self._gathering.objects, *((oid, made.encode()) for oid, made in replay.made)]
        edits = [RefEdit(stop.ref, after, before)]
        if self._rebases and before is not None:
            edits.append(keeping(stop.ref, before))
            self._store.refs.set_original(before)
        said = f"{stop.kind}: {stop.inputs['name']}"

        def build(refs: RefReader) -> Transaction:
            return Transaction(new, edits, said)

        self._store.transact(build, author=self._author)


def _steps(stop: stops.Stop) -> list[Step]:
    return [
        Step(deed, ObjectId.parse(oid), said, number)
        for deed, oid, said, number in stop.inputs["steps"]
    ]
