"""The journal's frames, its damaged tails, and the fold of its ref moves."""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.store.support.histories import (
    MAIN,
    OTHER,
    append,
    codes,
    errors,
    journal_path,
    journals,
    main_line,
    move,
    new_store,
    reopen,
)
from trace_store.base.oid import ObjectId, hash_object
from trace_store.disk.files import APPEND, Disk
from trace_store.errors import RefChangedError, StorageError, UnsupportedFormatError
from trace_store.journal.file import MAXIMUM_ROOM_BYTES
from trace_store.journal.frames import (
    FIRST_PASSING,
    HEADER_BYTES,
    TRANSACTION,
    Frame,
    Move,
    _frame,
    encode_transaction,
    length_in,
    scan,
)
from trace_store.journal.journal import ROOM_BYTES
from trace_store.journal.recovery import is_cut_off
from trace_store.journal.view import RefsFold
from trace_store.maintenance.seal import seal
from trace_store.objects.codec import encode
from trace_store.testing.disks import FailingDisk, RecordingDisk

A, B, C, D = (hash_object(letter) for letter in (b"a", b"b", b"c", b"d"))


def frames_of(data: bytes) -> list[Frame]:
    return list(scan(lambda at, size: data[at : at + size], 0, len(data)))


def transaction(*moves: Move, objects: Any = ()) -> bytes:
    return encode_transaction(Frame.of_transaction(list(moves), "me", 5, "m", MAIN), dict(objects))


def frame_with(*moves: Move) -> Frame:
    return Frame.of_transaction(list(moves), "me", 5, "", "")


class TestFrames:
    def test_a_frame_is_read_as_it_was_written(self) -> None:
        objects = [(A, b"first"), (B, b""), (C, b"x" * 5000)]
        data = transaction(Move(MAIN, None, A), Move(OTHER, B, None), objects=objects)
        (frame,) = frames_of(data)
        assert [(oid, data[at : at + size]) for oid, at, size in frame.objects] == objects
        assert [(m.name, m.old, m.new) for m in frame.moves] == [(MAIN, None, A), (OTHER, B, None)]
        assert (frame.author, frame.time, frame.message, frame.head) == ("me", 5, "m", MAIN)
        assert (frame.start, frame.end) == (0, len(data))

    def test_zeros_never_validate(self) -> None:
        """A frame has a checksum under which zeros never validate, whatever their number."""
        whole = transaction(Move(MAIN, None, A))
        for count in (*range(1, 70), 4096, 8192):
            assert frames_of(bytes(count)) == []
            assert len(frames_of(whole + bytes(count))) == 1

    def test_every_changed_byte_invalidates(self) -> None:
        data = transaction(Move(MAIN, None, A), objects=[(A, b"content")])
        for place in range(len(data)):
            for bit in (1, 128):
                damaged = bytearray(data)
                damaged[place] ^= bit
                assert frames_of(bytes(damaged)) == [], place

    def test_the_valid_prefix_counts_at_every_length(self) -> None:
        pieces = [transaction(Move(MAIN, None, A)), transaction(objects=[(B, b"b" * 50)])]
        data = b"".join(pieces)
        for length in range(len(data) + 1):
            expected = (length >= len(pieces[0])) + (length >= len(data))
            assert len(frames_of(data[:length])) == expected

    def test_frames_larger_than_the_read_ahead(self) -> None:
        data = b"".join(transaction(objects=[(A, bytes([n]) * 700_000)]) for n in range(5))
        data += transaction(objects=[(B, b"z" * 3_000_000)])
        assert len(frames_of(data)) == 6

    def test_a_hostile_frame_is_no_frame(self) -> None:
        good = transaction()
        for section in (
            {},
            {"author": 1},
            {"author": "a", "time": 1, "moves": [[1]]},
            {"author": "a", "time": 1, "moves": [["refs/heads/x", b"short", None]]},
        ):
            assert len(frames_of(good + _frame(TRANSACTION, {}, [encode(section)]))) == 1


