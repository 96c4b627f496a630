"""`trace web`."""

from __future__ import annotations

import sys
import threading
import webbrowser
from pathlib import Path

import trace_store.web
from trace_cli.arguments import Option, takes
from trace_cli.porcelain.common import JSON, opened
from trace_cli.runtime import Invocation

LOCAL = "127.0.0.1"


@takes(
    Option(
        "--port",
        "port",
        "The port (default: the last one, or a free one; 0: a free one)",
        "N",
        number=True,
        least=0,
    ),
    Option("--host", "host", "Listen on this address", "ADDRESS", default=LOCAL),
    Option(
        "--token",
        "token",
        "A fixed token for the link, instead of one for one use",
        "TEXT",
        default="",
    ),
    Option("--read-only", "read_only", "Offer no actions"),
    Option("--no-browser", "no_browser", "Only print the link"),
    JSON,
)
def web(
    invocation: Invocation,
    *,
    port: int | None,
    host: str,
    token: str,
    read_only: bool,
    no_browser: bool,
) -> None:
    """Open a page in the browser where you can watch, read, search and compare sessions, until Ctrl-C.

    The page is for you alone: its link works once, and then your browser is known. With another --host than this
    machine's, it needs --token and is read-only; anybody who knows the token can then read the whole repository.

        trace web
        trace web --port 8000 --no-browser
    """
    with opened(invocation) as repo:
        server = trace_store.web.Server(
            repo,
            host=host,
            port=port,
            token=token,
            read_only=read_only,
            environment=invocation.environment,
        )

        said = {"link": server.link, "address": server.address, "read_only": server.read_only}

        def started() -> None:
            if invocation.as_json:
                assert invocation.write_result is not None
                invocation.write_result(said)
            else:
                invocation.line(server.link)
            invocation.flush()
            if server.is_open:
                invocation.note("note: other machines can read this repository with the token")
            invocation.note("Ctrl-C ends it")
            if not (no_browser or invocation.as_json):
                _browse(invocation, server.opener())

        server.run(started)


def _browse(invocation: Invocation, file: str) -> None:
    """Open a file in the browser; where there is no screen, a browser would take the terminal."""
    has_screen = sys.platform in ("darwin", "win32") or bool(
        invocation.environment.variables("DISPLAY", "WAYLAND_DISPLAY")
    )

    def browse() -> None:
        if not (file and has_screen and webbrowser.open(Path(file).as_uri())):
            invocation.note("no browser was found: open the link")

    threading.Thread(target=browse, daemon=True).start()  # some browsers return late
