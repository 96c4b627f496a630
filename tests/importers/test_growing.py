"""A transcript that grew: the same commits as if it had been imported at once, and only the new bytes are read."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.importers.support.checks import import_by_lines
from tests.importers.support.states import all_refs, branches, raw_records
from tests.importers.support.transcripts import (
    SESSION,
    Transcript,
    call,
    each_chosen_file,
    lively,
    records_in,
    text,
)
from trace_store.base.oid import digest
from trace_store.contracts.ref_names import FILES
from trace_store.importers.import_paths import import_paths
from trace_store.maintenance.fsck import fsck
from trace_store.odb.compression import compress, decompress_first
from trace_store.store.store import Store
from trace_store.transcripts.segments import restore, segments_of
from trace_store.writer import Writer


def cuts_of(data: bytes, count: int) -> list[int]:
    """Places to cut a file: at and around line ends, and anywhere."""
    ends = [i + 1 for i, byte in enumerate(data) if byte == 10]
    chosen = random.Random(len(data))
    around = [end + by for end in ends for by in (-1, 0, 1)]
    anywhere = [chosen.randrange(1, len(data)) for _ in range(count)]
    picked = around if len(around) <= count else chosen.sample(around, count)
    return sorted({cut for cut in (*picked, *anywhere) if 0 < cut <= len(data)})


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.init(str(tmp_path / "project"), durability="fast") as opened:
        yield opened


def at_once(data: bytes, folder: Path, name: str) -> dict[str, object]:
    whole = folder / "whole" / f"{name}.jsonl"
    whole.parent.mkdir(exist_ok=True)
    whole.write_bytes(data)
    expected = Store.memory()
    import_paths(Writer(expected), [str(whole)])
    return dict(branches(expected))


@pytest.mark.parametrize("remembers", [True, False])
def test_two_steps_make_what_one_makes(tmp_path: Path, remembers: bool) -> None:
    data = lively().data
    expected = at_once(data, tmp_path, SESSION)
    path = tmp_path / f"{SESSION}.jsonl"
    for number, cut in enumerate(cuts_of(data, 40)):
        path.write_bytes(data[:cut])
        with Store.init(str(tmp_path / str(number)), durability="fast") as store:
            import_paths(Writer(store), [str(path)], format="claude-code")
            if not remembers:
                shutil.rmtree(Path(store.layout.local_dir) / "imports", ignore_errors=True)
            path.write_bytes(data)
            import_paths(Writer(store), [str(path)])
            assert branches(store) == expected, cut
            again = import_paths(Writer(store), [str(path)])
            assert (again.commits, again.messages) == (0, 0), cut


def test_line_by_line_makes_what_one_step_makes(tmp_path: Path, store: Store) -> None:
    data = lively().data
    path = tmp_path / f"{SESSION}.jsonl"
    import_by_lines(store, path, data)
    assert branches(store) == at_once(data, tmp_path, SESSION)
    kept = raw_records(store)
    assert sorted(kept) == sorted(raw for raw, _ in records_in(data))


def test_what_a_branch_is_moved_over_stays_in_the_trash(tmp_path: Path, store: Store) -> None:
    t = Transcript()
    t.user("Read both files.")
    t.assistant("msg_1", call("toolu_a"))
    path = t.write(tmp_path)
    import_paths(Writer(store), [path])
    before = branches(store)[SESSION]
    t.assistant("msg_1", call("toolu_b"))
    t.result("toolu_a", "a")
    t.write(tmp_path)
    report = import_paths(Writer(store), [path]).files[0]
    assert branches(store)[SESSION] != before
    assert [all_refs(store)[ref] for ref in report.trashed] == [before]


def test_only_new_bytes_are_read(tmp_path: Path, store: Store) -> None:
    t = Transcript()
    for turn in range(200):
        t.user(f"Question {turn}: " + "long " * 200)
        t.assistant(f"msg_{turn}", text(f"Answer {turn}: " + "long " * 200), stop="end_turn")
    path = t.write(tmp_path)
    first = import_paths(Writer(store), [path]).files[0]
    assert first.bytes_read > len(t.data)
    unchanged = import_paths(Writer(store), [path]).files[0]
    assert unchanged.skipped == "unchanged"
    assert unchanged.bytes_read < 16_000
    size = len(t.data)
    t.user("One more?")
    t.assistant("msg_last", text("One more."), stop="end_turn")
    t.write(tmp_path)
    grown = import_paths(Writer(store), [path]).files[0]
    assert (
        grown.bytes_read < len(t.data) - size + 300_000
    )  # the head that tells the format is looked at too
    assert (grown.commits, grown.messages) == (2, 2)
    assert grown.records == {("user", "message"): 1, ("assistant", "message"): 1}


def test_what_is_kept_of_a_file_is_not_read_again_when_it_grows(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    t = Transcript()
    counts: list[int] = []
    read = type(store.objects).read

    def counting(objects: object, oid: bytes) -> bytes:
        data = read(objects, oid)  # type: ignore[arg-type]
        counts[-1] += data[2:6] == b"list"
        return data

    monkeypatch.setattr(type(store.objects), "read", counting)
    for turns in (700, 1, 700, 1):
        for turn in range(turns):
            t.user(f"Question {len(t.lines)} of {turn}?")
            t.assistant(f"msg_{len(t.lines)}", text("An answer."), stop="end_turn")
        counts.append(0)
        import_paths(Writer(store), [t.write(tmp_path)])
    _, short, _, long = counts
    assert short == long <= 6
    ((_, tip),) = store.refs.iterate(FILES)
    assert len(segments_of(tip, store.objects.read)) > 40


def test_a_file_that_shrank_or_was_rewritten_is_read_whole(tmp_path: Path, store: Store) -> None:
    t = lively()
    path = t.write(tmp_path)
    import_paths(Writer(store), [path])
    before = branches(store)
    Path(path).write_bytes(t.data[: len(t.data) // 2])
    report = import_paths(Writer(store), [path])
    assert report.commits == 0
    assert branches(store) == before, "an older copy of a session takes nothing back"
    Path(path).write_bytes(t.data.replace(b"Fix the parser", b"Fix the reader"))
    import_paths(Writer(store), [path])
    after = branches(store)
    assert after.items() >= before.items()
    assert any("/copies/" in name for name in after), (
        "another version of the session stands beside it"
    )


def test_a_damaged_memory_counts_as_none(tmp_path: Path, store: Store) -> None:
    path = lively().write(tmp_path)
    import_paths(Writer(store), [path])
    before = all_refs(store)
    for file in (Path(store.layout.local_dir) / "imports").iterdir():
        file.write_bytes(file.read_bytes()[:-10] + b"0123456789")
    report = import_paths(Writer(store), [path])
    assert report.commits == 0
    assert report.files[0].commits_present > 0
    assert all_refs(store) == before


@pytest.mark.parametrize("document", [False, True])
def test_a_file_that_was_changed_in_the_middle_is_no_longer_what_it_was(
    tmp_path: Path, store: Store, document: bool
) -> None:
    """As a program does that puts other letters over a secret: its length, its beginning and its end stay."""
    messages = [{"role": "user", "content": f"Question {n}: " + "long " * 20} for n in range(200)]
    path = tmp_path / ("chat.json" if document else "chat.jsonl")
    lines = [json.dumps(message) for message in messages]
    path.write_text(f"[{', '.join(lines)}]" if document else "\n".join(lines) + "\n")
    assert import_paths(Writer(store), [str(path)]).messages == 200
    before = path.read_bytes()
    path.write_bytes(before.replace(b"Question 100", b"Xxxxxxxx 100"))
    (report,) = import_paths(Writer(store), [str(path)]).files
    assert (report.skipped, report.commits) == ("", 100)
    kept = [b"".join(restore(tip, store.objects.read)) for _, tip in store.refs.iterate(FILES)]
    assert sorted(kept) == sorted([before, path.read_bytes()])
    os.utime(path, (1, 1))
    (report,) = import_paths(Writer(store), [str(path)]).files
    assert report.skipped == "unchanged"
    assert import_paths(Writer(store), [str(path)]).files[0].bytes_read < 16_000


STRANGE: list[Any] = [None, 0, -1, 1.5, 2**70, True, "", "x", "00" * 32, [], {}, [[1]]]


def places_in(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of each value within a JSON value."""
    if before:
        yield before
    items: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        yield from places_in(inner, (*before, key))


