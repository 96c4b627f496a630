"""The state of a session's work across a compaction."""

from __future__ import annotations

import json
from typing import Any

from trace_store import Message, Text, ToolCall, ToolResult
from trace_store.checkpoints.work_state import work_state
from trace_store.sessions.work import joined

Pair = tuple[str, str]


def planned(tool: str, said: str = "ok", **arguments: Any) -> list[Message]:
    return [
        Message("assistant", [ToolCall("1", tool, json.dumps(arguments))]),
        Message("tool", [ToolResult("1", [Text(said)])]),
    ]


def listed(*items: Pair) -> list[Message]:
    todos = [{"content": text, "status": status} for text, status in items]
    return planned("TodoWrite", todos=todos)


def tasks_of(before: list[Message], now: list[Message]) -> list[Pair]:
    found = joined(work_state(before, 0), work_state(now, 0))
    return [(each.text, each.status) for each in found.tasks]


def test_a_task_that_a_newer_list_left_out_is_not_open() -> None:
    before = listed(("measure", "completed"), ("ask Ada", "pending"), ("fix", "pending"))
    now = listed(("fix", "in_progress"))
    assert tasks_of(before, now) == [
        ("measure", "completed"),
        ("ask Ada", "dropped"),
        ("fix", "in_progress"),
    ]


def test_tasks_stay_open_while_no_list_replaces_theirs() -> None:
    before = listed(("ask Ada", "pending"))
    assert tasks_of(before, [Message("assistant", "Done.")]) == [("ask Ada", "pending")]
    added = planned("TaskCreate", "Task #2 created", subject="fix")
    assert tasks_of(before, added) == [("ask Ada", "pending"), ("fix", "pending")]
