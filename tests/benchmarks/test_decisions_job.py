"""Decisions are recorded by processes of their own, and counted afterwards."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks import results
from benchmarks.__main__ import main
from benchmarks.jobs import decisions
from benchmarks.peers.decisions import TrailDecisions
from tests.support.installed_here import InstalledHere

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the script is one of POSIX")


def test_no_decision_of_trace_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = InstalledHere(tmp_path)
    monkeypatch.setattr(decisions, "installation", lambda work: here)
    monkeypatch.setattr("shutil.which", lambda name: None)
    output = tmp_path / "results.jsonl"
    asked = ["--rounds", "1", "--size", "5", "--work", str(tmp_path), "--job"]
    assert main([*asked, f"decisions-{decisions.TOGETHER}", "--output", str(output)]) == 0
    found = {key.contestant: line for key, line in results.read(output).items()}
    assert found[decisions.TRACE]["note"] == ""
    assert found[decisions.TRACE]["summary"]["median"] > 0
    assert found[decisions.TRAIL]["note"] == "npm is not installed"


def test_a_damaged_document_has_no_decisions(tmp_path: Path) -> None:
    TrailDecisions().build(tmp_path, iter([{}] * 3))
    assert TrailDecisions().count(tmp_path) == 3
    (document,) = tmp_path.rglob("trajectory.json")
    document.write_text(document.read_text("utf-8")[:-9], "utf-8")
    assert TrailDecisions().count(tmp_path) == 0
