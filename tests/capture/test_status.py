"""`trace hooks status`: what keeps hooks from working is found, and a healthy installation has no problem."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.capture.support.places import JSON_AGENTS, environment_in, file_of
from tests.support.command_line import Trace
from trace_store import Repo, capture
from trace_store.base.environment import Environment
from trace_store.capture import capture_status, install_hooks, uninstall_hooks
from trace_store.capture.codex_trust import codex_hash
from trace_store.capture.spool import AGENTS

HERE = [sys.executable, "-m", "trace_cli"]
"""A command whose program exists."""


@pytest.fixture
def user(tmp_path: Path) -> Environment:
    return environment_in(tmp_path / "home")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "project"
    place.mkdir()
    return place


def codes(user: Environment, folder: Path) -> list[str]:
    return [each.code for each in capture_status(user, folder=str(folder)).problems]


def states(user: Environment, folder: Path) -> dict[str, str]:
    found = capture_status(user, folder=str(folder)).hooks
    return {each.agent: each.state for each in found if each.scope == "user"}


def edit(path: Path, **more: Any) -> None:
    settings = json.loads(path.read_text()) if path.exists() else {}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**settings, **more}))


def trust_in_codex(user: Environment, *, leaving: str = "") -> None:
    """Let the user trust our hooks in Codex, as its command /hooks does."""
    path = file_of(user, "codex")
    lines = []
    for event, groups in json.loads(path.read_text())["hooks"].items():
        snake = "".join(f"_{c.lower()}" if c.isupper() else c for c in event).strip("_")
        lines.append(f"[hooks.state.{json.dumps(f'{path}:{snake}:0:0')}]")
        trusted = codex_hash(event, groups[0]["hooks"][0]) if event != leaving else "sha256:0"
        lines.append(f'trusted_hash = "{trusted}"')
    path.with_name("config.toml").write_text("\n".join(lines) + "\n")


def test_nothing_is_installed_and_nothing_is_wrong(user: Environment, folder: Path) -> None:
    assert states(user, folder) == dict.fromkeys(AGENTS, "missing")
    assert codes(user, folder) == []


def test_all_is_installed_and_nothing_is_wrong(user: Environment, folder: Path) -> None:
    install_hooks(user, AGENTS, HERE)
    trust_in_codex(user)
    assert states(user, folder) == dict.fromkeys(AGENTS, "installed")
    assert codes(user, folder) == []
    uninstall_hooks(user)
    assert codes(user, folder) == []


def test_the_hash_by_which_codex_trusts_a_hook() -> None:
    """As `hooks/list` of the app server of Codex 0.171.0 prints it."""
    handler = {"type": "command", "command": "/opt/bin/trace hook codex", "timeout": 10}
    start = "93e1a79e21e9b2771cd64f6028967aa4499f1e5c2bffc028b0fc0092c437b89a"
    end = "accc15f7ce7465665f824b3acd152bb656c4ae3383a295d1cf35f6a3eec76fd8"
    assert codex_hash("SessionStart", handler) == f"sha256:{start}"
    assert codex_hash("SessionEnd", {**handler, "timeout": 3}) == f"sha256:{end}"


def test_hooks_that_codex_does_not_trust(user: Environment, folder: Path) -> None:
    install_hooks(user, ["codex"], HERE)
    assert codes(user, folder) == ["hooks-untrusted"]
    trust_in_codex(user, leaving="Stop")
    [problem] = capture_status(user, folder=str(folder)).problems
    assert "for Stop yet" in problem.detail
    trust_in_codex(user)
    install_hooks(user, ["codex"], [sys.executable, "-m", "trace_cli"], personal=True)
    assert codes(user, folder) == ["hooks-untrusted"]  # another command


CODEX_SETTINGS = """model = "o4"  # mine

