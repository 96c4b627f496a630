"""`trace mcp`: the history of a repository for agents, over the Model Context Protocol."""

from __future__ import annotations

import trace_store.mcp
from trace_cli.arguments import Option, takes
from trace_cli.failures import usage_error
from trace_cli.porcelain.common import JSON, opened
from trace_cli.runtime import Invocation
from trace_cli.subcommands import Group

HELP = """Agents start `trace mcp` themselves; `trace mcp config AGENT` shows how to tell them."""


@takes(
    Option(
        "--allow-write", "allow_write", "Also offer tools that record decisions, findings, pins"
    ),
    Option(
        "--http", "http", "Serve over HTTP on this machine, instead of standard input and output"
    ),
    Option(
        "--port",
        "port",
        "With --http: the port (default: a free one)",
        "N",
        number=True,
        most=65535,
    ),
    JSON,
)
def mcp(invocation: Invocation, *, allow_write: bool, http: bool, port: int | None) -> None:
    """Let agents search and read this repository over the Model Context Protocol, until they disconnect.

    Agents start this command themselves. The tools only read, unless --allow-write is given: then they can also record
    decisions, findings and checkpoints, and pin messages. The prompts need `trace brief --allow`.

    With --http, clients connect to an address of this machine and send the token that is printed.

        trace mcp
        trace -C project mcp --http --port 8765
    """
    if port is not None and not http:
        raise usage_error("--port requires --http")
    with opened(invocation, quiet=True) as repo:
        folder = invocation.folder
        if not http:
            trace_store.mcp.serve_stdio(repo, folder=folder, allow_write=allow_write)
            return
        server = trace_store.mcp.McpHttpServer(
            repo, port=port or 0, folder=folder, allow_write=allow_write
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


GROUP = Group(HELP, {}, bare=mcp)
