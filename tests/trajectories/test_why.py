"""Links to commits of the code, and `trace why`, with real git."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.trajectories.support.project import Project

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return a project with one commit that is not linked."""
    made = Project(tmp_path / "p")
    made.commit("begin", app_py="one\n", other_py="other\n")
    return made


def reasons(project: Project, target: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in project.trace("why", target, "--json").lines]


def chosen(project: Project, target: str) -> list[list[str]]:
    """Return the chosen options behind each commit of a target."""
    return [[each["chosen"] for each in found["decisions"]] for found in reasons(project, target)]


def test_a_link_says_what_the_commit_changed(project: Project) -> None:
    id_ = project.start("Sign in")
    commit = project.commit("add a form", app_py="one\ntwo\n", **{"ä x_py": "new\n"})
    (link,) = map(json.loads, project.trace("trajectory", "link", "--json").lines)
    assert link["commit"] == commit
    assert link["files"] == ["app.py", "ä x.py"]
    assert link["subject"] == "add a form"
    assert link["branch"] == "refs/heads/main"
    assert len(link["patch_id"]) == 40
    assert project.linked(id_) == [commit]


def test_a_commit_is_linked_once(project: Project) -> None:
    project.start("Sign in")
    first = project.commit("add", app_py="two\n")
    project.trace("trajectory", "link")
    second = project.commit("more", app_py="three\n")
    assert "linked already" in project.trace("trajectory", "link", first).err
    out = project.trace("trajectory", "link", "HEAD~1", "HEAD", "HEAD").lines
    assert out == [f"{second[:12]} more"]
    assert json.loads(project.trace("trajectory", "list", "--json").text)["counts"]["linked"] == 2


def test_a_secret_in_a_subject_is_not_stored(project: Project) -> None:
    project.start("Sign in")
    secret = "sk-ant-" + "api03-Zk3v9QpT7xLw2NcR8yHs4BdF6gJm1KaE5uViXo0PrWqYtCzDnMbSlGhUfAeIjO"
    commit = project.commit(f"use {secret}", app_py="two\n")
    project.trace("trajectory", "link")
    with project.repo() as repo:
        (link,) = repo.trajectories.read().links
    assert secret not in str(link.data)
    assert link.commit == commit


def test_why_leads_from_a_file_a_line_and_a_commit_to_decisions(project: Project) -> None:
    with project.repo() as repo:
        said = repo.append("user", "Which token?")
    project.start("Sign in")
    project.decide("Which token?", "JWT")
    first = project.commit("add", app_py="one\ntwo\n")
    project.trace("trajectory", "link")
    project.decide("Where?", "in a cookie")
    second = project.commit("keep", app_py="one\ntwo\nthree\n")
    project.trace("trajectory", "link")
    found = reasons(project, "app.py")
    assert [each["commit"] for each in found] == [second, first]
    assert {each["how"] for each in found} == {"linked"}
    assert "in a cookie" in [each["chosen"] for each in found[0]["decisions"]]
    assert chosen(project, "app.py:2") == chosen(project, first) == [["JWT"]]
    assert found[1]["decisions"][0]["messages"] == [said.addresses[0].hex]
    assert reasons(project, "app.py:1") == reasons(project, "other.py") == []
    text = project.trace("why", "app.py:2").text
    assert "Which token? JWT" in text
    assert "not: nothing: too little" in text
    assert "no trajectory leads to other.py" in project.trace("why", "other.py").err


def test_why_works_in_a_folder_below_the_top(project: Project) -> None:
    project.start("Sign in")
    project.decide("How?", "so")
    project.write("src/in.py", "x\n")
    commit = project.commit("add")
    project.trace("trajectory", "link")
    with project.repo() as repo:
        (found,) = repo.trajectories.why("in.py", folder=str(project.folder / "src"))
    assert found.commit.id == commit
    assert found.commit.files == ("src/in.py",)


def test_a_renamed_file_leads_to_its_past(project: Project) -> None:
    project.start("Sign in")
    project.decide("How?", "so")
    project.commit("add", app_py="a\nb\nc\nd\ne\nf\n")
    project.trace("trajectory", "link")
    project.git("mv", "app.py", "main.py")
    project.commit("rename")
    assert chosen(project, "main.py") == [["so"]]


