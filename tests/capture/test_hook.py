"""What the hook of an agent does: one line, no output, exit code 0."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.capture.support.places import environment_in
from trace_cli.main import main
from trace_cli.plumbing import hook
from trace_cli.runtime import Invocation
from trace_store import Repo, briefing, capture
from trace_store.base.environment import Environment
from trace_store.capture.spool import AGENTS, MAXIMUM_SPOOL_BYTES, AgentEvent

ROOT = Path(__file__).resolve().parents[2]
INPUTS = Path(__file__).parent / "inputs"


@pytest.fixture
def user(tmp_path: Path) -> Environment:
    return environment_in(tmp_path / "home")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    Repo.init(folder).close()
    return folder


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the repositories for which a worker would be started."""
    roots: list[str] = []
    monkeypatch.setattr(hook, "_start_worker", roots.append)
    return roots


def run(user: Environment, *words: str, stdin: bytes) -> None:
    """Run a hook, which has to be silent and to succeed."""
    assert printed(user, *words, stdin=stdin) == ""


def printed(user: Environment, *words: str, stdin: bytes) -> str:
    """Run a hook, which has to succeed, and return what its agent reads."""
    output, error = io.BytesIO(), io.BytesIO()
    invocation = Invocation(
        environment=user, output=output, error=error, input=io.BytesIO(stdin), terminal=False
    )
    assert main(["hook", *words], invocation) == 0
    assert error.getvalue() == b""
    return output.getvalue().decode()


def recorded(agent: str, user: Environment, project: Path) -> list[bytes]:
    """Return the inputs of a session's hooks, as an agent wrote them."""
    text = (INPUTS / f"{agent}.jsonl").read_text()
    return [
        line.replace("HOME", user.home).replace("PROJECT", str(project)).encode()
        for line in text.splitlines()
    ]


def spool(project: Path) -> list[AgentEvent]:
    path = project / ".trace" / "local" / "spool"
    lines = path.read_text().splitlines() if path.exists() else []
    events = [AgentEvent.read(line) for line in lines]
    return [event for event in events if event is not None]


@pytest.mark.parametrize("agent", AGENTS)
def test_each_event_leaves_a_line_without_prompts_or_outputs(
    user: Environment, project: Path, started: list[str], agent: str
) -> None:
    inputs = recorded(agent, user, project)
    for each in inputs:
        run(user, agent, stdin=each)
    events = spool(project)
    assert len(events) == len(started) == len(inputs)
    assert {each.agent for each in events} == {agent}
    assert len({each.session for each in events}) == 1
    assert all(each.time for each in events)
    assert "secret" not in (project / ".trace" / "local" / "spool").read_text()
    if agent not in ("copilot", "opencode"):
        assert all(each.transcript.startswith(user.home) for each in events)


@pytest.mark.parametrize(
    ("stdin", "reason"),
    [
        (b"", "unreadable-input"),
        (b'{"session_id": "a", "cw', "unreadable-input"),
        (b"not JSON", "unreadable-input"),
        (b"[1]", "unreadable-input"),
        (b"[" * 100_000, "unreadable-input"),
        (b'{"session_id": "a", "cwd": "/nowhere/at/all"}', "no-repository"),
        (b'{"session_id": "a"}', "no-repository"),
    ],
)
def test_input_that_names_no_repository_is_counted(
    user: Environment, started: list[str], stdin: bytes, reason: str
) -> None:
    run(user, "claude-code", stdin=stdin)
    assert [each.reason for each in capture.read_missed(user)] == [reason]
    assert started == []


def test_names_and_options_of_other_versions_do_nothing(
    user: Environment, project: Path, started: list[str]
) -> None:
    given = json.dumps({"session_id": "a", "cwd": str(project)}).encode()
    for words in (
        ["future-agent"],
        ["sync-if-dirty", "--now"],
        ["--all"],
        ["claude-code", "--new"],
    ):
        run(user, *words, stdin=given)
    assert [each.reason for each in capture.read_missed(user)] == ["unknown-agent"] * 3
    assert len(spool(project)) == len(started) == 1


def test_fields_of_another_type_are_left_out(
    user: Environment, project: Path, started: list[str]
) -> None:
    given = {
        "session_id": 1,
        "transcript_path": ["x"],
        "hook_event_name": None,
        "cwd": str(project),
    }
    run(user, "codex", stdin=json.dumps(given).encode())
    assert [(each.session, each.transcript, each.event) for each in spool(project)] == [
        ("", "", "")
    ]


def test_a_very_long_input_costs_no_event(
    user: Environment, project: Path, started: list[str]
) -> None:
    given = {"session_id": "a", "cwd": str(project), "prompt": "x" * (50 << 20)}
    run(user, "claude-code", stdin=json.dumps(given).encode())
    assert [each.session for each in spool(project)] == ["a"]
    assert (project / ".trace" / "local" / "spool").stat().st_size < 1000


