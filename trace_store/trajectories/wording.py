"""Decisions found by their wording: sentences quoted from messages, so nothing is invented, but some are missed."""

from __future__ import annotations

import re

from trace_store.exporters.overview import excerpt
from trace_store.frozen import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trace_store.context.compiled import MessageLike
    from trace_store.objects.address import Address

DIALOGUE, DECISION = "dialogue", "decision"
"""Kinds of messages; `decision` is also a label."""
SENTENCE_CHARACTERS = 300
_SCANNED_CHARACTERS = 8_000
SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
_DECIDED = re.compile(
    r"\b(?:decid(?:ed|ing) (?:to|on|against)|decision:|(?:I|we)(?:'ll| will) (?:use|go with|keep|switch to)"
    r"|let'?s (?:use|go with|keep)|going with|chose|opted for|instead of|rather than)\b",
    re.IGNORECASE,
)
_REASON = re.compile(r"\b(?:because|since|so that|to avoid|due to)\b.*", re.IGNORECASE)
_REJECTED = re.compile(r"\b(?:instead of|rather than|decided against)\s+([^.,;:()!?]{1,80})", re.I)
_INSERTED = ("<", "Base directory for this skill:")
"""Prefixes of text that programs insert as user messages."""
_MARK = re.compile(r"^(?:[-*+>#]+|\d+[.)])\s+")


@value
class Decision:
    """A decision.

    Attributes:
        text: the sentence, quoted.
        reason: the reason that it gives, or "".
        address: its message; None if that has no address.
    """

    text: str
    reason: str
    address: Address | None

    @property
    def rejected(self) -> str:
        """The option that the sentence rejects, or ""."""
        found = _REJECTED.search(self.text)
        return _REASON.sub("", found[1]).strip() if found else ""


def decisions_in(messages: Sequence[MessageLike]) -> Iterator[Decision]:
    """Yield the decisions in some messages.

    These are messages of the kind or with the label `decision`, and sentences worded as a decision.
    """
    for message in messages:
        address = getattr(message, "address", None)
        if message.kind == DECISION or DECISION in getattr(message, "labels", ()):
            yield _decision(excerpt(message.text, SENTENCE_CHARACTERS), address)
        elif message.role == "assistant" or is_prompt(message):
            for sentence in sentences(message.text):
                if _DECIDED.search(sentence) and not sentence.endswith("?"):
                    yield _decision(sentence, address)


def is_prompt(message: MessageLike) -> bool:
    """Return True if a person wrote the message, judging by its kind and first line."""
    is_dialogue = message.role == "user" and message.kind == DIALOGUE
    return is_dialogue and not message.text.lstrip().startswith(_INSERTED)


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences that are short enough to quote, from the beginning of a text."""
    for each in SENTENCE_END.split(text[:_SCANNED_CHARACTERS]):
        sentence = _MARK.sub("", each.strip())
        if 0 < len(sentence) <= SENTENCE_CHARACTERS:
            yield sentence


def _decision(text: str, address: Address | None) -> Decision:
    reason = _REASON.search(text)
    return Decision(text, reason[0] if reason else "", address)
