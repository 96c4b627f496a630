"""Installation and removal of our hooks in the settings of agents.

The rules of `settings_change` hold.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from trace_store import errors
from trace_store.base.environment import Environment
from trace_store.capture import edit_settings, plugin
from trace_store.capture.agents import (
    PLUGIN,
    PROGRAMS_BY_NAME,
    USER,
    AgentProgram,
    agent_named,
    command_line,
    hook_words,
    program_path,
)
from trace_store.capture.codex_trust import CONFIG, trust_entry, wanted_trust
from trace_store.capture.settings_change import (
    REFUSED,
    UNCHANGED,
    SettingsChange,
    SettingsEntry,
    change_all,
    change_settings,
)
from trace_store.capture.settings_file import HOOKS, TRUST, Original, SettingsFile
from trace_store.capture.spool import BRIEF_OPTION, CODEX, PERSONAL_OPTION
from trace_store.importers.discovery import project_folder

_EXECUTABLES = {
    "claude-code": "claude",
    "codex": "codex",
    "gemini": "gemini",
    "opencode": "opencode",
    "copilot": "copilot",
}


def present_agents(environment: Environment) -> list[str]:
    """Return the agents that are on this machine: those with settings, or with a program."""
    found = []
    for name, agent in PROGRAMS_BY_NAME.items():
        try:
            folder = agent.folder(environment)
        except errors.StateError:
            folder = ""
        if (folder and os.path.isdir(folder)) or program_path(environment, _EXECUTABLES[name]):
            found.append(name)
    return found


def install_hooks(
    environment: Environment,
    agents: Sequence[str],
    command: Sequence[str],
    *,
    folder: str = ".",
    scope: str = USER,
    personal: bool = False,
    brief: bool = False,
    trust: bool = False,
    dry_run: bool = False,
) -> list[SettingsChange]:
    """Install or update our hooks, and return what was done to each file; `personal` and `brief` stay if they were set.

    Args:
        environment: locates the settings.
        agents: names of agents.
        command: the command line of Trace.
        folder: a folder of the project.
        scope: `user` or `project`: whose settings.
        personal: whether sessions outside of repositories go to the user's own repository.
        brief: whether sessions of Claude Code and Codex begin with a brief.
        trust: whether to write into the settings of Codex that the user trusts the hooks, which Codex asks for.
        dry_run: only return what would be done.

    Raises:
        InvalidInputError: there is no such agent.
    """

    def add(agent: AgentProgram, text: str) -> str:
        kept = _options_in(agent, text)
        words = hook_words(
            command,
            agent.name,
            personal=personal or PERSONAL_OPTION in kept,
            brief=brief or BRIEF_OPTION in kept,
        )
        if agent.form == PLUGIN:
            return edit_settings.with_plugin(text, words)
        return edit_settings.with_hooks(agent, text, command_line(words))

    known = [agent_named(name) for name in dict.fromkeys(agents)]
    entry = partial(_entry, add)
    done = change_all(environment, known, entry, folder=folder, scope=scope, dry_run=dry_run)
    codex = agent_named(CODEX)
    if trust and not any(each.agent == CODEX and each.action == REFUSED for each in done):
        path = codex.file(environment, scope, project_folder(folder))
        wanted = wanted_trust(codex, path, add(codex, SettingsFile.read(path).text()))
        done.append(_change_trust(environment, wanted, removes=False, dry_run=dry_run))
    return done


def uninstall_hooks(
    environment: Environment,
    agents: Sequence[str] = (),
    *,
    folder: str = ".",
    scope: str = USER,
    dry_run: bool = False,
) -> list[SettingsChange]:
    """Remove our hooks, and return what was done to each file that had some.

    Args:
        environment: locates the settings.
        agents: names of agents; all if empty.
        folder: a folder of the project.
        scope: `user` or `project`.
        dry_run: only return what would be done.

    Raises:
        InvalidInputError: there is no such agent.
    """
    known = [agent_named(name) for name in dict.fromkeys(agents or PROGRAMS_BY_NAME)]
    trusted = _trusted(environment, folder, scope) if agent_named(CODEX) in known else {}
    entry = partial(_entry, _without)
    done = change_all(environment, known, entry, folder=folder, scope=scope, dry_run=dry_run)
    if trusted and not any(each.agent == CODEX and each.action == REFUSED for each in done):
        done.append(_change_trust(environment, trusted, removes=True, dry_run=dry_run))
    return [each for each in done if each.action != UNCHANGED]


def _trusted(environment: Environment, folder: str, scope: str) -> dict[str, str]:
    """Return the hashes of our handlers, if we wrote them into the settings of Codex."""
    codex = agent_named(CODEX)
    if Original.load(environment, TRUST, _codex_config(environment)) is None:
        return {}
    path = codex.file(environment, scope, project_folder(folder))
    try:
        return wanted_trust(codex, path, SettingsFile.read(path).text())
    except (errors.StateError, edit_settings.SettingsError):
        return {}  # the file is refused, so the hooks stay, too


def _change_trust(
    environment: Environment, wanted: Mapping[str, str], *, removes: bool, dry_run: bool
) -> SettingsChange:
    entry, path = trust_entry(wanted, removes=removes), _codex_config(environment)
    return change_settings(environment, CODEX, path, entry, dry_run=dry_run)


def _codex_config(environment: Environment) -> str:
    return os.path.join(agent_named(CODEX).folder(environment), CONFIG)


def _entry(edit: Callable[[AgentProgram, str], str], agent: AgentProgram) -> SettingsEntry:
    return SettingsEntry(
        HOOKS,
        edit=partial(edit, agent),
        without=partial(_without, agent),
        has_ours=partial(_has_ours, agent),
        is_empty=partial(_is_empty, agent),
    )


def _options_in(agent: AgentProgram, text: str) -> list[str]:
    """Return the words of the command that our hooks in some settings run; none if there are none."""
    if agent.form == PLUGIN:
        return plugin.command_of(text) if plugin.is_plugin(text) else []
    handlers = [
        each for found in edit_settings.our_handlers(agent, text).values() for each in found
    ]
    return shlex.split(agent.command_of(handlers[0][1])) if handlers else []


def _without(agent: AgentProgram, text: str) -> str:
    if agent.form == PLUGIN:
        return edit_settings.without_plugin(text)
    return edit_settings.without_hooks(agent, text) if text.strip() else text


def _has_ours(agent: AgentProgram, text: str) -> bool:
    if agent.form == PLUGIN:
        return bool(text)
    return bool(edit_settings.our_handlers(agent, text))


def _is_empty(agent: AgentProgram, text: str) -> bool:
    if not agent.is_own:
        return False
    return not text or (
        agent.form != PLUGIN and edit_settings.plain_settings(agent, text) == agent.empty
    )


def manual_entries(
    agent: str, command: Sequence[str], *, personal: bool = False, brief: bool = False
) -> str:
    """Return what a person would add to the settings of an agent by hand; "" for one whose file is ours alone.

    Raises:
        InvalidInputError: there is no such agent.
    """
    known = agent_named(agent)
    if known.form == PLUGIN:
        return ""
    words = hook_words(command, agent, personal=personal, brief=brief)
    return edit_settings.with_hooks(known, "", command_line(words)).strip()
