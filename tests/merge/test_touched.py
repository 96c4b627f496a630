"""A commit that only changes messages is merged by these alone, unless the rest matters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.merge.support.histories import History
from trace_store.merge.touched import merge_touched
from trace_store.objects import operations as ops
from trace_store.objects.address import Address
from trace_store.objects.commit import read_commit
from trace_store.objects.message import Message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trace_store.base.oid import ObjectId
    from trace_store.merge.inputs import MergePlan
    from trace_store.objects.commit import Operation


class Conversation:
    """A question with two answers, of which two branches make something."""

    def __init__(self) -> None:
        self.history = History()
        tip = None
        self.at: list[Address] = []
        for role, text in (("user", "Q"), ("assistant", "A"), ("assistant", "B"), ("user", "R")):
            tip = self.history.say(tip, Message(role, text))
            self.at.append(Address.of(tip, 0))
        assert tip is not None
        self.tip: ObjectId = tip

    def picked(
        self, ours: Sequence[Operation], theirs: Sequence[Operation]
    ) -> tuple[MergePlan | None, MergePlan]:
        """Return the plan for the touched messages, and that for everything."""
        history = self.history
        mine, yours = history.commit([self.tip], ours), history.commit([self.tip], theirs)
        whole, _ = history.plan(self.tip, mine, yours, "")
        commit = read_commit(yours, history.store.objects.read)
        return merge_touched(yours, commit, history.fold(self.tip), history.fold(mine)), whole


@pytest.mark.parametrize("ours", [0, 2, 3])
def test_other_messages_do_not_matter(ours: int) -> None:
    talk = Conversation()
    quick, whole = talk.picked([ops.remove([talk.at[ours]])], [ops.remove([talk.at[1]])])
    assert quick == whole
    assert whole.operations == (ops.remove([talk.at[1]]),)


def test_a_change_of_both_matters() -> None:
    talk = Conversation()
    parts = [{"type": "text", "blob": talk.history.put("again")}]
    quick, whole = talk.picked([ops.edit(talk.at[1], parts)], [ops.remove([talk.at[1]])])
    assert quick is None
    assert whole.conflicts


def test_a_message_that_comes_or_moves_matters() -> None:
    talk = Conversation()
    quick, _ = talk.picked([], [ops.move([talk.at[3]], after=talk.at[0])])
    assert quick is None
