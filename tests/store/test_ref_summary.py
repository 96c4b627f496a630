"""The summary of refs reads few files, but equals reading all."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.growth.support.stores import QuickDisk
from tests.store.support.histories import MAIN, append, move, new_store, reopen
from tests.support.subjects import upkeep
from trace_store.base.oid import ObjectId, hash_object
from trace_store.errors import ConcurrencyError, RewoundError, StorageError
from trace_store.maintenance.seal import seal
from trace_store.refs import summary
from trace_store.refs.database import RefDatabase
from trace_store.refs.resolution import is_unexplained
from trace_store.refs.summary import RefStatus, change_stamp
from trace_store.store.store import Store
from trace_store.testing.disks import RecordingDisk

NAMES = [MAIN, *(f"refs/heads/sessions/a/{n}" for n in range(4)), "refs/heads/x", "refs/tags/v1"]


@pytest.fixture(autouse=True)
def no_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cache the summary however few refs there are."""
    monkeypatch.setattr(summary, "ALWAYS_READ", 0)


def facts(standing: RefStatus) -> tuple[Any, ...]:
    return standing.moved, standing.diverged, standing.incomplete, standing.branch_count


def slowly(store: Store) -> tuple[Any, ...]:
    """Return what `facts` returns, computed from all refs."""
    refs = store.refs
    assert isinstance(refs, RefDatabase)
    every = dict(refs.iterate_tips())
    files, published = dict(refs.files.iterate()), store.journal.published
    known = published.tips.all()
    moved = []
    for name in sorted({*files, *known}) if published.stamp is not None else ():
        here, before = files.get(name, ()), known.get(name, ())
        fold = store.journal.fold.refs.get(name)
        if set(here) != set(before) and is_unexplained(here, before, fold):
            now = every.get(name, (None,))[0]
            moved.append((name, before[0] if before else None, now))
    diverged = {name: tips for name, tips in every.items() if len(tips) > 1}
    contains = store.objects.contains
    incomplete = [name for name, tips in every.items() if not all(map(contains, tips))]
    return moved, diverged, incomplete, sum(name.startswith("refs/heads/") for name in every)


def standing(store: Store) -> RefStatus:
    assert isinstance(store.refs, RefDatabase)
    return store.refs.status()


def names_are_right(store: Store, commits: list[ObjectId]) -> bool:
    """Return True if the summary's names for commits equal those from listing all refs."""
    assert isinstance(store.refs, RefDatabase)
    every = list(store.refs.iterate())
    asked = [*commits, *(oid for _, oid in every)]
    named = {oid: [name for name, value in every if value == oid] for oid in asked}
    return store.refs.names_of(asked) == named


class Git:
    """Stands for git: changes tips, and then rewrites its index."""

    def __init__(self, folder: Path) -> None:
        self._index = folder / ".git" / "index"
        self._refs = folder / ".trace"
        self._index.parent.mkdir()
        self._turn = 0
        self.done()

    def done(self) -> None:
        self._turn += 1
        fresh = self._index.with_name("index.lock")
        fresh.write_bytes(b"x" * self._turn)
        os.replace(fresh, self._index)
        # Long ago, and different each time, so that the index is never too recent.
        at = 1_600_000_000_000_000_001 + self._turn * 1_000_000_000
        os.utime(self._index, ns=(at, at))

    def set(self, name: str, *tips: str) -> None:
        folder = self._refs / name
        shutil.rmtree(folder, ignore_errors=True)
        if tips:
            folder.mkdir(parents=True)
            for tip in tips:
                (folder / tip).touch()
        self.done()


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["append", "delete", "seal", "git", "join", "reopen", "look", "head"]),
        st.sampled_from(NAMES),
        st.lists(st.integers(0, 6), max_size=2, unique=True),
    ),
    max_size=14,
)


