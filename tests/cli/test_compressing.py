"""`trace compress`, `trace expand` and `trace compile --expand` at the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.llm.conftest import KEY, serving
from tests.llm.support.fault_server import FaultServer, answer, said
from tests.support.command_line import Outcome, Run, Trace
from trace_store.base.environment import Environment

__all__ = ["serving"]

WORDS = "The parser reads a line, splits it at every comma, and forgets what stood behind. " * 4


@pytest.fixture
def talk(ok: Run) -> Run:
    """Run commands in a repository with twenty long messages."""
    for turn in range(10):
        ok("commit", "-q", "--user", f"{turn}? {WORDS}", "--assistant", f"{turn}! {WORDS}")
    return ok


def record(outcome: Outcome) -> Any:
    return json.loads(outcome.text)


def test_from_a_plan_to_an_expansion_and_back(talk: Run) -> None:
    before = record(talk("compile", "--json"))
    plan = talk("compress", "--to", "50%", "--plan")
    assert "kept: " in plan.text
    assert "at most" in plan.text
    assert record(talk("compile", "--json")) == before
    done = talk("compress", "--to", "50%")
    assert "→ 1 summary (extractive): " in done.text
    shown = record(talk("compile", "--table", "--json"))["messages"]
    assert shown[0]["kind"] == "summary"
    address = shown[0]["address"]
    once = talk("compile", "--expand", address, "--format", "json")
    assert once.text.count("0? The parser") == 1
    refused = talk("compress", "--report", address)
    assert "does not mention" in refused.text
    expanded = record(talk("expand", address, "--json"))
    assert expanded["what"] == "compressed"
    assert record(talk("compile", "--json"))["prefix_hash"] == before["prefix_hash"]
    talk("undo")
    talk("undo")
    assert record(talk("compile", "--json"))["prefix_hash"] == before["prefix_hash"]


def test_one_message_of_a_summary_is_shown_beside_it(talk: Run) -> None:
    first = record(talk("compile", "--table", "--json"))["messages"][0]["address"]
    talk("compress", "--to", "50%", "-q")
    summary = record(talk("compile", "--table", "--json"))["messages"][0]["address"]
    outcome = talk("expand", first)
    assert "the summary" in outcome.err
    assert f"`trace expand {summary[:8]}" in outcome.err
    talk("undo")
    done = record(talk("expand", first, "--json"))
    assert (done["summary"], done["wordings"]) == (summary, 1)
    talk("undo")
    assert talk("expand", summary).err == ""


def test_an_edited_message_says_which_wording_it_shows(talk: Run) -> None:
    address = record(talk("compile", "--table", "--json"))["messages"][0]["address"]
    talk("edit", address, "Without the password.", "-q")
    talk("edit", address, "Without it.", "-q")
    outcome = talk("expand", address)
    assert "1 edited message shown in full, in the first of 3 wordings" in outcome.text
    assert "`trace show --versions" in outcome.err
    talk("undo")
    assert "Without it." in talk("show", "--raw", address).text
    assert record(talk("expand", address, "--json"))["wordings"] == 3


def test_instructions_that_no_sentence_meets_are_told(talk: Run) -> None:
    said = talk("compress", "--to", "50%", "--instructions", "focus on bananas").err
    assert "none has a word of the instructions" in said


def test_several_outcomes_at_once(talk: Run) -> None:
    lines = talk("compress", "--budget", "50,700,1k,1m").lines
    assert "not possible: " in lines[1]
    found = record(talk("compress", "--budget", "50,700", "--json"))["outcomes"]
    assert found[0].keys() == {"target", "smallest"}
    assert found[1]["after"] <= 700


def test_json_of_every_form(talk: Run) -> None:
    plan = record(talk("compress", "--to", "700", "--plan", "--json"))
    done = record(talk("compress", "--to", "700", "--json"))
    assert {key: done[key] for key in ("target", "before", "smallest", "runs", "kept")} == {
        key: plan[key] for key in ("target", "before", "smallest", "runs", "kept")
    }
    assert (done["summariser"], done["model"]) == ("extractive", None)
    (summary,) = record(talk("compress", "--report", "--json"))["summaries"]
    assert summary["summary"] == done["summaries"][0]["address"]


def test_a_summary_from_standard_input(repository: Trace, talk: Run) -> None:
    outcome = talk("compress", "HEAD~3", "--manual", "-", stdin=b"They spoke of the parser.\n")
    assert "14 messages → 1 summary (manual)" in outcome.text
    assert "They spoke of the parser." in talk("compile").text


def test_a_configured_model_is_asked_unless_that_is_not_wanted(
    repository: Trace,
    talk: Run,
    serving: Callable[..., FaultServer],
    tmp_path: Path,
) -> None:
    server = serving(answer(said("They spoke of the parser.")))
    secrets = {"TRACE_MODEL": "asked", "TRACE_MODEL_URL": server.url, "TRACE_MODEL_KEY": KEY}
    environment = Environment(
        author="Ada", discovery=False, config_dir=str(tmp_path / "config"), secrets=secrets.items()
    )
    without = repository("compress", "--to", "900", "--extractive", environment=environment)
    assert (without.code, server.requests) == (0, [])
    asked = repository("compress", "--to", "400", "--force", environment=environment)
    assert "(tiny-1): " in asked.text
    assert "They spoke of the parser." in talk("compile").text
    (usage,) = [json.loads(line) for line in talk("usage", "show", "--json").lines]
    assert usage["output_total"] == 3


@pytest.mark.parametrize(
    ("words", "code", "saying"),
    [
        ((), 2, "--to TOKENS is missing"),
        (("--to", "x"), 2, "not a token count"),
        (("--to", "0%"), 2, "not 1% to 99%"),
        (("--to", "10"), 15, "smallest possible"),
        (("HEAD..HEAD", "--to", "700"), 2, "names no message"),
        (("nowhere", "--to", "700"), 4, "nowhere"),
        (("--plan", "--report"), 2, "give one of"),
        (("--report", "HEAD.0"), 2, "not a summary"),
        (("--manual", "Short.", "--extractive"), 2, "--manual goes without --extractive"),
        (("--manual", ""), 2, "is empty"),
        (("--to", "700", "--window", "5"), 2, "--window"),
    ],
)
def test_how_it_may_not_be_called(
    repository: Trace, talk: Run, words: tuple[str, ...], code: int, saying: str
) -> None:
    before = talk("rev-parse", "HEAD").text
    outcome = repository("compress", *words)
    assert (outcome.code, saying in outcome.err) == (code, True), outcome.err
    assert talk("rev-parse", "HEAD").text == before


def test_it_is_not_done_twice_in_a_row(repository: Trace, talk: Run) -> None:
    talk("compress", "--to", "900")
    outcome = repository("compress", "--to", "400")
    assert (outcome.code, "hint: --force" in outcome.err) == (6, True)
    assert "nothing to compress" in talk("compress", "--to", "900").text


def test_an_expansion_for_one_compile_has_no_table(repository: Trace, talk: Run) -> None:
    assert repository("compile", "--expand", "HEAD.0").code == 0  # it is shown in full anyway
    talk("remove", "HEAD.0")
    assert "9? " in talk("compile", "--expand", "HEAD~1.0").text
    assert repository("compile", "--expand", "HEAD~1.0", "--table").code == 2
    assert repository("compile", "--expand", "HEAD~1.0", "--strategy", "messages").code == 2
