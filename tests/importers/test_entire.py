"""Entire's transcripts: conversion of records."""

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
from tests.importers.support.states import commits, context, parts_of, visible
from tests.importers.support.transcripts import each_real_transcript, records_in
from tests.support.examples import examples
from trace_store.context.compiler import ContextCompiler
from trace_store.importers.formats.entire import FORMAT
from trace_store.importers.import_paths import import_paths
from trace_store.objects import operations as ops
from trace_store.objects.parts import Opaque, ToolCall, ToolResult
from trace_store.providers.rendering import RENDERERS, render
from trace_store.store.store import Store
from trace_store.writer import Writer

FIRST = "671455ef-0000-4000-8000-00000000000a"


def record(type_: str, *content: Any, **more: Any) -> dict[str, Any]:
    start = {"v": 1, "agent": "claude-code", "cli_version": "0.8.42", "type": type_}
    return {**start, "ts": "2026-07-20T21:27:59.089Z", **more, "content": list(content)}


def call(call_id: str, output: Any = None, status: str = "success") -> dict[str, Any]:
    block = {"type": "tool_use", "id": call_id, "name": "Bash", "input": {"command": call_id}}
    return block if output is None else {**block, "result": {"output": output, "status": status}}


RECORDS = [
    record("user", {"id": FIRST, "text": "Review it."}),
    record("assistant", {"type": "text", "text": "I look."}, call("a", "one"), id="m1"),
    record("assistant", call("b", "no", "error"), call("c"), id="m1", output_tokens=7),
    record("user", {"text": "A hint."}),
    record(
        "assistant", {"type": "text", "text": "Fine."}, id="m2", input_tokens=2, output_tokens=9
    ),
]


def imported(tmp_path: Path, records: list[Any]) -> Store:
    path = tmp_path / "transcript.jsonl"
    path.write_bytes(lines_of(records))
    store = Store.memory()
    (report,) = import_paths(Writer(store), [str(path)]).files
    assert report.format == "entire"
    assert_counted_once(store, report, len(records))
    return store


def test_a_transcript(tmp_path: Path) -> None:
    store = imported(tmp_path, RECORDS)
    ((name, tip),) = heads(store).items()
    assert name == f"refs/heads/sessions/entire/{FIRST}"
    assert context(store, tip) == [
        "user: Review it.",
        "assistant: I look. | a | b | c",
        "tool: a=one | b=no",
        "user: A hint.",
        "assistant: Fine.",
    ]
    line = commits(store, tip)
    assert [c.author for c in line] == ["entire/user", "entire", "entire/user", "entire"]
    usage = [op.fields["output_total"] for c in line for op in c.operations if op.name == ops.USAGE]
    assert usage == [7, 9]
    assert not any("input_total" in op.fields for c in line for op in c.operations)
    results = parts_of(store, visible(store, tip)[2])
    assert results == (ToolResult("a", "one"), ToolResult("b", "no", True))


def test_blocks_of_other_shapes(tmp_path: Path) -> None:
    image = {"type": "image", "source": "x"}
    odd = {**call("x"), "result": {"output": [1], "status": "error"}, "input": "free text"}
    store = imported(
        tmp_path, [record("user", {"text": "See."}, image), record("assistant", odd, 7)]
    )
    ((_, tip),) = heads(store).items()
    assert [parts_of(store, entry) for entry in visible(store, tip)][1:] == [
        (ToolCall("x", "Bash", "free text"), Opaque("entire", b"7")),
        (ToolResult("x", [Opaque("entire", b"[1]")], True),),
    ]


def test_a_session_is_told_by_what_it_begins_with(tmp_path: Path) -> None:
    """All transcripts of all sessions have the same file name."""
    without = [record("user", {"text": text}) for text in ("One.", "Two.")]
    names = [set(heads(imported(tmp_path, [start]))) for start in (*without, RECORDS[0])]
    assert len(set.union(*names)) == 3


@pytest.mark.parametrize(
    ("head", "known"),
    [
        (lines_of(RECORDS), True),
        (b'{"v":1,"type":"user"}\n', False),
        (b'{"v":2,"agent":"x","cli_version":"1","type":"user","ts":"x"}\n', False),
        (b'{"v":1,"agent":"x","cli_version":"1","type":["user"],"ts":"x"}\n', False),
    ],
)
def test_recognising(head: bytes, known: bool) -> None:
    assert_recognised(FORMAT, head, known)


def test_a_growing_file(tmp_path: Path) -> None:
    assert_grows(tmp_path, lines_of(RECORDS), "transcript.jsonl")


FIELDS = ("id", "ts", "input_tokens", "output_tokens", "v", "agent")
ANY = st.fixed_dictionaries(
    {"type": st.sampled_from(["user", "assistant"]) | JSON, "content": JSON},
    optional=dict.fromkeys(FIELDS, JSON),
)


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(damaged(RECORDS) | st.lists(ANY, min_size=1, max_size=6))
def test_no_shape_does_harm(tmp_path: Path, records: list[Any]) -> None:
    store = import_hostile(tmp_path, records, "entire")
    contexts = ContextCompiler(store)
    for name in heads(store):
        for provider in RENDERERS:
            render(provider, list(contexts.compile(name).messages))


@pytest.mark.parametrize("path", each_real_transcript("entire"))
def test_a_real_transcript(path: Path) -> None:
    records = [record for _, record in records_in(path.read_bytes())]
    store = Store.memory()
    import_paths(Writer(store), [str(path)])
    ((_, tip),) = heads(store).items()
    said = context(store, tip)
    answers = {r["id"] for r in records if r["type"] == "assistant"}
    assert sum(line.startswith("assistant:") for line in said) == len(answers)
    assert sum(line.startswith("user:") for line in said) == len(records) - sum(
        r["type"] == "assistant" for r in records
    )
    with_results = {
        r["id"] for r in records if any("result" in b for b in r["content"] if "name" in b)
    }
    assert sum(line.startswith("tool:") for line in said) == len(with_results)
