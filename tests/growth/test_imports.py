"""What one imported record costs, and that memory and the journal do not grow with the number of sessions."""

from __future__ import annotations

import gc
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.growth.support.counting import calls_of
from tests.growth.support.stores import QuickDisk
from tests.importers.support.transcripts import Transcript, call
from trace_store import Environment, Repo, Store
from trace_store.base.oid import digest
from trace_store.maintenance import consolidate, schedule

TURNS = 8
RECORDS = 3 * TURNS
CALLS_OF_A_RECORD = 500
BYTES_OF_A_SESSION = 16_000
"""Its report, its row in the list, and the names of its refs, while the import lasts."""
SIDE_BYTES_OF_A_SESSION = 2_800
PIECE_BYTES = 40_000


def write_sessions(folder: Path, count: int) -> Path:
    folder.mkdir()
    for number in range(count):
        name = digest(f"session {number}".encode()).hex()
        session = "-".join((name[:8], name[8:12], name[12:16], name[16:20], name[20:32]))
        t = Transcript(session, first=number * 1000)
        for turn in range(TURNS):
            t.user(f"Question {turn} of session {number}: why does it fail?")
            t.assistant(
                f"m{number}-{turn}", call(f"c{number}-{turn}", "Bash", command=f"ls {turn}")
            )
            t.result(f"c{number}-{turn}", f"output {turn} of {number}\n" * 20)
        (folder / f"{session}.jsonl").write_bytes(t.data)
    return folder


def importing(
    folder: Path, sources: Path, progress: Callable[[str, int, int], None] | None = None
) -> Callable[[], object]:
    """Return a function that imports sources into a new repository."""
    store = Store.init(str(folder), disk=QuickDisk())
    repo = Repo(store, author="ada", environment=Environment())
    return lambda: repo.transcripts.import_(sources, progress=progress)


def test_a_record_takes_few_calls_and_is_read_back_from_memory(tmp_path: Path) -> None:
    few, many = (write_sessions(tmp_path / f"s{count}", count) for count in (4, 12))
    importing(tmp_path / "warm", few)()
    one = calls_of(importing(tmp_path / "a", few))
    other = calls_of(importing(tmp_path / "b", many))
    more = other - one
    records = 8 * RECORDS
    assert more.total() <= CALLS_OF_A_RECORD * records, more.most_common(20)
    assert more["Commit.decode"] <= records + 8, "each once for the list, and each tip for HEAD"
    assert not more["JournalView.read"]


def test_memory_and_the_journal_do_not_grow_with_the_sessions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedule, "PIECE_BYTES", PIECE_BYTES)
    monkeypatch.setattr(consolidate, "MAXIMUM_CONTENT_BYTES", PIECE_BYTES)
    importing(tmp_path / "warm", write_sessions(tmp_path / "first", 2))()  # what loads once
    most, sides = [], []
    for count in (16, 48):
        folder, sources = tmp_path / f"r{count}", write_sessions(tmp_path / f"s{count}", count)
        journal, sizes, used = folder / ".trace" / "journal", [0], [0]

        def measure(_: str, done: int, size: int) -> None:
            if done + 1 == size and journal.exists():  # noqa: B023 - at the end of a file
                gc.collect()
                used.append(tracemalloc.get_traced_memory()[0])  # noqa: B023
                sizes.append(sum(entry.stat().st_size for entry in os.scandir(journal)))  # noqa: B023

        run = importing(folder, sources, measure)
        tracemalloc.start()
        try:
            run()
        finally:
            tracemalloc.stop()
        most.append(max(used))
        assert max(sizes) < 3 * PIECE_BYTES, "one that is sealed, and the next one"
        notes = list((folder / ".trace" / "local" / "imports").iterdir())
        sides.append(sum(note.stat().st_size for note in notes))
        packs = list((folder / ".trace" / "objects" / "pack").glob("*.pack"))
        assert len(packs) >= count // 10, (len(packs), max(sizes))
    assert most[1] - most[0] < 32 * BYTES_OF_A_SESSION, most
    assert sides[1] - sides[0] < 32 * SIDE_BYTES_OF_A_SESSION, sides
