"""Another text for a message that stays what it is: its calls keep their results, and results their calls.

Rule: pure functions of parts; which message is meant, and writing it down, is for others.
"""

from __future__ import annotations

from trace_store import errors
from trace_store.context.compiler import ContextCompiler
from trace_store.objects.message import load_parts
from trace_store.objects.parts import Part, Reasoning, Text, ToolResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def current_parts(contexts: ContextCompiler, address: tuple[bytes, int]) -> tuple[Part, ...]:
    """Return what a message of HEAD's context says now.

    Raises:
        MessageNotFoundError: the context does not hold it.
    """
    stored = contexts.wording((bytes(address[0]), address[1]))
    return load_parts(stored, contexts.store.objects.read)


def reworded(parts: Sequence[Part], text: str) -> list[Part]:
    """Return a message's parts with another text in place of its texts, or of what its tool result says.

    Raises:
        InvalidOperationError: it has several tool results, so it is not clear which is meant.
    """
    if not any(isinstance(part, Text) for part in parts):
        results = [part for part in parts if isinstance(part, ToolResult)]
        if len(results) > 1:
            raise errors.InvalidOperationError(
                f"the message has {len(results)} tool results; give all parts"
            )
        if results:
            new = ToolResult(results[0].call_id, text, results[0].is_error)
            return [new if part is results[0] else part for part in parts]
    kept = [part for part in parts if not isinstance(part, Text)]
    place = next((i for i, part in enumerate(parts) if isinstance(part, Text)), None)
    # Without a text so far, the new one stands where providers want it: after reasoning, before calls.
    at = sum(isinstance(part, Reasoning) for part in kept) if place is None else place
    return [*kept[:at], Text(text), *kept[at:]]
