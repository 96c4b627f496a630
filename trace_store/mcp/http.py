"""The server over HTTP, on this machine only, for clients that send the token.

A page in a browser can send requests to this machine, and other users of it can connect. So each request needs the
token, a `Host` of this machine, and no `Origin` of another page. The token comes from the user's own key, so that it
stays the same for a repository, and no other user can read it.
"""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from trace_store.base import check
from trace_store.base.listening import listening_socket
from trace_store.base.oid import derived_key
from trace_store.mcp.server import Hint, mcp_server, no_hint
from trace_store.repo.repository import Repo
from trace_store.secrets.user_files import user_key

HOST, PATH = "127.0.0.1", "/mcp"
TOKENS = "trace-store 2026 token of the MCP server"
"""The purpose of a derived key."""
SHUTDOWN_SECONDS = 1
MAXIMUM_SESSIONS = 64


class McpHttpServer:
    """The MCP server of a repository over HTTP.

    Attributes:
        address: where clients connect.
        token: what they send, as `Authorization: Bearer TOKEN`.
    """

    def __init__(
        self,
        repo: Repo,
        *,
        port: int = 0,
        folder: str = ".",
        allow_write: bool = False,
        hint: Hint = no_hint,
    ) -> None:
        """Listen; `run` serves.

        Args:
            repo: the repository.
            port: the port; 0 is a free one.
            folder: a folder in the git repository of the code.
            allow_write: whether to offer tools that record.
            hint: as in `mcp_server`.

        Raises:
            StateError: the port is in use, code `port-in-use`.
        """
        check.integer(0, 65535, port=port)
        key = user_key(repo.store, repo.writer.environment)
        self.token = derived_key(key, TOKENS).hex()
        self._socket = listening_socket(HOST, port)
        port = int(self._socket.getsockname()[1])
        self.address = f"http://{HOST}:{port}{PATH}"
        own = [f"{name}:{port}" for name in (HOST, "localhost")]
        security = TransportSecuritySettings(
            allowed_hosts=own, allowed_origins=[f"http://{each}" for each in own]
        )
        made = mcp_server(repo, folder=folder, allow_write=allow_write, hint=hint)
        app = made.streamable_http_app(
            streamable_http_path=PATH,
            host=HOST,
            transport_security=security,
            max_sessions=MAXIMUM_SESSIONS,
        )
        config = uvicorn.Config(
            _WithToken(app, self.token),
            log_config=None,
            log_level="critical",
            access_log=False,
            server_header=False,
            ws="none",
            lifespan="on",
            timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        )
        self._server = _Uvicorn(config)

    def run(self, started: Callable[[], object] = lambda: None) -> None:
        """Serve until Ctrl-C or `stop`; `started` is called once it answers."""
        self._server.tell_started = started
        try:
            self._server.run(sockets=[self._socket])
        except KeyboardInterrupt:
            pass
        finally:
            self.close()

    def stop(self) -> None:
        """End `run`, from any thread."""
        self._server.should_exit = True

    def close(self) -> None:
        """Stop listening."""
        self._socket.close()


class _Uvicorn(uvicorn.Server):
    tell_started: Callable[[], object]

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self.tell_started()


class _WithToken:
    """An application whose requests need a token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._wanted = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers: dict[bytes, bytes] = dict(scope["headers"])
            given = headers.get(b"authorization", b"")
            if not secrets.compare_digest(given, self._wanted):
                refusal = PlainTextResponse(
                    "The token that `trace mcp --http` printed is needed.\n",
                    401,
                    {"www-authenticate": "Bearer"},
                )
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)
