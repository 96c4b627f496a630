"""ATIF trajectories, and their writers' variants of the schema."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given

from tests.importers.support.checks import assert_grows, damaged, import_hostile, lines_of
from tests.importers.support.sound import (
    HEADS,
    assert_sound,
    branches_of,
    commits_of,
    damaged_document,
    import_damaged,
    imported,
    messages,
    real_files,
)
from trace_store.context.compiler import ContextCompiler
from trace_store.importers.import_paths import import_paths
from trace_store.objects.commit import Commit
from trace_store.objects.parts import Opaque, Reasoning, Text, ToolCall, ToolResult
from trace_store.store.store import Store
from trace_store.writer import Writer

TOOL = {"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}
AGENT: dict[str, Any] = {
    "name": "scout",
    "version": "1",
    "model_name": "openai/gpt-5",
    "tool_definitions": [TOOL],
}
STEPS: list[dict[str, Any]] = [
    {"step_id": 1, "source": "system", "message": "You explore."},
    {"step_id": 2, "source": "user", "message": "Make hello.txt, with a greeting in it."},
    {
        "step_id": 3,
        "timestamp": "2026-07-01T10:00:00Z",
        "source": "agent",
        "message": "",
        "reasoning_content": "One echo will do.",
        "tool_calls": [
            {
                "tool_call_id": "c1",
                "function_name": "bash",
                "arguments": {"cmd": "echo hi > hello.txt"},
            },
            {"tool_call_id": "c2", "function_name": "task", "arguments": {"goal": "check it"}},
        ],
        "observation": {
            "results": [
                {"source_call_id": "c1", "content": ""},
                {
                    "source_call_id": "c2",
                    "content": [
                        {"type": "text", "text": "It greets."},
                        {
                            "type": "image",
                            "source": {"media_type": "image/png", "path": "images/1.png"},
                        },
                    ],
                    "subagent_trajectory_ref": [{"trajectory_id": "t-sub", "session_id": "s-1"}],
                },
            ]
        },
        "metrics": {"prompt_tokens": 520, "completion_tokens": 31, "cached_tokens": 500},
    },
    {"step_id": 4, "source": "agent", "model_name": "openai/gpt-5-mini", "message": "Done."},
]
SUBAGENT = {
    "schema_version": "ATIF-v1.7",
    "trajectory_id": "t-sub",
    "agent": {"name": "checker", "version": "1"},
    "steps": [
        {"step_id": 1, "source": "user", "message": "Check hello.txt."},
        {"step_id": 2, "source": "agent", "message": "It greets."},
    ],
}
TRAJECTORY: dict[str, Any] = {
    "schema_version": "ATIF-v1.7",
    "session_id": "s-1",
    "agent": AGENT,
    "steps": STEPS,
    "final_metrics": {"total_prompt_tokens": 520},
}


def usages(found: list[Commit]) -> list[dict[str, Any]]:
    return [o.fields for commit in found for o in commit.operations if o.name == "usage"]


def test_a_trajectory(tmp_path: Path) -> None:
    store, report = imported(tmp_path, "trajectory.json", TRAJECTORY)
    assert (report.format, branches_of(store)) == ("atif", {"atif/s-1"})
    said = messages(store, "atif/s-1")
    assert [message.role for message in said] == [
        *("system", "user", "assistant", "tool", "assistant")
    ]
    assert said[2].parts == (
        Reasoning("One echo will do."),
        ToolCall("c1", "bash", '{"cmd":"echo hi > hello.txt"}'),
        ToolCall("c2", "task", '{"goal":"check it"}'),
    )
    assert said[3].parts[0] == ToolResult("c1", ())
    assert isinstance(said[3].parts[1], ToolResult)
    text, image = said[3].parts[1].content
    assert text == Text("It greets.")
    assert isinstance(image, Opaque), "the file names an image that is not in it"
    assert image.provider == "atif"
    assert [message.model for message in said] == [
        *("", "", "openai/gpt-5", "", "openai/gpt-5-mini")
    ]
    made = commits_of(store, "atif/s-1")
    assert len(made) == len(STEPS), "a step is a commit, with what was observed in it"
    assert [commit.author for commit in made] == [
        "atif",
        "atif/user",
        "atif/scout/openai/gpt-5",
        "atif/scout/openai/gpt-5-mini",
    ]
    (usage,) = usages(made)
    assert usage["input_total"] == 520
    assert usage["cache_read"] == 500
    assert ContextCompiler(store).compile(HEADS + "atif/s-1").tools == (TOOL,)
    assert made[2].meta["agents"] == ["t-sub", "s-1"]


def test_trajectories_of_subagents_in_the_file(tmp_path: Path) -> None:
    whole = {**TRAJECTORY, "subagent_trajectories": [SUBAGENT, {**SUBAGENT, "trajectory_id": "u"}]}
    store, report = imported(tmp_path, "trajectory.json", whole)
    assert branches_of(store) == {"atif/s-1", "atif/s-1/agents/t-sub", "atif/s-1/agents/u"}
    assert report.record_count == len(STEPS) + 4
    assert [message.text for message in messages(store, "atif/s-1/agents/t-sub")] == [
        "Check hello.txt.",
        "It greets.",
    ]
    called = commits_of(store, "atif/s-1")[2].encode()
    begun = [commit.encode() for commit in commits_of(store, "atif/s-1/agents/t-sub")]
    assert called in begun, "it branches from the step that called it"
    other = [commit.encode() for commit in commits_of(store, "atif/s-1/agents/u")]
    assert called not in other, "and this one nobody called"
    assert len(messages(store, "atif/s-1")) == 5


def test_a_subagent_in_its_own_file(tmp_path: Path) -> None:
    extra = {"parent_session_id": "s-1"}
    own = {**SUBAGENT, "agent": {**SUBAGENT["agent"], "extra": extra}}  # type: ignore[dict-item]
    (tmp_path / "trajectory.json").write_text(json.dumps(TRAJECTORY))
    (tmp_path / "trajectory.sub.json").write_text(json.dumps(own))
    store = Store.memory()
    import_paths(Writer(store), [str(tmp_path)])
    assert branches_of(store) == {"atif/s-1", "atif/s-1/agents/t-sub"}
    assert len(messages(store, "atif/s-1/agents/t-sub")) == 2
    assert_sound(store, tmp_path / "trajectory.json", tmp_path / "trajectory.sub.json")


def test_a_continuation(tmp_path: Path) -> None:
    copied = [{**step, "is_copied_context": True} for step in STEPS]
    agent = {**AGENT, "extra": {"continuation_index": 1}}
    steps = [*copied, {"step_id": 5, "source": "user", "message": "And now?"}]
    store, _ = imported(
        tmp_path, "trajectory.cont-1.json", {**TRAJECTORY, "agent": agent, "steps": steps}
    )
    (name,) = branches_of(store)
    assert name == "atif/s-1-cont-1"
    made = commits_of(store, name)
    assert made[0].links == (("continues", "s-1"),)
    assert usages(made) == [], "what the copied steps cost is told where they were made"
    context = ContextCompiler(store).compile(HEADS + name)
    assert context.messages[0].labels == {"copied-context"}
    assert not context.messages[len(context) - 1].labels


def test_what_goes_on_elsewhere_is_linked(tmp_path: Path) -> None:
    whole = {**TRAJECTORY, "continued_trajectory_ref": "trajectory.cont-1.json"}
    store, _ = imported(tmp_path, "trajectory.json", whole)
    assert commits_of(store, "atif/s-1")[-1].links == (("continued-in", "trajectory.cont-1.json"),)


def test_writers_break_the_schema(tmp_path: Path) -> None:
    steps = [
        {"step_id": 1, "source": "user", "message": {"goal": "greet"}},
        {
            "step_id": 2,
            "source": "agent",
            "message": "I greet.",
            "tool_calls": [{"id": "c1", "name": "Write", "arguments": '{"path": "hello.txt"}'}],
        },
        {
            "step_id": 3,
            "source": "system",
            "message": "Tool result for c1",
            "observation": {"type": "tool_result", "content": "denied", "source_call_id": "c1"},
        },
        {
            "step_id": 4,
            "source": "system",
            "message": "Tests",
            "observation": {"results": [{"content": {"passed": False}}]},
        },
        {
            "step_id": 5,
            "source": "agent",
            "message": "ls",
            "observation": {"results": [{"content": "a.py"}]},
        },
        {
            "step_id": 6,
            "source": "agent",
            "message": "pwd",
            "tool_calls": [{"tool_call_id": "c2", "function_name": "sh", "arguments": {}}],
            "observation": {"results": [{"content": "/repo"}]},
        },
    ]
    agent = {"name": "claude-code", "version": "2", "model": "claude-sonnet-4"}
    whole = {"schema_version": "1.4", "session_id": "s-2", "agent": agent, "steps": steps}
    store, report = imported(tmp_path, "x.json", whole)
    assert report.format == "atif"
    said = messages(store, "atif/s-2")
    assert [(message.role, message.parts) for message in said] == [
        ("user", (Text('{"goal":"greet"}'),)),
        ("assistant", (Text("I greet."), ToolCall("c1", "Write", '{"path": "hello.txt"}'))),
        ("system", (Text("Tool result for c1"),)),
        ("tool", (ToolResult("c1", "denied"),)),
        ("system", (Text("Tests"), Text('{"passed":false}'))),
        ("assistant", (Text("ls"),)),
        ("user", (Text("a.py"),)),
        ("assistant", (Text("pwd"), ToolCall("c2", "sh", "{}"))),
        ("tool", (ToolResult("c2", "/repo"),)),
    ]
    assert said[1].model == "claude-sonnet-4"


HEADER = {"__header__": True, "schema_version": "ATIF-v1.4", "session_id": "s-3", "agent": AGENT}


def test_a_step_a_line(tmp_path: Path) -> None:
    store, report = imported(tmp_path, "s.atif.jsonl", lines_of([HEADER, *STEPS]))
    assert (report.format, branches_of(store)) == ("atif", {"atif/s-3"})
    document, _ = imported(tmp_path, "s.json", {**TRAJECTORY, "session_id": "s-3"})
    assert messages(store, "atif/s-3") == messages(document, "atif/s-3")
    assert dict(report.records)["header", "source"] == 1


def test_steps_are_added(tmp_path: Path) -> None:
    assert_grows(tmp_path, lines_of([HEADER, *STEPS, *STEPS[1:]]), "s.atif.jsonl")


def test_sessions_with_one_id_stand_beside_each_other(tmp_path: Path) -> None:
    paths = []
    for number in range(3):
        steps = [
            {"step_id": 1, "source": "user", "message": f"Task {number}."},
            {"step_id": 2, "source": "agent", "message": f"Answer {number}."},
        ]
        path = tmp_path / f"{number}.json"
        path.write_text(json.dumps({**TRAJECTORY, "steps": steps}))
        paths.append(path)
    store = Store.memory()
    import_paths(Writer(store), [str(path) for path in paths])
    found = branches_of(store)
    assert "atif/s-1" in found
    assert all(name.startswith("atif/s-1/copies/") for name in found - {"atif/s-1"})
    assert {messages(store, name)[-1].text for name in found} == {f"Answer {n}." for n in range(3)}
    assert not list(store.refs.iterate("refs/trash/"))
    assert_sound(store, *paths)


@given(damaged_document({**TRAJECTORY, "subagent_trajectories": [SUBAGENT]}))
def test_whatever_a_trajectory_holds(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    import_damaged(tmp_path_factory.mktemp("atif"), value, "atif")


@given(damaged([HEADER, *STEPS]))
@example([{}, None])
def test_whatever_lines_hold(tmp_path_factory: pytest.TempPathFactory, records: list[Any]) -> None:
    import_hostile(tmp_path_factory.mktemp("atif"), records, "atif")


@pytest.mark.parametrize("path", real_files("atif"))
def test_real_trajectories(tmp_path: Path, path: Path) -> None:
    """Counted by hand: texts, calls and results are all there, once."""
    data = path.read_bytes()
    if path.suffix == ".jsonl":
        header, *steps = [json.loads(line) for line in data.splitlines()]
    else:
        header = json.loads(data)
        steps = header["steps"]
    store, report = imported(tmp_path, path.name, data)
    (name,) = branches_of(store)
    said = messages(store, name)
    texts = Counter(part.text for message in said for part in _parts(message.parts))
    for step in steps:
        assert not step["message"] or texts[step["message"]] > 0
    calls = [call for step in steps for call in step.get("tool_calls") or ()]
    assert Counter(part.id for m in said for part in m.parts if isinstance(part, ToolCall)) == (
        Counter(call.get("tool_call_id") or call.get("id") for call in calls)
    )
    results = [
        result.get("content")
        for step in steps
        for result in (step.get("observation") or {}).get("results", ())
        if isinstance(result.get("content"), str)
    ]
    assert all(texts[result] >= count for result, count in Counter(results).items() if result)
    told = [usage["input_total"] for usage in usages(commits_of(store, name))]
    assert told == [step["metrics"]["prompt_tokens"] for step in steps if "metrics" in step]
    assert report.record_count == len(steps) + (path.suffix == ".jsonl")


def _parts(parts: Any) -> list[Text]:
    held = [inner for part in parts for inner in getattr(part, "content", (part,))]
    return [part for part in held if isinstance(part, Text)]


@pytest.mark.parametrize("path", real_files(".", "atif"))
def test_real_trajectories_with_one_id(tmp_path: Path, path: Path) -> None:
    files = sorted(path.glob("*.json*"))
    store = Store.memory()
    import_paths(Writer(store), [str(file) for file in files])
    ids = Counter(_session_id(file.read_bytes()) for file in files)
    assert max(ids.values()) > 1
    assert len(branches_of(store)) == len(files)
    assert_sound(store, *files)


def _session_id(data: bytes) -> str:
    try:
        found = json.loads(data)
    except ValueError:
        found = json.loads(data.splitlines()[0])
    return str(found["session_id"])
