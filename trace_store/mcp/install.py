"""The entry in the settings of agents that makes them start `trace mcp`: added, found and removed.

The rules of `capture.settings_change` hold. A file that has another server under our name stays as it is.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from trace_store import errors
from trace_store.base.environment import Environment
from trace_store.base.frozen import value
from trace_store.capture.agents import MODULE, PROGRAMS, PROJECT, USER, program_path
from trace_store.capture.jsonc import JsonNode, SettingsText
from trace_store.capture.settings_change import (
    UNCHANGED,
    SettingsChange,
    SettingsEntry,
    change_all,
)
from trace_store.capture.settings_file import SERVER, SettingsFile
from trace_store.capture.spool import CLAUDE_CODE, CODEX, COPILOT, GEMINI, OPENCODE
from trace_store.importers.discovery import project_folder

NAME = "trace"
"""The name of the server in settings."""
VERB = "mcp"
_SERVERS = "mcpServers"
_TABLE = f"[mcp_servers.{NAME}]"
_BLOCK = re.compile(rf"(?:\r?\n)?^\[mcp_servers\.{NAME}\][^\S\n]*\r?\n(?:(?!\[).*(?:\n|\Z))*", re.M)

Command = Sequence[str]


@value
class McpClient:
    """An agent that starts MCP servers.

    Attributes:
        name: the agent.
        key: the object in its settings that holds the servers; "" for Codex, whose settings are TOML.
        user, project: its files; the user's file is relative to `_folder`.
        comments: whether its settings may hold comments.
    """

    name: str
    key: str
    user: str
    project: str
    comments: bool = False

    def file(self, environment: Environment, scope: str, top: str) -> str:
        """Return its settings: the user's, or those of a project, whose folder is `top`.

        Raises:
            StateError: the user has no home folder.
        """
        names = self.project if scope == PROJECT else self.user
        folder = top if scope == PROJECT else self._folder(environment)
        path = os.path.join(folder, *names.split("/"))
        other = f"{path}c"  # opencode also reads opencode.jsonc
        return other if self.name == OPENCODE and os.path.exists(other) else path

    def _folder(self, environment: Environment) -> str:
        own = environment.variables("CLAUDE_CONFIG_DIR").get("CLAUDE_CONFIG_DIR", "")
        places = {
            CLAUDE_CODE: own or environment.home,
            CODEX: environment.codex_dir,
            GEMINI: environment.gemini_dir,
            OPENCODE: environment.config_dir,
            COPILOT: environment.copilot_dir,
        }
        if not places[self.name]:
            raise errors.StateError("no home folder; set HOME")
        return places[self.name]

    def entry(self, command: Command) -> dict[str, Any]:
        """Return the entry that starts a command, in the form in which the agent writes it itself."""
        program, *arguments = command
        started = {"command": program, "args": arguments}
        if self.name == OPENCODE:
            return {"type": "local", "command": [*command], "enabled": True}
        if self.name == COPILOT:
            return {"tools": ["*"], "type": "local", **started}
        return {"type": "stdio", **started} if self.name == CLAUDE_CODE else started

    def command_of(self, entry: object) -> list[str]:
        """Return the command that an entry starts; [] if there is none."""
        if not isinstance(entry, dict):
            return []
        command, arguments = entry.get("command"), entry.get("args")
        rest = arguments if isinstance(arguments, list) else []
        words = command if isinstance(command, list) else [command, *rest]
        return [str(each) for each in words] if all(isinstance(e, str) for e in words) else []

    def find(self, text: str) -> object:
        """Return the entry of our name in settings; None if there is none.

        Raises:
            ValueError: the settings are not valid.
        """
        if not self.key:
            servers = tomllib.loads(text).get("mcp_servers", {})
            return servers.get(NAME) if isinstance(servers, dict) else None
        text = text if text.strip() else "{}"
        node = self._servers(SettingsText(text, comments=self.comments))
        found = None if node is None else node.get(NAME)
        return None if found is None else found.plain()

    def _servers(self, document: SettingsText) -> JsonNode | None:
        if document.root.kind != "object":
            raise ValueError("its value is not an object")
        node = document.root.get(self.key)
        if node is not None and node.kind != "object":
            raise ValueError(f"{self.key} is not an object")
        return node

    def with_entry(self, text: str, command: Command) -> str:
        """Return settings with our entry, added at the end or updated; raises as `find`."""
        if not self.key:
            return _with_table(_without_table(text), command)
        entry = self.entry(command)
        document = SettingsText(text if text.strip() else "{}\n", comments=self.comments)
        servers = self._servers(document)
        if servers is None:
            return document.append(document.root, {NAME: entry}, self.key)
        ours = servers.get(NAME)
        if ours is None:
            return document.append(servers, entry, NAME)
        kept = {**ours.plain(), **entry}
        return text if ours.plain() == kept else document.replace(ours, kept)

    def without_entry(self, text: str) -> str:
        """Return settings without our entry, and without the object of servers if that was all; raises as `find`."""
        if not self.key:
            return _without_table(text)
        document = SettingsText(text, comments=self.comments)
        node, key = self._servers(document), NAME
        assert node is not None
        if len(node.members) == 1:
            node, key = document.root, self.key
        names = [each.key for each in node.members]
        return document.remove(node, names.index(key))


CLIENTS = {
    each.name: each
    for each in (
        McpClient(CLAUDE_CODE, _SERVERS, ".claude.json", ".mcp.json"),
        McpClient(CODEX, "", "config.toml", ".codex/config.toml"),
        McpClient(GEMINI, _SERVERS, "settings.json", ".gemini/settings.json", comments=True),
        McpClient(OPENCODE, "mcp", "opencode/opencode.json", "opencode.json", comments=True),
        McpClient(COPILOT, _SERVERS, "mcp-config.json", ".github/mcp.json"),
    )
}


@value
class McpEntry:
    """Whether an agent starts our server.

    Attributes:
        agent: the agent.
        scope: `user` or `project`.
        path: its settings.
        command: the command that it starts, in words; empty if it has no entry of ours.
        problem: what keeps it from working, or "".
    """

    JSON = "problem?"

    agent: str
    scope: str
    path: str
    command: tuple[str, ...]
    problem: str = ""


def client_named(name: str) -> McpClient:
    """Return an agent by its name.

    Raises:
        InvalidInputError: it is unknown.
    """
    if name not in CLIENTS:
        raise errors.InvalidInputError(
            f"no agent {name[:40]!r}; known: {', '.join(CLIENTS)}", argument="agent"
        )
    return CLIENTS[name]


def _clients(names: Sequence[str]) -> list[McpClient]:
    return [client_named(each) for each in dict.fromkeys(names)]


def install_server(
    environment: Environment,
    agents: Sequence[str],
    command: Command,
    *,
    folder: str = ".",
    scope: str = PROJECT,
    dry_run: bool = False,
) -> list[SettingsChange]:
    """Add our entry to the settings of agents, or update it, and return what was done to each file.

    Args:
        environment: locates the settings.
        agents: names of agents.
        command: what they start, such as `["trace", "mcp"]`.
        folder: a folder of the project.
        scope: `user` or `project`: whose settings.
        dry_run: only return what would be done.

    Raises:
        InvalidInputError: there is no such agent.
    """

    def add(client: McpClient, text: str) -> str:
        found = client.find(text)
        if found is not None and not is_our_command(client.command_of(found)):
            raise ValueError(f"it has another server named {NAME}")
        return client.with_entry(text, command)

    clients, entry = _clients(agents), partial(_entry, add)
    return change_all(environment, clients, entry, folder=folder, scope=scope, dry_run=dry_run)


def uninstall_server(
    environment: Environment,
    agents: Sequence[str] = (),
    *,
    folder: str = ".",
    scope: str = PROJECT,
    dry_run: bool = False,
) -> list[SettingsChange]:
    """Take our entry out of the settings of agents, of all if none is named; arguments as in `install_server`."""
    clients, entry = _clients(agents or list(CLIENTS)), partial(_entry, _take_out)
    done = change_all(environment, clients, entry, folder=folder, scope=scope, dry_run=dry_run)
    return [each for each in done if each.action != UNCHANGED]


def server_status(environment: Environment, *, folder: str = ".") -> list[McpEntry]:
    """Return whether each agent starts our server, in the user's settings and in those of the project."""
    top = project_folder(folder)
    found = []
    for client in CLIENTS.values():
        for scope in (PROJECT, USER):
            path = ""
            try:
                path = client.file(environment, scope, top)
                command = client.command_of(client.find(SettingsFile.read(path).text()))
            except errors.StateError as error:
                found.append(McpEntry(client.name, scope, path, (), error.message))
                continue
            except ValueError as error:
                found.append(McpEntry(client.name, scope, path, (), f"not valid: {error}"))
                continue
            ours = tuple(command) if is_our_command(command) else ()
            is_lost = bool(ours) and not program_path(environment, ours[0])
            problem = f"{ours[0]} is not there" if is_lost else ""
            found.append(McpEntry(client.name, scope, path, ours, problem))
    return found


