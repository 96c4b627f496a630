"""Which call a result belongs to, in messages of a fold.

Rule: asked of stored parts, so that no content is read; decided as when messages are rendered.
"""

from __future__ import annotations

from trace_store.context.render.pairing import pair, standing
from trace_store.context.render.values import DUPLICATE_RESULT, ORPHAN_CALL
from trace_store.objects.parts import Text, ToolCall, ToolResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from trace_store.context.folding import Entry
    from trace_store.objects.parts import Part

    Address = tuple[bytes, int]

CALL, RESULT = "tool_call", "tool_result"
_WORD = Text("…")


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


def loose(entries: Sequence[Entry], *, of_end: bool = False) -> tuple[set[Address], set[Address]]:
    """Return the messages with calls, and those with results, that find no partner of their own among some.

    With `of_end` the messages are the end of a context, and what stands before them may be the partner of one that
    they pair otherwise: a result that comes before its call is that of the first call that waits.
    """
    result_of, faults = pair([_Outline(entry) for entry in entries])
    calls: set[Address] = set()
    results: set[Address] = set()
    for fault in faults:
        (calls if fault.code == ORPHAN_CALL else results).add(entries[fault.place[0]].address)
    for (call, _), (result, _) in result_of.items():
        if of_end and result < call:
            calls.add(entries[call].address)
            results.add(entries[result].address)
    return calls, results


def apart(entries: Sequence[Entry]) -> dict[int, int]:
    """Return the messages with results that do not stand at their calls, each with the one that it belongs behind.

    Both by their numbers; the latter is the last with calls of that turn. Calls that stand one behind the other, before
    any of them is answered, are of one turn, as when messages are rendered; but a message that only says something
    parts them, whoever says it. One that answers calls of several turns, or stands at one of its calls, is left out.
    """
    messages = [_Outline(entry, whole=True) for entry in entries]
    result_of, _ = pair(messages)
    moved = dict(standing(messages, result_of).apart)
    behind: dict[int, set[int]] = {}
    for at, part in result_of.values():
        call = moved.get((at, part))
        behind.setdefault(at, set()).add(-1 if call is None else call[0])
    one = {at: min(calls) for at, calls in behind.items() if len(calls) == 1}
    return {at: call for at, call in one.items() if call >= 0}


class _Outline:
    """A message with nothing in it but its calls and results, and of these only the ids.

    With `whole` whatever else it says is there, too, as one word; and a message without calls or results is nobody's
    turn to call, so that it parts those around it.
    """

    __slots__ = ("ids", "parts", "role")

    def __init__(self, entry: Entry, *, whole: bool = False) -> None:
        told = [part for part in entry.parts if whole or part.get("type") in (CALL, RESULT)]
        self.role = str(entry.message.get("role", ""))
        self.ids = [str(part.get("id", "")) for part in told]
        self.parts: tuple[Part, ...] = tuple(map(_outlined, told, self.ids))
        if whole and all(part is _WORD for part in self.parts):
            self.role = "user"


def _outlined(part: Mapping[str, Any], name: str) -> Part:
    kind = part.get("type")
    if kind == CALL:
        return ToolCall(name, "", "")
    return ToolResult(name, "") if kind == RESULT else _WORD
