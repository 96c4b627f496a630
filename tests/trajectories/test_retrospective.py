"""A model drafts a retrospective from the history; a person reviews it before it is recorded."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.llm.conftest import serving
from tests.llm.support.fault_server import FaultServer, answer, said
from tests.support.command_line import Outcome, Run, Trace
from tests.trajectories.test_commands import editor, started
from trace_store import Environment, Repo
from trace_store.errors import ModelNonsenseError
from trace_store.llm.contract import Prompt

__all__ = ["serving", "started"]

DRAFT = {"summary": "Tokens are signed.", "learnings": ["Clocks differ"], "confidence": 0.7}


def test_a_model_is_given_the_history_and_corrected_once(repo: Repo) -> None:
    tr = repo.trajectories
    tr.start("Sign in")
    repo.append("assistant", "I will look.")
    tr.decide("Which?", "JWT", reasoning="small")
    asked: list[Prompt] = []

    def model(prompt: Prompt) -> str:
        asked.append(prompt)
        return '{"approach": "x"}' if len(asked) == 1 else f"Here it is: {json.dumps(DRAFT)}"

    assert tr.draft_retrospective(model) == DRAFT
    question = json.loads(asked[0].messages[0][1])
    assert question["title"] == "Sign in"
    assert question["events"][1]["reasoning"] == "small"
    assert question["messages"] == ["assistant: I will look."]
    assert "needs a summary" in asked[1].messages[-1][1]
    assert tr.read().retrospective is None


@pytest.mark.parametrize("text", ["", "no", "[]", '{"summary": 3}', '{"summary": "x", "a": 1}'])
def test_an_invalid_answer_is_refused(repo: Repo, text: str) -> None:
    repo.trajectories.start("Sign in")
    with pytest.raises(ModelNonsenseError):
        repo.trajectories.draft_retrospective(lambda _: text)


def test_a_long_history_is_cut_from_its_beginning(repo: Repo) -> None:
    tr = repo.trajectories
    tr.start("Sign in")
    for number in range(30):
        tr.record("note", f"{number} " + "x" * 5_000)
    asked: list[Prompt] = []

    def model(prompt: Prompt) -> str:
        asked.append(prompt)
        return json.dumps(DRAFT)

    tr.draft_retrospective(model)
    (text,) = (text for _, text in asked[0].messages)
    assert len(text) < 70_000
    assert json.loads(text)["events"][-1]["content"].startswith("29 ")


def test_a_draft_is_reviewed_in_the_editor(
    started: Run,
    trace: Trace,
    tmp_path: Path,
    serving: Callable[..., FaultServer],
) -> None:
    server = serving(*[answer(said(json.dumps(DRAFT)))] * 3)
    reviewing = editor(tmp_path, 'sed -i -e "s/Tokens are signed./Reviewed: &/" "$1"')

    def run(*words: str, environment: Environment) -> Outcome:
        environment.secrets = [("TRACE_MODEL", "m"), ("TRACE_MODEL_URL", server.url)]
        environment.config_dir = str(tmp_path)
        return trace("tr", "reflect", *words, environment=environment)

    plain = Environment(author="Ada", discovery=False)
    shown = run("--ask", "--dry-run", environment=plain)
    assert json.loads(shown.text) == DRAFT, shown.err
    assert json.loads(started("tr", "show", "--json").text)["retrospective"] is None
    outcome = run("--ask", environment=reviewing)
    assert outcome.code == 0, outcome.err
    found = json.loads(started("tr", "show", "--json").text)["retrospective"]["data"]
    assert found["summary"] == "Reviewed: Tokens are signed."
    assert (found["learnings"], found["confidence"]) == (["Clocks differ"], 0.7)
