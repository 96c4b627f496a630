"""Installation and removal of our hooks in the settings of agents.

Rule: parse or refuse. A file that cannot be parsed stays as it is, and the error says why. Installing twice changes
nothing. Uninstalling restores the original bytes if nothing else changed since; otherwise it removes only our entries.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Sequence
from functools import partial

from trace_store import errors
from trace_store.base.environment import Environment
from trace_store.base.frozen import value
from trace_store.base.oid import sha256_hex
from trace_store.capture import edit_settings
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
from trace_store.capture.settings_file import Original, SettingsFile, forget_original, refused
from trace_store.importers.discovery import project_folder

CREATED, UPDATED, UNCHANGED = "created", "updated", "unchanged"
REMOVED, REFUSED = "removed", "refused"
_ATTEMPTS = 5
_EXECUTABLES = {
    "claude-code": "claude",
    "codex": "codex",
    "gemini": "gemini",
    "opencode": "opencode",
    "copilot": "copilot",
}


@value
class SettingsChange:
    """The change of one file.

    Attributes:
        agent: the agent.
        path: the file.
        action: `created`, `updated`, `unchanged`, `removed`, or `refused`.
        difference: the difference in the format of `diff -u`, or "".
        link: where the file is, if it is a link; else "".
        error: why it was refused, or None.
    """

    JSON = "link? difference? error?"

    agent: str
    path: str
    action: str
    difference: str = ""
    link: str = ""
    error: errors.TraceError | None = None


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
    dry_run: bool = False,
) -> list[SettingsChange]:
    """Install or update our hooks, and return what was done to each file.

    Args:
        environment: locates the settings.
        agents: names of agents.
        command: the command line of Trace.
        folder: a folder of the project.
        scope: `user` or `project`: whose settings.
        personal: whether sessions outside of repositories go to the user's own repository.
        brief: whether sessions of Claude Code and Codex begin with a brief.
        dry_run: only return what would be done.

    Raises:
        InvalidInputError: there is no such agent.
    """

    def add(agent: AgentProgram, text: str) -> str:
        words = hook_words(command, agent.name, personal=personal, brief=brief)
        if agent.form == PLUGIN:
            return edit_settings.with_plugin(text, words)
        return edit_settings.with_hooks(agent, text, command_line(words))

    known = [agent_named(name) for name in dict.fromkeys(agents)]
    top = project_folder(folder)
    places = [(each, each.file(environment, scope, top)) for each in known]
    return [
        apply_change(
            each.name, path, partial(_changed, environment, each, path, add, dry_run=dry_run)
        )
        for each, path in places
    ]


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

    def take_out(agent: AgentProgram, text: str) -> str:
        if agent.form == PLUGIN:
            return edit_settings.without_plugin(text)
        return edit_settings.without_hooks(agent, text) if text.strip() else text

    known = [agent_named(name) for name in dict.fromkeys(agents or PROGRAMS_BY_NAME)]
    top = project_folder(folder)
    places = [(each, each.file(environment, scope, top)) for each in known]
    done = [
        apply_change(
            each.name, path, partial(_changed, environment, each, path, take_out, dry_run=dry_run)
        )
        for each, path in places
    ]
    for each in done:
        if each.action == UNCHANGED and not dry_run:
            forget_original(environment, each.path)  # our entries were removed by hand
    return [each for each in done if each.action != UNCHANGED]


def apply_change(
    agent: str, path: str, change: Callable[[], SettingsChange | None]
) -> SettingsChange:
    """Change a settings file, and retry if another program wins the race.

    Args:
        agent: the name of the agent.
        path: the file.
        change: reads and changes the file; returns None if it changed meanwhile. A StateError or StorageError becomes a
            refusal, so that the files of other agents are still changed.
    """
    try:
        for _ in range(_ATTEMPTS):
            done = change()
            if done is not None:
                return done
        raise refused(path, "another program keeps changing it")
    except (errors.StateError, errors.StorageError) as error:
        return SettingsChange(agent, path, REFUSED, error=error)


def _changed(
    environment: Environment,
    agent: AgentProgram,
    path: str,
    edit: Callable[[AgentProgram, str], str],
    *,
    dry_run: bool,
) -> SettingsChange | None:
    """Edit a file; return None if another program changed it meanwhile."""
    file = SettingsFile.read(path)
    before, text = file.data, file.text()
    try:
        new = edit(agent, text)
    except edit_settings.SettingsError as error:
        raise refused(path, str(error)) from error
    link = file.real if file.is_link else ""
    if new == text:
        return SettingsChange(agent.name, path, UNCHANGED, link=link)
    original = Original.load(environment, path)
    is_removal = not _has_ours(agent, new)
    after: bytes | None = file.encode(new)
    if is_removal and original is not None and original.is_unchanged(before):
        after = original.before
    elif is_removal and agent.is_own and _is_empty(agent, new):
        after = None
    action = REMOVED if is_removal else UPDATED if before is not None else CREATED
    change = SettingsChange(agent.name, path, action, difference(path, before, after), link)
    file.check_writable()
    if dry_run:
        return change
    if not is_removal and after is not None:
        # It is saved before the change: without it, the file could not be restored.
        unchanged = original is not None and original.is_unchanged(before)
        clean = original.before if original is not None and unchanged else _clean(agent, file)
        Original(clean, sha256_hex(after)).save(environment, path)
    if not file.write(after):
        return None
    if is_removal:
        forget_original(environment, path)
    return change


def _clean(agent: AgentProgram, file: SettingsFile) -> bytes | None:
    """Return a file without our hooks."""
    text = file.text()
    if file.data is None or not _has_ours(agent, text):
        return file.data
    if agent.form == PLUGIN:
        return None
    return file.encode(edit_settings.without_hooks(agent, text))


def _has_ours(agent: AgentProgram, text: str) -> bool:
    if agent.form == PLUGIN:
        return bool(text)
    return bool(edit_settings.our_handlers(agent, text))


def _is_empty(agent: AgentProgram, text: str) -> bool:
    return not text or (
        agent.form != PLUGIN and edit_settings.plain_settings(agent, text) == agent.empty
    )


def difference(path: str, before: bytes | None, after: bytes | None) -> str:
    """Return the difference of two versions of a file, as `diff -u` shows it; None is no file."""
    old, new = ((data or b"").decode("utf-8", "replace").splitlines() for data in (before, after))
    names = (path if before is not None else os.devnull, path if after is not None else os.devnull)
    return "\n".join(difflib.unified_diff(old, new, *names, lineterm=""))


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
