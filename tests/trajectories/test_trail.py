"""Import and export of the trajectories of the program trail."""

from __future__ import annotations

import copy
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import Run, Trace
from tests.trajectories.support.recorded import REAL, REAL_FILES, record_everything
from tests.trajectories.support.schema import problems
from trace_store import Repo
from trace_store.errors import UnreadableInputError
from trace_store.trajectories import trail
from trace_store.trajectories.trail_import import (
    CONTINUED,
    DAMAGED,
    NEW,
    REFUSED,
    SKIPPED,
    UNCHANGED,
    TrailImport,
)

TRAIL = os.environ.get("TRACE_TEST_TRAIL") or shutil.which("trail")
SMALL: dict[str, Any] = {
    "id": "traj_ab12cd34ef56",
    "version": 1,
    "task": {"title": "Fix the race", "source": {"system": "github", "id": "#7"}},
    "status": "active",
    "startedAt": "2026-07-16T20:02:36.440Z",
    "agents": [
        {"name": "lead", "role": "lead", "joinedAt": "2026-07-16T20:02:36.440Z"},
        {"name": "checker", "role": "specialist", "joinedAt": "2026-07-16T20:02:40.000Z"},
    ],
    "chapters": [
        {
            "id": "chap_1a2b",
            "title": "Work",
            "agentName": "lead",
            "startedAt": "2026-07-16T20:02:37.000Z",
            "events": [
                {
                    "ts": 1784232200000,
                    "type": "decision",
                    "content": "Where?: the queue",
                    "raw": {
                        "question": "Where?",
                        "chosen": "the queue",
                        "alternatives": ["the parser", {"option": "both", "reason": "slow"}],
                        "reasoning": "one writer",
                        "extra": [None, 1.5],
                    },
                    "significance": "high",
                },
                {
                    "ts": 1784232201000,
                    "type": "completion-evidence",
                    "content": "3 tests pass",
                    "raw": {"agent": "checker", "exit": 0},
                },
                "a bare string",
            ],
        }
    ],
    "commits": ["4764e65"],
    "filesChanged": ["b.rs", "a.rs"],
    "projectId": "/w",
    "tags": [],
    "_trace": {"startRef": "09d2e35"},
    "later": {"unknown": None},
}


