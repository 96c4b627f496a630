"""Tasks of Cline and Roo Code: what the model was sent, and what the user was shown."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from tests.importers.support.checks import damaged, report_of
from tests.importers.support.sound import branches_of, imported, messages
from tests.support.examples import examples
from trace_store.importers.formats.cline import FORMAT, UI_FORMAT
from trace_store.maintenance.fsck import fsck
from trace_store.objects.message import Message
from trace_store.objects.parts import Opaque, Reasoning, Text, ToolCall, ToolResult
from trace_store.store.store import Store

Row = dict[str, Any]
START = 1_700_000_000_000


def sent(role: str, *content: Any, **more: Any) -> Row:
    blocks = [{"type": "text", "text": each} if isinstance(each, str) else each for each in content]
    return {"role": role, "content": blocks, "ts": START, **more}


def use(id_: str, name: str = "read_file") -> Row:
    return {"type": "tool_use", "id": id_, "name": name, "input": {"path": id_}}


def answers_of(found: list[Message]) -> dict[str, str]:
    """Return the text of each result by its call."""
    return {
        part.call_id: "".join(inner.text for inner in part.content if isinstance(inner, Text))
        for message in found
        for part in message.parts
        if isinstance(part, ToolResult)
    }


def texts(found: list[Message]) -> list[str]:
    return [part.text for each in found for part in each.parts if isinstance(part, Text)]


TASK = sent("user", "<task>\nfix it\n</task>", "<environment_details>\n</environment_details>")


def test_results_that_are_texts_answer_their_calls_in_order(tmp_path: Path) -> None:
    rows = [
        TASK,
        sent("assistant", "I look.", use("c1"), use("c2"), use("c3"), modelInfo={"modelId": "m"}),
        sent(
            "user",
            "[read_file for 'a.py'] Result:\none",
            "[read_file for 'b.py'] Result:\ntwo",
            "now",
        ),
        sent("assistant", use("c4", "attempt_completion")),
        sent("user", "[TASK RESUMPTION] This task was interrupted."),
    ]
    store, report = imported(tmp_path, "api_conversation_history.json", rows)
    assert report.format == "cline"
    found = messages(store, f"cline/{START}")
    assert answers_of(found) == {
        "c1": "[read_file for 'a.py'] Result:\none",
        "c2": "[read_file for 'b.py'] Result:\ntwo",
    }
    assert [each.role for each in found] == ["user", "assistant", "tool", "assistant", "user"]
    assert isinstance(found[2].parts[-1], Text)
    assert found[1].model == "m"


@pytest.mark.parametrize("seed", range(100))
def test_no_call_and_no_answer_is_lost(seed: int, tmp_path: Path) -> None:
    chosen = random.Random(seed)
    rows, calls, answered = [TASK], [], {}
    for number in range(chosen.randint(1, 8)):
        ids = [f"c{number}-{each}" for each in range(chosen.randint(1, 3))]
        rows.append(sent("assistant", f"step {number}", *map(use, ids)))
        calls += ids
        done = ids[: chosen.choice([len(ids), len(ids), 0, 1])]
        blocks: list[Any] = []
        for id_ in done:
            title = chosen.choice(
                [f"[read_file for '{id_}']", "[use_tool for 'a\nb']", "[attempt_completion]"]
            )
            text = f"{title} Result:\n{id_} is done"
            native = {"type": "tool_result", "tool_use_id": id_, "content": text}
            blocks.append(native if chosen.random() < 0.2 and len(done) == 1 else text)
            answered[id_] = text
        rows.append(
            sent("user", *blocks, f"<environment_details>\n{number}\n</environment_details>")
        )
    store, report = imported(tmp_path, "task.json", rows)
    found = messages(store, f"cline/{START}")
    parts = [part for each in found for part in each.parts]
    assert [part.id for part in parts if isinstance(part, ToolCall)] == calls
    assert answers_of(found) == answered
    assert report.records == {
        ("user", "message"): len(rows) // 2 + 1,
        ("assistant", "message"): len(rows) // 2,
    }


def test_what_roo_code_condensed_and_cut(tmp_path: Path) -> None:
    thought = {"type": "reasoning", "encrypted_content": "sealed", "summary": [], "ts": START}
    rows = [
        sent("user", "<task>\none\n</task>", condenseParent="X"),
        sent("assistant", "two", condenseParent="X"),
        sent("user", "the summary", isSummary=True, condenseId="X"),
        sent("assistant", "four", truncationParent="T"),
        sent("user", "five", truncationParent="T"),
        {**sent("user", "cut here"), "isTruncationMarker": True, "truncationId": "T"},
        thought,
        sent("assistant", "six"),
        {"role": "wizard", "content": "x", "ts": START},
    ]
    store, report = imported(tmp_path, "task.json", rows)
    found = messages(store, f"cline/{START}")
    assert texts(found) == ["the summary", "cut here", "six"]
    assert found[2].parts[0] == Reasoning("", "sealed")
    assert isinstance(found[3].parts[0], Opaque)
    assert report.hidden == 1


def row(kind: str, text: str = "", *, ask: bool = False, index: int = 0, **more: Any) -> Row:
    type_ = "ask" if ask else "say"
    return {
        "ts": START,
        "type": type_,
        type_: kind,
        "text": text,
        "conversationHistoryIndex": index,
        **more,
    }


def request(text: str, index: int, **more: Any) -> Row:
    return row(
        "api_req_started", json.dumps({"request": text, "tokensOut": 7, **more}), index=index
    )


def test_rows_of_the_user_interface(tmp_path: Path) -> None:
    tool = json.dumps({"tool": "readFile", "path": "a.py"})
    rows = [
        row("task", "fix it", index=-1),
        request("<task>\nfix it\n</task>", -1),
        row("reasoning", "hm"),
        row("text", "I look."),
        row("tool", tool),
        row("command", "ls"),
        row("command_output", "a.py", ask=True, index=1),
        row("checkpoint_created", index=1),
        request(
            "[read_file for 'a.py'] Result:\none\n\n[execute_command for 'ls'] Result:\na.py", 1
        ),
        row("api_req_retried", index=1),
        request(
            "[read_file for 'a.py'] Result:\none\n\n[execute_command for 'ls'] Result:\nb.py", 1
        ),
        row("completion_result", "Done.", index=2),
        row("completion_result", ask=True, index=2),
        row("user_feedback", "more", index=2),
    ]
    store, report = imported(tmp_path, "ui_messages.json", rows)
    assert (report.format, report.record_count) == ("cline-ui", len(rows))
    first, said, results, done, more = messages(store, f"cline-ui/{START}")
    assert texts([first]) == ["<task>\nfix it\n</task>"]
    assert [type(part) for part in said.parts] == [Reasoning, Text, ToolCall, ToolCall]
    assert [part.name for part in said.parts if isinstance(part, ToolCall)] == [
        "readFile",
        "command",
    ]
    assert list(answers_of([results]).values()) == [
        "[read_file for 'a.py'] Result:\none\n\n",
        "[execute_command for 'ls'] Result:\nb.py",
    ]
    assert texts([done, more]) == ["Done.", "more"]


def test_rows_without_the_texts_of_requests(tmp_path: Path) -> None:
    rows = [
        row("text", "fix it"),
        row("api_req_started", json.dumps({"apiProtocol": "openai", "tokensOut": 3})),
        row("command", "ls", ask=True),
        row("command_output", "a.py"),
        row("command_output", "b.py", ask=True),
        row("completion_result", "Done."),
        row("user_feedback", "more"),
    ]
    store, _ = imported(tmp_path, "ui_messages.json", rows)
    found = messages(store, f"cline-ui/{START}")
    assert [each.role for each in found] == ["user", "assistant", "tool", "assistant", "user"]
    assert list(answers_of(found).values()) == ["a.pyb.py"]


def test_detection() -> None:
    def head(*rows: Row) -> bytes:
        return json.dumps(rows).encode()

    assert FORMAT.sniff(head(TASK))
    assert FORMAT.sniff(head(sent("user", "hi", metrics={})))
    assert not FORMAT.sniff(head(sent("user", "hi")))
    assert not FORMAT.sniff(head({"role": "user", "content": "<task>"}))
    assert UI_FORMAT.sniff(head(row("text", "hi")))
    assert not UI_FORMAT.sniff(head({"type": "say", "ts": 1}))
    assert UI_FORMAT.sniff(head(row("task", "x" * 400_000))[:200_000])


@pytest.mark.parametrize("format", ["cline", "cline-ui"])
@settings(max_examples=examples(30), suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_no_damage_does_harm(
    format: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rows: list[Any] = [
        TASK,
        sent("assistant", use("c1")),
        sent("user", "[read_file for 'a'] Result:\n1"),
    ]
    if format == "cline-ui":
        rows = [
            row("task", "x"),
            request("y", 0),
            row("tool", "{}"),
            request("[a] Result:\n", 1),
            row("text", "t"),
        ]
    path = tmp_path_factory.mktemp("cline") / "damaged.json"
    path.write_text(json.dumps(data.draw(damaged(rows))))
    store = Store.memory()
    report_of(store, path, format)
    assert not [finding for finding in fsck(store) if finding.severity == "error"]


def test_tasks_of_one_folder_are_sessions_of_their_own(tmp_path: Path) -> None:
    store, _ = imported(tmp_path, "a/api_conversation_history.json", [TASK])
    assert branches_of(store) == {f"cline/{START}"}
