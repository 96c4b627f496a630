"""Rules that make commits anew: rebases with to-do lists, and picks of commits, ranges and messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import hypothesis.strategies as st
from hypothesis.stateful import rule

from tests.stateful.support import laws
from tests.stateful.support.ground import AUTHOR, Refused
from tests.stateful.support.machine import Lines
from tests.stateful.support.pictures import (
    NOTHING,
    Address,
    Picture,
    broken,
    faults,
    together,
)
from trace_store import ObjectId, errors
from trace_store.joining import (
    cherry_pick,
    continue_rewriting,
    rebase,
)
from trace_store.joining.rewriting.outcome import Rewrite
from trace_store.joining.rewriting.todo import (
    DROP,
    EDIT,
    FIXUP,
    JOINED,
    PICK,
    REWORD,
    SQUASH,
    Step,
)
from trace_store.objects import operations as ops

DEEDS = (PICK, PICK, PICK, SQUASH, FIXUP, REWORD, EDIT, DROP)


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
        self.said.clear()
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
                *(ground.store, upstream),
                author=AUTHOR,
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
        go_on = _going_on("rebase")
        end = self.to_the_end(data, found, go_on, errors.ConflictError)
        if end is None or end.outcome != "done":
            return
        settled = self.is_settled() or bool(favour)
        self._record(end)
        self._hold_rebase(end, steps, settled=settled, drop_pinned=drop_pinned == 0)
        self.there_and_back(data)

    def _listed(self, data: st.DataObject, every: Sequence[Step]) -> list[Step]:
        """Return steps with other deeds, and in another order where no call is parted from its result by that."""
        steps = [Step(data.draw(st.sampled_from(DEEDS)), each.oid) for each in every]
        if any(self._is_half(each.oid) for each in every):
            steps = [Step(PICK, s.oid) if s.deed == DROP else s for s in steps]
        elif data.draw(st.booleans(), "reorder"):
            steps = data.draw(st.permutations(steps))
        return [
            Step(PICK, each.oid)
            if each.deed in JOINED and all(s.deed == DROP for s in steps[:at])
            else Step(
                each.deed, each.oid, f"said {each.oid.short()}" if each.deed == REWORD else ""
            )
            for at, each in enumerate(steps)
        ]

    def _added(self, oid: ObjectId) -> list[Any]:
        """Return the messages that a commit brought."""
        parents = self.ground.commit(oid).parents
        had = self.ground.picture(parents[0] if parents else None).by_address
        return [each for each in self.ground.picture(oid).entries if each.address not in had]

    def _is_half(self, oid: ObjectId) -> bool:
        """Tell whether a commit brought, showed or hid a call without its result, or the other way about."""
        commit = self.ground.commit(oid)
        added = self._added(oid)
        if faults(Picture(tuple(each.as_written() for each in added), ())):
            return True
        before = self.ground.picture(commit.parents[0] if commit.parents else None)
        return faults(before) != faults(self.ground.picture(oid))

    def _record(self, found: Rewrite) -> None:
        """Write down which messages have which new addresses."""
        after: dict[ObjectId, int] = {}
        for old, new in found.made:
            count = sum(map(ops.message_count, self.ground.commit(old).operations))
            first = after.get(new, 0)
            after[new] = first + count
            for number in range(count if old != new else 0):
                later = self.ground.renamed.setdefault((old, number), [])
                later.append((new, first + number))

    def _now(self, found: Rewrite) -> Callable[[Address], Address]:
        """Return what says where a message of the branch is now."""
        changed = {old for old, new in found.made if old != new}
        there = {old: (new, first) for old, new, first in found.there}
        present = dict(found.present)

        def address(old: Address) -> Address:
            if old in present:
                return present[old]
            if old[0] in there:
                new, first = there[ObjectId(old[0])]
                return (new, first + old[1])
            return self.ground.renamed[old][-1] if old[0] in changed else old

        return address

    def _hold_rebase(
        self, found: Rewrite, steps: Sequence[Step], *, settled: bool, drop_pinned: bool
    ) -> None:
        ground = self.ground
        assert found.before is not None
        old, new = ground.picture(found.before), ground.picture(found.after)
        deeds = {step.oid: step.deed for step in steps}
        replaced = [each.oid for each in steps]
        line = ground.line(found.before)
        in_order = replaced == [oid for oid in reversed(line) if oid in deeds]
        made, present = dict(found.made), dict(found.present)
        start = self._start(found)
        now = self._now(found)
        first = max((line.index(oid) for oid in deeds), default=-1)
        base = ground.picture(line[first + 1] if first + 1 < len(line) else None)
        left_over = set(deeds) - {*made, *(old for old, _, _ in found.there)}
        dropped = [oid for oid in left_over if not _says_nothing(ground.commit(oid))]
        # What was left out, or not taken as somebody chose, may have mended what is broken without it.
        steps_before = map(ground.picture, deeds if dropped or settled else ())
        added = [each for oid in dropped for each in self._added(oid)]
        parted = {name for each in added for name in (*each.calls, *each.results)}  # as was said
        new_faults = {
            each
            for each in broken(new, old, start, *steps_before)
            if each[0] == "second result" or each[1] not in parted
        }
        assert not new_faults, f"the rebase broke {new_faults}"
        if not settled and not drop_pinned:
            there, on = base.by_address, start.by_address
            by_onto = {a for a in on if a in there and on[a].state != there[a].state}
            by_onto = {a for a in by_onto if there[a].priority == ops.PINNED}  # be it hidden there
            # What a merge of the range had brought may be hidden or unpinned there as well.
            by_onto |= {a for a in on if a not in there and not on[a].is_pinned}
            # What pinned it is there already, and what came after that there counts.
            there_already = ground.named(oid for oid, _, _ in found.there)
            there_already -= ground.named(deeds, lambda operation: operation.fields.get("priority"))
            by_onto |= {a for a in there_already if now(a) in on and not on[now(a)].is_pinned}
            by_order = {each.address for each in found.warnings if each.kind == "pin-lost"}
            unpinned = {a for a in old.by_address if now(a) in by_order}
            left_out = ground.named(set(deeds) - set(made))
            laws.kept_pins(old, new, by_onto | unpinned | left_out, now)
        for each, other in found.made:
            if deeds[each] in (PICK, EDIT) and other != each:
                was, is_ = ground.commit(each), ground.commit(other)
                assert (was.author, {**is_.meta, **was.meta}) == (is_.author, is_.meta)
        for old_address, same in present.items():
            twice = [each for each in ground.later(old_address) if each in new.by_address]
            assert same in start.by_address
            assert settled or not any(
                new.by_address[each].is_visible for each in twice if each != same
            )
        if settled or not in_order or dropped or found.dropped or EDIT in deeds.values():
            return
        there = new.by_address
        # What a commit changed that is there already may have been changed back there since, and was not done again.
        left = ground.named(oid for oid, _, _ in found.there)
        for entry in old.entries:
            if entry.address[0] in deeds and entry.address not in {*present, *left}:
                assert there[now(entry.address)].state == entry.state, "did not follow the rebase"
        if not deeds:
            assert new == start
            return
        kept = Picture(tuple(e for e in old.entries if e.address not in left), old.tools)
        self._hold_others(base, start, kept, new, now, sorted(deeds))
        if start == base:
            assert new.shown == old.shown, "the same commits on the same start, and another context"

    def _hold_others(
        self,
        base: Picture,
        start: Picture,
        old: Picture,
        new: Picture,
        now: Callable[[Address], Address],
        range_: Sequence[ObjectId],
    ) -> None:
        """What the range did not make: as it left that, where the new start left it as it was, and otherwise."""
        was, on, is_ = base.by_address, start.by_address, new.by_address
        named = self.ground.named(range_)
        for each in old.entries:
            address = each.address
            if address not in was or address not in on:
                continue
            if on[address].state == was[address].state:
                assert is_[address].state == each.state, "the rebase lost a change"
            elif address not in named:
                assert is_[address].state == on[address].state, "the rebase changed a message"

    def _start(self, found: Rewrite) -> Picture:
        """Return the context that a rebased line begins on."""
        ground = self.ground
        made = {new for _, new in found.made}
        for oid in ground.line(found.after):
            if oid not in made:
                return ground.picture(oid)
        return NOTHING

    @rule(
        data=st.data(),
        kind=st.sampled_from(["commits", "range", "message"]),
        favour=st.sampled_from(["", "", "", "ours", "theirs"]),
    )
    def cherry_pick(self, data: st.DataObject, kind: str, favour: str) -> None:
        other = self.part(data)
        self.said.clear()
        ground, before = self.ground, self.ground.tip()
        at = ""
        if kind == "commits":
            wanted = [self.revision(data) for _ in range(data.draw(st.integers(1, 2)))]
        elif kind == "range":
            wanted = [f"HEAD..{other}"] if data.draw(st.booleans()) else [self._range(data)]
        else:
            at = self.revision(data, steps=1)
            tip = ground.store.refs.read(f"refs/heads/{at.partition('~')[0]}") or before
            seen = [e.address for e in ground.picture(tip).visible if not e.is_ghost]
            at = str(tip)
            if not seen:
                return
            commit, number = seen[data.draw(st.integers(0, len(seen) - 1))]
            wanted = [f"{ObjectId(commit)}.{number}"]
        found = self.stopping(
            lambda: cherry_pick(
                *(ground.store, wanted),
                author=AUTHOR,
                at=at,
                favour=favour,
                resolver=self.resolver(data),
            ),
            *(errors.DetachedHeadError, errors.InvalidInputError, errors.UnbornBranchError),
        )
        end = self.to_the_end(data, found, _going_on("cherry-pick"))
        if end is None or end.outcome != "done":
            return
        self._hold_pick(end, kind, at, wanted, settled=self.is_settled() or bool(favour))
        self.there_and_back(data)

    def _range(self, data: st.DataObject) -> str:
        return f"{self.revision(data, steps=4)}..{self.revision(data, steps=1)}"

    def _hold_pick(
        self, found: Rewrite, kind: str, at: str, wanted: Sequence[str], *, settled: bool
    ) -> None:
        ground = self.ground
        before, after = ground.picture(found.before), ground.picture(found.after)
        picked = {old for old, _ in found.made}
        if kind == "message" or not any(self._is_half(oid) for oid in picked):
            origins = [*map(ground.picture, picked)]
            origins += [ground.picture(ObjectId.parse(at))] if at else []
            new_faults = broken(after, before, *origins)
            assert not new_faults, f"the pick broke {new_faults}"
        if kind == "message":
            self._hold_copies(before, after, ground.picture(ObjectId.parse(at)), wanted[0])
            return
        named = ground.named(picked)
        if settled:  # perhaps a call that would be parted from its result, or two results of one
            named |= set(together(before, named))
            answered = {
                name for oid in picked for each in self._added(oid) for name in each.results
            }
            named |= {each.address for each in before.entries if answered & {*each.results}}
        there = after.by_address
        if any(each.kind in laws.OF_MANY for each in found.settled):
            return  # which changes messages that neither the commit nor the conflict names
        for each in before.entries:
            if each.address not in named and each.address[0] not in picked:
                assert there[each.address].state == each.state, "the pick changed a message"
        if not settled:
            laws.kept_pins(before, after, named, lambda address: address)

    def _hold_copies(self, before: Picture, after: Picture, at: Picture, wanted: str) -> None:
        copies = after.entries[len(before.entries) :]
        assert after.entries[: len(before.entries)] == before.entries
        commit, _, number = wanted.partition(".")
        origin = at.by_address[(ObjectId.parse(commit), int(number))]
        (copy,) = [each for each in copies if each.says == origin.says]
        assert (copy.priority, copy.labels, copy.keep) == (
            origin.priority,
            origin.labels,
            origin.keep,
        )


def _says_nothing(commit: Any) -> bool:
    return not commit.operations


def _going_on(kind: str) -> Callable[..., Any]:
    def go_on(store: Any, **given: Any) -> Any:
        return continue_rewriting(store, kind, **given)

    return go_on
