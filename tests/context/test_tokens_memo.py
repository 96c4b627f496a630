"""Counts that are remembered: derived, shared, and never in the way."""

from __future__ import annotations

import binascii
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from trace_store.context.tokens.overhead import TokenMemo
from trace_store.disk.files import Disk
from trace_store.errors import StorageError

RECORD = 40


class RecordingDisk(Disk):
    """Notes every call that reads or writes content."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int]] = []

    def read_at(self, fd: int, offset: int, size: int) -> bytes:
        self.calls.append(("read", size))
        return super().read_at(fd, offset, size)

    def write(self, fd: int, data: bytes, at: int | None = None) -> int:
        self.calls.append(("write", len(data)))
        return super().write(fd, data, at)


class ShortDisk(Disk):
    """Takes only the first bytes of the first write, as a full disk does."""

    def __init__(self, take: int) -> None:
        self.take: int | None = take

    def write(self, fd: int, data: bytes, at: int | None = None) -> int:
        take, self.take = self.take, None
        return super().write(fd, data[:take], at)


class RefusingDisk(Disk):
    def write(self, fd: int, data: bytes, at: int | None = None) -> int:
        raise StorageError("no space left on device")


def oid(number: int) -> bytes:
    return number.to_bytes(32)


def memo(path: Path, disk: Disk | None = None, encoding: str = "o200k_base") -> TokenMemo:
    return TokenMemo(encoding, disk or Disk(), str(path))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "tokens" / "o200k_base"


def fill(path: Path, numbers: range) -> None:
    filled = memo(path)
    for number in numbers:
        filled.put(oid(number), number)
    assert filled.flush() == len(numbers)


def known(path: Path, numbers: range = range(100)) -> list[int]:
    read = memo(path)
    return [number for number in numbers if read.get(oid(number)) == number]


def test_counts_are_remembered(path: Path) -> None:
    fill(path, range(5))
    fill(path, range(5, 8))
    assert known(path) == list(range(8))
    assert path.stat().st_size == 8 * RECORD
    assert memo(path).get(oid(99)) is None
    assert len(memo(path)) == 8


def test_a_count_is_written_once(path: Path) -> None:
    fill(path, range(5))
    again = memo(path)
    again.put(oid(3), 3)
    assert again.flush() == 0
    assert path.stat().st_size == 5 * RECORD


def test_record_to_the_byte(path: Path) -> None:
    """The layout of the module's head."""
    fill(path, range(7, 8))
    record = path.read_bytes()
    assert record[:36] == bytes(31) + b"\x07" + b"\x00\x00\x00\x07"
    assert record[36:] == binascii.crc32(b"token counts: o200k_base" + record[:36]).to_bytes(4)


def test_one_read_for_all_counts_and_one_write_for_a_batch(path: Path) -> None:
    fill(path, range(1_000))
    disk = RecordingDisk()
    warm = memo(path, disk)
    assert all(warm.get(oid(number)) == number for number in range(1_000))
    for number in range(1_000, 1_500):
        warm.put(oid(number), number)
    warm.flush()
    assert disk.calls == [("read", 1_000 * RECORD), ("write", 500 * RECORD)]


def test_a_few_counts_are_added_without_reading(path: Path) -> None:
    fill(path, range(1_000))
    disk = RecordingDisk()
    added = TokenMemo("o200k_base", disk, str(path), read_back=False)
    assert added.get(oid(3)) is None
    added.put(oid(3), 3)
    added.put(oid(2_000), 2_000)
    assert added.get(oid(3)) == 3
    assert added.flush() == 2
    assert disk.calls == [("write", 2 * RECORD)]
    assert known(path, range(2_001)) == [*range(1_000), 2_000]


def test_a_torn_file_is_repaired_even_when_it_was_not_read(path: Path) -> None:
    fill(path, range(5))
    path.write_bytes(path.read_bytes()[:-1])
    added = TokenMemo("o200k_base", Disk(), str(path), read_back=False)
    added.put(oid(9), 9)
    assert added.flush() == 1
    assert known(path) == [0, 1, 2, 3, 9]


def test_a_repair_keeps_what_others_added_meanwhile(path: Path) -> None:
    fill(path, range(3))
    path.write_bytes(path.read_bytes() + b"torn")
    first, second = memo(path), memo(path)
    for number, each in ((10, first), (11, second)):
        each.put(oid(number), number)
        each.flush()
    assert known(path) == [0, 1, 2, 10, 11]


def test_nothing_is_touched_before_the_first_use(path: Path) -> None:
    disk = RecordingDisk()
    memo(path, disk).flush()
    assert disk.calls == []
    assert not path.exists()


