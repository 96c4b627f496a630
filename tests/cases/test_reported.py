"""What a provider reported, as the commands show it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.importers.support.transcripts import Transcript, call, real_files, text
from tests.support.command_line import Run, Trace
from trace_store.context.compiler import ContextCompiler
from trace_store.importers.import_paths import import_paths
from trace_store.store.store import Store
from trace_store.writer import Writer

REPORT = '{"input_tokens": 12, "cache_read_input_tokens": 900, "output_tokens": 80}'


def test_a_recorded_report_counts_wherever_tokens_are_counted(ok: Run, repository: Trace) -> None:
    ok("commit", "--user", "How high is the tower?", "-q")
    ok("commit", "--assistant", "It has 300 metres.", "-q")
    ok("usage", "record", REPORT, "--model", "claude-opus-4-5")
    found = json.loads(ok("status", "--json").out)
    assert (found["token_count"], found["token_source"]) == (992, "provider:claude-opus-4-5")
    assert found["reported_token_count"] == 992
    assert 0 < found["estimated_token_count"] < 40
    said = "the last request was 992 (reported), so about"
    assert said in ok("status").text
    assert said in ok("compile", "--table").text

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
    import_paths(Writer(store), [str(path)])
    (ref,) = [
        name for name, _ in store.refs.iterate("refs/heads/sessions/") if name.count("/") == 4
    ]
    context = ContextCompiler(store).compile(ref)
    assert context.token_count == context.reported_token_count == 148_007
    assert context.token_source == "provider:claude-opus-4-5-20251101"
    assert 100_000 < context.estimated_token_count < 120_000


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
        assert 0 < found["token_count"] - edited["token_count"] <= added
        assert found["token_source"].endswith("+estimate")


def working_session(folder: Path, *, read: int) -> str:
    """Write a session of long outputs whose last request read so many tokens; return its path."""
    session = Transcript()
    session.user("Fix the parser.")
    for number in range(8):
        said = f"line {number} of the output\n" * 100
        answer = {"type": "tool_result", "tool_use_id": f"call_{number}", "content": said}
        session.assistant(f"msg_{number}", call(f"call_{number}", "Bash", command="make"))
        session.user([answer])
    session.assistant("msg_last", text("Done."), stop="end_turn", output=9, read=read)
    return session.write(folder)


def test_a_report_below_the_text_is_told_and_not_believed(ok: Run, tmp_path: Path) -> None:
    ok("import", "-q", working_session(tmp_path, read=0))
    found = json.loads(ok("status", "--json").out)
    assert found["reported_token_count"] is None
    assert found["doubted_token_count"] < 40 < found["token_count"]
    assert "are too few for them and not believed" in ok("status").text
    target = found["token_count"] // 2
    trimmed = ok("trim", "--to", str(target)).text
    assert "of the messages saved" in trimmed
    assert 0 < json.loads(ok("status", "--json").out)["token_count"] <= target


def test_percentages_say_what_they_are_of(ok: Run, tmp_path: Path) -> None:
    ok("import", "-q", working_session(tmp_path, read=40_000))
    found = json.loads(ok("status", "--json").out)
    beside = found["token_count"] - found["message_token_count"]
    said = re.search(
        r"([\d.]+)% of the messages saved; ([\d.]+)% of the request, of which about ([\d,]+) tokens are the agent's",
        ok("trim", "--percent", "50").text,
    )
    assert said is not None
    of_messages, of_request, own = (float(each.replace(",", "")) for each in said.groups())
    assert of_messages >= 50 > of_request > 0
    assert abs(own - beside) <= 50


def test_an_export_of_a_trimmed_context_has_no_usage_of_before(ok: Run, tmp_path: Path) -> None:
    ok("import", "-q", working_session(tmp_path, read=40_000))
    assert b'"usage"' in ok("export", "--format", "claude-code").out
    ok("trim", "--percent", "30")
    exported = ok("export", "--format", "claude-code")
    lines = [json.loads(line) for line in exported.out.splitlines()]
    assert "usage" not in lines[-1]["message"]
    assert "of the context before it was changed" in exported.err
    ok("commit", "--assistant", "More.", "-q")
    ok("usage", "record", REPORT, "--model", "claude-opus-4-5")
    assert b'"usage"' in ok("export", "--format", "claude-code").out.splitlines()[-1]
