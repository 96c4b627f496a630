"""Recipients of reasoning, and the signature that replaces a missing one.

Invariant: signed reasoning is sent only to the model that signed it. A provider before its name and a date after it do
not matter. Reasoning of an unknown model is never sent, except to an unknown model of an open API.
"""

from __future__ import annotations

import base64
import re

from trace_store.providers.values import REASONING_LEFT_OUT, Options, Renderable, Repairs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# Gemini 3 and later accept this on calls of other models: it skips the signature check.
SKIPS_THE_CHECK = "skip_thought_signature_validator"
# Prefixes of model names by provider. OpenAI's have no common one: they are all others.
_MARKS = {"anthropic": ("claude",), "gemini": ("gemini", "gemma")}
_DATE = re.compile(r"[-@]20\d\d-?\d\d-?\d\d$")
_GEMINI_VERSION = re.compile(r"gemini-(\d+)")
_BASE64 = re.compile(r"([A-Za-z0-9+/]+|[A-Za-z0-9_-]+)(=*)")


class EarlierReasoning:
    """Decides which reasoning the called model gets.

    An open API (`is_open`) also serves models of other makers, and models without a name.

    Attributes:
        model: the called model: from the option, or else the provider's most recent model; empty without one.
    """

    __slots__ = ("_family", "_messages", "_repairs", "_shown", "model")

    def __init__(
        self,
        messages: Sequence[Renderable],
        repairs: Repairs,
        options: Options,
        provider: str,
        *,
        is_open: bool = False,
    ) -> None:
        self._messages = messages
        self._repairs = repairs
        self._shown = options.reasoning
        model = last_model(messages, provider) if options.model is None else options.model
        self.model = model
        is_served = is_open or (model and maker(model) == provider)
        self._family = model_family(model) if is_served else None

    def allows(self, at: int) -> bool:
        """Return True if a message's reasoning is sent; else record a repair."""
        if not self._shown:
            return False
        made_by = model_family(self._messages[at].model)
        if made_by == self._family:
            return True
        self.leave_out(at, f"reasoning of {made_by or 'an unknown model'}")
        return False

    def leave_out(self, at: int, what: str) -> None:
        """Record a repair for dropped reasoning."""
        self._repairs.add(REASONING_LEFT_OUT, at, f"{what}; left out")


def model_family(model: str) -> str:
    """Return a model's name without provider prefix and date suffix."""
    return _DATE.sub("", model.rsplit("/", 1)[-1])


def maker(model: str) -> str:
    """Return the provider of a model name: anthropic, gemini, else openai."""
    name = model.lower()
    return next((who for who, marks in _MARKS.items() if any(m in name for m in marks)), "openai")


def last_model(messages: Sequence[Renderable], provider: str) -> str:
    """Return the provider's most recent model; empty if no message names one."""
    for message in reversed(messages):
        if message.role == "assistant" and message.model and maker(message.model) == provider:
            return message.model
    return ""


def before_gemini_3(model: str) -> bool:
    """Return True if a model is known to be older than Gemini 3, without signed calls."""
    found = _GEMINI_VERSION.search(model.lower())
    return found is not None and int(found[1]) < 3


def is_signature(text: str) -> bool:
    """Return True if a signature may be Gemini's: base64 of either alphabet."""
    found = _BASE64.fullmatch(text)
    if found is None:
        return False
    plain = found[1].replace("-", "+").replace("_", "/")
    padding = "=" * (-len(plain) % 4)
    if len(padding) > 2 or found[2] not in ("", padding):
        return False
    # Unused bits of the last character must be zero.
    return base64.b64encode(base64.b64decode(plain + padding)).decode() == plain + padding
