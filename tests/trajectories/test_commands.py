"""`trace trajectory` on the command line."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.support.command_line import Run, Trace, first
from trace_store import Environment


@pytest.fixture
def started(ok: Run) -> Run:
    ok("commit", "-q", "--user", "Sign people in.")
    ok("tr", "start", "Sign in", "--task", "ENG-456", "--tag", "auth", "--agent", "lead", "-q")
    return ok


@pytest.mark.parametrize(
    ("words", "question", "chosen"),
    [
        (["Which?|JWT"], "Which?", "JWT"),
        (["JWT", "--question", "Which?"], "Which?", "JWT"),
        (["a|b", "--question", "Which pipe?"], "Which pipe?", "a|b"),
        (["a|b", "--question", ""], "", "a|b"),
        (["JWT"], "", "JWT"),
        (["Which? | one | two"], "Which?", "one | two"),
    ],
)
def test_a_decision_has_a_question_or_none(
    started: Run, words: list[str], question: str, chosen: str
) -> None:
    made = first(started("trajectory", "decision", *words, "--json"))
    assert (made["data"].get("question", ""), made["content"]) == (question, chosen)


def test_the_commands_from_start_to_end(started: Run) -> None:
    started("commit", "-q", "--assistant", "I will look.")
    out = started(
        *("tr", "decision", "Which token?|JWT", "--reasoning", "No session store"),
        *("--alternative", "sessions: need a store", "--confidence", "0.8"),
        *("--significance", "high"),
    ).text
    assert " decision in traj_" in out
    assert out.endswith("(Sign in)\n")
    started("tr", "chapter", "Tests", "--agent", "bo")
    started("tr", "note", "-", stdin=b"from a pipe\n")
    started("tr", "message", "--to", "bo", "ready?", "-q")
    started("tr", "message", "--from", "bo", "yes", "-q")
    started("tr", "error", "it failed", "-q")
    started("tr", "amend", "d1", "--reasoning", "No store at all", "-q")
    status = started("tr", "status").text
    for said in ("Sign in", "ENG-456", "auth", "lead, Ada, bo", "Tests", "1 decision, 1 error"):
        assert said in status
    shown = started("tr", "show").text
    for said in (
        "d1 Ada: Which token? → JWT (confidence 0.8, high, amended)",
        "No store at all",
        "not sessions: need a store",
        "to bo: ready?",
        "from bo: yes",
        "from a pipe",
    ):
        assert said in shown
    assert "I will look." not in shown
    assert "assistant: I will look." in started("tr", "show", "--events").text
    done = started("tr", "complete", "Tokens are signed", "--learning", "Clocks differ")
    assert done.err == ""
    assert "Tokens are signed" in started("tr", "show", "traj_").text
    assert started("tr", "list", "--status", "completed", "--task", "ENG-456", "-1").lines
    assert started("tr", "list", "--status", "active").lines == []
    started("tr", "reopen", "traj_")
    started("tr", "abandon", "too slow")
    assert "reason    too slow" in started("tr", "show", "traj_").text


def test_a_filter_that_no_trajectory_has_is_named(started: Run) -> None:
    for what, known in (("tag", "auth"), ("agent", "lead"), ("task", "ENG-456")):
        outcome = started("tr", "list", f"--{what}", "bogus")
        assert outcome.err == f"nothing with the {what} 'bogus'; {what}s here: {known}\n"
    assert started("tr", "list", "--tag", "auth", "--since", "2100-01-01").err == ""


def test_thinking_is_shown_on_request(started: Run) -> None:
    thought = '{"role": "assistant", "parts": [{"type": "reasoning", "text": "JWT is small."}]}'
    started("commit", "-q", "--json", stdin=thought.encode())
    started("tr", "note", "x", "-q")
    assert "JWT is small." not in started("tr", "show", "--events").text
    assert "JWT is small." in started("tr", "show", "--thinking").text
    assert "JWT is small." not in started("tr", "show", "--events", "--json").text


def test_complete_reports_what_is_missing(started: Run) -> None:
    outcome = started("tr", "complete")
    assert "no decision and no retrospective" in outcome.err
    hint = outcome.err.split("`")[1].removeprefix("trace ").split()
    started(*hint, "Looking back")
    assert "Looking back" in started("tr", "show", "traj_").text


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["note", "x", "--trajectory", "nothing"], 4, "`trace trajectory list` lists them"),
        (["reopen", "traj_"], 6, "`trace trajectory complete`"),
        (["note", ""], 2, "the text is empty"),
        (["message", "x"], 2, "--to or --from"),
        (["decision", "x", "--confidence", "high"], 2, "a number from 0 to 1, not 'high'"),
        (["amend"], 2, "nothing to change"),
        (["amend", "d7", "--content", "x"], 4, "`trace trajectory show traj_"),
        (["start", ""], 2, "the title is empty"),
        (["reflect", "--confidence", "0.5"], 2, "needs a summary"),
        (["reflect", "x", "--ask"], 2, "--ask drafts it"),
        (["reflect", "x", "--from", "-"], 2, "not both"),
        (["reflect", "--ask"], 2, "no editor is set"),
        (["reflect"], 2, "no editor is set"),
        (["list", "--since", "soon"], 2, "2 days ago"),
        (["list", "--confidence", "2"], 2, "from 0 to 1"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else None,
)
def test_errors_are_explained(
    started: Run, trace: Trace, words: list[str], code: int, said: str
) -> None:
    before = started("tr", "list", "--json").text
    outcome = trace("tr", *words)
    assert (outcome.code, outcome.text) == (code, "")
    assert said in outcome.err
    assert started("tr", "list", "--json").text == before


def test_without_a_current_trajectory_the_error_lists_the_active_ones(
    started: Run, trace: Trace
) -> None:
    started("tr", "start", "Sign out")
    outcome = trace("tr", "note", "x")
    assert outcome.code == 6
    for said in ("Sign in", "Sign out", "--trajectory or TRACE_TRAJECTORY"):
        assert said in outcome.err
    ended = started("tr", "list", "--json").lines
    for each in map(json.loads, ended):
        started("tr", "complete", "--trajectory", each["id"])
    assert trace("tr", "note", "x").code == 6
    again = trace("tr", "complete", "--trajectory", json.loads(ended[0])["id"])
    assert again.code == 6
    assert "is completed" in again.err
    assert "trace trajectory reopen traj_" in again.err


def test_texts_come_from_standard_input(started: Run) -> None:
    started("tr", "decision", "-", stdin=b"Which?|JWT,\nsigned\n")
    started("tr", "finding", "-", stdin=b"Clocks differ")
    shown = started("tr", "show").text
    assert "Which? → JWT" in shown
    assert "signed" in shown
    assert "Clocks differ" in shown


def test_after_the_end_the_last_trajectory_is_read(started: Run, trace: Trace) -> None:
    started("tr", "decision", "Which?|JWT")
    started("tr", "complete", "Done", "-q")
    for words in (["show"], ["status"], ["export"], ["score"], ["timeline"]):
        assert started("tr", *words).text
    assert trace("tr", "note", "x").code == 6


def test_a_later_retrospective_keeps_what_it_does_not_say(started: Run) -> None:
    started("tr", "reflect", "First", "--learning", "clocks differ", "--confidence", "0.5", "-q")
    started("tr", "complete", "Second", "--confidence", "0.9", "-q")
    data = first(started("tr", "show", "--json"))["retrospective"]["data"]
    assert (data["summary"], data["learnings"], data["confidence"]) == (
        *("Second", ["clocks differ"]),
        0.9,
    )


def test_a_second_start_for_a_task_says_so(started: Run) -> None:
    outcome = started("tr", "start", "ENG-456", "Again")
    assert "is active for 'Sign in', too" in outcome.err
    started("tr", "amend", "--task", "ENG-457", "--trajectory", outcome.text.split()[0])
    assert "too" not in started("tr", "start", "ENG-458", "Another").err


def test_the_same_start_again_starts_nothing(started: Run) -> None:
    known = first(started("tr", "list", "--json"))["id"]
    again = started("tr", "start", "ENG-456", "Sign in")
    assert (again.text.split()[0], again.err) == (
        *(known, "note: it is active already; nothing was started\n"),
    )
    assert len(started("tr", "list").lines) == len(
        started("tr", "list", "--status", "active").lines
    )
    assert "Sign in" in started("tr", "start", "ENG-456", "Sign in", "--agent", "another").text


def test_a_start_beside_another_says_where_events_go(started: Run, trace: Trace) -> None:
    known = first(started("tr", "list", "--json"))["id"]
    outcome = started("tr", "start", "Another")
    assert outcome.err == (
        "note: several are active here; commands need --trajectory ID or TRACE_TRAJECTORY\n"
    )
    environment = Environment(author="Ada", secrets=[("TRACE_TRAJECTORY", known)])
    said = trace("tr", "start", "A third", environment=environment).err
    assert said == f"note: events go to {known} 'Sign in', not to the new one\n"
    assert started("tr", "start", "A fourth", "-q").err == ""


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (b"", "is empty"),
        (b"[]", "is a JSON object, not list"),
        (b"{", "is not JSON"),
        (b'{"approach": "x"}', "needs a summary"),
        (b'{"summary": "x", "mood": 1}', "no 'mood'"),
        (b'{"summary": "x", "confidence": 2}', "from 0 to 1"),
        (b'{"summary": "x", "learnings": 2}', "learnings is a list"),
    ],
)
def test_an_invalid_retrospective(started: Run, trace: Trace, given: bytes, said: str) -> None:
    outcome = trace("tr", "reflect", "--from", "-", stdin=given)
    assert outcome.code == 2
    assert said in outcome.err
    assert first(started("tr", "show", "--json"))["retrospective"] is None


def editor(folder: Path, program: str) -> Environment:
    """Return an environment whose editor is a shell program that changes the file "$1"."""
    path = folder / "editor"
    path.write_text(f"#!/bin/sh\n{program}\n")
    path.chmod(0o755)
    return Environment(author="Ada", discovery=False, editor=str(path))


@pytest.mark.skipif(os.name != "posix", reason="the editor is a shell script")
def test_the_editor_has_a_template(started: Run, trace: Trace, tmp_path: Path) -> None:
    written = 'sed -i -e "s/^# Summary/&\\nDone./;s/^# Learnings.*/&\\n- one\\n- --two/" "$1"'
    outcome = trace("tr", "reflect", environment=editor(tmp_path, written))
    assert outcome.code == 0, outcome.err
    data = first(started("tr", "show", "--json"))["retrospective"]["data"]
    assert (data["summary"], data["learnings"]) == ("Done.", ["one", "--two"])
    untouched = trace("tr", "reflect", environment=editor(tmp_path, "true"))
    assert (untouched.code, untouched.text) == (2, "")
    assert "the summary is empty" in untouched.err
    wrong = 'printf "# Summary\\nDone again.\\n# Confidence (0 to 1)\\nvery\\n" > "$1"'
    kept = trace("tr", "reflect", environment=editor(tmp_path, wrong))
    assert kept.code == 2
    assert "from 0 to 1" in kept.err
    path = kept.err.rsplit(" ", 1)[1].strip()
    assert "Done again." in (tmp_path / path).read_text()


def test_a_terminal_shows_no_control_characters(started: Run) -> None:
    evil = "\x1b[2J\u202e\x07"
    started("tr", "start", f"t{evil}", "--role", evil, "--description", evil, "--task", evil)
    listed = first(started("tr", "list", "--json"))["id"]
    told: list[tuple[str, ...]] = [
        ("decision", f"q{evil}|c{evil}", "--reasoning", evil, "--alternative", f"o{evil}: r{evil}"),
        ("chapter", f"c{evil}"),
        ("finding", f"f{evil}", "--tag", f"t{evil}"),
        ("message", f"m{evil}", "--to", f"b{evil}"),
        ("reflect", f"s{evil}", "--learning", f"l{evil}"),
    ]
    for words in told:
        started("tr", *words, "--trajectory", listed, "-q")
    views: list[tuple[str, ...]] = [("status", "--trajectory", listed), ("show", listed), ("list",)]
    for words in views:
        shown = started("tr", *words, terminal=True).text.replace("\x1b[", "")
        assert not {"\x1b", "\u202e", "\x07"} & set(started("tr", *words).text)
        assert not {"\u202e", "\x07"} & set(shown)
