"""Session files in a coding agent's format, to measure importing.

Rule: the records are those of Claude Code as far as an importer looks at them: one for each block of an answer, ids
that chain, and what a tool returned twice, for the model and for the program.
"""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.model import Turn

Record = dict[str, Any]

START = datetime(2026, 1, 1, tzinfo=UTC)


def write_session(path: Path, turns: Iterable[Turn], seed: int, start: datetime = START) -> None:
    """Write the messages as one session that starts at a time."""
    with path.open("w", encoding="utf-8") as file:
        for record in records(turns, seed, start):
            file.write(json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n")


def records(turns: Iterable[Turn], seed: int, start: datetime = START) -> Iterator[Record]:
    """Yield the records of one session; messages of other than the three plain types of part are left out."""
    generator = random.Random(f"{seed} session")
    session, parent, time = _id(generator), None, start
    for turn in turns:
        for message, more in _messages(turn):
            own = _id(generator)
            time += timedelta(milliseconds=generator.randrange(50, 60_000))
            yield {
                "parentUuid": parent,
                "isSidechain": False,
                "userType": "external",
                "cwd": "/home/user/project",
                "sessionId": session,
                "version": "2.1.20",
                "gitBranch": "main",
                "type": message["role"],
                "message": message,
                **more,
                "uuid": own,
                "timestamp": time.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            }
            parent = own


def _messages(turn: Turn) -> Iterator[tuple[Record, Record]]:
    """Yield each message of a record, and the record's other fields."""
    if turn["role"] == "assistant":
        for part in turn["content"]:
            head = {"model": "model-1", "id": turn["id"], "type": "message", "role": "assistant"}
            usage = {"input_tokens": 10, "output_tokens": len(turn["content"])}
            block = _block(part)
            if block is not None:
                yield (
                    {**head, "content": [block], "stop_reason": None, "usage": usage},
                    {"requestId": f"req_{turn['id'][4:]}"},
                )
        return
    for part in turn["content"]:
        if part["type"] == "text":
            yield {"role": "user", "content": part["text"]}, {}
        elif part["type"] == "tool_result":
            shown = {"stdout": part["content"], "stderr": "", "interrupted": False}
            yield {"role": "user", "content": [_block(part)]}, {"toolUseResult": shown}


def _block(part: dict[str, str]) -> Record | None:
    if part["type"] == "text":
        return {"type": "text", "text": part["text"]}
    if part["type"] == "tool_call":
        given = json.loads(part["arguments"])
        return {"type": "tool_use", "id": part["id"], "name": part["name"], "input": given}
    if part["type"] == "tool_result":
        said = part["content"]
        return {"tool_use_id": part["call_id"], "type": "tool_result", "content": said}
    return None


def _id(generator: random.Random) -> str:
    return str(uuid.UUID(int=generator.getrandbits(128), version=4))
