"""Faults of a context, with stable codes.

Codes are added, never renamed. Codes that renderers share have the same meaning there.
"""

from __future__ import annotations

from trace_store.frozen import value
from trace_store.objects.address import Address
from trace_store.providers import FORMATS
from trace_store.providers.values import (
    BLANK_TEXT,
    DUPLICATE_RESULT,
    EMPTY_MESSAGE,
    INVALID_IMAGE,
    LEADING_ASSISTANT,
    MISPLACED_CALL,
    MOVED_RESULT,
    NO_MESSAGES,
    ORPHAN_CALL,
    ORPHAN_RESULT,
    TOOL_WITHOUT_CALL,
    UNKNOWN_BLOCK,
)

BROKEN_BLOCK = "broken-block"
BROKEN_CHARACTER = "broken-character"
CUT_TURN = "cut-turn"
DUPLICATE_MESSAGE = "duplicate-message"
INVALID_ARGUMENTS = "invalid-arguments"
REUSED_CALL_ID = "reused-call-id"
UNSIGNED_REASONING = "unsigned-reasoning"

CODES = {
    BLANK_TEXT: "a text is empty or only white space",
    BROKEN_BLOCK: "a provider-specific block is incomplete",
    BROKEN_CHARACTER: "text contains a lone surrogate, which is not valid UTF-8",
    CUT_TURN: "a turn of a Claude model ends in reasoning: it was cut off",
    DUPLICATE_MESSAGE: "a message, or a part of one, is in the session twice",
    DUPLICATE_RESULT: "a call has a second result",
    EMPTY_MESSAGE: "a message is empty",
    INVALID_ARGUMENTS: "the arguments of a call are not a JSON object",
    INVALID_IMAGE: "an image or document has no data, is damaged or too large, or declares the wrong type",
    LEADING_ASSISTANT: "the conversation begins with the assistant",
    MISPLACED_CALL: "a call is in a message that is not from the assistant",
    MOVED_RESULT: "a result comes before its call, or is separated from it",
    NO_MESSAGES: "no message is left to send",
    ORPHAN_CALL: "a call has no result",
    ORPHAN_RESULT: "a result has no call",
    REUSED_CALL_ID: "two calls have the same id",
    TOOL_WITHOUT_CALL: "a tool message has content but is not the result of a call",
    UNKNOWN_BLOCK: "a block has a format that no provider accepts",
    UNSIGNED_REASONING: "reasoning of a Claude model has no signature",
}
"""The meaning of each code."""

NEUTRAL = frozenset({"json", "text"})
"""Formats of no provider, which accept everything."""
PROVIDERS = tuple(sorted(set(FORMATS) - NEUTRAL))

# The providers that refuse a fault, unless all do.
ANTHROPIC = ("anthropic",)
OBJECT_ARGUMENTS = ("anthropic", "gemini")
IDS_ONCE = ("anthropic", "openai-responses")


@value
class Fault:
    """One fault of a context.

    Attributes:
        code: one of CODES.
        detail: a description of the fault.
        done: a short description of the repair, such as `left out`.
        at: the message's position in the context, from 0; None if the fault concerns several.
        address: the message's address, or None.
        providers: the providers that would refuse it.
    """

    code: str
    detail: str
    done: str
    at: int | None
    address: Address | None
    providers: tuple[str, ...]

    @property
    def where(self) -> str:
        """The address, or else the position counted from one, as text."""
        if self.address is not None:
            return str(self.address)
        return "the context" if self.at is None else f"message {self.at + 1}"
