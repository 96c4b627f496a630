"""`.trace/` in a real git repository: clone, merge, switch, stash, clean."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from tests.store.support.histories import (
    MAIN,
    OTHER,
    append,
    codes,
    errors,
    line,
    main_line,
    move,
    pack_paths,
    put,
    reopen,
)
from tests.support.git import git
from trace_store.base.oid import ObjectId
from trace_store.maintenance.seal import seal
from trace_store.refs import summary
from trace_store.refs.reflog import MOVED_BY_GIT
from trace_store.store.store import Store

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

BRANCH = "trunk"


def commit_all(folder: Path, message: str = "work") -> None:
    git(folder, "add", ".trace")
    git(folder, "commit", "-q", "--allow-empty", "-m", message)


def project(folder: Path) -> Store:
    """Create a git repository with a store in it."""
    folder.mkdir()
    git(folder, "init", "-q", "-b", BRANCH)
    return Store.init(str(folder), durability="fast")


def clone(source: Path, target: Path, *options: str) -> Store:
    git(source.parent, "clone", "-q", *options, str(source), str(target))
    return reopen(target)


def sealed(store: Store, *texts: str, ref: str = MAIN) -> None:
    for text in texts:
        append(store, text, ref)
    seal(store)


def merge(folder: Path, other: Path) -> None:
    """Fetch and merge another clone without a merge driver; a conflict fails the test."""
    git(folder, "fetch", "-q", str(other), BRANCH)
    git(folder, "-c", "merge.renames=true", "merge", "-q", "-m", "merge", "FETCH_HEAD")
    assert git(folder, "status", "--porcelain", ".trace") == ""


def test_only_what_is_shared_is_tracked(tmp_path: Path) -> None:
    store = project(tmp_path / "a")
    sealed(store, "one")
    store.refs.set_head(OTHER)
    append(store, "unsealed")
    commit_all(tmp_path / "a")
    tracked = git(tmp_path / "a", "ls-files").split()
    kinds = {"/".join(path.split("/")[1:3]) for path in tracked}
    assert kinds == {".gitignore", ".gitattributes", "config", "objects/pack", "refs/heads"}
    assert not [path for path in tracked if path.endswith(".idx")]
    assert git(tmp_path / "a", "status", "--porcelain") == ""


def test_a_users_own_ignore_rules_do_not_hide_objects(tmp_path: Path) -> None:
    store = project(tmp_path / "a")
    (tmp_path / "a" / ".gitignore").write_text("*.pack\nheads\nobjects\n*.idx\ncore\n")
    sealed(store, "one")
    commit_all(tmp_path / "a")
    tracked = git(tmp_path / "a", "ls-files", ".trace")
    assert ".pack" in tracked
    assert "refs/heads/main/" in tracked


@pytest.mark.parametrize("conversion", ["true", "input", "false"])
def test_a_clone_with_line_end_conversion_is_clean(tmp_path: Path, conversion: str) -> None:
    """A clone with core.autocrlf=true passes fsck."""
    store = project(tmp_path / "a")
    sealed(store, *(f"line {n}\nanother\r\nline\n" * 20 for n in range(5)))
    store.objects.write(store.objects.read(next(store.objects.iterate())))
    commit_all(tmp_path / "a")
    copy = clone(
        tmp_path / "a", tmp_path / "b", "-c", f"core.autocrlf={conversion}", "-c", "core.eol=crlf"
    )
    assert main_line(copy) == main_line(store)
    assert codes(copy) == set()
    assert copy.refs.moved_by_git() == []
    append(copy, "goes on")
    seal(copy)
    assert errors(copy) == []


def test_two_clones_append_to_the_same_branch(tmp_path: Path) -> None:
    """git merges without conflicts; both branches are there and the ref is diverged."""
    a = project(tmp_path / "a")
    sealed(a, "shared")
    commit_all(tmp_path / "a")
    b = clone(tmp_path / "a", tmp_path / "b")
    sealed(a, "a1", "a2")
    sealed(b, "b1")
    commit_all(tmp_path / "a")
    commit_all(tmp_path / "b")
    own = a.refs.read(MAIN)
    merge(tmp_path / "a", tmp_path / "b")
    assert a.refs.diverged() == [MAIN]
    assert {line(a, tip)[-1] for tip in a.refs.tips(MAIN)} == {"a2", "b1"}
    assert a.refs.read(MAIN) == own, "an append continues this working copy's own tip"
    sealed(a, "a3")
    assert main_line(a) == ["shared", "a1", "a2", "a3"]
    assert a.refs.diverged() == [MAIN]
    assert codes(a) == {"ref-diverged"}
    commit_all(tmp_path / "a")
    merge(tmp_path / "b", tmp_path / "a")
    assert main_line(b) == ["shared", "b1"]
    assert {line(b, tip)[-1] for tip in b.refs.tips(MAIN)} == {"a3", "b1"}
    third = clone(tmp_path / "b", tmp_path / "c")
    assert set(third.refs.tips(MAIN)) == set(b.refs.tips(MAIN))
    assert errors(third) == []


def join_tips(store: Store) -> ObjectId:
    """Create the commit that joins all tips of main."""
    from trace_store.objects.commit import Commit

    tips = store.refs.tips(MAIN)
    content = Commit.decode(store.objects.read(tips[0])).meta
    data = Commit(list(tips), "t", 1, [], message="join", meta=content).encode()
    return put(store, data, MAIN)


def test_a_diverged_ref_is_joined_by_a_commit(tmp_path: Path) -> None:
    a = project(tmp_path / "a")
    sealed(a, "shared")
    commit_all(tmp_path / "a")
    b = clone(tmp_path / "a", tmp_path / "b")
    sealed(a, "a1")
    sealed(b, "b1")
    commit_all(tmp_path / "a")
    commit_all(tmp_path / "b")
    merge(tmp_path / "a", tmp_path / "b")
    joined = join_tips(a)
    assert a.refs.tips(MAIN) == (joined,)
    seal(a)
    assert os.listdir(tmp_path / "a/.trace" / MAIN) == [str(joined)]
    commit_all(tmp_path / "a")
    merge(tmp_path / "b", tmp_path / "a")
    assert b.refs.tips(MAIN) == (joined,)
    assert b.refs.diverged() == []


def test_branches_are_deleted_and_moved_on_both_sides(tmp_path: Path) -> None:
    """No conflict; a branch deleted here and moved there is moved."""
    a = project(tmp_path / "a")
    for name in ("both", "mine", "theirs", "stays", "x/y"):
        sealed(a, name, ref=f"refs/heads/{name}")
    commit_all(tmp_path / "a")
    b = clone(tmp_path / "a", tmp_path / "b")
    move(a, "refs/heads/both", None)
    move(b, "refs/heads/both", None)
    move(a, "refs/heads/mine", None)
    append(b, "moved", "refs/heads/mine")
    append(a, "moved", "refs/heads/theirs")
    move(b, "refs/heads/theirs", None)
    move(b, "refs/heads/x/y", None)
    append(a, "new in a", "refs/heads/x")
    append(b, "new in b", "refs/heads/x/z")
    for store, folder in ((a, "a"), (b, "b")):
        seal(store)
        commit_all(tmp_path / folder)
    merge(tmp_path / "a", tmp_path / "b")
    merge(tmp_path / "b", tmp_path / "a")
    for store in (a, b):
        found = {
            name.removeprefix("refs/heads/"): line(store, tip) for name, tip in store.refs.iterate()
        }
        assert found == {
            "mine": ["mine", "moved"],
            "theirs": ["theirs", "moved"],
            "stays": ["stays"],
            "x": ["new in a"],
            "x/z": ["new in b"],
        }
        assert store.refs.diverged() == []
        assert errors(store) == []


def test_a_reset_merged_with_an_advance_becomes_the_advance(tmp_path: Path) -> None:
    a = project(tmp_path / "a")
    sealed(a, "one", "two")
    commit_all(tmp_path / "a")
    b = clone(tmp_path / "a", tmp_path / "b")
    one = a.refs.reflog(MAIN)[-1].new
    move(a, MAIN, one)
    seal(a)
    sealed(b, "three")
    commit_all(tmp_path / "a")
    commit_all(tmp_path / "b")
    merge(tmp_path / "a", tmp_path / "b")
    assert main_line(a) == ["one", "two", "three"]
    assert [(name, old) for name, old, _ in a.refs.moved_by_git()] == [(MAIN, one)]
    seal(a)
    assert len(os.listdir(tmp_path / "a/.trace" / MAIN)) == 1
    assert errors(a) == []


def test_a_tag_with_two_values_is_a_conflict_until_it_is_set(tmp_path: Path) -> None:
    """Only branches fast-forward."""
    tag = "refs/tags/v1"
    a = project(tmp_path / "a")
    sealed(a, "one")
    commit_all(tmp_path / "a")
    b = clone(tmp_path / "a", tmp_path / "b")
    first = a.refs.read(MAIN)
    move(a, tag, first)
    second = append(b, "two")
    move(b, tag, second)
    for store, folder in ((a, "a"), (b, "b")):
        seal(store)
        commit_all(tmp_path / folder)
    merge(tmp_path / "a", tmp_path / "b")
    assert set(a.refs.tips(tag)) == {first, second}
    assert codes(a) == {"ref-conflict"}
    move(a, tag, second)
    assert a.refs.tips(tag) == (second,)
    seal(a)
    assert a.refs.tips(tag) == reopen(tmp_path / "a").refs.tips(tag) == (second,)


def test_packs_folded_on_both_sides_merge(tmp_path: Path) -> None:
    """Packs have unique names and never change, so git's rename detection mixes nothing."""
    a = project(tmp_path / "a")
    for number in range(4):
        sealed(a, f"shared {number} " * 50)
    commit_all(tmp_path / "a")
    b = clone(tmp_path / "a", tmp_path / "b")
    from trace_store.maintenance.repack import pack

    for store, folder in ((a, "a"), (b, "b")):
        sealed(store, f"{folder} " * 50)
        store.objects.write(store.objects.read(next(store.objects.iterate())))
        pack(store)
        commit_all(tmp_path / folder)
    merge(tmp_path / "a", tmp_path / "b")
    assert errors(a) == []
    assert len(a.refs.tips(MAIN)) == 2


