"""A score lists what a record lacks; old records are archived, summarised or deleted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.command_line import Trace
from trace_store import Environment, FixedClock, Repo, errors
from trace_store.trajectories.score import Score

LINK = {"type": "linked", "commit": "ab" * 20, "files": ["a.py"]}
MINUTE, DAY = 60_000, 86_400_000


class MovedClock(FixedClock):
    def skip(self, milliseconds: int) -> None:
        self._next += milliseconds


@pytest.fixture
def clock() -> MovedClock:
    return MovedClock()


@pytest.fixture
def repo(tmp_path: Path, clock: MovedClock) -> Iterator[Repo]:
    environment = Environment(author="ada")
    with Repo.init(tmp_path / "r", environment=environment, clock=clock, durability="fast") as repo:
        yield repo


def kinds(score: Score) -> list[str]:
    return [lack.kind for lack in score.lacks]


def test_a_complete_record(repo: Repo) -> None:
    tr = repo.trajectories
    id = tr.start("Sign in").id
    tr.decide("Where?", "in memory", reasoning="no store", alternatives=["redis: to operate"])
    tr.record_all(id, [LINK])
    tr.complete({"summary": "Done"})
    assert (tr.score(id).points, kinds(tr.score(id))) == (100, [])


def test_what_records_lack(repo: Repo) -> None:
    tr = repo.trajectories
    tr.start("Sign in")
    assert (tr.score().points, kinds(tr.score())) == (
        35,
        ["no-decision", "no-retrospective", "no-commit"],
    )
    tr.decide("Where?", "in memory", reasoning="no store", alternatives=["redis"])
    tr.decide("", "in /home/ada/src")
    score = tr.score()
    assert kinds(score) == [
        *("no-question", "no-reasoning", "no-alternative"),
        *("no-retrospective", "no-commit", "home-path"),
    ]
    assert score.points == 100 - 3 * 5 - 20 - 15 - 10
    assert [event.content for event in score.lacks[0].events] == ["in /home/ada/src"]


def test_records_written_afterwards(repo: Repo, clock: MovedClock) -> None:
    tr = repo.trajectories
    repo.append("user", "Sign people in.")
    clock.skip(50 * MINUTE)
    repo.append("assistant", "Done.")
    tr.start("Sign in")
    tr.record("finding", "clocks differ")
    late, at_the_end = tr.score().lacks[-1], tr.score().lacks[-2]
    assert (late.kind, late.text) == ("late", "the session began 50 min before the record")
    assert at_the_end.kind == "at-the-end"
    clock.skip(20 * MINUTE)
    tr.record("finding", "tests help")
    assert kinds(tr.score())[-1:] == ["late"]
    assert "at-the-end" not in kinds(tr.score())


def test_a_pause_ends_a_session(repo: Repo, clock: MovedClock) -> None:
    repo.append("user", "Parse faster.")
    clock.skip(2 * 60 * MINUTE)
    repo.append("user", "Sign people in.")
    repo.trajectories.start("Sign in")
    assert "late" not in kinds(repo.trajectories.score())


def test_old_trajectories_go_to_the_trash(repo: Repo, clock: MovedClock) -> None:
    tr = repo.trajectories
    old = tr.start("Old").id
    tr.abandon("no time", trajectory=old)
    active = tr.start("Active").id
    assert tr.compact() == []
    clock.skip(91 * DAY)
    young = tr.start("Young").id
    tr.complete(trajectory=young)
    assert [each.state.id for each in tr.compact()] == [old]
    assert len(tr.list()) == 3
    tr.compact(apply=True)
    assert {each.id for each in tr.list()} == {active, young}
    repo.trash.restore(f"refs/trajectories/{old}")
    assert tr.read(old).reason == "no time"
    tr.compact(how="delete", apply=True)
    assert {each.id for each in tr.list()} == {active, young}


def test_a_summary_keeps_decisions_at_their_times(repo: Repo) -> None:
    tr = repo.trajectories
    id = tr.start("Sign in", tags=["auth"]).id
    tr.chapter("Tests", agent="bo")
    tr.record("note", "nothing")
    made = tr.decide("Where?", "in memory", agent="bo")
    tr.amend(made.event.id.hex, reasoning="no store")
    tr.amend(title="Sign in with tokens")
    tr.complete({"summary": "Done", "confidence": 0.8})
    tr.record_all(id, [LINK])
    before = tr.read(id)
    (done,) = tr.compact(older_than="0d", how="summarise", apply=True)
    assert (done.event_count, done.kept_count) == (9, 5)
    after = tr.read(id)
    assert [event.type for event in after.events] == [
        *("started", "decision", "retrospective", "linked", "completed"),
    ]
    decision = after.decisions[0]
    assert (decision.reasoning, decision.agent) == ("no store", "bo")
    assert decision.time == before.decisions[0].time
    assert (after.state.title, after.state.status) == ("Sign in with tokens", "completed")
    assert (after.state.tags, after.state.confidence) == (("auth",), 0.8)
    assert tr.compact(older_than="0d", how="summarise", apply=True) == []
    (entry,) = repo.trash.list().refs
    assert entry.kind == "trajectory"
    tr.reopen(id)
    tr.record("note", "goes on", trajectory=id)


def test_bad_input(repo: Repo, ok: Trace, trace: Trace) -> None:
    with pytest.raises(errors.InvalidInputError):
        repo.trajectories.compact(older_than="soon")
    with pytest.raises(errors.InvalidInputError):
        repo.trajectories.compact(how="burn")
    ok("tr", "start", "Sign in")
    ok("tr", "abandon")
    assert trace("tr", "compact", "--older-than", "soon").code == 2
    assert "--apply does it" in ok("tr", "compact", "--older-than", "0d").err
    assert (
        "1 trajectory deleted"
        in ok("tr", "compact", "--older-than", "0d", "--how", "delete", "--apply").err
    )
    assert ok("tr", "list").text == ""
