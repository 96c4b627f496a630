"""Compactions by an agent or a provider are listed like Trace's own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.importers.support.rollouts import lively, message
from tests.importers.support.transcripts import Transcript, text
from tests.support.command_line import Run
from tests.web.support.client import Client
from trace_store import Opaque
from trace_store.importers.import_paths import import_paths
from trace_store.repo.repository import Repo

SUMMARY = "This session is being continued. The parser drops a line."


def claude_code(folder: Path) -> str:
    t = Transcript()
    for number in range(3):
        t.user(f"Question {number}")
        t.assistant(f"msg_{number}", text("A long answer. " * 40))
    t.system("compact_boundary", parent=None, compactMetadata={"trigger": "auto"})
    t.user(SUMMARY, isCompactSummary=True, isVisibleInTranscriptOnly=True)
    t.user("Go on.")
    return t.write(folder)


def codex(folder: Path) -> str:
    r = lively()
    history = [message("user", "Fix the parser."), message("user", SUMMARY)]
    r.add("compacted", message="", replacement_history=history)
    r.says(message("assistant", "Going on."))
    return r.write(folder)


@pytest.mark.parametrize(("agent", "transcript"), [("claude-code", claude_code), ("codex", codex)])
def test_an_agent_that_compacted_its_own_session(
    agent: str, transcript: Callable[[Path], str], tmp_path: Path, ok: Run
) -> None:
    ok("import", "-q", transcript(tmp_path))
    with Repo.open(".") as repo:
        (info,) = repo.sessions.list()
        (found,) = repo.sessions.open(info.ref).history()
        assert found.summariser == agent
        commit = next(iter(repo.log(found.commit, limit=1)))
        assert found.before == repo.compile(commit.parents[0]).token_count
        assert found.after == repo.compile(found.commit).token_count
        assert found.before > found.after > 0
        page = Client(repo).part("/summary", name=info.ref.removeprefix("refs/heads/"))["html"]
    assert "The parser drops a line." in page
    assert f"1. {found.before:,} to {found.after:,} tokens by {agent}" in page
    assert f"tokens by {agent}" in ok("sessions", "compactions", info.session).text
    (record,) = map(json.loads, ok("sessions", "compactions", info.session, "--json").lines)
    assert record["summariser"] == agent


def test_a_block_into_which_a_provider_compacted() -> None:
    with Repo.memory() as repo:
        repo.append("user", "Go on.")
        assert repo.sessions.open("main").history() == []
        block = Opaque("anthropic", json.dumps({"type": "compaction", "content": "We spoke."}))
        at = repo.append("assistant", [block]).oid
        repo.append("user", "And then?")
        (found,) = repo.sessions.open("main").history()
        assert (found.commit, found.summariser) == (at, "anthropic")


def test_an_import_that_is_no_compaction_is_not_listed(tmp_path: Path) -> None:
    with Repo.init(tmp_path / "repository") as repo:
        import_paths(repo.writer, [lively().write(tmp_path)])
        (info,) = repo.sessions.list()
        assert repo.sessions.open(info.ref).history() == []
