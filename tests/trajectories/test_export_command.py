"""`trace trajectory export`, `bundle` and `timeline`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.support.command_line import Run, Trace
from tests.support.git import git
from trace_store import Environment, Repo


@pytest.fixture
def recorded(ok: Run) -> Run:
    ok("tr", "start", "Sign in", "--agent", "lead", "-q")
    ok("tr", "decision", "Which?|JWT", "--alternative", "cookies: old", "--agent", "lead", "-q")
    ok("tr", "finding", "slow", "--significance", "high", "--agent", "bo", "-q")
    return ok


@pytest.mark.parametrize(
    ("words", "start"),
    [
        ([], "# Sign in\n"),
        (["-o", "-"], "# Sign in\n"),
        (["-f", "page"], "<!doctype html>"),
        (["-f", "html", "--no-thinking"], "<!doctype html>"),
        (["-f", "timeline"], "Sign in\ntraj_"),
        (["-f", "timeline-html"], "<!doctype html>"),
        (["-f", "pr", "--thinking"], "## Sign in\n"),
    ],
)
def test_standard_output_has_the_text(recorded: Run, words: list[str], start: str) -> None:
    assert recorded("trajectory", "export", *words).text.startswith(start)


@pytest.mark.parametrize(
    ("name", "start"),
    [("why.html", "<!doctype"), ("why.md", "# Sign in"), ("why.txt", "Sign in"), ("why", "# Sign")],
)
def test_the_form_follows_the_name_of_the_file(
    recorded: Run, tmp_path: Path, name: str, start: str
) -> None:
    assert recorded("tr", "export", "-o", name).text.startswith(f"{name}: ")
    assert (tmp_path / name).read_text("utf-8").startswith(start)


def test_a_file_is_not_overwritten_without_force(
    recorded: Run, trace: Trace, tmp_path: Path
) -> None:
    (tmp_path / "why.md").write_text("mine")
    outcome = trace("tr", "export", "-o", "why.md")
    assert outcome.code == 5
    assert "--force" in outcome.err
    assert (tmp_path / "why.md").read_text() == "mine"
    recorded("tr", "export", "-o", "why.md", "--force")
    assert (tmp_path / "why.md").read_text().startswith("# Sign in")


def test_a_folder_takes_a_file_with_the_id_or_the_whole(
    recorded: Run, trace: Trace, tmp_path: Path
) -> None:
    (tmp_path / "out").mkdir()
    made = json.loads(recorded("tr", "export", "-f", "pr", "-o", "out", "--json").lines[0])
    assert Path(made["path"]).name == f"{made['trajectories'][0]}-pr.md"
    made = json.loads(recorded("tr", "export", "-f", "folder", "-o", "why", "--json").lines[0])
    assert (made["format"], made["path"]) == ("folder", str(tmp_path / "why"))
    assert "README.md" in made["files"]
    outcome = trace("tr", "export", "-f", "folder", "-o", "why")
    assert outcome.code == 5
    assert "--force" in outcome.err
    recorded("tr", "export", "-f", "folder", "-o", "why", "--force")
    (tmp_path / "file").write_text("mine")
    outcome = trace("tr", "export", "-f", "folder", "-o", "file")
    assert outcome.code not in (0, 70)
    assert (tmp_path / "file").read_text() == "mine"


def test_a_bundle_names_each_trajectory_once(recorded: Run) -> None:
    ids = [
        recorded("tr", "list", "--json").lines[0],
        recorded("tr", "start", "Other", "--json").lines[0],
    ]
    first, second = (json.loads(line)["id"] for line in ids)
    made = json.loads(
        recorded("tr", "bundle", first, second, first[:12], "-o", "all.md", "--json").lines[0]
    )
    assert made["trajectories"] == [first, second]
    assert recorded("tr", "bundle", first).text.startswith("# 1 trajectory\n")


def test_a_timeline_has_colours_on_a_terminal(recorded: Run, trace: Trace) -> None:
    plain = recorded("tr", "timeline").text
    assert "◆ decision       lead\n" in plain
    assert "      │ Which? → JWT\n" in plain
    assert "• finding        bo  high\n" in plain
    colours = Environment(author="Ada", discovery=False, color=True)
    painted = trace("tr", "timeline", terminal=True, environment=colours).text
    assert "\x1b[32m◆\x1b[0m" in painted
    assert "\x1b[33mhigh\x1b[0m" in painted


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["export", "-f", "pdf"], "pdf"),
        (["export", "-f", "folder"], "-o FOLDER"),
        (["export", "--since", "main"], "--format pr"),
        (["export", "--thinking", "--no-thinking"], "not both"),
        (["export", "--force"], "-o FILE"),
        (["export", "-o", "-", "--json"], "standard output"),
        (["export", "nothing"], "nothing"),
        (["export", "-o", "no/such/folder.md"], "no such folder"),
        (["bundle"], "ID"),
        (["timeline", "nothing"], "nothing"),
    ],
)
def test_errors_are_explained(recorded: Run, trace: Trace, words: list[str], said: str) -> None:
    outcome = trace("tr", *words)
    assert outcome.code not in (0, 1, 70)
    assert said in outcome.err
    assert not outcome.out


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_pull_request_has_what_a_branch_lacks(
    recorded: Run, trace: Trace, tmp_path: Path
) -> None:
    outcome = trace("tr", "export", "-f", "pr", "--since", "main")
    assert "not in a git repository" in outcome.err
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "merged")
    with Repo.open(tmp_path / ".trace") as repo:
        repo.trajectories.record(
            "linked", commit=git(tmp_path, "rev-parse", "HEAD").strip(), subject="merged"
        )
        repo.trajectories.decide("What then?", "Tests")
        git(tmp_path, "switch", "-q", "-c", "work")
        git(tmp_path, "commit", "-q", "--allow-empty", "-m", "new")
        repo.trajectories.record(
            "linked", commit=git(tmp_path, "rev-parse", "HEAD").strip(), subject="new"
        )
        repo.trajectories.decide("And now?", "Docs")
    shown = recorded("tr", "export", "-f", "pr", "--since", "main").text
    assert "What then?" in shown
    assert "And now?" in shown
    assert "Which?" not in shown
    assert [line[17:] for line in shown.splitlines() if line.startswith("- `")] == ["new"]
    assert "Which?" in recorded("tr", "export", "-f", "pr").text
    outcome = trace("tr", "export", "-f", "pr", "--since=--all")
    assert outcome.code not in (0, 1, 70)
    assert "git knows no commit" in outcome.err


def test_a_mirror_holds_the_decisions_as_files(ok: Run, tmp_path: Path) -> None:
    first = ok("tr", "start", "Sign in", "--agent", "lead").text.split()[0]
    ok("tr", "decision", "Which token?|JWT", "--agent", "lead", "--trajectory", first)
    ok("tr", "start", "Nothing decided", "--agent", "lead")
    folder = tmp_path / "docs" / "decisions"
    assert ok("tr", "mirror", str(folder)).text.endswith(f"{first}.md: written\n")
    assert "Which token?" in (folder / f"{first}.md").read_text("utf-8")
    assert json.loads(ok("tr", "mirror", str(folder), "--json").text)["action"] == "unchanged"
    ok("tr", "amend", "d1", "--reasoning", "No store", "--agent", "lead", "--trajectory", first)
    assert ok("tr", "mirror", str(folder)).text.endswith(": written\n")
    assert [path.name for path in folder.iterdir()] == [f"{first}.md"]
