"""Usage heat: how much later messages of a context use an earlier one; no model.

Each message has marks: the paths of its tool calls, and the identifiers, numbers and file names in its texts. A later
message that has one of them mentions it. Common marks and old mentions
count less. The weight of a mention is

    log(messages / messages with the mark) / (marks of the message) ** 0.5  *  2 ** -(age of the mention / half-life)

with ages in messages from the end. The heat is that sum plus 2 ** -(own age / half-life), as a share of the hottest
message, from 0 to 1. Pinned messages and instructions have heat 1.
"""

from __future__ import annotations

import math
import re

from trace_store.context.activity import action_of
from trace_store.objects import operations as ops
from trace_store.objects.parts import Text, ToolCall, ToolResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trace_store.context.compiled import CompiledMessage
    from trace_store.objects.parts import Part

HALF_LIFE = 40
"""Half-life: the number of messages after which a mention counts half."""
_MARK = re.compile(r"[A-Za-z_][\w./-]{5,60}|\b\d{3,}\b|\b[0-9a-f]{7,40}\b")
_TELLING = re.compile(r"[a-z][A-Z]|[\d_/]|\w\.\w")
_MOST_MARKS = 400
_COMMON = 0.2
_MOST_MENTIONS = 100
"""Number of later mentions of one mark that `mentions` counts."""
_STRIP = "./-"


def marks_of(parts: Sequence[Part]) -> set[str]:
    """Return the paths, identifiers and numbers that some parts name."""
    found: set[str] = set()
    for text in _texts(parts):
        for match in _MARK.finditer(text):
            mark = match[0].strip(_STRIP)
            if _TELLING.search(mark):
                found.add(mark)
                found.add(mark.rsplit("/", 1)[-1])
            if len(found) >= _MOST_MARKS:
                return found
    return found


def _texts(parts: Sequence[Part]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, Text):
            yield part.text
        elif isinstance(part, ToolCall):
            yield " ".join(action_of(part).paths)
            yield part.arguments
        elif isinstance(part, ToolResult):
            yield from (inner.text for inner in part.content if isinstance(inner, Text))


class Heat:
    """The heat of the messages of a context.

    Attributes:
        values: from 0 to 1, by position.
        mentions: how many later messages mention each, by position.
        marks: the marks of each message, without very common ones.
    """

    def __init__(self, messages: Sequence[CompiledMessage]) -> None:
        count = len(messages)
        marks = [marks_of(message.parts) for message in messages]
        places: dict[str, list[int]] = {}
        for at, found in enumerate(marks):
            for mark in found:
                places.setdefault(mark, []).append(at)
        most = max(2, int(count * _COMMON))
        weights = {
            mark: math.log(count / len(where))
            for mark, where in places.items()
            if 2 <= len(where) <= most
        }
        decay = [0.5 ** ((count - 1 - at) / HALF_LIFE) for at in range(count)]
        self.marks = [{mark for mark in found if len(places[mark]) <= most} for found in marks]
        self.mentions: list[int] = []
        raw = []
        passed = dict.fromkeys(weights, 0)
        ahead = {mark: sum(decay[each] for each in places[mark]) for mark in weights}
        for at, found in enumerate(marks):
            later: set[int] = set()
            used = 0.0
            for mark in found & weights.keys():
                passed[mark] += 1
                ahead[mark] -= decay[at]
                later.update(places[mark][passed[mark] : passed[mark] + _MOST_MENTIONS])
                used += weights[mark] * max(0.0, ahead[mark])
            self.mentions.append(len(later))
            raw.append(decay[at] + used / math.sqrt(len(found) or 1))
        hottest = max(raw, default=0.0) or 1.0
        self.values = [
            1.0 if _is_fixed(message) else value / hottest
            for message, value in zip(messages, raw, strict=True)
        ]


def _is_fixed(message: CompiledMessage) -> bool:
    return message.priority == ops.PINNED or message.role in ("system", "developer")