def test_a_rebased_commit_is_found_by_its_change(project: Project) -> None:
    project.start("Sign in")
    project.git("switch", "-q", "-c", "feature")
    project.decide("How?", "so")
    old = project.commit("add", app_py="two\n")
    project.trace("trajectory", "link")
    project.git("switch", "-q", "main")
    project.commit("meanwhile", other_py="changed\n")
    project.git("rebase", "-q", "main", "feature")
    assert project.head != old
    for target in ("HEAD", "app.py", "app.py:1"):
        (found,) = reasons(project, target)
        assert found["commit"] == project.head
        assert found["how"] == "same change"
        assert [each["chosen"] for each in found["decisions"]] == ["so"]


def test_a_squashed_commit_is_found_by_its_files(project: Project) -> None:
    project.start("Sign in")
    project.git("switch", "-q", "-c", "feature")
    for number, name in enumerate(("app_py", "form_py")):
        project.decide(f"How {number}?", f"so {number}")
        project.commit(f"add {name}", **{name: f"{number}\n"})
        project.trace("trajectory", "link")
    project.git("switch", "-q", "main")
    project.git("merge", "-q", "--squash", "feature")
    squash = project.commit("sign in (#1)")
    project.git("branch", "-q", "-D", "feature")
    later = project.commit("later", app_py="2\n", form_py="2\n")
    for target in ("HEAD~1", "app.py", "form.py"):
        (found,) = reasons(project, target)
        assert (found["commit"], found["how"]) == (squash, "squashed")
    assert {each for (each,) in [(c,) for c in chosen(project, squash)[0]]} == {"so 0", "so 1"}
    assert reasons(project, later) == []


def test_a_trailer_names_a_trajectory_without_a_link(project: Project) -> None:
    id_ = project.start("Sign in")
    project.decide("How?", "so")
    project.commit("linked", other_py="2\n")
    project.trace("trajectory", "link")
    project.commit(f"add\n\nTrajectory: {id_}", app_py="2\n")
    (found,) = reasons(project, "HEAD")
    assert (found["how"], found["trajectory"]) == ("trailer", id_)


