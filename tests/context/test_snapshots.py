"""Stored folds: each equals a fold from scratch, and damage costs only time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.store.support.histories import move
from tests.support.changes import begin, long_histories, write_changes
from tests.support.examples import examples
from trace_store import FixedClock, Message, Repo, Store, ToolCall, ToolResult
from trace_store.context import snapshots
from trace_store.context import snapshots as kept_folds
from trace_store.context.fold import Fold, fold
from trace_store.context.snapshots import fold_of
from trace_store.errors import CorruptIndexError
from trace_store.objects.address import Address
from trace_store.objects.commit import Commit, read_commit

State = tuple[Any, ...]


def state_of(found: Fold) -> State:
    """Return all that a fold says."""
    entries = [
        (
            (e.address, e.message, e.home, e.current, e.place, e.parts, e.answers, e.key),
            [(v.parts, v.place) for v in e.versions],
            (e.hidden, e.ghost, e.priority, e.labels, e.keep),
            (e.visible, e.is_ghost, e.is_edited, e.is_marked, e.to_carried()),
        )
        for e in found.entries
    ]
    links = {address: sorted(others) for address, others in found.links.items()}
    return entries, links, found.tools, found.tools_commit, found.measured


def plain(store: Store, tip: bytes) -> Fold:
    """Return a fold from nothing."""
    return fold(tip, lambda oid: read_commit(oid, store.objects.read))


def line_of(repo: Repo) -> list[bytes]:
    """Return the commits of HEAD's line, newest first."""
    found: list[bytes] = []
    parents = [repo.resolve("HEAD")]
    while parents:
        found.append(parents[0])
        parents = list(read_commit(parents[0], repo.store.objects.read).parents[:1])
    return found


@given(long_histories, st.randoms(use_true_random=False))
@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=examples(150))
def test_it_is_the_fold_in_whatever_order_commits_are_asked_for(
    history: list[list[tuple[Any, ...]]], random: Any
) -> None:
    with Repo.memory() as repo:
        known = begin(repo)
        for changed in history:
            write_changes(repo, changed, known)
        every = line_of(repo) * 2
        random.shuffle(every)
        store, at_hand = repo.store, dict[bytes, Fold]()
        for tip in every:
            found = fold_of(store, tip, at_hand)
            assert state_of(found) == state_of(plain(store, tip))
            assert all(found.entry(each.address) is each for each in found.entries)
            if random.random() < 0.5:
                at_hand[tip] = kept_folds.unpack(tip, kept_folds.pack(tip, found))
            if random.random() < 0.5:
                store.last_folds = {}
        for tip, found in at_hand.items():  # none was changed while others were made of it
            assert state_of(found) == state_of(plain(store, tip))


@given(long_histories)
@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=examples(60))
def test_what_is_kept_of_a_fold_is_the_fold(history: list[list[tuple[Any, ...]]]) -> None:
    with Repo.memory() as repo:
        known = begin(repo)
        for changed in history:
            write_changes(repo, changed, known)
        tip = repo.resolve("HEAD")
        state = plain(repo.store, tip)
        data = kept_folds.pack(tip, state)
        again = kept_folds.unpack(tip, data)
        assert [e.key for e in again.visible()] == [e.key for e in state.visible()]
        assert kept_folds.pack(tip, again) == data
        assert state_of(again) == state_of(state)
        for one, other in zip(again.entries, state.entries, strict=True):
            assert one.same_state(other)
            assert other.same_state(one)


def test_a_copy_changes_independently() -> None:
    with Repo.memory() as repo:
        addresses = [repo.append("user", f"message {n}").addresses[0] for n in range(12)]
        made = plain(repo.store, repo.resolve("HEAD"))
        before = state_of(made)
        copy, later = made.copy(), made.copy()
        for change in (
            lambda: repo.remove(addresses[:6]),
            lambda: repo.annotate(addresses[3:5], priority="pinned"),
            lambda: repo.edit(addresses[0], "other words"),
            lambda: repo.move(addresses[7:9], after=None),
        ):
            change()
            oid = repo.resolve("HEAD")
            copy.apply(oid, read_commit(oid, repo.store.objects.read))
            assert state_of(made) == state_of(later) == before
        assert state_of(copy) != before


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Repo]:
    """Return a repository with 20 messages; a fold of ten is worth a file."""
    monkeypatch.setattr(snapshots, "WORTH", 10)
    with Repo.init(tmp_path, clock=FixedClock(), durability="fast") as repo:
        for number in range(20):
            repo.append("user", f"message {number}")
        yield repo


def files(repo: Repo) -> list[Path]:
    folder = Path(repo.store.layout.folds_dir)
    return sorted(folder.iterdir()) if folder.exists() else []


def reads(repo: Repo, tip: bytes) -> Counter[bytes]:
    """Return which commits a fold reads that finds nothing in memory, and check it."""
    repo.store.last_folds = {}
    found = Counter[bytes]()

    def noted(oid: bytes, read: Any) -> Commit:
        found[oid] += 1
        return read_commit(oid, read)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(snapshots, "read_commit", noted)
        state = fold_of(repo.store, tip)
    assert state_of(state) == state_of(plain(repo.store, tip))
    return found


