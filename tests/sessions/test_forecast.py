"""Forecast of input tokens and its upper bound."""

from __future__ import annotations

import random

import pytest

from trace_store.sessions.forecast import Forecast


def test_without_a_report_it_is_the_estimate() -> None:
    forecast = Forecast()
    assert forecast.tokens({"a": 1_000, "": 10}) == 1_010
    assert forecast.bound({"a": 1_000}) == 1_302
    assert not forecast.has_report


def test_a_report_counts_and_what_came_is_added() -> None:
    forecast = Forecast()
    forecast.report({"a": 1_000}, 4_500)
    assert forecast.tokens({"a": 1_000}) == forecast.bound({"a": 1_000}) == 4_500
    assert forecast.tokens({"a": 1_000, "b": 100}) == 4_600
    assert forecast.tokens({"a": 400}) == 3_900  # edited
    assert forecast.tokens({}) == 3_500


def test_what_goes_is_not_uncertain() -> None:
    forecast, sizes = Forecast(), {"": 100, "a": 3_000}
    forecast.report(sizes, 5_000)
    for large in (5_000, 20_000, 100_000):
        stays = forecast.room_for({**sizes, "b": large}, 7_000, 11_000)
        assert 2_500 < stays < 6_000
        assert forecast.bound({"": 100, "b": stays - 100}) <= 11_000


def test_a_message_that_was_cut_counts_as_new() -> None:
    forecast = Forecast()
    forecast.report({"a": 10_000}, 10_500)
    assert forecast.tokens({"a": 50_000}) == 50_500


@pytest.mark.parametrize("factor", [1.0, 1.35, 1.7])
def test_the_slope_is_learned(factor: float) -> None:
    forecast, sizes = Forecast(), {"0": 2_000}
    for turn in range(1, 21):
        forecast.report(sizes, 3_000 + round(factor * sum(sizes.values())))
        sizes = {**sizes, str(turn): 1_000}
    total = 3_000 + round(factor * sum(sizes.values()))
    assert forecast.factor == pytest.approx(factor, rel=0.08)
    assert forecast.tokens(sizes) == pytest.approx(total, rel=0.01)
    assert total <= forecast.bound(sizes)


def test_a_report_about_something_else_teaches_nothing() -> None:
    forecast = Forecast()
    forecast.learn(1_000, 50_000)
    forecast.learn(50, 60)
    assert forecast.factor == 1.0


@pytest.mark.parametrize("shard", range(4))
def test_the_bound_holds(shard: int) -> None:
    """After the first report: for 1.0 to 1.7 times as many tokens, and 15 % more or less for each message."""
    for seed in range(shard, 200, 4):
        chance = random.Random(seed)
        factor, prompt = chance.uniform(1.0, 1.7), chance.choice([0, 500, 3_000, 20_000])
        real: dict[str, float] = {}
        sizes: dict[str, int] = {}
        forecast = Forecast()
        for turn in range(60):
            for _ in range(chance.randrange(1, 4)):
                name = f"{turn}.{len(sizes)}"
                sizes[name] = int(10 ** chance.uniform(1, 4.3))
                real[name] = sizes[name] * factor * chance.uniform(0.85, 1.15)
            if chance.random() < 0.1:
                kept = chance.sample(list(sizes), k=len(sizes) // 3)
                sizes = {name: sizes[name] for name in kept}
                sizes[f"summary {turn}"] = 800
                real[f"summary {turn}"] = 800 * factor * chance.uniform(0.85, 1.15)
            counted = int(prompt + sum(real[name] for name in sizes))
            if turn:
                assert counted <= forecast.bound(sizes), (seed, turn)
            forecast.report(sizes, counted)
