"""A search finds the commit that changed an outcome, in logarithmic time."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.history.test_diff import SLOW
from tests.store.support.histories import put
from trace_store import Repo
from trace_store.base.oid import ObjectId
from trace_store.errors import InvalidInputError, StateError
from trace_store.history import bisect
from trace_store.history.bisect import (
    BAD,
    COMMITS,
    GOOD,
    MESSAGES,
    SKIP,
    Bisection,
    Verdict,
    halve,
    next_step,
    verdict_for,
)
from trace_store.objects.commit import Commit


@given(st.integers(1, 200), st.data())
def test_on_a_line(length: int, data: st.DataObject) -> None:
    first_bad = data.draw(st.integers(0, length - 1))
    skipped = data.draw(st.sets(st.integers(0, length - 2), max_size=5)) if length > 1 else set()
    line = [f"c{n}" for n in range(length)]
    outcomes: dict[str, str] = {}
    tries = 0
    while not (step := halve(line, outcomes)).is_done:
        number = line.index(step.point)
        outcomes[step.point] = SKIP if number in skipped else BAD if number >= first_bad else GOOD
        tries += 1
    assert line[first_bad] in step.found
    assert step.found[-1] == line[first_bad] or first_bad in skipped
    assert all(line.index(point) in skipped for point in step.found[:-1])
    assert tries <= length.bit_length() + 1 + len(skipped)


def test_what_contradicts_itself() -> None:
    with pytest.raises(InvalidInputError, match="is good but comes after"):
        halve(["a", "b", "c"], {"a": BAD, "b": GOOD})
    assert halve([], {}).found == ()


@pytest.mark.parametrize(
    ("failed", "runs", "threshold", "word"),
    [
        (0, 3, None, GOOD),
        (3, 3, None, BAD),
        (1, 3, None, ""),
        (2, 3, None, ""),
        (1, 3, 2, GOOD),
        (2, 3, 2, BAD),
        (0, 1, 1, GOOD),
    ],
)
def test_when_a_command_is_not_deterministic(
    failed: int, runs: int, threshold: int | None, word: str
) -> None:
    assert verdict_for(failed, runs, threshold) == word


@given(
    st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=3), min_size=1, max_size=14),
    st.integers(0, 30),
)
@SLOW
def test_among_merges(shape: list[list[int]], chosen: int) -> None:
    """If all descendants of one commit are bad, any search finds that commit."""
    with Repo.memory(author="ada") as repo:
        oids: list[ObjectId] = [repo.append("user", "start").oid]
        pasts = [{0}]
        for number, numbers in enumerate(shape, 1):
            above = list(dict.fromkeys(n % number for n in numbers))
            data = Commit([oids[n] for n in above], "ada", number, []).encode()
            oids.append(put(repo.store, data, f"refs/heads/b{number}"))
            pasts.append({number, *itertools.chain(*(pasts[n] for n in above))})
        end = len(oids) - 1
        culprit = sorted(pasts[end])[chosen % len(pasts[end])]
        verdicts = [Verdict(BAD, str(oids[end]))]
        verdicts += [Verdict(GOOD, str(oids[0]))] if culprit else []
        search = Bisection(COMMITS, oids[end], tuple(verdicts))
        while not (step := next_step(repo.store, search)).is_done:
            assert step.point not in search.outcomes
            number = oids.index(ObjectId.parse(step.point))
            word = BAD if culprit in pasts[number] else GOOD
            search = search.with_verdict(Verdict(word, step.point))
        assert step.found == (str(oids[culprit]),)


def test_what_is_written_down(repo: Repo) -> None:
    oid = repo.append("user", "x").oid
    assert bisect.load(repo.store) is None
    search = Bisection(MESSAGES, oid, (Verdict(BAD, "3", 2, 2), Verdict(SKIP, "1")))
    bisect.save(repo.store, search)
    assert bisect.load(repo.store) == search
    for damaged in (b"{", b"[]", b'{"version": 2}', b'{"version": 1, "kind": "x", "told": []}'):
        with open(repo.store.layout.bisect_file, "wb") as file:
            file.write(damaged)
        with pytest.raises(StateError, match="damaged"):
            bisect.load(repo.store)
    assert repo.branches.end_bisection()
    assert not repo.branches.end_bisection()


@pytest.fixture
def repo(tmp_path_factory: pytest.TempPathFactory) -> Repo:
    return Repo.init(tmp_path_factory.mktemp("repo"))
