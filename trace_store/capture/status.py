"""Whether capture works: hooks that are installed but do nothing, and what was lost.

Invariant: read-only, and runs no program; the rules of each agent are read from its files.
"""

from __future__ import annotations

import os
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trace_store import errors
from trace_store.base.environment import Environment
from trace_store.base.frozen import value
from trace_store.capture import edit_settings, plugin
from trace_store.capture.agents import (
    PLUGIN,
    PROGRAMS_BY_NAME,
    PROJECT,
    SCOPES,
    AgentProgram,
    agent_named,
    program_path,
)
from trace_store.capture.codex_trust import CONFIG, codex_hash, state_names
from trace_store.capture.jsonc import JsonSyntaxError, SettingsText
from trace_store.capture.settings_file import HOOKS, MAXIMUM_BYTES, Original, SettingsFile
from trace_store.capture.spool import (
    CLAUDE_CODE,
    CODEX,
    COPILOT,
    GEMINI,
    NO_REPOSITORY,
    AgentEvent,
    WorkerLock,
    read_missed,
    unread_lines,
)
from trace_store.capture.state import CapturedSession, CaptureState, LastEvent
from trace_store.disk.files import Disk, read_unsized
from trace_store.importers.discovery import project_folder
from trace_store.maintenance.doctor import Diagnosis
from trace_store.store.store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_store.base.ident import Time

INSTALLED, INCOMPLETE, MISSING, UNKNOWN = "installed", "incomplete", "missing", "unknown"
SHOWN_SESSIONS = 20
SHOWN_FOLDERS = 5
STALE_MILLISECONDS = 60_000
RECENT_MILLISECONDS = 7 * 86_400_000
_MANAGED = {
    "darwin": "/Library/Application Support/ClaudeCode/managed-settings.json",
    "win32": r"C:\Program Files\ClaudeCode\managed-settings.json",
}
_MANAGED_ELSEWHERE = "/etc/claude-code/managed-settings.json"
_TRUSTING = ("TRUST_FOLDER", "TRUST_PARENT")


@value
class AgentHooks:
    """Our hooks in one file.

    Attributes:
        agent: the agent.
        scope: `user` or `project`.
        path: the file.
        state: `installed`; `incomplete` if entries are missing or of another version; `missing`; or `unknown`, if the
            file cannot be read.
        link: where the file is kept, if it is a link; else "".
        program: the program that they run, or "".
        error: why the file cannot be read, or "".
    """

    JSON = "link? program? error?"

    agent: str
    scope: str
    path: str
    state: str
    link: str = ""
    program: str = ""
    error: str = ""


@value
class MissedSessions:
    """Sessions that were not captured, for one reason.

    Attributes:
        reason: as in `MissedEvent`.
        count: how many sessions.
        time: when the last one ran.
        folders: where the last ones worked.
    """

    reason: str
    count: int
    time: Time
    folders: tuple[str, ...]


@value
class CaptureStatus:
    """Whether capture works.

    Attributes:
        hooks: our hooks, by agent and scope.
        problems: why hooks do not work, and what was lost.
        waiting: how many lines the spool holds.
        is_busy: whether a worker is importing.
        events: the last event of each agent.
        sessions: the last sessions, newest first.
        missed: sessions that were not captured.
    """

    hooks: tuple[AgentHooks, ...]
    problems: tuple[Diagnosis, ...]
    waiting: int
    is_busy: bool
    events: tuple[LastEvent, ...]
    sessions: tuple[CapturedSession, ...]
    missed: tuple[MissedSessions, ...]


