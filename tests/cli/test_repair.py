"""`trace repair`: output for people and programs, and exit codes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import Outcome, Run, Trace
from trace_cli.porcelain.demo import SAMPLE
from trace_store.base.environment import Environment
from trace_store.context.faults import PROVIDERS

BROKEN = json.dumps(
    [
        {"role": "user", "content": "Plan the release."},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "call_1",
                    "type": "function",
                    "function": {"name": "read", "arguments": "{}"},
                }
            ],
        },
        {"role": "user", "content": "Hurry."},
    ]
)


@pytest.fixture
def broken(ok: Run) -> Run:
    """Run a command that has to succeed, on a branch that has a call without a result."""
    ok("commit", "-q", "--json", stdin=BROKEN.encode())
    return ok


@pytest.fixture
def torn(tmp_path: Path) -> Path:
    """The sample transcript, truncated within its next-to-last result."""
    path = tmp_path / "session.jsonl"
    lines = Path(SAMPLE).read_bytes().splitlines(keepends=True)
    last = max(n for n, line in enumerate(lines) if b'"tool_result"' in line)
    path.write_bytes(b"".join(lines[:last]) + lines[last][:200])
    return path


def records(outcome: Outcome) -> list[dict[str, Any]]:
    return [json.loads(line) for line in outcome.lines]


def test_a_repair_names_each_finding_and_the_branch(broken: Run) -> None:
    commit = broken("rev-parse", "--short", "main").text.strip()
    outcome = broken("repair")
    wrong = "call 'call_1' has no result in the context; an error result added"
    assert outcome.lines[0] == f"{commit}.0 orphan-call: {wrong}".replace(".0 ", ".1 ")
    repaired = broken("rev-parse", "--short", "repaired/main").text.strip()
    takers = ", ".join(PROVIDERS)
    assert outcome.lines[1] == (
        f"1 fault: repaired as repaired/main at {repaired}, valid for {takers}"
    )
    assert broken("rev-parse", "--short", "main").text.strip() == commit
    assert broken("compile", "repaired/main", "--strict", "-f", "openai").out
    assert broken("status", "--json").text.count('"unsealed_transactions": 0')


def test_a_sound_context_is_told_on_standard_error(broken: Run) -> None:
    broken("repair")
    takers = ", ".join(PROVIDERS)
    again = broken("repair", "main")
    assert (again.code, again.out) == (0, b"")
    assert again.err == (
        f"nothing to repair: repaired/main continues main and is valid for {takers}\n"
    )
    sound = broken("repair", "repaired/main")
    assert sound.err == f"nothing to repair: repaired/main is valid for {takers}\n"


def test_a_dry_run_is_a_check(broken: Run, trace: Trace) -> None:
    outcome = trace("repair", "--dry-run")
    assert outcome.code == 7
    assert outcome.lines[-1] == "1 fault: main would be repaired as repaired/main"
    assert trace("repair", "-n", "-q") == (7, b"", "")
    assert "repaired" not in broken("for-each-ref").text
    broken("repair")
    assert trace("repair", "-n").code == 0
    assert trace("repair", "-n", "repaired/main").code == 0


def test_for_programs(broken: Run) -> None:
    commit = broken("rev-parse", "main").text.strip()
    (record,) = records(broken("repair", "--json"))
    (fault,) = record["faults"]
    assert fault == {
        "code": "orphan-call",
        "address": f"{commit[:32]}.1",
        "position": 1,
        "detail": "call 'call_1' has no result in the context",
        "done": "an error result added",
        "providers": list(PROVIDERS),
    }
    assert record["outcome"] == "repaired"
    assert record["repaired"] == "refs/heads/repaired/main"
    assert record["repair_commit"] == broken("rev-parse", "repaired/main").text.strip()
    (record,) = records(broken("repair", "--json"))
    assert (record["outcome"], record["repair_commit"]) == ("repaired-before", None)
    (record,) = records(broken("repair", "--json", "repaired/main"))
    assert (record["outcome"], record["faults"], record["repaired"]) == ("sound", [], None)
    assert set(record["adaptations"]) == set(PROVIDERS)


def test_only_what_one_provider_refuses(ok: Run) -> None:
    ok("commit", "-q", "--assistant", "Hello.")
    assert "valid for openai\n" in ok("repair", "--provider", "openai").err
    outcome = ok("repair", "--provider", "anthropic", "--provider", "openai")
    assert "leading-assistant: the conversation begins with the assistant (" in outcome.lines[0]
    assert outcome.lines[-1].endswith("valid for anthropic, openai")


def test_in_place(broken: Run) -> None:
    broken("repair", "--in-place")
    assert broken("for-each-ref", "--format", "%(refname)").lines == ["refs/heads/main"]
    assert "orphan-call" in broken("log", "-n", "1", "--full").text


def test_a_session_is_known_by_the_beginning_of_its_id(ok: Run, torn: Path) -> None:
    ok("import", "-q", torn.name)
    (branch,) = ok("for-each-ref", "--format", "%(refname)", "refs/heads").lines
    session = branch.rpartition("/")[2]
    outcome = ok("repair", session[:8])
    assert f"repaired as repaired/sessions/claude-code/{session} at" in outcome.text


def test_a_file_is_imported_and_repaired(ok: Run, torn: Path) -> None:
    outcome = ok("repair", "--file", torn.name)
    assert outcome.lines[0].startswith("session.jsonl: ")
    assert "skipped, unfinished-line" in outcome.err
    assert "orphan-call" in outcome.text
    assert len(ok("for-each-ref", "refs/heads/repaired").lines) == 1
    (record,) = records(ok("repair", "--file", torn.name, "--json"))
    assert (record["outcome"], record["skips"][0][1]) == ("repaired-before", "unfinished-line")


def test_a_file_can_be_checked_without_a_repository(trace: Trace, torn: Path) -> None:
    outcome = trace("repair", "--dry-run", "--file", torn.name, "--json")
    assert outcome.code == 7
    (record,) = records(outcome)
    assert [fault["code"] for fault in record["faults"]] == ["orphan-call"]
    assert [skip[1] for skip in record["skips"]] == ["unfinished-line"]
    assert sorted(path.name for path in torn.parent.iterdir()) == ["session.jsonl"]
    shutil.copyfile(SAMPLE, torn)
    assert trace("repair", "--dry-run", "--file", torn.name).code == 0
    assert trace("repair", "-n", "-q", "--file", "-", stdin=torn.read_bytes()).code == 0


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["repair", "nothing-like-it"], 4, "nothing-like-it"),
        (["repair", "--provider", "nobody"], 2, "unknown provider 'nobody'"),
        (["repair", "--file", "a.jsonl", "main"], 2, "--file"),
        (["repair", "--format", "claude-code"], 2, "--format requires --file"),
        (["repair", "--file", "not-there.jsonl"], 2, "not-there.jsonl"),
        (["repair", "main~0", "--in-place"], 2, "is not a branch"),
    ],
)
def test_bad_calls(broken: Run, trace: Trace, words: list[str], code: int, said: str) -> None:
    outcome = trace(*words)
    assert outcome.code == code
    assert said in outcome.err
    assert "Traceback" not in outcome.err
    assert "repaired" not in broken("for-each-ref").text


def test_an_empty_branch(repository: Trace) -> None:
    assert repository("repair").code == 6


def test_outside_of_a_repository(trace: Trace) -> None:
    assert trace("repair", environment=Environment(author="Ada", discovery=False)).code == 10


def test_what_a_terminal_would_obey_is_escaped(ok: Run) -> None:
    call = {"id": "\x1b[2Jx", "type": "function", "function": {"name": "r", "arguments": "{}"}}
    context = [{"role": "user", "content": "Go."}, {"role": "assistant", "tool_calls": [call]}]
    ok("commit", "-q", "--json", stdin=json.dumps(context).encode())
    assert "\x1b[2J" not in ok("repair", terminal=True).text