class TestFold:
    """Ref moves are compare-and-swap inside the journal."""

    def test_the_first_move_sets_the_base(self) -> None:
        fold = RefsFold()
        assert fold.apply(frame_with(Move(MAIN, A, B)))
        assert fold.refs[MAIN].value == B
        assert fold.refs[MAIN].passed == {A}

    def test_a_move_with_a_wrong_expectation_has_no_effect_for_ever(self) -> None:
        fold = RefsFold()
        fold.apply_all([frame_with(Move(MAIN, A, B))])
        assert not fold.apply(frame_with(Move(MAIN, A, C)))
        assert fold.refs[MAIN].value == B
        assert fold.apply(frame_with(Move(MAIN, B, D)))
        assert not fold.apply(frame_with(Move(MAIN, C, A)))
        assert fold.refs[MAIN].value == D

    def test_the_moves_of_a_frame_have_effect_together(self) -> None:
        fold = RefsFold()
        fold.apply(frame_with(Move(MAIN, None, A)))
        assert not fold.apply(frame_with(Move(OTHER, None, B), Move(MAIN, None, B)))
        assert OTHER not in fold.refs
        assert fold.apply(frame_with(Move(MAIN, A, B), Move(MAIN, B, C)))
        assert fold.refs[MAIN].value == C

    def test_every_prefix_of_a_fold_keeps_its_effects(self) -> None:
        """An effective move stays effective, whatever follows it."""
        values: list[ObjectId | None] = [None, A, B]
        moves = [Move(MAIN, old, new) for old, new in itertools.permutations(values, 2)]
        for sequence in itertools.product(moves, repeat=4):
            fold, effective = RefsFold(), []
            for move_ in sequence:
                effective.append(fold.apply(frame_with(move_)))
            for length in range(1, 5):
                again = RefsFold()
                assert [again.apply(frame_with(m)) for m in sequence[:length]] == effective[:length]


