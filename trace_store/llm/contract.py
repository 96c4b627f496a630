"""Prompts and completions, the interface of all models, and dialogues.

A model is any callable that takes a Prompt and returns a Completion or a text. A dialogue asks it once more if an
answer cannot be used.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from trace_store import errors
from trace_store.base.frozen import replace, value
from trace_store.context.usage import Usage, normalise_usage
from trace_store.objects import operations as ops
from trace_store.objects.commit import Operation

T = TypeVar("T")

USER, ASSISTANT = "user", "assistant"
DONE, LENGTH = "done", "length"
MAXIMUM_BEGINNINGS = 20


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


class Dialogue:
    """Asks a model, and tells it the faults of an answer once.

    Attributes:
        answers: all answers, in order.
    """

    def __init__(self, model: Model, system: str, maximum_tokens: int) -> None:
        self._model = model
        self._system = system
        self._maximum_tokens = maximum_tokens
        self.answers: list[Completion] = []

    def ask(self, question: str, read: Callable[[str], T]) -> T:
        """Return what `read` returns for the text of an answer.

        Args:
            question: the question.
            read: raises ModelNonsenseError with `faults` that the model could correct, or without to give up.

        Raises:
            ModelError: the request failed, or the second answer could not be used either.
        """
        messages = [("user", question)]
        try:
            return self._send(messages, read)
        except errors.ModelNonsenseError as error:
            faults: Sequence[str] = error.data.get("faults", ())  # type: ignore[assignment]
            if not faults:
                raise
        listed = "\n".join(f"- {each}" for each in faults)
        messages += [
            ("assistant", self.answers[-1].text or "(nothing)"),
            ("user", f"That cannot be used:\n{listed}\nAnswer again, in full."),
        ]
        return self._send(messages, read)

    def _send(self, messages: Sequence[tuple[str, str]], read: Callable[[str], T]) -> T:
        prompt = Prompt(tuple(messages), self._system, self._maximum_tokens)
        answer = ask(self._model, prompt)
        self.answers.append(answer)
        if answer.stop != DONE:
            raise errors.ModelNonsenseError(
                "the model's answer was cut off", faults=("it was cut off: be brief",)
            )
        return read(answer.text)

    def usage_operations(self, redact: Callable[[str], str] = str) -> list[Operation]:
        """Return records of the reported usage; `redact` returns a model's name without secrets."""
        made = []
        for answer in self.answers:
            if answer.usage is not None:
                counts = answer.usage.as_map()
                if answer.model:
                    counts["model"] = redact(answer.model)
                made.append(ops.usage(counts))
        return made


def object_in(answer: str) -> dict[str, Any] | None:
    """Return the first JSON object in an answer, which may have text or a fence around it; None without one."""
    decoder = json.JSONDecoder()
    at = answer.find("{")
    for _ in range(MAXIMUM_BEGINNINGS):
        if at < 0:
            return None
        try:
            found: dict[str, Any] = decoder.raw_decode(answer, at)[0]
            return found
        except (ValueError, RecursionError):
            at = answer.find("{", at + 1)
    return None
