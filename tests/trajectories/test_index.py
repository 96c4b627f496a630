"""The index of many trajectories gives what reading all of them gives, and costs little."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.growth.support.counting import calls_of
from trace_store import Environment, FixedClock, Repo
from trace_store.trajectories import code, reading
from trace_store.trajectories.reading import Filter
from trace_store.trajectories.trajectory_index import commit_key, file_key

MANY = 300
"""More than the refs that are published without a table."""


@pytest.fixture
def many(tmp_path: Path) -> Iterator[Repo]:
    clock = FixedClock(1_700_000_000_000, step=1_000)
    environment = Environment(author="ada")
    with Repo.init(tmp_path / "r", environment=environment, clock=clock, durability="fast") as repo:
        tr = repo.trajectories
        for number in range(MANY):
            id_ = tr.start(f"Task {number}").id
            if number % 10 == 0:
                fields: dict[str, Any] = {
                    "commit": f"{number:040x}",
                    "subject": "s",
                    "files": [f"f{number % 3}"],
                }
                tr.record("linked", trajectory=id_, **fields)
            if number % 3:
                tr.complete(trajectory=id_)
        repo.seal()
        yield repo


def plainly(repo: Repo, wanted: Filter | None = None) -> list[str]:
    refs = repo.store.refs.iterate_tips("refs/trajectories/")
    states = [reading.state_of(repo.store, tips) for _, tips in refs]
    states = [each for each in states if wanted is None or wanted.matches(each)]
    return [each.id for each in sorted(states, key=lambda each: (-each.updated, each.id))]


def test_a_list_is_the_same_with_an_index(many: Repo) -> None:
    assert reading.many(many.store) is not None
    for wanted in (None, Filter(status="active"), Filter(status="completed"), Filter(agent="ada")):
        assert [e.id for e in reading.list_trajectories(many.store, wanted)] == plainly(
            many, wanted
        )
    found = reading.list_trajectories(many.store, Filter(status="active"), limit=3)
    assert [each.id for each in found] == plainly(many, Filter(status="active"))[:3]


def test_the_index_follows_what_is_recorded_sealed_and_deleted(many: Repo) -> None:
    def is_current() -> bool:
        return [each.id for each in reading.list_trajectories(many.store)] == plainly(many)

    assert is_current()
    ids = plainly(many)
    many.trajectories.record("note", "x", trajectory=plainly(many, Filter(status="active"))[-1])
    assert is_current()
    many.seal()
    assert is_current()
    many.trajectories.start("new")
    assert is_current()
    shutil.rmtree(Path(many.store.layout.refs_dir) / "trajectories" / ids[5])  # as git does
    assert is_current()


def test_a_damaged_index_is_rebuilt(many: Repo) -> None:
    reading.list_trajectories(many.store)
    path = Path(many.store.layout.search_files("states")[0])
    path.write_bytes(b"no database" * 1000)
    assert [each.id for each in reading.list_trajectories(many.store)] == plainly(many)


def test_only_trajectories_with_the_links_are_read(many: Repo) -> None:
    def ids(*keys: str) -> set[str]:
        return {state.title for state in code.linking(many.store, keys)}

    assert ids(commit_key(f"{20:040x}")) == {"Task 20"}
    assert ids(file_key("f1")) == {f"Task {n}" for n in range(0, MANY, 10) if n % 3 == 1}
    assert ids(commit_key("0")) == set()


def test_a_second_use_reads_no_commit(many: Repo) -> None:
    reading.list_trajectories(many.store, limit=5)
    calls = calls_of(lambda: reading.list_trajectories(many.store, limit=5))
    assert calls["list_trajectories"] == 1
    assert calls["read_commit"] == 0
    assert calls["TipFiles.iterate"] == 0
