"""What this working copy has published: one file for few refs, and a table beside it for many."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.store.support.histories import MAIN, append, codes, new_store, reopen
from trace_store.base.oid import ObjectId, hash_object
from trace_store.disk.files import Disk
from trace_store.disk.layout import Layout
from trace_store.errors import ConcurrencyError
from trace_store.journal.published import (
    MAXIMUM_CHANGED,
    Published,
    Sealed,
    TipTable,
    load,
    save,
    write_table,
)
from trace_store.maintenance.seal import seal
from trace_store.testing.disks import FailingDisk, RecordingDisk

SEALED = Sealed({b"l" * 16: ((1, 3),)})


def oid(number: int) -> ObjectId:
    return hash_object(str(number).encode())


def name(number: int) -> str:
    return f"refs/heads/topic-{number}"


def layout_of(folder: Path) -> Layout:
    (folder / "local").mkdir(exist_ok=True)
    return Layout(str(folder))


def tables(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "local").glob("published-*"))


CHANGES = st.lists(
    st.dictionaries(
        st.integers(0, 600).map(name), st.lists(st.integers(0, 9).map(oid), max_size=3)
    ),
    max_size=6,
)


@given(CHANGES, st.integers(0, 3))
def test_it_says_what_a_map_would_say(
    tmp_path_factory: pytest.TempPathFactory, changes: list[dict[str, list[ObjectId]]], many: int
) -> None:
    folder = tmp_path_factory.mktemp("published")
    disk, layout = Disk(), layout_of(folder)
    expected: dict[str, tuple[ObjectId, ...]] = {}
    start = {name(n): [oid(n)] for n in range(many * 200)}
    for made in (start, *changes):
        before = load(disk, layout, Published())
        save(disk, layout, SEALED, before, {n: tuple(tips) for n, tips in made.items()})
        expected.update((n, tuple(tips)) for n, tips in made.items())
        after = load(disk, layout, before)
        assert after.sealed == SEALED
        for each in (*list(made)[:20], name(7), name(599), "refs/heads/none"):
            assert after.tips.get(each) == expected.get(each, ())
        named = after.tips.naming(map(oid, range(10)))
        for n in range(10):
            assert sorted(set(named[oid(n)])) == sorted(
                e for e in expected if oid(n) in expected[e]
            )
        assert after.tips.all() == {n: tips for n, tips in expected.items() if tips}
        assert len(after.tips.changed) <= MAXIMUM_CHANGED
        assert len(tables(folder)) <= 2


@pytest.mark.parametrize("count", [0, 1, 2, 60, 61, 200, 5000])
def test_a_table_finds_each_ref_and_no_other(tmp_path: Path, count: int) -> None:
    layout = layout_of(tmp_path)
    tips = {name(n): tuple(map(oid, range(n, n + 1 + (n % 97 == 0) * 300))) for n in range(count)}
    table = write_table(Disk(), layout, tips)
    step = max(1, count // 150)
    for n in range(0, count, step):
        assert table.find(name(n)) == tips[name(n)]
        assert table.find(name(n) + "-") == ()
    for other in ("refs/heads/a", "refs/heads/topic-", "refs/tags/z", "refs/heads/ä"):
        assert table.find(other) == ()
    assert table.read() == tips


def test_an_id_within_the_name_of_a_ref_is_no_tip(tmp_path: Path) -> None:
    layout = layout_of(tmp_path)
    tips = {f"refs/heads/{oid(1)}": (oid(2),), name(1): (oid(1),)}
    assert write_table(Disk(), layout, tips).naming([oid(1), oid(2)]) == {
        oid(1): [name(1)],
        oid(2): [f"refs/heads/{oid(1)}"],
    }


def test_one_of_100000_refs_is_found_with_a_few_reads(tmp_path: Path) -> None:
    disk, layout = RecordingDisk(), layout_of(tmp_path)
    save(disk, layout, SEALED, Published(), {name(n): (oid(1),) for n in range(100_000)})
    disk.reset()
    assert load(disk, layout, Published()).tips.get(name(77_777)) == (oid(1),)
    assert disk.calls < 25
    assert disk.read_bytes < 64 * 1024


def test_a_change_writes_no_more_where_there_are_many_refs(tmp_path: Path) -> None:
    written = []
    for count in (10, 10_000):
        folder = tmp_path / str(count)
        folder.mkdir()
        disk, layout = RecordingDisk(), layout_of(folder)
        save(disk, layout, SEALED, Published(), {name(n): (oid(1),) for n in range(count)})
        before = load(disk, layout, Published())
        disk.reset()
        save(disk, layout, SEALED, before, {name(5): (oid(2),)})
        written.append(disk.written_bytes)
    assert written[1] <= written[0] + 100


def attempt(number: int, disk: Disk, layout: Layout, before: Published) -> list[int]:
    """Publish something; return the number when that was not refused."""
    sealed = Sealed({bytes([number]) * 16: ((1, 1),)})
    with contextlib.suppress(ConcurrencyError):
        save(disk, layout, sealed, before, {name(number): (oid(number),)})
        return [number]
    return []


@pytest.mark.skipif(sys.platform == "win32", reason="no file is replaced there that is open")
def test_of_two_who_go_on_from_one_state_one_comes_to_its_end(tmp_path: Path) -> None:
    """Whenever the other comes, nothing that was published is taken back."""
    for at in range(1, 100):
        folder = tmp_path / str(at)
        folder.mkdir()
        layout = layout_of(folder)
        save(Disk(), layout, Sealed(), Published(), {name(0): (oid(0),)})
        before = load(Disk(), layout, Published())
        done: list[int] = []

        def meddle(
            _: str, done: list[int] = done, layout: Layout = layout, before: Published = before
        ) -> None:
            done += attempt(2, Disk(), layout, before)

        disk = FailingDisk(at, meddle)
        done += attempt(1, disk, layout, before)
        if disk.count < at:
            assert at > 5
            return
        [winner] = done
        after = load(Disk(), layout, before)
        assert after.sealed.covers(bytes([winner]) * 16, 1)
        assert after.tips.get(name(winner)) == (oid(winner),)
        assert list(folder.glob("tmp/*")) == []
    raise AssertionError("it never came to its end")


@pytest.mark.parametrize("content", [None, b"", b"ab" * 40_000, b"\n" * 20_000, b"\xff" * 20_000])
def test_a_table_that_is_not_right_says_nothing(tmp_path: Path, content: bytes | None) -> None:
    disk, layout = Disk(), layout_of(tmp_path)
    save(disk, layout, SEALED, Published(), {name(n): (oid(n),) for n in range(400)})
    path = tmp_path / "local" / tables(tmp_path)[0]
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    before = load(disk, layout, Published())
    tips = before.tips
    assert tips.get(name(3)) == ()
    assert tips.naming([oid(3)]) == {oid(3): []}
    assert tips.lacking
    assert tips.all() == {}
    assert tips.lacking
    save(disk, layout, SEALED, before, {name(n): (oid(n),) for n in range(3)})
    again = load(disk, layout, Published()).tips
    assert again.all() == {name(n): (oid(n),) for n in range(3)}
    assert not again.lacking


def test_a_line_that_was_changed_in_a_table_is_seen_when_all_is_read(tmp_path: Path) -> None:
    layout = layout_of(tmp_path)
    table = write_table(Disk(), layout, {name(n): (oid(n),) for n in range(300)})
    path = Path(layout.tip_table_file(table.name))
    path.write_bytes(path.read_bytes().replace(str(oid(5)).encode(), str(oid(6)).encode()))
    assert TipTable(Disk(), layout, table.name).read() is None


def test_a_repository_with_many_refs_works_as_one_with_few(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    for n in range(MAXIMUM_CHANGED + 10):
        append(store, f"begin {n}", name(n))
    append(store, "one")
    seal(store)
    assert tables(tmp_path / ".trace")
    append(store, "two")
    append(store, "more", name(3))
    store.close()
    with reopen(tmp_path) as again:
        assert len(list(again.refs.iterate())) == MAXIMUM_CHANGED + 11
        tips = {each: again.refs.tips(each) for each in (MAIN, name(3), name(4))}
        seal(again)
        assert {each: again.refs.tips(each) for each in tips} == tips
        assert again.refs.moved_by_git() == []
        assert codes(again) == set()


def test_a_lost_table_only_forgets(tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        for n in range(MAXIMUM_CHANGED + 10):
            append(store, f"begin {n}", name(n))
        seal(store)
        expected = list(store.refs.iterate())
    (tmp_path / ".trace" / "local" / tables(tmp_path / ".trace")[0]).unlink()
    with reopen(tmp_path) as again:
        assert list(again.refs.iterate()) == expected
        assert codes(again) == {"published-unreadable"}
        seal(again)
        assert list(again.refs.iterate()) == expected
        assert codes(again) == set()


@given(
    st.lists(st.tuples(st.sampled_from([b"a" * 16, b"b" * 16]), st.integers(1, 30)), max_size=40)
)
def test_what_is_sealed_is_exactly_what_was_said(added: list[tuple[bytes, int]]) -> None:
    """A missing journal between others stays unsealed for its holder."""
    sealed = Sealed()
    for line, number in added:
        sealed.add(line, number, number)
    again = Sealed()
    for text in sealed.lines():
        assert again.parse(text.rstrip("\n"))
    assert again == sealed
    for line in (b"a" * 16, b"b" * 16):
        for number in range(32):
            assert again.covers(line, number) == ((line, number) in added)
    assert again.highest == max((number for _, number in added), default=0)
