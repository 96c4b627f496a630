"""`trim`, `dedupe` and `suggest` on the command line: exit codes, JSON, choices, bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.compression.support.agent_session import agent_session
from tests.support.command_line import Run
from trace_store import Repo

PARTIAL = ["trim", "--to", "10", "--partial"]


@pytest.fixture
def session(trace: Run, ok: Run, tmp_path: Path) -> None:
    with Repo.open(tmp_path) as repo:
        agent_session(repo)


@pytest.mark.usefixtures("session")
def test_a_dry_run_writes_nothing_and_tells_whether_the_target_is_met(trace: Run, ok: Run) -> None:
    tip = ok("rev-parse", "HEAD").out
    found = json.loads(ok("trim", "--percent", "50", "--dry-run", "--json").lines[0])
    assert found["met"]
    assert found["after"] <= found["target"] < found["before"]
    assert found["commit"] is None
    assert trace("trim", "--to", "10", "--dry-run").code != 0
    assert ok("rev-parse", "HEAD").out == tip


@pytest.mark.usefixtures("session")
def test_a_trim_is_one_commit_and_undone(ok: Run) -> None:
    before = ok("compile").out
    ok("trim", "--percent", "50", "-m", "half")
    assert "half" in ok("log", "-n", "1").out.decode()
    ok("undo")
    assert ok("compile").out == before


@pytest.mark.usefixtures("session")
@pytest.mark.parametrize("words", [["trim", "--percent", "50"], PARTIAL, ["dedupe"]])
def test_the_tokens_before_and_after_are_those_of_the_context(ok: Run, words: list[str]) -> None:
    def tokens() -> int:
        return int(json.loads(ok("compile", "--table", "--json").out)["token_count"])

    before = tokens()
    planned = json.loads(ok(*words[:3], "--dry-run", "--json").out) if words != PARTIAL else None
    found = json.loads(ok(*words, "--json").out)
    after = tokens()
    assert (found["before"], found["after"]) == (before, after)
    assert planned is None or (planned["before"], planned["after"]) == (before, after)
    ok("undo")
    said = ok(*words).lines
    assert said[-2].split() == ["resulting", "context", f"{after:,}"]
    share = f"{(before - after) / before:.1%}"
    assert f" {before:,} to {after:,} tokens: {share} of the messages saved" in said[-1]


@pytest.mark.usefixtures("session")
def test_a_target_out_of_reach_names_the_smallest(trace: Run) -> None:
    refused = trace("trim", "--to", "10")
    assert refused.code != 0
    assert "the smallest possible is" in refused.err


@pytest.mark.usefixtures("session")
def test_dedupe_points_to_the_newest(ok: Run) -> None:
    found = json.loads(ok("dedupe", "--json").lines[0])
    assert {step["reason"] for step in found["steps"]} == {"superseded", "duplicate"}
    assert "was read again in" in ok("compile").out.decode()


@pytest.mark.usefixtures("session")
def test_chosen_proposals_are_carried_out(ok: Run) -> None:
    listed = json.loads(ok("suggest", "--json").lines[0])["proposals"]
    assert len(listed) > 3
    done = json.loads(ok("suggest", "--apply", "1,2-3", "--json").lines[0])
    assert done["applied"] == 3
    left = json.loads(ok("suggest", "--json").lines[0])["proposals"]
    assert len(left) < len(listed)


@pytest.mark.usefixtures("session")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["trim"], "--to TOKENS or --percent N"),
        (["trim", "--percent", "100"], "1 to 99"),
        (["trim", "HEAD~2..", "--from", "HEAD.0", "--to", "1k"], "leave one out"),
        (["trim", "--to", "1k", "-b", "nosuch"], "nosuch"),
        (["suggest", "--apply", "99"], "99 is not among them"),
        (["suggest", "--apply", "one"], "takes numbers"),
        (["suggest", "-b", "nosuch"], "nosuch"),
    ],
)
def test_bad_input(trace: Run, words: list[str], said: str) -> None:
    refused = trace(*words)
    assert refused.code != 0
    assert said in refused.err
    assert not refused.out
