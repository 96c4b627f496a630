"""Two clones record in one trajectory; git merges them without a conflict."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.command_line import Trace
from tests.support.git import git

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def test_both_histories_are_one_trajectory(
    at: Callable[..., str], trace: Trace, tmp_path: Path
) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"

    def save(folder: Path) -> None:
        git(folder, "add", ".trace")
        git(folder, "commit", "-qm", "recorded")

    ours.mkdir()
    git(ours, "init", "-q", "-b", "main")
    at(ours, "init", "-q")
    at(ours, "tr", "start", "Sign in", "--agent", "lead")
    save(ours)
    git(tmp_path, "clone", "-q", "ours", "theirs")
    at(ours, "tr", "decision", "Which token?|JWT", "--agent", "lead")
    at(theirs, "tr", "chapter", "Tests", "--agent", "bo")
    at(theirs, "tr", "finding", "clocks differ", "--agent", "bo")
    at(ours, "tr", "decision", "Which library?|ours", "--agent", "lead")
    save(ours)
    save(theirs)
    git(ours, "pull", "-q", "--no-rebase", "../theirs", "main")

    shown = at(ours, "tr", "show")
    assert "agents    lead, bo" in shown
    assert "2 decisions, 1 finding; 5 events in all" in shown
    said = ["Which token? → JWT", "Tests", "clocks differ", "Which library? → ours"]
    places = [shown.index(each) for each in said]
    assert places == sorted(places)
    assert len(at(ours, "tr", "list").splitlines()) == 1
    assert "Which library? → ours" in at(ours, "tr", "status")

    at(ours, "tr", "complete", "Signed in", "--agent", "lead")
    assert "2 decisions, 1 finding; 7 events in all" in at(ours, "tr", "show", "traj_")
    assert "Sign in" in at(ours, "tr", "list", "--status", "completed")
    assert "no problems found" in trace("fsck").err
    save(ours)
    git(theirs, "pull", "-q", "--no-rebase", "../ours", "main")
    assert at(theirs, "tr", "show", "traj_") == at(ours, "tr", "show", "traj_")


def test_a_bundle_of_a_trajectory_has_no_text_of_its_sessions(
    at: Callable[..., str], tmp_path: Path
) -> None:
    ours = tmp_path / "ours"
    ours.mkdir()
    at(ours, "init", "-q")
    at(ours, "commit", "-q", "--user", "What was said")
    id_ = at(ours, "tr", "start", "Sign in", "--agent", "lead").split()[0]
    at(ours, "tr", "decision", "How?|so", "--agent", "lead")
    for name, words in (("alone", ()), ("whole", ("--with-sessions",))):
        at(ours, "bundle", "create", f"{name}.bundle", f"trajectories/{id_}", *words)
        theirs = tmp_path / name
        theirs.mkdir()
        at(theirs, "init", "-q")
        at(theirs, "bundle", "import", str(ours / f"{name}.bundle"))
        assert "How? → so" in at(theirs, "tr", "show", "--events")
        assert ("heads/main" in at(theirs, "for-each-ref")) == (name == "whole")
        at(theirs, "fsck")
