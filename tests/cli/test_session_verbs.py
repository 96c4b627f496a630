"""`trace sessions` and `trace agents` in scripts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.command_line import Outcome, Trace, record

REPLY = {"role": "assistant", "content": [{"type": "text", "text": "Done: see src/a.py"}]}


def all_of(outcome: Outcome) -> list[dict[str, Any]]:
    return [json.loads(line) for line in outcome.lines]


def started(trace: Trace, *more: str) -> None:
    trace("init", "-q")
    assert trace("sessions", "start", "dev", "login", "--limit", "20000", *more).code == 0


def test_a_loop_from_a_script(trace: Trace, tmp_path: Path) -> None:
    started(trace, "--task", "T-1", "--description", "You write code.")
    request = record(trace("sessions", "request", "login", "Fix the test.", "--json"))
    assert "Fix the test." in json.dumps(request["body"])
    assert request["tokens"] <= request["bound"] < request["limit"] == 20_000
    assert request["done"] == request["cut"] == []
    assert "sizes" not in request
    (tmp_path / "request.json").write_text(json.dumps(request))
    (tmp_path / "reply.json").write_text(
        json.dumps({**REPLY, "usage": {"input_tokens": 3_000, "output_tokens": 4}})
    )
    added = record(
        trace(
            "sessions",
            "add",
            "login",
            "--file",
            "reply.json",
            "--request",
            "request.json",
            "--json",
        )
    )
    assert added["message_count"] == 1
    preview = record(trace("sessions", "preview", "login", "--json"))
    assert preview["total"] > 3_000


def test_what_it_prints(trace: Trace) -> None:
    started(trace)
    assert trace("sessions", "add", "login", "Fix the test.").text.endswith(" 1 message\n")
    body = json.loads(trace("sessions", "request", "login").text)
    assert body["messages"][0]["content"][0]["text"] == "Fix the test."
    assert "of 20k" in trace("sessions").text
    assert trace("sessions", "state", "login", "in_qa").text == "sessions/dev/login is in_qa\n"
    assert trace("sessions", "state", "login", "in_qa").text.startswith("nothing to do")
    assert "in_qa" in trace("sessions", "show", "login").text
    assert all_of(trace("sessions", "--task", "T-2", "--json")) == []
    assert [each["session"] for each in all_of(trace("sessions", "--type", "dev", "--json"))] == [
        "login"
    ]
    assert trace("sessions", "clear", "login").text.endswith("cleared\n")
    assert trace("sessions", "clear", "login").text == "nothing to do\n"
    assert trace("undo", "--branch", "login").code == 0
    assert "Fix the test." in trace("sessions", "summary", "login").text
    assert trace("sessions", "close", "login", "merged").text == "closed sessions/dev/login\n"
    refused = trace("sessions", "add", "login", "More.")
    assert (refused.code, "is closed (merged)" in refused.err) == (6, True)
    for more in (
        ("--branch", "sessions/dev/login"),
        ("--branch", "sessions/dev/login", "--meta", "a=b"),
    ):
        assert trace("commit", "--user", "More.", *more)[::2] == refused[::2]
    assert trace("sessions", "reopen", "login").text == "sessions/dev/login is open\n"


def test_bad_input(trace: Trace, tmp_path: Path) -> None:
    started(trace)
    assert trace("sessions", "start", "dev", "login").code != 0
    assert trace("sessions", "add", "login").code == 2
    assert trace("sessions", "add", "nobody", "x").code != 0
    (tmp_path / "bad.json").write_text("[]")
    wrong = trace("sessions", "add", "login", "x", "--request", "bad.json")
    assert "not a request of a session" in wrong.err
    assert trace("sessions", "compact", "login").code != 0
    assert trace("sessions", "request", "login").code != 0  # nothing to send


def test_agents(trace: Trace) -> None:
    started(trace)
    trace("sessions", "add", "login", "Fix the test.")
    assert "no agents" in trace("agents").err
    assert trace("agents", "spawn", "scout", "Find the bug.", "--parent", "login").text == (
        "started sessions/agent/scout\n"
    )
    (info,) = all_of(trace("agents", "--json"))
    assert (info["name"], info["state"], info["parent"]) == (
        *("scout", "waiting", "refs/heads/sessions/dev/login"),
    )
    trace("sessions", "add", "scout", "--role", "assistant", "Found it in src/a.py.")
    assert "interrupted" in trace("agents", "tree").text
    done = record(trace("agents", "collapse", "scout", "--json"))
    assert "Found it in src/a.py." in done["text"]
    assert trace("agents", "collapse", "scout").text.startswith("nothing to do")
    assert trace("agents", "expand", done["address"], "--parent", "login").text.endswith(
        "expanded\n"
    )
    assert trace("agents", "expand", done["address"], "--parent", "login").text == "nothing to do\n"
    assert "purpose:   Find the bug." in trace("agents", "show", "scout").text
    assert len(all_of(trace("agents", "timeline", "--json"))) >= 5
    assert trace("agents", "show", "nobody").code != 0


def test_status_shows_how_full_a_session_is(trace: Trace) -> None:
    started(trace)
    trace("sessions", "add", "login", "Fix the test.")
    assert "session:" not in trace("status").text
    trace("switch", "sessions/dev/login")
    assert "of 20,000 tokens\n" in trace("status").text.split("session: ")[1]
