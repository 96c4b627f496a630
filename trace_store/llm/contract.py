"""What is asked of a model and what it answers, whoever it is.

Rule: pure. A model is any callable that takes a Prompt and returns a Completion, or a text.
"""

from __future__ import annotations

from collections.abc import Callable

from trace_store import errors
from trace_store.context.usage import Usage, normalise_usage
from trace_store.frozen import replace, value

USER, ASSISTANT = "user", "assistant"
DONE, LENGTH = "done", "length"


@value
class Prompt:
    """What a model is asked.

    Attributes:
        messages: pairs of a role, `user` or `assistant`, and a text; the last is the user's.
        system: what the model is told about its task; "" for nothing.
        maximum_tokens: how long the answer may be, in tokens; 0 leaves it to the model.
    """

    messages: tuple[tuple[str, str], ...]
    system: str = ""
    maximum_tokens: int = 0


@value
class Completion:
    """What a model answered.

    Attributes:
        text: the answer.
        model: the name of the model, as whoever answered gives it; "" when it does not.
        usage: what it cost, in the normal form; a provider's dictionary is read as that. None when it was not told.
        stop: `done`, or `length` when the answer was cut because it became too long.
    """

    text: str
    model: str = ""
    usage: Usage | None = None
    stop: str = DONE


Model = Callable[[Prompt], Completion | str]


def ask(model: Model, prompt: Prompt) -> Completion:
    """Return what a model answers.

    Raises:
        ModelNonsenseError: it returns neither a Completion nor a text, or a text that is not Unicode.
        InvalidInputError: what it tells of its usage is of no known shape.
        ModelError: as the model does.
    """
    answer: object = model(prompt)
    found = Completion(answer) if isinstance(answer, str) else answer
    if not isinstance(found, Completion):
        raise errors.ModelNonsenseError(
            f"the model returned {type(answer).__name__}, and no completion"
        )
    usage: object = found.usage
    if usage is not None and not isinstance(usage, Usage):
        found = replace(found, usage=normalise_usage(usage))
    return checked(found)


def checked(completion: Completion) -> Completion:
    """Return a completion whose text can be stored.

    Raises:
        ModelNonsenseError: it has half of a character that UTF-16 writes as two.
    """
    try:
        completion.text.encode()
    except UnicodeEncodeError:
        raise errors.ModelNonsenseError("the model's answer is not Unicode text") from None
    return completion
