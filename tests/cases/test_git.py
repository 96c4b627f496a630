"""What git takes away before it ever had it: sealed packs and tips of refs come back."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Collection
from pathlib import Path
from random import Random

import pytest

from tests.support.command_line import Run, Trace
from tests.support.git import git as git_in
from trace_store import Image, Repo, maintenance
from trace_store.base.oid import ObjectId
from trace_store.disk import git as git_program
from trace_store.errors import BrokenHistoryError, RefLostError
from trace_store.maintenance import second_copies
from trace_store.objects.codec import links
from trace_store.store.store import Store

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
WRITERS, COMMITS = (int(os.environ.get(f"TRACE_TEST_GIT_{n}", 4)) for n in ("WRITERS", "COMMITS"))


git = functools.partial(git_in, ".")


@pytest.fixture
def project(ok: Run) -> Run:
    """A project with one commit of Trace that git has."""
    ok("commit", "--user", "base")
    git("init", "-q", "-b", "main")
    git("add", ".trace")
    git("commit", "-qm", "1")
    return ok


def said(trace: Trace) -> list[str]:
    outcome = trace("log")
    assert outcome.code == 0, outcome.err
    return [line.rpartition("user: ")[2] for line in reversed(outcome.lines)]


TAKEN = {
    "clean": ["clean", "-fdq"],
    "stash -u": ["stash", "-qu"],
    "checkout": ["checkout", "-q", "--", ".trace"],
    "reset": ["reset", "-q", "--hard"],
    "restore": ["restore", ".trace"],
}


@pytest.mark.parametrize("words", TAKEN.values(), ids=TAKEN)
def test_case_50_what_git_never_had_survives(project: Run, words: list[str]) -> None:
    project("commit", "--user", "one")
    project("commit", "-q", "--user", "two")
    git(*words)
    outcome = project("commit", "-q", "--user", "next")
    assert said(project) == ["base", "one", "two", "next"]
    assert project("fsck").err == "no problems found\n"
    # All of these commands except the first leave untracked files alone.
    taken_away = words[0] == "clean" or "-qu" in words
    assert ("restored after git removed it" in outcome.err) is taken_away


def test_case_50_also_before_git_has_anything(ok: Run) -> None:
    git("init", "-q")
    ok("commit", "--user", "base")
    git("clean", "-fdq")
    assert said(ok) == ["base"]
    assert "config" in os.listdir(".trace")


def test_case_50_what_was_added_and_never_committed_survives(
    project: Run,
) -> None:
    project("commit", "--user", "one")
    git("add", ".trace")
    git("reset", "-q", "--hard")
    assert said(project) == ["base", "one"]


def add_by_library(_: Run) -> None:
    with Repo.open(".") as repo:
        repo.append("user", "next")


WRITERS_OF_NEXT = {
    "commit -q": lambda ok: ok("commit", "-q", "--user", "next"),
    "commit --no-seal": lambda ok: ok("commit", "--no-seal", "--user", "next"),
    "the library": add_by_library,
}
writes_next = pytest.mark.parametrize("write", WRITERS_OF_NEXT.values(), ids=list(WRITERS_OF_NEXT))


def test_case_50_a_quiet_commit_leaves_nothing_behind(project: Run) -> None:
    project("commit", "-q", "--user", "one")
    git("add", "-A")
    git("commit", "-qm", "2")
    git("clone", "-q", ".", "copy")
    assert project("-C", "copy", "log").lines[0].endswith("user: one")


def test_case_50_a_loop_is_sealed_at_its_end(project: Run) -> None:
    for number in range(3):
        project("commit", "--no-seal", "--user", str(number))
    assert not git("status", "--porcelain", ".trace")
    assert project("seal").text.startswith("sealed 3 changes")


@writes_next
def test_case_50_a_branch_without_files_goes_on(ok: Run, write: Callable[..., object]) -> None:
    git("init", "-q", "-b", "main")
    git("add", ".trace")
    git("commit", "-qm", "no branch yet")
    ok("commit", "--user", "one")
    git("clean", "-fdq")
    write(ok)
    assert said(ok) == ["one", "next"]


@writes_next
def test_case_50_a_tip_is_put_back_whose_pack_git_has(
    project: Run, write: Callable[..., object]
) -> None:
    project("switch", "-c", "idea")
    project("commit", "--user", "one")
    git("add", ".trace/objects")
    git("commit", "-qm", "packs alone")
    project("gc")
    git("clean", "-fdq")
    write(project)
    assert said(project) == ["base", "one", "next"]


@writes_next
def test_case_50_a_tip_that_git_has_is_put_back_where_nothing_is_remembered(
    project: Run, write: Callable[..., object]
) -> None:
    project("commit", "--user", "one")
    git("clean", "-fdxq")
    write(project)
    assert said(project) == ["base", "next"]


@writes_next
def test_case_50_a_branch_that_cannot_be_put_back_gets_no_second_root(
    project: Run, write: Callable[..., object]
) -> None:
    project("commit", "--user", "one")
    for name in ("refs", "objects/pack", "local/packs"):
        shutil.rmtree(f".trace/{name}")
    with pytest.raises((AssertionError, RefLostError), match="refs/heads/main are gone"):
        write(project)
    project("commit", "--branch", "other", "--user", "x")
    with pytest.raises((AssertionError, RefLostError), match="refs/heads/main are gone"):
        write(project)
    project("seal")
    write(project)
    assert said(project) == ["next"]


@writes_next
def test_case_50_a_branch_that_git_took_away_on_purpose_may_begin_anew(
    ok: Run, write: Callable[..., object]
) -> None:
    git("init", "-q", "-b", "main")
    git("add", ".trace")
    git("commit", "-qm", "no branch yet")
    ok("commit", "--user", "one")
    git("add", ".trace")
    git("commit", "-qm", "one")
    git("checkout", "-q", "HEAD~1")
    write(ok)
    assert said(ok) == ["next"]


def test_case_50_what_git_has_follows_git(project: Run) -> None:
    project("commit", "--user", "one")
    git("add", ".trace")
    git("commit", "-qm", "2")
    git("checkout", "-q", "-b", "old", "HEAD~1")
    assert said(project) == ["base"]
    assert not git("status", "--porcelain")
    git("checkout", "-q", "main")
    assert said(project) == ["base", "one"]
    git("reset", "-q", "--hard", "HEAD~1")
    assert said(project) == ["base"]


OUTER = {
    "ident": "* ident",
    "ident, by the folder": ".trace/** ident",
    "lfs, packs": "*.pack filter=lfs diff=lfs merge=lfs -text",
    "lfs, all": "* filter=lfs",
    "encoding": "* working-tree-encoding=UTF-16\n.gitattributes !working-tree-encoding",
    "line ends": "* text=auto eol=crlf",
    "archives": "* export-subst",
}
BINARY = (
    Random(1).randbytes(40_000) + b"\r\n$Id: abc $\n$Format:%H$\r\n" + Random(2).randbytes(9_000)
)


def carried(folder: str) -> dict[str, bytes]:
    """Return the tracked files of a repository: path to bytes."""
    names = git("-C", folder, "ls-files", "-z", ".trace").split("\0")
    return {name: Path(folder, name).read_bytes() for name in names if name}


@pytest.mark.parametrize("attributes", OUTER.values(), ids=OUTER)
def test_case_42_git_leaves_the_bytes_alone(ok: Run, trace: Trace, attributes: str) -> None:
    git("init", "-q", "-b", "main")
    for way, change in (("clean", "tr a b"), ("smudge", "tr a c"), ("required", "true")):
        git("config", f"filter.lfs.{way}", change)
    Path(".gitattributes").write_text(attributes + "\n", encoding="utf-8")
    with Repo.open(".") as repo:
        repo.append("user", [Image("image/png", BINARY)])
    config = Path(".trace/config")
    config.write_text(config.read_text() + "# $Id: abc $ $Format:%H$\n")
    git("add", ".")
    git("commit", "-qm", "x")
    git("clone", "-q", ".", "copy")
    git("archive", "-o", "x.tar", "HEAD")
    shutil.unpack_archive("x.tar", "archive")
    own = carried(".")
    assert len(own) >= 5
    assert carried("copy") == own
    assert {name: Path("archive", name).read_bytes() for name in own} == own
    assert ok("-C", "copy", "fsck").err == "no problems found\n"
    assert "git-" not in trace("doctor").text


def test_case_42_attributes_that_win_are_named(ok: Run, trace: Trace) -> None:
    git("init", "-q", "-b", "main")
    Path(".git/info/attributes").write_text("*.pack ident\n")
    outcome = trace("doctor")
    assert ".git/info/attributes: `*.pack ident` lets git convert files of .trace" in outcome.text
    advice = outcome.text.partition("add after it: `")[2].partition("`")[0]
    with Path(".git/info/attributes").open("a") as file:
        file.write(advice + "\n")
    assert "ident: unset" in git("check-attr", "ident", ".trace/objects/pack/x.pack")
    ok("doctor")


IGNORED = [
    "config",
    "*.lock",
    "logs/",
    "HEAD",
    "*.pack",
    "objects/",
    "refs/",
    "*.idx",
    "heads",
    ".git*",
]


@pytest.mark.parametrize("patterns", [IGNORED, [".trace/**"], ["*", "!.trace"]], ids=str)
def test_case_42_outer_patterns_hide_nothing(ok: Run, patterns: list[str]) -> None:
    git("init", "-q", "-b", "main")
    ok("commit", "--user", "one", "--branch", "HEAD/logs")
    ok("commit", "--user", "two")
    git("add", ".")
    wanted = git("ls-files", ".trace")
    git("rm", "-rq", "--cached", ".trace")
    Path(".gitignore").write_text("\n".join(patterns) + "\n")
    git("add", ".trace")
    assert git("ls-files", ".trace") == wanted
    assert "/HEAD/logs/" in wanted
    ok("doctor")


@pytest.mark.parametrize("pattern", [".trace", "/.trace/", ".*", "*"])
def test_case_42_a_pattern_that_hides_the_folder_is_named(
    ok: Run, trace: Trace, pattern: str
) -> None:
    git("init", "-q", "-b", "main")
    Path(".gitignore").write_text(pattern + "\n")
    assert f"`{pattern}` makes git ignore .trace" in trace("doctor").text
    assert git("status", "--porcelain", ".trace") == ""


def test_case_50_what_a_bundle_brought_comes_back(
    project: Run, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = str(tmp_path_factory.mktemp("other"))
    project("-C", other, "init", "-q")
    project("-C", other, "commit", "--user", "from afar", "--branch", "side")
    project("-C", other, "bundle", "create", "-q", "side.bundle", "side")
    project("bundle", "import", os.path.join(other, "side.bundle"))
    git("clean", "-fdq", ".trace")
    assert "from afar" in project("log", "side").text


def test_case_50_second_copies_go_once_git_has_the_pack(project: Run) -> None:
    project("commit", "--user", "one")
    assert os.listdir(".trace/local/packs")
    git("add", ".trace")
    git("commit", "-qm", "2")
    project("gc")
    assert os.listdir(".trace/local/packs") == ["config"]


def test_case_50_a_tip_that_git_takes_away_during_a_seal_comes_back(
    project: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    project("branch", "side")
    project("commit", "--user", "ours")
    tips = Path(".trace/refs/heads/main")
    project("commit", "--branch", "side", "--user", "theirs")
    theirs = tips / next(Path(".trace/refs/heads/side").iterdir()).name
    theirs.touch()  # as a merge by git leaves it
    project("seal")
    project("commit", "--no-seal", "--user", "next")
    ours = next(each for each in tips.iterdir() if each != theirs)
    ask = git_program.committed

    def taking(*words: object) -> object:
        theirs.unlink(missing_ok=True)  # after the seal has read the files
        return ask(*words)  # type: ignore[arg-type]

    with Repo.open(".") as repo, monkeypatch.context() as patch:
        patch.setattr(second_copies, "committed", taking)
        ours.unlink()
        maintenance.seal.seal(repo.store)
    assert "2 tips" in project("status").text
    assert theirs.exists()


def test_case_50_nothing_acknowledged_is_lost_under_many_writers(
    project: Run, tmp_path: Path
) -> None:
    code = (
        "import sys; from trace_cli.main import main\n"
        "for n in range(int(sys.argv[2])):\n"
        "    text = f'{sys.argv[1]}-{n}'\n"
        "    for _ in range(20):\n"
        "        if main(['commit', '-q', '--user', text] if n % 2 else ['commit', '--user', text]) == 0:\n"
        "            print('kept', text, flush=True); break\n"
    )
    path = os.pathsep.join(filter(None, sys.path))
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", code, f"w{number}", str(COMMITS)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
        )
        for number in range(WRITERS)
    ]
    turn = 0
    commands = [*TAKEN.values(), ["add", ".trace"], ["commit", "-qm", "more", "--allow-empty"]]
    while any(writer.poll() is None for writer in writers):
        git(*commands[turn % len(commands)], code=None)
        turn += 1
    acknowledged = set()
    for writer in writers:
        out, _ = writer.communicate()
        acknowledged |= {line.split()[1] for line in out.splitlines() if line.startswith("kept")}
    assert len(acknowledged) == WRITERS * COMMITS
    project("seal")
    kept: set[str] = set()
    for tip in {path.name for path in Path(".trace/refs").rglob("*") if len(path.name) == 64}:
        kept |= {line.rpartition("user: ")[2] for line in project("log", tip).lines}
    assert acknowledged <= kept


# --- permanent losses -----------------------------------------------------------------------------


def lose_packs(*, but: Collection[str] = ()) -> None:
    """Remove packs, their second copies, the journals that a seal leaves, and what is known of commits."""
    for folder in ("journal", "index"):
        shutil.rmtree(f".trace/{folder}", ignore_errors=True)
    for folder in ("objects/pack", "local/packs"):
        for path in Path(".trace", folder).glob("*.pack"):
            if path.name not in but:
                path.unlink()


def packs() -> set[str]:
    return {path.name for path in Path(".trace/objects/pack").glob("*.pack")}


SHOWING = {
    "log": ["log"],
    "show": ["show", "HEAD^"],
    "status": ["status"],
    "compile": ["compile", "--format", "text"],
    "export": ["export", "--format", "markdown"],
}


@pytest.fixture
def without_newest(project: Run) -> str:
    """A branch whose newest commit is missing; returns the commit's id."""
    before = packs()
    project("commit", "--user", "one")
    missing = project("rev-parse", "HEAD").text.strip()
    lose_packs(but=before)
    return missing


