"""Rows of Claude Code that are no messages and share an id: no message leaves the branch because of them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tests.importers.support.checks import lines_of
from tests.importers.support.sound import branches_of, imported, messages
from tests.importers.support.transcripts import MODEL, SESSION
from trace_store.objects.parts import Text

Row = dict[str, Any]
SILENT: list[Row] = [
    {"type": "saved_hook_context", "content": ["be careful"], "hookName": "SessionStart"},
    {"type": "system", "subtype": "turn_duration", "durationMs": 5},
    {"type": "system", "subtype": "stop_hook_summary", "hookCount": 1},
    {"type": "progress", "data": {"type": "hook_progress", "hookEvent": "Stop"}},
    {"type": "queue-operation", "operation": "enqueue"},
    {"type": "attachment", "attachment": {"type": "hook_success", "hookEvent": "Stop"}},
    {"type": "brand-new-row", "payload": [1, 2]},
]


def row(type_: str, uuid: str, parent: str | None, number: int, **more: Any) -> Row:
    start = {"type": type_, "uuid": uuid, "parentUuid": parent, "sessionId": SESSION}
    stamp = f"2026-02-01T10:{number // 60 % 60:02d}:{number % 60:02d}.000Z"
    return {**start, "isSidechain": False, "timestamp": stamp, **more}


def said(role: str, number: int) -> Row:
    if role == "user":
        return {"message": {"role": "user", "content": f"question {number}"}}
    content = [{"type": "text", "text": f"answer {number}"}]
    message = {"id": f"msg_{number}", "role": "assistant", "model": MODEL, "content": content}
    return {"message": {**message, "stop_reason": "end_turn"}}


def session(seed: int) -> tuple[list[Row], list[str]]:
    """Return a session with a row that is written several times, and the texts that a model was shown."""
    chosen = random.Random(seed)
    silent = chosen.choice(SILENT)
    rounds = chosen.randint(2, 6)
    # The row stands before any message, or behind a question or an answer; later it comes again.
    first, again = sorted(chosen.sample(range(-1, rounds), 2))
    behind = chosen.choice(["user", "assistant"])
    # The id may also be one that a message has.
    shared = chosen.choice(["hook", "hook", "message"])
    rows: list[Row] = []
    texts: list[str] = []
    parent: str | None = None
    shared_id = "eeeeeeee-0000-4000-8000-000000000099"

    def repeat(number: int) -> None:
        nonlocal parent
        rows.append(row("", shared_id, parent, number, variant=number) | silent)
        parent = shared_id

    for number in range(-1, rounds):
        for role in ("user", "assistant"):
            if number >= 0:
                uuid = f"{role}-{number}"
                rows.append(row(role, uuid, parent, 2 * number, **said(role, number)))
                texts.append(f"{'question' if role == 'user' else 'answer'} {number}")
                parent = uuid
                if shared == "message" and not number and role == "user":
                    shared_id = uuid
            is_place = role == behind if number >= 0 else role == "assistant"
            is_second = number >= (again if shared == "hook" else max(again, 0))
            if is_place and (is_second or (shared == "hook" and number == first)):
                repeat(number + 10)
    return rows, texts


@pytest.mark.parametrize("seed", range(100))
def test_every_message_stays_on_the_branch(seed: int, tmp_path: Path) -> None:
    rows, texts = session(seed)
    store, report = imported(tmp_path, f"{SESSION}.jsonl", lines_of(rows), "claude-code")
    assert branches_of(store) == {f"claude-code/{SESSION}"}
    found = messages(store, f"claude-code/{SESSION}")
    shown = [part.text for each in found for part in each.parts if isinstance(part, Text)]
    assert shown == texts
    assert sum(n for (_, what), n in report.records.items() if what == "message") == len(texts)


def test_a_prompt_that_really_went_back_is_a_rewind(tmp_path: Path) -> None:
    rows, _ = session(0)
    last = row("user", "again", "assistant-0", 50, **said("user", 99))
    store, _ = imported(tmp_path, f"{SESSION}.jsonl", lines_of([*rows, last]), "claude-code")
    assert len(branches_of(store)) == 2
