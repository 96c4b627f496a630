"""Jobs that look at whole stores and processes run, at a size that says nothing, and say what they could not run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from benchmarks import results
from benchmarks.__main__ import main
from benchmarks.jobs import sizes

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def run(tmp_path: Path, job: str, *options: str) -> dict[str, results.Line]:
    """Run one job and return its lines by contestant."""
    asked = ["--quick", "--work", str(tmp_path), "--job", job, *options]
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


def test_packing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = run(tmp_path, "pack", "--json")
    assert all(line["summary"]["n"] == 3 for line in found.values())
    assert json.loads(capsys.readouterr().out)
    assert not list((tmp_path / "scratch").iterdir())