def test_a_fold_of_many_commits_is_kept_before_the_tip(repo: Repo) -> None:
    tip = repo.resolve("HEAD")
    assert (reads(repo, tip).total(), len(files(repo))) == (20, 1)
    assert reads(repo, tip).total() == 2
    repo.edit("HEAD.0", "other words")
    assert reads(repo, repo.resolve("HEAD")).total() == 3
    assert len(files(repo)) == 1
    assert reads(repo, repo.resolve("HEAD~3")).total() == 0  # the base of a merge
    assert reads(repo, repo.resolve("HEAD~4")).total() == 17  # earlier commits have no stored fold


def test_a_fold_of_many_messages_of_one_commit_is_kept(repo: Repo) -> None:
    made = repo.commit([Message("user", str(number)) for number in range(10)])
    fold_of(repo.store, repo.resolve("HEAD~1"))
    (first,) = files(repo)
    reads(repo, made.oid)
    assert files(repo)[0] == first
    assert len(files(repo)) == 2


def test_the_last_fold_is_gone_on_from(repo: Repo) -> None:
    before = fold_of(repo.store, repo.resolve("HEAD"))
    assert fold_of(repo.store, repo.resolve("HEAD")) is before
    repo.append("user", "more")
    after = fold_of(repo.store, repo.resolve("HEAD"))
    assert after.entries[0] is before.entries[0]


def test_the_oldest_go(repo: Repo) -> None:
    for _ in range(snapshots.KEPT + 3):
        for _ in range(6):
            repo.append("user", "more")
        reads(repo, repo.resolve("HEAD"))
    tips = [path.name.partition("-")[2] for path in files(repo)]
    assert len(tips) == snapshots.KEPT
    assert tips[-1] == str(repo.resolve("HEAD~2"))
    assert tips[0] == str(repo.resolve(f"HEAD~{6 * (snapshots.KEPT - 1) + 2}"))


@pytest.mark.parametrize("damage", ["short", "flipped", "empty", "version", "other"])
def test_what_is_damaged_is_made_anew(repo: Repo, damage: str) -> None:
    tip = repo.resolve("HEAD")
    fold_of(repo.store, tip)
    (path,) = files(repo)
    data = bytearray(path.read_bytes())
    if damage == "flipped":
        data[len(data) // 2] ^= 1
    elif damage == "version":
        data[4] += 1
    elif damage == "other":
        older = repo.resolve("HEAD~1")
        data = bytearray(kept_folds.pack(older, plain(repo.store, older)))
    else:
        data = data[: len(data) - 1 if damage == "short" else 0]
    path.write_bytes(data)
    assert reads(repo, tip).total() == 20
    assert reads(repo, tip).total() == 2


def test_a_file_is_of_one_commit(repo: Repo) -> None:
    tip = repo.resolve("HEAD")
    data = kept_folds.pack(tip, plain(repo.store, tip))
    with pytest.raises(CorruptIndexError):
        kept_folds.unpack(bytes(32), data)


def test_what_is_no_file_of_a_fold_is_left_alone(repo: Repo) -> None:
    folder = Path(repo.store.layout.folds_dir)
    folder.mkdir(parents=True)
    (folder / "notes").write_text("mine")
    (folder / ("x" * 6 + "-" + "0" * 64)).write_text("mine")
    reads(repo, repo.resolve("HEAD"))
    assert len(files(repo)) == 3


def test_a_fold_of_another_line_begins_where_the_lines_part(repo: Repo) -> None:
    fold_of(repo.store, repo.resolve("HEAD"))
    move(repo.store, "refs/heads/side", repo.resolve("HEAD"))
    repo.append("user", "ours")
    repo.branches.switch("side")
    repo.append("user", "theirs")
    assert reads(repo, repo.resolve("HEAD")).total() == 3
    assert reads(repo, repo.resolve("main")).total() == 3


def test_units_are_kept(repo: Repo) -> None:
    repo.append("assistant", [ToolCall("a", "look", "{}")])
    repo.append("tool", [ToolResult("a", "seen")])
    call, result = (Address.of(repo.resolve(each), 0) for each in ("HEAD~1", "HEAD"))
    tip = repo.resolve("HEAD")
    again = kept_folds.unpack(tip, kept_folds.pack(tip, fold_of(repo.store, tip)))
    assert set(again.unit(call)) == {call, result}
    assert again.entry(result).answers == (call,)
    again = again.copy()
    repo.remove(call)
    oid = repo.resolve("HEAD")
    again.apply(oid, read_commit(oid, repo.store.objects.read))
    assert [each.hidden for each in again.entries[-2:]] == ["removed", "removed"]


def test_a_link_is_not_followed(repo: Repo, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    folder = Path(repo.store.layout.folds_dir)
    folder.parent.mkdir(exist_ok=True)
    folder.symlink_to(elsewhere)
    assert reads(repo, repo.resolve("HEAD")).total() == 20
    assert not list(elsewhere.iterdir())