[features]
hooks = true"""


@pytest.mark.parametrize("before", ["", CODEX_SETTINGS, CODEX_SETTINGS + "\n"])
def test_trust_in_codex_is_written_if_the_user_asks_for_it_and_taken_out(
    user: Environment, folder: Path, before: str
) -> None:
    config = file_of(user, "codex").with_name("config.toml")
    config.parent.mkdir(parents=True)
    if before:
        config.write_text(before)
    planned = install_hooks(user, ["codex"], HERE, trust=True, dry_run=True)
    assert "+trusted_hash = " in planned[1].difference
    assert (config.read_text() if before else config.exists()) == (before or False)
    hooks, trust = install_hooks(user, ["codex"], HERE, trust=True)
    assert trust.difference == planned[1].difference
    assert codes(user, folder) == []
    again = install_hooks(user, ["codex"], HERE, trust=True)
    assert [each.action for each in again] == ["unchanged", "unchanged"]
    install_hooks(user, ["codex"], HERE, trust=True, personal=True)  # another command
    assert codes(user, folder) == []
    assert [each.path for each in uninstall_hooks(user)] == [hooks.path, trust.path]
    assert (config.read_text() if before else config.exists()) == (before or False)


def test_what_codex_keeps_beside_our_trust_stays(user: Environment, folder: Path) -> None:
    path = file_of(user, "codex")
    config = path.with_name("config.toml")
    config.parent.mkdir(parents=True)
    other = f"[hooks.state.'{path}:stop:0:0']\nenabled = true\ntrusted_hash = \"sha256:0\"\n"
    config.write_text(f'{other}\n[projects."/demo"]\ntrust_level = "trusted"\n')
    install_hooks(user, ["codex"], HERE, trust=True)
    assert codes(user, folder) == []
    config.write_text(config.read_text() + "\n[tui]\n")
    uninstall_hooks(user)
    left = tomllib.loads(config.read_text())
    assert left["hooks"]["state"] == {f"{path}:stop:0:0": {"enabled": True}}
    assert left["projects"]["/demo"] == {"trust_level": "trusted"}


@pytest.mark.parametrize("text", ["= 1", "hooks = {state = {}}\n", "[hooks]\nstate = 3\n"])
def test_settings_of_codex_that_cannot_be_edited_stay(user: Environment, text: str) -> None:
    config = file_of(user, "codex").with_name("config.toml")
    config.parent.mkdir(parents=True)
    config.write_text(text)
    _, trust = install_hooks(user, ["codex"], HERE, trust=True)
    assert trust.action == "refused"
    assert config.read_text() == text


def test_trust_that_was_not_asked_for_is_not_touched(user: Environment) -> None:
    install_hooks(user, ["codex"], HERE)
    trust_in_codex(user)
    config = file_of(user, "codex").with_name("config.toml")
    before = config.read_text()
    uninstall_hooks(user)
    assert config.read_text() == before


@pytest.mark.parametrize(
    ("agent", "name", "settings"),
    [
        ("claude-code", ".claude/settings.json", {"disableAllHooks": True}),
        ("gemini", ".gemini/settings.json", {"hooksConfig": {"enabled": False}}),
        ("gemini", ".gemini/settings.json", {"hooksConfig": {"disabled": ["trace"]}}),
        ("copilot", ".copilot/settings.json", {"disableAllHooks": True}),
    ],
)
def test_hooks_that_are_turned_off(
    user: Environment, folder: Path, agent: str, name: str, settings: dict[str, Any]
) -> None:
    install_hooks(user, [agent], HERE)
    edit(Path(user.home) / name, **settings)
    assert codes(user, folder) == ["hooks-disabled"]


def test_hooks_that_a_project_or_codex_turns_off(user: Environment, folder: Path) -> None:
    install_hooks(user, ["claude-code", "codex"], HERE)
    trust_in_codex(user)
    edit(folder / ".claude" / "settings.local.json", disableAllHooks=True)
    config = file_of(user, "codex").with_name("config.toml")
    config.write_text(f"[features]\nhooks = false\n{config.read_text()}")
    assert codes(user, folder) == ["hooks-disabled", "hooks-disabled"]


def test_a_folder_that_gemini_does_not_trust(user: Environment, folder: Path) -> None:
    install_hooks(user, ["gemini"], HERE, folder=str(folder), scope="project")
    assert codes(user, folder) == ["hooks-folder"]
    trusted = Path(user.home) / ".gemini" / "trustedFolders.json"
    edit(trusted, **{str(folder.parent): "TRUST_FOLDER"})
    assert codes(user, folder) == []


@pytest.mark.parametrize("agent", AGENTS)
def test_a_program_that_was_moved(user: Environment, folder: Path, agent: str) -> None:
    install_hooks(user, [agent], ["/nowhere/trace"])
    assert "hooks-program" in codes(user, folder)


@pytest.mark.parametrize("agent", JSON_AGENTS)
def test_entries_that_are_missing_or_of_another_version(
    user: Environment, folder: Path, agent: str
) -> None:
    install_hooks(user, [agent], HERE)
    path = file_of(user, agent)
    whole = json.loads(path.read_text())
    less = {**whole, "hooks": {**whole["hooks"]}}
    less["hooks"].popitem()
    for settings in (less, json.loads(path.read_text().replace("10", "1"))):
        path.write_text(json.dumps(settings))
        assert states(user, folder)[agent] == "incomplete"
        assert "hooks-incomplete" in codes(user, folder)


def test_hooks_that_somebody_removed_or_broke(user: Environment, folder: Path) -> None:
    install_hooks(user, ["claude-code"], HERE)
    path = file_of(user, "claude-code")
    path.write_text("{")
    assert (states(user, folder)["claude-code"], codes(user, folder)) == (
        "unknown",
        ["hooks-settings"],
    )
    path.unlink()
    assert codes(user, folder) == ["hooks-removed"]
    uninstall_hooks(user, ["claude-code"])
    assert codes(user, folder) == []


def test_a_link_into_a_folder_of_dotfiles_is_named(user: Environment, folder: Path) -> None:
    kept = folder / "settings.json"
    kept.write_text("{}")
    path = file_of(user, "claude-code")
    path.parent.mkdir(parents=True)
    path.symlink_to(kept)
    install_hooks(user, ["claude-code"], HERE)
    [hooks] = [each for each in capture_status(user, folder=str(folder)).hooks if each.link]
    assert (hooks.agent, hooks.link) == ("claude-code", str(kept))


def test_sessions_that_were_not_captured_are_counted(user: Environment, folder: Path) -> None:
    for session in ("a", "a", "b"):
        given = json.dumps({"session_id": session, "cwd": str(folder)}).encode()
        capture.note_event(user, "codex", given)
    [missed] = capture_status(user, folder=str(folder)).missed
    assert (missed.reason, missed.count, missed.folders) == ("no-repository", 2, (str(folder),))
    assert codes(user, folder) == []


def test_events_that_wait_and_events_that_were_lost(user: Environment, folder: Path) -> None:
    with Repo.init(folder, environment=user) as repo:
        spool = Path(repo.store.layout.spool_file)
        spool.parent.mkdir(exist_ok=True)
        spool.write_text('{"agent":"codex","session":"a","time":1}\n')
        found = capture_status(user, repo.store, folder=str(folder))
        assert (found.waiting, [each.code for each in found.problems]) == (1, ["hooks-waiting"])
        spool.unlink()
        spool.mkdir()
        capture.note_event(
            user, "codex", json.dumps({"session_id": "a", "cwd": str(folder)}).encode()
        )
        assert codes(user, folder) == ["hooks-lost"]


# --- the commands


@pytest.fixture
def home(
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    repository: Trace,
) -> Environment:
    user = environment_in(tmp_path_factory.mktemp("home"))
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "bin" / "trace")])
    program = tmp_path / "bin" / "trace"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return user


def test_the_commands_say_what_they_did(home: Environment, trace: Trace, tmp_path: Path) -> None:
    done = trace("hooks", "install", "claude-code", environment=home)
    path = file_of(home, "claude-code")
    assert done.lines[0] == f"claude-code: {path}: created"
    assert "+++" in done.text
    assert f"{tmp_path}/bin/trace hook claude-code" in path.read_text()
    assert trace("hooks", "install", "claude-code", environment=home).lines == [
        f"claude-code: {path}: unchanged"
    ]
    said = trace("hooks", "status", environment=home).text
    assert f"installed  {path}" in said
    assert trace("hooks", "uninstall", environment=home).lines[0] == (
        f"claude-code: {path}: hooks removed, and the file, which held nothing else"
    )
    assert "nothing to do" in trace("hooks", "uninstall", environment=home).err
    assert not path.exists()


def test_an_uninstallation_says_what_it_took_out_of_which_file(
    home: Environment, trace: Trace
) -> None:
    path, config = file_of(home, "codex"), file_of(home, "codex").with_name("config.toml")
    path.parent.mkdir(parents=True)
    path.write_text('{"other": 1}\n')
    config.write_text('model = "o4"\n')
    trace("hooks", "install", "codex", "--trust", environment=home)
    planned = trace("hooks", "uninstall", "codex", "-n", environment=home).lines
    assert f"codex: {path}: hooks would be removed" in planned
    done = trace("hooks", "uninstall", "codex", environment=home).lines
    assert f"codex: {path}: hooks removed" in done
    assert f"codex: {config}: trust in the hooks removed" in done


@pytest.mark.parametrize("option", ["--brief", "--personal"])
def test_a_later_installation_keeps_the_options_of_the_first(
    home: Environment, trace: Trace, option: str
) -> None:
    path = file_of(home, "codex")
    trace("hooks", "install", "codex", option, environment=home)
    before = path.read_bytes()
    assert option.encode() in before
    again = trace("hooks", "install", "codex", environment=home)
    assert again.lines[0].endswith("unchanged")
    assert path.read_bytes() == before
    trace("hooks", "uninstall", "codex", environment=home)
    trace("hooks", "install", "codex", environment=home)
    assert option.encode() not in path.read_bytes()


def test_a_refused_file_is_an_error_with_what_to_add(home: Environment, trace: Trace) -> None:
    path = file_of(home, "claude-code")
    path.parent.mkdir(parents=True)
    path.write_text("{")
    done = trace("hooks", "install", "claude-code", "codex", environment=home)
    assert done.code == 6
    assert f"cannot change {path}: line 1" in done.err
    assert '"SessionStart": [' in done.err
    assert file_of(home, "codex").exists()
    rows = trace("hooks", "install", "claude-code", "--json", environment=home)
    assert json.loads(rows.lines[0])["action"] == "refused"


def test_names_of_agents_are_checked(home: Environment, trace: Trace) -> None:
    assert trace("hooks", "install", "cursor", environment=home).code == 2
    assert "no agent found" in trace("hooks", "install", environment=home).err
    (Path(home.home) / ".codex").mkdir(parents=True)
    assert trace("hooks", "install", environment=home).lines[0].startswith("codex: ")


def test_personal_creates_a_repository(home: Environment, trace: Trace) -> None:
    assert trace("hooks", "install", "codex", "--personal", environment=home).code == 0
    folder = Path(capture.personal_folder(home))
    assert (folder / ".trace" / "config").exists()
    assert "--personal" in file_of(home, "codex").read_text()
    assert trace("hooks", "install", "codex", "--personal", environment=home).code == 0


def test_hooks_of_a_project_name_no_path_of_this_machine(
    home: Environment, trace: Trace, tmp_path: Path
) -> None:
    done = trace("hooks", "install", "claude-code", "--project", environment=home)
    assert done.code == 0
    text = Path(".claude/settings.json").read_text()
    assert '"trace hook claude-code"' in text
    assert str(tmp_path) not in text


def test_doctor_reports_the_same(home: Environment, trace: Trace) -> None:
    install_hooks(home, ["claude-code"], ["/nowhere/trace"])
    done = trace("doctor", environment=home)
    assert (done.code, "hooks-program" in done.text) == (7, True)
