"""Events are found by their words, and decisions by similar questions."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.growth.support.counting import calls_of
from trace_store import Repo, errors
from trace_store.trajectories.event_search import FoundEvent
from trace_store.trajectories.events import NewEvent
from trace_store.trajectories.recording import Recorder
from trace_store.writer import Writer


def contents(found: Sequence[FoundEvent]) -> list[str]:
    return [str(each.event.data.get("summary") or each.event.content) for each in found]


@pytest.fixture
def filled(repo: Repo) -> Repo:
    """Return a repository with two trajectories."""
    tr = repo.trajectories
    auth = tr.start("Sign in", tags=["auth"], agent="lead").id
    tr.decide(
        *("Where do tokens live?", "in memory"),
        reasoning="no session store",
        alternatives=["redis: to operate"],
        trajectory=auth,
        agent="lead",
    )
    tr.record(
        "finding", "clocks of café servers differ", trajectory=auth, agent="bo", tags=["time"]
    )
    parse = tr.start("Parse faster", tags=["speed"]).id
    tr.decide("Which parser?", "a state machine", trajectory=parse, reasoning="tokens are few")
    tr.reflect("The parser reads tokens once", trajectory=parse)
    return repo


def test_words_are_found_newest_first(filled: Repo) -> None:
    tr = filled.trajectories
    assert contents(tr.search("tokens")) == [
        *("The parser reads tokens once", "a state machine", "in memory"),
    ]
    assert contents(tr.search("cafe")) == ["clocks of café servers differ"]
    assert contents(tr.search("redis")) == ["in memory"]
    assert [each.event.type for each in tr.search('"sign in"')] == ["started"]
    assert tr.search("alternatives") == []  # the name of a field is not searched
    assert filled.search("tokens") == []  # messages have their own index


def test_conditions(filled: Repo) -> None:
    tr = filled.trajectories
    assert contents(tr.search("tokens", tag="auth")) == ["in memory"]
    assert contents(tr.search("", tag="time")) == ["clocks of café servers differ"]
    assert contents(tr.search("", agent="bo")) == ["clocks of café servers differ"]
    assert tr.search("tokens", task="auth") == []
    assert len(tr.search("tokens", limit=2)) == 2


def test_files_and_commits(filled: Repo) -> None:
    tr = filled.trajectories
    wanted = next(each.id for each in tr.list() if each.title == "Sign in")
    link = {"type": "linked", "commit": "ab12" * 10, "files": ["src/auth/tokens.py"]}
    tr.record_all(wanted, [link])
    for file in ("src/auth", "src/auth/tokens.py"):
        assert contents(tr.search("tokens", file=file)) == ["in memory"]
    for file in ("src/aut", "tokens.py"):
        assert tr.search("tokens", file=file) == []
    assert contents(tr.search("tokens", commit="ab12ab")) == ["in memory"]
    assert tr.search("tokens", commit="b12a") == []
    assert tr.search("src") == []


def test_similar_decisions(filled: Repo) -> None:
    tr = filled.trajectories
    assert contents(tr.similar("Where should the tokens of a session live?")) == [
        *("in memory", "a state machine"),
    ]
    assert contents(tr.similar("parser")) == ["a state machine"]
    assert tr.similar("nothing") == []
    assert contents(tr.similar("tokens", tag="speed")) == ["a state machine"]
    with pytest.raises(errors.InvalidInputError, match="nothing to search for"):
        tr.similar("?")


def test_an_amended_decision_is_found_once(filled: Repo) -> None:
    tr = filled.trajectories
    auth = tr.search("redis")[0].state.id
    tr.amend("d1", trajectory=auth, reasoning="redis was measured")
    (found,) = tr.search("redis")
    assert (found.event.content, found.event.reasoning) == ("in memory", "redis was measured")
    assert contents(tr.search("measured")) == ["in memory"]


def test_both_tips_of_a_trajectory_are_found(at: Callable[..., str], tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"

    ours.mkdir()
    at(ours, "init", "-q")
    at(ours, "tr", "start", "Sign in")
    shutil.copytree(ours, theirs)
    at(ours, "tr", "note", "ours is found")
    at(ours, "tr", "search", "found")
    at(theirs, "tr", "note", "theirs is found")
    for path in (theirs / ".trace").rglob("*"):
        copy = ours / path.relative_to(theirs)
        if path.is_file() and not copy.exists():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
    found = at(ours, "tr", "search", "found")
    assert "ours is found" in found
    assert "theirs is found" in found


def test_search_reads_only_what_it_shows(repo: Repo) -> None:
    """One more trajectory costs only the reading of its ref."""
    recorder = Recorder(Writer(repo.store))
    costs = []
    for count in (20, 100):
        for number in range(count):
            state = recorder.start({"title": f"task {number}"}, "ada")
            data = {"type": "decision", "question": "Where?", "content": "in memory"}
            recorder.record(state.id, [NewEvent(data, "ada")])
        repo.seal()
        repo.trajectories.search("memory")
        costs.append(calls_of(lambda: repo.trajectories.search("memory", limit=3)).total())
    assert costs[1] - costs[0] <= 3 * 100, costs


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("Where is the cache?", "caching"),
        ("Which retries?", "retry"),
        ("Why migrate?", "migration"),
    ],
)
def test_similar_decisions_have_other_forms_of_the_words(
    repo: Repo, question: str, asked: str
) -> None:
    repo.trajectories.start("Sign in")
    repo.trajectories.decide(question, "so")
    repo.trajectories.decide("Something else?", "no")
    (found,) = repo.trajectories.similar(asked)
    assert found.event.question == question
