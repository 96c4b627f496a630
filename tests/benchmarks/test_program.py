"""The program from its options to its tables, with peers that need no package, and with those that are installed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from benchmarks import results
from benchmarks.__main__ import main
from benchmarks.ground import Ground
from benchmarks.jobs import JOBS
from benchmarks.model import Unavailable
from benchmarks.peers import PEERS, load
from benchmarks.report import BEGIN, END, quantity, ratios, tables, write_page
from benchmarks.results import Key, Line
from benchmarks.samplers import Cold
from tests.support.examples import LONG_FORM


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a work folder, whose stores the tests share."""
    return tmp_path_factory.mktemp("benchmarks")


def called(work: Path, *arguments: str) -> int:
    return main(["--quick", "--work", str(work), *arguments])


def line(job: str, contestant: str, size: int, **fields: Any) -> tuple[Key, Line]:
    told = {"n": 3, "median": 2.0, "p10": 1.0, "p90": 4.0}
    key = Key(job, size, "repetitive", contestant)
    common = {
        **key._asdict(),
        "peer": "trace" if contestant.startswith("Trace") else "other",
        "summary": told,
        "ratios": {},
        "note": "",
        "load": [0.1, 0.2],
        "date": "2026-01-02T03:04:05+00:00",
        "versions": {"sqlite": "3"},
        "machine": {"cpu": "a", "cores": 2, "system": "b", "file_system": "c", "python": "d"},
    }
    return key, {**common, **fields}


def test_the_tables_fit_together() -> None:
    names = [job.name for job in JOBS]
    assert len(names) == len(set(names))
    for job in JOBS:
        contestants = [each.name for each in job.contestants]
        assert len(contestants) == len(set(contestants)), job.name
        assert {each.peer for each in job.contestants} <= set(PEERS), job.name
        for row in job.rows:
            assert {row.ours, row.against} <= set(contestants), row


def test_a_run_prints_and_keeps_what_it_measured(
    work: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "results.jsonl"
    assert called(work, "--job", "append", "--peer", "sqlite", "--output", str(file)) == 0
    printed = capsys.readouterr().out
    assert "| durable append | SQLite FULL, plain table | 60 repetitive |" in printed
    assert "### append: 60 messages, repetitive" in printed

    lines = results.read(file)
    assert [key.contestant for key in lines] == [
        "Trace",
        "SQLite FULL, content-addressed",
        "SQLite FULL, plain table",
    ]
    for found in lines.values():
        assert found["summary"]["n"] == 3, found["note"]
        assert found["reached"] == 60
        assert found["machine"]["cores"]
        assert len(found["load"]) == 2
        assert found["versions"]
        assert found["command"].startswith("python -m benchmarks --quick")
    ratio = lines[Key("append", 60, "repetitive", "SQLite FULL, plain table")]["ratios"]["Trace"]
    assert ratio["n"] == 3
    assert ratio["p10"] <= ratio["median"] <= ratio["p90"]


def test_a_run_goes_on_where_it_stopped(
    work: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "results.jsonl"
    chosen = ("--job", "append-fast", "--peer", "sqlite", "--resume", str(file))
    called(work, *chosen)
    first = file.read_text("utf-8")
    called(work, *chosen)
    assert file.read_text("utf-8") == first

    file.write_text("".join(first.splitlines(keepends=True)[:-1]) + '{"job": "app', "utf-8")
    called(work, *chosen)
    assert len(results.read(file)) == 3
    capsys.readouterr()
    main(["--report", str(file), "--json"])
    told = json.loads(capsys.readouterr().out)
    assert told["targets"][0]["text"] == "non-durable append"
    assert set(told["targets"][0]["ratio"]) == {"n", "median", "p10", "p90", "of_p10"}
    assert {each["contestant"] for each in told["ratios"]} == {
        "SQLite NORMAL, content-addressed",
        "SQLite NORMAL, plain table",
    }


def test_a_missing_package_is_named(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(PEERS, "jsonl", ("nothing_of_this_name", "Peer", ()))
    load.cache_clear()
    chosen = ("--job", "append", "--peer", "jsonl", "--output", str(tmp_path / "r.jsonl"))
    called(work, *chosen)
    load.cache_clear()
    assert "| JSON Lines, fdatasync |  |  |  |  |  | not installed: " in capsys.readouterr().out


def test_jobs_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--list"])
    printed = capsys.readouterr().out
    assert all(job.name in printed and job.title in printed for job in JOBS)


@pytest.mark.parametrize("size", ["", "k", "10x", "0", "-5"])
def test_a_size_is_a_number_of_messages(size: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--size", size])
    assert "not a number of messages" in capsys.readouterr().err


def test_targets_are_met_or_not() -> None:
    ratio = {"n": 3, "median": 2.0, "p10": 1.9, "p90": 2.1, "of_p10": 2.5}
    long, short = "Trace, the long history", "Trace, 100 messages"
    lines = dict(
        [
            line("append", "Trace", 10_000),
            line("append", "SQLite FULL, content-addressed", 10_000, ratios={"Trace": ratio}),
            line("append", "pygit2, fsync", 10_000, ratios={"Trace": ratio}),
            line("growth-append", long, 100_000),
            line("growth-append", short, 100_000, ratios={long: ratio}),
            line("tail", "Trace", 10_000),
            line("tail", "JSON Lines, orjson", 10_000, ratios={"Trace": ratio}),
            line("compile", "dulwich", 10_000, summary=None, note="not installed: dulwich"),
        ]
    )
    text = tables(lines)
    assert (
        "content-addressed | 10,000 repetitive | **2.00x** (1.90–2.10) | 2.50x | 1.5x | 2.4x | yes |"
        in text
    )
    assert (
        "pygit2, fsync | 10,000 repetitive | **2.00x** (1.90–2.10) | 2.50x | 8x |  | **no** |"
        in text
    )
    assert "**0.50x** (0.48–0.53) | 0.40x | at most 1.1x | at most 1x | yes |" in text
    assert "| dulwich |  |  |  |  | not installed: dulwich |" in text
    assert "Measured 2026-01-02 on a, 2 cores, b, c, d; load average 0.1 to 0.2." in text
    assert "10,000 repetitive | **2.00x** (1.90–2.10) | 2.50x | 15x at 100,000 | 40x |  |" in text
    assert "| durable append | git plumbing, fsync | 10,000 repetitive | not measured |  |" in text
    met = {row["against"]: row["met"] for row in ratios(lines)["targets"] if row["ratio"]}
    assert met.pop("JSON Lines, orjson") is None, "the target is stated for another size"
    assert met == {"SQLite FULL, content-addressed": True, "pygit2, fsync": False, short: True}


def test_nothing_measured_is_told() -> None:
    assert tables({}) == "Nothing was measured yet.\n"


def test_a_page_gets_the_tables_between_its_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"Before.\n{BEGIN}\nold\n{END}\nAfter.\n", "utf-8")
    write_page(page, "new\n")
    assert page.read_text("utf-8") == f"Before.\n{BEGIN}\n\nnew\n\n{END}\nAfter.\n"
    page.write_text("no marks", "utf-8")
    with pytest.raises(ValueError, match="lacks the lines"):
        write_page(page, "new\n")


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.0000123, "s", "12.3 µs"),
        (0.5, "s", "500 ms"),
        (3e-10, "s", "0.30 ns"),
        (12.0, "s", "12.0 s"),
        (1_234_567, "B", "1.23 MB"),
        (0, "B", "0.00 B"),
    ],
)
def test_quantities_have_three_digits(value: float, unit: str, text: str) -> None:
    assert quantity(value, unit) == text


