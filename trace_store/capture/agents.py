"""The agents that have hooks: their settings files, their events, and the shape of an entry.

Rule: only events that observe are listed. None of them can refuse a tool call or change a prompt, and our hook prints
nothing and exits with 0.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from trace_store import errors
from trace_store.base.environment import Environment
from trace_store.base.frozen import field, value
from trace_store.capture.spool import (
    AGENTS,
    BRIEF_OPTION,
    BRIEFED,
    CLAUDE_CODE,
    CODEX,
    COPILOT,
    GEMINI,
    OPENCODE,
    PERSONAL_OPTION,
)

USER, PROJECT = "user", "project"
SCOPES = (USER, PROJECT)
CURSOR = "cursor"
"""An agent that is not supported: the rules for its hooks differ between its versions."""
GROUPS, HANDLERS, PLUGIN = "groups", "handlers", "plugin"
"""How hooks are listed: groups of handlers, handlers, or a module of JavaScript."""
PROGRAMS = ("trace", "trace-store")
MODULE = "trace_cli"
SECONDS = 10
"""How long an agent waits for a hook at most; ours takes a twentieth of a second."""
_SHELL_KEYS = ("command", "bash", "powershell")


@value
class AgentProgram:
    """An agent that has hooks.

    Attributes:
        name: its name in Trace, which is also the name of its import format.
        title: the name that its vendor uses.
        project: the path of its settings in a project's folder.
        form: `groups`, `handlers` or `plugin`.
        events: the events to install, with the time limit of each in seconds.
        comments: whether its settings may hold comments.
        empty: its settings before any hook.
        is_own: whether the file holds nothing but our hooks.
    """

    name: str
    title: str
    project: str
    form: str
    events: Mapping[str, int]
    comments: bool = False
    empty: Mapping[str, Any] = field(default_factory=dict)
    is_own: bool = False

    def folder(self, environment: Environment) -> str:
        """Return the folder of its settings, which need not exist.

        Raises:
            StateError: the user has no home folder.
        """
        places = {
            CLAUDE_CODE: environment.claude_dir,
            CODEX: environment.codex_dir,
            GEMINI: environment.gemini_dir,
            OPENCODE: environment.config_dir and os.path.join(environment.config_dir, "opencode"),
            COPILOT: environment.copilot_dir,
        }
        if not places[self.name]:
            raise errors.StateError("no home folder; set HOME")
        return places[self.name]

    def file(self, environment: Environment, scope: str, top: str) -> str:
        """Return the path of the file with its hooks: the user's own, or one in the project folder `top`."""
        if scope == PROJECT:
            return os.path.join(top, *self.project.split("/"))
        return os.path.join(self.folder(environment), *_USER_FILES[self.name].split("/"))

    def handlers(self, command: str) -> dict[str, dict[str, Any]]:
        """Return our handler for each event, given the command line of the hook."""
        return {event: self._handler(command, seconds) for event, seconds in self.events.items()}

    def _handler(self, command: str, seconds: int) -> dict[str, Any]:
        if self.name == COPILOT:
            other = f"& {command}" if command[:1] in ("'", '"') else command
            shells = {"bash": command, "powershell": other}
            return {"type": "command", **shells, "timeoutSec": seconds}
        handler: dict[str, Any] = {"type": "command", "command": command}
        if self.name == GEMINI:
            # Gemini CLI trusts a hook by its name and its command, and counts in milliseconds.
            return {"name": "trace", **handler, "timeout": seconds * 1000}
        return {**handler, "timeout": seconds}

    def is_our_handler(self, handler: object) -> bool:
        """Return True if a handler runs our hook, and nothing else."""
        if not isinstance(handler, dict):
            return False
        commands = [handler[key] for key in _SHELL_KEYS if isinstance(handler.get(key), str)]
        return bool(commands) and all(self.program_in(each) for each in commands)

    def command_of(self, handler: Mapping[str, Any]) -> str:
        """Return the command line of a handler of ours."""
        return next(str(handler[key]) for key in _SHELL_KEYS if isinstance(handler.get(key), str))

    def program_in(self, command: str) -> str:
        """Return the program that a command of our hook runs; "" if it is another command."""
        try:
            words = shlex.split(command)
        except ValueError:
            return ""
        words = words[1:] if words[:1] == ["&"] else words
        while words[-1:] in ([PERSONAL_OPTION], [BRIEF_OPTION]):
            words.pop()
        if words[-2:] != ["hook", self.name]:
            return ""
        first, *rest = words[:-2] or [""]
        name = first.replace("\\", "/").rpartition("/")[2].removesuffix(".exe")
        is_ours = name in PROGRAMS if not rest else rest == ["-m", MODULE]
        return first if is_ours else ""


