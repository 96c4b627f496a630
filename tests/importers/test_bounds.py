"""What an import costs: reads, syncs and memory, counted at two sizes."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path

from tests.importers.support.transcripts import SESSION, Transcript, text
from trace_store.importers.import_paths import import_paths
from trace_store.importers.sniff import HEAD_BYTES
from trace_store.store.store import Store
from trace_store.testing.disks import RecordingDisk
from trace_store.writer import Writer

BATCH_COMMITS = 256


def talk(turns: int, size: int) -> bytes:
    t = Transcript()
    for turn in range(turns):
        t.user(f"{turn}: " + "q" * size)
        t.assistant(f"msg_{turn}", text(f"{turn}: " + "a" * size), stop="end_turn")
    return t.data


def peak_of(run: Callable[[], object]) -> int:
    """The most memory that was taken meanwhile, in bytes."""
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def peak_of_import(folder: Path, data: bytes) -> int:
    folder.mkdir()
    path = folder / f"{SESSION}.jsonl"
    path.write_bytes(data)
    with Store.init(str(folder / "project"), durability="fast") as store:
        import_paths(Writer(store), [str(path)])  # load lazy modules first
    with Store.init(str(folder / "measured"), durability="fast") as store:
        return peak_of(lambda: import_paths(Writer(store), [str(path)]))


def test_memory_does_not_grow_with_the_bytes_of_a_file(tmp_path: Path) -> None:
    small = peak_of_import(tmp_path / "small", talk(8, 1 << 20))
    large = peak_of_import(tmp_path / "large", talk(24, 1 << 20))
    assert large < small + (2 << 20)
    assert large < 32 << 20


def test_long_lines_take_some_times_their_bytes(tmp_path: Path) -> None:
    data = talk(1, 12 << 20)
    assert peak_of_import(tmp_path / "long", data) < 5 * len(data)


def test_a_tiny_record_takes_at_most_four_kilobytes(tmp_path: Path) -> None:
    few = peak_of_import(tmp_path / "few", talk(500, 8))
    many = peak_of_import(tmp_path / "many", talk(2500, 8))
    assert many - few < 4000 * 4096


def test_an_import_is_made_durable_at_once_however_many_batches_it_takes(tmp_path: Path) -> None:
    syncs, reads = [], []
    for batches in (1, 4):
        disk = RecordingDisk()
        data = talk(batches * BATCH_COMMITS // 2 + 1, 40)
        path = tmp_path / f"{batches}.jsonl"
        path.write_bytes(data)
        with Store.init(str(tmp_path / str(batches)), disk=disk) as store:
            disk.reset()
            import_paths(Writer(store), [str(path)])
            syncs.append(disk.synced)
            reads.append(disk.read_bytes - 2 * len(data))
    assert syncs[0] == syncs[1]
    # The file is read twice, to import it and to keep it, and its head twice more.
    assert max(reads) < 2 * HEAD_BYTES + (32 << 10)