@pytest.mark.parametrize("peer", [name for name in PEERS if name != "trace"])
def test_every_peer_holds_the_same_messages(work: Path, peer: str) -> None:
    """Peers whose packages are not here are left out, as the program leaves them out."""
    ground = Ground(work, "repetitive", 60)
    try:
        found = load(peer)
    except Unavailable as reason:
        pytest.skip(str(reason))
    if not hasattr(found, "compile"):
        pytest.skip("it keeps bytes only")
    assert Cold(ground, peer, "compile").work == Cold(ground, "trace", "compile_full").work


@pytest.mark.parametrize("task", ["compile_lazy", "compile_full", "tail", "log", "verify"])
def test_cold_tasks_of_trace_import_nothing(work: Path, task: str) -> None:
    """Imports are left out of a cold sample; one that comes late would be in it."""
    cold = Cold(Ground(work, "repetitive", 60), "trace", task)
    cold.sample()
    assert cold.told["late_imports"] == []


@pytest.mark.parametrize(
    ("job", "function"),
    [pytest.param("append", "fdatasync", marks=LONG_FORM), ("tail", "pread")],
)
def test_a_profile_names_functions(
    work: Path, job: str, function: str, capsys: pytest.CaptureFixture[str]
) -> None:
    called(work, "--job", job, "--profile")
    printed = capsys.readouterr().out
    assert printed.startswith(f"{job}: Trace")
    assert function in printed


@LONG_FORM
def test_a_page_of_profiles_has_a_picture_and_a_table(work: Path, tmp_path: Path) -> None:
    page = tmp_path / "profiles.md"
    page.write_text(f"# Profiles\n\n{BEGIN}\n{END}\nend\n", encoding="utf-8")
    called(work, "--job", "append", "--profile", "--page", str(page))
    text = page.read_text("utf-8")
    assert "![The stacks of append](profiles/append-repetitive.svg)" in text
    assert "| of the time | line at work |" in text
    assert text.endswith(f"{END}\nend\n")
    drawn = (tmp_path / "profiles" / "append-repetitive.svg").read_text("utf-8")
    assert "trace_store.repo.line.Line.append" in drawn
    ElementTree.fromstring(drawn)
