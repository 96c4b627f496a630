"""The run that is compared with the kept one names what became slower."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import kept_run, results
from benchmarks.jobs import JOBS
from benchmarks.kept_run import Part

PART = Part("append-fast", 60, 3, ("SQLite NORMAL, content-addressed",))


def with_ratio(lines: dict[results.Key, results.Line], factor: float) -> list[results.Line]:
    """Return lines with each ratio multiplied."""
    return [
        {
            **line,
            "ratios": {
                name: {**ratio, "median": ratio["median"] * factor}
                for name, ratio in line["ratios"].items()
            },
        }
        for line in lines.values()
    ]


def test_every_part_is_a_job_with_rows() -> None:
    sizes = {job.name: job for job in JOBS}
    for part in kept_run.PARTS:
        against = {row.against for row in sizes[part.job].rows}
        assert set(part.against) <= against, part.job


def test_a_row_that_lost_more_than_15_percent_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kept, work = tmp_path / "kept.jsonl", tmp_path / "work"
    monkeypatch.setattr(kept_run, "KEPT", kept)
    monkeypatch.setattr(kept_run, "PARTS", (PART,))
    assert kept_run.main(["--work", str(work), "--keep"]) == 0
    assert "no commit" in capsys.readouterr().out
    measured = results.read(kept)
    assert len(measured) == 2
    resumed = ["--work", str(work), "--resume"]

    for factor, code in ((1.1, 0), (1.25, 1), (0.5, 0)):
        kept.unlink()
        results.add(kept, with_ratio(measured, factor))
        assert kept_run.main(resumed) == code
        printed = capsys.readouterr().out
        assert f"| {1 / factor:.2f} |" in printed
        assert ("**worse**" in printed) is (code == 1)


def test_a_row_without_a_figure_is_worse(tmp_path: Path) -> None:
    lines = results.read(tmp_path / "none")
    kept = {
        results.Key("append-fast", 60, "repetitive", PART.against[0]): {
            "ratios": {"Trace": {"median": 1.0}}
        }
    }
    (row,) = kept_run.changes([PART], lines, kept)
    assert row.is_worse
    (row,) = kept_run.changes([PART], kept, lines)
    assert not row.is_worse
