"""Rules that join lines: merges in every strategy, and the tips that git leaves behind."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Collection, Sequence
from typing import Any

import hypothesis.strategies as st
from hypothesis.stateful import rule

from tests.stateful.support.ground import AUTHOR, SCRATCH, Refused, shown
from tests.stateful.support.machine import Lines, is_drawn
from tests.store.support.histories import move
from tests.support.merge_laws import about, check_changes
from trace_store import ObjectId, Store, errors, history, llm
from trace_store.context.compiler import ContextCompiler
from trace_store.context.fold import Entry, Fold
from trace_store.errors import ErrorCode
from trace_store.maintenance.seal import seal
from trace_store.merge.inputs import DECISIONS
from trace_store.merge.llm_assist.semantic import Advisor
from trace_store.merge.merge import continue_merge, merge
from trace_store.merge.result import (
    ALLOWED,
    FAST_FORWARD,
    MERGED,
    NEVER,
    ONLY,
    SQUASHED,
    STOPPED,
    UP_TO_DATE,
    Merge,
    MergeOptions,
)
from trace_store.objects import operations as ops
from trace_store.objects.address import Address
from trace_store.writer import Writer

REFUSALS = (errors.StateError, errors.InvalidInputError)
STRATEGIES = ("append", "interleave", "ours", "theirs", "decisions", "decisions")


class Joining(Lines):
    """Merges."""

    @rule(
        data=st.data(),
        strategy=st.sampled_from(["append", "interleave"]),
        favour=st.sampled_from(["", "", "", "ours", "theirs"]),
    )
    def merge(self, data: st.DataObject, strategy: str, favour: str) -> None:
        """Two lines that went on become one."""
        self._merge(data, MergeOptions(strategy, favour))

    @rule(
        data=st.data(),
        strategy=st.sampled_from(STRATEGIES),
        favour=st.sampled_from(["", "", "", "ours", "theirs"]),
        forward=st.sampled_from([ALLOWED, ALLOWED, ALLOWED, NEVER, ONLY]),
        squash=st.booleans(),
        unrelated=st.booleans(),
    )
    def merge_otherwise(
        self,
        data: st.DataObject,
        strategy: str,
        favour: str,
        forward: str,
        squash: bool,
        unrelated: bool,
    ) -> None:
        self._merge(data, MergeOptions(strategy, favour, forward, squash, unrelated))

    def _merge(self, data: st.DataObject, options: MergeOptions) -> None:
        store, revision = self.ground.store, self.part(data)
        resolver = self.resolver(data)
        found = self.stopping(
            lambda: merge(Writer(store, author=AUTHOR), revision, options, resolver=resolver),
            *REFUSALS,
        )
        if isinstance(found, Refused):
            self._refused(found, options)
            return
        went_on = False
        if found.outcome == STOPPED and data.draw(st.integers(0, 4)) == 0:
            went_on = True
            self.do_work(data, most=1)
        end = self.to_the_end(data, found, continue_merge)
        if end is not None:
            assert went_on or end.before == found.before
            self._hold(end, options)
            self.there_and_back(data)

    @rule(data=st.data())
    def semantic(self, data: st.DataObject) -> None:
        """A model that answers at random settles the conflicts, or is refused."""
        store, revision = self.ground.store, self.part(data)
        advisor = Advisor(ContextCompiler(store), lambda prompt: self._answer(data, prompt))
        options = MergeOptions("semantic", fast_forward=NEVER)
        found = self.ground.command(
            lambda: merge(Writer(store, author=AUTHOR), revision, options, advise=advisor),
            *(*REFUSALS, errors.ModelError),
        )
        if isinstance(found, Refused) or found.outcome == UP_TO_DATE:
            return
        assert found.outcome in (MERGED, FAST_FORWARD)
        self._hold_semantic(found)
        self.there_and_back(data)

    @rule(data=st.data(), check=st.booleans(), several=st.booleans())
    def join_tips(self, data: st.DataObject, check: bool, several: bool) -> None:
        """People's tips of one branch become one; without a conflict by the same commit for everybody."""
        self.part(data)
        ground, head = self.ground, self.ground.store.refs.head()
        if not head.ref or not head.oid or ground.store.refs.tips(head.ref) != (head.oid,):
            return  # an undo may have brought back tips that the branch had before
        own = [head.oid]
        for _ in range(1 + several):
            tips = {oid for _, oid in ground.store.refs.iterate("refs/heads/")} - {*own}
            others = sorted(tip for tip in tips if all(self._are_apart(tip, each) for each in own))
            own += [data.draw(st.sampled_from(others))] if others else []
        if len(own) == 1:
            return
        theirs = self._as_another_sees_it(head.ref, own) if check else None
        self._leave_tips(ground.store, head.ref, own)
        found = self.stopping(lambda: merge(Writer(ground.store, author=AUTHOR)))
        if theirs is not None:
            assert (found.outcome == STOPPED) == (theirs.outcome == STOPPED)
            assert found.after == theirs.after or found.outcome == STOPPED
        end = self.to_the_end(data, found, continue_merge)
        # Given up, or left out: the other tips still wait.
        if end is None or end.outcome == UP_TO_DATE:
            assert set(ground.store.refs.tips(head.ref)) == {*own}
            end = merge(Writer(ground.store, author=AUTHOR), "", MergeOptions("ours"))
            assert end.after is not None
            first = ground.line(end.after)[len(own) - 1]
            assert shown(ground.fold(end.after)) == shown(ground.fold(first))
        else:
            assert end.after is not None
            left = set(ground.store.refs.tips(head.ref)) - {end.after}
            past = ground.past(end.after)
            assert all((tip in past) != (tip in left) for tip in own), "a tip is gone, or waits"
            if end.outcome == MERGED and len(own) == 2:
                assert set(ground.commit(end.after).parents) == {*own}
                self._hold(end, MergeOptions(), joined=True)
            history.undo.undo(Writer(ground.store, author=AUTHOR))
            assert ground.tip() == head.oid
            history.undo.redo(Writer(ground.store, author=AUTHOR))
            assert ground.tip() == end.after
        ground.forget_commands()

    def _are_apart(self, one: ObjectId, other: ObjectId) -> bool:
        return self.ground.bases(one, other) not in ([], [one], [other])

    def _leave_tips(self, store: Store, ref: str, own: Sequence[ObjectId]) -> None:
        """Leave a branch as git does that had several people's tips; the first is this working copy's."""
        seal(store)
        for tip in own[1:]:
            store.refs.files.add(ref, tip)
        assert store.refs.tips(ref)[0] == own[0]
        assert set(store.refs.tips(ref)) == {*own}

    def _as_another_sees_it(self, ref: str, own: Sequence[ObjectId]) -> Merge:
        """Return the result in another working copy, which has the tips in reverse order."""
        folder = tempfile.mkdtemp(prefix="trace-other-", dir=SCRATCH)
        try:
            shutil.copytree(self.ground.folder, folder, dirs_exist_ok=True)
            store = Store.open(os.path.join(folder, ".trace"), durability="fast")
            move(store, ref, own[-1])
            self._leave_tips(store, ref, [*reversed(own)])
            found = merge(Writer(store, author="eve"))
            store.close()
            return found
        finally:
            shutil.rmtree(folder)

    def _refused(self, found: Refused, options: MergeOptions) -> None:
        error = found.error
        if isinstance(error, errors.DetachedHeadError):
            assert self.ground.store.refs.head().ref is None
        elif isinstance(error, errors.UnbornBranchError):
            assert self.ground.tip() is None  # and there is nothing else to name
        elif error.code == ErrorCode.NOT_FAST_FORWARD:
            assert options.fast_forward == ONLY
        else:
            assert error.code == ErrorCode.UNRELATED_HISTORIES
            assert not options.unrelated

    def _hold(self, found: Merge, options: MergeOptions, *, joined: bool = False) -> None:
        """Assert the invariants of a merge."""
        ground = self.ground
        if found.after is None or found.after == found.before or found.before is None:
            assert found.outcome in (UP_TO_DATE, FAST_FORWARD)
            return
        if found.outcome == FAST_FORWARD:
            assert found.after in found.theirs
            assert found.before in ground.past(found.after)
            return
        parents = list(ground.commit(found.after).parents)
        if found.outcome == SQUASHED:
            assert parents == [found.before]
            parents += found.theirs
        else:
            assert found.outcome == MERGED
            assert joined or parents[0] == found.before
        ours, theirs = map(ground.fold, parents)
        result = ground.fold(found.after)
        assert result.addresses() >= ours.addresses(), "nothing leaves"
        bases = ground.bases(*parents)
        clash = about(found.settled, ours, theirs)
        if options.strategy == "ours":
            assert shown(result) == shown(ours)
        elif options.strategy == "theirs":
            # A result that only ours has stays with its call; that of theirs gives it its content.
            own = ours.addresses() - theirs.addresses()
            kept = {each for each in own if not theirs.addresses().isdisjoint(ours.unit(each))}
            apart = kept | {*clash, *(theirs.addresses() - result.addresses())}
            said, wanted = (
                [each for each in side[:-1] if each[0] not in apart]
                for side in (shown(result), shown(theirs))
            )
            assert said == wanted
            assert result.tools == theirs.tools
        elif options.strategy == DECISIONS:
            self._hold_decisions(ours, theirs, result, clash)
        elif found.outcome == MERGED and len(bases) < 2:
            base = ground.fold(bases[0] if bases else None)
            missing = [a for a in theirs.addresses() if a not in result and a not in base]
            assert all(a in clash or theirs.entry(a).answers for a in missing)
            check_changes(base, ours, theirs, result, clash)

    def _hold_decisions(
        self, ours: Fold, theirs: Fold, result: Fold, clash: Collection[Address]
    ) -> None:
        """What is labelled as a decision comes in, with its unit, and nothing else of ours changes."""
        wanted = {e.address for e in theirs.visible() if "decision" in e.labels}
        assert wanted <= result.addresses() | set(clash)
        assert result.addresses() - ours.addresses() <= set(theirs.units(wanted)) | set(clash)
        for each in ours.entries:
            assert each.address in clash or result.entry(each.address).same_state(each)

    def _hold_semantic(self, found: Merge) -> None:
        ground = self.ground
        if found.outcome == FAST_FORWARD or found.before is None or found.after is None:
            return
        made = ground.commit(found.after)
        sides = [ground.fold(parent) for parent in made.parents]
        result = ground.fold(found.after)
        assert made.meta["merge"]["strategy"] == "semantic"
        clash = about(found.settled, *sides)
        for each in result.entries:
            there = [side.entry(each.address) for side in sides if each.address in side]
            if there and each.address not in clash and all(map(_is_pinned, there)):
                assert _is_pinned(each), "a pinned message is not shown any more"

    def _answer(self, data: st.DataObject, prompt: llm.contract.Prompt) -> llm.contract.Completion:
        """Return an answer that settles everything, and may summarise and conclude; some are not to be used."""
        question = json.loads(prompt.messages[0][1])
        settled = []
        for each in question["conflicts"]:
            take = data.draw(st.sampled_from(each["choices"]), each["kind"])
            said = {"number": each["number"], "take": take, "why": "so"}
            settled.append({**said, "text": f"t{self.ground.number()}"} if take == "text" else said)
        names = [e["id"] for e in (*question["ours"], *question["theirs"]) if "fixed" not in e]
        summaries: list[Any] = []
        if names and is_drawn(data, "summary"):
            some = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
            text = f"s{self.ground.number()}"
            summaries = [{"messages": some, "role": "assistant", "text": text, "why": "shorter"}]
        conclusion: Any = None
        if names and is_drawn(data, "conclusion"):
            text = f"s{self.ground.number()}"
            conclusion = {"role": "assistant", "text": text, "sources": names[:1], "why": "so"}
        answer = {"conflicts": settled, "summaries": summaries, "conclusion": conclusion}
        return llm.contract.Completion(json.dumps(answer), "scripted-1")


def _is_pinned(entry: Entry) -> bool:
    return entry.priority == ops.PINNED and not entry.hidden
