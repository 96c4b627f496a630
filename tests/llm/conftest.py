"""Models on this machine, asked without waiting."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from tests.cli.conftest import trace
from tests.llm.support.fault_server import FaultServer, Reply
from trace_store import llm
from trace_store.base.ident import FixedClock

__all__ = ["trace"]

KEY = "sk-acme-7Qm2Vx9TnR4bLk8Zw3Yp6"


class Waits(llm.http.Timing):
    """A clock that advances only when someone waits; records the waiting times.

    The alarm of the deadline rings when a server says that it stalls.
    """

    def __init__(self) -> None:
        self.waited: list[float] = []
        self._rings: threading.Event | None = None
        self._threads: list[threading.Thread] = []
        super().__init__(
            now=lambda: sum(self.waited),
            sleep=self.waited.append,
            jitter=lambda: 1.0,
            clock=FixedClock(1_700_000_000_000, step=0),
        )

    def rings_when(self, stalled: threading.Event) -> None:
        self._rings = stalled

    def alarm(self, seconds: float, action: Callable[[], None]) -> Callable[[], None]:
        if self._rings is not None:
            rings = self._rings

            def wait() -> None:
                if rings.wait(60):
                    action()

            thread = threading.Thread(target=wait, daemon=True)
            thread.start()
            self._threads.append(thread)
        return lambda: None


@pytest.fixture
def waits() -> Waits:
    return Waits()


@pytest.fixture
def serving() -> Iterator[Callable[..., FaultServer]]:
    """Start a server with these replies; it ends with the test."""
    servers: list[FaultServer] = []

    def start(*replies: Reply) -> FaultServer:
        servers.append(FaultServer(replies))
        return servers[-1]

    yield start
    for each in servers:
        each.close()


@pytest.fixture
def asking(waits: Waits) -> Callable[..., llm.http_model.HttpModel]:
    """Return a model on such a server."""

    def make(server: FaultServer, **settings: object) -> llm.http_model.HttpModel:
        defaults = {"name": "tiny", "url": server.url, "key": llm.settings.Secret(KEY)}
        return llm.http_model.HttpModel(
            llm.settings.ModelSettings(**{**defaults, **settings}),  # type: ignore[arg-type]
            timing=waits,
        )

    return make
