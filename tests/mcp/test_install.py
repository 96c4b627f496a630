"""`trace mcp install`: our entry in the settings of agents, beside what people keep there."""

from __future__ import annotations

import json
import os
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import Trace
from trace_store import Environment
from trace_store.capture import install_hooks, uninstall_hooks
from trace_store.capture.jsonc import SettingsText
from trace_store.errors import InvalidInputError
from trace_store.mcp import install_server, manual_entry, server_status, uninstall_server
from trace_store.mcp.install import CLIENTS

COMMAND = ["trace", "mcp"]
OTHER = {
    "claude-code": '{\n\t"mcpServers": {\n\t\t"other": {"command": "x"}\n\t},\n\t"theme": "dark"\n}',
    "codex": 'model = "o4"  # mine\r\n\r\n[mcp_servers.other]\r\ncommand = "x"\r\n',
    "gemini": '{\n  // mine\n  "mcpServers": {},\n  "ui": {"theme": "dark"} // too\n}\n',
    "opencode": '{"$schema": "https://opencode.ai/config.json", "mcp": {"other": {"type": "remote"}}}\n',
    "copilot": '{\n    "mcpServers": {\n        "other": { "type": "local" }\n    }\n}\n',
}
ENTRIES: dict[str, dict[str, Any]] = {
    "claude-code": {"type": "stdio", "command": "trace", "args": ["mcp"]},
    "codex": {"command": "trace", "args": ["mcp"]},
    "gemini": {"command": "trace", "args": ["mcp"]},
    "opencode": {"type": "local", "command": ["trace", "mcp"], "enabled": True},
    "copilot": {"tools": ["*"], "type": "local", "command": "trace", "args": ["mcp"]},
}
"""What each agent writes itself (`claude mcp add`, `codex mcp add`, …), without empty values."""


@pytest.fixture
def user(tmp_path: Path) -> Environment:
    home = tmp_path / "home"
    return Environment(
        home=str(home),
        codex_dir=str(home / ".codex"),
        gemini_dir=str(home / ".gemini"),
        copilot_dir=str(home / ".copilot"),
        config_dir=str(home / ".config"),
        data_dir=str(home / ".local" / "share"),
    )


def settings(user: Environment, agent: str) -> Path:
    return Path(CLIENTS[agent].file(user, "user", ""))


def put(user: Environment, agent: str, text: str) -> Path:
    path = settings(user, agent)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


def plain(agent: str, text: str) -> dict[str, Any]:
    if agent == "codex":
        return tomllib.loads(text)
    found: dict[str, Any] = SettingsText(text, comments=True).root.plain()
    return found


def install(user: Environment, agent: str, **how: Any) -> str:
    [change] = install_server(user, [agent], COMMAND, scope="user", **how)
    return change.action


@pytest.mark.parametrize("agent", CLIENTS)
def test_the_entry_is_added_once_and_taken_out_to_the_byte(user: Environment, agent: str) -> None:
    path = put(user, agent, OTHER[agent])
    assert install(user, agent, dry_run=True) == "updated"
    assert path.read_bytes() == OTHER[agent].encode()
    assert install(user, agent) == "updated"
    text = path.read_bytes().decode()
    assert CLIENTS[agent].find(text) == ENTRIES[agent]
    before, after = plain(agent, OTHER[agent]), plain(agent, text)
    key = CLIENTS[agent].key or "mcp_servers"
    del after[key]["trace"]
    assert after == before
    assert all(line in text for line in OTHER[agent].splitlines() if "mine" in line)
    assert install(user, agent) == "unchanged"
    assert path.read_bytes() == text.encode()
    [removed] = uninstall_server(user, [agent], scope="user")
    assert removed.action == "removed"
    assert path.read_bytes() == OTHER[agent].encode()
    assert uninstall_server(user, [agent], scope="user") == []


def test_hooks_and_a_server_in_one_file_are_taken_out_in_any_order(user: Environment) -> None:
    before = b'{"mcpServers": {},   "ui": {"theme": "dark"}}\n'
    path = settings(user, "gemini")
    for first, second in ((uninstall_hooks, uninstall_server), (uninstall_server, uninstall_hooks)):
        put(user, "gemini", before.decode())
        install_hooks(user, ["gemini"], ["trace"])
        with_hooks = path.read_bytes()
        install(user, "gemini")
        first(user, ["gemini"], scope="user")
        assert path.read_bytes() == with_hooks or b"hooks" not in path.read_bytes()
        second(user, ["gemini"], scope="user")
        assert plain("gemini", path.read_text())["ui"] == {"theme": "dark"}
        assert b"trace" not in path.read_bytes()
    assert path.read_bytes() == before


