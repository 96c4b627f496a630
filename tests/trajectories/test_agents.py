"""Several agents at work, and how commands name trajectories."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.command_line import Run, Trace
from tests.trajectories.support.project import Project
from trace_store import Environment, Repo

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def test_the_agent_chooses_among_active_trajectories(opening: Callable[..., Repo]) -> None:
    repo = opening()
    ids = {name: repo.trajectories.start(f"of {name}", agent=name).id for name in ("lead", "bo")}
    for name, id_ in ids.items():
        assert opening(TRACE_AGENT=name).trajectories.record("note", "x").state.id == id_


@needs_git
def test_the_work_tree_chooses_among_active_trajectories(tmp_path: Path) -> None:
    """Both work trees use the repository of the main one."""
    project = Project(tmp_path / "p")
    project.commit("begin", app_py="1\n")
    here = project.start("Here")
    project.git("worktree", "add", "-q", "-b", "w", str(tmp_path / "w"))
    there = Project(tmp_path / "w", new=False)

    def run(folder: Path, *words: str) -> str:
        environment = Environment(author="ada")
        with Repo.open(project.folder, environment=environment) as repo:
            repo.store.folder = str(folder)
            if words:
                return repo.trajectories.start(*words).id
            return repo.trajectories.find().id

    other = run(there.folder, "There")
    assert (run(project.folder), run(there.folder)) == (here, other)


def test_a_chapter_belongs_to_its_agent(repo: Repo) -> None:
    tr = repo.trajectories
    tr.start("Sign in", agent="lead")
    tr.chapter("Build", agent="lead")
    tr.chapter("Review", agent="bo")
    tr.record("note", "built", agent="lead")
    tr.record("note", "read", agent="bo")
    tr.record("note", "helped", agent="cy")
    tr.chapter("Ship", agent="lead")
    tr.record("note", "read again", agent="bo")
    found = {each.title: [event.content for event in each.events] for each in tr.read().chapters}
    assert found == {"Build": ["built"], "Review": ["read", "helped", "read again"], "Ship": []}


def test_commands_take_the_id_of_a_task(ok: Run, trace: Trace) -> None:
    id_ = ok("tr", "start", "bd-a3f8", "Count emoji").text.split()[0]
    assert id_ in ok("tr", "show", "bd-a3f8").text
    ok("tr", "note", "x", "--trajectory", "bd-a3f8")
    ok("tr", "complete", "Done", "--trajectory", "bd-a3f8")
    ok("tr", "reopen", "bd-a3f8")
    assert "Count emoji" in ok("tr", "bundle", "bd-a3f8").text
    assert trace("tr", "show", "bd-b1").code == 4


@pytest.mark.parametrize("command", ["complete", "abandon", "reflect"])
def test_a_name_is_not_taken_for_a_text(ok: Run, trace: Trace, command: str) -> None:
    id_ = ok("tr", "start", "ENG-456", "Sign in").text.split()[0]
    for name in (id_, "traj_A", "bd-123", "ENG-456", "#12"):
        outcome = trace("tr", command, name)
        assert outcome.code == 2
        assert f"`--trajectory {name}`" in outcome.err
    assert json.loads(ok("tr", "status", "--json").text)["status"] == "active"
    ok("tr", command, "UTF-8", "-q")


@needs_git
def test_a_commit_of_several_trajectories_is_shown_until_it_is_linked(tmp_path: Path) -> None:
    project = Project(tmp_path / "p")
    project.commit("begin", app_py="1\n")
    project.hook()
    one, _ = project.start("One"), project.start("Two")
    commit = project.commit("whose?", app_py="2\n")
    outcome = project.trace("trajectory", "status", "--trajectory", one)
    assert "1 commit belongs to no trajectory" in outcome.err
    assert commit[:12] in outcome.err
    assert "unlinked-commits" in project.trace("doctor", code=7).text
    project.trace("trajectory", "link", commit, "--trajectory", one)
    assert project.trace("trajectory", "status", "--trajectory", one).err == ""
    assert project.linked(one) == [commit]


@needs_git
def test_a_decision_may_name_its_commit_and_files(tmp_path: Path) -> None:
    project = Project(tmp_path / "p")
    first = project.commit("begin", app_py="1\n")
    project.commit("more", other_py="2\n")
    project.start("Sign in")
    words = ("trajectory", "decision", "How?|so", "--commit", first[:12], "--file", "app.py")
    project.trace(*words)
    project.commit("later", third_py="3\n")
    project.trace("trajectory", "link", "HEAD")
    found = json.loads(project.trace("why", "app.py:1", "--json").text)
    assert (found["commit"], found["guess"]) == (first, False)
    assert json.loads(project.trace("why", "third.py:1", "--json").text)["guess"]
    assert "git knows no commit" in project.trace(*words[:3], "--commit", "x", code=4).err


def test_the_first_trajectory_makes_the_repository(
    tmp_path: Path, trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRACE_DISCOVERY", "off")
    outcome = trace("tr", "new", "Sign in", environment=Environment(author="a", discovery=False))
    assert outcome.code == 0
    assert "created an empty repository" in outcome.err
    assert (tmp_path / ".trace").is_dir()
