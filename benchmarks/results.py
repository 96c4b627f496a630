"""The result file: JSON Lines, one line a contestant, added to as jobs end; the latest line of a kind counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

Line = dict[str, Any]


class Key(NamedTuple):
    """What a line is about."""

    job: str
    size: int
    variant: str
    contestant: str


def key_of(line: Line) -> Key:
    """Return the key of a line."""
    return Key(line["job"], line["size"], line["variant"], line["contestant"])


def read(path: Path) -> dict[Key, Line]:
    """Return the latest line of each kind; a line cut short by a killed run is passed over."""
    found: dict[Key, Line] = {}
    if not path.exists():
        return found
    for text in path.read_text("utf-8").splitlines():
        try:
            line = json.loads(text)
        except ValueError:
            continue
        found[key_of(line)] = line
    return found


def add(path: Path, lines: list[Line]) -> None:
    """Append the lines of one job; they count together or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    with path.open("a", encoding="utf-8") as file:
        file.write(text)