def capture_status(
    environment: Environment, store: Store | None = None, *, folder: str = "."
) -> CaptureStatus:
    """Return whether our hooks are installed and work, and what the worker of a repository did.

    Args:
        environment: locates the settings of agents.
        store: the repository; None if there is none.
        folder: a folder of the project.

    Raises:
        StorageError: a file of the repository cannot be read.
    """
    top = project_folder(folder)
    hooks = [
        _hooks_of(environment, each, scope, top) for each in PROGRAMS_BY_NAME for scope in SCOPES
    ]
    problems = [
        problem
        for each in hooks
        for problem in _problems_of(environment, each, os.path.abspath(folder), top)
    ]
    state, waiting, is_busy = CaptureState(), 0, False
    if store is not None and store.local:
        state = CaptureState.load(store.disk, store.layout)
        lines = unread_lines(store.disk, store.layout)
        waiting, is_busy = len(lines), _is_busy(store)
        problems += _problems_of_worker(store, state, lines, is_busy=is_busy)
    missed = _missed(environment)
    problems += _problems_of_missed(missed, top)
    return CaptureStatus(
        tuple(hooks),
        tuple(problems),
        waiting,
        is_busy,
        tuple(state.events.values()),
        tuple([*state.sessions.values()][: -SHOWN_SESSIONS - 1 : -1]),
        missed,
    )


def _hooks_of(environment: Environment, name: str, scope: str, top: str) -> AgentHooks:
    agent, path = PROGRAMS_BY_NAME[name], ""
    try:
        path = agent.file(environment, scope, top)
        file = SettingsFile.read(path)
        link = file.real if file.is_link else ""
        if agent.form == PLUGIN:
            return _plugin_state(scope, file, link)
        ours = edit_settings.our_handlers(agent, file.text())
    except (errors.StateError, edit_settings.SettingsError) as error:
        return AgentHooks(name, scope, path, UNKNOWN, error=str(error))
    handlers = [handler for each in ours.values() for _, handler in each]
    if not handlers:
        return AgentHooks(name, scope, path, MISSING, link)
    command = agent.command_of(handlers[0])
    wanted = agent.handlers(command)
    found = {event: [handler for _, handler in each] for event, each in ours.items()}
    is_whole = found == {event: [handler] for event, handler in wanted.items()}
    state = INSTALLED if is_whole else INCOMPLETE
    return AgentHooks(name, scope, path, state, link, agent.program_in(command))


def _plugin_state(scope: str, file: SettingsFile, link: str) -> AgentHooks:
    text, name = file.text(), "opencode"
    if not plugin.is_plugin(text):
        return AgentHooks(name, scope, file.path, MISSING, link)
    command = plugin.command_of(text)
    is_whole = bool(command) and text == plugin.plugin_text(command)
    state = INSTALLED if is_whole else INCOMPLETE
    return AgentHooks(name, scope, file.path, state, link, command[0] if command else "")


def _problems_of(
    environment: Environment, hooks: AgentHooks, folder: str, top: str
) -> Iterator[Diagnosis]:
    """Yield why installed hooks do not work, or not all of them."""
    agent = agent_named(hooks.agent)
    if hooks.state == UNKNOWN:
        if _was_installed(environment, hooks.path):
            advice = f"mend the file; then `trace hooks install {agent.name}`"
            yield Diagnosis("hooks-settings", hooks.path, hooks.error, advice)
        return
    if hooks.state == MISSING:
        if _was_installed(environment, hooks.path):
            detail = f"the hooks of {agent.title} were removed"
            advice = f"`trace hooks install {agent.name}` restores them; `trace hooks uninstall` ends this warning"
            yield Diagnosis("hooks-removed", hooks.path, detail, advice)
        return
    scope = " --project" if hooks.scope == PROJECT else ""
    install = f"`trace hooks install {agent.name}{scope}`"
    if hooks.state == INCOMPLETE:
        detail = "some entries are missing or of another version"
        yield Diagnosis("hooks-incomplete", hooks.path, detail, f"{install} mends them")
    if hooks.program and not program_path(environment, hooks.program):
        detail = f"{hooks.program} does not exist any more, so {agent.title} cannot run the hook"
        yield Diagnosis("hooks-program", hooks.path, detail, f"{install} names the new one")
    for check in _CHECKS.get(agent.name, ()):
        yield from check(environment, agent, hooks, folder, top)


def _was_installed(environment: Environment, path: str) -> bool:
    return bool(path) and Original.load(environment, HOOKS, path) is not None


# --- the rules of each agent