def put(path: Path, document: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = document if isinstance(document, str) else json.dumps(document)
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    return path


def ended(document: dict[str, Any]) -> dict[str, Any]:
    """Return a document after a second chapter, with a retrospective."""
    more = copy.deepcopy(document)
    more["chapters"][0]["endedAt"] = "2026-07-16T20:05:00.001Z"
    told = {"ts": 1784232302000, "type": "finding", "content": "two queues", "significance": "low"}
    more["chapters"].append(
        {
            "id": "chap_9z",
            "title": "More",
            "agentName": "checker",
            "startedAt": "2026-07-16T20:05:00.000Z",
            "endedAt": "2026-07-16T20:06:00.000Z",
            "events": [told],
        }
    )
    more["agents"].append(
        {"name": "late", "role": "reviewer", "joinedAt": "2026-07-16T20:05:01.000Z"}
    )
    more |= {"status": "completed", "completedAt": "2026-07-16T20:06:00.000Z"}
    more["commits"] = ["4764e65", "5764e65"]
    more["retrospective"] = {
        "summary": "done",
        "approach": "as told",
        "confidence": 1,
        "challenges": [],
        "learnings": ["lock first"],
        "decisions": [{"question": "q", "chosen": "c", "alternatives": [], "reasoning": "r"}],
        "timeSpent": "an hour",
    }
    more["_trace"]["endRef"] = "5764e65"
    return more


def exported(repo: Repo, id: str, form: str = "trail") -> Any:
    return json.loads(repo.trajectories.exports.export(form, id, thinking=True).to_bytes())


def outcomes(report: TrailImport) -> list[tuple[str, int]]:
    return [(each.outcome, each.events) for each in report.files]


@pytest.mark.skipif(not REAL_FILES, reason="needs real transcripts: TRACE_TEST_TRANSCRIPTS")
def test_real_files_are_exported_as_they_were_imported(repo: Repo) -> None:
    report = repo.trajectories.import_trail(*REAL_FILES)
    assert [each.outcome for each in report.files] == [NEW] * 5
    assert not any(each.problems for each in report.files)
    for path in REAL_FILES:
        document = json.loads(path.read_bytes())
        written = exported(repo, document["id"])
        assert json.dumps(written, sort_keys=True) == json.dumps(document, sort_keys=True)
        assert problems(written) == []
    tips = dict(repo.store.refs.iterate_tips("refs/trajectories/"))
    again = repo.trajectories.import_trail(*REAL_FILES)
    assert outcomes(again) == [(UNCHANGED, 0)] * 5
    assert dict(repo.store.refs.iterate_tips("refs/trajectories/")) == tips


@pytest.mark.skipif(not REAL_FILES, reason="needs real transcripts: TRACE_TEST_TRANSCRIPTS")
def test_records_of_agent_trace_follow_their_trajectory(repo: Repo, tmp_path: Path) -> None:
    for path in REAL.glob("*.trace.json"):
        document = json.loads(path.read_bytes())
        id_ = document["trajectory"]
        assert outcomes(repo.trajectories.import_trail(path)) == [(SKIPPED, 0)]
        base = put(tmp_path / f"{id_}.json", SMALL | {"id": id_})
        report = repo.trajectories.import_trail(path, base)  # the record is named first
        assert [each.outcome for each in report.files] == [NEW, CONTINUED]
        assert exported(repo, id_, "agent-trace") == document
        assert exported(repo, id_) == SMALL | {"id": id_}
        again = repo.trajectories.import_trail(path, base)
        assert outcomes(again) == [(UNCHANGED, 0)] * 2


def test_fields_of_a_document_become_fields_of_events(repo: Repo, tmp_path: Path) -> None:
    repo.trajectories.import_trail(put(tmp_path / "a.json", ended(SMALL)))
    whole = repo.trajectories.read(SMALL["id"])
    (decision,) = whole.decisions
    assert (decision.question, decision.content) == ("Where?", "the queue")
    assert (decision.agent, decision.time, decision.significance) == ("lead", 1784232200000, "high")
    assert [each.as_map() for each in decision.alternatives] == [
        {"option": "the parser"},
        {"option": "both", "reason": "slow"},
    ]
    state = whole.state
    assert (state.status, state.title, state.project) == ("completed", "Fix the race", "/w")
    assert state.task is not None
    assert (state.task.system, state.task.id) == ("github", "#7")
    assert [(each.name, each.role) for each in state.agents] == [
        ("lead", "lead"),
        ("checker", "specialist"),
        ("late", "reviewer"),
    ]
    assert [each.type for each in whole.chapters[0].events] == [
        "decision",
        "completion-evidence",
        "note",
    ]
    assert whole.chapters[0].events[1].agent == "checker"
    assert [each.commit for each in whole.links] == ["4764e65", "5764e65"]
    assert whole.files == ["a.rs", "b.rs"]
    assert whole.retrospective is not None
    assert whole.retrospective.data["learnings"] == ["lock first"]
    assert exported(repo, state.id) == ended(SMALL)


def test_importing_again_adds_only_what_is_new(repo: Repo, tmp_path: Path) -> None:
    path, tr = put(tmp_path / "a.json", SMALL), repo.trajectories
    assert outcomes(tr.import_trail(path))[0][0] == NEW
    before = [each.id for each in tr.read(SMALL["id"]).events]
    put(path, ended(SMALL))
    assert [each.outcome for each in tr.import_trail(path, dry_run=True).files] == [CONTINUED]
    assert [each.id for each in tr.read(SMALL["id"]).events] == before
    assert [each.outcome for each in tr.import_trail(path).files] == [CONTINUED]
    whole = tr.read(SMALL["id"])
    assert [each.id for each in whole.events][: len(before)] == before
    assert [each.type for each in whole.events if each.type != "amended"].count("decision") == 1
    assert exported(repo, SMALL["id"]) == ended(SMALL)
    assert outcomes(tr.import_trail(path)) == [(UNCHANGED, 0)]


def test_an_amendment_here_outlives_another_import(repo: Repo, tmp_path: Path) -> None:
    path, tr = put(tmp_path / "a.json", SMALL), repo.trajectories
    tr.import_trail(path)
    tr.amend("d1", trajectory=SMALL["id"], reasoning="measured")
    tr.amend(trajectory=SMALL["id"], title="Fix both races")
    tr.record("finding", "a third", trajectory=SMALL["id"], agent="new")
    assert outcomes(tr.import_trail(path)) == [(UNCHANGED, 0)]
    written = exported(repo, SMALL["id"])
    assert written["task"]["title"] == "Fix both races"
    raw = written["chapters"][0]["events"][0]["raw"]
    assert (raw["reasoning"], raw["extra"]) == ("measured", [None, 1.5])
    assert [each["name"] for each in written["agents"]] == ["lead", "checker", "ada", "new"]
    assert [written[name] for name in ("_trace", "later")] == [SMALL["_trace"], SMALL["later"]]
    assert written["chapters"][0]["events"][-1]["content"] == "a third"


def test_another_trajectory_of_the_same_id_is_refused(repo: Repo, tmp_path: Path) -> None:
    tr = repo.trajectories
    tr.import_trail(put(tmp_path / "a.json", SMALL))
    other = copy.deepcopy(SMALL)
    other["agents"] = []
    other["chapters"][0] |= {"agentName": "someone", "startedAt": "2026-01-01T00:00:00.000Z"}
    other["chapters"][0]["events"] = [{"ts": 1767225601000, "type": "note", "content": "else"}]
    other |= {"commits": [], "filesChanged": []}
    report = tr.import_trail(put(tmp_path / "b.json", other))
    assert [each.outcome for each in report.files] == [REFUSED]
    assert "exists here with other content" in str(report.failures[0])

    tr.abandon(trajectory=SMALL["id"])
    report = tr.import_trail(put(tmp_path / "c.json", ended(SMALL)), dry_run=True)
    assert [each.outcome for each in report.files] == [REFUSED]
    assert f"c.json: {SMALL['id']} is abandoned" in str(report.failures[0])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not JSON"),
        ('{"id": "traj_x", ', "not JSON"),
        ("[1, 2]", "not a JSON object"),
        ('{"id": "traj_x", "chapters": [NaN]}', "the number NaN"),
        ("[" * 100_000, "nested too deeply"),
        ('{\n<<<<<<< HEAD\n"id": 1\n=======\n>>>>>>> x\n}', "conflict markers in it, at line 2"),
        ({**SMALL, "id": 7}, "no id"),
        ({**SMALL, "id": "../x"}, "its id is not valid"),
        ({**SMALL, "version": 2}, "version '2'"),
        ({**SMALL, "chapters": None}, "no list of chapters"),
    ],
)
def test_a_damaged_file_is_reported_and_stops_no_other(
    repo: Repo, tmp_path: Path, text: object, why: str
) -> None:
    bad = put(tmp_path / "active" / "bad.json", text)
    put(tmp_path / "active" / "good.json", SMALL)
    report = repo.trajectories.import_trail(tmp_path)
    assert [each.outcome for each in report.files] == [DAMAGED, NEW]
    (error,) = report.failures
    assert isinstance(error, UnreadableInputError)
    assert str(error).startswith(f"{bad}: ")
    assert why in str(error)


