"""Where the tests of hooks put settings: a home of their own."""

from __future__ import annotations

from pathlib import Path

from trace_store.base.environment import Environment
from trace_store.capture.agents import agent_named
from trace_store.capture.install import install_hooks, uninstall_hooks
from trace_store.capture.settings_change import SettingsChange

COMMAND = ["/opt/bin/trace"]
JSON_AGENTS = ("claude-code", "codex", "gemini", "copilot")


def environment_in(home: Path) -> Environment:
    """Return the environment of a user with this home."""
    return Environment.read({"HOME": str(home), "TRACE_AUTHOR": "Ada"})


def file_of(environment: Environment, agent: str) -> Path:
    """Return the user's settings of an agent."""
    return Path(agent_named(agent).file(environment, "user", ""))


def install(environment: Environment, agent: str, *, dry_run: bool = False) -> SettingsChange:
    [change] = install_hooks(environment, [agent], COMMAND, dry_run=dry_run)
    return change


def uninstall(environment: Environment, agent: str) -> list[SettingsChange]:
    return uninstall_hooks(environment, [agent])
