"""Making room: what stands nowhere else stays, an error is not cut away, and a decision is not left out."""

from __future__ import annotations

import json

import pytest

from tests.cases.support.inputs import case
from tests.support.command_line import Run

LINE = "parse line 42 value"


def switched(ok: Run, path: str) -> None:
    """Import a file, and switch to its branch."""
    ok("import", "-q", path)
    lines = ok("branch").text.splitlines()
    ok("switch", "-q", next(w for line in lines for w in line.split() if w.startswith("sessions/")))


@pytest.mark.parametrize("name", ["unchanged", "cleared", "empty", "shortened"])
def test_case_61_a_stub_does_not_supersede_the_content(ok: Run, name: str) -> None:
    switched(ok, str(case("61") / f"{name}.jsonl"))
    assert ok("compile", "--format", "anthropic").text.count(LINE) == 1
    ok("dedupe", "-q")
    assert ok("compile", "--format", "anthropic").text.count(LINE) == 1


@pytest.mark.parametrize("name", ["edit", "write"])
def test_case_63_an_edit_that_failed_changes_nothing(ok: Run, name: str) -> None:
    switched(ok, str(case("63") / f"{name}.json"))
    assert json.loads(ok("suggest", "--json").text)["proposals"] == []
    assert json.loads(ok("dedupe", "--json").text)["changed"] is False
    assert LINE in ok("compile", "--format", "openai").text


def test_case_64_the_error_stays_in_the_middle_of_an_output(ok: Run) -> None:
    switched(ok, str(case("64") / "s.jsonl"))
    for percent in ("90", "60"):
        ok("trim", "-q", "--percent", percent)
        assert "TS2322" in ok("compile", "--format", "text").text


def test_case_74_the_only_decision_is_in_the_summary(ok: Run) -> None:
    switched(ok, str(case("74") / "chat.json"))
    ok("compress", "--to", "40%", "--force", "-q")
    assert "We will use SQLite instead of Redis" in ok("compile", "--format", "text").text
    (report,) = json.loads(ok("compress", "--report", "--json").text)["summaries"]
    assert [each for each in report["lost"] if each["kind"] == "decision"] == []
