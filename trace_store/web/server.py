"""The server: it listens on this machine, prints no log, and ends at once."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable
from types import FrameType

import uvicorn

from trace_store.base import check
from trace_store.base.environment import Environment
from trace_store.base.listening import listening_socket
from trace_store.errors import InvalidInputError
from trace_store.repo.repository import Repo
from trace_store.secrets.user_files import user_key
from trace_store.web import access as web_access
from trace_store.web.app import Web

LOCAL = "127.0.0.1"


class Server:
    """The web page of a repository.

    Attributes:
        host, port: where it listens.
        read_only: whether it has no actions.
        is_open: whether other machines can connect.
        link: a link that logs one browser in.
        address: the address of the page for a browser that is logged in.
    """

    def __init__(
        self,
        repo: Repo,
        *,
        host: str = LOCAL,
        port: int | None = None,
        token: str = "",
        read_only: bool = False,
        environment: Environment | None = None,
    ) -> None:
        """Listen; `run` serves.

        Args:
            repo: the repository.
            host: the address to listen on. Any but a loopback address needs a token, and makes the page read-only.
            port: the port; None is the one of the last time, else a free one; 0 is a free one.
            token: what a link must hold; by default one that works once.
            read_only: offer no actions.
            environment: has the place of the user's files.

        Raises:
            InvalidInputError: the host is not an address of this machine, or needs a token.
            StateError: the port is in use, code `port-in-use`.
        """
        check.text(host=host, token=token)
        if port is not None:
            check.integer(0, 65535, port=port)
        check.flag(read_only=read_only)
        if not web_access.is_loopback(host) and not token:
            raise InvalidInputError(
                f"{host} can be reached from other machines, so a token is needed", argument="token"
            )
        environment = Environment.read() if environment is None else environment
        store = repo.store
        wanted = web_access.saved_port(store, environment) if port is None else port
        self._socket = listening_socket(host, wanted)
        self.host, self.port = host, int(self._socket.getsockname()[1])
        self.is_open = not web_access.is_loopback(host)
        self.read_only = read_only or self.is_open
        if port is None and self.port != wanted:
            web_access.save_port(store, environment, self.port)
        access = web_access.Access(
            *(host, self.port, user_key(store, environment), store.config.store_id),
            token=token,
            read_only=self.read_only,
        )
        self.link, self.address = access.link(), f"{access.address}/"
        self._web, self._debug = Web(repo, access), environment.debug
        self._access, self._store, self._environment = access, store, environment
        self._opener = ""

    def opener(self) -> str:
        """Return the path of a file that lets one browser in, like a link; "" if the user has no data folder.

        Other users can see what a browser is started with, but they cannot read the file. `run` removes it at its end.
        """
        self._opener = web_access.save_opener(
            self._store, self._environment, self.port, self._access.link()
        )
        return self._opener

    def run(self, started: Callable[[], object] = lambda: None) -> None:
        """Serve until Ctrl-C or `stop`; `started` is called once it answers."""
        config = uvicorn.Config(
            self._web.application(),
            log_config=None,
            log_level=None if self._debug else "critical",
            access_log=False,
            server_header=False,
            ws="none",
            lifespan="on",
            timeout_graceful_shutdown=1,
            timeout_keep_alive=30,
        )
        self._server = _Uvicorn(config, self._web, started)
        try:
            self._server.run(sockets=[self._socket])
        except KeyboardInterrupt:
            pass
        finally:
            self._socket.close()
            if self._opener:
                self._store.disk.remove(self._opener)

    def stop(self) -> None:
        """End `run`, from any thread."""
        self._server.handle_exit(signal.SIGTERM, None)

    def close(self) -> None:
        """Stop listening, if `run` was never called."""
        self._socket.close()


class _Uvicorn(uvicorn.Server):
    """A server that ends its event streams before it waits for open requests."""

    def __init__(self, config: uvicorn.Config, web: Web, started: Callable[[], object]) -> None:
        super().__init__(config)
        self._web = web
        self._tell_started = started
        self._loop: asyncio.AbstractEventLoop | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)
        if self.started:
            self._tell_started()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._web.hub.close)
        self.should_exit = True
