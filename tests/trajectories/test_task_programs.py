"""Beads and GitHub, with fake programs `bd` and `gh`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.trajectories.support.fake_service import FakePrograms
from trace_store import Repo, errors
from trace_store.trajectories.events import Task
from trace_store.trajectories.tasks import beads, github

Opening = Callable[..., Repo]
BEAD: dict[str, Any] = {
    "id": "bd-a3f8",
    "title": "Sign in",
    "status": "in_progress",
    "updated_at": "2026-03-02T10:00:00Z",
    "labels": ["auth"],
    "assignee": "ada",
    "description": "Sessions end too early.",
    "priority": 0,
}
ISSUE = {
    "number": 12,
    "title": "Sign in",
    "state": "OPEN",
    "stateReason": "",
    "url": "https://github.com/acme/app/issues/12",
    "updatedAt": "2026-03-02T10:00:00Z",
    "labels": [{"name": "auth", "color": "ff0000"}],
    "assignees": [{"login": "ada"}, {"login": "bo"}],
    "body": "Sessions end too early.",
}
A_BEAD, AN_ISSUE = Task("", id="bd-a3f8"), Task("", id="#12")


@pytest.fixture
def repo(opening: Opening, programs: FakePrograms) -> Repo:
    return opening(PATH=programs.path)


@pytest.mark.parametrize(
    "answer",
    [
        {"schema_version": 1, "data": BEAD},
        {"schema_version": 1, "data": [BEAD]},
        {"schema_version": 1, **BEAD},
        [BEAD],
    ],
)
def test_both_shapes_of_beads(repo: Repo, programs: FakePrograms, answer: object) -> None:
    programs.prints("bd", answer, error="DEPRECATED: use the envelope\n")
    found = repo.trajectories.tasks.look_up(A_BEAD)
    assert (found.system, found.id, found.title) == ("beads", "bd-a3f8", "Sign in")
    assert (found.state, found.labels, found.assignee) == ("in_progress", ("auth",), "ada")
    assert programs.calls == [["show", "bd-a3f8", "--json"]]


def test_beads_gets_the_envelope_and_no_input(repo: Repo, programs: FakePrograms) -> None:
    asks = 'read answer && exit 9\n[ "$BD_JSON_ENVELOPE" = 1 ] || exit 8'
    programs.write("bd", f"{asks}\necho '{json.dumps({'data': BEAD})}'")
    assert repo.trajectories.tasks.look_up(A_BEAD).id == "bd-a3f8"


@pytest.mark.parametrize(
    ("program", "answer", "code", "told", "error", "says"),
    [
        (
            *("bd", "", 1),
            'warning: old\n{"schema_version":1,"error":"no issue","code":"not_found"}',
            *(errors.NotFoundError, "beads shows no task 'bd-a3f8'"),
        ),
        ("bd", "", 1, '{\n "error": "locked"\n}', errors.TaskUnreachableError, "bd failed: locked"),
        ("bd", "", 1, "no database\nmore", errors.TaskUnreachableError, "bd failed: no database"),
        ("bd", "", 3, "", errors.TaskUnreachableError, "exit code 3"),
        ("bd", "not json", 0, "", errors.TaskNonsenseError, "not a JSON object"),
        ("bd", {"data": []}, 0, "", errors.NotFoundError, "no task"),
        ("bd", {"data": {"id": "bd-a3f8"}}, 0, "", errors.TaskNonsenseError, "no title"),
        ("bd", "x" * 1_100_000, 0, "", errors.TaskNonsenseError, "more than 1,048,576 bytes"),
        ("bd", "", 0, "x" * 1_100_000, errors.TaskNonsenseError, "more than 1,048,576 bytes"),
        (
            *("gh", "", 4, "To get started, run gh auth login"),
            *(errors.TaskRefusedError, "not logged in"),
        ),
        ("gh", "", 1, "GraphQL: Could not resolve to an Issue", errors.NotFoundError, "'#12'"),
        ("gh", "", 1, "no git remotes found", errors.TaskUnreachableError, "no git remotes found"),
        ("gh", "[]", 0, "", errors.TaskNonsenseError, "not a JSON object"),
    ],
)
def test_failures_of_programs(
    repo: Repo,
    programs: FakePrograms,
    program: str,
    answer: object,
    code: int,
    told: str,
    error: type[errors.TraceError],
    says: str,
) -> None:
    programs.prints(program, answer, code=code, error=told)
    with pytest.raises(error) as raised:
        repo.trajectories.tasks.look_up({"bd": A_BEAD, "gh": AN_ISSUE}[program])
    assert says in raised.value.message


def test_a_program_that_hangs_is_killed_with_its_children(
    repo: Repo, programs: FakePrograms, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beads, "SECONDS", 0.2)
    programs.write("bd", "sleep 60 &\nsleep 60")
    with pytest.raises(errors.TaskUnreachableError, match=r"bd took longer than 0\.2 s"):
        repo.trajectories.tasks.look_up(A_BEAD)


def test_a_program_in_the_project_is_not_run(opening: Opening, tmp_path: Path) -> None:
    repo = opening(PATH=".:")
    FakePrograms(tmp_path / "bin").prints("bd", BEAD)
    (tmp_path / "bin" / "bd").rename(tmp_path / "project" / "bd")
    with pytest.raises(errors.TaskUnreachableError, match="bd is not installed"):
        repo.trajectories.tasks.look_up(A_BEAD)


def test_the_export_of_beads_may_be_outdated(opening: Opening, tmp_path: Path) -> None:
    repo = opening()
    folder = tmp_path / "project" / ".beads"
    folder.mkdir()
    lines = [json.dumps({**BEAD, "status": "open"}), "not json bd-a3f8", json.dumps(BEAD)]
    (folder / "issues.jsonl").write_text("\n".join([*lines, '{"id": "bd-b1"}', ""]))
    found = repo.trajectories.tasks.look_up(A_BEAD)
    assert (found.title, found.state) == ("Sign in", "in_progress")
    assert found.notes == ("bd is not installed, and the export may be outdated",)
    with pytest.raises(errors.NotFoundError):
        repo.trajectories.tasks.look_up(Task("", id="bd-zzz"))


def test_the_address_comes_from_the_task_in_another_system(
    repo: Repo, programs: FakePrograms
) -> None:
    programs.prints("bd", {"data": {**BEAD, "external_ref": "gh-12"}})
    programs.prints("gh", ISSUE)
    found = repo.trajectories.tasks.look_up(A_BEAD)
    assert (found.system, found.id, found.url) == ("beads", "bd-a3f8", ISSUE["url"])
    assert [each[0] for each in programs.calls] == ["show", "issue"]
    programs.prints("gh", "", code=4)
    found = repo.trajectories.tasks.look_up(A_BEAD)
    assert (found.title, found.url) == ("Sign in", "")
    assert found.notes == ("gh-12 was not found: gh is not logged in to GitHub",)


@pytest.mark.parametrize("external", ["bd-a3f8", "something", "https://x.example/1"])
def test_only_one_step_to_another_system_is_followed(
    repo: Repo, programs: FakePrograms, external: str
) -> None:
    programs.prints("bd", {"data": {**BEAD, "external_ref": external}})
    found = repo.trajectories.tasks.look_up(A_BEAD)
    assert found.url == (external if "://" in external else "")
    assert len(programs.calls) == 1


def test_an_issue_of_github(repo: Repo, programs: FakePrograms) -> None:
    programs.prints("gh", ISSUE, error="A new release of gh is available\n")
    found = repo.trajectories.tasks.look_up(AN_ISSUE)
    assert (found.system, found.id, found.state) == ("github", "#12", "open")
    assert (found.assignee, found.labels, found.url) == ("ada, bo", ("auth",), ISSUE["url"])
    assert programs.calls == [["issue", "view", "12", f"--json={','.join(github.FIELDS)}"]]
    repo.trajectories.tasks.look_up(Task("", id="#12", url=str(ISSUE["url"])))
    assert programs.calls[1][:4] == ["issue", "view", "12", "--repo=acme/app"]


def test_an_older_gh_is_asked_for_what_it_knows(repo: Repo, programs: FakePrograms) -> None:
    known = [name for name in github.FIELDS if name != "stateReason"]
    listed = "".join(f"  {name}\n" for name in ["author", *known])
    told = f'Unknown JSON field: "stateReason"\nAvailable fields:\n{listed}'
    refuses = f"case \"$*\" in *stateReason*) printf '%s' '{told}' >&2; exit 1;; esac"
    answer = {name: ISSUE[name] for name in known}
    programs.write("gh", f"{refuses}\necho '{json.dumps(answer)}'")
    assert repo.trajectories.tasks.look_up(AN_ISSUE).title == "Sign in"
    assert programs.calls[1][-1] == f"--json={','.join(known)}"


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({"state": "CLOSED", "stateReason": "COMPLETED"}, "done"),
        ({"state": "CLOSED", "stateReason": "NOT_PLANNED"}, "canceled"),
        ({"state": "CLOSED", "url": "https://github.com/acme/app/pull/12"}, "canceled"),
        ({"state": "MERGED", "url": "https://github.com/acme/app/pull/12"}, "done"),
        ({"state": "CLOSED"}, "done"),
    ],
)
def test_how_issues_end(
    repo: Repo, programs: FakePrograms, changes: dict[str, str], state: str
) -> None:
    programs.prints("gh", {**ISSUE, **changes})
    assert repo.trajectories.tasks.look_up(AN_ISSUE).state == state


def test_gh_is_missing(opening: Opening) -> None:
    with pytest.raises(errors.TaskUnreachableError, match="not installed"):
        opening(PATH="").trajectories.tasks.look_up(AN_ISSUE)


def exported(folder: Path, *rows: dict[str, str]) -> None:
    (folder / ".beads").mkdir(exist_ok=True)
    lines = [json.dumps({"title": "Count emoji", **row}) for row in rows]
    (folder / ".beads" / "issues.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.mark.parametrize("state", ["tombstone", "deleted"])
@pytest.mark.parametrize("is_active", [True, False])
def test_a_deleted_task_ends_and_reopens_nothing(
    opening: Opening, tmp_path: Path, state: str, is_active: bool
) -> None:
    repo = opening(PATH="/nowhere")
    tr = repo.trajectories
    exported(tmp_path / "project", {"id": "bd-a1", "status": "open"})
    tr.start("Count emoji", task=tr.tasks.look_up(Task("", system="beads", id="bd-a1")).as_task())
    if not is_active:
        exported(tmp_path / "project", {"id": "bd-a1", "status": "closed"})
        tr.tasks.sync(apply=True)
    exported(tmp_path / "project", {"id": "bd-a1", "status": state})
    (followed,) = tr.tasks.sync(apply=True)
    assert (followed.now and followed.now.state, followed.action) == ("deleted", "amended")
    assert tr.list()[0].is_active == is_active


def test_an_export_with_conflict_markers_is_refused(opening: Opening, tmp_path: Path) -> None:
    tr = opening(PATH="/nowhere").trajectories
    tr.start("Count emoji", task=Task("Count emoji", system="beads", id="bd-a1", state="open"))
    exported(tmp_path / "project", {"id": "bd-a1", "status": "closed"})
    path = tmp_path / "project" / ".beads" / "issues.jsonl"
    row = path.read_text("utf-8")
    path.write_text(f"<<<<<<< HEAD\n{row}=======\n{row}>>>>>>> other\n", encoding="utf-8")
    (followed,) = tr.tasks.sync(apply=True)
    assert "conflict markers" in str(followed.problem)
    assert tr.list()[0].is_active


def test_a_task_in_progress_gets_a_trajectory(opening: Opening, tmp_path: Path) -> None:
    tr = opening(PATH="/nowhere").trajectories
    exported(
        tmp_path / "project",
        {"id": "bd-a1", "status": "in_progress"},
        {"id": "bd-a2", "status": "open"},
    )
    (planned,) = tr.tasks.sync()
    assert (planned.action, planned.applied, tr.list()) == ("started", False, [])
    (followed,) = tr.tasks.sync(apply=True)
    assert followed.applied
    assert [each.id for each in tr.list(task="bd-a1")] == [followed.state.id]
    assert [each.action for each in tr.tasks.sync(apply=True)] == [""]
