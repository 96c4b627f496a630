"""Journals that are removed from under the processes that hold them, as `git clean -fdx` does."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.store.support.histories import (
    MAIN,
    OTHER,
    append,
    errors,
    journal_path,
    journals,
    line,
    main_line,
    move,
    new_store,
    reopen,
)
from tests.support.subjects import upkeep
from trace_store.disk.files import Disk
from trace_store.errors import ClosedError, ConcurrencyError
from trace_store.journal.frames import encode_begin
from trace_store.maintenance.seal import seal
from trace_store.store.store import Store

if sys.platform != "win32":
    import fcntl


def wipe(folder: Path) -> None:
    """Remove untracked files."""
    for name in ("journal", "local", "logs", "tmp", "locks", "index", "cache"):
        shutil.rmtree(folder / ".trace" / name, ignore_errors=True)


def test_a_living_writer_brings_a_lost_journal_back(tmp_path: Path) -> None:
    """A lost journal is noticed and rewritten by a living writer."""
    store = new_store(tmp_path)
    for number in range(5):
        append(store, str(number))
    wipe(tmp_path)
    assert main_line(reopen(tmp_path)) == []
    append(store, "after")
    assert main_line(reopen(tmp_path)) == ["0", "1", "2", "3", "4", "after"]
    assert errors(reopen(tmp_path)) == []


def test_a_reader_that_holds_a_lost_journal_still_reads_its_objects(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    tip = append(store, "one")
    wipe(tmp_path)
    assert store.refs.read(MAIN) is None
    assert store.objects.read(tip)


def test_a_seal_brings_a_lost_journal_back_too(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    append(store, "one")
    wipe(tmp_path)
    seal(store)
    assert main_line(reopen(tmp_path)) == ["one"]


def test_two_writers_bring_the_same_journal_back_once(tmp_path: Path) -> None:
    one, two = new_store(tmp_path), reopen(tmp_path)
    append(one, "one")
    append(two, "two")
    one.refs.read(MAIN)
    wipe(tmp_path)
    append(two, "three")
    append(one, "four")
    append(two, "five")
    again = reopen(tmp_path)
    assert main_line(again) == ["one", "two", "three", "four", "five"]
    assert [name for name, _ in again.refs.iterate()] == [MAIN]
    assert errors(again) == []


def test_what_a_ref_would_lose_is_kept_in_the_trash(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    append(store, "shared")
    seal(store)
    lost = append(store, "lost")
    append(store, "elsewhere", OTHER)
    wipe(tmp_path)
    newcomer = reopen(tmp_path)
    append(newcomer, "newer")
    append(store, "last")
    again = reopen(tmp_path)
    assert main_line(again) == ["shared", "newer", "last"]
    assert again.refs.read("refs/trash/recovered/heads/main") == lost
    assert again.refs.read(OTHER) is not None
    assert errors(again) == []


def test_a_second_value_that_a_ref_would_lose_is_kept_beside_the_first(tmp_path: Path) -> None:
    """A recovered value stays when another is recovered, and is not recovered twice."""
    store = new_store(tmp_path)
    append(store, "shared")
    seal(store)
    lost: list[list[str]] = []
    for number in range(3):
        for each in ("lost", "also lost"):
            append(store, f"{each} {number}")
        lost.append(main_line(store))
        wipe(tmp_path)
        append(reopen(tmp_path), f"newer {number}")
        append(store, f"last {number}")
    again = reopen(tmp_path)
    kept = dict(again.refs.iterate("refs/trash/recovered/"))
    name = "refs/trash/recovered/heads/main"
    found = [line(again, tip) for tip in (*kept.values(), again.refs.read(MAIN))]
    for those in lost:
        assert any(those == whole[: len(those)] for whole in found)
    assert set(kept) <= {name, f"{name}.2", f"{name}.3"}
    assert errors(again) == []


def test_what_the_branch_has_already_is_not_rescued(tmp_path: Path) -> None:
    """The journal was sealed by a process that was killed before it could say so."""
    store = new_store(tmp_path)
    append(store, "one")
    append(store, "two")
    append(store, "three")
    for name, tip in list(store.refs.iterate()):
        (tmp_path / ".trace" / name).mkdir(parents=True, exist_ok=True)
        (tmp_path / ".trace" / name / str(tip)).touch()
    wipe(tmp_path)
    append(store, "four")
    assert main_line(reopen(tmp_path)) == ["one", "two", "three", "four"]
    assert not list(store.refs.iterate("refs/trash/"))


def test_a_sealed_journal_that_goes_is_not_brought_back(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    append(store, "one")
    seal(store)
    append(store, "two")
    seal(store)
    seal(store)
    append(store, "three")
    assert main_line(reopen(tmp_path)) == ["one", "two", "three"]
    assert not list(store.refs.iterate("refs/trash/"))


def test_a_journal_that_goes_during_the_append_is_written_anew(tmp_path: Path) -> None:
    """After the sync the writer checks the inode again before it acknowledges."""
    new_store(tmp_path).close()

    class Wiping(Disk):
        armed = 0

        def sync(self, fd: int) -> None:
            super().sync(fd)
            if self.armed:
                self.armed -= 1
                wipe(tmp_path)

    for times in (1, 2, 5):
        disk = Wiping()
        store = reopen(tmp_path, disk=disk)
        before = main_line(store)
        append(store, "first", durability="durable")
        disk.armed = times
        append(store, "second", durability="durable")
        again = reopen(tmp_path)
        assert main_line(again) == [*before, "first", "second"]
        assert errors(again) == []
        assert not list(again.refs.iterate("refs/trash/"))
        store.close()


def test_a_journal_that_always_goes_is_an_error(tmp_path: Path) -> None:
    new_store(tmp_path).close()

    class Hostile(Disk):
        def sync(self, fd: int) -> None:
            super().sync(fd)
            shutil.rmtree(tmp_path / ".trace" / "journal", ignore_errors=True)

    store = reopen(tmp_path, disk=Hostile())
    with pytest.raises(ConcurrencyError):
        append(store, "never", durability="durable")


def test_another_file_under_the_same_name_is_noticed(tmp_path: Path) -> None:
    """After locking, the writer checks that the path still names the inode that it locked."""
    one = new_store(tmp_path)
    append(one, "one")
    path = journal_path(tmp_path)
    copy = path.read_bytes()
    path.unlink()
    path.write_bytes(copy)  # the same content in another file, as a restored backup
    append(one, "two")
    assert main_line(reopen(tmp_path)) == ["one", "two"]
    assert len(journal_path(tmp_path).read_bytes()) > len(copy)


def test_two_journals_that_are_begun_at_once_become_one(tmp_path: Path) -> None:
    """Numbers restart if all journals are removed; the lower one is not the live one."""
    new_store(tmp_path).close()
    newcomers: list[Store] = []

    class Slow(Disk):
        def link(self, source: str, target: str) -> bool:
            if armed and "journal" in target:
                armed.clear()
                newcomers.append(reopen(tmp_path))
                append(newcomers[0], "newcomer begins")
            return super().link(source, target)

    armed: list[bool] = []
    store = reopen(tmp_path, disk=Slow())
    for number in range(3):
        append(store, str(number))
        seal(store)
    wipe(tmp_path)
    armed.append(True)
    append(store, "store begins")
    assert len(journals(tmp_path)) == 2
    append(newcomers[0], "newcomer goes on")
    append(store, "store goes on")
    append(newcomers[0], "newcomer ends")
    texts = ["newcomer begins", "store begins", "newcomer goes on"]
    texts = ["0", "1", "2", *texts, "store goes on", "newcomer ends"]
    for each in (store, newcomers[0], reopen(tmp_path)):
        assert main_line(each) == texts
    seal(store)
    assert main_line(reopen(tmp_path)) == texts
    assert errors(store) == []


@pytest.mark.skipif(sys.platform == "win32", reason="there, locks are taken in another way")
def test_who_waits_for_an_older_journal_holds_no_other(tmp_path: Path) -> None:
    """Otherwise two processes could deadlock, each holding the other's journal."""
    store = new_store(tmp_path)
    append(store, "one")
    later = tmp_path / ".trace/journal/5"
    later.write_bytes(encode_begin(b"another line of j"[:16]))
    older, live = os.open(journal_path(tmp_path, 1), os.O_RDWR), os.open(later, os.O_RDWR)
    fcntl.flock(older, fcntl.LOCK_EX)
    waiting = threading.Thread(target=append, args=(reopen(tmp_path), "two"))
    waiting.start()
    time.sleep(0.3)
    fcntl.flock(live, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fcntl.flock(live, fcntl.LOCK_UN)
    assert waiting.is_alive()
    fcntl.flock(older, fcntl.LOCK_UN)
    waiting.join(10)
    assert not waiting.is_alive()
    append(store, "three")
    assert main_line(reopen(tmp_path)) == main_line(store) == ["one", "two", "three"]
    os.close(older)
    os.close(live)


def test_what_is_brought_back_and_sealed_is_not_written_again(tmp_path: Path) -> None:
    """Else each process that held the file writes all of it once more, and many of them never come to an end."""
    one, two = new_store(tmp_path), reopen(tmp_path)
    for number in range(20):
        append(one, f"{number} {'x' * 1000}")
    two.refs.read(MAIN)
    wipe(tmp_path)
    append(one, "after")
    seal(one)
    append(two, "again")
    assert journal_path(tmp_path).stat().st_size < 2000
    assert len(main_line(reopen(tmp_path))) == 22


def test_a_pack_that_git_has_yet_to_remove_is_not_relied_on(tmp_path: Path) -> None:
    """git removes the journals first, then the record of seals, then the packs."""
    store = new_store(tmp_path)
    append(store, "one")
    seal(store)
    wipe(tmp_path)
    append(store, "two")
    for folder in ("objects", "refs"):
        shutil.rmtree(tmp_path / ".trace" / folder)
    assert main_line(reopen(tmp_path)) == ["one", "two"]
    assert errors(reopen(tmp_path)) == []


def test_what_a_lost_transaction_named_comes_back_from_quarantine(tmp_path: Path) -> None:
    """Pruning does not see the refs in a lost journal."""
    text = "large, so that it is not written twice " * 200
    store = new_store(tmp_path)
    append(store, text, OTHER)
    seal(store)
    append(store, text)
    assert journal_path(tmp_path).stat().st_size < len(text)
    wipe(tmp_path)
    other = reopen(tmp_path)
    move(other, OTHER, None)
    seal(other)
    wipe(tmp_path)
    assert upkeep(reopen(tmp_path)).prune(grace_days=0).taken == 2
    append(store, "after")
    upkeep(reopen(tmp_path)).gc(grace_days=0)
    assert len(main_line(reopen(tmp_path))) == 2
    assert errors(reopen(tmp_path)) == []


@pytest.mark.skipif(sys.platform == "win32", reason="there, locks are taken in another way")
def test_who_waits_for_a_lost_journal_holds_no_other(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    append(store, "one")
    lost = os.open(journal_path(tmp_path, 1), os.O_RDWR)
    os.unlink(journal_path(tmp_path, 1))
    append(reopen(tmp_path), "two")
    live = os.open(journal_path(tmp_path, 1), os.O_RDWR)
    fcntl.flock(lost, fcntl.LOCK_EX)
    waiting = threading.Thread(target=append, args=(store, "three"))
    waiting.start()
    time.sleep(0.3)
    fcntl.flock(live, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fcntl.flock(live, fcntl.LOCK_UN)
    assert waiting.is_alive()
    fcntl.flock(lost, fcntl.LOCK_UN)
    waiting.join(10)
    assert not waiting.is_alive()
    assert {"one", "two", "three"} <= messages_of(reopen(tmp_path))
    os.close(lost)
    os.close(live)


def test_a_removed_journal_that_is_closed_cuts_no_other_of_its_number(tmp_path: Path) -> None:
    """The process may not know that the journal was removed and its number reused."""
    one = new_store(tmp_path)
    append(one, "one")
    os.unlink(journal_path(tmp_path, 1))
    two = reopen(tmp_path)
    longer = [f"two {number}" for number in range(6)]
    for text in longer:
        append(two, text)
    with one.mutex:
        begin_successor(one)
    assert journals(tmp_path) == [1, 2]
    assert main_line(reopen(tmp_path)) == longer
    append(one, "after")
    again = reopen(tmp_path)
    assert main_line(again) == [*longer, "after"]
    assert "one" in messages_of(again)
    assert errors(again) == []


def test_a_removed_journal_is_not_sealed_with_its_successor(tmp_path: Path) -> None:
    one = new_store(tmp_path)
    append(one, "one")
    killed = reopen(tmp_path)
    killed.refs.read(MAIN)
    os.unlink(journal_path(tmp_path, 1))
    with killed.mutex:
        begin_successor(killed)
    three = reopen(tmp_path)
    append(three, "three")
    assert seal(three).transactions == 1
    append(reopen(tmp_path), "four")
    one.sync()
    again = reopen(tmp_path)
    assert main_line(again) == ["three", "four"]
    assert "one" in messages_of(again)
    assert errors(again) == []


def test_those_before_a_missing_journal_stay_sealed(tmp_path: Path) -> None:
    """Otherwise they would be applied again, on top of later changes."""
    holder = new_store(tmp_path)
    for text in ("one", "two", "three"):
        append(holder, text)
        holder.alone(lambda: None)
    os.unlink(journal_path(tmp_path, 2))
    seal(reopen(tmp_path))
    append(reopen(tmp_path), "four")
    seal(reopen(tmp_path))
    append(holder, "five")
    again = reopen(tmp_path)
    assert messages_of(again) == {"one", "two", "three", "four", "five"}
    assert main_line(again)[-2:] == ["four", "five"]
    assert errors(again) == []


def test_a_ref_that_another_tip_keeps_was_not_taken_back(tmp_path: Path) -> None:
    """After a removed journal is back a ref may have two tips, and its own may not be the one that a process knew."""
    store = new_store(tmp_path)
    append(store, "one")
    seal(store)
    known = append(store, "second")
    seal(store)
    folder = tmp_path / ".trace" / MAIN
    tip = folder / str(known)
    other = next(made for n in range(99) if (made := append(store, f"{n}", OTHER)) < known)
    seal(store)
    wipe(tmp_path)
    (folder / str(other)).touch()
    assert tip.exists()
    assert reopen(tmp_path).refs.tips(MAIN) == (other, known)
    append(store, "three")
    assert main_line(reopen(tmp_path))[-1] == "three"
    assert set(reopen(tmp_path).refs.tips(MAIN)) > {known}


def begin_successor(store: Store) -> None:
    """Close a journal, and begin its successor, without a look whether it is there still."""
    journal = store.journal
    journal.lock()
    live = journal.files[-1]
    journal.close_live()
    journal.continue_line(live)
    journal.unlock()


def messages_of(store: Store) -> set[str]:
    """Return all reachable objects."""
    return {
        text
        for _, tips in store.refs.iterate_tips("refs/")
        for tip in tips
        for text in line(store, tip)
    }


def test_numbers_go_on_after_a_loss(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    for number in range(3):
        append(store, str(number))
        seal(store)
    wipe(tmp_path)
    append(store, "after")
    assert journals(tmp_path)[-1] > 3
    assert main_line(reopen(tmp_path)) == ["0", "1", "2", "after"]


def test_only_local_state_is_lost(tmp_path: Path) -> None:
    """A missing HEAD, journal or log is made again; sealed work needs none of them."""
    store = new_store(tmp_path)
    append(store, "one")
    store.refs.set_head(OTHER)
    seal(store)
    store.close()
    wipe(tmp_path)
    (tmp_path / ".trace" / "HEAD").unlink()
    again = reopen(tmp_path)
    assert again.refs.head().ref == MAIN
    assert main_line(again) == ["one"]
    append(again, "two")
    seal(again)
    assert main_line(reopen(tmp_path)) == ["one", "two"]
    assert errors(again) == []


@pytest.mark.parametrize("durability", ["durable", "batch", "fast"])
def test_a_handle_that_closes_brings_its_journal_back(tmp_path: Path, durability: str) -> None:
    new_store(tmp_path).close()
    store = reopen(tmp_path, durability=durability)
    append(store, "one", durability=durability)
    wipe(tmp_path)
    store.close()
    assert main_line(reopen(tmp_path)) == ["one"]


def test_a_handle_that_closes_makes_no_removed_repository_anew(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    append(store, "one")
    shutil.rmtree(tmp_path / ".trace")
    store.close()
    assert not (tmp_path / ".trace").exists()


def test_nothing_is_read_after_closing(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    tip = append(store, "one")
    seal(store)
    store.close()
    with pytest.raises(ClosedError):
        store.objects.read(tip)
    with pytest.raises(ClosedError):
        store.refs.read(MAIN)
    with pytest.raises(ClosedError):
        store.sync()
    store.close()


def test_a_lost_settlement_of_a_ref_with_two_values_is_brought_back_whole(tmp_path: Path) -> None:
    """A frame may move one ref in several steps; only the last value counts."""
    store = new_store(tmp_path)
    first, second, last = (append(store, text) for text in "abc")
    tag = "refs/tags/v"
    move(store, tag, first)
    seal(store)
    (tmp_path / ".trace" / tag / str(second)).touch()
    seal(store)
    assert len(store.refs.tips(tag)) == 2
    move(store, tag, last)
    shutil.rmtree(tmp_path / ".trace" / "journal")
    append(store, "after")
    assert store.refs.tips(tag) == reopen(tmp_path).refs.tips(tag) == (last,)
    assert not list(store.refs.iterate("refs/trash/"))
    seal(store)
    assert reopen(tmp_path).refs.tips(tag) == (last,)


def test_a_long_name_is_rescued_under_a_hash(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    name = ("refs/heads/" + "/".join(["x" * 95] * 4))[:396]
    append(store, "one", name)
    seal(store)
    lost = append(store, "two", name)
    shutil.rmtree(tmp_path / ".trace" / "journal")
    append(reopen(tmp_path), "other", name)
    append(store, "next")
    rescued = dict(store.refs.iterate("refs/trash/recovered/"))
    assert list(rescued.values()) == [lost]
    assert main_line(reopen(tmp_path)) == ["next"]
