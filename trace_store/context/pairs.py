"""Which call a result belongs to, in messages of a fold.

Rule: asked of stored parts, so that no content is read; decided as when messages are rendered.
"""

from __future__ import annotations

from trace_store.context.render.pairing import pair
from trace_store.context.render.values import DUPLICATE_RESULT, ORPHAN_CALL
from trace_store.objects.parts import ToolCall, ToolResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from trace_store.context.folding import Entry
    from trace_store.objects.parts import Part

    Address = tuple[bytes, int]

CALL, RESULT = "tool_call", "tool_result"


def callers(entries: Sequence[Entry]) -> dict[tuple[int, str], int]:
    """Return for each result, by the number of its message and the id, the number of the message that calls it.

    Which call that is `context.render.pairing` says, since a provider may use an id again; a second result belongs to
    the call that the first one answers. Results without a call are left out.
    """
    messages = [_Outline(entry) for entry in entries]
    result_of, faults = pair(messages)
    found: dict[tuple[int, str], int] = {}
    answered: dict[str, list[tuple[int, int]]] = {}
    for (call, _), (result, part) in result_of.items():
        name = messages[result].ids[part]
        found[result, name] = call
        answered.setdefault(name, []).append((result, call))
    for fault in faults:
        if fault.code == DUPLICATE_RESULT:
            at, part = fault.place
            name = messages[at].ids[part]
            found[at, name] = max(each for each in answered[name] if each[0] <= at)[1]
    return found


def loose(entries: Sequence[Entry]) -> tuple[set[Address], set[Address]]:
    """Return the messages with calls, and those with results, that find no partner of their own among some."""
    _, faults = pair([_Outline(entry) for entry in entries])
    calls: set[Address] = set()
    results: set[Address] = set()
    for fault in faults:
        (calls if fault.code == ORPHAN_CALL else results).add(entries[fault.place[0]].address)
    return calls, results


class _Outline:
    """A message with nothing in it but its calls and results, and of these only the ids."""

    __slots__ = ("ids", "parts", "role")

    def __init__(self, entry: Entry) -> None:
        told = [part for part in entry.parts if part.get("type") in (CALL, RESULT)]
        self.role = str(entry.message.get("role", ""))
        self.ids = [str(part.get("id", "")) for part in told]
        self.parts: tuple[Part, ...] = tuple(
            ToolCall(name, "", "") if part["type"] == CALL else ToolResult(name, "")
            for part, name in zip(told, self.ids, strict=True)
        )
