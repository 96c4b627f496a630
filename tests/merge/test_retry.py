"""Another process moves the branch during a merge, pick, rebase or revert."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.merge.support.lines import ADA, pending, said
from trace_store import Conflict, FixedClock, Message, Repo, Resolution, ToolCall
from trace_store.errors import RefChangedError, StorageError
from trace_store.merge import replay
from trace_store.merge.todo import Step


class Pair:
    """A repository where main and side conflict, and a handle that commits to main."""

    def __init__(self, folder: Path) -> None:
        self.repo = Repo.init(
            folder, environment=ADA, clock=FixedClock(step=1000), durability="fast"
        )
        self.other = Repo.open(folder, environment=ADA)
        self.first = self.repo.append("user", "a").addresses[0]
        self.repo.branches.create("side")
        self.repo.edit(self.first, "ours")
        self.edit = str(self.repo.resolve("HEAD"))
        self.repo.append("system", "b")
        self.repo.branches.switch("side")
        self.repo.edit(self.first, "theirs")
        self.repo.append("system", "c")
        self.repo.branches.switch("main")
        self.asked: list[Conflict] = []
        self.appended = 0

    def append(self) -> None:
        self.appended += 1
        self.other.append("system", f"meanwhile {self.appended}")

    def resolver(self, conflict: Conflict) -> str:
        """Resolve, after another process has won the race."""
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
    assert pair.repo.in_progress is None


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
    look = replay.Replay.look

    def late(given: Any) -> Any:
        found = look(given)
        if not pair.appended:
            pair.append()
        return found

    monkeypatch.setattr(replay.Replay, "look", late)
    assert pair.repo.revert(pair.edit).outcome == "done"
    assert said(pair.repo) == ["a", "b", "meanwhile 1"]


def test_a_long_rebase_ends_though_somebody_goes_on_all_the_time(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each retry reapplies only the new commits."""
    writing = replay.Replay._write

    def late(*given: Any) -> None:
        if pair.appended < 30:
            pair.append()
        writing(*given)

    monkeypatch.setattr(replay.Replay, "_write", late)
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


def test_advice_about_something_else_by_now_is_asked_for_again(pair: Pair) -> None:
    """A new answer has arrived, and the advice does not say to hide it."""
    pair.repo.reset("HEAD~1", hard=True)
    pair.repo.append("assistant", "mine")
    pair.repo.branches.switch("side")
    pair.repo.reset("HEAD~1", hard=True)
    pair.repo.append("assistant", "theirs")
    pair.repo.branches.switch("main")
    asked = []

    def model(prompt: Any) -> str:
        question = json.loads(prompt.messages[0][1])
        asked.append(question)
        if len(asked) == 1:
            pair.other.append("assistant", "mine, more")
        numbers = [each["number"] for each in question["conflicts"]]
        return json.dumps({"conflicts": [{"number": n, "take": "theirs"} for n in numbers]})

    assert pair.repo.merge("side", strategy="semantic", model=model).outcome == "merged"
    assert len(asked) == 2


def test_what_a_resolver_says_beside_advice_that_is_used_again_is_stored(pair: Pair) -> None:
    pair.repo.reset("HEAD~1", hard=True)
    pair.repo.branches.switch("side")
    pair.repo.reset("HEAD~1", hard=True)
    pair.repo.append("assistant", "theirs")
    pair.repo.branches.switch("main")

    def model(_: Any) -> str:
        pair.other.append("assistant", "mine")
        return '{"conflicts": [{"number": 1, "take": "ours"}]}'

    def resolver(conflict: Conflict) -> Resolution | None:
        return Resolution("text", "as I say") if conflict.kind == "two-answers" else None

    found = pair.repo.merge("side", strategy="semantic", model=model, resolver=resolver)
    assert found.outcome == "merged"
    assert "as I say" in said(pair.repo)


def test_a_rebase_that_is_outpaced_again_and_again_says_so(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    writing = replay.Replay._write

    def late(*given: Any) -> None:
        pair.append()
        writing(*given)

    monkeypatch.setattr(replay.Replay, "_write", late)
    monkeypatch.setattr(replay, "MAXIMUM_ATTEMPTS", 3)
    with pytest.raises(RefChangedError):
        pair.repo.rebase("side", favour="ours")
    assert said(pair.repo) == ["ours", "b", "meanwhile 1", "meanwhile 2", "meanwhile 3"]


@pytest.mark.parametrize("command", ["rebase", "cherry_pick"])
def test_a_judge_is_asked_once(pair: Pair, command: str) -> None:
    asked = []

    def judge(prompt: Any) -> str:
        asked.append(prompt)
        if len(asked) < 3:
            pair.append()
        return '{"warnings": []}'

    # A commit parts a call from its result, so that there is something to judge.
    pair.repo.branches.switch("side")
    pair.repo.commit([Message("assistant", [ToolCall("c", "look", "{}")])])
    pair.repo.branches.switch("main")
    found = getattr(pair.repo, command)("side", favour="ours", judge=judge)
    assert found.outcome == "done"
    assert len(asked) == 1
    assert "meanwhile 1" in said(pair.repo)


def test_a_rebase_that_failed_before_it_wrote_is_not_taken_for_written(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it comes to lies in the past of the branch, since all that came after it is left out."""
    repo = pair.repo
    repo.append("system", "more")
    stopping = [Step("pick", repo.resolve("HEAD~1")), Step("edit", repo.resolve("HEAD"))]
    assert repo.rebase("HEAD~2", plan=lambda _: stopping).outcome == "stopped"

    def fail(_: object) -> None:
        raise StorageError("disk full")

    with monkeypatch.context() as full:
        full.setattr(repo.store.refs, "set_original", fail)
        with pytest.raises(StorageError):
            pending(repo).continue_(skip=True)
    found = pending(repo).continue_(skip=True)
    assert found.outcome == "done"
    assert said(repo) == ["ours", "b"]


def test_a_rebase_of_a_branch_that_was_moved_elsewhere_is_refused(pair: Pair) -> None:
    def resolver(_: Conflict) -> str:
        pair.other.reset(str(pair.first[0].hex()), hard=True)
        return "ours"

    with pytest.raises(RefChangedError, match="no longer contains the tip"):
        pair.repo.rebase("side", resolver=resolver)
