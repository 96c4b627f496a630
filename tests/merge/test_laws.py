"""Laws of merging, on random histories of real operations in a store."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from tests.merge.support.histories import History
from tests.merge.support.sides import seen
from tests.support.examples import FULL
from tests.support.merge_laws import about, check_alike, check_changes, check_sound
from trace_store.merge.conflicts import TWO_ANSWERS
from trace_store.merge.merge3 import three_way
from trace_store.objects import operations as ops
from trace_store.objects.message import Message, store_message
from trace_store.objects.parts import Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from trace_store.base.oid import ObjectId
    from trace_store.context.fold import Entry, Fold

RUNS = 3000 if FULL else 300
PIECES = 10
DEEDS = (
    *("say", "answer", "call", "result", "edit", "edit", "pin", "label", "hide", "ghost", "show"),
    *("move", "replace", "merge", "merge", "merge", "interleave", "squash", "pick", "pick"),
    *("rebase", "revert"),
)


@pytest.mark.parametrize("piece", range(PIECES))
def test_laws_hold_on_random_histories(piece: int) -> None:
    for seed in range(piece, RUNS, PIECES):
        try:
            _Run(seed).go()
        except Exception as error:
            error.add_note(f"the history of the seed {seed}")
            raise


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_a_pin_spreads_to_a_result_that_joins_two_calls(order: str) -> None:
    history = History()
    root = history.say(None, Message("user", "q"))
    a = history.say(root, Message("assistant", [ToolCall("a", "read", "{}")]))
    call = history.fold(a).entries[-1].address
    pinned = history.commit([a], [ops.annotate([call], priority=ops.PINNED)])
    b = history.say(a, Message("assistant", [ToolCall("b", "read", "{}")]))
    joined = history.say(b, Message("tool", [ToolResult(name, name) for name in order]))
    for ours, theirs in ((pinned, joined), (joined, pinned)):
        merged, met = history.merge(ours, theirs, "ours")
        priorities = [entry.priority for entry in history.fold(merged).entries]
        assert (priorities, met) == (["normal", "pinned", "pinned", "pinned"], [])


class _Run:
    """One random history on three branches."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.history = History()
        root = self.history.say(None, Message("user", "q"))
        self.tips = [root] * 3
        self.count = 0

    def go(self) -> None:
        for _ in range(self.random.randint(3, 25)):
            branch = self.random.randrange(3)
            self.count += 1
            deed = self.random.choice(DEEDS)
            self.tips[branch] = self._done(deed, branch)
            check_sound(self.history.fold(self.tips[branch]))

    def _done(self, deed: str, branch: int) -> ObjectId:
        tip, history = self.tips[branch], self.history
        other = self.tips[self.random.choice([each for each in range(3) if each != branch])]
        favour = self.random.choice(["ours", "theirs"])
        if deed in ("merge", "interleave", "squash"):
            return self._merged(deed, tip, other, favour)
        if deed == "pick":
            return self._picked(tip, self.random.choice(history.commits), favour)
        if deed == "rebase":
            return history.rebase(tip, other, favour)[0]
        if deed == "revert":
            self._check_reverts(tip, favour)
            return history.revert(tip, self.random.choice(sorted(history.past(tip))), favour)[0]
        if deed in ("say", "answer", "call", "result"):
            return self._said(deed, tip)
        operation = self._changed(deed, history.fold(tip))
        return tip if operation is None else history.commit([tip], [operation])

    def _said(self, deed: str, tip: ObjectId) -> ObjectId:
        if deed == "say":
            return self.history.say(tip, Message("user", f"m{self.count}"))
        if deed == "answer":
            return self.history.say(tip, Message("assistant", f"a{self.count}"))
        if deed == "call":
            calls = range(self.random.randint(1, 2))
            made = [ToolCall(f"{self.seed}.{self.count}.{n}", "read", "{}") for n in calls]
            return self.history.say(tip, Message("assistant", [Text(f"c{self.count}"), *made]))
        waiting = _waiting(self.history.fold(tip))
        if not waiting:
            return tip
        chosen = self.random.sample(waiting, self.random.randint(1, min(2, len(waiting))))
        results = [ToolResult(name, f"r{self.count}") for name in chosen]
        return self.history.say(tip, Message("tool", results))

    def _changed(self, deed: str, state: Fold) -> Any:
        entry = self.random.choice(state.entries)
        address = entry.address
        if deed == "edit":
            return ops.edit(address, self._reworded(entry))
        if deed == "pin":
            priority = self.random.choice([ops.PINNED, ops.SKIP, ops.NORMAL])
            return ops.annotate([address], priority=priority)
        if deed == "label":
            return ops.annotate([address], labels=[f"l{self.count}"])
        if deed in ("hide", "ghost"):
            return ops.remove([address], ghost=deed == "ghost")
        if deed == "show":
            return ops.restore([address])
        if deed == "replace":
            summary = store_message(
                Message("user", f"s{self.count}"), lambda said: self.history.put(said.decode())
            )
            return ops.replace([address], [summary])
        neighbour = self.random.choice(state.entries).address
        if neighbour in state.unit(address):
            return None
        return ops.move([address], after=neighbour)

    def _reworded(self, entry: Entry) -> list[dict[str, Any]]:
        blob = self.history.put(f"e{self.count}")
        parts = [dict(part) for part in entry.parts]
        for part in parts:
            if part["type"] == "text":
                part["blob"] = blob
            elif part["type"] == "tool_result":
                part["parts"] = [{"blob": blob, "type": "text"}]
        return parts

    def _picked(self, tip: ObjectId, oid: ObjectId, favour: str) -> ObjectId:
        made, met = self.history.pick(tip, oid, favour)
        if made != tip and not met:
            again, _ = self.history.pick(made, oid, favour)
            assert again == made, "a pick of what is there is empty"
        return made

    def _check_reverts(self, tip: ObjectId, favour: str) -> None:
        reverted, _ = self.history.revert(tip, tip, favour)
        again, met = self.history.revert(reverted, reverted, favour)
        if reverted != tip:
            states = [seen(self.history.fold(each)) for each in (tip, again)]
            assert (states[0], met) == (states[1], []), "a reverted revert restores everything"

    def _merged(self, deed: str, ours: ObjectId, theirs: ObjectId, favour: str) -> ObjectId:
        history = self.history
        strategy = "interleave" if deed == "interleave" else "append"
        made, met = history.merge(ours, theirs, favour, squash=deed == "squash", strategy=strategy)
        after, before, other = history.fold(made), history.fold(ours), history.fold(theirs)
        if made == theirs:
            return made
        assert after.addresses() >= before.addresses(), "nothing leaves"
        if deed == "squash" or made == ours:
            return made
        base = history.fold(history.base(ours, theirs))
        assert _two_answers(base, before, other) == {
            (about, theirs, ours) for about, ours, theirs in _two_answers(base, other, before)
        }, "two answers are the same conflict from either side"
        clash = about(met, before, other)
        missing = [a for a in other.addresses() if a not in after and a not in base]
        assert all(a in clash or other.entry(a).answers for a in missing), "all of theirs is there"
        check_changes(base, before, other, after, clash)
        again, _ = history.merge(made, theirs, favour)
        assert again == made, "what was merged is not merged again"
        if not met:
            back, met = history.merge(theirs, ours, favour)
            if not met:
                check_alike(after, history.fold(back))
        return made


def _two_answers(base: Fold, ours: Fold, theirs: Fold) -> set[tuple[Any, ...]]:
    """Return the conflicts of two answers, without a resolution."""
    return {
        (each.addresses, *(tuple(e.address for e in side) for side in (each.ours, each.theirs)))
        for each in three_way(base, ours, theirs).conflicts
        if each.kind == TWO_ANSWERS
    }


def _waiting(state: Fold) -> list[str]:
    """Return the ids of calls without a result."""
    parts = [(e.address, part) for e in state.entries for part in e.message["parts"]]
    answered = {
        (*part["call"], part["id"])
        for _, part in parts
        if part["type"] == "tool_result" and "call" in part
    }
    return [
        part["id"]
        for address, part in parts
        if part["type"] == "tool_call" and (*address, part["id"]) not in answered
    ]
