"""What a provider reported, as the commands show it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.importers.support.transcripts import Transcript, real_files, text
from tests.support.command_line import Run, Trace
from trace_store.context.compiler import ContextCompiler
from trace_store.importers.import_file import import_paths
from trace_store.store.handle import Store

REPORT = '{"input_tokens": 12, "cache_read_input_tokens": 900, "output_tokens": 80}'


def test_a_recorded_report_counts_wherever_tokens_are_counted(ok: Run, repository: Trace) -> None:
    ok("commit", "--user", "How high is the tower?", "-q")
    ok("commit", "--assistant", "It has 300 metres.", "-q")
    ok("usage", "record", REPORT, "--model", "claude-opus-4-5")
    found = json.loads(ok("status", "--json").out)
    assert (found["token_count"], found["token_source"]) == (992, "provider:claude-opus-4-5")
    assert found["reported_token_count"] == 992
    assert 0 < found["estimated_token_count"] < 40
    assert "992 tokens (provider:claude-opus-4-5); estimate: " in ok("status").text
    assert "992 tokens (provider:claude-opus-4-5); estimate: " in ok("compile", "--table").text

    ok("commit", "--user", "And how wide?", "-q")
    later = json.loads(ok("compile", "--json").out)
    assert later["token_source"] == "provider:claude-opus-4-5+estimate"
    added = later["estimated_token_count"] - found["estimated_token_count"]
    assert later["token_count"] == 992 + added
    log = [json.loads(line) for line in ok("log", "--tokens", "--json").lines]
    assert [each["token_count"] for each in log[:2]] == [992 + added, 992]
    assert log[0]["tokens_added"] == added
    assert log[1]["token_source"] == "provider:claude-opus-4-5"

    ok("config", "budget", "500")
    assert "of 500 tokens" in ok("status").text
    refused = repository("compile", "--strict")
    assert refused.code != 0
    assert f"the context has {992 + added:,} tokens, and its budget is 500" in refused.err
    ok("config", "budget", "2000")
    ok("compile", "--strict")


def test_an_imported_session_shows_both_figures(ok: Run, tmp_path: Path) -> None:
    session = Transcript()
    session.user("Read the parser.")
    session.assistant("msg_1", text("It splits at newlines."), stop="end_turn", output=9)
    ok("import", session.write(tmp_path))
    (row,) = [json.loads(line) for line in ok("sessions", "--json").lines if '"claude' in line]
    assert row["token_source"].startswith("provider:claude")
    assert row["token_count"] == 132 > row["estimated_token_count"] > 0
    shown = ok("sessions", "show", row["session"]).text
    assert f"estimate: {row['estimated_token_count']}" in shown


@pytest.mark.parametrize(
    "path", [each for each in real_files() if each.stem == "cc-2.1.29-image-block"]
)
def test_a_real_session_has_the_size_that_was_reported(path: Path) -> None:
    store = Store.memory()
    import_paths(store, [str(path)])
    (ref,) = [
        name for name, _ in store.refs.iterate("refs/heads/sessions/") if name.count("/") == 4
    ]
    context = ContextCompiler(store).compile(ref)
    assert context.token_count == context.reported_token_count == 148_007
    assert context.token_source == "provider:claude-opus-4-5-20251101"
    assert 80_000 < context.estimated_token_count < 95_000


def test_a_report_on_a_context_that_was_changed_here_does_not_count(
    ok: Run, tmp_path: Path
) -> None:
    session = Transcript()
    session.user("Read the parser.")
    session.assistant("msg_1", text("It splits at newlines. " * 20), stop="end_turn", output=9)
    path = session.write(tmp_path)
    ok("import", path)
    ok("edit", "HEAD.0", "It splits.")
    edited = json.loads(ok("status", "--json").out)
    session.user("And at blanks?")
    for number in (2, 3):
        session.assistant(f"msg_{number}", text("Yes."), stop="end_turn", output=9)
        session.write(tmp_path)
        ok("import", path)
        found = json.loads(ok("status", "--json").out)
        added = found["estimated_token_count"] - edited["estimated_token_count"]
        assert found["token_count"] == edited["token_count"] + added
        assert found["token_source"].endswith("+estimate")
