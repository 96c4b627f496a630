"""Prompts queued in Claude Code appear once, where the model received them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.importers.support.checks import assert_grows
from tests.importers.support.states import branches, context, raw_records, visible
from tests.importers.support.transcripts import SESSION, Transcript, call, records_in, text
from trace_store.importers.import_paths import import_paths
from trace_store.store.store import Store
from trace_store.writer import Writer


def queue(t: Transcript, operation: str, content: str | None = None) -> None:
    more = {} if content is None else {"content": content}
    t.add({"type": "queue-operation", "operation": operation, **more})


def handed_over(t: Transcript, prompt: str) -> None:
    t.add({"type": "attachment", "attachment": {"type": "queued_command", "prompt": prompt}})


def working(*queued: str) -> Transcript:
    """A turn with one call, during which the user typed."""
    t = Transcript()
    t.user("Fix the test.")
    t.assistant("msg_1", call("toolu_1"))
    for each in queued:
        queue(t, "enqueue", each)
    t.result("toolu_1", "1 failed")
    return t


def said(t: Transcript, folder: Path) -> list[str]:
    """What stands after the first result."""
    store = Store.memory()
    import_paths(Writer(store), [t.write(folder)])
    assert sorted(raw_records(store)) == sorted(raw for raw, _ in records_in(t.data))
    tip = branches(store)[SESSION]
    assert [entry.message["role"] for entry in visible(store, tip)[:3]] == [
        *("user", "assistant", "tool")
    ]
    return context(store, tip)[3:]


def test_text_taken_during_a_turn_is_a_message_before_the_next_request(tmp_path: Path) -> None:
    t = working("Use the old name.", "And be quick.")
    queue(t, "remove")
    queue(t, "remove")
    t.assistant("msg_2", text("Fixed."), stop="end_turn")
    expected = ["user: Use the old name.", "user: And be quick.", "assistant: Fixed."]
    assert said(t, tmp_path) == expected
    assert_grows(tmp_path, t.data, f"{SESSION}.jsonl", "claude-code")


def test_text_taken_last_waits_for_the_request(tmp_path: Path) -> None:
    t = working("Use the old name.")
    queue(t, "remove")
    assert said(t, tmp_path) == []


def with_record(t: Transcript) -> None:
    queue(t, "remove", "Use the old name.")
    handed_over(t, "Use the old name.")


def with_turn(t: Transcript) -> None:
    queue(t, "remove")  # of a task of the harness, whose entry was not recorded
    queue(t, "dequeue")
    t.user("Use the old name.")


@pytest.mark.parametrize("own_record", [with_record, with_turn])
def test_text_with_a_record_of_its_own_is_said_once(tmp_path: Path, own_record: Any) -> None:
    t = working("Use the old name.")
    own_record(t)
    t.assistant("msg_2", call("toolu_2"))
    queue(t, "remove")
    t.result("toolu_2", "1 passed")
    t.assistant("msg_3", text("Fixed."), stop="end_turn")
    assert said(t, tmp_path).count("user: Use the old name.") == 1
    assert_grows(tmp_path, t.data, f"{SESSION}.jsonl", "claude-code")


@pytest.mark.parametrize(
    ("content", "operations"),
    [
        ("Use the old name.", ["popAll", "remove"]),
        ("Use the old name.", ["dequeue"]),
        ("/compact", ["dequeue", "remove"]),
        ('{"task_id":"b1","description":"Run tests"}', ["remove"]),
        ("<task-notification>\n<task-id>b1</task-id>", ["remove"]),
        (" ", ["remove"]),
    ],
)
def test_what_no_model_was_given_is_no_message(
    tmp_path: Path, content: str, operations: list[str]
) -> None:
    t = working(content)
    for operation in operations:
        queue(t, operation)
    t.assistant("msg_2", text("Fixed."), stop="end_turn")
    assert said(t, tmp_path) == ["assistant: Fixed."]


def test_text_typed_after_a_removal_waits_for_the_next(tmp_path: Path) -> None:
    t = working("First.")
    queue(t, "remove")
    queue(t, "enqueue", "Second.")
    t.assistant("msg_2", call("toolu_2"))
    t.result("toolu_2", "1 passed")
    queue(t, "remove")
    t.assistant("msg_3", text("Fixed."), stop="end_turn")
    found = said(t, tmp_path)
    assert found.index("user: First.") == 0
    assert found.index("user: Second.") == len(found) - 2
