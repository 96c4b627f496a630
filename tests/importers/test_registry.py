"""Formats of other packages: found by their entry points, used like our own, and refused by name when broken."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given

import trace_store
from tests.importers.support.transcripts import lively
from tests.support.subjects import transcripts
from trace_store.base.environment import Environment
from trace_store.errors import InvalidInputError, UnreadableInputError
from trace_store.importers.discovery import project_histories
from trace_store.importers.import_paths import import_paths
from trace_store.importers.registry import BUILT_IN, format_of, formats
from trace_store.importers.sniff import describe
from trace_store.store.store import Store
from trace_store.writer import Writer

MODULE = """
from trace_store.importers.contract import PlannedMessage
from trace_store.importers.turn_plan import TurnFormat
from trace_store.importers.turns import Turn, TurnReader
from trace_store.objects.parts import Text


class Reader(TurnReader):
    AGENT = "notes"

    def read(self, record):
        yield Turn((PlannedMessage("user", (Text(record.data["note"]),)),), author="user")


FORMAT = TurnFormat("notes", (".notes",), lambda head: head.startswith(b'{"note"'), Reader)
OTHER = TurnFormat("other", (".notes",), lambda head: False, Reader)
NAMELESS = TurnFormat(None, (".notes",), lambda head: False, Reader)
ENDLESS = TurnFormat("notes", ".notes", lambda head: False, Reader)
FAILING = TurnFormat("notes", (".notes",), lambda head: 1 // 0, Reader)
LOST = TurnFormat("notes", (".notes",), lambda head: False, Reader, finds=lambda *_: 1 // 0)
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of packages, as an installer leaves it; the file of entry points is the test's to write."""
    packages = tmp_path / "packages"
    info = packages / "notes-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: notes\nVersion: 1\n")
    (packages / "notes_format.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(packages))
    formats.cache_clear()
    yield info / "entry_points.txt"
    formats.cache_clear()
    sys.modules.pop("notes_format", None)


def test_a_format_of_another_package_is_imported_like_our_own(
    installed: Path, tmp_path: Path
) -> None:
    installed.write_text("[trace_store.importers]\nnotes = notes_format:FORMAT\n")
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "a.notes").write_text('{"note":"Remember the milk"}\n{"note":"And the bread"}\n')
    with Store.init(str(tmp_path / "project")) as store:
        (report,) = import_paths(Writer(store), [str(folder)]).files
        assert (report.format, report.messages) == ("notes", 2)
        assert store.refs.read("refs/heads/sessions/notes/a") is not None
        assert store.refs.head().ref == "refs/heads/sessions/notes/a"
    assert list(formats()) == [*(own.NAME for own in BUILT_IN), "notes"]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("notes = notes_format:ABSENT", "notes"),
        ("notes = no_such_module:FORMAT", "notes"),
        ("notes = notes_format:OTHER", "other"),
        ("claude-code = notes_format:FORMAT", "claude-code"),
        ("notes = notes_format:Reader", "notes"),
        ("notes = notes_format:NAMELESS", "notes"),
        ("notes = notes_format:ENDLESS", "notes"),
        ("notes = notes_format:FAILING", "notes"),
        ("notes = broken_format:FORMAT", "notes"),
    ],
)
def test_a_broken_package_is_named(installed: Path, line: str, told: str) -> None:
    (installed.parent.parent / "broken_format.py").write_text("1 // 0")
    installed.write_text(f"[trace_store.importers]\n{line}\n")
    with pytest.raises(InvalidInputError, match=told):
        format_of(b"anything")


def test_a_broken_package_does_not_stop_our_own_formats(installed: Path, tmp_path: Path) -> None:
    installed.write_text("[trace_store.importers]\nnotes = no_such_module:FORMAT\n")
    store = Store.memory()
    (report,) = import_paths(Writer(store), [lively().write(tmp_path)]).files
    assert report.commits
    assert transcripts(store).export_original(report.session).to_bytes() == lively().data
    with pytest.raises(InvalidInputError, match="notes"):
        import_paths(Writer(store), [lively().write(tmp_path)], format="notes")


def test_a_package_that_fails_to_look_for_files_is_named(installed: Path, tmp_path: Path) -> None:
    installed.write_text("[trace_store.importers]\nnotes = notes_format:LOST\n")
    with pytest.raises(InvalidInputError, match="notes"):
        project_histories(Environment(), str(tmp_path))


def test_a_reader_that_fails_is_named_and_stops_no_other_file(
    installed: Path, tmp_path: Path
) -> None:
    installed.write_text("[trace_store.importers]\nnotes = notes_format:FORMAT\n")
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "a.notes").write_text('{"note":"first"}\n{"other":"this reader raises KeyError"}\n')
    (folder / "b.notes").write_text('{"note":"Remember the milk"}\n')
    store = Store.memory()
    report = import_paths(Writer(store), [str(folder)])
    assert [(file.skipped, file.messages) for file in report.files] == [("failed", 0), ("", 1)]
    (error,) = report.errors
    for told in ("'notes'", "a.notes", "KeyError"):
        assert told in str(error)
        assert told in str(trace_store.record(report)["files"][0]["error"])
    assert [name for name, _ in store.refs.iterate("refs/heads/")] == [
        "refs/heads/sessions/notes/b"
    ]
    with pytest.raises(UnreadableInputError, match="notes"):
        import_paths(Writer(store), [str(folder / "a.notes")])


KEYS = st.sampled_from(
    [
        *("messages", "contents", "input", "output", "history", "trajectory", "steps", "chapters"),
        *(
            "files",
            "info",
            "parts",
            "type",
            "role",
            "content",
            "payload",
            "id",
            "timestamp",
            "data",
        ),
        *("sessionId", "projectHash", "schema_version", "agent", "$set", "kwargs", "lc", "choices"),
        *("record_type", "format", "trajectory_format", "version", "v", "model", "session_id", "x"),
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(KEYS, JSON, max_size=4) | st.lists(JSON, max_size=3), st.booleans())
def test_no_file_is_too_strange_to_be_looked_at(value: object, many: bool) -> None:
    head = json.dumps(value).encode()
    if many:
        head += b"\n" + head + b"\n"
    for own in BUILT_IN:
        assert own.sniff(head) in (True, False)
        assert own.is_document(head) in (True, False)
    assert describe(head)


def test_a_file_that_only_begins_like_a_list_is_text() -> None:
    assert "not JSON" in describe(b'[project]\nname = "x"\n')


def test_each_format_has_a_name_and_endings_of_its_own() -> None:
    names = [own.NAME for own in BUILT_IN]
    assert len(names) == len(set(names))
    for own in BUILT_IN:
        assert own.SUFFIXES
        assert all(suffix.startswith(".") for suffix in own.SUFFIXES)
        assert not own.sniff(b"")
        assert not own.sniff(b"PK\x03\x04")
        assert not own.sniff(b"# A page of Markdown\n\nwith a list\n")
