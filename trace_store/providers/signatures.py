"""Whose reasoning goes back to whom, and the signature that stands in for one that nobody made.

Rule: what a model signed goes back to that model only. A provider before its name and a date behind it do not
matter. Reasoning of a model that is not named goes to nobody.
"""

from __future__ import annotations

import base64
import re

from trace_store.providers.values import REASONING_LEFT_OUT, Options, Renderable, Repairs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# What Gemini 3 and later take on a call that none of them made: it skips the check of the signature.
SKIPS_THE_CHECK = "skip_thought_signature_validator"
# The names by which a provider's models are known. OpenAI's have none in common: they are all others.
_MARKS = {"anthropic": ("claude",), "gemini": ("gemini", "gemma")}
_DATE = re.compile(r"[-@]20\d\d-?\d\d-?\d\d$")
_GEMINI_VERSION = re.compile(r"gemini-(\d+)")
_BASE64 = re.compile(r"([A-Za-z0-9+/]+|[A-Za-z0-9_-]+)(=*)")


class EarlierReasoning:
    """Decides which messages' reasoning the model that is asked sees again.

    Attributes:
        model: the family of the model that is asked: the option's, else that of the provider's model that spoke
            last; empty when there is none.
    """

    __slots__ = ("_messages", "_repairs", "_shown", "model")

    def __init__(
        self, messages: Sequence[Renderable], repairs: Repairs, options: Options, provider: str
    ) -> None:
        self._messages = messages
        self._repairs = repairs
        self._shown = options.reasoning
        asked = last_model(messages, provider) if options.model is None else options.model
        self.model = model_family(asked) if maker(asked) == provider else ""

    def allows(self, at: int) -> bool:
        """Tell whether this message's reasoning goes back; what does not is listed, unless none is asked for."""
        if not self._shown:
            return False
        made_by = model_family(self._messages[at].model)
        if made_by and made_by == self.model:
            return True
        self.leave_out(at, f"reasoning of {made_by or 'an unknown model'}")
        return False

    def leave_out(self, at: int, what: str) -> None:
        """List reasoning that is not sent."""
        self._repairs.add(REASONING_LEFT_OUT, at, f"{what}; left out")


def model_family(model: str) -> str:
    """Return a model's name without the provider before it and the date behind it."""
    return _DATE.sub("", model.rsplit("/", 1)[-1])


def maker(model: str) -> str:
    """Return the provider that a model's name points to: anthropic, gemini, else openai."""
    name = model.lower()
    return next((who for who, marks in _MARKS.items() if any(m in name for m in marks)), "openai")


def last_model(messages: Sequence[Renderable], provider: str) -> str:
    """Return the provider's model that spoke last; empty when no message names one."""
    for message in reversed(messages):
        if message.role == "assistant" and message.model and maker(message.model) == provider:
            return message.model
    return ""


def before_gemini_3(model: str) -> bool:
    """Tell whether a model is known to be older than Gemini 3, which brought signed calls."""
    found = _GEMINI_VERSION.search(model.lower())
    return found is not None and int(found[1]) < 3


def is_signature(text: str) -> bool:
    """Tell whether a signature can be one of Gemini's: base64 in one of its alphabets, padded or not."""
    found = _BASE64.fullmatch(text)
    if found is None:
        return False
    plain = found[1].replace("-", "+").replace("_", "/")
    padding = "=" * (-len(plain) % 4)
    if len(padding) > 2 or found[2] not in ("", padding):
        return False
    # The last character holds bits that belong to no byte; they are none.
    return base64.b64encode(base64.b64decode(plain + padding)).decode() == plain + padding
