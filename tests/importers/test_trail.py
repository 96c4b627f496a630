"""Trail trajectories and Agent Trace records: linked events, hidden from models."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from tests.importers.support.checks import damaged, import_hostile
from tests.importers.support.sound import (
    assert_sound,
    branches_of,
    commits_of,
    damaged_document,
    import_damaged,
    imported,
    messages,
    real_files,
)
from trace_store.environment import Environment
from trace_store.files import Disk
from trace_store.history.summary import event_text, summary
from trace_store.importers.formats.agent_trace import FORMAT as AGENT_TRACE
from trace_store.importers.formats.trail import FORMAT as TRAIL
from trace_store.importers.import_file import import_paths
from trace_store.maintenance.fsck import fsck
from trace_store.objects.commit import Commit
from trace_store.store.handle import Store

TRAJECTORY: dict[str, Any] = {
    "id": "traj_ab12cd34ef56",
    "version": 1,
    "task": {
        "title": "Mend the parser",
        "source": {"system": "github", "id": "7", "url": "https://example.org/issues/7"},
    },
    "status": "completed",
    "startedAt": "2026-07-16T20:02:36.440Z",
    "completedAt": "2026-07-16T21:00:00.000Z",
    "agents": [{"name": "ada", "role": "lead", "joinedAt": "2026-07-16T20:02:36.440Z"}],
    "chapters": [
        {
            "id": "chap_1",
            "title": "Looking",
            "agentName": "ada",
            "startedAt": "2026-07-16T20:02:36.440Z",
            "events": [
                {
                    "ts": 1784232200000,
                    "type": "decision",
                    "content": "Guard the queue and not the parser: it is the queue that is shared.",
                    "raw": {"question": "Where?", "chosen": "queue", "alternatives": ["parser"]},
                    "significance": "high",
                    "tags": ["focal:queue", "confidence:0.9"],
                },
                "a note of an older version",
                {"ts": 1784232300000, "type": "completion-evidence", "content": "Tests pass."},
            ],
        },
        {"id": "chap_2", "title": "Mending", "agentName": "bob", "events": []},
    ],
    "retrospective": {"summary": "The queue is guarded.", "approach": "plain", "confidence": 0.9},
    "commits": ["4764e65"],
    "filesChanged": ["src/queue.py", "src/parser.py"],
    "projectId": "/w/project",
    "tags": ["bug"],
    "_trace": {"startRef": "1111111", "endRef": "4764e65", "traceId": "trace-1"},
}
PLACE = "trail/traj_ab12cd34ef56"


def facts(commit: Commit) -> dict[str, Any]:
    return {key: value for key, value in commit.meta.items() if key not in ("record", "source")}


def test_a_trajectory(tmp_path: Path) -> None:
    store, report = imported(tmp_path, "trajectory.json", TRAJECTORY)
    assert (report.format, branches_of(store)) == ("trail", {PLACE})
    assert messages(store, PLACE) == []
    made = commits_of(store, PLACE)
    assert [(commit.author, facts(commit)) for commit in made] == [
        ("trail", {"event": "task"}),
        (
            "trail/ada",
            {
                "event": "decision",
                "chapter": "chap_1",
                "significance": "high",
                "tags": ["focal:queue", "confidence:0.9"],
            },
        ),
        ("trail/ada", {"event": "note", "chapter": "chap_1"}),
        ("trail/ada", {"event": "completion-evidence", "chapter": "chap_1"}),
        (
            "trail",
            {
                "event": "retrospective",
                "status": "completed",
                "confidence": "0.9",
                "tags": ["bug"],
            },
        ),
    ]
    assert made[0].links == (("task", "https://example.org/issues/7"),)
    assert made[-1].links == (
        ("code-base", "1111111"),
        ("code-commit", "4764e65"),
        ("agent-trace", "trace-1"),
        ("file", "src/queue.py"),
        ("file", "src/parser.py"),
    )
    assert {what for _, what in report.records} == {"event"}
    assert report.record_count == len(made)


def test_the_words_are_read_where_they_are_kept(tmp_path: Path) -> None:
    store, _ = imported(tmp_path, "trajectory.json", TRAJECTORY)
    made = commits_of(store, PLACE)
    read = store.objects.read
    assert [event_text(commit, read) for commit in made] == [
        "Mend the parser",
        "Guard the queue and not the parser: it is the queue that is shared.",
        "a note of an older version",
        "Tests pass.",
        "The queue is guarded.",
    ]
    assert not any(event_text(commit, read) in str(facts(commit)) for commit in made)
    assert summary(store, made[1], 20) == "decision: Guard the queue and…"


def test_without_their_words_events_stay(tmp_path: Path) -> None:
    path = tmp_path / "trajectory.json"
    path.write_text(json.dumps(TRAJECTORY))
    store = Store.memory()
    (report,) = import_paths(store, [str(path)], source=False).files
    made = commits_of(store, PLACE)
    assert len(made) == 5
    assert dict(Counter(what for _, what in report.records)) == {"event": 5}
    assert [event_text(commit, store.objects.read) for commit in made] == [""] * 5
    assert summary(store, made[1]) == "decision"


def test_a_trajectory_goes_on(tmp_path: Path) -> None:
    """A rewritten file gives the same as a single import; a temporary end is replaced."""
    path = tmp_path / "traj_x.json"
    chapter = TRAJECTORY["chapters"][0]
    steps = [
        {"status": "active", "chapters": [{**chapter, "events": chapter["events"][:1]}]},
        {"status": "active", "chapters": [chapter], "commits": ["1234567"]},
        {**TRAJECTORY},
    ]
    early = ("retrospective", "completedAt", "commits", "filesChanged", "_trace")
    with Store.init(str(tmp_path / "p"), durability="fast") as store:
        for step in steps:
            base = {key: value for key, value in TRAJECTORY.items() if key not in early}
            path.write_text(json.dumps({**base, **step}, indent=2))
            import_paths(store, [str(path)])
        assert branches_of(store) == {PLACE}
        grown = [commit.encode() for commit in commits_of(store, PLACE)]
        assert import_paths(store, [str(path)]).commits == 0
        assert not [finding for finding in fsck(store) if finding.severity == "error"]
    whole = Store.memory()
    import_paths(whole, [str(path)])
    assert [commit.encode() for commit in commits_of(whole, PLACE)] == grown


def test_another_version_stands_beside_it(tmp_path: Path) -> None:
    other = json.loads(json.dumps(TRAJECTORY).replace("Guard the queue", "Guard the parser"))
    paths = [tmp_path / "traj_1.json", tmp_path / "traj_2.json"]
    for path, content in zip(paths, (TRAJECTORY, other), strict=True):
        path.write_text(json.dumps(content))
    store = Store.memory()
    import_paths(store, [str(path) for path in paths])
    first, copy = sorted(branches_of(store))
    assert first == PLACE
    assert copy.startswith(f"{PLACE}/copies/")
    assert_sound(store, *paths)


def test_the_marks_of_a_merge(tmp_path: Path) -> None:
    lines = json.dumps(TRAJECTORY, indent=2).split("\n")
    at = next(n for n, line in enumerate(lines) if "completion-evidence" in line)
    lines[at:at] = ["<<<<<<< HEAD", '"type": "note",', "=======", ">>>>>>> other"]
    path = tmp_path / "traj_x.json"
    path.write_text("\n".join(lines))
    store = Store.memory()
    (report,) = import_paths(store, [str(path)]).files
    assert [(skip.line, skip.reason) for skip in report.skips] == [(at + 1, "conflict-markers")]
    assert [commit.meta["event"] for commit in commits_of(store, PLACE)] == ["task"]
    assert_sound(store, path)


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
        ".agentworkforce/trajectories/completed/2026-07/traj_2/trajectory.json",
        ".trajectories/completed/2026-01/traj_1.json",
        ".trajectories/completed/2026-01/traj_1.trace.json",
    ]
    others = [".trajectories/index.json", ".agentworkforce/trajectories/compacted/compact_1.json"]
    for name in (*paths, *others):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(json.dumps(RECORD if "trace" in name[-12:] else TRAJECTORY))
    found = [
        Path(path).relative_to(tmp_path).as_posix()
        for format in (TRAIL, AGENT_TRACE)
        for path in format.histories(Environment(), str(tmp_path), Disk())
    ]
    assert sorted(found) == paths


@given(damaged_document(TRAJECTORY))
def test_whatever_a_trajectory_holds(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    import_damaged(tmp_path_factory.mktemp("trail"), value, "trail")


@given(damaged([RECORD, RECORD]))
def test_whatever_records_hold(
    tmp_path_factory: pytest.TempPathFactory, records: list[Any]
) -> None:
    dicts = [record if isinstance(record, dict) else {"was": record} for record in records]
    import_hostile(tmp_path_factory.mktemp("trace"), [{}, *dicts], "agent-trace")


@pytest.mark.parametrize("path", real_files("agentworkforce-trail"))
def test_real_trajectories(tmp_path: Path, path: Path) -> None:
    told = json.loads(path.read_bytes())
    store, _ = imported(tmp_path, path.name, path.read_bytes())
    (name,) = branches_of(store)
    made = commits_of(store, name)
    kinds = Counter(commit.meta["event"] for commit in made)
    if "chapters" not in told:
        assert kinds == {"attribution": 1}
        assert {target for relation, target in made[0].links if relation == "file"} == {
            file["path"] for file in told["files"]
        }
        return
    events = [event for chapter in told["chapters"] for event in chapter["events"]]
    assert kinds - Counter(["task", "retrospective", "end"]) == Counter(
        event["type"] for event in events
    )
    read = store.objects.read
    words = [event_text(c, read) for c in made if c.meta["event"] not in ("task", "end")]
    assert words[: len(events)] == [event["content"] for event in events]