def test_a_file_that_was_changed_meanwhile_loses_only_our_entry(user: Environment) -> None:
    path = put(user, "copilot", OTHER["copilot"])
    install(user, "copilot")
    path.write_text(path.read_text() + "\n")
    [removed] = uninstall_server(user, ["copilot"], scope="user")
    assert '-        "trace": {' in removed.difference
    assert path.read_text() == OTHER["copilot"] + "\n"


@pytest.mark.parametrize("agent", CLIENTS)
def test_a_file_of_ours_alone_is_created_and_removed(user: Environment, agent: str) -> None:
    assert install(user, agent) == "created"
    path = settings(user, agent)
    assert CLIENTS[agent].find(path.read_text()) == ENTRIES[agent]
    assert CLIENTS[agent].find(manual_entry(agent, COMMAND)) == ENTRIES[agent]
    uninstall_server(user, [agent], scope="user")
    assert not path.exists()


@pytest.mark.parametrize("agent", CLIENTS)
def test_what_is_not_understood_is_left_alone(user: Environment, agent: str) -> None:
    foreign = manual_entry(agent, ["other-program", "serve"])
    for text in ('{"a": ', "= 1\n[", "[]", foreign):
        path = put(user, agent, text)
        [change] = install_server(user, [agent], COMMAND, scope="user")
        assert change.action == "refused"
        assert change.error is not None
        assert path.read_text() == text
        assert [each.action for each in uninstall_server(user, [agent], scope="user")] in (
            ["refused"],
            [],
        )
        assert path.read_text() == text


def test_an_older_entry_is_updated_in_its_place(user: Environment) -> None:
    for agent in CLIENTS:
        put(user, agent, OTHER[agent])
        install(user, agent)
        [change] = install_server(user, [agent], [*COMMAND, "--allow-write"], scope="user")
        assert change.action == "updated"
        found = CLIENTS[agent].find(settings(user, agent).read_text())
        assert CLIENTS[agent].command_of(found) == ["trace", "mcp", "--allow-write"]
        assert settings(user, agent).read_text().count("--allow-write") == 1


def test_links_are_followed_and_status_tells_what_is_lost(
    user: Environment, tmp_path: Path
) -> None:
    target = tmp_path / "dotfiles" / "settings.json"
    target.parent.mkdir()
    target.write_text("{}\n")
    path = settings(user, "gemini")
    path.parent.mkdir(parents=True)
    path.symlink_to(target)
    install(user, "gemini")
    assert path.is_symlink()
    assert "mcpServers" in json.loads(target.read_text())
    install_server(user, ["codex"], ["/nowhere/trace", "mcp"], scope="user")
    os.makedirs(settings(user, "copilot"))
    found = {each.agent: each for each in server_status(user) if each.scope == "user"}
    assert found["gemini"].command == ("trace", "mcp")
    assert found["codex"].problem == "/nowhere/trace is not there"
    assert "a folder" in found["copilot"].problem
    assert found["claude-code"].command == ()


def test_an_unknown_agent_is_refused(user: Environment) -> None:
    with pytest.raises(InvalidInputError, match="no agent 'cursor'"):
        install_server(user, ["cursor"], COMMAND)


def test_a_blank_file_and_an_entry_without_a_list_of_arguments(user: Environment) -> None:
    blank, odd = settings(user, "gemini"), settings(user, "copilot")
    for path, text in (
        (blank, " \n"),
        (odd, '{"mcpServers": {"trace": {"command": "x", "args": null}}}'),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert uninstall_server(user, scope="user") == []
    [change] = install_server(user, ["gemini"], COMMAND, scope="user")
    assert change.action == "updated"
    assert all(not each.problem for each in server_status(user) if each.agent == "copilot")


@pytest.mark.parametrize("is_on_path", [True, False])
def test_a_program_that_agents_cannot_find_is_named(
    repository: Trace,
    user: Environment,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_on_path: bool,
) -> None:
    program = tmp_path / "bin" / "trace"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "argv", [str(program)])
    monkeypatch.setenv("PATH", str(program.parent) if is_on_path else str(tmp_path / "none"))
    done = repository("mcp", "install", "claude-code", "--project", environment=user)
    assert done.code == 0
    assert ("`trace`, which is not on PATH" in done.err) is not is_on_path
    assert json.loads((tmp_path / ".mcp.json").read_text())["mcpServers"]["trace"]["command"] == (
        "trace"
    )
