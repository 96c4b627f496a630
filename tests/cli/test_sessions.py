"""`trace sessions`: the list and the titles."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgpack
import pytest

from tests.support.command_line import Run, Trace
from trace_cli.porcelain.demo import SAMPLE
from trace_store.context import session_lists
from trace_store.context.compiled import CompiledContext
from trace_store.context.compiler import ContextCompiler

PROMPT = "The word counts are wrong"


@pytest.fixture
def session(ok: Run) -> Run:
    ok("import", "-q", str(SAMPLE))
    return ok


def listed(trace: Trace, *words: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in trace("sessions", *words, "--json").lines]


def test_a_session_is_listed_with_what_people_know_it_by(session: Trace) -> None:
    (found,) = listed(session)
    assert found["agent"] == "claude-code"
    assert str(found["prompt"]).startswith(PROMPT)
    assert (found["folder"], found["message_count"]) == ("/home/user/wordcount", 16)
    assert PROMPT in session("sessions").text
    assert session("sessions", "--plain").text.count("\t") == 5


def test_filters(session: Trace) -> None:
    assert len(listed(session, "--agent", "claude-code")) == 1
    assert not listed(session, "--agent", "codex")
    assert len(listed(session, "--folder", "/home/user")) == 1
    assert not listed(session, "--folder", "/home/use")
    assert not listed(session, "--since", "2026-03-03")
    assert len(listed(session, "--since", "2026-03-01")) == 1
    assert not listed(session, "--until", "2026-03-01")
    assert len(listed(session, "--until", "2026-03-02")) == 1, "a date is its whole day"
    assert not listed(session, "--until", "2026-03-02T00:00")
    assert len(listed(session, "--until", "last week")) == 1
    assert not listed(session, "--since", "last week")
    assert len(listed(session, "--since", "2026-03-01", "--until", "2026-03-03")) == 1
    assert session("sessions", "-n", "1").text.count(PROMPT) == 1


def test_ids_that_begin_alike_are_listed_as_far_as_they_tell_them_apart(
    session: Run, tmp_path: Path
) -> None:
    text, own = Path(SAMPLE).read_text(), listed(session)[0]["session"]
    other = f"{str(own)[:12]}5{str(own)[13:]}"
    copy = tmp_path / f"{other}.jsonl"
    copy.write_text(text.replace(str(own), other))
    session("import", "-q", str(copy))
    shown = [line.split()[0] for line in session("sessions").lines[1:]]
    assert sorted(map(len, shown)) == [13, 13]
    for each in shown:
        assert session("log", "-n", "1", each).text


@pytest.mark.parametrize("option", ["--since", "--until"])
def test_what_is_no_time_is_refused(session: Trace, trace: Trace, option: str) -> None:
    outcome = trace("sessions", option, "last blue moon")
    assert outcome.code == 2
    assert "not a time: 'last blue moon'" in outcome.err


def test_a_tip_without_a_message_shows_the_last_message(ok: Run) -> None:
    lines = Path(SAMPLE).read_text().splitlines(keepends=True)[:3]
    ends = [json.dumps({"type": "file-history-snapshot", "messageId": str(at)}) for at in range(3)]
    Path("s.jsonl").write_text("".join([*lines, "\n".join(ends), "\n"]))
    ok("import", "-q", "s.jsonl")
    assert "(metadata only)" in ok("log", "-n", "1").text
    for words in (
        ["status"],
        ["branch", "-v"],
        ["branch", "--json"],
        ["switch", "--detach", "HEAD"],
    ):
        shown = ok(*words).text
        assert "look at the code first" in shown
        assert "(metadata only)" not in shown


def test_a_filter_that_no_session_has_is_named(session: Trace) -> None:
    known = "nothing with the agent 'codex'; agents here: claude-code\n"
    assert session("sessions", "--agent", "codex").err == f"no such sessions\n{known}"
    outcome = session("sessions", "--type", "dev")
    assert outcome.err == "no such sessions\nnothing with the type 'dev'; there is no type here\n"


def test_a_title_stays_with_the_session(session: Trace) -> None:
    session("sessions", "rename", "89c6", "Word counts")
    assert "Word counts" in session("sessions").text
    session("branch", "-m", "counts")
    session("gc")
    assert session("sessions", "show", "Word counts").lines[0].endswith("Word counts")
    assert session("fsck").err == "no problems found\n"
    session("sessions", "rename", "Word counts")
    assert "Word counts" not in session("sessions").text


def test_a_title_is_one_line(repository: Trace, session: Trace) -> None:
    assert repository("sessions", "rename", "89c6", "a\nb").code == 2


def test_a_session_is_deleted_with_its_subagents(session: Trace) -> None:
    session("branch", "sessions/claude-code/x/agents/one")
    session("branch", "sessions/claude-code/x")
    assert session("sessions", "delete", "x").text == "deleted 2 branches\n"
    session("undo")
    assert len(listed(session)) == 2


def test_what_is_not_there_is_said(repository: Trace, session: Trace) -> None:
    outcome = repository("sessions", "show", "nothing")
    assert outcome.code == 4
    assert "`trace sessions` lists sessions" in outcome.err


def test_only_sessions_that_changed_are_read(
    session: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        session("branch", f"sessions/claude-code/b{number}")
    session("sessions")
    read: list[str] = []
    whole = ContextCompiler.compile

    def counting(self: ContextCompiler, ref: str, **given: Any) -> CompiledContext:
        read.append(ref)
        return whole(self, ref, **given)

    monkeypatch.setattr(ContextCompiler, "compile", counting)
    assert len(listed(session)) == 6
    assert not read
    session("commit", "--user", "more")
    assert sorted(int(str(each["message_count"])) for each in listed(session)) == [*5 * [16], 17]
    assert not read  # the new commit is enough
    session("edit", "HEAD.0", "another wording")
    session("branch", "side")
    session("commit", "--user", "here")
    session("commit", "--user", "there", "--branch", "side")
    session("merge", "side")
    read.clear()
    assert len(listed(session)) == 7
    assert not read


def test_a_prompt_that_comes_later_is_found_and_a_damaged_list_is_read_again(
    ok: Run,
) -> None:
    ok("commit", "-q", "--system", "You are terse.")
    assert not listed(ok)[0].get("prompt")
    ok("commit", "-q", "--user", "The first question")
    for number in range(21):
        ok("commit", "-q", "--assistant", f"step {number}")
    ok("commit", "-q", "--user", "Thanks")
    for _ in range(2):
        assert listed(ok)[0]["prompt"] == "The first question"
        ok("commit", "-q", "--assistant", "more")
    cache = Path(".trace/cache/sessions")
    entries: list[Any] = [[1], [[], []], "x"]
    for damage in [{}, *({"refs/heads/main": entry} for entry in entries)]:
        cache.write_bytes(msgpack.packb([session_lists.VERSION, "", damage]))
        assert listed(ok)[0]["prompt"] == "The first question"


def test_a_listing_leaves_no_index(
    session: Run,
) -> None:
    assert listed(session)[0]["message_count"] == 16
    folder = Path(".trace/index")
    assert not list(folder.glob("*"))
    session("commit", "-q", "--user", "one more")
    (grown,) = listed(session)
    assert grown["message_count"] == 17
    assert not list(folder.glob("*"))
