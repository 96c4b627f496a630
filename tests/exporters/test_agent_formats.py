"""Agent formats: a reimported file equals the session, except for listed losses."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from tests.exporters.support.differing import counted, difference, read_back
from tests.exporters.support.invented import sessions
from tests.exporters.support.sessions import rich_session
from tests.support.examples import examples
from trace_store.errors import InvalidInputError
from trace_store.exporters.contract import ExportSession
from trace_store.exporters.registry import writer_named
from trace_store.exporters.session import read_session
from trace_store.importers.import_paths import import_paths
from trace_store.objects.parts import ToolCall, ToolResult
from trace_store.store.store import Store
from trace_store.writer import Writer

FORMATS = ("atif", "dagent", "gemini")
TRANSCRIPTS = os.environ.get("TRACE_TEST_TRANSCRIPTS", "")
SMALL = 400_000


def _check(session: ExportSession, name: str) -> None:
    exported = writer_named(name).write(session)
    found = difference(session, read_back(exported.to_bytes(), name))
    assert found.gained == []
    assert found.words == counted(exported)


@pytest.mark.parametrize("name", FORMATS)
def test_a_rich_session_comes_back_but_for_what_is_listed(name: str) -> None:
    _check(rich_session(), name)


@pytest.mark.parametrize("name", FORMATS)
@given(session=sessions())
@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
def test_nothing_is_lost_but_what_is_listed(name: str, session: ExportSession) -> None:
    try:
        writer_named(name).write(session)
    except InvalidInputError:
        return  # this format can represent none of its messages
    _check(session, name)


@pytest.mark.parametrize("name", FORMATS)
def test_what_was_read_back_is_written_the_same(name: str) -> None:
    """Calls keep their results, and a second time loses nothing that the first one kept."""
    session = rich_session()
    back = read_back(writer_named(name).write(session).to_bytes(), name)
    again = read_back(writer_named(name).write(back).to_bytes(), name)
    assert [turn.message.message() for turn in again.turns] == [
        turn.message.message() for turn in back.turns
    ]
    calls = {p.id for t in back.turns for p in t.message.parts if isinstance(p, ToolCall)}
    results = {p.call_id for t in back.turns for p in t.message.parts if isinstance(p, ToolResult)}
    assert results
    assert results <= calls


@pytest.mark.skipif(not TRANSCRIPTS, reason="TRACE_TEST_TRANSCRIPTS names no folder")
@pytest.mark.parametrize("name", FORMATS)
def test_real_sessions_come_back_but_for_what_is_listed(name: str) -> None:
    paths = (path for path in sorted(Path(TRANSCRIPTS).rglob("*.jsonl")) if path.is_file())
    small = [path for path in paths if path.stat().st_size < SMALL][:4]
    if not small:
        pytest.skip("there are no transcripts of this size")
    store = Store.memory()
    report = import_paths(Writer(store), [str(path) for path in small])
    for branch in (branch for file in report.files for branch in file.branches):
        _check(read_session(store, branch.ref), name)
