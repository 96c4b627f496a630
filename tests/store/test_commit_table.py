"""Walks through the commit table equal walks through the objects, and read no more than needed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.store.support.histories import append, move, put, reopen
from tests.support.examples import examples
from tests.support.files import flip
from trace_store import Environment, Message, Repo
from trace_store.base.oid import ObjectId, hash_object
from trace_store.commit_table import graph
from trace_store.commit_table.commits import Commits
from trace_store.commit_table.table import HEADER_BYTES, RECENT_ROWS, ROW_BYTES
from trace_store.contracts import ANY, RefEdit, Transaction
from trace_store.disk.files import Disk
from trace_store.errors import NotFoundError
from trace_store.history.commit import commit as write_commit
from trace_store.history.commit import write as write_draft
from trace_store.history.draft import Draft
from trace_store.history.log import LogEntry, entry_of, log
from trace_store.history.summary import summary
from trace_store.maintenance.seal import seal
from trace_store.objects import operations as ops
from trace_store.objects.commit import Commit, parents_of, read_commit
from trace_store.store.revision import commits_of, resolve
from trace_store.store.store import Store
from trace_store.testing.disks import RecordingDisk
from trace_store.writer import Writer

Edges = list[list[int]]


@st.composite
def shapes(draw: st.DrawFn, most: int = 24) -> Edges:
    """Parents of each commit by number: mostly linear, with forks, merges, roots and octopus merges."""
    made: Edges = []
    for number in range(draw(st.integers(1, most))):
        kind = draw(st.integers(0, 9)) if number else 9
        if kind < 6:
            made.append([number - 1])
        elif kind == 9 and draw(st.booleans()):
            made.append([])
        else:
            earlier = st.integers(0, max(number - 1, 0))
            made.append(draw(st.lists(earlier, max_size=5, unique=True)) if number else [])
    return made


def write(store: Store, shape: Edges, *, salt: str = "") -> list[ObjectId]:
    """Write commits with these parents and return their ids."""
    made: list[ObjectId] = []
    objects = []
    for number, parents in enumerate(shape):
        operations = [ops.add([])] * (number % 3)
        commit = Commit(
            [made[p] for p in parents], "ada", 5 + number * 7 % 5, operations, f"{salt}{number}"
        )
        data = commit.encode()
        made.append(hash_object(data))
        objects.append((made[-1], data))
    store.transact(lambda refs: Transaction(objects, []))
    return made


def time_of(store: Store, oid: ObjectId) -> int:
    return read_commit(oid, store.objects.read).time


def _latest_first(
    store: Store, order: list[ObjectId], parents: Callable[[ObjectId], list[ObjectId]]
) -> None:
    """Assert that no commit could have been replaced by a later one."""
    left = dict.fromkeys(order)
    for oid in order:
        below = {parent for each in left for parent in parents(each)}
        assert oid not in below
        assert time_of(store, oid) == max(time_of(store, o) for o in left if o not in below)
        del left[oid]


def same_answers(store: Store, oids: list[ObjectId], data: st.DataObject) -> None:
    """Compare the table's answers with the graph's."""
    commits = commits_of(store)

    def parents(oid: ObjectId) -> list[ObjectId]:
        return parents_of(store.objects.read(oid))

    pick = st.sampled_from(oids)
    starts = data.draw(st.lists(pick, min_size=1, max_size=3))
    hidden = data.draw(st.lists(pick, max_size=2))
    one, other = data.draw(pick), data.draw(pick)
    limit = data.draw(st.none() | st.integers(0, 9))
    expected = list(graph.topological(starts, parents, hidden=hidden))
    assert list(commits.topological(starts, hidden)) == expected
    assert list(commits.topological(starts, hidden, limit=limit)) == expected[:limit]
    assert list(Commits(store.objects).topological(starts, hidden)) == expected
    lines = list(dict.fromkeys(starts))
    if len(lines) > 1:
        by_time = list(
            graph.topological(lines, parents, hidden=hidden, time_of=lambda o: time_of(store, o))
        )
        asked = [*map(str, lines), *(f"^{oid}" for oid in hidden)]
        assert [each.oid for each in log(store, asked)] == by_time
        assert [each.oid for each in log(store, asked, limit=limit)] == by_time[:limit]
        assert [each.oid for each in log(store, asked, in_lines=True)] == list(
            graph.topological(lines, parents, hidden=hidden)
        )
        _latest_first(store, by_time, parents)
    first = list(graph.topological(starts, lambda o: parents(o)[:1], hidden=()))
    assert list(commits.topological(starts, first_parent=True)) == first
    assert commits.is_ancestor(one, other) == graph.is_ancestor(one, other, parents)
    assert commits.merge_bases(one, other) == graph.merge_bases(one, other, parents)
    steps = data.draw(st.integers(0, 99))
    assert commits.ancestor(one, steps) == Commits(store.objects).ancestor(one, steps)


@settings(
    max_examples=examples(60),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(shapes(), shapes(8), st.data())
def test_walks_are_those_of_the_objects(
    tmp_path_factory: pytest.TempPathFactory, shape: Edges, more: Edges, data: st.DataObject
) -> None:
    """Queries in any order, with new commits, other handles, and a lost or damaged file."""
    with Store.init(str(tmp_path_factory.mktemp("store")), durability="fast") as store:
        oids = write(store, shape)
        same_answers(store, oids, data)
        oids += write(store, more, salt="other ")
        same_answers(store, oids, data)
        path = Path(store.layout.commit_table_file)
        damage = data.draw(st.sampled_from(["", "removed", "cut", "longer", "changed", "foreign"]))
        place = data.draw(st.integers(0, 10_000))
        if path.exists() and damage:
            harm(path, damage, place)
        same_answers(store, oids, data)
        same_answers(store, oids, data)


def commit(store: Store, messages: list[Message], author: str = "ada", message: str = "") -> Any:
    return write_commit(Writer(store, author=author), messages, message=message)


def harm(path: Path, damage: str, at: int) -> None:
    content = bytearray(path.read_bytes())
    if damage == "removed":
        path.unlink()
        return
    if damage == "cut":
        content = content[: at % len(content)]
    elif damage == "longer":
        content += bytes(at % 100)
    elif damage == "changed":
        content[at % len(content)] ^= 1 << at % 8
    else:
        content[8] ^= 255
    path.write_bytes(content)


def test_an_incomplete_history_is_walked_as_far_as_it_goes(tmp_path: Path) -> None:
    with Store.init(str(tmp_path), durability="fast") as store:
        absent = hash_object(b"nowhere")
        data = Commit([absent], "ada", 1, [], "bottom").encode()
        tip = put(store, data)
        for _ in range(2):
            walk = commits_of(store).topological([tip])
            with pytest.raises(NotFoundError):
                list(walk)
            assert not os.path.exists(store.layout.commit_table_file)


def line_of(count: int, folder: Path, disk: Disk) -> Store:
    store = Store.init(str(folder), durability="fast", disk=disk)
    oids = write(store, [[n - 1] if n else [] for n in range(count)])
    move(store, "refs/heads/main", oids[-1])
    seal(store)
    assert sum(1 for entry in log(store) if entry.summary()) == count
    store.close()
    return reopen(folder, disk=disk)


def cost(disk: RecordingDisk, ask: Any) -> dict[str, int]:
    disk.reset()
    ask()
    return disk.counts()


def test_the_newest_commits_cost_the_same_in_a_longer_history(tmp_path: Path) -> None:
    costs = []
    for count in (3_000, 20_000):
        disk = RecordingDisk()
        with line_of(count, tmp_path / str(count), disk) as store:
            cost(disk, lambda store=store: next(log(store)))  # packs are listed once
            told = cost(disk, lambda store=store: [e.summary() for e in log(store, limit=50)])
            far = cost(disk, lambda store=store: resolve(store, "HEAD~2500"))
            costs.append((told, far))
    (short, near), (long, far) = costs
    assert long["opened"] == short["opened"]
    assert long["written_bytes"] == short["written_bytes"] == 0
    # The newest rows may be in one chunk or in two.
    assert long["read_bytes"] <= 2 * short["read_bytes"] + 4096
    assert max(short["read_bytes"], long["read_bytes"]) < 256 * 1024
    assert far["read_bytes"] <= 2 * near["read_bytes"] + 4096


def test_a_reader_adds_only_what_is_new(tmp_path: Path) -> None:
    disk = RecordingDisk()
    with line_of(5_000, tmp_path, disk) as store:
        for round_ in range(3):
            append(store, f"one more {round_}")
            found: list[object] = []
            counts = cost(disk, lambda found=found: found.extend(log(store, limit=2)))
            assert next(e.commit.message for e in found) == f"one more {round_}"  # type: ignore[attr-defined]
            assert counts["written_bytes"] == ROW_BYTES
        size = os.path.getsize(store.layout.commit_table_file)
        assert size == HEADER_BYTES + (5_000 + 3) * ROW_BYTES
        assert len(list(log(store))) == 5_003


def test_a_limited_log_never_reads_a_whole_history(tmp_path: Path) -> None:
    disk = RecordingDisk()
    with line_of(5_000, tmp_path, disk) as store:
        os.remove(store.layout.commit_table_file)
        counts = cost(disk, lambda: list(log(store, limit=50)))
        assert counts["written_bytes"] == 0
        assert counts["read_bytes"] < 512 * 1024


def test_what_a_log_says_is_what_the_commits_say(tmp_path: Path) -> None:
    """Cached or not, at any width, and for every kind of operation."""
    with Store.init(str(tmp_path), durability="fast") as store:
        first = commit(store, [Message("user", "much to say " * 60), Message("user", "b")])
        commit(store, [Message("assistant", "grüße — 你好 " * 40)])
        commit(store, [Message("user", "short")], message="a message\nof two lines")
        commit(store, [Message("user", "\n  spread \n\n out  ")], author="é" * 30)
        draft = Draft(Writer(store, author="ada"))
        draft.annotate([first.addresses[0]], labels=["x" * 90, "y" * 90])
        draft.remove([first.addresses[1]])
        write_draft(draft)
        commit(store, [Message("user", "long")], message="a long message " * 40)
        many = [e.oid for e in log(store)][:4]
        octopus = Commit(many, "ada", 2**63 + 5, []).encode()
        store.transact(
            lambda refs: Transaction(
                [(hash_object(octopus), octopus)],
                [RefEdit("refs/heads/main", hash_object(octopus), ANY)],
            )
        )
        for _ in range(2):
            entries = list(log(store))
            assert len(entries) == 7
            for entry in entries:
                known = read_commit(entry.oid, store.objects.read)
                for width in (1, 2, 20, 72, 299, 300, 500):
                    assert entry.summary(width) == summary(store, known, width)
                assert entry.author == known.author
                assert entry.message == known.message
                assert entry.time == known.time
                assert list(entry.parents) == list(known.parents)
                assert list(entry.operations) == [each.name for each in known.operations]
                assert entry.message_count == ops.added_by(known)


def test_lines_that_are_damaged_are_told_from_the_commits(tmp_path: Path) -> None:
    with line_of(1_200, tmp_path, Disk()) as store:
        expected = [entry.summary() for entry in log(store)]
        for name in (store.layout.commit_lines_file, store.layout.commit_text_file):
            for at in (3, 70, -9):
                flip(Path(name), at, 4)
                assert [entry.summary() for entry in log(store)] == expected
                assert [entry.summary() for entry in log(store)] == expected


@settings(
    max_examples=examples(40),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(shapes(), st.data())
def test_entries_of_rows_are_those_of_commits(
    tmp_path_factory: pytest.TempPathFactory, shape: Edges, data: st.DataObject
) -> None:
    """Ordinary rows, and rows whose author, time or message does not fit."""
    with Store.init(str(tmp_path_factory.mktemp("store")), durability="fast") as store:
        authors = st.sampled_from(["ada", "bob", "é" * 22, "é" * 23, "x" * 45])
        times = st.integers(-(2**63), 2**63)
        oids: list[ObjectId] = []
        for parents in shape:
            author, time = data.draw(authors), data.draw(times)
            message = data.draw(st.sampled_from(["", "", "", "said"]))
            made = Commit([oids[p] for p in parents], author, time, [], message).encode()
            oids.append(hash_object(made))
            objects = [(oids[-1], made)]
            store.transact(lambda refs, objects=objects: Transaction(objects, []))  # type: ignore[misc]
        limit = data.draw(st.none() | st.integers(0, 30))
        walked = Commits(store.objects).walk([oids[-1]])
        expected = [entry_of(store, oid, read_commit(oid, store.objects.read)) for oid in walked]
        for _ in range(2):
            found = list(log(store, oids[-1], limit=limit))
            assert list(map(told_by, found)) == list(map(told_by, expected[:limit]))


def told_by(entry: LogEntry) -> tuple[object, ...]:
    told = entry.oid, entry.author, entry.time, entry.message, entry.message_count
    return *told, list(entry.parents), list(entry.operations), entry.summary(), entry.commit.time


def test_an_old_commit_near_its_root_has_one_row(tmp_path: Path) -> None:
    """A commit outside of the newest rows is not new: diverged branches keep their common history."""
    repo = Repo.init(tmp_path, durability="fast", environment=Environment(author="ada"))
    repo.append("system", "a")
    repo.branches.create("side")
    for number in range(RECENT_ROWS + 10):
        repo.append("system", str(number))
    assert len(list(repo.log())) == RECENT_ROWS + 11
    repo.branches.switch("side")
    repo.append("system", "b")
    repo.branches.switch("main")
    before = len(repo.compile())
    assert repo.merge("side").outcome == "merged"
    assert len(repo.compile()) == before + 1
    rows = commits_of(repo.store).rows([repo.resolve("HEAD")])
    assert rows is not None
    assert rows[0].count == len(rows[0].numbers())
