"""Events, states and amendments are read as recorded; invalid events are errors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trace_store import Environment, ErrorCode, FixedClock, Repo
from trace_store.errors import (
    AmbiguousRevisionError,
    InvalidInputError,
    MessageNotFoundError,
    RefNotFoundError,
    SecretFoundError,
    StateError,
)
from trace_store.maintenance.fsck import fsck
from trace_store.trajectories.events import Alternative, Task
from trace_store.trajectories.recording import Recorded
from trace_store.trajectories.state import Agent

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def test_a_trajectory_is_read_as_it_was_recorded(repo: Repo) -> None:
    tr = repo.trajectories
    task = Task("Sign-in", system="linear", id="ENG-456", url="https://linear.app/ENG-456")
    state = tr.start("Sign in", task=task, tags=["auth"], project="web", agent="lead", role="lead")
    tr.decide(
        "Which token?",
        "JWT",
        reasoning="No session store",
        alternatives=["sessions: need a store", {"option": "PASETO"}],
        confidence=0.8,
        significance="high",
        tags=["auth"],
    )
    tr.chapter("Tests", agent="bo")
    tr.record("finding", "Clocks differ", agent="bo")
    tr.reflect("Done", learnings=["Clocks differ"], confidence=0.9)
    tr.complete(agent="lead")
    whole = tr.read(state.id)
    (decision,) = whole.decisions
    assert (decision.question, decision.content, decision.agent) == ("Which token?", "JWT", "ada")
    assert decision.alternatives == (
        Alternative("sessions", "need a store"),
        Alternative("PASETO"),
    )
    assert (decision.reasoning, decision.confidence) == ("No session store", 0.8)
    assert decision.session == repo.head.oid
    assert [(each.title, each.agent, len(each.events)) for each in whole.chapters] == [
        ("", "lead", 1),
        ("Tests", "bo", 1),
    ]
    assert whole.retrospective is not None
    assert whole.retrospective.data["time_spent"] > 0
    assert (whole.state.status, whole.state.confidence, whole.state.task) == (
        "completed",
        0.9,
        task,
    )
    assert [(each.name, each.role) for each in whole.state.agents] == [
        ("lead", "lead"),
        ("ada", ""),
        ("bo", ""),
    ]
    lead = whole.state.agents[0]
    assert lead == Agent("lead", "lead", whole.state.started, whole.ended or 0)
    assert tr.list() == [whole.state]
    assert fsck(repo.store) == []


def test_each_commit_has_the_state_after_all_events_so_far(repo: Repo) -> None:
    tr = repo.trajectories
    made = [tr.start("Sign in")]
    runs: list[Callable[[], Recorded]] = [
        lambda: tr.record("note", "one"),
        lambda: tr.decide("", "two"),
        lambda: tr.chapter("three"),
        lambda: tr.amend("d1", content="2"),
        lambda: tr.amend(title="Sign in again", tags=["x"]),
        lambda: tr.abandon("no time"),
        lambda: tr.reopen(made[0].id),
    ]
    for run in runs:
        made.append(run().state)
        assert tr.find(made[0].id) == made[-1]
    assert made[-1].title == "Sign in again"
    assert made[-1].count() == 8
    assert made[-1].count("decision", "chapter") == 2
    assert [each.status for each in made[-2:]] == ["abandoned", "active"]


def test_an_amendment_keeps_every_version(repo: Repo) -> None:
    tr = repo.trajectories
    tr.start("Sign in")
    first = tr.decide("Which?", "JWT", reasoning="small").event
    tr.amend("d1", reasoning="signed")
    tr.complete()
    tr.amend(first.id.hex[:10], content="PASETO", confidence=0.5, trajectory="traj_")
    whole = tr.read(tr.list()[0].id)
    (found,) = whole.decisions
    assert (found.id, found.content, found.reasoning, found.confidence) == (
        first.id,
        "PASETO",
        "signed",
        0.5,
    )
    assert [each["reasoning"] for each in found.versions] == ["small", "signed"]
    assert [each["content"] for each in found.versions] == ["JWT", "JWT"]


def test_an_invalid_event_is_refused_and_nothing_is_recorded(repo: Repo) -> None:
    tr = repo.trajectories
    state = tr.start("Sign in")
    wrong: list[tuple[Any, str]] = [
        (lambda: tr.start(" "), "needs a title"),
        (lambda: tr.decide("Which?", " "), "what was chosen"),
        (lambda: tr.decide("Which?", "x", confidence=1.2), "from 0 to 1, not 1.2"),
        (lambda: tr.decide("Which?", "x", confidence=True), "from 0 to 1"),
        (lambda: tr.decide("Which?", "x", confidence=float("nan")), "from 0 to 1"),
        (lambda: tr.record("decision", "x", alternatives=[3]), "an alternative is text"),
        (lambda: tr.record("note", "x", significance="huge"), "low, medium, high, critical"),
        (lambda: tr.record("note", "x", tags=3), "tags is a list"),
        (lambda: tr.record("note", 3), "content is text"),  # type: ignore[arg-type]
        (lambda: tr.record("No type", "x"), "not a type of events"),
        (lambda: tr.record("desicion", "x"), "did you mean 'decision'"),
        (lambda: tr.decide("a", "b", why="c"), "no field 'why'"),
        (lambda: tr.reflect(""), "needs a summary"),
        (lambda: tr.complete({"summary": "x", "mood": "good"}), "has no 'mood'"),
        (lambda: tr.amend(), "nothing to change"),
        (lambda: tr.amend(content="x"), "has no content"),
        (lambda: tr.amend("d2", content="x"), "no event"),
        (lambda: tr.list(since="soon"), "not a time"),
        (lambda: tr.list(confidence=3), "from 0 to 1"),
        (lambda: tr.find("a/b"), "not an id"),
    ]
    for run, said in wrong:
        with pytest.raises((InvalidInputError, MessageNotFoundError), match=said):
            run()
    assert tr.list() == [state]


def test_an_event_of_another_trajectory_is_not_found(repo: Repo) -> None:
    tr = repo.trajectories
    one, two = tr.start("one"), tr.start("two")
    foreign = tr.decide("", "x", trajectory=one.id).event
    with pytest.raises(MessageNotFoundError, match=f"of {two.id}"):
        tr.amend(foreign.id.hex, content="y", trajectory=two.id)


def test_an_ended_trajectory_refuses_events_until_it_is_reopened(repo: Repo) -> None:
    tr = repo.trajectories
    state = tr.start("Sign in")
    with pytest.raises(StateError, match="is active already") as active:
        tr.reopen(state.id)
    assert active.value.code == ErrorCode.TRAJECTORY_ACTIVE
    tr.complete({"summary": "Done"})
    runs: list[Callable[[], Recorded]] = [
        lambda: tr.complete(trajectory=state.id),
        lambda: tr.complete({"summary": "Done again"}, trajectory=state.id),
        lambda: tr.abandon(trajectory=state.id),
        lambda: tr.record("note", "x", trajectory=state.id),
    ]
    for run in runs:
        with pytest.raises(StateError, match="is completed") as ended:
            run()
        assert ended.value.code == ErrorCode.TRAJECTORY_ENDED
    assert tr.reflect("Done, looking back", trajectory=state.id).state.count("retrospective") == 2
    assert tr.reopen(state.id).state.is_active
    assert tr.abandon("too slow").state.status == "abandoned"
    assert tr.read(state.id).reason == "too slow"


def test_the_current_trajectory(repo: Repo) -> None:
    tr = repo.trajectories
    with pytest.raises(StateError, match="no trajectory is active") as none:
        tr.record("note", "x")
    assert none.value.code == ErrorCode.NO_TRAJECTORY
    on_main = tr.start("on main")
    repo.branches.switch("idea", create=True)
    assert tr.find() == on_main  # the only active one
    on_idea = tr.start("on idea")
    assert tr.find() == on_idea  # the active one of HEAD's branch
    other = tr.start("too")
    with pytest.raises(StateError, match=r"'too'.*'on idea'.*'on main'") as several:
        tr.find()
    assert several.value.code == ErrorCode.SEVERAL_TRAJECTORIES
    assert tr.find(other.id[:10]) == tr.find(other.id.removeprefix("traj_")) == other
    with pytest.raises(AmbiguousRevisionError, match="several trajectories"):
        tr.find("traj_")
    with pytest.raises(RefNotFoundError) as missing:
        tr.find("traj_nothing")
    assert missing.value.code == ErrorCode.TRAJECTORY_NOT_FOUND
    repo.branches.switch("main")
    assert tr.find() == on_main


def test_the_environment_names_trajectory_and_agent(repo: Repo) -> None:
    one, _ = repo.trajectories.start("one"), repo.trajectories.start("two")
    variables = {"TRACE_TRAJECTORY": one.id, "TRACE_AGENT": "bo", "TRACE_AUTHOR": "ada"}
    tr = Repo(repo.store, author="ada", environment=Environment.read(variables)).trajectories
    made = tr.record("note", "x")
    assert (made.state.id, made.event.agent) == (one.id, "bo")
    assert tr.record("note", "x", agent="cy").event.agent == "cy"


def test_filters_of_a_list(repo: Repo) -> None:
    tr = repo.trajectories
    one = tr.start("one", tags=["auth"], project="web", task=Task("one", id="T-1"), agent="bo")
    tr.complete({"summary": "x", "confidence": 0.4})
    two = tr.start("two")

    def listed(**wanted: Any) -> list[str]:
        return [each.id for each in tr.list(**wanted)]

    assert listed() == [two.id, one.id]
    for wanted in ({"tag": "auth"}, {"project": "web"}, {"task": "T-1"}, {"agent": "bo"}):
        assert listed(**wanted) == [one.id]
    assert listed(status="active") == listed(since=two.started) == [two.id]
    assert listed(confidence=0.4) == [one.id]
    assert listed(confidence=0.5) == []
    assert listed(since="1 day ago") == [two.id, one.id]


def test_a_clock_that_runs_backwards_keeps_the_order(tmp_path: Path) -> None:
    clock = FixedClock(1_700_000_000_000, step=-1_000)
    with Repo.init(tmp_path, author="ada", clock=clock, durability="fast") as repo:
        tr = repo.trajectories
        state = tr.start("Sign in")
        for n in range(5):
            tr.record("note", str(n))
        tr.complete({"summary": "Done"})
        whole = tr.read(state.id)
        assert [each.content for each in whole.events[1:6]] == list("01234")
        assert (whole.state.started, whole.state.updated) == (state.started, state.started)
        assert not whole.state.is_active


def test_secrets_are_kept_out_of_events_and_of_the_state(repo: Repo, tmp_path: Path) -> None:
    tr = repo.trajectories
    state = tr.start(f"Rotate {TOKEN}", description=f"was {TOKEN}", tags=[TOKEN])
    tr.decide(f"Keep {TOKEN}?", f"no: {TOKEN}", reasoning=TOKEN, alternatives=[f"{TOKEN}: x"])
    tr.chapter(f"After {TOKEN}")
    repo.seal()
    assert TOKEN not in str(tr.read(state.id))
    assert TOKEN not in str(tr.list())
    stored = [repo.store.objects.read(oid) for oid in repo.store.objects.iterate()]
    assert not [data for data in stored if TOKEN.encode() in data]
    blocking = Repo(repo.store, author="ada", environment=Environment(), secrets="block")
    with pytest.raises(SecretFoundError):
        blocking.trajectories.record("note", TOKEN)
    assert tr.find().count("note") == 0


def test_a_purged_event_leaves_a_note_and_the_rest(repo: Repo) -> None:
    tr = repo.trajectories
    state = tr.start("Sign in")
    tr.record("note", "it was Dave's birthday")
    tr.decide("Which?", "JWT")
    repo.maintenance.purge(repo.maintenance.plan_purge(texts=["Dave's birthday"]))
    whole = tr.read(tr.list()[0].id)
    assert "Dave" not in str(whole)
    assert [each.type for each in whole.events] == ["started", "note", "decision"]
    assert whole.state.title == state.title
    assert {each.code for each in fsck(repo.store)} <= {"object-purged"}
    assert tr.record("note", "next", trajectory=whole.id).state.count("note") == 2


def test_gc_keeps_a_trajectory_and_the_session_that_it_links(repo: Repo) -> None:
    tr = repo.trajectories
    repo.branches.switch("session", create=True)
    repo.append("assistant", "I will look")
    tr.start("Sign in")
    made = tr.decide("Which?", "JWT").event
    repo.branches.switch("main")
    repo.branches.delete("session")
    repo.trash.empty()
    repo.seal()
    repo.maintenance.gc(grace_days=0)
    assert made.session is not None
    assert repo.get(made.session) is not None
    assert tr.read(tr.find().id).decisions == [made]
    assert fsck(repo.store) == []
