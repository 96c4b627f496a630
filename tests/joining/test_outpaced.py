"""Somebody else goes on with the branch while a merge, a pick, a rebase or a revert is worked out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.joining.support.lines import ADA, said
from trace_store import Conflict, FixedClock, Repo
from trace_store.errors import RefChangedError
from trace_store.joining import reverting
from trace_store.joining.rewriting import steps


class Pair:
    """A repository in which `main` and `side` contradict each other, and a second handle that goes on with main."""

    def __init__(self, folder: Path) -> None:
        self.repo = Repo.init(
            folder, environment=ADA, clock=FixedClock(step=1000), durability="fast"
        )
        self.other = Repo.open(folder, environment=ADA)
        self.first = self.repo.append("user", "a").addresses[0]
        self.repo.branch("side")
        self.repo.edit(self.first, "ours")
        self.edit = str(self.repo.resolve("HEAD"))
        self.repo.append("system", "b")
        self.repo.switch("side")
        self.repo.edit(self.first, "theirs")
        self.repo.append("system", "c")
        self.repo.switch("main")
        self.asked: list[Conflict] = []
        self.appended = 0

    def append(self) -> None:
        self.appended += 1
        self.other.append("system", f"meanwhile {self.appended}")

    def resolver(self, conflict: Conflict) -> str:
        """Settle, after somebody else was quicker."""
        self.asked.append(conflict)
        self.append()
        return "ours"


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(tmp_path)


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (
            lambda p: p.repo.merge("side", resolver=p.resolver),
            ["ours", "b", "meanwhile 1", "c"],
        ),
        (
            lambda p: p.repo.cherry_pick("side~1", "side", resolver=p.resolver),
            ["ours", "b", "meanwhile 1", "c"],
        ),
        (
            lambda p: p.repo.rebase("side", resolver=p.resolver),
            ["theirs", "c", "b", "meanwhile 1"],
        ),
    ],
)
def test_it_is_worked_out_anew_and_nobody_is_asked_again(
    pair: Pair, command: Callable[[Pair], Any], shown: list[str]
) -> None:
    found = command(pair)
    assert found.outcome in ("merged", "done")
    assert [each.kind for each in pair.asked] == ["both-edited"]
    assert said(pair.repo) == shown
    assert pair.repo.contexts.verify("HEAD").matches
    assert pair.repo.waiting() is None


def test_what_the_other_did_is_what_is_asked_about(pair: Pair) -> None:
    """The conflict is about something else by now, so that it is asked about again."""

    def resolver(conflict: Conflict) -> str:
        pair.asked.append(conflict)
        if len(pair.asked) == 1:
            pair.other.edit(pair.first, "ours, otherwise")
        return "ours"

    assert pair.repo.merge("side", resolver=resolver).outcome == "merged"
    assert len(pair.asked) == 2
    assert said(pair.repo)[0] == "ours, otherwise"


def test_a_revert_is_made_on_what_came_meanwhile(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = reverting._Reverting.look

    def late(given: Any) -> Any:
        found = look(given)
        if not pair.appended:
            pair.append()
        return found

    monkeypatch.setattr(reverting._Reverting, "look", late)
    assert pair.repo.revert(pair.edit).outcome == "done"
    assert said(pair.repo) == ["a", "b", "meanwhile 1"]


def test_a_long_rebase_ends_though_somebody_goes_on_all_the_time(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what came meanwhile is made anew each time."""
    writing = steps.Rewriting._write

    def late(*given: Any) -> None:
        if pair.appended < 30:
            pair.append()
        writing(*given)

    monkeypatch.setattr(steps.Rewriting, "_write", late)
    found = pair.repo.rebase("side", favour="ours")
    assert found.outcome == "done"
    assert len(found.made) == 31
    assert said(pair.repo) == ["theirs", "c", "b", *(f"meanwhile {n}" for n in range(1, 31))]
    monkeypatch.undo()
    pair.repo.undo()
    assert said(pair.repo) == ["ours", "b", *(f"meanwhile {n}" for n in range(1, 31))]


@pytest.mark.parametrize("append", [True, False])
def test_advice_is_paid_for_once_where_the_branch_has_only_grown(pair: Pair, append: bool) -> None:
    asked = []

    def model(prompt: Any) -> str:
        asked.append(prompt)
        if len(asked) == 1:
            if append:
                pair.append()
            else:
                pair.other.annotate(pair.first, priority="important")
        return '{"conflicts": [{"number": 1, "take": "text", "text": "both"}]}'

    assert pair.repo.merge("side", strategy="semantic", model=model).outcome == "merged"
    assert len(asked) == (1 if append else 2)
    assert said(pair.repo)[0] == "both"


def test_a_rebase_of_a_branch_that_was_moved_elsewhere_is_refused(pair: Pair) -> None:
    def resolver(_: Conflict) -> str:
        pair.other.reset(str(pair.first[0].hex()), hard=True)
        return "ours"

    with pytest.raises(RefChangedError, match="went elsewhere"):
        pair.repo.rebase("side", resolver=resolver)