@pytest.mark.parametrize("words", SHOWING.values(), ids=list(SHOWING))
def test_case_50_readers_show_what_is_whole(
    without_newest: str, trace: Trace, words: list[str]
) -> None:
    outcome = trace(*words)
    assert outcome.code == 12
    assert "base" in outcome.text
    assert f"the newest 1 commit of main (commit {without_newest})" in outcome.err
    assert outcome.err.count("\n") == 1


def test_case_50_readers_show_what_is_whole_from_another_folder(
    without_newest: str, trace: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path.parent)
    outcome = trace("-C", tmp_path.name, "log")
    assert (outcome.code, outcome.text.count("user: base")) == (12, 1)
    assert without_newest in outcome.err


def test_case_50_a_log_ends_where_commits_are_missing(project: Run, trace: Trace) -> None:
    before = packs()
    project("commit", "--user", "one")
    missing = project("rev-parse", "HEAD").text.strip()
    project("commit", "--user", "two")
    with Store.open(".trace") as store:
        tip = store.objects.read(ObjectId.parse(project("rev-parse", "HEAD").text.strip()))
        kept = [tip, *(store.objects.read(oid) for oid in links(tip) if str(oid) != missing)]
    lose_packs(but=before)
    with Store.open(".trace") as store:
        for data in kept:
            store.objects.write(data)
    outcome = trace("log")
    assert outcome.code == 12
    assert [line.rpartition("user: ")[2] for line in outcome.lines] == ["two"]
    assert f"incomplete: commit {missing} is missing, and what came before it" in outcome.err
    outcome = trace("compile", "--format", "text")
    assert (outcome.code, outcome.text.count("base"), outcome.text.count("two")) == (12, 1, 1)
    assert f"1 commit before {project('rev-parse', 'HEAD').text[:12]} on main" in outcome.err


