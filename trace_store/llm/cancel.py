"""Cancellation of requests to a model.

A thread that waits for an answer blocks in the system until the connection ends. So a cancellation shuts the
connections down and records why.
"""

from __future__ import annotations

import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Cancellation:
    """Passed to a model with a prompt, to cancel the request from another thread."""

    __slots__ = ("_actions", "_event")

    def __init__(self) -> None:
        self._actions: list[Callable[[], None]] = []
        self._event = threading.Event()

    @property
    def cancelled(self) -> bool:
        """Whether `cancel` was called."""
        return self._event.is_set()

    def cancel(self) -> None:
        """Cancel current and later requests, which raise ModelCancelledError."""
        self._event.set()
        for action in list(self._actions):
            action()

    def wait(self, seconds: float) -> None:
        """Wait for a number of seconds, or until cancelled."""
        self._event.wait(seconds)

    def add(self, action: Callable[[], None]) -> None:
        """Call a function on cancellation, or now if already cancelled."""
        self._actions.append(action)
        if self.cancelled:
            action()

    def drop(self, action: Callable[[], None]) -> None:
        """Remove a function that was added."""
        self._actions.remove(action)
