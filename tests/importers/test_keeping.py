"""Every file that was imported comes back byte for byte, however it is damaged, grown, copied or cut."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given

from tests.importers.support.checks import report_of
from tests.importers.support.states import count_reads
from tests.importers.support.transcripts import (
    SESSION,
    Transcript,
    call,
    each_real_file,
    lively,
    real_format,
    text,
)
from trace_store.base.oid import ObjectId
from trace_store.contracts import RefEdit, Transaction
from trace_store.contracts.ref_names import FILES
from trace_store.errors import CorruptObjectError, ObjectNotFoundError, TraceError
from trace_store.importers.import_paths import import_paths
from trace_store.maintenance.fsck import fsck
from trace_store.objects.content import ObjectCollector
from trace_store.store.store import Store
from trace_store.transcripts.layout import RecordPlace, lay_out
from trace_store.transcripts.segments import restore, segments_of
from trace_store.writer import Writer


def kept(store: Store) -> dict[str, bytes]:
    """Every kept file, by its ref."""
    read = store.objects.read
    return {name: b"".join(restore(tip, read)) for name, tip in store.refs.iterate(FILES)}


def assert_kept(store: Store, *files: bytes) -> None:
    assert sorted(kept(store).values()) == sorted(files)
    assert not [finding for finding in fsck(store) if finding.severity == "error"]


ODD = {
    "no newline at the end": lambda data: data.rstrip(b"\n"),
    "line ends of Windows": lambda data: data.replace(b"\n", b"\r\n"),
    "empty lines": lambda data: data.replace(b"\n", b"\n\n \t\n"),
    "two records on a line": lambda data: data.replace(b"\n", b" ", 3),
    "a line that is cut": lambda data: data[: len(data) // 2],
    "lines that are no records": lambda data: b'[1]\n"x"\n' + data + b"{broken\n\xff\xfe\n",
    "zeros, as after a power cut": lambda data: data + b"\x00" * 4096 + b"\n" + data[:100],
    "NUL bytes within": lambda data: data.replace(b"parser", b"par\x00ser", 1) + b"\x00.0\x00\n",
    "lines that come twice": lambda data: data + data,
    "a byte order mark": lambda data: b"\xef\xbb\xbf" + data,
}


@pytest.mark.parametrize("what", ODD)
def test_a_file_comes_back(tmp_path: Path, what: str) -> None:
    data = ODD[what](lively().data)
    path = tmp_path / f"{SESSION}.jsonl"
    path.write_bytes(data)
    with Store.init(str(tmp_path / "project")) as store:
        import_paths(Writer(store), [str(path)], format="claude-code")
        assert_kept(store, data)


@pytest.mark.parametrize("remembers", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_a_grown_file_is_kept_once(tmp_path: Path, seed: int, remembers: bool) -> None:
    chosen = random.Random(seed)
    t = lively()
    for turn in range(150):
        t.user(f"And question {turn}?")
        t.assistant(f"msg_n{turn}", call(f"toolu_n{turn}", at=turn))
        t.result(f"toolu_n{turn}", "found " * 20)
    data = t.data
    path = tmp_path / f"{SESSION}.jsonl"
    with Store.init(str(tmp_path / "project"), durability="fast") as store:
        for cut in [*sorted(chosen.sample(range(300, len(data)), 6)), len(data)]:
            path.write_bytes(data[:cut])
            import_paths(Writer(store), [str(path)])
            assert_kept(store, data[:cut])
            if not remembers:
                shutil.rmtree(Path(store.layout.local_dir) / "imports")
        (tip,) = (tip for _, tip in store.refs.iterate(FILES))
        assert len(segments_of(tip, store.objects.read)) > 3
        whole = Store.memory()
        import_paths(Writer(whole), [str(path)])
        assert [oid for _, oid in whole.refs.iterate(FILES)] == [tip]


def test_the_same_session_under_another_path_adds_nothing(tmp_path: Path) -> None:
    path = lively().write(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    other = lively().write(tmp_path / "elsewhere", "another-name")
    with Store.init(str(tmp_path / "project")) as store:
        import_paths(Writer(store), [path])
        refs = dict(store.refs.iterate())
        count = len(list(store.objects.iterate()))
        assert import_paths(Writer(store), [other]).commits == 0
        assert dict(store.refs.iterate()) == refs
        assert len(list(store.objects.iterate())) == count


def test_an_older_copy_adds_nothing_and_another_version_stands_beside(tmp_path: Path) -> None:
    t = lively()
    path = Path(t.write(tmp_path))
    with Store.init(str(tmp_path / "project")) as store:
        import_paths(Writer(store), [str(path)])
        path.write_bytes(t.data[: len(t.data) * 2 // 3])
        import_paths(Writer(store), [str(path)])
        assert_kept(store, t.data)
        changed = t.data.replace(b"Fix the parser", b"Fix the reader")
        path.write_bytes(changed)
        import_paths(Writer(store), [str(path)])
        assert_kept(store, t.data, changed)


def test_a_copied_session_is_kept_too_and_shares_its_contents(tmp_path: Path) -> None:
    t = Transcript()
    for turn in range(20):
        t.user(f"Question {turn}: " + "very long " * 100)
        t.assistant(f"msg_{turn}", text(f"Answer {turn}: " + "quite long " * 100), stop="end_turn")
    fork = "0" * 8 + SESSION[8:]
    copy = t.data.replace(SESSION.encode(), fork.encode())
    (tmp_path / f"{fork}.jsonl").write_bytes(copy)
    with Store.init(str(tmp_path / "project")) as store:
        import_paths(Writer(store), [t.write(tmp_path)])
        before = sum(len(store.objects.read(oid)) for oid in store.objects.iterate())
        import_paths(Writer(store), [str(tmp_path / f"{fork}.jsonl")])
        assert_kept(store, t.data, copy)
        after = sum(len(store.objects.read(oid)) for oid in store.objects.iterate())
    assert after - before < len(copy) / 3


def test_a_file_added_to_a_branch_of_ones_own_is_kept(tmp_path: Path) -> None:
    path = lively().write(tmp_path)
    with Store.init(str(tmp_path / "project")) as store:
        import_paths(Writer(store), [path], onto="mine")
        assert_kept(store, lively().data)


def test_without_sources_nothing_is_kept(tmp_path: Path) -> None:
    with Store.init(str(tmp_path / "project")) as store:
        import_paths(Writer(store), [lively().write(tmp_path)], source=False)
        assert kept(store) == {}


def test_damage_is_not_given_back_as_if_it_were_the_file(tmp_path: Path) -> None:
    store = Store.memory()
    import_paths(Writer(store), [lively().write(tmp_path)])
    ((_, tip),) = store.refs.iterate(FILES)
    objects = {bytes(oid): store.objects.read(oid) for oid in store.objects.iterate()}
    segment = objects[bytes(tip)]
    objects[bytes(tip)] = segment.replace(b"start\x00", b"start\x01")
    (first,) = segments_of(tip, objects.__getitem__)
    layout = objects[bytes(first.layout)]
    for damaged in (
        layout.replace(b"\x001.0\x00", b"\x001.9\x00", 1),
        layout.replace(b"\x001.0\x00", b"\x0099.0\x00", 1),
        layout[:-30],
        layout + b"\x00",
        layout + b"\x00x.y\x00",
    ):
        with pytest.raises(CorruptObjectError):
            b"".join(restore(tip, {**objects, bytes(first.layout): damaged}.__getitem__))


@given(
    st.lists(st.binary(max_size=40) | st.just(b"\x00") | st.just(b"\x001.0\x00"), max_size=40),
    st.integers(0, 40),
)
def test_bytes_without_records_come_back(pieces: list[bytes], size: int) -> None:
    data = b"".join(pieces)
    gathering = ObjectCollector()
    laid = lay_out(lambda at, size: (data[at : at + size], True), len(data), {}, gathering)
    objects = {bytes(oid): content for oid, content in gathering.objects}
    assert b"".join(restore(laid[-1].oid, objects.__getitem__)) == data


def test_a_record_whose_commit_is_gone_is_an_error(tmp_path: Path) -> None:
    data = b"0123456789"
    gathering = ObjectCollector()
    places = {2: RecordPlace(3, ObjectId(b"\x01" * 32), 0)}
    laid = lay_out(lambda at, size: (data[at : at + size], True), len(data), places, gathering)
    store = Store.memory()
    for _, content in gathering.objects:
        store.objects.write(content)
    with pytest.raises(TraceError):
        list(restore(laid[-1].oid, store.objects.read))


def talk(turns: int) -> bytes:
    t = Transcript()
    for turn in range(turns):
        t.user(f"Question {turn}, with some words behind it.")
        t.assistant(f"msg_{turn}", call(f"toolu_{turn}", at=turn))
        t.result(f"toolu_{turn}", "found " * 20)
    return t.data


CHANGES: dict[str, Callable[[Path, bytes], object]] = {
    "cut short": lambda path, data: os.truncate(path, len(data) // 4),
    "emptied": lambda path, data: os.truncate(path, 0),
    "written over": lambda path, data: path.write_bytes(data.replace(b"words", b"WORDS")),
    "written on": lambda path, data: path.write_bytes(data + data[:1000]),
}


@pytest.mark.parametrize("how", CHANGES)
def test_a_file_that_changes_while_it_is_read_is_kept_as_something_that_comes_back(
    tmp_path: Path, how: str
) -> None:
    data = talk(200)
    path = tmp_path / f"{SESSION}.jsonl"
    path.write_bytes(data)
    told: list[int] = []

    def progress(_: str, done: int, size: int) -> None:
        told.append(done)
        if len(told) == 300:
            CHANGES[how](path, data)

    with Store.init(str(tmp_path / "project")) as store:
        import_paths(Writer(store), [str(path)], progress=progress)
        kept(store)
        path.write_bytes(data)
        import_paths(Writer(store), [str(path)])
        assert data in kept(store).values()
        assert not [finding for finding in fsck(store) if finding.severity == "error"]


def test_an_older_copy_can_grow_where_a_newer_one_is_kept_with_other_commits(
    tmp_path: Path,
) -> None:
    data = talk(100)
    newer, older = tmp_path / "newer", tmp_path / "older"
    for folder in (newer, older):
        folder.mkdir()
    (newer / f"{SESSION}.jsonl").write_bytes(data)
    path = older / f"{SESSION}.jsonl"
    path.write_bytes(b"".join(data.splitlines(keepends=True)[:150]))
    with Store.init(str(tmp_path / "project")) as store:
        import_paths(Writer(store), [lively().write(tmp_path)], onto="mine")
        import_paths(Writer(store), [str(newer / f"{SESSION}.jsonl")], onto="mine")
        import_paths(Writer(store), [str(path)])
        path.write_bytes(data)
        import_paths(Writer(store), [str(path)])
        assert_kept(store, data, lively().data)


def test_a_file_is_kept_again_when_its_ref_was_removed(tmp_path: Path) -> None:
    data = talk(100)
    path = tmp_path / f"{SESSION}.jsonl"
    path.write_bytes(data)
    with Store.init(str(tmp_path / "project")) as store:
        import_paths(Writer(store), [str(path)])
        ((name, tip),) = store.refs.iterate(FILES)
        store.transact(lambda _: Transaction([], [RefEdit(name, None, tip)]))
        assert import_paths(Writer(store), [str(path)]).commits == 0
        assert_kept(store, data)


def test_a_file_grows_when_what_was_kept_of_it_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = talk(100)
    path = tmp_path / f"{SESSION}.jsonl"
    path.write_bytes(b"".join(data.splitlines(keepends=True)[:200]))
    with Store.init(str(tmp_path / "project")) as store:
        import_paths(Writer(store), [str(path)])
        ((name, tip),) = store.refs.iterate(FILES)
        gone = segments_of(tip, store.objects.read)[-1].previous
        store.transact(lambda _: Transaction([], [RefEdit(name, None, tip)]))
        path.write_bytes(data)
        read, absent = type(store.objects).read, {gone}

        def pruned(objects: object, oid: bytes) -> bytes:
            if oid in absent:
                raise ObjectNotFoundError("not here", oid=oid)
            return read(objects, oid)  # type: ignore[arg-type]

        monkeypatch.setattr(type(store.objects), "read", pruned)
        import_paths(Writer(store), [str(path)])
        absent.clear()
        assert_kept(store, data)


def test_a_file_that_was_cut_elsewhere_is_known_as_the_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = talk(60)
    path = tmp_path / f"{SESSION}.jsonl"
    path.write_bytes(data[: len(data) // 2])
    with Store.init(str(tmp_path / "project")) as store:
        with monkeypatch.context() as patched:
            patched.setattr("trace_store.transcripts.layout.MAXIMUM_RECORDS", 7)
            import_paths(Writer(store), [str(path)])
        shutil.rmtree(Path(store.layout.local_dir) / "imports")
        path.write_bytes(data)
        import_paths(Writer(store), [str(path)])
        assert_kept(store, data)


def test_a_long_stretch_without_records_is_never_held_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trace_store.transcripts.layout.MAXIMUM_STRETCH", 5000)
    data = talk(20) + b"x" * 17_000 + b"\n" + talk(1)[:200] + b"\n" + b"y" * 11_000
    path = tmp_path / f"{SESSION}.jsonl"
    with Store.init(str(tmp_path / "project")) as store:
        for size in (len(data) - 15_000, len(data) - 5000, len(data)):
            path.write_bytes(data[:size])
            import_paths(Writer(store), [str(path)])
            assert_kept(store, data[:size])
        ((_, tip),) = store.refs.iterate(FILES)
        segments = segments_of(tip, store.objects.read)
    assert max(segment.size for segment in segments if not segment.commits) <= 5000
    assert len(segments) >= 6


def test_a_commit_with_many_records_is_put_together_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    t = Transcript()
    t.user("Go on.")
    for number in range(1000):
        t.system("note", content=f"step {number}")
    path = t.write(tmp_path)
    store = Store.memory()
    import_paths(Writer(store), [path])
    read = store.objects.read
    times = count_reads(store, monkeypatch)
    ((_, tip),) = store.refs.iterate(FILES)
    assert b"".join(restore(tip, store.objects.read)) == t.data
    assert len(segments_of(tip, read)) > 10
    assert max(times.values()) <= 2


@pytest.mark.parametrize("path", each_real_file())
def test_real_transcripts_come_back(path: Path, tmp_path: Path) -> None:
    data = path.read_bytes()
    copy = tmp_path / path.name
    with Store.init(str(tmp_path / "project"), durability="fast") as store:
        for size in (len(data) // 3, len(data)):
            copy.write_bytes(data[:size])
            report_of(store, copy, real_format(path))
        assert_kept(store, data)