@pytest.mark.parametrize(
    "change",
    [
        {"task": "only text"},
        {"task": None, "status": ["odd"], "startedAt": "yesterday"},
        {"version": 1, "agents": {}, "commits": "abc", "tags": [1], "filesChanged": None},
        {"agents": [{"name": "a\nb", "role": 3, "joinedAt": 1e300}, None]},
        {"retrospective": "fine"},
        {"startedAt": 1784232200, "projectId": 4, "tags": None},
    ],
)
def test_fields_of_wrong_types_are_kept(repo: Repo, tmp_path: Path, change: dict[str, Any]) -> None:
    document = {**SMALL, **change}
    report = repo.trajectories.import_trail(put(tmp_path / "a.json", document))
    assert [each.outcome for each in report.files] == [NEW]
    assert exported(repo, SMALL["id"]) == document
    assert outcomes(repo.trajectories.import_trail(tmp_path / "a.json")) == [(UNCHANGED, 0)]


def test_strange_events_are_kept_and_reported(repo: Repo, tmp_path: Path) -> None:
    document = copy.deepcopy(SMALL)
    document["chapters"][0]["events"] += [
        {"ts": 1784232202, "type": "note", "content": "in seconds"},
        {"ts": "2026-07-16T20:03:22.500Z", "type": "note", "content": "as text"},
        {"ts": "soon", "type": "completed", "content": "  spaces "},
        {"ts": 1784232205000, "type": "Much Ado", "content": 5, "tags": "x", "raw": [1]},
        {"ts": 1784232206000, "type": "decision", "content": "plain", "confidence": 7},
        {"ts": 1784232206000, "type": "decision", "content": "", "raw": {"chosen": " "}},
        7,
        {},
    ]
    report = repo.trajectories.import_trail(put(tmp_path / "a.json", document))
    assert exported(repo, SMALL["id"]) == document
    (file,) = report.files
    assert "ts of event 6 of chapter 1 is not a time; the time before it is used" in (file.problems)
    whole = repo.trajectories.read(SMALL["id"])
    times = {each.content: each.time for each in whole.events}
    assert times["in seconds"] == 1784232202000
    assert times["as text"] == 1784232202500
    assert times["spaces"] == times["as text"]
    assert whole.state.is_active


