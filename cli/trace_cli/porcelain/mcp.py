"""`trace mcp`: the history of a repository for agents, over the Model Context Protocol."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import trace_store.mcp
from trace_cli.advice import hint
from trace_cli.arguments import ANY, SOME, Argument, Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.common import JSON, QUIET, opened
from trace_cli.porcelain.hooks import change_lines, own_command, raise_refused
from trace_cli.render.escape import safe
from trace_cli.render.tables import LEFT, table
from trace_cli.runtime import Invocation
from trace_cli.subcommands import Group
from trace_store import Repo, Store
from trace_store.capture.agents import PROJECT, USER
from trace_store.mcp.install import CLIENTS, VERB

TYPE_CHECKING = False
if TYPE_CHECKING:
    from trace_cli.runtime import Results

HELP = """Agents start `trace mcp` themselves; `trace mcp install` tells them to."""
WRITE = "--allow-write"
_NAMES = ", ".join(CLIENTS)
_ALLOW_WRITE = Option(
    WRITE, "allow_write", "Also offer tools that record decisions, findings, pins and checkpoints"
)
_USER = Option("--user", "user", "Use your own settings, for all projects")
_PROJECT = Option("--project", "project", "Use the settings of this project (default)")
_DRY_RUN = Option("--dry-run -n", "dry_run", "Only show what would be done")


@takes(
    _ALLOW_WRITE,
    Option("--http", "http", "Serve over HTTP on this machine, instead of standard input"),
    Option(
        *("--port", "port", "With --http: the port (default: a free one)", "N"),
        number=True,
        most=65535,
    ),
    JSON,
)
def mcp(invocation: Invocation, *, allow_write: bool, http: bool, port: int | None) -> None:
    """Let agents search and read this repository over the Model Context Protocol, until they disconnect.

    Agents start this command themselves; `trace mcp install` tells them to. The tools only read, unless --allow-write
    is given. The prompts need `trace brief --allow`.

    With --http, clients connect to an address of this machine and send the token that is printed.

        trace mcp
        trace -C project mcp --http --port 8765
    """
    if port is not None and not http:
        raise usage_error("--port requires --http")
    with _opened(invocation, allow_write=allow_write) as repo:
        folder = invocation.folder
        if not http:
            trace_store.mcp.serve_stdio(repo, folder=folder, allow_write=allow_write, hint=hint)
            return
        server = trace_store.mcp.McpHttpServer(
            repo, port=port or 0, folder=folder, allow_write=allow_write, hint=hint
        )

        def started() -> None:
            if invocation.as_json:
                assert invocation.write_result is not None
                invocation.write_result({"address": server.address, "token": server.token})
            else:
                invocation.line(server.address)
                invocation.line(f"Authorization: Bearer {server.token}")
            invocation.flush()
            invocation.note("Ctrl-C ends it")

        server.run(started)


@takes(
    Argument("AGENT...", "agents", _NAMES, SOME, completes="MCP_AGENT"),
    _USER,
    _PROJECT,
    _ALLOW_WRITE,
    Option("--print", "prints", "Print what to add by hand, and change nothing"),
    _DRY_RUN,
    JSON,
    QUIET,
)
def install(
    invocation: Invocation,
    *,
    agents: list[str],
    user: bool,
    project: bool,
    allow_write: bool,
    prints: bool,
    dry_run: bool,
) -> Results:
    """Add the server to the settings of agents.

    What changed is printed; other servers, comments and order stay. A file that is not valid is left as it is. Agents
    start the server in the folder in which they run, which needs a repository.

        trace mcp install claude-code
        trace mcp install codex --user
        trace mcp install gemini --print
    """
    scope = _scope(user=user, project=project)
    command = _command(invocation, scope, allow_write=allow_write)
    if prints:
        for name in agents:
            text = trace_store.mcp.manual_entry(name, command)
            yield {"agent": name, "settings": text}, text.removesuffix("\n")
        return
    done = trace_store.mcp.install_server(
        *(invocation.environment, agents, command),
        folder=invocation.folder,
        scope=scope,
        dry_run=dry_run,
    )
    for each in done:
        yield each, change_lines(invocation, each, dry_run=dry_run)
    raise_refused(invocation, done, lambda each: trace_store.mcp.manual_entry(each.agent, command))


@takes(
    Argument("AGENT...", "agents", f"{_NAMES} (default: all)", ANY, completes="MCP_AGENT"),
    _USER,
    _PROJECT,
    _DRY_RUN,
    JSON,
    QUIET,
)
def uninstall(
    invocation: Invocation, *, agents: list[str], user: bool, project: bool, dry_run: bool
) -> Results:
    """Remove the server from the settings of agents; their other servers stay."""
    done = trace_store.mcp.uninstall_server(
        invocation.environment,
        agents,
        folder=invocation.folder,
        scope=_scope(user=user, project=project),
        dry_run=dry_run,
    )
    for each in done:
        yield each, change_lines(invocation, each, dry_run=dry_run)
    if not (done or invocation.quiet or invocation.as_json):
        invocation.note("no agent has the server there")
    raise_refused(invocation, done)


@takes(JSON)
def status(invocation: Invocation) -> Results:
    """Show which agents start the server, for this project and for all of yours."""
    found = trace_store.mcp.server_status(invocation.environment, folder=invocation.folder)
    rows = [
        (
            *(each.agent, each.scope),
            safe(each.problem) if each.problem else "installed" if each.command else "–",
            safe(each.path),
        )
        for each in found
    ]
    yield found, table(invocation, (), rows, LEFT * 4, [("", "", "", "dim")] * len(rows))


@contextmanager
def _opened(invocation: Invocation, *, allow_write: bool) -> Iterator[Repo]:
    """Open the repository of this run, which only `--allow-write` can write to."""
    if allow_write:
        with opened(invocation, quiet=True) as repo:
            yield repo
        return
    environment, folder = invocation.environment, invocation.folder
    where = Store.find(folder, environment, explicit=invocation.directory)
    with trace_store.mcp.open_for_reading(where, environment, folder=folder) as repo:
        yield repo


def _scope(*, user: bool, project: bool) -> str:
    if user and project:
        raise usage_error("--user and --project exclude each other")
    return USER if user else PROJECT


def _command(invocation: Invocation, scope: str, *, allow_write: bool) -> list[str]:
    """Return the command line that an agent starts."""
    return [
        *own_command(invocation, shared=scope == PROJECT),
        VERB,
        *([WRITE] if allow_write else ()),
    ]


def known_agents(incomplete: str) -> list[str]:
    """Complete the name of an agent."""
    return [name for name in CLIENTS if name.startswith(incomplete)]


GROUP = Group(HELP, {"install": install, "status": status, "uninstall": uninstall}, bare=mcp)
