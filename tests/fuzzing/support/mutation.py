"""Changes of JSON that keep it JSON: a value exchanged, lost, doubled or moved; else a fuzzer only makes bad syntax."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from typing import Any

Mutate = Callable[[bytes, int], bytes]

_ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1 << 70, 1e300, "", "\ud83d", "\x00", "x" * 300, [], {}, [[]]),
    *("user", "assistant", "tool", "system", "text", "../..", "data:image/png;base64,AA==", "a/b"),
    *({"type": "text", "text": "x"}, [{"type": "text"}], "2026-01-01T00:00:00Z", -(1 << 63)),
)


def change_json(data: bytes, limit: int, seed: int, mutate: Mutate) -> bytes:
    """Return a mutated JSON document or JSON lines.

    Args:
        data: what to change.
        limit: how long the result may be.
        seed: decides what.
        mutate: changes bytes that are no JSON, and now and then others.
    """
    chance = random.Random(seed)
    records = _records(data)
    if not records or chance.random() < 0.25:
        return mutate(data, limit)
    whole = records[0] is None
    values: list[Any] = records[1:] if whole else records
    for _ in range(chance.randint(1, 4)):
        _change(values, chance)
    try:
        lines = [json.dumps(value) for value in values]
    except (ValueError, RecursionError):
        return mutate(data, limit)
    return ("\n".join(lines) + "\n" * (not whole)).encode()[:limit]


def _records(data: bytes) -> list[Any]:
    """Return the values of JSON lines, or None and a document's; nothing if invalid."""
    try:
        return [None, json.loads(data)]
    except (ValueError, RecursionError):
        pass
    try:
        return [json.loads(line) for line in data.splitlines() if line.strip()]
    except (ValueError, RecursionError):
        return []


def _change(values: list[Any], chance: random.Random) -> None:
    holder: Any = values
    while True:
        places = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        if not places:
            return
        place = chance.choice(places)
        inner = holder[place]
        if isinstance(inner, dict | list) and inner and chance.random() < 0.8:
            holder = inner
            continue
        what = chance.randrange(5)
        if what == 0:
            del holder[place]
        elif what == 1 and isinstance(holder, list):
            holder.insert(place, copy.deepcopy(inner))
        elif what == 2:
            other = chance.choice(places)
            holder[place], holder[other] = holder[other], holder[place]
        elif what == 3 and isinstance(inner, str) and inner:
            at = chance.randrange(len(inner))
            holder[place] = (
                inner[:at] + chance.choice(("", "\x1b", "/", "\ud800", "é")) + inner[at + 1 :]
            )
        else:
            holder[place] = copy.deepcopy(chance.choice(_ODD))
        return
