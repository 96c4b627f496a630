"""Replay of commits on another base, for picks, reverts and rebases.

Each step is a three-way merge: from the commit's parent to the commit, or for a revert from the commit to its parent.
Steps, start and resolutions determine the result, so a stopped replay is computed again when it continues. All commits
are written in one transaction at the end.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.base.frozen import replace
from trace_store.base.oid import ObjectId, hash_object
from trace_store.context.fold import Fold, call_messages, is_as_created
from trace_store.contracts import RefEdit
from trace_store.history.log import log
from trace_store.history.trash_refs import keep_in_trash
from trace_store.merge import conflicts as kinds
from trace_store.merge import in_progress, llm_assist, meaning_warnings
from trace_store.merge.changes import Changes, reworded_parts
from trace_store.merge.conflicts import (
    OURS,
    REWORDING,
    TEXT,
    ConflictCollector,
    Resolution,
    resolve_open,
    resolver_of,
)
from trace_store.merge.duplicate_answers import Answers
from trace_store.merge.inputs import ContextCache, MergePlan
from trace_store.merge.merge3 import three_way
from trace_store.merge.merge_commits import MAXIMUM_ATTEMPTS, lost_race
from trace_store.merge.result import DONE, STOPPED, UP_TO_DATE, Rewrite
from trace_store.merge.todo import DROP, EDIT, FIXUP, REVERT, SQUASHING, Step, add_new_commits
from trace_store.merge.touched import merge_touched
from trace_store.objects import operations as ops
from trace_store.objects.address import resolve_calls
from trace_store.objects.commit import PICKED, REVERTS, REWRITES, Commit
from trace_store.objects.operations import carried_operations
from trace_store.refs.head import NAME, Head
from trace_store.store.revision import resolve_address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from trace_store.llm.contract import Model
    from trace_store.merge.conflicts import Answer, Conflict
    from trace_store.merge.llm_assist.review import Judge, Judgement
    from trace_store.merge.meaning_warnings import MeaningWarning
    from trace_store.objects.address import Address
    from trace_store.objects.commit import Operation
    from trace_store.writer import Change, Writer


MAXIMUM_STEPS = 64
"""Maximum number of commits to apply to a context, instead of reading that of the last one."""


class ReplayedCommits:
    """The commits that a replay creates.

    Attributes:
        start: the new base; None means no base.
        tip: the last commit.
        new_commits: the commits that do not exist yet.
        last_original: the original of the last commit if that one's messages are known to be the last of the
            context; else None.
    """

    def __init__(self, cache: ContextCache, start: ObjectId | None) -> None:
        self._cache = cache
        self.start = self.tip = start
        self.new_commits: list[tuple[ObjectId, Commit]] = []
        self.last_original: ObjectId | None = None
        self._state: Fold | None = None
        self._steps: list[tuple[ObjectId | None, ObjectId, Commit]] = []

    @property
    def state(self) -> Fold:
        """The context at the tip, folded on first use."""
        if self._state is None:
            self._state = self._cache.fold(self.start).copy()
            for _, oid, commit in self._steps:
                self._state.apply(oid, commit)
        return self._state

    def append(self, commit: Commit, existing: ObjectId | None = None) -> ObjectId:
        """Append a commit and return its id; `existing` is its id if it exists already."""
        oid = existing or hash_object(commit.encode())
        if existing is None:
            self.new_commits.append((oid, commit))
        if self._state is not None:
            self._state.apply(oid, commit)
        self._steps.append((self.tip, oid, commit))
        self.tip = oid
        return oid

    def take_back(self) -> tuple[ObjectId, Commit] | None:
        """Remove and return the last commit; None if there is none."""
        if not self._steps:
            return None
        self.tip, oid, commit = self._steps.pop()
        self.new_commits = [each for each in self.new_commits if each[0] != oid]
        self._state = None
        return oid, commit


class OriginalContexts:
    """The contexts of the commits that are replayed: one at a time, since they mostly follow each other."""

    def __init__(self, cache: ContextCache) -> None:
        self._cache = cache
        self._state = Fold()
        self._tip: ObjectId | None = None
        self._is_contained = False

    def before(self, oid: ObjectId, ours: Callable[[], Fold]) -> tuple[Fold, bool]:
        """Return the context before a commit, valid until the next call, and whether ours has all of its messages."""
        line: list[tuple[ObjectId, Commit]] = []
        at = self._parent(oid)
        while at is not None and at != self._tip and len(line) < MAXIMUM_STEPS:
            line.append((at, self._cache.commit(at)))
            at = self._parent(at)
        if at is None or at != self._tip:
            self._tip = self._parent(oid)
            self._state = self._cache.before(oid).copy()
            # Ours is folded second, so that it continues from this context and shares its entries.
            self._is_contained = self._state.addresses() <= ours().addresses()
            return self._state, self._is_contained
        for each, commit in reversed(line):
            self._state.apply(each, commit)
            self._tip = each
            added = ops.added_messages(commit, each)
            self._is_contained &= all(address in ours() for address, _ in added)
        return self._state, self._is_contained

    def _parent(self, oid: ObjectId) -> ObjectId | None:
        return next(iter(self._cache.commit(oid).parents), None)


class Replay:
    """A pick, revert or rebase in progress, from its inputs to the transaction."""

    def __init__(
        self,
        change: Change,
        stop: in_progress.Stop,
        resolver: Answer | None = None,
        judge: Model | None = None,
    ) -> None:
        store = change.writer.store
        self._change = change
        self._store = store
        self._judge = None if judge is None else llm_assist.review.Judge(store, judge)
        self._stop = stop
        self._resolver = resolver_of(resolver)
        self._cache = ContextCache(store)
        self._rebases = stop.kind == in_progress.REBASE
        self._steps = _steps(stop)
        self._judgement: Judgement | None = None
        self._reset()

    def _reset(self) -> None:
        """Reset the results, to start on the branch's current tip."""
        self._before: ObjectId | None = None
        self._originals = OriginalContexts(self._cache)
        self._made: list[tuple[ObjectId, ObjectId]] = []
        self._dropped: list[ObjectId] = []
        self._there: list[ObjectId] = []
        self._base_commits_cache: dict[
            tuple[ObjectId | None, ObjectId | None], list[tuple[ObjectId, Commit]] | None
        ] = {}
        self._settled: list[Conflict] = []
        self._placed: Address | None = None

    def run(self) -> Rewrite:
        """Do all steps and write the result, or stop and save the state.

        Raises:
            ConflictError: a pinned message would be dropped.
            RefChangedError: every attempt lost the race.
        """
        found, replayed = self.look()
        for left in reversed(range(MAXIMUM_ATTEMPTS)):
            if found.outcome == STOPPED:
                in_progress.write_stop(self._store, self._stop)
                return found
            found = self._check(found, replayed)
            try:
                self._write(found, replayed)
                break
            except errors.RefChangedError as error:
                if not left or not lost_race(error):
                    raise
            if self._rebases:
                # Only new commits are replayed on a retry; otherwise a long branch might never win the race.
                done = len(self._steps)
                add_new_commits(self._store, self._stop)
                self._steps = _steps(self._stop)
                found = self._do_steps(replayed, done)
            else:
                self._reset()
                found, replayed = self.look()
        in_progress.clear_stop(self._store)
        return found

    def look(self) -> tuple[Rewrite, ReplayedCommits]:
        """Return the result, without writing it."""
        stop = self._stop
        self._before = stop.before if self._rebases else in_progress.tip_of(self._store, stop)
        onto, before = stop.inputs["onto"], self._before
        start = before if onto is None else ObjectId.parse(onto) if onto else None
        replayed = ReplayedCommits(self._cache, start)
        return self._do_steps(replayed, 0), replayed

    def _check(self, found: Rewrite, replayed: ReplayedCommits) -> Rewrite:
        """Check that the result may be written, and add a model's review."""
        if self._rebases and not self._stop.inputs["drop_pinned"]:
            self._refuse_to_drop_pinned(found.before, replayed)
        if found.after is None and found.before is not None:
            raise errors.InvalidInputError(
                "no commit would be left on the branch", code=errors.ErrorCode.NO_COMMIT_LEFT
            )
        if self._judge is not None and found.outcome == DONE:
            found = self._review(self._judge, found, replayed)
        return found

    def _do_steps(self, replayed: ReplayedCommits, first: int) -> Rewrite:
        """Do the steps from number `first` on, and return the result."""
        stop = self._stop
        before = stop.before if self._rebases else self._before
        for number, step in enumerate(self._steps[first:], first):
            if number in stop.skipped or step.action == DROP:
                self._dropped.append(step.oid)
                continue
            open_ = self._do_step(number, step, replayed)
            if open_:
                stop.number = number
                found = Rewrite(STOPPED, stop.ref, before, before, step=step)
                return self._with_conflicts(found, open_)
        outcome = UP_TO_DATE if replayed.tip == before else DONE
        warns = outcome == DONE and stop.kind != in_progress.REVERT
        warnings = tuple(self._warnings(before, replayed)) if warns else ()
        found = Rewrite(
            *(outcome, stop.ref, before, replayed.tip, tuple(self._made), tuple(self._dropped)),
            there=tuple(self._there),
            warnings=warnings,
        )
        return self._with_conflicts(found)

    def _with_conflicts(self, found: Rewrite, open_: Sequence[Conflict] = ()) -> Rewrite:
        numbered = self._stop.numbered(open_)
        return replace(found, conflicts=numbered, settled=self._stop.by_hand(self._settled))

    def _do_step(self, number: int, step: Step, replayed: ReplayedCommits) -> Sequence[Conflict]:
        """Do a step; return its open conflicts."""
        if self._can_keep(step, replayed):
            kept = self._cache.commit(step.oid)
            replayed.append(kept, step.oid)
            replayed.last_original = step.oid if ops.only_appends(kept) else None
            self._made.append((step.oid, step.oid))
            return ()

        def compute() -> MergePlan:
            return self._plan(number, step, replayed)

        resolutions = self._stop.resolutions
        plan = resolve_open(
            self._resolver, resolutions, compute(), compute, lambda plan: plan.conflicts
        )
        self._settled += plan.settled
        if plan.conflicts:
            return plan.conflicts
        self._create_commit(step, plan, replayed)
        return ()

    def _can_keep(self, step: Step, replayed: ReplayedCommits) -> bool:
        """Return True if a rebased commit needs no change: its parent is the tip."""
        parents = self._cache.commit(step.oid).parents
        is_next = replayed.tip == (parents[0] if parents else None)
        return (
            self._rebases and is_next and step.action not in (*SQUASHING, EDIT) and not step.message
        )

    def _plan(self, number: int, step: Step, replayed: ReplayedCommits) -> MergePlan:
        """Return the plan of a step."""
        commit, prefix = self._cache.commit(step.oid), f"{number}:"
        if step.number is not None:
            return self._message_plan(step, replayed, prefix)
        if step.action == REVERT:
            return self._merge(step, replayed, prefix)
        plan = self._pick_plan(step, commit, replayed, prefix)
        return self._with_edits(plan, step, replayed, prefix) if step.action == EDIT else plan

    def _pick_plan(
        self, step: Step, commit: Commit, replayed: ReplayedCommits, prefix: str
    ) -> MergePlan:
        """Return the plan that brings the changes of a commit."""
        if _records_only(commit):
            is_there = self._has_records(step.oid, commit, replayed)
            return MergePlan.of(() if is_there else carried_operations(step.oid, commit))
        appended = self._append_plan(step.oid, commit, replayed)
        if appended is not None:
            return appended
        plan = self._merge(step, replayed, prefix)
        if not plan.operations:
            return plan
        whole = carried_operations(step.oid, commit)
        kept = [o for o in whole if o.name in ops.LEAVES_CONTEXT]
        return replace(plan, operations=(*plan.operations, *kept))

    def _has_records(self, oid: ObjectId, commit: Commit, replayed: ReplayedCommits) -> bool:
        """Return True if the branch has a commit that changes no message, or a copy of it."""
        origins = {str(oid), *_origins(commit)}
        if any(not origins.isdisjoint(_origins(made)) for _, made in replayed.new_commits):
            return True
        if replayed.start is None or not commit.operations:
            return False
        if self._cache.commits.is_ancestor(oid, replayed.start):
            return True
        names = {operation.name for operation in commit.operations}
        return any(
            names <= {*entry.operations}
            and not origins.isdisjoint((str(entry.oid), *_origins(entry.commit)))
            for entry in log(self._store, [replayed.start, f"^{oid}"])
        )

    def _merge(self, step: Step, replayed: ReplayedCommits, prefix: str) -> MergePlan:
        """Return the plan of a three-way merge of a step; `prefix` precedes the keys of conflicts."""
        options: dict[str, Any] = {
            "resolutions": self._stop.resolutions,
            "favour": self._stop.inputs.get("favour", ""),
            "step": prefix,
            "put": self._change.put,
            "read": self._store.objects.read,
        }
        if step.action == REVERT:
            before, after = self._cache.before(step.oid), self._cache.fold(step.oid)
            return three_way(after, replayed.state, before, reverts=True, **options)
        commit = self._cache.commit(step.oid)
        base, is_contained = self._originals.before(step.oid, lambda: replayed.state)
        if is_contained:
            plan = merge_touched(step.oid, commit, base, replayed.state, **options)
            if plan is not None:
                return plan
        theirs = base.copy()
        theirs.apply(step.oid, commit)
        return three_way(base, replayed.state, theirs, **options)

    def _append_plan(
        self, oid: ObjectId, commit: Commit, replayed: ReplayedCommits
    ) -> MergePlan | None:
        """Return the plan for a commit that only appends; None if the contexts must be compared.

        Either all of its messages are added unchanged at the end, or the new base has them all.
        """
        parent = commit.parents[0] if commit.parents else None
        base_commits = self._base_commits(replayed.start, parent)
        if parent is None or base_commits is None or not _only_appends(commit):
            return None
        there = {a for each, made in base_commits for a, _ in ops.added_messages(made, each)}
        added = [address in there for address, _ in ops.added_messages(commit, oid)]
        if added and all(added):
            return MergePlan.of(())
        answered = _answered_calls(oid, commit)
        has_rivals = answered and any(answered & _answered_calls(*each) for each in base_commits)
        if any(added) or has_rivals:
            return None
        is_first = replayed.tip == replayed.start
        made = MergePlan.of(carried_operations(oid, commit))
        if replayed.last_original == parent:
            return made
        answers = any(_may_answer(each) for _, each in [(oid, commit), *base_commits])
        return made if is_first and not answers else None

    def _base_commits(
        self, start: ObjectId | None, parent: ObjectId | None
    ) -> list[tuple[ObjectId, Commit]] | None:
        """Return the new base's commits since its merge base with `parent`.

        None if one of them does more than append, or if there is no merge base.
        """
        key = (start, parent)
        if key not in self._base_commits_cache:
            self._base_commits_cache[key] = self._find_base_commits(start, parent)
        return self._base_commits_cache[key]

    def _find_base_commits(
        self, start: ObjectId | None, parent: ObjectId | None
    ) -> list[tuple[ObjectId, Commit]] | None:
        found: list[tuple[ObjectId, Commit]] = []
        oid = start
        while oid is not None and parent is not None:
            if self._cache.commits.is_ancestor(oid, parent):
                return found
            commit = self._cache.commit(oid)
            if not _only_appends(commit):
                return None
            found.append((oid, commit))
            oid = commit.parents[0] if commit.parents else None
        return None

    def _message_plan(self, step: Step, replayed: ReplayedCommits, prefix: str) -> MergePlan:
        """Return the plan that adds one message and its unit.

        They are added as of the revision that the pick was given, else as of their commit.
        """
        assert step.number is not None
        commit = self._cache.commit(step.oid)
        address = list(ops.added_messages(commit, step.oid))[step.number][0]
        at = self._stop.inputs.get("at")
        state = self._cache.fold(ObjectId.parse(at) if at else step.oid)
        state.entry(address)  # raises if that revision does not have the message
        unit = state.in_order(state.unit(address))
        collector = self._collector(prefix, self._stop.inputs.get("favour", ""))
        theirs = Fold.of(state.entry(each) for each in unit)
        answers = Answers(Fold(), replayed.state, theirs, collector, self._change.put)
        changes = Changes()
        new = [entry for entry in theirs.entries if entry.address not in replayed.state]
        new = answers.settle_results(new, changes)
        after = self._place(replayed)
        added = [ops.add([entry.to_carried() for entry in new], after=after)] if new else []
        if new:
            self._placed = new[-1].address
        operations = (*added, *changes.operations())
        return MergePlan((), operations, tuple(collector.open), tuple(collector.settled), ())

    def _place(self, replayed: ReplayedCommits) -> Address | None:
        """Return the message to insert the next single message after; None appends."""
        named = self._stop.inputs.get("after")
        if not named:
            return None
        if self._placed is not None:
            return self._placed
        state = replayed.state
        address = resolve_address(self._store, named)
        return state.in_order(state.unit(address))[-1]  # never between a call and its result

    def _collector(self, prefix: str, favour: str) -> ConflictCollector:
        read = self._store.objects.read
        return ConflictCollector(self._stop.resolutions, favour, prefix, read=read)

    def _with_edits(
        self, plan: MergePlan, step: Step, replayed: ReplayedCommits, prefix: str
    ) -> MergePlan:
        """Return a step's plan with the requested edits of its new messages."""
        collector = self._collector(prefix, "")
        after = self._cache.fold(step.oid)
        edits: list[Operation] = []
        for address, _ in ops.added_messages(self._cache.commit(step.oid), step.oid):
            if address in replayed.state:
                continue
            entry = after.entry(address)
            settled = collector.add(kinds.REWORDING, [address], entry, [entry], ())
            if settled.choice == TEXT:
                parts = reworded_parts(entry.parts, settled.text, self._change.put)
                edits.append(ops.edit(address, parts))
        return MergePlan(
            plan.wordings,
            (*plan.operations, *edits),
            (*plan.conflicts, *collector.open),
            (*plan.settled, *collector.settled),
            plan.included,
        )

    def _create_commit(self, step: Step, plan: MergePlan, replayed: ReplayedCommits) -> None:
        """Create the commit of a step."""
        old, operations = self._cache.commit(step.oid), list(plan.operations)
        if operations:
            operations[:0] = plan.wordings
        grows = bool(operations) and all(map(_keeps_order, operations))
        stays = replayed.last_original in old.parents[:1] and all(map(_keeps_end, operations))
        ends = (grows and ops.added_by(old)) or (operations and stays)
        replayed.last_original = step.oid if ends else None
        reverts = step.action == REVERT
        # A rebase keeps commits that are empty from the beginning, such as merges.
        if not operations and (old.operations or not self._rebases):
            (self._dropped if plan.settled else self._there).append(step.oid)
            return
        if reverts:
            self._made.append(
                (step.oid, replayed.append(self._reverting(step, operations, replayed)))
            )
            return
        if step.action in SQUASHING and self._squash(step, old, operations, replayed):
            return
        parent = () if replayed.tip is None else (replayed.tip,)
        made = Commit(
            [*parent, *(old.parents[1:] if self._rebases else ())],
            old.author,
            old.time if self._rebases else self._store.clock.now(),
            operations,
            self._change.text(step.message or old.message),
            old.meta,
            self._links(step, old),
        )
        made._unknown = dict(old._unknown)
        self._made.append((step.oid, replayed.append(made)))

    def _reverting(
        self, step: Step, operations: Sequence[Operation], replayed: ReplayedCommits
    ) -> Commit:
        """Return the commit that reverts another."""
        said = step.message
        return Commit(
            [] if replayed.tip is None else [replayed.tip],
            self._change.author,
            self._store.clock.now(),
            operations,
            self._change.text(said) if said else f"revert {step.oid.short()}",
            dict(self._change.gathering.facts),
            [(REVERTS, step.oid)],
        )

    def _links(self, step: Step, old: Commit) -> list[tuple[str, ObjectId | str]]:
        """Return the links of a replayed commit: those of the original, and one to it."""
        kept = [link for link in old.links if link[0] not in (PICKED, REWRITES)]
        name = str(step.oid) if step.number is None else f"{step.oid}.{step.number}"
        return [*kept, (REWRITES if self._rebases else PICKED, name)]

    def _squash(
        self, step: Step, old: Commit, operations: Sequence[Operation], replayed: ReplayedCommits
    ) -> bool:
        """Squash a commit into the one before it; return False if there is none."""
        taken = replayed.take_back()
        if taken is None:
            return False
        oid, last = taken
        more = "" if step.action == FIXUP else step.message or old.message
        # A root commit gets no parents: the first of them would become its first parent.
        others = [each for each in old.parents[1:] if last.parents and each not in last.parents]
        made = Commit(
            [*last.parents, *others],
            last.author,
            last.time,
            [*carried_operations(oid, last), *operations],
            "\n\n".join(text for text in (last.message, more) if text),
            {**old.meta, **last.meta},
            [*last.links, *self._links(step, old)],
        )
        new = replayed.append(made)
        self._made = [(o, new if now == oid else now) for o, now in self._made]
        self._made.append((step.oid, new))
        return True

    def _refuse_to_drop_pinned(self, before: ObjectId | None, replayed: ReplayedCommits) -> None:
        """Raise ConflictError if a rebase hides a pinned message without a resolution."""
        if before is None or not self._can_lose():
            return
        decided = {address for each in self._settled for address in each.addresses}
        base = self._cache.fold(replayed.start)
        lost: list[Address] = []
        for entry in self._cache.fold(before).visible():
            if entry.priority != ops.PINNED or entry.address in decided:
                continue
            hidden_by_base = entry.address in base and not base.entry(entry.address).visible
            is_there = (
                entry.address in replayed.state and replayed.state.entry(entry.address).visible
            )
            if not is_there and not hidden_by_base:
                lost.append(entry.address)
        if lost:
            raise errors.ConflictError(
                f"a pinned message would be dropped: {', '.join(map(str, lost[:3]))}",
                code=errors.ErrorCode.DROPS_PINNED,
                addresses=tuple(lost),
            )

    def _can_lose(self) -> bool:
        """Return True if a rebase can lose messages.

        Commits are dropped or reordered, or the base is not upstream.
        """
        inputs = self._stop.inputs
        return bool(self._dropped or inputs["reordered"] or inputs["elsewhere"])

    def _warnings(self, before: ObjectId | None, replayed: ReplayedCommits) -> list[MeaningWarning]:
        """Return warnings about changed meaning."""
        read = self._store.objects.read
        added = [
            each for oid, made in replayed.new_commits for each in ops.added_messages(made, oid)
        ]
        new = {address for address, _ in added}
        found: list[MeaningWarning] = []
        if any(stored["role"] == "assistant" for _, stored in added):
            found = self._premise_warnings(replayed, new)
        if not self._rebases:
            with_tools = {address for address, stored in added if _has_tool_parts(stored)}
            return [
                *(meaning_warnings.loose_ends(replayed.state, with_tools) if with_tools else ()),
                *found,
            ]
        if before is None or not self._can_lose():
            return found
        old = list(self._cache.fold(before).visible())
        order = [entry.address for entry in replayed.state.entries]
        return [
            *meaning_warnings.check_order(
                old, order, lambda entry: meaning_warnings.texts_of(entry, read)
            ),
            *meaning_warnings.newly_loose(self._cache.fold(before), replayed.state),
            *(
                meaning_warnings.lost_pins(old, replayed.state)
                if self._stop.inputs["reordered"]
                else ()
            ),
            *found,
        ]

    def _premise_warnings(
        self, replayed: ReplayedCommits, new: set[Address]
    ) -> list[MeaningWarning]:
        """Return warnings about answers whose premises changed on the new base."""
        first = next((step for step in self._steps if step.action != DROP), None)
        if first is None or first.number is not None or not new:
            return []
        old_base = self._cache.before(first.oid)
        return meaning_warnings.changed_premises(old_base, replayed.state, new)

    def _review(self, judge: Judge, found: Rewrite, replayed: ReplayedCommits) -> Rewrite:
        """Add a model's warnings to the result; its usage becomes a commit.

        The model is called once, even if the replay is retried.
        """
        if self._judgement is not None and self._rebases:  # its commit exists already
            return replace(found, warnings=(*found.warnings, *self._judgement.warnings))
        judgement = self._judgement
        if judgement is None:
            old = list(self._cache.fold(found.before).visible())
            judgement = judge(old, list(replayed.state.visible()), found.warnings)
            self._judgement = judgement
        if judgement.operations and replayed.tip is not None:
            kind, time = in_progress.WORDS[self._stop.kind], self._store.clock.now()
            message = f"a model's judgement of a {kind}"
            replayed.append(
                Commit([replayed.tip], self._change.author, time, judgement.operations, message)
            )
        return replace(found, after=replayed.tip, warnings=(*found.warnings, *judgement.warnings))

    def _write(self, found: Rewrite, replayed: ReplayedCommits) -> None:
        stop, before, after = self._stop, found.before, found.after
        if after is None or after == before:
            return
        in_progress.save_tip(self._store, stop, after)
        for _, made in replayed.new_commits:
            self._change.add(made)
        is_detached = stop.ref == NAME
        edits = [] if is_detached else [RefEdit(stop.ref, after, before)]
        if self._rebases and before is not None:
            edits.append(keep_in_trash(stop.ref, before))
            self._store.refs.set_original(before)
        message = f"{stop.kind}: {stop.inputs['name']}"
        if is_detached:
            self._change.move_head(Head(None, before), after, message)
        else:
            self._change.write(lambda _: edits, message)


