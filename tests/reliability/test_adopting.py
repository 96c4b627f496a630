"""After git rewinds an open repository, nothing is written until `trace adopt`."""

from __future__ import annotations

import io
import shutil
from pathlib import Path

import pytest

from tests.support.command_line import Outcome
from tests.support.git import git
from tests.support.subjects import upkeep
from trace_cli.main import main
from trace_cli.runtime import Invocation
from trace_store import Repo
from trace_store.base.environment import Environment
from trace_store.errors import RewoundError
from trace_store.maintenance.fsck import fsck
from trace_store.maintenance.fsck_objects import ERROR
from trace_store.store.store import Store

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

MAIN = "refs/heads/main"
RESCUED = "refs/trash/recovered/heads/main"


def run(folder: Path, *words: str) -> Outcome:
    """Run a command in another terminal."""
    out, err = io.BytesIO(), io.BytesIO()
    here = Invocation(environment=Environment(author="Ada"), output=out, error=err, terminal=False)
    code = main(["--dir", str(folder / ".trace"), *words], here)
    return Outcome(code, out.getvalue(), err.getvalue().decode())


class Project:
    """A folder in git, and an agent that has its repository open all the time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        git(folder, "init", "-q", "-b", "code", ".")
        self.agent = Repo.init(folder)
        self.say("one")
        self.commit("one")
        git(folder, "branch", "earlier")
        self.say("two")
        self.commit("two")

    def say(self, text: str, *, seal: bool = True) -> None:
        self.agent.append("user", text)
        if seal:
            self.agent.seal()

    def commit(self, text: str) -> None:
        git(self.folder, "add", "-A")
        git(self.folder, "commit", "-q", "-m", text)

    def files(self) -> dict[str, bytes]:
        """Return the content of all files of the repository."""
        root = self.folder / ".trace"
        found = (path for path in root.rglob("*") if path.is_file())
        return {str(path.relative_to(root)): path.read_bytes() for path in found}

    def refuses(self) -> RewoundError:
        """Assert that the agent writes nothing, and return its error."""
        before = self.files()
        with pytest.raises(RewoundError) as caught:
            self.agent.append("user", "on top of what nobody has seen")
        assert self.files() == before
        return caught.value

    def texts(self, repo: Repo | None = None) -> list[str]:
        """Return the texts of main, oldest first; by default read by a new process."""
        if repo is not None:
            return [message.text for message in repo.compile().messages]
        with Repo.open(self.folder, create=False) as newcomer:
            return self.texts(newcomer)

    def sound(self) -> bool:
        with Store.open(str(self.folder / ".trace")) as store:
            return not [each for each in fsck(store) if each.severity == ERROR]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


TAKEN_BACK = {
    "switch": [["switch", "-q", "earlier"]],
    "checkout of an older commit": [["checkout", "-q", "HEAD~1"]],
    "reset": [["reset", "-q", "--hard", "HEAD~1"]],
}


@pytest.mark.parametrize("words", TAKEN_BACK.values(), ids=TAKEN_BACK)
def test_a_process_refuses_to_go_on_from_what_git_took_back(
    project: Project, words: list[list[str]]
) -> None:
    had = project.agent.store.refs.read(MAIN)
    for each in words:
        git(project.folder, *each)
    error = project.refuses()
    assert error.code == "store-rewound"
    assert (error.ref, error.before) == (MAIN, had)
    assert error.now == project.agent.store.refs.read(MAIN) != had
    assert "refs/heads/main was at" in error.message
    project.refuses()
    report = upkeep(project.agent.store).adopt()
    assert [name for name, _, _ in report.changed] == [MAIN]
    assert report.kept == ((RESCUED, had),), "the process has it open still"
    with Repo.open(project.folder, create=False) as repo:
        assert [m.text for m in repo.compile(RESCUED).messages] == ["one", "two"]
    project.say("three")
    assert project.texts() == project.texts(project.agent) == ["one", "three"]
    assert project.sound()


def test_trace_adopt_in_another_terminal_lets_the_process_go_on(project: Project) -> None:
    git(project.folder, "switch", "-q", "earlier")
    project.refuses()
    done = run(project.folder, "adopt")
    assert done.code == 0
    assert "refs/heads/main is at" in done.text
    assert "is missing" in done.err, "git has it, and brings it back"
    project.say("three")
    assert project.texts() == ["one", "three"]
    git(project.folder, "checkout", "-q", "-f", "code")
    assert run(project.folder, "log").code == 0
    assert project.sound()


def test_commands_refuse_nothing_and_let_nobody_else_go_on(project: Project) -> None:
    """Between commands the files are the truth; one that seals has accepted them for itself alone."""
    git(project.folder, "switch", "-q", "earlier")
    done = run(project.folder, "commit", "--user", "by hand")
    assert done.code == 0
    assert "git moved refs/heads/main" in done.err
    project.refuses()
    assert run(project.folder, "adopt", "-q").code == 0
    project.say("three")
    assert project.texts() == ["one", "by hand", "three"]


def test_an_adoption_is_no_leave_for_what_git_takes_back_later(project: Project) -> None:
    assert run(project.folder, "adopt").code == 0
    git(project.folder, "switch", "-q", "earlier")
    project.refuses()


def test_what_comes_back_before_the_next_commit_is_not_missed(project: Project) -> None:
    git(project.folder, "switch", "-q", "earlier")
    git(project.folder, "switch", "-q", "code")
    project.say("three")
    project.say("four")
    git(project.folder, "stash", "-q", "-u")
    project.refuses()
    project.texts()  # git never had these messages; the next seal restores them
    project.say("five")
    assert project.texts() == ["one", "two", "three", "four", "five"]


def test_unsealed_work_goes_on_its_own_line(project: Project) -> None:
    """Both moved: nothing is taken back from who has moved a ref since the last seal."""
    project.say("unsealed", seal=False)
    git(project.folder, "switch", "-q", "earlier")
    own = project.agent.store.refs.read(MAIN)
    project.say("goes on")
    log = project.agent.log()
    assert next(log).oid == project.agent.store.refs.read(MAIN)
    assert next(log).oid == own
    git(project.folder, "switch", "-q", "code")
    assert project.texts() == ["one", "two", "unsealed", "goes on"]


def test_a_pull_that_goes_forward_is_no_rewind(project: Project, tmp_path: Path) -> None:
    other = tmp_path / "other"
    git(tmp_path, "clone", "-q", str(project.folder), str(other))
    with Repo.open(other, create=False) as bob:
        bob.append("user", "bob")
    git(other, "add", "-A")
    git(other, "commit", "-q", "-m", "bob")
    git(project.folder, "pull", "-q", "--ff-only", str(other), "code")
    project.say("three")
    assert project.texts() == ["one", "two", "bob", "three"]


def test_what_git_clean_deletes_is_refused_and_told(project: Project) -> None:
    project.say("sealed, and not in git")
    assert len(project.texts(project.agent)) == 3
    git(project.folder, "clean", "-q", "-fdx")
    assert project.refuses().now is None, "git clean leaves the earlier tip marked as deleted"
    git(project.folder, "checkout", "-q", "--", ".trace")
    assert project.refuses().now is not None
    done = run(project.folder, "adopt", "--keep-mine")
    assert "no ref had moved" in done.err, "git clean took along what tells of it"
    project.refuses()
    assert upkeep(project.agent.store).adopt(keep_mine=True).gone == (), (
        "the process can read it still"
    )
    project.say("four")
    assert project.texts() == ["one", "two", "sealed, and not in git", "four"]
    assert project.sound()


@pytest.fixture
def taken_back(project: Project) -> Project:
    """A ref that was taken back while its commits stay here, as a copying tool may leave it."""
    folder = project.folder / ".trace" / MAIN
    tip = project.agent.store.refs.read(MAIN)
    first = next(entry.oid for entry in reversed(list(project.agent.log())))
    (folder / str(tip)).rename(folder / str(first))
    project.refuses()
    return project


@pytest.mark.parametrize("by", ["command", "library"])
def test_what_was_there_before_is_kept(taken_back: Project, by: str) -> None:
    error = taken_back.refuses()
    had = error.before
    if by == "command":
        assert "refs/trash/recovered/heads/main" in run(taken_back.folder, "adopt").text
    else:
        assert upkeep(taken_back.agent.store).adopt().kept == ((RESCUED, had),)
    assert taken_back.agent.store.refs.read(RESCUED) == had
    taken_back.say("three")
    assert taken_back.texts() == ["one", "three"]
    assert taken_back.sound()


@pytest.mark.parametrize("by", ["command", "library"])
def test_keep_mine_goes_back_to_what_was_there(taken_back: Project, by: str) -> None:
    if by == "command":
        done = run(taken_back.folder, "adopt", "--keep-mine")
        assert "is back at" in done.text
    else:
        report = upkeep(taken_back.agent.store).adopt(keep_mine=True)
        assert report.kept == (), "what was on the disk lies in the past of what is there now"
    taken_back.say("three")
    assert taken_back.texts() == ["one", "two", "three"]
    assert taken_back.sound()


def test_keep_mine_keeps_what_was_on_the_disk(taken_back: Project) -> None:
    run(taken_back.folder, "commit", "--user", "by hand")
    taken_back.refuses()
    report = upkeep(taken_back.agent.store).adopt(keep_mine=True)
    assert [name for name, _ in report.kept] == [RESCUED]
    taken_back.say("three")
    assert taken_back.texts() == ["one", "two", "three"]
    with Repo.open(taken_back.folder, create=False) as repo:
        assert [m.text for m in repo.compile(RESCUED).messages] == ["one", "by hand"]


def test_what_another_process_did_is_no_rewind(project: Project) -> None:
    """A branch that was reset or deleted by a command is gone on from, sealed or not."""
    first = next(entry.oid for entry in reversed(list(project.agent.log())))
    run(project.folder, "update-ref", MAIN, str(first))
    run(project.folder, "seal", "-q")
    for _ in range(3):
        run(project.folder, "commit", "--user", "more")
    run(project.folder, "update-ref", MAIN, str(first))
    run(project.folder, "seal", "-q")
    run(project.folder, "commit", "--user", "other")
    project.say("three")
    assert project.texts() == ["one", "other", "three"]


def test_a_repository_in_memory_has_nothing_to_adopt() -> None:
    report = upkeep(Repo.memory().store).adopt()
    assert (report.changed, report.kept, report.gone) == ((), (), ())