def manual_entry(agent: str, command: Command) -> str:
    """Return what a person would add to the settings of an agent by hand.

    Raises:
        InvalidInputError: there is no such agent.
    """
    client = client_named(agent)
    if not client.key:
        return _with_table("", command)
    return json.dumps({client.key: {NAME: client.entry(command)}}, indent=2) + "\n"


def is_our_command(command: Command) -> bool:
    """Return True if a command starts `trace mcp`, or a Python that does."""
    if VERB not in command:
        return False
    before = list(command[: command.index(VERB)])
    program = os.path.basename(before[0]).removesuffix(".exe") if before else ""
    return program in PROGRAMS or before[1:3] == ["-m", MODULE]


def _entry(edit: Callable[[McpClient, str], str], client: McpClient) -> SettingsEntry:
    return SettingsEntry(
        SERVER,
        edit=partial(edit, client),
        without=partial(_take_out, client),
        has_ours=lambda text: is_our_command(client.command_of(client.find(text))),
        is_empty=lambda text: text.strip() in ("", "{}"),
    )


def _take_out(client: McpClient, text: str) -> str:
    is_ours = text.strip() and is_our_command(client.command_of(client.find(text)))
    return client.without_entry(text) if is_ours else text


def _with_table(text: str, command: Command) -> str:
    """Return settings of Codex with our table at the end.

    Raises:
        ValueError: they are not TOML, or would not be with it.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    program, *arguments = (json.dumps(each, ensure_ascii=False) for each in command)
    table = [_TABLE, f"command = {program}", f"args = [{', '.join(arguments)}]", ""]
    start = text if not text or text.endswith("\n") else text + newline
    after = start + (newline if start else "") + newline.join(table)
    _check_rest(text, after)
    return after


def _without_table(text: str) -> str:
    """Return settings of Codex without our table; raises as `_with_table`."""
    after = _BLOCK.sub("", text)
    _check_rest(text, after)
    return after


def _check_rest(before: str, after: str) -> None:
    """Raise ValueError if two settings differ in more than our table."""

    def rest(text: str) -> dict[str, Any]:
        found = tomllib.loads(text)
        servers = found.get("mcp_servers")
        if isinstance(servers, dict):
            servers.pop(NAME, None)
            if not servers:
                del found["mcp_servers"]
        return found

    if rest(before) != rest(after):
        raise ValueError("the table cannot be changed without changing others")