@settings(deadline=None)
@given(STEPS)
def test_it_is_what_a_look_at_every_ref_finds(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str, list[int]]]
) -> None:
    folder = tmp_path_factory.mktemp("overview")
    store = new_store(folder, disk=QuickDisk())
    git = Git(folder)
    values = [append(store, f"begin {n}", name) for n, name in enumerate(NAMES)]
    seal(store)
    for number, (step, name, chosen) in enumerate(steps):
        if step == "append":
            insist(store, partial(append, store, f"step {number}", name))
        elif step == "delete":
            insist(store, partial(move, store, name, None))
        elif step == "join" and (tips := store.refs.tips(name)):
            # A missing commit is rejected, unless the ref had it already.
            refused = () if store.objects.contains(tips[-1]) else (ConcurrencyError,)
            with suppress(*refused):
                insist(store, partial(move, store, name, tips[-1]))
        elif step == "seal":
            seal(store)
        elif step == "head":
            store.refs.set_head(name)
        elif step == "reopen":
            store.close()
            store = reopen(folder, disk=QuickDisk())
        elif step == "git":
            absent = hash_object(b"not here")
            tips = tuple(values[n] if n < len(values) - 1 else absent for n in chosen)
            git.set(name, *map(str, tips))
        if step == "look":
            assert facts(standing(store)) == slowly(store)
            assert names_are_right(store, values)
    assert facts(standing(store)) == slowly(store)
    assert names_are_right(store, values)
    with reopen(folder, disk=QuickDisk()) as again:
        assert facts(standing(again)) == slowly(again)
        seal(again)
        assert facts(standing(again)) == slowly(again)
        assert names_are_right(again, values)
    store.close()


def insist(store: Store, act: Callable[[], object]) -> None:
    """Accept git's value of a ref, as a process with the repository open is told to."""
    try:
        act()
    except RewoundError:
        upkeep(store).adopt()
        act()


def many(folder: Path, count: int) -> Git:
    """Create a repository with branches, all sealed, in a folder that git tracks."""
    git = Git(folder)
    with new_store(folder, disk=QuickDisk()) as store:
        for n in range(count):
            append(store, f"begin {n}", f"refs/heads/topic-{n}")
        append(store, "one")
        seal(store)
        standing(store)
    return git


def touched(folder: Path, act: Callable[[Store], object]) -> int:
    disk = RecordingDisk()
    with reopen(folder, disk=disk) as store:
        disk.reset()
        act(store)
    return disk.touched


def test_other_branches_are_looked_at_once_after_git_was_at_work(tmp_path: Path) -> None:
    git = many(tmp_path, 100)
    assert touched(tmp_path, standing) < 50
    with reopen(tmp_path) as store:
        tip = store.refs.read(MAIN)
    git.set("refs/heads/topic-7", str(tip))
    assert touched(tmp_path, standing) > 100
    with reopen(tmp_path) as store:
        assert [name for name, _, _ in standing(store).moved] == ["refs/heads/topic-7"]
    assert touched(tmp_path, standing) < 50
    disk = RecordingDisk()
    with reopen(tmp_path, disk=disk) as store:
        append(store, "two")
        disk.reset()
        seal(store)
        assert disk.touched < 160
    with reopen(tmp_path) as store:
        assert facts(standing(store)) == ([], {}, [], 101)
        assert store.refs.reflog("refs/heads/topic-7")[0].new == tip
    assert touched(tmp_path, standing) < 50


def test_a_diverged_branch_is_told_until_it_is_joined(tmp_path: Path) -> None:
    git = many(tmp_path, 5)
    name = "refs/heads/topic-3"
    with reopen(tmp_path) as store:
        tips = {store.refs.read(n) for n in (MAIN, name)}
    git.set(name, *map(str, tips))
    for _ in range(2):
        with reopen(tmp_path) as store:
            assert set(standing(store).diverged) == {name}
            seal(store)
            assert set(standing(store).diverged) == {name}
            assert not standing(store).moved
    with reopen(tmp_path) as store:
        move(store, name, None)
        assert not standing(store).diverged
        seal(store)
        assert facts(standing(store)) == ([], {}, [], 5)


def test_the_branch_at_hand_is_always_looked_at(tmp_path: Path) -> None:
    many(tmp_path, 5)
    with reopen(tmp_path) as store:
        other = store.refs.read("refs/heads/topic-1")
        (tmp_path / ".trace" / MAIN / str(other)).touch()
        assert MAIN in standing(store).diverged