def _json_of(path: str) -> Mapping[str, Any]:
    """Return settings, which may have comments; empty if the file is absent or not valid."""
    try:
        text = read_unsized(Disk(), os.path.realpath(path), MAXIMUM_BYTES).decode("utf-8-sig")
        found = SettingsText(text, comments=True).root.plain()
    except (errors.StorageError, UnicodeDecodeError, JsonSyntaxError):
        return {}
    return found if isinstance(found, dict) else {}


def _at(settings: Mapping[str, Any], *keys: str) -> Any:
    found: Any = settings
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    return found


def _disabled(path: str, what: str, agent: AgentProgram) -> Diagnosis:
    detail = f"{what}, so {agent.title} runs no hook"
    return Diagnosis("hooks-disabled", path, detail, "change the setting, or the sessions are lost")


def _claude_code(
    environment: Environment, agent: AgentProgram, hooks: AgentHooks, folder: str, top: str
) -> Iterator[Diagnosis]:
    project = os.path.join(top, ".claude")
    places = [os.path.join(agent.folder(environment), "settings.json")]
    places += [os.path.join(project, name) for name in ("settings.json", "settings.local.json")]
    managed = _MANAGED.get(sys.platform, _MANAGED_ELSEWHERE)
    for path in (*places, managed):
        if _json_of(path).get("disableAllHooks") is True:
            yield _disabled(path, '"disableAllHooks" is true', agent)
    if _json_of(managed).get("allowManagedHooksOnly") is True:
        yield _disabled(managed, '"allowManagedHooksOnly" is true', agent)


def _codex(
    environment: Environment, agent: AgentProgram, hooks: AgentHooks, folder: str, top: str
) -> Iterator[Diagnosis]:
    config = os.path.join(agent.folder(environment), CONFIG)
    try:
        data = read_unsized(Disk(), os.path.realpath(config), MAXIMUM_BYTES)
        settings = tomllib.loads(data.decode())
    except (errors.StorageError, ValueError):
        detail = "it cannot be read, so it is not known whether Codex trusts the hooks"
        yield Diagnosis("hooks-untrusted", config, detail, "mend the file")
        return
    for name in ("hooks", "codex_hooks"):
        if _at(settings, "features", name) is False:
            yield _disabled(config, f"features.{name} is false", agent)
    found = _at(settings, "hooks", "state")
    states: Mapping[str, Any] = found if isinstance(found, dict) else {}
    waiting, off = [], []
    for event, listed in edit_settings.our_handlers(
        agent, SettingsFile.read(hooks.path).text()
    ).items():
        for place, handler in listed:
            names = state_names(hooks.path, event, place)
            state: Any = next((states[name] for name in names if name in states), {})
            if _at(state, "enabled") is False:
                off.append(event)
            elif _at(state, "trusted_hash") != codex_hash(event, handler):
                waiting.append(event)
    if off:
        yield _disabled(config, f"the hooks for {', '.join(off)} are turned off", agent)
    if waiting:
        detail = (
            f"Codex does not trust the hooks for {', '.join(waiting)} yet, and silently skips them"
        )
        advice = (
            "start `codex`, type /hooks, and trust them, or `trace hooks install codex --trust`;"
            " do it again after each change of the command"
        )
        yield Diagnosis("hooks-untrusted", hooks.path, detail, advice)


def _gemini(
    environment: Environment, agent: AgentProgram, hooks: AgentHooks, folder: str, top: str
) -> Iterator[Diagnosis]:
    places = (
        hooks.path,
        agent.file(environment, "user", top),
        agent.file(environment, PROJECT, top),
    )
    for path in dict.fromkeys(places):
        settings = _json_of(path)
        for key in ("hooksConfig", "hooks"):
            if _at(settings, key, "enabled") is False:
                yield _disabled(path, f'"{key}.enabled" is false', agent)
            off = _at(settings, key, "disabled")
            if isinstance(off, list) and "trace" in off:
                yield _disabled(path, f'"{key}.disabled" names our hook', agent)
    user = _json_of(places[1])
    if _at(user, "security", "folderTrust", "enabled") is False:
        return
    trusted = _json_of(os.path.join(agent.folder(environment), "trustedFolders.json"))
    above = [folder]
    while os.path.dirname(above[-1]) != above[-1]:
        above.append(os.path.dirname(above[-1]))
    siblings = (os.path.dirname(path) for path, how in trusted.items() if how == "TRUST_PARENT")
    known = {path for path, how in trusted.items() if how in _TRUSTING} | {*siblings}
    if not known.intersection((*above, *map(os.path.realpath, above))):
        detail = "Gemini CLI does not trust this folder, and runs no hook of the project in it"
        advice = "start `gemini` here and trust the folder"
        if hooks.scope == PROJECT:
            yield Diagnosis("hooks-folder", folder, detail, advice)
        elif os.path.exists(os.path.join(top, ".gemini")) or trusted.get(folder) == "DO_NOT_TRUST":
            yield Diagnosis("hooks-folder", folder, "Gemini CLI does not trust this folder", advice)


