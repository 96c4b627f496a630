"""Rules that apply commits again: rebases with to-do lists, and picks of commits, ranges and messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import hypothesis.strategies as st
from hypothesis.stateful import rule

from tests.stateful.support.ground import AUTHOR, Refused, shown
from tests.stateful.support.machine import Lines
from tests.support.merge_laws import about
from trace_store import errors
from trace_store.context.fold import Fold
from trace_store.merge.cherry_pick import cherry_pick
from trace_store.merge.rebase import rebase
from trace_store.merge.replay import continue_replay
from trace_store.merge.result import Rewrite
from trace_store.merge.todo import DROP, EDIT, FIXUP, PICK, REWORD, SQUASH, SQUASHING, Step
from trace_store.objects import operations as ops
from trace_store.objects.address import Address
from trace_store.writer import Writer

ACTIONS = (PICK, PICK, PICK, SQUASH, FIXUP, REWORD, EDIT, DROP)


class Rewriting(Lines):
    """Rebases and picks."""

    @rule(
        data=st.data(),
        inward=st.booleans(),
        listed=st.booleans(),
        favour=st.sampled_from(["", "", "", "ours", "theirs"]),
        drop_pinned=st.integers(0, 3),
    )
    def rebase(
        self, data: st.DataObject, inward: bool, listed: bool, favour: str, drop_pinned: int
    ) -> None:
        upstream = "" if inward else self.part(data)
        ground, before = self.ground, self.ground.tip()
        line = ground.line(before)
        if inward and len(line) > 1:
            upstream = f"HEAD~{data.draw(st.integers(1, min(5, len(line) - 1)))}"
        upstream = upstream or self.revision(data, steps=2)
        onto = self.revision(data) if data.draw(st.integers(0, 7)) == 0 else ""
        steps: list[Step] = []

        def plan(every: Sequence[Step]) -> Sequence[Step]:
            steps[:] = self._listed(data, every) if listed else every
            return steps

        found = self.stopping(
            lambda: rebase(
                *(Writer(ground.store, author=AUTHOR), upstream),
                onto=onto,
                plan=plan,
                drop_pinned=drop_pinned == 0,
                favour=favour,
                resolver=self.resolver(data),
            ),
            *(errors.ConflictError, errors.DetachedHeadError, errors.UnbornBranchError),
        )
        if isinstance(found, Refused):
            if isinstance(found.error, errors.ConflictError):
                assert drop_pinned
            return
        end = self.to_the_end(data, found, _going_on("rebase"), errors.ConflictError)
        if end is None or end.outcome != "done":
            return
        self._hold_rebase(end, steps)
        self.there_and_back(data)

    def _listed(self, data: st.DataObject, every: Sequence[Step]) -> list[Step]:
        """Return steps with other deeds, and perhaps in another order."""
        steps = [Step(data.draw(st.sampled_from(ACTIONS)), each.oid) for each in every]
        if data.draw(st.booleans(), "reorder"):
            steps = data.draw(st.permutations(steps))
        return [
            Step(PICK, each.oid)
            if each.action in SQUASHING and all(s.action == DROP for s in steps[:at])
            else Step(
                each.action, each.oid, f"said {each.oid.short()}" if each.action == REWORD else ""
            )
            for at, each in enumerate(steps)
        ]

    def _hold_rebase(self, found: Rewrite, steps: Sequence[Step]) -> None:
        ground = self.ground
        assert found.before is not None
        old, new = ground.fold(found.before), ground.fold(found.after)
        start = self._start(found)
        assert new.addresses() >= start.addresses(), "lost a message of upstream"
        for each, other in found.made:
            if other != each and Step(PICK, each) in steps:
                was, is_ = ground.commit(each), ground.commit(other)
                assert (was.author, {**is_.meta, **was.meta}) == (is_.author, is_.meta)
        line = ground.line(found.before)
        replaced = [step.oid for step in steps]
        in_order = replaced == [oid for oid in reversed(line) if oid in replaced]
        plain = in_order and all(step.action != DROP for step in steps)
        if not plain or found.settled or found.dropped or not steps:
            return
        first = line.index(replaced[0])
        base = ground.fold(line[first + 1] if first + 1 < len(line) else None)
        for entry in old.entries:
            address = entry.address
            if address not in base:
                assert address in new, "lost a message, or gave it another address"
            elif address not in start:
                continue  # its commit stays out, too: `--onto` leads elsewhere
            if address not in start or (address in base and _is_same(base, start, address)):
                assert new.entry(address).parts == entry.parts, "lost a wording"
                if entry.priority == ops.PINNED and not entry.hidden:
                    assert new.entry(address).visible, "lost a pinned message"
        if shown(start) == shown(base) and start.addresses() == base.addresses():
            assert shown(new) == shown(old), "the same start, and another context"

    def _start(self, found: Rewrite) -> Fold:
        """Return the context that a rebased line begins on."""
        ground = self.ground
        made = {new for _, new in found.made}
        return ground.fold(next((o for o in ground.line(found.after) if o not in made), None))

    @rule(
        data=st.data(),
        kind=st.sampled_from(["commits", "range", "message"]),
        favour=st.sampled_from(["", "", "", "ours", "theirs"]),
    )
    def cherry_pick(self, data: st.DataObject, kind: str, favour: str) -> None:
        other = self.part(data)
        ground, before = self.ground, self.ground.tip()
        at = ""
        if kind == "commits":
            wanted = [self.revision(data) for _ in range(data.draw(st.integers(1, 2)))]
        elif kind == "range":
            wanted = [f"HEAD..{other}"] if data.draw(st.booleans()) else [self._range(data)]
        else:
            at = self.revision(data, steps=1)
            branch = at.partition("~")[0]
            tip = before if branch == "HEAD" else ground.store.refs.read(f"refs/heads/{branch}")
            seen = [e.address for e in ground.fold(tip).visible() if not e.is_ghost]
            at = str(tip)
            if not seen:
                return
            wanted = [data.draw(st.sampled_from(seen)).hex]

        def pick() -> Rewrite:
            resolver = self.resolver(data)
            return cherry_pick(
                Writer(ground.store, author=AUTHOR), wanted, at=at, favour=favour, resolver=resolver
            )

        refusals = (errors.DetachedHeadError, errors.InvalidInputError, errors.UnbornBranchError)
        end = self.to_the_end(data, self.stopping(pick, *refusals), _going_on("cherry-pick"))
        if end is None or end.outcome != "done":
            return
        self._hold_pick(end)
        self.there_and_back(data)
        if kind == "message" and not end.settled and ground.tip() == end.after:
            assert Address.parse(wanted[0]) in ground.now()
            assert pick().outcome == "up-to-date", "picked what is there"

    def _range(self, data: st.DataObject) -> str:
        return f"{self.revision(data, steps=4)}..{self.revision(data, steps=1)}"

    def _hold_pick(self, found: Rewrite) -> None:
        """Messages outside the picked commits and conflicts are unchanged."""
        ground = self.ground
        before, after = ground.fold(found.before), ground.fold(found.after)
        named = {
            address
            for oid, _ in found.made
            for operation in ground.commit(oid).operations
            for address in ops.targets_of(operation, oid)
        }
        for oid, _ in found.made:
            named.update(address for address, _ in ops.added_messages(ground.commit(oid), oid))
        changed = set(after.units(a for a in named if a in after))
        changed |= about(found.settled, before, after)
        assert after.addresses() >= before.addresses(), "nothing leaves"
        for each in before.entries:
            if each.address not in changed:
                assert after.entry(each.address).same_state(each), "the pick changed a message"


def _is_same(one: Fold, other: Fold, address: Address) -> bool:
    return one.entry(address).same_state(other.entry(address))


def _going_on(kind: str) -> Callable[..., Any]:
    def go_on(store: Any, **given: Any) -> Any:
        return continue_replay(store, kind, **given)

    return go_on