def test_the_folder_in_which_a_session_began_counts(
    tmp_path: Path, project: Path, started: list[str]
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    user = Environment.read({"HOME": str(tmp_path / "home"), "CLAUDE_PROJECT_DIR": str(project)})
    given = json.dumps({"session_id": "a", "cwd": str(elsewhere)}).encode()
    run(user, "claude-code", stdin=given)
    assert len(spool(project)) == 1
    run(user, "codex", stdin=given)
    assert [each.reason for each in capture.read_missed(user)] == ["no-repository"]


def test_personal_takes_what_no_repository_has(
    user: Environment, tmp_path: Path, started: list[str]
) -> None:
    given = json.dumps({"session_id": "a", "cwd": str(tmp_path)}).encode()
    run(user, "codex", "--personal", stdin=given)
    assert len(capture.read_missed(user)) == 1
    own = Path(capture.personal_folder(user))
    Repo.init(own).close()
    run(user, "codex", "--personal", stdin=given)
    run(user, "codex", stdin=given)
    assert len(spool(own)) == 1
    assert len(capture.read_missed(user)) == 2


def test_a_repository_that_cannot_be_written_is_counted(
    user: Environment, project: Path, started: list[str]
) -> None:
    (project / ".trace" / "local" / "spool").mkdir(parents=True)
    run(user, "codex", stdin=json.dumps({"session_id": "a", "cwd": str(project)}).encode())
    assert [each.reason for each in capture.read_missed(user)] == ["storage"]
    assert started == []


def test_a_spool_that_nobody_reads_stops_growing(
    user: Environment, project: Path, started: list[str]
) -> None:
    path = project / ".trace" / "local" / "spool"
    path.parent.mkdir(exist_ok=True)
    with path.open("wb") as file:
        file.truncate(MAXIMUM_SPOOL_BYTES + 1)
    run(user, "codex", stdin=json.dumps({"session_id": "a", "cwd": str(project)}).encode())
    assert [each.reason for each in capture.read_missed(user)] == ["spool-full"]


def test_the_log_of_missed_events_stays_small(user: Environment, started: list[str]) -> None:
    line = json.dumps({"session_id": "a" * 3000, "cwd": "/nowhere/at/all"}).encode()
    for _ in range(250):
        run(user, "codex", stdin=line)
    folder = Path(user.data_dir) / "trace"
    assert sum(path.stat().st_size for path in folder.iterdir()) < 600_000
    assert capture.read_missed(user)


def test_a_hook_starts_one_worker_and_does_not_wait_for_it(
    user: Environment, project: Path, tmp_path: Path
) -> None:
    transcript = tmp_path / "s.jsonl"
    [sample] = (ROOT / "trace_store" / "samples").glob("*.jsonl")
    transcript.write_bytes(sample.read_bytes())
    given = {"session_id": "a", "transcript_path": str(transcript), "cwd": str(project)}
    command = [sys.executable, "-P", "-m", "trace_cli", "hook", "claude-code"]
    variables = {"HOME": user.home, "PYTHONPATH": f"{ROOT}:{ROOT / 'cli'}", "TRACE_AUTHOR": "Ada"}
    for _ in range(2):
        done = subprocess.run(
            command,
            input=json.dumps(given).encode(),
            env=variables,
            capture_output=True,
            check=True,
        )
        assert done.stdout + done.stderr == b""
    end = time.monotonic() + 30
    with Repo.open(project) as repo:
        while not [*repo.store.refs.iterate("refs/heads/sessions/")] and time.monotonic() < end:
            time.sleep(0.05)
        assert len(repo.sessions.list()) == 1
    os.rename(project, tmp_path / "moved")  # the worker ends


def test_a_session_begins_with_a_brief_where_the_user_allowed_it(
    user: Environment, project: Path, started: list[str]
) -> None:
    with Repo.open(project, environment=user) as repo:
        repo.trajectories.start("Choose a parser")
        repo.trajectories.decide("Which parser?", "the small one", reasoning="it is enough")
        permission = briefing.BriefPermission(repo.store, user)

    def begin(agent: str = "codex", **fields: str) -> str:
        given = {"hook_event_name": "SessionStart", "session_id": "s", "cwd": str(project)}
        return printed(user, agent, "--brief", stdin=json.dumps({**given, **fields}).encode())

    assert begin() == ""
    permission.grant()
    output = json.loads(begin("claude-code", source="startup"))["hookSpecificOutput"]
    assert output["hookEventName"] == "SessionStart"
    assert "the small one" in output["additionalContext"]
    assert begin(source="resume") == ""
    assert begin(hook_event_name="Stop") == ""
    assert begin("gemini") == ""
    assert len(started) == len(spool(project)) == 5


def test_the_hook_loads_little() -> None:
    """A login shell, the interpreter and this; `docs/hooks.md` says what it costs."""
    script = (
        "import sys; before = set(sys.modules); import trace_cli.main, trace_cli.plumbing.hook\n"
    )
    script += "print(*sorted(set(sys.modules) - before))"
    paths = {"PYTHONPATH": f"{ROOT}:{ROOT / 'cli'}"}
    found = subprocess.run(
        [sys.executable, "-c", script], env=paths, capture_output=True, text=True, check=True
    ).stdout.split()
    assert sum(name.startswith("trace_") for name in found) <= 26
    heavy = {"typing", "dataclasses", "subprocess", "logging", "pathlib", "threading", "typer"}
    assert not heavy & {*found}
    assert not [
        name for name in found if name.startswith(("trace_store.importers", "trace_store.repo"))
    ]
