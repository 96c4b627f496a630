"""Journal headers: lines, predecessors, void frames and names."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.store.support.histories import (
    MAIN,
    append,
    errors,
    journal_path,
    journals,
    main_line,
    move,
    new_store,
    reopen,
)
from trace_store.base.oid import hash_object
from trace_store.disk.files import Disk
from trace_store.errors import ConcurrencyError, InvalidRefNameError, StorageError
from trace_store.journal.frames import Frame, Move, encode_begin, encode_transaction
from trace_store.maintenance.seal import seal
from trace_store.objects.codec import encode_blob

LOCAL = ("journal", "local", "logs", "tmp", "locks", "index", "cache")
RECOVERED = "refs/trash/recovered/heads/main"


def wipe(folder: Path) -> None:
    """Remove untracked files."""
    for name in LOCAL:
        shutil.rmtree(folder / ".trace" / name, ignore_errors=True)


class Faulty(Disk):
    """A disk whose syncs, creations or writes fail on demand; it records syncs."""

    def __init__(self) -> None:
        self.full = False
        self.tear = False
        self.synced: dict[int, int] = {}
        self.calls: list[str] = []

    def sync(self, fd: int) -> None:
        if self.full:
            raise StorageError("no space", errno=28)
        super().sync(fd)
        found = os.fstat(fd)
        self.synced[found.st_ino] = found.st_size

    def sync_directory(self, path: str) -> None:
        super().sync_directory(path)
        self.calls.append(os.path.basename(path))

    def open(self, path: str, mode: str = "read") -> int | None:
        if self.full and mode == "create":
            raise StorageError("no space", errno=28)
        return super().open(path, mode)

    def write(self, fd: int, data: bytes, at: int | None = None) -> int:
        if self.tear:
            self.tear = False
            return super().write(fd, data[:20], at)
        self.calls.append("write")
        return super().write(fd, data, at)


class TestLines:
    def test_numbers_that_begin_anew_hide_no_commit(self, tmp_path: Path) -> None:
        """A lost journal is sealed only when its own line is, whatever another line's numbers are."""
        one = new_store(tmp_path)
        lost = append(one, "one")
        wipe(tmp_path)
        two = reopen(tmp_path)
        append(two, "two")
        seal(two)
        append(one, "after")
        again = reopen(tmp_path)
        assert main_line(again) == ["two", "after"]
        assert again.refs.read(RECOVERED) == lost
        assert errors(again) == []

    def test_numbers_that_begin_anew_twice(self, tmp_path: Path) -> None:
        one = new_store(tmp_path)
        for number in range(3):
            append(one, str(number))
            seal(one)
        wipe(tmp_path)
        append(reopen(tmp_path), "two")
        append(one, "before")
        wipe(tmp_path)
        append(one, "after")
        assert main_line(reopen(tmp_path)) == ["0", "1", "2", "two", "before", "after"]

    def test_one_journal_of_several_that_goes_is_not_taken_for_its_successor(
        self, tmp_path: Path
    ) -> None:
        one = new_store(tmp_path)
        append(one, "sealed")
        seal(one)
        append(one, "lost")
        journal_path(tmp_path).unlink()
        two = reopen(tmp_path)
        append(two, "two", "refs/heads/two")
        seal(two)
        append(one, "after")
        assert main_line(reopen(tmp_path)) == ["sealed", "lost", "after"]

    def test_a_seal_claims_only_journals_that_are_there(self, tmp_path: Path) -> None:
        sealer = new_store(tmp_path)
        append(sealer, "base")
        seal(sealer)
        one = reopen(tmp_path)
        append(one, "acknowledged")
        rotate = sealer.rotate

        def rotate_and_lose() -> Any:
            keys = rotate()
            sealer.rotate = rotate  # type: ignore[method-assign]
            shutil.rmtree(tmp_path / ".trace" / "journal")
            return keys

        sealer.rotate = rotate_and_lose  # type: ignore[method-assign]
        seal(sealer)
        sealer.close()
        append(one, "after")
        again = reopen(tmp_path)
        assert main_line(again) == ["base", "acknowledged", "after"]
        assert [name for name, _ in again.refs.iterate()] == [MAIN]

    def test_what_is_sealed_between_two_looks_is_not_lost(self, tmp_path: Path) -> None:
        class Hooked(Disk):
            hook: Any = None

            def names(self, path: str) -> list[str]:
                if self.hook and path.endswith("journal"):
                    hook, self.hook = self.hook, None
                    hook()
                return super().names(path)

        disk = Hooked()
        one = new_store(tmp_path, disk=disk)
        append(one, "1")
        two = reopen(tmp_path)
        seal(two)
        append(two, "2")  # so that the first lists the journals again

        def seal_twice() -> None:
            for text in ("3", "4"):
                seal(two)
                append(two, text)

        disk.hook = seal_twice
        one.refs.read(MAIN)
        assert disk.hook is None
        append(one, "5")
        again = reopen(tmp_path)
        assert main_line(again) == ["1", "2", "3", "4", "5"]
        assert [name for name, _ in again.refs.iterate()] == [MAIN]

    def test_large_numbers_count(self, tmp_path: Path) -> None:
        store = new_store(tmp_path)
        (tmp_path / ".trace" / "journal").mkdir()
        (tmp_path / ".trace" / "journal" / "999999999999999").write_bytes(b"junk" * 9)
        append(store, "one")
        assert journals(tmp_path)[-1] == 10**15
        seal(store)
        assert 999999999999999 not in journals(tmp_path)
        assert main_line(reopen(tmp_path)) == ["one"]

    def test_numbers_have_an_end(self, tmp_path: Path) -> None:
        store = new_store(tmp_path)
        (tmp_path / ".trace" / "journal").mkdir()
        (tmp_path / ".trace" / "journal" / str(2**63 - 1)).write_bytes(b"junk")
        with pytest.raises(StorageError, match="there are no more journal numbers"):
            append(store, "one")


