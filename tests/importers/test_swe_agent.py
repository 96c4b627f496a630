"""Runs of SWE-agent and mini-swe-agent: the history is the conversation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from tests.importers.support.sound import (
    branches_of,
    damaged_document,
    import_damaged,
    imported,
    messages,
    real_files,
)
from tests.importers.support.states import commits, tip_of
from trace_store.base.environment import Environment
from trace_store.disk.files import Disk
from trace_store.importers.formats.swe_agent import FORMAT
from trace_store.importers.import_paths import import_paths
from trace_store.objects.parts import Reasoning, Text, ToolCall, ToolResult
from trace_store.store.store import Store
from trace_store.writer import Writer

ARGUMENTS = '{ "command" : "grep -rn split src" }'


def call(id: str, arguments: str = ARGUMENTS) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": "bash", "arguments": arguments}}


HISTORY: list[dict[str, Any]] = [
    {
        "role": "system",
        "content": "You repair programs.",
        "agent": "main",
        "message_type": "system_prompt",
    },
    {
        "role": "user",
        "content": "A demonstration of a run: first look, then act.",
        "agent": "main",
        "is_demo": True,
        "message_type": "demonstration",
    },
    {
        "role": "user",
        "content": [{"type": "text", "text": "The parser drops the last line of a file."}],
        "agent": "main",
        "message_type": "observation",
    },
    {
        "role": "assistant",
        "content": "Where does it split?",
        "thought": "Where does it split?",
        "action": "grep -rn split src",
        "agent": "main",
        "message_type": "action",
        "thinking_blocks": [{"type": "thinking", "thinking": "Perhaps here.", "signature": "Eos"}],
        "tool_calls": [call("call_1"), call("call_2", "{}")],
    },
    {
        "role": "tool",
        "content": "src/parser.py:2: lines = data.split()",
        "agent": "main",
        "message_type": "observation",
        "tool_call_ids": ["call_1", "call_2"],
    },
    {
        "role": "assistant",
        "content": "",
        "thought": "It is mended.",
        "action": "submit",
        "agent": "main",
    },
]
STEP = {
    "action": "grep -rn split src",
    "observation": "src/parser.py:2: lines = data.split()",
    "response": "Where does it split?\n```\ngrep -rn split src\n```",
    "thought": "Where does it split?",
    "state": '{"working_dir": "/repo"}',
    "execution_time": 0.2,
    "query": HISTORY[:3],
}
INFO = {
    "exit_status": "submitted",
    "submission": "diff --git a/src/parser.py b/src/parser.py\n",
    "model_stats": {
        "api_calls": 2,
        "tokens_sent": 900,
        "tokens_received": 20,
        "instance_cost": 0.12,
    },
}
RUN: dict[str, Any] = {
    "trajectory": [STEP, {**STEP, "action": "submit"}],
    "history": HISTORY,
    "info": INFO,
    "environment": "main",
    "replay_config": json.dumps({"agent": {"model": {"name": "gpt-4o"}}}),
}


def test_a_run(tmp_path: Path) -> None:
    store, report = imported(tmp_path, "instance-1.traj", RUN)
    assert report.format == "swe-agent"
    assert branches_of(store) == {"swe-agent/instance-1"}
    said = messages(store, "swe-agent/instance-1")
    assert [message.role for message in said] == [
        *("system", "user", "user", "assistant", "tool", "assistant")
    ]
    assert said[3].parts == (
        Reasoning("Perhaps here.", "Eos"),
        Text("Where does it split?"),
        ToolCall("call_1", "bash", ARGUMENTS),
        ToolCall("call_2", "bash", "{}"),
    )
    assert said[3].model == "gpt-4o"
    assert said[4].parts == (
        ToolResult("call_1", "src/parser.py:2: lines = data.split()"),
        ToolResult("call_2", ()),
    )
    assert said[5].parts == (Text("It is mended."), Text("submit"))
    outcomes = {kind: what for (kind, what), _ in report.records.items()}
    assert outcomes["step"] == "source"
    tip = tip_of(store, "refs/heads/sessions/swe-agent/instance-1")
    made = commits(store, tip)
    assert made[-1].meta["run"] == {
        "exit_status": "submitted",
        "api_calls": 2,
        "tokens_sent": 900,
        "tokens_received": 20,
        "instance_cost": "0.12",
    }
    assert not any("run" in commit.meta for commit in made[:-1])
    assert not any(each.name == "usage" for commit in made for each in commit.operations)
    assert [operation.fields.get("labels") for operation in made[1].operations[1:]] == [
        ["demonstration"]
    ]


def test_a_run_without_tool_calls(tmp_path: Path) -> None:
    history = [
        {"role": "system", "content": "You repair programs.", "agent": "primary"},
        {"role": "user", "content": "Repair this one.", "agent": "primary"},
        {"role": "assistant", "content": "ls", "thought": "", "action": "ls", "agent": "primary"},
        {"role": "user", "content": "a.py", "agent": "primary"},
        {"role": "assistant", "content": "submit", "agent": "primary"},
    ]
    store, _ = imported(tmp_path, "x.traj", {"history": history, "info": {}})
    said = messages(store, "swe-agent/x")
    assert [(message.role, message.kind) for message in said] == [
        ("system", "instruction"),
        ("user", "dialogue"),
        ("assistant", "dialogue"),
        ("user", "tool_io"),
        ("assistant", "dialogue"),
    ]
    tip = tip_of(store, "refs/heads/sessions/swe-agent/x")
    authors = [commit.author for commit in commits(store, tip)]
    assert authors == ["swe-agent", "swe-agent/user", *["swe-agent"] * 3]


@pytest.mark.parametrize("shown", ["query", "messages"])
def test_a_run_without_a_history_is_told_by_its_steps(tmp_path: Path, shown: str) -> None:
    step = {key: value for key, value in STEP.items() if key != "query"}
    steps = [{**step, shown: HISTORY[:3]}, {**step, "response": "", "observation": ""}]
    store, report = imported(tmp_path, "x.traj", {"trajectory": steps, "info": INFO})
    said = messages(store, "swe-agent/x")
    assert [message.text for message in said] == [
        "You repair programs.",
        "A demonstration of a run: first look, then act.",
        "The parser drops the last line of a file.",
        STEP["response"],
        STEP["observation"],
        "Where does it split?\ngrep -rn split src",
    ]
    assert dict(report.records) == {("step", "message"): 2}


def test_another_agent_of_the_run_has_a_branch(tmp_path: Path) -> None:
    history = [
        *HISTORY[:3],
        {"role": "user", "content": "Summarise.", "agent": "helper"},
        {"role": "assistant", "content": "Nothing yet.", "agent": "helper"},
        *HISTORY[3:],
    ]
    store, _ = imported(tmp_path, "x.traj", {**RUN, "history": history})
    assert branches_of(store) == {"swe-agent/x", "swe-agent/x/agents/helper"}
    assert len(messages(store, "swe-agent/x")) == len(HISTORY)
    assert [m.text for m in messages(store, "swe-agent/x/agents/helper")] == [
        "Summarise.",
        "Nothing yet.",
    ]


def test_runs_are_found_below_the_project(tmp_path: Path) -> None:
    place = tmp_path / "trajectories" / "me" / "gpt__1"
    place.mkdir(parents=True)
    (place / "one.traj").write_text(json.dumps(RUN))
    (place / "config.yaml").write_text("a: 1")
    found = FORMAT.histories(Environment(), str(tmp_path), Disk())
    assert found == [str(place / "one.traj")]


RESPONSE = {
    "id": "chatcmpl-1",
    "model": "gpt-5",
    "choices": [],
    "usage": {"prompt_tokens": 90, "completion_tokens": 7, "total_tokens": 97},
}
MINI: dict[str, Any] = {
    "info": {
        "mini_version": "2.2.7",
        "exit_status": "Submitted",
        "model_stats": {"instance_cost": 0.03, "api_calls": 1},
        "config": {"model": {"model_name": "openai/gpt-5"}},
    },
    "messages": [
        {"role": "system", "content": "You repair programs."},
        {"role": "user", "content": "Repair this one.", "extra": {"timestamp": 1775802390.5}},
        {
            "role": "assistant",
            "content": "I look.",
            "tool_calls": [call("call_1")],
            "function_call": None,
            "extra": {"actions": [], "response": RESPONSE, "cost": 0.1, "timestamp": 1775802391.25},
        },
        {
            "role": "tool",
            "tool_call_id": "call_1",
            "content": "<returncode>0</returncode>",
            "extra": {"returncode": 0, "timestamp": 1775802392},
        },
        {"role": "exit", "content": "diff", "extra": {"exit_status": "Submitted"}},
    ],
    "trajectory_format": "mini-swe-agent-1.1",
}


def test_a_run_of_the_small_agent(tmp_path: Path) -> None:
    store, report = imported(tmp_path, "instance-2.traj.json", MINI)
    assert report.format == "mini-swe-agent"
    name = "mini-swe-agent/instance-2"
    said = messages(store, name)
    assert [message.role for message in said] == ["system", "user", "assistant", "tool"]
    assert said[2].parts == (Text("I look."), ToolCall("call_1", "bash", ARGUMENTS))
    assert said[2].model == "gpt-5"
    tip = tip_of(store, f"refs/heads/sessions/{name}")
    made = commits(store, tip)
    assert [commit.time for commit in made] == [0, 1775802390500, 1775802391250, 1775802392000]
    (usage,) = [o.fields for commit in made for o in commit.operations if o.name == "usage"]
    assert (usage["input_total"], usage["output_total"], usage["model"]) == (90, 7, "gpt-5")
    assert made[-1].meta["run"]["exit_status"] == "Submitted"
    assert dict(report.records)["exit", "source"] == 1


def test_a_run_of_the_small_agent_with_responses(tmp_path: Path) -> None:
    response = {
        "object": "response",
        "model": "gpt-5",
        "output": [
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"},
            {"type": "function_call", "call_id": "call_1", "name": "bash", "arguments": ARGUMENTS},
        ],
        "usage": {"input_tokens": 9, "output_tokens": 3, "total_tokens": 12},
        "extra": {"timestamp": 1775802391},
    }
    output = {"type": "function_call_output", "call_id": "call_1", "output": "a.py", "extra": {}}
    run = {**MINI, "messages": [*MINI["messages"][:2], response, output]}
    store, report = imported(tmp_path, "x.traj.json", run)
    said = messages(store, "mini-swe-agent/x")
    assert said[2].parts == (Reasoning("", "gAAA"), ToolCall("call_1", "bash", ARGUMENTS))
    assert said[3].parts == (ToolResult("call_1", "a.py"),)
    assert dict(report.records)["response", "message"] == 1


def test_an_old_run_is_a_bare_list(tmp_path: Path) -> None:
    run = [
        {"role": "system", "content": "Answer with one ```mswea_bash_command block."},
        {"role": "user", "content": "Repair this one."},
        {"role": "assistant", "content": "```mswea_bash_command\nls\n```"},
        {"role": "user", "content": "<returncode>0</returncode>"},
    ]
    store, report = imported(tmp_path, "x.traj.json", run)
    assert report.format == "mini-swe-agent"
    assert [m.kind for m in messages(store, "mini-swe-agent/x")][-1] == "tool_io"


@given(damaged_document(RUN))
def test_whatever_a_run_holds(tmp_path_factory: pytest.TempPathFactory, run: Any) -> None:
    import_damaged(tmp_path_factory.mktemp("run"), run, "swe-agent")


@given(damaged_document(MINI))
def test_whatever_a_small_run_holds(tmp_path_factory: pytest.TempPathFactory, run: Any) -> None:
    import_damaged(tmp_path_factory.mktemp("run"), run, "mini-swe-agent")


@pytest.mark.parametrize("path", real_files("swe-agent"))
def test_real_runs(tmp_path: Path, path: Path) -> None:
    run = json.loads(path.read_bytes())
    store, report = imported(tmp_path, path.name, path.read_bytes())
    said = messages(store, f"swe-agent/{path.stem}")
    assert [(message.role, _words(message.parts)) for message in said] == [
        (form["role"], form["content"]) for form in run["history"]
    ]
    calls = [part for message in said for part in message.parts if isinstance(part, ToolCall)]
    written = [call for form in run["history"] for call in form.get("tool_calls") or ()]
    assert [(c.id, c.arguments) for c in calls] == [
        (each["id"], each["function"]["arguments"]) for each in written
    ]
    assert report.record_count == len(run["history"]) + len(run["trajectory"])


@pytest.mark.parametrize("path", real_files("mini-swe-agent"))
def test_real_small_runs(tmp_path: Path, path: Path) -> None:
    run = json.loads(path.read_bytes())
    forms = run if isinstance(run, list) else run["messages"]
    store, _ = imported(tmp_path, path.name, path.read_bytes())
    (name,) = branches_of(store)
    assert [(m.role, m.text) for m in messages(store, name)] == [
        (form["role"], form["content"]) for form in forms
    ]


def _words(parts: Any) -> str:
    held = [inner for part in parts for inner in getattr(part, "content", (part,))]
    return "".join(part.text for part in held if isinstance(part, Text))


def test_two_runs_of_one_instance_stand_beside_each_other(tmp_path: Path) -> None:
    paths = []
    for number, folder in enumerate(("first", "second")):
        (tmp_path / folder).mkdir()
        path = tmp_path / folder / "instance-1.traj"
        history = [*HISTORY[:3], {"role": "assistant", "content": f"Attempt {number}."}]
        path.write_text(json.dumps({**RUN, "history": history}))
        paths.append(str(path))
    store = Store.memory()
    import_paths(Writer(store), paths)
    first, copy = sorted(branches_of(store))
    assert copy.startswith(f"{first}/copies/")
    assert {messages(store, name)[-1].text for name in (first, copy)} == {
        "Attempt 0.",
        "Attempt 1.",
    }
