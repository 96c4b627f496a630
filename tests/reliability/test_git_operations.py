"""What a user sees after git changed a project that carries `.trace/`.

    python -m tests.reliability.test_git_operations      print the table: operations by commands

The project has code, five branches and ten trajectories; each commit of git has what was recorded until then.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.command_line import Outcome
from tests.support.git import git
from tests.support.installed_here import ROOT
from trace_cli.main import main
from trace_cli.runtime import Invocation
from trace_store import Repo, errors
from trace_store.base.environment import Environment
from trace_store.base.oid import ObjectId
from trace_store.store.store import Store

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
STEPS, BRANCHES = 10, 5
READING = {
    "status": ["status"],
    "log": ["log", "--oneline"],
    "log of a branch": ["log", "b0"],
    "why": ["why", "code.py"],
    "search": ["search", "question"],
    "trajectories": ["trajectory", "list"],
    "append": ["commit", "-q", "--user", "appended"],
    "fsck": ["fsck"],
}


class Project:
    """A project folder in git, with `.trace/` beside the code."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def git(self, *words: str, code: int | None = 0) -> str:
        return git(self.folder, *words, code=code)

    def commit(self, subject: str) -> None:
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", subject)

    def trace(self, *words: str, folder: str = ".") -> Outcome:
        """Run a command as a new process would, in this one."""
        output, error, here = io.BytesIO(), io.BytesIO(), Path.cwd()
        environment = Environment(author="Ada", home=str(self.folder.parent))
        invocation = Invocation(
            environment=environment, output=output, error=error, input=io.BytesIO(), terminal=False
        )
        os.chdir(self.folder / folder)
        try:
            code = main(words, invocation)
        finally:
            os.chdir(here)
        return Outcome(code, output.getvalue(), error.getvalue().decode("utf-8"))

    def says(self, *words: str) -> str:
        done = self.trace(*words)
        assert done.code == 0, done.err
        return done.text

    def append(self, *texts: str) -> None:
        with Repo.open(self.folder, author="ada") as repo:
            for text in texts:
                repo.append("user", text)

    def copy(self, folder: Path) -> Project:
        shutil.copytree(self.folder, folder, symlinks=True)
        return Project(folder)

    def clone(self, name: str, *options: str) -> Project:
        target = self.folder.parent / name
        git(self.folder.parent, "clone", "-q", *options, self.folder.as_uri(), str(target))
        return Project(target)


def build(folder: Path) -> Project:
    folder.mkdir()
    project = Project(folder)
    project.git("init", "-q", "-b", "main")
    with Repo.open_or_init(folder, author="ada") as repo:
        repo.append("user", "root")
        for number in range(BRANCHES):
            repo.branches.create(f"b{number}")
    project.commit("start")
    for number in range(STEPS):
        with Repo.open(folder, author="ada") as repo:
            repo.append("user", f"question {number}")
            repo.append("assistant", f"answer {number}")
            if number % 2 == 0:
                repo.line(f"b{number // 2}").append("user", f"side {number}")
            state = repo.trajectories.start(f"task {number}")
            repo.trajectories.record(
                "decision", f"way {number}", trajectory=state.id, files=["code.py"]
            )
        (folder / f"code{number}.py").write_text(f"x = {number}\n")
        (folder / "code.py").write_text("".join(f"x{n} = {n}\n\n\n\n" for n in range(number + 1)))
        project.commit(f"step {number}")
    return project


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return build(tmp_path_factory.mktemp("built") / "project")


@pytest.fixture
def project(built: Project, tmp_path: Path) -> Project:
    return built.copy(tmp_path / "project")


def settle(project: Project) -> None:
    """End what a conflict in the code stopped, with all of it."""
    for words in (("revert",), ("cherry-pick",), ("rebase",)):
        for _ in range(STEPS):
            project.git("add", "-A")
            project.git("-c", "core.editor=true", *words, "--continue", code=None)


def rebase(project: Project, edit: str) -> None:
    sequence = ("-c", f"sequence.editor=sed -i.bak -e {edit}", "-c", "core.editor=true")
    project.git(*sequence, "rebase", "-q", "-i", f"HEAD~{STEPS - 2}", code=None)


def edited(project: Project) -> None:
    rebase(project, "3s/pick/edit/")
    project.append("during the rebase")
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "more")
    settle(project)


def reverted(project: Project) -> None:
    project.git("revert", "--no-edit", "HEAD~6..HEAD~3", code=None)
    settle(project)


def picked(project: Project) -> None:
    project.git("switch", "-q", "-c", "side", f"HEAD~{STEPS - 2}")
    project.git("cherry-pick", "main~2", "main", code=None)
    settle(project)


def dropped(project: Project) -> None:
    rebase(project, "'2d;4d'")
    settle(project)


