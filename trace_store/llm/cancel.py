"""Giving up on an answer while it is waited for.

Rule: whoever waits for a model sleeps in the system, and only an end of the connection wakes them. So what gives up
ends the connections that are open, and says why.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

from trace_store import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_OPENED = (".connect_tcp.complete", ".start_tls.complete")
"""Events of httpcore: TLS takes the file from the socket that it is made over."""


class Cancellation:
    """Given to a model with a prompt, and cancelled from another thread when the answer is not wanted any more."""

    __slots__ = ("_actions", "_event")

    def __init__(self) -> None:
        self._actions: list[Callable[[], None]] = []
        self._event = threading.Event()

    @property
    def cancelled(self) -> bool:
        """Whether the answer is not wanted any more."""
        return self._event.is_set()

    def cancel(self) -> None:
        """End what is waited for: it raises ModelCancelledError, and so does what is begun later."""
        self._event.set()
        for action in list(self._actions):
            action()

    def wait(self, seconds: float) -> None:
        """Return after so many seconds, or as soon as it is cancelled."""
        self._event.wait(seconds)

    def add(self, action: Callable[[], None]) -> None:
        """Have something done at once when it is cancelled, or now when it was."""
        self._actions.append(action)
        if self.cancelled:
            action()

    def drop(self, action: Callable[[], None]) -> None:
        """Forget what `add` was given."""
        self._actions.remove(action)


class Cut:
    """The connections of one question to a model, which may be cut."""

    __slots__ = ("_sockets", "cancelled", "expired")

    def __init__(self) -> None:
        self._sockets: list[socket.socket] = []
        self.cancelled = False
        self.expired = False

    def cancel(self) -> None:
        """Cut, since the answer is not wanted."""
        self.cancelled = True
        self._cut()

    def expire(self) -> None:
        """Cut, since it takes too long."""
        self.expired = True
        self._cut()

    def note(self, event: str, info: dict[str, Any]) -> None:
        """Take note of a connection; it is called as httpcore's extension `trace` is."""
        if event.endswith(_OPENED):
            found = info["return_value"].get_extra_info("socket")
            if found is not None:
                self._sockets.append(found)
            if self.cancelled or self.expired:
                self._cut()

    def check(self) -> None:
        """Go on when nothing was cut.

        Raises:
            ModelCancelledError: the answer is not wanted.
            ModelUnreachableError: it takes too long.
        """
        if self.cancelled:
            raise errors.ModelCancelledError("the answer of the model was not waited for")
        if self.expired:
            raise errors.ModelUnreachableError(
                "the model's answer takes longer than is allowed", retryable=False
            )

    def _cut(self) -> None:
        for each in list(self._sockets):
            with suppress(OSError):  # its end has come already
                # Not the method of a socket with TLS, which first takes away what the reader is using.
                socket.socket.shutdown(each, socket.SHUT_RDWR)
