"""Prompts and completions, the interface of all models.

A model is any callable that takes a Prompt and returns a Completion or a text.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from trace_store import errors
from trace_store.context.usage import Usage, normalise_usage
from trace_store.frozen import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


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