class TestPredecessors:
    def test_a_durable_commit_rests_on_synced_journals_only(self, tmp_path: Path) -> None:
        new_store(tmp_path).close()
        disk = Faulty()
        append(reopen(tmp_path, disk=disk), "fast", durability="fast")
        torn = reopen(tmp_path, disk=disk)
        disk.tear = True
        with pytest.raises(StorageError):
            append(torn, "torn")
        append(reopen(tmp_path, disk=disk), "durable", durability="durable")
        for number in journals(tmp_path):  # a power cut
            path = journal_path(tmp_path, number)
            os.truncate(path, disk.synced.get(path.stat().st_ino, 0))
        assert main_line(reopen(tmp_path)) == ["fast", "durable"]

    def test_a_failed_sync_without_a_successor_cuts_nobody(self, tmp_path: Path) -> None:
        disk = Faulty()
        one = new_store(tmp_path, disk=disk)
        append(one, "base")
        disk.full = True
        with pytest.raises(StorageError):
            append(one, "fails", durability="durable")
        disk.full = False
        append(reopen(tmp_path), "two")
        append(one, "later")
        again = reopen(tmp_path)
        assert main_line(again) == main_line(one) == ["base", "two", "later"]
        assert errors(again) == []
        assert len(journals(tmp_path)) == 2  # nothing more goes to the one whose sync failed

    def test_the_name_is_durable_before_the_first_transaction(self, tmp_path: Path) -> None:
        """Its maker may have been killed between giving a journal its name and syncing the directory."""
        new_store(tmp_path).close()
        maker = reopen(tmp_path)
        maker.journal.lock()
        maker.journal.unlock()
        disk = Faulty()
        store = reopen(tmp_path, disk=disk)
        append(store, "one")
        append(store, "two")
        assert disk.calls == ["journal", ".trace", "write", "write"]