def test_few_packs_are_added_between_two_commits_of_the_user(tmp_path: Path) -> None:
    a = project(tmp_path / "a")
    known: set[Path] = set()
    for turn in range(3):
        for number in range(10):
            sealed(a, f"{turn}.{number}")
        now = set(pack_paths(tmp_path / "a"))
        assert known <= now, "a pack that git tracks was folded"
        assert len(now - known) <= 3
        commit_all(tmp_path / "a")
        known = now
    assert errors(a) == []


@pytest.mark.parametrize("unsealed", [False, True])
def test_switch_stash_and_pull_between_commands(tmp_path: Path, unsealed: bool) -> None:
    """Between commands the files count: moves by git are reported, and work continues."""
    folder = tmp_path / "a"
    store = project(folder)
    sealed(store, "one")
    commit_all(folder)
    git(folder, "switch", "-q", "-c", "topic")
    sealed(store, "two")
    topic = store.refs.read(MAIN)
    commit_all(folder)
    store.close()

    git(folder, "switch", "-q", BRANCH)
    with reopen(folder) as back:
        assert main_line(back) == ["one"]
        assert [(name, old) for name, old, _ in back.refs.moved_by_git()] == [(MAIN, topic)]
        append(back, "three")
        assert main_line(back) == ["one", "three"]
        if not unsealed:
            seal(back)
            assert back.refs.moved_by_git() == []
            assert [entry.message for entry in back.refs.reflog(MAIN)[:2]] == [
                "append three",
                MOVED_BY_GIT,
            ]
            commit_all(folder)
    git(folder, "switch", "-q", "topic")
    with reopen(folder) as again:
        tips = {tuple(line(again, tip)) for tip in again.refs.tips(MAIN)}
        if unsealed:
            assert tips == {("one", "two"), ("one", "three")}, "both moved: both are tips"
        else:
            assert tips == {("one", "two")}
        assert errors(again) == []


