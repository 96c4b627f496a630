"""Trail trajectories and Agent Trace records: linked events, hidden from models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from tests.importers.support.checks import damaged, import_hostile
from tests.importers.support.sound import (
    branches_of,
    commits_of,
    imported,
    real_files,
)
from trace_store.base.environment import Environment
from trace_store.disk.files import Disk
from trace_store.importers.formats.agent_trace import FORMAT as AGENT_TRACE
from trace_store.objects.commit import Commit


def facts(commit: Commit) -> dict[str, Any]:
    return {key: value for key, value in commit.meta.items() if key not in ("record", "source")}


RECORD: dict[str, Any] = {
    "version": "0.1.0",
    "id": "550e8400-e29b-41d4-a716-446655440000",
    "timestamp": "2026-01-25T10:00:00Z",
    "vcs": {"type": "git", "revision": "a1b2c3d"},
    "tool": {"name": "editor", "version": "1"},
    "files": [
        {
            "path": "src/a.py",
            "conversations": [
                {
                    "url": "https://example.org/talk/1",
                    "contributor": {"type": "ai", "model_id": "anthropic/claude-opus-4-6"},
                    "ranges": [
                        {"start_line": 1, "end_line": 20},
                        {"start_line": 30, "end_line": 30, "revision": "ffff000"},
                    ],
                }
            ],
        },
        {"path": "src/b.py", "conversations": []},
    ],
}


def test_who_wrote_which_lines(tmp_path: Path) -> None:
    store, report = imported(tmp_path, "x.trace.json", {**RECORD, "trajectory": "traj_1"})
    assert (report.format, branches_of(store)) == ("agent-trace", {"agent-trace/traj_1"})
    (commit,) = commits_of(store, "agent-trace/traj_1")
    assert facts(commit) == {
        "event": "attribution",
        "files": 2,
        "lines": 21,
        "contributors": ["ai"],
        "models": ["anthropic/claude-opus-4-6"],
    }
    assert commit.author == "agent-trace/editor"
    assert commit.links == (
        ("trajectory", "traj_1"),
        ("code-commit", "a1b2c3d"),
        ("conversation", "https://example.org/talk/1"),
        ("code-commit", "ffff000"),
        ("file", "src/a.py"),
        ("file", "src/b.py"),
    )


def test_a_record_a_line(tmp_path: Path) -> None:
    records = [{**RECORD, "id": str(number)} for number in range(3)]
    data = b"".join(json.dumps(record).encode() + b"\n" for record in records)
    store, report = imported(tmp_path, "traces.jsonl", data)
    assert branches_of(store) == {"agent-trace/traces"}
    assert len(commits_of(store, "agent-trace/traces")) == 3
    assert dict(report.records) == {("attribution", "event"): 3}


def test_they_are_found_where_they_are_kept(tmp_path: Path) -> None:
    paths = [
        ".agent-trace/traces.jsonl",
        ".trajectories/completed/2026-01/traj_1.trace.json",
    ]
    others = [
        ".trajectories/index.json",
        ".trajectories/completed/2026-01/traj_1.json",
        ".agentworkforce/trajectories/completed/2026-07/traj_2/trajectory.json",
    ]
    for name in (*paths, *others):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(json.dumps(RECORD))
    found = [
        Path(path).relative_to(tmp_path).as_posix()
        for path in AGENT_TRACE.histories(Environment(), str(tmp_path), Disk())
    ]
    assert sorted(found) == paths


@given(damaged([RECORD, RECORD]))
def test_whatever_records_hold(
    tmp_path_factory: pytest.TempPathFactory, records: list[Any]
) -> None:
    dicts = [record if isinstance(record, dict) else {"was": record} for record in records]
    import_hostile(tmp_path_factory.mktemp("trace"), [{}, *dicts], "agent-trace")


@pytest.mark.parametrize("path", real_files("agentworkforce-trail", "*.trace.json"))
def test_real_records(tmp_path: Path, path: Path) -> None:
    told = json.loads(path.read_bytes())
    store, _ = imported(tmp_path, path.name, path.read_bytes())
    (name,) = branches_of(store)
    made = commits_of(store, name)
    assert [commit.meta["event"] for commit in made] == ["attribution"]
    assert {target for relation, target in made[0].links if relation == "file"} == {
        file["path"] for file in told["files"]
    }