def test_two_trajectories_may_lead_to_one_commit(project: Project) -> None:
    one, two = project.start("One"), project.start("Two")
    commit = project.commit("both", app_py="2\n")
    for each in (one, two):
        project.trace("trajectory", "link", "--trajectory", each)
    assert {each["trajectory"] for each in reasons(project, commit)} == {one, two}
    assert len(reasons(project, "app.py")) == 2
    assert len(project.trace("why", "app.py", "-n", "1", "--json").lines) == 1


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["why", "nothing.py"], 4, "neither a file nor a commit: 'nothing.py'"),
        (["why", "app.py:99"], 4, "no commit has line 99 of 'app.py'"),
        (["why", "new.py:1"], 4, "no commit has line 1 of 'new.py'"),
        (["why", "--", "--output=x"], 4, "neither a file nor a commit"),
        (["why", ""], 4, "neither a file nor a commit"),
        (["trajectory", "link", "nothing"], 4, "git knows no commit 'nothing'"),
        (["trajectory", "link", "--trajectory", "traj_none"], 4, "no trajectory 'traj_none'"),
        (["trajectory", "export", "--remove"], 2, "--remove requires --git-notes"),
        (["hooks", "install", "git", "extra"], 2, "unknown agent"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_errors_are_explained(project: Project, words: list[str], code: int, said: str) -> None:
    project.start("Sign in")
    project.write("new.py", "x\n")
    outcome = project.trace(*words, code=code)
    assert said in outcome.err
    assert "Traceback" not in outcome.err


def test_a_line_that_is_not_committed_shows_the_decisions_that_wait(project: Project) -> None:
    project.start("Sign in")
    project.decide("How?", "so")
    project.commit("add", app_py="one\ntwo\n")
    project.trace("trajectory", "link")
    project.decide("And then?", "this")
    project.write("app.py", "one\nchanged\n")
    (found,) = reasons(project, "app.py:2")
    assert (found["commit"], found["how"], found["guess"]) == ("", "not committed", True)
    assert [each["chosen"] for each in found["decisions"]] == ["this"]
    assert "not committed yet" in project.trace("why", "app.py:2").text


def test_outside_git_the_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Project(tmp_path / "p")
    shutil.rmtree(made.folder / ".git")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    made.start("Sign in")
    for words in (["why", "HEAD"], ["trajectory", "link"], ["hooks", "install", "git"]):
        assert f"not in a git repository: {made.folder}" in made.trace(*words, code=6).err
    monkeypatch.setenv("PATH", os.devnull)
    assert "cannot run git" in made.trace("why", "HEAD", code=6).err


def test_the_documented_keys_are_printed(project: Project) -> None:
    text = (Path(__file__).parents[2] / "docs" / "json.md").read_text(encoding="utf-8")

    def documented(section: str) -> list[str]:
        part = text.split(f"\n## {section}\n")[1].split("\n## ")[0]
        return re.findall(r"(?m)^\| `(\w+)` \|", part)

    project.start("Sign in")
    project.decide("How?", "so")
    project.commit("add", app_py="2\n")
    for section, words in (
        ("trajectory link", ["trajectory", "link"]),
        ("hooks install git", ["hooks", "install", "git", "--dry-run"]),
        ("trajectory export", ["trajectory", "export", "--git-notes"]),
        ("why", ["why", "HEAD"]),
    ):
        printed = json.loads(project.trace(*words, "--json").lines[0])
        assert set(printed) == set(documented(section))
    (decision,) = reasons(project, "HEAD")[0]["decisions"]
    row = next(line for line in text.splitlines() if line.startswith("| `decisions` | decisions"))
    assert {f"`{key}`" for key in decision} == set(re.findall(r"`\w+`", row)[1:])


def test_notes_hold_decisions_and_leave_others_alone(project: Project) -> None:
    id_ = project.start("Sign in")
    project.decide("Which\x1b[31m token?", "JWT <!-- end of trajectory")
    commit = project.commit("add", app_py="2\n")
    project.trace("trajectory", "link")
    ref = "--ref=trajectories"
    project.git("notes", ref, "add", "-m", "mine", commit)
    report = json.loads(project.trace("trajectory", "export", "--git-notes", "--json").text)
    assert report == {"written": [commit], "missing": []}
    note = project.git("notes", ref, "show", commit)
    assert note.startswith("mine\n")
    assert "Which [31m token? **JWT < !-- end of trajectory**" in note
    assert id_ in note
    assert project.trace("trajectory", "export", id_, "--git-notes").text == "0 notes written\n"
    project.trace("trajectory", "export", "--git-notes", "--remove")
    assert project.git("notes", ref, "show", commit) == "mine\n"
    other = project.commit("more", app_py="3\n")
    project.trace("trajectory", "link")
    project.trace("trajectory", "export", "--git-notes")
    project.trace("trajectory", "export", "--git-notes", "--remove")
    assert other not in project.git("notes", ref, "list")


def test_notes_skip_commits_that_are_gone(project: Project, tmp_path: Path) -> None:
    project.start("Sign in")
    commit = project.commit("add", app_py="2\n")
    project.trace("trajectory", "link")
    shutil.rmtree(project.folder / ".git")
    project.git("init", "-q")
    outcome = project.trace("trajectory", "export", "--git-notes")
    assert outcome.text == "0 notes written\n"
    assert f"1 commit not in this repository: {commit[:12]}" in outcome.err


def test_a_file_of_a_repository_below_leads_to_that(project: Project) -> None:
    below = Project(project.folder / "sub")
    below.commit("begin", app_py="one\n")
    outcome = project.trace("why", "sub/app.py:1")
    assert "no trajectory leads to sub/app.py:1" in outcome.err
    assert "`trace -C sub why app.py:1`" in outcome.err


def test_a_decision_may_come_before_the_first_commit_of_the_code(tmp_path: Path) -> None:
    project = Project(tmp_path / "new")
    id_ = project.start("Sign in")
    project.write("app.py", "one\n")
    project.trace("tr", "decision", "How?|so", "--file", "app.py")
    project.hook()
    commit = project.commit("begin")
    assert project.linked(id_) == [commit]
    assert chosen(project, "app.py") == [["so"]]
