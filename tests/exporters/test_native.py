"""A session's file comes back: found by branch or id, checked, and never another one instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.importers.support.transcripts import SESSION, Transcript, lively, text
from tests.support.subjects import transcripts
from trace_store.errors import (
    AmbiguousRevisionError,
    CorruptObjectError,
    ObjectNotFoundError,
    RevisionNotFoundError,
)
from trace_store.importers.import_paths import import_paths
from trace_store.sessions.transcripts import source_files
from trace_store.store.store import Store
from trace_store.writer import Writer

NAMES = [
    f"sessions/claude-code/{SESSION}",
    f"refs/heads/sessions/claude-code/{SESSION}",
    f"claude-code/{SESSION}",
    SESSION,
    SESSION[:8],
    "HEAD",
]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store.memory()
    import_paths(Writer(store), [lively().write(tmp_path)])
    return store


@pytest.mark.parametrize("name", NAMES)
def test_a_session_is_found_by_any_of_its_names(store: Store, name: str) -> None:
    exported = transcripts(store).export_original(name)
    assert exported.to_bytes() == lively().data
    assert exported.file_name == f"{SESSION}.jsonl"
    assert not exported.losses


def test_what_is_not_kept_is_not_found(tmp_path: Path) -> None:
    store = Store.memory()
    import_paths(Writer(store), [lively().write(tmp_path)], source=False)
    for name in (*NAMES, "absent", ""):
        with pytest.raises(RevisionNotFoundError):
            transcripts(store).original(name)


def test_a_session_that_was_added_to_another_branch_has_its_file(tmp_path: Path) -> None:
    store = Store.memory()
    import_paths(Writer(store), [lively().write(tmp_path)], onto="mine")
    assert transcripts(store).export_original(SESSION).to_bytes() == lively().data


def test_of_two_versions_each_belongs_to_its_branch(tmp_path: Path, store: Store) -> None:
    changed = lively().data.replace(b"Fix the parser", b"Fix the reader")
    (tmp_path / "changed").mkdir()
    path = tmp_path / "changed" / f"{SESSION}.jsonl"
    path.write_bytes(changed)
    import_paths(Writer(store), [str(path)])
    branch = f"sessions/claude-code/{SESSION}"
    assert transcripts(store).export_original(branch).to_bytes() == lively().data
    (copy,) = (ref for ref, _ in store.refs.iterate(f"refs/heads/{branch}/copies/"))
    assert transcripts(store).export_original(copy).to_bytes() == changed
    first, second = source_files(store, f"claude-code/{SESSION}")
    assert {transcripts(store).export_original(f).to_bytes() for f in (first, second)} == {
        lively().data,
        changed,
    }
    assert transcripts(store).original(SESSION, file=second.id[:6]) == second


def test_what_two_sessions_begin_with_names_none(tmp_path: Path) -> None:
    store = Store.memory()
    other = SESSION[:-1] + "7"
    import_paths(Writer(store), [lively().write(tmp_path)], onto="mine")
    t = Transcript(other)
    t.user("Hello?")
    import_paths(Writer(store), [t.write(tmp_path, other)], onto="mine")
    with pytest.raises(AmbiguousRevisionError) as caught:
        transcripts(store).original(SESSION[:8])
    assert caught.value.candidates == [f"claude-code/{SESSION}", f"claude-code/{other}"]


def test_a_subagent_has_its_own_file(tmp_path: Path, store: Store) -> None:
    t = Transcript()
    t.user("Look.", isSidechain=True, agentId="a1b2")
    t.assistant("msg_s", text("Looked."), isSidechain=True, agentId="a1b2", stop="end_turn")
    import_paths(Writer(store), [t.write(tmp_path, "agent-a1b2")])
    agent = f"sessions/claude-code/{SESSION}/agents/a1b2"
    exported = transcripts(store).export_original(agent)
    assert exported.to_bytes() == t.data
    assert exported.file_name == "agent-a1b2.jsonl"
    assert transcripts(store).export_original(SESSION).to_bytes() == lively().data


@pytest.mark.parametrize("held", [1 << 20, 10])
def test_a_damaged_file_is_not_given(
    store: Store, monkeypatch: pytest.MonkeyPatch, held: int
) -> None:
    monkeypatch.setattr("trace_store.sessions.transcripts.HELD_BYTES", held)
    file = transcripts(store).original(SESSION)
    assert transcripts(store).export_original(file).to_bytes() == lively().data
    read = store.objects.read

    def gone(_: object, oid: bytes) -> bytes:
        data = read(oid)
        if b"Nothing is left" in data and data[2:6] != b"list":
            raise ObjectNotFoundError("not here", oid=oid)
        return data

    monkeypatch.setattr(type(store.objects), "read", gone)
    with pytest.raises((ObjectNotFoundError, CorruptObjectError)):
        transcripts(store).export_original(file)
