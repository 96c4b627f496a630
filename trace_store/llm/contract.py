"""Prompts and completions, the interface of all models.

A model is any callable that takes a Prompt and returns a Completion or a text.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress

from trace_store import errors
from trace_store.context.usage import Usage, normalise_usage
from trace_store.frozen import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


USER, ASSISTANT = "user", "assistant"
DONE, LENGTH = "done", "length"


@value
class Prompt:
    """A request to a model.

    Attributes:
        messages: pairs of a role, `user` or `assistant`, and a text; the last is the user's.
        system: the system prompt, or "".
        maximum_tokens: maximum length of the answer in tokens; 0 leaves it to the model.
    """

    messages: tuple[tuple[str, str], ...]
    system: str = ""
    maximum_tokens: int = 0


@value
class Completion:
    """An answer of a model.

    Attributes:
        text: the answer.
        model: the name of the model as reported, or "".
        usage: the reported usage, or None. A model may set it to the provider's dictionary, which `ask` converts.
        stop: `done`, or `length` if the answer was cut off.
    """

    text: str
    model: str = ""
    usage: Usage | None = None
    stop: str = DONE


Model = Callable[[Prompt], Completion | str]


def ask(model: Model, prompt: Prompt) -> Completion:
    """Return the answer of a model.

    Raises:
        ModelNonsenseError: the answer is neither a Completion nor a text, or the text is not Unicode.
        InvalidInputError: the usage is in an unknown format.
        ModelError: raised by the model itself.
    """
    answer: object = model(prompt)
    completion = Completion(answer) if isinstance(answer, str) else answer
    if not isinstance(completion, Completion):
        raise errors.ModelNonsenseError(
            f"the model returned {type(answer).__name__}, not a completion"
        )
    usage: object = completion.usage
    if usage is not None and not isinstance(usage, Usage):
        completion = replace(completion, usage=normalise_usage(usage))
    return check_text(completion)


def check_text(completion: Completion) -> Completion:
    """Return a completion if its text can be stored.

    Raises:
        ModelNonsenseError: it contains a lone surrogate.
    """
    try:
        completion.text.encode()
    except UnicodeEncodeError:
        raise errors.ModelNonsenseError("the model's answer is not Unicode text") from None
    return completion


_OPENED = (".connect_tcp.complete", ".start_tls.complete")
"""Events of httpcore that have the socket; TLS wraps it in another one."""


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


class RequestConnections:
    """The connections of one request, which can be shut down."""

    __slots__ = ("_sockets", "cancelled", "expired")

    def __init__(self) -> None:
        self._sockets: list[socket.socket] = []
        self.cancelled = False
        self.expired = False

    def cancel(self) -> None:
        """Shut the connections down, because the request was cancelled."""
        self.cancelled = True
        self._shut_down()

    def expire(self) -> None:
        """Shut the connections down, because the deadline has passed."""
        self.expired = True
        self._shut_down()

    def note(self, event: str, info: dict[str, Any]) -> None:
        """Record a new connection; a callback for httpcore's extension `trace`."""
        if event.endswith(_OPENED):
            found = info["return_value"].get_extra_info("socket")
            if found is not None:
                self._sockets.append(found)
            if self.cancelled or self.expired:
                self._shut_down()

    def check(self) -> None:
        """Raise if the connections were shut down.

        Raises:
            ModelCancelledError: the request was cancelled.
            ModelUnreachableError: the deadline has passed.
        """
        if self.cancelled:
            raise errors.ModelCancelledError("the request to the model was cancelled")
        if self.expired:
            raise errors.ModelUnreachableError(
                "the model did not answer before the deadline", retryable=False
            )

    def _shut_down(self) -> None:
        for each in list(self._sockets):
            with suppress(OSError):  # already closed
                # The method of a TLS socket would first discard state that the reader needs.
                socket.socket.shutdown(each, socket.SHUT_RDWR)
