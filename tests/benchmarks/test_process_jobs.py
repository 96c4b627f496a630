"""Jobs that look at whole stores and processes run, at a size that says nothing, and say what they could not run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from benchmarks import results
from benchmarks.__main__ import main
from benchmarks.jobs import sizes
from tests.support.examples import LONG_FORM

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def run(tmp_path: Path, job: str, *options: str) -> dict[str, results.Line]:
    """Run one job, of 60 messages unless the options say otherwise, and return its lines by contestant."""
    asked = ["--rounds", "2", "--work", str(tmp_path), "--job", job, *options]
    asked += [] if "--size" in options else ["--size", "60"]
    assert main(asked) == 0
    found = results.read(tmp_path / "results.jsonl")
    return {key.contestant: line for key, line in found.items()}


def test_sizes(tmp_path: Path) -> None:
    found = run(tmp_path, "size", "--variant", "repetitive")
    carried, indexed = found[sizes.CARRIED], found[sizes.INDEXED]
    every = found["Trace, every file"]
    assert 0 < carried["summary"]["median"] < indexed["summary"]["median"]
    assert indexed["summary"]["median"] < every["summary"]["median"]
    assert found[sizes.AGGRESSIVE]["summary"]["median"] > 0
    assert found["JSON Lines, zstd -9 --long"]["summary"]["median"] > 0


@LONG_FORM
def test_packing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = run(tmp_path, "pack", "--json")
    assert all(line["summary"]["n"] == 2 for line in found.values())
    assert json.loads(capsys.readouterr().out)
    assert not list((tmp_path / "scratch").iterdir())


def test_git_grows_less_with_trace_than_with_a_growing_file(tmp_path: Path) -> None:
    found = run(tmp_path, "tracked", "--variant", "varied", "--size", "200")
    assert {line["summary"]["n"] for line in found.values()} == {2}
    ratios = found["one growing JSON Lines file, before gc"]["ratios"]
    assert ratios["Trace, before gc"]["median"] > 1


@LONG_FORM
def test_importing(tmp_path: Path) -> None:
    found = run(tmp_path, "import", "--variant", "varied")
    assert {line["summary"]["n"] for line in found.values()} == {2}
    assert not list((tmp_path / "scratch").iterdir())


@LONG_FORM
def test_writers_beside_each_other(tmp_path: Path) -> None:
    """Closing fails when a message of any process is missing."""
    found = run(tmp_path, "writers-2")
    assert {line["summary"]["n"] for line in found.values()} == {2}
    assert not any(line["note"] for line in found.values())