def test_secrets_are_redacted_and_their_event_is_imported_once(repo: Repo, tmp_path: Path) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    text = json.dumps(SMALL).replace("3 tests pass", f"set {token}")
    path = put(tmp_path / "a.json", text)
    assert outcomes(repo.trajectories.import_trail(path))[0][0] == NEW
    assert token not in json.dumps(exported(repo, SMALL["id"]))
    assert outcomes(repo.trajectories.import_trail(path)) == [(UNCHANGED, 0)]


def test_recorded_trajectories_are_valid_for_trail(repo: Repo, tmp_path: Path) -> None:
    id_ = record_everything(repo)
    made = repo.trajectories.exports.export("json", id_, thinking=True)
    document = json.loads(made.to_bytes())
    assert problems(document) == []
    assert document["retrospective"]["confidence"] == 0.9
    assert {loss.what for loss in made.losses} <= set(trail.LOSSES)
    assert "session-link" in {loss.what for loss in made.losses}
    bare = repo.trajectories.start("t" * 600, agent="a").id
    repo.trajectories.complete({"summary": "s"}, trajectory=bare)
    made = repo.trajectories.exports.export("trail", bare)
    assert problems(json.loads(made.to_bytes())) == []
    assert {"title-end", "stand-in"} <= {loss.what for loss in made.losses}
    # Here nothing is new. Another repository imports the file, and exports it unchanged.
    path = put(tmp_path / "a.json", document)
    assert outcomes(repo.trajectories.import_trail(path)) == [(UNCHANGED, 0)]
    with Repo.init(tmp_path / "other") as other:
        assert outcomes(other.trajectories.import_trail(path))[0][0] == NEW
        assert exported(other, id_) == document