def continue_replay(
    writer: Writer,
    kind: str,
    *,
    skip: bool = False,
    resolver: Answer | None = None,
    judge: Model | None = None,
    drop_pinned: bool = False,
) -> Rewrite:
    """Continue a stopped pick, revert or rebase; `skip` leaves out the step that it stopped at.

    A step that stopped for edits uses the texts given so far. A rebase includes commits made meanwhile, at the end.
    `drop_pinned` allows dropping pinned messages.

    Raises:
        StateError: no operation of this kind is in progress.
        ConflictError: a pinned message would be dropped.
        RefChangedError: the branch was moved away or deleted meanwhile, or HEAD is no longer detached.
    """
    store, change = writer.store, writer.begin()
    stop = in_progress.required_stop(store, kind)
    if in_progress.is_written(store, stop):
        in_progress.clear_stop(store)
        tip = in_progress.tip_of(store, stop)
        return Rewrite(UP_TO_DATE, stop.ref, tip, tip)
    add_new_commits(store, stop)
    if drop_pinned:
        stop.inputs["drop_pinned"] = True
    if skip:
        stop.skipped.append(stop.number)
    else:
        at = stop.number
        found, _ = Replay(change.again(), stop).look()
        for conflict in found.conflicts:
            if conflict.kind == REWORDING and stop.number == at:
                stop.resolutions[conflict.key] = Resolution(OURS)
    return Replay(change, stop, resolver, judge).run()


