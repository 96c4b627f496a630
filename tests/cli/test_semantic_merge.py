"""`trace merge -s semantic` against a model server on this machine."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.llm.conftest import KEY, serving
from tests.llm.support.fault_server import Connection, FaultServer, Reply, answer, said
from tests.support.command_line import Outcome, Run, Trace
from trace_store.base.environment import Environment

__all__ = ["serving"]

Serving = Callable[..., FaultServer]


@pytest.fixture
def user(repository: Trace, tmp_path: Path) -> Run:
    """Run a command with a model server, on two branches that answer one question."""

    def run(
        *words: str, url: str = "", stdin: bytes = b"", terminal: bool = False, **more: str
    ) -> Outcome:
        variables = {"TRACE_MODEL": "asked", "TRACE_MODEL_URL": url, "TRACE_MODEL_KEY": KEY, **more}
        environment = Environment(
            author="Ada",
            discovery=False,
            config_dir=str(tmp_path / "config"),
            secrets=(variables if url else more).items(),
        )
        return repository(*words, stdin=stdin, terminal=terminal, environment=environment)

    for words in (
        ["commit", "-q", "--user", "Which database?"],
        ["update-ref", "refs/heads/idea", "HEAD"],
        ["commit", "-q", "--assistant", "SQLite."],
        ["symbolic-ref", "HEAD", "refs/heads/idea"],
        ["commit", "-q", "--assistant", "Postgres.", "--user", "Only one machine writes."],
        ["symbolic-ref", "HEAD", "refs/heads/main"],
    ):
        assert run(*words).code == 0
    return run


def answering(text: str | Callable[[Any], object]) -> Reply:
    """Return a server reply computed from the question."""

    def reply(connection: Connection) -> None:
        made = text
        if callable(text):
            asked = json.loads(connection.request.fields["messages"][1]["content"])
            made = json.dumps(text(asked))
        answer(said(str(made)))(connection)

    return reply


def proposal(question: Any) -> object:
    writes = question["theirs"][1]["id"]
    return {
        "conflicts": [{"number": 1, "take": "ours", "why": "one machine writes\x1b[2J"}],
        "summaries": [{"messages": [writes], "text": "One machine writes."}],
        "conclusion": {"text": "So SQLite.", "sources": [question["ours"][0]["id"], writes]},
    }


def standing(user: Run) -> tuple[str, ...]:
    return tuple(user("for-each-ref").lines)


def test_a_proposal_is_shown_and_taken(user: Run, serving: Serving) -> None:
    server = serving(answering(proposal))
    words = ("merge", "idea", "-s", "semantic")
    outcome = user(*words, url=server.url, terminal=True, stdin=b"y\n")
    assert outcome.code == 0, outcome.err
    for line in (
        "tiny-1 proposes:",
        "     because: one machine writes\\x1b[2J",
        "     | One machine writes.",
        "     | So SQLite.",
        "accept it? [y/N] ",
    ):
        assert line in outcome.err
    assert "takes ours" in outcome.err
    assert "\x1b[2J" not in outcome.err
    assert "merged: 2 new messages, 2 of them hidden, 1 conflict resolved" in outcome.text
    context = user("compile", "--format", "text").text
    assert "Postgres" not in context
    assert context.index("SQLite.") < context.index("One machine writes.")
    assert context.index("One machine writes.") < context.index("So SQLite.")
    (record,) = [json.loads(line) for line in user("usage", "show", "--json").lines]
    assert (record["input_total"], record["output_total"], record["model"]) == (12, 3, "tiny-1")
    shown = json.loads(user("show", "--json").text)
    assert shown["meta"]["merge"]["advice"]["model"] == "tiny-1"
    assert user("fsck").code == 0
    assert user("undo").code == 0
    assert "Postgres" not in user("compile", "--format", "text").text
    assert "So SQLite" not in user("compile", "--format", "text").text


@pytest.mark.parametrize("typed", [b"n\n", b"\n", b"", b"maybe\n"])
def test_a_proposal_that_is_not_taken(user: Run, serving: Serving, typed: bytes) -> None:
    before = standing(user)
    server = serving(answering(proposal))
    words = ("merge", "idea", "-s", "semantic", "--review")
    outcome = user(*words, url=server.url, stdin=typed)
    assert (outcome.code, outcome.text) == (3, "")
    assert "was not accepted; nothing was written" in outcome.err
    assert standing(user) == before
    assert user("merge", "--abort").code == 6


def test_away_from_a_terminal_nobody_is_asked(user: Run, serving: Serving) -> None:
    server = serving(answering(proposal))
    outcome = user("merge", "idea", "-s", "semantic", "--json", url=server.url)
    record = json.loads(outcome.text)
    assert (record["outcome"], record["settled"][0]["kind"]) == ("merged", "two-answers")
    assert "accept it?" not in outcome.err
    quiet = user("merge", "idea", "-s", "semantic", url=server.url, terminal=True)
    assert "already up to date" in quiet.text
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("reply", "code", "message"),
    [
        (answer({"error": {"message": "no"}}, status="401 No"), 16, "rejected the key"),
        (answer(b"<html>"), 16, "is not a JSON object"),
        (answering("Of course!"), 16, "cannot be used: it contains no JSON object"),
        (answering(lambda _: {"conflicts": []}), 16, "conflict 1 is left open"),
    ],
)
def test_a_model_that_is_of_no_use(
    user: Run, serving: Serving, reply: Reply, code: int, message: str
) -> None:
    before = standing(user)
    outcome = user("merge", "idea", "-s", "semantic", url=serving(reply).url)
    assert (outcome.code, message in outcome.err) == (code, True), outcome.err
    assert "hint: " in outcome.err
    assert KEY not in outcome.err
    assert standing(user) == before
    assert user("merge", "--continue").code == 6  # nothing is in progress
    assert user("merge", "idea").code == 3  # an ordinary merge still works


def test_how_it_may_not_be_called(user: Run) -> None:
    for words, code, message in (
        (("-s", "semantic"), 6, "no model is configured"),
        (("-s", "semantic", "--review", "--no-review"), 2, "contradict"),
        (("--review",), 2, "--review and --no-review require -s semantic"),
    ):
        outcome = user("merge", "idea", *words)
        assert (outcome.code, message in outcome.err) == (code, True), outcome.err


def test_a_rebase_is_judged_when_that_is_asked_for(user: Run, serving: Serving) -> None:
    def judgement(question: Any) -> object:
        return {
            "warnings": [{"message": question["messages"][-1]["id"], "why": "two\x1b[2J answers"}]
        }

    server = serving(answering(judgement))
    before = standing(user)
    refused = user("rebase", "idea", "--judge")
    assert (refused.code, "no model is configured" in refused.err) == (6, True)
    assert standing(user) == before
    stopped = user("rebase", "idea", url=server.url)
    assert (stopped.code, "two-answers" in stopped.text, server.requests) == (3, True, [])
    assert user("rebase", "--abort").code == 0
    judged = user("rebase", "idea", "--judge", "-X", "theirs", url=server.url)
    assert "two\\x1b[2J answers" in judged.err
    assert "1 commit reapplied" in judged.text
    assert len(server.requests) == 1
    (record,) = [json.loads(line) for line in user("usage", "show", "--json").lines]
    assert (record["output_total"], record["model"]) == (3, "tiny-1")
    assert user("undo").code == 0
    picked = user("cherry-pick", "idea", "--judge", "--json", "-X", "theirs", url=server.url)
    (warning,) = json.loads(picked.text)["warnings"]
    assert (warning["kind"], warning["meaning"]) == ("judged", "two\x1b[2J answers")
    assert user("fsck").code == 0