def stashed(project: Project) -> None:
    project.append("not in git")
    project.git("stash", "-q", "-u")


def cleaned(project: Project) -> None:
    project.append("not in git")
    project.git("clean", "-q", "-fdx")


OPERATIONS: dict[str, Callable[[Project], object]] = {
    "nothing": lambda project: None,
    "revert": reverted,
    "cherry-pick": picked,
    "rebase, drop": dropped,
    "rebase, edit": edited,
    "reset": lambda project: project.git("reset", "-q", "--hard", "HEAD~3"),
    "stash -u": stashed,
    "clean -fdx": cleaned,
    "packs removed": lambda project: project.git("rm", "-rq", ".trace/objects/pack"),
}


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_everything_works_after(operation: Callable[[Project], object], project: Project) -> None:
    operation(project)
    for words in READING.values():
        done = project.trace(*words)
        assert done.code == 0, f"{words}: {done.text}{done.err}"
    assert "root" in project.says("log", "-n", "1000")
    project.commit("what came back")
    clone = project.clone("clone")
    assert "0 errors" in clone.trace("fsck").err.replace("no problems found", "0 errors")
    assert "root" in clone.says("log", "-n", "1000")


def test_what_came_back_is_said_once_and_only_what_refs_need(project: Project) -> None:
    with Store.open(str(project.folder / ".trace")) as store:
        dropped_oid = store.refs.read("refs/heads/b4")
    project.git("rm", "-rq", ".trace/objects/pack", ".trace/refs/heads/b4")
    project.git("commit", "-q", "-m", "without")
    said = project.trace("log")
    assert said.err.count("git add .trace") == 1
    assert "git add .trace" not in project.trace("log").err
    with Store.open(str(project.folder / ".trace")) as store:
        assert dropped_oid is not None
        assert not store.objects.contains(dropped_oid)


def test_purged_content_does_not_come_back(project: Project) -> None:
    project.append("never again, a long enough secret text")
    project.commit("with it")
    project.says("purge", "--yes", "--match", "never again, a long enough secret text")
    project.commit("purged")
    project.git("rm", "-rq", ".trace/objects/pack")
    assert "question 9" in project.says("compile", "--format", "text")
    with Store.open(str(project.folder / ".trace")) as store:
        for oid in store.objects.iterate():
            assert b"never again" not in store.objects.read(oid)


@pytest.fixture
def incomplete(project: Project) -> Project:
    """A shallow clone after a pack was removed: three commits in the middle are nowhere."""
    lost = set(os.listdir(project.folder / ".trace/objects/pack"))
    project.append("lost one", "lost two", "lost three")
    lost = set(os.listdir(project.folder / ".trace/objects/pack")) - lost
    project.commit("with it")
    project.append("after the loss")
    project.commit("more")
    (pack,) = (each for each in lost if each.endswith(".pack"))
    project.git("rm", "-q", f".trace/objects/pack/{pack}")
    project.git("commit", "-q", "-m", "without it")
    return project.clone("shallow", "--depth", "1")


READERS = {
    "status": (["status"], "after the loss"),
    "compile": (["compile", "--format", "text"], "after the loss"),
    "search": (["search", "question"], ""),
    "search of another line": (["search", "side 0"], "side 0"),
    "view": (["view", "main"], "after the loss"),
    "blame": (["blame"], "after the loss"),
}


@pytest.mark.parametrize(("words", "shown"), READERS.values(), ids=READERS)
def test_a_line_shows_what_there_is(incomplete: Project, words: list[str], shown: str) -> None:
    done = incomplete.trace(*words)
    assert done.code == 12
    assert shown in done.text
    assert "incomplete: missing: what came before" in done.err
    assert "Traceback" not in done.err


def test_other_lines_work_and_the_loss_is_named(incomplete: Project) -> None:
    assert "side 0" in incomplete.says("log", "b0")
    incomplete.says("commit", "-q", "--branch", "b0", "--user", "more")
    assert "way 9" in incomplete.says("trajectory", "search", "way 9")
    log = incomplete.trace("log")
    assert (log.code, "after the loss" in log.text) == (12, True)
    assert "missing, and what came before it" in log.err
    assert any(
        line.startswith("main") and "unreadable" in line
        for line in incomplete.says("sessions").splitlines()
    )
    assert "object-missing" in incomplete.trace("fsck").text
    assert "objects-missing" in incomplete.trace("doctor").text
    with Store.open(str(incomplete.folder / ".trace")) as store:
        tip = store.refs.read("refs/heads/main")
    incomplete.git("fetch", "-q", "--unshallow")
    assert "restored" in incomplete.trace("doctor", "--fix").text or incomplete.says("status")
    assert "root" in incomplete.says("log", "-n", "1000")
    with Store.open(str(incomplete.folder / ".trace")) as store:
        assert store.refs.read("refs/heads/main") == tip