def test_stash_takes_sealed_work_and_brings_it_back(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    store = project(folder)
    sealed(store, "one")
    commit_all(folder)
    sealed(store, "two")
    git(folder, "stash", "-q", "-u")
    with reopen(folder) as during:
        assert main_line(during) == ["one"]
        assert errors(during) == []
    git(folder, "stash", "pop", "-q")
    with reopen(folder) as after:
        assert main_line(after) == ["one", "two"]
        assert codes(after) == set()


def test_pull_moves_the_branch_forward(tmp_path: Path) -> None:
    a = project(tmp_path / "a")
    sealed(a, "one")
    commit_all(tmp_path / "a")
    b = clone(tmp_path / "a", tmp_path / "b")
    sealed(a, "two", "three")
    commit_all(tmp_path / "a")
    git(tmp_path / "b", "pull", "-q", "--ff-only")
    assert main_line(b) == ["one", "two", "three"]
    append(b, "four")
    seal(b)
    assert main_line(b) == ["one", "two", "three", "four"]
    assert b.refs.diverged() == []
    assert len(os.listdir(tmp_path / "b/.trace" / MAIN)) == 1


def test_a_branch_that_is_not_at_hand_is_looked_at_after_a_pull(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With many refs (here: more than one), settled refs are read again only after git was at work."""
    monkeypatch.setattr(summary, "ALWAYS_READ", 0)
    a = project(tmp_path / "a")
    sealed(a, "one")
    sealed(a, "two", ref=OTHER)
    commit_all(tmp_path / "a")
    b = clone(tmp_path / "a", tmp_path / "b")
    assert b.refs.moved_by_git() == []
    sealed(b, "three")
    commit_all(tmp_path / "b")
    known = b.refs.read(OTHER)
    time.sleep(0.1)
    assert b.refs.moved_by_git() == []
    assert (tmp_path / "b/.trace/cache/refs").exists()
    sealed(a, "four", ref=OTHER)
    commit_all(tmp_path / "a")
    git(tmp_path / "b", "pull", "-q", "--no-rebase", "--no-edit")
    for _ in range(2):
        with reopen(tmp_path / "b") as again:
            assert [(name, old) for name, old, _ in again.refs.moved_by_git()] == [(OTHER, known)]
        time.sleep(0.1)
    seal(b)
    assert b.refs.moved_by_git() == []
    assert errors(b) == []


@pytest.mark.parametrize("unsealed", [False, True])
def test_clean_between_commands(tmp_path: Path, unsealed: bool) -> None:
    """`git clean -fdx` removes unsealed work, as documented; acknowledged and sealed work survives."""
    folder = tmp_path / "a"
    store = project(folder)
    sealed(store, "one")
    commit_all(folder)
    append(store, "two")
    if not unsealed:
        seal(store)
        git(folder, "add", ".trace")
    assert store.unsealed().transactions == int(unsealed)
    store.close()
    git(folder, "clean", "-q", "-fdx")
    with reopen(folder) as again:
        assert main_line(again) == (["one"] if unsealed else ["one", "two"])
        assert errors(again) == []
        append(again, "after")
        seal(again)
        assert main_line(again)[-1] == "after"
        assert errors(again) == []


def test_clean_under_a_living_writer(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    store = project(folder)
    sealed(store, "one")
    commit_all(folder)
    append(store, "two")
    git(folder, "clean", "-q", "-fdx")
    append(store, "three")
    seal(store)
    assert main_line(reopen(folder)) == ["one", "two", "three"]


def test_a_branch_whose_pack_did_not_come_along_is_incomplete(tmp_path: Path) -> None:
    """A ref whose commit is missing is incomplete, not corrupt, and hides no other ref."""
    a = project(tmp_path / "a")
    sealed(a, "one")
    sealed(a, "other", ref=OTHER)
    missing = "ab" * 32
    path = tmp_path / "a/.trace/refs/heads/elsewhere"
    path.mkdir()
    (path / missing).touch()
    again = reopen(tmp_path / "a")
    assert again.refs.status().incomplete == ["refs/heads/elsewhere"]
    assert main_line(again) == ["one"]
    assert codes(again) == {"ref-incomplete"}
    assert errors(again) == []
    append(again, "two")
    seal(again)
    assert again.refs.read("refs/heads/elsewhere") == bytes.fromhex(missing)
    assert (path / missing).exists()


def test_on_a_branch_without_a_repository_reading_leaves_git_free(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    store = project(folder)
    git(folder, "commit", "-q", "--allow-empty", "-m", "begin")
    git(folder, "switch", "-q", "-c", "feature")
    sealed(store, "one")
    commit_all(folder)
    git(folder, "switch", "-q", BRANCH)
    assert reopen(folder).refs.read(MAIN) is None
    assert git(folder, "status", "--porcelain") == ""
    git(folder, "switch", "-q", "feature")
    assert len(main_line(reopen(folder))) == 1
    assert git(folder, "status", "--porcelain") == ""
    git(folder, "switch", "-q", BRANCH)
    sealed(reopen(folder), "another")
    assert git(folder, "status", "--porcelain") == "?? .trace/\n"
    commit_all(folder)
    tracked = git(folder, "ls-files").split()
    assert {path.split("/")[1] for path in tracked} == {
        *(".gitignore", ".gitattributes", "config", "objects", "refs"),
    }