def _copilot(
    environment: Environment, agent: AgentProgram, hooks: AgentHooks, folder: str, top: str
) -> Iterator[Diagnosis]:
    for name in ("settings.json", "config.json", "hooks/trace.json"):
        path = os.path.join(agent.folder(environment), *name.split("/"))
        if _json_of(path).get("disableAllHooks") is True:
            yield _disabled(path, '"disableAllHooks" is true', agent)


_CHECKS = {
    CLAUDE_CODE: (_claude_code,),
    CODEX: (_codex,),
    GEMINI: (_gemini,),
    COPILOT: (_copilot,),
}


# --- the worker, and what was lost


def _is_busy(store: Store) -> bool:
    lock = WorkerLock(store.disk, store.layout)
    if not store.disk.exists(store.layout.locks_dir) or not lock.take():
        return store.disk.exists(store.layout.locks_dir)
    lock.release()
    return False


def _problems_of_worker(
    store: Store, state: CaptureState, lines: Sequence[str], *, is_busy: bool
) -> Iterator[Diagnosis]:
    now = store.clock.now()
    recent = [each for each in state.failures if now - each.time < RECENT_MILLISECONDS]
    broken = [each for each in state.sessions.values() if each.problem]
    if broken:
        last = recent[-1].what if recent else f"{broken[-1].transcript}: {broken[-1].problem}"
        count = "1 session" if len(broken) == 1 else f"{len(broken)} sessions"
        detail = f"{count} could not be imported; the last: {last}"
        session = broken[-1].session or broken[-1].transcript
        advice = f"`trace hooks run` tries again, `trace hooks run --forget {session}` gives it up"
        yield Diagnosis("hooks-failed", broken[-1].transcript, detail, advice)
    first = next((event for line in lines if (event := AgentEvent.read(line))), None)
    if first is not None and not is_busy and now - first.time > STALE_MILLISECONDS:
        detail = f"{len(lines)} events wait, and no worker runs"
        yield Diagnosis("hooks-waiting", "spool", detail, "`trace hooks run` imports them")
    if state.damaged:
        detail = f"{state.damaged} lines of the spool could not be read"
        yield Diagnosis(
            "hooks-lost", "spool", detail, "`trace import --all` imports what is missing"
        )


def _missed(environment: Environment) -> tuple[MissedSessions, ...]:
    by_reason: dict[str, dict[tuple[str, str], tuple[int, str]]] = {}
    for each in read_missed(environment):
        sessions = by_reason.setdefault(each.reason, {})
        name = (each.agent, each.session)
        sessions.pop(name, None)
        sessions[name] = each.time, each.folder
    return tuple(
        MissedSessions(
            reason,
            len(sessions),
            max(time for time, _ in sessions.values()),
            tuple(
                [*dict.fromkeys(folder for _, folder in sessions.values() if folder)][
                    -SHOWN_FOLDERS:
                ]
            ),
        )
        for reason, sessions in sorted(by_reason.items())
    )


def _problems_of_missed(missed: Sequence[MissedSessions], top: str) -> Iterator[Diagnosis]:
    """Yield what was lost in a project."""
    for each in missed:
        here = [path for path in each.folders if f"{path}{os.sep}".startswith(f"{top}{os.sep}")]
        if here and each.reason != NO_REPOSITORY:
            detail = f"a session was not captured here: {each.reason}"
            yield Diagnosis("hooks-lost", here[-1], detail, "`trace import --all` imports it")
