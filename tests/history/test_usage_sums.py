"""Sums of reported usage by model, tool and file, and their costs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.cli.conftest import ok, repository, trace
from tests.support.command_line import Trace
from trace_store import Message, Repo, ToolCall, ToolResult, errors
from trace_store.base.environment import Environment
from trace_store.history.usage_sums import OUTPUT, OVERHEAD, UsageSum, UsageSums
from trace_store.store import Price, price_of, read_prices, set_price

__all__ = ["ok", "repository", "trace"]

PRICES = {
    "m": Price.parse("input=1 output=10 cache_read=0.1"),
    "m-large": Price.parse("input=5,output=50"),
}


def report(read: int, *, cached: int = 0, wrote: int = 0, model: str = "m-1") -> dict[str, object]:
    usage = {"input_total": read, "cache_read": cached, "cache_write": 0, "output_total": wrote}
    return {**usage, "reasoning": 0, "source": "normal", "model": model}


def use(repo: Repo, name: str, path: str, output: str, number: int) -> None:
    """Record a call of a tool, and its result."""
    call = ToolCall(f"c{number}", name, f'{{"file_path": "{path}"}}')
    repo.append(Message("assistant", [call]))
    repo.append(Message("tool", [ToolResult(f"c{number}", output)]))


def rows(sums: UsageSums, part: str) -> dict[str, UsageSum]:
    return {row.name: row for row in sums.rows if row.part == part}


def read_by(found: Iterable[UsageSum]) -> int:
    return sum(row.input_total for row in found)


@pytest.fixture
def repo() -> Repo:
    repo = Repo.memory(author="Ada")
    repo.append("user", "Where is the parser?")
    use(repo, "Read", "/a.py", "line " * 300, 1)
    repo.record_usage(report(1_000, cached=400, wrote=50))
    use(repo, "Grep", "/b.py", "line " * 100, 2)
    repo.record_usage(report(2_000, cached=1_000, wrote=70))
    use(repo, "Read", "/b.py", "line " * 50, 3)
    repo.record_usage(report(3_000, wrote=80, model="m-large-2"))
    return repo


def test_by_model(repo: Repo) -> None:
    sums = repo.usage_by("model", prices=PRICES)
    small, large = rows(sums, "model")["m-1"], rows(sums, "model")["m-large-2"]
    assert (small.count, small.input_total, small.cache_read, small.output_total) == (
        2,
        3_000,
        1_400,
        120,
    )
    assert small.cost == pytest.approx((1_600 * 1 + 1_400 * 0.1 + 120 * 10) / 1_000_000)
    assert large.cost == pytest.approx((3_000 * 5 + 80 * 50) / 1_000_000)
    assert [row.name for row in sums.rows] == ["m-1", "m-large-2"]
    assert (sums.total.count, sums.total.input_total, sums.total.output_total) == (3, 6_000, 200)
    assert sums.total.cost == pytest.approx((small.cost or 0) + (large.cost or 0))
    assert sums.unpriced == ()


@pytest.mark.parametrize("way", ["tool", "file"])
def test_rows_add_up_to_what_was_reported(repo: Repo, way: str) -> None:
    sums = repo.usage_by(way, prices=PRICES)
    assert abs(read_by(sums.rows) - sums.total.input_total) <= len(sums.rows)  # rounding
    assert sum(row.cost or 0 for row in sums.rows) == pytest.approx(sums.total.cost)
    assert sums.total.cost == pytest.approx(repo.usage_by("model", prices=PRICES).total.cost)
    assert rows(sums, OUTPUT)[""].output_total == 200


def test_by_tool_counts_each_request_that_carried_a_call(repo: Repo) -> None:
    found = rows(repo.usage_by("tool"), "tool")
    read, grep = found["Read"], found["Grep"]
    assert (read.count, grep.count) == (2, 1)
    assert 350 <= read.tokens <= 350 + 2 * 40  # with the calls
    # The first read was sent with three requests, the second one with one.
    assert 3 * 300 + 50 <= read.input_total <= 3 * (300 + 40) + 50 + 40
    assert 2 * 100 <= grep.input_total <= 2 * (100 + 40)
    assert read.cost is None


def test_by_file(repo: Repo) -> None:
    found = rows(repo.usage_by("file"), "file")
    assert list(found) == ["/a.py", "/b.py"]
    assert (found["/a.py"].count, found["/b.py"].count) == (1, 2)


def test_what_is_hidden_is_not_counted_from_then_on(repo: Repo) -> None:
    before = rows(repo.usage_by("tool"), "tool")["Read"]
    calls = [entry.address for entry in repo.contexts.fold(repo.resolve("HEAD")).visible()]
    repo.remove(calls[1])  # the first read, with its result
    repo.append("user", "and now?")
    repo.record_usage(report(4_000))
    after = rows(repo.usage_by("tool"), "tool")["Read"]
    assert after.tokens == before.tokens
    assert 50 <= after.input_total - before.input_total <= 80


def test_a_report_below_the_messages_divides_what_it_says(repo: Repo) -> None:
    other = Repo.memory()
    use(other, "Read", "/a.py", "line " * 300, 1)
    other.record_usage(report(10))
    sums = other.usage_by("tool")
    assert sums.total.input_total == 10
    assert rows(sums, "tool")["Read"].input_total == 10
    assert rows(sums, OVERHEAD)[""].input_total == 0


def test_branches_that_were_merged_count_once(repo: Repo) -> None:
    repo.branches.create("side")
    repo.line("side").append("user", "beside")
    repo.line("side").record_usage(report(500))
    repo.append("user", "meanwhile")
    repo.merge("side")
    for way in ("model", "tool", "file"):
        sums = repo.usage_by(way)
        assert (sums.total.count, sums.total.input_total) == (4, 6_500)
    assert repo.usage_by("tool", "side~1..HEAD").total.input_total == 500


def test_a_report_about_an_earlier_context(repo: Repo) -> None:
    other = Repo.memory()
    first = other.append("user", "hello").oid
    use(other, "Read", "/a.py", "line " * 300, 1)
    other.record_usage(report(100), about=first)
    assert rows(other.usage_by("tool"), "tool")["Read"].input_total == 0


def test_unknown_ways_and_models(repo: Repo) -> None:
    with pytest.raises(errors.InvalidInputError, match="usage by 'day'"):
        repo.usage_by("day")
    repo.record_usage(report(7, model="other"))
    sums = repo.usage_by("model", prices=PRICES)
    assert sums.unpriced == ("other",)
    assert rows(sums, "model")["other"].cost is None
    assert sums.total.cost == repo.usage_by("model", "HEAD~1", prices=PRICES).total.cost
    assert repo.usage_by("tool", prices=PRICES).unpriced == ("other",)


def test_the_longest_name_has_the_price() -> None:
    assert price_of(PRICES, "m-large-2") == PRICES["m-large"]
    assert price_of(PRICES, "m") == PRICES["m"]
    assert price_of(PRICES, "gpt") is None
    assert price_of(PRICES, "") is None


@pytest.mark.parametrize(
    "text",
    [
        *("", "3 15", "input=3", "input=3 output=x", "input=-1 output=1", "input=1 output=nan"),
        *("input=1 output=1 input=2", "input=1 output=1 cached=1", "input=inf output=1"),
    ],
)
def test_malformed_prices_are_refused(text: str) -> None:
    with pytest.raises(errors.InvalidInputError):
        Price.parse(text)


def test_prices_are_the_users_own(tmp_path: Path) -> None:
    here = Environment(config_dir=str(tmp_path))
    assert read_prices(here) == {}
    set_price(here, 'vendor/"odd".1', "output=2 input=1")
    set_price(here, "gpt-5", "input=1.25, output=10, cache_read=0.125")
    assert read_prices(here)["gpt-5"] == Price(1.25, 10, 0.125, 1.25)
    assert read_prices(here)['vendor/"odd".1'] == Price(1, 2, 1, 1)
    set_price(here, 'vendor/"odd".1', None)
    assert list(read_prices(here)) == ["gpt-5"]
    with pytest.raises(errors.InvalidInputError):
        set_price(here, "", "input=1 output=1")
    (tmp_path / "trace" / "prices.toml").write_text("gpt = [")
    with pytest.raises(errors.FormatError):
        read_prices(here)


def test_costs_on_the_command_line(trace: Trace, tmp_path: Path) -> None:
    here = Environment(author="Ada", discovery=False, config_dir=str(tmp_path / "config"))

    def run(*words: str) -> tuple[str, str]:
        outcome = trace(*words, environment=here)
        assert outcome.code == 0, outcome.err
        return outcome.text, outcome.err

    run("init", "-q")
    run("commit", "-q", "--user", "hello")
    assert "no usage is recorded" in run("usage", "--by", "tool")[1]
    run(
        "usage",
        "record",
        "-q",
        '{"input_tokens": 1000000, "output_tokens": 100000}',
        "--model",
        "m-1",
    )
    text, note = run("usage", "--by", "model", "--cost")
    assert text.splitlines()[-1].split() == [
        "total",
        "1",
        "1,000,000",
        "0",
        "0",
        "100,000",
        "0",
        "-",
    ]
    assert "no price for m-1" in note
    assert "`trace config price.m-1 'input=N output=N'` sets one" in note
    run("config", "price.m", "input=3 output=15")
    assert run("config", "price.m")[0] == "input=3 output=15 cache_read=3 cache_write=3\n"
    assert run("config", "price")[0].startswith("price.m = input=3")
    assert run("usage", "--by", "model", "--cost")[0].splitlines()[-1].split()[-1] == "4.5000"
    assert run("usage", "--cost")[0].splitlines()[-1].split()[-1] == "4.5000"
    assert '"cost": 4.5' in run("usage", "show", "--cost", "--json")[0]
    tools = run("usage", "--by", "tool", "--cost")[0].splitlines()
    assert tools[-2].split()[-1] == "4.5000"
    assert tools[-1] == "share: of the 1,000,000 input tokens of 1 request"
    assert trace("usage", "--by", "tool", "-n", "3", environment=here).code == 2
    assert trace("config", "price.m", "3 15", environment=here).code == 2
    assert trace("config", "price.x", environment=here).code == 4
    run("config", "price.m", "--unset")
    assert run("config", "price")[0] == ""
