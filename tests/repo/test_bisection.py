"""A bisection from Python, on a branch that is not checked out, which another process can continue."""

from __future__ import annotations

from pathlib import Path

import pytest

from trace_store import CompiledContext, Environment, ErrorCode, ObjectId, Repo
from trace_store.errors import ConflictError, InvalidInputError, StateError
from trace_store.history.bisect import Verdict

ADA = Environment(author="Ada", discovery=False)


def fails_on_five(context: CompiledContext) -> bool:
    return "message 5" not in context.to_text()


@pytest.fixture
def oids(tmp_path: Path) -> list[ObjectId]:
    """Nine commits on `idea`."""
    with Repo.init(tmp_path, environment=ADA) as repo:
        idea = repo.line("idea")
        return [idea.append("user", f"message {number}").oid for number in range(9)]


def test_it_is_continued_by_hand(tmp_path: Path, oids: list[ObjectId]) -> None:
    with Repo.open(tmp_path, environment=ADA) as repo:
        assert repo.branches.bisection is None
        assert not repo.branches.end_bisection()
        step = repo.branches.start_bisection("idea", "idea~8").next
        assert step.left == 8
    while not step.is_done:
        with Repo.open(tmp_path, environment=ADA) as repo:
            search = repo.branches.bisection
            assert search is not None
            step = search.mark("good" if fails_on_five(search.context()) else "bad")
            assert {each.word for each in search.state.verdicts} == {"good", "bad"}
    assert step.found == (str(oids[5]),)
    with Repo.open(tmp_path, environment=ADA) as repo:
        search = repo.branches.bisection
        assert search is not None
        with pytest.raises(StateError) as caught:
            search.mark("good")
        assert caught.value.code == ErrorCode.BISECTION_FINISHED
        before = search.state
        with pytest.raises(InvalidInputError, match="comes after"):
            search.mark("good", oids[7])
        with pytest.raises(InvalidInputError, match="good, bad, skip"):
            search.mark("fine")
        assert search.state == before
        assert repo.branches.end_bisection()
        assert repo.branches.bisection is None
        assert repo.head.oid is None


def test_a_test_runs_several_times(tmp_path: Path, oids: list[ObjectId]) -> None:
    told: list[Verdict] = []
    runs = iter(range(1000))
    with Repo.open(tmp_path, environment=ADA) as repo:
        search = repo.branches.start_bisection("idea", oids[0])
        with pytest.raises(ConflictError) as caught:
            search.run(lambda context: next(runs) % 2 == 0, repeat=2, progress=told.append)
        assert caught.value.code == ErrorCode.INCONCLUSIVE
        assert [(each.word, each.failed, each.runs) for each in told] == [("", 1, 2)]
        with pytest.raises(InvalidInputError, match="threshold"):
            search.run(fails_on_five, repeat=2, threshold=3)
        assert search.run(fails_on_five, repeat=2, threshold=1).found == (str(oids[5]),)
        with pytest.raises(StateError, match="was marked bad"):
            repo.branches.start_bisection("idea").run(lambda context: True)


def test_messages_are_searched_in_memory(oids: list[ObjectId]) -> None:
    with Repo.memory(author="Ada") as repo:
        repo.commit([{"role": "user", "content": f"message {number}"} for number in range(9)])
        search = repo.branches.start_bisection(messages=True)
        assert len(search.context("3")) == 3
        search.mark("good", 2)
        assert search.run(fails_on_five).found == ("6",)
        again = repo.branches.bisection
        assert again is not None
        assert again.next.found == ("6",)
        with pytest.raises(InvalidInputError, match="from 1 to 9"):
            search.mark("bad", 10)
        with pytest.raises(InvalidInputError, match="one commit"):
            repo.branches.start_bisection("HEAD", "HEAD", messages=True)
