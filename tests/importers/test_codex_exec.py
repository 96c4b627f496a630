"""Output of `codex exec --json`: typed actions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.importers.support.checks import (
    JSON,
    assert_counted_once,
    assert_grows,
    assert_recognised,
    damaged,
    heads,
    import_hostile,
    lines_of,
)
from tests.importers.support.rollouts import SESSION
from tests.importers.support.states import context, parts_of, visible
from tests.support.examples import examples
from tests.support.valid_requests import assert_valid_requests
from trace_store.context.compiler import ContextCompiler
from trace_store.importers.formats.codex_exec import FORMAT
from trace_store.importers.import_paths import import_paths
from trace_store.objects.parts import Image, Opaque, Reasoning, Text, ToolCall, ToolResult
from trace_store.store.store import Store
from trace_store.writer import Writer

MCP = {"id": "item_3", "type": "mcp_tool_call", "server": "docs", "tool": "find"}


def done(**item: Any) -> dict[str, Any]:
    return {"type": "item.completed", "item": item}


EVENTS = [
    {"type": "thread.started", "thread_id": SESSION},
    {"type": "turn.started"},
    done(id="item_0", type="reasoning", text="**Looking**"),
    {"type": "item.started", "item": {"id": "item_1", "type": "command_execution"}},
    done(
        id="item_1",
        type="command_execution",
        command="ls",
        aggregated_output="parser.py\n",
        exit_code=0,
        status="completed",
    ),
    done(id="item_2", type="file_change", changes=[{"path": "a", "kind": "add"}], status="failed"),
    done(
        **MCP,
        arguments={"q": "x"},
        result={
            "content": [
                {"type": "text", "text": "seen"},
                {"type": "image", "data": "iVBORw==", "mimeType": "image/png"},
                {"type": "audio"},
            ]
        },
        status="completed",
    ),
    done(**{**MCP, "id": "item_4"}, arguments={}, error={"message": "no"}, status="failed"),
    done(id="item_5", type="web_search", query="newline"),
    done(id="item_6", type="todo_list", items=[]),
    done(id="item_7", type="agent_message", text="Fixed."),
    {"type": "turn.completed", "usage": {"input_tokens": 9, "output_tokens": 3}},
]


def test_a_run(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(lines_of(EVENTS))
    store = Store.memory()
    (report,) = import_paths(Writer(store), [str(path)]).files
    assert (report.format, report.session) == ("codex-exec", SESSION)
    assert_counted_once(store, report, len(EVENTS))
    assert report.records["item.completed/todo_list", "source"] == 1
    ((name, tip),) = heads(store).items()
    found = [part for entry in visible(store, tip) for part in parts_of(store, entry)]
    assert found == [
        Reasoning("**Looking**"),
        ToolCall("item_1", "command_execution", '{"command":"ls"}'),
        ToolResult("item_1", "parser.py\n"),
        ToolCall("item_2", "file_change", '{"changes":[{"path":"a","kind":"add"}]}'),
        ToolResult("item_2", "failed", True),
        ToolCall("item_3", "find", '{"q":"x"}'),
        ToolResult(
            "item_3",
            [
                Text("seen"),
                Image("image/png", b"\x89PNG"),
                Opaque("codex-exec", b'{"type":"audio"}'),
            ],
        ),
        ToolCall("item_4", "find", "{}"),
        ToolResult("item_4", "no", True),
        Opaque("codex-exec", b'{"id":"item_5","type":"web_search","query":"newline"}'),
        Text("Fixed."),
    ]
    assert_valid_requests(list(ContextCompiler(store).compile(name).messages))


@pytest.mark.parametrize(
    ("head", "known"),
    [
        (lines_of(EVENTS), True),
        (lines_of(EVENTS[2:]), True),
        (b'{"type":"thread.started"}\n', False),
        (b'{"type":"item.completed","item":1}\n', False),
        (b'{"type":["turn.started"]}\n', False),
    ],
)
def test_recognising(head: bytes, known: bool) -> None:
    assert_recognised(FORMAT, head, known)


def test_a_growing_file(tmp_path: Path) -> None:
    assert_grows(tmp_path, lines_of(EVENTS), "run.jsonl")


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(damaged(EVENTS) | st.lists(st.builds(lambda item: done(x=item), JSON), min_size=1))
def test_no_shape_does_harm(tmp_path: Path, records: list[Any]) -> None:
    store = import_hostile(tmp_path, records, "codex-exec")
    for tip in heads(store).values():
        context(store, tip)
