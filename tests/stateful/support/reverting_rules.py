"""The rule that takes commits back: reverts of one commit, of a range, and of a revert."""

from __future__ import annotations

from collections.abc import Sequence

import hypothesis.strategies as st
from hypothesis.stateful import rule

from tests.stateful.support.ground import AUTHOR, shown
from tests.stateful.support.machine import Lines
from trace_store import ObjectId, errors
from trace_store.merge.revert import continue_revert, revert
from trace_store.objects import operations as ops
from trace_store.writer import Writer


class Reverting(Lines):
    """Reverts."""

    @rule(
        data=st.data(),
        kind=st.sampled_from(["last", "one", "range"]),
        favour=st.sampled_from(["", "", "", "ours", "theirs"]),
    )
    def take_back(self, data: st.DataObject, kind: str, favour: str) -> None:
        ground, before = self.ground, self.ground.tip()
        line = ground.line(before)
        if not line:
            return
        last = data.draw(st.integers(0, min(4, len(line) - 1))) if kind != "last" else 0
        text = "HEAD" if kind == "last" else f"HEAD~{last}"
        if kind == "range":
            text = f"HEAD~{last}..HEAD"
        found = self.stopping(
            lambda: revert(
                *(Writer(ground.store, author=AUTHOR), [text]),
                favour=favour,
                resolver=self.resolver(data),
            ),
            errors.StateError,
        )
        end = self.to_the_end(data, found, continue_revert, errors.StateError)
        if end is None:
            return
        was, now = ground.fold(before), ground.now()
        assert now.addresses() >= was.addresses(), "a revert hides, and takes nothing out"
        reverted = [each.reverts for each in end.made]
        plain = bool(end.made) and not end.settled and not self._take_calls_along(reverted)
        if text == "HEAD" and plain:
            parents = ground.commit(line[0]).parents
            expected = ground.fold(parents[0] if parents else None)
            assert shown(now) == shown(expected), "the last commit was not taken back"
            self.there_and_back(data)
            if ground.tip() != before and data.draw(st.booleans(), "revert the revert"):
                ground.command(lambda: revert(Writer(ground.store, author=AUTHOR), ["HEAD"]))
                assert shown(ground.now()) == shown(was)
        elif kind == "range" and plain and last and len(end.made) == last:
            assert shown(now) == shown(ground.fold(line[last])), "the range was not taken back"
        self.there_and_back(data)

    def _take_calls_along(self, reverted: Sequence[ObjectId]) -> bool:
        """Return True if a revert of commits hides calls of earlier commits, since it hides their results."""
        ground = self.ground
        added = [
            (oid, address)
            for oid in reverted
            for address, _ in ops.added_messages(ground.commit(oid), oid)
        ]
        own = {address for _, address in added}
        return any(not own.issuperset(ground.fold(oid).unit(address)) for oid, address in added)
