"""Our hooks in the settings of agents, beside what people and other tools keep there.

`golden/` has files before and after an installation. The tests below them are failures of other installers, as their
users reported them.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.capture.support.places import (
    COMMAND,
    JSON_AGENTS,
    environment_in,
    file_of,
    install,
    uninstall,
)
from trace_store.base.environment import Environment
from trace_store.capture import install_hooks, uninstall_hooks
from trace_store.capture.agents import PROGRAMS_BY_NAME, agent_named
from trace_store.capture.edit_settings import our_handlers
from trace_store.capture.jsonc import SettingsText
from trace_store.capture.settings_file import Original
from trace_store.capture.spool import AGENTS
from trace_store.errors import InvalidInputError, StorageError

GOLDEN = Path(__file__).parent / "golden"
CASES = sorted(path.stem for path in GOLDEN.glob("*.before"))


def agent_of(case: str) -> str:
    return next(name for name in AGENTS if case.startswith(name))


@pytest.fixture
def user(tmp_path: Path) -> Environment:
    return environment_in(tmp_path)


def put(user: Environment, agent: str, data: bytes) -> Path:
    path = file_of(user, agent)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def plain(path: Path, agent: str) -> dict[str, Any]:
    text = path.read_text(encoding="utf-8-sig")
    found: dict[str, Any] = SettingsText(text, comments=agent == "gemini").root.plain()
    return found


@pytest.mark.parametrize("case", CASES)
def test_files_before_and_after_an_installation(user: Environment, case: str) -> None:
    agent, before = agent_of(case), (GOLDEN / f"{case}.before").read_bytes()
    path = put(user, agent, before)
    assert install(user, agent).action == "updated"
    after = path.read_bytes()
    assert after == (GOLDEN / f"{case}.after").read_bytes()
    changed = path.stat().st_mtime_ns
    assert install(user, agent).action == "unchanged"
    assert path.stat().st_mtime_ns == changed
    [removed] = uninstall(user, agent)
    assert removed.action == "removed"
    assert path.read_bytes() == before


@pytest.mark.parametrize("case", CASES)
def test_only_our_entries_go_if_something_else_changed(user: Environment, case: str) -> None:
    agent, before = agent_of(case), (GOLDEN / f"{case}.before").read_bytes()
    path = put(user, agent, before)
    install(user, agent)
    path.write_bytes(path.read_bytes() + b"\n")
    uninstall(user, agent)
    kept = path.read_bytes()
    assert b"/opt/bin/trace" not in kept
    # Lists that were empty before may be gone.
    if b"{}" not in before and before:
        assert kept == before + b"\n"
    else:
        assert plain(path, agent).get("model") in (None, "opus")


@pytest.mark.parametrize("agent", AGENTS)
def test_a_new_file_is_removed_again(user: Environment, agent: str) -> None:
    path = file_of(user, agent)
    assert install(user, agent).action == "created"
    assert path.exists()
    assert [each.action for each in uninstall(user, agent)] == ["removed"]
    assert not path.exists()
    assert uninstall(user, agent) == []


@pytest.mark.parametrize("agent", JSON_AGENTS)
def test_only_events_that_observe_are_used(user: Environment, agent: str) -> None:
    install(user, agent)
    events = plain(file_of(user, agent), agent)["hooks"]
    assert not [name for name in events if name.startswith(("PreTool", "BeforeTool", "Permission"))]


@pytest.mark.parametrize("agent", AGENTS)
def test_a_new_command_takes_the_place_of_the_old_one(user: Environment, agent: str) -> None:
    path = file_of(user, agent)
    install(user, agent)
    first = path.read_text()
    [change] = install_hooks(user, [agent], ["/a b/trace"], personal=True)
    assert change.action == "updated"
    assert "/opt/bin/trace" not in path.read_text()
    assert path.read_text().count("--personal") == first.count("/opt/bin/trace")
    uninstall(user, agent)
    assert not path.exists()


@pytest.mark.parametrize("agent", JSON_AGENTS)
def test_entries_of_others_that_came_later_keep_their_places(user: Environment, agent: str) -> None:
    path = file_of(user, agent)
    install(user, agent)
    settings = plain(path, agent)
    [event, *_] = settings["hooks"]
    later = json.loads(json.dumps(settings["hooks"][event][0]).replace("/opt/bin/trace hook", "x"))
    settings["hooks"][event].append(later)
    path.write_text(json.dumps(settings, indent=4))
    assert install(user, agent).action == "unchanged"
    install_hooks(user, [agent], ["/new/trace"])
    listed = plain(path, agent)["hooks"][event]
    assert "/new/trace" in json.dumps(listed[0])
    assert listed[1] == later
    uninstall(user, agent)
    assert plain(path, agent)["hooks"] == {event: [later]}


# --- what is refused


@pytest.mark.parametrize("agent", JSON_AGENTS)
@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b'{"hooks": {', "line 1, column 12"),
        (b'{"hooks": []}', '"hooks" is not an object'),
        (b'{"hooks": {"SessionStart": 1}}', '"hooks.SessionStart" is not a list'),
        (b'{"a": 1, "a": 2}', "twice"),
        (b"[]", "not a JSON object"),
        (b'{"a": 1,}', "column 9"),
        (b"\xff\xfe{}", "not UTF-8"),
    ],
)
def test_what_cannot_be_understood_stays_as_it_is(
    user: Environment, agent: str, data: bytes, why: str
) -> None:
    path = put(user, agent, data)
    for change in (install(user, agent), *uninstall(user, agent)):
        assert change.action == "refused"
        assert why in str(change.error)
        assert str(path) in str(change.error)
    assert path.read_bytes() == data


def test_comments_are_refused_where_the_agent_allows_none(user: Environment) -> None:
    data = b'{"model": "opus"} // mine'
    path = put(user, "claude-code", data)
    assert "comments" in str(install(user, "claude-code").error)
    assert path.read_bytes() == data


@pytest.mark.parametrize("agent", AGENTS)
def test_a_folder_in_the_place_of_the_file(user: Environment, agent: str) -> None:
    file_of(user, agent).mkdir(parents=True)
    assert "it is a folder" in str(install(user, agent).error)


@pytest.mark.parametrize("agent", AGENTS)
def test_a_read_only_file_stays(user: Environment, agent: str) -> None:
    path = put(user, agent, b"")
    path.chmod(0o444)
    change = install(user, agent)
    assert (change.action, path.read_bytes()) == ("refused", b"")
    assert "read-only" in str(change.error)
    assert install(user, agent, dry_run=True).action == "refused"


def test_only_the_nearest_folder_of_a_new_file_must_be_writable(
    user: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As for every user: the folder around the home folder belongs to root."""
    real, above = os.access, str(tmp_path.parent)
    monkeypatch.setattr(os, "access", lambda path, mode: str(path) != above and real(path, mode))
    assert install(user, "claude-code").action == "created"


