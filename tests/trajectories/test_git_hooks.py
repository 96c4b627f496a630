"""Git hooks that link commits, next to hooks of other programs."""

from __future__ import annotations

import json
import os
import shutil
import stat
import sys
import time
from pathlib import Path

import pytest

from tests.trajectories.support.project import Project
from trace_store import errors
from trace_store.trajectories import git_hooks
from trace_store.trajectories.git import Git

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
NAMES = ("post-commit", "post-rewrite", "prepare-commit-msg")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path / "p")
    made.commit("begin", app_py="one\n")
    made.hook()
    return made


def reasons(project: Project, target: str) -> dict[str, list[str]]:
    """Return what was decided for each commit of a target; guesses are left out."""
    found = [json.loads(line) for line in project.trace("why", target, "--json").lines]
    return {
        each["commit"]: [] if each["guess"] else [d["chosen"] for d in each["decisions"]]
        for each in found
    }


def hooks_of(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Return the mode, modification time and content of each hook."""
    found = {}
    for path in sorted(folder.iterdir()):
        if not path.name.endswith(".sample"):
            status = path.lstat()
            content = os.readlink(path).encode() if path.is_symlink() else path.read_bytes()
            found[path.name] = (status.st_mode, status.st_mtime_ns, content)
    return found


def program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def test_commits_are_linked_as_they_are_made(project: Project) -> None:
    id_ = project.start("Sign in")
    commits = [project.commit(f"change {n}", app_py=f"{n}\n") for n in range(2)]
    assert project.linked(id_) == commits


def test_a_hook_leaves_the_work_tree_clean(project: Project) -> None:
    """Its links are seen at once; the next event records them."""
    id_ = project.start("Sign in")
    project.git("add", ".trace")
    project.git("commit", "-qm", "records alone are not linked")
    commits = [project.commit(f"change {n}", app_py=f"{n}\n") for n in range(2)]
    assert project.git("status", "--short", "--", ".trace") == ""
    assert project.linked() == commits
    assert reasons(project, "app.py") == {commits[0]: [], commits[1]: []}
    state = json.loads(project.trace("trajectory", "list", "--json").text)
    assert "linked" not in state["counts"]
    project.decide("How?", "so")
    project.trace("undo")  # takes back the decision alone
    state = json.loads(project.trace("trajectory", "list", "--json").text)
    assert (state["counts"]["linked"], "decision" in state["counts"]) == (2, False)
    assert project.linked(id_) == commits
    assert project.git("status", "--short", "--", ".trace") != ""


def test_damaged_lines_that_wait_are_left_out(project: Project) -> None:
    id_ = project.start("Sign in")
    commit = project.commit("change", app_py="2\n")
    assert project.linked() == [commit]
    path = project.folder / ".trace" / "local" / "waiting" / id_
    line = path.read_text(encoding="utf-8")
    wrong = ["{", "[]", "1", line.replace('"session": ""', '"session": "zz"'), '{"data": 1}', "\0"]
    path.write_text("\n".join([*wrong, line]), encoding="utf-8")
    assert project.linked() == [commit]
    project.decide("How?", "so")
    assert project.linked() == [commit]
    assert not path.exists()


def test_links_stay_when_git_switches_branches(project: Project) -> None:
    def on_branch(name: str, title: str) -> tuple[str, str]:
        project.git("switch", "-q", "-c", name, "main")
        id_ = project.start(title)
        project.decide("How?", f"as {name}")
        project.git("add", ".trace")
        return id_, project.commit(f"change of {name}", app_py=f"of {name}\n")

    first, change = on_branch("one", "First")
    second, _ = on_branch("two", "Second")
    assert [each.id for each in project.active()] == [second]
    project.decide("What?", "that")
    project.git("add", ".trace")
    project.git("commit", "-qm", "more")
    project.git("switch", "-q", "one")
    assert [each.id for each in project.active()] == [first]
    assert project.linked(first) == [change]
    assert reasons(project, "app.py") == {change: ["as one"]}
    assert project.trace("fsck").code == 0


def test_the_branch_of_git_says_which_trajectory_is_meant(project: Project) -> None:
    started = []
    for name in ("one", "two"):
        project.git("switch", "-q", "-c", name)
        started.append(project.start(name))
    project.git("switch", "-q", "one")
    commit = project.commit("change", app_py="of one\n")
    project.decide("How?", "so")
    assert project.linked(started[0]) == [commit]
    assert project.linked(started[1]) == []
    project.git("switch", "-q", "main")
    assert "several trajectories" in project.trace("tr", "note", "x", code=6).err


@pytest.mark.parametrize("recorded", [True, False])
def test_squashed_commits_keep_their_decisions(project: Project, recorded: bool) -> None:
    id_ = project.start("Sign in")
    for n in range(3):
        if recorded or not n:
            project.decide(f"How {n}?", f"so {n}")
        project.commit(f"change {n}", **{f"f{n}_py": f"{n}\n"})
    everything = ["so 2", "so 1", "so 0"] if recorded else ["so 0"]
    project.git("rebase", "-q", "-i", "HEAD~3", GIT_SEQUENCE_EDITOR="sed -i '2,3s/^pick/squash/'")
    squash = project.head
    assert set(project.linked(id_)) == {squash}
    assert reasons(project, squash) == {squash: everything}
    if recorded:
        assert reasons(project, "f2.py") == {squash: ["so 2"]}
        assert reasons(project, "f1.py:1") == {squash: ["so 1"]}
    project.git("commit", "-q", "--amend", "-m", "better")
    assert reasons(project, "HEAD") == {project.head: everything}
    project.decide("And?", "then")
    project.git("commit", "-q", "--amend", "-m", "best")
    assert reasons(project, "HEAD") == {project.head: ["then", *everything]}


def test_a_merge_that_squashes_keeps_all_decisions(project: Project) -> None:
    project.start("Sign in")
    project.git("switch", "-q", "-c", "feature")
    for n in range(2):
        project.decide(f"How {n}?", f"so {n}")
        project.commit(f"change {n}", **{f"f{n}_py": f"{n}\n"})
    project.git("switch", "-q", "main")
    project.git("merge", "-q", "--squash", "feature")
    squash = project.commit("all of it")
    assert reasons(project, "HEAD") == {squash: ["so 1", "so 0"]}
    assert reasons(project, "f1.py") == {squash: ["so 1"]}


def test_after_an_amend_the_link_leads_to_the_new_commit(project: Project) -> None:
    project.start("Sign in")
    old = project.commit("change", app_py="2\n")
    project.git("commit", "-q", "--amend", "-m", "better")
    assert project.linked() == [project.head]
    assert json.loads(project.trace("why", old, "--json").text)["commit"] == old


def test_after_a_rebase_links_lead_to_the_new_commits(project: Project) -> None:
    """The links of an ended trajectory are updated, too; the active trajectory gets none of its commits."""
    ended = project.start("Ended")
    project.git("switch", "-q", "-c", "feature")
    olds = [project.commit(f"change {n}", app_py=f"{n}\n") for n in range(2)]
    with project.repo() as repo:
        repo.trajectories.complete(trajectory=ended)
    active = project.start("Active")
    project.git("switch", "-q", "main")
    project.git("commit", "-q", "--allow-empty", "--no-verify", "-m", "meanwhile")
    linked = project.linked(active)
    project.git("rebase", "-q", "main", "feature")
    news = project.git("rev-list", "--reverse", "main..feature").split()
    assert project.linked(ended) == news
    assert not set(news) & set(olds)
    assert project.linked(active) == linked
    project.git("rebase", "-q", "-i", "--autosquash", "main", "-x", "true")
    project.variables["GIT_SEQUENCE_EDITOR"] = "sed -i -e '2s/^pick/fixup/'"
    project.git("rebase", "-q", "-i", "main")
    assert project.linked(ended) == [project.head]


def test_nothing_is_linked_without_a_current_trajectory(project: Project) -> None:
    project.commit("none", app_py="2\n")
    one = project.start("One")
    two = project.start("Two")
    project.commit("several", app_py="3\n")
    assert project.linked(one) == project.linked(two) == []
    project.variables["TRACE_TRAJECTORY"] = two
    commit = project.commit("named", app_py="4\n")
    assert (project.linked(one), project.linked(two)) == ([], [commit])


@pytest.mark.parametrize("damage", ["no trace", "no repository", "damaged", "locked"])
def test_a_hook_never_makes_a_commit_fail(project: Project, damage: str) -> None:
    project.start("Sign in")
    if damage == "no trace":
        text = (project.folder / ".git/hooks/post-commit").read_text("utf-8")
        program(project.folder / ".git/hooks/post-commit", text.replace("trace_cli", "no_module"))
        project.variables["PATH"] = os.pathsep.join(("/usr/bin", "/bin"))
    elif damage == "no repository":
        shutil.rmtree(project.folder / ".trace")
    elif damage == "damaged":
        (project.folder / ".trace" / "config").write_text("[[[", encoding="utf-8")
    else:
        shutil.rmtree(project.folder / ".trace" / "journal")
        (project.folder / ".trace" / "journal").write_text("no folder", encoding="utf-8")
    project.write("app.py", "2\n")
    assert project.git("commit", "-qam", "works") == ""


@pytest.mark.parametrize("stdin", [b"", b"nonsense\n", b"a b\n\xff\xfe\n", b"0" * 40 + b" 1\n"])
@pytest.mark.parametrize("hook", ["post-rewrite", "post-commit", "some-later-hook", ""])
def test_the_hooks_command_never_fails(project: Project, hook: str, stdin: bytes) -> None:
    project.start("Sign in")
    words = ["hook", "git", *([hook] if hook else ())]
    outcome = project.trace(*words, stdin=stdin)
    assert (outcome.out, outcome.err) == (b"", "")


def test_a_writer_does_not_hold_up_a_commit(project: Project) -> None:
    id_ = project.start("Sign in")
    with project.repo() as holder:
        holder.store.journal.lock()
        commit = project.commit("first", app_py="1\n")
        holder.store.journal.unlock()
    assert project.linked(id_) == [commit]


def test_other_hooks_are_called_and_restored_unchanged(tmp_path: Path) -> None:
    project = Project(tmp_path / "p")
    folder, log = project.folder / ".git" / "hooks", project.folder / "log"
    program(folder / "post-commit", f"#!/bin/sh\necho commit >> {log}\nexit 0\n# no end")
    program(
        folder / "tool.py",
        f"#!/usr/bin/env python3\nimport sys\nopen({str(log)!r}, 'a').write(sys.stdin.read())\n",
    )
    (folder / "post-rewrite").symlink_to("tool.py")
    program(folder / "prepare-commit-msg", '#!/bin/sh\ngrep -q refuse "$1" && exit 1\nexit 0\n')
    (folder / "prepare-commit-msg").chmod(0o555)
    before = hooks_of(folder)
    project.trace("hooks", "install", "git", "--dry-run")
    assert hooks_of(folder) == before
    project.hook()
    program_ = [sys.executable, "-m", "trace_cli"]
    git_hooks.install_hooks(Git(str(project.folder)), program_, trailer=True)
    project.start("Sign in")
    old = project.commit("first", app_py="1\n")
    project.git("commit", "-q", "--amend", "-m", "second")
    assert log.read_text("utf-8").splitlines() == ["commit", "commit", f"{old} {project.head}"]
    project.write("app.py", "2\n")
    project.git("commit", "-qam", "refuse this", code=1)
    project.trace("hooks", "uninstall", "git")
    assert hooks_of(folder) == before
    assert "no Trace hooks installed" in project.trace("hooks", "uninstall", "git").err


def test_a_second_installation_changes_nothing(project: Project) -> None:
    folder = project.folder / ".git" / "hooks"
    before = hooks_of(folder)
    assert set(before) == {"post-commit", "post-rewrite"}
    project.hook()
    assert hooks_of(folder) == before
    project.trace("hooks", "uninstall", "git")
    assert hooks_of(folder) == {}


def test_an_older_hook_of_ours_is_updated(project: Project) -> None:
    path = project.folder / ".git" / "hooks" / "post-commit"
    current = path.read_bytes()
    program(path, f"#!/bin/sh\n{git_hooks.MARKER}\nolder\n")
    project.hook()
    assert path.read_bytes() == current
    assert stat.S_IMODE(path.stat().st_mode) & 0o111
    assert not path.with_name(f"post-commit{git_hooks.KEPT}").exists()


def test_a_program_that_replaced_our_hook_is_not_overwritten(project: Project) -> None:
    folder = project.folder / ".git" / "hooks"
    program(folder / f"post-commit{git_hooks.KEPT}", "#!/bin/sh\n# first\n")
    program(folder / "post-commit", "#!/bin/sh\n# trace hook git: not ours\n")
    before = hooks_of(folder)
    outcome = project.trace("hooks", "install", "git", code=5)
    assert "another program replaced the hook" in outcome.err
    assert f"post-commit{git_hooks.KEPT}" in outcome.err
    assert hooks_of(folder) == before


def test_a_hook_that_is_not_executable_stays_off(project: Project) -> None:
    project.trace("hooks", "uninstall", "git")
    path, log = project.folder / ".git" / "hooks" / "post-commit", project.folder / "log"
    path.write_text(f"#!/bin/sh\necho called > {log}\n", encoding="utf-8")
    project.hook()
    project.start("Sign in")
    project.commit("change", app_py="2\n")
    assert len(project.linked()) == 1
    assert not log.exists()


def test_hooks_go_where_git_looks_for_them(project: Project) -> None:
    project.git("config", "core.hooksPath", "tools/hooks")
    project.hook()
    assert set(hooks_of(project.folder / "tools" / "hooks")) == {"post-commit", "post-rewrite"}
    project.start("Sign in")
    assert [project.commit("change", app_py="2\n")] == project.linked()


def test_husky_runs_our_hook_and_the_users(project: Project) -> None:
    project.trace("hooks", "uninstall", "git")
    program(
        project.folder / ".husky/_/h", 's=".husky/${0##*/}"\n[ ! -f "$s" ] || sh -e "$s" "$@"\n'
    )
    program(project.folder / ".husky/_/post-commit", '#!/bin/sh\n. "${0%/*}/h"\n')
    log, own = project.folder / "log", project.folder / ".husky" / "post-commit"
    own.write_text(f"echo called > {log}\n", encoding="utf-8")
    project.git("config", "core.hooksPath", ".husky/_")
    project.hook()
    assert (project.folder / ".husky/_/post-commit").read_text("utf-8").endswith('/h"\n')
    project.start("Sign in")
    commit = project.commit("change", app_py="2\n")
    assert project.linked() == [commit]
    assert log.read_text("utf-8") == "called\n"
    project.trace("hooks", "uninstall", "git")
    assert own.read_text("utf-8") == f"echo called > {log}\n"


def test_a_linked_worktree_shares_the_hooks(project: Project, tmp_path: Path) -> None:
    project.git("worktree", "add", "-q", str(tmp_path / "w"))
    worktree = Project(tmp_path / "w", new=False)
    worktree.trace("init", "-q")
    id_ = worktree.start("There")
    assert worktree.linked(id_) == []
    commit = worktree.commit("there", app_py="2\n")
    assert worktree.linked(id_) == [commit]


def test_a_folder_that_cannot_be_written_is_named(project: Project) -> None:
    (project.folder / "file").write_text("x", encoding="utf-8")
    project.git("config", "core.hooksPath", "file/hooks")
    outcome = project.trace("hooks", "install", "git", code=14)
    assert "file" in outcome.err


def test_a_trailer_names_the_trajectory(project: Project) -> None:
    command = [sys.executable, "-m", "trace_cli"]
    git_hooks.install_hooks(Git(str(project.folder)), command, trailer=True)
    id_ = project.start("Sign in")
    project.commit("change", app_py="2\n")
    assert project.git("log", "-1", "--format=%B").strip() == f"change\n\nTrajectory: {id_}"
    project.git("commit", "-q", "--amend", "-m", "other\n\nTrajectory: mine")
    assert project.git("log", "-1", "--format=%B").count("Trajectory:") == 1
    head = project.head
    project.write("app.py", "3\n")
    project.git("commit", "-qa", code=1)  # the message stays empty in the editor
    assert project.head == head
    project.hook()
    assert not (project.folder / ".git/hooks/prepare-commit-msg").exists()


def test_an_earlier_hook_is_restored_even_if_ours_is_missing(project: Project) -> None:
    folder = project.folder / ".git" / "hooks"
    program(folder / f"post-commit{git_hooks.KEPT}", "#!/bin/sh\n# first\n")
    (folder / "post-commit").unlink()
    (change,) = git_hooks.uninstall_hooks(Git(str(project.folder)), names=("post-commit",))
    assert change.action == git_hooks.REMOVED
    assert (folder / "post-commit").read_text("utf-8") == "#!/bin/sh\n# first\n"
    with pytest.raises(errors.StateError, match="not in a git repository"):
        git_hooks.uninstall_hooks(Git("/"))


def test_a_relative_path_of_hooks_starts_at_the_top(project: Project) -> None:
    project.trace("hooks", "uninstall", "git")
    project.git("config", "core.hooksPath", "tools/hooks")
    (project.folder / "src").mkdir()
    changes = git_hooks.install_hooks(Git(str(project.folder / "src")), ["trace"])
    assert {Path(change.path).parent for change in changes} == {project.folder / "tools" / "hooks"}
    project.trace("hooks", "uninstall", "git")
    assert not (project.folder / "tools" / "hooks").exists()


@pytest.mark.parametrize("suffix", [".legacy", ".old"])
def test_status_tells_which_program_moved_a_hook(project: Project, suffix: str) -> None:
    folder = project.folder / ".git" / "hooks"
    moved = folder / f"post-commit{suffix}"
    (folder / "post-commit").rename(moved)
    program(folder / "post-commit", "#!/bin/sh\n# of another program\n")
    (folder / "post-rewrite").chmod(0o644)
    found = json.loads(project.trace("hooks", "status", "--json").text)["git"]
    assert [(Path(each["path"]).name, each["state"]) for each in found] == [
        ("post-commit", "moved" if suffix == ".legacy" else "replaced"),
        ("post-rewrite", "off"),
        ("prepare-commit-msg", "missing"),
    ]
    assert found[0]["moved"] == str(moved)
    project.trace("hooks", "uninstall", "git")
    assert set(hooks_of(folder)) == {"post-commit"}


@pytest.mark.parametrize("suffix", [".legacy", ".old"])
def test_the_users_own_hook_outlives_another_program(project: Project, suffix: str) -> None:
    """The other program takes our place. What was there before ours is called, and given back."""
    folder, log = project.folder / ".git" / "hooks", project.folder / "log"
    project.trace("hooks", "uninstall", "git")
    program(folder / "post-commit", f"#!/bin/sh\necho own >> {log}\n")
    own = (folder / "post-commit").read_bytes()
    project.hook()
    calls = '"$0.legacy"' if suffix == ".legacy" else ":"
    (folder / "post-commit").rename(folder / f"post-commit{suffix}")
    other = f"#!/bin/sh\necho other >> {log}\n{calls}\n"
    program(folder / "post-commit", other)
    project.start("Sign in")
    project.hook()
    project.commit("change", app_py="2\n")
    assert len(project.linked()) == 1
    assert log.read_text("utf-8").split() == ["other", *(["own"] if suffix == ".legacy" else [])]
    project.hook()
    project.trace("hooks", "uninstall", "git")
    found = {name: data for name, (_, _, data) in hooks_of(folder).items()}
    assert found == {"post-commit": other.encode(), f"post-commit{suffix}": own}


def test_a_hook_that_git_tracks_is_left_alone(project: Project) -> None:
    project.git("config", "core.hooksPath", ".githooks")
    program(project.folder / ".githooks" / "post-commit", "#!/bin/sh\n# of the team\n")
    project.git("add", ".githooks")
    project.git("commit", "-qm", "hooks")
    outcome = project.trace("hooks", "install", "git", code=5)
    assert "git tracks the hook" in outcome.err
    assert 'trace hook git post-commit "$@"' in outcome.err
    assert project.git("status", "--short", "--", ".githooks") == ""


def test_hooks_serve_a_repository_below_the_top_of_the_work_tree(tmp_path: Path) -> None:
    whole = Project(tmp_path / "whole")
    shutil.rmtree(whole.folder / ".trace")
    part = Project(whole.folder / "app")
    shutil.rmtree(part.folder / ".git")
    part.hook()
    id_ = part.start("Sign in")
    commit = part.commit("change", app_py="2\n")
    assert part.linked(id_) == [commit]


def test_hooks_from_before_a_setting_are_found(project: Project) -> None:
    project.git("config", "core.hooksPath", ".hk")
    project.trace("hooks", "uninstall", "git")
    assert not hooks_of(project.folder / ".git" / "hooks")


def test_a_folder_of_hooks_may_be_a_link(project: Project) -> None:
    folder = project.folder / ".git" / "hooks"
    folder.rename(project.folder / "mine")
    folder.symlink_to("../mine")
    project.hook()
    project.start("Sign in")
    commit = project.commit("change", app_py="2\n")
    assert project.linked() == [commit]


@pytest.mark.parametrize("shell", ["/bin/sh", "/bin/sh -e", "/usr/bin/env bash"])
@pytest.mark.parametrize("is_link", [False, True])
def test_a_hook_that_goes_by_its_name_keeps_it(project: Project, shell: str, is_link: bool) -> None:
    """It is renamed, and still finds what its name and its folder say."""
    folder, log = project.folder / ".git" / "hooks", project.folder / "log"
    project.trace("hooks", "uninstall", "git")
    path = folder / ("dispatch" if is_link else "post-commit")
    name = '$(basename "$0")'
    run = f'echo "{name} $#" >> {log}\n. "$(dirname "$0")/{name}-one"\nexit 3\n'
    program(path, f"#!{shell}\n{run}")
    program(folder / "post-commit-one", f"echo one >> {log}\n")
    if is_link:
        (folder / "post-commit").symlink_to("dispatch")
    before = hooks_of(folder)
    for _ in range(2):
        project.hook()
    project.start("Sign in")
    project.commit("change", app_py="2\n")
    assert log.read_text("utf-8").splitlines() == ["post-commit 0", "one"]
    assert len(project.linked()) == 1
    project.trace("hooks", "uninstall", "git")
    assert hooks_of(folder) == before


def test_a_shared_hook_starts_no_program_where_there_is_no_repository(tmp_path: Path) -> None:
    log, place = tmp_path / "log", tmp_path / "shared"
    program(tmp_path / "trace", f"#!/bin/sh\necho ran >> {log}\n")
    project = Project(tmp_path / "p")
    project.git("config", "core.hooksPath", str(place))
    git_hooks.install_hooks(Git(str(project.folder)), [str(tmp_path / "trace")], trailer=True)
    shutil.rmtree(project.folder / ".trace")
    project.commit("no repository", app_py="1\n")
    assert not log.exists()
    (tmp_path / ".trace").mkdir()
    project.commit("one above", app_py="2\n")
    assert log.read_text("utf-8").split() == ["ran", "ran"]  # both hooks


def test_hooks_that_all_repositories_share_are_named(project: Project, tmp_path: Path) -> None:
    project.trace("hooks", "uninstall", "git")
    settings = tmp_path / "gitconfig"
    settings.write_text(f"[core]\n\thooksPath = {tmp_path / 'shared'}\n", encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GIT_CONFIG_GLOBAL", str(settings))
        done = project.trace("hooks", "install", "git", "--json")
        assert {json.loads(line)["shared"] for line in done.lines} == {"global"}
        said = project.trace("hooks", "install", "git").err
        assert "all repositories of this user share these hooks (global core.hooksPath)" in said
        project.git("config", "core.hooksPath", "own")
        assert "share" not in project.trace("hooks", "install", "git").err


def test_a_decision_from_before_a_commit_that_no_hook_saw_is_a_guess(project: Project) -> None:
    project.start("Sign in")
    project.decide("How?", "so")
    time.sleep(1.01)  # git's times are whole seconds
    unseen = ("-c", "core.hooksPath=/dev/null", "commit", "-qam", "unseen")
    project.write("app.py", "2\n")
    now = f"{int(time.time())} +0000"
    project.git(*unseen, GIT_AUTHOR_DATE=now, GIT_COMMITTER_DATE=now)
    time.sleep(1.01)
    project.commit("next", b_py="3\n")
    (found,) = [json.loads(line) for line in project.trace("why", "HEAD", "--json").lines]
    assert found["guess"]
    assert [(each["chosen"], each["guess"]) for each in found["decisions"]] == [("so", True)]
    project.decide("And?", "then")
    project.commit("last", c_py="4\n")
    assert reasons(project, "HEAD") == {project.head: ["then"]}
    project.decide("More?", "yes")
    project.write("app.py", "5\n")
    now = f"{int(time.time())} +0000"
    project.git(*unseen, GIT_AUTHOR_DATE=now, GIT_COMMITTER_DATE=now)
    time.sleep(1.01)
    project.decide("Which?", "this")
    project.commit("both", d_py="6\n")
    (found,) = [json.loads(line) for line in project.trace("why", "HEAD", "--json").lines]
    assert not found["guess"]
    said = [(each["chosen"], each["guess"]) for each in found["decisions"]]
    assert said == [("this", False), ("yes", True)]
    text = project.trace("why", "HEAD").text
    assert text.index("this") < text.index("perhaps about an earlier commit") < text.index("yes")
    project.trace("trajectory", "export", "--git-notes")
    note = project.git("notes", "--ref=trajectories", "show", "HEAD")
    assert "**yes** (perhaps about an earlier commit)" in note
    assert "**this**\n" in note


def test_a_commit_that_was_fetched_makes_no_guess(project: Project, tmp_path: Path) -> None:
    other = tmp_path / "other"
    project.git("clone", "-q", str(project.folder), str(other))
    project.start("Sign in")
    project.decide("How?", "so")
    now = f"{int(time.time())} +0000"
    (other / "app.py").write_text("2\n", encoding="utf-8")
    words = ("-c", "user.name=b", "-c", "user.email=b@example.org", "commit", "-qam", "theirs")
    project.git("-C", str(other), *words, GIT_AUTHOR_DATE=now, GIT_COMMITTER_DATE=now)
    project.git("pull", "-q", "--ff-only", str(other), "main")
    time.sleep(1.01)
    project.commit("next", b_py="3\n")
    assert reasons(project, "HEAD") == {project.head: ["so"]}