@pytest.mark.parametrize("seed", range(30))
def test_what_is_remembered_wrongly_does_no_harm(tmp_path: Path, store: Store, seed: int) -> None:
    chosen = random.Random(seed)
    t = lively()
    for turn in range(30):
        t.user(f"And question {turn}?")
        t.assistant(f"msg_n{turn}", call(f"toolu_n{turn}", at=turn))
        t.result(f"toolu_n{turn}", "found " * 20)
    path = tmp_path / f"{SESSION}.jsonl"
    path.write_bytes(t.data[: len(t.data) * 2 // 3])
    import_paths(Writer(store), [str(path)])
    folder = Path(store.layout.local_dir) / "imports"
    (notes,) = (each for each in folder.iterdir() if each.name != "beginnings")
    remembered = json.loads(decompress_first(notes.read_bytes().partition(b"\n")[2], 1 << 20))
    key = chosen.choice(list(remembered))
    *way, last = chosen.choice([p for p in places_in(remembered) if p[0] == key])
    holder = remembered
    for step in way:
        holder = holder[step]
    holder[last] = chosen.choice(STRANGE)
    body = compress(json.dumps(remembered).encode(), level=1)
    notes.write_bytes(digest(body).hex().encode() + b"\n" + body)
    path.write_bytes(t.data)
    import_paths(Writer(store), [str(path)])
    kept = [b"".join(restore(tip, store.objects.read)) for _, tip in store.refs.iterate(FILES)]
    assert kept == [t.data]
    assert not [finding for finding in fsck(store) if finding.severity == "error"]


@pytest.mark.parametrize("path", each_chosen_file("claude-code"))
def test_real_transcripts_in_two_steps(path: Path, tmp_path: Path) -> None:
    data = path.read_bytes()
    expected = at_once(data, tmp_path, path.stem)
    copy = tmp_path / path.name
    for number, cut in enumerate(cuts_of(data, 3 if len(data) > 1_000_000 else 8)):
        copy.write_bytes(data[:cut])
        with Store.init(str(tmp_path / str(number)), durability="fast") as store:
            import_paths(Writer(store), [str(copy)], format="claude-code")
            copy.write_bytes(data)
            import_paths(Writer(store), [str(copy)])
            assert branches(store) == expected, cut
            again = {raw for raw, _ in records_in(data)}
            assert set(raw_records(store)) == again
