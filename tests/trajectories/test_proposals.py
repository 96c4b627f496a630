"""Decisions in messages are proposed, and recorded only if a person accepts them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command_line import Trace
from trace_store import Repo, errors
from trace_store.llm.contract import Prompt

SAID = "We will use JWT instead of sessions because there is no store. Should we? I read the docs."
FOUND = {
    "message": 1,
    "question": "How do people sign in?",
    "chosen": "with JWT",
    "reasoning": "there is no store",
    "alternatives": ["sessions: they need a store"],
}


@pytest.fixture
def spoken(repo: Repo) -> Repo:
    repo.append("assistant", SAID)
    repo.append("assistant", "Later I decided against redis.")
    return repo


def test_sentences_are_proposed_and_accepted(spoken: Repo) -> None:
    capture, tr = spoken.trajectories.capture, spoken.trajectories
    with pytest.raises(errors.StateError, match="no proposals to accept"):
        capture.accept([1])
    first, second = capture.propose()
    assert (first.number, first.question) == (1, "")
    assert first.chosen == "We will use JWT instead of sessions because there is no store."
    assert (first.reasoning, first.alternatives) == ("because there is no store.", ("sessions",))
    assert second.alternatives == ("redis",)
    tr.start("Sign in")
    assert tr.read().decisions == []
    with pytest.raises(errors.InvalidInputError, match="no proposal 3"):
        capture.accept([1, 3])
    event = capture.accept([1])[0].event
    assert event.data["source"] == first.address.hex
    assert spoken.message(event.data["source"]).message.text == SAID
    assert capture.accept([1]) == []
    assert [(each.number, each.chosen) for each in capture.propose()] == [(1, second.chosen)]


def test_a_model_is_corrected_once(spoken: Repo) -> None:
    asked: list[Prompt] = []

    def model(prompt: Prompt) -> str:
        asked.append(prompt)
        number = 99 if len(asked) == 1 else 1
        return f"Here: {json.dumps({'decisions': [{**FOUND, 'message': number}]})}"

    (found,) = spoken.trajectories.capture.propose(model=model)
    assert (found.question, found.chosen) == (FOUND["question"], FOUND["chosen"])
    assert found.alternatives == ("sessions: they need a store",)
    assert spoken.message(found.address).message.text == SAID
    given = json.loads(asked[0].messages[0][1])
    assert [each["text"] for each in given][1] == SAID
    assert "no message 99" in asked[1].messages[-1][1]


@pytest.mark.parametrize(
    "text", ["", "[]", '{"decisions": 3}', '{"decisions": [{"message": 1}]}', '{"decisions": [3]}']
)
def test_an_invalid_answer_is_refused(spoken: Repo, text: str) -> None:
    with pytest.raises(errors.ModelNonsenseError):
        spoken.trajectories.capture.propose(model=lambda _: text)


def test_numbers_of_the_last_list_stay_valid(ok: Trace, trace: Trace, tmp_path: Path) -> None:
    ok("tr", "start", "Sign in", "-q")
    ok("commit", "--assistant", SAID, "-q")
    assert ok("tr", "propose").lines[0].lstrip().startswith("1  ")
    ok("commit", "--assistant", "First of all: decided against redis.", "-q")
    for wrong in ("2", "x", "1-"):
        assert trace("tr", "propose", "--accept", wrong).code == 2
    assert trace("tr", "propose", "main", "--accept", "1").code == 2
    assert "We will use JWT" in ok("tr", "propose", "--accept", "all").text
    assert "recorded already" in ok("tr", "propose", "--accept", "1").err
    assert "decided against redis" in ok("tr", "propose").text
    path = tmp_path / ".trace/cache/proposed.json"
    for damage in (b"", b"{", b'[{"number": 1}]', b"\xff", b"[[[]]]"):
        path.write_bytes(damage)
        outcome = trace("tr", "propose", "--accept", "1")
        assert "no proposals to accept" in outcome.err