class TestTail:
    """A damaged tail has no effect, and the next writer starts a new journal."""

    @pytest.mark.parametrize("room", [0, 3, 5000])
    def test_every_length_of_a_torn_frame(self, tmp_path: Path, room: int) -> None:
        store = new_store(tmp_path)
        append(store, "one")
        sound = journal_path(tmp_path).read_bytes()
        append(store, "two")
        store.close()
        torn = journal_path(tmp_path).read_bytes()
        lengths = {
            *range(len(sound), len(sound) + 30),
            *range(len(sound), len(torn), 5),
            len(torn) - 1,
        }
        for length in sorted(lengths):
            if torn[:length] + bytes(room) >= torn:
                continue  # the missing bytes were zeros
            for number in journals(tmp_path):
                journal_path(tmp_path, number).unlink()
            journal_path(tmp_path, 1).write_bytes(torn[:length] + bytes(room))
            with reopen(tmp_path) as again:
                assert main_line(again) == ["one"]
                append(again, "three")
                assert main_line(again) == ["one", "three"]
            assert journals(tmp_path) == ([1] if length == len(sound) else [1, 2])
            if length != len(sound):
                held = journal_path(tmp_path, 1).read_bytes()
                assert held == torn[:length] + bytes(room), "it was written to"

    @pytest.mark.parametrize("count", [1, 11, 12, 13, 4096])
    def test_a_tail_of_zeros_is_room(self, tmp_path: Path, count: int) -> None:
        store = new_store(tmp_path)
        append(store, "one")
        with journal_path(tmp_path).open("ab") as file:
            file.write(bytes(count))
        append(store, "two")  # this handle was open meanwhile
        store.close()
        with reopen(tmp_path) as again:
            assert main_line(again) == ["one", "two"]
            assert codes(again) == set()
        assert journals(tmp_path) == [1]

    def test_room_is_bounded_and_holds_nothing_else(self, tmp_path: Path) -> None:
        """What a power cut left further on might come after a frame by chance, so nothing is written before it."""
        store = new_store(tmp_path)
        append(store, "one")
        store.close()
        sound = journal_path(tmp_path).read_bytes()
        for tail in (bytes(MAXIMUM_ROOM_BYTES + 1), bytes(70_000) + b"x", bytes(12) + sound):
            for number in journals(tmp_path):
                journal_path(tmp_path, number).unlink()
            journal_path(tmp_path, 1).write_bytes(sound + tail)
            with reopen(tmp_path) as again:
                assert codes(again) == {"journal-tail"}
                append(again, "two")
                assert main_line(again) == ["one", "two"]
            assert journals(tmp_path) == [1, 2]
            assert journal_path(tmp_path, 1).read_bytes() == sound + tail

    def test_durable_appends_make_room_that_others_use(self, tmp_path: Path) -> None:
        """A file that does not grow is cheaper to sync. Who writes once leaves none."""
        writers = [new_store(tmp_path), reopen(tmp_path)]
        append(writers[0], "0", durability="durable")
        written = journal_path(tmp_path).read_bytes()
        assert frames_of(written)[-1].end == len(written)
        for number in range(1, 300):
            append(writers[number % 2], f"{number}", durability="durable")
        size = journal_path(tmp_path).stat().st_size
        end = frames_of(journal_path(tmp_path).read_bytes())[-1].end  # its last byte may be a zero
        assert end < size <= end + ROOM_BYTES
        assert main_line(writers[0]) == main_line(writers[1]) == [f"{n}" for n in range(300)]
        with reopen(tmp_path) as reader:
            assert codes(reader) == set()
            assert reader.unsealed().bytes < end
            seal(reader)
        append(writers[0], "last")
        assert main_line(writers[1])[-2:] == ["299", "last"]
        assert journals(tmp_path)[-1] == 2

    def test_room_that_the_disk_has_no_space_for_is_done_without(self, tmp_path: Path) -> None:
        class Full(Disk):
            def write(self, fd: int, data: bytes, at: int | None = None) -> int:
                return super().write(fd, data[: HEADER_BYTES + length_in(data)], at)

        with new_store(tmp_path, disk=Full()) as store:
            for number in range(5):
                append(store, f"{number}", durability="durable")
            assert main_line(store) == [f"{number}" for number in range(5)]

    def test_a_tail_is_reported_and_sealed_over(self, tmp_path: Path) -> None:
        store = new_store(tmp_path)
        append(store, "one")
        with journal_path(tmp_path).open("ab") as file:
            file.write(b"torn")
        assert "journal-tail" in codes(store)
        seal(store)
        assert main_line(store) == ["one"]
        append(store, "two")
        seal(store)
        seal(store)
        assert errors(store) == []
        assert main_line(store) == ["one", "two"]

    def test_a_short_write_fails_and_leaves_the_rest_usable(self, tmp_path: Path) -> None:
        new_store(tmp_path).close()

        class Short(Disk):
            armed = False

            def write(self, fd: int, data: bytes, at: int | None = None) -> int:
                if self.armed:
                    self.armed = False
                    return super().write(fd, data[: len(data) // 2], at)
                return super().write(fd, data, at)

        disk = Short()
        store = reopen(tmp_path, disk=disk)
        append(store, "one")
        disk.armed = True
        with pytest.raises(StorageError):
            append(store, "lost")
        append(store, "two")
        assert main_line(store) == ["one", "two"]
        with reopen(tmp_path) as other:
            assert main_line(other) == ["one", "two"]

    def test_a_journal_is_only_ever_appended_to(self, tmp_path: Path) -> None:
        store = new_store(tmp_path)
        before = b""
        for number in range(5):
            append(store, str(number))
            now = journal_path(tmp_path, 1).read_bytes()
            assert now.startswith(before)
            before = now
        seal(store)
        assert journal_path(tmp_path, 1).read_bytes().startswith(before)


class TestSync:
    def test_an_append_is_one_write_and_one_sync(self, tmp_path: Path) -> None:
        new_store(tmp_path).close()
        disk = RecordingDisk()
        store = reopen(tmp_path, disk=disk)
        append(store, "first", durability="durable")
        disk.reset()
        append(store, "second", durability="durable")
        assert disk.synced == 1
        assert disk.written_bytes < 1400, "the frame, and as much room as there was in the file"

    def test_fast_and_batch_sync_less(self, tmp_path: Path) -> None:
        new_store(tmp_path).close()
        disk = RecordingDisk()
        store = reopen(tmp_path, disk=disk)
        append(store, "first", durability="durable")
        disk.reset()
        for number in range(64):
            append(store, f"fast {number}", durability="fast")
        assert disk.synced == 0
        for number in range(128):
            append(store, f"batch {number}", durability="batch")
        assert disk.synced == 2
        append(store, "rest", durability="batch")
        store.close()
        assert disk.synced == 3

    def test_a_failed_sync_fails_the_transaction_and_is_never_repeated(
        self, tmp_path: Path
    ) -> None:
        new_store(tmp_path).close()

        class Refusing(Disk):
            armed = False
            synced: ClassVar[list[int]] = []

            def sync(self, fd: int) -> None:
                self.synced.append(os.fstat(fd).st_ino)
                if self.armed:
                    self.armed = False
                    raise StorageError("sync", errno=5)
                super().sync(fd)

        disk = Refusing()
        store = reopen(tmp_path, disk=disk, durability="durable")
        append(store, "one", durability="durable")
        poisoned = journal_path(tmp_path).stat().st_ino
        other = reopen(tmp_path)
        disk.armed = True
        with pytest.raises(StorageError):
            append(store, "lost", durability="durable")
        assert disk.synced[-2:].count(poisoned) == 1
        disk.synced.clear()
        append(store, "two", durability="durable")
        assert poisoned not in disk.synced
        append(other, "three")
        for handle in (store, other, reopen(tmp_path)):
            assert main_line(handle) == ["one", "two", "three"]
            assert errors(handle) == []

    def test_a_failed_write_has_no_effect(self, tmp_path: Path) -> None:
        new_store(tmp_path).close()
        store = reopen(tmp_path)
        append(store, "one")
        for at in range(1, 4):
            failing = reopen(tmp_path, disk=FailingDisk(at, partly=at % 2 == 1))
            try:
                append(failing, f"tried {at}", durability="durable")
            except StorageError:
                assert main_line(reopen(tmp_path)) == main_line(store)
            append(store, f"after {at}")
        assert errors(store) == []


class TestWriters:
    def test_a_stale_writer_learns_so_before_it_is_acknowledged(self, tmp_path: Path) -> None:
        from trace_store.contracts import RefEdit, Transaction

        one, two = new_store(tmp_path), reopen(tmp_path)
        first = append(one, "one")
        assert two.refs.read(MAIN) == first
        second = append(one, "two")
        with pytest.raises(RefChangedError) as caught:
            two.transact(lambda refs: Transaction([], [RefEdit(MAIN, first, first)]))
        assert caught.value.actual == second
        append(two, "three")
        assert main_line(one) == ["one", "two", "three"]

    def test_what_is_built_sees_the_refs_as_they_are(self, tmp_path: Path) -> None:
        one, two = new_store(tmp_path), reopen(tmp_path)
        for number in range(10):
            append((one, two)[number % 2], str(number))
        assert main_line(one) == main_line(two) == [str(n) for n in range(10)]

    def test_an_error_while_building_writes_nothing_and_releases_the_lock(
        self, tmp_path: Path
    ) -> None:
        store = new_store(tmp_path)
        append(store, "one")
        size = journal_path(tmp_path).stat().st_size

        def build(refs: Any) -> None:
            raise KeyError("mine")

        with pytest.raises(KeyError):
            store.transact(build)
        assert journal_path(tmp_path).stat().st_size == size
        append(reopen(tmp_path), "two")
        assert main_line(store) == ["one", "two"]

    def test_a_rotated_journal_gets_no_more_frames(self, tmp_path: Path) -> None:
        """After locking, a writer checks that the last frame is no end frame."""
        one, two = new_store(tmp_path), reopen(tmp_path)
        append(one, "one")
        append(two, "two")
        seal(one)
        size = journal_path(tmp_path, 1).stat().st_size
        append(two, "three")
        assert journal_path(tmp_path, 1).stat().st_size == size
        assert main_line(one) == ["one", "two", "three"]


class TestUnknownFrames:
    def add(self, folder: Path, kind: int) -> None:
        with journal_path(folder).open("ab") as file:
            file.write(_frame(kind, {}, [encode({})]))

    def test_passing_frames_are_skipped_and_dropped(self, tmp_path: Path) -> None:
        store = new_store(tmp_path)
        append(store, "one")
        self.add(tmp_path, FIRST_PASSING + 3)
        append(store, "two")
        assert main_line(reopen(tmp_path)) == ["one", "two"]
        seal(store)
        assert main_line(store) == ["one", "two"]
        assert errors(store) == []

    def test_unknown_lasting_frames_refuse_the_seal_by_name(self, tmp_path: Path) -> None:
        store = new_store(tmp_path)
        append(store, "one")
        self.add(tmp_path, 77)
        append(store, "two")
        assert main_line(store) == ["one", "two"]
        with pytest.raises(UnsupportedFormatError) as caught:
            seal(store)
        assert "77" in str(caught.value.required)
        assert main_line(reopen(tmp_path)) == ["one", "two"]
        assert "journal-unknown-frame" in codes(store)
        append(store, "three")
        assert main_line(reopen(tmp_path)) == ["one", "two", "three"]


def test_a_forked_child_takes_its_own_lock(tmp_path: Path) -> None:
    if not hasattr(os, "fork"):
        pytest.skip("this system cannot fork")
    store = new_store(tmp_path)
    append(store, "one")
    child = os.fork()
    if child == 0:
        status = 1
        try:
            for number in range(30):
                append(store, f"child {number}")
            status = 0
        finally:
            os._exit(status)
    for number in range(30):
        append(store, f"parent {number}")
    assert os.waitpid(child, 0)[1] == 0
    assert len(main_line(store)) == 61
    assert errors(store) == []


def test_deleted_refs_are_folded(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    first = append(store, "one", OTHER)
    move(store, OTHER, None)
    assert reopen(tmp_path).refs.read(OTHER) is None
    move(store, OTHER, first)
    assert reopen(tmp_path).refs.read(OTHER) == first


class TestLock:
    """Every append holds an exclusive lock on the journal's own descriptor."""

    def test_an_append_waits_for_who_holds_it(self, tmp_path: Path) -> None:
        store = new_store(tmp_path)
        append(store, "one")
        disk = Disk()
        fd = disk.open(str(journal_path(tmp_path)), APPEND)
        assert fd is not None
        assert disk.lock(fd, blocking=False)
        done = threading.Event()

        def work() -> None:
            append(store, "two")
            done.set()

        thread = threading.Thread(target=work)
        thread.start()
        assert not done.wait(0.15)
        assert main_line(reopen(tmp_path)) == ["one"], "readers take no lock"
        disk.unlock(fd)
        assert done.wait(10)
        thread.join()
        disk.close(fd)
        assert main_line(reopen(tmp_path)) == ["one", "two"]

    def test_it_is_free_after_an_append_and_after_an_error(self, tmp_path: Path) -> None:
        new_store(tmp_path).close()
        for at in range(1, 6):
            store = reopen(tmp_path, disk=FailingDisk(at))
            with contextlib.suppress(StorageError):
                append(store, str(at), durability="durable")
            disk = Disk()
            for number in journals(tmp_path) if (tmp_path / ".trace/journal").exists() else []:
                fd = disk.open(str(journal_path(tmp_path, number)), APPEND)
                assert fd is not None
                assert disk.lock(fd, blocking=False)
                disk.close(fd)

    def test_no_lock_file_is_made_by_an_append(self, tmp_path: Path) -> None:
        store = new_store(tmp_path)
        append(store, "one")
        assert not (tmp_path / ".trace" / "locks").exists()


@pytest.mark.parametrize("content", [b"", bytes(100), b"half a beg"])
def test_what_is_committed_behind_a_journal_that_does_not_begin_is_kept(
    tmp_path: Path, content: bytes
) -> None:
    """The state after a kill on a file system without hard links."""
    with new_store(tmp_path) as store:
        append(store, "one")
    journal_path(tmp_path, 2).write_bytes(content)
    for text in ("two", "three"):
        with reopen(tmp_path) as store:
            append(store, text)
    with reopen(tmp_path) as store:
        assert main_line(store) == ["one", "two", "three"]
        seal(store)
        append(store, "four")
        assert main_line(store) == ["one", "two", "three", "four"]
        assert not errors(store)


def test_a_frame_without_its_first_sector_was_cut_off() -> None:
    """A header may cross a sector boundary."""
    data = transaction(Move(MAIN, None, A))
    rest = bytes(11) + data[11:]
    assert is_cut_off(rest, 512 - 11)
    assert not is_cut_off(rest, 512 - 12), "a byte of that sector is there"


def test_other_files_among_the_journals_are_passed_over(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    append(store, "one")
    for name in ("readme", "٣", "007", "2.bak", "9" * 30, "-1"):
        (tmp_path / ".trace" / "journal" / name).write_text("x")
    assert main_line(reopen(tmp_path)) == ["one"]
    append(reopen(tmp_path), "two")
    seal(store)
    assert main_line(reopen(tmp_path)) == ["one", "two"]


def test_a_reader_starts_again_when_the_set_of_journals_changes(tmp_path: Path) -> None:
    """A reader that is overtaken by two whole seals between two of its calls sees one state or another."""
    writer = new_store(tmp_path)
    append(writer, "0")

    class Overtaken(Disk):
        turn = 0

        def names(self, path: str) -> list[str]:
            found = super().names(path)
            self.turn += 1
            if self.turn % 2 and self.turn < 12:
                append(writer, str(self.turn))
                seal(writer)
                append(writer, f"{self.turn} again")
                seal(writer)
            return found

    reader = reopen(tmp_path, disk=Overtaken())
    for _ in range(6):
        seen = main_line(reader)
        now = main_line(writer)
        assert seen == now[: len(seen)]
        assert reader.refs.diverged() == []
    assert main_line(reader) == main_line(writer)
