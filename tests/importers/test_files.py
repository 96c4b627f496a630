"""Files that are imported, and reports on those that cannot be."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

import trace_store
from tests.importers.support.states import all_refs, branches, context, raw_records
from tests.importers.support.transcripts import (
    SESSION,
    Transcript,
    call,
    lively,
    records_in,
    text,
)
from trace_store.base.environment import Environment
from trace_store.contracts.ref_names import is_ref_name
from trace_store.disk.files import Disk
from trace_store.errors import (
    InvalidInputError,
    InvalidRefNameError,
    StorageError,
    UnreadableInputError,
)
from trace_store.importers import input_files
from trace_store.importers.convert import ref_component, short_id
from trace_store.importers.discovery import project_histories
from trace_store.importers.formats.claude_code import project_name
from trace_store.importers.import_paths import import_paths
from trace_store.importers.input_files import files_in
from trace_store.store.store import Store
from trace_store.writer import Writer

OTHER = "aaaaaaaa-1111-4222-8333-944455556666"


def short(session: str = SESSION) -> Transcript:
    t = Transcript(session)
    t.user(f"Hello from {session}.")
    t.assistant("msg_1", text("Hello."), stop="end_turn")
    return t


@pytest.mark.parametrize(
    "content",
    [b"", b"\x00\x01\x02" * 100, b"not json at all\n", b"[1, 2]\n", b'{"a": 1}\n', b"\n\n\n"],
)
def test_a_named_file_of_no_known_format_is_refused(tmp_path: Path, content: bytes) -> None:
    good = short().write(tmp_path)
    bad = tmp_path / "bad.jsonl"
    bad.write_bytes(content)
    store = Store.memory()
    with pytest.raises(UnreadableInputError) as caught:
        import_paths(Writer(store), [str(bad), str(bad)])
    assert caught.value.path == str(bad)
    assert not all_refs(store), "and nothing was written"
    for paths in ([good, str(bad)], [str(bad), good]):
        store = Store.memory()
        report = import_paths(Writer(store), paths)
        assert set(branches(store)) == {SESSION}, "the other one is imported"
        (error,) = report.errors
        assert isinstance(error, UnreadableInputError)
        assert error.path == str(bad)
        assert {file.path: file.skipped for file in report.files} == {
            good: "",
            str(bad): "unknown-format" if content else "empty",
        }


def test_what_was_named_in_vain_is_reported_beside_what_was_imported(tmp_path: Path) -> None:
    good = short().write(tmp_path)
    absent = str(tmp_path / "absent.jsonl")
    store = Store.memory()
    report = import_paths(Writer(store), [absent, good, "nul\0character"])
    assert [file.skipped for file in report.files] == ["unreadable", "", "unreadable"]
    assert [str(error) for error in report.errors] == [
        f"no such file: {absent}",
        "cannot read: nul\0character",
    ]
    assert set(branches(store)) == {SESSION}


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UnreadableInputError, match="no such file"):
        import_paths(Writer(Store.memory()), [str(tmp_path / "absent.jsonl")])
    with pytest.raises(UnreadableInputError):
        import_paths(Writer(Store.memory()), ["nul\0character"])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    with pytest.raises(UnreadableInputError):
        import_paths(Writer(Store.memory()), [str(pipe)])


def test_formats_and_branches_must_exist(tmp_path: Path) -> None:
    path = short().write(tmp_path)
    with pytest.raises(InvalidInputError, match="claude-code"):
        import_paths(Writer(Store.memory()), [path], format="unheard-of")
    with pytest.raises(InvalidRefNameError):
        import_paths(Writer(Store.memory()), [path], onto="../main")


def test_a_folder_gives_its_transcripts_and_says_what_it_left(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    short().write(tmp_path)
    short(OTHER).write(tmp_path / "below")
    (tmp_path / "empty.jsonl").write_bytes(b"")
    (tmp_path / "other.jsonl").write_bytes(b'{"a": 1}\n')
    (tmp_path / "notes.txt").write_text("no transcript")
    store = Store.memory()
    report = import_paths(Writer(store), [str(tmp_path), str(tmp_path / "below")])
    assert set(branches(store)) == {SESSION, OTHER}
    assert {os.path.basename(f.path): f.skipped for f in report.files if f.skipped} == {
        "empty.jsonl": "empty",
        "other.jsonl": "unknown-format",
    }
    assert len(report.files) == 4, "a file that is found twice is imported once"
    assert trace_store.record(report)["messages"] == report.messages == 4


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes and links")
def test_what_cannot_be_read_in_a_folder_does_not_stop_the_others(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.jsonl")
    (tmp_path / "b.jsonl").symlink_to("nowhere")
    (tmp_path / "c.jsonl").symlink_to("c.jsonl")
    (tmp_path / "d.jsonl").mkdir()
    (tmp_path / "e.jsonl").symlink_to(tmp_path)
    path = short().write(tmp_path)
    report = import_paths(Writer(Store.memory()), [str(tmp_path)])
    assert {os.path.basename(file.path): file.skipped for file in report.files} == {
        **dict.fromkeys(["a.jsonl", "b.jsonl", "c.jsonl", "e.jsonl"], "unreadable"),
        os.path.basename(path): "",
    }
    assert not report.errors


def test_a_folder_that_cannot_be_listed_does_not_stop_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    short().write(tmp_path)
    scan = Disk.scan

    def refusing(disk: Disk, path: str) -> tuple[list[str], list[str]]:
        if path == str(closed):
            raise StorageError("permission denied", path=path)
        return scan(disk, path)

    monkeypatch.setattr(Disk, "scan", refusing)
    report = import_paths(Writer(Store.memory()), [str(tmp_path)])
    assert [(file.path == str(closed), file.skipped) for file in report.files] == [
        (False, ""),
        (True, "unreadable"),
    ]
    with pytest.raises(UnreadableInputError, match="closed"):
        import_paths(Writer(Store.memory()), [str(closed)])


def test_folders_may_be_nested_deeper_than_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def bottomless(disk: Disk, path: str) -> tuple[list[str], list[str]]:
        return (["d"] if path.count("d") < 1200 else [], ["f.jsonl", "f.txt"])

    monkeypatch.setattr(Disk, "scan", bottomless)
    found = files_in("/", Disk(), (".jsonl",))
    assert len(found) == 1201
    assert found == sorted(found, key=len)


def test_a_file_that_goes_away_meanwhile_does_not_stop_the_others(tmp_path: Path) -> None:
    first, second = short().write(tmp_path), short(OTHER).write(tmp_path)
    last = max(first, second)

    def progress(path: str, done: int, size: int) -> None:
        if path != last and os.path.exists(last):
            os.unlink(last)

    report = import_paths(Writer(Store.memory()), [str(tmp_path)], progress=progress)
    assert [file.skipped for file in report.files] == ["", "unreadable"]


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="needs symbolic links")
def test_a_link_that_is_named_is_followed(tmp_path: Path) -> None:
    path = short().write(tmp_path)
    link = tmp_path / "link.jsonl"
    link.symlink_to(path)
    store = Store.memory()
    import_paths(Writer(store), [str(link)])
    assert set(branches(store)) == {SESSION}


def test_the_newest_session_is_what_one_works_on(tmp_path: Path) -> None:
    store = Store.memory()
    newest = short()
    newest.user("Later.")
    import_paths(Writer(store), [short(OTHER).write(tmp_path), newest.write(tmp_path)])
    assert store.refs.head().ref == f"refs/heads/sessions/claude-code/{SESSION}"
    later = short(OTHER)
    later.user("Later.")
    later.user("Latest.")
    import_paths(Writer(store), [later.write(tmp_path)])
    assert store.refs.head().ref == f"refs/heads/sessions/claude-code/{SESSION}", "HEAD stays"


def test_bad_lines_are_counted_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trace_store.importers.import_file.read_lines", _short_lines)
    t = lively()
    good = import_paths(Writer(Store.memory()), [t.write(tmp_path)]).files[0]
    t.lines[3:3] = [
        "{broken",
        '"text"',
        '{"a":' * 5000 + "1" + "}" * 5000,
        '{"x":"' + "y" * 70_000 + '"}',
    ]
    path = Path(t.write(tmp_path))
    with path.open("ab") as file:
        file.write(b'\xff\xfe\n{"type":"user","mess')
    store = Store.memory()
    (report,) = import_paths(Writer(store), [str(path)]).files
    assert [(skip.line, skip.reason) for skip in report.skips] == [
        (4, "not-json"),
        (5, "not-a-record"),
        (6, "nested-too-deep"),
        (7, "line-too-long"),
        (len(t.lines) + 1, "not-utf8"),
        (len(t.lines) + 2, "unfinished-line"),
    ]
    assert report.messages == good.messages
    assert report.record_count == good.record_count + 6


def _short_lines(*args: object, **options: object) -> object:
    return input_files.read_lines(*args, limit=60_000, **options)  # type: ignore[arg-type]


def test_an_unfinished_line_is_taken_when_it_is_finished(tmp_path: Path) -> None:
    t = short()
    data = t.data
    path = tmp_path / f"{SESSION}.jsonl"
    path.write_bytes(data[:-20])
    with Store.init(str(tmp_path / "p"), durability="fast") as store:
        (report,) = import_paths(Writer(store), [str(path)]).files
        assert [skip.reason for skip in report.skips] == ["unfinished-line"]
        path.write_bytes(data)
        (report,) = import_paths(Writer(store), [str(path)]).files
        assert (report.messages, list(report.skips)) == (1, [])


def test_names_of_sessions_are_fit_for_refs() -> None:
    for name in ("edge_cases", SESSION, "a.b-c"):
        assert ref_component(name) == name
    odd = [
        "",
        ".",
        "..",
        "a/b",
        "a b",
        "CON",
        "nul.txt",
        "x.lock",
        "debug.log",
        "-x",
        "f" * 64,
        "é",
        "\ud83d",
        "x" * 500,
        "a..b",
    ]
    names = [ref_component(name) for name in odd]
    assert len(set(names)) == len(odd)
    for name in (*names, *(short_id(n) for n in odd)):
        assert is_ref_name(f"refs/heads/sessions/claude-code/{name}"), name


def test_history_of_a_project(tmp_path: Path) -> None:
    project = tmp_path / "my_app.x"
    project.mkdir()
    config = tmp_path / "config"
    environment = Environment(claude_dir=str(config))
    assert project_histories(environment, str(project)) == []
    folder = config / "projects" / project_name(str(project))
    (folder / SESSION / "subagents").mkdir(parents=True)
    path = short().write(folder)
    agent = short().write(folder / SESSION / "subagents", "agent-a1")
    assert project_histories(environment, str(project)) == [path, agent]
    assert project_histories(environment, str(tmp_path)) == []
    assert project_histories(Environment(), str(project)) == []
    assert project_name("/w/my_app.x é😀") == "-w-my-app-x----"


def test_history_of_a_project_with_a_long_name(tmp_path: Path) -> None:
    long = str(tmp_path / ("deep" * 60))
    cut = project_name(long)[:200]
    config = tmp_path / "config"
    folder = config / "projects" / f"{cut}-1a2b3c"
    folder.mkdir(parents=True)
    path = short().write(folder)
    assert project_histories(Environment(claude_dir=str(config)), long) == [path]


def test_hostile_shapes_make_commits_that_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trace_store.importers.build_commits.MAXIMUM_TARGETS", 7)
    monkeypatch.setattr(
        sys.modules["trace_store.importers.formats.claude_code.plan"], "MAXIMUM_OPEN_PARTS", 50
    )
    nested: Any = "deep"
    for number in range(30):
        nested = [{"type": "tool_result", "tool_use_id": f"t{number}", "content": nested}]
    t = Transcript()
    t.user(nested)
    t.user([text("a")] * 10_001)
    t.assistant("msg_1", *[call(f"c{n}" * 500, "x" * 1000) for n in range(40)])
    for number in range(120):
        t.user(f"{number}", isMeta=number % 3 == 0)
    t.result("c1", "late", toolUseResult={"agentId": "\ud83d"})
    t.user("a summary", isCompactSummary=True)
    for number in range(20):
        t.user(f"agent {number}", parent=None, isSidechain=True, agentId=f"{number} / \ud83d")
    t.user("on")
    store = Store.memory()
    import_paths(Writer(store), [t.write(tmp_path)])
    found = branches(store)
    assert len(found) == 21
    for name, tip in found.items():
        expected = (
            ["user: a summary", "user: on"]
            if name == SESSION
            else [f"user: agent {name.split('/')[-1].split('-')[0]}"]
        )
        assert context(store, tip) == expected
    assert sorted(raw_records(store)) == sorted(raw for raw, _ in records_in(t.data))


def test_a_mark_at_the_beginning_costs_no_record(tmp_path: Path) -> None:
    data = short().data
    plain, marked = tmp_path / f"{SESSION}.jsonl", tmp_path / "marked" / f"{SESSION}.jsonl"
    marked.parent.mkdir()
    plain.write_bytes(data)
    marked.write_bytes(b"\xef\xbb\xbf" + data)
    one, other = Store.memory(), Store.memory()
    import_paths(Writer(one), [str(plain)])
    (report,) = import_paths(Writer(other), [str(marked)]).files
    assert (report.format, list(report.skips)) == ("claude-code", [])
    assert branches(other) == branches(one)