def test_a_plugin_of_others_stays(user: Environment) -> None:
    path = put(user, "opencode", b"export const Other = async () => ({})\n")
    assert "another plugin" in str(install(user, "opencode").error)
    assert uninstall(user, "opencode") == []
    assert path.exists()


def test_a_plugin_that_was_changed_by_hand_stays(user: Environment) -> None:
    path = file_of(user, "opencode")
    install(user, "opencode")
    path.write_text(path.read_text() + "// mine\n")
    assert "edited by hand" in str(install(user, "opencode").error)
    assert [each.action for each in uninstall(user, "opencode")] == ["refused"]
    assert path.exists()


def test_unknown_agents_are_refused_by_name(user: Environment) -> None:
    for name in ("cursor", "unknown"):
        with pytest.raises(InvalidInputError, match=name):
            install_hooks(user, [name], COMMAND)


def test_one_refusal_does_not_stop_the_others(user: Environment) -> None:
    put(user, "claude-code", b"{")
    done = install_hooks(user, AGENTS, COMMAND)
    assert [each.action for each in done] == ["refused", *["created"] * 4]


# --- the file itself


def test_a_file_whose_original_cannot_be_kept_stays(
    user: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise StorageError("disk full")

    path = put(user, "claude-code", b"{}\n")
    monkeypatch.setattr(Original, "save", fail)
    assert install(user, "claude-code").action == "refused"
    assert path.read_bytes() == b"{}\n"


def test_a_link_is_followed_and_stays(user: Environment, tmp_path: Path) -> None:
    kept = tmp_path / "dotfiles" / "claude.json"
    kept.parent.mkdir()
    kept.write_text('{"model": "opus"}\n')
    kept.chmod(0o640)
    path = file_of(user, "claude-code")
    path.parent.mkdir()
    path.symlink_to(kept)
    assert install(user, "claude-code").link == str(kept)
    assert path.is_symlink()
    assert b"/opt/bin/trace" in kept.read_bytes()
    assert kept.stat().st_mode & 0o777 == 0o640
    uninstall(user, "claude-code")
    assert path.is_symlink()
    assert kept.read_text() == '{"model": "opus"}\n'


def test_a_dry_run_shows_the_difference_and_writes_nothing(user: Environment) -> None:
    path = put(user, "claude-code", b'{\n  "model": "opus"\n}\n')
    change = install(user, "claude-code", dry_run=True)
    assert change.action == "updated"
    assert '+  "hooks": {' in change.difference.splitlines()
    assert "-}" not in change.difference.splitlines()
    assert path.read_bytes() == b'{\n  "model": "opus"\n}\n'


def test_a_change_of_others_meanwhile_is_not_lost(
    user: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(user, "claude-code", b'{"model": "opus"}\n')
    check = os.access
    others = iter([b'{"model": "sonnet"}\n'])

    def access(place: str, mode: int) -> bool:
        if place == str(path) and (data := next(others, None)):
            path.write_bytes(data)
        return check(place, mode)

    monkeypatch.setattr(os, "access", access)
    assert install(user, "claude-code").action == "updated"
    assert plain(path, "claude-code")["model"] == "sonnet"


# --- failures that users of other installers reported


@pytest.mark.parametrize("agent", JSON_AGENTS)
def test_other_hooks_of_the_same_event_stay(user: Environment, agent: str) -> None:
    event = next(iter(agent_named(agent).events))
    other = {"hooks": [{"type": "command", "command": "other", "bash": "other"}]}
    entry = other if agent != "copilot" else other["hooks"][0]
    path = put(user, agent, json.dumps({"hooks": {event: [entry]}}).encode())
    change = install(user, agent, dry_run=True)
    assert change.difference.count("other") >= 2
    install(user, agent)
    listed = plain(path, agent)["hooks"]
    assert listed[event][0] == entry
    assert set(listed) == set(agent_named(agent).events)


@pytest.mark.parametrize("agent", JSON_AGENTS)
def test_all_entries_are_there_after_an_installation(user: Environment, agent: str) -> None:
    install(user, agent)
    handlers = agent_named(agent).handlers("/opt/bin/trace hook " + agent)
    listed = plain(file_of(user, agent), agent)["hooks"]
    found = {
        name: each[0] if agent == "copilot" else each[0]["hooks"][0]
        for name, each in listed.items()
    }
    assert found == handlers


@pytest.mark.parametrize("agent", AGENTS)
def test_installing_again_and_again_keeps_one_entry(user: Environment, agent: str) -> None:
    path = file_of(user, agent)
    install(user, agent)
    first = path.read_bytes()
    for command in (
        ["/new/trace"],
        ["/newer/trace-store"],
        ["/usr/bin/python3", "-m", "trace_cli"],
        COMMAND,
    ):
        install_hooks(user, [agent], command)
    assert path.read_bytes() == first


@pytest.mark.parametrize(
    "command",
    [
        "/home/ada/trace/hook claude-code",
        "/opt/bin/trace hook codex",
        "my-trace hook claude-code",
        "/opt/bin/trace hook claude-code && say done",
        "sh -c '/opt/bin/trace hook claude-code'",
        "/opt/bin/trace hooks status",
    ],
)
def test_a_hook_of_a_person_that_looks_like_ours_stays(user: Environment, command: str) -> None:
    settings = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": command}]}]}}
    path = put(user, "claude-code", json.dumps(settings).encode())
    install(user, "claude-code")
    path.write_bytes(path.read_bytes() + b"\n")
    uninstall(user, "claude-code")
    assert plain(path, "claude-code") == settings


def test_settings_stay_when_our_hooks_were_the_only_ones(user: Environment) -> None:
    path = put(user, "claude-code", b"")
    install(user, "claude-code")
    settings = {**plain(path, "claude-code"), "mcpServers": {"a": {}}, "permissions": {}}
    path.write_text(json.dumps(settings))
    uninstall(user, "claude-code")
    assert plain(path, "claude-code") == {"mcpServers": {"a": {}}, "permissions": {}}


@pytest.mark.parametrize("agent", JSON_AGENTS)
def test_no_entry_is_left_behind(user: Environment, agent: str) -> None:
    """Also none of another version: for an event that is not used any more, twice, or among foreign handlers."""
    path = file_of(user, agent)
    install(user, agent)
    settings = plain(path, agent)
    [event, *_] = settings["hooks"]
    ours = settings["hooks"][event][0]
    other = {"type": "command", "command": "other", "bash": "other"}
    mixed = [ours, other] if agent == "copilot" else [{"hooks": [ours["hooks"][0], other]}]
    settings["hooks"] = {**settings["hooks"], "PostToolUse": [ours, ours], event: mixed}
    path.write_text(json.dumps(settings, indent=2))
    assert install(user, agent).action == "updated"
    assert "PostToolUse" not in plain(path, agent)["hooks"]
    uninstall(user, agent)
    left = [other] if agent == "copilot" else [{"hooks": [other]}]
    assert plain(path, agent)["hooks"] == {event: left}


def test_a_file_that_the_agent_rewrote_loses_our_entries_only(user: Environment) -> None:
    """Gemini CLI rewrites its settings in its own style and order."""
    path = put(user, "gemini", (GOLDEN / "gemini-comments.before").read_bytes())
    install(user, "gemini")
    settings = plain(path, "gemini")
    settings = {"hooks": settings["hooks"], "general": {"vimMode": True}}
    path.write_text(json.dumps(settings))
    uninstall(user, "gemini")
    assert plain(path, "gemini") == {
        "hooks": {
            "AfterAgent": [{"hooks": [{"type": "command", "command": "bell", "timeout": 5000}]}]
        },
        "general": {"vimMode": True},
    }


def test_time_limits_have_the_unit_of_each_agent(user: Environment) -> None:
    limits = {name: agent_named(name).handlers("x")["SessionEnd"] for name in JSON_AGENTS}
    assert limits["claude-code"]["timeout"] == 10
    assert limits["codex"]["timeout"] == 3
    assert limits["gemini"]["timeout"] == 10_000
    assert limits["copilot"]["timeoutSec"] == 10


@pytest.mark.parametrize(
    "order", [("install", "other", "uninstall"), ("other", "install", "uninstall")]
)
@pytest.mark.parametrize("agent", JSON_AGENTS)
def test_any_order_beside_another_installer(
    user: Environment, agent: str, order: tuple[str, ...]
) -> None:
    """The other installer parses the file and rewrites it, as most installers do."""
    path, alone = file_of(user, agent), file_of(environment_in(Path(user.home) / "alone"), agent)

    def other(path: Path) -> None:
        settings = plain(path, agent) if path.exists() else dict(agent_named(agent).empty)
        entry = {"type": "command", "command": "other", "bash": "other"}
        groups = settings.setdefault("hooks", {}).setdefault("SessionStart", [])
        groups.insert(0, entry if agent == "copilot" else {"hooks": [entry]})
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(settings, indent=3))

    for step in order:
        if step == "install":
            install(user, agent)
        elif step == "uninstall":
            uninstall(user, agent)
        else:
            other(path)
    other(alone)
    assert plain(path, agent) == plain(alone, agent)


def test_a_lost_data_folder_costs_the_exact_bytes_only(user: Environment) -> None:
    for agent in JSON_AGENTS:
        install(user, agent)
    shutil.rmtree(user.data_dir)
    assert len(uninstall_hooks(user)) == len(JSON_AGENTS)
    for agent in JSON_AGENTS:
        path = file_of(user, agent)
        assert not path.exists() or plain(path, agent) == {}


def test_all_agents_of_the_hook_can_be_installed() -> None:
    assert tuple(PROGRAMS_BY_NAME) == AGENTS


def test_a_brief_is_an_option_of_the_hook(user: Environment) -> None:
    agent = agent_named("codex")
    with_brief = "trace hook codex --brief"
    for brief, command in ((False, "trace hook codex"), (True, with_brief), (False, with_brief)):
        [change] = install_hooks(user, ["codex"], ["trace"], brief=brief)
        entries = our_handlers(agent, Path(change.path).read_text()).values()
        assert [handler["command"] for each in entries for _, handler in each] == [command] * 6