def look_at_replay(writer: Writer) -> Rewrite:
    """Return the current result of the pick, revert or rebase in progress, without writing it."""
    store = writer.store
    stop = in_progress.required_stop(store)
    add_new_commits(store, stop)
    found, _ = Replay(writer.begin(), stop).look()
    return found


def _only_appends(commit: Commit) -> bool:
    """Return True if a commit only appends unedited messages, usage or metadata."""
    return all(
        operation.name in ops.LEAVES_CONTEXT
        or (
            operation.name == ops.ADD
            and "after" not in operation.fields
            and all(map(is_as_created, operation.fields["messages"]))
        )
        for operation in commit.operations
    )


def _keeps_order(operation: Operation) -> bool:
    """Return True if an operation neither moves, replaces nor inserts messages."""
    return operation.name not in (ops.MOVE, ops.REPLACE) and "after" not in operation.fields


def _keeps_end(operation: Operation) -> bool:
    """Return True if an operation adds, hides and moves nothing."""
    fields = operation.fields
    return operation.name == ops.EDIT or (
        operation.name == ops.ANNOTATE and "priority" not in fields
    )


def _may_answer(commit: Commit) -> bool:
    """Return True if the messages that a commit adds may answer earlier ones."""
    added = [each for o in commit.operations for each in o.fields.get("messages", ())]
    return bool(added) and (added[0]["role"] != "user" or any(map(_has_tool_parts, added)))


def _answered_calls(oid: bytes, commit: Commit) -> set[Address]:
    """Return the messages with calls whose results a commit adds."""
    parts = (stored["parts"] for stored in ops.stored_messages(commit))
    return {call for each in parts for call in call_messages(resolve_calls(each, oid))}


def _has_tool_parts(stored: ops.Stored) -> bool:
    return any(part["type"] in ("tool_call", "tool_result") for part in stored["parts"])


def _records_only(commit: Commit) -> bool:
    """Return True if a commit records only usage or metadata."""
    return all(operation.name in ops.LEAVES_CONTEXT for operation in commit.operations)


def _origins(commit: Commit) -> set[str]:
    """Return the commits that a commit was picked or rebased from."""
    return {str(target) for relation, target in commit.links if relation in (PICKED, REWRITES)}


def _steps(stop: in_progress.Stop) -> list[Step]:
    return [
        Step(action, ObjectId.parse(oid), said, number)
        for action, oid, said, number in stop.inputs["steps"]
    ]