def test_a_look_at_an_incomplete_line_leaves_nothing_behind(incomplete: Project) -> None:
    def files() -> set[str]:
        return {str(each) for each in (incomplete.folder / ".trace").rglob("*")}

    for words in (["compile"], ["search", "question"]):
        incomplete.trace(*words)
    before = files()
    for words in (["compile"], ["search", "question"], ["blame"]):
        assert incomplete.trace(*words).code == 12
    assert files() == before


# --- work trees -----------------------------------------------------------------------------------


def test_a_sparse_checkout_is_named(project: Project) -> None:
    clone = project.clone("sparse", "--sparse")
    for words in (["status"], ["init"], ["commit", "--user", "text"]):
        done = clone.trace(*words)
        assert done.code in (5, 10)
        assert "a sparse checkout leaves it out" in done.err
        assert "git sparse-checkout add .trace" in done.err
    clone.git("sparse-checkout", "add", ".trace")
    assert "question 9" in clone.says("log")


def test_init_does_not_replace_what_git_has(project: Project) -> None:
    shutil.rmtree(project.folder / ".trace")
    done = project.trace("init")
    assert (done.code, "git checkout -- .trace" in done.err) == (5, True)


@pytest.mark.parametrize("place", ["../beside", "inside"])
@pytest.mark.parametrize("ignored", [False, True], ids=["committed", "ignored"])
def test_a_linked_work_tree_finds_the_repository(
    project: Project, place: str, ignored: bool
) -> None:
    if ignored:
        project.git("rm", "-rq", "--cached", ".trace")
        (project.folder / ".gitignore").write_text(".trace\n")
        project.commit("ignored")
    project.git("worktree", "add", "-q", place, "-b", "feature")
    folder = (project.folder / place).resolve()
    (folder / "sub").mkdir()
    there = Project(folder)
    assert "question 9" in there.says("log")
    assert there.trace("log", folder="sub").code == 0
    there.says("commit", "-q", "--user", "from the work tree")
    assert ("from the work tree" in project.says("log")) is ignored
    with Repo.open(folder / "sub") as repo:
        assert repo.trajectories.start("of the feature").git_branch == "feature"


def test_a_submodule_has_its_own_repository(project: Project, tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "-q", "-b", "main")
    git(outer, "submodule", "add", "-q", str(project.folder), "sub")
    git(outer, "commit", "-q", "-m", "with it")
    inner = Project(outer / "sub")
    assert "question 9" in inner.says("log")
    inner.says("commit", "-q", "--user", "in the submodule")
    assert Project(outer).trace("status").code == 10
    git(inner.folder, "clean", "-q", "-fdx")
    assert "question 9" in inner.says("log")


# --- under an open store --------------------------------------------------------------------------


def moved(project: Project) -> None:
    project.folder.rename(project.folder.parent / "moved")


def removed(project: Project) -> None:
    shutil.rmtree(project.folder / ".trace")


@pytest.mark.parametrize("take", [moved, removed])
def test_nothing_is_acknowledged_where_the_repository_was(
    project: Project, take: Callable[[Project], None]
) -> None:
    repo = Repo.open(project.folder, author="ada")
    repo.append("user", "before")
    take(project)
    for _ in range(2):
        with pytest.raises(errors.StorageError, match="moved or removed"):
            repo.append("user", "after")
    repo.store.close()
    assert not (project.folder / ".trace").exists()


SWEEPS: dict[str, Callable[[Project], object]] = {
    "unsealed": lambda project: None,
    "sealed": lambda project: project.says("seal"),
    "sealed and committed": lambda project: project.commit(project.says("seal")),
}


@pytest.mark.parametrize("before", SWEEPS.values(), ids=SWEEPS)
def test_case_82_an_open_store_goes_on_from_its_true_tip(
    project: Project, before: Callable[[Project], object]
) -> None:
    tips: list[ObjectId] = []
    with Repo.open(project.folder, author="ada") as repo:
        for number in range(3):
            repo.append("user", f"{number} before")
            before(project)
            project.git("clean", "-q", "-fdx")
            tips.append(repo.append("user", f"{number} after").oid)
        texts = [message.text for message in repo.compile().messages]
    wanted = [f"{number} {when}" for number in range(3) for when in ("before", "after")]
    assert texts[-6:] == wanted
    assert texts[0] == "root"
    assert project.says("rev-parse", "HEAD").strip() == str(tips[-1])
    assert project.trace("fsck").code == 0