def test_without_a_disk_it_remembers_for_the_process() -> None:
    memory = TokenMemo("o200k_base")
    memory.put(oid(1), 5)
    assert memory.get(oid(1)) == 5
    assert memory.flush() == 0


def test_counts_of_another_encoding_do_not_check(path: Path) -> None:
    fill(path, range(5))
    assert memo(path, encoding="cl100k_base").get(oid(1)) is None


def test_a_count_too_large_to_keep_is_not_kept(path: Path) -> None:
    large = memo(path)
    large.put(oid(1), 1 << 32)
    assert large.get(oid(1)) is None
    assert large.flush() == 0


# --- damage -------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 39, 40, 41, 199])
def test_the_whole_records_of_a_cut_file_count(path: Path, size: int) -> None:
    fill(path, range(5))
    path.write_bytes(path.read_bytes()[:size])
    assert known(path) == list(range(size // RECORD))
    fill(path, range(50, 52))
    assert known(path) == [*range(size // RECORD), 50, 51]


@pytest.mark.parametrize("size", [1, 40, 4096])
def test_zeros_never_check(path: Path, size: int) -> None:
    fill(path, range(1, 3))
    path.write_bytes(path.read_bytes() + bytes(size))
    assert memo(path).get(bytes(32)) is None
    fill(path, range(3, 4))
    assert known(path) == [1, 2, 3]
    assert path.stat().st_size == 3 * RECORD


@settings(max_examples=examples(200))
@given(position=st.integers(0, 5 * RECORD - 1), flip=st.integers(1, 255))
def test_a_changed_byte_costs_the_records_behind_it_and_no_more(
    tmp_path_factory: pytest.TempPathFactory, position: int, flip: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "flipped"
    path.unlink(missing_ok=True)
    fill(path, range(5))
    data = bytearray(path.read_bytes())
    data[position] ^= flip
    path.write_bytes(data)
    assert known(path) == list(range(position // RECORD))
    assert all(memo(path).get(oid(number)) in (None, number) for number in range(5))


@settings(max_examples=examples(100))
@given(content=st.binary(max_size=400))
def test_any_file_is_read(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "arbitrary"
    path.write_bytes(content)
    assert len(memo(path)) == 0
    fill(path, range(3))
    assert known(path) == [0, 1, 2]


@pytest.mark.parametrize("take", [0, 1, 40, 60])
def test_a_short_write_is_repaired_by_the_next_flush(path: Path, take: int) -> None:
    torn = memo(path, ShortDisk(take))
    for number in range(3):
        torn.put(oid(number), number)
    torn.flush()
    assert path.stat().st_size == take
    torn.put(oid(3), 3)
    torn.flush()
    assert known(path) == [0, 1, 2, 3]


def test_a_disk_that_refuses_is_no_error(path: Path) -> None:
    refused = memo(path, RefusingDisk())
    refused.put(oid(1), 1)
    assert refused.flush() == 0
    assert refused.get(oid(1)) == 1


def test_a_directory_in_the_place_of_the_file_is_no_error(path: Path) -> None:
    path.mkdir(parents=True)
    blocked = memo(path)
    blocked.put(oid(1), 1)
    assert blocked.flush() == 0
    assert blocked.get(oid(1)) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege on Windows")
def test_a_link_is_not_followed(path: Path, tmp_path: Path) -> None:
    target = tmp_path / "other"
    fill(target, range(3))
    path.parent.mkdir(parents=True)
    path.symlink_to(target)
    assert known(path) == []
    fill(path, range(5, 7))
    assert known(target) == [0, 1, 2]
    assert known(path) == [5, 6]


def test_a_file_deleted_meanwhile_is_made_again(path: Path) -> None:
    deleted = memo(path)
    deleted.put(oid(1), 1)
    deleted.flush()
    path.unlink()
    deleted.put(oid(2), 2)
    deleted.flush()
    assert known(path) == [2]


# --- together -----------------------------------------------------------------------------------

APPENDER = """
import sys
from trace_store.context.tokens.overhead import TokenMemo
from trace_store.disk.files import Disk
path, first = sys.argv[1], int(sys.argv[2])
memo = TokenMemo("o200k_base", Disk(), path)
for number in range(first, first + 600):
    memo.put(number.to_bytes(32), number)
    if number % 3 == 0:
        memo.flush()
memo.flush()
"""


def test_several_processes_append_to_one_file(path: Path) -> None:
    """Batches interleave completely; entries that two processes count occur twice."""
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    started = [
        subprocess.Popen([sys.executable, "-c", APPENDER, path, str(first)], env=environment)
        for first in (0, 300, 600, 900)
    ]
    assert [process.wait() for process in started] == [0, 0, 0, 0]
    assert known(path, range(1_500)) == list(range(1_500))
    assert path.stat().st_size <= 4 * 600 * RECORD