def test_two_clones_that_import_have_the_same_commits(repo: Repo, tmp_path: Path) -> None:
    path = put(tmp_path / "a.json", SMALL)
    repo.trajectories.import_trail(path)
    with Repo.init(tmp_path / "other") as other:
        other.trajectories.import_trail(path)
        ref = f"refs/trajectories/{SMALL['id']}"
        assert other.store.refs.tips(ref) == repo.store.refs.tips(ref)


def test_layouts_of_trail_are_found_and_reported(
    repository: Trace, ok: Run, tmp_path: Path
) -> None:
    here, trace = tmp_path, repository
    old, new = here / ".trajectories", here / ".agentworkforce" / "trajectories"
    put(old / "active" / "traj_old.json", {**SMALL, "id": "traj_old"})
    put(old / "index.json", "{}")
    put(old / "active" / "traj_old.compaction.json", "{}")
    put(new / "completed" / "2026-07" / "traj_new" / "trajectory.json", {**SMALL, "id": "traj_new"})
    put(new / "compacted" / "compact_1.json", {"type": "compacted", "sourceTrajectories": ["a"]})
    put(new / "completed" / "2026-07" / "traj_bad" / "trajectory.json", "<<<<<<< HEAD\n")
    failed = trace("trajectory", "import")
    assert failed.code == 2
    assert "git left conflict markers in it, at line 1" in failed.err
    lines = failed.lines
    assert lines[-1].endswith("(2 new, 1 skipped, 1 damaged)")
    assert "skipped (.agentworkforce/trajectories/compacted/compact_1.json)" in lines
    (new / "completed" / "2026-07" / "traj_bad" / "trajectory.json").unlink()
    assert ok("tr", "import").lines[-1] == "imported 0 events (2 unchanged, 1 skipped)"
    ok("tr", "export", "traj_new", "-o", "out.json")
    assert json.loads((here / "out.json").read_bytes()) == {**SMALL, "id": "traj_new"}
    assert trace("tr", "export", "traj_new", "--format", "agent-trace").code == 4


def test_nothing_to_import_is_an_error(repository: Trace) -> None:
    assert repository("tr", "import").code == 2
    missing = repository("tr", "import", "missing.json")
    assert (missing.code, "there is no such file" in missing.err) == (2, True)


@pytest.mark.skipif(not TRAIL, reason="needs trail 0.6.1 of npm: TRACE_TEST_TRAIL=PATH")
def test_trail_reads_what_is_written(repo: Repo, tmp_path: Path) -> None:
    id_ = record_everything(repo)
    repo.trajectories.import_trail(*REAL_FILES)
    folder = tmp_path / "trail"
    ids = [state.id for state in repo.trajectories.list()]
    for each in ids:
        whole = exported(repo, each)
        where = "active" if whole["status"] == "active" else "completed/2026-07"
        put(folder / where / each / "trajectory.json", whole)

    def run(*words: str) -> str:
        command = [str(TRAIL), "--data-dir", str(folder), *words]
        return subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60
        ).stdout

    assert "No invalid trajectory files found." in run("doctor")
    listed = run("list")
    assert all(each in listed for each in ids)
    assert "Tokens expire after an hour" in run("show", id_, "--decisions")
    out = tmp_path / "out.json"
    run("export", id_, "--format", "json", "--output", str(out))
    assert json.loads(out.read_bytes()) == exported(repo, id_)
    assert outcomes(repo.trajectories.import_trail(out)) == [(UNCHANGED, 0)]


def test_a_huge_file_is_not_read(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(tmp_path / "a.json", SMALL)
    monkeypatch.setattr("trace_store.trajectories.trail_import.MAXIMUM_BYTES", 10)
    report = repo.trajectories.import_trail(path)
    assert [each.outcome for each in report.files] == [DAMAGED]
    assert "over the limit of 10" in str(report.failures[0])