def test_an_open_store_does_not_bring_back_what_was_purged(project: Project) -> None:
    secret = "never again, a long enough secret text"
    with Repo.open(project.folder, author="ada") as repo:
        repo.append("user", f"before {secret}")
        project.says("seal")
        project.says("purge", "--yes", "--match", secret)
        project.commit("purged")
        project.git("clean", "-q", "-fdx")
        repo.append("user", "after")
    for path in (project.folder / ".trace").rglob("*"):
        assert not path.is_file() or secret.encode() not in path.read_bytes()
    with Store.open(str(project.folder / ".trace")) as store:
        assert not any(secret.encode() in store.objects.read(o) for o in store.objects.iterate())


WRITER = """
import os, sys
from trace_store import Repo
with Repo.open(".", author="ada") as repo:
    number = 0
    while not os.path.exists("stop"):
        repo.append("user", f"{sys.argv[1]} {number}")
        os.write(1, f"{sys.argv[1]} {number}\\n".encode())
        number += 1
"""
ROUNDS, WRITERS = (int(os.environ.get(f"TRACE_TEST_SWEEP_{n}", 2)) for n in ("ROUNDS", "WRITERS"))


def test_commits_that_came_back_beside_the_branch_are_named_until_merged(project: Project) -> None:
    with Repo.open(project.folder, author="ada") as repo:
        mine = repo.append("user", "kept aside").oid
    project.says("update-ref", "refs/trash/recovered/heads/main", str(mine))
    project.says("reset", "--hard", "HEAD^")
    project.append("another way")
    assert "recovered: 1 commit not on the branch" in project.says("status")
    assert "info ref-recovered" in project.says("fsck")
    project.says("merge", "refs/trash/recovered/heads/main")
    assert "kept aside" in project.says("compile", "--format", "text")
    assert "recovered:" not in project.says("status")
    assert "ref-recovered" not in project.says("fsck")


@pytest.mark.timeout(60 + 60 * ROUNDS)
@pytest.mark.parametrize("kills", [False, True], ids=["", "kills"])
def test_case_82_nothing_acknowledged_is_lost(built: Project, tmp_path: Path, kills: bool) -> None:
    """Writers append while all is sealed and git removes what it never had; one of them may be killed then."""
    for round_ in range(ROUNDS):
        project = built.copy(tmp_path / f"round{round_}")
        logs = [tmp_path / f"{round_}.{number}" for number in range(WRITERS)]
        writers = [_writer(project.folder, log) for log in logs]
        try:
            _wait_for_more(logs)
            for _ in range(2):
                project.trace("seal")
                project.git(
                    "clean", "-q", "-fdx", ".trace", code=None
                )  # files may come while it runs
                _wait_for_more(logs)
            if kills:
                writers[0].kill()
                _wait_for_more(logs[1:])
        finally:
            (project.folder / "stop").touch()
            codes = [each.wait() for each in writers]
        assert codes[kills:] == [0] * (WRITERS - kills)
        with Repo.open(project.folder) as repo:
            kept = {message.text for message in repo.compile().messages}
            for ref in repo.status().recovered:
                kept |= {message.text for message in repo.compile(ref).messages}
        assert {text for log in logs for text in log.read_text().splitlines()} <= kept
        assert project.trace("fsck").code == 0


def _writer(folder: Path, log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as output:
        return subprocess.Popen(
            [sys.executable, "-c", WRITER, log.name],
            cwd=folder,
            stdout=output,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )


def _wait_for_more(logs: list[Path]) -> None:
    """Wait until each writer has acknowledged something since now."""
    before, until = [log.stat().st_size for log in logs], time.monotonic() + 60
    while any(log.stat().st_size == size for log, size in zip(logs, before, strict=True)):
        assert time.monotonic() < until, "a writer has ended"
        time.sleep(0.05)


def table() -> Iterator[str]:
    """Yield the lines of a Markdown table: operations by commands, with exit codes and what is said."""
    commands = [*READING, "clone: log", "clone: fsck"]
    yield f"| git | {' | '.join(commands)} |"
    yield "|---" * (len(commands) + 1) + "|"
    with tempfile.TemporaryDirectory() as folder:
        built = build(Path(folder) / "built")
        for name, operation in OPERATIONS.items():
            (Path(folder) / name).mkdir()
            project = built.copy(Path(folder) / name / "project")
            operation(project)
            done = [project.trace(*words) for words in READING.values()]
            project.commit("what came back")
            clone = project.clone("clone")
            done += [clone.trace("log"), clone.trace("fsck")]
            cells = []
            for each in done:
                notes = [n for n in each.err.splitlines() if "restored" in n or "error" in n]
                cells.append(" ".join([str(each.code), *(n.split(";")[0] for n in notes)]))
            yield f"| {name} | {' | '.join(cells)} |"


if __name__ == "__main__":
    for line in table():
        print(line, flush=True)
