"""A new text for a message that keeps its calls, results and other parts."""

from __future__ import annotations

from trace_store import errors
from trace_store.context.compiler import ContextCompiler
from trace_store.objects.message import load_parts
from trace_store.objects.parts import Part, Reasoning, Text, ToolResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from trace_store.objects.address import Address


def current_parts(contexts: ContextCompiler, address: Address) -> tuple[Part, ...]:
    """Return the current parts of a message in HEAD's context.

    Raises:
        MessageNotFoundError: the context does not hold it.
    """
    stored = contexts.stored_parts(address)
    return load_parts(stored, contexts.store.objects.read)


def reworded(
    parts: Sequence[Part], text: str, call: str = "", *, all_results: bool = False
) -> list[Part]:
    """Return a message's parts with a new text for it, or for its tool result.

    Args:
        parts: the parts of the message.
        text: the new text.
        call: the id of a call, or a unique prefix of it: change only its result.
        all_results: give all tool results the text, if there are several.

    Raises:
        InvalidInputError: both a call and all results are named.
        InvalidOperationError: there is no result of that call; or there are several results, and none is named. Then
            `.calls` holds the ids of their calls.
    """
    if call and all_results:
        raise errors.InvalidInputError("name a call or all results, not both")
    is_text = any(isinstance(part, Text) for part in parts)
    answered = [part.call_id for part in parts if isinstance(part, ToolResult)]
    if call and call not in answered:
        begun = [each for each in answered if each.startswith(call)]
        call = begun[0] if len(begun) == 1 else call
    if call and call not in answered:
        raise errors.InvalidOperationError(
            f"the message has no result of call {call!r}; it has: {', '.join(answered) or 'none'}"
        )
    if len(answered) > 1 and not (is_text or call or all_results):
        raise errors.InvalidOperationError(
            f"the message has the results of {len(answered)} calls: {', '.join(answered)}",
            code=errors.ErrorCode.SEVERAL_RESULTS,
            calls=answered,
        )
    if answered and (call or not is_text):
        return [
            ToolResult(part.call_id, text, part.is_error, call=part.call)
            if isinstance(part, ToolResult) and call in ("", part.call_id)
            else part
            for part in parts
        ]
    kept = [part for part in parts if not isinstance(part, Text)]
    place = next((i for i, part in enumerate(parts) if isinstance(part, Text)), None)
    # If there is no text yet, put it where providers expect it: after reasoning, before calls.
    at = sum(isinstance(part, Reasoning) for part in kept) if place is None else place
    return [*kept[:at], Text(text), *kept[at:]]
