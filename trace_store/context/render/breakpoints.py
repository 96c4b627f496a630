"""Cache breakpoints for Anthropic, which caches a request up to the blocks that are marked.

Rule: at most four marks: the end of the system blocks (or of the tools, when there is no system text), the
end of the stable messages, and two more on the way back to it. A context only grows, so all of it is stable,
but for a last message that stands repaired because it waits for something.

A mark finds what an earlier request wrote at most 20 blocks before it. The marks stand at most 19 blocks
apart, so that together they reach back nearly 60 blocks from the end: as much as a context may grow between
two requests without losing its cache.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


MAXIMUM_BREAKPOINTS = 4
STRIDE_BLOCKS = 19
_UNMARKABLE = frozenset({"redacted_thinking", "thinking"})


def set_breakpoints(request: dict[str, Any], *, passing: int) -> None:
    """Mark the request in place.

    Args:
        request: an Anthropic request without marks.
        passing: how many messages at its end will look otherwise when the context grows.
    """
    left = MAXIMUM_BREAKPOINTS
    head = request.get("system") or request.get("tools")
    if head:
        _mark(head[-1])
        left -= 1
    messages = request["messages"]
    blocks = [
        block for message in messages[: len(messages) - passing] for block in message["content"]
    ]
    markable = [n for n, block in enumerate(blocks) if block["type"] not in _UNMARKABLE]
    while left and markable:
        at = markable.pop()
        _mark(blocks[at])
        left -= 1
        # Go on at the farthest block that is near enough, else at the nearest.
        while len(markable) > 1 and at - markable[-2] <= STRIDE_BLOCKS:
            markable.pop()


def without_breakpoints(value: Any) -> Any:
    """Return the value without cache marks: what the provider's cache compares."""
    if isinstance(value, list):
        return [without_breakpoints(item) for item in value]
    if isinstance(value, dict) and "cache_control" in value:
        return {key: item for key, item in value.items() if key != "cache_control"}
    return value


def _mark(block: dict[str, Any]) -> None:
    block["cache_control"] = {"type": "ephemeral"}
