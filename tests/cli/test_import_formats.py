"""`trace import` of other files, of default locations, and of journals without messages."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.command_line import Trace
from trace_store.base.environment import Environment

TRAJECTORY = {
    "id": "traj_1",
    "task": {"title": "Mend the parser", "source": {"system": "github", "id": "7"}},
    "status": "completed",
    "startedAt": "2026-07-16T20:02:36.440Z",
    "completedAt": "2026-07-16T21:00:00.000Z",
    "chapters": [
        {
            "id": "chap_1",
            "agentName": "ada",
            "events": [
                {
                    "ts": 1784232200000,
                    "type": "decision",
                    "content": "Guard the queue:\x1b[31m it is shared.",
                    "significance": "high",
                }
            ],
        }
    ],
    "commits": ["4764e65"],
    "filesChanged": [f"src/{number}.py" for number in range(30)],
}


def test_a_named_format_that_reads_nothing_is_refused(repository: Trace, tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(repository("demo", "--sample").out)
    refused = repository("import", "--format", "codex", str(path))
    assert refused.code == 2
    assert f"no readable codex records: {path} looks like claude-code" in refused.err
    assert "give --format claude-code" in refused.err
    assert repository("branch").text == ""
    # A format that understands the messages reads them, also in a file of another format.
    assert "21 messages" in repository("import", "--format", "anthropic", str(path)).text


def test_a_file_of_no_known_format_says_what_it_is(repository: Trace, tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text(json.dumps({"name": "app", "version": "1.0.0"}))
    (tmp_path / "notes.jsonl").write_text("Remember the milk.\n")
    (tmp_path / "picture.json").write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00")
    looks = {
        "package.json": "a JSON object with the keys name, version",
        "notes.jsonl": "text that is not JSON: 'Remember the milk.'",
        "picture.json": "binary data that starts with 89 50 4e 47 0d 0a 1a 0a",
    }
    for name, look in looks.items():
        outcome = repository("import", name)
        assert outcome.code == 2
        assert f"unknown transcript format: {name} ({look})" in outcome.err
        assert "hint: tried " in outcome.err
        assert " claude-code, " in outcome.err
        assert "openai; `--format NAME` forces a format" in outcome.err
    outcome = repository("import", "package.json", "--json")
    assert outcome.code == 2
    assert repository("for-each-ref").text == ""


def test_what_cannot_be_imported_keeps_nothing_else_from_it(
    repository: Trace, tmp_path: Path
) -> None:
    place = tmp_path / ".agent-trace"
    place.mkdir()
    record = {"id": "1", "files": [{"path": "a.py", "conversations": []}]}
    (place / "1.trace.json").write_text(json.dumps(record))
    (place / "2.trace.json").write_bytes(b"")
    (place / "3.trace.json").write_text("{}")
    here = Environment(author="Ada", discovery=False)
    outcome = repository("import", "--all", environment=here)
    assert outcome.code == 0, outcome.err
    assert "3 files (1 imported, 1 empty, 1 unknown format): 1 commit, 0 messages" in outcome.lines
    assert [line.rpartition(": ")[2] for line in outcome.lines if "2.trace" in line] == ["empty"]
    assert any(line.endswith("3.trace.json: unknown format") for line in outcome.lines)
    assert "records: 1 event" in outcome.lines


def test_a_trajectory_of_trail_is_imported_as_one(repository: Trace, tmp_path: Path) -> None:
    (tmp_path / "traj_1.json").write_text(json.dumps(TRAJECTORY))
    outcome = repository("import", "traj_1.json")
    assert outcome.code == 2
    assert "a trajectory of trail is no transcript: traj_1.json" in outcome.err
    assert "hint: `trace trajectory import` reads trajectories of trail" in outcome.err
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "traj_1.json").write_text(json.dumps(TRAJECTORY))
    told = repository("import", "folder").err
    assert "1 file is a trajectory of trail; `trace trajectory import` reads them" in told
    assert repository("trajectory", "import", "traj_1.json").code == 0