def test_case_50_a_commit_on_what_is_missing_is_refused(without_newest: str, trace: Trace) -> None:
    for words in (["commit", "--user", "next"], ["commit", "--no-seal", "-q", "--user", "next"]):
        outcome = trace(*words)
        assert (outcome.code, outcome.out) == (12, b"")
        assert f"commit {without_newest} is missing" in outcome.err
        assert "trace fsck --repair" in outcome.err
    with Repo.open(".") as repo, pytest.raises(BrokenHistoryError) as caught:
        repo.append("user", "next")
    assert str(caught.value.oid) == without_newest


def test_case_50_repair_goes_on_from_what_is_whole(project: Run, trace: Trace) -> None:
    before = packs()
    project("commit", "--user", "one")
    missing = project("rev-parse", "HEAD").text.strip()
    project("commit", "--user", "two")
    tip = project("rev-parse", "HEAD").text.strip()
    with Store.open(".trace") as store:
        kept = store.objects.read(ObjectId.parse(tip))
    lose_packs(but=before)
    with Store.open(".trace") as store:
        store.objects.write(kept)
    repaired = trace("fsck", "--repair")
    assert f"ref refs/heads/main: was {tip}, whose history is incomplete" in repaired.text
    assert f"lost {missing}" in repaired.text
    assert said(trace) == ["base"]
    project("commit", "--user", "next")
    assert said(trace) == ["base", "next"]
    assert project("rev-parse", "refs/lost-found/heads/main").text.strip() == tip


def test_case_50_where_nothing_is_whole_another_branch_begins(project: Run, trace: Trace) -> None:
    lose_packs()
    shutil.rmtree(".git")
    assert trace("status").code == 12
    assert trace("commit", "--user", "next").code == 12
    trace("fsck", "--repair")
    assert trace("commit", "--user", "next").code == 12
    project("commit", "--branch", "another", "--user", "next")