@pytest.mark.parametrize("content", [b"", b"refs 1\n", b"\0" * 200, b"\xff" * 200, None])
def test_what_is_remembered_may_be_lost_or_damaged(tmp_path: Path, content: bytes | None) -> None:
    many(tmp_path, 5)
    path = tmp_path / ".trace/cache/refs"
    path.write_bytes(path.read_bytes()[:-20] if content is None else content)
    with reopen(tmp_path) as store:
        assert facts(standing(store)) == slowly(store)
    assert path.read_bytes().startswith(b"refs 1\n")


def test_an_explicit_look_sees_what_was_changed_behind_git(tmp_path: Path) -> None:
    many(tmp_path, 5)
    with reopen(tmp_path) as store:
        one, other = (store.refs.read(f"refs/heads/topic-{n}") for n in (1, 2))
    folder = tmp_path / ".trace/refs/heads/topic-1"
    os.rename(folder / str(one), folder / str(other))
    with reopen(tmp_path) as store:
        assert seal(store).accepted == ()
        assert seal(store, fully=True).accepted == ("refs/heads/topic-1",)
        assert store.refs.read("refs/heads/topic-1") == other


def sign(folder: Path) -> tuple[str, str] | None:
    with reopen(folder) as store:
        return change_stamp(store.disk, store.layout)


def test_the_sign_changes_with_the_index_of_the_repository_around(tmp_path: Path) -> None:
    folder = tmp_path / "project" / "deep"
    folder.mkdir(parents=True)
    new_store(folder).close()
    before = sign(folder)
    git = Git(tmp_path / "project")
    seen = {before, sign(folder)}
    git.done()
    seen.add(sign(folder))
    assert len(seen) == 3
    assert sign(folder) == sign(folder)


def test_the_sign_follows_a_git_file(tmp_path: Path) -> None:
    new_store(tmp_path).close()
    (tmp_path / "elsewhere" / ".git").mkdir(parents=True)
    git = Git(tmp_path / "elsewhere" / ".git")
    (tmp_path / ".git").write_text("gitdir: elsewhere/.git/.git\n")
    first = sign(tmp_path)
    git.done()
    assert first != sign(tmp_path) == sign(tmp_path)
    (tmp_path / ".git").write_bytes(b"\xff" * 20_000)
    assert sign(tmp_path) is not None


def test_an_index_of_a_moment_ago_is_no_sign(tmp_path: Path) -> None:
    new_store(tmp_path).close()
    Git(tmp_path)
    now = time.time_ns() // 1000 * 1000 + 1
    os.utime(tmp_path / ".git/index", ns=(now, now))
    assert sign(tmp_path) is None


def test_a_repository_that_cannot_be_written_is_looked_at_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many(tmp_path, 5)
    (tmp_path / ".trace/cache/refs").unlink()

    def refuse(*_: object, **__: object) -> None:
        raise StorageError("read-only")

    monkeypatch.setattr(summary, "replace_file", refuse)
    with reopen(tmp_path) as store:
        assert facts(standing(store)) == slowly(store)
    assert not (tmp_path / ".trace/cache/refs").exists()


def test_a_clone_reads_its_refs_once(tmp_path: Path) -> None:
    """Also before its first seal, which records what it published."""
    with new_store(tmp_path / "a") as store:
        names = [*NAMES, *(f"refs/heads/topic/{number}" for number in range(40))]
        commits = [append(store, name, name) for name in names]
        seal(store)
    clone = tmp_path / "b"
    for kept in ("config", "objects", "refs"):
        source, target = (tmp_path / side / ".trace" / kept for side in "ab")
        target.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
    time.sleep(0.1)
    disk = RecordingDisk()
    with reopen(clone, disk=disk) as store:
        assert facts(standing(store)) == slowly(store)
    with reopen(clone, disk=disk) as store:
        disk.reset()
        found = standing(store)
        assert disk.touched < len(names)
        assert facts(found) == slowly(store)
        assert names_are_right(store, commits)
        assert store.refs.values() == dict(store.refs.iterate())
    moved = append(reopen(tmp_path / "a"), "moved", NAMES[1])
    with reopen(clone) as store:
        append(store, "here", NAMES[2])
        assert facts(standing(store)) == slowly(store)
        assert names_are_right(store, [*commits, moved])
        seal(store)
        assert facts(standing(store)) == slowly(store)
        assert store.journal.published.tips.all().keys() == set(names)
    with reopen(clone) as store:
        assert facts(standing(store)) == slowly(store)
        assert names_are_right(store, commits)
