"""Sampling and its evaluation: turns, pairs, budgets, and peers that fail."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.ground import Ground, Limited, sweep
from benchmarks.job import Contestant, Job, Sampler
from benchmarks.model import Unavailable, Work
from benchmarks.runner import Outcome, run
from benchmarks.summary import paired, quantile, summary

RATIO = ("median", "p10", "p90", "of_p10")


class Fake:
    """A sampler that returns given values."""

    def __init__(
        self,
        value: float = 1.0,
        work: Work | None = None,
        reached: int = 10,
        calls: list[str] | None = None,
        name: str = "",
    ) -> None:
        self.reached = reached
        self.note = ""
        self.work = work
        self.closed = False
        self._value = value
        self._calls = calls if calls is not None else []
        self._name = name

    def sample(self) -> float:
        self._calls.append(self._name)
        return self._value

    def close(self) -> None:
        self.closed = True


class Failing(Fake):
    def sample(self) -> float:
        raise OSError("the disk is full")


class Lying(Fake):
    def close(self) -> None:
        raise AssertionError("9 messages where 10 were stored")


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path, "repetitive", 10, limit=60)


def measured(
    ground: Ground, rounds: int, most: int = 0, **made: Callable[[], Sampler]
) -> dict[str, Outcome]:
    contestants = tuple(
        Contestant(name, name, lambda ground, peer, make=make: make(), most)  # type: ignore[misc]
        for name, make in made.items()
    )
    job = Job("job", "A job", "s", (10,), rounds, contestants)
    return {each.contestant: each for each in run(job, ground, rounds)}


def refused() -> Sampler:
    raise Unavailable("not installed: nothing")


def test_quantiles_lie_between_neighbours() -> None:
    assert quantile([1.0, 2.0, 3.0], 0.5) == 2.0
    assert quantile([1.0, 2.0], 0.5) == 1.5
    assert quantile([7.0], 0.9) == 7.0
    assert summary([3.0, 1.0, 2.0]) == {"n": 3, "median": 2.0, "p10": 1.2, "p90": 2.8}


def test_ratios_are_of_the_same_round() -> None:
    """A machine that was ten times slower in one round does not show in the ratio."""
    ratio = paired({0: 2.0, 1: 20.0, 2: 2.0}, {0: 1.0, 1: 10.0, 3: 50.0})
    assert ratio == {"n": 2, "median": 2.0, "p10": 2.0, "p90": 2.0, "of_p10": 2.0}
    assert paired({0: 1.0}, {1: 1.0}) is None


def test_contestants_take_turns(ground: Ground) -> None:
    calls: list[str] = []
    found = measured(
        ground,
        5,
        trace=lambda: Fake(1.0, calls=calls, name="trace"),
        other=lambda: Fake(3.0, calls=calls, name="other"),
    )
    assert [set(calls[i : i + 2]) for i in range(0, 10, 2)] == [{"trace", "other"}] * 5
    assert len({tuple(calls[i : i + 2]) for i in range(0, 10, 2)}) == 2, "the order changes"
    assert found["other"].ratios == {"trace": dict.fromkeys(RATIO, 3.0) | {"n": 5}}
    assert found["trace"].ratios == {}


def test_a_dear_contestant_takes_part_in_some_rounds(ground: Ground) -> None:
    found = measured(ground, 10, most=3, trace=Fake)
    assert found["trace"].summary is not None
    assert found["trace"].summary["n"] == 3


def test_other_work_is_told(ground: Ground) -> None:
    found = measured(
        ground,
        2,
        trace=lambda: Fake(work=Work(10, 500)),
        same=lambda: Fake(work=Work(10, 500)),
        less=lambda: Fake(work=Work(10, 400)),
        smaller=lambda: Fake(work=Work(5, 200), reached=5),
        floor=Fake,
    )
    notes = {name: each.note for name, each in found.items()}
    assert notes.pop("less") == "different work: (10, 400) instead of (10, 500)"
    assert set(notes.values()) == {""}


def test_who_cannot_run_is_listed_with_the_reason(ground: Ground) -> None:
    found = measured(ground, 2, trace=Fake, missing=refused, failing=Failing, lying=Lying)
    assert found["missing"].note == "not installed: nothing"
    assert found["failing"].note == "OSError: the disk is full"
    assert found["lying"].note == "AssertionError: 9 messages where 10 were stored"
    assert [found[name].summary for name in ("missing", "failing", "lying")] == [None] * 3
    assert found["trace"].summary is not None


def test_who_used_up_the_time_stops(ground: Ground) -> None:
    ground.limit = 0.0
    found = measured(ground, 9, trace=Fake)
    assert found["trace"].note == "stopped after 1 samples: 0 s were used up"
    assert found["trace"].summary is not None


def test_preparing_uses_up_no_time_of_samples(ground: Ground) -> None:
    def slow() -> Sampler:
        time.sleep(0.2)
        return Fake()

    ground.limit = 0.1
    found = measured(ground, 3, trace=slow)
    assert found["trace"].note == ""
    assert found["trace"].seconds >= 0.2


def test_messages_end_at_the_limit(tmp_path: Path) -> None:
    turns = Limited(iter([{"id": str(i)} for i in range(5)]), tmp_path, 60.0)
    assert len(list(turns)) == turns.count == 5
    assert turns.stopped == ""
    late = Limited(iter([{"id": "0"}]), tmp_path, -1.0)
    assert (list(late), late.count) == ([], 0)
    assert late.stopped


def test_a_store_keeps_what_it_reached(tmp_path: Path) -> None:
    ground = Ground(tmp_path, "repetitive", 10, limit=-1.0)
    built = ground.store("sqlite")
    assert built.messages == 0
    assert "came to 0 messages" in built.note


def test_copies_of_killed_runs_are_removed(tmp_path: Path) -> None:
    ground = Ground(tmp_path, "repetitive", 10)
    mine = ground.scratch()
    dead = mine.with_name("99999999-1")
    dead.mkdir()
    sweep(tmp_path)
    assert mine.exists()
    assert not dead.exists()
    ground.discard(mine / "store")
    assert not mine.exists()
