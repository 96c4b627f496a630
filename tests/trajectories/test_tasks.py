"""Tasks of trajectories: ids, names of git branches, start from a task, and sync."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from tests.support.command_line import Outcome, Run, Trace, first
from tests.trajectories.support.fake_service import FakePrograms, FakeService
from trace_store import Environment, Repo, errors
from trace_store.trajectories.events import Task
from trace_store.trajectories.state import State
from trace_store.trajectories.tasks import systems
from trace_store.trajectories.tasks.systems import TaskRecord

Opening = Callable[..., Repo]
LINEAR, JIRA = {"LINEAR_API_KEY": "k"}, {"TRACE_JIRA_URL": "https://acme.example"}


@pytest.mark.parametrize(
    ("text", "system", "id"),
    [
        ("bd-a3f8", "beads", "bd-a3f8"),
        ("bd-a3f8e9.1", "beads", "bd-a3f8e9.1"),
        ("#12", "github", "#12"),
        ("gh-12", "github", "#12"),
        ("GH#12", "github", "#12"),
        ("acme/app#12", "github", "acme/app#12"),
        ("https://github.com/acme/app/issues/12", "github", "acme/app#12"),
        ("https://github.com/acme/app/pull/12#discussion", "github", "acme/app#12"),
        ("https://linear.app/acme/issue/eng-456/sign-in", "linear", "ENG-456"),
        ("ENG-456", "", "ENG-456"),
    ],
)
def test_an_id_names_its_system(opening: Opening, text: str, system: str, id: str) -> None:
    task = opening().trajectories.tasks.named(text)
    assert task == Task("", system=system, id=id, url=text if "://" in text else "")


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "Refactor",
            "sign-in",
            "utf-8",
            "#0",
            "a b",
            "ENG-456 now",
            "https://x.example/ENG-1",
        ),
        *("UTF-8", "ISO-8601", "SHA-256", "RFC-2119"),
    ],
)
def test_a_title_names_no_task(opening: Opening, text: str) -> None:
    assert opening().trajectories.tasks.named(text) is None


@pytest.mark.parametrize(
    ("variables", "text", "system"),
    [
        (LINEAR, "ENG-456", "linear"),
        (JIRA, "ENG-456", "jira"),
        (LINEAR | JIRA, "ENG-456", "linear"),
        (LINEAR | JIRA, "https://acme.example/browse/ENG-456?focus=1", "jira"),
        ({"GH_HOST": "git.example"}, "https://git.example/acme/app/issues/1", "github"),
    ],
)
def test_the_environment_decides_between_trackers(
    opening: Opening, variables: dict[str, str], text: str, system: str
) -> None:
    task = opening(**variables).trajectories.tasks.named(text)
    assert task is not None
    assert task.system == system


def test_a_project_with_beads_may_have_a_prefix_of_its_own(
    opening: Opening, tmp_path: Path
) -> None:
    repo = opening()
    assert repo.trajectories.tasks.named("app-a3f8") is None
    (tmp_path / "project" / ".beads").mkdir()
    assert repo.trajectories.tasks.named("app-a3f8") == Task("", system="beads", id="app-a3f8")
    assert repo.trajectories.tasks.named("sign-in") is None


@pytest.mark.parametrize(
    ("name", "system", "id", "words"),
    [
        ("feature/ENG-456-auth", "", "ENG-456", "auth"),
        ("ENG-456", "", "ENG-456", ""),
        ("ada/fix_ENG-456_sign_in", "", "ENG-456", "sign in"),
        ("123-fix", "github", "#123", "fix"),
        ("fix/gh-123", "github", "#123", ""),
        ("issue-123-sign-in", "github", "#123", "sign in"),
        ("bd-a3f8-sign-in", "beads", "bd-a3f8", "sign in"),
        ("work/bd-a3f8.1", "beads", "bd-a3f8.1", ""),
    ],
)
def test_a_branch_names_its_task(
    opening: Opening, tmp_path: Path, name: str, system: str, id: str, words: str
) -> None:
    tasks = opening().trajectories.tasks
    on_branch(tmp_path, name)
    assert tasks.of_branch() == Task(words, system=system, id=id)


@pytest.mark.parametrize(
    "name",
    [
        "main",
        "release-2",
        "v1.2",
        "python-3-12",
        "fix/sign-in",
        "2026-11-28-notes",
        "a/UTF-8",
        "fix-ISO-8601",
    ],
)
def test_most_branches_name_no_task(opening: Opening, tmp_path: Path, name: str) -> None:
    tasks = opening().trajectories.tasks
    assert tasks.of_branch() is None
    on_branch(tmp_path, name)
    assert tasks.of_branch() is None
    (tmp_path / "project" / ".git" / "HEAD").write_text("0" * 40)
    assert tasks.of_branch() is None


def test_trackers_suggest_branches_in_lower_case(opening: Opening, tmp_path: Path) -> None:
    tasks = opening(**LINEAR).trajectories.tasks
    on_branch(tmp_path, "ada/eng-456-sign-in")
    assert tasks.of_branch() == Task("sign in", system="linear", id="ENG-456")


def on_branch(folder: Path, name: str) -> None:
    git = folder / "project" / ".git"
    git.mkdir(exist_ok=True)
    (git / "HEAD").write_text(f"ref: refs/heads/{name}\n")


class Trello:
    name, is_local = "trello", False

    def __init__(self, place: object) -> None:
        pass

    def detect(self, text: str) -> str:
        return text.removeprefix("trello:") if text.startswith("trello:") else ""

    def resolve(self, id: str) -> TaskRecord:
        return TaskRecord.of("trello", id, title="A card", state="open")


def test_another_package_adds_a_system(opening: Opening, monkeypatch: pytest.MonkeyPatch) -> None:
    points = [
        EntryPoint("trello", f"{__name__}:Trello", systems.GROUP),
        EntryPoint("broken", "no.such.module:X", systems.GROUP),
    ]
    monkeypatch.setattr(EntryPoint, "load", lambda point: loaded(point.value))
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: points)
    tasks = opening().trajectories.tasks
    task = tasks.named("trello:c1", system="trello")
    assert task == Task("", system="trello", id="c1")
    assert tasks.look_up(task).title == "A card"
    with pytest.raises(errors.InvalidInputError, match="cannot load the task system 'broken'"):
        tasks.named("x", system="broken")


def loaded(value: str) -> type[Trello]:
    if value.startswith("no."):
        raise ImportError(value)
    return Trello


@pytest.mark.parametrize(
    ("words", "title", "task"),
    [
        (["Sign in"], "Sign in", None),
        (["Refactor"], "Refactor", None),
        (["ENG-456"], "ENG-456", {"id": "ENG-456"}),
        (["ENG-456", "Sign in"], "Sign in", {"id": "ENG-456"}),
        (["Sign in", "--task", "any id"], "Sign in", {"id": "any id"}),
        (["#12", "Sign in"], "Sign in", {"id": "#12", "system": "github"}),
        (["12", "--system", "jira"], "12", None),
        (["ENG-456", "--system", "linear"], "ENG-456", {"id": "ENG-456", "system": "linear"}),
    ],
)
def test_start(ok: Run, words: list[str], title: str, task: dict[str, str] | None) -> None:
    made = first(ok("tr", "start", *words, "--json"))
    assert (made["title"], made["task"]) == (title, task)


def test_start_from_the_branch_of_git(ok: Run, trace: Trace) -> None:
    refused = trace("tr", "start")
    assert refused.code == 2
    assert "a trajectory needs a title or a task" in refused.err
    Path(".git").mkdir()
    Path(".git/HEAD").write_text("ref: refs/heads/feature/ENG-456-sign-in\n")
    made = first(ok("tr", "start", "--json"))
    assert (made["title"], made["task"]) == ("sign in", {"id": "ENG-456", "title": "sign in"})


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["Sign", "in"], "not the id of a task: 'Sign'"),
        (["Sign in", "--fetch"], "--fetch needs a task"),
        (["#12", "--system", "trello"], "unknown task system 'trello'"),
    ],
)
def test_a_start_that_is_refused(repository: Trace, words: list[str], says: str) -> None:
    outcome = repository("tr", "start", *words)
    assert outcome.code == 2
    assert says in outcome.err
    assert repository("tr", "list").text == ""


@pytest.fixture
def asked(repository: Trace, service: FakeService) -> Run:
    """Return a function that runs commands with a configured Jira, which has one task."""
    variables = {"TRACE_JIRA_URL": service.url, "JIRA_TOKEN": "t0ken-4711-secret"}
    environment = Environment(author="ada", secrets=variables.items())
    service.body = issue("Sign in with JWT\x1b[31m")

    def run(*words: str) -> Outcome:
        return repository(*words, environment=environment, terminal=True)

    return run


def issue(title: str, category: str = "new", **more: object) -> dict[str, object]:
    status = {"statusCategory": {"key": category}}
    return {"key": "ENG-456", "fields": {"summary": title, "status": status, **more}}


def test_the_network_is_used_only_when_asked(asked: Run, service: FakeService) -> None:
    asked("tr", "start", "ENG-456", "-q")
    asked("tr", "task")
    assert "not asked" in asked("tr", "sync").text
    assert service.requests == []


def test_start_takes_the_title_of_the_task(asked: Run) -> None:
    outcome = asked("tr", "start", "ENG-456", "--fetch")
    assert "\x1b[31m" not in outcome.text
    assert "Sign in with JWT\\x1b[31m" in outcome.text
    task = first(asked("tr", "list", "--json"))["task"]
    assert (task["system"], task["state"]) == ("jira", "open")
    assert asked("tr", "start", "ENG-456", "My title", "--fetch").text.endswith("My title\n")


def test_nothing_is_written_when_the_service_fails(asked: Run, service: FakeService) -> None:
    service.status = 401
    outcome = asked("tr", "start", "ENG-456", "--fetch")
    assert outcome.code == 17
    assert "refuses the key (401)" in outcome.err
    assert "check JIRA_TOKEN" in outcome.err
    assert "t0ken" not in outcome.err
    service.status = 404
    assert asked("tr", "start", "ENG-456", "--fetch").code == 4
    assert asked("tr", "list").text == ""


def test_a_task_is_asked_again(asked: Run, service: FakeService) -> None:
    asked("tr", "start", "ENG-456", "-q")
    stored = first(asked("tr", "task", "--json"))
    assert (stored["id"], stored["state"], stored["fetched"]) == ("ENG-456", None, False)
    service.body = issue("Sign in", assignee={"displayName": "Ada"}, description="\x1b]0;x\x07")
    text = asked("tr", "task", "--fetch").text
    assert "Ada" in text
    assert "\x1b]" not in text
    state = first(asked("tr", "list", "--json"))
    assert (state["title"], state["task"]["state"]) == ("Sign in", "open")
    again = first(asked("tr", "task", "--fetch", "--json"))
    assert (again["fetched"], again["changed"]) == (True, False)
    assert first(asked("tr", "list", "--json"))["counts"] == {"amended": 1, "started": 1}


def test_a_trajectory_follows_its_task(asked: Run, service: FakeService) -> None:
    asked("tr", "start", "ENG-456", "--fetch", "-q")
    asked("tr", "start", "Something else", "-q")
    service.body = issue("Sign in", "done")
    assert "done, to be completed" in asked("tr", "sync", "--fetch").text
    assert status(asked) == "active"
    assert "done, completed" in asked("tr", "sync", "--fetch", "--apply").text
    assert status(asked) == "completed"
    assert "done, as before" in asked("tr", "sync", "--fetch", "--apply").text
    service.body = issue("Sign in", "new")
    made = first(asked("tr", "sync", "--fetch", "--apply", "--agent", "bot", "--json"))
    assert (made["action"], made["before"], made["state"]) == ("reopened", "done", "open")
    assert status(asked) == "active"


def status(asked: Run) -> object:
    return first(asked("tr", "list", "--task", "ENG-456", "--json"))["status"]


def test_a_trajectory_that_was_reopened_by_hand_stays_open(
    asked: Run, service: FakeService
) -> None:
    service.body = issue("Sign in", "done")
    made = first(asked("tr", "start", "ENG-456", "--json"))
    asked("tr", "sync", "--fetch", "--apply")
    asked("tr", "reopen", made["id"], "-q")
    asked("tr", "sync", "--fetch", "--apply")
    assert status(asked) == "active"


def test_one_task_that_fails_does_not_stop_the_others(
    opening: Opening, programs: FakePrograms, service: FakeService
) -> None:
    service.status = 500
    repo = opening(PATH=programs.path, TRACE_JIRA_URL=service.url, JIRA_TOKEN="t0ken")
    tr = repo.trajectories
    tr.start("a", task=Task("a", system="jira", id="ENG-1"))
    tr.start("b", task=Task("b", system="jira", id="ENG-2"))
    tr.start("c", task=Task("c", system="gone", id="3"))
    tr.start("d", task=Task("d", id="bd-a3f8"))
    tr.start("e", task=Task("e", id="ENG-5", system="plain"))
    programs.prints("bd", [{"id": "bd-a3f8", "title": "d", "status": "closed"}])
    found = {each.before.id: each for each in tr.tasks.sync(network=True, apply=True)}
    assert set(found) == {"ENG-1", "ENG-2", "3", "bd-a3f8"}
    assert [id for id, each in found.items() if each.problem is None] == ["bd-a3f8"]
    assert len(service.requests) == 1
    ended: list[State] = tr.list(status="completed")
    assert [each.title for each in ended] == ["d"]


def test_a_canceled_task_abandons_its_trajectory(opening: Opening, programs: FakePrograms) -> None:
    repo = opening(PATH=programs.path)
    repo.trajectories.start("a", task=Task("a", id="#12"))
    programs.prints("gh", {"title": "a", "state": "CLOSED", "stateReason": "NOT_PLANNED"})
    (found,) = repo.trajectories.tasks.sync(network=True, apply=True)
    assert (found.action, found.applied) == ("abandoned", True)
    assert repo.trajectories.read(found.state.id).reason == "the task was canceled"


def test_sync_says_how_many_failed(asked: Run, service: FakeService) -> None:
    asked("tr", "start", "ENG-456", "-q")
    service.status = 500
    outcome = asked("tr", "sync", "--fetch")
    assert outcome.code == 17
    assert "1 of 1 task could not be followed: Jira has failed (500" in outcome.err


def test_a_trajectory_without_a_task(repository: Trace) -> None:
    repository("tr", "start", "Sign in", "-q")
    assert "its own task" in repository("tr", "task").text
    outcome = repository("tr", "task", "--fetch")
    assert outcome.code == 2
    assert "has no task in a task system" in outcome.err
