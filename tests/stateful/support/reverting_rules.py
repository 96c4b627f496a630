"""The rule that takes commits back: reverts of one commit, of a range, and of a revert."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
from hypothesis.stateful import rule

from tests.stateful.support.ground import AUTHOR
from tests.stateful.support.machine import Lines
from tests.stateful.support.pictures import AWAY, Picture, counted_faults, faults
from trace_store import errors
from trace_store.joining import continue_revert, revert


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
        self.said.clear()
        found = self.stopping(
            lambda: revert(
                *(ground.store, [text]),
                author=AUTHOR,
                favour=favour,
                resolver=self.resolver(data),
            ),
            errors.StateError,
        )
        end = self.to_the_end(data, found, continue_revert, errors.StateError)
        if end is None:
            return
        was, now = ground.picture(before), ground.now()
        if favour != "theirs" and not self.is_settled("separated-call", "theirs"):
            earlier = [faults(ground.picture(oid)) for oid in line[: last + 2]]
            new_faults = faults(now) - faults(was).union(*earlier)
            # What is shown again stands where it stood.
            new_faults = {each for each in new_faults if each[0] != AWAY}
            assert not new_faults, f"the revert broke {new_faults}"
        plain = bool(end.made) and not any(each.conflicts for each in end.made)
        plain = plain and not self.is_settled()
        if text == "HEAD" and plain:
            parents = ground.commit(line[0]).parents
            expected = ground.picture(parents[0] if parents else None)
            assert _shown(now) == _shown(expected), "the last commit was not taken back"
            self.there_and_back(data)
            # Where it had parted a call from its result, as somebody chose, that is asked again.
            whole = counted_faults(was) <= counted_faults(now)
            again = data.draw(st.booleans(), "revert the revert")
            if ground.tip() != before and whole and again:
                ground.command(lambda: revert(ground.store, ["HEAD"], author=AUTHOR))
                assert _shown(ground.now()) == _shown(was)
        elif kind == "range" and plain and last and len(end.made) == last:
            assert _shown(now) == _shown(ground.picture(line[last])), "the range was not taken back"
        self.there_and_back(data)


def _shown(context: Picture) -> tuple[Any, ...]:
    return (*((each.address, each.state) for each in context.visible), context.tools)