_USER_FILES = {
    CLAUDE_CODE: "settings.json",
    CODEX: "hooks.json",
    GEMINI: "settings.json",
    OPENCODE: "plugins/trace.js",
    COPILOT: "hooks/trace.json",
}
_TURNS = ("SessionStart", "UserPromptSubmit", "Stop", "SubagentStop", "PreCompact", "SessionEnd")

PROGRAMS_BY_NAME = {
    each.name: each
    for each in (
        AgentProgram(
            CLAUDE_CODE,
            "Claude Code",
            ".claude/settings.json",
            GROUPS,
            dict.fromkeys(_TURNS, SECONDS),
        ),
        AgentProgram(
            CODEX,
            "Codex",
            ".codex/hooks.json",
            GROUPS,
            # It warns at each start if the end of a session may take longer.
            {**dict.fromkeys(_TURNS, SECONDS), "SessionEnd": 3},
        ),
        AgentProgram(
            GEMINI,
            "Gemini CLI",
            ".gemini/settings.json",
            GROUPS,
            dict.fromkeys(
                ("SessionStart", "BeforeAgent", "AfterAgent", "PreCompress", "SessionEnd"), SECONDS
            ),
            comments=True,
        ),
        AgentProgram(OPENCODE, "opencode", ".opencode/plugins/trace.js", PLUGIN, {}, is_own=True),
        AgentProgram(
            COPILOT,
            "Copilot CLI",
            ".github/hooks/trace.json",
            HANDLERS,
            dict.fromkeys(_TURNS, SECONDS),
            empty={"version": 1},
            is_own=True,
        ),
    )
}


def agent_named(name: str) -> AgentProgram:
    """Return an agent.

    Raises:
        InvalidInputError: there is no such agent, or its hooks are not known well enough.
    """
    if name == CURSOR:
        raise errors.InvalidInputError(
            "cursor is not supported: the rules for its hooks differ between its versions"
        )
    if name not in PROGRAMS_BY_NAME:
        raise errors.InvalidInputError(f"unknown agent {name[:40]!r}: one of {', '.join(AGENTS)}")
    return PROGRAMS_BY_NAME[name]


def hook_words(
    command: Sequence[str], agent: str, *, personal: bool = False, brief: bool = False
) -> list[str]:
    """Return the words of a hook's command.

    Args:
        command: the command line of Trace.
        agent: the agent.
        personal: whether sessions outside of repositories go to the user's own.
        brief: whether sessions begin with a brief; agents that read none get none.
    """
    options = [PERSONAL_OPTION] if personal else []
    options += [BRIEF_OPTION] if brief and agent in BRIEFED else []
    return [*command, "hook", agent, *options]


def command_line(words: Sequence[str]) -> str:
    """Return the words of a command as a line for the shell of this system."""
    if os.name == "nt":
        return " ".join(
            f'"{word}"' if not word.isalnum() and os.sep in word else word for word in words
        )
    return shlex.join([*words])


def program_path(environment: Environment, program: str) -> str:
    """Return the path of an executable, searched on PATH unless it has a folder; "" if there is none."""
    folders = environment.variables("PATH").get("PATH", "").split(os.pathsep)
    names = [program] if os.path.dirname(program) else [os.path.join(f, program) for f in folders]
    names += [f"{name}.exe" for name in names if os.name == "nt"]
    return next((name for name in names if os.path.isfile(name) and os.access(name, os.X_OK)), "")