class TestVoids:
    def test_a_transaction_that_is_built_again_is_not_brought_back(self, tmp_path: Path) -> None:
        """Another process also has the removed journal open, and rewrites it first."""
        disk = Faulty()
        one = new_store(tmp_path, disk=disk)
        append(one, "base")
        two = reopen(tmp_path)
        two.refs.read(MAIN)
        plain = one.journal.conclude

        def lose_and_conclude(*args: Any, **options: Any) -> bool:
            stat = disk.stat
            disk.stat = lambda path: None if "journal" in path else stat(path)  # type: ignore[method-assign]
            done = plain(*args, **options)
            del disk.stat
            assert not done
            shutil.rmtree(tmp_path / ".trace" / "journal")
            append(two, "between")
            one.journal.conclude = plain  # type: ignore[method-assign]
            return done

        one.journal.conclude = lose_and_conclude  # type: ignore[method-assign]
        append(one, "once")
        again = reopen(tmp_path)
        assert main_line(again) == ["base", "between", "once"]
        assert [name for name, _ in again.refs.iterate()] == [MAIN]

    def test_a_voided_transaction_leaves_no_objects(self, tmp_path: Path) -> None:
        disk = Faulty()
        one = new_store(tmp_path, disk=disk)
        append(one, "base")
        watching = reopen(tmp_path)
        assert main_line(watching) == ["base"]
        disk.full = True
        with pytest.raises(StorageError):
            append(one, "again", durability="durable")
        disk.full = False
        tip = append(one, "again")
        assert main_line(watching) == ["base", "again"]
        assert reopen(tmp_path).objects.read(tip)
        seal(watching)
        assert main_line(reopen(tmp_path)) == ["base", "again"]


class TestHostileNames:
    NAME = "refs/../../../victim/x"

    def test_a_name_in_a_journal_leads_nowhere(self, tmp_path: Path) -> None:
        (tmp_path / "victim").mkdir()
        store = new_store(tmp_path / "clone")
        blob = encode_blob(b"x")
        oid = hash_object(blob)
        (tmp_path / "clone" / ".trace" / "journal").mkdir()
        (tmp_path / "clone" / ".trace" / "journal" / "1").write_bytes(
            encode_begin(bytes(16))
            + encode_transaction(
                Frame.of_transaction([Move(self.NAME, None, oid)], "a", 1, "", ""), {oid: blob}
            )
        )
        append(store, "one")
        seal(store)
        assert list((tmp_path / "victim").iterdir()) == []
        assert main_line(reopen(tmp_path / "clone")) == ["one"]

    @pytest.mark.parametrize(
        "text",
        [
            f"refs 1\n{'ab' * 32} {NAME}\n",
            f"sealed 0\n{'ab' * 32} {NAME}\n",
            "",
            "refs 1\n",
            "sealed 3 abcd\nrefs 0\n",
            f"sealed x {'ab' * 16}\nrefs 0\n",
        ],
    )
    def test_a_published_file_that_is_not_right_says_nothing(
        self, tmp_path: Path, text: str
    ) -> None:
        (tmp_path / "victim").mkdir()
        store = new_store(tmp_path / "clone")
        (tmp_path / "clone" / ".trace" / "local").mkdir()
        (tmp_path / "clone" / ".trace" / "local" / "published").write_text(text)
        append(store, "one")
        assert store.journal.published.damaged
        seal(store)
        assert list((tmp_path / "victim").iterdir()) == []
        assert main_line(reopen(tmp_path / "clone")) == ["one"]

    def test_the_name_of_a_reflog_is_no_name(self, tmp_path: Path) -> None:
        store = new_store(tmp_path)
        with pytest.raises(InvalidRefNameError):
            append(store, "x", "refs/heads/a.log/b")

    def test_a_reflog_that_cannot_be_written_fails_no_seal(self, tmp_path: Path) -> None:
        store = new_store(tmp_path)
        append(store, "x")
        (tmp_path / ".trace" / "logs" / "refs" / "heads" / "main.log").mkdir(parents=True)
        assert seal(store).unlogged == (MAIN,)
        assert store.unsealed().transactions == 0

    def test_a_directory_named_like_a_tip_is_none(self, tmp_path: Path) -> None:
        store = new_store(tmp_path)
        tip = append(store, "x")
        seal(store)
        stray = tmp_path / ".trace" / "refs" / "heads" / "main" / ("ab" * 32)
        stray.mkdir()
        (stray / "file").touch()
        assert store.refs.tips(MAIN) == (tip,)
        move(store, MAIN, None)
        seal(store)
        assert store.refs.read(MAIN) is None


def test_a_journal_that_goes_at_every_rotation_is_an_error(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    append(store, "one")
    rotate = store.rotate

    def rotate_and_lose() -> Any:
        keys = rotate()
        shutil.rmtree(tmp_path / ".trace" / "journal")
        return keys

    store.rotate = rotate_and_lose  # type: ignore[method-assign]
    with pytest.raises(ConcurrencyError):
        seal(store)
