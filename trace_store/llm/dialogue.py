"""A question to a model, and a second one if the answer cannot be used."""

from __future__ import annotations

import json

from trace_store import errors
from trace_store.llm.contract import DONE, Completion, Model, Prompt, ask
from trace_store.objects import operations as ops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeVar

    from trace_store.objects.commit import Operation

    T = TypeVar("T")

MAXIMUM_BEGINNINGS = 20


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
        told = "\n".join(f"- {each}" for each in faults)
        messages += [
            ("assistant", self.answers[-1].text or "(nothing)"),
            ("user", f"That cannot be used:\n{told}\nAnswer again, in full."),
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
